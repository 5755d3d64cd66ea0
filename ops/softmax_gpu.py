"""Kernels of softmax and log_softmax: an array is (outer, n, inner) around the dimension, a line is n elements.

A tile holds whole lines where they fit; longer ones are read twice, with the running maximum and sum of each lane.
Where the dimension is not the last one, the lines of a tile lie side by side in memory. The length of a line comes
divided by a power of two, so that lines of 1000 are still read 16 bytes at a time (see matmul_gpu.py).
"""
import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import softmax as contract
from zoo.ops.cuda import DeviceArray
from zoo.ops.dtypes import HALVES, float32
from zoo.ops.layout_gpu import power_of_two
from zoo.ops.matmul_gpu import divisor
from zoo.ops.pointwise_gpu import TYPES, contiguous_copy, convert

WHOLE = 8192            # the longest line that is held in registers
TILE = 2048             # elements of a tile of several lines, or of a step along a longer one


@triton.jit
def offsets(line, N, INNER):
    """Where lines begin: line = outer * INNER + inner."""
    line = line.to(tl.int64)
    return (line // INNER) * INNER * N + line % INNER


@triton.jit(do_not_specialize=["LINES", "ND"])
def whole(x, y, LINES, ND, INNER, DIV: tl.constexpr, ACC: tl.constexpr, LOG: tl.constexpr, BL: tl.constexpr,
          BN: tl.constexpr):
    """x, y: (outer, N, INNER), N = ND * DIV, LINES = outer * INNER, BN >= N. Reads once, writes once.

    Grid: (cdiv(LINES, BL),).
    """
    N = ND * DIV
    line = tl.program_id(0) * BL + tl.arange(0, BL)
    n = tl.arange(0, BN)
    live = (line < LINES)[:, None] & (n < N)[None, :]
    at = offsets(line, N, INNER)[:, None] + n[None, :] * INNER
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


@triton.jit(do_not_specialize=["LINES", "ND"])
def stepwise(x, y, LINES, ND, INNER, DIV: tl.constexpr, ACC: tl.constexpr, LOG: tl.constexpr, BL: tl.constexpr,
             BN: tl.constexpr):
    """As `whole`, for any N: every lane keeps a maximum and a sum of its own, merged before the second pass."""
    N = ND * DIV
    line = tl.program_id(0) * BL + tl.arange(0, BL)
    base = offsets(line, N, INNER)[:, None]
    m = tl.full((BL, BN), float("-inf"), ACC)
    s = tl.zeros((BL, BN), ACC)
    for i in range(0, N, BN):
        n = i + tl.arange(0, BN)
        live = (line < LINES)[:, None] & (n < N)[None, :]
        v = convert(tl.load(x + base + n[None, :].to(tl.int64) * INNER, mask=live, other=0), ACC)
        v = tl.where((n < N)[None, :], v, float("-inf"))
        up = tl.where((v > m) | (v != v), v, m)
        safe = tl.where(up == float("-inf"), 0.0, up)
        s = s * tl.exp(m - safe) + tl.exp(v - safe)
        m = up
    top = tl.max(m, 1)[:, None]
    total = tl.sum(s * tl.exp(m - top), 1)[:, None]
    for i in range(0, N, BN):
        n = i + tl.arange(0, BN)
        live = (line < LINES)[:, None] & (n < N)[None, :]
        at = base + n[None, :].to(tl.int64) * INNER
        z = convert(tl.load(x + at, mask=live, other=0), ACC) - top
        if LOG:
            r = z - tl.log(total)
        else:
            r = tl.exp(z) / total
        tl.store(y + at, convert(r, y.dtype.element_ty), mask=live)


@triton.jit(do_not_specialize=["LINES", "ND"])
def backward(dy, y, dx, LINES, ND, INNER, DIV: tl.constexpr, ACC: tl.constexpr, LOG: tl.constexpr, BL: tl.constexpr,
             BN: tl.constexpr):
    """dx = y (dy - sum(dy y)), LOG: dy - exp(y) sum(dy). dy, y, dx: (outer, N, INNER), N = ND * DIV.

    A line longer than BN is read twice. Grid: (cdiv(LINES, BL),).
    """
    N = ND * DIV
    line = tl.program_id(0) * BL + tl.arange(0, BL)
    base = offsets(line, N, INNER)[:, None]
    total = tl.zeros((BL, BN), ACC)
    for i in range(0, N, BN):
        n = i + tl.arange(0, BN)
        live = (line < LINES)[:, None] & (n < N)[None, :]
        at = base + n[None, :].to(tl.int64) * INNER
        g = convert(tl.load(dy + at, mask=live, other=0), ACC)
        if not LOG:
            g = g * convert(tl.load(y + at, mask=live, other=0), ACC)
        total += g
    s = tl.sum(total, 1)[:, None]
    for i in range(0, N, BN):
        n = i + tl.arange(0, BN)
        live = (line < LINES)[:, None] & (n < N)[None, :]
        at = base + n[None, :].to(tl.int64) * INNER
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
    inner = outer = 1
    for k, n in enumerate(shape):
        outer, inner = (outer * n, inner) if k < dim else (outer, inner * n if k > dim else inner)
    return outer * inner, shape[dim], inner


def _blocks(lines: int, n: int, inner: int, most: int) -> dict:
    """A tile: whole lines of the last dimension, or lines side by side."""
    bn = min(power_of_two(n), most)
    side = TILE // bn if inner == 1 else max(TILE // bn, min(power_of_two(inner), 32))
    bl = max(1, min(power_of_two(lines), side))
    while bl * bn > max(TILE, bn):
        bl, bn = (bl, bn // 2) if n > bn or inner > 1 and bn > 32 else (bl // 2, bn)
    return dict(BL=bl, BN=bn, num_warps=1 if bl * bn < 512 else 4 if bl * bn <= 4096 else 8)


def _forward(op, x: DeviceArray, dim: int, dtype, log: bool) -> DeviceArray:
    """Softmax or its logarithm."""
    spec = op.check(x, dim, dtype)
    y = cuda.empty(spec.shape, spec.dtype, x.device)
    if y.size:
        x = x if x.is_contiguous else contiguous_copy(x)
        lines, n, inner = lines_of(x.shape, dim)
        how = _blocks(lines, n, inner, WHOLE if inner == 1 else TILE)
        acc = TYPES[(float32 if spec.dtype in HALVES else spec.dtype).name]
        kernel = whole if how["BN"] >= n else stepwise
        if kernel is stepwise:
            how = _blocks(lines, n, inner, TILE)
        div = divisor(16 // x.itemsize, n)
        cuda.launch(kernel, (-(-lines // how["BL"]),), x, y, lines, n // div, inner, DIV=div, ACC=acc, LOG=log, **how)
    return y


def _gradient(dy: DeviceArray, y: DeviceArray, dim: int, log: bool) -> DeviceArray:
    """The gradient of softmax or of its logarithm."""
    dx = cuda.empty(y.shape, y.dtype, y.device)
    if y.size:
        dy, y = (a if a.is_contiguous else contiguous_copy(a) for a in (dy, y))
        lines, n, inner = lines_of(y.shape, dim)
        how = _blocks(lines, n, inner, TILE)
        acc = TYPES[(float32 if y.dtype in HALVES else y.dtype).name]
        div = divisor(16 // y.itemsize, n)
        cuda.launch(backward, (-(-lines // how["BL"]),), dy, y, dx, lines, n // div, inner, DIV=div, ACC=acc, LOG=log,
                    **how)
    return dx


def softmax(input, dim, dtype=None):
    return _forward(contract.softmax, input, dim, dtype, False)


def log_softmax(input, dim, dtype=None):
    return _forward(contract.log_softmax, input, dim, dtype, True)


def softmax_grad(dy, y, dim):
    return _gradient(dy, y, dim, False)


def log_softmax_grad(dy, y, dim):
    return _gradient(dy, y, dim, True)
