"""Attention in tiles of the matrix of weights: one kernel forward, two backward; the weights never leave the chip.

The table of configs (gpu_configs) has the tile of each kernel: M queries, N keys, K the width of the widest head.

Source: T. Dao, "FlashAttention-2", arXiv 2307.08691, sections 3.1 and 3.2; dropout's mask is drawn again by counter.
"""
from typing import NamedTuple

import triton
import triton.language as tl

from zoo.ops import attention as contract
from zoo.ops import cuda, gpu_configs
from zoo.ops.cuda import DeviceArray
from zoo.ops.gpu_configs import Config
from zoo.ops.layout_gpu import power_of_two
from zoo.ops.matmul_gpu import divisor, kind_of
from zoo.ops.norm_gpu import dense, wide_of
from zoo.ops.random import scale_of, threshold
from zoo.ops.random_gpu import four_words, stream_at

WIDEST = 512            # widths of heads above it run in other ops, as do those for which the table has no tile


# Sizes of every kind share a kernel. `shared` is specialised: 1 costs nothing. So are a mask's strides, since only what
# Triton knows to be dense is read along neighbouring threads, in the gradients' transposed tiles too.
NUMBERS = ["L", "S", "ED", "VD", "H", "seed", "offset", "cut"]


@triton.jit
def place(COUNT, SIDE: tl.constexpr):
    """(head, first row of this program's tile) of a grid (heads * ceil(COUNT / SIDE),)."""
    tiles = tl.cdiv(COUNT, SIDE)
    return tl.program_id(0) // tiles, tl.program_id(0) % tiles * SIDE


@triton.jit
def tile(x, rows, columns, COUNT, WIDTH):
    """Rows of x (COUNT, WIDTH), fewer than 2**31 elements, zeros beyond."""
    inside = (rows < COUNT)[:, None] & (columns < WIDTH)[None, :]
    return tl.load(x + (rows[:, None] * WIDTH + columns[None, :]), mask=inside, other=0.0)


@triton.jit
def store_tile(x, values, rows, columns, COUNT, WIDTH):
    """The inverse of `tile`."""
    inside = (rows < COUNT)[:, None] & (columns < WIDTH)[None, :]
    tl.store(x + (rows[:, None] * WIDTH + columns[None, :]), values.to(x.dtype.element_ty), mask=inside)


@triton.jit
def row_numbers(lse, means, first, rows, COUNT):
    """Of rows of a head that begins at `first`: lse (heads, L), 0 where a row sees nothing, and means (heads, L)."""
    most = tl.load(lse + first + rows, mask=rows < COUNT, other=0.0)
    return tl.where(most == float("-inf"), 0.0, most), tl.load(means + first + rows, mask=rows < COUNT, other=0.0)


@triton.jit
def seen_scores(s, bias, z, m0, n0, m, n, L, S, H, strides, CAUSAL: tl.constexpr):
    """s + bias of head z, -inf where nothing is seen: query m0 + m, key n0 + n; m a column and n a row, or turned.

    64 bits only for the tile's origin: as offsets of all its elements they took 30 registers a thread.
    """
    seen = (m0 + m < L) & (n0 + n < S)
    if bias is not None:
        zero = z.to(tl.int64) * 0
        first = (z // H + zero) * strides[0] + (z % H + zero) * strides[1]
        first += (m0 + zero) * strides[2] + (n0 + zero) * strides[3]
        s += tl.load(bias + first + (m * strides[2] + n * strides[3]), mask=seen, other=0.0).to(s.dtype)
    if CAUSAL:
        seen = seen & (n0 + n <= m0 + m)
    return tl.where(seen, s, float("-inf"))


@triton.jit
def stays(word, cut):
    """1 where a word's upper 24 bits reach the threshold of dropout; a byte each, as they are moved between threads."""
    return (word >> 8 >= cut.to(tl.uint32)).to(tl.int8)


@triton.jit
def kept(z, m0, n0, L, S, seed, offset, cut, FOURS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Which weights dropout leaves of the tile [BM, BN] at query m0, key n0 of head z: a draw for (heads, L, S).

    FOURS: 4 divides S. Then the four words of a Philox block belong to neighbours in a row, and are drawn once.
    """
    first = (z.to(tl.int64) * L + m0) * S + n0
    m = tl.arange(0, BM)[:, None]
    if FOURS:
        block = first // 4 + (m * (S // 4) + tl.arange(0, BN // 4)[None, :])
        a, b, c, d = four_words(seed, offset, block)
        even = tl.join(stays(a, cut), stays(c, cut))
        return tl.join(even, tl.join(stays(b, cut), stays(d, cut))).reshape(BM, BN) != 0
    else:
        element = first + (m * S + tl.arange(0, BN)[None, :])
        a, b, c, d = four_words(seed, offset, element // 4)
        word = element % 4
        return stays(tl.where(word == 0, a, tl.where(word == 1, b, tl.where(word == 2, c, d))), cut) != 0


@triton.jit(do_not_specialize=NUMBERS)
def attend(q, k, v, bias, y, lse, L, S, ED, VD, H, shared, strides, scale: "fp64", state, seed: "i64",  # noqa: F821
           offset: "i64", cut: "i64", factor: "fp64", CAUSAL: tl.constexpr, DROP: tl.constexpr,  # noqa: F821
           FOURS: tl.constexpr, DIV: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr,
           BN: tl.constexpr, BE: tl.constexpr, BV: tl.constexpr):
    """y (heads, L, V), lse (heads, L) from q (heads, L, E), k, v (heads / shared, S, E or V), heads = B * H.

    bias (B, H, L, S) at `strides`, or None; E = ED*DIV, V = VD*DIV. Grid: (heads * ceil(L / BM),).
    """
    E = ED * DIV
    V = VD * DIV
    z, m0 = place(L, BM)
    m, n = tl.arange(0, BM), tl.arange(0, BN)
    re, rv = tl.arange(0, BE), tl.arange(0, BV)
    head = z.to(tl.int64)
    source = (z // shared).to(tl.int64)
    seed, offset = stream_at(state, seed, offset)
    queries = tile(q + head * L * E, m0 + m, re, L, E)
    most = tl.full((BM,), float("-inf"), WIDE)
    total = tl.zeros((BM,), WIDE)
    out = tl.zeros((BM, BV), WIDE)
    end = S
    if CAUSAL:
        end = tl.minimum(S, m0 + BM)
    for n0 in range(0, end, BN):
        keys = tile(k + source * S * E, n0 + n, re, S, E)
        s = tl.dot(queries, tl.trans(keys), input_precision=PRECISION, out_dtype=WIDE) * scale.to(WIDE)
        s = seen_scores(s, bias, z, m0, n0, m[:, None], n[None, :], L, S, H, strides, CAUSAL)
        up = tl.maximum(most, tl.max(s, 1))
        safe = tl.where(up == float("-inf"), 0.0, up)
        w = tl.exp(s - safe[:, None])
        shrink = tl.exp(most - safe)
        total = total * shrink + tl.sum(w, 1)
        if DROP:
            w = tl.where(kept(z, m0, n0, L, S, seed, offset, cut, FOURS, BM, BN), w * factor.to(WIDE), 0.0)
        values = tile(v + source * S * V, n0 + n, rv, S, V)
        out = tl.dot(w.to(values.dtype), values, out * shrink[:, None], input_precision=PRECISION, out_dtype=WIDE)
        most = up
    out = out / tl.where(total == 0, 1.0, total)[:, None]
    store_tile(y + head * L * V, out, m0 + m, rv, L, V)
    tl.store(lse + head * L + m0 + m, tl.where(total == 0, float("-inf"), most + tl.log(total)), mask=m0 + m < L)


@triton.jit(do_not_specialize=["rows"])
def row_products(x, y, sums, rows, V, BM: tl.constexpr, BV: tl.constexpr):
    """sums (rows,) = the sums along the rows of x * y, both (rows, V) dense. Grid: (ceil(rows / BM),)."""
    rm = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    rv = tl.arange(0, BV)
    inside = (rm < rows)[:, None] & (rv < V)[None, :]
    at = rm[:, None] * V + rv[None, :]
    dtype: tl.constexpr = sums.dtype.element_ty
    products = tl.load(x + at, mask=inside, other=0).to(dtype) * tl.load(y + at, mask=inside, other=0).to(dtype)
    tl.store(sums + rm, tl.sum(products, 1), mask=rm < rows)


@triton.jit(do_not_specialize=NUMBERS)
def grad_query(q, k, v, bias, lse, dy, means, dq, dscores, L, S, ED, VD, H, shared, strides, scale: "fp64",  # noqa: F821
               state, seed: "i64", offset: "i64", cut: "i64", factor: "fp64", CAUSAL: tl.constexpr,  # noqa: F821
               DROP: tl.constexpr, FOURS: tl.constexpr, DIV: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
               BM: tl.constexpr, BN: tl.constexpr, BE: tl.constexpr, BV: tl.constexpr):
    """dq (heads, L, E), and dscores (heads, L, S) unless None; dy as y, means (heads, L) the row sums of dy * y.

    The others as `attend`. Grid: (heads * ceil(L / BM),).
    """
    E = ED * DIV
    V = VD * DIV
    z, m0 = place(L, BM)
    m, n = tl.arange(0, BM), tl.arange(0, BN)
    re, rv = tl.arange(0, BE), tl.arange(0, BV)
    head = z.to(tl.int64)
    source = (z // shared).to(tl.int64)
    seed, offset = stream_at(state, seed, offset)
    queries = tile(q + head * L * E, m0 + m, re, L, E)
    g = tile(dy + head * L * V, m0 + m, rv, L, V)
    most, mean = row_numbers(lse, means, head * L, m0 + m, L)
    total = tl.zeros((BM, BE), WIDE)
    end = S
    if CAUSAL:
        end = tl.minimum(S, m0 + BM)
    for n0 in range(0, end, BN):
        values = tile(v + source * S * V, n0 + n, rv, S, V)
        dw = tl.dot(g, tl.trans(values), input_precision=PRECISION, out_dtype=WIDE)
        if DROP:
            dw = tl.where(kept(z, m0, n0, L, S, seed, offset, cut, FOURS, BM, BN), dw * factor.to(WIDE), 0.0)
        keys = tile(k + source * S * E, n0 + n, re, S, E)
        s = tl.dot(queries, tl.trans(keys), input_precision=PRECISION, out_dtype=WIDE) * scale.to(WIDE)
        s = seen_scores(s, bias, z, m0, n0, m[:, None], n[None, :], L, S, H, strides, CAUSAL)
        ds = tl.exp(s - most[:, None]) * (dw - mean[:, None])
        if dscores is not None:
            inside = (m0 + m < L)[:, None] & (n0 + n < S)[None, :]
            tl.store(dscores + (head * L + m0) * S + n0 + (m[:, None] * S + n[None, :]), ds, mask=inside)
        total = tl.dot(ds.to(keys.dtype), keys, total, input_precision=PRECISION, out_dtype=WIDE)
    store_tile(dq + head * L * E, total * scale.to(WIDE), m0 + m, re, L, E)


@triton.jit(do_not_specialize=NUMBERS)
def grad_key_value(q, k, v, bias, lse, dy, means, dk, dv, L, S, ED, VD, H, shared, strides, scale: "fp64",  # noqa: F821
                   state, seed: "i64", offset: "i64", cut: "i64", factor: "fp64", CAUSAL: tl.constexpr,  # noqa: F821
                   DROP: tl.constexpr, FOURS: tl.constexpr, DIV: tl.constexpr, WIDE: tl.constexpr,
                   PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BE: tl.constexpr, BV: tl.constexpr):
    """dk (heads, S, E), dv (heads, S, V): also of heads that share keys each its own; the others as `grad_query`.

    Grid: (heads * ceil(S / BN),).
    Tiles of scores lie transposed, keys down and queries across: so they are left operands of the sums as they are.
    """
    E = ED * DIV
    V = VD * DIV
    z, n0 = place(S, BN)
    m, n = tl.arange(0, BM), tl.arange(0, BN)
    re, rv = tl.arange(0, BE), tl.arange(0, BV)
    head = z.to(tl.int64)
    source = (z // shared).to(tl.int64)
    seed, offset = stream_at(state, seed, offset)
    keys = tile(k + source * S * E, n0 + n, re, S, E)
    values = tile(v + source * S * V, n0 + n, rv, S, V)
    total_k = tl.zeros((BN, BE), WIDE)
    total_v = tl.zeros((BN, BV), WIDE)
    begin = 0
    if CAUSAL:
        begin = n0 // BM * BM
    for m0 in range(begin, L, BM):
        queries = tile(q + head * L * E, m0 + m, re, L, E)
        most, mean = row_numbers(lse, means, head * L, m0 + m, L)
        s = tl.dot(keys, tl.trans(queries), input_precision=PRECISION, out_dtype=WIDE) * scale.to(WIDE)
        s = seen_scores(s, bias, z, m0, n0, m[None, :], n[:, None], L, S, H, strides, CAUSAL)
        w = tl.exp(s - most[None, :])
        drawn = w
        if DROP:
            stay = tl.trans(kept(z, m0, n0, L, S, seed, offset, cut, FOURS, BM, BN))
            drawn = tl.where(stay, w * factor.to(WIDE), 0.0)
        g = tile(dy + head * L * V, m0 + m, rv, L, V)
        total_v = tl.dot(drawn.to(g.dtype), g, total_v, input_precision=PRECISION, out_dtype=WIDE)
        dw = tl.dot(values, tl.trans(g), input_precision=PRECISION, out_dtype=WIDE)
        ds = drawn * dw - w * mean[None, :]
        total_k = tl.dot(ds.to(queries.dtype), queries, total_k, input_precision=PRECISION, out_dtype=WIDE)
    store_tile(dk + head * S * E, total_k * scale.to(WIDE), n0 + n, re, S, E)
    store_tile(dv + head * S * V, total_v, n0 + n, rv, S, V)


class Sizes(NamedTuple):
    """B * H heads of L rows and S keys, of widths E and V; of keys and values each for `shared` heads."""
    heads: int
    shared: int
    L: int
    S: int
    E: int
    V: int


def sizes_of(query: DeviceArray, value: DeviceArray) -> Sizes:
    b, h, length, width = query.shape
    return Sizes(b * h, h // max(value.shape[1], 1), length, value.shape[2], width, value.shape[3])


def _kind_of(dtype) -> str:
    kind = kind_of(dtype)
    return "ieee" if kind == "tf32x3" else kind             # three products of every tile would not fit the registers


def config_of(op: str, query: DeviceArray, bias, sizes: Sizes, causal: bool, p: float) -> Config:
    """The tile that the table of configs has for one of the kernels."""
    tags = ["causal"] * bool(causal) + ["plain"] * (not p and bias is None)
    widest = max(16, power_of_two(max(sizes.E, sizes.V)))
    return gpu_configs.choose(op, _kind_of(query.dtype), sizes.L, sizes.S, widest, sizes.heads, tags)


def _fits(sizes: Sizes, *configs: Config) -> bool:
    """Whether the kernels hold a row of such heads; where no tile fits the table says "composed"."""
    return max(sizes.E, sizes.V) <= WIDEST and all(config.kernel != "composed" for config in configs)


class Call(NamedTuple):
    """What the three kernels share: query, key, value, bias as they lie in memory, numbers and constants."""
    arrays: tuple
    sizes: Sizes
    numbers: tuple
    constants: dict


def call_of(query, key, value, bias, sizes: Sizes, causal, scale, p, drawn: tuple) -> Call:
    """drawn: state, seed and offset of dropout's mask, as cuda.random_state gives them."""
    be, bv = (max(16, power_of_two(n)) for n in (sizes.E, sizes.V))
    div = divisor(16 // query.itemsize, sizes.E, sizes.V)
    strides = (0,) * 4 if bias is None else tuple(
        0 if n == 1 else stride for n, stride in zip(bias.shape, bias.strides, strict=True))
    numbers = (sizes.L, sizes.S, sizes.E // div, sizes.V // div, query.shape[1], sizes.shared, strides, float(scale),
               *drawn, threshold(p), float(scale_of(p)))
    precision = "tf32" if _kind_of(query.dtype) == "tf32" else "ieee"
    constants = dict(CAUSAL=bool(causal), DROP=p > 0, FOURS=p > 0 and sizes.S % 4 == 0, DIV=div,
                     WIDE=wide_of(query.dtype), PRECISION=precision, BE=be, BV=bv)
    return Call((*map(dense, (query, key, value)), bias), sizes, numbers, constants)


def _drawn(p: float, seed: int, offset: int) -> tuple:
    return cuda.random_state(seed, offset) if p else (None, 0, 0)


def launch_tiles(kernel, call: Call, config: Config, *arrays):
    """One of the three: a program for every tile of rows, or of keys, of every head."""
    by_keys = kernel is grad_key_value
    tiles = -(-call.sizes.S // config.BN) if by_keys else -(-call.sizes.L // config.BM)
    cuda.launch(kernel, (call.sizes.heads * tiles,), *call.arrays, *arrays, *call.numbers, **call.constants,
                BM=config.BM, BN=config.BN, num_warps=config.num_warps, num_stages=config.num_stages,
                maxnreg=config.registers or None)


def products_of_rows(call: Call, dy: DeviceArray, y: DeviceArray, lse: DeviceArray) -> DeviceArray:
    """The sums along the rows of dy * y, as lse lies."""
    means = cuda.empty(lse.shape, lse.dtype, y.device)
    cuda.launch(row_products, (-(-lse.size // 16),), dy, y, means, lse.size, call.sizes.V, BM=16,
                BV=call.constants["BV"])
    return means


@cuda.remembered
def attention(query, key, value, bias, causal, scale, p, seed, offset):
    specs = contract.attention.check(query, key, value, bias, causal, scale, p, seed, offset)
    sizes = sizes_of(query, value)
    config = config_of("attend", query, bias, sizes, causal, p)
    if not _fits(sizes, config):
        return contract.attention.decompose(query, key, value, bias, causal, scale, p, seed, offset)
    y, lse = (cuda.empty(s.shape, s.dtype, query.device) for s in specs)
    if lse.size:
        call = call_of(query, key, value, bias, sizes, causal, scale, p, _drawn(p, seed, offset))
        launch_tiles(attend, call, config, y, lse)
    return y, lse


@cuda.remembered
def attention_grad(dy, query, key, value, bias, y, lse, causal, scale, p, seed, offset, want_bias):
    sizes = sizes_of(query, value)
    rows, columns = (config_of(op, query, bias, sizes, causal, p) for op in ("grad_query", "grad_key_value"))
    if not _fits(sizes, rows, columns) or not (sizes.heads and sizes.L and sizes.S):
        return contract.attention_grad.decompose(dy, query, key, value, bias, y, lse, causal, scale, p, seed, offset,
                                                 want_bias)
    # Of heads that share keys each writes its own gradients, which are then summed: a loop over them in the kernel
    # spilled registers in its float32 tiles.
    dq, dk, dv = (cuda.empty((*query.shape[:2], *x.shape[2:]), x.dtype, x.device) for x in (query, key, value))
    dscores = None
    if want_bias:
        dscores = cuda.empty((*query.shape[:3], sizes.S), lse.dtype, query.device)
        if causal:
            cuda.fill_bytes(dscores)                        # tiles that nobody sees are not visited
    g, y, lse = map(dense, (dy, y, lse))
    call = call_of(query, key, value, bias, sizes, causal, scale, p, _drawn(p, seed, offset))
    means = products_of_rows(call, g, y, lse)
    launch_tiles(grad_query, call, rows, lse, g, means, dq, dscores)
    launch_tiles(grad_key_value, call, columns, lse, g, means, dk, dv)
    dbias = cuda.empty((0,), query.dtype, query.device) if dscores is None else contract.cast(
        contract.sum_to(dscores, tuple(bias.shape)), query.dtype)
    return dq, *(contract.sum_of_shared(d, key.shape[1]) for d in (dk, dv)), dbias
