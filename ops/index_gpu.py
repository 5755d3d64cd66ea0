"""Kernels of indexing. All see x as (outer, rows, inner), with the indexed dim or dims as the rows.

The index is either one list of row numbers for all (`x[..., i, ...]`, embedding) or has a number for every element
(LINES: gather and scatter). What combines several values in one place runs in a fixed order, without atomics: `few`
lets every place look through a short index, `segments` walks the index sorted by row.
"""
from math import prod
from typing import NamedTuple

import numpy as np
import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import index as contract
from zoo.ops.dims import wrap
from zoo.ops.dtypes import bool_
from zoo.ops.op import OPS
from zoo.ops.pointwise_gpu import contiguous_copy, copy_into
from zoo.ops.reduce_gpu import add, larger, multiply, smaller
from zoo.ops.shape_gpu import _wide_type, basic_index, contiguous, expand, filled, permute

BLOCK = 1024                # elements of a program
FEW, MANY, WORK = 16, 64, 2**24     # `few` takes an index of length FEW, or MANY if times the elements of x it is WORK
NOWHERE = tl.constexpr(-2**62)      # the row number of what is out of range: negative even after rows are added
RANK = 2**15                # up to here an index is sorted by counting who is smaller


class Sizes(NamedTuple):
    """x is (outer, rows, inner); the index has `length` row numbers, for each (outer, inner) anew if `lines`."""
    outer: int
    rows: int
    length: int
    inner: int
    lines: bool

    def tile(self) -> tuple[int, int]:
        """How many of (outer, length) or (outer, rows), and of inner, a program takes."""
        width = min(BLOCK, triton.next_power_of_2(self.inner))
        return BLOCK // width, width

    def grid(self, rows: int) -> tuple[int]:
        height, width = self.tile()
        return (triton.cdiv(rows, height) * triton.cdiv(self.inner, width),)


@triton.jit
def tile_of(count, inner, HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    """Rows (HEIGHT, 1) and columns (1, WIDTH) of this program in (count, inner), and the mask of those that exist."""
    across = tl.cdiv(inner, WIDTH)
    pid = tl.program_id(0)
    m = (pid // across).to(tl.int64) * HEIGHT + tl.arange(0, HEIGHT)[:, None]
    q = (pid % across).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)[None, :]
    return m, q, (m < count) & (q < inner)


@triton.jit
def wrapped(row, rows):
    """Row numbers from the front; those below 0 count from the end."""
    row = row.to(tl.int64)
    return tl.where(row < 0, row + rows, row)


SIZES = ["outer", "rows", "length", "inner"]


@triton.jit(do_not_specialize=SIZES)
def gather_kernel(x_ptr, index_ptr, y_ptr, outer, rows, length, inner, LINES: tl.constexpr, HEIGHT: tl.constexpr,
                  WIDTH: tl.constexpr):
    """x: (outer, rows, inner); index: (length,) or (outer, length, inner) if LINES; y: (outer, length, inner).

    Grid: (ceil(outer * length / HEIGHT) * ceil(inner / WIDTH),).
    """
    lines = outer.to(tl.int64) * length
    m, q, mask = tile_of(lines, inner, HEIGHT, WIDTH)
    if LINES:
        row = tl.load(index_ptr + m * inner + q, mask=mask, other=0)
    else:
        row = tl.load(index_ptr + m % length, mask=m < lines, other=0)
    row = tl.minimum(tl.maximum(wrapped(row, rows), 0), rows - 1)
    tl.store(y_ptr + m * inner + q, tl.load(x_ptr + (m // length * rows + row) * inner + q, mask=mask), mask=mask)


@triton.jit(do_not_specialize=SIZES)
def scatter_kernel(v_ptr, index_ptr, y_ptr, outer, rows, length, inner, LINES: tl.constexpr, ONE: tl.constexpr,
                   HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    """v: (outer, length, inner), or one element if ONE; index as in gather_kernel; y: (outer, rows, inner), written to.

    Grid: (ceil(outer * length / HEIGHT) * ceil(inner / WIDTH),).
    """
    lines = outer.to(tl.int64) * length
    m, q, mask = tile_of(lines, inner, HEIGHT, WIDTH)
    if LINES:
        row = tl.load(index_ptr + m * inner + q, mask=mask, other=0)
    else:
        row = tl.load(index_ptr + m % length, mask=m < lines, other=0)
    row = wrapped(row, rows)
    mask = mask & (row >= 0) & (row < rows)
    value = tl.load(v_ptr + (m * inner + q) * (1 - ONE), mask=mask)
    tl.store(y_ptr + (m // length * rows + row) * inner + q, value, mask=mask)


COMBINE = {"sum": add, "mean": add, "prod": multiply, "amax": larger, "amin": smaller}


@triton.jit
def finished(total, count, y_ptr, MEAN: tl.constexpr):
    """What is stored of a total over `count` values."""
    if MEAN:
        count = tl.maximum(count, 1)
        if y_ptr.dtype.element_ty.is_floating():
            total = total / count.to(total.dtype)
        else:
            low = total // count.to(total.dtype)
            total = low - (total - low * count.to(total.dtype) < 0)      # towards minus infinity
    if y_ptr.dtype.element_ty == tl.int1:
        return total != 0
    else:
        return total.to(y_ptr.dtype.element_ty)


@triton.jit(do_not_specialize=SIZES)
def few_kernel(x_ptr, v_ptr, index_ptr, y_ptr, outer, rows, length, inner, OP: tl.constexpr, SELF: tl.constexpr,
               MEAN: tl.constexpr, LINES: tl.constexpr, WIDE: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    """x, y: (outer, rows, inner); v: (outer, length, inner); index: (length,) or (outer, length, inner) if LINES.

    Every place goes through the whole index. Grid: (ceil(outer * rows / HEIGHT) * ceil(inner / WIDTH),).
    """
    m, q, mask = tile_of(outer.to(tl.int64) * rows, inner, HEIGHT, WIDTH)
    total = tl.load(x_ptr + m * inner + q, mask=mask, other=0).to(WIDE)
    count = tl.full([HEIGHT, WIDTH], SELF, tl.int32)
    first = m // rows * length
    for k in range(length):
        if LINES:
            row = tl.load(index_ptr + (first + k) * inner + q, mask=mask, other=0)
        else:
            row = tl.load(index_ptr + k + m * 0)
        hit = mask & (wrapped(row, rows) == m % rows)
        value = tl.load(v_ptr + (first + k) * inner + q, mask=hit, other=0).to(WIDE)
        total = tl.where(hit, tl.where(count > 0, OP(total, value), value), total)
        count += hit.to(tl.int32)
    tl.store(y_ptr + m * inner + q, finished(total, count, y_ptr, MEAN), mask=mask)


@triton.jit
def lower_bound(sorted_ptr, n, row):
    """How many of the n ascending numbers are below `row`."""
    low = row * 0
    high = low + n
    left = n
    while left > 0:
        middle = (low + high) // 2
        below = (low < high) & (tl.load(sorted_ptr + tl.minimum(middle, n - 1)) < row)
        high = tl.where((low < high) & ~below, middle, high)
        low = tl.where(below, middle + 1, low)
        left = left // 2
    return low


@triton.jit(do_not_specialize=SIZES)
def segments_kernel(x_ptr, v_ptr, sorted_ptr, order_ptr, y_ptr, outer, rows, length, inner, OP: tl.constexpr,
                    SELF: tl.constexpr, MEAN: tl.constexpr, WIDE: tl.constexpr, HEIGHT: tl.constexpr,
                    WIDTH: tl.constexpr):
    """x, y: (outer, rows, inner); v: (outer, length, inner); sorted, order: (length,) row numbers and where they stood.

    A place goes through its segment of the sorted index. Grid: (ceil(outer * rows / HEIGHT) * ceil(inner / WIDTH),).
    """
    lines = outer.to(tl.int64) * rows
    m, q, mask = tile_of(lines, inner, HEIGHT, WIDTH)
    total = tl.load(x_ptr + m * inner + q, mask=mask, other=0).to(WIDE)
    count = tl.full([HEIGHT, WIDTH], SELF, tl.int32)
    start = lower_bound(sorted_ptr, length, m % rows)
    stop = lower_bound(sorted_ptr, length, m % rows + 1)
    for k in range(tl.max(tl.max(stop - start, 1), 0)):
        hit = mask & (start + k < stop)
        place = tl.load(order_ptr + start + k, mask=(m < lines) & (start + k < stop), other=0)
        value = tl.load(v_ptr + (m // rows * length + place) * inner + q, mask=hit, other=0).to(WIDE)
        total = tl.where(hit, tl.where(count > 0, OP(total, value), value), total)
        count += hit.to(tl.int32)
    tl.store(y_ptr + m * inner + q, finished(total, count, y_ptr, MEAN), mask=mask)


@triton.jit(do_not_specialize=["n", "length", "inner", "rows"])
def line_rows_kernel(index_ptr, y_ptr, n, rows, length, inner, BLOCK: tl.constexpr):
    """index, y: (outer, length, inner), n elements. y: the place in x seen as (outer * rows * inner,), or NOWHERE.

    Grid: (ceil(n / BLOCK),).
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row = wrapped(tl.load(index_ptr + i, mask=i < n, other=0), rows)
    place = (i // inner // length * rows + row) * inner + i % inner
    tl.store(y_ptr + i, tl.where((row >= 0) & (row < rows), place, NOWHERE), mask=i < n)


@triton.jit(do_not_specialize=["n", "size"])
def fold_kernel(index_ptr, y_ptr, n, size, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    """index, y: (n,). y = y * size + index: the row of the indices of several dims; NOWHERE once one is out of range.

    Grid: (ceil(n / BLOCK),).
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row = wrapped(tl.load(index_ptr + i, mask=i < n, other=0), size)
    good = (row >= 0) & (row < size)
    if not FIRST:
        before = tl.load(y_ptr + i, mask=i < n, other=0)
        good = good & (before >= 0)
        row += before * size
    tl.store(y_ptr + i, tl.where(good, row, NOWHERE), mask=i < n)


@triton.jit
def sort_key(index_ptr, i, n, rows):
    """The row number of element i; `rows`, which is behind all others, if it is out of range."""
    row = wrapped(tl.load(index_ptr + i, mask=i < n, other=0), rows)
    return tl.where((row >= 0) & (row < rows), row, rows)


@triton.jit(do_not_specialize=["n", "rows"])
def rank_kernel(index_ptr, sorted_ptr, order_ptr, n, rows, BLOCK: tl.constexpr, OTHERS: tl.constexpr):
    """index, sorted, order: (n,). The stable order of the index by row: a number's place is how many come before it.

    Grid: (ceil(n / BLOCK),).
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mine = sort_key(index_ptr, i, n, rows)
    rank = tl.zeros([BLOCK], tl.int64)
    for first in range(0, n, OTHERS):
        j = first + tl.arange(0, OTHERS)
        other = sort_key(index_ptr, j, n, rows)[None, :]
        before = (other < mine[:, None]) | ((other == mine[:, None]) & (j[None, :] < i[:, None]))
        rank += tl.sum((before & (j < n)[None, :]).to(tl.int32), 1)
    tl.store(sorted_ptr + rank, mine, mask=i < n)
    tl.store(order_ptr + rank, i, mask=i < n)


def _sorted_rows(index, rows: int) -> tuple:
    """The row numbers in ascending order, and where each stood; equal ones keep their order."""
    n = index.size
    if n <= RANK:
        found, order = (cuda.empty((n,), np.int64, index.device) for _ in range(2))
        cuda.launch(rank_kernel, (triton.cdiv(n, 32),), index, found, order, n, rows, BLOCK=32, OTHERS=128)
        return found, order
    return OPS["sort"](_fold([(index, rows)], (n,)), 0, False, True)


def _combined(x, v, index, sizes: Sizes, reduce: str, include_self: bool = True):
    """A new (outer, rows, inner): x, contiguous, with v (outer, length, inner) combined into the rows of the index."""
    few = sizes.length <= (MANY if sizes.length * x.size <= WORK else FEW)
    if sizes.lines and not few:
        places = cuda.empty((index.size,), np.int64, x.device)
        cuda.launch(line_rows_kernel, (triton.cdiv(index.size, BLOCK),), index, places, index.size, sizes.rows,
                    sizes.length, sizes.inner, BLOCK=BLOCK)
        sizes, index = Sizes(1, x.size, index.size, 1, False), places
    y = cuda.empty(x.shape, x.dtype, x.device)
    height, width = sizes.tile()
    options = dict(OP=COMBINE[reduce], SELF=int(include_self), MEAN=reduce == "mean", HEIGHT=height, WIDTH=width,
                   WIDE=tl.int32 if x.dtype == bool_ else _wide_type(x.dtype))
    grid = sizes.grid(sizes.outer * sizes.rows)
    if few:
        cuda.launch(few_kernel, grid, x, v, index, y, *sizes[:4], LINES=sizes.lines, **options)
    else:
        cuda.launch(segments_kernel, grid, x, v, *_sorted_rows(index, sizes.rows), y, *sizes[:4], **options)
    return y


# -- along one dim

def _part_of(x, d: int, index):
    """The part of x that an index of smaller sizes reaches, and its Sizes."""
    shape = index.shape or (1,)
    x = x if x.shape else x.view((1,), (1,))
    x = basic_index(x, tuple(slice(None) if k == d else slice(n) for k, n in enumerate(shape)))
    return x, Sizes(prod(shape[:d]), x.shape[d], shape[d], prod(shape[d + 1:]), True)


@cuda.remembered
def gather(input, dim, index):
    spec = contract.gather.check(input, dim, index)
    y = cuda.empty(spec.shape, spec.dtype, input.device)
    if y.size:
        x, sizes = _part_of(input, wrap("gather", dim, input.ndim), index)
        height, width = sizes.tile()
        cuda.launch(gather_kernel, sizes.grid(sizes.outer * sizes.length), contiguous(x), contiguous(index), y,
                    *sizes[:4], LINES=True, HEIGHT=height, WIDTH=width)
    return y


def _replaced(input, d: int, index, change):
    """input with change(part, sizes) in the part that the index reaches."""
    y = contiguous_copy(input)
    if index.size:
        part, sizes = _part_of(y, d, index)
        if part.is_contiguous and part.shape == y.shape:
            return change(y, sizes)
        copy_into(part, change(contiguous_copy(part), sizes))
    return y


def scatter(input, dim, index, src):
    contract.scatter.check(input, dim, index, src)

    def change(y, sizes):
        _write(y, contiguous(src) if hasattr(src, "shape") else src, contiguous(index), sizes)
        return y
    return _replaced(input, wrap("scatter", dim, input.ndim), index, change)


def _write(y, v, index, sizes: Sizes) -> None:
    """Writes v, contiguous or a number, into the rows of y."""
    one = not hasattr(v, "shape")
    v = filled(y, (1,), v) if one else v
    height, width = sizes.tile()
    cuda.launch(scatter_kernel, sizes.grid(sizes.outer * sizes.length), v, index, y, *sizes[:4], LINES=sizes.lines,
                ONE=int(one), HEIGHT=height, WIDTH=width)


@cuda.remembered
def scatter_add(input, dim, index, src):
    return scatter_reduce(input, dim, index, src, "sum", True)


@cuda.remembered
def scatter_reduce(input, dim, index, src, reduce, include_self=True):
    contract.scatter_reduce.check(input, dim, index, src, reduce, include_self)

    def change(y, sizes):
        return _combined(y, contiguous(src), contiguous(index), sizes, reduce, include_self)
    return _replaced(input, wrap("scatter_reduce", dim, input.ndim), index, change)


# -- x[i, j, ...]

def _fold(pairs, block):
    """The row number of each element of the indices: pairs of an index and the size of its dim."""
    rows = cuda.empty(block, np.int64, pairs[0][0].device)
    for k, (i, size) in enumerate(pairs):
        i = contiguous(expand(i, block))
        cuda.launch(fold_kernel, (triton.cdiv(rows.size, BLOCK),), i, rows, rows.size, size, FIRST=k == 0, BLOCK=BLOCK)
    return rows


def _rows_of(x, dims, indices, layout) -> tuple:
    """Row numbers, and the Sizes of x."""
    if len(dims) == 1:
        rows = contiguous(indices[0])
    else:
        rows = _fold([(i, x.shape[d]) for d, i in zip(dims, indices, strict=True)], layout.block)
    return rows, Sizes(layout.outer, layout.rows, prod(layout.block), layout.inner, False)


@cuda.remembered
def index(x, dims, *indices):
    layout = contract.layout_of("index", x.shape, dims, indices)
    y = cuda.empty(layout.shape, x.dtype, x.device)
    if y.size:
        rows, sizes = _rows_of(x, dims, indices, layout)
        x = contiguous(permute(x, layout.order) if layout.order else x)
        height, width = sizes.tile()
        cuda.launch(gather_kernel, sizes.grid(sizes.outer * sizes.length), x, rows, y, *sizes[:4], LINES=False,
                    HEIGHT=height, WIDTH=width)
    return y


def index_put(x, v, dims, accumulate, *indices):
    contract.index_put.check(x, v, dims, accumulate, *indices)
    layout = contract.layout_of("index_put", x.shape, dims, indices)
    y = contiguous_copy(permute(x, layout.order) if layout.order else x)
    if prod(layout.shape) and y.size:
        rows, sizes = _rows_of(x, dims, indices, layout)
        if accumulate or hasattr(v, "shape"):
            v = copy_into(cuda.empty(layout.shape, x.dtype, x.device), v)
        if accumulate:
            y = _combined(y, v, rows, sizes, "amax" if x.dtype == bool_ else "sum")
        else:
            _write(y, v, rows, sizes)
    return contiguous(permute(y, tuple(np.argsort(layout.order).tolist()))) if layout.order else y


@cuda.remembered
def index_backward(v, shape, dims, *indices):
    return index_put(filled(v, shape, 0), v, dims, True, *indices)


@cuda.remembered
def embedding(input, weight, padding_idx=None, scale_grad_by_freq=False):
    contract.embedding.check(input, weight)
    return index(weight, (0,), input)


# -- where an array is not zero

@triton.jit(do_not_specialize=["n"])
def count_kernel(x_ptr, count_ptr, n, BLOCK: tl.constexpr):
    """x: (n,); count: (ceil(n / BLOCK),), how many of each block are not zero. Grid: (ceil(n / BLOCK),)."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    found = tl.load(x_ptr + i, mask=i < n, other=0) != 0
    tl.store(count_ptr + tl.program_id(0), tl.sum(found.to(tl.int64)))


@triton.jit(do_not_specialize=["n"])
def offsets_kernel(count_ptr, offset_ptr, n, BLOCK: tl.constexpr):
    """count: (n,); offset: (n + 1,), the sums of all counts before. Grid: (1,)."""
    before = tl.zeros([1], tl.int64)
    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        count = tl.load(count_ptr + i, mask=i < n, other=0)
        tl.store(offset_ptr + i, before + tl.cumsum(count, 0) - count, mask=i < n)
        before += tl.sum(count)
    tl.store(offset_ptr + n + tl.arange(0, 1), before)


@triton.jit(do_not_specialize=["n"])
def compact_kernel(x_ptr, offset_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """x: (n,); offset: (ceil(n / BLOCK) + 1,); y: the places in x that are not zero. Grid: (ceil(n / BLOCK),)."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    found = tl.load(x_ptr + i, mask=i < n, other=0) != 0
    place = tl.load(offset_ptr + tl.program_id(0)) + tl.cumsum(found.to(tl.int64), 0) - 1
    tl.store(y_ptr + place, i, mask=found)


@triton.jit(do_not_specialize=["n", "size", "stride", "dims"])
def unravel_kernel(flat_ptr, y_ptr, n, size, stride, dims, BLOCK: tl.constexpr):
    """flat: (n,); y: a column of (n, dims), the index in the dim of this size and stride. Grid: (ceil(n / BLOCK),)."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i * dims, tl.load(flat_ptr + i, mask=i < n, other=0) // stride % size, mask=i < n)


def flat_nonzero(x):
    """Reads the count back from the GPU."""
    x, blocks = contiguous(x), triton.cdiv(x.size, BLOCK)
    count, offset = cuda.empty((blocks,), np.int64, x.device), cuda.empty((blocks + 1,), np.int64, x.device)
    cuda.launch(count_kernel, (blocks,), x, count, x.size, BLOCK=BLOCK)
    cuda.launch(offsets_kernel, (1,), count, offset, blocks, BLOCK=BLOCK)
    y = cuda.empty((offset.view((), (), blocks).item(),), np.int64, x.device)
    cuda.launch(compact_kernel, (blocks,), x, offset, y, x.size, BLOCK=BLOCK)
    return y


def nonzero(x):
    """Reads the count back from the GPU."""
    flat = flat_nonzero(x)
    y = cuda.empty((flat.size, x.ndim), np.int64, x.device)
    for d, (size, stride) in enumerate(zip(x.shape, cuda.contiguous_strides(x.shape), strict=True)):
        cuda.launch(unravel_kernel, (triton.cdiv(flat.size, BLOCK),), flat, y.view((flat.size,), (x.ndim,), d),
                    flat.size, size, stride, x.ndim, BLOCK=BLOCK)
    return y
