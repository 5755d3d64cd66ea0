"""Matrix products: precision, einsum against NumPy, errors. The kernels: test_gemm_kernels.py."""
import numpy as np
import pytest

import zoo
from zoo.ops.errors import ArgumentError, DtypeError, ShapeError
from zoo.ops.matmul import linear, matmul

EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("iij->ij", (3, 3, 2)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("...ij,...jk", (2, 3, 4), (4, 5)), ("...i->...", (2, 3, 4)),
    ("bn,anm,bm->ba", (2, 5), (3, 5, 4), (2, 4)), ("ba,ab", (2, 3), (3, 2)), ("ij->", (2, 3)),
    ("Ba,aC", (2, 3), (3, 4)),
    ("ij,k->ik", (2, 3), (4,)), ("a,b,c->abc", (2,), (3,), (4,)), ("bij,bij->b", (2, 3, 4), (2, 3, 4)),
    ("ij->ji", (2, 3)),
]


@pytest.mark.parametrize("row", EQUATIONS, ids=lambda row: row[0])
def test_einsum_equals_numpy(row, rng):
    equation, *shapes = row
    xs = [rng.normal(size=s) for s in shapes]
    got = zoo.einsum(equation, *(zoo.tensor(x, dtype=zoo.float64) for x in xs)).numpy()
    np.testing.assert_allclose(got, np.einsum(equation, *xs), rtol=1e-12, atol=1e-12)


def test_einsum_of_sublists_and_size_one(rng):
    a, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 4))
    np.testing.assert_allclose(zoo.einsum(zoo.tensor(a), [0, 1], zoo.tensor(b), [1, 2], [2, 0]).numpy(), (a @ b).T)
    np.testing.assert_allclose(zoo.einsum("ij,ij->ij", zoo.tensor(a), zoo.tensor(a[:, :1])).numpy(), a * a[:, :1])


@pytest.mark.parametrize("call, error, words", [
    (lambda x: zoo.matmul(x, zoo.ones(5, 2)), ShapeError, "(2, 3) and (5, 2)"),
    (lambda x: zoo.matmul(x, zoo.ones(3, 2, dtype=zoo.float64)), DtypeError, "float32, float64"),
    (lambda x: zoo.matmul(x, zoo.tensor(1.0)), ShapeError, "at least 1 dimension"),
    (lambda x: zoo.matmul(zoo.ones(2, 2, 3), zoo.ones(3, 3, 2)), ShapeError, "batch dimensions"),
    (lambda x: zoo.mm(x, zoo.ones(3)), ShapeError, "mm: wants a 2-d and a 2-d"),
    (lambda x: zoo.bmm(x, x), ShapeError, "bmm"),
    (lambda x: zoo.nn.functional.linear(x, zoo.ones(4, 5)), ShapeError, "linear: wants input (..., K)"),
    (lambda x: zoo.nn.functional.linear(x, zoo.ones(4, 3), zoo.ones(3)), ShapeError, "bias: (3,)"),
    (lambda x: zoo.einsum("ij,jk->iz", x, zoo.ones(3, 2)), ArgumentError, "'z'"),
    (lambda x: zoo.einsum("ij,jk", x), ArgumentError, "2 subscripts, got 1"),
    (lambda x: zoo.einsum("ij,jk", x, zoo.ones(4, 2)), ShapeError, "'j' has sizes 3 and 4"),
    (lambda x: zoo.addmm(zoo.ones(7), x, zoo.ones(3, 2)), ShapeError, "broadcast to (2, 2)"),
    (lambda x: zoo.tensordot(x, zoo.ones(4, 2), 1), ShapeError, "equal sizes"),
])
def test_errors_name_op_and_shapes(call, error, words):
    with pytest.raises(error) as caught:
        call(zoo.ones(2, 3))
    assert words in str(caught.value)


def test_halves_are_rounded_once(rng):
    """1 + 4096 tiny ones: a sum in float16 would stay at 1, one in float32 does not."""
    a = np.full((1, 4097), 2.0 ** -12, np.float16)
    a[0, 0] = 1
    assert matmul(a, np.ones((4097, 1), np.float16))[0, 0] == 2
    x, w, b = (rng.normal(size=s).astype(np.float16) for s in ((5, 7), (3, 7), (3,)))
    wanted = (x.astype(np.float32) @ w.T.astype(np.float32) + b).astype(np.float16)
    np.testing.assert_array_equal(linear(x, w, b), wanted)


def test_precision_takes_torchs_words():
    assert zoo.get_float32_matmul_precision() == "highest"
    with pytest.raises(ArgumentError, match="highest, high or medium"):
        zoo.set_float32_matmul_precision("low")
