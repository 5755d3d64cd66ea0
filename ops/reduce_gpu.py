"""Kernels of reductions. One template folds a (kept, reduced) tile by tile; a second launch folds what parts are left.

The tile is long in whichever direction lies densely in memory: rows for a last dimension, columns for a first one.
Long reductions of few results are split over the GPU into parts that are folded in order: no atomics, same bits always.
"""
import math

import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import reduce as contract
from zoo.ops.cuda import DeviceArray
from zoo.ops.dims import count, reduced, wrap_all
from zoo.ops.dtypes import FLOATS, HALVES, bool_, float32, int32, int64
from zoo.ops.layout_gpu import Layout, layout, power_of_two
from zoo.ops.pointwise_gpu import TYPES, convert

TILE = 2048             # elements of a tile
PROGRAMS = 528          # four for each of 132 multiprocessors: with fewer, a reduction is split
LEAST = 8192            # elements of a part that are worth a program of their own


@triton.jit
@cuda.remembered
def add(a, b):
    """a + b."""
    return a + b


@triton.jit
def multiply(a, b):
    """a * b."""
    return a * b


@triton.jit
def larger(a, b):
    """The larger one; nan, if any."""
    return tl.where((b > a) | (b != b), b, a)


@triton.jit
def smaller(a, b):
    """The smaller one; nan, if any."""
    return tl.where((b < a) | (b != b), b, a)


@triton.jit
def add_lanes(v):
    """[A, B] -> [A]."""
    return tl.sum(v, 1)


@triton.jit
def multiply_lanes(v):
    """[A, B] -> [A]."""
    return tl.reduce(v, 1, multiply)


@triton.jit
def largest_lane(v):
    """[A, B] -> [A]; nan, if any."""
    if v.dtype.is_floating():
        holes = tl.max((v != v).to(tl.int32), 1)
        m = tl.max(tl.where(v != v, float("-inf"), v), 1)
        return tl.where(holes != 0, float("nan"), m)
    else:
        return tl.max(v, 1)


@triton.jit
def smallest_lane(v):
    """[A, B] -> [A]; nan, if any."""
    if v.dtype.is_floating():
        holes = tl.max((v != v).to(tl.int32), 1)
        m = tl.min(tl.where(v != v, float("inf"), v), 1)
        return tl.where(holes != 0, float("nan"), m)
    else:
        return tl.min(v, 1)


@triton.jit
def itself(v, s, p):
    """v."""
    return v


@triton.jit
def not_zero(v, s, p):
    """v != 0, nan counts."""
    return v != 0


@triton.jit
def deviation(v, s, p):
    """(v - s)^2."""
    return (v - s) * (v - s)


@triton.jit
def exponential(v, s, p):
    """exp(v - s), with the largest value s taken as 0 if it is not finite."""
    return tl.exp(v - tl.where(tl.abs(s) < float("inf"), s, 0.0))


@triton.jit
def size(v, s, p):
    """|v|."""
    return tl.abs(v)


@triton.jit
@cuda.remembered
def square(v, s, p):
    """v^2."""
    return v * v


@triton.jit
def power(v, s, p):
    """|v|^p."""
    return tl.exp2(p * tl.log2(tl.abs(v)))


@triton.jit
def root_of_power(v, s, p):
    """v^(1/p)."""
    return tl.exp2(tl.log2(v) / p)


@triton.jit
def quotient(v, s, p):
    """v / p."""
    return v / p


@triton.jit
def root_of_quotient(v, s, p):
    """sqrt(v / p)."""
    return tl.sqrt(v / p)


@triton.jit
def root(v, s, p):
    """sqrt(v)."""
    return tl.sqrt(v)


@triton.jit
def log_plus(v, s, p):
    """log(v) + s, with s as in `exponential`."""
    return tl.log(v) + tl.where(tl.abs(s) < float("inf"), s, 0.0)


@triton.jit
def program_of(BK: tl.constexpr, BR: tl.constexpr, WIDE: tl.constexpr):
    """(kept elements [BK], part, lanes [BR]) of this program; WIDE: in 64 bits, and so all that is computed of them."""
    k, part, lanes = tl.program_id(0), tl.program_id(1), tl.arange(0, BR)
    if WIDE:
        k, part, lanes = k.to(tl.int64), part.to(tl.int64), lanes.to(tl.int64)
    return k * BK + tl.arange(0, BK), part, lanes


@triton.jit
def fold(x, y, shift, p: "fp64", K, K1, SK0, SK1, R, R1, SR0, SR1, PART, ACC: tl.constexpr, START: tl.constexpr,
         PRE: tl.constexpr, COMBINE: tl.constexpr, LANES: tl.constexpr, POST: tl.constexpr, BK: tl.constexpr,
         BR: tl.constexpr, FLAT_K: tl.constexpr, FLAT_R: tl.constexpr, WIDE: tl.constexpr):
    """y[part, k] = POST(COMBINE over r in the part of PRE(x[k, r], shift[k], p), shift[k], p).

    x: (K, R) as in `Layout`; y: (parts, K); shift: (K,) or None. Parts have PART elements, the last one fewer.
    grid (cdiv(K, BK), parts).
    """
    k, part, lanes = program_of(BK, BR, WIDE)
    if FLAT_K:
        xk = x + (k * SK1)[:, None]
    else:
        xk = x + ((k // K1) * SK0 + (k % K1) * SK1)[:, None]
    q = p.to(ACC)
    if shift is None:
        s = tl.zeros((BK,), ACC)
    else:
        s = tl.load(shift + k, mask=k < K, other=0).to(ACC)
    first = part * PART
    last = tl.minimum(first + PART, R)
    start = tl.full((BK, BR), START, ACC)
    acc = start
    for i in range(first, last, BR):
        r = i + lanes
        if FLAT_R:
            at = r * SR1
        else:
            at = (r // R1) * SR0 + (r % R1) * SR1
        live = (k < K)[:, None] & (r < last)[None, :]
        v = convert(tl.load(xk + at[None, :], mask=live, other=0), ACC)
        acc = COMBINE(acc, tl.where(live, convert(PRE(v, s[:, None], q), ACC), start))
    total = POST(LANES(acc), s, q)
    tl.store(y + part * K + k, convert(total, y.dtype.element_ty), mask=k < K)


@triton.jit
def locate(x, source, values, indices, K, K1, SK0, SK1, R, R1, SR0, SR1, PART, ACC: tl.constexpr, START: tl.constexpr,
           COMBINE: tl.constexpr, LANES: tl.constexpr, BK: tl.constexpr, BR: tl.constexpr, FLAT_K: tl.constexpr,
           FLAT_R: tl.constexpr, WIDE: tl.constexpr):
    """The extreme of each part and the smallest index that has it; nan is the extreme of all.

    x: (K, R) as in `Layout`; source: None, or the indices that x's elements stand for, laid out as x (int64);
    values, indices: (parts, K), values None if nobody asked. grid (cdiv(K, BK), parts).
    """
    k, part, lanes = program_of(BK, BR, WIDE)
    if FLAT_K:
        xk = (k * SK1)[:, None]
    else:
        xk = ((k // K1) * SK0 + (k % K1) * SK1)[:, None]
    first = part * PART
    last = tl.minimum(first + PART, R)
    best = tl.full((BK, BR), START, ACC)
    none = tl.full((BK, BR), 2**63 - 1, tl.int64)
    where = none
    for i in range(first, last, BR):
        r = i + lanes
        if FLAT_R:
            at = xk + (r * SR1)[None, :]
        else:
            at = xk + ((r // R1) * SR0 + (r % R1) * SR1)[None, :]
        live = (k < K)[:, None] & (r < last)[None, :]
        v = convert(tl.load(x + at, mask=live, other=0), ACC)
        if source is None:
            index = tl.zeros((BK, BR), tl.int64) + r[None, :]
        else:
            index = tl.load(source + at, mask=live, other=0)
        better = (COMBINE(best, v) != best) & (best == best)
        take = live & (better | (where == none))
        best = tl.where(take, v, best)
        where = tl.where(take, index, where)
    m = LANES(best)
    same = (best == m[:, None]) | ((best != best) & (m != m)[:, None])
    at_k = part * K + k
    tl.store(indices + at_k, tl.min(tl.where(same, where, none), 1), mask=k < K)
    if values is not None:
        tl.store(values + at_k, convert(m, values.dtype.element_ty), mask=k < K)


def _tiling(x: Layout) -> dict:
    """Blocks of a launch: long where the memory is dense."""
    if abs(x.sr1) <= abs(x.sk1) or x.k == 1:
        br = min(power_of_two(x.r), TILE)
        bk = min(power_of_two(x.k), TILE // br)
    else:
        bk = min(power_of_two(x.k), 128)
        br = min(power_of_two(x.r), TILE // bk)
    return dict(BK=bk, BR=br, FLAT_K=x.k == x.k1, FLAT_R=x.r == x.r1, WIDE=x.wide, num_warps=4 if bk * br >= 512 else 1)


def _parts_of(x: Layout, BK: int, BR: int) -> tuple[int, int]:
    """(elements a part, parts) of a reduction: more than one only if the GPU would stand idle otherwise."""
    programs = -(-x.k // BK)
    parts = min(-(-PROGRAMS // programs), x.r * min(x.k, BK) // LEAST) if programs < PROGRAMS else 1
    length = (-(-x.r // parts) + BR - 1) // BR * BR if parts > 1 else max(x.r, 1)
    return length, max(-(-x.r // length), 1)


def _flat(x: DeviceArray, dims: tuple[int, ...]) -> Layout:
    """The layout of x, also where there is nothing to reduce."""
    if count(x.shape, dims):
        return layout(x, dims)
    k = math.prod(reduced(x.shape, dims, False))
    return Layout(x, k, k, 0, 0, 0, 1, 0, 0)


def _run(x: DeviceArray, dims, y: DeviceArray, acc, start, pre, combine, lanes, post=itself, shift=None,
        p=0.0) -> DeviceArray:
    """Folds x over `dims` into y, computing in dtype `acc`; in two launches if it is long."""
    if not y.size:
        return y
    how = dict(ACC=TYPES[acc.name], START=start, COMBINE=combine, LANES=lanes)
    a = _flat(x, dims)
    blocks = _tiling(a)
    length, parts = _parts_of(a, blocks["BK"], blocks["BR"])
    out = y if parts == 1 else cuda.empty((parts, a.k), acc, x.device)
    cuda.launch(fold, (-(-a.k // blocks["BK"]), parts), a.x, out, shift, float(p), *a.numbers, length, PRE=pre,
                POST=post if parts == 1 else itself, **how, **blocks)
    if parts > 1:
        a = layout(out, (0,))
        blocks = _tiling(a)
        cuda.launch(fold, (-(-a.k // blocks["BK"]), 1), out, y, shift, float(p), *a.numbers, parts, PRE=itself,
                    POST=post, **how, **blocks)
    return y


def lifted(dtype):
    """The dtype to compute in."""
    return float32 if dtype in HALVES else dtype


def _new(spec, x: DeviceArray) -> DeviceArray:
    """The result."""
    return cuda.empty(spec.shape, spec.dtype, x.device)


@cuda.remembered
def sum(input, dim=None, keepdim=False, dtype=None):
    spec = contract.sum.check(input, dim, keepdim, dtype)
    acc = int64 if spec.dtype == bool_ else lifted(spec.dtype)
    return _run(input, wrap_all("sum", dim, input.ndim), _new(spec, input), acc, 0, itself, add, add_lanes)


@cuda.remembered
def mean(input, dim=None, keepdim=False, dtype=None):
    spec = contract.mean.check(input, dim, keepdim, dtype)
    dims = wrap_all("mean", dim, input.ndim)
    return _run(input, dims, _new(spec, input), lifted(spec.dtype), 0, itself, add, add_lanes, quotient,
               p=count(input.shape, dims))


@cuda.remembered
def prod(input, dim=None, keepdim=False, dtype=None):
    spec = contract.prod.check(input, dim, keepdim, dtype)
    acc = int64 if spec.dtype == bool_ else lifted(spec.dtype)
    return _run(input, wrap_all("prod", dim, input.ndim), _new(spec, input), acc, 1, itself, multiply, multiply_lanes)


def bounds(dtype) -> tuple:
    """(dtype to compare in, what is below everything, what is above everything)."""
    if dtype in FLOATS:
        return lifted(dtype), -math.inf, math.inf
    if dtype == bool_:
        dtype = int32
    bits = 8 * dtype.itemsize
    return (dtype, 0, 2**bits - 1) if dtype.kind == "u" else (dtype, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@cuda.remembered
def amax(input, dim=None, keepdim=False):
    spec = contract.amax.check(input, dim, keepdim)
    acc, low, _ = bounds(input.dtype)
    return _run(input, wrap_all("amax", dim, input.ndim), _new(spec, input), acc, low, itself, larger, largest_lane)


@cuda.remembered
def amin(input, dim=None, keepdim=False):
    spec = contract.amin.check(input, dim, keepdim)
    acc, _, high = bounds(input.dtype)
    return _run(input, wrap_all("amin", dim, input.ndim), _new(spec, input), acc, high, itself, smaller, smallest_lane)


def _find(x: DeviceArray, dims, values, indices: DeviceArray, largest: bool) -> None:
    """Fills `indices`, and `values` if there are any; in two launches if it is long."""
    if not indices.size:
        return
    acc, low, high = bounds(x.dtype)
    how = dict(ACC=TYPES[acc.name], START=low if largest else high, COMBINE=larger if largest else smaller,
               LANES=largest_lane if largest else smallest_lane)
    a = layout(x, dims)
    blocks = _tiling(a)
    length, parts = _parts_of(a, blocks["BK"], blocks["BR"])
    some, at = values, indices
    if parts > 1:
        some, at = cuda.empty((parts, a.k), acc, x.device), cuda.empty((parts, a.k), int64, x.device)
    cuda.launch(locate, (-(-a.k // blocks["BK"]), parts), a.x, None, some, at, *a.numbers, length, **how, **blocks)
    if parts > 1:
        a = layout(some, (0,))
        blocks = _tiling(a)
        cuda.launch(locate, (-(-a.k // blocks["BK"]), 1), some, at, values, indices, *a.numbers, parts, **how, **blocks)


@cuda.remembered
def argmax(input, dim=None, keepdim=False):
    y = _new(contract.argmax.check(input, dim, keepdim), input)
    _find(input, wrap_all("argmax", dim, input.ndim), None, y, True)
    return y


@cuda.remembered
def argmin(input, dim=None, keepdim=False):
    y = _new(contract.argmin.check(input, dim, keepdim), input)
    _find(input, wrap_all("argmin", dim, input.ndim), None, y, False)
    return y


@cuda.remembered
def max_dim(input, dim, keepdim=False):
    values, indices = (_new(s, input) for s in contract.max_dim.check(input, dim, keepdim))
    _find(input, wrap_all("max", dim, input.ndim), values, indices, True)
    return values, indices


@cuda.remembered
def min_dim(input, dim, keepdim=False):
    values, indices = (_new(s, input) for s in contract.min_dim.check(input, dim, keepdim))
    _find(input, wrap_all("min", dim, input.ndim), values, indices, False)
    return values, indices


@cuda.remembered
def any(input, dim=None, keepdim=False):
    spec = contract.any.check(input, dim, keepdim)
    acc = int32 if input.dtype == bool_ else lifted(input.dtype)
    return _run(input, wrap_all("any", dim, input.ndim), _new(spec, input), acc, 0, not_zero, larger, largest_lane)


@cuda.remembered
def all(input, dim=None, keepdim=False):
    spec = contract.all.check(input, dim, keepdim)
    acc = int32 if input.dtype == bool_ else lifted(input.dtype)
    return _run(input, wrap_all("all", dim, input.ndim), _new(spec, input), acc, 1, not_zero, smaller, smallest_lane)


@cuda.remembered
def logsumexp(input, dim=None, keepdim=False):
    spec = contract.logsumexp.check(input, dim, keepdim)
    dims, acc = wrap_all("logsumexp", dim, input.ndim), lifted(spec.dtype)
    largest = None
    if input.size:
        low, *_ = bounds(input.dtype)
        largest = cuda.empty(reduced(input.shape, dims, False), acc, input.device)
        _run(input, dims, largest, low, bounds(input.dtype)[1], itself, larger, largest_lane)
    return _run(input, dims, _new(spec, input), acc, 0, exponential, add, add_lanes, log_plus, largest)


def _squares(op, input, dim, correction, keepdim, post):
    """The sum of squared deviations from the mean, then `post`, in two passes."""
    spec = op.check(input, dim, correction, keepdim)
    dims, acc = wrap_all(op.name, dim, input.ndim), lifted(input.dtype)
    n = count(input.shape, dims)
    middle = cuda.empty(reduced(input.shape, dims, False), acc, input.device)
    _run(input, dims, middle, acc, 0, itself, add, add_lanes, quotient, p=n)
    return _run(input, dims, _new(spec, input), acc, 0, deviation, add, add_lanes, post, middle, max(n - correction, 0))


@cuda.remembered
def var(input, dim=None, correction=1, keepdim=False):
    return _squares(contract.var, input, dim, correction, keepdim, quotient)


@cuda.remembered
def std(input, dim=None, correction=1, keepdim=False):
    return _squares(contract.std, input, dim, correction, keepdim, root_of_quotient)


@cuda.remembered
def vector_norm(input, ord=2, dim=None, keepdim=False):
    spec = contract.vector_norm.check(input, ord, dim, keepdim)
    dims, acc = wrap_all("vector_norm", dim, input.ndim), lifted(spec.dtype)
    y = _new(spec, input)
    if ord == math.inf:
        return _run(input, dims, y, acc, 0, size, larger, largest_lane)
    if ord == -math.inf:
        return _run(input, dims, y, acc, math.inf, size, smaller, smallest_lane)
    pre, post = {0: (not_zero, itself), 1: (size, itself), 2: (square, root)}.get(ord, (power, root_of_power))
    return _run(input, dims, y, acc, 0, pre, add, add_lanes, post, p=ord)
