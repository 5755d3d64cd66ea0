"""softmax and log_softmax along one dimension, and their gradients as ops of their own."""
import numpy as np

from zoo.ops import softmax_cpu
from zoo.ops.dims import wrap
from zoo.ops.dtypes import HALVES, INEXACT, float32
from zoo.ops.errors import DtypeError
from zoo.ops.op import OPS, Spec, structured
from zoo.ops.reduce import PLAIN
from zoo.ops.reduce import sum as total
from zoo.ops.reduce_cpu import SMALL, add_up, widened
from zoo.ops.softmax_cpu import by_blocks


def spec_of(op, x, dim, dtype) -> Spec:
    wrap(op, dim, x.ndim)
    dtype = x.dtype if dtype is None else np.dtype(dtype)
    if dtype not in INEXACT:
        raise DtypeError(f"{op}: wants a floating dtype, got {dtype}; pass dtype= or cast")
    return Spec(x.shape, dtype)


def draws(rng) -> dict:
    """Samples: (array, dim)."""
    def x(*shape): return np.asarray(rng.uniform(-3, 3, shape))
    special = np.array([[1e4, -1e4, 3.0], [np.inf, 2.0, 1.0], [-np.inf, 2.0, 1.0], [np.nan, 0.0, 0.0], [-np.inf] * 3])
    return {"ordinary": [(x(3, 4, 5), -1), (x(3, 4, 5), 1), (x(3, 4), 0)], "0-d": [(x(), 0)],
            "empty": [(x(0, 3), 1), (x(3, 0), 1)],
            "odd": [(x(7, 13, 3), 1), (x(7, 131), 1), (x(1031), 0)], "extreme": [(special, 1), (special, 0)]}


def gradient_draws(rng) -> dict:
    """Samples of a gradient: (dy, y, dim) with y between 0 and 1."""
    def pair(*shape): return np.asarray(rng.normal(size=shape)), np.asarray(rng.uniform(0.1, 0.9, shape))
    return {"ordinary": [(*pair(3, 4, 5), -1), (*pair(3, 4, 5), 1)], "0-d": [(*pair(), 0)],
            "empty": [(*pair(0, 3), 1), (*pair(3, 0), 1)], "odd": [(*pair(7, 13, 3), 1), (*pair(7, 131), 1)],
            "extreme": "y is what a softmax gives, and that is between 0 and 1"}


def minus_largest(x: np.ndarray, dim: int) -> np.ndarray:
    """x less the largest along `dim`, as an array of its own."""
    return np.asarray(x - np.maximum.reduce(x, axis=dim, keepdims=True)) if x.size and x.ndim else np.asarray(x - x)


def is_plain(x: np.ndarray, dim: int, dtype) -> bool:
    """Is there nothing to check and nothing to cast?"""
    return bool(x.size) and dtype is None and x.dtype in PLAIN and type(dim) is int and -x.ndim <= dim < x.ndim


def summed(x: np.ndarray, dim: int) -> np.ndarray:
    return add_up(x, (dim % x.ndim,), True) if x.ndim else x


@structured
class softmax:
    """exp(x) / sum(exp(x)) along `dim`; dtype= casts first.

    Raises: DtypeError for integers without dtype=, DimError for a dim out of range.

    >>> import zoo
    >>> zoo.softmax(zoo.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    def check(input, dim, dtype=None): return spec_of("softmax", input, dim, dtype)

    def forward(input, dim, dtype=None):
        if is_plain(input, dim, dtype):
            if input.size >= SMALL:
                return by_blocks(softmax_cpu.softmax, (input,), dim)
            e = input - np.maximum.reduce(input, axis=dim, keepdims=True)
            np.exp(e, out=e)
            e /= summed(e, dim)
            return e
        out = softmax.check(input, dim, dtype).dtype
        e = minus_largest(input.astype(float32 if out in HALVES else out, copy=False), dim)
        np.exp(e, out=e)
        e /= summed(e, dim)
        return e.astype(out, copy=False)

    def dinput(dy, y, dim): return softmax_grad(dy, y, dim)
    def samples(rng): return draws(rng)


@structured
class log_softmax:
    """x - log(sum(exp(x))) along `dim`; dtype= casts first.

    Raises: DtypeError for integers without dtype=, DimError for a dim out of range.

    >>> import zoo
    >>> zoo.log_softmax(zoo.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    def check(input, dim, dtype=None): return spec_of("log_softmax", input, dim, dtype)

    def forward(input, dim, dtype=None):
        if is_plain(input, dim, dtype):
            if input.size >= SMALL:
                return by_blocks(softmax_cpu.log_softmax, (input,), dim)
            z = input - np.maximum.reduce(input, axis=dim, keepdims=True)
            z -= np.log(summed(np.exp(z), dim))
            return z
        out = log_softmax.check(input, dim, dtype).dtype
        z = minus_largest(input.astype(float32 if out in HALVES else out, copy=False), dim)
        z -= np.log(summed(np.exp(z), dim))
        return z.astype(out, copy=False)

    def dinput(dy, y, dim): return log_softmax_grad(dy, y, dim)
    def samples(rng): return draws(rng)


@structured
class softmax_grad:
    """y * (dy - sum(dy * y)), y = softmax(x)."""
    def check(dy, y, dim): return Spec(y.shape, y.dtype)

    def forward(dy, y, dim):
        if y.size >= SMALL and y.dtype in PLAIN:
            return by_blocks(softmax_cpu.softmax_grad, (dy, y), dim)
        g, p = widened(dy), widened(y)
        weighted = np.asarray(g * p)
        weighted -= p * summed(weighted, dim)
        return weighted.astype(y.dtype, copy=False)

    def decompose(dy, y, dim):
        mul, weighted = OPS["mul"], OPS["mul"](dy, y)
        return OPS["sub"](weighted, mul(y, total(weighted, dim, True)))

    samples = gradient_draws


@structured
class log_softmax_grad:
    """dy - exp(y) * sum(dy), y = log_softmax(x)."""
    def check(dy, y, dim): return Spec(y.shape, y.dtype)

    def forward(dy, y, dim):
        if y.size >= SMALL and y.dtype in PLAIN:
            return by_blocks(softmax_cpu.log_softmax_grad, (dy, y), dim)
        g = widened(dy)
        p = np.asarray(np.exp(widened(y)))
        p *= summed(g, dim)
        return np.subtract(g, p, out=p).astype(y.dtype, copy=False)

    def decompose(dy, y, dim):
        return OPS["sub"](dy, OPS["mul"](OPS["exp"](y), total(dy, dim, True)))
    samples = gradient_draws
