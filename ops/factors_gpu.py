"""Kernels of factors: one program reflects one matrix. For many small matrices rather than for one that is large."""
import numpy as np
import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import factors as contract
from zoo.ops.cuda import DeviceArray
from zoo.ops.join_gpu import cat
from zoo.ops.layout_gpu import power_of_two
from zoo.ops.linalg_gpu import svd, wide
from zoo.ops.op import OPS
from zoo.ops.pointwise_gpu import contiguous_copy
from zoo.ops.shape import basic_index, cast, reshape, triu

TILE = 4096             # elements of one step of an update


@triton.jit(do_not_specialize=["M", "N", "K"])
def reflect(w, M, N, K, BM: tl.constexpr, BN: tl.constexpr):
    """w (batch, M, N): K reflections, each of which clears a column below the diagonal (Householder 1958).

    grid (batch,).
    """
    w += tl.program_id(0).to(tl.int64) * M * N
    m = tl.arange(0, BM)
    for k in range(K):
        column = tl.load(w + m * N + k, mask=(m >= k) & (m < M), other=0.0)
        first = tl.sum(tl.where(m == k, column, 0.0), 0)
        below = tl.sum(tl.where(m > k, column * column, 0.0), 0)
        norm = tl.sqrt(first * first + below)
        v = tl.where(m == k, first + tl.where(first < 0, -norm, norm), column)
        scale = tl.sum(v * v, 0)
        scale = tl.where(below == 0, 0.0 * scale, 2 / tl.where(below == 0, 1.0, scale))
        tl.debug_barrier()                                 # all have read the column before any writes to it
        for c in range(0, N, BN):
            n = c + tl.arange(0, BN)
            at = m[:, None] * N + n[None, :]
            there = (m < M)[:, None] & (n < N)[None, :]
            tile = tl.load(w + at, mask=there, other=0.0)
            turned = tl.sum(v[:, None] * tile, 0) * scale
            tl.store(w + at, tile - v[:, None] * turned[None, :], mask=there)
        tl.debug_barrier()


def _units(n: int, like: DeviceArray) -> DeviceArray:
    """Unit matrices, one for each matrix of `like`."""
    one = np.broadcast_to(np.eye(n, dtype=like.dtype), (*like.shape[:-2], n, n))
    return cuda.from_numpy(np.ascontiguousarray(one), like.device)


def qr(a, complete=False):
    q_spec, r_spec = contract.qr.check(a, complete)
    m, n = a.shape[-2:]
    x = wide(a)
    w = cat(a.ndim - 1, x, _units(m, x))                   # [a | 1] becomes [r | q']
    if a.size:
        bm = power_of_two(m)
        cuda.launch(reflect, (w.size // (m * (n + m)),), w, m, n + m, min(m - 1, n), BM=bm, BN=max(TILE // bm, 1))
    k = q_spec.shape[-1]
    q = contract.turned(basic_index(w, (..., slice(0, k), slice(n, None))))
    r = triu(basic_index(w, (..., slice(0, k), slice(0, n))), 0)
    return tuple(cast(contiguous_copy(y), spec.dtype) for y, spec in ((q, q_spec), (r, r_spec)))


def eigh(a):
    """By the singular values of s + c, where c is so large that none of its eigenvalues is negative."""
    specs = contract.eigh.check(a)
    if not a.size:
        return tuple(cuda.empty(s.shape, s.dtype, a.device) for s in specs)
    x = wide(a)
    x = OPS["mul"](OPS["add"](x, contract.turned(x)), 0.5)
    c = OPS["amax"](OPS["sum"](OPS["abs"](x), -1, False, None), (-1,), True)              # (..., 1): Gershgorin's bound
    shifted = OPS["add"](x, OPS["mul"](_units(a.shape[-1], x), reshape(c, (*c.shape, 1))))
    _, s, vh = svd(contiguous_copy(shifted))
    w, v = OPS["flip"](OPS["sub"](s, c), (-1,)), OPS["flip"](contract.turned(vh), (-1,))
    v, _ = contract.oriented(v, contract.turned(v))
    return tuple(cast(contiguous_copy(y), spec.dtype) for y, spec in zip((w, v), specs, strict=True))


def pinv(a, atol=0.0, rtol=0.0):
    specs = contract.pinv.check(a, atol, rtol)
    if not a.size:
        return tuple(cuda.empty(spec.shape, spec.dtype, a.device) for spec in specs)
    u, s, vh = svd(wide(a))
    return cast(contiguous_copy(contract.inverted(u, s, vh, atol, rtol)), a.dtype), cast(s, a.dtype)
