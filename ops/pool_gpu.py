"""Pooling kernels, for 1 to 3 dimensions and both memory orders. Gradients gather as well, from the places that see an
element: no atomics, the same bits in every run.

An array is (A, D, H, W, B) here: NHWC memory is A = N and B = C, NCHW is A = N * C and B = 1, missing dimensions are 1.
A program takes ROWS positions (a, d, h, w) of what it writes, and COLS of B.
"""
import math

import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import pool as contract
from zoo.ops.cuda import DeviceArray, contiguous_strides
from zoo.ops.dtypes import float64, int64
from zoo.ops.layout_gpu import EDGE
from zoo.ops.pixels_gpu import divide, magic
from zoo.ops.pointwise_gpu import contiguous_copy

# not B: a multiple of 16 is read 16 bytes at a time
SIZES = ["rows", "D", "H", "W", "T", "P", "Q", "m0", "s0", "m1", "s1", "m2", "s2"]


@triton.jit
def seen(p, k, n, places, K: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, DIL: tl.constexpr,
         ADAPTIVE: tl.constexpr, BACK: tl.constexpr):
    """Along one dimension of n elements and `places` windows: (element that place p sees through tap k, is there one);
    BACK: (the k-th place that sees element p, is there one)."""
    if ADAPTIVE:
        if BACK:
            i = p * places // n + k
            return i, i < ((p + 1) * places + n - 1) // n
        else:
            i = p * n // places + k
            return i, i < ((p + 1) * n + places - 1) // places
    else:
        if BACK:
            far = p + PAD - k * DIL
            i = far // STRIDE
            return i, (far >= 0) & (i * STRIDE == far) & (i < places)
        else:
            i = p * STRIDE - PAD + k * DIL
            return i, (i >= 0) & (i < n)


@triton.jit
def extent(p, n, places, K: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, ADAPTIVE: tl.constexpr,
           INCLUDE: tl.constexpr):
    """How many elements the window at place p has along one dimension: in the image, or INCLUDE its padding."""
    if ADAPTIVE:
        return ((p + 1) * n + places - 1) // places - p * n // places
    else:
        start = p * STRIDE - PAD
        if INCLUDE:
            return tl.minimum(start + K, n + PAD) - start
        else:
            return tl.minimum(start + K, n) - tl.maximum(start, 0)


@triton.jit
def position(i, T, P, Q, m0, s0, m1, s1, m2, s2, WIDE: tl.constexpr):
    """Row number -> (a, t, p, q), through the magic numbers of T * P * Q, P * Q and Q; WIDE: t, p, q in 64 bits."""
    a = divide(i, m0, s0)
    i = i - a * (T * P * Q)
    t = divide(i, m1, s1)
    i = i - t * (P * Q)
    p = divide(i, m2, s2)
    q = i - p * Q
    if WIDE:
        t, p, q = t.to(tl.int64), p.to(tl.int64), q.to(tl.int64)
    return a, t, p, q


@triton.jit(do_not_specialize=SIZES)
def max_forward(x, y, places, rows, B, D, H, W, T, P, Q, m0, s0, m1, s1, m2, s2,
                KT: tl.constexpr, KR: tl.constexpr, KS: tl.constexpr, ST: tl.constexpr, SH: tl.constexpr,
                SW: tl.constexpr, PT: tl.constexpr, PH: tl.constexpr, PW: tl.constexpr, DT: tl.constexpr,
                DH: tl.constexpr, DW: tl.constexpr, ADAPTIVE: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
                ROWS: tl.constexpr, COLS: tl.constexpr):
    """x (A, D, H, W, B) -> y, places (A, T, P, Q, B): the first largest, or last NaN, and its tap in the window;
    ADAPTIVE: its flat place in (D, H, W).

    Magic numbers of T * P * Q, P * Q and Q. Grid: (ceil(rows / ROWS), ceil(B / COLS)), rows = A * T * P * Q.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)
    a, t, p, q = position(row, T, P, Q, m0, s0, m1, s1, m2, s2, WIDE)
    mask = (row < rows)[:, None] & (col < B)[None, :]
    best = tl.full((ROWS, COLS), float("-inf"), ACC)
    where = tl.full((ROWS, COLS), -1, tl.int32)
    for tap in range(KT * KR * KS):
        d, in_d = seen(t, tap // (KR * KS), D, T, KT, ST, PT, DT, ADAPTIVE, False)
        h, in_h = seen(p, tap // KS % KR, H, P, KR, SH, PH, DH, ADAPTIVE, False)
        w, in_w = seen(q, tap % KS, W, Q, KS, SW, PW, DW, ADAPTIVE, False)
        ok = mask & (in_d & in_h & in_w)[:, None]
        place = (d * H + h) * W + w
        v = tl.load(x + (a.to(tl.int64) * (D * H * W) + place)[:, None] * B + col[None, :], mask=ok, other=0).to(ACC)
        take = ok & ((v > best) | (v != v) | (where < 0))
        best = tl.where(take, v, best)
        if ADAPTIVE:
            where = tl.where(take, place[:, None].to(tl.int32), where)
        else:
            where = tl.where(take, tap, where)
    out = row.to(tl.int64)[:, None] * B + col[None, :]
    tl.store(y + out, best.to(y.dtype.element_ty), mask=mask)
    tl.store(places + out, tl.maximum(where, 0).to(places.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=SIZES)
def places_of_taps(taps, indices, rows, B, D, H, W, T, P, Q, m0, s0, m1, s1, m2, s2,
                   KT: tl.constexpr, KR: tl.constexpr, KS: tl.constexpr, ST: tl.constexpr, SH: tl.constexpr,
                   SW: tl.constexpr, PT: tl.constexpr, PH: tl.constexpr, PW: tl.constexpr, DT: tl.constexpr,
                   DH: tl.constexpr, DW: tl.constexpr, ADAPTIVE: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
                   ROWS: tl.constexpr, COLS: tl.constexpr):
    """taps (A, T, P, Q, B) -> indices (A, T, P, Q, B), int64: flat places in (D, H, W), 0 outside of it.

    Magic numbers and grid as `max_forward`.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)
    a, t, p, q = position(row, T, P, Q, m0, s0, m1, s1, m2, s2, WIDE)
    mask = (row < rows)[:, None] & (col < B)[None, :]
    at = row.to(tl.int64)[:, None] * B + col[None, :]
    tap = tl.load(taps + at, mask=mask, other=0).to(tl.int32)
    d, in_d = seen(t[:, None], tap // (KR * KS), D, T, KT, ST, PT, DT, ADAPTIVE, False)
    h, in_h = seen(p[:, None], tap // KS % KR, H, P, KR, SH, PH, DH, ADAPTIVE, False)
    w, in_w = seen(q[:, None], tap % KS, W, Q, KS, SW, PW, DW, ADAPTIVE, False)
    place = tl.where(in_d & in_h & in_w, (d * H + h) * W + w, 0)
    tl.store(indices + at, place.to(tl.int64), mask=mask)


@triton.jit(do_not_specialize=[*SIZES, "divisor"])
def gather_sum(x, places, y, rows, B, D, H, W, T, P, Q, m0, s0, m1, s1, m2, s2, divisor,
               KT: tl.constexpr, KR: tl.constexpr, KS: tl.constexpr, ST: tl.constexpr, SH: tl.constexpr,
               SW: tl.constexpr, PT: tl.constexpr, PH: tl.constexpr, PW: tl.constexpr, DT: tl.constexpr,
               DH: tl.constexpr, DW: tl.constexpr, NT: tl.constexpr, NR: tl.constexpr, NS: tl.constexpr,
               ADAPTIVE: tl.constexpr, WIDE: tl.constexpr, BACK: tl.constexpr, INCLUDE: tl.constexpr,
               ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Means and both gradients. Forward: x (A, D, H, W, B) -> y (A, T, P, Q, B), sums of the windows over their sizes.
    BACK: x is the gradient (A, T, P, Q, B), y (A, D, H, W, B) the sum over the places that see an element, each over
    its window's size; with `places` (A, T, P, Q, B), not None, as `max_forward` gives them, only of those that point at
    the element, undivided.

    NT * NR * NS taps or places to look at. divisor: instead of the sizes, if not 0. Magic numbers of y's sizes.
    Grid: (ceil(rows / ROWS), ceil(B / COLS)), rows those of y.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)
    if BACK:
        a, t, p, q = position(row, D, H, W, m0, s0, m1, s1, m2, s2, WIDE)
        images = a.to(tl.int64) * (T * P * Q)
    else:
        a, t, p, q = position(row, T, P, Q, m0, s0, m1, s1, m2, s2, WIDE)
        images = a.to(tl.int64) * (D * H * W)
    mask = (row < rows)[:, None] & (col < B)[None, :]
    here = (t * H + p) * W + q
    acc = tl.zeros((ROWS, COLS), ACC)
    for tap in range(NT * NR * NS):
        d, in_d = seen(t, tap // (NR * NS), D, T, KT, ST, PT, DT, ADAPTIVE, BACK)
        h, in_h = seen(p, tap // NS % NR, H, P, KR, SH, PH, DH, ADAPTIVE, BACK)
        w, in_w = seen(q, tap % NS, W, Q, KS, SW, PW, DW, ADAPTIVE, BACK)
        ok = mask & (in_d & in_h & in_w)[:, None]
        if BACK:
            at = (images + (d * P + h) * Q + w)[:, None] * B + col[None, :]
        else:
            at = (images + (d * H + h) * W + w)[:, None] * B + col[None, :]
        if places is not None:
            if ADAPTIVE:
                ok = ok & (tl.load(places + at, mask=ok, other=0) == here[:, None])
            else:
                ok = ok & (tl.load(places + at, mask=ok, other=0).to(tl.int32) == tap)
        v = tl.load(x + at, mask=ok, other=0).to(ACC)
        if BACK and places is None:
            v = v / window(d, h, w, D, H, W, T, P, Q, divisor, KT, KR, KS, ST, SH, SW, PT, PH, PW, ADAPTIVE, INCLUDE,
                           ACC)
        acc += tl.where(ok, v, 0)
    if not BACK:
        acc = acc / window(t, p, q, D, H, W, T, P, Q, divisor, KT, KR, KS, ST, SH, SW, PT, PH, PW, ADAPTIVE, INCLUDE,
                           ACC)
    tl.store(y + row.to(tl.int64)[:, None] * B + col[None, :], acc.to(y.dtype.element_ty), mask=mask)


@triton.jit
def window(t, p, q, D, H, W, T, P, Q, divisor, KT: tl.constexpr, KR: tl.constexpr, KS: tl.constexpr, ST: tl.constexpr,
           SH: tl.constexpr, SW: tl.constexpr, PT: tl.constexpr, PH: tl.constexpr, PW: tl.constexpr,
           ADAPTIVE: tl.constexpr, INCLUDE: tl.constexpr, ACC: tl.constexpr):
    """(ROWS, 1) what the sum of the window at place (t, p, q) is divided by."""
    size = (extent(t, D, T, KT, ST, PT, ADAPTIVE, INCLUDE) * extent(p, H, P, KR, SH, PH, ADAPTIVE, INCLUDE)
            * extent(q, W, Q, KS, SW, PW, ADAPTIVE, INCLUDE))
    return tl.where(divisor != 0, divisor, size).to(ACC)[:, None]


# -- launches

def _three(values, fill: int) -> tuple:
    """One number a dimension -> (depth, height, width)."""
    return (fill,) * (3 - len(values)) + tuple(values)


def _dense(x: DeviceArray) -> tuple[DeviceArray, bool]:
    """(x or a dense copy of it, does it lie as NHWC)."""
    order = (0, *range(2, x.ndim), 1)
    last = x.view(tuple(x.shape[d] for d in order), tuple(x.strides[d] for d in order))
    if x.shape[1] > 1 and last.is_contiguous and not x.is_contiguous:
        return x, True
    return (x if x.is_contiguous else contiguous_copy(x)), False


def _beside(x: DeviceArray, last: bool, spatial, dtype) -> DeviceArray:
    """A new array (N, C, *spatial), as NHWC or NCHW."""
    n, c = x.shape[:2]
    y = cuda.empty((n, c, *spatial), dtype, x.device)
    if not last:
        return y
    strides = contiguous_strides((n, *spatial, c))
    return y.view(y.shape, (strides[0], strides[-1], *strides[1:-1]))


def _in_order(x: DeviceArray, last: bool) -> DeviceArray:
    """x in the memory order of another array."""
    y, is_last = _dense(x)
    if is_last == last or x.shape[1] == 1 or math.prod(x.shape[2:]) == 1:
        return y
    if not last:
        return contiguous_copy(x)
    from zoo.ops.pointwise_gpu import copy_into
    return copy_into(_beside(x, True, x.shape[2:], x.dtype), x)


def _run(kernel, pointers, x: DeviceArray, last: bool, image, out, written, tail, constants: dict):
    """Launches over the positions of `written` (D, H, W), image (D, H, W) and out (T, P, Q) being the two sides.

    Positions are numbered in 32 bits: more of them take several launches, of some images each.
    """
    n, c = x.shape[:2]
    a, b = (n, c) if last else (n * c, 1)
    image, out, written = _three(image, 1), _three(out, 1), _three(written, 1)
    each = math.prod(written)
    if not a * each * b:
        return
    cols = min(64, triton.next_power_of_2(b))
    block = 1024 // cols
    numbers = *image, *out, *magic(each), *magic(written[1] * written[2]), *magic(written[2]), *tail
    most = max(1, EDGE // each)
    for first in range(0, a, most):
        count = min(most, a - first)
        parts = pointers if count == a else [_images(p, first, count, a) for p in pointers]
        cuda.launch(kernel, (-(-count * each // block), -(-b // cols)), *parts, count * each, b, *numbers,
                    ACC=tl.float64 if x.dtype == float64 else tl.float32, ROWS=block, COLS=cols, **constants)


def _images(x: DeviceArray | None, first: int, count: int, images: int) -> DeviceArray | None:
    """`count` of so many images that lie one after the other, from one on."""
    if x is None:
        return x
    size = x.size // images
    return x.view((count, size), (size, 1), first * size)


def _regular(kernel, stride, padding, dilation) -> dict:
    names = "KT KR KS ST SH SW PT PH PW DT DH DW".split()
    values = *_three(kernel, 1), *_three(stride, 1), *_three(padding, 0), *_three(dilation, 1)
    return dict(zip(names, values, strict=True), ADAPTIVE=False, WIDE=False)


def _adaptive(image, out) -> dict:
    """Taps: the most elements that a window has along each dimension.

    A window's place is the quotient of a product that may need 64 bits: 480,000 samples to 10,000 do.
    """
    most = [_widest(n, m) for n, m in zip(image, out, strict=True)]
    wide = any((n + 1) * (m + 1) >= 2**31 for n, m in zip(image, out, strict=True))
    return {**_regular(most, (1,) * len(most), (0,) * len(most), (1,) * len(most)), "ADAPTIVE": True, "WIDE": wide}


def _widest(n: int, windows: int) -> int:
    """The size of the largest of so many adaptive windows over n elements."""
    return max((-(-(i + 1) * n // windows) - i * n // windows for i in range(windows)), default=1)


def _looks(constants: dict, image, out, back: bool) -> dict:
    """How many taps gather_sum looks at along each dimension, or places that may see an element."""
    most = [constants[k] for k in ("KT", "KR", "KS")]
    if back and constants["ADAPTIVE"]:
        most = [_widest(m, n) for n, m in zip(_three(image, 1), _three(out, 1), strict=True)]
    return dict(zip(("NT", "NR", "NS"), most, strict=True), BACK=back)


def _maxima(input, out, constants, dtype):
    x, last = _dense(input)
    values, places = _beside(x, last, out, x.dtype), _beside(x, last, out, dtype)
    _run(max_forward, (x, values, places), x, last, x.shape[2:], out, out, (), constants)
    return values, places


def _moved_back(grad, places, size, constants):
    grad, last = _dense(grad)
    dx, out = _beside(grad, last, size, grad.dtype), grad.shape[2:]
    _run(gather_sum, (grad, _in_order(places, last), dx), grad, last, size, out, size, (0,),
        {**constants, **_looks(constants, size, out, True), "INCLUDE": False})
    return dx


def _means(input, out, constants, include: bool, divisor: int):
    x, last = _dense(input)
    y = _beside(x, last, out, x.dtype)
    _run(gather_sum, (x, None, y), x, last, x.shape[2:], out, out, (divisor,),
        {**constants, **_looks(constants, x.shape[2:], out, False), "INCLUDE": include})
    return y


def _spread(grad, size, constants, include: bool, divisor: int):
    grad, last = _dense(grad)
    dx, out = _beside(grad, last, size, grad.dtype), grad.shape[2:]
    _run(gather_sum, (grad, None, dx), grad, last, size, out, size, (divisor,),
        {**constants, **_looks(constants, size, out, True), "INCLUDE": include})
    return dx


@cuda.remembered
def max_pool(input, kernel_size, stride, padding, dilation, ceil_mode):
    geometry = contract.pool_geometry("max_pool", input, kernel_size, stride, padding, dilation, ceil_mode)
    constants = _regular(kernel_size, stride, padding, dilation)
    return _maxima(input, geometry.out, constants, contract.tap_dtype(kernel_size))


@cuda.remembered
def tap_indices(taps, size, kernel_size, stride, padding, dilation):
    contract.grad_geometry("tap_indices", taps, size, kernel_size, stride, padding, dilation)
    taps, last = _dense(taps)
    out, constants = taps.shape[2:], _regular(kernel_size, stride, padding, dilation)
    indices = _beside(taps, last, out, int64)
    _run(places_of_taps, (taps, indices), taps, last, size, out, out, (), constants)
    return indices


@cuda.remembered
def max_pool_grad(grad, taps, size, kernel_size, stride, padding, dilation):
    contract.grad_geometry("max_pool_grad", grad, size, kernel_size, stride, padding, dilation)
    return _moved_back(grad, taps, size, _regular(kernel_size, stride, padding, dilation))


@cuda.remembered
def avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    spec = contract.avg_pool.check(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    constants = _regular(kernel_size, stride, padding, (1,) * len(kernel_size))
    return _means(input, spec.shape[2:], constants, count_include_pad, divisor_override or 0)


@cuda.remembered
def avg_pool_grad(grad, size, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    contract.grad_geometry("avg_pool_grad", grad, size, kernel_size, stride, padding, (1,) * len(kernel_size))
    constants = _regular(kernel_size, stride, padding, (1,) * len(kernel_size))
    return _spread(grad, size, constants, count_include_pad, divisor_override or 0)


@cuda.remembered
def adaptive_max_pool(input, output_size):
    contract.check_adaptive("adaptive_max_pool", input, output_size)
    return _maxima(input, output_size, _adaptive(input.shape[2:], output_size), int64)


@cuda.remembered
def adaptive_max_pool_grad(grad, indices, size):
    return _moved_back(grad, indices, size, _adaptive(size, grad.shape[2:]))


@cuda.remembered
def adaptive_avg_pool(input, output_size):
    contract.check_adaptive("adaptive_avg_pool", input, output_size)
    return _means(input, output_size, _adaptive(input.shape[2:], output_size), False, 0)


@cuda.remembered
def adaptive_avg_pool_grad(grad, size):
    return _spread(grad, size, _adaptive(size, grad.shape[2:]), False, 0)
