"""Convolution on the GPU: which kernel with which tile for which shape, and the launches.

Images lie as NHWC and weights as KRSC here (others are copied at the door: conv_layout_gpu.py), and results come back
as NCHW views of NHWC memory: in a network that began channels-last, nothing is copied between layers. A pointwise
convolution is a matrix product. Sums are cut into parts where there are too few tiles for a GPU, and added in a fixed
order. Configs come from the committed table (gpu_configs). All of this is worked out once for a layout: the ops are
remembered (cuda/remember.py).
"""
import math
from typing import Any, NamedTuple

import triton
import triton.language as tl

from zoo.ops import conv as contract
from zoo.ops import cuda, gpu_configs, scalar_gpu
from zoo.ops.conv_depthwise_gpu import depthwise, depthwise_wgrad
from zoo.ops.conv_forward_gpu import fprop, fprop_rows
from zoo.ops.conv_input_grad_gpu import dgrad
from zoo.ops.conv_layout_gpu import (
    channels_first,
    channels_last,
    lanes_of,
    lay_image,
    lay_weight,
    merge_groups,
    rows_of,
    turned,
)
from zoo.ops.conv_weight_grad_gpu import wgrad
from zoo.ops.cuda import DeviceArray
from zoo.ops.dtypes import float32, float64
from zoo.ops.epilogue_gpu import (
    NOTHING,
    Epilogue,
    add_matrix,
    add_row,
    bits_of,
    epilogue,
    normalize,
    scale_row,
    standardize,
)
from zoo.ops.errors import ShapeError
from zoo.ops.gemm_gpu import add_parts
from zoo.ops.gpu_configs import Config
from zoo.ops.matmul_gpu import COLUMNS, ROWS, biased, divisor, kind_of, multiply, split_of, sum_of_parts
from zoo.ops.pixels_gpu import magic
from zoo.ops.pointwise_gpu import contiguous_copy
from zoo.ops.window import Window


class Problem(NamedTuple):
    """What a plan depends on: the window, images, channels of the image and of the result, and the arithmetic."""
    window: Window
    n: int
    c: int
    k: int
    dtype: Any
    kind: str
    table: gpu_configs.Choice

    @property
    def pixels(self) -> int:
        """Of all images of the result."""
        return self.n * math.prod(self.window.out)

    @property
    def is_wide(self) -> bool:
        """Whether offsets into one of the arrays need 64 bits."""
        image, result = math.prod(self.window.image), math.prod(self.window.out)
        weight = math.prod(self.window.kernel) * self.k * (self.c // self.window.groups)
        return max(self.n * self.c * image, self.n * self.k * result, weight) >= 2**31

    @property
    def constants(self) -> dict:
        """The constexprs that every kernel here takes."""
        (r, s), (sh, sw), (dh, dw) = self.window.kernel, self.window.stride, self.window.dilation
        return dict(R=r, S=s, SH=sh, SW=sw, TOP=self.window.padding[0], LEFT=self.window.padding[1], DH=dh, DW=dw,
                    WIDE=self.is_wide, ACC=tl.float64 if self.dtype == float64 else tl.float32)

    @property
    def divisors(self) -> dict:
        """What divides the channels: C and C / groups, and likewise K."""
        limit, c, k, groups = 16 // self.dtype.itemsize, self.c, self.k, self.window.groups
        return dict(DC=divisor(limit, c, c // groups), DK=divisor(limit, k, k // groups))

    @property
    def channels(self) -> tuple:
        """C, K, C / groups and K / groups, divided by it."""
        c, k, groups, (dc, dk) = self.c, self.k, self.window.groups, self.divisors.values()
        return c // dc, k // dk, c // groups // dc, k // groups // dk

    def config(self, op: str, m: int, n: int, k: int, batch: int, *tags: str) -> Config:
        """The table's, with sides no longer than what they cover; 16 is the least that a tensor core takes.

        Tag "narrow": some channels are no whole number of 8 bytes, and are read one or two at a time.
        """
        if min(self.divisors.values()) * self.dtype.itemsize < 8:
            tags = *tags, "narrow"
        best = gpu_configs.choose(op, self.kind, m, n, k, batch, tags)
        covered = (max(16, triton.next_power_of_2(size)) for size in (m, n, k))
        return Config(*map(min, best, covered), *best[3:])

    def options(self, config: Config) -> dict:
        """Tile, arithmetic, warps, stages, and the registers that leave room for as many programs as the table says."""
        registers = min(255, 65536 // (config.num_warps * 32 * config.per_sm) // 8 * 8)
        return dict(BM=config.BM, BN=config.BN, PRECISION=self.kind if self.kind.startswith("tf32") else "ieee",
                    num_warps=config.num_warps, num_stages=config.num_stages, maxnreg=registers)

    def cut(self, config: Config, tiles: int, steps: int) -> tuple[int, int]:
        """(parts, steps of one part) of sums of that many steps."""
        slots = gpu_configs.FAMILIES[self.table.family].multiprocessors * config.per_sm
        span = -(-steps // split_of(tiles, steps, slots))
        return max(1, -(-steps // span)) if span else 1, span


class Plan(NamedTuple):
    """A prepared kernel, its grid, the numbers among its arguments, and into how many parts its sums are cut."""
    kernel: Any
    grid: tuple
    numbers: tuple
    split: int = 1


def _problem(window: Window, n: int, c: int, k: int, dtype) -> Problem:
    _check_pixels(n, window.image)
    _check_pixels(n, window.out)
    return Problem(window, n, c, k, dtype, kind_of(dtype), gpu_configs.current())


def _check_pixels(n: int, size: tuple[int, int]):
    if n * math.prod(size) >= 2**31:
        raise ShapeError(f"convolution: wants fewer than 2**31 pixels in all images, got {n} of {size}")


def _dense(x: DeviceArray | None) -> DeviceArray | None:
    return x if x is None or x.is_contiguous else contiguous_copy(x)


def _is_depthwise(window: Window, c: int, k: int) -> bool:
    return window.groups == c == k and c > 1


def _is_product(window: Window) -> bool:
    """Whether the convolution is one matrix product over all pixels."""
    return window.is_pointwise and window.out == window.image and window.groups == 1


def _pixels_of(x: DeviceArray) -> DeviceArray:
    """(N, C, H, W) -> (N * H * W, C), dense."""
    n, c, h, w = x.shape
    _check_pixels(n, (h, w))
    return channels_last(x).view((n * h * w, c), (c, 1))


def _image_of(pixels: DeviceArray, n: int, size: tuple[int, int]) -> DeviceArray:
    """The reverse."""
    shape = n, *size, pixels.shape[1]
    return channels_first(pixels.view(shape, cuda.contiguous_strides(shape)))


def _rows_plan(it: Problem, after: Epilogue, lane: int) -> Plan:
    (h, w), (p, q), s, m = it.window.image, it.window.out, it.window.kernel[1], it.pixels
    config = it.config("conv_rows", m, it.k, s * lane, 1)
    dk = divisor(16 // it.dtype.itemsize, it.k)
    constants = it.constants
    del constants["DW"]
    kernel = cuda.prepare(fprop_rows, DK=dk, C=lane, STAGES=after.stages,
                          BC=max(16, triton.next_power_of_2(s * lane)), **it.options(config), **constants)
    grid = (-(-m // config.BM) * -(-it.k // config.BN),)
    return Plan(kernel, grid, (m, h, w, it.k // dk, p, q, *magic(p * q), *magic(q)))


def _forward_plan(it: Problem, after: Epilogue, has_matrix: bool) -> Plan:
    window, m, cg, kg = it.window, it.pixels, it.c // it.window.groups, it.k // it.window.groups
    taps, groups, (p, q) = math.prod(window.kernel), window.groups, window.out
    heavy = has_matrix or len(after.stages) > 2       # an epilogue that takes many registers
    config = it.config("conv_forward", m, kg, taps * cg, groups, *["matrix"] * heavy)
    bc = min(config.BK, max(16, triton.next_power_of_2(cg)))
    steps = taps * -(-cg // bc)
    tiles = -(-m // config.BM) * -(-kg // config.BN)
    split, span = it.cut(config, tiles * groups, steps)
    kernel = cuda.prepare(fprop, EVEN=cg % bc == 0, PADDED=max(window.padding) > 0, SPLIT=split > 1,
                          STAGES=after.stages if split == 1 else NOTHING.stages, BC=bc,
                          SUB=config.sub if config.BN >= 32 else 1, **it.options(config), **it.divisors, **it.constants)
    numbers = m, *window.image, *it.channels[:2], p, q, *it.channels[2:], *magic(p * q), *magic(q), steps, span
    return Plan(kernel, (tiles, groups, split), numbers, split)


def _run(plan: Plan, x, w, y, after: Epilogue):
    """Launches it, for a dense result y through an epilogue, and the sum of the parts."""
    if plan.split == 1:
        plan.kernel(plan.grid, x, w, y, after.operands, *plan.numbers)
        return
    k, parts = y.shape[3], _parts_for(y, plan.split)
    m, dk = y.size // k, divisor(16 // y.itemsize, k)
    plan.kernel(plan.grid, x, w, parts, (), *plan.numbers)
    cuda.launch(add_parts, (-(-m // ROWS), -(-k // COLUMNS)), parts, y, after.operands, m, k // dk, plan.split, DN=dk,
                STAGES=after.stages, BM=ROWS, BN=COLUMNS)


def _depthwise_plan(it: Problem, after: Epilogue, back: bool) -> Plan:
    """back: the input gradient, which walks over the image and reads the result."""
    (h, w), (p, q), c = it.window.image, it.window.out, it.c
    read, written = ((p, q), (h, w)) if back else ((h, w), (p, q))
    # 8 values a thread, of float64 4
    bc, dc = min(32 if it.kind == "double" else 64, triton.next_power_of_2(c)), divisor(16 // it.dtype.itemsize, c)
    m = it.n * math.prod(written)
    kernel = cuda.prepare(depthwise, DC=dc, STAGES=after.stages, BACK=back, BM=16, BC=bc, maxnreg=168,
                          **it.constants)          # left to itself, the assembler spills 8 bytes for a fourth program
    places = *magic(math.prod(written)), *magic(written[1])
    numbers = m, *read, c // dc, *written, *places, math.prod(it.window.kernel)
    return Plan(kernel, (-(-m // 16), -(-c // bc)), numbers)


def _run_depthwise(it: Problem, x, w, y, after: Epilogue, back: bool):
    """x and y dense NHWC, w (C, 1, R, S); back: x is dy, y is dx."""
    plan = _depthwise_plan(it, after, back)
    w = contiguous_copy(w.view((*w.shape[2:], it.c), (*w.strides[2:], w.strides[0])))
    plan.kernel(plan.grid, x, w, y, after.operands, *plan.numbers)


def _convolution(input, weight, window: Window, after: Epilogue, has_matrix: bool = False) -> DeviceArray:
    """(N, K, P, Q) in NHWC memory."""
    (p, q), n, k, c = window.out, input.shape[0], weight.shape[0], input.shape[1]
    if _is_product(window) and c and not rows_of(window, c):
        x, w = _pixels_of(input), _pixels_of(weight)
        return _image_of(multiply(x, w.view((c, k), (1, c)), (x.shape[0], k), after, has_matrix=has_matrix), n, (p, q))
    y = cuda.empty((n, p, q, k), input.dtype, input.device)
    if not y.size:
        return channels_first(y)
    if _is_depthwise(window, c, k):
        it = _problem(window, n, c, k, input.dtype)
        _run_depthwise(it, channels_last(input), weight, y, after, False)
        return channels_first(y)
    groups, (window, merged) = window.groups, merge_groups(window, c)
    it, lanes = _problem(window, n, c, k, input.dtype), rows_of(window, c)
    if lanes:
        plan = _rows_plan(it, after, lanes)
        _run(plan, lay_image(input, lanes), lay_weight(weight, groups, merged, lanes), y, after)
    else:
        lanes = lanes_of(window, c, input.itemsize)
        plan = _forward_plan(it._replace(c=lanes), after, has_matrix)
        weight = lay_weight(weight, groups, merged, lanes // window.groups)
        _run(plan, lay_image(input, lanes), weight, y, after)
    return channels_first(y)


@cuda.remembered
def conv2d(input, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    window = contract.conv2d_window("conv2d", input, weight, bias, stride, padding, dilation, groups)
    return _convolution(input, weight, window, biased(_dense(bias)))


def _norm_act(bias, mean, var, weight, norm_bias, residual, relu: bool, eps: float) -> Epilogue:
    """The stages of conv2d_norm_act, without those that are not wanted."""
    stages: list = [(add_row, bias)]
    if mean is not None and weight is not None and norm_bias is not None:
        stages.append((normalize, (mean, var, weight, norm_bias, bits_of(eps))))
    elif mean is not None:
        stages += [(standardize, (mean, var, bits_of(eps))), (scale_row, weight), (add_row, norm_bias)]
    stages.append((add_matrix, residual))
    stages = [pair for pair in stages if pair[1] is not None]
    return epilogue(*stages, *[(scalar_gpu.relu, None)] * relu)


@cuda.remembered
def conv2d_norm_act(input, weight, bias=None, mean=None, var=None, norm_weight=None, norm_bias=None, residual=None,
                    relu=False, eps=1e-5, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    window = contract.norm_act_window(input, weight, bias, mean, var, norm_weight, norm_bias, residual, stride,
                                      padding, dilation, groups)
    vectors = (_dense(v) for v in (bias, mean, var, norm_weight, norm_bias))
    after = _norm_act(*vectors, None if residual is None else channels_last(residual), relu, eps)
    return _convolution(input, weight, window, after, residual is not None)


def _input_grad_plan(it: Problem, after: Epilogue, back: bool) -> Plan:
    window, cg, kg = it.window, it.c // it.window.groups, it.k // it.window.groups
    (h, w), (sh, sw), (p, q), groups = window.image, window.stride, window.out, window.groups
    high, wide = -(-h // sh), -(-w // sw)
    m, classes = it.n * high * wide, sh * sw
    config = it.config("conv_input_grad", m, cg, kg * math.prod(window.kernel), classes * groups)
    bk = min(config.BK, max(16, triton.next_power_of_2(kg)))
    taps = [stride // math.gcd(stride, d) for stride, d in zip(window.stride, window.dilation, strict=True)]
    most = math.prod(-(-size // step) for size, step in zip(window.kernel, taps, strict=True)) * -(-kg // bk)
    tiles = -(-m // config.BM) * -(-cg // config.BN)
    split, span = it.cut(config, tiles * classes * groups, most)
    kernel = cuda.prepare(dgrad, RSTEP=taps[0], SSTEP=taps[1], BACK=back, EVEN=kg % bk == 0, SPLIT=split > 1, BK=bk,
                          STAGES=after.stages if split == 1 else NOTHING.stages, **it.options(config),
                          **it.divisors, **it.constants)
    numbers = it.n, h, w, *it.channels[:2], p, q, *it.channels[2:], *magic(high * wide), *magic(wide), span
    return Plan(kernel, (tiles, classes, groups * split), numbers, split)


def _lies_well(it: Problem, weight) -> bool:
    """Whether the input gradient reads a weight (K, R, S, Cg) as it lies, or else as (C, R, S, Kg).

    Tensor cores take tf32 only along the dimension that is summed over, and halves either way; without tensor cores,
    the first layout takes 32 registers less.
    """
    if min(it.divisors.values()) * it.dtype.itemsize < 16 or it.kind.startswith("tf32"):
        return False
    return it.kind != "half" or turned(weight).is_contiguous


def _input_gradient(dy, weight, bias, window: Window):
    """dx (N, C, H, W) + bias (C,): what conv2d_input_grad and conv_transpose2d share."""
    (h, w), n, groups = window.image, dy.shape[0], window.groups
    c, k = weight.shape[1] * groups, weight.shape[0]
    after = biased(_dense(bias))
    if _is_product(window) and k:
        pixels = _pixels_of(dy)
        return _image_of(multiply(pixels, _pixels_of(weight), (n * h * w, c), after), n, (h, w))
    dx = cuda.empty((n, h, w, c), dy.dtype, dy.device)
    if not dx.size:
        return channels_first(dx)
    if _is_depthwise(window, c, k):
        _run_depthwise(_problem(window, n, c, k, dy.dtype), channels_last(dy), weight, dx, after, True)
        return channels_first(dx)
    window, merged = merge_groups(window, c)
    it = _problem(window, n, c, k, dy.dtype)
    back = merged > 1 or not _lies_well(it, weight)
    lanes = lanes_of(window, k, dy.itemsize) if back else k
    weight = lay_weight(weight, groups, merged, (lanes if back else c) // window.groups, back)
    plan = _input_grad_plan(it._replace(k=lanes), after, back)
    _run(plan, lay_image(dy, lanes), weight, dx, after)
    return channels_first(dx)


@cuda.remembered
def conv2d_input_grad(grad, weight, size, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    window = contract.input_grad_window("conv2d_input_grad", grad, weight, size, stride, padding, dilation, groups)
    return _input_gradient(grad, weight, None, window)


@cuda.remembered
def conv_transpose2d(input, weight, bias=None, stride=(1, 1), padding=(0, 0), output_padding=(0, 0), groups=1,
                     dilation=(1, 1)):
    window = contract.transpose_window(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return _input_gradient(input, weight, bias, window)


@cuda.remembered
def conv2d_weight_grad(grad, input, kernel, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    window = contract.weight_grad_window("conv2d_weight_grad", grad, input, kernel, stride, padding, dilation, groups)
    (r, s), c, k = window.kernel, input.shape[1], grad.shape[1]
    m = grad.shape[0] * math.prod(window.out)
    if not m or not r * s * c * k:
        dw = cuda.empty((k, c // groups, r, s), grad.dtype, grad.device)
        cuda.fill_bytes(dw, 0)
        return dw
    n, size = grad.shape[0], grad.itemsize
    if _is_depthwise(window, c, k):
        it = _problem(window, n, c, k, grad.dtype)
        dw = _sum_depthwise(it, channels_last(grad), channels_last(input))
        return contiguous_copy(dw.view((c, 1, r, s), (1, 1, s * c, c)))
    window, merged = merge_groups(window, c)
    if _is_product(window) and merged == 1:
        dw = multiply(_pixels_of(grad).view((k, m), (1, k)), _pixels_of(input), (k, c))
        return dw.view((k, c, 1, 1), (c, 1, 1, 1))
    rows, lanes = lanes_of(window, k, size), rows_of(window, c) or lanes_of(window, c, size)
    dw = cuda.empty((rows, r, s, lanes // window.groups), grad.dtype, grad.device)
    plan = _weight_grad_plan(_problem(window, n, lanes, rows, grad.dtype))
    parts = _parts_for(dw, plan.split)
    plan.kernel(plan.grid, lay_image(grad, rows), lay_image(input, lanes), parts, *plan.numbers)
    if dw.shape == (k, r, s, c // groups):                      # nothing padded or merged: as channels-last weights lie
        return channels_first(_added(parts, dw))
    return _of_groups(_added(parts, dw), (k, c // groups), window.groups, merged)


def _of_groups(dw: DeviceArray, channels: tuple[int, int], groups: int, merged: int) -> DeviceArray:
    """(K, Cg, R, S) from (lanes >= K, R, S, lanes of a row): of merged groups, the blocks on the diagonal."""
    (_, r, s, _), (row, sr, ss, _), (k, cg) = dw.shape, dw.strides, channels
    kg = k // (groups * merged)
    blocks = dw.view((groups, merged, kg, cg, r, s), (merged * kg * row, kg * row + cg, row, 1, sr, ss))
    return contiguous_copy(blocks).view((k, cg, r, s), cuda.contiguous_strides((k, cg, r, s)))


def _weight_grad_plan(it: Problem) -> Plan:
    window, m, cg, kg = it.window, it.pixels, it.c // it.window.groups, it.k // it.window.groups
    taps, groups, (p, q) = math.prod(window.kernel), window.groups, window.out
    cols = cg if cg < 16 else 0
    width, copies = (taps * cg, 1) if cols else (cg, taps)
    # the cut over pixels makes more programs of the same tile, each of 4 steps and more
    batch = copies * groups * min(64, max(1, m // 256))
    config = it.config("conv_weight_grad", kg, width, m, batch, *["columns"] * bool(cols))
    tiles = -(-kg // config.BM) * -(-width // config.BN) * copies
    split, span = it.cut(config, tiles * groups, -(-m // config.BK))
    kernel = cuda.prepare(wgrad, COLS=cols, BK=config.BK, **it.options(config), **it.divisors, **it.constants)
    numbers = m, *window.image, *it.channels[:2], p, q, *it.channels[2:], *magic(p * q), *magic(q), span * config.BK
    return Plan(kernel, (tiles, split, groups), numbers, split)


def _sum_depthwise(it: Problem, dy, x) -> DeviceArray:
    """(R, S, C) from dense dy (N, P, Q, C) and x (N, H, W, C)."""
    (r, s), (p, q), c, m = it.window.kernel, it.window.out, it.c, it.pixels
    bc, dc = min(64, max(16, triton.next_power_of_2(c))), divisor(16 // it.dtype.itemsize, c)
    split = split_of(r * s * -(-c // bc), -(-m // 32))
    span = -(-m // (split * 32)) * 32
    dw = cuda.empty((r, s, c), x.dtype, x.device)
    parts = _parts_for(dw, -(-m // span))
    cuda.launch(depthwise_wgrad, (r * s, -(-m // span), -(-c // bc)), dy, x, parts, m, *it.window.image, c // dc, p, q,
                span, *magic(p * q), *magic(q), DC=dc, BM=32, BC=bc, **it.constants)
    return _added(parts, dw)


def _parts_for(total: DeviceArray, split: int) -> DeviceArray:
    """Room for partial sums: `total` itself if there is but one part."""
    wide = float64 if total.dtype == float64 else float32
    return total if split == 1 else cuda.empty((split, *total.shape), wide, total.device)


def _added(parts: DeviceArray, total: DeviceArray) -> DeviceArray:
    """total = sum of parts along the first dimension, in order."""
    return total if parts is total else sum_of_parts(parts, total)
