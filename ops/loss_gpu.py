"""Cross entropy in one pass over the logits: running maximum and sum in each lane, merged once at the end of a row.

A class outside [0, C) gives nan: a kernel cannot raise.
"""
import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import loss as contract
from zoo.ops.dtypes import float64
from zoo.ops.matmul_gpu import divisor
from zoo.ops.pointwise_gpu import contiguous_copy

TILE = 2048                                            # elements of one step: 8 a thread at 8 warps


@triton.jit(do_not_specialize=["N", "CD", "ignore"])
def cross_entropy_rows(x, target, loss, lse, N, CD, ignore, smooth: "fp64", DIV: tl.constexpr, WIDE: tl.constexpr,  # noqa: F821
                       BM: tl.constexpr, BN: tl.constexpr):
    """x (N, C), C = CD*DIV; target (N,); loss (N,), 0 where ignored; lse (N,). Grid: (ceil(N / BM),)."""
    C = CD * DIV
    smooth = smooth.to(WIDE)
    rm = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    rows = rm < N
    minus = float("-inf")
    top = tl.full((BM, BN), minus, WIDE)
    total = tl.zeros((BM, BN), WIDE)
    plain = tl.zeros((BM, BN), WIDE)
    for j in range(0, C, BN):
        inside = rows[:, None] & (rn + j < C)[None, :]
        v = tl.load(x + rm[:, None] * C + (rn + j)[None, :], mask=inside, other=minus).to(WIDE)
        higher = tl.maximum(top, v)
        base = tl.where(higher == minus, 0.0, higher)
        total = total * tl.exp(top - base) + tl.exp(v - base)
        plain += tl.where(inside, v, 0.0)
        top = higher
    most = tl.max(top, 1)
    base = tl.where(most == minus, 0.0, most)
    log = base + tl.log(tl.sum(total * tl.exp(top - base[:, None]), 1))
    t = tl.load(target + rm, mask=rows, other=0).to(tl.int64)
    there = rows & (t >= 0) & (t < C)
    picked = tl.load(x + rm * C + tl.where(there, t, 0), mask=there, other=float("nan")).to(WIDE)
    out = log - (1 - smooth) * picked
    if smooth != 0:
        out -= smooth * tl.sum(plain, 1) / C
    tl.store(loss + rm, tl.where(t == ignore, 0.0, out).to(loss.dtype.element_ty), mask=rows)
    tl.store(lse + rm, log, mask=rows)


@triton.jit(do_not_specialize=["N", "ignore"])
def reduce_rows(loss, target, y, N, ignore, SUM: tl.constexpr, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    """y () = the sum of loss (N,), with MEAN over the number of targets (N,) not ignored; without SUM that number.

    Grid: (1,): one program adds in one order.
    """
    i = tl.arange(0, BLOCK)
    WIDE: tl.constexpr = tl.float64 if y.dtype.element_ty == tl.float64 else tl.float32
    total = tl.zeros((BLOCK,), WIDE)
    count = tl.zeros((BLOCK,), tl.int32)
    for k in range(0, N, BLOCK):
        inside = i + k < N
        count += (inside & (tl.load(target + i + k, mask=inside, other=0) != ignore)).to(tl.int32)
        if SUM:
            total += tl.load(loss + i + k, mask=inside, other=0.0)
    live = tl.sum(count, 0).to(WIDE)
    if SUM:
        out = tl.sum(total, 0)
        if MEAN:
            out = out / live
    else:
        out = tl.maximum(live, 1.0)
    tl.store(y, out.to(y.dtype.element_ty))


@triton.jit(do_not_specialize=["N", "CD", "ignore"])
def cross_entropy_grad(dloss, x, target, lse, count, dx, N, CD, ignore, smooth: "fp64", DIV: tl.constexpr,  # noqa: F821
                       ROWS: tl.constexpr, WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """dx, x (N, C), C = CD*DIV; target, lse (N,); dloss (N,) with ROWS, else (); count () or None.

    Grid: (ceil(N / BM), ceil(C / BN)).
    """
    C = CD * DIV
    smooth = smooth.to(WIDE)
    rm = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rows = rm < N
    inside = rows[:, None] & (rn < C)[None, :]
    t = tl.load(target + rm, mask=rows, other=0).to(tl.int64)
    scale = tl.load(dloss + rm * ROWS, mask=rows, other=0.0).to(WIDE)
    if count is not None:
        scale = scale / tl.load(count)
    scale = tl.where(t == ignore, 0.0, scale)
    v = tl.load(x + rm[:, None] * C + rn[None, :], mask=inside, other=0.0).to(WIDE)
    p = tl.exp(v - tl.load(lse + rm, mask=rows, other=0.0)[:, None])
    expected = tl.where(rn[None, :] == t[:, None], 1 - smooth + smooth / C, smooth / C)
    out = (p - expected) * scale[:, None]
    tl.store(dx + rm[:, None] * C + rn[None, :], out.to(dx.dtype.element_ty), mask=inside)


def _dense(x):
    return x if x.is_contiguous else contiguous_copy(x)


def _tile(classes: int, limit: int = TILE) -> tuple[int, int]:
    """Rows and columns of a block."""
    across = min(limit, triton.next_power_of_2(max(classes, 1)))
    return max(1, min(128, limit // across)), across


def cross_entropy_loss(input, target, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    first, second = contract.cross_entropy_loss.check(input, target, ignore_index, reduction, label_smoothing)
    x, t = _dense(input), _dense(target)
    (n, classes), device = x.shape, x.device
    wide = tl.float64 if second.dtype == float64 else tl.float32
    lse = cuda.empty(second.shape, second.dtype, device)
    rows = cuda.empty((n,), first.dtype if reduction == "none" else second.dtype, device)
    bm, bn = _tile(classes)
    div = divisor(16, classes)
    cuda.launch(cross_entropy_rows, (-(-n // bm),), x, t, rows, lse, n, classes // div, int(ignore_index),
                float(label_smoothing), DIV=div, WIDE=wide, BM=bm, BN=bn, num_warps=8 if classes > 1024 else 4)
    if reduction == "none":
        return rows, lse
    y = cuda.empty((), first.dtype, device)
    cuda.launch(reduce_rows, (1,), rows, t, y, n, int(ignore_index), SUM=True, MEAN=reduction == "mean", BLOCK=1024)
    return y, lse


def cross_entropy_loss_grad(dloss, input, target, lse, ignore_index, reduction, label_smoothing):
    x, t, dloss = _dense(input), _dense(target), _dense(dloss)
    (n, classes), device = x.shape, x.device
    wide = tl.float64 if lse.dtype == float64 else tl.float32
    dx = cuda.empty(x.shape, x.dtype, device)
    count = None
    if reduction == "mean":
        count = cuda.empty((), lse.dtype, device)
        cuda.launch(reduce_rows, (1,), None, t, count, n, int(ignore_index), SUM=False, MEAN=False, BLOCK=1024)
    bm, bn = _tile(classes)
    div = divisor(16, classes)
    cuda.launch(cross_entropy_grad, (-(-n // bm), -(-classes // bn)), dloss, x, t, _dense(lse), count, dx, n,
                classes // div, int(ignore_index), float(label_smoothing), DIV=div, ROWS=int(dloss.ndim == 1),
                WIDE=wide, BM=bm, BN=bn, num_warps=4)
    return dx
