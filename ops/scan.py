"""Scans: running sums, products, extremes along one dimension, and the linear recurrence their gradients need."""
import math

import numpy as np

from zoo.ops.dims import wrap
from zoo.ops.dtypes import HALVES, float32, float64, int64
from zoo.ops.op import OPS, Spec, structured
from zoo.ops.reduce import total_dtype
from zoo.ops.reduce_cpu import widened
from zoo.ops.scan_cpu import is_long_line, running_products, running_sums
from zoo.ops.shape import filled


def draws(rng, low=-2.0, high=2.0) -> dict:
    """Samples of a scan: (array, dim)."""
    def x(*shape): return np.asarray(rng.uniform(low, high, shape))
    special = np.array([[1.0, np.nan, -3.0], [np.inf, 2.0, 4.0], [0.0, -0.0, 0.0], [-np.inf, 3.0, 3.0]])
    return {"ordinary": [(x(3, 4, 5), 1), (x(3, 4), -1)], "0-d": [(x(), 0)], "empty": [(x(0, 3), 1), (x(3, 0), 1)],
            "odd": [(x(7, 13, 3), 0), (x(7, 13), 1), (x(131), 0)], "extreme": [(special, 0), (special, 1)]}


def total_spec(op, x, dim, dtype=None) -> Spec:
    wrap(op, dim, x.ndim)
    return Spec(x.shape, total_dtype(x, dtype))


def backwards(x: np.ndarray, dim: int) -> np.ndarray:
    """A view of x with `dim` in reverse."""
    return x[(slice(None),) * dim + (slice(None, None, -1),)]


def accumulate(op: str, ufunc, x: np.ndarray, dim: int, dtype, reverse: bool = False) -> np.ndarray:
    """A running sum or product in torch's dtype; reverse: from the end, of sums."""
    spec = total_spec(op, x, dim, dtype)
    if not x.ndim:
        return np.asarray(x, spec.dtype).copy()
    wide = float32 if spec.dtype in HALVES else spec.dtype
    if wide == float32 and is_long_line(x, dim):
        x = x.astype(float32, copy=False)
        y = running_sums(x, reverse) if ufunc is np.add else running_products(x)
        return y.astype(spec.dtype, copy=False)
    if reverse:
        return backwards(accumulate(op, ufunc, backwards(x, dim % x.ndim), dim, dtype), dim % x.ndim)
    inner = float64 if wide == float32 else wide                  # one after the other: errors add up
    return ufunc.accumulate(x.astype(wide, copy=False), axis=dim, dtype=inner).astype(spec.dtype, copy=False)


@structured
class cumsum:
    """The running sum along `dim`, y[i] = x[0] + ... + x[i]; integers and bools are added as int64.

    Raises: DimError for a dim out of range.

    >>> import zoo
    >>> zoo.cumsum(zoo.tensor([1, 2, 3]), dim=0)
    tensor([1, 3, 6])
    """
    dtypes = "floats ints bool"

    def check(input, dim, dtype=None): return total_spec("cumsum", input, dim, dtype)
    def forward(input, dim, dtype=None): return accumulate("cumsum", np.add, input, dim, dtype)
    def dinput(dy, dim): return reverse_cumsum(dy, dim)
    def samples(rng): return draws(rng)


@structured
class reverse_cumsum:
    """The running sum from the end, y[i] = x[i] + ... + x[n - 1]: the gradient of `cumsum`."""
    def check(x, dim): return Spec(x.shape, x.dtype)

    def forward(x, dim):
        return accumulate("reverse_cumsum", np.add, x, dim, x.dtype, True)

    def dx(dy, dim): return cumsum(dy, dim)
    def samples(rng): return draws(rng)


@structured
class cumprod:
    """The running product along `dim`, y[i] = x[0] * ... * x[i]. Its gradient is right where x is 0 too, to any order.

    >>> import zoo
    >>> zoo.cumprod(zoo.tensor([1, 2, 3]), dim=0)
    tensor([1, 2, 6])
    """
    dtypes = "floats ints bool"

    def check(input, dim, dtype=None): return total_spec("cumprod", input, dim, dtype)
    def forward(input, dim, dtype=None): return accumulate("cumprod", np.multiply, input, dim, dtype)
    def dinput(dy, input, dim): return product_gradient(dy, input, dim) if input.shape else dy
    def samples(rng): return draws(rng, 0.5, 1.5)


def product_gradient(dy, x, dim):
    """Of a running product: (x[0] ... x[k-1]) * (dy[k] + x[k+1] (dy[k+1] + x[k+2] (dy[k+2] + ...))).

    No division, so zeros do no harm: the left factor is a running product of the x before, the right one a linear
    recurrence from the end.
    """
    before = cumprod(shift(x, dim, 1, 1.0), dim)
    return OPS["mul"](before, linear_scan(shift(x, dim, -1, 0.0), dy, dim, True))


@structured
class shift:
    """x moved by `by` places along `dim`, y[i] = x[i - by]; what comes in at the end is `fill`."""
    def check(x, dim, by, fill=0.0): return Spec(x.shape, x.dtype)

    def forward(x, dim, by, fill=0.0):
        y = np.full(x.shape, fill, x.dtype)
        n, d = x.shape[dim], dim % x.ndim
        source, target = slice(max(-by, 0), max(n - by, 0)), slice(max(by, 0), max(n + by, 0))
        y[(slice(None),) * d + (target,)] = x[(slice(None),) * d + (source,)]
        return y

    def dx(dy, dim, by): return shift(dy, dim, -by, 0.0)

    def samples(rng):
        return {"ordinary": [(rng.normal(size=(3, 4)), 1, 1, 1.0), (rng.normal(size=(3, 4)), 0, -2, 0.0)],
                "empty": [(rng.normal(size=(0, 4)), 0, 1, 0.0)], "0-d": "there is no dim to move along",
                "odd": [(rng.normal(size=(7, 13, 3)), 1, 5, 0.0), (rng.normal(size=(7,)), 0, -9, 0.5)],
                "extreme": "values are not computed with"}


@structured
class linear_scan:
    """y[i] = a[i] * y[i - 1] + b[i] along `dim` (reverse: a[i] * y[i + 1] + b[i]); what comes before the first is 0."""
    def check(a, b, dim, reverse=False): return Spec(b.shape, b.dtype)

    def forward(a, b, dim, reverse=False):
        d = dim % b.ndim
        a, y = widened(a), widened(b).copy()
        up, down = (backwards(a, d), backwards(y, d)) if reverse else (a, y)
        up, down = np.moveaxis(up, d, 0), np.moveaxis(down, d, 0)
        if down.size < 64 * down.shape[0]:                      # few lines: log2(n) vectorised steps
            up, step = up.copy(), 1
            while step < down.shape[0]:
                down[step:] = down[step:] + up[step:] * down[:-step]
                up[step:] = up[step:] * up[:-step]
                step *= 2
        else:
            for i in range(1, down.shape[0]):
                down[i] += up[i] * down[i - 1]
        return y.astype(b.dtype, copy=False)

    def da(dy, y, a, dim, reverse):
        return OPS["mul"](back_through(dy, a, dim, reverse), shift(y, dim, -1 if reverse else 1, 0.0))

    def db(dy, a, dim, reverse): return back_through(dy, a, dim, reverse)

    def samples(rng):
        def pair(*shape): return rng.uniform(0.3, 1.2, shape), rng.normal(size=shape)
        return {"ordinary": [(*pair(3, 4), 1, False), (*pair(3, 4, 2), 1, True)], "empty": [(*pair(0, 4), 1, False)],
                "0-d": "there is no dim to walk along",
                "odd": [(*pair(7, 13), 0, True), (*pair(131), 0, False), (*pair(5, 99), 0, False)],
                "extreme": [(np.array([0.0, 2.0, np.nan, 1.0]), np.array([1.0, np.inf, 1.0, -0.0]), 0, False)]}


def back_through(dy, a, dim, reverse):
    """The gradient of b: the recurrence run the other way, each step with the next one's a."""
    return linear_scan(shift(a, dim, 1 if reverse else -1, 0.0), dy, dim, not reverse)


def pair_spec(op, x, dim) -> tuple[Spec, Spec]:
    wrap(op, dim, x.ndim)
    return Spec(x.shape, x.dtype), Spec(x.shape, int64)


def running(op: str, x: np.ndarray, dim: int, ufunc, sign) -> tuple[np.ndarray, np.ndarray]:
    """Running extremes with the index of the last element that is one; nan stays."""
    pair_spec(op, x, dim)
    if not x.size or not x.ndim:
        return np.array(x), np.zeros(x.shape, int64)
    d, line = dim % x.ndim, widened(x)
    best = ufunc.accumulate(line, axis=d)
    places = np.arange(x.shape[d]).reshape(-1, *(1,) * (x.ndim - 1 - d))
    new = (line == best) | (line != line)
    return best.astype(x.dtype, copy=False), np.maximum.accumulate(np.where(new, places, 0), axis=d)


def by_index(dvalues, indices, dim):
    """Every gradient to the element that its value was taken from."""
    if not dvalues.shape:
        return dvalues
    return OPS["scatter_add"](filled(dvalues, dvalues.shape, 0), dim, indices, dvalues)


@structured
class cummax:
    """The largest value so far along `dim`, and the index of the last element equal to it; nan stays.

    >>> import zoo
    >>> zoo.cummax(zoo.tensor([1, 3, 2]), dim=0).indices
    tensor([0, 1, 1])
    """
    dtypes = "floats ints bool"
    outputs = ("values", "indices")

    def check(input, dim): return pair_spec("cummax", input, dim)
    def forward(input, dim): return running("cummax", input, dim, np.maximum, 1)
    def dinput(dvalues, indices, dim): return by_index(dvalues, indices, dim)
    def samples(rng): return draws(rng)


@structured
class cummin:
    """The smallest value so far along `dim`, and the index of the last element equal to it; nan stays."""
    dtypes = "floats ints bool"
    outputs = ("values", "indices")

    def check(input, dim): return pair_spec("cummin", input, dim)
    def forward(input, dim): return running("cummin", input, dim, np.minimum, -1)
    def dinput(dvalues, indices, dim): return by_index(dvalues, indices, dim)
    def samples(rng): return draws(rng)


@structured
class logcumsumexp:
    """log(exp(x[0]) + ... + exp(x[i])) along `dim`, without overflow.

    Raises: DtypeError for integers, DimError for a dim out of range.

    >>> import zoo
    >>> zoo.logcumsumexp(zoo.tensor([0.0, 0.0]), dim=0)
    tensor([0.0000, 0.6931])
    """
    def check(input, dim):
        from zoo.ops.op import need_float
        need_float("logcumsumexp", input)
        return total_spec("logcumsumexp", input, dim)

    def forward(input, dim):
        logcumsumexp.check(input, dim)
        if not input.ndim:
            return np.array(input)
        return np.logaddexp.accumulate(widened(input), axis=dim).astype(input.dtype, copy=False)

    def dinput(dy, input, y, dim):
        """exp(x[k] - y[k]) * r[k] with r[k] = dy[k] + exp(y[k] - y[k+1]) r[k+1]: no exponent is positive."""
        where, eq, sub, exp = (OPS[n] for n in ("where", "eq", "sub", "exp"))
        if not input.shape:
            return dy
        y = where(eq(y, -math.inf), 0.0, y)
        step = exp(sub(y, shift(y, dim, -1, math.inf)))
        return OPS["mul"](exp(sub(input, y)), linear_scan(step, dy, dim, True))

    def samples(rng): return draws(rng)


