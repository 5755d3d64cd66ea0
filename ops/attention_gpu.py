"""Attention in tiles of the matrix of weights: one kernel forward, two backward; the weights never leave the chip.

Source: T. Dao, "FlashAttention-2", arXiv 2307.08691, sections 3.1 and 3.2; dropout's mask is drawn again by counter.
"""
from typing import NamedTuple

import triton
import triton.language as tl

from zoo.ops import attention as contract
from zoo.ops import cuda
from zoo.ops.cuda import DeviceArray
from zoo.ops.layout_gpu import power_of_two
from zoo.ops.matmul_gpu import kind_of
from zoo.ops.norm_gpu import dense, wide_of
from zoo.ops.random import scale_of, threshold
from zoo.ops.random_gpu import four_words, stream_at

WIDEST = 512            # widths of heads above it run in other ops


class Tile(NamedTuple):
    """Queries and keys of a tile of weights, and how many warps work on it."""
    BM: int
    BN: int
    num_warps: int


# For each kind of arithmetic: (widest head, tiles of attend, grad_query, grad_key_value), the first that is wide
# enough. Chosen by compiling for sm_80, 90, 100: no spilled register, but for 8 to 32 bytes in grad_key_value of heads
# of 64 with a mask or dropout, on sm_80 and sm_100. Its scores lie transposed, and wgmma wants 64 rows. Not measured.
TILES = {
    "half": ((64, Tile(64, 64, 8), Tile(64, 32, 4), Tile(32, 64, 4)),
             (128, Tile(64, 64, 8), Tile(64, 64, 8), Tile(32, 64, 8)),
             (256, *(Tile(32, 32, 8),) * 3), (512, *(Tile(16, 16, 8),) * 3)),
    "tf32": ((64, Tile(64, 64, 8), Tile(64, 32, 8), Tile(32, 64, 8)), (128, *(Tile(32, 32, 8),) * 3),
             (512, *(Tile(16, 16, 8),) * 3)),
    "ieee": ((64, *(Tile(32, 32, 8),) * 3), (512, *(Tile(16, 16, 8),) * 3)),
    "double": ((32, *(Tile(32, 32, 8),) * 3), (512, *(Tile(16, 16, 8),) * 3)),
}


@triton.jit
def tile(x, rows, columns, COUNT, WIDTH):
    """Rows of x (COUNT, WIDTH), fewer than 2**31 elements, zeros beyond."""
    inside = (rows < COUNT)[:, None] & (columns < WIDTH)[None, :]
    return tl.load(x + (rows[:, None] * WIDTH + columns[None, :]), mask=inside, other=0.0)


@triton.jit
def seen_scores(s, bias, z, m, n, L, S, H, strides, CAUSAL: tl.constexpr):
    """s + bias of head z, -inf where nothing is seen: query m, key n, one of them a column and the other a row."""
    seen = (m < L) & (n < S)
    if bias is not None:
        first = bias + (z // H).to(tl.int64) * strides[0] + (z % H).to(tl.int64) * strides[1]
        at = m.to(tl.int64) * strides[2] + n.to(tl.int64) * strides[3]
        s += tl.load(first + at, mask=seen, other=0.0).to(s.dtype)
    if CAUSAL:
        seen = seen & (n <= m)
    return tl.where(seen, s, float("-inf"))


@triton.jit
def dropped(x, z, m, n, L, S, seed, offset, cut, factor, DROP: tl.constexpr):
    """x times dropout's factors: element (z, query m, key n) of a draw for (heads, L, S); x itself without dropout."""
    if DROP:
        element = (z.to(tl.int64) * L + m) * S + n
        a, b, c, d = four_words(seed, offset, element // 4)
        word = element % 4
        drawn = tl.where(word == 0, a, tl.where(word == 1, b, tl.where(word == 2, c, d)))
        x *= tl.where((drawn >> 8).to(tl.int64) >= cut, factor.to(x.dtype), 0.0)
    return x


@triton.jit(do_not_specialize=["L", "S", "H", "strides", "seed", "offset", "cut"])
def attend(q, k, v, bias, y, lse, L, S, E, V, H, strides, scale: "fp64", state, seed: "i64",  # noqa: F821
           offset: "i64", cut: "i64", factor: "fp64", CAUSAL: tl.constexpr, DROP: tl.constexpr,  # noqa: F821
           WIDE: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BE: tl.constexpr,
           BV: tl.constexpr):
    """y (heads, L, V), lse (heads, L) from q (heads, L, E), k (heads, S, E), v (heads, S, V), heads = B * H.

    bias (B, H, L, S) at `strides`, or None. Grid: (ceil(L / BM), heads).
    """
    z = tl.program_id(1)
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    re, rv = tl.arange(0, BE), tl.arange(0, BV)
    head = z.to(tl.int64)
    seed, offset = stream_at(state, seed, offset)
    queries = tile(q + head * L * E, rm, re, L, E)
    most = tl.full((BM,), float("-inf"), WIDE)
    total = tl.zeros((BM,), WIDE)
    out = tl.zeros((BM, BV), WIDE)
    end = S
    if CAUSAL:
        end = tl.minimum(S, (tl.program_id(0) + 1) * BM)
    for j in range(0, end, BN):
        rn = j + tl.arange(0, BN)
        keys = tile(k + head * S * E, rn, re, S, E)
        s = tl.dot(queries, tl.trans(keys), input_precision=PRECISION, out_dtype=WIDE) * scale.to(WIDE)
        s = seen_scores(s, bias, z, rm[:, None], rn[None, :], L, S, H, strides, CAUSAL)
        up = tl.maximum(most, tl.max(s, 1))
        safe = tl.where(up == float("-inf"), 0.0, up)
        w = tl.exp(s - safe[:, None])
        shrink = tl.exp(most - safe)
        total = total * shrink + tl.sum(w, 1)
        w = dropped(w, z, rm[:, None], rn[None, :], L, S, seed, offset, cut, factor, DROP)
        values = tile(v + head * S * V, rn, rv, S, V)
        out = tl.dot(w.to(values.dtype), values, out * shrink[:, None], input_precision=PRECISION, out_dtype=WIDE)
        most = up
    out = out / tl.where(total == 0, 1.0, total)[:, None]
    inside = (rm < L)[:, None] & (rv < V)[None, :]
    tl.store(y + (head * L + rm)[:, None] * V + rv[None, :], out.to(y.dtype.element_ty), mask=inside)
    tl.store(lse + head * L + rm, tl.where(total == 0, float("-inf"), most + tl.log(total)), mask=rm < L)


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


@triton.jit(do_not_specialize=["L", "S", "H", "strides", "seed", "offset", "cut"])
def grad_query(q, k, v, bias, lse, dy, means, dq, dscores, L, S, E, V, H, strides, scale: "fp64", state,  # noqa: F821
               seed: "i64", offset: "i64", cut: "i64", factor: "fp64", CAUSAL: tl.constexpr,  # noqa: F821
               DROP: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
               BE: tl.constexpr, BV: tl.constexpr):
    """dq (heads, L, E), and dscores (heads, L, S) unless None; dy as y, means (heads, L) the row sums of dy * y.

    The others as `attend`. Grid: (ceil(L / BM), heads).
    """
    z = tl.program_id(1)
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    re, rv = tl.arange(0, BE), tl.arange(0, BV)
    head = z.to(tl.int64)
    seed, offset = stream_at(state, seed, offset)
    queries = tile(q + head * L * E, rm, re, L, E)
    g = tile(dy + head * L * V, rm, rv, L, V)
    most = tl.load(lse + head * L + rm, mask=rm < L, other=0.0)
    most = tl.where(most == float("-inf"), 0.0, most)
    mean = tl.load(means + head * L + rm, mask=rm < L, other=0.0)
    total = tl.zeros((BM, BE), WIDE)
    end = S
    if CAUSAL:
        end = tl.minimum(S, (tl.program_id(0) + 1) * BM)
    for j in range(0, end, BN):
        rn = j + tl.arange(0, BN)
        keys = tile(k + head * S * E, rn, re, S, E)
        values = tile(v + head * S * V, rn, rv, S, V)
        s = tl.dot(queries, tl.trans(keys), input_precision=PRECISION, out_dtype=WIDE) * scale.to(WIDE)
        w = tl.exp(seen_scores(s, bias, z, rm[:, None], rn[None, :], L, S, H, strides, CAUSAL) - most[:, None])
        dw = tl.dot(g, tl.trans(values), input_precision=PRECISION, out_dtype=WIDE)
        dw = dropped(dw, z, rm[:, None], rn[None, :], L, S, seed, offset, cut, factor, DROP)
        ds = w * (dw - mean[:, None])
        if dscores is not None:
            inside = (rm < L)[:, None] & (rn < S)[None, :]
            tl.store(dscores + (head * L + rm)[:, None] * S + rn[None, :], ds, mask=inside)
        total = tl.dot(ds.to(keys.dtype), keys, total, input_precision=PRECISION, out_dtype=WIDE)
    inside = (rm < L)[:, None] & (re < E)[None, :]
    total = total * scale.to(WIDE)
    tl.store(dq + (head * L + rm)[:, None] * E + re[None, :], total.to(dq.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["L", "S", "H", "strides", "seed", "offset", "cut"])
def grad_key_value(q, k, v, bias, lse, dy, means, dk, dv, L, S, E, V, H, strides, scale: "fp64", state,  # noqa: F821
                   seed: "i64", offset: "i64", cut: "i64", factor: "fp64", CAUSAL: tl.constexpr,  # noqa: F821
                   DROP: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr,
                   BN: tl.constexpr, BE: tl.constexpr, BV: tl.constexpr):
    """dk (heads, S, E), dv (heads, S, V); the others as `grad_query`. Grid: (ceil(S / BN), heads).

    Tiles of scores lie transposed, keys down and queries across: so they are left operands of the sums as they are.
    """
    z = tl.program_id(1)
    rn = tl.program_id(0) * BN + tl.arange(0, BN)
    re, rv = tl.arange(0, BE), tl.arange(0, BV)
    head = z.to(tl.int64)
    seed, offset = stream_at(state, seed, offset)
    keys = tile(k + head * S * E, rn, re, S, E)
    values = tile(v + head * S * V, rn, rv, S, V)
    total_k = tl.zeros((BN, BE), WIDE)
    total_v = tl.zeros((BN, BV), WIDE)
    begin = 0
    if CAUSAL:
        begin = tl.program_id(0) * BN // BM * BM
    for i in range(begin, L, BM):
        rm = i + tl.arange(0, BM)
        queries = tile(q + head * L * E, rm, re, L, E)
        g = tile(dy + head * L * V, rm, rv, L, V)
        most = tl.load(lse + head * L + rm, mask=rm < L, other=0.0)
        most = tl.where(most == float("-inf"), 0.0, most)
        s = tl.dot(keys, tl.trans(queries), input_precision=PRECISION, out_dtype=WIDE) * scale.to(WIDE)
        w = tl.exp(seen_scores(s, bias, z, rm[None, :], rn[:, None], L, S, H, strides, CAUSAL) - most[None, :])
        kept = dropped(w, z, rm[None, :], rn[:, None], L, S, seed, offset, cut, factor, DROP)
        total_v = tl.dot(kept.to(g.dtype), g, total_v, input_precision=PRECISION, out_dtype=WIDE)
        dw = tl.dot(values, tl.trans(g), input_precision=PRECISION, out_dtype=WIDE)
        mean = tl.load(means + head * L + rm, mask=rm < L, other=0.0)
        ds = kept * dw - w * mean[None, :]
        total_k = tl.dot(ds.to(queries.dtype), queries, total_k, input_precision=PRECISION, out_dtype=WIDE)
    total_k = total_k * scale.to(WIDE)
    at = (head * S + rn)[:, None]
    tl.store(dk + at * E + re[None, :], total_k.to(dk.dtype.element_ty), mask=(rn < S)[:, None] & (re < E)[None, :])
    tl.store(dv + at * V + rv[None, :], total_v.to(dv.dtype.element_ty), mask=(rn < S)[:, None] & (rv < V)[None, :])


class Sizes(NamedTuple):
    """B * H heads of L rows and S keys, of widths E and V."""
    heads: int
    L: int
    S: int
    E: int
    V: int


def _sizes(query: DeviceArray, value: DeviceArray) -> Sizes:
    b, h, length, width = query.shape
    return Sizes(b * h, length, value.shape[2], width, value.shape[3])


def _kind_of(dtype) -> str:
    kind = kind_of(dtype)
    return "ieee" if kind == "tf32x3" else kind             # three products of every tile would not fit the registers


def _tiles(dtype, constants: dict) -> list[dict]:
    """The constants of attend, grad_query and grad_key_value: which tile each of them works on."""
    widest = max(constants["BE"], constants["BV"])
    tiles = next(tiles for most, *tiles in TILES[_kind_of(dtype)] if widest <= most)
    return [constants | tile._asdict() for tile in tiles]


def _common(query, bias, sizes: Sizes, causal, scale, p, seed, offset) -> tuple[tuple, dict]:
    """The arguments and constants that all kernels share, after the arrays."""
    be, bv = (max(16, power_of_two(n)) for n in (sizes.E, sizes.V))
    strides = (0,) * 4 if bias is None else tuple(
        0 if n == 1 else stride for n, stride in zip(bias.shape, bias.strides, strict=True))
    drawn = cuda.random_state(seed, offset) if p else (None, 0, 0)
    numbers = (*sizes[1:], query.shape[1], strides, float(scale), *drawn, threshold(p), float(scale_of(p)))
    precision = "tf32" if _kind_of(query.dtype) == "tf32" else "ieee"
    return numbers, dict(CAUSAL=bool(causal), DROP=p > 0, WIDE=wide_of(query.dtype), PRECISION=precision, BE=be, BV=bv)


def attention(query, key, value, bias, causal, scale, p, seed, offset):
    specs = contract.attention.check(query, key, value, bias, causal, scale, p, seed, offset)
    sizes = _sizes(query, value)
    if max(sizes.E, sizes.V) > WIDEST:
        return contract.attention.decompose(query, key, value, bias, causal, scale, p, seed, offset)
    y, lse = (cuda.empty(s.shape, s.dtype, query.device) for s in specs)
    if lse.size:
        q, k, v = map(dense, (query, key, value))
        numbers, constants = _common(q, bias, sizes, causal, scale, p, seed, offset)
        how, _, _ = _tiles(q.dtype, constants)
        cuda.launch(attend, (-(-sizes.L // how["BM"]), sizes.heads), q, k, v, bias, y, lse, *numbers, **how)
    return y, lse


def attention_grad(dy, query, key, value, bias, y, lse, causal, scale, p, seed, offset, want_bias):
    sizes = _sizes(query, value)
    if max(sizes.E, sizes.V) > WIDEST or not (sizes.heads and sizes.L and sizes.S):
        return contract.attention_grad.decompose(dy, query, key, value, bias, y, lse, causal, scale, p, seed, offset,
                                                 want_bias)
    g, q, k, v, y, lse = map(dense, (dy, query, key, value, y, lse))
    dq, dk, dv = (cuda.empty(x.shape, x.dtype, x.device) for x in (q, k, v))
    dscores = None
    if want_bias:
        dscores = cuda.empty((*query.shape[:3], sizes.S), lse.dtype, q.device)
        if causal:
            cuda.fill_bytes(dscores)                        # tiles that nobody sees are not visited
    numbers, constants = _common(q, bias, sizes, causal, scale, p, seed, offset)
    means = cuda.empty(lse.shape, lse.dtype, q.device)
    cuda.launch(row_products, (-(-lse.size // 16),), g, y, means, lse.size, sizes.V, BM=16, BV=constants["BV"])
    known = q, k, v, bias, lse, g, means
    _, rows, columns = _tiles(q.dtype, constants)
    cuda.launch(grad_query, (-(-sizes.L // rows["BM"]), sizes.heads), *known, dq, dscores, *numbers, **rows)
    cuda.launch(grad_key_value, (-(-sizes.S // columns["BN"]), sizes.heads), *known, dk, dv, *numbers, **columns)
    dbias = cuda.empty((0,), q.dtype, q.device) if dscores is None else contract.cast(
        contract.sum_to(dscores, tuple(bias.shape)), q.dtype)
    return dq, dk, dv, dbias
