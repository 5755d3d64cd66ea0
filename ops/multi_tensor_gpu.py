"""The kernels of lists of arrays: one launch for all arrays of a dtype, which are reached through a table of addresses.

The table and the map of chunks lie in device memory; the program's number says which chunk of which array. A table is
kept for the addresses in it: gradients often come back to the same ones, and then nothing is copied. An array is taken
in the order in which its elements lie in memory, so that channels-last parameters need no copy. Accesses are 16 bytes
wide: whole chunks take a path without mask, and the chunk's first element is computed from its number, so that the
compiler knows it for a multiple.
"""
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import triton
import triton.language as tl

from zoo.ops import cuda, pointwise_gpu, scalar_gpu
from zoo.ops.cuda import DeviceArray
from zoo.ops.cuda.driver import state
from zoo.ops.dtypes import float32, float64, join
from zoo.ops.multi_tensor import DTYPES
from zoo.ops.op import OPS
from zoo.ops.pointwise_gpu import contiguous_copy, convert, copy_into, is_dense

BLOCK = 1024            # elements of a program: two accesses of 16 bytes for each of 128 threads in float32
LONG = 8 * BLOCK        # of one that adds up: 8 times fewer parts for the one program that ends the sum
MOST_TABLES = 256
TYPES = {dtype: pointwise_gpu.TYPES[dtype.name] for dtype in DTYPES}       # by dtype: NumPy takes 2 us for a name


# -- tables of addresses

def alike(x: DeviceArray, y: DeviceArray) -> bool:
    """Have equal elements of the two, of one shape, equal places in memory?"""
    return x.strides == y.strides or all(
        n == 1 or s == t for n, s, t in zip(x.shape, x.strides, y.strides, strict=True))


def laid_like(x: DeviceArray, model: DeviceArray) -> DeviceArray:
    """x, or a copy of it, whose elements lie as those of a dense array of its shape do."""
    if alike(x, model):
        return x
    copy = cuda.empty((x.size,), x.dtype, x.device).view(x.shape, model.strides)
    return copy_into(copy, x)


def _kept(make: Any, values: tuple[int, ...], device: int) -> DeviceArray:
    """make(values, device, stream) from its cache; anew in a step that is captured or warmed up for it.

    The memory of a capture is not for use outside of it; and one table in the cache would keep a graph's whole pool.
    """
    return (make if state.pool is None else make.__wrapped__)(values, device, cuda.current_stream(device).handle)


@functools.lru_cache(MOST_TABLES)
def _chunks_of(chunk_and_sizes: tuple[int, ...], device: int, stream: int) -> DeviceArray:
    """int64 [programs, 2], the array and the chunk of every program; the first value is the chunk's length."""
    chunk, *sizes = chunk_and_sizes
    rows = [np.stack(np.broadcast_arrays(k, np.arange(triton.cdiv(n, chunk))), 1) for k, n in enumerate(sizes)]
    return cuda.from_numpy(np.concatenate(rows).astype(np.int64), device)


@functools.lru_cache(MOST_TABLES)
def _words_on_device(words: tuple[int, ...], device: int, stream: int) -> DeviceArray:
    """int64, what the table holds."""
    return cuda.from_numpy(np.array(words, np.int64), device)


def tables(rows: Sequence[tuple[DeviceArray, ...]], chunk: int) -> tuple[DeviceArray, DeviceArray, bool]:
    """(table, chunks, are all addresses multiples of 16) of rows of dense arrays, each row alike and not empty.

    The table: int64 [arrays of a row + 1, rows], their addresses, and in the last line the sizes.
    """
    addresses = [a.pointer for column in zip(*rows, strict=True) for a in column]
    sizes = [row[0].size for row in rows]
    device = rows[0][0].device
    return (_kept(_words_on_device, (*addresses, *sizes), device), _kept(_chunks_of, (chunk, *sizes), device),
            not any(a & 15 for a in addresses))


@triton.jit
def address(table, row, count, k, S: tl.constexpr, ALIGN: tl.constexpr):
    """The pointer in table[row, k]. The hint must come after the cast: before it, it is lost."""
    return tl.multiple_of(tl.load(table + row * count + k).to(tl.pointer_type(S)), ALIGN)


# -- one array, or two, element by element

@triton.jit
def scaled(x, y, number):
    return x * number


@triton.jit
def clipped(x, y, number):
    return scalar_gpu.minimum(scalar_gpu.maximum(x, -number), number)


@triton.jit
def averaged(x, y, number):
    near = tl.where(number < 0.5, x + number * (y - x), y - (y - x) * (1 - number))
    return tl.where(number == 1, y, near)


@triton.jit
def averaged_integers(x, y, number):
    """Rounded to float32 before it is cut: of 3 - 1e-16 nobody wants 2."""
    return tl.where(number == 1, y, (x * (1 - number) + y * number).to(tl.float32).to(tl.float64))


@triton.jit
def zeroed(x, y, number):
    return tl.zeros_like(x)


@triton.jit
def itself(held, number):
    return held


@triton.jit
def clip_factor(held, number):
    """min(1, number / (held + 1e-6)); nan stays."""
    return scalar_gpu.minimum(scalar_gpu.divide(number, held + 1e-6), 1.0)


@triton.jit
def apply_chunk(table, count, k, i, mask, number, found, FUNCTION: tl.constexpr, READS: tl.constexpr, S: tl.constexpr,
                T: tl.constexpr, ALIGN: tl.constexpr):
    here = address(table, 0, count, k, S, ALIGN) + i
    x = tl.load(here, mask=mask).to(T)
    y = tl.load(address(table, READS - 1, count, k, S, ALIGN) + i, mask=mask).to(T)      # x again where READS is 1
    x = FUNCTION(x, y, number).to(S)
    tl.store(here, x, mask=mask)
    if found is not None:
        stored = x.to(T)
        bad = (stored != stored) | (tl.abs(stored) == float("inf"))
        if mask is not None:
            bad = bad & mask
        if tl.max(bad.to(tl.int32), 0) > 0:
            tl.store(found, 1)


@triton.jit(do_not_specialize=["count", "number"])
def apply_kernel(table, chunks, count, number: "fp64", held, found, FUNCTION: tl.constexpr, NUMBER: tl.constexpr,
                 READS: tl.constexpr, S: tl.constexpr, T: tl.constexpr, ALIGN: tl.constexpr, BLOCK: tl.constexpr):
    """x = FUNCTION(x, y, number) in place.

    table: int64 [READS + 1, count], the addresses of x, of y if READS is 2, and the sizes. chunks: int64 [programs, 2],
    the array and the chunk of each program. held: None, or floating [], with which NUMBER(held, number) takes the place
    of the number. found: None, or bool [1], which becomes True if a result is not finite. S: what is stored, T: what it
    is computed in. Grid: (programs,).
    """
    k = tl.load(chunks + 2 * tl.program_id(0))
    base = tl.load(chunks + 2 * tl.program_id(0) + 1) * BLOCK
    size = tl.load(table + READS * count + k)
    i = base + tl.arange(0, BLOCK)
    value = number.to(T)
    if held is not None:
        value = NUMBER(tl.load(held).to(T), value)
    if base + BLOCK <= size:
        apply_chunk(table, count, k, i, None, value, found, FUNCTION, READS, S, T, ALIGN)
    else:
        apply_chunk(table, count, k, i, i < size, value, found, FUNCTION, READS, S, T, ALIGN)


def _by_dtype(arrays: Sequence[DeviceArray]) -> dict[np.dtype, list[int]]:
    """{dtype: the numbers of the arrays that have it and are not empty}."""
    groups: dict[np.dtype, list[int]] = {}
    for n, a in enumerate(arrays):
        if a.size:
            groups.setdefault(a.dtype, []).append(n)
    return groups


def _apply(function: Any, arrays: Sequence[DeviceArray], others: Sequence[DeviceArray] | None = None,
           number: Any = 0.0, take: Any = itself, most: float = 0.0, found: DeviceArray | None = None) -> None:
    """One launch for each dtype. number: a float; or a 0-d array, of which the kernel takes take(number, most)."""
    held = number if isinstance(number, DeviceArray) else None
    for dtype, members in _by_dtype(arrays).items():
        wide = tl.float32 if dtype.itemsize < 8 and dtype.kind not in "iu" else tl.float64
        rows = [(arrays[n] if is_dense(arrays[n]) else contiguous_copy(arrays[n]),) for n in members]
        if others is not None:
            rows = [(x, laid_like(others[n], x)) for n, (x,) in zip(members, rows, strict=True)]
        table, chunks, aligned = tables(rows, BLOCK)
        cuda.launch(apply_kernel, (chunks.shape[0],), table, chunks, len(rows), most if held is not None else number,
                    held, found, FUNCTION=function, NUMBER=take, READS=len(rows[0]), S=TYPES[dtype], T=wide,
                    ALIGN=16 if aligned else dtype.itemsize, BLOCK=BLOCK, num_warps=4)
        for n, row in zip(members, rows, strict=True):
            if row[0] is not arrays[n]:
                copy_into(arrays[n], row[0])


def clip_to_norm(arrays, total, most) -> None:
    _apply(scaled, arrays, number=total, take=clip_factor, most=float(most))


def scale(arrays, factor) -> None:
    _apply(scaled, arrays, number=factor)


def clip_to_value(arrays, most) -> None:
    _apply(clipped, arrays, number=float(most))


def unscale(arrays, inverse) -> DeviceArray:
    found = cuda.empty((1,), bool, arrays[0].device)
    cuda.fill_bytes(found)
    _apply(scaled, arrays, number=inverse, found=found)
    return found


def average(arrays, others, weight) -> None:
    for integers, function in ((False, averaged), (True, averaged_integers)):
        rows = [row for row in zip(arrays, others, strict=True) if (row[0].dtype.kind in "iu") == integers]
        if rows:
            _apply(function, *zip(*rows, strict=True), number=weight)


def zero(arrays) -> None:
    _apply(zeroed, arrays)


# -- casts

@triton.jit
def cast_chunk(table, count, k, i, mask, S: tl.constexpr, T: tl.constexpr, D: tl.constexpr, ALIGN: tl.constexpr):
    x = tl.load(address(table, 0, count, k, S, ALIGN) + i, mask=mask)
    tl.store(address(table, 1, count, k, D, ALIGN) + i, convert(convert(x, T), D), mask=mask)


@triton.jit(do_not_specialize=["count"])
def cast_kernel(table, chunks, count, S: tl.constexpr, T: tl.constexpr, D: tl.constexpr, ALIGN: tl.constexpr,
                BLOCK: tl.constexpr):
    """y = x, stored as D.

    table: int64 [3, count], the addresses of x, those of y, and the sizes. chunks: int64 [programs, 2], the array and
    the chunk of each program. S: what x is stored as, T: half types pass through it. Grid: (programs,).
    """
    k = tl.load(chunks + 2 * tl.program_id(0))
    base = tl.load(chunks + 2 * tl.program_id(0) + 1) * BLOCK
    size = tl.load(table + 2 * count + k)
    i = base + tl.arange(0, BLOCK)
    if base + BLOCK <= size:
        cast_chunk(table, count, k, i, None, S, T, D, ALIGN)
    else:
        cast_chunk(table, count, k, i, i < size, S, T, D, ALIGN)


def cast_all(arrays, dtype) -> list[DeviceArray]:
    if len(arrays) == 1:                    # needs no table
        return [OPS["cast"](arrays[0], dtype)]
    made = [cuda.empty((a.size,), dtype, a.device) for a in arrays]
    for source, members in _by_dtype(arrays).items():
        rows = []
        for n in members:
            x = arrays[n] if is_dense(arrays[n]) else contiguous_copy(arrays[n])
            made[n] = made[n].view(x.shape, x.strides)
            rows.append((x, made[n]))
        table, chunks, aligned = tables(rows, BLOCK)
        cuda.launch(cast_kernel, (chunks.shape[0],), table, chunks, len(rows), S=TYPES[source],
                    T=tl.float64 if source == float64 else tl.float32, D=TYPES[dtype],
                    ALIGN=16 if aligned else min(source.itemsize, dtype.itemsize), BLOCK=BLOCK, num_warps=4)
    return [y if y.shape == a.shape else y.view(a.shape, a.strides) for y, a in zip(made, arrays, strict=True)]


# -- norms

@triton.jit
def added(a, b):
    return a + b


@triton.jit
def absolute(x, order):
    return tl.abs(x)


@triton.jit
def square(x, order):
    return x * x


@triton.jit
def power(x, order):
    """|x|^order for an order above 0: also of 0, inf and nan."""
    return tl.exp2(tl.log2(tl.abs(x).to(tl.float64)) * order).to(x.dtype)


@triton.jit
def square_root(x, order):
    return scalar_gpu.sqrt(x)


@triton.jit
def root(x, order):
    return tl.exp2(tl.log2(x.to(tl.float64)) / order).to(x.dtype)


@triton.jit
def sum_of(block):
    return tl.sum(block, 0)


@triton.jit
def greatest_of(block):
    return tl.reduce(block, 0, scalar_gpu.maximum)


RULES: dict[float, tuple[Any, ...]] = {         # order: of an element, of two sums, of a block of them, of the whole
    1.0: (absolute, added, sum_of, absolute), 2.0: (square, added, sum_of, square_root),
    float("inf"): (absolute, scalar_gpu.maximum, greatest_of, absolute)}


@triton.jit(do_not_specialize=["count", "order"])
def norm_kernel(table, chunks, count, parts, order: "fp64", TERM: tl.constexpr, COMBINE: tl.constexpr,
                WHOLE: tl.constexpr, S: tl.constexpr, T: tl.constexpr, ALIGN: tl.constexpr, BLOCK: tl.constexpr,
                STEPS: tl.constexpr):
    """table: int64 [2, count], addresses and sizes. chunks: int64 [programs, 2], the array and chunk of each program.

    parts: float32 or float64 [programs], what each program's STEPS * BLOCK elements add up to. S: what is stored, T:
    what it is computed in. Grid: (programs,).
    """
    k = tl.load(chunks + 2 * tl.program_id(0))
    base = tl.load(chunks + 2 * tl.program_id(0) + 1) * (STEPS * BLOCK)
    size = tl.load(table + count + k)
    x = address(table, 0, count, k, S, ALIGN)
    total = tl.zeros((BLOCK,), T)
    if base + STEPS * BLOCK <= size:
        for j in range(STEPS):
            i = base + j * BLOCK + tl.arange(0, BLOCK)
            total = COMBINE(total, TERM(tl.load(x + i).to(T), order))
    else:
        for j in range(STEPS):
            i = base + j * BLOCK + tl.arange(0, BLOCK)
            total = COMBINE(total, TERM(tl.load(x + i, mask=i < size, other=0).to(T), order))
    tl.store(parts + tl.program_id(0), WHOLE(total))


@triton.jit(do_not_specialize=["count", "order"])
def norm_end_kernel(parts, count, out, order: "fp64", COMBINE: tl.constexpr, WHOLE: tl.constexpr, ROOT: tl.constexpr,
                    T: tl.constexpr, BLOCK: tl.constexpr):
    """parts: float32 or float64 [count]. out: floating [], ROOT of all parts together. Grid: (1,): a fixed order."""
    total = tl.zeros((BLOCK,), T)
    for begin in range(0, count, BLOCK):
        i = begin + tl.arange(0, BLOCK)
        total = COMBINE(total, tl.load(parts + i, mask=i < count, other=0))
    tl.store(out, ROOT(WHOLE(total), order).to(out.dtype.element_ty))


def norm(arrays, order) -> DeviceArray:
    term, combine, whole, end = RULES.get(float(order), (power, added, sum_of, root))
    device, groups = arrays[0].device, _by_dtype(arrays)
    made = []
    for dtype, members in groups.items():
        rows = [(arrays[n] if is_dense(arrays[n]) else contiguous_copy(arrays[n]),) for n in members]
        made.append((dtype, rows, *tables(rows, LONG)))
    wide = float64 if float64 in groups else float32
    parts, first = cuda.empty((sum(chunks.shape[0] for _, _, _, chunks, _ in made),), wide, device), 0
    for dtype, rows, table, chunks, aligned in made:
        programs = chunks.shape[0]
        cuda.launch(norm_kernel, (programs,), table, chunks, len(rows), parts.view((programs,), (1,), first),
                    float(order), TERM=term, COMBINE=combine, WHOLE=whole, S=TYPES[dtype],
                    T=tl.float64 if dtype == float64 else tl.float32, ALIGN=16 if aligned else dtype.itemsize,
                    BLOCK=BLOCK, STEPS=LONG // BLOCK, num_warps=4)
        first += programs
    out = cuda.empty((), functools.reduce(join, (a.dtype for a in arrays)), device)
    cuda.launch(norm_end_kernel, (1,), parts, parts.size, out, float(order), COMBINE=combine, WHOLE=whole, ROOT=end,
                T=TYPES[wide], BLOCK=BLOCK, num_warps=4)
    return out
