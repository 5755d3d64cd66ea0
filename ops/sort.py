"""Order: sort and topk along one dimension, and binary search. nan is larger than everything."""
import numpy as np

from zoo.ops.dims import wrap
from zoo.ops.dtypes import int64
from zoo.ops.errors import ArgumentError, DtypeError, ShapeError
from zoo.ops.op import OPS, Spec, structured
from zoo.ops.reduce_cpu import rows, widened
from zoo.ops.shape import filled


def ascending(x: np.ndarray, dim: int) -> np.ndarray:
    """The stable order of the elements along `dim`, nan last."""
    return np.argsort(x, axis=dim, kind="stable")


def descending_order(x: np.ndarray, dim: int) -> np.ndarray:
    """The same with the largest first, equals still in their own order, nan first."""
    return np.flip(x.shape[dim] - 1 - ascending(np.flip(x, dim), dim), dim)


def by_index(dvalues, indices, dim, shape):
    """Zeros of `shape` with the gradients at their indices along `dim`: no index is there twice."""
    return OPS["scatter"](filled(dvalues, shape, 0), dim, indices, dvalues)


def distinct(rng, *shape) -> np.ndarray:
    """Values far enough apart for a gradient check: a permutation of numbers 0.01 apart."""
    n = int(np.prod(shape))
    return ((rng.permutation(n) - n // 2) * 0.01).reshape(shape)


FEW = 16                # so many of many are found one by one
SPECIAL = np.array([[1.0, np.nan, -3.0, 1.0, np.nan], [np.inf, 0.0, -0.0, -np.inf, 0.0]])


@structured
class sort:
    """(values, indices) in ascending order along `dim`; equals keep their order, nan is last (first if descending).

    Raises: DimError for a dim out of range.

    >>> import zoo
    >>> zoo.sort(zoo.tensor([3, 1, 2])).indices.tolist()
    [1, 2, 0]
    """
    dtypes = "floats ints bool"
    outputs = ("values", "indices")

    def check(input, dim=-1, descending=False, stable=True):
        wrap("sort", dim, input.ndim)
        return Spec(input.shape, input.dtype), Spec(input.shape, int64)

    def forward(input, dim=-1, descending=False, stable=True):
        sort.check(input, dim, descending, stable)
        line, d = rows("sort", input, dim if input.ndim else None)
        order = (descending_order if descending else ascending)(widened(line), d)
        values = np.take_along_axis(line, order, d)
        return values.reshape(input.shape), np.ascontiguousarray(order, int64).reshape(input.shape)

    def dinput(dvalues, indices, dim): return by_index(dvalues, indices, dim, dvalues.shape)

    def samples(rng):
        return {"ordinary": [(distinct(rng, 3, 4, 5), 1, False, True), (distinct(rng, 3, 7), -1, True, True)],
                "empty": [(distinct(rng, 0, 3), 1, False, True), (distinct(rng, 3, 0), 1, False, True)],
                "0-d": [(np.array(2.0), 0, False, True)],
                "odd": [(distinct(rng, 7, 13, 3), 0, True, True), (distinct(rng, 131), 0, False, True)],
                "extreme": [(SPECIAL, 1, False, True), (SPECIAL, 1, True, True), (SPECIAL, 0, False, True)]}


def check_k(op: str, x, k: int, dim: int, least: int = 0) -> int:
    """The dim from the front, if k elements lie along it."""
    d = wrap(op, dim, x.ndim)
    n = x.shape[d] if x.ndim else 1
    if isinstance(k, bool) or not hasattr(k, "__index__"):
        raise TypeError(f"{op}: wants an integer k, got {k!r}")
    if not least <= k <= n:
        raise ArgumentError(f"{op}: wants k from {least} to {n}, the size of dim {dim} of shape {x.shape}, got {k}")
    return d


def leaders(x: np.ndarray, k: int, dim: int, largest: bool) -> np.ndarray | None:
    """The order of the first k of many, found one by one: ten times as fast as a partition.

    None if there is a nan to be put last, or a value among them that stands for "taken already".
    """
    rest, found = np.array(x), []
    taken = bounds_of(x.dtype)[0 if largest else 1]
    for _ in range(k):
        at = (np.argmax if largest else np.argmin)(rest, axis=dim, keepdims=True)
        best = np.take_along_axis(rest, at, dim)
        if (best == taken).any() or (best != best).any():
            return None
        found.append(at)
        np.put_along_axis(rest, at, taken, dim)
    return np.concatenate(found, dim)


def bounds_of(dtype: np.dtype) -> tuple:
    """The smallest and the largest value of a dtype."""
    return (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)


@structured
class topk:
    """The k largest (or smallest) values along `dim` and their indices, in order; nan is the largest.

    Raises: ArgumentError (RuntimeError) for k beyond the size of dim, DimError for a dim out of range.

    >>> import zoo
    >>> zoo.topk(zoo.tensor([3, 1, 2]), 2).values.tolist()
    [3, 2]
    """
    dtypes = "floats ints"
    outputs = ("values", "indices")

    def check(input, k, dim=-1, largest=True, sorted=True):
        d = check_k("topk", input, k, dim)
        shape = tuple(k if i == d else n for i, n in enumerate(input.shape))
        return Spec(shape, input.dtype), Spec(shape, int64)

    def forward(input, k, dim=-1, largest=True, sorted=True):
        spec = topk.check(input, k, dim, largest, sorted)[0]
        line, d = rows("topk", input, dim if input.ndim else None)
        x, n = widened(line), line.shape[d]
        order = leaders(x, k, d, largest) if 0 < k <= FEW and k < n // 8 and x.dtype != bool else None
        if order is None:
            order = np.take((descending_order if largest else ascending)(x, d), range(k), axis=d)
        return np.take_along_axis(line, order, d).reshape(spec.shape), order.astype(int64).reshape(spec.shape)

    def dinput(dvalues, indices, dim, input_shape): return by_index(dvalues, indices, dim, input_shape)

    def samples(rng):
        return {"ordinary": [(distinct(rng, 3, 4, 5), 2, 1, True, True), (distinct(rng, 3, 7), 3, -1, False, True)],
                "empty": [(distinct(rng, 0, 3), 2, 1, True, True), (distinct(rng, 3, 4), 0, 1, True, True)],
                "0-d": [(np.array(2.0), 1, 0, True, True)],
                "odd": [(distinct(rng, 7, 13, 3), 5, 0, True, True), (distinct(rng, 131), 7, 0, False, True)],
                "extreme": [(SPECIAL, 3, 1, True, True), (SPECIAL, 4, 1, False, True)]}


@structured
class searchsorted:
    """Where each value would be put into the sorted last dim of `sorted_sequence`: before its equals, or after (right).

    sorted_sequence (n,), or (..., n) with input (..., m) of equal leading dims -> int64 of input's shape.

    Raises: ShapeError if the leading dims differ.
    """
    dtypes = "floats ints"

    def check(sorted_sequence, input, right=False):
        lead = sorted_sequence.shape[:-1]
        if sorted_sequence.ndim == 0 or (lead and (input.ndim != sorted_sequence.ndim or input.shape[:-1] != lead)):
            raise ShapeError("searchsorted: wants boundaries (n,), or (..., n) and values (..., m) with equal leading "
                             f"dims, got {tuple(sorted_sequence.shape)} and {tuple(input.shape)}")
        if sorted_sequence.dtype != input.dtype:
            raise DtypeError(f"searchsorted: wants one dtype, got {sorted_sequence.dtype} and {input.dtype}")
        return Spec(input.shape, int64)

    def forward(sorted_sequence, input, right=False):
        searchsorted.check(sorted_sequence, input, right)
        edges, x, side = widened(sorted_sequence), widened(input), "right" if right else "left"
        if edges.ndim == 1:
            return np.asarray(np.searchsorted(edges, x, side), int64)
        y = np.empty(x.shape, int64)
        for place in np.ndindex(edges.shape[:-1]):
            y[place] = np.searchsorted(edges[place], x[place], side)
        return y

    def samples(rng):
        def edges(*shape): return np.sort(distinct(rng, *shape), -1)
        return {"ordinary": [(edges(9), distinct(rng, 3, 4), False), (edges(3, 5), distinct(rng, 3, 7), True)],
                "empty": [(edges(0), distinct(rng, 3), False), (edges(4), distinct(rng, 0, 3), False)],
                "0-d": [(edges(4), np.array(0.0), True)], "odd": [(edges(131), distinct(rng, 7, 13), False)],
                "extreme": [(np.array([-np.inf, 0.0, 0.0, 1.0, np.inf]), np.array([np.nan, np.inf, -np.inf, -0.0, 2.0]),
                             right) for right in (False, True)]}
