"""How convolution kernels want arrays to lie: NHWC and KRSC, padded for wide loads, small groups taken together."""
import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops.cuda import DeviceArray
from zoo.ops.matmul_gpu import divisor
from zoo.ops.pixels_gpu import divide, magic
from zoo.ops.pointwise_gpu import contiguous_copy
from zoo.ops.window import Window

ELEMENTS = 2048             # of the block that a program lays: 16 a thread


@triton.jit(do_not_specialize=["rows", "T", "LD", "INNER", "CHANNELS", "GROUPS", "mul", "shift"])
def lay(x, y, rows, T, LD, INNER, CHANNELS, GROUPS, mul, shift, so, si, st, sl,
        DL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """y (A, T, LD*DL): CHANNELS channels of x in each row, from channel a // INNER % GROUPS * CHANNELS on, else zeros.

    x: channel c of row a at place t lies at a // INNER * so + a % INNER * si + t * st + c * sl. rows = A * T, and the
    magic numbers are T's. Grid: (ceil(A * T / BM), ceil(LD*DL / BN)).
    """
    L = LD * DL
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    lane = tl.program_id(1) * BN + tl.arange(0, BN)
    a = divide(i, mul, shift)
    outer = a // INNER
    first = outer % GROUPS * CHANNELS
    c = lane[None, :] - first[:, None]
    inside = (i < rows)[:, None] & (lane < L)[None, :]
    place = outer.to(tl.int64) * so + (a - outer * INNER).to(tl.int64) * si + (i - a * T).to(tl.int64) * st
    px = x + (place - first.to(tl.int64) * sl)[:, None] + (lane.to(tl.int64) * sl)[None, :]
    values = tl.load(px, mask=inside & (c >= 0) & (c < CHANNELS), other=0)
    tl.store(y + i.to(tl.int64)[:, None] * L + lane[None, :], values, mask=inside)


def _laid(x: DeviceArray, shape: tuple, inner: int, channels: int, groups: int, strides: tuple) -> DeviceArray:
    """Dense (A, H, W, lanes); x's strides outside and inside of a row's number, of places and of channels."""
    y, (a, h, w, lanes) = cuda.empty(shape, x.dtype, x.device), shape
    bn, dl = min(64, triton.next_power_of_2(lanes)), divisor(16 // x.itemsize, lanes)
    bm = ELEMENTS // bn
    cuda.launch(lay, (-(-a * h * w // bm), -(-lanes // bn)), x, y, a * h * w, h * w, lanes // dl, inner, channels,
                groups, *magic(h * w), *strides, DL=dl, BM=bm, BN=bn, maxnreg=128)       # left to itself it spills
    return y


def channels_last(x: DeviceArray) -> DeviceArray:
    """(A, B, H, W) -> dense (A, H, W, B): of images NHWC, of weights KRSC."""
    x = turned(x)
    return x if x.is_contiguous else contiguous_copy(x)


def turned(x: DeviceArray) -> DeviceArray:
    """(A, B, H, W) -> (A, H, W, B), as a view."""
    return x.view(tuple(x.shape[d] for d in (0, 2, 3, 1)), tuple(x.strides[d] for d in (0, 2, 3, 1)))


def channels_first(x: DeviceArray) -> DeviceArray:
    """The reverse, as a view."""
    return x.view(tuple(x.shape[d] for d in (0, 3, 1, 2)), tuple(x.strides[d] for d in (0, 3, 1, 2)))


def _stepping(x: DeviceArray) -> tuple[DeviceArray, int]:
    """x (A, B, H, W), copied unless its places are evenly spaced, and the space between them."""
    h, w = x.shape[2:]
    if h > 1 and w > 1 and x.strides[2] != w * x.strides[3]:
        x = contiguous_copy(x)
    return x, x.strides[3] if w > 1 else x.strides[2]


def lay_image(x: DeviceArray, lanes: int) -> DeviceArray:
    """(N, C, H, W) -> dense (N, H, W, lanes), zeros in the channels from C on."""
    n, c, h, w = x.shape
    if lanes == c:
        return channels_last(x)
    x, step = _stepping(x)
    return _laid(x, (n, h, w, lanes), 1, c, 1, (x.strides[0], 0, step, x.strides[1]))


def lay_weight(x: DeviceArray, groups: int, merged: int, lanes: int, back: bool = False) -> DeviceArray:
    """(K, Cg, R, S) -> dense (K, R, S, lanes); back: (C, R, S, lanes), where the lanes are those of the result.

    merged: how many of the groups are taken together; each row then has zeros in the lanes of the other ones.
    """
    k, cg, r, s = x.shape
    if not back and merged == 1 and lanes == cg and turned(x).is_contiguous:
        return turned(x)
    x, step = _stepping(x)
    kg, (sk, sc) = k // groups, x.strides[:2]
    if back:
        return _laid(x, (groups * cg, r, s, lanes), cg, kg, merged, (kg * sk, sc, step, sk))
    return _laid(x, (k, r, s, lanes), kg, cg, merged, (kg * sk, sk, step, sc))


def merge_groups(window: Window, c: int) -> tuple[Window, int]:
    """The window with groups of few channels taken together, and how many: the weight is then block-diagonal.

    4 channels are 8 bytes of a row of memory, a quarter of the least tile of a tensor core, and a program each: 32 of
    them are 64 bytes and one wide load a thread. What is multiplied by zeros costs less (predicted: 15 GFLOP, 40 us, in
    a layer of ResNeXt-50 with 64 pictures, whose reads take twice as long). An infinite value of x makes its neighbours
    NaN, as in Winograd's algorithm.
    """
    groups, each = window.groups, c // window.groups
    if groups == 1 or not 0 < each <= 16:
        return window, 1
    count = next(n for n in range(1, groups + 1) if groups % n == 0 and (n * each >= 32 or n == groups))
    return window._replace(groups=groups // count), count


def lanes_of(window: Window, c: int, itemsize: int) -> int:
    """To how many channels c are padded to be read 16 bytes at a time; c if they are, or if it is not worth it.

    A copy reads and writes an image once; without it every tap reads each value with an instruction of its own.
    """
    wide = 16 // itemsize
    return c if window.groups > 1 or window.kernel == (1, 1) else -(-c // wide) * wide


def rows_of(window: Window, c: int) -> int:
    """Channels to which few are padded, so that whole rows of a window are read in wide loads; 0: not worth it."""
    lane = max(4, triton.next_power_of_2(c))
    few = window.groups == 1 and 0 < c < 16 and window.dilation[1] == 1
    return lane if few and window.kernel[1] * lane <= 128 else 0
