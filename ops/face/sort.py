"""torch's functions about order: sort, topk, order statistics and distinct values."""
from collections import namedtuple

import numpy as np

from zoo.ops import reduce, scan
from zoo.ops import sort as ops
from zoo.ops.device import constant
from zoo.ops.dims import wrap
from zoo.ops.dtypes import INEXACT, int32, int64, result_type
from zoo.ops.errors import ArgumentError, DimError, DtypeError
from zoo.ops.face.reduce import given
from zoo.ops.op import OPS
from zoo.ops.shape import cast, reshape

FUNCTIONS = ("sort", "argsort", "msort", "topk", "kthvalue", "median", "nanmedian", "mode", "searchsorted", "bucketize",
             "quantile", "nanquantile")
METHODS = tuple(n for n in FUNCTIONS if n not in ("searchsorted", "bucketize"))
NN_FUNCTIONS = ()
INPLACE = ()

sort_result = namedtuple("sort", ("values", "indices"))
topk_result = namedtuple("topk", ("values", "indices"))
kthvalue_result = namedtuple("kthvalue", ("values", "indices"))
median_result = namedtuple("median", ("values", "indices"))
nanmedian_result = namedtuple("nanmedian", ("values", "indices"))
mode_result = namedtuple("mode", ("values", "indices"))


def sort(input, dim=-1, descending=False, stable=False, *, out=None):
    """(values, indices) of the elements in order along `dim`. Always stable; nan is larger than everything.

    Raises:
        DimError: dim is out of range.

    Example:
        >>> import zoo
        >>> zoo.sort(zoo.tensor([3, 1, 2])).values.tolist()
        [1, 2, 3]
    """
    return given(sort_result(*ops.sort(input, dim, bool(descending), True)), out)


def argsort(input, dim=-1, descending=False, stable=False):
    """The indices that put the elements in order along `dim`.

    Example:
        >>> import zoo
        >>> zoo.argsort(zoo.tensor([3, 1, 2])).tolist()
        [1, 2, 0]
    """
    return ops.sort(input, dim, bool(descending), True)[1]


def msort(input, *, out=None):
    """The elements in order along the first dim."""
    return given(ops.sort(input, 0, False, True)[0], out)


def topk(input, k, dim=-1, largest=True, sorted=True, *, out=None):
    """The k largest (or smallest) elements along `dim` with their indices, in order.

    Raises:
        ArgumentError: k is larger than the size of dim.

    Example:
        >>> import zoo
        >>> zoo.topk(zoo.tensor([3, 1, 2]), 2).indices.tolist()
        [0, 2]
    """
    return given(topk_result(*ops.topk(input, k, dim, bool(largest), bool(sorted))), out)


def pick(name, input, dim, keepdim, place):
    """(values, indices) of the elements that stand at `place(values in order, d)` along dim."""
    d = wrap(name, dim, len(input.shape))
    if not input.shape:
        return OPS["clone"](input), cast(filled_zero(input), int64)
    if not input.shape[d]:
        raise DimError(f"{name}: wants at least one element along dim {dim}, got shape {tuple(input.shape)}")
    values, indices = ops.sort(input, d, False, True)
    at = place(values, d)
    pair = OPS["gather"](values, d, at), OPS["gather"](indices, d, at)
    shape = tuple(n for i, n in enumerate(input.shape) if i != d)
    return pair if keepdim else tuple(reshape(y, shape) for y in pair)


def filled_zero(input):
    return OPS["filled"](input, (), 0)


def fixed(k, values, d):
    """The index k for every line."""
    shape = tuple(1 if i == d else n for i, n in enumerate(values.shape))
    return constant(np.full(shape, k, int64), values)


def kthvalue(input, k, dim=-1, keepdim=False, *, out=None):
    """The k-th smallest element along `dim` (from 1) and its index.

    Of equal elements, the index is that of the one which a stable sort puts there; torch leaves open which.

    Raises:
        ArgumentError: k is not between 1 and the size of dim.

    Example:
        >>> import zoo
        >>> zoo.kthvalue(zoo.tensor([3, 1, 2]), 2).values.item()
        2
    """
    ops.check_k("kthvalue", input, k, dim, 1)
    return given(kthvalue_result(*pick("kthvalue", input, dim, keepdim, lambda v, d: fixed(k - 1, v, d))), out)


def middle(values, d):
    """The lower middle of each line; the first nan if there is one."""
    n = values.shape[d]
    if values.dtype not in INEXACT:
        return fixed((n - 1) // 2, values, d)
    holes = reduce.sum(OPS["ne"](values, values), d, True)
    return OPS["where"](OPS["eq"](holes, 0), (n - 1) // 2, OPS["sub"](n, holes))


def middle_of_numbers(values, d):
    """The lower middle of what is not nan in each line; the first nan if there is nothing else."""
    if values.dtype not in INEXACT:
        return middle(values, d)
    numbers = reduce.sum(OPS["eq"](values, values), d, True)
    half = OPS["div"](OPS["sub"](numbers, 1), 2.0)
    return cast(OPS["maximum"](half, 0.0), int64)


def median_of(name, input, dim, keepdim, place, result, out):
    if dim is not None:
        return given(result(*pick(name, input, dim, keepdim, place)), out)
    size = int(np.prod(input.shape))
    if not size:
        return given(OPS["filled"](input, (), float("nan")), out)
    x = reshape(input, (size,))
    y = pick(name, x, 0, False, place)[0]
    return given(shared_evenly(x, y) if input.dtype in INEXACT else y, out)


def shared_evenly(x, y):
    """y, an element of x, whose gradient all its equals share: the largest of them alone."""
    y = y.detach() if hasattr(y, "detach") else y
    same = OPS["where"](OPS["ne"](y, y), OPS["ne"](x, x), OPS["eq"](x, y))
    return OPS["amax"](cast(OPS["where"](same, x, -float("inf")), x.dtype), None, False)


def median(input, dim=None, keepdim=False, *, out=None):
    """The (lower) median of all elements, or along `dim` with its index; nan if there is one.

    Equals share the gradient of the median of all elements evenly.

    Example:
        >>> import zoo
        >>> zoo.median(zoo.tensor([3.0, 1.0, 2.0, 9.0])).item()
        2.0
    """
    return median_of("median", input, dim, keepdim, middle, median_result, out)


def nanmedian(input, dim=None, keepdim=False, *, out=None):
    """The (lower) median of what is not nan."""
    return median_of("nanmedian", input, dim, keepdim, middle_of_numbers, nanmedian_result, out)


def mode(input, dim=-1, keepdim=False, *, out=None):
    """The most frequent value along `dim`, the smallest of equally frequent ones, and the index of its last occurrence.

    Example:
        >>> import zoo
        >>> zoo.mode(zoo.tensor([3, 1, 3, 1, 2])).values.item()
        1
    """
    return given(mode_result(*pick("mode", input, dim, keepdim, longest_run)), out)


def longest_run(values, d):
    """The end of the longest run of equals in each line."""
    places = constant(np.arange(values.shape[d]).reshape(-1, *(1,) * (len(values.shape) - 1 - d)), values)
    before = scan.shift(values, d, 1, 0)
    first = OPS["logical_or"](OPS["ne"](values, before), OPS["eq"](places, 0))
    start = scan.cummax(OPS["where"](first, places, 0), d)[0]
    return reduce.argmax(OPS["sub"](places, start), d, True)


def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None, out=None):
    """Where each value would be put into the sorted last dim: before its equals, or with right=True after them.

    sorted_sequence (n,), or (..., n) with input (..., m) -> int64 (int32 with out_int32) of input's shape.

    Example:
        >>> import zoo
        >>> zoo.searchsorted(zoo.tensor([1, 3, 5]), zoo.tensor([3, 4])).tolist()
        [1, 2]
    """
    if side not in (None, "left", "right"):
        raise ArgumentError(f"searchsorted: wants side 'left' or 'right', got {side!r}")
    if side == "left" and right:
        raise ArgumentError("searchsorted: side='left' and right=True contradict each other")
    if sorter is not None:
        sorted_sequence = OPS["gather"](sorted_sequence, len(sorted_sequence.shape) - 1, sorter)
    if not hasattr(input, "shape"):
        input = OPS["filled"](sorted_sequence, (), input)
    dtype = result_type(sorted_sequence, input)
    sorted_sequence, input = cast(sorted_sequence, dtype), cast(input, dtype)  # noqa: A001
    y = ops.searchsorted(sorted_sequence, input, bool(right) or side == "right")
    return given(cast(y, int32) if out_int32 else y, out)


def bucketize(input, boundaries, *, out_int32=False, right=False, out=None):
    """The number of the bucket between sorted boundaries (n,) that each value lies in: 0 ... n.

    Example:
        >>> import zoo
        >>> zoo.bucketize(zoo.tensor([0, 3, 9]), zoo.tensor([1, 3, 5])).tolist()
        [0, 1, 3]
    """
    if len(boundaries.shape) != 1:
        raise ArgumentError(f"bucketize: wants boundaries of shape (n,), got {tuple(boundaries.shape)}")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


def interpolated(values, d, numbers, q, interpolation):
    """Sorted values at the fractional places q * (numbers - 1) along d; numbers: how many count in each line."""
    place = OPS["mul"](q, cast(OPS["sub"](numbers, 1), values.dtype))
    place = OPS["maximum"](place, 0.0)
    low, high = OPS["floor"](place), OPS["ceil"](place)
    if interpolation in ("lower", "higher", "nearest"):
        place = low if interpolation == "lower" else high if interpolation == "higher" else OPS["round"](place)
        return OPS["gather"](values, d, cast(place, int64))
    a, b = OPS["gather"](values, d, cast(low, int64)), OPS["gather"](values, d, cast(high, int64))
    weight = 0.5 if interpolation == "midpoint" else OPS["sub"](place, low)
    return OPS["add"](a, OPS["mul"](OPS["sub"](b, a), weight))


def quantile_of(name, input, q, dim, keepdim, interpolation, out):
    """quantile and nanquantile: q's dim comes first in the result."""
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise ArgumentError(f"{name}: wants linear, lower, higher, midpoint or nearest, got {interpolation!r}")
    if input.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise DtypeError(f"{name}: wants float32 or float64, got {input.dtype}")
    if 0 in input.shape:
        raise ArgumentError(f"{name}: wants at least one element, got shape {tuple(input.shape)}")
    single = not hasattr(q, "shape") or not q.shape
    if not hasattr(q, "shape"):
        if not 0 <= q <= 1:
            raise ArgumentError(f"{name}: wants q from 0 to 1, got {q}")
        q = OPS["filled"](input, (1,), float(q))
    elif q.dtype != input.dtype or len(q.shape) > 1:
        raise DtypeError(f"{name}: wants q as a number or {input.dtype} of shape (n,), "
                         f"got {q.dtype} of shape {tuple(q.shape)}")
    shape, d = tuple(input.shape), None
    if dim is None:
        x = reshape(input, (1, int(np.prod(shape))))
        kept = (1,) * len(shape) if keepdim else ()
    else:
        d = wrap(name, dim, len(shape))
        x = OPS["permute"](input, tuple(i for i in range(len(shape)) if i != d) + (d,)) if shape else input
        kept = tuple(1 if i == d else n for i, n in enumerate(shape) if keepdim or i != d)
        x = reshape(x, (-1 if shape else 1, shape[d] if shape else 1))
    values, _ = ops.sort(x, 1, False, True)
    count = reduce.sum(OPS["eq"](values, values), 1, True)
    if name == "quantile":                                            # one nan makes the line nan: it stands last
        full = values.shape[1]
        q_or_last = OPS["where"](OPS["eq"](count, full), reshape(q, (1, -1)), 1.0)
        count = OPS["filled"](count, count.shape, full)
    else:
        q_or_last = OPS["add"](reshape(q, (1, -1)), OPS["filled"](x, (x.shape[0], 1), 0.0))
    y = interpolated(values, 1, count, q_or_last, interpolation)
    y = OPS["permute"](y, (1, 0))
    return given(reshape(y, kept if single else (*q.shape, *kept)), out)


def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """The q-th quantiles along `dim` (None: of all elements), q a number or a tensor (n,), whose dim then comes first.

    Example:
        >>> import zoo
        >>> zoo.quantile(zoo.tensor([0.0, 1.0, 2.0, 3.0]), 0.5).item()
        1.5
    """
    return quantile_of("quantile", input, q, dim, keepdim, interpolation, out)


def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """The q-th quantiles of what is not nan."""
    return quantile_of("nanquantile", input, q, dim, keepdim, interpolation, out)
