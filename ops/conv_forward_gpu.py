"""Forward convolution kernels: implicit GEMM, where the columns of im2col exist only as tiles in shared memory.

Images lie as NHWC and weights as KRSC. Integers arrive unspecialised and divided by a known power of two (DC, DK),
which keeps 16-byte loads and compiles one kernel for all image sizes. M = pixels of the result, groups are a grid axis.
"""
import triton
import triton.language as tl

from zoo.ops.epilogue_gpu import through
from zoo.ops.gemm_gpu import tile_of
from zoo.ops.pixels_gpu import pixel, within

SIZES = ["M", "H", "W", "CD", "KD", "P", "Q", "CgD", "KgD", "mul_pq", "shift_pq", "mul_q", "shift_q"]


@triton.jit
def finish(acc, y, operands, rows, columns, end, inside_m, STAGES: tl.constexpr):
    """The columns [BN] < end of y's rows, which begin at rows [BM], = acc [BM, BN] through STAGES."""
    inside_n = columns < end
    out = through(acc, STAGES, operands, rows, columns, inside_m, inside_n).to(y.dtype.element_ty)
    tl.store(y + rows[:, None] + columns[None, :], out, mask=inside_m[:, None] & inside_n[None, :])


@triton.jit(do_not_specialize=[*SIZES, "steps", "span"])
def fprop(x, w, y, operands, M, H, W, CD, KD, P, Q, CgD, KgD, mul_pq, shift_pq, mul_q, shift_q, steps, span,
          DC: tl.constexpr, DK: tl.constexpr, R: tl.constexpr, S: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
          TOP: tl.constexpr, LEFT: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr, EVEN: tl.constexpr,
          PADDED: tl.constexpr, WIDE: tl.constexpr, SPLIT: tl.constexpr, STAGES: tl.constexpr, ACC: tl.constexpr,
          PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BC: tl.constexpr, SUB: tl.constexpr):
    """y = conv(x, w) through STAGES with operands: x (N, H, W, C), w (K, R, S, Cg), y (N, P, Q, K).

    SPLIT: y is (splits, M, K), the partial sums of `span` steps each; `add_parts` does the rest.
    `steps` of BC channels, tap by tap. EVEN: BC divides Cg. C = CD*DC.
    PADDED: some tap looks outside the image. SUB: 2 takes the tile through STAGES in halves, which saves registers.
    Grid: (ceil(M / BM) * ceil(Kg / BN), groups, splits).
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
    inside_m = rm < M
    inside_n = rn < Kg
    acc = tl.zeros((BM, BN), ACC)
    r, s, c = 0, 0, 0
    first = tl.program_id(2) * span
    if SPLIT:
        tap = first // tl.cdiv(Cg, BC)
        c = (first - tap * tl.cdiv(Cg, BC)) * BC
        r = tap // S
        s = tap % S
    for _ in range(first, tl.minimum(first + span, steps)):
        k = (r * S + s) * Cg + c + rc
        dh, dw = r * DH, s * DW
        dx = (dh * W + dw) * C + c + rc
        inside_c = rc < Cg - c
        ok = inside_m[:, None]
        if PADDED:
            ok = ok & within(h0 + dh, H) & within(w0 + dw, W)
        if EVEN:
            a = tl.load(px + dx[None, :], mask=ok, other=0)
            b = tl.load(pw + k[:, None], mask=inside_n[None, :], other=0)
        else:
            a = tl.load(px + dx[None, :], mask=ok & inside_c[None, :], other=0)
            b = tl.load(pw + k[:, None], mask=inside_c[:, None] & inside_n[None, :], other=0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=ACC)
        c += BC                                        # the next channels, column, row: selects instead of // and %
        s = tl.where(c >= Cg, s + 1, s)
        c = tl.where(c >= Cg, 0, c)
        r = tl.where(s == S, r + 1, r)
        s = tl.where(s == S, 0, s)
    if WIDE:
        rm = rm.to(tl.int64)
    if SPLIT:
        y += tl.program_id(2).to(tl.int64) * M * K
    end = tl.program_id(1) * Kg + Kg
    if SUB == 2:
        low, high = acc.reshape(BM, 2, BN // 2).permute(0, 2, 1).split()
        columns = tl.program_id(1) * Kg + pn * BN + tl.arange(0, BN // 2)
        finish(low, y, operands, rm * K, columns, end, inside_m, STAGES)
        finish(high, y, operands, rm * K, columns + BN // 2, end, inside_m, STAGES)
    else:
        finish(acc, y, operands, rm * K, rn_all, end, inside_m, STAGES)


@triton.jit(do_not_specialize=["M", "H", "W", "KD", "P", "Q", *SIZES[9:]])
def fprop_rows(x, w, y, operands, M, H, W, KD, P, Q, mul_pq, shift_pq, mul_q, shift_q,
               DK: tl.constexpr, C: tl.constexpr, R: tl.constexpr, S: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
               TOP: tl.constexpr, LEFT: tl.constexpr, DH: tl.constexpr, WIDE: tl.constexpr, STAGES: tl.constexpr,
               ACC: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BC: tl.constexpr):
    """fprop for few channels: x (N, H, W, C), w (K, R, S, C), C a small power of two; y (N, P, Q, K).

    The S*C values that a row of the window sees lie side by side, so a step takes a whole row: BC >= S*C.
    Grid: (ceil(M / BM) * ceil(K / BN),).
    """
    K = KD * DK
    pm, pn = tile_of(tl.program_id(0), M, K, BM, BN, 8)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rc = tl.arange(0, BC)
    n, p, q = pixel(rm, P, Q, mul_pq, shift_pq, mul_q, shift_q)
    if WIDE:
        n = n.to(tl.int64)
    h0 = p * SH - TOP
    first = (q * SW - LEFT) * C
    begin = first[:, None] + rc[None, :]               # in an image's row
    px = x + ((n * H + h0) * W * C)[:, None] + begin
    pw = w + (rn * (R * S * C))[None, :] + rc[:, None]
    inside_m = rm < M
    inside_n = rn < K
    ok = inside_m[:, None] & within(begin, W * C) & (rc < S * C)[None, :]
    acc = tl.zeros((BM, BN), ACC)
    for r in range(0, R):
        a = tl.load(px + r * (DH * W * C), mask=ok & within(h0 + r * DH, H)[:, None], other=0)
        b = tl.load(pw + r * (S * C), mask=(rc < S * C)[:, None] & inside_n[None, :], other=0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=ACC)
    if WIDE:
        rm = rm.to(tl.int64)
    out = through(acc, STAGES, operands, rm * K, rn, inside_m, inside_n)
    py = y + (rm * K)[:, None] + rn[None, :]
    tl.store(py, out.to(y.dtype.element_ty), mask=inside_m[:, None] & inside_n[None, :])
