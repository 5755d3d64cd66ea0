"""Tiled matrix products on tensor cores. Transposed and broadcast operands are read where they lie.

Triton knows of an integer argument only "divisible by 16 or not", and a K of 1000 would give 2-byte loads; so sizes and
row strides arrive divided by known powers of two (DM, DN, DK) and are multiplied back inside: 16-byte loads again.
Thin products are split along K into partial products in scratch memory, added in a fixed order: no atomics, and the
same bits in every run. The configs depend on shape and dtype alone, so the bits are those of every GPU of one kind.
"""
import math
from typing import NamedTuple

import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import matmul as contract
from zoo.ops.cuda import DeviceArray
from zoo.ops.dtypes import FLOATS, HALVES, float32, float64, int64, uint64
from zoo.ops.pointwise_gpu import contiguous_copy

PROGRAMS = 264                      # enough to fill a GPU of 132 multiprocessors twice: what split-K aims at


@triton.jit
def tile_of(pid, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Row and column of a tile; GROUP tile rows are walked together, so that their operands stay in the L2 cache."""
    down = tl.cdiv(M, BM)
    across = tl.cdiv(N, BN)
    first = pid // (GROUP * across) * GROUP
    height = tl.minimum(down - first, GROUP)
    rest = pid % (GROUP * across)
    return first + rest % height, rest // height


@triton.jit
def without_bias(acc, bias, rn, inside):
    """Epilogue: the product as it is."""
    return acc


@triton.jit
def with_bias(acc, bias, rn, inside):
    """Epilogue: bias [N] added to every row."""
    return acc + tl.load(bias + rn, mask=inside, other=0).to(acc.dtype)[None, :]


@triton.jit
def batch_offset(z, sizes, strides, DIMS: tl.constexpr):
    """Where batch element z (row-major over sizes) begins."""
    offset = z.to(tl.int64) * 0
    for k in tl.static_range(DIMS):
        size = sizes[DIMS - 1 - k]
        rest = z // size
        offset += (z - rest * size).to(tl.int64) * strides[DIMS - 1 - k]
        z = rest
    return offset


# sa, sb are specialised: unless they are multiples of 16, the loads of all k-steps are neither wide nor asynchronous.
@triton.jit(do_not_specialize=["MD", "ND", "KD", "LDA", "LDB", "sizes", "steps"])
def gemm(a, b, c, bias, MD, ND, KD, LDA, LDB, sizes, sa, sb, steps,
         TA: tl.constexpr, TB: tl.constexpr, DM: tl.constexpr, DN: tl.constexpr, DK: tl.constexpr, DIMS: tl.constexpr,
         SPLIT: tl.constexpr, EVEN_K: tl.constexpr, EVEN_MN: tl.constexpr, DOT: tl.constexpr, ACC: tl.constexpr,
         PRECISION: tl.constexpr, EPILOGUE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
         GROUP: tl.constexpr):
    """c[z] = EPILOGUE(a[z] @ b[z]), M = MD*DM, N = ND*DN, K = KD*DK.

    a (M, K), row stride LDA*DK, or lying as (K, M), row stride LDA*DM (TA); b (K, N), row stride LDB*DN, or lying as
    (N, K), row stride LDB*DK (TB); c (batch, M, N) dense, or with SPLIT > 1 the partial products (SPLIT, M, N); bias
    (N,) or None. Batch (*sizes) of a at strides sa, of b at sb. Each split takes `steps` blocks of BK along K.
    EVEN_K: BK divides K; EVEN_MN: BM divides M and BN divides N. DOT: tensor cores or FMA of floats, else integer sums.
    Grid: (tiles * batch * SPLIT,).
    """
    M = MD * DM
    N = ND * DN
    K = KD * DK
    sam, sak = (1, LDA * DM) if TA else (LDA * DK, 1)
    sbk, sbn = (1, LDB * DK) if TB else (LDB * DN, 1)
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    z = tl.program_id(0) // tiles
    pm, pn = tile_of(tl.program_id(0) % tiles, M, N, BM, BN, GROUP)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    k0 = z * (steps * BK) if SPLIT > 1 else z * 0
    base = z * 0 if SPLIT > 1 else z
    rk = k0 + tl.arange(0, BK)
    # 64 bits only for the tile's origin, 32 inside the tile
    pa = a + batch_offset(base, sizes, sa, DIMS) + (pm * BM).to(tl.int64) * sam + k0.to(tl.int64) * sak
    pb = b + batch_offset(base, sizes, sb, DIMS) + (pn * BN).to(tl.int64) * sbn + k0.to(tl.int64) * sbk
    pa += tl.arange(0, BM)[:, None] * sam + tl.arange(0, BK)[None, :] * sak
    pb += tl.arange(0, BK)[:, None] * sbk + tl.arange(0, BN)[None, :] * sbn
    inside_m = (rm < M)[:, None]
    inside_n = (rn < N)[None, :]
    acc = tl.zeros((BM, BN), ACC)
    for k in range(0, steps):
        if EVEN_K and EVEN_MN:
            x = tl.load(pa)
            y = tl.load(pb)
        elif EVEN_K:
            x = tl.load(pa, mask=inside_m, other=0)
            y = tl.load(pb, mask=inside_n, other=0)
        else:
            inside_k = rk + k * BK < K
            x = tl.load(pa, mask=inside_m & inside_k[None, :], other=0)
            y = tl.load(pb, mask=inside_k[:, None] & inside_n, other=0)
        if DOT:
            acc = tl.dot(x, y, acc, input_precision=PRECISION, out_dtype=ACC)
        else:
            acc += tl.sum(x.to(ACC)[:, :, None] * y.to(ACC)[None, :, :], 1)
        pa += BK * sak
        pb += BK * sbk
    out = EPILOGUE(acc, bias, rn, rn < N).to(c.dtype.element_ty)
    pc = c + z.to(tl.int64) * M * N + (pm * BM).to(tl.int64) * N + (tl.arange(0, BM)[:, None] * N + rn[None, :])
    if EVEN_MN:
        tl.store(pc, out)
    else:
        tl.store(pc, out, mask=inside_m & inside_n)


@triton.jit(do_not_specialize=["size", "N", "SPLIT"])
def add_parts(parts, c, bias, size, N, SPLIT, EPILOGUE: tl.constexpr, BLOCK: tl.constexpr):
    """c (size,), rows of N, = EPILOGUE(sum of parts (SPLIT, size)), in their order. Grid: (ceil(size / BLOCK),)."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < size
    acc = tl.load(parts + i, mask=inside, other=0)
    for _ in range(1, SPLIT):
        parts += size
        acc += tl.load(parts + i, mask=inside, other=0)
    acc = tl.reshape(EPILOGUE(tl.reshape(acc, (1, BLOCK)), bias, (i % N).to(tl.int32), inside), (BLOCK,))
    tl.store(c + i, acc.to(c.dtype.element_ty), mask=inside)


class Config(NamedTuple):
    """A tile of the output, the depth of one step, and how many warps and pipeline stages work on it."""
    BM: int
    BN: int
    BK: int
    num_warps: int
    num_stages: int


# For each kind of arithmetic: (least number of full tiles, config), the first that is filled; then the smallest.
CONFIGS = {
    "half": [(264, Config(128, 256, 64, 8, 3)), (66, Config(128, 128, 64, 8, 3)), (0, Config(64, 64, 64, 4, 4))],
    "tf32": [(132, Config(128, 128, 32, 8, 3)), (0, Config(64, 64, 32, 4, 4))],
    "ieee": [(132, Config(128, 128, 16, 8, 2)), (0, Config(64, 64, 32, 4, 2))],
    "double": [(0, Config(64, 64, 16, 4, 2))],
    "integer": [(0, Config(32, 32, 8, 4, 1))],
}


def kind_of(dtype) -> str:
    if dtype in HALVES:
        return "half"
    if dtype == float64:
        return "double"
    if dtype == float32:
        return "ieee" if contract.Precision.float32 == "highest" else "tf32"
    return "integer"


def _config_of(kind: str, M: int, N: int, batch: int) -> Config:
    """The largest tile that still gives every multiprocessor work; thin products take thin tiles (16 is the least)."""
    best = next(c for least, c in CONFIGS[kind] if (M // c.BM) * (N // c.BN) * batch >= least)
    for side, size in (("BM", M), ("BN", N)):
        if size <= 32 and kind != "integer":
            best = best._replace(**{side: 16 if size <= 16 else 32})
    return best


def split_of(tiles: int, steps: int) -> int:
    """Along how many parts K is split: as many as fill the GPU, each of at least 4 steps."""
    return max(1, min(PROGRAMS // max(tiles, 1), steps // 4, 64))


def divisor(limit: int, *values: int) -> int:
    """The largest power of two up to `limit` that divides all values."""
    while limit > 1 and any(v % limit for v in values):
        limit //= 2
    return limit


def _matrix(x: DeviceArray) -> tuple[DeviceArray, bool, int]:
    """(x, does its second last dimension lie dense, stride of the other): copied if neither of the last two does."""
    (m, k), (sm, sk) = x.shape[-2:], x.strides[-2:]
    if sk == 1 or k == 1:
        return x, False, sm if m > 1 else k
    if sm == 1 or m == 1:
        return x, True, sk
    return contiguous_copy(x), False, k


def _merged(sizes: tuple, sa: tuple, sb: tuple) -> tuple[tuple, tuple, tuple]:
    """Batch dimensions, neighbours joined where both operands step evenly; at least one."""
    out: list[list[int]] = []
    for n, p, q in zip(sizes, sa, sb, strict=True):
        if n == 1:
            continue
        if out and out[-1][1] == p * n and out[-1][2] == q * n:
            out[-1] = [out[-1][0] * n, p, q]
        else:
            out.append([n, p, q])
    return tuple(zip(*(out or [[1, 0, 0]]), strict=True))  # type: ignore[return-value]


def _batch(x: DeviceArray, dims: int) -> tuple[tuple, tuple]:
    """Sizes and strides of the batch dimensions of x, with `dims` of them; what broadcasts has stride 0."""
    missing = dims + 2 - x.ndim
    strides = tuple(0 if n == 1 else s for n, s in zip(x.shape[:-2], x.strides[:-2], strict=True))
    return (1,) * missing + x.shape[:-2], (0,) * missing + strides


def multiply(a: DeviceArray, b: DeviceArray, shape: tuple, bias: DeviceArray | None = None) -> DeviceArray:
    """a (..., M, K) @ b (..., K, N) + bias (N,), in the memory of a new dense array of this shape."""
    c = cuda.empty(shape, a.dtype, a.device)
    (M, K), N = a.shape[-2:], b.shape[-1]
    if not c.size:
        return c
    (a, ta, lda), (b, tb, ldb) = _matrix(a), _matrix(b)
    lead = max(a.ndim, b.ndim) - 2
    (na, sa), (nb, sb) = _batch(a, lead), _batch(b, lead)
    sizes = tuple(q if p == 1 else p for p, q in zip(na, nb, strict=True))
    batch = math.prod(sizes)
    kind = kind_of(a.dtype)
    config = _config_of(kind, M, N, batch)
    tiles, steps = -(-M // config.BM) * -(-N // config.BN), -(-K // config.BK)
    split = split_of(tiles, steps) if batch == 1 and a.dtype in FLOATS else 1
    steps = -(-steps // split)
    split = max(1, -(-K // (steps * config.BK))) if split > 1 else 1
    limit = 16 // a.itemsize
    dm = divisor(limit, M, lda) if ta else 1
    dn = divisor(limit, N) if tb else divisor(limit, N, ldb)
    dk = divisor(limit, K, *(() if ta else (lda,)), *((ldb,) if tb else ()))
    if a.dtype in FLOATS:
        acc = tl.float64 if kind == "double" else tl.float32
    else:
        acc = {int64: tl.int64, uint64: tl.uint64}.get(a.dtype, tl.int32)
    epilogue = with_bias if bias is not None else without_bias
    target = cuda.empty((split, M, N), float64 if kind == "double" else float32, a.device) if split > 1 else c
    sizes, sa, sb = _merged(sizes, sa, sb)
    cuda.launch(gemm, (tiles * batch * split,), a, b, target, None if split > 1 else bias, M // dm, N // dn, K // dk,
                lda // (dm if ta else dk), ldb // (dk if tb else dn), sizes, sa, sb, steps,
                TA=ta, TB=tb, DM=dm, DN=dn, DK=dk, DIMS=len(sizes), SPLIT=split,
                EVEN_K=K % (steps * config.BK or 1) == 0, EVEN_MN=M % config.BM == 0 and N % config.BN == 0,
                DOT=kind != "integer", ACC=acc, PRECISION="tf32" if kind == "tf32" else "ieee",
                EPILOGUE=without_bias if split > 1 else epilogue, GROUP=8, **config._asdict())
    if split > 1:
        cuda.launch(add_parts, (-(-M * N // 1024),), target, c, bias, M * N, N, split, EPILOGUE=epilogue, BLOCK=1024)
    return c


def _row(x: DeviceArray) -> DeviceArray:
    return x.view((1, *x.shape), (0, *x.strides))


def _column(x: DeviceArray) -> DeviceArray:
    return x.view((*x.shape, 1), (*x.strides, 1))


def _flat_rows(x: DeviceArray) -> DeviceArray:
    """(..., K) as a matrix."""
    if x.ndim == 2:
        return x
    x = x if x.is_contiguous else contiguous_copy(x)
    k = x.shape[-1]
    return x.view((math.prod(x.shape[:-1]), k), (k, 1))


def matmul(input, other):
    spec = contract.matmul.check(input, other)
    a = _row(input) if input.ndim == 1 else input
    b = _column(other) if other.ndim == 1 else other
    if b.ndim == 2 and a.ndim > 2 and a.is_contiguous:      # one product instead of one for each batch element
        a = _flat_rows(a)
    return multiply(a, b, spec.shape)


def linear(input, weight, bias=None):
    spec = contract.linear.check(input, weight, bias)
    w = _row(weight) if weight.ndim == 1 else weight
    w = w.view(w.shape[::-1], w.strides[::-1])
    if bias is not None:
        wide = bias.view((w.shape[1],), (bias.strides[-1] if bias.shape[-1:] == w.shape[1:] else 0,))
        bias = wide if wide.is_contiguous else contiguous_copy(wide)
    return multiply(_flat_rows(input), w, spec.shape, bias)


def linear_input_grad(dy, weight):
    spec = contract.linear_input_grad.check(dy, weight)
    if weight.ndim == 1:
        dy, weight = _column(dy), _row(weight)
    return multiply(_flat_rows(dy), weight, spec.shape)


def linear_weight_grad(dy, input):
    spec = contract.linear_weight_grad.check(dy, input)
    dy = _flat_rows(dy if dy.ndim == input.ndim else _column(dy))
    return multiply(dy.view(dy.shape[::-1], dy.strides[::-1]), _flat_rows(input), spec.shape)
