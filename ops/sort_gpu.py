"""Kernels of sort, topk and searchsorted.

Everything is sorted as 64-bit integers: 32 bits of the element in an order that integers share (nan last), then its
place along the line, which makes the order stable and carries the index. Elements of 64 bits take two passes, low half
first.
A line that fits is sorted in registers; a longer one by a bitonic network, whose wide steps go through memory.
"""
import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import sort as contract
from zoo.ops.dtypes import int64
from zoo.ops.layout_gpu import power_of_two
from zoo.ops.pointwise_gpu import contiguous_copy
from zoo.ops.softmax_gpu import lines_of, offsets

BLOCK = 2048            # elements that are sorted in registers
WHOLE, LOW, HIGH = 0, 1, 2      # which half of an element a pass sorts by: elements of at most 32 bits have one


@triton.jit
def ordered(v, HALF: tl.constexpr, DESCENDING: tl.constexpr):
    """v as an int64 in the range of int32 that compares as v does; for 64-bit types one half of it."""
    if v.dtype.is_floating():
        if v.dtype == tl.float64:
            bits = tl.where(v == 0, 0.0, v).to(tl.int64, bitcast=True)
            key = tl.where(v != v, 0x7FFFFFFFFFFFFFFF, bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF))
        else:
            v = v.to(tl.float32)
            bits = tl.where(v == 0, 0.0, v).to(tl.int32, bitcast=True)
            key = tl.where(v != v, 0x7FFFFFFF, bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.int64)
    elif v.dtype == tl.uint64:
        key = v.to(tl.int64, bitcast=True) ^ (-0x7FFFFFFFFFFFFFFF - 1)
    elif v.dtype == tl.uint32:
        key = v.to(tl.int64) - 0x80000000
    else:
        key = v.to(tl.int64)
    if DESCENDING:
        key = -1 - key
    if HALF == 1:
        key = (key & 0xFFFFFFFF) - 0x80000000
    elif HALF == 2:
        key = key >> 32
    return key


@triton.jit
def in_order(keys, BL: tl.constexpr, BN: tl.constexpr, LOG: tl.constexpr):
    """[BL, BN] int64, BN = 2^LOG, with each row in ascending order: a bitonic network.

    An element's partner is the sum of the pair less the element, which is exact as integers wrap. tl.sort does the
    same, but by a reduction that the interpreter runs element by element.
    """
    n = tl.arange(0, BN)[None, :]
    for k in tl.static_range(1, LOG + 1):
        for j in tl.static_range(k):
            pairs = tl.reshape(keys, [BL * BN >> (k - j), 2, 1 << (k - 1 - j)])
            both = tl.broadcast_to(tl.sum(pairs, 1)[:, None, :], [BL * BN >> (k - j), 2, 1 << (k - 1 - j)])
            partner = tl.reshape(both - pairs, [BL, BN])
            smaller = ((n >> (k - 1 - j)) & 1) == ((n >> k) & 1)      # does this one keep the smaller of the two?
            keys = tl.where((keys > partner) == smaller, partner, keys)
    return keys


@triton.jit
def packed_keys(x, order, line, n, LINES, N, INNER, HALF: tl.constexpr, DESCENDING: tl.constexpr):
    """[BL, BN] of key and place n; what is past the end is larger than everything."""
    live = (line < LINES)[:, None] & (n < N)[None, :]
    place = n.to(tl.int64)[None, :] + (line * 0).to(tl.int64)[:, None]
    source = place
    if order is not None:
        source = tl.load(order + offsets(line, N, INNER)[:, None] + place * INNER, mask=live, other=0)
    v = tl.load(x + offsets(line, N, INNER)[:, None] + source * INNER, mask=live, other=0)
    return tl.where(live, (ordered(v, HALF, DESCENDING) << 32) | place, 0x7FFFFFFFFFFFFFFF)


@triton.jit
def unpack(packed, x, order, values, indices, line, n, LINES, N, INNER):
    """Stores the places that sorted keys carry, and the elements from there."""
    live = (line < LINES)[:, None] & (n < N)[None, :]
    base = offsets(line, N, INNER)[:, None]
    place = packed & 0xFFFFFFFF
    if order is not None:
        place = tl.load(order + base + place * INNER, mask=live, other=0)
    at = base + n.to(tl.int64)[None, :] * INNER
    tl.store(indices + at, place, mask=live)
    if values is not None:
        tl.store(values + at, tl.load(x + base + place * INNER, mask=live, other=0), mask=live)


@triton.jit
def sort_lines(x, order, values, indices, LINES, N, INNER, HALF: tl.constexpr, DESCENDING: tl.constexpr,
               BL: tl.constexpr, BN: tl.constexpr, LOG: tl.constexpr):
    """Sorts lines of N <= BN = 2^LOG elements. x, values, order, indices: (outer, N, INNER), the last two int64.

    values may be None; order, or None: indices from an earlier pass, which this one keeps between equals.
    grid (cdiv(LINES, BL),).
    """
    line = tl.program_id(0).to(tl.int64) * BL + tl.arange(0, BL)
    n = tl.arange(0, BN)
    packed = in_order(packed_keys(x, order, line, n, LINES, N, INNER, HALF, DESCENDING), BL, BN, LOG)
    unpack(packed, x, order, values, indices, line, n, LINES, N, INNER)


@triton.jit
def pack(x, order, keys, LINES, N, INNER, P, HALF: tl.constexpr, DESCENDING: tl.constexpr, BN: tl.constexpr):
    """keys (LINES, P) int64, P a power of two >= N. x, order: as in sort_lines. grid (P // BN * LINES,)."""
    line = tl.program_id(0) // (P // BN) + tl.arange(0, 1)
    n = tl.program_id(0) % (P // BN) * BN + tl.arange(0, BN)
    packed = packed_keys(x, order, line, n, LINES, N, INNER, HALF, DESCENDING)
    tl.store(keys + line.to(tl.int64)[:, None] * P + n[None, :], packed)


@triton.jit
def sort_blocks(keys, P, RUN, BN: tl.constexpr, LOG: tl.constexpr):
    """Sorts blocks of BN keys, upwards or downwards so that two runs of RUN elements can be merged. keys: (lines, P).

    grid (P // BN * lines,).
    """
    first = tl.program_id(0) % (P // BN) * BN
    at = keys + tl.program_id(0).to(tl.int64) * BN + tl.arange(0, BN)[None, :]
    flip = tl.where((first & RUN) != 0, -1, 0).to(tl.int64)
    tl.store(at, in_order(tl.load(at) ^ flip, 1, BN, LOG) ^ flip)


@triton.jit
def exchange(keys, P, RUN, APART, BN: tl.constexpr):
    """One step of the network: pairs APART elements apart in order. keys: (lines, P). grid (P // 2 // BN * lines,)."""
    line = tl.program_id(0) // (P // 2 // BN)
    pair = tl.program_id(0) % (P // 2 // BN) * BN + tl.arange(0, BN)
    low = (pair // APART) * (2 * APART) + pair % APART
    at = keys + line.to(tl.int64) * P + low
    a, b = tl.load(at), tl.load(at + APART)
    swap = (a > b) == ((low & RUN) == 0)
    tl.store(at, tl.where(swap, b, a))
    tl.store(at + APART, tl.where(swap, a, b))


@triton.jit
def finish(keys, x, order, values, indices, LINES, N, INNER, P, BN: tl.constexpr):
    """Sorted keys (LINES, P) -> values (or None) and indices as in sort_lines. grid (P // BN * LINES,)."""
    line = tl.program_id(0) // (P // BN) + tl.arange(0, 1)
    n = tl.program_id(0) % (P // BN) * BN + tl.arange(0, BN)
    packed = tl.load(keys + line.to(tl.int64)[:, None] * P + n[None, :])
    unpack(packed, x, order, values, indices, line, n, LINES, N, INNER)


@triton.jit
def search(edges, x, y, SIZE, M, N, EACH: tl.constexpr, RIGHT: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """y (rows, M) int64: how many of edges (rows, N), or (N,) unless EACH, lie before x (rows, M). SIZE = rows * M.

    grid (cdiv(SIZE, BLOCK),); 2^STEPS > N.
    """
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = at < SIZE
    v = tl.load(x + at, mask=live, other=0)
    base = at * 0
    if EACH:
        base = (at // M) * N
    low = at * 0
    high = low + N
    for _ in range(STEPS):
        middle = (low + high) // 2
        edge = tl.load(edges + base + middle, mask=live & (low < high), other=0)
        if RIGHT:
            before = (edge <= v) | (v != v)
        else:
            before = (edge < v) | ((v != v) & (edge == edge))
        before = before & (low < high)
        low = tl.where(before, middle + 1, low)
        high = tl.where(before, high, tl.minimum(middle, high))
    tl.store(y + at, low, mask=live)


def _one_pass(x, order, values, indices, lines: int, n: int, inner: int, half: int, descending: bool) -> None:
    """Sorts by one half of the elements, in the order of an earlier pass where they are equal."""
    how = dict(HALF=half, DESCENDING=descending)
    if n <= BLOCK:
        bn = power_of_two(n)
        bl = min(power_of_two(lines), max(BLOCK // 2 // bn, 1))
        cuda.launch(sort_lines, (-(-lines // bl),), x, order, values, indices, lines, n, inner, BL=bl, BN=bn,
                    LOG=bn.bit_length() - 1, num_warps=8 if bl * bn >= 2048 else 4, **how)
        return
    p, log = power_of_two(n), BLOCK.bit_length() - 1
    keys = cuda.empty((lines, p), int64, x.device)
    cuda.launch(pack, (p // BLOCK * lines,), x, order, keys, lines, n, inner, p, BN=BLOCK, num_warps=8, **how)
    cuda.launch(sort_blocks, (p // BLOCK * lines,), keys, p, BLOCK, BN=BLOCK, LOG=log, num_warps=8)
    run = 2 * BLOCK
    while run <= p:
        apart = run // 2
        while apart >= BLOCK:
            cuda.launch(exchange, (p // BLOCK * lines,), keys, p, run, apart, BN=BLOCK // 2)
            apart //= 2
        cuda.launch(sort_blocks, (p // BLOCK * lines,), keys, p, run, BN=BLOCK, LOG=log, num_warps=8)
        run *= 2
    cuda.launch(finish, (p // BLOCK * lines,), keys, x, order, values, indices, lines, n, inner, p, BN=BLOCK,
                num_warps=8)


@cuda.remembered
def sort(input, dim=-1, descending=False, stable=True):
    specs = contract.sort.check(input, dim, descending, stable)
    values, indices = (cuda.empty(s.shape, s.dtype, input.device) for s in specs)
    if values.size:
        x = input if input.is_contiguous else contiguous_copy(input)
        numbers = lines_of(x.shape, dim)
        if x.itemsize < 8:
            _one_pass(x, None, values, indices, *numbers, WHOLE, bool(descending))
        else:
            first = cuda.empty(x.shape, int64, x.device)
            _one_pass(x, None, None, first, *numbers, LOW, bool(descending))
            _one_pass(x, first, values, indices, *numbers, HIGH, bool(descending))
    return values, indices


@cuda.remembered
def topk(input, k, dim=-1, largest=True, sorted=True):
    spec = contract.topk.check(input, k, dim, largest, sorted)[0]
    pair = sort(input, dim, bool(largest), True)
    return tuple(contiguous_copy(y.view(spec.shape, y.strides)) for y in pair)


@cuda.remembered
def searchsorted(sorted_sequence, input, right=False):
    spec = contract.searchsorted.check(sorted_sequence, input, right)
    y = cuda.empty(spec.shape, spec.dtype, input.device)
    if y.size:
        edges, x = (a if a.is_contiguous else contiguous_copy(a) for a in (sorted_sequence, input))
        n = edges.shape[-1]
        cuda.launch(search, (-(-y.size // 1024),), edges, x, y, y.size, x.shape[-1] if x.ndim else 1, n,
                    EACH=edges.ndim > 1, RIGHT=bool(right), STEPS=n.bit_length(), BLOCK=1024)
    return y
