"""Input gradient of convolution as implicit GEMM over the pixels of the image; also the transposed convolution.

Layouts and sizes as in conv_forward_gpu.py.
"""
import triton
import triton.language as tl

from zoo.ops.conv_forward_gpu import SIZES
from zoo.ops.epilogue_gpu import through
from zoo.ops.gemm_gpu import tile_of
from zoo.ops.pixels_gpu import pixel, within


@triton.jit
def first_tap(place, TAPS: tl.constexpr, STRIDE: tl.constexpr, DILATION: tl.constexpr, STEP: tl.constexpr):
    """The least tap r < STEP with (place - r * DILATION) % STRIDE == 0; TAPS if there is none."""
    first = place * 0 + TAPS
    for i in tl.static_range(STEP):
        tap = STEP - 1 - i
        first = tl.where((place + STRIDE * DILATION * STEP - tap * DILATION) % STRIDE == 0, tap, first)
    return tl.minimum(first, TAPS)


@triton.jit(do_not_specialize=["N", *SIZES[1:], "span"])
def dgrad(dy, w, dx, operands, N, H, W, CD, KD, P, Q, CgD, KgD, mul_pq, shift_pq, mul_q, shift_q, span,
          DC: tl.constexpr, DK: tl.constexpr, R: tl.constexpr, S: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
          TOP: tl.constexpr, LEFT: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr, RSTEP: tl.constexpr,
          SSTEP: tl.constexpr, BACK: tl.constexpr, EVEN: tl.constexpr, WIDE: tl.constexpr, SPLIT: tl.constexpr,
          STAGES: tl.constexpr, ACC: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
          BK: tl.constexpr):
    """dx = input gradient through STAGES with operands: dy (N, P, Q, K), w (K, R, S, Cg), dx (N, H, W, C).

    BACK: w is (C, R, S, Kg). SPLIT: dx is (splits, N, H, W, C), the partial sums of `span` steps of BK channels each.

    Pixels of dx fall into SH*SW classes (h % SH, w % SW), one a program: a class meets only every RSTEP-th, SSTEP-th
    tap, so that a stride costs no more than the forward pass. Each pixel is written, also where no tap leads.
    Magic numbers are those of a class, (ceil(H / SH), ceil(W / SW)).
    Grid: (ceil(N * class size / BM) * ceil(Cg / BN), SH * SW, groups * splits), splits slowest.
    """
    C, Cg, K, Kg = CD * DC, CgD * DC, KD * DK, KgD * DK
    g = tl.program_id(2)
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
    inside_m = (n < N) & (hc * SH + h0 < H) & (wc * SW + w0 < W)
    inside_n = rn < Cg
    acc = tl.zeros((BM, BN), ACC)
    i, j, k = 0, 0, 0
    first, last = 0, rows * cols * tl.cdiv(Kg, BK)
    if SPLIT:
        part = g // (C // Cg)
        g -= part * (C // Cg)
        dx += part.to(tl.int64) * N * H * W * C
        first = part * span
        last = tl.minimum(first + span, last)
        seen = first // tl.cdiv(Kg, BK)
        k = (first - seen * tl.cdiv(Kg, BK)) * BK
        i = seen // tl.maximum(cols, 1)
        j = seen - i * cols
    base = ((n * P + p0) * Q + q0) * K + g * Kg
    for _ in range(first, last):
        p, q = p0 - i * (RSTEP * DH // SH), q0 - j * (SSTEP * DW // SW)
        ok = (inside_m & within(p, P) & within(q, Q))[:, None]
        pa = dy + (base - (i * (RSTEP * DH // SH) * Q + j * (SSTEP * DW // SW)) * K + k)[:, None] + rk[None, :]
        tap = (r0 + i * RSTEP) * S + s0 + j * SSTEP
        if BACK:
            pb = w + (((g * Cg + rn) * (R * S) + tap) * Kg)[None, :] + (k + rk)[:, None]
        else:
            pb = w + ((g * Kg + k + rk) * (R * S) + tap)[:, None] * Cg + rn[None, :]
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
    rn = g * Cg + rn
    place = ((n * H + hc * SH + h0) * W + wc * SW + w0) * C
    out = through(acc, STAGES, operands, place, rn, inside_m, inside_n)
    tl.store(dx + place[:, None] + rn[None, :], out.to(dx.dtype.element_ty), mask=inside_m[:, None] & inside_n[None, :])
