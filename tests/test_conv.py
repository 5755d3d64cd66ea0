"""Convolution: torch's numbers for random shapes and layouts, memory order, blocks, threads, what wrong calls raise."""
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import zoo
import zoo.nn.functional as F
from zoo.ops import conv, conv_cpu, conv_cpu_blocks, conv_cpu_columns, conv_cpu_depthwise, cuda
from zoo.ops.errors import ArgumentError, DtypeError, ShapeError


def nhwc(x):
    """The same array, in memory as NHWC."""
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


def gapped(x):
    """The same array with gaps between its elements."""
    return np.repeat(x, 2, axis=3)[..., ::2]


def directly(x, w, stride=1):
    """The definition, summed tap by tap in float64 (no padding, dilation or groups)."""
    r, s = w.shape[2:]
    p, q = (x.shape[2] - r) // stride + 1, (x.shape[3] - s) // stride + 1
    def tap(i, j):
        seen = x[:, :, i:i + (p - 1) * stride + 1:stride, j:j + (q - 1) * stride + 1:stride]
        return np.einsum("nchw,kc->nkhw", seen, w[:, :, i, j])
    return sum(tap(i, j) for i in range(r) for j in range(s))


def test_is_the_definition(rng):
    for c, k, stride in ((3, 5, 1), (3, 5, 2), (1, 2, 3)):
        x, w = rng.normal(size=(2, c, 9, 8)), rng.normal(size=(k, c, 3, 2))
        assert np.allclose(conv.conv2d(x, w, None, (stride, stride)), directly(x, w, stride), rtol=0, atol=1e-13)


@pytest.mark.torch
@pytest.mark.parametrize("seed", range(40))
def test_equals_torch(seed):
    """Forward and all gradients of conv2d and conv_transpose2d, float64, any option, three memory layouts."""
    import torch
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    pair = lambda low, high: (choose.randint(low, high), choose.randint(low, high))  # noqa: E731
    groups, cg, kg = choose.choice([1, 1, 2, 3]), choose.choice([1, 2, 5]), choose.choice([1, 3, 4])
    kernel, dilation, stride, padding = pair(1, 4), pair(1, 3), pair(1, 3), pair(0, 4)
    image = tuple(max(choose.randint(1, 11), d * (k - 1) + 1 - 2 * p)
                  for k, d, p in zip(kernel, dilation, padding, strict=True))
    lay = choose.choice([nhwc, gapped, lambda x: x])
    x, bias = rng.normal(size=(choose.randint(1, 3), groups * cg, *image)), rng.normal(size=groups * kg)
    extra = tuple(choose.randrange(max(s, d)) for s, d in zip(stride, dilation, strict=True))
    plain = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    forward = "conv2d", rng.normal(size=(groups * kg, cg, *kernel)), plain
    back = "conv_transpose2d", rng.normal(size=(groups * cg, kg, *kernel)), {**plain, "output_padding": extra}
    for name, weight, options in (forward, back):
        theirs = [torch.from_numpy(a).requires_grad_() for a in (x, weight, bias)]
        try:
            y = getattr(torch.nn.functional, name)(*theirs, **options)
        except RuntimeError:                               # a transposed convolution of nothing
            assert name == "conv_transpose2d"
            with pytest.raises(ShapeError):
                getattr(F, name)(*map(zoo.from_numpy, (x, weight, bias)), **options)
            continue
        mine = [zoo.from_numpy(a).requires_grad_() for a in (lay(x), weight, bias)]
        z = getattr(F, name)(*mine, **options)
        dy = rng.normal(size=tuple(y.shape))
        y.backward(torch.from_numpy(dy))
        z.backward(zoo.from_numpy(lay(dy)))
        assert np.allclose(z.detach().numpy(), y.detach().numpy(), rtol=0, atol=1e-11)
        for a, b in zip(mine, theirs, strict=True):
            assert np.allclose(a.grad.numpy(), b.grad.numpy(), rtol=0, atol=1e-11)


def test_result_lies_channels_last_and_the_next_layers_keep_it(rng):
    x = zoo.from_numpy(rng.normal(size=(2, 3, 8, 8)).astype(np.float32))
    w = zoo.from_numpy(rng.normal(size=(4, 3, 3, 3)).astype(np.float32))
    y = F.max_pool2d(F.relu(F.conv2d(x, w, padding=1) + 1.0), 2)
    assert conv_cpu.nhwc(y.numpy()).flags.c_contiguous


@pytest.mark.parametrize("options", [{}, {"padding": (2, 1)}, {"stride": (2, 1), "padding": (1, 1)}, {"groups": 4},
                                     {"groups": 2, "dilation": (2, 1)}], ids=str)
def test_blocks_do_not_matter(options, rng, monkeypatch):
    """Images and rows of images in pieces of any size give the same sums, up to their order."""
    x, w = rng.normal(size=(3, 4, 9, 7)), rng.normal(size=(4, 4 // options.get("groups", 1), 3, 3))
    y = conv.conv2d(x, w, **options)
    dy = rng.normal(size=y.shape)
    whole = y, conv.conv2d_input_grad(dy, w, (9, 7), **options), conv.conv2d_weight_grad(dy, x, (3, 3), **options)
    for block in (1, 1000, 4000):
        for module in (conv_cpu, conv_cpu_blocks, conv_cpu_columns, conv_cpu_depthwise):
            monkeypatch.setattr(module, "BLOCK", block)
        parts = (conv.conv2d(x, w, **options), conv.conv2d_input_grad(dy, w, (9, 7), **options),
                 conv.conv2d_weight_grad(dy, x, (3, 3), **options))
        for a, b in zip(parts, whole, strict=True):
            assert np.allclose(a, b, rtol=0, atol=1e-12)


def test_threads_share_no_scratch_memory(rng):
    x, w = rng.normal(size=(8, 16, 12, 12)), rng.normal(size=(16, 16, 3, 3))
    inputs = [x * i for i in range(1, 17)]
    wanted = [conv.conv2d(a, w, None, (1, 1), (1, 1)) for a in inputs]
    with ThreadPoolExecutor(4) as pool:
        for a, b in zip(pool.map(lambda a: conv.conv2d(a, w, None, (1, 1), (1, 1)), inputs), wanted, strict=True):
            assert np.array_equal(a, b)


def test_same_and_valid_and_unbatched(rng):
    x, w = zoo.from_numpy(rng.normal(size=(1, 2, 7, 6))), zoo.from_numpy(rng.normal(size=(3, 2, 4, 3)))
    same = F.conv2d(x, w, padding="same", dilation=(1, 2))
    assert same.shape == (1, 3, 7, 6)
    around = F.conv2d(zoo.from_numpy(np.pad(x.numpy(), ((0, 0), (0, 0), (1, 2), (2, 2)))), w, dilation=(1, 2))
    assert np.array_equal(same.numpy(), around.numpy())
    assert np.array_equal(F.conv2d(x, w, padding="valid").numpy(), F.conv2d(x, w).numpy())
    assert np.array_equal(F.conv2d(x[0], w).numpy(), F.conv2d(x, w).numpy()[0])


WRONG = [
    ("channels", ShapeError, lambda x, w: F.conv2d(x, w[:, :2]), ("(1, 3, 5, 5)", "(4, 2, 3, 3)")),
    ("rank", ShapeError, lambda x, w: F.conv2d(x[0, 0], w), ("(5, 5)", "(4, 3, 3, 3)")),
    ("kernel too large", ShapeError, lambda x, w: F.conv2d(x, w, dilation=3), ("(3, 3)", "(5, 5)")),
    ("groups", ShapeError, lambda x, w: F.conv2d(x, w, groups=3), ("groups=3", "4")),
    ("bias", ShapeError, lambda x, w: F.conv2d(x, w, zoo.zeros(3)), ("(4,)", "(3,)")),
    ("stride", ArgumentError, lambda x, w: F.conv2d(x, w, stride=0), ("stride", "0")),
    ("padding", ArgumentError, lambda x, w: F.conv2d(x, w, padding=-1), ("padding", "-1")),
    ("same with stride", ArgumentError, lambda x, w: F.conv2d(x, w, padding="same", stride=2), ("same", "2")),
    ("word", ArgumentError, lambda x, w: F.conv2d(x, w, padding="full"), ("'full'",)),
    ("dtypes", DtypeError, lambda x, w: F.conv2d(x, w.double()), ("float32", "float64")),
    ("output_padding", ArgumentError, lambda x, w: F.conv_transpose2d(x, w[:3], output_padding=1), ("output_padding",)),
    ("no tuple", TypeError, lambda x, w: F.conv2d(x, w, stride=1.5), ("stride", "1.5")),
]


@pytest.mark.parametrize(("error", "call", "parts"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_wrong_calls_say_what_was_wanted_and_got(error, call, parts):
    with pytest.raises(error) as caught:
        call(zoo.zeros(1, 3, 5, 5), zoo.zeros(4, 3, 3, 3))
    assert str(caught.value).startswith("conv")
    assert all(part in str(caught.value) for part in parts), caught.value


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_kernel_splits_over_pixels(dtype, rng):
    """So many pixels that the weight gradient is summed in parts, 16 channels and more, layouts NCHW and NHWC."""
    x, w = rng.normal(size=(2, 16, 17, 17)).astype(dtype), rng.normal(size=(16, 16, 3, 3)).astype(dtype)
    options = (2, 1), (1, 1), (1, 1), 1
    y = conv.conv2d(x, w, None, *options)
    wanted = y, conv.conv2d_input_grad(y, w, (17, 17), *options), conv.conv2d_weight_grad(y, x, (3, 3), *options)
    first, last = cuda.from_numpy(x), cuda.from_numpy(conv_cpu.nhwc(x))
    last = last.view(x.shape, tuple(last.strides[d] for d in (0, 3, 1, 2)))
    weight, dy = cuda.from_numpy(w), cuda.from_numpy(y)
    for a in (first, last):
        got = (conv.conv2d(a, weight, None, *options), conv.conv2d_input_grad(dy, weight, (17, 17), *options),
               conv.conv2d_weight_grad(dy, a, (3, 3), *options))
        for g, want in zip(got, wanted, strict=True):
            scale = np.abs(want.astype(np.float32)).max()
            error = np.abs(cuda.to_numpy(g).astype(np.float32) - want.astype(np.float32)).max()
            assert error <= scale * (2e-3 if dtype is np.float16 else 2e-6)
