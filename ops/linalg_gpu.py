"""Kernels of linalg: one program eliminates one matrix, in memory, row by row. For many small matrices rather than for
one that is large."""
import numpy as np
import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import linalg as contract
from zoo.ops.cuda import DeviceArray
from zoo.ops.dtypes import HALVES, float32, int32
from zoo.ops.errors import LinAlgError
from zoo.ops.join_gpu import cat
from zoo.ops.layout_gpu import power_of_two
from zoo.ops.op import OPS
from zoo.ops.pointwise_gpu import contiguous_copy
from zoo.ops.shape import basic_index, cast, reshape

TILE = 4096             # elements of one step of an update


@triton.jit(do_not_specialize=["N", "M"])
def eliminate(w, sign, size, N, M, BN: tl.constexpr, BM: tl.constexpr, BR: tl.constexpr):
    """w (batch, N, M), M >= N: [A | B] becomes [1 | A^-1 B], by Gauss and Jordan, with pivots by column.

    sign, size (batch,): sign and log|.| of A's determinant; where it is 0, w means nothing. grid (batch,).
    """
    w += tl.program_id(0).to(tl.int64) * N * M
    rows, cols, one = tl.arange(0, BN), tl.arange(0, BM), tl.arange(0, 1)
    inside = cols < M
    s = tl.full((1,), 1.0, w.dtype.element_ty)
    z = tl.zeros((1,), w.dtype.element_ty)
    for k in range(N):
        below = (rows >= k) & (rows < N)
        column = tl.abs(tl.load(w + rows * M + k, mask=below, other=0.0))
        p = tl.argmax(tl.where(below, column, -1.0), 0)
        top = tl.load(w + k * M + cols, mask=inside, other=0.0)
        best = tl.load(w + p * M + cols, mask=inside, other=0.0)
        pivot = tl.load(w + p * M + k + one)
        s = tl.where(pivot < 0, -s, tl.where(pivot == 0, 0.0 * s, s))
        s = tl.where(p != k, -s, s)
        z += tl.log(tl.abs(pivot))
        best = best / tl.where(pivot == 0, 1.0, pivot)
        tl.debug_barrier()                                 # all have read before any writes, and the other way round
        tl.store(w + p * M + cols, top, mask=inside)
        tl.debug_barrier()
        tl.store(w + k * M + cols, best, mask=inside)
        tl.debug_barrier()
        for r in range(0, N, BR):
            rr = r + tl.arange(0, BR)
            live = (rr < N) & (rr != k)
            factor = tl.load(w + rr * M + k, mask=live, other=0.0)
            at = rr[:, None] * M + cols[None, :]
            there = live[:, None] & inside[None, :]
            tile = tl.load(w + at, mask=there, other=0.0)
            tl.debug_barrier()
            tl.store(w + at, tile - factor[:, None] * best[None, :], mask=there)
        tl.debug_barrier()
    tl.store(sign + tl.program_id(0) + one, s)
    tl.store(size + tl.program_id(0) + one, z)


@triton.jit(do_not_specialize=["N"])
def factor(w, good, N, BN: tl.constexpr, BR: tl.constexpr):
    """w (batch, N, N), symmetric, becomes its Cholesky factor L, column by column; good (batch,): is it definite?

    grid (batch,).
    """
    w += tl.program_id(0).to(tl.int64) * N * N
    rows, one = tl.arange(0, BN), tl.arange(0, 1)
    definite = tl.full((1,), 1, tl.int32)
    for k in range(N):
        pivot = tl.load(w + k * N + k + one)
        definite = tl.where(pivot > 0, definite, 0)
        root = tl.sqrt(tl.where(pivot > 0, pivot, 1.0))
        column = tl.load(w + rows * N + k, mask=(rows >= k) & (rows < N), other=0.0) / root
        tl.debug_barrier()
        tl.store(w + rows * N + k, column, mask=rows < N)
        tl.debug_barrier()
        for r in range(0, N, BR):
            rr = r + tl.arange(0, BR)
            live = (rr < N) & (rr > k)
            mine = tl.load(w + rr * N + k, mask=live, other=0.0)
            at = rr[:, None] * N + rows[None, :]
            there = live[:, None] & ((rows < N) & (rows > k))[None, :]
            tile = tl.load(w + at, mask=there, other=0.0)
            tl.store(w + at, tile - mine[:, None] * column[None, :], mask=there)
        tl.debug_barrier()
    tl.store(good + tl.program_id(0) + one, definite)


@triton.jit(do_not_specialize=["N", "M"])
def rotate(w, v, N, M, SWEEPS: tl.constexpr, BM: tl.constexpr):
    """w (batch, N, M), M >= N, v (batch, N, N): turns pairs of rows until w's are orthogonal (one-sided Jacobi).

    Every turn is applied to the rows of v as well. grid (batch,).
    """
    w += tl.program_id(0).to(tl.int64) * N * M
    v += tl.program_id(0).to(tl.int64) * N * N
    m = tl.arange(0, BM)
    for _ in range(SWEEPS):
        for p in range(N - 1):
            for q in range(p + 1, N):
                a = tl.load(w + p * M + m, mask=m < M, other=0.0)
                b = tl.load(w + q * M + m, mask=m < M, other=0.0)
                c = tl.load(v + p * N + m, mask=m < N, other=0.0)
                d = tl.load(v + q * N + m, mask=m < N, other=0.0)
                both = tl.sum(a * b, 0)
                zeta = (tl.sum(b * b, 0) - tl.sum(a * a, 0)) / tl.where(both == 0, 1.0, 2 * both)
                t = tl.where(zeta < 0, -1.0, 1.0) / (tl.abs(zeta) + tl.sqrt(1 + zeta * zeta))
                t = tl.where(both == 0, 0.0 * t, t)
                cos = 1 / tl.sqrt(1 + t * t)
                sin = cos * t
                tl.debug_barrier()
                tl.store(w + p * M + m, cos * a - sin * b, mask=m < M)
                tl.store(w + q * M + m, sin * a + cos * b, mask=m < M)
                tl.store(v + p * N + m, cos * c - sin * d, mask=m < N)
                tl.store(v + q * N + m, sin * c + cos * d, mask=m < N)
                tl.debug_barrier()


def wide(a: DeviceArray) -> DeviceArray:
    return cast(a, float32) if a.dtype in HALVES else a


def _eliminated(w: DeviceArray, batch: tuple) -> tuple[DeviceArray, DeviceArray]:
    """Runs `eliminate` on w (*batch, N, M), which is dense; (sign, log|det|)."""
    n, m = w.shape[-2:]
    sign, size = (cuda.empty(batch, w.dtype, w.device) for _ in range(2))
    bm = power_of_two(m)
    cuda.launch(eliminate, (sign.size,), w, sign, size, n, m, BN=power_of_two(n), BM=bm, BR=max(TILE // bm, 1))
    return sign, size


def solve(a, b):
    spec = contract.solve.check(a, b)
    n = a.shape[-1]
    if not b.size:
        return cuda.empty(spec.shape, spec.dtype, b.device)
    w = cat(a.ndim - 1, wide(a), wide(b))
    sign, _ = _eliminated(w, tuple(a.shape[:-2]))
    if (cuda.to_numpy(sign) == 0).any():
        raise LinAlgError(f"linalg.solve: Singular matrix, got shape {tuple(a.shape)}")
    return contiguous_copy(cast(basic_index(w, (..., slice(n, None))), spec.dtype))


def slogdet(a):
    specs = contract.slogdet.check(a)
    if not a.size:
        return tuple(cast(cuda.from_numpy(np.full(s.shape, v), a.device), s.dtype)
                     for s, v in zip(specs, (1.0, 0.0), strict=True))
    found = _eliminated(contiguous_copy(wide(a)), specs[0].shape)
    return tuple(cast(y, s.dtype) for y, s in zip(found, specs, strict=True))


def det(a):
    spec = contract.det.check(a)
    sign, size = slogdet(wide(a))
    return cast(OPS["mul"](sign, OPS["exp"](size)), spec.dtype)


def cholesky(a):
    spec = contract.cholesky.check(a)
    if not a.size:
        return cuda.empty(spec.shape, spec.dtype, a.device)
    x, n = wide(a), a.shape[-1]
    w = OPS["mul"](OPS["add"](x, contract.turned(x)), 0.5)
    w = w if w.is_contiguous else contiguous_copy(w)
    good = cuda.empty((w.size // (n * n),), int32, a.device)
    bn = power_of_two(n)
    cuda.launch(factor, (good.size,), w, good, n, BN=bn, BR=max(TILE // bn, 1))
    if not cuda.to_numpy(good).all():
        raise LinAlgError(f"linalg.cholesky: Matrix is not positive definite, got shape {tuple(a.shape)}")
    return cast(reshape(w, spec.shape), spec.dtype)


def svd(a):
    specs = contract.svd.check(a)
    if not a.size:
        return tuple(cuda.empty(s.shape, s.dtype, a.device) for s in specs)
    tall = a.shape[-2] >= a.shape[-1]
    x = contiguous_copy(contract.turned(wide(a)) if tall else wide(a))           # its rows are turned
    n, m = x.shape[-2:]
    one = np.broadcast_to(np.eye(n, dtype=x.dtype), (*x.shape[:-2], n, n))
    v = cuda.from_numpy(np.ascontiguousarray(one), a.device)
    cuda.launch(rotate, (x.size // (n * m),), x, v, n, m, SWEEPS=10 if x.dtype == float32 else 14, BM=power_of_two(m))
    size = OPS["vector_norm"](x, 2.0, -1, False)
    s, order = OPS["sort"](size, -1, True, True)
    rows = reshape(order, (*order.shape, 1))
    x, v = (OPS["gather"](y, -2, OPS["expand"](rows, tuple(y.shape))) for y in (x, v))
    x = OPS["div"](x, OPS["clamp_min"](reshape(s, (*s.shape, 1)), np.finfo(x.dtype).tiny))
    u, vh = contract.oriented(*((contract.turned(x), v) if tall else (contract.turned(v), x)))
    return tuple(cast(contiguous_copy(y), spec.dtype) for y, spec in zip((u, s, vh), specs, strict=True))
