"""Kernels of softmax and log_softmax: an array is (outer, n, inner) around the dimension, a line is n elements.

A tile holds whole lines where they fit; longer ones are read twice, with the running maximum and sum of each lane.
Where the dimension is not the last one, the lines of a tile lie side by side in memory. The length of a line comes
divided by a power of two, so that lines of 1000 are still read 16 bytes at a time (see matmul_gpu.py). Long lines are
cut where 16 bytes begin: of odd lengths, such as a vocabulary of 50257, only the first and last block is read in parts.
"""
import math

import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import softmax as contract
from zoo.ops.cuda import DeviceArray
from zoo.ops.dtypes import HALVES, float32
from zoo.ops.errors import KernelError
from zoo.ops.layout_gpu import EDGE, power_of_two
from zoo.ops.matmul_gpu import divisor
from zoo.ops.pointwise_gpu import TYPES, contiguous_copy, convert

WHOLE = 8192            # the longest line that is held in registers
TILE = 2048             # elements of a tile of several lines, or of a step along a longer one
LANES, STEPS = 1024, 4  # of a block of a longer line: lanes with a maximum and a sum, elements that one takes at a time


@triton.jit
def offsets(line, N, INNER):
    """Where lines begin: line = outer * INNER + inner."""
    line = line.to(tl.int64)
    return (line // INNER) * INNER * N + line % INNER


@triton.jit
def lines_at(LINES, ND, ID, DIV: tl.constexpr, SIDE: tl.constexpr, BL: tl.constexpr):
    """(Where this program's BL lines begin, which of them there are, N, the step along a line).

    SIDE: lines lie side by side, ID*DIV of them in each of LINES planes; a tile is of one plane, so that Triton sees
    what is dense in memory. Else LINES lines of ND*DIV elements follow each other.
    """
    if SIDE:
        inner = ID * DIV
        across = tl.cdiv(inner, BL)
        q = tl.program_id(0) % across * BL + tl.arange(0, BL)
        return (tl.program_id(0) // across).to(tl.int64) * ND * inner + q, q < inner, ND, inner
    else:
        line = tl.program_id(0).to(tl.int64) * BL + tl.arange(0, BL)
        return line * (ND * DIV), line < LINES, ND * DIV, ID


@triton.jit
def aligned_start(x, first):
    """(where the 16 bytes begin in which element `first` of x lies, how many elements it lies behind that)."""
    EACH: tl.constexpr = 128 // x.dtype.element_ty.primitive_bitwidth
    start = first // EACH * EACH
    return start, (first - start).to(tl.int32)


@triton.jit
def load_block(x, start, skew, i, N, R: tl.constexpr, BN: tl.constexpr):
    """Block i of a line of N that begins `skew` behind x[start], 0 outside of it: [R, BN], and its places in the line.

    Whole blocks are loaded without a mask, which would make an odd line's loads scalar.
    """
    at = i + tl.arange(0, R)[:, None] * BN + tl.arange(0, BN)[None, :]
    if (i >= skew) & (i + R * BN <= N + skew):
        v = tl.load(x + start + at)
    else:
        v = tl.load(x + start + at, mask=(at >= skew) & (at < N + skew), other=0)
    return v, at - skew


@triton.jit
def store_block(x, v, start, skew, i, N):
    """The inverse of `load_block`."""
    at = i + tl.arange(0, v.shape[0])[:, None] * v.shape[1] + tl.arange(0, v.shape[1])[None, :]
    v = convert(v, x.dtype.element_ty)
    if (i >= skew) & (i + v.shape[0] * v.shape[1] <= N + skew):
        tl.store(x + start + at, v)
    else:
        tl.store(x + start + at, v, mask=(at >= skew) & (at < N + skew))


@triton.jit
def include(v, top, total):
    """Maximum and sum of exponentials [BN] of each lane, with a block [R, BN] more.

    A lane rescales its sum once a block: 1 + 1/R exponentials an element. With 2 it is they that take the time.
    """
    higher = tl.maximum(top, tl.max(v, 0))
    base = tl.where(higher == float("-inf"), 0.0, higher)
    return higher, total * tl.exp(top - base) + tl.sum(tl.exp(v - base[None, :]), 0)


@triton.jit
def of_all_lanes(top, total):
    """(maximum, or 0 if that is -inf; sum of the exponentials of what is less by it)."""
    most = tl.max(top, 0)
    base = tl.where(most == float("-inf"), 0.0, most)
    return base, tl.sum(total * tl.exp(top - base), 0)


@triton.jit(do_not_specialize=["ND"])
def long_lines(x, y, ND, DIV: tl.constexpr, ACC: tl.constexpr, LOG: tl.constexpr, R: tl.constexpr, BN: tl.constexpr):
    """x, y: (lines, N), N = ND * DIV. Reads twice, writes once. Grid: (lines,)."""
    N = ND * DIV
    start, skew = aligned_start(x, tl.program_id(0).to(tl.int64) * N)
    top = tl.full((BN,), float("-inf"), ACC)
    total = tl.zeros((BN,), ACC)
    for i in range(0, N + skew, R * BN):
        v, n = load_block(x, start, skew, i, N, R, BN)
        v = tl.where((n >= 0) & (n < N), convert(v, ACC), float("-inf"))
        top, total = include(v, top, total)
    base, s = of_all_lanes(top, total)
    for i in range(0, N + skew, R * BN):
        v, n = load_block(x, start, skew, i, N, R, BN)
        z = convert(v, ACC) - base
        if LOG:
            r = z - tl.log(s)
        else:
            r = tl.exp(z) / s
        store_block(y, r, start, skew, i, N)


@triton.jit(do_not_specialize=["ND"])
def long_backward(dy, y, dx, ND, DIV: tl.constexpr, ACC: tl.constexpr, LOG: tl.constexpr, BN: tl.constexpr):
    """As `backward`, for long lines: dy, y, dx (lines, N), N = ND * DIV. Reads twice, writes once. Grid: (lines,)."""
    N = ND * DIV
    start, skew = aligned_start(y, tl.program_id(0).to(tl.int64) * N)
    total = tl.zeros((1, BN), ACC)
    for i in range(0, N + skew, BN):
        g, _ = load_block(dy, start, skew, i, N, 1, BN)
        g = convert(g, ACC)
        if not LOG:
            p, _ = load_block(y, start, skew, i, N, 1, BN)
            g = g * convert(p, ACC)
        total += g
    s = tl.sum(total)
    for i in range(0, N + skew, BN):
        g, _ = load_block(dy, start, skew, i, N, 1, BN)
        p, _ = load_block(y, start, skew, i, N, 1, BN)
        if LOG:
            r = convert(g, ACC) - tl.exp(convert(p, ACC)) * s
        else:
            r = convert(p, ACC) * (convert(g, ACC) - s)
        store_block(dx, r, start, skew, i, N)


@triton.jit(do_not_specialize=["LINES", "ND", "ID"])
def whole(x, y, LINES, ND, ID, DIV: tl.constexpr, SIDE: tl.constexpr, ACC: tl.constexpr, LOG: tl.constexpr,
          BL: tl.constexpr, BN: tl.constexpr):
    """x, y: (LINES, N), N = ND * DIV, or with SIDE (LINES, N, ID * DIV), N = ND; BN >= N. Reads once, writes once.

    Grid: (cdiv(LINES, BL),), with SIDE (LINES * cdiv(ID * DIV, BL),).
    """
    first, there, N, step = lines_at(LINES, ND, ID, DIV, SIDE, BL)
    n = tl.arange(0, BN)
    live = there[:, None] & (n < N)[None, :]
    at = first[:, None] + n[None, :].to(tl.int64) * step
    v = convert(tl.load(x + at, mask=live, other=0), ACC)
    v = tl.where((n < N)[None, :], v, float("-inf"))
    z = v - tl.max(v, 1)[:, None]
    e = tl.exp(z)
    s = tl.sum(e, 1)[:, None]
    if LOG:
        r = z - tl.log(s)
    else:
        r = e / s
    tl.store(y + at, convert(r, y.dtype.element_ty), mask=live)


@triton.jit(do_not_specialize=["LINES", "ND", "ID"])
def stepwise(x, y, LINES, ND, ID, DIV: tl.constexpr, SIDE: tl.constexpr, ACC: tl.constexpr, LOG: tl.constexpr,
             BL: tl.constexpr, BN: tl.constexpr):
    """As `whole`, for any N: each lane keeps a maximum and a sum of its own, merged before the second pass."""
    first, there, N, step = lines_at(LINES, ND, ID, DIV, SIDE, BL)
    base = first[:, None]
    m = tl.full((BL, BN), float("-inf"), ACC)
    s = tl.zeros((BL, BN), ACC)
    for i in range(0, N, BN):
        n = i + tl.arange(0, BN)
        live = there[:, None] & (n < N)[None, :]
        v = convert(tl.load(x + base + n[None, :].to(tl.int64) * step, mask=live, other=0), ACC)
        v = tl.where((n < N)[None, :], v, float("-inf"))
        up = tl.where((v > m) | (v != v), v, m)
        safe = tl.where(up == float("-inf"), 0.0, up)
        s = s * tl.exp(m - safe) + tl.exp(v - safe)
        m = up
    top = tl.max(m, 1)[:, None]
    total = tl.sum(s * tl.exp(m - top), 1)[:, None]
    for i in range(0, N, BN):
        n = i + tl.arange(0, BN)
        live = there[:, None] & (n < N)[None, :]
        at = base + n[None, :].to(tl.int64) * step
        z = convert(tl.load(x + at, mask=live, other=0), ACC) - top
        if LOG:
            r = z - tl.log(total)
        else:
            r = tl.exp(z) / total
        tl.store(y + at, convert(r, y.dtype.element_ty), mask=live)


@triton.jit(do_not_specialize=["LINES", "ND", "ID"])
def backward(dy, y, dx, LINES, ND, ID, DIV: tl.constexpr, SIDE: tl.constexpr, ACC: tl.constexpr, LOG: tl.constexpr,
             BL: tl.constexpr, BN: tl.constexpr):
    """dx = y (dy - sum(dy y)), LOG: dy - exp(y) sum(dy). dy, y, dx and the grid as x, y of `whole`.

    A line longer than BN is read twice.
    """
    first, there, N, step = lines_at(LINES, ND, ID, DIV, SIDE, BL)
    base = first[:, None]
    total = tl.zeros((BL, BN), ACC)
    for i in range(0, N, BN):
        n = i + tl.arange(0, BN)
        live = there[:, None] & (n < N)[None, :]
        at = base + n[None, :].to(tl.int64) * step
        g = convert(tl.load(dy + at, mask=live, other=0), ACC)
        if not LOG:
            g = g * convert(tl.load(y + at, mask=live, other=0), ACC)
        total += g
    s = tl.sum(total, 1)[:, None]
    for i in range(0, N, BN):
        n = i + tl.arange(0, BN)
        live = there[:, None] & (n < N)[None, :]
        at = base + n[None, :].to(tl.int64) * step
        g = convert(tl.load(dy + at, mask=live, other=0), ACC)
        p = convert(tl.load(y + at, mask=live, other=0), ACC)
        if LOG:
            r = g - tl.exp(p) * s
        else:
            r = p * (g - s)
        tl.store(dx + at, convert(r, dx.dtype.element_ty), mask=live)


def lines_of(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """(lines, n, inner) of an array around `dim`."""
    shape = shape or (1,)
    dim %= len(shape)
    inner = math.prod(shape[dim + 1:])
    return math.prod(shape[:dim]) * inner, shape[dim], inner


def _lines_of(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """`lines_of`, for kernels that count along a line in 32 bits."""
    lines, n, inner = lines_of(shape, dim)
    if n >= EDGE:
        raise KernelError(f"softmax: a GPU kernel takes fewer than {EDGE} elements along a dim, got {n} of {shape}")
    return lines, n, inner


def _blocks(lines: int, n: int, inner: int, most: int) -> dict:
    """A tile: whole lines of the last dimension, or lines side by side."""
    bn = min(power_of_two(n), most)
    side = TILE // bn if inner == 1 else max(TILE // bn, min(power_of_two(inner), 64))
    bl = max(1, min(power_of_two(lines if inner == 1 else inner), side))
    while bl * bn > max(TILE, bn):
        bl, bn = (bl, bn // 2) if n > bn or inner > 1 and bn > 32 else (bl // 2, bn)
    return dict(BL=bl, BN=bn, num_warps=1 if bl * bn < 512 else 4 if bl * bn <= 4096 else 8)


def _run(kernel, arrays: tuple, lines: int, n: int, inner: int, most: int, **constants):
    """Launches a kernel whose tiles are of several lines."""
    how, size, side = _blocks(lines, n, inner, most), arrays[0].itemsize, inner > 1
    div = divisor(16 // size, inner if side else n)
    programs = lines // inner * -(-inner // how["BL"]) if side else -(-lines // how["BL"])
    sizes = (lines // inner, n, inner // div) if side else (lines, n // div, 1)
    cuda.launch(kernel, (programs,), *arrays, *sizes, DIV=div, SIDE=side, **constants, **how)


def _forward(op, x: DeviceArray, dim: int, dtype, log: bool) -> DeviceArray:
    """Softmax or its logarithm."""
    spec = op.check(x, dim, dtype)
    y = cuda.empty(spec.shape, spec.dtype, x.device)
    if not y.size:
        return y
    x = x if x.is_contiguous else contiguous_copy(x)
    lines, n, inner = _lines_of(x.shape, dim)
    constants = dict(ACC=TYPES[(float32 if spec.dtype in HALVES else spec.dtype).name], LOG=log)
    if inner == 1 and n > (WHOLE if n * x.itemsize % 8 == 0 else TILE):
        div = divisor(16 // x.itemsize, n)
        cuda.launch(long_lines, (lines,), x, y, n // div, DIV=div, R=STEPS, BN=LANES, **constants)
    else:
        most = WHOLE if inner == 1 else TILE
        fits = _blocks(lines, n, inner, most)["BN"] >= n
        _run(whole if fits else stepwise, (x, y), lines, n, inner, most, **constants)
    return y


def _gradient(dy: DeviceArray, y: DeviceArray, dim: int, log: bool) -> DeviceArray:
    """The gradient of softmax or of its logarithm."""
    dx = cuda.empty(y.shape, y.dtype, y.device)
    if not y.size:
        return dx
    dy, y = (a if a.is_contiguous else contiguous_copy(a) for a in (dy, y))
    lines, n, inner = _lines_of(y.shape, dim)
    constants = dict(ACC=TYPES[(float32 if y.dtype in HALVES else y.dtype).name], LOG=log)
    if inner == 1 and n > TILE:
        div = divisor(16 // y.itemsize, n)
        cuda.launch(long_backward, (lines,), dy, y, dx, n // div, DIV=div, BN=TILE, **constants)
    else:
        _run(backward, (dy, y, dx), lines, n, inner, TILE, **constants)
    return dx


@cuda.remembered
def softmax(input, dim, dtype=None):
    return _forward(contract.softmax, input, dim, dtype, False)


@cuda.remembered
def log_softmax(input, dim, dtype=None):
    return _forward(contract.log_softmax, input, dim, dtype, True)


@cuda.remembered
def softmax_grad(dy, y, dim):
    return _gradient(dy, y, dim, False)


@cuda.remembered
def log_softmax_grad(dy, y, dim):
    return _gradient(dy, y, dim, True)
