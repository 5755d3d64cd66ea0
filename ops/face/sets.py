"""torch's functions of distinct values, counts and differences, made of sort, scan and indexing."""
from math import prod

import numpy as np

from zoo.ops.device import constant
from zoo.ops.dims import wrap
from zoo.ops.dtypes import INTS, bool_, float32, float64, int64
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.face.join import cat
from zoo.ops.face.shape import EVERY, movedim, ravel
from zoo.ops.index import flat_nonzero, index_put
from zoo.ops.index import index as index_op
from zoo.ops.op import OPS, into
from zoo.ops.shape import basic_index, cast, clone, filled, reshape


def detached(x):
    return x.detach() if hasattr(x, "detach") else x


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct values in ascending order (of the flattened input), or the distinct slices along `dim`.

    return_inverse: also where each element is among them; return_counts: also how often each occurs. No gradient.

    >>> import zoo
    >>> zoo.unique(zoo.tensor([2, 1, 2])).tolist()
    [1, 2]
    """
    x, rows, d = rows_of("unique", detached(input), dim)
    order = constant(np.arange(rows.shape[0]), like=rows)
    for column in reversed(range(rows.shape[1])):
        key = index_op(basic_index(rows, (EVERY, column)), (0,), order)
        order = index_op(order, (0,), OPS["sort"](key, 0, False, True)[1])
    return distinct(x, rows, d, order, return_inverse, return_counts)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first of each run of equal values (of the flattened input), or of equal slices along `dim`; see `unique`."""
    x, rows, d = rows_of("unique_consecutive", detached(input), dim)
    return distinct(x, rows, d, None, return_inverse, return_counts)


def rows_of(name, input, dim):
    """The flattened input, or input with `dim` in front; the same as a matrix; and where the dim was."""
    if dim is None:
        flat = ravel(input)
        return (flat, input), reshape(flat, (flat.shape[0], 1)), None
    d = wrap(name, dim, len(input.shape))
    moved = movedim(input, d, 0)
    size = moved.shape[0] if len(moved.shape) else 1
    if size and not prod(moved.shape):
        raise ShapeError(f"{name}: wants slices with elements, got shape {tuple(input.shape)}")
    return (moved, None), reshape(moved, (size, max(prod(moved.shape) // max(size, 1), 1))), d


def distinct(x, rows, d, order, return_inverse, return_counts):
    """The runs of equal rows, taken in `order`."""
    (x, original), n = x, rows.shape[0]
    if order is not None:
        rows = index_op(rows, (0,), order)
    change = OPS["ne"](basic_index(rows, (slice(1, None),)), basic_index(rows, (slice(0, max(n - 1, 0)),)))
    change = OPS["any"](change, 1, False)
    first = cat([OPS["eq"](filled(change, (min(n, 1),), 0), 0), change], 0)
    starts = flat_nonzero(getattr(first, "array", first))
    taken = starts if order is None else index_op(getattr(order, "array", order), (0,), starts)
    values = index_op(x, (0,), taken)
    found = [values if d is None else movedim(values, 0, d)]
    if return_inverse:
        group = OPS["sub"](OPS["cumsum"](cast(first, int64), 0, None), 1)
        inverse = group if order is None else index_put(filled(group, (n,), 0), group, (0,), False, order)
        found.append(inverse if original is None else reshape(inverse, tuple(original.shape)))
    if return_counts:
        ends = cat([basic_index(starts, (slice(1, None),)), filled(starts, (min(n, 1),), n)], 0)
        counts = OPS["sub"](ends, starts)
        found.append(OPS["add"](filled(cast(first, int64), counts.shape, 0), counts))      # as input: raw or Tensor
    return tuple(found) if len(found) > 1 else found[0]


def bincount(input, weights=None, minlength=0):
    """How often each of the integers 0, 1, ... occurs in a 1-d tensor, or the sums of their weights.

    >>> import zoo
    >>> zoo.bincount(zoo.tensor([1, 1, 3])).tolist()
    [0, 2, 0, 1]
    """
    if len(input.shape) != 1 or input.dtype not in INTS or minlength < 0:
        raise ArgumentError("bincount: wants 1-d integers and minlength >= 0, "
                            f"got {input.dtype} of shape {tuple(input.shape)}, {minlength}")
    if weights is not None and tuple(weights.shape) != tuple(input.shape):
        raise ShapeError(f"bincount: wants weights of shape {tuple(input.shape)}, got {tuple(weights.shape)}")
    size = minlength
    if input.shape[0]:
        if int(OPS["amin"](input, None, False)) < 0:
            raise ArgumentError("bincount: wants integers >= 0, got a negative one")
        size = max(size, int(OPS["amax"](input, None, False)) + 1)
    if weights is None:
        return index_put(cast(filled(input, (size,), 0), int64), 1, (0,), True, input)
    weights = weights if weights.dtype == float32 else cast(weights, float64)
    return index_put(filled(weights, (size,), 0), weights, (0,), True, input)


def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Which elements are among test_elements: bool of the shape of elements.

    >>> import zoo
    >>> zoo.isin(zoo.tensor([1, 2]), zoo.tensor([2, 3]))
    tensor([False,  True])
    """
    if not hasattr(elements, "shape"):
        elements = filled(test_elements, (), elements)
    tests = reshape(test_elements, (-1,)) if hasattr(test_elements, "shape") else filled(elements, (1,), test_elements)
    found = OPS["any"](OPS["eq"](reshape(elements, (*elements.shape, 1)), tests), -1, False)
    return OPS["logical_not"](found) if invert else found


def diff(input, n=1, dim=-1, prepend=None, append=None, *, out=None):
    """The n-th differences of neighbours along `dim`, after joining prepend and append to it.

    >>> import zoo
    >>> zoo.diff(zoo.tensor([1, 3, 6]))
    tensor([2, 3])
    """
    if not len(input.shape) or n < 0:
        raise ArgumentError(f"diff: wants at least 1 dim and n >= 0, got shape {tuple(input.shape)} and n {n}")
    d = wrap("diff", dim, len(input.shape))
    y = cat([x for x in (prepend, input, append) if x is not None], d) if n else clone(input)
    for _ in range(min(n, y.shape[d])):
        later = basic_index(y, (EVERY,) * d + (slice(1, None),))
        earlier = basic_index(y, (EVERY,) * d + (slice(0, max(y.shape[d] - 1, 0)),))
        y = OPS["logical_xor"](later, earlier) if y.dtype == bool_ else OPS["sub"](later, earlier)
    return y if out is None else into(y, out)


METHODS = ("bincount", "diff", "unique", "unique_consecutive")
FUNCTIONS = (*METHODS, "isin")
NN_FUNCTIONS = ()
INPLACE = ()
