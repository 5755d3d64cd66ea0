"""Depthwise convolution, one kernel a channel: a multiply-add a tap, bound by memory, without tensor cores.

Layouts and sizes as in conv_forward_gpu.py.
"""
import triton
import triton.language as tl

from zoo.ops.conv_forward_gpu import SIZES
from zoo.ops.epilogue_gpu import through
from zoo.ops.pixels_gpu import pixel, within


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


@triton.jit(do_not_specialize=["CD", *SIZES[:3], *SIZES[5:7], *SIZES[9:], "taps"])
def depthwise(x, w, y, operands, M, H, W, CD, P, Q, mul_pq, shift_pq, mul_q, shift_q, taps,
              DC: tl.constexpr, R: tl.constexpr, S: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr, TOP: tl.constexpr,
              LEFT: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr, WIDE: tl.constexpr, STAGES: tl.constexpr,
              ACC: tl.constexpr, BACK: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    """One kernel a channel, through STAGES with operands: x (N, H, W, C), w (R, S, C), y (N, P, Q, C).

    BACK: the input gradient, where x is dy and y is dx. taps = R * S. Grid: (ceil(M / BM), ceil(C / BC)).
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
    if R * S <= 9:
        for t in tl.static_range(R * S):
            acc = tap_product(acc, x, w, n, p, q, inside, rc, H, W, C, t, S, SH, SW, TOP, LEFT, DH, DW, BACK)
    else:                        # 25 taps at once would spill: the compiler may not know how many there are to unroll
        for t in range(taps):
            acc = tap_product(acc, x, w, n, p, q, inside, rc, H, W, C, t, S, SH, SW, TOP, LEFT, DH, DW, BACK)
    out = through(acc, STAGES, operands, i * C, rc, i < M, rc < C)
    tl.store(y + (i * C)[:, None] + rc[None, :], out.to(y.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["CD", "span", *SIZES[:3], *SIZES[5:7], *SIZES[9:]])
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
