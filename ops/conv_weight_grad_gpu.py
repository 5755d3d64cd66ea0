"""Weight gradient of convolution: sums over pixels, split into parts that are added in a fixed order.

Layouts and sizes as in conv_forward_gpu.py.
"""
import triton
import triton.language as tl

from zoo.ops.conv_forward_gpu import SIZES
from zoo.ops.pixels_gpu import pixel, within


@triton.jit(do_not_specialize=["span", *SIZES])
def wgrad(dy, x, parts, M, H, W, CD, KD, P, Q, CgD, KgD, mul_pq, shift_pq, mul_q, shift_q, span,
          DC: tl.constexpr, DK: tl.constexpr, R: tl.constexpr, S: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
          TOP: tl.constexpr, LEFT: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr, COLS: tl.constexpr,
          WIDE: tl.constexpr, ACC: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
          BK: tl.constexpr):
    """parts (SPLIT, K, R, S, Cg): sums over `span` pixels of dy (N, P, Q, K) times the x (N, H, W, C) that a tap sees.

    One tap a program, taps fastest, as they read the same dy and neighbouring x; with COLS > 0 all of (R, S, Cg)
    flattened: COLS is Cg, known to the compiler, which then sees which of the addresses are neighbours.
    Grid: (ceil(Kg / BM) * ceil(Cg / BN) * R * S, or ... * ceil(R * S * Cg / BN), SPLIT, groups).
    """
    C, Cg, K, Kg = CD * DC, CgD * DC, KD * DK, KgD * DK
    t, g = tl.program_id(0), tl.program_id(2)
    if COLS:
        across = (R * S * COLS + BN - 1) // BN
        k = (t % across) * BN + tl.arange(0, BN)
        r = k // (S * COLS)
        s = k // COLS - r * S
        c = k % COLS
        inside_n = k < R * S * COLS
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
