"""Cross entropy in one pass over the logits: running maximum and sum in each lane, merged once at the end of a row.

Rows of any length are accessed 16 bytes at a time (softmax_gpu.load_block). A class outside [0, C) gives nan: a kernel
cannot raise.
"""
import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import loss as contract
from zoo.ops.dtypes import float64
from zoo.ops.matmul_gpu import divisor
from zoo.ops.pointwise_gpu import contiguous_copy
from zoo.ops.softmax_gpu import LANES, STEPS, aligned_start, include, load_block, of_all_lanes, store_block

WHOLE = 1024            # the longest row of which a tile holds several
TILE = 2048             # elements of such a tile, and of a block of the gradient


@triton.jit
def store_rows(x, target, loss, lse, row, there, log, plain, C, ignore, smooth):
    """Loss and logsumexp of rows [BM] or of one, where they are `there`, from logsumexp and sum of the logits."""
    t = tl.load(target + row, mask=there, other=0).to(tl.int64)
    known = there & (t >= 0) & (t < C)
    picked = tl.load(x + row * C + tl.where(known, t, 0), mask=known, other=float("nan")).to(log.dtype)
    out = log - (1 - smooth) * picked
    if smooth != 0:
        out -= smooth * plain / C
    tl.store(loss + row, tl.where(t == ignore, 0.0, out).to(loss.dtype.element_ty), mask=there)
    tl.store(lse + row, log, mask=there)


@triton.jit(do_not_specialize=["N", "CD", "ignore"])
def cross_entropy_rows(x, target, loss, lse, N, CD, ignore, smooth: "fp64", DIV: tl.constexpr, WIDE: tl.constexpr,  # noqa: F821
                       BM: tl.constexpr, BN: tl.constexpr):
    """x (N, C), C = CD*DIV <= BN; target (N,); loss (N,), 0 where ignored; lse (N,). Grid: (ceil(N / BM),)."""
    C = CD * DIV
    row = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    inside = (row < N)[:, None] & (n < C)[None, :]
    v = tl.load(x + row[:, None] * C + n[None, :], mask=inside, other=0).to(WIDE)
    top = tl.max(tl.where(inside, v, float("-inf")), 1)
    top = tl.where(top == float("-inf"), 0.0, top)
    log = top + tl.log(tl.sum(tl.where(inside, tl.exp(v - top[:, None]), 0.0), 1))
    store_rows(x, target, loss, lse, row, row < N, log, tl.sum(v, 1), C, ignore, smooth.to(WIDE))


@triton.jit(do_not_specialize=["N", "CD", "ignore"])
def cross_entropy_long(x, target, loss, lse, N, CD, ignore, smooth: "fp64", DIV: tl.constexpr, WIDE: tl.constexpr,  # noqa: F821
                       R: tl.constexpr, BN: tl.constexpr):
    """As `cross_entropy_rows`, for any C. Grid: (N,)."""
    C = CD * DIV
    row = tl.program_id(0).to(tl.int64)
    start, skew = aligned_start(x, row * C)
    top = tl.full((BN,), float("-inf"), WIDE)
    total = tl.zeros((BN,), WIDE)
    plain = tl.zeros((BN,), WIDE)
    for i in range(0, C + skew, R * BN):
        v, n = load_block(x, start, skew, i, C, R, BN)
        v = v.to(WIDE)
        plain += tl.sum(v, 0)
        top, total = include(tl.where((n >= 0) & (n < C), v, float("-inf")), top, total)
    base, s = of_all_lanes(top, total)
    log = base + tl.log(s)
    store_rows(x, target, loss, lse, row, row < N, log, tl.sum(plain, 0), C, ignore, smooth.to(WIDE))


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


@triton.jit
def scale_of_rows(dloss, target, count, row, there, ignore, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """(target, factor) of rows [BM] or of one: the gradient of their loss, over how many count, 0 where ignored."""
    t = tl.load(target + row, mask=there, other=0).to(tl.int64)
    scale = tl.load(dloss + row * ROWS, mask=there, other=0.0).to(WIDE)
    if count is not None:
        scale = scale / tl.load(count)
    return t, tl.where(t == ignore, 0.0, scale)


@triton.jit(do_not_specialize=["N", "CD", "ignore"])
def cross_entropy_grad(dloss, x, target, lse, count, dx, N, CD, ignore, smooth: "fp64", DIV: tl.constexpr,  # noqa: F821
                       ROWS: tl.constexpr, WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """dx, x (N, C), C = CD*DIV <= BN; target, lse (N,); dloss (N,) with ROWS, else (); count () or None.

    Grid: (ceil(N / BM),).
    """
    C = CD * DIV
    smooth = smooth.to(WIDE)
    row = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)[None, :]
    inside = (row < N)[:, None] & (n < C)
    t, scale = scale_of_rows(dloss, target, count, row, row < N, ignore, ROWS, WIDE)
    v = tl.load(x + row[:, None] * C + n, mask=inside, other=0.0).to(WIDE)
    p = tl.exp(v - tl.load(lse + row, mask=row < N, other=0.0)[:, None])
    expected = tl.where(n == t[:, None], 1 - smooth + smooth / C, smooth / C)
    tl.store(dx + row[:, None] * C + n, ((p - expected) * scale[:, None]).to(dx.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["N", "CD", "ignore"])
def cross_entropy_long_grad(dloss, x, target, lse, count, dx, N, CD, ignore, smooth: "fp64", DIV: tl.constexpr,  # noqa: F821
                            ROWS: tl.constexpr, WIDE: tl.constexpr, BN: tl.constexpr):
    """As `cross_entropy_grad`, for any C. Grid: (N * blocks,), blocks of BN elements from where 16 bytes begin."""
    C = CD * DIV
    smooth = smooth.to(WIDE)
    blocks = tl.num_programs(0) // N
    row = (tl.program_id(0) // blocks).to(tl.int64)
    i = tl.program_id(0) % blocks * BN
    start, skew = aligned_start(x, row * C)
    t, scale = scale_of_rows(dloss, target, count, row, row < N, ignore, ROWS, WIDE)
    v, n = load_block(x, start, skew, i, C, 1, BN)
    p = tl.exp(v.to(WIDE) - tl.load(lse + row))
    expected = tl.where(n == t, 1 - smooth + smooth / C, smooth / C)
    store_block(dx, (p - expected) * scale, start, skew, i, C)


def _dense(x):
    return x if x.is_contiguous else contiguous_copy(x)


def _tile(classes: int) -> dict:
    """Rows and columns of a tile of short rows."""
    across = triton.next_power_of_2(max(classes, 1))
    return dict(BM=min(128, TILE // across), BN=across)


@cuda.remembered
def cross_entropy_loss(input, target, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    first, second = contract.cross_entropy_loss.check(input, target, ignore_index, reduction, label_smoothing)
    x, t = _dense(input), _dense(target)
    (n, classes), device = x.shape, x.device
    wide = tl.float64 if second.dtype == float64 else tl.float32
    lse = cuda.empty(second.shape, second.dtype, device)
    rows = cuda.empty((n,), first.dtype if reduction == "none" else second.dtype, device)
    div = divisor(16, classes)
    arguments = x, t, rows, lse, n, classes // div, int(ignore_index), float(label_smoothing)
    if classes > WHOLE:
        cuda.launch(cross_entropy_long, (n,), *arguments, DIV=div, WIDE=wide, R=STEPS, BN=LANES)
    else:
        tile = _tile(classes)
        cuda.launch(cross_entropy_rows, (-(-n // tile["BM"]),), *arguments, DIV=div, WIDE=wide, **tile)
    if reduction == "none":
        return rows, lse
    y = cuda.empty((), first.dtype, device)
    cuda.launch(reduce_rows, (1,), rows, t, y, n, int(ignore_index), SUM=True, MEAN=reduction == "mean", BLOCK=1024)
    return y, lse


@cuda.remembered
def cross_entropy_loss_grad(dloss, input, target, lse, ignore_index, reduction, label_smoothing):
    x, t, dloss = _dense(input), _dense(target), _dense(dloss)
    (n, classes), device = x.shape, x.device
    wide = tl.float64 if lse.dtype == float64 else tl.float32
    dx = cuda.empty(x.shape, x.dtype, device)
    count = None
    if reduction == "mean":
        count = cuda.empty((), lse.dtype, device)
        cuda.launch(reduce_rows, (1,), None, t, count, n, int(ignore_index), SUM=False, MEAN=False, BLOCK=1024)
    div = divisor(16, classes)
    arguments = dloss, x, t, _dense(lse), count, dx, n, classes // div, int(ignore_index), float(label_smoothing)
    how = dict(DIV=div, ROWS=int(dloss.ndim == 1), WIDE=wide)
    if classes > WHOLE:
        most = classes if classes * x.itemsize % 16 == 0 else classes + 16 // x.itemsize - 1
        cuda.launch(cross_entropy_long_grad, (n * -(-most // TILE),), *arguments, **how, BN=TILE)
    else:
        tile = _tile(classes)
        cuda.launch(cross_entropy_grad, (-(-n // tile["BM"]),), *arguments, **how, **tile)
    return dx
