"""Views, splits, joins and pads beside torch: shared memory, values, gradients, and the errors of wrong calls."""
import random

import numpy as np
import pytest

import zoo

INTERPRET = pytest.mark.cuda
VIEWS = [
    "x[1]", "x[:, ::2]", "x[..., None, 1:]", "x[0].T", "x.mT", "x.permute(2, 0, 1)", "x.transpose(0, -1)",
    "x.view(6, 5)", "x.reshape(3, 10)",
    "x.flatten(1)", "x.unflatten(2, (5, 1))", "x.unsqueeze(1)", "x.squeeze()", "x.expand(1, -1, -1, -1)",
    "x.narrow(2, 1, 3)", "x.select(1, -1)",
    "x.diagonal(1, 1, 2)", "x.unfold(2, 3, 1)", "x.as_strided((3, 3), (4, 1), 2)", "x.movedim(0, 2)",
    "x.swapaxes(0, 1)",
    "x.split(2, 2)[1]", "x.chunk(2)[1]", "x.tensor_split(3, 2)[1]", "x.unbind(1)[2]", "x.view_as(x)", "x.ravel()",
    "x.contiguous()",
]
COPIES = [
    "x.mT.reshape(-1)", "x.expand(4, -1, -1, -1)", "x.clone()", "x.flip(0, 2)", "x.roll((1, -2), (0, 2))", "x.roll(3)",
    "m.cat([x, x[:, :1]], 1)", "m.stack([x, x], -1)",
    "m.hstack([x, x])", "m.vstack([x, x])", "m.dstack([x, x])", "m.column_stack([x[0, 0], x[1, 0]])",
    "x.repeat(2, 1, 3)", "x.tile((2,))",
    "x.repeat_interleave(2, 1)", "m.rot90(x, 1, (0, 2))", "m.rot90(x, -1, (1, 2))", "m.fliplr(x)", "x.tril(-1)",
    "x.triu(1)", "x[0].trace()",
    "m.diag(x[0, 0])", "m.diag(x[0], 1)", "m.diag_embed(x, 1, 0, -1)", "m.block_diag(x[0], x[1, 0])",
    "m.cartesian_prod(x[0, 0], x[1, 0])",
    "m.combinations(x[0, 0], 2, True)", "m.meshgrid(x[0, 0], x[1, :, 0], indexing='xy')[1]",
    "m.select_scatter(x, x[0], 0, 1)",
    "m.slice_scatter(x, x[:, :, :2], 2, 1, 5, 2)", "m.diagonal_scatter(x, x[:, 0, :3], 0, 1, 2)",
    "m.broadcast_tensors(x, x[0, 0])[1]",
    "m.cat([x, m.ones(0)], 2)", "m.unfold_copy(x, 2, 4, 1)",
]
PADS = [((1, 2), "constant"), ((-1, 2, 0, -1), "constant"), ((2, 1), "reflect"), ((2, 1, 1, 2), "reflect"),
        ((2, 1, 3, 0), "replicate"), ((-1, 3), "circular"), ((2, 1, 1, 2), "circular")]
WRONG = [
    "x.view(7)", "x.mT.view(-1)", "x.reshape(-1, -1)", "x.expand(3, 3, 5)", "x.expand(-1, 2, 3, 5)",
    "x.permute(0, 0, 1)", "x.permute(0, 1)",
    "x.transpose(0, 3)", "x.unsqueeze(5)", "x.squeeze(3)", "x.narrow(0, 1, 5)", "x.select(0, 2)", "x.split(-1)",
    "x.split([1, 2])", "x.chunk(0)",
    "x.sum().unbind()", "m.cat([])", "m.cat([x.sum(), x.sum()])", "m.cat([x, x[0]])", "m.cat([x, x[:, :, :2]], 1)",
    "m.cat(x)",
    "m.stack([x, x[0]])", "x.flip(0, 0)", "x.roll((1, 2), 0)", "m.rot90(x, 1, (0, 0))", "x.unfold(0, 5, 1)",
    "x.unfold(0, 1, 0)", "x.diagonal(0, 1, 1)",
    "x[0, 0].tril()", "x.as_strided((9,), (9,))", "x.unflatten(0, (3, 2))", "x.movedim((0,), (0, 1))",
    "x.flatten(2, 1)", "x.t()", "x[0, 0].mT",
    "x.repeat(2)", "x.repeat_interleave(-1)", "m.broadcast_shapes((2,), (3,))", "x.view(2.5)", "m.diag(x)",
    "x.trace()", "x[:, :, ::-1]",
    "m.hsplit(x, 2)", "m.meshgrid(x, x)", "m.combinations(x)", "m.block_diag(x)", "x.tensor_split(0)",
]


def value() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(2, 3, 5)).astype(np.float32)


def ours(device: str, requires_grad: bool = False):
    return zoo.from_numpy(value()).to(device).requires_grad_(requires_grad)


def run(text: str, module, x):
    return eval(text, {"m": module, "x": x})


@pytest.mark.parametrize("text", VIEWS)
def test_views_share_memory(text):
    """A write to the view is seen through its base, and its history by backward."""
    x = ours("cpu")
    y = run(text, zoo, x)
    assert np.shares_memory(y.numpy(), x.numpy())
    with zoo.no_grad():
        y[(0,) * y.ndim] = 77.0
    assert (x == 77.0).sum().item() == 1


@INTERPRET
@pytest.mark.parametrize("text", VIEWS)
def test_views_share_memory_on_the_device(text):
    x = ours("cuda")
    y = run(text, zoo, x)
    assert y.array.owner is x.array.owner
    with zoo.no_grad():
        y[(0,) * y.ndim] = 77.0
    want = ours("cpu")
    run(text, zoo, want)[(0,) * y.ndim] = 77.0
    np.testing.assert_array_equal(x.cpu().numpy(), want.numpy())


def compare_with_torch(text: str, device: str):
    """Value and gradient, for a fixed random cotangent."""
    torch = pytest.importorskip("torch")
    x, t = ours(device, True), torch.from_numpy(value()).requires_grad_()
    y, want = run(text, zoo, x), run(text, torch, t)
    np.testing.assert_array_equal(y.detach().cpu().numpy(), want.detach().numpy())
    dy = np.random.default_rng(4).normal(size=tuple(want.shape)).astype(np.float32)
    y.backward(zoo.from_numpy(dy).to(device))
    want.backward(torch.from_numpy(dy))
    np.testing.assert_allclose(x.grad.cpu().numpy(), t.grad.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize("text", VIEWS + COPIES)
def test_value_and_gradient_beside_torch(text):
    compare_with_torch(text, "cpu")


@pytest.mark.torch
@pytest.mark.parametrize(("pads", "mode"), PADS)
def test_pad_beside_torch(pads, mode):
    torch = pytest.importorskip("torch")
    x, t = ours("cpu", True), torch.from_numpy(value()).requires_grad_()
    shape = (2, 3, 5) if len(pads) == 2 else (1, 2, 3, 5)
    y = zoo.nn.functional.pad(x.reshape(shape), pads, mode)
    want = torch.nn.functional.pad(t.reshape(shape), pads, mode)
    np.testing.assert_array_equal(y.detach().numpy(), want.detach().numpy())
    (y * y).sum().backward()
    (want * want).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize("text", WRONG)
def test_wrong_calls_raise_what_torch_raises(text):
    """And always a ValueError or TypeError that names what it got."""
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as theirs:  # noqa: B017  (whatever torch raises)
        run(text, torch, torch.from_numpy(value()))
    with pytest.raises((ValueError, TypeError)) as mine:
        run(text, zoo, ours("cpu"))
    assert isinstance(mine.value, theirs.type), f"torch: {theirs.value!r}, zoo: {mine.value!r}"
    op, _, rest = str(mine.value).partition(": ")
    assert op.isidentifier() and len(rest) > 15


def test_view_strides_agree_with_numpy():
    """Of 3,000 random arrays and shapes: a view exactly where NumPy needs no copy, and the right one."""
    pytest.importorskip("triton")
    from zoo.ops.shape_gpu import _view_strides
    rng, views = random.Random(0), 0
    for _ in range(3000):
        shape = tuple(rng.choice([1, 1, 2, 3, 4]) for _ in range(rng.randint(1, 4)))
        big = np.arange(np.prod([2 * n for n in shape])).reshape([2 * n for n in shape])
        x = big[tuple(slice(0, 2 * n, 2) if rng.random() < 0.3 else slice(0, n) for n in shape)]
        x = x.transpose(rng.sample(range(len(shape)), len(shape)))
        factors = [p for n in x.shape for p in ([2, 2] if n == 4 else [n])]
        rng.shuffle(factors)
        cut = rng.randint(0, len(factors))
        new = (*factors[:cut], int(np.prod(factors[cut:])), 1)
        strides, y = _view_strides(x.shape, tuple(s // x.itemsize for s in x.strides), new), x.reshape(new)
        assert (strides is not None) == np.shares_memory(x, y)
        if strides is not None:
            views += 1
            again = np.lib.stride_tricks.as_strided(x, new, [s * x.itemsize for s in strides])
            np.testing.assert_array_equal(again, y)
    assert 500 < views < 2900


def test_split_sizes():
    x = zoo.arange(10)
    assert [len(p) for p in x.split(4)] == [4, 4, 2]
    assert [len(p) for p in x.chunk(4)] == [3, 3, 3, 1]
    assert [len(p) for p in x.tensor_split(4)] == [3, 3, 2, 2]
    assert [p.tolist() for p in x.tensor_split((2, 9))] == [[0, 1], [2, 3, 4, 5, 6, 7, 8], [9]]


def test_cat_promotes_and_keeps_halves():
    a, b = zoo.ones(2, dtype=zoo.bfloat16), zoo.arange(2)
    assert zoo.cat([a, b]).dtype == zoo.bfloat16
    assert zoo.cat([b, b > 0]).dtype == zoo.int64


def test_memory_formats():
    """Same values, other strides; a rank that has no channels raises as in torch."""
    x = zoo.arange(120).reshape(2, 3, 4, 5)
    y = x.to(memory_format=zoo.channels_last)
    assert y.stride() == (60, 1, 15, 3) and (y == x).all()
    assert y.contiguous().stride() == x.stride() and x.contiguous(memory_format=zoo.preserve_format) is x
    with pytest.raises(RuntimeError, match="rank 4"):
        x[0].contiguous(memory_format=zoo.channels_last)


@pytest.mark.parametrize("first, second, wanted", [
    (zoo.int64, zoo.int32, zoo.int32), (zoo.float64, zoo.float32, zoo.float32), (zoo.float32, zoo.int32, zoo.float32),
    (zoo.int64, zoo.float16, zoo.float16)])
def test_a_number_in_block_diag_does_not_decide_the_dtype(first, second, wanted):
    """As in torch: a tensor without dimensions counts less than a matrix."""
    assert zoo.block_diag(zoo.tensor(3, dtype=first), zoo.ones(2, 2, dtype=second)).dtype == wanted
