"""torch's reductions, scans and softmaxes: overloads, lists of dims and dtype= said in ops."""

import builtins
from collections import namedtuple

from zoo.ops import reduce as ops
from zoo.ops import scan
from zoo.ops import softmax as soft
from zoo.ops.dims import wrap
from zoo.ops.dtypes import INEXACT, float64
from zoo.ops.errors import ArgumentError, DtypeError
from zoo.ops.op import OPS, into
from zoo.ops.reduce import amax as amax
from zoo.ops.reduce import amin as amin
from zoo.ops.reduce import argmax as argmax
from zoo.ops.reduce import argmin as argmin
from zoo.ops.shape import cast, reshape

FUNCTIONS = ("sum", "mean", "prod", "var", "std", "var_mean", "std_mean", "amax", "amin", "max", "min", "aminmax",
             "argmax", "argmin", "any", "all", "logsumexp", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp",
             "count_nonzero", "nansum", "nanmean", "norm", "dist", "softmax", "log_softmax", "equal")
METHODS = tuple(n for n in FUNCTIONS if n not in ("var_mean", "std_mean")) + ("sum_to_size",)
NN_FUNCTIONS = ("softmax", "log_softmax", "softmin")
INPLACE = ("cumsum", "cumprod")

max_result = namedtuple("max", ("values", "indices"))
min_result = namedtuple("min", ("values", "indices"))
cummax_result = namedtuple("cummax", ("values", "indices"))
cummin_result = namedtuple("cummin", ("values", "indices"))
aminmax_result = namedtuple("aminmax", ("min", "max"))


def given(result, out):
    """The result, or `out` with the result moved into it."""
    return result if out is None else into(result, out)


def dims(dim):
    """A list of dims as a tuple."""
    return tuple(dim) if isinstance(dim, list) else dim


def sum(input, dim=None, keepdim=False, dtype=None, out=None):
    """The sum over `dim` (int, list, or None for all).

    y = x[0] + x[1] + ...; integers and bools are added as int64. Any shape -> the shape without `dim` (1 with keepdim).

    Raises:
        DimError: a dim is out of range or there twice.

    Example:
        >>> import zoo
        >>> zoo.sum(zoo.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0).tolist()
        [4.0, 6.0]
    """
    return given(ops.sum(input, dims(dim), keepdim, dtype), out)


def mean(input, dim=None, keepdim=False, dtype=None, out=None):
    """The mean over `dim` (int, list, or None for all): the sum divided by the number of elements.

    Raises:
        DtypeError: integers without dtype=.
        DimError: a dim is out of range or there twice.

    Example:
        >>> import zoo
        >>> zoo.mean(zoo.tensor([1.0, 2.0, 6.0])).item()
        3.0
    """
    return given(ops.mean(input, dims(dim), keepdim, dtype), out)


def prod(input, dim=None, keepdim=False, dtype=None, out=None):
    """The product over one dim, or of all elements; integers and bools are multiplied as int64.

    Example:
        >>> import zoo
        >>> zoo.prod(zoo.tensor([[1, 2], [3, 4]]), 1).tolist()
        [2, 12]
    """
    return given(ops.prod(input, dim, keepdim, dtype), out)


def moment(dim, unbiased, correction):
    """(dim, correction) of torch's overloads of var: (x, unbiased), (x, dim, unbiased), (x, dim, correction=)."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise ArgumentError(f"var: wants unbiased= or correction=, got both ({unbiased}, {correction})")
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return dims(dim), correction


def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None):
    """The variance over `dim`: sum((x - mean)^2) / (n - correction), correction 1 unless unbiased=False.

    Raises:
        DtypeError: integers.
        DimError: a dim is out of range or there twice.

    Example:
        >>> import zoo
        >>> zoo.var(zoo.tensor([1.0, 2.0, 3.0]), correction=1).item()
        1.0
    """
    dim, correction = moment(dim, unbiased, correction)
    return given(ops.var(input, dim, correction, keepdim), out)


def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None):
    """The standard deviation over `dim`: the root of `var`.

    Example:
        >>> import zoo
        >>> zoo.std(zoo.tensor([1.0, 3.0]), unbiased=False).item()
        1.0
    """
    dim, correction = moment(dim, unbiased, correction)
    return given(ops.std(input, dim, correction, keepdim), out)


def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None):
    """(variance, mean) over `dim`."""
    dim, correction = moment(dim, unbiased, correction)
    return given((ops.var(input, dim, correction, keepdim), ops.mean(input, dim, keepdim)), out)


def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None):
    """(standard deviation, mean) over `dim`."""
    dim, correction = moment(dim, unbiased, correction)
    return given((ops.std(input, dim, correction, keepdim), ops.mean(input, dim, keepdim)), out)


def extreme(name, input, dim, keepdim, other, out):
    """torch's three overloads of max and min: of all, along a dim with indices, of two tensors."""
    if not hasattr(input, "shape"):
        raise TypeError(f"{name}: wants a tensor, got {type(input).__name__}")
    if other is not None or hasattr(dim, "shape"):
        return given(OPS[f"{name}imum"](input, dim if other is None else other), out)
    if dim is None:
        if keepdim:
            raise ArgumentError(f"{name}: wants a dim with keepdim=True, got None")
        if 0 in input.shape:
            raise ArgumentError(f"{name}: wants a dim or at least one element, got shape {tuple(input.shape)}")
        return given((amax if name == "max" else amin)(input, None, False), out)
    pair = max_result if name == "max" else min_result
    return given(pair(*OPS[f"{name}_dim"](input, dim, keepdim)), out)


def max(input, dim=None, keepdim=False, *, other=None, out=None):
    """The largest element; with `dim` the largest values along it and their (first) indices; of two tensors `maximum`.

    nan wins. The gradient of max(x) is shared evenly between equals, that of max(x, dim) goes to the index.

    Raises:
        DimError: dim is out of range, or there is nothing along it.
        ArgumentError: no elements at all and no dim.

    Example:
        >>> import zoo
        >>> zoo.max(zoo.tensor([[1, 5], [7, 2]]), 1).indices.tolist()
        [1, 0]
    """
    return extreme("max", input, dim, keepdim, other, out)


def min(input, dim=None, keepdim=False, *, other=None, out=None):
    """The smallest element; with `dim` the smallest values along it and their first indices; of two `minimum`.

    Example:
        >>> import zoo
        >>> zoo.min(zoo.tensor([3, 1, 2])).item()
        1
    """
    return extreme("min", input, dim, keepdim, other, out)


def aminmax(input, *, dim=None, keepdim=False, out=None):
    """(min, max) along one dim, or of all elements; gradients are shared evenly between equals."""
    if dim is None and 0 in input.shape:
        raise ArgumentError(f"aminmax: wants a dim or at least one element, got shape {tuple(input.shape)}")
    if out is not None and builtins.any(o.dtype != input.dtype for o in out):
        raise DtypeError(f"aminmax: wants out of dtype {input.dtype}, got {', '.join(str(o.dtype) for o in out)}")
    return given(aminmax_result(amin(input, dim, keepdim), amax(input, dim, keepdim)), out)


def any(input, dim=None, keepdim=False, *, out=None):
    """Is any element over `dim` not 0? False over nothing. An empty list of dims reduces none.

    Example:
        >>> import zoo
        >>> zoo.any(zoo.tensor([[0, 1], [0, 0]]), dim=1).tolist()
        [True, False]
    """
    return given(OPS["ne"](input, 0) if dim in ((), []) else ops.any(input, dims(dim), keepdim), out)


def all(input, dim=None, keepdim=False, *, out=None):
    """Are all elements over `dim` not 0? True over nothing. An empty list of dims reduces none.

    Example:
        >>> import zoo
        >>> zoo.all(zoo.tensor([[1, 1], [0, 1]]), dim=1).tolist()
        [True, False]
    """
    return given(OPS["ne"](input, 0) if dim in ((), []) else ops.all(input, dims(dim), keepdim), out)


def logsumexp(input, dim, keepdim=False, *, out=None):
    """log(sum(exp(x))) over `dim` (int or list), without overflow.

    Example:
        >>> import zoo
        >>> round(zoo.logsumexp(zoo.tensor([1000.0, 1000.0]), dim=0).item(), 3)
        1000.693
    """
    return given(ops.logsumexp(input, dims(dim), keepdim), out)


def cumsum(input, dim, *, dtype=None, out=None):
    """The running sum along `dim`: y[i] = x[0] + ... + x[i].

    Example:
        >>> import zoo
        >>> zoo.cumsum(zoo.tensor([1, 2, 3]), dim=0).tolist()
        [1, 3, 6]
    """
    return given(scan.cumsum(input, dim, dtype), out)


def cumprod(input, dim, *, dtype=None, out=None):
    """The running product along `dim`: y[i] = x[0] * ... * x[i].

    Example:
        >>> import zoo
        >>> zoo.cumprod(zoo.tensor([1, 2, 3]), dim=0).tolist()
        [1, 2, 6]
    """
    return given(scan.cumprod(input, dim, dtype), out)


def cummax(input, dim, *, out=None):
    """The largest value so far along `dim`, and the index of the last one equal to it: (values, indices)."""
    return given(cummax_result(*scan.cummax(input, dim)), out)


def cummin(input, dim, *, out=None):
    """The smallest value so far along `dim`, and the index of the last one equal to it: (values, indices)."""
    return given(cummin_result(*scan.cummin(input, dim)), out)


def logcumsumexp(input, dim, *, out=None):
    """log(exp(x[0]) + ... + exp(x[i])) along `dim`, without overflow."""
    return given(scan.logcumsumexp(input, dim), out)


def count_nonzero(input, dim=None):
    """How many elements over `dim` are not 0, as int64.

    Example:
        >>> import zoo
        >>> zoo.count_nonzero(zoo.tensor([0, 3, 0, 5])).item()
        2
    """
    return ops.sum(OPS["ne"](input, 0), dims(dim))


def nansum(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """The sum over `dim` with nan taken as 0."""
    if input.dtype in INEXACT:
        input = OPS["where"](OPS["ne"](input, input), 0.0, input)
    return given(ops.sum(input, dims(dim), keepdim, dtype), out)


def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """The mean over `dim` of the elements that are not nan."""
    if input.dtype not in INEXACT:
        raise DtypeError(f"nanmean: wants a floating dtype, got {input.dtype}")
    there = ops.sum(OPS["eq"](input, input), dims(dim), keepdim)
    return given(OPS["div"](nansum(input, dim, keepdim, dtype=dtype), there), out)


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    """(sum |x|^ord)^(1 / ord) over `dim`, None for all: torch.linalg.vector_norm.

    ord inf and -inf are the largest and smallest |x|, 0 is how many are not 0. The gradient at norm 0 is 0.

    Raises:
        DtypeError: integers.
        DimError: a dim is out of range, or an extreme of nothing.

    Example:
        >>> import zoo
        >>> zoo.linalg.vector_norm(zoo.tensor([3.0, 4.0])).item()
        5.0
    """
    if dtype is not None:
        x = cast(x, dtype)
    return given(ops.vector_norm(x, float(ord), dims(dim), keepdim), out)


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The norm over `dim` (None for all): p a number, "fro" (2), inf, or "nuc" over two dims; see `linalg.vector_norm`.

    Raises:
        ArgumentError: a name that is no norm, or "nuc" of what is no matrix.

    Example:
        >>> import zoo
        >>> zoo.norm(zoo.tensor([[3.0, 4.0]]), dim=1).tolist()
        [5.0]
    """
    if p == "nuc":
        return given(nuclear_norm(input if dtype is None else cast(input, dtype), dims(dim), keepdim), out)
    if isinstance(p, str) and p != "fro":
        raise ArgumentError(f"norm: wants a number, 'fro' or 'nuc', got {p!r}")
    return vector_norm(input, 2.0 if p in ("fro", None) else p, dim, keepdim, dtype=dtype, out=out)


def nuclear_norm(x, dim, keepdim):
    """The sum of the singular values of matrices over two dims: sum(Q * x) with x = Q P, Q orthogonal.

    Q comes from Newton-Schulz steps Q <- 1.5 Q - 0.5 Q Q' Q, each of which multiplies small singular values by 1.5 and
    takes those near 1 to 1 quadratically: matrix products only, so it runs on every device and has every derivative.
    """
    shape = tuple(x.shape)
    pair = (0, 1) if dim is None and len(shape) == 2 else dim
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise ArgumentError(f"norm: wants two dims of a matrix for 'nuc', got dim {dim} of shape {shape}")
    rows, columns = (wrap("norm", d, len(shape)) for d in pair)
    kept = tuple(i for i in range(len(shape)) if i not in (rows, columns))
    mul, matmul, permute = OPS["mul"], OPS["matmul"], OPS["permute"]
    x = permute(x, (*kept, rows, columns))
    swap = (*range(len(kept)), len(kept) + 1, len(kept))
    q = OPS["div"](x, OPS["maximum"](ops.vector_norm(x, 2.0, (-2, -1), True), 1e-30))
    for _ in range(84 if x.dtype == float64 else 44):         # 1.5^n covers the singular values that the dtype holds
        q = OPS["sub"](mul(q, 1.5), mul(matmul(q, matmul(permute(q, swap), q)), 0.5))
    y = ops.sum(mul(q, x), (-2, -1))
    return reshape(y, tuple(1 if i in (rows, columns) else n for i, n in enumerate(shape))) if keepdim else y


def dist(input, other, p=2):
    """The p-norm of input - other.

    Example:
        >>> import zoo
        >>> zoo.dist(zoo.tensor([3.0, 4.0]), zoo.zeros(2)).item()
        5.0
    """
    return ops.vector_norm(OPS["sub"](input, other), float(p))


def equal(input, other):
    """Have both the same shape and elements? A Python bool.

    Example:
        >>> import zoo
        >>> zoo.equal(zoo.tensor([1, 2]), zoo.tensor([1, 2]))
        True
    """
    return tuple(input.shape) == tuple(other.shape) and bool(ops.all(OPS["eq"](input, other)))


def sum_to_size(self, *size):
    """The sum over what broadcasting from `size` would have added."""
    size = tuple(size[0]) if len(size) == 1 and not hasattr(size[0], "__index__") else size
    return OPS["sum_to"](self, size)


def implicit(ndim):
    """torch's dim of F.softmax(x) without one: the classes' dim of a vector, a batch of them, of images."""
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, dtype=None, *, _stacklevel=3, out=None):
    """exp(x) / sum(exp(x)) along `dim`.

    Raises:
        DtypeError: integers without dtype=.
        DimError: dim is out of range.

    Example:
        >>> import zoo
        >>> zoo.softmax(zoo.zeros(2), dim=0).tolist()
        [0.5, 0.5]
    """
    return given(soft.softmax(input, implicit(len(input.shape)) if dim is None else dim, dtype), out)


def log_softmax(input, dim=None, dtype=None, *, _stacklevel=3, out=None):
    """x - log(sum(exp(x))) along `dim`: the logarithm of `softmax`, without underflow.

    Example:
        >>> import zoo
        >>> round(zoo.log_softmax(zoo.zeros(2), dim=0)[0].item(), 4)
        -0.6931
    """
    return given(soft.log_softmax(input, implicit(len(input.shape)) if dim is None else dim, dtype), out)


def softmin(input, dim=None, dtype=None, _stacklevel=3):
    """softmax of -x."""
    return softmax(OPS["neg"](input), dim, dtype)


LINALG_FUNCTIONS = {"vector_norm": vector_norm}
SPECIAL_FUNCTIONS = {"logsumexp": logsumexp, "softmax": softmax, "log_softmax": log_softmax}
