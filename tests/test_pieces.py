"""Large arrays in pieces: the values of small ones, whatever the layout, the dtype and the number of threads."""
import math

import numpy as np
import pytest

import zoo
from zoo.ops import compiled, fast_cpu, pieces
from zoo.ops.op import OPS
from zoo.ops.threads import get_num_threads, set_num_threads

SIZE = pieces.SHARED + 4321                 # more than the pool's least, and no multiple of anything
EXTREMES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 88.0, -88.0, 104.0, -104.0, 3e38, -3e38, 4.2])


@pytest.fixture(autouse=True)
def numpy_alone(monkeypatch):
    """Compiled functions take large arrays only, and round differently: tests/test_compiled_rows.py has theirs."""
    monkeypatch.setattr(compiled, "ENABLED", [False])


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


OTHERS = "exp", "mish", "isnan"
OPTIONS = {"elu": [(1.0,), (0.3,)], "softplus": [(1.0, 20.0), (1.0, 1.5), (0.7, 20.0)]}     # of rows that have any


@pytest.mark.parametrize("name", [*fast_cpu.INTO, *OTHERS])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_as_small(name, dtype, threads):
    base, _, by = name.partition(".")
    op = OPS[base].derivatives[by[1:]] if by else OPS[name]
    xs = [drawn(dtype, seed) for seed in range(len([p for p in op.parameters if p in ("dy", "x", "y")]))]
    for options in OPTIONS.get(base, [()]):
        def call(*xs, options=options):
            return op(*xs, *options)
        got = call(*xs)
        assert got.dtype == small(call, *xs).dtype
        np.testing.assert_array_equal(got, small(call, *xs))


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_large(name, threads):
    """Within five float32 roundings of float64's formula, and what a rounded exponent costs."""
    x = np.concatenate([drawn(), [20.0, 19.9, -20.0, 17.5]]).astype(np.float32)
    x, dy = x[np.isfinite(x)], np.float32(0.7)
    slope = OPS[name].derivatives["x"]
    for options in OPTIONS[name]:
        with np.errstate(over="ignore"):
            for got, want in ((OPS[name](x, *options), OPS[name](x.astype(np.float64), *options)),
                              (slope(np.full_like(x, dy), x, *options), slope(np.full(x.shape, dy, float),
                                                                              x.astype(np.float64), *options))):
                assert (np.abs(got - want) <= 6e-8 * (5 + np.abs(x)) * np.abs(want) + 1e-37).all()


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


def with_each_count(call) -> list:
    """The results of call() with one thread and with two."""
    before, results = get_num_threads(), []
    for count in (1, 2):
        set_num_threads(count)
        results.append(call())
    set_num_threads(before)
    return results


@pytest.mark.parametrize("kind", ["moderate", "wide", "masked", "special"])
@pytest.mark.parametrize("shape, dim", [((300, 1000), 1), ((300, 1000), 0), ((7, 60, 700), 1), ((290000,), 0)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_large(name, shape, dim, kind):
    x = np.random.default_rng(4).normal(size=shape).astype(np.float32)
    if kind == "wide":
        x *= 40
    elif kind == "masked":
        x.reshape(-1)[::3] = -np.inf
    elif kind == "special":
        x.reshape(-1)[[5, 100_001]] = np.inf, np.nan
    one, two = with_each_count(lambda: OPS[name](x, dim))
    np.testing.assert_array_equal(one, two)
    want = OPS[name](x.astype(np.float64), dim)
    rtol, atol = (3e-5, 1e-37) if name == "softmax" else (2e-6, 2e-6)       # x of 100 is rounded to 4e-6 before exp
    np.testing.assert_allclose(one, want, rtol=rtol, atol=atol)
    dy = np.random.default_rng(5).normal(size=shape).astype(np.float32)
    slope = OPS[name + "_grad"]
    one, two = with_each_count(lambda: slope(dy, want.astype(np.float32), dim))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(one, slope(dy.astype(np.float64), want, dim), rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("mean", [0.0, 1000.0])
@pytest.mark.parametrize("affine", [True, False])
def test_row_norms_of_large(mean, affine):
    rng = np.random.default_rng(6)
    x, dy = (rng.normal(m, 1, (40, 8, 1000)).astype(np.float32) for m in (mean, 0))
    for name, option, factor in (("layer_norm", (1000,), 1000), ("group_norm", 4, 8)):
        w = 1 + rng.random(factor, dtype=np.float32) if affine else None
        wide = None if w is None else w.astype(np.float64)
        op, slope = OPS[name], OPS[name + "_grad"]
        one, two = with_each_count(lambda op=op, o=option, w=w: op(x, o, w, None, 1e-5))
        np.testing.assert_array_equal(one, two)
        want = op(x.astype(np.float64), option, wide, None, 1e-5)
        np.testing.assert_allclose(one, want, rtol=1e-4, atol=5e-4 if mean else 1e-5)    # 1000 is known to 6e-5
        one, two = with_each_count(lambda s=slope, o=option, w=w: s(dy, x, o, w, 1e-5))
        want = slope(dy.astype(np.float64), x.astype(np.float64), option, wide, 1e-5)
        for a, b, c in zip(one, two, want, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=1e-3, atol=5e-4 * max(1, np.abs(c).max()) if mean else 5e-5)


@pytest.mark.parametrize("shape", [(300, 1000), (3, 100_003), (300_000,), (4000, 67)])
@pytest.mark.parametrize("value", [None, np.inf, np.nan, 3e38])
def test_running_sums(shape, value):
    """Within 2^-21 of the line's largest running sum: up to 32 additions in float32 in a block, each of them rounds by
    2^-24, and what is left of that at random adds up over the blocks. What is before an infinity stays finite."""
    x = np.random.default_rng(7).normal(size=shape).astype(np.float32)
    if value is not None:
        x.reshape(-1)[[len(x.reshape(-1)) // 2, len(x.reshape(-1)) // 2 + 1]] = value
    for op in (OPS["cumsum"], OPS["reverse_cumsum"]):
        one, two = with_each_count(lambda op=op: op(x, -1))
        np.testing.assert_array_equal(one, two)
        with np.errstate(over="ignore"):
            want = op(x.astype(np.float64), -1).astype(np.float32)
        largest = np.nanmax(np.abs(want), initial=1, where=np.isfinite(want) & (np.abs(want) < 1e30))
        np.testing.assert_allclose(one, want, rtol=1e-6, atol=2.0 ** -21 * largest)


@pytest.mark.parametrize("dim", [None, 0, 1])
def test_large_products(dim):
    x = np.random.default_rng(8).uniform(0.98, 1.02, (130, 1001)).astype(np.float32)
    np.testing.assert_allclose(OPS["prod"](x, dim), np.prod(x.astype(np.float64), axis=dim), rtol=1e-3)
    x[3, 700], x[5, 1000] = 0, np.nan
    np.testing.assert_array_equal(OPS["prod"](x, 1)[[3, 5]], [0, np.nan])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_draws_are_the_same_with_any_number_of_threads(dtype):
    from zoo.ops import random
    from zoo.ops.device import device
    for draw in (random.uniform, random.normal):
        one, two = with_each_count(lambda draw=draw: draw((SIZE,), np.dtype(dtype), device("cpu"), 11, 4))
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one[:999], draw((999,), np.dtype(dtype), device("cpu"), 11, 4))


def test_optimizer_steps_are_the_same_with_any_number_of_threads():
    def step():
        rng = np.random.default_rng(9)
        p = zoo.nn.Parameter(zoo.tensor(rng.standard_normal(SIZE, dtype=np.float32)))
        p.grad = zoo.tensor(rng.standard_normal(SIZE, dtype=np.float32))
        optimizer = zoo.optim.Adam([p], lr=0.1)
        optimizer.step()
        optimizer.step()
        return p.detach().numpy()
    one, two = with_each_count(step)
    np.testing.assert_array_equal(one, two)
    assert np.abs(one - np.random.default_rng(9).standard_normal(SIZE, dtype=np.float32)).max() > 0.1
