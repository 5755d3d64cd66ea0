"""Large arrays in pieces: the values of small ones, whatever the layout, the dtype and the number of threads."""
import math

import numpy as np
import pytest

import zoo
from zoo.ops import fast_cpu, pieces
from zoo.ops.op import OPS
from zoo.ops.threads import get_num_threads, set_num_threads

SIZE = pieces.SHARED + 4321                 # more than the pool's least, and no multiple of anything
EXTREMES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 88.0, -88.0, 104.0, -104.0, 3e38, -3e38, 4.2])


@pytest.fixture(params=[1, 2])
def threads(request):
    before = get_num_threads()
    set_num_threads(request.param)
    yield request.param
    set_num_threads(before)


def drawn(dtype=np.float32, seed=0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(0, 3, SIZE)
    x[7::9001] = np.resize(EXTREMES, len(x[7::9001]))
    return x.astype(dtype)


def small(op, *xs) -> np.ndarray:
    """The same, too few elements at a time for pieces."""
    step = 1000
    return np.concatenate([op(*(x[i:i + step] for x in xs)) for i in range(0, SIZE, step)])


OTHERS = "exp", "softplus", "mish", "gelu_tanh", "gelu_tanh.dx", "isnan", "elu"


@pytest.mark.parametrize("name", [*fast_cpu.INTO, *OTHERS])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_as_small(name, dtype, threads):
    base, _, by = name.partition(".")
    op = OPS[base].derivatives[by[1:]] if by else OPS[name]
    xs = [drawn(dtype, seed) for seed in range(len([p for p in op.parameters if p in ("dy", "x", "y")]))]
    got = op(*xs)
    assert got.dtype == small(op, *xs).dtype
    np.testing.assert_array_equal(got, small(op, *xs))


@pytest.mark.parametrize("layout", ["transposed", "expanded", "strided", "reversed", "mixed"])
def test_layouts(layout, threads):
    x = drawn()[:pieces.SHARED].reshape(512, 512).copy()
    dy = np.random.default_rng(1).normal(size=x.shape).astype(np.float32)
    a, g = {"transposed": (x.T, dy.T), "expanded": (x, np.broadcast_to(np.float32(2), x.shape)),
            "strided": (np.repeat(x, 2, 1)[:, ::2], dy), "reversed": (x[::-1], dy[::-1]), "mixed": (x.T, dy)}[layout]
    assert a.size > pieces.WHOLE
    for name in ("gelu", "silu", "relu", "softplus"):
        op = OPS[name]
        np.testing.assert_array_equal(op(a), np.stack([op(np.ascontiguousarray(row)) for row in a]))
        slope = op.derivatives["x"]
        value = op(a) if "y" in slope.parameters else a
        rest = (1.0, 20.0) if name == "softplus" else ()
        rows = [slope(np.ascontiguousarray(r), np.ascontiguousarray(v), *rest) for r, v in zip(g, value, strict=True)]
        np.testing.assert_array_equal(slope(g, value, *rest), np.stack(rows))


def test_layout_is_kept():
    x = drawn()[:pieces.SHARED].reshape(4, 256, 16, 16)
    images = x.transpose(0, 3, 1, 2)
    assert OPS["gelu"](images).strides == images.strides


def test_erf_error():
    """Within 1.8e-7 of math.erf in absolute, and 3e-7 in relative terms: two and a half float32 roundings."""
    x = np.concatenate([np.linspace(-6, 6, 20001), np.geomspace(1e-30, 1, 2000)]).astype(np.float32)
    want = np.array([math.erf(v) for v in x.tolist()])
    got = OPS["erf"](x).astype(np.float64)
    assert np.abs(got - want).max() < 1.8e-7
    assert (np.abs(got - want) <= 3e-7 * np.abs(want)).all()
    far = np.array([np.inf, -np.inf, 1e30, -1e30, 7, 5], np.float32)
    np.testing.assert_array_equal(OPS["erf"](far), [1, -1, 1, -1, 1, 1])


def test_gradients_of_large_inputs(threads):
    """Through the engine: what a training step calls."""
    x = np.random.default_rng(3).normal(size=(600, 500)).astype(np.float32)
    for name in ("gelu", "silu", "relu", "sigmoid"):
        f = getattr(zoo, name, None) or getattr(zoo.nn.functional, name)
        whole, wide = zoo.tensor(x, requires_grad=True), zoo.tensor(x.astype(np.float64), requires_grad=True)
        f(whole).sum().backward()
        f(wide).sum().backward()
        np.testing.assert_allclose(whole.grad.numpy(), wide.grad.numpy(), rtol=2e-5, atol=1e-6)
