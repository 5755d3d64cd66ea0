"""torch's statistics of several variables: covariance, correlation, histograms."""
from collections import namedtuple

import numpy as np

from zoo.ops.device import constant, fetch
from zoo.ops.dtypes import FLOATS, INTS, bool_, float64
from zoo.ops.errors import ArgumentError, DtypeError, ShapeError
from zoo.ops.matmul import matmul
from zoo.ops.op import OPS, into
from zoo.ops.shape import cast, filled, permute, reshape

FUNCTIONS = ("corrcoef", "cov", "histc", "histogram")
METHODS = FUNCTIONS
NN_FUNCTIONS = ()
INPLACE = ()

histogram_result = namedtuple("histogram", ("hist", "bin_edges"))


def weights_of(name, kind, weights, count: int, dtypes):
    if weights is None:
        return None
    if tuple(weights.shape) != (count,) or weights.dtype not in dtypes:
        raise ShapeError(f"{name}: wants {kind} of shape ({count},), "
                         f"got {weights.dtype} of shape {tuple(weights.shape)}")
    if bool(OPS["any"](OPS["lt"](weights, 0))):
        raise ArgumentError(f"{name}: wants {kind} >= 0, got a negative one")
    return weights


def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariances of variables (rows) over observations (columns): (n, m) -> (n, n), (m,) -> ().

    Args:
        correction: what is taken off the number of observations. fweights: how often each occurs (integers, (m,));
        aweights: its weight (floats, (m,)).

    Raises:
        ShapeError: more than 2 dims, or weights of another shape. ArgumentError: negative weights. DtypeError: bools.

    Example:
        >>> import zoo
        >>> zoo.cov(zoo.tensor([[0.0, 2.0], [2.0, 0.0]])).tolist()
        [[2.0, -2.0], [-2.0, 2.0]]
    """
    if len(input.shape) > 2:
        raise ShapeError(f"cov: wants at most 2 dims, got shape {tuple(input.shape)}")
    if input.dtype == bool_:
        raise DtypeError("cov: wants numbers, got bools")
    x = input if input.dtype in FLOATS else input * 1.0
    x = reshape(x, (1, -1)) if len(x.shape) < 2 else x
    count = x.shape[1]
    times = weights_of("cov", "fweights", fweights, count, INTS)
    weight = weights_of("cov", "aweights", aweights, count, FLOATS)
    w = None
    for factor in (times, weight):
        if factor is not None:
            w = cast(factor, x.dtype) if w is None else w * cast(factor, x.dtype)
    total = count if w is None else OPS["sum"](w, None, False, None)
    mean = OPS["sum"](x if w is None else x * w, 1, True, None) / total
    norm = total - correction
    if weight is not None and correction:
        norm = total - correction * OPS["sum"](w * weight, None, False, None) / total
    norm = OPS["clamp_min"](norm, 0) if hasattr(norm, "shape") else max(norm, 0)
    centred = x - mean
    y = matmul(centred if w is None else centred * w, permute(centred, (1, 0)))
    y = OPS["div"](y, norm if hasattr(norm, "shape") else float(norm))
    return reshape(y, ()) if x.shape[0] == 1 else y


def corrcoef(input):
    """Pearson's correlations of variables (rows) over observations (columns), in [-1, 1]: (n, m) -> (n, n).

    Example:
        >>> import zoo
        >>> zoo.corrcoef(zoo.tensor([[0.0, 1.0], [3.0, 1.0]])).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
    """
    c = cov(input)
    if not len(c.shape):
        return c / c
    deviation = OPS["sqrt"](OPS["diagonal"](c, 0, 0, 1))
    y = c / reshape(deviation, (-1, 1)) / reshape(deviation, (1, -1))
    return OPS["clamp"](y, -1.0, 1.0)


def limits(name, x, low, high, margin: float) -> tuple[float, float]:
    """The range of a histogram: as given, or that of the values; one value gets `margin` at both sides."""
    if low == high == 0 and 0 not in x.shape:
        low, high = (float(fetch(getattr(v, "array", v))) for v in (OPS["amin"](x, None, False),
                                                                    OPS["amax"](x, None, False)))
    if low == high:
        low, high = low - margin, high + margin
    if not (np.isfinite(low) and np.isfinite(high)) or low > high:
        raise ArgumentError(f"{name}: wants a finite range with min <= max, got {low} and {high}")
    return low, high


def histc(input, bins=100, min=0, max=0, *, out=None):
    """How many elements fall into each of `bins` equal parts of [min, max]; both 0 stands for the range of the values.

    Raises:
        ArgumentError: bins < 1, or a range that is empty or not finite. DtypeError: bools.

    Example:
        >>> import zoo
        >>> zoo.histc(zoo.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3).tolist()
        [0.0, 2.0, 1.0, 0.0]
    """
    if bins < 1:
        raise ArgumentError(f"histc: wants bins > 0, got {bins}")
    if input.dtype == bool_:
        raise DtypeError("histc: wants numbers, got bools")
    x = input.detach() if hasattr(input, "detach") else input
    low, high = limits("histc", x, min, max, 1.0)
    counts = counted(reshape(x, (-1,) if 0 not in x.shape else (0,)), low, high, bins, None)
    return given(cast(counts, input.dtype), out)


def counted(x, low: float, high: float, bins: int, weight):
    """The weights (1) of the elements of x (n,) in each of the equal parts of [low, high]."""
    there = OPS["logical_and"](OPS["ge"](x, low), OPS["le"](x, high))
    x = cast(OPS["where"](there, x, low), x.dtype)
    place = OPS["clamp_max"](OPS["floor"]((x - low) * (bins / (high - low)) if x.dtype in FLOATS
                                          else (cast(x, float64) - low) * (bins / (high - low))), bins - 1)
    added = OPS["where"](there, 1.0 if weight is None else weight, 0.0)
    return OPS["scatter_add"](filled(added, (bins,), 0.0), 0, cast(place, np.dtype(np.int64)), added)


def histogram(input, bins, *, range=None, weight=None, density=False, out=None):
    """(hist, bin_edges): how many elements, or how much of `weight`, fall into each bin.

    Args:
        input: floats, any shape. bins: a number of equal bins in `range` (default: that of the values), or their
            ascending edges (n + 1,). density: divide by the total and the widths. weight: like input.

    Raises:
        ArgumentError: bins < 1, edges and a range, or a bad range. ShapeError: weight is not like input.

    Example:
        >>> import zoo
        >>> zoo.histogram(zoo.tensor([1.0, 2.0, 1.0]), bins=4, range=(0.0, 3.0)).hist.tolist()
        [0.0, 2.0, 1.0, 0.0]
    """
    x = input.detach() if hasattr(input, "detach") else input
    if weight is not None and tuple(weight.shape) != tuple(x.shape):
        raise ShapeError(f"histogram: wants weight like input {tuple(x.shape)}, got {tuple(weight.shape)}")
    flat = (-1,) if 0 not in x.shape else (0,)
    x, weight = reshape(x, flat), None if weight is None else reshape(weight, flat)
    if not hasattr(bins, "shape"):
        if bins < 1:
            raise ArgumentError(f"histogram: wants bins > 0, got {bins}")
        low, high = limits("histogram", x, *(range or ((0, 0) if x.shape[0] else (0, 1))), 0.5)
        edges = constant(np.linspace(low, high, bins + 1).astype(x.dtype), like=x)
        edges = OPS["add"](edges, filled(x, (1,), 0))
    elif range is not None:
        raise ArgumentError("histogram: wants a range or the edges of bins, got both")
    else:
        edges = bins
    hist = between(x, edges, weight)
    if density:
        first, last = (OPS["basic_index"](edges, (s,)) for s in (slice(1, None), slice(0, edges.shape[0] - 1)))
        hist = hist / OPS["sum"](hist, None, False, None) / (first - last)
    return given(histogram_result(hist, edges), out)


def between(x, edges, weight):
    """The weights (1) of the elements of x (n,) between neighbouring edges (m + 1,); the last bin holds its end."""
    bins = edges.shape[0] - 1
    low, high = (OPS["basic_index"](edges, (k,)) for k in (0, bins))
    there = OPS["logical_and"](OPS["ge"](x, low), OPS["le"](x, high))
    place = OPS["clamp"](OPS["searchsorted"](edges, x, True) - 1, 0, bins - 1)
    added = OPS["where"](there, filled(x, (1,), 1.0) if weight is None else weight, 0.0)
    return OPS["scatter_add"](filled(added, (bins,), 0.0), 0, place, added)


def given(result, out):
    """The result, or `out` with the result moved into it."""
    return result if out is None else into(result, out)
