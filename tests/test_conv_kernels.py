"""Convolution kernels: every way through them with every epilogue, against NumPy; no copies between layers; sizes."""
import json

import ml_dtypes
import numpy as np
import pytest

import zoo
from tests.cases import TOLERANCE
from zoo.models.resnet import BasicBlock, Bottleneck
from zoo.ops import conv, cuda, gpu_configs
from zoo.ops.cuda import record
from zoo.ops.gpu_configs import Config

pytest.importorskip("triton")

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
# (N, C, H, W), (K, C / groups, R, S), stride, padding, dilation, groups, the kernel that is launched
WAYS = {
    "few channels": ((1, 3, 9, 7), (18, 3, 7, 7), (2, 2), (3, 3), (1, 1), 1, "fprop_rows"),
    "five channels, dilated rows": ((1, 5, 9, 8), (16, 5, 3, 2), (1, 2), (2, 1), (2, 1), 1, "fprop_rows"),
    "few channels, dilated": ((1, 3, 9, 9), (8, 3, 3, 3), (1, 1), (2, 2), (2, 2), 1, "fprop"),
    "product": ((2, 24, 5, 6), (40, 24, 1, 1), (1, 1), (0, 0), (1, 1), 1, "gemm"),
    "strided 1x1": ((2, 32, 7, 7), (48, 32, 1, 1), (2, 2), (0, 0), (1, 1), 1, "fprop"),
    "even channels": ((1, 32, 9, 8), (40, 32, 3, 3), (1, 1), (1, 1), (1, 1), 1, "fprop"),
    "odd channels": ((1, 33, 7, 8), (35, 33, 3, 3), (2, 2), (1, 1), (1, 1), 1, "fprop"),
    "dilated, padded unevenly": ((1, 24, 11, 9), (32, 24, 3, 3), (1, 2), (2, 1, 3, 0), (2, 3), 1, "fprop"),
    "groups": ((1, 40, 5, 6), (48, 20, 3, 3), (1, 1), (1, 1), (1, 1), 2, "fprop"),
    "groups of few channels": ((1, 64, 6, 5), (32, 4, 3, 3), (1, 1), (1, 1), (1, 1), 16, "fprop"),
    "few groups of few channels": ((1, 9, 6, 7), (15, 3, 3, 2), (2, 1), (1, 1), (1, 1), 3, "fprop_rows"),
    "groups of odd channels": ((1, 21, 6, 5), (35, 3, 3, 3), (1, 2), (1, 1), (1, 1), 7, "fprop"),
    "groups of pixels": ((2, 24, 3, 4), (48, 4, 1, 1), (1, 1), (0, 0), (1, 1), 6, "fprop"),
    "depthwise": ((2, 20, 7, 6), (20, 1, 3, 3), (2, 1), (1, 1), (1, 1), 20, "depthwise"),
    "small map, cut": ((1, 64, 4, 4), (24, 64, 3, 3), (1, 1), (1, 1), (1, 1), 1, "fprop"),
}
PARTS = {  # which of bias, batch norm, its weight, its bias, residual, relu
    "nothing": "", "bias": "b", "bias, relu": "ba", "residual, relu": "ra", "norm": "nws", "norm, relu": "nwsa",
    "plain norm": "n", "bias, norm with weight": "bnw", "norm with bias, residual": "nsr", "all": "bnwsra",
}
TILE = dict(num_warps=4, num_stages=2)


def last(x):
    """On the device, channels-last."""
    x = cuda.from_numpy(np.ascontiguousarray(x.transpose(0, 2, 3, 1)))
    n, h, w, c = x.shape
    return x.view((n, c, h, w), tuple(x.strides[d] for d in (0, 3, 1, 2)))


def case(way, parts, dtype, rng):
    """Arguments of conv2d_norm_act on the CPU and on the device, channels-last."""
    shape, kernel, *options, _ = WAYS[way]
    k = kernel[0]
    x, w = rng.normal(size=shape), rng.normal(size=kernel) / np.sqrt(np.prod(kernel[1:]))
    out = conv.conv2d_window("conv2d", x, w, None, *options).out
    moments = (rng.normal(size=k), rng.uniform(0.5, 2, k)) if "n" in parts else (None, None)
    vectors = [rng.normal(size=k) if letter in parts else None for letter in "bws"]
    residual = rng.normal(size=(shape[0], k, *out)) if "r" in parts else None
    args = x, w, vectors[0], *moments, *vectors[1:], residual
    args = [a if a is None else a.astype(dtype) for a in args]
    there = [a if a is None else last(a) if a.ndim == 4 else cuda.from_numpy(a) for a in args]
    options = "a" in parts, 1e-3, *options
    return (*args, *options), (*there, *options)


def check(way, parts, dtype, rng):
    here, there = case(way, PARTS[parts], dtype, rng)
    wide = [a.astype(np.float64) if isinstance(a, np.ndarray) else a for a in here]
    want, got = conv.conv2d_norm_act(*wide), cuda.to_numpy(conv.conv2d_norm_act(*there))
    assert got.dtype == dtype
    error = np.abs(got.astype(np.float64) - want).max() / np.abs(want).max()
    assert error <= TOLERANCE[np.dtype(dtype).name], (way, parts, error)


@pytest.fixture
def launched():
    """The names of the kernels that the interpreter runs, in order."""
    names = []
    with record.listening(lambda kernel, grid, arguments: names.append(kernel.function.__name__)):
        yield names


@pytest.mark.cuda
@pytest.mark.parametrize("way", WAYS)
def test_every_way_with_every_epilogue(way, rng, launched):
    some = way in ("few channels", "product", "odd channels", "depthwise", "small map, cut")
    for parts in PARTS if some else ("bias, norm with weight", "all"):
        launched.clear()
        check(way, parts, np.float32, rng)
        if not cuda.is_interpreting():
            continue
        assert next(name for name in launched if name not in ("lay", "tile", "flat")) == WAYS[way][-1]
        assert launched[-1] == "add_parts" or "cut" not in way


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [BFLOAT16, np.float64], ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_other_dtypes(way, dtype, rng):
    check(way, "all", dtype, rng)


@pytest.mark.cuda
@pytest.mark.parametrize("sub", [1, 2])
@pytest.mark.parametrize("way", ["even channels", "odd channels", "groups", "strided 1x1"])
def test_tiles_whole_and_in_halves(way, sub, rng):
    """Several tiles in both directions, ragged at the ends, the epilogue in one or in halves."""
    with gpu_configs.using(config=Config(32, 32, 16, sub=sub, per_sm=1, **TILE)):
        for parts in ("nothing", "all"):
            check(way, parts, np.float32, rng)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [np.float32, BFLOAT16], ids=["float32", "bfloat16"])
def test_8_warps_add_up_what_4_do(dtype, rng):
    """The window of pytorch#173068, where another convolution's 8 warps gave wrong sums: evidence on a GPU."""
    shape, kernel, options = (1, 33, 12, 13), (34, 33, 3, 3), ((2, 3), (4, 5), (1, 1), 1)
    x, w = last(rng.normal(size=shape).astype(dtype)), last(rng.normal(size=kernel).astype(dtype))
    results = []
    for warps in (4, 8):
        with gpu_configs.using(config=Config(64, 64, 32, warps, 2, split=1)):
            y = conv.conv2d(x, w, None, *options)
            dx, dw = conv.conv2d_input_grad(y, w, shape[2:], *options), conv.conv2d_weight_grad(y, x, (3, 3), *options)
        results.append([cuda.to_numpy(a).astype(np.float64) for a in (y, dx, dw)])
    want = conv.conv2d(*(cuda.to_numpy(a).astype(np.float64) for a in (x, w)), None, *options)
    for four, eight in zip(*results, strict=True):
        assert np.abs(four - eight).max() <= TOLERANCE[np.dtype(dtype).name] * np.abs(four).max()
    assert np.abs(results[1][0] - want).max() <= TOLERANCE[np.dtype(dtype).name] * np.abs(want).max()


@pytest.mark.cuda
@pytest.mark.parametrize("way", WAYS)
def test_gradients_of_every_way(way, rng):
    """Input and weight gradient against float64, with the table's tiles and with small ones."""
    shape, kernel, *options, _ = WAYS[way]
    x, w = rng.normal(size=shape), rng.normal(size=kernel)
    dy = rng.normal(size=conv.conv2d(x, w, None, *options).shape)
    wanted = conv.conv2d_input_grad(dy, w, shape[2:], *options), conv.conv2d_weight_grad(dy, x, kernel[2:], *options)
    x, w, dy = (last(a.astype(np.float32)) for a in (x, w, dy))
    for config in (None, Config(16, 32, 16, per_sm=1, **TILE)):
        with gpu_configs.using(config=config):
            got = (conv.conv2d_input_grad(dy, w, shape[2:], *options),
                   conv.conv2d_weight_grad(dy, x, kernel[2:], *options))
        for g, want in zip(got, wanted, strict=True):
            assert np.abs(cuda.to_numpy(g) - want).max() <= 1e-5 * np.abs(want).max()


@pytest.mark.interpret
@pytest.mark.parametrize("make", [lambda: BasicBlock(32, 32), lambda: Bottleneck(64, 16)], ids=["basic", "bottleneck"])
def test_a_block_at_inference_is_its_convolutions(make, launched, rng):
    """One matrix kernel a layer (and the addition of its parts, where a small map is cut): nothing else, no copies."""
    block = make().eval()
    for norm in block.modules():
        if isinstance(norm, zoo.nn.BatchNorm2d):
            for t in (norm.running_mean, norm.weight, norm.bias):
                t.data.copy_(zoo.from_numpy(rng.normal(size=t.shape).astype(np.float32)))
            norm.running_var.uniform_(0.5, 2)
    x = zoo.from_numpy(rng.normal(size=(2, block.conv1.in_channels, 6, 5)).astype(np.float32))
    with zoo.no_grad():
        want = block(x).numpy()
    block, x = (v.to("cuda").to(memory_format=zoo.channels_last) for v in (block, x))
    for mode in (zoo.no_grad, zoo.inference_mode):
        launched.clear()
        with mode():
            y = block(x)
        assert set(launched) <= {"gemm", "fprop", "add_parts"} and len(launched) - launched.count("add_parts") <= 3
        np.testing.assert_allclose(y.cpu().numpy(), want, rtol=1e-4, atol=1e-4)
    assert y.permute(0, 2, 3, 1).is_contiguous()


@pytest.mark.interpret
def test_a_block_in_mixed_precision(launched, rng):
    """Under autocast only weights are cast; what no kernel does in one (here a residual in float32) runs in parts."""
    block, x = Bottleneck(64, 16).eval(), zoo.from_numpy(rng.normal(size=(1, 64, 4, 4)).astype(np.float32))
    with zoo.no_grad():
        want = block(x).numpy()
    block, x = (v.to("cuda").to(memory_format=zoo.channels_last) for v in (block, x))
    for image in (x, x.bfloat16()):
        launched.clear()
        with zoo.no_grad(), zoo.autocast("cuda", zoo.bfloat16):
            y = block(image)
        assert "tile" not in launched, "a copy that changes the order in memory"
        assert np.abs(y.float().cpu().numpy() - want).max() <= 0.02 * np.abs(want).max()
    assert y.dtype == zoo.bfloat16 and set(launched) <= {"cast_kernel", "gemm", "fprop", "add_parts", "flat"}
    assert launched.count("cast_kernel") <= 1, "the weights, all in one"


@pytest.mark.interpret
@pytest.mark.parametrize("n, wide", [(2621, False), (2622, True)])
def test_offsets_of_64_bits_where_an_array_needs_them(n, wide, tmp_path):
    """2622 images of 128 x 80 x 80 are 2**31 elements and more; in every direction."""
    shape, kernel = (n, 128, 80, 80), (128, 128, 3, 3)
    with record.dry_run(tmp_path / "launches.jsonl"):
        x, w = cuda.empty(shape, BFLOAT16), cuda.empty(kernel, BFLOAT16)
        y = conv.conv2d(x, w, None, padding=(1, 1))
        conv.conv2d_input_grad(y, w, shape[2:], padding=(1, 1))
        conv.conv2d_weight_grad(y, x, kernel[2:], padding=(1, 1))
        conv.conv2d(x, cuda.empty((128, 1, 3, 3), BFLOAT16), None, padding=(1, 1), groups=128)
    rows = map(json.loads, (tmp_path / "launches.jsonl").read_text().splitlines())
    found = {r["kernel"].partition(":")[2]: r["constexprs"]["WIDE"] for r in rows
             if ".conv_" in r["kernel"] and "WIDE" in r["constexprs"]}
    assert found == dict.fromkeys(("fprop", "dgrad", "wgrad", "depthwise"), wide)


@pytest.mark.interpret
@pytest.mark.parametrize("channels, size", [(1, 3), (16, 1)])
def test_too_many_pixels_are_refused(channels, size, tmp_path):
    from zoo.ops.errors import ShapeError
    with record.dry_run(tmp_path / "launches.jsonl"), pytest.raises(ShapeError, match=r"fewer than 2\*\*31 pixels"):
        images, weight = ((1 << 15, channels, 256, 257), (1, channels, size, size))
        conv.conv2d(cuda.empty(images, BFLOAT16), cuda.empty(weight, BFLOAT16))
