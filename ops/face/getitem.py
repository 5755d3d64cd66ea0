"""All of `x[...]`: a mix of ints, slices, None, Ellipsis, bools, lists and arrays, read and written."""
from typing import Any

import numpy as np

from zoo.ops.device import constant, fetch
from zoo.ops.dtypes import INTS, SIGNED, bool_, uint8
from zoo.ops.errors import DimError
from zoo.ops.index import flat_nonzero
from zoo.ops.index import index as index_op
from zoo.ops.index import index_put as index_put_op
from zoo.ops.op import OPS
from zoo.ops.shape import basic_index, clone, expand, reshape
from zoo.ops.views import write_through

BASIC = frozenset({int, slice, type(None), type(Ellipsis)})


def getitem(x, index):
    """x[index] for any mix of ints, slices, None, Ellipsis, bools, lists, and arrays of integers or bools."""
    kind = type(index)
    if kind is tuple:
        for i in index:
            if type(i) not in BASIC:
                break
        else:
            return basic_index(x, index)
    elif kind in BASIC:
        return basic_index(x, (index,))
    elif hasattr(index, "dtype") and index.dtype in SIGNED and index.shape and x.shape:
        return index_op(x, (0,), beside(getattr(index, "array", index), x))
    y, _, _, dims, arrays = prepared(x, index)
    return index_op(y, dims, *arrays) if arrays else y


def setitem_functional(x, index, value):
    """A new array: x with value, broadcast and cast to x's dtype, at x[index]."""
    return put_at(x, index, value, False)


def put_at(x, index, value, accumulate):
    """x with value written to, or added at, x[index]."""
    y, basic, merged, dims, arrays = prepared(x, index)
    trail = (None, basic_index, (basic,))
    if not arrays:
        value = fitted(value, y.shape)
        if hasattr(value, "shape") and tuple(value.shape) != tuple(y.shape):
            value = expand(value, y.shape)               # raises if it does not broadcast
        return write_through(x, OPS["add"](y, value) if accumulate else value, trail)
    target = index_op.check(y, dims, *arrays).shape
    changed = index_put_op(y, fitted(value, target), dims, accumulate, *arrays)
    if merged != y.shape:
        changed = reshape(changed, merged)
    whole = all(i is Ellipsis or type(i) is slice and i == slice(None) for i in basic)
    return changed if whole else write_through(x, changed, trail)


def fitted(value, shape):
    """value without the leading dims of size 1 that `shape` has not."""
    extra = len(getattr(value, "shape", ())) - len(shape)
    if extra > 0 and value.shape[:extra] == (1,) * extra:
        return reshape(value, value.shape[extra:])
    return value


def prepared(x, index) -> tuple:
    """x[index] as a view, then integer arrays at some dims: (y, basic index, y's shape before merging, dims, arrays).

    A mask over several dims merges them in y and becomes the flat numbers of its true elements.
    """
    items = [normal(i, x) for i in (index if type(index) is tuple else (index,))]
    used = sum(consumed(i) for i in items)
    if used > len(x.shape):
        raise DimError(f"getitem: too many indices: {used} for shape {tuple(x.shape)}")
    basic: list[Any] = []
    found: list[tuple] = []
    place = 0
    for i in items:
        if i is Ellipsis or i is None or type(i) is slice or type(i) is int:
            basic.append(i)
            place += len(x.shape) - used if i is Ellipsis else type(i) is not int
        elif i.dtype == bool_:
            basic += [slice(None)] * i.ndim if i.ndim else [None]
            found.append((place, i))
            place += max(i.ndim, 1)
        else:
            basic.append(slice(None))
            found.append((place, i))
            place += 1
    simple = tuple(basic)
    y = x if all(type(i) is slice and i == slice(None) for i in simple) else basic_index(x, simple)
    return merge_masks(y, simple, found)


def merge_masks(y, basic: tuple, found: list) -> tuple:
    before, dims, arrays, lost = y.shape, [], [], 0
    for place, i in found:
        d = place - lost
        if i.dtype == bool_:
            size = max(i.ndim, 1)
            if i.ndim and tuple(y.shape[d:d + size]) != tuple(i.shape):
                raise DimError(f"getitem: a mask of shape {tuple(i.shape)} at dim {d} does not match "
                               f"the indexed shape {tuple(y.shape)}")
            if size > 1:
                y = reshape(y, (*y.shape[:d], i.size, *y.shape[d + size:]))
                lost += size - 1
            i = flat_nonzero(i)
        dims.append(d)
        arrays.append(i)
    return y, basic, before, tuple(dims), arrays


def consumed(i) -> int:
    """How many dims of x an item takes."""
    if i is None or i is Ellipsis:
        return 0
    return i.ndim if hasattr(i, "dtype") and i.dtype == bool_ else 1


def normal(i, x) -> Any:
    """An item as int, slice, None, Ellipsis, or an array of integers or bools beside x (masks without history)."""
    if type(i) in BASIC:
        return i
    if isinstance(i, (bool, np.bool_)):
        return constant(np.array(bool(i)), like=x)
    if isinstance(i, np.integer):
        return int(i)
    if isinstance(i, (list, tuple, range)):
        i = np.array([plain(v) for v in i]) if len(i) else np.zeros(0, np.int64)
        i = constant(i, like=x)
    if not hasattr(i, "dtype") or not hasattr(i, "shape"):
        kind = TypeError if isinstance(i, str) else DimError
        raise kind("getitem: only integers, slices (`:`), ellipsis (`...`), None and integer or bool arrays "
                   f"are valid indices, got {type(i).__name__}")
    i = getattr(i, "array", i)
    if i.dtype == uint8:
        i = OPS["ne"](i, 0)
    if i.dtype != bool_ and i.dtype not in INTS:
        raise DimError(f"getitem: arrays used as indices must be integers or bools, got {i.dtype}")
    if not i.shape and i.dtype != bool_:
        return int(i)
    return beside(i, x)


def plain(value):
    """Nested lists of numbers and 0-d arrays as numbers."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.generic) or not hasattr(value, "dtype"):
        return value
    return fetch(getattr(value, "array", value)).tolist()


def beside(i, x):
    """An index on x's device: one on the CPU may index an array on the GPU, as in torch.

    A copy where backward will read it again: its owner may write to it in between.
    """
    raw = getattr(x, "array", x)
    if type(i) is np.ndarray and type(raw) is not np.ndarray:
        return constant(i, like=x)
    return clone(i) if getattr(x, "requires_grad", False) and i.dtype != bool_ else i
