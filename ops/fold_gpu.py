"""Kernels of im2col and col2im: each element of the result gathers what belongs to it."""
import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import fold as contract
from zoo.ops.dtypes import float64
from zoo.ops.pixels_gpu import divide, magic, within
from zoo.ops.pointwise_gpu import contiguous_copy

BLOCK = 1024
SIZES = ["H", "W", "P", "Q", "mul", "shift"]


@triton.jit(do_not_specialize=SIZES)
def gather_columns(x, y, H, W, P, Q, mul, shift, R: tl.constexpr, S: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
                   TOP: tl.constexpr, LEFT: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr, BLOCK: tl.constexpr):
    """x (N * C, H, W) -> y (N * C, R * S, P * Q). Magic numbers of Q. Grid: (N * C * R * S, ceil(P * Q / BLOCK))."""
    line = tl.program_id(0).to(tl.int64)
    tap = (line % (R * S)).to(tl.int32)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    p = divide(i, mul, shift)
    h = p * SH - TOP + tap // S * DH
    w = (i - p * Q) * SW - LEFT + tap % S * DW
    inside = i < P * Q
    v = tl.load(x + line // (R * S) * (H * W) + h * W + w, mask=inside & within(h, H) & within(w, W), other=0)
    tl.store(y + line * (P * Q) + i, v, mask=inside)


@triton.jit(do_not_specialize=SIZES)
def gather_image(x, y, H, W, P, Q, mul, shift, R: tl.constexpr, S: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
                 TOP: tl.constexpr, LEFT: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr, ACC: tl.constexpr,
                 BLOCK: tl.constexpr):
    """x (N * C, R * S, P * Q) -> y (N * C, H, W), sums. Magic numbers of W. Grid: (N * C, ceil(H * W / BLOCK))."""
    image = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    h = divide(i, mul, shift)
    w = i - h * W
    acc = tl.zeros((BLOCK,), ACC)
    for tap in range(R * S):
        top, left = h + TOP - tap // S * DH, w + LEFT - tap % S * DW
        p, q = top // SH, left // SW
        ok = (i < H * W) & (top >= 0) & (left >= 0) & (p * SH == top) & (q * SW == left) & (p < P) & (q < Q)
        acc += tl.load(x + (image * (R * S) + tap) * (P * Q) + p * Q + q, mask=ok, other=0).to(ACC)
    tl.store(y + image * (H * W) + i, acc.to(y.dtype.element_ty), mask=i < H * W)


def _constants(window) -> dict:
    (r, s), (sh, sw), (dh, dw) = window.kernel, window.stride, window.dilation
    return dict(R=r, S=s, SH=sh, SW=sw, TOP=window.padding[0], LEFT=window.padding[1], DH=dh, DW=dw, BLOCK=BLOCK)


@cuda.remembered
def im2col(input, kernel_size, dilation, padding, stride):
    spec = contract.im2col.check(input, kernel_size, dilation, padding, stride)
    window = contract.im2col_window(input, kernel_size, dilation, padding, stride)
    x = input if input.is_contiguous else contiguous_copy(input)
    y, (p, q) = cuda.empty(spec.shape, spec.dtype, x.device), window.out
    grid = spec.shape[0] * spec.shape[1], -(-p * q // BLOCK)
    cuda.launch(gather_columns, grid, x, y, *window.image, p, q, *magic(q), **_constants(window))
    return y


@cuda.remembered
def col2im(input, output_size, kernel_size, dilation, padding, stride):
    spec = contract.col2im.check(input, output_size, kernel_size, dilation, padding, stride)
    window = contract.col2im_window(input, output_size, kernel_size, dilation, padding, stride)
    x = input if input.is_contiguous else contiguous_copy(input)
    y, (h, w) = cuda.empty(spec.shape, spec.dtype, x.device), window.image
    grid = spec.shape[0] * spec.shape[1], -(-h * w // BLOCK)
    cuda.launch(gather_image, grid, x, y, h, w, *window.out, *magic(w),
                ACC=tl.float64 if x.dtype == float64 else tl.float32, **_constants(window))
    return y
