"""The compiled functions beside what they stand for: NumPy's own paths, in float64 where sums are long."""
import subprocess
import sys

import numpy as np
import pytest

import zoo
from tests.house import ROOT
from zoo.ops import compiled as loader
from zoo.ops import conv, pool_cpu, rnn_cpu, threads
from zoo.ops import conv_cpu_winograd as tiles_of_numpy
from zoo.ops.norm_cpu import layout
from zoo.ops.optim_rules import RULES
from zoo.ops.pool import geometry_of

pytest.importorskip("numba", reason="the extra [numba]")
from zoo.ops.compiled import elementwise, norm, optim, pool, recurrent, winograd  # noqa: E402

rng = np.random.default_rng(5)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3.0], np.float32)


def normal(*shape):
    return rng.standard_normal(shape, dtype=np.float32)


def near(a, b, tolerance=1e-6):
    """Within some roundings of the largest."""
    assert a.shape == b.shape and np.abs(a - b).max() <= tolerance * max(1, np.abs(b).max())


# -- elementwise

@pytest.mark.parametrize("size", [1, 16, 37, 4096])
def test_relu(size):
    x, dy = np.resize(np.concatenate([SPECIAL, normal(9)]), size), np.resize(np.concatenate([normal(7), SPECIAL]), size)
    y, d = np.empty_like(x), np.empty_like(x)
    elementwise.relu(y, x)
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    elementwise.relu_dx(d, dy, x)
    np.testing.assert_array_equal(d, np.where(x <= 0, np.float32(0), dy))


def test_tanh_of_the_recurrent_kernels():
    """Within 6 units in the last place, odd, never beyond 1; NaN stays NaN. NumPy's own tanh is within 2."""
    x = np.concatenate([np.linspace(-11, 11, 200_000), np.geomspace(1e-38, 1, 100_000), [0.0, -0.0, np.inf]])
    x = x.astype(np.float32)
    y = np.empty_like(x)
    recurrent.tanh_of(y, x)
    true = np.tanh(x.astype(np.float64))
    assert (np.abs(y - true) / np.spacing(np.abs(true).astype(np.float32))).max() < 6
    assert np.abs(y).max() <= 1 and np.signbit(y[-2]) and not np.signbit(y[-3])
    recurrent.tanh_of(y[:1], np.array([np.nan], np.float32))
    assert np.isnan(y[0])


# -- batch norm

@pytest.mark.parametrize("shape", [(7, 3), (1000, 16), (3001, 37), (5, 200)])
def test_norm(shape, count):
    x, dy, residual = normal(*shape) * 3 + 5, normal(*shape), normal(*shape)
    x64, a, b, c = x.astype(np.float64), *normal(3, shape[1]).astype(np.float64)
    view = layout((*shape, 1))
    mean, var = norm.moments_of(x, view)
    near(mean, x64.mean(0))
    near(var, x64.var(0))
    y = np.maximum(x64 * a + b + residual, 0)
    near(norm.scaled(x, view, a, b, residual=residual, relu=True), y)
    near(norm.scaled(x, view, a, b, mean), (x64 - mean) * a + b)
    near(norm.combined(dy, x, view, a, b, c, mean), a * dy + b * (x64 - mean) + c)
    for behind in (None, residual):
        masked = dy if behind is None else np.where(behind <= 0, 0, dy)
        g, plain, weighted = norm.backward_sums(dy, x, view, mean, behind)
        np.testing.assert_array_equal(g, masked)
        near(plain, masked.sum(0, dtype=np.float64))
        near(weighted, (masked * (x64 - mean)).sum(0))


def test_moments_far_from_zero():
    """|mean| is 10^4 standard deviations: two passes keep the digits of the variance."""
    x = normal(5000, 5) + np.float32(1e4)
    near(norm.moments_of(x, layout((5000, 5, 1)))[1], x.astype(np.float64).var(0), 1e-5)


def test_threads_do_not_change_bits():
    x, dy, view = normal(20_011, 37), normal(20_011, 37), layout((20_011, 37, 1))
    found = []
    before = threads.get_num_threads()
    for n in (1, 2, 3):
        threads.set_num_threads(n)
        mean, var = norm.moments_of(x, view)
        found.append((mean, var, *norm.backward_sums(dy, x, view, mean), *walked(normal_like=7)))
    threads.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


# -- Winograd's transforms

@pytest.mark.parametrize("shape", [(2, 12, 8, 16), (1, 13, 18, 40), (3, 4, 5, 24), (1, 1, 1, 3)])
@pytest.mark.parametrize("padding", [(0, 0), (1, 1), (2, 0)])
def test_winograd(shape, padding):
    n, h, w, c = shape
    x = normal(n, h + 3, w + 2, c)[:, 1:h + 1, 1:w + 1]                      # strides with gaps
    rows, columns = -(-h // 4), -(-w // 4)
    around = np.pad(x, ((0, 0), (padding[0], 8), (padding[1], 8), (0, 0)))
    read = np.stack([around[:, i:i + 4 * rows:4, j:j + 4 * columns:4] for i in range(6) for j in range(6)])
    out = np.empty((36, n * rows * columns, c), np.float32)
    winograd.tiles(x, *padding, rows, columns, out)
    near(out, (tiles_of_numpy.BB @ read.reshape(36, -1)).reshape(out.shape))

    bias, residual, y = normal(c), normal(*shape), np.full(shape, np.nan, np.float32)
    whole = (tiles_of_numpy.AA @ out.reshape(36, -1)).reshape(4, 4, n, rows, columns, c)
    whole = whole.transpose(2, 3, 0, 4, 1, 5).reshape(n, 4 * rows, 4 * columns, c)[:, :h, :w] + bias
    winograd.results(out, bias, y, False, False, rows, columns, y)
    near(y, whole)
    winograd.results(out, bias, residual, True, True, rows, columns, y)
    near(y, np.maximum(whole + residual, 0))

    winograd.spread(x, rows, columns, out)
    dy = np.pad(x, ((0, 0), (0, 4 * rows - h), (0, 4 * columns - w), (0, 0)))
    read = dy.reshape(n, rows, 4, columns, 4, c).transpose(2, 4, 0, 1, 3, 5).reshape(16, -1)
    near(out, (tiles_of_numpy.AA.T @ read).reshape(out.shape))


# -- depthwise convolution

@pytest.mark.parametrize("channels, size, kernel, stride, dilation", [
    (16, 30, 3, 1, 1), (37, 21, 3, 2, 1), (5, 45, 5, 1, 2), (64, 13, 1, 3, 1)])
def test_depthwise(monkeypatch, count, channels, size, kernel, stride, dilation):
    x, w = normal(3, channels, size, size + 3), normal(channels, 1, kernel, kernel)
    how = (stride, stride), (kernel - 1, kernel // 2), (dilation, dilation), channels
    dy = normal(*conv.conv2d(x, w, None, *how).shape)
    assert dy.size >= loader.SMALL or stride == 3

    def results():
        return (conv.conv2d(x, w, None, *how), conv.conv2d_weight_grad(dy, x, w.shape[2:], *how),
                conv.conv2d_input_grad(dy, w, x.shape[2:], *how))
    fast = results()
    monkeypatch.setattr(loader, "ENABLED", [False])
    for a, b in zip(fast, results(), strict=True):
        near(a, b, 2e-6)


# -- max pooling

@pytest.mark.parametrize("how", [(3, 2, 1, 1), ((2, 3), 1, (1, 0), (2, 1)), (2, 2, 0, 1)])
@pytest.mark.parametrize("extremes", [False, True])
def test_max_pool(how, extremes):
    x = normal(2, 11, 13, 19)
    if extremes:
        x[rng.random(x.shape) < 0.3], x[0, :6], x[rng.random(x.shape) < 0.05] = 2, -np.inf, np.nan
    x = x.transpose(0, 3, 1, 2)
    how = [(v, v) if isinstance(v, int) else v for v in how]
    geometry = geometry_of("max_pool", x.shape[2:], *how, ceil_mode=True)
    y, taps = pool.max_pool(x, geometry)
    for a, b in zip((y, taps), pool_cpu.max_pool_by_taps(x, geometry), strict=True):
        np.testing.assert_array_equal(a, b)
    dy = normal(2, *y.shape[2:], 19).transpose(0, 3, 1, 2)
    near(pool.max_pool_grad(dy, taps, geometry), pool_cpu.max_pool_grad_by_taps(dy, taps, geometry))


# -- Adam

@pytest.mark.parametrize("amsgrad", [False, True])
def test_adam(amsgrad):
    p, g, m = normal(3, 7, 131)
    v, top = np.abs(normal(2, 7, 131))
    n = [np.float32(x) for x in (1e-2, 0.999, 0.1, 0.001, 1e-3)]
    state = (m, v, top) if amsgrad else (m, v)
    p64, g64, *state64 = (a.astype(np.float64) for a in (p, g, *state))
    wanted, new = RULES["adam"](p64, g64, state64, n, [amsgrad])
    optim.adam_step(p, g, state, n, (amsgrad,))
    for a, b in zip((p, *state), (wanted, *new), strict=True):
        near(a, b)


# -- recurrent

def walked(size=37, batch=21, steps=6, normal_like=3):
    """Outputs and states of an LSTM over a batch whose sequences end one after the other."""
    rng = np.random.default_rng(normal_like)
    counts = [batch - 3 * t for t in range(steps)]
    ends = np.cumsum(counts)
    spans = [slice(e - n, e) for e, n in zip(ends.tolist(), counts, strict=True)]
    gates, u, h, c = (rng.standard_normal(s, dtype=np.float32)
                      for s in ((ends[-1], 4 * size), (size, 4 * size), (batch, size), (batch, size)))
    kept, y = np.empty((ends[-1], 2 * size), np.float32), np.empty((ends[-1], size), np.float32)
    recurrent.walk(recurrent.lstm_walk, (gates, recurrent.packed(u), h, c, kept, y), spans, batch)
    return y, h, c, gates, kept


@pytest.mark.parametrize("shape", [(1, 3, 5), (7, 40, 70), (8, 16, 64), (21, 37, 33)])
def test_product_of_panels(shape):
    n, k, m = shape
    a, w = normal(n, k), normal(k, m)
    out = np.empty((n, m), np.float32)
    recurrent.multiply(a, recurrent.packed(w), out)
    near(out, a.astype(np.float64) @ w)


@pytest.mark.parametrize("descending", [False, True])
def test_recurrent_layers(descending, count, monkeypatch):
    """Forward and backward beside NumPy's walk over sequences of different lengths, in either direction."""
    size, width, counts = 37, 29, [21, 21, 18, 9, 3]
    ends = np.cumsum(counts).tolist()
    spans = [slice(e - n, e) for e, n in zip(ends, counts, strict=True)][::-1 if descending else 1]
    rows, batch = ends[-1], counts[0]
    for gates, forward, backward in ((4, "lstm_forward", "lstm_backward"), (3, "gru_forward", "gru_backward")):
        x, weights = normal(rows, width), (normal(gates * size, width) / 6, normal(gates * size, size) / 6)
        states = [normal(batch, size) for _ in range(gates - 2)]
        biases = (normal(gates * size), None) if gates == 4 else (normal(gates * size), normal(gates * size))
        found = []
        for module in (rnn_cpu, recurrent):
            monkeypatch.setattr(loader, "ENABLED", [False])
            rest = biases if gates == 3 or module is rnn_cpu else biases[:1]
            out = getattr(module, forward)(x, *states, *weights, *rest, spans)
            dy, dstates = np.cos(out[0]), [np.sin(h) for h in out[1:gates - 1]]
            rest = (None,) if gates == 4 and module is rnn_cpu else ()
            before = (np.roll(out[0], 1, 0),) if gates == 3 else ()
            saved = out[gates - 1:]
            found.append([*out, *getattr(module, backward)(dy, *dstates, weights[1], *rest, *saved, *before, spans)])
        for a, b in zip(*found, strict=True):
            assert (a is None and b is None) or near(a, b, 3e-6) is None


# -- on and off

def test_a_network_with_and_without(monkeypatch):
    """Every hook at once: loss and gradients of a convolutional network agree, and repeat bit for bit."""
    zoo.manual_seed(0)
    model = zoo.nn.Sequential(
        zoo.nn.Conv2d(3, 16, 3, padding=1), zoo.nn.BatchNorm2d(16), zoo.nn.ReLU(), zoo.nn.MaxPool2d(3, 2, 1),
        zoo.nn.Conv2d(16, 32, 3, padding=1), zoo.nn.BatchNorm2d(32), zoo.nn.ReLU(), zoo.nn.AdaptiveAvgPool2d(1),
        zoo.nn.Flatten(), zoo.nn.Linear(32, 4))
    x = zoo.randn(8, 3, 40, 40)

    def results(on):
        monkeypatch.setattr(loader, "ENABLED", [on])
        model.zero_grad()
        y = model(x)
        (y * y).mean().backward()
        return [y.detach().numpy(), *(p.grad.numpy().copy() for p in model.parameters())]

    first, again, plain = results(True), results(True), results(False)
    for a, b, c in zip(first, again, plain, strict=True):
        np.testing.assert_array_equal(a, b)
        near(a, c, 3e-5)                                     # Winograd's digit, and sums over 12,800 places


# -- the loader

def child(code: str, **env) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False, env=env)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_zoo_and_small_arrays_do_not_import_numba():
    out = child("import sys, zoo; zoo.ones(8, 8).relu(); print('numba' in sys.modules)", PYTHONPATH=str(ROOT))
    assert out.strip() == "False"


def test_when_a_compiled_function_is_taken(monkeypatch):
    x = np.zeros(loader.SMALL, np.float32)
    assert loader.compiled("norm", x) is norm
    assert loader.compiled("norm", x[1:]) is None
    assert loader.compiled("norm", x, x.astype(np.float64)) is None
    assert loader.compiled("norm", np.zeros(4 * x.size + 1, np.uint8)[1:].view(np.float32)) is None
    monkeypatch.setattr(loader, "ENABLED", [False])
    assert loader.compiled("norm", x) is None


def test_without_numba(monkeypatch):
    monkeypatch.setattr(loader.importlib.util, "find_spec", lambda name: None)
    assert loader.module.__wrapped__("norm") is None


def test_a_numba_that_does_not_load(monkeypatch):
    def fails(name):
        raise ImportError("Numba needs NumPy 2.3 or less")
    monkeypatch.setattr(loader.importlib, "import_module", fails)
    with pytest.warns(RuntimeWarning, match="needs NumPy 2.3"):
        assert loader.module.__wrapped__("norm") is None


READ_ONLY = """
import numba.core.caching as caching
def nowhere(*_): return None
for locator in caching.CacheImpl._locator_classes: locator.from_function = nowhere
import numpy as np
from zoo.ops.compiled import elementwise
x = np.array([-1.0, 2.0], np.float32)
elementwise.relu(x, x)
print(x)
"""


def test_where_no_folder_can_be_written():
    """It compiles for this process alone."""
    assert child(READ_ONLY, PYTHONPATH=str(ROOT)).strip() == "[0. 2.]"
