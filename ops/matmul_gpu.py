"""Launches of matrix products. Transposed and broadcast operands are read where they lie.

What is launched for a layout is worked out once (`_plan_of`, and all of an op by `cuda.remembered`; kernels are tuned
without an op): the config from the committed table (gpu_configs), and
how the work is cut: whole tiles, K split, or stream-K where whole tiles would leave the GPU's last round half empty.
All of it depends on shape, dtype and GPU family alone, so the bits are those of every GPU of one family.
"""
import math
from functools import lru_cache
from typing import NamedTuple

import triton.language as tl

from zoo.ops import cuda, gpu_configs
from zoo.ops import matmul as contract
from zoo.ops.cuda import DeviceArray
from zoo.ops.dtypes import FLOATS, HALVES, float32, float64, int64, uint64
from zoo.ops.epilogue_gpu import (
    NOTHING,
    Epilogue,
    add_matrix,
    add_multiple,
    add_row,
    bits_of,
    epilogue,
    normalize,
    scale_by,
    stages_of,
    standardize,
)
from zoo.ops.gemm_gpu import add_parts, add_stretches, along_k, gemm, gemm_stream, gemm_tma
from zoo.ops.gpu_configs import Config
from zoo.ops.layout_gpu import EDGE
from zoo.ops.op import OPS
from zoo.ops.pointwise_gpu import contiguous_copy, jitted
from zoo.ops.shape import sum_to

PROGRAMS = 264              # enough to fill a GPU of 132 multiprocessors twice: what a split of sums aims at
# Stream-K writes and reads partial tiles, and launches once more: about as long as 32 steps of a 128 x 128 tile
# (17 MB through the L2 cache, 3 us, at 0.33 us a step). It has to save more steps than that. Predicted, not measured.
STREAM_GAIN = 32
ROWS, COLUMNS = 16, 128     # of the block in which partial products are added: 16 numbers a thread
# Halves whose rows are of odd length are loaded one by one: 32 a clock, about half of what the tensor cores of an H100
# take, and not asynchronously. A copy with aligned rows reads and writes 4 bytes an element once, at 4.8 TB/s in the
# time of about 400 FLOPs at the speed gained: it pays for as many columns, and if it outlasts its own launch (2.5 us).
# Predicted, not measured.
ALIGNED = 512, 1 << 22      # columns of the other operand, elements of this one
FEW = 32                    # rows up to which the transposed product is computed: wgmma takes 64 rows, but 8 columns


def kind_of(dtype) -> str:
    if dtype in HALVES:
        return "half"
    if dtype == float64:
        return "double"
    if dtype == float32:
        word = contract.Precision.float32
        return {"highest": "ieee", "tf32x3": "tf32x3"}.get(word, "tf32")
    return "integer"


def split_of(tiles: int, steps: int, slots: int = PROGRAMS) -> int:
    """Along how many parts K is split: as many as fill the GPU, each of at least 4 steps."""
    return max(1, min(slots // max(tiles, 1), steps // 4, 64))


def divisor(limit: int, *values: int) -> int:
    """The largest power of two up to `limit` that divides all values."""
    while limit > 1 and any(v % limit for v in values):
        limit //= 2
    return limit


class Layout(NamedTuple):
    """How a matrix (..., rows, columns) is read: after a copy? transposed? stride of the other dimension; its batch.

    copied: 0, 1 contiguous, or the length to which rows along K are padded with zeros.
    """
    copied: int
    turned: bool
    stride: int
    sizes: tuple
    strides: tuple


@lru_cache(4096)
def _layout(shape: tuple, strides: tuple) -> Layout:
    """In place if one of the last two dimensions is dense; a batch dimension of size 1 has stride 0."""
    (m, k), (sm, sk) = shape[-2:], strides[-2:]
    batch = tuple(0 if n == 1 else s for n, s in zip(shape[:-2], strides[:-2], strict=True))
    if sk == 1 or k == 1:
        return Layout(0, False, sm if m > 1 else k, shape[:-2], batch)
    if sm == 1 or m == 1:
        return Layout(0, True, sk, shape[:-2], batch)
    dense = cuda.contiguous_strides(shape)
    return Layout(1, False, k, shape[:-2], tuple(0 if n == 1 else s for n, s in zip(shape, dense, strict=True))[:-2])


def _merged(x: Layout, y: Layout) -> tuple[tuple, tuple, tuple]:
    """Batch dimensions (sizes, strides of x, of y), neighbours joined where both step evenly; at least one."""
    dims = max(len(x.sizes), len(y.sizes))
    out: list[list[int]] = []
    (na, sa), (nb, sb) = (((1,) * (dims - len(z.sizes)) + z.sizes, (0,) * (dims - len(z.sizes)) + z.strides)
                          for z in (x, y))
    for p, q, s, t in zip(na, nb, sa, sb, strict=True):
        n = q if p == 1 else p
        if n == 1:
            continue
        if out and out[-1][1] == s * n and out[-1][2] == t * n:
            out[-1] = [out[-1][0] * n, s, t]
        else:
            out.append([n, s, t])
    return tuple(zip(*(out or [[1, 0, 0]]), strict=True))  # type: ignore[return-value]


def _cut_of(config: Config, tiles: int, steps: int, slots: int) -> int:
    """How `tiles` tiles of `steps` steps each are cut for `slots` programs: parts of K, or -1 for stream-K."""
    if config.split:
        return config.split
    split = split_of(tiles, steps, slots)
    idle = -(-tiles // slots) * steps - tiles * steps // slots         # steps that a slot waits for the last round
    return -1 if split == 1 and idle >= STREAM_GAIN else split


class Problem(NamedTuple):
    """All that a plan depends on. Two layouts, whether addresses allow 16-byte copies, and what is computed."""
    M: int
    N: int
    K: int
    a: Layout
    b: Layout
    dtype: object
    out: object
    kind: str
    aligned: bool
    short: tuple[int, int]      # by how much K is less for a and for b, if the other one is padded
    stages: int                 # id of the epilogue's stages: hashing jit functions takes long
    has_matrix: bool            # does the epilogue read a matrix as large as the result?


def _evened(p: Problem) -> Problem:
    """Where it pays, with copies of those operands that are halves in rows of odd length (ALIGNED)."""
    columns, elements = ALIGNED
    odd = [x.stride % 2 == 1 for x in (p.a, p.b)]
    pays = any(o and other >= columns and side * p.K >= elements
               for o, other, side in zip(odd, (p.N, p.M), (p.M, p.N), strict=True))
    if not pays or p.dtype not in HALVES or p.M <= FEW or math.prod((*p.a.sizes, *p.b.sizes)) != 1:
        return p
    padded = -(-p.K // 8) * 8
    a, b = (Layout(padded, turned, padded, (), ()) if o else x
            for o, x, turned in zip(odd, (p.a, p.b), (False, True), strict=True))
    short = tuple(0 if o else padded - p.K for o in odd)
    return p._replace(K=padded, a=a, b=b, short=short)


class Plan(NamedTuple):
    """What one layout launches: kernel(grid, a, b, c, operands, *numbers), or partial products and `add` after it."""
    copies: tuple[int, int]     # as in Layout
    swap: bool
    kernel: cuda.Kernel
    grid: tuple
    numbers: tuple
    stream: bool = False
    parts: tuple = ()
    add: cuda.Kernel | None = None
    add_grid: tuple = ()
    add_numbers: tuple = ()


class Sides(NamedTuple):
    """The operands as the kernels see them, after a swap: sizes, are they turned, row strides, known divisors."""
    M: int
    N: int
    K: int
    TA: bool
    TB: bool
    lda: int
    ldb: int
    DM: int
    DN: int
    DK: int

    @property
    def numbers(self) -> tuple:
        """MD, ND, KD, LDA, LDB."""
        return (self.M // self.DM, self.N // self.DN, self.K // self.DK,
                self.lda // (self.DM if self.TA else self.DK), self.ldb // (self.DK if self.TB else self.DN))

    @property
    def constants(self) -> dict:
        return dict(TA=self.TA, TB=self.TB, DM=self.DM, DN=self.DN, DK=self.DK)

    def is_wide(self, swap: bool, side: int = 256) -> bool:
        """Do offsets inside of a tile need 64 bits? Its side may be as long as that."""
        rows = max(self.lda, self.ldb, self.M if swap else self.N)
        return max(self.M, self.N, self.K) >= EDGE or rows * side >= 2**31


def _sides(p: Problem, swap: bool) -> Sides:
    limit = 16 // p.dtype.itemsize
    m, n, ta, tb, lda, ldb = p.M, p.N, p.a.turned, p.b.turned, p.a.stride, p.b.stride
    if swap:
        m, n, ta, tb, lda, ldb = n, m, not tb, not ta, ldb, lda
    dm = divisor(limit, m, lda) if ta else divisor(limit, m) if swap else 1
    dn = divisor(limit, n) if tb else divisor(limit, n, ldb)
    dk = divisor(limit, p.K, *(() if ta else (lda,)), *((ldb,) if tb else ()))
    return Sides(m, n, p.K, ta, tb, lda, ldb, dm, dn, dk)


def _tags(p: Problem, s: Sides, batch: int, swap: bool) -> set[str]:
    """What rows of the table may ask for, beside the layout.

    "tma": blocks can be copied by the tensor memory accelerator; "tma_loads": those of the operands can; "matrix": the
    epilogue reads one; "norm": it is a batch norm's, for which a tile goes through shared memory as float32; "biased":
    that of a sum with a bias; "odd": the result's rows are of odd length, which makes its stores scalar; "narrow": an
    operand's dense dimension is, and its loads.
    """
    tags = {"tn"[p.a.turned ^ True] + "nt"[p.b.turned]}
    wide = all(n * p.dtype.itemsize % 16 == 0 for n in (p.a.stride, p.b.stride))
    if batch == 1 and p.K and p.aligned and wide and not swap and not s.is_wide(swap):
        tags.add("tma_loads")
        if p.N * p.out.itemsize % 16 == 0 and p.out.itemsize == p.dtype.itemsize:
            tags.add("tma")
    if p.has_matrix:
        tags.add("matrix")
    stages = stages_of(p.stages)
    if normalize in stages or standardize in stages:
        tags |= {"norm", "biased"} if add_row in stages else {"norm"}
    if p.N % 2:
        tags.add("odd")
    if 1 in ((s.DM if s.TA else s.DK), (s.DK if s.TB else s.DN)):
        tags.add("narrow")
    return tags


@lru_cache(4096)
def _plan_of(p: Problem, table: gpu_configs.Choice) -> Plan:
    """Which kernels run, with which config and numbers; everything that is the same at the next call."""
    p = _evened(p)
    sizes, sa, sb = _merged(p.a, p.b)
    batch, swap = math.prod(sizes), p.M <= FEW < p.N and p.kind != "integer"
    s = _sides(p, swap)
    config = gpu_configs.choose("gemm", p.kind, s.M, s.N, p.K, batch, _tags(p, s, batch, swap))
    copies = p.a.copied, p.b.copied
    tile = dict(BM=config.BM, BN=config.BN, BK=config.BK, GROUP=config.group)
    tile |= dict(PRECISION=p.kind if p.kind.startswith("tf32") else "ieee", SHORT=p.short,
                 num_warps=config.num_warps, num_stages=config.num_stages, maxnreg=config.registers or None)
    tiles, steps = -(-s.M // config.BM) * -(-s.N // config.BN), -(-p.K // config.BK)
    if config.kernel == "tma":
        kernel = cuda.prepare(gemm_tma, STAGES=stages_of(p.stages), SUB=config.sub, FLATTEN=config.flatten,
                              WS=config.specialize, **s.constants, **tile)
        return Plan(copies, False, kernel, (min(tiles, cuda.multiprocessors() * config.per_sm),), s.numbers)
    if p.dtype in FLOATS:
        acc = tl.float64 if p.kind == "double" else tl.float32
    else:
        acc = {int64: tl.int64, uint64: tl.uint64}.get(p.dtype, tl.int32)
    even = dict(EVEN_K=p.K % config.BK == 0 and not any(p.short), ACC=acc,
                EVEN_MN=s.M % config.BM == 0 and s.N % config.BN == 0)
    slots = gpu_configs.FAMILIES[table.family].multiprocessors * config.per_sm
    cut = _cut_of(config, tiles, steps, slots) if batch == 1 and p.dtype in FLOATS else 1
    wide = s.is_wide(swap, max(config[:3]))
    if cut < 0 and not (swap or wide):      # two ends to a tile take twice the registers (142-250): half the programs
        programs = gpu_configs.FAMILIES[table.family].multiprocessors * max(1, config.per_sm // 2)
        return _stream(p, s, copies, config, tile | even, min(programs, tiles * steps))
    each = -(-steps // max(cut, 1))
    split = max(1, -(-steps // each)) if each else 1
    kernel = cuda.prepare(gemm, DIMS=len(sizes), SPLIT=split, DOT=p.kind != "integer", SWAP=swap,
                          STAGES=stages_of(p.stages) if split == 1 else NOTHING.stages, WIDE=wide,
                          **s.constants, **tile, **even)
    if swap:
        sa, sb = sb, sa
    plan = Plan(copies, swap, kernel, (tiles * batch * split,), cuda.kept((*s.numbers, sizes, sa, sb, each)))
    if split == 1:
        return plan
    dn = divisor(16 // p.dtype.itemsize, p.N)
    add = cuda.prepare(add_parts, DN=dn, STAGES=stages_of(p.stages), BM=ROWS, BN=COLUMNS)
    return plan._replace(parts=(split, p.M, p.N), add=add, add_grid=(-(-p.M // ROWS), -(-p.N // COLUMNS)),
                         add_numbers=(p.M, p.N // dn, split))


def _stream(p: Problem, s: Sides, copies, config: Config, constants: dict, programs: int) -> Plan:
    """Stream-K on that many programs: whole rounds first, but for the last whole one, which is cut with the rest."""
    tiles, steps = -(-s.M // config.BM) * -(-s.N // config.BN), -(-p.K // config.BK)
    whole = max(0, tiles // programs - 1) * programs
    kernel = cuda.prepare(gemm_stream, STAGES=stages_of(p.stages), **s.constants, **constants)
    add = cuda.prepare(add_stretches, STAGES=stages_of(p.stages), DM=s.DM, DN=s.DN, BM=config.BM, BN=config.BN,
                       ROWS=ROWS, GROUP=config.group)
    return Plan(copies, False, kernel, (programs,), (*s.numbers, whole), stream=True,
                parts=(2 * programs, config.BM, config.BN), add=add,
                add_grid=(tiles - whole, config.BM // ROWS), add_numbers=(*s.numbers[:2], steps, whole, programs))


def _copied(x: DeviceArray, how: int) -> DeviceArray:
    """An operand (R, K), or of any shape for a contiguous copy, as Layout.copied says; who asks knows how it lies."""
    if how <= 1:
        return contiguous_copy(x) if how else x
    x = x if 1 in x.strides else contiguous_copy(x)
    (r, k), side, turned = x.shape, 64, x.strides[1] != 1
    y = cuda.empty((r, how), x.dtype, x.device)
    cuda.launch(along_k, (-(-r // side) * -(-how // side),), x, y, r, k, x.strides[turned], how // 8, TURNED=turned,
                DIV=8, BR=side, BK=side)
    return y


def multiply(a: DeviceArray, b: DeviceArray, shape: tuple, after: Epilogue = NOTHING, dtype=None,
             has_matrix: bool = False) -> DeviceArray:
    """a (..., M, K) @ b (..., K, N) through an epilogue's stages, in the memory of a new dense array of this shape.

    A matrix that a stage reads is dense and as large as the result: say so with has_matrix, it takes registers.
    """
    c = cuda.empty(shape, dtype or a.dtype, a.device)
    if not c.size:
        return c
    x, y = _layout(a.shape, a.strides), _layout(b.shape, b.strides)
    problem = Problem(a.shape[-2], b.shape[-1], a.shape[-1], x, y, a.dtype, c.dtype, kind_of(a.dtype),
                      not (a.pointer | b.pointer) & 15, (0, 0), id(after.stages), has_matrix)
    plan = _plan_of(problem, gpu_configs.current())
    if any(plan.copies):
        of_a, of_b = plan.copies
        a, b = _copied(a, of_a), _copied(b.view(b.shape[::-1], b.strides[::-1]) if of_b > 1 else b, of_b)
    if plan.swap:
        a, b = b, a
    if plan.add is None:
        plan.kernel(plan.grid, a, b, c, after.operands, *plan.numbers)
        return c
    parts = cuda.empty(plan.parts, float64 if a.dtype == float64 else float32, a.device)
    if plan.stream:
        plan.kernel(plan.grid, a, b, c, parts, after.operands, *plan.numbers)
    else:
        plan.kernel(plan.grid, a, b, parts, (), *plan.numbers)
    plan.add(plan.add_grid, parts, c, after.operands, *plan.add_numbers)
    return c


def sum_of_parts(parts: DeviceArray, total: DeviceArray) -> DeviceArray:
    """total = the sum of parts (SPLIT, *total.shape), in their order."""
    n = total.shape[-1]
    m, dn = total.size // n, divisor(16 // total.itemsize, n)
    cuda.launch(add_parts, (-(-m // ROWS), -(-n // COLUMNS)), parts, total, (), m, n // dn, parts.shape[0], DN=dn,
                STAGES=NOTHING.stages, BM=ROWS, BN=COLUMNS)
    return total


def biased(bias: DeviceArray | None) -> Epilogue:
    """The epilogue that adds a bias (N,), or none."""
    return NOTHING if bias is None else epilogue((add_row, bias))


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


@cuda.remembered
def matmul(input, other):
    spec = contract.matmul.check(input, other)
    a = _row(input) if input.ndim == 1 else input
    b = _column(other) if other.ndim == 1 else other
    if b.ndim == 2 and a.ndim > 2 and a.is_contiguous:      # one product instead of one for each batch element
        a = _flat_rows(a)
    return multiply(a, b, spec.shape)


@cuda.remembered
def multiply_add(input, a, b, beta, alpha):
    spec = contract.multiply_add.check(input, a, b, beta, alpha)
    stages = [] if alpha == 1 else [(scale_by, bits_of(alpha))]
    is_row = math.prod(input.shape[:-1]) == 1 and input.shape[-1:] == spec.shape[-1:]
    if is_row:                                              # one row, scaled by itself
        row = input.view(spec.shape[-1:], input.strides[-1:])
        row = row if beta == 1 else OPS["mul"](row, beta)
        stages.append((add_row, row if row.is_contiguous else contiguous_copy(row)))
    else:
        missing = len(spec.shape) - input.ndim
        strides = (0,) * missing + tuple(0 if n == 1 else s for n, s in zip(input.shape, input.strides, strict=True))
        full = input.view(spec.shape, strides)
        full = full if full.is_contiguous else contiguous_copy(full)
        stages.append((add_matrix, full) if beta == 1 else (add_multiple, (full, bits_of(beta))))
    return multiply(a, b, spec.shape, epilogue(*stages), has_matrix=not is_row)


@cuda.remembered
def linear_act(input, weight, bias, act):
    contract.linear_act.check(input, weight, bias, act)
    return _linear(input, weight, bias, (jitted(OPS[act]), None))


@cuda.remembered
def linear(input, weight, bias=None):
    return _linear(input, weight, bias)


def _linear(input, weight, bias, *stages) -> DeviceArray:
    """linear, then more stages of its epilogue."""
    spec = contract.linear.check(input, weight, bias)
    w = _row(weight) if weight.ndim == 1 else weight
    w = w.view(w.shape[::-1], w.strides[::-1])
    if bias is not None:
        wide = bias.view((w.shape[1],), (bias.strides[-1] if bias.shape[-1:] == w.shape[1:] else 0,))
        bias = wide if wide.is_contiguous else contiguous_copy(wide)
        stages = (add_row, bias), *stages
    return multiply(_flat_rows(input), w, spec.shape, epilogue(*stages))


@cuda.remembered
def linear_input_grad(dy, weight):
    spec = contract.linear_input_grad.check(dy, weight)
    if weight.ndim == 1:
        dy, weight = _column(dy), _row(weight)
    return multiply(_flat_rows(dy), weight, spec.shape)


@cuda.remembered
def linear_weight_grad(dy, input):
    spec = contract.linear_weight_grad.check(dy, input)
    dy = _flat_rows(dy if dy.ndim == input.ndim else _column(dy))
    return multiply(dy.view(dy.shape[::-1], dy.strides[::-1]), _flat_rows(input), spec.shape)


@cuda.remembered
def linear_bias_grad(dy):
    return sum_to(dy, dy.shape[-1:])
