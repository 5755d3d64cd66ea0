"""Compiled activations, functions of rows and random words beside NumPy in float64; and both roads give one answer."""
import numpy as np
import pytest

import zoo
from zoo.ops import compiled as loader
from zoo.ops import random, reduce_cpu, scan_cpu
from zoo.ops.binding import NUMPY, bind
from zoo.ops.op import OPS
from zoo.ops.threads import get_num_threads, set_num_threads

pytest.importorskip("numba", reason="the extra [numba]")
from zoo.ops.compiled import activation, philox, rows  # noqa: E402

rng = np.random.default_rng(7)
SIZES = [(3, 16), (5, 31), (4, 33), (7, 64), (9, 1000)]      # whole vectors, one more, one less; odd numbers of rows
FORMULAS = {name: OPS[name].formula for name in ("sigmoid", "silu", "gelu", "gelu_tanh")}
FORMULAS |= {f"{name}_dx": OPS[name].derivatives["x"].formula for name in (*FORMULAS, "tanh")}


def normal(*shape):
    return rng.standard_normal(shape, dtype=np.float32)


def close(a, b, tolerance):
    assert a.shape == b.shape and np.abs(a - b).max(initial=0) <= tolerance * max(1, np.abs(b).max(initial=0))


# -- activations

@pytest.mark.parametrize("name", FORMULAS)
def test_activation(name):
    """Within 2e-6 of the formula in float64: the derivatives of gelu end in a difference of numbers near 1."""
    formula = bind(FORMULAS[name], NUMPY)
    x = np.concatenate([np.linspace(-30, 30, 5001), [0.0, -0.0, 1e-30]]).astype(np.float32)
    xs = (np.cos(x), x) if name.endswith("_dx") else (x,)
    y = np.empty_like(x)
    getattr(activation, name)(y, *xs)
    close(y, formula(*(v.astype(np.float64) for v in xs)), 2e-6)


@pytest.mark.parametrize("name", [n for n in FORMULAS if not n.endswith("_dx")])
def test_activation_of_extremes(name):
    x = np.resize(np.array([np.inf, -np.inf, np.nan, 89.0, -89.0, 1e30, -1e30, 0.0], np.float32), 16)
    y = np.empty_like(x)
    getattr(activation, name)(y, x)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(y, bind(FORMULAS[name], NUMPY)(x), atol=1e-36)


def test_small_sigmoids_keep_their_digits():
    x = np.linspace(-80, 0, 4001).astype(np.float32)
    y = np.empty_like(x)
    activation.sigmoid(y, x)
    np.testing.assert_allclose(y, 1 / (1 + np.exp(-x.astype(np.float64))), rtol=2.5e-7)


# -- rows

@pytest.mark.parametrize("shape", SIZES)
def test_softmax(shape):
    x, dy = 3 * normal(*shape), normal(*shape)
    out, wide = np.empty_like(x), x.astype(np.float64)
    top, rest = np.empty((2, shape[0]), np.float32)
    lse = np.log(np.exp(wide).sum(1))
    p = np.exp(wide - lse[:, None])
    rows.softmax(out, x)
    np.testing.assert_allclose(out, p, rtol=3e-6)
    rows.log_softmax(out, x)
    close(out, np.log(p), 1e-6)
    rows.top_and_rest(top, rest, x)
    close(top + rest, lse, 1e-6)
    rows.softmax_grad(out, dy, p.astype(np.float32))
    close(out, p * (dy - (dy * p).sum(1, keepdims=True)), 1e-6)
    rows.log_softmax_grad(out, dy, np.log(p).astype(np.float32))
    close(out, dy - p * dy.sum(1, keepdims=True, dtype=np.float64), 3e-6)
    rows.scaled_softmax(out, x, lse.astype(np.float32), np.broadcast_to(np.float32(0.5), shape[:1]))
    close(out, 0.5 * p, 1e-6)


def test_softmax_of_extremes():
    """-inf is 0 exactly, a NaN or inf makes its row NaN, and other rows do not notice."""
    x = normal(6, 40)
    x[0, :39], x[1, 5], x[2, 39], x[3], x[4, 0] = -np.inf, np.nan, np.inf, -np.inf, 1e30
    y = np.empty_like(x)
    rows.softmax(y, x)
    np.testing.assert_array_equal(y[0], np.eye(40)[39])
    assert np.isnan(y[1:4]).all() and y[4, 0] == 1 and np.isfinite(y[4:]).all()


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("mean", [0, 1000])
def test_layer_norm(shape, mean):
    """A mean far from 0 costs the digits that the input lost already: its rounding is the tolerance."""
    x, dy, weight, bias = normal(*shape) + np.float32(mean), normal(*shape), normal(shape[1]), normal(shape[1])
    wide = x.astype(np.float64)
    rstd = 1 / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    h, g = (wide - wide.mean(1, keepdims=True)) * rstd, dy.astype(np.float64) * weight
    y, dx, dweight, dbias = np.empty_like(x), np.empty_like(x), *np.empty((2, shape[1]), np.float32)
    rows.layer_norm(y, x, weight, bias, 1e-5)
    close(y, h * weight + bias, 3e-6)
    rows.layer_norm_grad(dx, dweight, dbias, dy, x, weight, 1e-5)
    close(dx, rstd * (g - g.mean(1, keepdims=True) - h * (g * h).mean(1, keepdims=True)), 1e-5)
    close(dweight, (dy * h).sum(0), 3e-6)
    close(dbias, dy.sum(0), 3e-6)


@pytest.mark.parametrize("columns", [32, 33, 63, 1000])
def test_prod(columns):
    x = 1 + np.float32(0.1) * normal(5, columns)
    y = np.empty(5, np.float32)
    rows.prod(y, x)
    np.testing.assert_allclose(y, np.multiply.reduce(x, axis=1, dtype=np.float64), rtol=3e-6)


# -- both roads

@pytest.fixture(params=[False, True], ids=["numpy", "numba"])
def road(request, monkeypatch):
    monkeypatch.setattr(loader, "ENABLED", [request.param])


@pytest.mark.parametrize("shape", [(130, 1000), (130, 67), (3, 5003)])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(shape, reverse, road):
    x = normal(*shape)
    flip = np.s_[:, ::-1] if reverse else np.s_[:]
    expected = np.add.accumulate(x[flip], axis=1, dtype=np.float64)[flip]
    close(scan_cpu.running_sums(x, reverse), expected, 1e-6)
    x[1, 60], x[2, 3] = np.inf, np.nan
    expected = np.add.accumulate(x[flip], axis=1, dtype=np.float64)[flip]
    y = scan_cpu.running_sums(x, reverse)
    np.testing.assert_array_equal(np.isfinite(y), np.isfinite(expected))


@pytest.mark.parametrize("shape", [(130, 1000), (130, 67), (3, 5003)])
def test_running_products(shape, road):
    x = 1 + np.float32(0.1) * normal(*shape)
    x[0, 50], x[1, 9], x[2, 30:] = 0, np.inf, 1e30
    with np.errstate(over="ignore"):
        expected = np.multiply.accumulate(x, axis=1, dtype=np.float64).astype(np.float32)
    np.testing.assert_allclose(scan_cpu.running_products(x), expected, rtol=2e-7)


@pytest.mark.parametrize("greatest", [True, False])
def test_extreme_by_its_place(greatest):
    x = normal(3, 50, 70)
    x[0, 1, 5], x[1, 2], x[2, 3, 6] = np.nan, np.inf, -np.inf
    found = reduce_cpu.extreme(greatest, x, (2,), True)
    np.testing.assert_array_equal(found, (np.max if greatest else np.min)(x, axis=2, keepdims=True))


@pytest.mark.parametrize("columns", [16, 33, 500])
def test_sums_by_number(columns, monkeypatch):
    """Bit for bit NumPy's: one after the other, in the order of the numbers."""
    x, v, places = normal(600, columns), normal(100, columns), rng.integers(0, 9, 100)
    made = []
    for on in (False, True):
        monkeypatch.setattr(loader, "ENABLED", [on])
        made.append(OPS["index_put"](x, v, (0,), True, places))
    np.testing.assert_array_equal(*made)


def test_words(monkeypatch):
    """The same bits on both roads, whatever the border of a piece."""
    seed, offset = (1 << 40) + 12345, (1 << 33) + 7
    made = []
    for on in (False, True):
        monkeypatch.setattr(loader, "ENABLED", [on])
        made.append([random.words(n, seed, offset) for n in (1, 8191, 70001)])
    for plain, fast in zip(*made, strict=True):
        np.testing.assert_array_equal(plain, fast)
    out = np.empty(8, np.uint32)
    philox.philox(out, (1 << 32) - 1, offset, random.round_keys(seed).reshape(-1))     # a carry to the second word
    expected = random.philox(seed, offset, np.arange((1 << 32) - 1, (1 << 32) + 1, dtype=np.uint64))
    np.testing.assert_array_equal(out, expected.reshape(-1))


CASES = {
    "gelu": zoo.nn.functional.gelu, "sigmoid": zoo.sigmoid, "softmax": lambda x: zoo.softmax(x, 1),
    "log_softmax": lambda x: zoo.log_softmax(x, 1), "cumprod": lambda x: (1 + x / 100).cumprod(1),
    "layer_norm": lambda x: zoo.nn.functional.layer_norm(x, x.shape[1:]),
    "cross_entropy": lambda x: zoo.nn.functional.cross_entropy(x, zoo.arange(x.shape[0]) % x.shape[1]),
}


@pytest.mark.parametrize("name", CASES)
def test_roads_and_threads(name, monkeypatch):
    """With and without Numba within some roundings; with one thread and two bit for bit."""
    data, threads = normal(700, 500), get_num_threads()
    results = []
    try:
        for on, count in ((True, 1), (True, 2), (False, 1), (False, 2)):
            monkeypatch.setattr(loader, "ENABLED", [on])
            set_num_threads(count)
            x = zoo.tensor(data, requires_grad=True)
            y = CASES[name](x)
            y.backward(zoo.cos(y.detach()))
            results.append([y.detach().numpy(), x.grad.numpy()])
    finally:
        set_num_threads(threads)
    for one, two in (results[:2], results[2:]):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)
    for a, b in zip(results[0], results[2], strict=True):
        close(a, b, 5e-6)
