"""Every quick way of the CPU against the plain one: convolutions, pools and fused layers, threads, switches."""
import os
import threading

import numpy as np
import pytest

import zoo
import zoo.nn as nn
from zoo.models.resnet import resnet18, resnet50
from zoo.models.vgg import VGG11, make_layers
from zoo.nn import fusion
from zoo.nn.fusion import FOLDED, conv_norm_act
from zoo.ops import conv, conv_cpu, conv_cpu_panels, threads
from zoo.ops.errors import ShapeError
from zoo.ops.matmul import linear
from zoo.ops.norm import batch_norm_train
from zoo.ops.pool import adaptive_avg_pool

# (N, C, H, W, K, kernel, stride, padding, dilation, groups): every row of conv_cpu.choice, sizes that leave rests
CASES = {
    "tiles": (3, 40, 13, 18, 48, 3, 1, (1, 1), 1, 1),
    "tiles, few": (1, 40, 14, 14, 48, 3, 1, (1, 1), 1, 1),
    "tiles, no padding": (2, 48, 22, 23, 40, 3, 1, (0, 0), 1, 1),
    "tiles, uneven padding": (1, 40, 30, 31, 40, 3, 1, (0, 1, 2, 3), 1, 1),
    "tiles, rows of one image": (1, 40, 70, 66, 40, 3, 1, (2, 1), 1, 1),
    "rows": (2, 5, 19, 17, 7, 3, 1, (1, 1), 1, 1),
    "rows, weight's gradient by tiles": (1, 24, 14, 14, 32, 3, 1, (1, 1), 1, 1),
    "rows, dilated": (2, 24, 19, 17, 24, 3, 1, (2, 2), 2, 1),
    "columns": (3, 6, 40, 37, 16, 7, 2, (3, 3), 1, 1),
    "columns, few places": (1, 40, 9, 9, 130, 3, 2, (1, 1), 1, 1),
    "columns, groups": (2, 24, 17, 15, 48, 3, 1, (1, 1), 1, 3),
    "planes": (2, 3, 35, 38, 16, 7, 2, (3, 3), 1, 1),
    "planes, stride 1": (3, 2, 18, 40, 5, 3, 1, (1, 0), 1, 1),
    "planes, even kernel": (1, 1, 40, 33, 64, 4, 2, (0, 1, 2, 0), 1, 1),
    "columns, deep": (1, 130, 14, 15, 128, 3, 2, (1, 1), 1, 1),
    "columns, many rows": (2, 112, 30, 30, 64, 3, 2, (1, 1), 1, 1),
    "pointwise": (2, 24, 31, 30, 40, 1, 1, (0, 0), 1, 1),
    "pointwise, strided": (2, 24, 31, 30, 40, 1, 2, (0, 0), 1, 1),
    "pointwise, few places": (1, 64, 7, 7, 96, 1, 1, (0, 0), 1, 1),
    "pointwise, deep": (2, 1100, 12, 11, 128, 1, 1, (0, 0), 1, 1),
    "depthwise": (2, 24, 40, 41, 24, 3, 2, (1, 1), 1, 24),
    "depthwise, stride 1": (2, 20, 23, 22, 20, 3, 1, (1, 1), 1, 20),
    "depthwise, dilated": (1, 40, 30, 27, 40, 5, 1, (3, 2), 2, 40),
    "depthwise, no padding": (3, 16, 20, 21, 16, 4, 1, (0, 0), 1, 16),
}
ALGORITHM = {"tiles": conv_cpu.TILES, "rows": conv_cpu.ROWS, "columns": conv_cpu.COLUMNS, "planes": conv_cpu.PLANES,
             "pointwise": conv_cpu.POINTWISE, "depthwise": conv_cpu.DEPTHWISE}
TOLERANCE = {"float64": 1e-12, "float32": 3e-6}     # of the largest result
TILED = 3e-5                                        # Winograd loses a digit, see conv_cpu_winograd.py


def close(a, b, tolerance):
    assert a.shape == b.shape
    assert np.abs(a - b).max() <= tolerance * np.abs(b).max()


def by_definition(x, w, stride, padding, dilation, groups):
    """The sum over taps, in float64, on zeros around x."""
    top, left, bottom, right = padding if len(padding) == 4 else padding * 2
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    (n, _, h, wide), (k, cg, r, s) = x.shape, w.shape
    p, q = ((size - dilation * (t - 1) - 1) // stride + 1 for size, t in ((h, r), (wide, s)))
    x, w = x.reshape(n, groups, cg, h, wide), w.astype(np.float64).reshape(groups, k // groups, cg, r, s)
    y = np.zeros((n, groups, k // groups, p, q))
    for i in range(r):
        for j in range(s):
            rows = slice(i * dilation, i * dilation + (p - 1) * stride + 1, stride)
            columns = slice(j * dilation, j * dilation + (q - 1) * stride + 1, stride)
            y += np.einsum("ngchw,gkc->ngkhw", x[..., rows, columns], w[..., i, j])
    return y.reshape(n, k, p, q)


def drawn(name, rng, dtype):
    n, c, h, w, k, r, stride, padding, dilation, groups = CASES[name]
    x = rng.standard_normal((n, c, h, w)).astype(dtype)
    weight = rng.standard_normal((k, c // groups, r, r)).astype(dtype) / np.sqrt(c * r * r).astype(dtype)
    return x, weight, ((stride,) * 2, padding, (dilation,) * 2, groups)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_every_algorithm_is_the_definition(name, dtype, rng, count):
    """Forward by the definition; the gradients by <dy, conv(x, w)> being linear in x and in w, in float64."""
    x, w, options = drawn(name, rng, dtype)
    window = conv.conv2d_window("conv2d", x, w, None, *options)
    shape = len(x), x.shape[1], len(w), x.dtype, window
    algorithm, of_weight = conv_cpu.choice(*shape), conv_cpu.choice(*shape, conv_cpu.NARROW_GRADIENT)
    if dtype == "float32":
        assert algorithm is ALGORITHM[name.split(",")[0]]
        assert of_weight is (conv_cpu.TILES if "by tiles" in name else algorithm)
    else:
        assert conv_cpu.TILES not in (algorithm, of_weight)
    tolerance, weight_tolerance = (TILED if a is conv_cpu.TILES else TOLERANCE[dtype] for a in (algorithm, of_weight))
    wanted = by_definition(x, w, options[0][0], options[1], options[2][0], options[3])
    close(conv.conv2d(x, w, None, *options), wanted, tolerance)
    dy, dx, dw = (rng.standard_normal(shape).astype(dtype) for shape in (wanted.shape, x.shape, w.shape))
    grads = conv.conv2d_input_grad(dy, w, x.shape[2:], *options), conv.conv2d_weight_grad(dy, x, w.shape[2:], *options)
    assert all(g.dtype == dtype for g in grads)
    for direction, grad, (a, b), off in ((dx, grads[0], (dx, w), tolerance), (dw, grads[1], (x, dw), weight_tolerance)):
        terms = dy * by_definition(a, b, options[0][0], options[1], options[2][0], options[3])
        difference = (grad.astype(np.float64) * direction).sum() - terms.sum()
        assert abs(difference) <= off * 10 * np.sqrt((terms**2).sum())


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("tiles")])
def test_winograd_gradients_element_by_element(name, rng, count):
    """float32 against the exact algorithms in float64, at every element."""
    x, w, options = drawn(name, rng, "float32")
    dy = rng.standard_normal(conv.conv2d(x, w, None, *options).shape).astype("float32")
    x64, w64, dy64 = (a.astype("float64") for a in (x, w, dy))
    close(conv.conv2d_input_grad(dy, w, x.shape[2:], *options),
          conv.conv2d_input_grad(dy64, w64, x.shape[2:], *options), TILED)
    close(conv.conv2d_weight_grad(dy, x, (3, 3), *options), conv.conv2d_weight_grad(dy64, x64, (3, 3), *options), TILED)


@pytest.mark.parametrize("name", CASES)
def test_same_bits_again_and_from_either_layout(name, rng, count):
    """Which thread is free first decides nothing; NHWC memory gives the same numbers as NCHW, up to rounding."""
    x, w, options = drawn(name, rng, "float32")
    y = conv.conv2d(x, w, None, *options)
    dw = conv.conv2d_weight_grad(y, x, w.shape[2:], *options)
    for _ in range(3):
        assert np.array_equal(conv.conv2d(x, w, None, *options), y)
        assert np.array_equal(conv.conv2d_weight_grad(y, x, w.shape[2:], *options), dw)
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    close(conv.conv2d(last, w, None, *options), y, TOLERANCE["float32"])


@pytest.mark.parametrize("name", CASES)
def test_epilogue(name, rng, count):
    """Bias, residual and relu in the blocks are those after the convolution; kernels are kept and used again."""
    x, w, options = drawn(name, rng, "float32")
    bias = rng.standard_normal(len(w)).astype("float32")
    window, kernels = conv.conv2d_window("conv2d", x, w, bias, *options), {}
    plain = conv_cpu.forward(x, w, None, window)
    residual = rng.standard_normal(plain.shape).astype("float32")
    wanted = np.maximum(plain + bias[:, None, None] + residual, 0)
    for _ in range(2):
        y = conv_cpu.forward(x, w, bias, window, residual, True, kernels)
        assert np.abs(y - wanted).max() <= 1e-6 * np.abs(plain).max()
        assert len(kernels) == 1


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("b, p, c, k", [(1, 49, 130, 64), (3, 21, 17, 96), (1, 30, 1100, 128), (2, 5, 2000, 33),
                                        (1, 40, 997, 64), (1, 700, 40, 64), (4, 1, 8, 48)])
def test_products_by_panels(b, p, c, k, in_place, rng, count, monkeypatch):
    """Whatever NumPy's BLAS does with small matrices here: whole rows and a rest, deep sums in parts, any width."""
    monkeypatch.setattr(conv_cpu_panels, "multiplies_in_place", lambda: in_place)
    width = conv_cpu_panels.width_of(k)
    assert width == (k if not in_place or k == 33 else 64 if k % 64 == 0 else 48)
    a, kernel = rng.standard_normal((b, p, c)), rng.standard_normal((b, c, k))
    panels = kernel.reshape(b, c, k // width, width).transpose(2, 0, 1, 3)
    for product in conv_cpu_panels.panel_product, conv_cpu_panels.product_by_columns:
        out = np.full((b, p, k), np.nan)
        product(a, panels, out)
        assert np.allclose(out, a @ kernel, rtol=1e-12, atol=1e-12 * c)


def test_winograd_switch(rng):
    """Off: the direct sum. The loss of a digit is what the switch's documentation says, and not more."""
    x, w, options = drawn("tiles", rng, "float32")
    exact = by_definition(x, w, 1, options[1], 1, 1)

    def error():
        return np.abs(conv.conv2d(x, w, None, *options) - exact).max() / np.abs(exact).max()

    assert zoo.backends.cpu.winograd is True
    tiled = error()
    try:
        zoo.backends.cpu.winograd = False
        direct = error()
    finally:
        zoo.backends.cpu.winograd = True
    assert direct < 1e-6 < tiled < 1e-5


def modules(rng):
    conv2d, norm = nn.Conv2d(40, 48, 3, padding=1), nn.BatchNorm2d(48)
    for t in (norm.weight, norm.bias, norm.running_mean):
        t.data.copy_(zoo.tensor(rng.standard_normal(48).astype("float32")))
    norm.running_var.copy_(zoo.tensor(rng.uniform(0.5, 2, 48).astype("float32")))
    return conv2d, norm.eval(), zoo.tensor(rng.standard_normal((2, 40, 16, 17)).astype("float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fused_without_a_gradient(dtype, rng, monkeypatch):
    """Under no_grad one op does all, of the weights as they are now; a residual that broadcasts is added by itself."""
    conv2d, norm, x = (a.to(getattr(zoo, dtype)) for a in modules(rng))
    residual, seen = zoo.ones(2, 48, 16, 17, dtype=x.dtype), []
    monkeypatch.setattr(fusion, "conv2d_norm_act", lambda *args: seen.append(args) or conv.conv2d_norm_act(*args))
    for _ in range(2):
        wanted = nn.ReLU()(norm(conv2d(x)) + residual).detach().numpy()
        with zoo.no_grad():
            close(conv_norm_act(x, conv2d, norm, nn.ReLU(), residual).numpy(), wanted, 1e-5)
        conv2d.weight.detach().numpy()[3, 1, 2, 2] += 1          # no clock sees this
    assert len(seen) == 2 and not FOLDED.get(conv2d)
    with zoo.no_grad():
        y = conv_norm_act(x, conv2d, norm, nn.ReLU(), residual[:1, :, :1, :1])
    assert y.shape == residual.shape and len(seen) == 2
    conv_norm_act(x, conv2d, norm, nn.ReLU(), residual).sum().backward()
    assert conv2d.weight.grad is not None and len(seen) == 2


@pytest.mark.parametrize("act", [None, nn.ReLU()])
@pytest.mark.parametrize("with_residual", [False, True])
def test_fused_layers_are_the_layers(act, with_residual, rng):
    conv2d, norm, x = modules(rng)
    with zoo.no_grad():
        wanted = norm(conv2d(x))
        residual = zoo.tensor(rng.standard_normal(wanted.shape).astype("float32")) if with_residual else None
        wanted = wanted if residual is None else wanted + residual
        wanted = wanted if act is None else act(wanted)
        close(conv_norm_act(x, conv2d, norm, act, residual).numpy(), wanted.numpy(), 1e-5)
    with zoo.inference_mode():
        close(conv_norm_act(x, conv2d, norm, act, residual).numpy(), wanted.numpy(), 1e-5)
        assert conv2d in FOLDED


CHANGES = {
    "in place": lambda conv2d, norm: conv2d.weight.mul_(2),
    "data": lambda conv2d, norm: conv2d.weight.data.mul_(2),
    "new data": lambda conv2d, norm: setattr(conv2d.weight, "data", conv2d.weight.detach() * 2),
    "numpy": lambda conv2d, norm: np.multiply(conv2d.weight.detach().numpy(), 2, out=conv2d.weight.detach().numpy()),
    "statistics": lambda conv2d, norm: norm.running_mean.add_(1),
    "scale": lambda conv2d, norm: norm.weight.data.mul_(3),
    "state": lambda conv2d, norm: conv2d.load_state_dict({k: v * 2 for k, v in conv2d.state_dict().items()}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_folded_weights_follow_their_sources(change, rng):
    conv2d, norm, x = modules(rng)
    with zoo.inference_mode():
        before = conv_norm_act(x, conv2d, norm).numpy()
    with zoo.no_grad():
        change(conv2d, norm)
        wanted = norm(conv2d(x)).numpy()
    assert np.abs(wanted - before).max() > 0.1
    with zoo.inference_mode():
        close(conv_norm_act(x, conv2d, norm).numpy(), wanted, 1e-5)


def test_hooks_training_and_other_layers_are_not_fused(rng):
    conv2d, norm, x = modules(rng)
    seen = []
    handle = norm.register_forward_hook(lambda module, args, out: seen.append(out))
    with zoo.inference_mode():
        conv_norm_act(x, conv2d, norm)
        assert len(seen) == 1
        handle.remove()
        y = conv_norm_act(x, conv2d, norm.train())
        assert np.abs(y.numpy().mean((0, 2, 3)) - norm.bias.detach().numpy()).max() < 1e-4      # of this batch
        group = nn.GroupNorm(4, 48)
        assert conv_norm_act(x, conv2d, group, nn.GELU()).equal(nn.GELU()(group(conv2d(x))))
        with pytest.raises(ShapeError, match="40"):
            conv_norm_act(zoo.zeros(1, 3, 8, 8), conv2d, norm.eval())


def test_sequential_and_fuse(rng):
    conv2d, norm, x = modules(rng)
    model = nn.Sequential(conv2d, norm, nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(48, 8, 1), nn.Flatten()).eval()
    with zoo.no_grad():
        wanted = model(x).numpy()
    with zoo.inference_mode():
        close(model(x).numpy(), wanted, 1e-5)
    fused = nn.utils.fuse(model)
    assert type(fused[1]) is nn.Identity and type(model[1]) is nn.BatchNorm2d
    with zoo.no_grad():
        close(fused(x).numpy(), wanted, 1e-5)
    with pytest.raises(ValueError, match="eval"):
        nn.utils.fuse_conv_bn_eval(conv2d, norm.train())


@pytest.mark.parametrize("model", [resnet18, resnet50, lambda: make_layers(VGG11, batch_norm=True)])
def test_models_under_inference_mode(model, rng):
    """Fused whole models against the plain layers, at 1e-4 of the largest output."""
    model = model().eval()
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.running_var.copy_(zoo.tensor(rng.uniform(0.5, 2, m.num_features).astype("float32")))
    x = zoo.tensor(rng.standard_normal((2, 3, 64, 64)).astype("float32"))
    with zoo.no_grad():
        wanted = model(x).numpy()
    with zoo.inference_mode():
        close(model(x).numpy(), wanted, 1e-4)


def test_max_pool_without_indices(rng, count):
    x = rng.standard_normal((3, 5, 13, 11)).astype("float32")
    x[0, 0, 3, 3], x[1, 2, 4, 4] = np.nan, -np.inf
    for pool in (nn.MaxPool2d(3, 2, 1), nn.MaxPool2d(2), nn.MaxPool2d((2, 3), (1, 2), ceil_mode=True, dilation=2),
                 nn.MaxPool2d(5, 1, 2), nn.MaxPool2d(2, 2, 1, 3), nn.MaxPool2d((13, 11))):
        for memory in (x, np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)):
            wanted = pool(zoo.tensor(memory)).numpy()
            with zoo.inference_mode():
                assert np.array_equal(pool(zoo.from_numpy(memory)).numpy(), wanted, equal_nan=True)


@pytest.mark.parametrize("lay", [lambda x: x, lambda x: x.transpose(0, 3, 1, 2), lambda x: x[..., ::2]])
@pytest.mark.parametrize("shape", [(3, 7, 6, 32), (11, 64, 40, 48), (1, 1, 5, 1)])
def test_mean_of_images(shape, lay, rng, count):
    """In both layouts and in none, in one part and in several; by the layer and by the op on arrays."""
    x = lay(rng.standard_normal(shape).astype("float32"))
    wanted = x.astype("float64").mean((2, 3), keepdims=True)
    close(nn.AdaptiveAvgPool2d(1)(zoo.from_numpy(x)).numpy(), wanted, 1e-6)
    close(adaptive_avg_pool(x, (1, 1)), wanted, 1e-6)


def test_batch_norm_of_either_layout(rng, count):
    x = rng.standard_normal((6, 24, 20, 21)).astype("float32")
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for a, b in zip(batch_norm_train(x), batch_norm_train(last), strict=True):
        close(a, b, 1e-5)


def test_threads_errors_nesting_and_blas(count):
    """The first error reaches the caller; work may call `run`; BLAS has its threads back afterwards."""
    def fails(i):
        if i == 5:
            raise KeyError(i)
        return i

    with pytest.raises(KeyError, match="5"):
        threads.run(fails, range(9))
    assert threads.run(lambda i: sum(threads.run(lambda j: i * j, range(4))), range(5)) == [6 * i for i in range(5)]
    assert threads.run(lambda i: threads.blas_threads(), range(6)) == [1] * 6
    assert threads.get_num_threads() == count
    if threads.blas("get_num_threads"):
        assert threads.blas_threads() == count


@pytest.mark.parametrize("shape", [(5, 700, 900), (2000, 512, 600), (1, 4096, 64)])
def test_large_linear_layers(shape, rng, count):
    m, c, k = shape
    x, w, b = (rng.standard_normal(s).astype("float32") for s in ((m, c), (k, c), k))
    close(linear(x, w, b), x.astype("float64") @ w.T + b, 1e-5)
    with pytest.raises(ShapeError, match="linear"):
        linear(x[:, 1:], w, b)
    long = rng.standard_normal(1 << 18)
    close(linear(np.stack([long, -long]), long), np.array([1.0, -1.0]) * (long @ long), 1e-9)


def test_run_uses_other_threads():
    """Two pieces that wait for each other end only if two threads run them."""
    if not threads.blas("get_num_threads"):
        pytest.skip("NumPy's BLAS is not OpenBLAS")
    before = threads.get_num_threads()
    threads.set_num_threads(2)
    try:
        meeting = threading.Barrier(2, timeout=20)
        assert sorted(threads.run(lambda i: meeting.wait(), range(2))) == [0, 1]
    finally:
        threads.set_num_threads(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="wants fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_fork_after_use(rng):
    """A child has a pool of its own: its parent's threads are not there."""
    before = threads.get_num_threads()
    threads.set_num_threads(2)
    x, w, options = drawn("tiles", rng, "float32")
    y = conv.conv2d(x, w, None, *options)
    child = os.fork()
    if not child:
        os._exit(0 if np.array_equal(conv.conv2d(x, w, None, *options), y) else 1)
    threads.set_num_threads(before)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
