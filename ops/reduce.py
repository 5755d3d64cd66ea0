"""Reductions: sums, extremes, logic, moments and norms over any dimensions.

`dim` is one dimension, a tuple of them, or None (or ()) for all; `keepdim` leaves 1 in their places.
Sums of integers and bools are int64. Extremes pass nan on, and take the first of equal values for the index.
"""
import math

import numpy as np

from zoo.ops import dtypes
from zoo.ops.device import constant
from zoo.ops.dims import count, reduced, wrap, wrap_all
from zoo.ops.dtypes import HALVES, INEXACT, float32, float64, int64
from zoo.ops.errors import ArgumentError, DimError, DtypeError
from zoo.ops.op import OPS, Spec, structured
from zoo.ops.reduce_cpu import SMALL, add_up, add_up_squares, extreme, multiply_up, rows, sum_of_exp, widened
from zoo.ops.shape import cast, expand, reshape

PLAIN = frozenset({float32, float64})


def restored(y, shape, dim, keepdim):
    """A reduction's result (or gradient) with the reduced dimensions back, as 1."""
    if keepdim or dim is None or not shape:
        return y
    dims = wrap_all("restored", dim, len(shape))
    return y if len(dims) == len(shape) else reshape(y, reduced(shape, dims, True))


def spread(dy, shape, dim, keepdim):
    """A reduction's result (or gradient) repeated along the reduced dimensions."""
    return expand(restored(dy, shape, dim, keepdim), shape)


def total_dtype(x, dtype) -> np.dtype:
    """The dtype of a sum or product."""
    if dtype is not None:
        return np.dtype(dtype)
    return x.dtype if x.dtype in INEXACT else int64


def total_spec(op, x, dim, keepdim, dtype) -> Spec:
    return Spec(reduced(x.shape, wrap_all(op, dim, x.ndim), keepdim), total_dtype(x, dtype))


def float_spec(op, x, dim, keepdim, dtype=None) -> Spec:
    spec = total_spec(op, x, dim, keepdim, dtype)
    if spec.dtype not in INEXACT or (dtype is None and x.dtype not in INEXACT):
        got = x.dtype if dtype is None else spec.dtype
        raise DtypeError(f"{op}: wants a floating dtype, got {got}; pass dtype= or cast")
    return spec


def extreme_spec(op, x, dim, keepdim, dtype=None) -> Spec:
    dims = wrap_all(op, dim, x.ndim)
    empty = [d for d in dims if not x.shape[d]]
    if empty:
        error = ArgumentError if dim is None or dim == () else DimError
        raise error(f"{op}: wants at least one element to reduce, got shape {x.shape} and dim {dim}")
    return Spec(reduced(x.shape, dims, keepdim), dtype or x.dtype)


def is_plain(x, dim, dtype) -> bool:
    """Is one call of NumPy all that a sum takes? Small arrays of the usual dtypes along one dimension."""
    return type(dim) is int and dtype is None and x.size < SMALL and x.dtype in PLAIN and -x.ndim <= dim < x.ndim


def draws(rng, *options, low=-2.0, high=2.0, empty=True) -> dict:
    """Samples of a reduction: the options are tuples of arguments after the array, the first one for dim=None."""
    def x(*shape): return np.asarray(rng.uniform(low, high, shape))
    whole, *rest = options
    special = np.array([[1.0, np.nan, -3.0], [np.inf, 2.0, -np.inf], [0.0, -0.0, 0.0], [1e30, -1e30, 3.0]])
    return {"ordinary": [(x(3, 4, 5), *o) for o in (*rest, whole)], "0-d": [(x(), *whole)],
            "empty": [(x(0, 3), *o) for o in (whole, rest[0])] if empty else [(x(0, 3, 2), *rest[0])],
            "odd": [(x(7, 13, 11), *o) for o in (*rest, whole)] + [(x(1031), *whole), (x(1031, 2, 1), *rest[0])],
            "extreme": [(special.reshape(4, 3, 1), *o) for o in (whole, rest[0])]}


@structured
class sum:
    """The sum over `dim`; integers and bools are added as int64.

    Args: input (any shape); dim int, tuple or None; dtype the dtype of the sum.
    Raises: DimError for a dim out of range.

    >>> import zoo
    >>> zoo.sum(zoo.tensor([[1, 2], [3, 4]]), dim=0)
    tensor([4, 6])
    """
    dtypes = "floats ints bool"

    def check(input, dim=None, keepdim=False, dtype=None): return total_spec("sum", input, dim, keepdim, dtype)

    def forward(input, dim=None, keepdim=False, dtype=None):
        if dim is None and dtype is None and (input.dtype is float32 or input.dtype is float64) and not keepdim:
            return np.asarray(np.add.reduce(input, None) if input.size < SMALL else add_up(input))
        if is_plain(input, dim, dtype):
            return np.asarray(np.add.reduce(input, dim, keepdims=keepdim))
        spec = sum.check(input, dim, keepdim, dtype)
        wide = float32 if spec.dtype in HALVES else spec.dtype
        y = add_up(input.astype(wide, copy=False), wrap_all("sum", dim, input.ndim), keepdim)
        return np.asarray(y).astype(spec.dtype, copy=False)

    def dinput(dy, input_shape, dim, keepdim): return spread(dy, input_shape, dim, keepdim)

    def samples(rng):
        return draws(rng, (None,), (1,), ((0, 2), True), ((-1,), False), (0,))


@structured
class mean:
    """The arithmetic mean over `dim`, sum / n; nan over nothing.

    Raises: DtypeError for integers without dtype=, DimError for a dim out of range.

    >>> import zoo
    >>> zoo.mean(zoo.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
    tensor([1.5000, 3.5000])
    """
    def check(input, dim=None, keepdim=False, dtype=None): return float_spec("mean", input, dim, keepdim, dtype)

    def forward(input, dim=None, keepdim=False, dtype=None):
        if dim is None and dtype is None and (input.dtype is float32 or input.dtype is float64) and not keepdim:
            n = input.size
            y = np.add.reduce(input, None) if n < SMALL else add_up(input)
            return np.asarray(y / n if n else np.nan, input.dtype)
        if is_plain(input, dim, dtype) and input.size:
            return np.asarray(np.add.reduce(input, dim, keepdims=keepdim) / input.dtype.type(input.shape[dim]))
        spec = mean.check(input, dim, keepdim, dtype)
        dims = wrap_all("mean", dim, input.ndim)
        wide = float32 if spec.dtype in HALVES else spec.dtype
        y = add_up(input.astype(wide, copy=False), dims, keepdim)
        return np.asarray(y / np.asarray(count(input.shape, dims), wide)).astype(spec.dtype, copy=False)

    def dinput(dy, input_shape, dim, keepdim):
        n = count(input_shape, wrap_all("mean", dim, len(input_shape)))
        return spread(OPS["div"](dy, float(n)), input_shape, dim, keepdim)

    def samples(rng):
        return draws(rng, (None,), (1,), ((0, 2), True), (0,))


def can_divide(y: np.ndarray) -> bool:
    """Is a product of floats the others' times one for each factor, to the last digits? Not if it is 0, tiny or inf."""
    size = np.abs(y)
    return y.dtype in (float32, float64) and bool(np.all((size >= np.finfo(y.dtype).tiny) & (size < np.inf)))


@structured
class prod:
    """The product over one dim, or all; integers and bools are multiplied as int64, and the product of nothing is 1.

    >>> import zoo
    >>> zoo.prod(zoo.tensor([[1, 2], [3, 4]]), 1)
    tensor([ 2, 12])
    """
    dtypes = "floats ints bool"

    def check(input, dim=None, keepdim=False, dtype=None):
        if dim is not None:
            wrap("prod", dim, input.ndim)
        return total_spec("prod", input, dim, keepdim, dtype)

    def forward(input, dim=None, keepdim=False, dtype=None):
        spec = prod.check(input, dim, keepdim, dtype)
        wide = float32 if spec.dtype in HALVES else spec.dtype
        dims = wrap_all("prod", dim, input.ndim)
        y = multiply_up(input.astype(wide, copy=False), dims, keepdim)
        return np.asarray(y).astype(spec.dtype, copy=False)

    def dinput(dy, input, y, dim, keepdim):
        from zoo.ops.scan import product_gradient, shift
        shape = input.shape
        if not shape or 0 in shape:
            return spread(dy, shape, dim, keepdim)
        if type(y) is np.ndarray and y.dtype == input.dtype and can_divide(y):
            return restored(dy * y, shape, dim, keepdim) / input
        if dim is None:
            flat = reshape(input, (math.prod(shape),))
            return reshape(prod.derivatives["input"](reshape(dy, ()), flat, y, 0, False), shape)
        d = wrap("prod", dim, len(shape))
        last = shift(spread(dy, shape, dim, keepdim), d, shape[d] - 1, 0.0)
        return product_gradient(last, input, d)

    def samples(rng):
        return draws(rng, (None,), (1,), (-1, True), low=0.5, high=1.5)


def extreme_gradient(dy, input, y, dim, keepdim):
    """The gradient of amax and amin: evenly to all elements that are equal to the result."""
    shape = input.shape
    hit = cast(OPS["eq"](input, restored(y, shape, dim, keepdim)), dy.dtype)
    ties = sum(hit, dim, True)
    return OPS["mul"](hit, OPS["div"](restored(dy, shape, dim, keepdim), ties))


@structured
class amax:
    """The largest value over `dim`, nan if there is one. The gradient is shared evenly between equal values.

    Raises: DimError for a dim out of range or nothing to reduce.

    >>> import zoo
    >>> zoo.amax(zoo.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=(0,))
    tensor([7., 5.])
    """
    dtypes = "floats ints bool"

    def check(input, dim=None, keepdim=False): return extreme_spec("amax", input, dim, keepdim)

    def forward(input, dim=None, keepdim=False):
        spec = amax.check(input, dim, keepdim)
        y = extreme(True, widened(input), wrap_all("amax", dim, input.ndim), keepdim)
        return np.asarray(y).astype(spec.dtype, copy=False)

    def dinput(dy, input, y, dim, keepdim): return extreme_gradient(dy, input, y, dim, keepdim)
    def samples(rng): return draws(rng, (None,), (1,), ((0, 2), True), empty=False)


@structured
class amin:
    """The smallest value over `dim`; see `amax`."""
    dtypes = "floats ints bool"

    def check(input, dim=None, keepdim=False): return extreme_spec("amin", input, dim, keepdim)

    def forward(input, dim=None, keepdim=False):
        spec = amin.check(input, dim, keepdim)
        y = extreme(False, widened(input), wrap_all("amin", dim, input.ndim), keepdim)
        return np.asarray(y).astype(spec.dtype, copy=False)

    def dinput(dy, input, y, dim, keepdim): return extreme_gradient(dy, input, y, dim, keepdim)
    def samples(rng): return draws(rng, (None,), (1,), ((0, 2), True), empty=False)


def arg_spec(op, x, dim, keepdim) -> Spec:
    if dim is not None:
        wrap(op, dim, x.ndim)
    return extreme_spec(op, x, dim, keepdim, int64)


def find(op: str, x: np.ndarray, dim, keepdim: bool, search) -> np.ndarray:
    """np.argmax or np.argmin as torch counts: over all of x if dim is None."""
    spec = arg_spec(op, x, dim, keepdim)
    line, d = rows(op, widened(x), dim)
    return np.asarray(search(line, axis=d), int64).reshape(spec.shape)


@structured
class argmax:
    """The index (int64) of the first largest value along `dim`, of the first nan if there is one; in all of x if None.

    >>> import zoo
    >>> zoo.argmax(zoo.tensor([[1, 5, 5], [7, 2, 0]]), dim=1)
    tensor([1, 0])
    """
    dtypes = "floats ints"

    def check(input, dim=None, keepdim=False): return arg_spec("argmax", input, dim, keepdim)
    def forward(input, dim=None, keepdim=False): return find("argmax", input, dim, keepdim, np.argmax)
    def samples(rng): return draws(rng, (None,), (1,), (-1, True), empty=False)


@structured
class argmin:
    """The index (int64) of the first smallest value along `dim`; see `argmax`."""
    dtypes = "floats ints"

    def check(input, dim=None, keepdim=False): return arg_spec("argmin", input, dim, keepdim)
    def forward(input, dim=None, keepdim=False): return find("argmin", input, dim, keepdim, np.argmin)
    def samples(rng): return draws(rng, (None,), (1,), (-1, True), empty=False)


def pair_spec(op, x, dim, keepdim) -> tuple[Spec, Spec]:
    wrap(op, dim, x.ndim)
    spec = extreme_spec(op, x, dim, keepdim)
    return spec, Spec(spec.shape, int64)


def find_both(op: str, x: np.ndarray, dim: int, keepdim: bool, search) -> tuple[np.ndarray, np.ndarray]:
    """The extreme values along `dim`, and where they are."""
    spec = pair_spec(op, x, dim, keepdim)[0]
    line, d = rows(op, x, dim if x.ndim else None)
    at = np.asarray(search(widened(line), axis=d, keepdims=True), int64)
    return np.take_along_axis(line, at, d).reshape(spec.shape), at.reshape(spec.shape)


def at_index(dvalues, indices, shape, dim, keepdim):
    """Zeros of `shape` with one value per line, at its index along `dim`."""
    if not shape:
        return dvalues
    d = wrap("at_index", dim, len(shape))
    places = np.arange(shape[d]).reshape(-1, *(1,) * (len(shape) - 1 - d))
    here = OPS["eq"](restored(indices, shape, dim, keepdim), constant(places, indices))
    return OPS["where"](here, restored(dvalues, shape, dim, keepdim), 0.0)


@structured
class max_dim:
    """The largest values along `dim` and their (first) indices. The gradient goes to the element at the index."""
    dtypes = "floats ints bool"
    outputs = ("values", "indices")

    def check(input, dim, keepdim=False): return pair_spec("max", input, dim, keepdim)
    def forward(input, dim, keepdim=False): return find_both("max", input, dim, keepdim, np.argmax)

    def dinput(dvalues, indices, input_shape, dim, keepdim):
        return at_index(dvalues, indices, input_shape, dim, keepdim)

    def samples(rng): return draws(rng, (0,), (1,), (-1, True), empty=False)


@structured
class min_dim:
    """The smallest values along `dim` and their (first) indices; see `max_dim`."""
    dtypes = "floats ints bool"
    outputs = ("values", "indices")

    def check(input, dim, keepdim=False): return pair_spec("min", input, dim, keepdim)
    def forward(input, dim, keepdim=False): return find_both("min", input, dim, keepdim, np.argmin)

    def dinput(dvalues, indices, input_shape, dim, keepdim):
        return at_index(dvalues, indices, input_shape, dim, keepdim)

    def samples(rng): return draws(rng, (0,), (1,), (-1, True), empty=False)


def truth_spec(op, x, dim, keepdim) -> Spec:
    dtype = dtypes.uint8 if x.dtype == dtypes.uint8 else dtypes.bool_          # torch's oldest habit
    return Spec(reduced(x.shape, wrap_all(op, dim, x.ndim), keepdim), dtype)


@structured
class any:
    """Is any element over `dim` not 0? False over nothing, True for nan; bool (uint8 for uint8).

    >>> import zoo
    >>> zoo.any(zoo.tensor([[0, 1], [0, 0]]), dim=1)
    tensor([ True, False])
    """
    dtypes = "floats ints bool"

    def check(input, dim=None, keepdim=False): return truth_spec("any", input, dim, keepdim)

    def forward(input, dim=None, keepdim=False):
        spec = any.check(input, dim, keepdim)
        y = np.logical_or.reduce(widened(input), axis=wrap_all("any", dim, input.ndim), keepdims=keepdim)
        return np.asarray(y, spec.dtype)

    def samples(rng): return draws(rng, (None,), (1,), ((0, 2), True))


@structured
class all:
    """Are all elements over `dim` not 0? True over nothing and for nan; bool (uint8 for uint8)."""
    dtypes = "floats ints bool"

    def check(input, dim=None, keepdim=False): return truth_spec("all", input, dim, keepdim)

    def forward(input, dim=None, keepdim=False):
        spec = all.check(input, dim, keepdim)
        y = np.logical_and.reduce(widened(input), axis=wrap_all("all", dim, input.ndim), keepdims=keepdim)
        return np.asarray(y, spec.dtype)

    def samples(rng): return draws(rng, (None,), (1,), ((0, 2), True))


@structured
class logsumexp:
    """log(sum(exp(x))) over `dim`, without overflow; integers are taken as floats.

    >>> import zoo
    >>> zoo.logsumexp(zoo.tensor([1000.0, 1000.0]), dim=0)
    tensor(1000.6932)
    """
    def check(input, dim=None, keepdim=False):
        spec = total_spec("logsumexp", input, dim, keepdim, None)
        return Spec(spec.shape, input.dtype if input.dtype in INEXACT else dtypes.default_dtype())

    def forward(input, dim=None, keepdim=False):
        spec = logsumexp.check(input, dim, keepdim)
        wide = float32 if spec.dtype in HALVES else spec.dtype
        e, m = sum_of_exp(input.astype(wide, copy=False), wrap_all("logsumexp", dim, input.ndim))
        return np.asarray(np.log(e) + m).reshape(spec.shape).astype(spec.dtype, copy=False)

    def dinput(dy, input, y, dim, keepdim):
        y = restored(y, input.shape, dim, keepdim)
        y = OPS["where"](OPS["eq"](y, -math.inf), 0.0, y)               # the gradient of log(0) is 0, not nan
        return OPS["mul"](restored(dy, input.shape, dim, keepdim), OPS["exp"](OPS["sub"](input, y)))

    def samples(rng): return draws(rng, (None,), (1,), ((0, 2), True), (0,))


def spread_of(op: str, x: np.ndarray, dim, correction, keepdim: bool) -> np.ndarray:
    """The variance in x's dtype (float32 for halves): squares of what is left after taking the mean away."""
    float_spec(op, x, dim, keepdim)
    x = widened(x)
    dims = wrap_all(op, dim, x.ndim)
    n = count(x.shape, dims)
    rest = x - add_up(x, dims, True) / np.asarray(n, x.dtype)
    return np.asarray(add_up(np.asarray(rest * rest), dims, keepdim) / np.asarray(max(n - correction, 0), x.dtype))


def var_gradient(dy, input, dim, correction, keepdim):
    """dy * 2 (x - mean) / (n - correction)."""
    n = count(input.shape, wrap_all("var", dim, len(input.shape)))
    scale = 2.0 / (n - correction) if n > correction else math.nan
    rest = OPS["sub"](input, mean(input, dim, True))
    return OPS["mul"](OPS["mul"](restored(dy, input.shape, dim, keepdim), scale), rest)


@structured
class var:
    """The variance over `dim`: sum((x - mean)^2) / max(0, n - correction).

    Raises: DtypeError for integers, DimError for a dim out of range.

    >>> import zoo
    >>> zoo.var(zoo.tensor([1.0, 2.0, 3.0, 4.0]), correction=0)
    tensor(1.2500)
    """
    def check(input, dim=None, correction=1, keepdim=False): return float_spec("var", input, dim, keepdim)

    def forward(input, dim=None, correction=1, keepdim=False):
        return spread_of("var", input, dim, correction, keepdim).astype(input.dtype, copy=False)

    def dinput(dy, input, dim, correction, keepdim): return var_gradient(dy, input, dim, correction, keepdim)
    def samples(rng): return draws(rng, (None,), (1, 0), ((0, 2), 2, True))


@structured
class std:
    """The standard deviation over `dim`: the root of `var`. Its gradient where it is 0 is 0."""
    def check(input, dim=None, correction=1, keepdim=False): return float_spec("std", input, dim, keepdim)

    def forward(input, dim=None, correction=1, keepdim=False):
        return np.asarray(np.sqrt(spread_of("std", input, dim, correction, keepdim))).astype(input.dtype, copy=False)

    def dinput(dy, input, y, dim, correction, keepdim):
        half = OPS["where"](OPS["eq"](y, 0.0), 0.0, OPS["div"](dy, OPS["mul"](y, 2.0)))
        return var_gradient(half, input, dim, correction, keepdim)

    def samples(rng): return draws(rng, (None,), (1, 0), ((0, 2), 2, True))


@structured
class vector_norm:
    """(sum |x|^ord)^(1/ord) over `dim`; ord inf, -inf: the largest, smallest |x|; 0: how many are not 0.

    Raises: DtypeError for integers, DimError for a dim out of range or an extreme of nothing.

    >>> import zoo
    >>> zoo.linalg.vector_norm(zoo.tensor([3.0, 4.0]))
    tensor(5.)
    """
    def check(input, ord=2, dim=None, keepdim=False):
        spec = float_spec("vector_norm", input, dim, keepdim)
        return extreme_spec("vector_norm", input, dim, keepdim) if ord < 0 or ord == math.inf else spec

    def forward(input, ord=2, dim=None, keepdim=False):
        spec = vector_norm.check(input, ord, dim, keepdim)
        x = widened(input) if ord == 2 else np.abs(widened(input))
        dims = wrap_all("vector_norm", dim, x.ndim)
        if math.isinf(ord):
            y = (np.maximum if ord > 0 else np.minimum).reduce(x, axis=dims, keepdims=keepdim)
        elif ord == 0:
            y = add_up((x != 0).astype(x.dtype), dims, keepdim)
        elif ord in (1, 2):
            y = add_up(x, dims, keepdim) if ord == 1 else np.sqrt(add_up_squares(x, dims, keepdim))
        else:
            y = add_up(np.asarray(x ** np.asarray(ord, x.dtype)), dims, keepdim) ** np.asarray(1 / ord, x.dtype)
        return np.asarray(y).astype(spec.dtype, copy=False)

    def dinput(dy, input, y, ord, dim, keepdim): return norm_gradient(dy, input, y, ord, dim, keepdim)

    def samples(rng):
        found = draws(rng, (2.0,), (2.0, 1), (1.0, (0, 2), True), (3.0, 1), (math.inf, 1), (-math.inf, 0), (0.5, None))
        found["ordinary"] = [(np.sign(x) * (np.abs(x) + 0.1), *o) for x, *o in found["ordinary"]]     # |x| bends at 0
        return found | {"odd": [(np.sign(x) * (np.abs(x) + 0.1), *o) for x, *o in found["odd"]]}


def norm_gradient(dy, input, y, ord, dim, keepdim):
    """dy * sign(x) * (|x| / y)^(ord - 1), and 0 where y is 0; the extremes share between equals."""
    mul, where, eq = OPS["mul"], OPS["where"], OPS["eq"]
    dy = restored(dy, input.shape, dim, keepdim)
    y = restored(y, input.shape, dim, keepdim)
    if ord == 0:
        return mul(spread(dy, input.shape, None, True), 0.0)
    if ord == 2:
        return mul(input, where(eq(y, 0.0), 0.0, OPS["div"](dy, y)))
    size, sign = OPS["abs"](input), OPS["sign"](input)
    if ord == 1:
        return mul(dy, sign)
    if math.isinf(ord):
        hit = mul(cast(eq(size, y), input.dtype), sign)
        return mul(hit, OPS["div"](dy, sum(cast(eq(size, y), input.dtype), dim, True)))
    if ord < 1:                                      # the slope at 0 is infinite: torch says 0
        size = where(eq(size, 0.0), 1.0, size)
    ratio = OPS["pow"](OPS["div"](size, where(eq(y, 0.0), 1.0, y)), float(ord - 1))
    return mul(mul(dy, sign), where(eq(y, 0.0), 0.0, ratio))
