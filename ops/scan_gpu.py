"""Kernels of scans: an array is (outer, n, inner) around the dimension; a program walks along some lines tile by tile.

Few long lines are cut into parts: the first launch gives what each part adds up to, a scan of those says what comes
before each part, and the last launch starts from there.
"""
import math

import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import scan as contract
from zoo.ops.cuda import DeviceArray
from zoo.ops.dtypes import bool_, int64
from zoo.ops.layout_gpu import power_of_two
from zoo.ops.pointwise_gpu import TYPES, contiguous_copy, convert
from zoo.ops.reduce_gpu import PROGRAMS, add, bounds, lifted, multiply
from zoo.ops.softmax_gpu import lines_of, offsets

STEP = 1024             # elements of a tile
PART = 8192             # elements of a line that are worth a program of their own


@triton.jit
def log_add(a, b):
    """log(exp(a) + exp(b))."""
    m = tl.where((a > b) | (a != a), a, b)
    m = tl.where(tl.abs(m) < float("inf"), m, 0.0)
    return m + tl.log(tl.exp(a - m) + tl.exp(b - m))


@triton.jit
def last_of_largest(a, i, b, j):
    """The larger value and its index, the later of equals; nan stays."""
    take = (b >= a) | (b != b)
    return tl.where(take, b, a), tl.where(take, j, i)


@triton.jit
def last_of_smallest(a, i, b, j):
    """The smaller value and its index, the later of equals; nan stays."""
    take = (b <= a) | (b != b)
    return tl.where(take, b, a), tl.where(take, j, i)


@triton.jit
def then(a, b, c, d):
    """The step y -> a y + b, then y -> c y + d."""
    return a * c, c * b + d


# A function that a kernel is given can be called there but not handed on to a scan: so each comes with its scan.

@triton.jit
def sums(v):
    """Running sums along axis 1."""
    return tl.cumsum(v, 1)


@triton.jit
def products(v):
    """Running products along axis 1."""
    return tl.cumprod(v, 1)


@triton.jit
def log_sums(v):
    """Running log_add along axis 1."""
    return tl.associative_scan(v, 1, log_add)


@triton.jit
def running_largest(v, w):
    """Running last_of_largest along axis 1."""
    return tl.associative_scan((v, w), 1, last_of_largest)


@triton.jit
def running_smallest(v, w):
    """Running last_of_smallest along axis 1."""
    return tl.associative_scan((v, w), 1, last_of_smallest)


@triton.jit
def steps(v, w):
    """Running `then` along axis 1."""
    return tl.associative_scan((v, w), 1, then)


@triton.jit
def at_end(v, BN: tl.constexpr):
    """The last column of v, [BL, BN] -> [BL, 1]."""
    return tl.sum(tl.where((tl.arange(0, BN) == BN - 1)[None, :], v, tl.zeros_like(v)), 1)[:, None].to(v.dtype)


@triton.jit
def scan_values(x, y, before, totals, LINES, N, INNER, LENGTH, PARTS, ACC: tl.constexpr, START: tl.constexpr,
                COMBINE: tl.constexpr, SCAN: tl.constexpr, REVERSE: tl.constexpr, BL: tl.constexpr, BN: tl.constexpr):
    """y[i] = COMBINE of x[0] ... x[i] along the line. x, y: (outer, N, INNER); y None if only the totals are wanted.

    before: None, or (LINES, PARTS) running totals of the parts; totals: None, or (LINES, PARTS).
    grid (cdiv(LINES, BL), PARTS), a part has LENGTH elements.
    """
    line = tl.program_id(0).to(tl.int64) * BL + tl.arange(0, BL)
    part = tl.program_id(1).to(tl.int64)
    lanes = tl.arange(0, BN).to(tl.int64)
    base = offsets(line, N, INNER)[:, None]
    mine = line * PARTS + part
    carry = tl.full((BL,), START, ACC)
    if before is not None:
        carry = tl.load(before + mine - 1, mask=(line < LINES) & (line * 0 + part > 0), other=START)
    carry = carry[:, None]
    first = part * LENGTH
    for i in range(first, tl.minimum(first + LENGTH, N), BN):
        n = i + lanes
        live = (line < LINES)[:, None] & (n < N)[None, :]
        place = n
        if REVERSE:
            place = N - 1 - n
        at = base + place[None, :] * INNER
        v = convert(tl.load(x + at, mask=live, other=0), ACC)
        v = SCAN(tl.where(live, v, tl.full((BL, BN), START, ACC)))
        v = COMBINE(carry, v.to(ACC))                       # a scan of small integers is one of int32
        if y is not None:
            tl.store(y + at, convert(v, y.dtype.element_ty), mask=live)
        carry = at_end(v, BN)
    if totals is not None:
        tl.store(totals + mine[:, None], carry, mask=(line < LINES)[:, None])


@triton.jit
def scan_pairs(x0, x1, y0, y1, before0, before1, totals0, totals1, LINES, N, INNER, LENGTH, PARTS, ACC0: tl.constexpr,
               ACC1: tl.constexpr, START0: tl.constexpr, START1: tl.constexpr, COMBINE: tl.constexpr,
               SCAN: tl.constexpr, REVERSE: tl.constexpr, BL: tl.constexpr, BN: tl.constexpr):
    """As `scan_values` for pairs: COMBINE takes and gives two values. x1 None: the place along the line.

    x0, x1, y0, y1: (outer, N, INNER), y0 and y1 may be None; before and totals: (LINES, PARTS) or None.
    grid (cdiv(LINES, BL), PARTS), a part has LENGTH elements.
    """
    line = tl.program_id(0).to(tl.int64) * BL + tl.arange(0, BL)
    part = tl.program_id(1).to(tl.int64)
    lanes = tl.arange(0, BN).to(tl.int64)
    base = offsets(line, N, INNER)[:, None]
    mine = line * PARTS + part
    c0 = tl.full((BL,), START0, ACC0)
    c1 = tl.full((BL,), START1, ACC1)
    if before0 is not None:
        c0 = tl.load(before0 + mine - 1, mask=(line < LINES) & (line * 0 + part > 0), other=START0)
        c1 = tl.load(before1 + mine - 1, mask=(line < LINES) & (line * 0 + part > 0), other=START1)
    c0 = c0[:, None]
    c1 = c1[:, None]
    first = part * LENGTH
    for i in range(first, tl.minimum(first + LENGTH, N), BN):
        n = i + lanes
        live = (line < LINES)[:, None] & (n < N)[None, :]
        place = n
        if REVERSE:
            place = N - 1 - n
        at = base + place[None, :] * INNER
        v = convert(tl.load(x0 + at, mask=live, other=0), ACC0)
        if x1 is None:
            w = tl.zeros((BL, BN), ACC1) + place[None, :]
        else:
            w = convert(tl.load(x1 + at, mask=live, other=0), ACC1)
        v = tl.where(live, v, tl.full((BL, BN), START0, ACC0))
        w = tl.where(live, w, tl.full((BL, BN), START1, ACC1))
        v, w = SCAN(v, w)
        v, w = COMBINE(tl.broadcast_to(c0, (BL, BN)), tl.broadcast_to(c1, (BL, BN)), v, w)
        if y0 is not None:
            tl.store(y0 + at, convert(v, y0.dtype.element_ty), mask=live)
        if y1 is not None:
            tl.store(y1 + at, convert(w, y1.dtype.element_ty), mask=live)
        c0 = at_end(v, BN)
        c1 = at_end(w, BN)
    if totals0 is not None:
        tl.store(totals0 + mine[:, None], c0, mask=(line < LINES)[:, None])
        tl.store(totals1 + mine[:, None], c1, mask=(line < LINES)[:, None])


@triton.jit
def move(x, y, SIZE, N, INNER, BY, APART, fill: "fp64", BLOCK: tl.constexpr):
    """y[o, i] = x[o, i - BY], or fill. x, y: (outer, N, INNER), SIZE elements; APART = BY * INNER.

    grid (cdiv(SIZE, BLOCK),).
    """
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    n = (at // INNER) % N - BY
    inside = (n >= 0) & (n < N)
    v = tl.load(x + (at - APART), mask=(at < SIZE) & inside, other=0)
    other = tl.zeros((BLOCK,), tl.float64) + fill
    tl.store(y + at, tl.where(inside, v, convert(other, v.dtype)), mask=at < SIZE)


def _cut(shape: tuple[int, ...], dim: int) -> tuple[tuple, tuple, dict]:
    """((lines, n, inner), (length, parts), blocks) of a scan."""
    lines, n, inner = lines_of(shape, dim)
    bl = 1 if inner == 1 else min(power_of_two(inner), 32)
    bn = min(power_of_two(n), max(STEP // bl, 16))
    bl = max(bl, min(power_of_two(lines), STEP // bn))
    programs = -(-lines // bl)
    parts = max(1, min(-(-PROGRAMS // programs), n // PART))
    length = (-(-n // parts) + bn - 1) // bn * bn if parts > 1 else n
    return (lines, n, inner), (length, -(-n // length)), dict(BL=bl, BN=bn, num_warps=4 if bl * bn >= 512 else 1)


def _dense(x: DeviceArray) -> DeviceArray:
    """x, or a contiguous copy."""
    return x if x.is_contiguous else contiguous_copy(x)


def _values(x: DeviceArray, y: DeviceArray, dim: int, acc, start, combine, scan, reverse=False) -> DeviceArray:
    """Scans x into y, computing in dtype `acc`."""
    if not y.size:
        return y
    x = _dense(x)
    numbers, (length, parts), how = _cut(y.shape, dim)
    how |= dict(ACC=TYPES[acc.name], START=start, COMBINE=combine, SCAN=scan, REVERSE=reverse)
    grid, before = (-(-numbers[0] // how["BL"]), parts), None
    if parts > 1:
        totals = cuda.empty((numbers[0], parts), acc, x.device)
        cuda.launch(scan_values, grid, x, None, None, totals, *numbers, length, parts, **how)
        before = _values(totals, cuda.empty(totals.shape, acc, x.device), 1, acc, start, combine, scan)
    cuda.launch(scan_values, grid, x, y, before, None, *numbers, length, parts, **how)
    return y


def _pairs(xs: tuple, ys: tuple, dim: int, accs: tuple, starts: tuple, combine, scan, reverse=False) -> tuple:
    """Scans a pair of arrays into a pair; the second of xs may be None (places), each of ys too (not wanted)."""
    some = xs[0]
    if not some.size:
        return ys
    numbers, (length, parts), how = _cut(some.shape, dim)
    how |= dict(ACC0=TYPES[accs[0].name], ACC1=TYPES[accs[1].name], START0=starts[0], START1=starts[1], COMBINE=combine,
                SCAN=scan, REVERSE=reverse)
    grid, before = (-(-numbers[0] // how["BL"]), parts), (None, None)
    if parts > 1:
        totals = tuple(cuda.empty((numbers[0], parts), t, some.device) for t in accs)
        cuda.launch(scan_pairs, grid, *xs, None, None, None, None, *totals, *numbers, length, parts, **how)
        empty = tuple(cuda.empty((numbers[0], parts), t, some.device) for t in accs)
        before = _pairs(totals, empty, 1, accs, starts, combine, scan)
    cuda.launch(scan_pairs, grid, *xs, *ys, *before, None, None, *numbers, length, parts, **how)
    return ys


def _new(spec, x: DeviceArray) -> DeviceArray:
    """The result."""
    return cuda.empty(spec.shape, spec.dtype, x.device)


@cuda.remembered
def cumsum(input, dim, dtype=None):
    spec = contract.cumsum.check(input, dim, dtype)
    acc = int64 if spec.dtype == bool_ else lifted(spec.dtype)
    return _values(input, _new(spec, input), dim, acc, 0, add, sums)


@cuda.remembered
def reverse_cumsum(x, dim):
    return _values(x, _new(contract.reverse_cumsum.check(x, dim), x), dim, lifted(x.dtype), 0, add, sums, True)


@cuda.remembered
def cumprod(input, dim, dtype=None):
    spec = contract.cumprod.check(input, dim, dtype)
    acc = int64 if spec.dtype == bool_ else lifted(spec.dtype)
    return _values(input, _new(spec, input), dim, acc, 1, multiply, products)


@cuda.remembered
def logcumsumexp(input, dim):
    spec = contract.logcumsumexp.check(input, dim)
    return _values(input, _new(spec, input), dim, lifted(spec.dtype), -math.inf, log_add, log_sums)


@cuda.remembered
def cummax(input, dim):
    ys = tuple(_new(s, input) for s in contract.cummax.check(input, dim))
    acc, low, _ = bounds(input.dtype)
    return _pairs((_dense(input), None), ys, dim, (acc, int64), (low, 0), last_of_largest, running_largest)


@cuda.remembered
def cummin(input, dim):
    ys = tuple(_new(s, input) for s in contract.cummin.check(input, dim))
    acc, _, high = bounds(input.dtype)
    return _pairs((_dense(input), None), ys, dim, (acc, int64), (high, 0), last_of_smallest, running_smallest)


@cuda.remembered
def linear_scan(a, b, dim, reverse=False):
    y = _new(contract.linear_scan.check(a, b, dim, reverse), b)
    acc = lifted(b.dtype)
    _pairs((_dense(a), _dense(b)), (None, y), dim, (acc, acc), (1, 0), then, steps, reverse)
    return y


def shift(x, dim, by, fill=0.0):
    y = _new(contract.shift.check(x, dim, by, fill), x)
    if y.size:
        _, n, inner = lines_of(x.shape, dim)
        cuda.launch(move, (-(-y.size // STEP),), _dense(x), y, y.size, n, inner, by, by * inner, float(fill),
                    BLOCK=STEP)
    return y
