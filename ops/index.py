"""Indexing with arrays: gather and scatter along one dim, x[i, j] by integer arrays, and where a mask is true.

An index below 0 counts from the end where it does in torch (`index`, `index_put`). On the CPU an index out of range
raises; on the GPU, where a kernel cannot raise, it is clamped into the range when reading and skipped when writing.
Sums into one place run in the order of the index on the CPU and by sorted segments on the GPU: both deterministic.
"""
from math import prod
from typing import NamedTuple

import numpy as np

from zoo.ops.compiled import SHORTEST, compiled
from zoo.ops.dims import wrap
from zoo.ops.dtypes import HALVES, INTS, bool_, float32
from zoo.ops.errors import ArgumentError, DimError, DtypeError, RangeError, ShapeError
from zoo.ops.op import OPS, Spec, structured
from zoo.ops.shape import filled, reshape

EVERY = slice(None)


def strides_of(shape) -> list[int]:
    """Row-major strides in elements."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return strides[::-1]


def need_index(op: str, *indices) -> None:
    for i in indices:
        if i.dtype not in INTS:
            raise DtypeError(f"{op}: wants an integer index, got {i.dtype}")


# -- along one dim: gather and scatter

def check_lines(op: str, x, dim: int, index, src=None) -> int:
    """What gather and scatter ask of x and index; the dim from the front."""
    d = wrap(op, dim, len(x.shape))
    need_index(op, index)
    if prod(index.shape) == 0:
        return d
    full, ours = x.shape or (1,), index.shape or (1,)
    if len(full) != len(ours):
        raise ShapeError(f"{op}: index wants as many dims as x, got {index.shape} for x of shape {x.shape}")
    if any(i > n for k, (i, n) in enumerate(zip(ours, full, strict=True)) if k != d):
        raise ShapeError(f"{op}: index wants at most x's sizes except in dim {dim}, "
                         f"got {index.shape} for x of shape {x.shape}")
    if src is not None and hasattr(src, "shape"):
        if src.shape != index.shape:
            raise ShapeError(f"{op}: src wants the shape of index {index.shape}, got {src.shape}")
        if src.dtype != x.dtype:
            raise DtypeError(f"{op}: wants src of the dtype of x, got {src.dtype} and {x.dtype}")
    return d


def places(op: str, shape, dim: int, index) -> np.ndarray:
    """Where x[..., index, ...] lies in x's elements, row by row. Raises if an index is out of range."""
    shape = shape or (1,)
    index = index.reshape(1) if not index.ndim else index
    check_range(op, index, shape[dim], dim, lowest=0)
    if index.size == 0:
        return np.zeros(index.shape, np.int64)
    strides = strides_of(shape)
    found = index.astype(np.int64) * strides[dim]
    for d, n in enumerate(index.shape):
        if d != dim and n > 1:
            found += (np.arange(n) * strides[d]).reshape((-1,) + (1,) * (index.ndim - 1 - d))
    return found


def check_range(op: str, index, size: int, dim: int, lowest: int) -> None:
    if index.size and (index.min() < lowest or index.max() >= size):
        wrong = index[(index < lowest) | (index >= size)].reshape(-1)[0]
        raise RangeError(f"{op}: index {wrong} is out of range for dim {dim} of size {size}")


@structured
class gather:
    """y[i][j][k] = input[i][index[i][j][k]][k] for dim 1: one element along `dim` for each element of index."""
    dtypes = "floats ints bool"
    def check(input, dim, index):
        check_lines("gather", input, dim, index)
        return Spec(index.shape, input.dtype)

    def forward(input, dim, index):
        d = check_lines("gather", input, dim, index)
        return np.asarray(np.take(input.reshape(-1), places("gather", input.shape, d, index))).reshape(index.shape)
    def dinput(dy, dim, index, input_shape): return scatter_add(filled(dy, input_shape, 0), dim, index, dy)

    def samples(rng):
        return {"ordinary": [(rng.normal(size=(3, 4)), 1, rng.integers(0, 4, (3, 2))),
                             (rng.normal(size=(5, 3, 2)), 0, rng.integers(0, 5, (7, 2, 2)))],
                "empty": [(rng.normal(size=(3, 4)), 1, np.zeros((0, 2), np.int64))],
                "0-d": [(rng.normal(size=()), 0, np.zeros((), np.int64))],
                "odd": [(rng.normal(size=(7, 13)), -1, rng.integers(0, 13, (7, 31)))],
                "extreme": "values are not computed with"}


@structured
class scatter:
    """input with src written to input[i][index[i][j][k]][k] (dim 1); src is a number or of index's shape.

    Where two go to one place the last one stays on the CPU, any of them on the GPU.
    """
    dtypes = "floats ints bool"
    def check(input, dim, index, src):
        check_lines("scatter", input, dim, index, src)
        return Spec(input.shape, input.dtype)

    def forward(input, dim, index, src):
        d = check_lines("scatter", input, dim, index, src)
        y = np.array(input, order="C")
        where = places("scatter", input.shape, d, index)
        y.reshape(-1)[where] = src.reshape(where.shape) if hasattr(src, "shape") else src
        return y
    def dinput(dy, dim, index): return scatter(dy, dim, index, 0)
    def dsrc(dy, dim, index): return gather(dy, dim, index)

    def samples(rng):
        def row(shape, dim, part):
            index = np.argsort(rng.uniform(size=shape), dim)[tuple(slice(n) for n in part)]
            return rng.normal(size=shape), dim, index, rng.normal(size=part)
        return {"ordinary": [row((3, 4), 1, (3, 2)), row((5, 3, 2), 0, (4, 2, 2)), (*row((3, 4), 0, (2, 4))[:3], 1.5)],
                "empty": [(rng.normal(size=(3, 4)), 1, np.zeros((0, 2), np.int64), rng.normal(size=(0, 2)))],
                "0-d": [(rng.normal(size=()), 0, np.zeros((), np.int64), rng.normal(size=()))],
                "odd": [row((7, 13), -1, (7, 11))], "extreme": "values are not computed with"}


def lines(rng, *rest) -> dict:
    """Samples of what combines src into input at indices that repeat."""
    def row(shape, dim, part):
        return rng.normal(size=shape) + 3, dim, rng.integers(0, shape[dim], part), rng.normal(size=part) + 3, *rest
    values = np.array([np.inf, -np.inf, np.nan, 1e30, -np.inf, 0.0])
    return {"ordinary": [row((3, 4), 1, (3, 7)), row((5, 3, 2), 0, (4, 2, 2))],
            "empty": [(rng.normal(size=(3, 4)), 1, np.zeros((0, 2), np.int64), rng.normal(size=(0, 2)), *rest)],
            "0-d": [(rng.normal(size=()), 0, np.zeros((), np.int64), rng.normal(size=()), *rest)],
            "odd": [row((7, 13), -1, (7, 11)), row((61,), 0, (300,))],
            "extreme": [(np.zeros(6), 0, np.array([0, 0, 1, 2, 3, 4]), values, *rest)]}


def combine(ufunc: np.ufunc, y: np.ndarray, where: np.ndarray, values) -> np.ndarray:
    """y, flat, with `values` combined into the places `where`, one after the other; halves in float32."""
    wide = y.astype(float32) if y.dtype in HALVES else y
    values = values.astype(wide.dtype, copy=False).reshape(-1) if hasattr(values, "shape") else values
    ufunc.at(wide, where.reshape(-1), values)
    return wide.astype(y.dtype, copy=False)


@structured
class scatter_add:
    """input with src added to input[i][index[i][j][k]][k] (dim 1); deterministic."""
    dtypes = "floats ints"
    def check(input, dim, index, src):
        check_lines("scatter_add", input, dim, index, src)
        return Spec(input.shape, input.dtype)

    def forward(input, dim, index, src):
        d = check_lines("scatter_add", input, dim, index, src)
        where = places("scatter_add", input.shape, d, index)
        return combine(np.add, np.array(input, order="C").reshape(-1), where, src).reshape(input.shape)
    def dinput(dy): return dy
    def dsrc(dy, dim, index): return gather(dy, dim, index)
    samples = lines


UFUNCS = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def identity_of(reduce: str, dtype: np.dtype):
    """What `reduce` starts from where input itself does not take part."""
    if reduce in ("amax", "amin"):
        if dtype == bool_:
            return reduce == "amin"
        if dtype in INTS:
            return np.iinfo(dtype).min if reduce == "amax" else np.iinfo(dtype).max
        return -np.inf if reduce == "amax" else np.inf
    return 1 if reduce == "prod" else 0


@structured
class scatter_reduce:
    """input combined with src at input[i][index[i][j][k]][k] (dim 1): reduce = sum, prod, mean, amax or amin.

    With include_self False the elements of input that are reached do not take part themselves.
    """
    dtypes = "floats ints"
    def check(input, dim, index, src, reduce, include_self=True):
        check_lines("scatter_reduce", input, dim, index, src)
        if reduce not in UFUNCS:
            raise ArgumentError(f"scatter_reduce: wants reduce sum, prod, mean, amax or amin, got {reduce!r}")
        return Spec(input.shape, input.dtype)

    def forward(input, dim, index, src, reduce, include_self=True):
        scatter_reduce.check(input, dim, index, src, reduce, include_self)
        where = places("scatter_reduce", input.shape, wrap("scatter_reduce", dim, input.ndim), index)
        y = np.array(input, order="C", dtype=float32 if input.dtype in HALVES else None).reshape(-1)
        if not include_self:
            y[where] = identity_of(reduce, y.dtype)
        y = combine(UFUNCS[reduce], y, where, src)
        if reduce == "mean":
            count = combine(np.add, np.full(y.shape, int(include_self), np.int64), where, 1)
            y = (np.floor_divide if y.dtype in INTS else np.divide)(y, np.maximum(count, 1).astype(y.dtype))
        return y.astype(input.dtype, copy=False).reshape(input.shape)

    def dinput(dy, y, input, dim, index, src, reduce, include_self):
        if reduce == "mean":
            dy = OPS["div"](dy, mean_count(dy, dim, index, include_self))
        elif reduce == "prod":
            others = OPS["where"](OPS["eq"](input, 0), 1.0, input)
            dy = OPS["div"](OPS["mul"](dy, scatter_reduce(others, dim, index, src, "prod", include_self)), others)
        elif reduce != "sum":
            dy = OPS["mul"](shared(dy, y, input, dim, index, src), as_number(OPS["eq"](input, y), dy))
        return dy if include_self else scatter(dy, dim, index, 0)

    def dsrc(dy, y, input, dim, index, src, reduce, include_self):
        if reduce == "mean":
            dy = OPS["div"](dy, mean_count(dy, dim, index, include_self))
        elif reduce == "prod":
            return prod_dsrc(dy, y, input, dim, index, src, include_self)
        elif reduce != "sum":
            dy = shared(dy, y, input, dim, index, src)
            return OPS["mul"](gather(dy, dim, index), as_number(OPS["eq"](src, gather(y, dim, index)), dy))
        return gather(dy, dim, index)

    def samples(rng):
        both = [lines(rng, reduce, self) for self in (True, False) for reduce in UFUNCS]
        rows = {kind: [row for rows in both for row in rows[kind]] for kind in both[0]}
        return {"ordinary": rows["ordinary"][:10:2] + rows["ordinary"][11::2], "empty": rows["empty"][:1],
                "0-d": rows["0-d"][::3], "odd": rows["odd"][:13:12], "extreme": rows["extreme"][::3]}


def as_number(mask, like):
    return OPS["cast"](mask, like.dtype)


def mean_count(dy, dim, index, include_self):
    """How many numbers each element of the mean came from, at least 1."""
    count = scatter_add(filled(dy, dy.shape, int(include_self)), dim, index, filled(dy, index.shape, 1))
    return OPS["where"](OPS["eq"](count, 0), 1.0, count)


def shared(dy, y, input, dim, index, src):
    """dy divided by the number of elements that are equal to the extremum."""
    won = as_number(OPS["eq"](src, gather(y, dim, index)), dy)
    return OPS["div"](dy, scatter_add(as_number(OPS["eq"](input, y), dy), dim, index, won))


def prod_dsrc(dy, y, input, dim, index, src, include_self):
    """The product of all others: y / src, and where src is the only zero, the product without it."""
    zero = OPS["eq"](src, 0)
    zeros = gather(scatter_add(filled(dy, dy.shape, 0), dim, index, as_number(zero, dy)), dim, index)
    alone = OPS["logical_and"](zero, OPS["eq"](zeros, 1))
    without = scatter_reduce(input, dim, index, OPS["where"](alone, 1.0, src), "prod", include_self)
    rest = OPS["div"](gather(OPS["mul"](dy, y), dim, index), OPS["where"](zero, 1.0, src))
    return OPS["where"](alone, gather(OPS["mul"](dy, without), dim, index), rest)


# -- x[i, j, ...] by integer arrays

class Layout(NamedTuple):
    """x seen as (outer, rows, inner): the indexed dims are the rows; they are moved to the front if they lie apart."""
    order: tuple | None          # the permutation that moves them, or None
    outer: int
    rows: int
    inner: int
    shape: tuple                 # of the result: the indices' shape stands where the indexed dims stood, or in front
    block: tuple                 # the shape the indices broadcast to


def layout_of(op: str, shape, dims, indices) -> Layout:
    need_index(op, *indices)
    try:
        block = np.broadcast_shapes(*(i.shape for i in indices))
    except ValueError:
        raise DimError(f"{op}: indices do not broadcast: {', '.join(str(i.shape) for i in indices)}") from None
    ascending = list(dims) == sorted(set(dims)) and 0 <= dims[0] <= dims[-1] < len(shape) if dims else False
    if not ascending or len(dims) != len(indices):
        raise DimError(f"{op}: wants an index for each of some ascending dims of shape {tuple(shape)}, got dims {dims}")
    rest = [d for d in range(len(shape)) if d not in dims]
    together = dims[-1] - dims[0] == len(dims) - 1
    lead = dims[0] if together else 0
    kept = [shape[d] for d in rest]
    sizes = prod(kept[:lead]), prod(shape[d] for d in dims), prod(kept[lead:])
    return Layout(None if together else (*dims, *rest), *sizes, (*kept[:lead], *block, *kept[lead:]), block)


def key_of(dims, indices) -> tuple:
    """What NumPy calls x[i, j] at these dims."""
    key: list = [EVERY] * (dims[-1] + 1)
    for d, i in zip(dims, indices, strict=True):
        key[d] = i
    return tuple(key)


def row_numbers(op: str, shape, dims, indices, block) -> np.ndarray:
    """The row of each element of the indices, of shape `block`. Raises DimError if one is out of range."""
    rows = np.zeros(block, np.int64)
    for d, i in zip(dims, indices, strict=True):
        n = shape[d]
        check_range(op, i, n, d, -n)
        rows *= n
        rows += np.where(i < 0, i.astype(np.int64) + n, i)
    return rows


def check_ranges(op: str, x, dims, indices) -> None:
    for d, i in zip(dims, indices, strict=True):
        check_range(op, i, x.shape[d], d, -x.shape[d])


@structured
class index:
    """x[..., i, ..., j, ...]: integer arrays at `dims`, broadcast against each other.

    Their shape takes the place of the indexed dims if those are neighbours, else it comes first.
    """
    dtypes = "floats ints bool"
    def check(x, dims, *indices): return Spec(layout_of("index", x.shape, dims, indices).shape, x.dtype)

    def forward(x, dims, *indices):
        try:
            if len(dims) == 1:
                return np.asarray(np.take(x, indices[0], dims[0]))
            return np.asarray(x[key_of(dims, indices)])
        except (IndexError, TypeError, ValueError):
            index.check(x, dims, *indices)
            check_ranges("index", x, dims, indices)
            raise
    def dx(dy, dims, indices, x_shape): return index_backward(dy, x_shape, dims, *indices)

    def samples(rng):
        return {"ordinary": [(rng.normal(size=(5, 4)), (0,), rng.integers(-5, 5, (3,))),
                             (rng.normal(size=(5, 4, 3)), (0, 2), rng.integers(0, 5, (2, 1)),
                              rng.integers(-3, 3, (2,))),
                             (rng.normal(size=(2, 5, 4, 3)), (1, 2), rng.integers(0, 5, (4,)), rng.integers(0, 4, ()))],
                "empty": [(rng.normal(size=(5, 4)), (0,), np.zeros((0,), np.int64))], "0-d": "wants a dim",
                "odd": [(rng.normal(size=(7, 31, 13)), (1,), rng.integers(0, 31, (11,)))],
                "extreme": "values are not computed with"}


WIDE = 384          # elements: from here on a sum for each row takes less time than ufunc.at with its 1.4 ns an element


def added(y: np.ndarray, v, dims, indices) -> np.ndarray:
    """y, contiguous and ours to write to, with v added at y[..., i, ..., j, ...]."""
    order, outer, rows, inner, shape, block = layout_of("index_put", y.shape, dims, indices)
    first = row_numbers("index_put", y.shape, dims, indices, block).reshape(-1) * inner
    if outer != 1:                       # 0 as well: then there is nowhere to add
        first = (np.arange(outer)[:, None] * (rows * inner) + first).reshape(-1)
    total = np.ascontiguousarray(y.transpose(order)) if order else y
    v = np.broadcast_to(v, shape)
    lines, v = total.reshape(-1, max(inner, 1)), np.ascontiguousarray(v)
    if inner >= SHORTEST and (fast := compiled("rows", lines, v)):
        fast.add_rows(lines, first // inner, v.reshape(-1, inner))
    elif inner >= WIDE and y.dtype not in HALVES:
        for place, row in zip((first // inner).tolist(), v.reshape(-1, inner), strict=True):
            line = lines[place]
            line += row
    else:
        where = first if inner == 1 else first[:, None] + np.arange(inner)
        total = combine(np.add, total.reshape(-1), where, v).reshape(total.shape)
    return np.ascontiguousarray(total.transpose(np.argsort(order))) if order else total


@structured
class index_put:
    """x with v, broadcast, written to (accumulate: added at) x[..., i, ..., j, ...]; adding is deterministic.

    Where two are written to one place the last one stays on the CPU, any of them on the GPU.
    """
    dtypes = "floats ints bool"

    def check(x, v, dims, accumulate, *indices):
        layout = layout_of("index_put", x.shape, dims, indices)
        try:
            fits = np.broadcast_shapes(layout.shape, getattr(v, "shape", ())) == layout.shape
        except ValueError:
            fits = False
        if not fits:
            raise ShapeError(f"index_put: wants values that broadcast to {layout.shape}, got shape {v.shape}")
        return Spec(x.shape, x.dtype)

    def forward(x, v, dims, accumulate, *indices):
        index_put.check(x, v, dims, accumulate, *indices)
        y = np.array(x, order="C")
        if not accumulate or x.dtype == bool_:
            check_ranges("index_put", x, dims, indices)
            if accumulate:
                np.logical_or.at(y, key_of(dims, indices), v)
            else:
                y[key_of(dims, indices)] = v
            return y
        return added(y, v, dims, indices)

    def dx(dy, dims, accumulate, indices): return dy if accumulate else index_put(dy, 0, dims, False, *indices)
    def dv(dy, dims, indices): return index(dy, dims, *indices)

    def samples(rng):
        draw = lambda *shape: rng.normal(size=shape)  # noqa: E731
        return {"ordinary": [(draw(5, 4), draw(3, 4), (0,), False, np.array([4, 0, -3])),
                             (draw(5, 4), draw(4), (0,), True, np.array([4, 0, -1])),
                             (draw(5, 4, 3), draw(2, 2, 4), (0, 2), True, rng.integers(0, 5, (2, 1)),
                              rng.integers(-3, 3, (2,))),
                             (draw(2, 5, 4, 3), draw(2, 4, 1), (1, 2), True, rng.integers(0, 5, (4,)),
                              rng.integers(0, 4, ()))],
                "empty": [(draw(5, 4), draw(0, 4), (0,), True, np.zeros((0,), np.int64)),
                          (draw(5, 4), draw(0, 4), (0,), False, np.zeros((0,), np.int64))],
                "0-d": [(draw(3), draw(), (0,), True, np.array(2))],
                "odd": [(draw(7, 31, 13), draw(7, 11, 13), (1,), True, rng.integers(0, 31, (11,))),
                        (draw(31, 3), draw(211, 3), (0,), True, rng.integers(0, 31, (211,)))],
                "extreme": [(np.zeros(4), np.array([np.inf, np.nan, -np.inf, 1e30]), (0,), True,
                             np.array([0, 1, 2, 2]))]}


@structured
class index_backward:
    """Zeros of `shape` with v, of the shape of `index`'s result, added at the indices; deterministic."""
    def check(v, shape, dims, *indices):
        layout_of("index_backward", shape, dims, indices)
        return Spec(tuple(shape), v.dtype)

    def forward(v, shape, dims, *indices): return added(np.zeros(shape, v.dtype), v, dims, indices)
    def dv(dy, dims, indices): return index(dy, dims, *indices)

    def samples(rng):
        return {"ordinary": [(rng.normal(size=(3, 4)), (5, 4), (0,), rng.integers(-5, 5, (3,))),
                             (rng.normal(size=(2, 2, 4)), (5, 4, 3), (0, 2), rng.integers(0, 5, (2, 1)),
                              rng.integers(-3, 3, (2,)))],
                "empty": [(rng.normal(size=(0, 4)), (5, 4), (0,), np.zeros((0,), np.int64)),
                          (rng.normal(size=(0, 2, 3)), (0, 5, 3), (1,), np.array([1, 4])),
                          (rng.normal(size=(3, 2, 0)), (3, 5, 0), (1,), np.array([1, 4]))],
                "0-d": [(rng.normal(size=()), (3,), (0,), np.array(2))],
                "odd": [(rng.normal(size=(7, 11, 13)), (7, 31, 13), (1,), rng.integers(0, 31, (11,)))],
                "extreme": "the same sums as in index_put"}


@structured
class embedding:
    """The rows of weight that the integers `input` name: y[..., :] = weight[input[...]].

    The row padding_idx gets no gradient; scale_grad_by_freq divides a row's gradient by how often it occurs.
    """
    def check(input, weight, padding_idx=None, scale_grad_by_freq=False):
        need_index("embedding", input)
        if len(weight.shape) != 2:
            raise ShapeError(f"embedding: weight wants 2 dims, got shape {weight.shape}")
        return Spec((*input.shape, weight.shape[1]), weight.dtype)

    def forward(input, weight, padding_idx=None, scale_grad_by_freq=False):
        embedding.check(input, weight)
        check_range("embedding", input, len(weight), 0, 0)
        return np.take(weight, input, 0)

    def dweight(dy, input, weight_shape, padding_idx, scale_grad_by_freq):
        if padding_idx is not None:
            real = OPS["ne"](input, padding_idx % weight_shape[0])
            dy = OPS["where"](reshape(real, (*input.shape, 1)), dy, 0.0)
        if scale_grad_by_freq:
            count = index_put(filled(dy, weight_shape[:1], 0), 1, (0,), True, input)
            dy = OPS["div"](dy, reshape(index(count, (0,), input), (*input.shape, 1)))
        return index_backward(dy, weight_shape, (0,), input)

    def samples(rng):
        # a row without gradient and one divided by its count are not what finite differences see: tests/test_index.py
        return {"ordinary": [(rng.integers(0, 5, (3, 2)), rng.normal(size=(5, 4)), None, False),
                             (rng.integers(0, 4, (7,)), rng.normal(size=(5, 4)), 4, False)],
                "empty": [(np.zeros((0, 2), np.int64), rng.normal(size=(5, 4)), None, False)],
                "0-d": [(np.array(3), rng.normal(size=(5, 4)), -1, True)],
                "odd": [(rng.integers(0, 31, (7, 11)), rng.normal(size=(31, 13)), None, False)],
                "extreme": "values are not computed with"}


# -- where an array is not zero

@structured
class flat_nonzero:
    """Where x, taken row by row, is not zero: int64, ascending."""
    dtypes = "floats ints bool"
    def forward(x): return np.flatnonzero(x)
    def samples(rng): return masks(rng)


@structured
class nonzero:
    """The indices of all elements that are not zero, one row each: int64 of shape (count, dims)."""
    dtypes = "floats ints bool"
    def forward(x): return np.ascontiguousarray(np.argwhere(x))
    def samples(rng): return masks(rng)


def masks(rng) -> dict:
    def draw(*shape): return rng.normal(size=shape) * (rng.uniform(size=shape) > 0.5)
    return {"ordinary": [(draw(3, 4),), (np.zeros((2, 3)),)], "empty": [(draw(0, 4),)],
            "0-d": [(np.array(2.0),), (np.array(0.0),)],
            "odd": [(draw(7, 13),), (draw(1031),)], "extreme": [(np.array([np.nan, 0.0, -0.0, np.inf, 1e-300]),)]}
