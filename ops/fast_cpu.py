"""Formulas of rows written out for float32 on the CPU: into their result, with no more arrays than they need.

    into(y, *xs): y gets the row's formula of xs, arrays of float32 of one shape, then the row's options, numbers; y has
    no memory in common with xs.

A row without an entry here runs its own formula, on pieces of large arrays (pieces.py). The comments at the table say
what that and the entry gain together: 4 M elements, one thread of Zen 4.
"""
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from zoo.ops.compiled import SMALL, compiled
from zoo.ops.dtypes import float32

ZERO, HALF, ONE = (np.asarray(v, float32) for v in (0, 0.5, 1))
HALF_NEGATIVE, DENSITY = (np.asarray(v, float32) for v in (-0.5, 0.3989422804014327))
LINEAR, CUBIC, THREE_CUBIC = (np.asarray(v, float32) for v in (
    0.7978845608028654, 0.7978845608028654 * 0.044715, 3 * 0.7978845608028654 * 0.044715))
ONE_BIT = np.asarray(1, np.int32)
ROUNDED = 17.5             # log(1 + exp(-x)) is less than half a digit of x from here on, and sigmoid(x) is 1
LINE = 4096                # elements: NumPy compares two arrays in a third of the time of an array and a number

# atanh(erf(x)) / x in powers of x^2, from the highest: least weighted error, so that tanh gives erf within 1.8e-7 of
# its value; it rises beyond 4.2, where the fit ends and erf has reached 1. Lawson's method on 6000 points.
ERF = [np.asarray(c, float32) for c in (
    1.4185201e-07, -5.66847193e-06, 8.76373052e-05, -6.19784601e-04, -1.91830869e-04, 0.102769056, 1.12837927)]
NORMAL = [np.asarray(float(c) * 0.5 ** (k + 0.5), float32) for c, k in zip(ERF, range(6, -1, -1), strict=True)]


@lru_cache(1)
def zeros() -> np.ndarray:
    return np.zeros(LINE, float32)


def odd_tanh(y, x, coefficients) -> None:
    """tanh(x p(x^2)), p by its coefficients from the highest."""
    z = np.multiply(x, x)
    np.multiply(z, coefficients[0], out=y)
    for c in coefficients[1:-1]:
        y += c
        y *= z
    y += coefficients[-1]
    y *= x
    np.tanh(y, out=y)


def or_compiled(write: Callable) -> Callable:
    """`write`, or the function of its name in compiled/activation.py where that is at hand: half to a quarter of the
    time, as nothing but the result is written."""
    name = write.__name__

    def either(y, *xs) -> None:
        if y.size >= SMALL and y.flags.c_contiguous and all(x.flags.c_contiguous for x in xs) and (
                fast := compiled("activation", y, *xs)):
            getattr(fast, name)(y.reshape(-1), *(x.reshape(-1) for x in xs))
        else:
            write(y, *xs)
    return either


def erf(y, x) -> None:
    odd_tanh(y, x, ERF)


@or_compiled
def sigmoid(y, x) -> None:
    np.negative(x, out=y)
    np.exp(y, out=y)
    y += ONE
    np.divide(ONE, y, out=y)


@or_compiled
def sigmoid_dx(d, dy, y) -> None:
    np.subtract(ONE, y, out=d)
    d *= y
    d *= dy


@or_compiled
def tanh_dx(d, dy, y) -> None:
    np.multiply(y, y, out=d)
    np.subtract(ONE, d, out=d)
    d *= dy


@or_compiled
def silu(y, x) -> None:
    np.negative(x, out=y)
    np.exp(y, out=y)
    y += ONE
    np.divide(x, y, out=y)


@or_compiled
def silu_dx(d, dy, x) -> None:
    """dy s (1 + x (1 - s)), s = sigmoid(x)."""
    s = np.empty_like(d)
    sigmoid(s, x)
    np.subtract(ONE, s, out=d)
    d *= x
    d += ONE
    d *= s
    d *= dy


@or_compiled
def gelu(y, x) -> None:
    odd_tanh(y, x, NORMAL)
    y += ONE
    y *= HALF
    y *= x


@or_compiled
def gelu_dx(d, dy, x) -> None:
    """dy (cdf(x) + x density(x))."""
    odd_tanh(d, x, NORMAL)
    d += ONE
    d *= HALF
    t = np.multiply(x, x)
    t *= HALF_NEGATIVE
    np.exp(t, out=t)
    t *= DENSITY
    t *= x
    d += t
    d *= dy


def tanh_of_cubic(y, x) -> None:
    """y = tanh(u), u = 0.798 (x + 0.0447 x^3)."""
    np.multiply(x, x, out=y)
    y *= CUBIC
    y += LINEAR
    y *= x
    np.tanh(y, out=y)


@or_compiled
def gelu_tanh(y, x) -> None:
    tanh_of_cubic(y, x)
    y += ONE
    y *= HALF
    y *= x


@or_compiled
def gelu_tanh_dx(d, dy, x) -> None:
    """dy (1 + t) / 2 (1 + x (1 - t) du/dx), t = tanh(u)."""
    t, slope = np.empty_like(d), np.empty_like(d)
    tanh_of_cubic(t, x)
    np.multiply(x, x, out=slope)
    slope *= THREE_CUBIC
    slope += LINEAR
    slope *= x
    np.subtract(ONE, t, out=d)
    d *= slope
    d += ONE
    t += ONE
    t *= HALF
    d *= t
    d *= dy


def against_zero(extreme: np.ufunc, y, x) -> None:
    """The maximum or minimum of x and 0."""
    if not x.flags.c_contiguous or x.size < LINE:
        extreme(x, ZERO, out=y)
        return
    x, y = x.reshape(-1), y.reshape(-1)
    full = x.size // LINE * LINE
    extreme(x[:full].reshape(-1, LINE), zeros(), out=y[:full].reshape(-1, LINE))
    extreme(x[full:], zeros()[:x.size - full], out=y[full:])


def relu(y, x) -> None:
    if x.flags.c_contiguous and (fast := compiled("elementwise", y, x)):
        fast.relu(y.reshape(-1), x.reshape(-1))
    else:
        against_zero(np.maximum, y, x)


def relu_dx(d, dy, y) -> None:
    """dy, 0 where y <= 0: by masking bits, as 0 times infinity is not 0."""
    if dy.shape == y.shape and d.flags.c_contiguous and dy.flags.c_contiguous and y.flags.c_contiguous and (
            fast := compiled("elementwise", d, dy, y)):
        fast.relu_dx(d.reshape(-1), dy.reshape(-1), y.reshape(-1))
        return
    bits = d.view(np.int32)
    bits[...] = np.less_equal(y, ZERO)
    bits -= ONE_BIT
    bits &= dy.view(np.int32)


def elu(y, x, alpha) -> None:
    """max(x, 0) + alpha (exp(min(x, 0)) - 1): one of the two is 0."""
    t = np.empty_like(x)
    against_zero(np.minimum, t, x)
    np.expm1(t, out=t)
    if alpha != 1:
        t *= np.asarray(alpha, float32)
    against_zero(np.maximum, y, x)
    y += t


def elu_dx(d, dy, x, alpha) -> None:
    """dy where x > 0, else dy alpha exp(x)."""
    against_zero(np.minimum, d, x)
    np.exp(d, out=d)
    if alpha != 1:
        d *= np.asarray(alpha, float32)
        np.copyto(d, ONE, where=x > ZERO)
    d *= dy


def softplus(y, x, beta, threshold) -> None:
    """(max(z, 0) + log(1 + exp(-|z|))) / beta, z = beta x; x itself where z > threshold."""
    z = x if beta == 1 else x * np.asarray(beta, float32)
    t = np.abs(z)
    np.negative(t, out=t)
    np.exp(t, out=t)
    np.log1p(t, out=t)
    against_zero(np.maximum, y, z)
    y += t
    if beta != 1:
        y /= np.asarray(beta, float32)
    if beta != 1 or threshold < ROUNDED:
        np.copyto(y, x, where=z > np.asarray(threshold, float32))


def softplus_dx(d, dy, x, beta, threshold) -> None:
    """dy sigmoid(z), z = beta x; dy where z > threshold."""
    z = x if beta == 1 else x * np.asarray(beta, float32)
    sigmoid(d, z)
    if threshold < ROUNDED:
        np.copyto(d, ONE, where=z > np.asarray(threshold, float32))
    d *= dy


INTO: dict[str, Callable] = {      # measured without and with the entry, the gradients as forward + backward
    "erf": erf,                    # 9.8 -> 4.3 ms
    "sigmoid": sigmoid,            # 3.4 -> 3.1 ms
    "sigmoid.dx": sigmoid_dx,      # 0.09 -> 0.09 ms at 100 k elements, no temporaries beyond
    "tanh.dx": tanh_dx,            # 52 -> 44 us at 100 k elements
    "silu": silu,                  # 4.3 -> 3.2 ms
    "silu.dx": silu_dx,            # 13.9 -> 10.0 ms
    "gelu": gelu,                  # 13.2 -> 5.1 ms
    "gelu.dx": gelu_dx,            # 34.2 -> 14.1 ms
    "gelu_tanh": gelu_tanh,        # 4.8 -> 3.1 ms
    "gelu_tanh.dx": gelu_tanh_dx,  # 8.8 -> 5.5 ms
    "relu": relu,                  # 35 -> 16 us at 100 k elements
    "relu.dx": relu_dx,            # 76 -> 54 us at 100 k elements
    "elu": elu,                    # 1.6 -> 0.9 ms at 1 M elements, as the next three
    "elu.dx": elu_dx,              # 4.3 -> 2.3 ms
    "softplus": softplus,          # 2.4 -> 1.4 ms
    "softplus.dx": softplus_dx,    # 4.6 -> 2.8 ms
}
