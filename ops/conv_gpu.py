"""Implicit-GEMM convolution on tensor cores: the columns of im2col exist only as tiles in shared memory.

Images lie as NHWC and weights as KRSC here (others are copied at the door), results come back as NCHW views of NHWC
memory. M = pixels of the result, groups are a grid axis. Integers arrive unspecialised and divided by a known power of
two (DC, DK), which keeps 16-byte loads and compiles one kernel for all image sizes; pixel numbers are taken apart by
multiply-high. With less than 16 channels a group (COLS), the inner loop runs over (r, s, c) flattened: no wasted MMA.
"""
import math
from typing import NamedTuple

import triton
import triton.language as tl

from zoo.ops import conv as contract
from zoo.ops import cuda
from zoo.ops.cuda import DeviceArray
from zoo.ops.dtypes import float32, float64
from zoo.ops.matmul_gpu import add_parts, divisor, kind_of, multiply, split_of, tile_of, with_bias, without_bias
from zoo.ops.pointwise_gpu import contiguous_copy
from zoo.ops.window import Window

SIZES = ["M", "H", "W", "CD", "KD", "P", "Q", "CgD", "KgD", "steps", "mul_pq", "shift_pq", "mul_q", "shift_q"]


@triton.jit
def divide(n, mul, shift):
    """n // d for 0 <= n < 2**31, with d's magic numbers (see `magic`)."""
    u = n.to(tl.uint32)
    return ((tl.umulhi(u, mul.to(tl.uint32, bitcast=True) + tl.zeros_like(u)) + u) >> shift.to(tl.uint32)).to(tl.int32)


@triton.jit
def pixel(i, P, Q, mul_pq, shift_pq, mul_q, shift_q):
    """Image, row and column of pixel number i."""
    n = divide(i, mul_pq, shift_pq)
    rest = i - n * (P * Q)
    p = divide(rest, mul_q, shift_q)
    return n, p, rest - p * Q


@triton.jit
def within(i, size):
    """0 <= i < size in one comparison."""
    return i.to(tl.uint32, bitcast=True) < size.to(tl.uint32)


@triton.jit(do_not_specialize=SIZES)
def fprop(x, w, y, bias, M, H, W, CD, KD, P, Q, CgD, KgD, steps, mul_pq, shift_pq, mul_q, shift_q,
          DC: tl.constexpr, DK: tl.constexpr, R: tl.constexpr, S: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
          TOP: tl.constexpr, LEFT: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr, COLS: tl.constexpr,
          EVEN: tl.constexpr, WIDE: tl.constexpr, EPILOGUE: tl.constexpr, ACC: tl.constexpr, PRECISION: tl.constexpr,
          BM: tl.constexpr, BN: tl.constexpr, BC: tl.constexpr):
    """y = EPILOGUE(conv(x, w)): x (N, H, W, C), w (K, R, S, Cg), y (N, P, Q, K), bias (K,) or None.

    `steps` of BC channels: tap by tap, or with COLS through (R, S, Cg) flattened. EVEN: BC divides Cg. C = CD*DC.
    Grid: (ceil(M / BM) * ceil(Kg / BN), groups).
    """
    C, Cg, K, Kg = CD * DC, CgD * DC, KD * DK, KgD * DK
    pm, pn = tile_of(tl.program_id(0), M, Kg, BM, BN, 8)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rc = tl.arange(0, BC)
    n, p, q = pixel(rm, P, Q, mul_pq, shift_pq, mul_q, shift_q)
    h0 = (p * SH - TOP)[:, None]
    w0 = (q * SW - LEFT)[:, None]
    if WIDE:
        n = n.to(tl.int64)
    rn_all = tl.program_id(1) * Kg + rn
    px = x + (((n * H)[:, None] + h0) * W + w0) * C + tl.program_id(1) * Cg      # in the padding: outside, masked
    pw = w + (rn_all * (R * S * Cg))[None, :]
    inside_m = (rm < M)[:, None]
    inside_n = rn < Kg
    acc = tl.zeros((BM, BN), ACC)
    r, s, c = 0, 0, 0
    for step in range(0, steps):
        if COLS:
            k = step * BC + rc
            row = k // (S * Cg) * DH
            col = k // Cg % S * DW
            dh, dw = row[None, :], col[None, :]
            dx = (row * W + col) * C + k % Cg
            inside_c = k < R * S * Cg
        else:
            k = (r * S + s) * Cg + c + rc
            dh, dw = r * DH, s * DW
            dx = (dh * W + dw) * C + c + rc
            inside_c = rc < Cg - c
        ok = inside_m & within(h0 + dh, H) & within(w0 + dw, W)
        if EVEN:
            a = tl.load(px + dx[None, :], mask=ok, other=0)
            b = tl.load(pw + k[:, None], mask=inside_n[None, :], other=0)
        else:
            a = tl.load(px + dx[None, :], mask=ok & inside_c[None, :], other=0)
            b = tl.load(pw + k[:, None], mask=inside_c[:, None] & inside_n[None, :], other=0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=ACC)
        if not COLS:                                   # the next channels, column, row: selects instead of // and %
            c += BC
            s = tl.where(c >= Cg, s + 1, s)
            c = tl.where(c >= Cg, 0, c)
            r = tl.where(s == S, r + 1, r)
            s = tl.where(s == S, 0, s)
    out = EPILOGUE(acc, bias, rn_all, inside_n).to(y.dtype.element_ty)
    if WIDE:
        rm = rm.to(tl.int64)
    tl.store(y + (rm * K)[:, None] + rn_all[None, :], out, mask=inside_m & inside_n[None, :])


@triton.jit(do_not_specialize=["N", *SIZES[1:9], *SIZES[10:]])
def dgrad(dy, w, dx, bias, N, H, W, CD, KD, P, Q, CgD, KgD, mul_pq, shift_pq, mul_q, shift_q,
          DC: tl.constexpr, DK: tl.constexpr, R: tl.constexpr, S: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
          TOP: tl.constexpr, LEFT: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr, RSTEP: tl.constexpr,
          SSTEP: tl.constexpr, EVEN: tl.constexpr, WIDE: tl.constexpr, EPILOGUE: tl.constexpr, ACC: tl.constexpr,
          PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """dx = EPILOGUE(input gradient): dy (N, P, Q, K), w (K, R, S, Cg), dx (N, H, W, C), bias (C,) or None.

    Pixels of dx fall into SH*SW classes (h % SH, w % SW), one a program: a class meets only every RSTEP-th, SSTEP-th
    tap, so that a stride costs no more than the forward pass. Each pixel is written, also where no tap leads.
    Magic numbers are those of a class, (ceil(H / SH), ceil(W / SW)).
    Grid: (ceil(N * class size / BM) * ceil(Cg / BN), SH * SW, groups).
    """
    C, Cg, K, Kg = CD * DC, CgD * DC, KD * DK, KgD * DK
    kind = SH * SW - 1 - tl.program_id(1)              # the class with most taps first
    high, wide = tl.cdiv(H, SH), tl.cdiv(W, SW)
    pm, pn = tile_of(tl.program_id(0), N * high * wide, Cg, BM, BN, 8)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    n, hc, wc = pixel(rm, high, wide, mul_pq, shift_pq, mul_q, shift_q)
    h0, w0 = kind // SW, kind % SW
    if WIDE:
        n = n.to(tl.int64)
    r0, s0 = first_tap(h0 + TOP, R, SH, DH, RSTEP), first_tap(w0 + LEFT, S, SW, DW, SSTEP)
    rows, cols = tl.maximum((R - r0 + RSTEP - 1) // RSTEP, 0), tl.maximum((S - s0 + SSTEP - 1) // SSTEP, 0)
    # h + TOP = p * SH + r * DH: the place p of the first tap, an exact division kept above 0
    p0 = hc + (h0 + TOP - r0 * DH + SH * R * DH) // SH - R * DH
    q0 = wc + (w0 + LEFT - s0 * DW + SW * S * DW) // SW - S * DW
    inside_m = ((n < N) & (hc * SH + h0 < H) & (wc * SW + w0 < W))[:, None]
    inside_n = rn < Cg
    base = ((n * P + p0) * Q + q0) * K + tl.program_id(2) * Kg
    acc = tl.zeros((BM, BN), ACC)
    i, j, k = 0, 0, 0
    for _ in range(0, rows * cols * tl.cdiv(Kg, BK)):
        p, q = p0 - i * (RSTEP * DH // SH), q0 - j * (SSTEP * DW // SW)
        ok = inside_m & within(p, P)[:, None] & within(q, Q)[:, None]
        pa = dy + (base - (i * (RSTEP * DH // SH) * Q + j * (SSTEP * DW // SW)) * K + k)[:, None] + rk[None, :]
        tap = (r0 + i * RSTEP) * S + s0 + j * SSTEP
        pb = w + ((tl.program_id(2) * Kg + k + rk) * (R * S) + tap)[:, None] * Cg + rn[None, :]
        if EVEN:
            a = tl.load(pa, mask=ok, other=0)
            b = tl.load(pb, mask=inside_n[None, :], other=0)
        else:
            inside_k = rk < Kg - k
            a = tl.load(pa, mask=ok & inside_k[None, :], other=0)
            b = tl.load(pb, mask=inside_k[:, None] & inside_n[None, :], other=0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=ACC)
        k += BK
        j = tl.where(k >= Kg, j + 1, j)
        k = tl.where(k >= Kg, 0, k)
        i = tl.where(j == cols, i + 1, i)
        j = tl.where(j == cols, 0, j)
    rn = tl.program_id(2) * Cg + rn
    out = EPILOGUE(acc, bias, rn, inside_n).to(dx.dtype.element_ty)
    place = ((n * H + hc * SH + h0) * W + wc * SW + w0) * C
    tl.store(dx + place[:, None] + rn[None, :], out, mask=inside_m & inside_n[None, :])


@triton.jit
def first_tap(place, TAPS: tl.constexpr, STRIDE: tl.constexpr, DILATION: tl.constexpr, STEP: tl.constexpr):
    """The least tap r < STEP with (place - r * DILATION) % STRIDE == 0; TAPS if there is none."""
    first = place * 0 + TAPS
    for i in tl.static_range(STEP):
        tap = STEP - 1 - i
        first = tl.where((place + STRIDE * DILATION * STEP - tap * DILATION) % STRIDE == 0, tap, first)
    return tl.minimum(first, TAPS)


@triton.jit(do_not_specialize=["span", *SIZES[:9], *SIZES[10:]])
def wgrad(dy, x, parts, M, H, W, CD, KD, P, Q, CgD, KgD, span, mul_pq, shift_pq, mul_q, shift_q,
          DC: tl.constexpr, DK: tl.constexpr, R: tl.constexpr, S: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
          TOP: tl.constexpr, LEFT: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr, COLS: tl.constexpr,
          WIDE: tl.constexpr, ACC: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
          BK: tl.constexpr):
    """parts (SPLIT, K, R, S, Cg): sums over `span` pixels of dy (N, P, Q, K) times the x (N, H, W, C) that a tap sees.

    One tap a program, taps fastest, as they read the same dy and neighbouring x; with COLS all of (R, S, Cg) flattened.
    Grid: (ceil(Kg / BM) * ceil(Cg / BN) * R * S, or ... * ceil(R * S * Cg / BN), SPLIT, groups).
    """
    C, Cg, K, Kg = CD * DC, CgD * DC, KD * DK, KgD * DK
    t, g = tl.program_id(0), tl.program_id(2)
    if COLS:
        across = tl.cdiv(R * S * Cg, BN)
        k = (t % across) * BN + tl.arange(0, BN)
        r = k // (S * Cg)
        s = k // Cg - r * S
        c = k % Cg
        inside_n = k < R * S * Cg
        dh, dw = (r * DH - TOP)[None, :], (s * DW - LEFT)[None, :]
    else:
        across = tl.cdiv(Cg, BN) * (R * S)
        tap = t % (R * S)
        c = (t % across) // (R * S) * BN + tl.arange(0, BN)
        k = tap * Cg + c
        inside_n = c < Cg
        dh, dw = (tap // S) * DH - TOP, (tap % S) * DW - LEFT
    rm = t // across * BM + tl.arange(0, BM)
    inside_k = (rm < Kg)[None, :]
    rm = g * Kg + rm
    first = tl.program_id(1) * span
    last = tl.minimum(first + span, M)
    acc = tl.zeros((BM, BN), ACC)
    for start in range(first, last, BK):
        i = start + tl.arange(0, BK)
        n, p, q = pixel(i, P, Q, mul_pq, shift_pq, mul_q, shift_q)
        inside = (i < last)[:, None]
        if WIDE:
            i = i.to(tl.int64)
            n = n.to(tl.int64)
        h, v = (p * SH)[:, None] + dh, (q * SW)[:, None] + dw
        ok = inside & within(h, H) & within(v, W) & inside_n[None, :]
        a = tl.load(dy + (i * K)[:, None] + rm[None, :], mask=inside & inside_k, other=0)
        b = tl.load(x + (((n * H)[:, None] + h) * W + v) * C + (g * Cg + c)[None, :], mask=ok, other=0)
        acc = tl.dot(tl.trans(a), b, acc, input_precision=PRECISION, out_dtype=ACC)
    out = parts + tl.program_id(1).to(tl.int64) * K * (R * S) * Cg + rm[:, None] * (R * S * Cg) + k[None, :]
    tl.store(out, acc.to(parts.dtype.element_ty), mask=(rm < g * Kg + Kg)[:, None] & inside_n[None, :])


@triton.jit
def tap_product(acc, x, w, n, p, q, inside, rc, H, W, C, t, S: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
                TOP: tl.constexpr, LEFT: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr, BACK: tl.constexpr):
    """acc + what tap t sees from places (p, q) times its weights; BACK: the places from which it sees (p, q)."""
    r, s = t // S, t % S
    if BACK:
        h, v = p + TOP - r * DH, q + LEFT - s * DW
        ok = inside & ((h >= 0) & (v >= 0) & (h % SH == 0) & (v % SW == 0))[:, None]
        h, v = h // SH, v // SW
    else:
        h, v = p * SH - TOP + r * DH, q * SW - LEFT + s * DW
        ok = inside
    ok = ok & (within(h, H) & within(v, W))[:, None]
    a = tl.load(x + (((n * H + h) * W + v) * C)[:, None] + rc[None, :], mask=ok, other=0).to(acc.dtype)
    return acc + a * tl.load(w + t * C + rc, mask=rc < C, other=0).to(acc.dtype)[None, :]


@triton.jit(do_not_specialize=["CD", *SIZES[:3], *SIZES[5:7], *SIZES[10:]])
def depthwise(x, w, y, bias, M, H, W, CD, P, Q, mul_pq, shift_pq, mul_q, shift_q,
              DC: tl.constexpr, R: tl.constexpr, S: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr, TOP: tl.constexpr,
              LEFT: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr, WIDE: tl.constexpr, EPILOGUE: tl.constexpr,
              ACC: tl.constexpr, BACK: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    """One kernel a channel, a multiply-add a tap: x (N, H, W, C), w (R, S, C), y (N, P, Q, C), bias (C,) or None.

    BACK: the input gradient, where x is dy and y is dx. Grid: (ceil(M / BM), ceil(C / BC)).
    """
    C = CD * DC
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    rc = tl.program_id(1) * BC + tl.arange(0, BC)
    n, p, q = pixel(i, P, Q, mul_pq, shift_pq, mul_q, shift_q)
    if WIDE:
        n = n.to(tl.int64)
        i = i.to(tl.int64)
    inside = (i < M)[:, None] & (rc < C)[None, :]
    acc = tl.zeros((BM, BC), ACC)
    if R * S <= 25:
        for t in tl.static_range(R * S):
            acc = tap_product(acc, x, w, n, p, q, inside, rc, H, W, C, t, S, SH, SW, TOP, LEFT, DH, DW, BACK)
    else:
        for t in range(R * S):
            acc = tap_product(acc, x, w, n, p, q, inside, rc, H, W, C, t, S, SH, SW, TOP, LEFT, DH, DW, BACK)
    out = EPILOGUE(acc, bias, rc, rc < C).to(y.dtype.element_ty)
    tl.store(y + (i * C)[:, None] + rc[None, :], out, mask=inside)


@triton.jit(do_not_specialize=["CD", "span", *SIZES[:3], *SIZES[5:7], *SIZES[10:]])
def depthwise_wgrad(dy, x, parts, M, H, W, CD, P, Q, span, mul_pq, shift_pq, mul_q, shift_q,
                    DC: tl.constexpr, R: tl.constexpr, S: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
                    TOP: tl.constexpr, LEFT: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr, WIDE: tl.constexpr,
                    ACC: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    """parts (SPLIT, R, S, C): sums over `span` pixels of dy (N, P, Q, C) times the x (N, H, W, C) that a tap sees.

    Grid: (R * S, SPLIT, ceil(C / BC)).
    """
    C = CD * DC
    tap = tl.program_id(0)
    rc = tl.program_id(2) * BC + tl.arange(0, BC)
    first = tl.program_id(1) * span
    last = tl.minimum(first + span, M)
    acc = tl.zeros((BM, BC), ACC)
    for start in range(first, last, BM):
        i = start + tl.arange(0, BM)
        n, p, q = pixel(i, P, Q, mul_pq, shift_pq, mul_q, shift_q)
        h, v = p * SH - TOP + tap // S * DH, q * SW - LEFT + tap % S * DW
        ok = ((i < last) & within(h, H) & within(v, W))[:, None] & (rc < C)[None, :]
        if WIDE:
            i = i.to(tl.int64)
            n = n.to(tl.int64)
        a = tl.load(dy + (i * C)[:, None] + rc[None, :], mask=ok, other=0).to(ACC)
        b = tl.load(x + (((n * H + h) * W + v) * C)[:, None] + rc[None, :], mask=ok, other=0).to(ACC)
        acc += a * b
    out = parts + (tl.program_id(1).to(tl.int64) * (R * S) + tap) * C + rc
    tl.store(out, tl.sum(acc, 0).to(parts.dtype.element_ty), mask=rc < C)


class Config(NamedTuple):
    """A tile of the result, the depth of one step, pipeline stages. Always 4 warps: 8 are a suspect elsewhere
    (pytorch#173068: wrong results of a convolution template) and wait for a measurement on a GPU."""
    BM: int
    BN: int
    BK: int
    num_stages: int


LARGE = {"half": Config(128, 128, 64, 3), "tf32": Config(128, 128, 32, 3)}
SMALL = {"half": Config(64, 64, 64, 4), "tf32": Config(64, 64, 32, 4), "ieee": Config(64, 64, 16, 2),
         "double": Config(32, 32, 16, 2)}


def _config_of(kind: str, m: int, n: int, depth: int, batch: int, tile: Config | None = None) -> Config:
    """The large tile where it still fills a GPU, or `tile`, with sides no longer than what they cover."""
    best = tile or LARGE.get(kind, SMALL[kind])
    if -(-m // best.BM) * -(-n // best.BN) * batch < 132:
        best = SMALL[kind]
    needed = (max(16, triton.next_power_of_2(size)) for size in (m, n, depth))
    return Config(*map(min, best, needed), best.num_stages)


def magic(d: int) -> tuple[int, int]:
    """(mul, shift) for `divide`: exact for all 0 <= n < 2**31 (Granlund and Montgomery, round-up method)."""
    shift = max(0, (d - 1).bit_length())
    mul = ((1 << 32) * ((1 << shift) - d)) // d + 1
    return mul - (1 << 32) if mul >= 1 << 31 else mul, shift


def _channels_last(x: DeviceArray) -> DeviceArray:
    """(A, B, H, W) -> dense (A, H, W, B): of images NHWC, of weights KRSC."""
    x = x.view(tuple(x.shape[d] for d in (0, 2, 3, 1)), tuple(x.strides[d] for d in (0, 2, 3, 1)))
    return x if x.is_contiguous else contiguous_copy(x)


def _channels_first(x: DeviceArray) -> DeviceArray:
    """The reverse, as a view."""
    return x.view(tuple(x.shape[d] for d in (0, 3, 1, 2)), tuple(x.strides[d] for d in (0, 3, 1, 2)))


def _constants(window: Window, *arrays: DeviceArray) -> dict:
    """The constexprs that every kernel here takes."""
    (r, s), (sh, sw), (dh, dw) = window.kernel, window.stride, window.dilation
    return dict(R=r, S=s, SH=sh, SW=sw, TOP=window.padding[0], LEFT=window.padding[1], DH=dh, DW=dw,
                WIDE=any(a.size >= 2**31 for a in arrays), ACC=tl.float64 if arrays[0].dtype == float64 else tl.float32)


def _channel_sizes(x: DeviceArray, k: int, groups: int) -> tuple[dict, tuple]:
    """What divides the channels C and K, and (C, K, C / groups, K / groups) divided by it."""
    limit, c = 16 // x.itemsize, x.shape[3]
    dc, dk = divisor(limit, c, c // groups), divisor(limit, k, k // groups)
    return dict(DC=dc, DK=dk), (c // dc, k // dk, c // groups // dc, k // groups // dk)


def _precision(kind: str) -> str:
    return "tf32" if kind == "tf32" else "ieee"


def _is_depthwise(window: Window, c: int, k: int) -> bool:
    return window.groups == c == k and c > 1


def _run_depthwise(x, w, y, bias, window: Window, back: bool):
    """x and y dense NHWC, w (C, 1, R, S); back: x is dy, y is dx."""
    n, p, q, c = y.shape
    w = contiguous_copy(w.view((*w.shape[2:], c), (*w.strides[2:], w.strides[0])))
    dc = divisor(16 // x.itemsize, c)
    bc = min(64, max(16, triton.next_power_of_2(c)))
    grid = -(-n * p * q // 16), -(-c // bc)
    cuda.launch(depthwise, grid, x, w, y, bias, n * p * q, *x.shape[1:3], c // dc, p, q, *magic(p * q), *magic(q),
                DC=dc, EPILOGUE=without_bias if bias is None else with_bias, BACK=back, BM=16, BC=bc,
                **_constants(window, x, y))


def conv2d(input, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    window = contract.conv2d_window("conv2d", input, weight, bias, stride, padding, dilation, groups)
    (p, q), n, k = window.out, input.shape[0], weight.shape[0]
    y = cuda.empty((n, p, q, k), input.dtype, input.device)
    if not y.size:
        return _channels_first(y)
    x = _channels_last(input)
    bias = bias if bias is None or bias.is_contiguous else contiguous_copy(bias)
    c = x.shape[3]
    if _is_depthwise(window, c, k):
        _run_depthwise(x, weight, y, bias, window, False)
        return _channels_first(y)
    w = _channels_last(weight)
    if window.is_pointwise and window.stride == (1, 1) and groups == 1 and c:
        y = multiply(x.view((n * p * q, c), (c, 1)), w.view((c, k), (1, c)), (n * p * q, k), bias)
        return _channels_first(y.view((n, p, q, k), cuda.contiguous_strides((n, p, q, k))))
    kind, m, (r, s), cg = kind_of(x.dtype), n * p * q, window.kernel, c // groups
    cols = cg < 16
    tile = SMALL[kind] if cols else None                # addresses of single elements take the registers of a large one
    bm, bn, bc, stages = _config_of(kind, m, k // groups, r * s * cg if cols else cg, groups, tile)
    divisors, channels = _channel_sizes(x, k, groups)
    steps = -(-r * s * cg // bc) if cols else r * s * -(-cg // bc)
    grid = -(-m // bm) * -(-(k // groups) // bn), groups
    cuda.launch(fprop, grid, x, w, y, bias, m, *x.shape[1:3], *channels[:2], p, q, *channels[2:], steps,
                *magic(p * q), *magic(q), COLS=cols, EVEN=(r * s * cg if cols else cg) % bc == 0, BM=bm, BN=bn, BC=bc,
                EPILOGUE=without_bias if bias is None else with_bias, PRECISION=_precision(kind), num_stages=stages,
                **divisors, **_constants(window, x, y, w))
    return _channels_first(y)


def _input_gradient(dy, weight, bias, window: Window):
    """dx (N, C, H, W) + bias (C,): what conv2d_input_grad and conv_transpose2d share."""
    (h, w), n, groups = window.image, dy.shape[0], window.groups
    c, k = weight.shape[1] * groups, weight.shape[0]
    dx = cuda.empty((n, h, w, c), dy.dtype, dy.device)
    if not dx.size:
        return _channels_first(dx)
    dy = _channels_last(dy)
    bias = bias if bias is None or bias.is_contiguous else contiguous_copy(bias)
    if _is_depthwise(window, c, k):
        _run_depthwise(dy, weight, dx, bias, window, True)
        return _channels_first(dx)
    weights = _channels_last(weight)
    if window.is_pointwise and window.out == (h, w) and groups == 1 and k:
        dx = multiply(dy.view((n * h * w, k), (k, 1)), weights.view((k, c), (c, 1)), (n * h * w, c), bias)
        return _channels_first(dx.view((n, h, w, c), cuda.contiguous_strides((n, h, w, c))))
    (sh, sw), (p, q) = window.stride, window.out
    high, wide = -(-h // sh), -(-w // sw)
    kind, m = kind_of(dy.dtype), n * high * wide
    bm, bn, bk, stages = _config_of(kind, m, c // groups, k // groups, sh * sw * groups)
    divisors, channels = _channel_sizes(dx, k, groups)
    grid = -(-m // bm) * -(-(c // groups) // bn), sh * sw, groups
    steps = [s // math.gcd(s, d) for s, d in zip(window.stride, window.dilation, strict=True)]
    cuda.launch(dgrad, grid, dy, weights, dx, bias, n, h, w, *channels[:2], p, q, *channels[2:], *magic(high * wide),
                *magic(wide), RSTEP=steps[0], SSTEP=steps[1], EVEN=(k // groups) % bk == 0, BM=bm, BN=bn, BK=bk,
                EPILOGUE=without_bias if bias is None else with_bias, PRECISION=_precision(kind), num_stages=stages,
                **divisors, **_constants(window, dy, dx, weights))
    return _channels_first(dx)


def conv2d_input_grad(grad, weight, size, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    window = contract.input_grad_window("conv2d_input_grad", grad, weight, size, stride, padding, dilation, groups)
    return _input_gradient(grad, weight, None, window)


def conv_transpose2d(input, weight, bias=None, stride=(1, 1), padding=(0, 0), output_padding=(0, 0), groups=1,
                     dilation=(1, 1)):
    window = contract.transpose_window(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return _input_gradient(input, weight, bias, window)


def conv2d_weight_grad(grad, input, kernel, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    window = contract.weight_grad_window("conv2d_weight_grad", grad, input, kernel, stride, padding, dilation, groups)
    (r, s), (p, q), c = window.kernel, window.out, input.shape[1]
    n, k = grad.shape[:2]
    dw = cuda.empty((k, r, s, c // groups), grad.dtype, grad.device)
    m = n * p * q
    if not dw.size or not m:
        cuda.fill_bytes(dw, 0)
        return _channels_first(dw)
    dy, x = _channels_last(grad), _channels_last(input)
    if _is_depthwise(window, c, k):
        dw = _sum_depthwise(dy, x, window)
        return contiguous_copy(dw.view((c, 1, r, s), (1, 1, s * c, c)))
    if window.is_pointwise and window.stride == (1, 1) and groups == 1:
        dw = multiply(dy.view((k, m), (1, k)), x.view((m, c), (c, 1)), (k, c))
        return dw.view((k, c, 1, 1), (c, 1, 1, 1))
    kind, cols = kind_of(x.dtype), c // groups < 16
    width = r * s * (c // groups) if cols else c // groups
    bm, bn, bk, stages = _config_of(kind, k // groups, width, m, (1 if cols else r * s) * groups)
    tiles = -(-(k // groups) // bm) * -(-width // bn) * (1 if cols else r * s)
    split = split_of(tiles * groups, -(-m // bk))
    span = -(-m // (split * bk)) * bk
    split = -(-m // span)
    divisors, channels = _channel_sizes(x, k, groups)
    wide = float64 if kind == "double" else float32
    parts = dw if split == 1 else cuda.empty((split, *dw.shape), wide, dw.device)
    cuda.launch(wgrad, (tiles, split, groups), dy, x, parts, m, *x.shape[1:3], *channels[:2], p, q, *channels[2:], span,
                *magic(p * q), *magic(q), COLS=cols, PRECISION=_precision(kind), BM=bm, BN=bn, BK=bk, num_stages=stages,
                **divisors, **_constants(window, dy, x))
    return contiguous_copy(_channels_first(_added(parts, dw)))


def _sum_depthwise(dy, x, window: Window):
    """(R, S, C)"""
    (r, s), (p, q), (n, _, _, c) = window.kernel, window.out, x.shape
    dc, m = divisor(16 // x.itemsize, c), n * p * q
    bc = min(64, max(16, triton.next_power_of_2(c)))
    split = split_of(r * s * -(-c // bc), -(-m // 32))
    span = -(-m // (split * 32)) * 32
    split = -(-m // span)
    dw = cuda.empty((r, s, c), x.dtype, x.device)
    parts = dw if split == 1 else cuda.empty((split, r, s, c), float64 if x.dtype == float64 else float32, x.device)
    cuda.launch(depthwise_wgrad, (r * s, split, -(-c // bc)), dy, x, parts, m, *x.shape[1:3], c // dc, p, q, span,
                *magic(p * q), *magic(q), DC=dc, BM=32, BC=bc, **_constants(window, dy, x))
    return _added(parts, dw)


def _added(parts: DeviceArray, total: DeviceArray) -> DeviceArray:
    """total = sum of parts along the first dimension, in order; parts itself if it is total."""
    if parts is not total:
        cuda.launch(add_parts, (-(-total.size // 1024),), parts, total, None, total.size, 1, parts.shape[0],
                    EPILOGUE=without_bias, BLOCK=1024)
    return total
