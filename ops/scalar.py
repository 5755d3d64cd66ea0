"""What the free names of a formula mean in NumPy: the ufuncs, and the functions that NumPy lacks."""
from collections.abc import Callable
from types import FunctionType

import numpy as np

from zoo.ops import special
from zoo.ops.errors import ArgumentError

BITS = {np.dtype(np.float32): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.int64)}
BOOL = np.dtype(np.bool_)
ONE = {t: np.ones((), t) for t in BITS.values()}           # NumPy takes longer to convert a Python number
CHUNK = 16384                  # elements computed at once: their temporaries stay in the cache


def special_names(names: dict) -> Callable:
    """Binder of the formulas in special.py: a copy whose free names mean `names`."""
    names["__name__"] = special.__name__                   # where its warnings are said to come from
    def bound(name: str) -> Callable:
        formula = getattr(special, name)
        copy = FunctionType(formula.__code__, names, name, formula.__defaults__)
        copy.__module__ = formula.__module__
        return copy
    return bound


def in_chunks(fn: Callable, x: np.ndarray, compute: type | np.dtype) -> np.ndarray:
    """fn(x), computed in a wider dtype and piece by piece."""
    x = np.asarray(x)
    dtype = x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)
    if x.size <= CHUNK:
        return np.asarray(fn(x.astype(compute, copy=False))).astype(dtype, copy=False)
    flat, y = x.reshape(-1), np.empty(x.shape, dtype)
    out = y.reshape(-1)
    for i in range(0, flat.size, CHUNK):
        out[i:i + CHUNK] = fn(flat[i:i + CHUNK].astype(compute, copy=False))
    return y


def erf32(x):
    """erf of float32 within 3e-7: a rational of x^2 on [-3.84, 3.84], where it reaches 1."""
    x = np.clip(x, -3.8325069, 3.8325069)
    z = x * x
    p = z * np.float32(-2.72614225801306e-10)
    for c in (2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05, -7.34990630326855e-04,
              -2.95459980854025e-03):
        p += np.float32(c)
        p *= z
    p += np.float32(-1.60960333262415e-02)
    q = z * np.float32(-1.45660718464996e-05)
    for c in (-2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03):
        q += np.float32(c)
        q *= z
    q += np.float32(-1.42647390514189e-02)
    p *= x
    p /= q
    edge = z > 14.68                                       # exactly 1: gelu(-inf) is nan as in torch
    if edge.any():
        p = np.where(edge, np.sign(x), p)                  # not p[edge] = ...: p may be a 0-d scalar
    return p


def erf(x):
    x = np.asarray(x)
    return in_chunks(erf32, x, np.float32) if x.dtype == np.float32 else in_chunks(BOUND["erf"], x, np.float64)


def erfc(x):
    return in_chunks(BOUND["erfc"], x, np.float64)


def erfinv(x):
    return in_chunks(BOUND["erfinv"], x, np.float64)


def lgamma(x):
    return in_chunks(BOUND["lgamma"], x, np.float64)


def digamma(x):
    return in_chunks(BOUND["digamma"], x, np.float64)


def polygamma(n, x):
    x = np.asarray(x)
    y = BOUND["polygamma"](np.asarray(n, np.float64), x.astype(np.float64))
    return np.asarray(y).astype(x.dtype if x.dtype.kind == "f" else np.float64)


ZERO = {np.dtype(t): np.zeros((), t) for t in "efdFDbhilqBHILQ"}


def relu(x):
    return np.maximum(x, ZERO[x.dtype])                  # half the time of a Python 0


def rsqrt(x):
    return 1 / np.sqrt(x)


def sigmoid(x):
    y = np.exp(-x)
    if type(y) is not np.ndarray:
        return 1 / (1 + y)
    y += 1
    return np.divide(1, y, out=y)


def softplus(x):
    """log(1 + exp(x)) without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def sign(x):
    """-1, 0 or 1; 0 for nan, as in torch."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return np.sign(x)
    if x.dtype.kind in "bu":
        return np.minimum(x, x.dtype.type(1))
    return np.subtract(x > 0, x < 0, dtype=x.dtype)


def whole(ufunc: Callable) -> Callable:
    """A rounding that leaves integers alone."""
    def rounding(x):
        x = np.asarray(x)
        return x.copy() if x.dtype.kind in "iub" else ufunc(x)
    return rounding


rint = whole(np.rint)


def round_to(x, decimals):
    if np.asarray(x).dtype.kind in "iub":
        if decimals:
            raise ArgumentError(f"round: wants decimals=0 for integers, got {decimals}")
        return np.array(x)
    if decimals == 0:
        return np.rint(x)
    scale = np.asarray(10.0 ** abs(decimals), np.asarray(x).dtype)
    return np.rint(x * scale) / scale if decimals > 0 else np.rint(x / scale) * scale


def nonzero_divisor(op: str, b) -> None:
    b = np.asarray(b)
    if b.dtype.kind in "iub" and not b.all():
        raise ArgumentError(f"{op}: ZeroDivisionError: wants integers that are not 0 as divisor, got a 0")


def floor_divide(a, b):
    nonzero_divisor("floor_divide", b)
    return np.floor_divide(a, b)


def trunc_divide(a, b):
    nonzero_divisor("div", b)
    if np.asarray(b).dtype.kind in "iub":
        quotient = np.floor_divide(a, b)
        return quotient + ((quotient < 0) & (quotient * b != a))
    return np.trunc(np.true_divide(a, b))


def remainder(a, b):
    nonzero_divisor("remainder", b)
    return np.remainder(a, b)


def fmod(a, b):
    nonzero_divisor("fmod", b)
    return np.fmod(a, b)


def pow(a, b):
    b = np.asarray(b)
    whole = b.dtype.kind in "iub"
    if whole and np.asarray(a).dtype.kind in "iub":
        return integer_power(np.asarray(a), b)
    if b.ndim == 0:                                      # np.power takes twenty times as long as these
        e = b.item()
        if e == 2:
            return np.square(a)
        if e == 3:
            return np.square(a) * a
        if e == 0.5:
            return np.sqrt(a)
        if e == -1:
            return np.reciprocal(a)
        if e == 1:
            return np.positive(a)
        if whole:
            return np.power(a, float(e))                 # a number, so that float32 stays float32
    return np.power(a, b)


def integer_power(a, b):
    """Negative exponents give 0 but for the bases 1 and -1, as in torch."""
    negative = b < 0
    if not negative.any():
        return np.power(a, b)
    if b.ndim == 0:
        raise ArgumentError(f"pow: Integers to negative integer powers are not allowed, got exponent {b}")
    unit = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b & 1), 0)).astype(a.dtype)
    return np.where(negative, unit, np.power(a, np.where(negative, 0, b)))


def xlogy(a, b):
    """a log(b), 0 where a is 0 and b a number."""
    return np.where((a == 0) & (b == b), 0.0, a * np.log(b))


def xlog1py(a, b):
    return np.where((a == 0) & (b == b), 0.0, a * np.log1p(b))


def where(c, a, b):
    """a where c, else b. Large ones by masking bits: NumPy's choice costs 4 ns an element on a random condition."""
    if type(c) is not np.ndarray or c.size < 1024 or c.dtype is not BOOL:
        return np.where(c, a, b)
    kept = b if type(a) is float and not a else a if type(b) is float and not b else None
    integer = BITS.get(getattr(kept, "dtype", None))
    if integer is None or c.shape != kept.shape:
        return where_bits(c, a, b)
    mask = c.astype(integer)
    if kept is b:
        np.subtract(mask, ONE[integer], mask)               # all bits where c is False
    else:
        np.negative(mask, mask)
    return np.bitwise_and(mask, kept.view(integer), mask).view(kept.dtype)


def where_bits(c, a, b):
    """a where c, else b, for large arrays: b ^ ((a ^ b) & mask)."""
    dtype = a.dtype if type(a) is np.ndarray else getattr(b, "dtype", None)
    integer = BITS.get(dtype)
    if integer is None or any(type(x) not in (float, int) and x.dtype != dtype for x in (a, b)):
        return np.where(c, a, b)
    a, b = np.asarray(a, dtype).view(integer), np.asarray(b, dtype).view(integer)
    y = a ^ b
    y = np.bitwise_and(y, np.negative(c.view(np.int8), dtype=integer), out=y if y.shape == c.shape else None)
    return np.bitwise_xor(y, b, out=y).view(dtype)          # y has the shape of all three


def shift_left(a, b):
    return np.where((b < 0) | (b >= a.dtype.itemsize * 8), 0, np.left_shift(a, b)).astype(a.dtype, copy=False)


def shift_right(a, b):
    bits = a.dtype.itemsize * 8
    far = np.where((b < 0) | (b >= bits), bits - 1, b).astype(b.dtype, copy=False)
    shifted = np.right_shift(a, far)
    return np.where((b < 0) | (b >= bits), 0, shifted).astype(a.dtype, copy=False) if a.dtype.kind == "u" else shifted


NAMES: dict = {
    **{name: getattr(np, name) for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt",
        "abs", "maximum", "minimum", "fmax", "fmin", "hypot", "copysign", "nextafter", "logaddexp",
        "logaddexp2", "isnan", "isinf", "isfinite", "signbit", "square", "reciprocal")},
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "atan2": np.arctan2, "conj": np.conjugate, "divide": np.true_divide, "invert": np.invert,
    "floor": whole(np.floor), "ceil": whole(np.ceil), "trunc": whole(np.trunc),
    **{f.__name__: f for f in (
        erf, erfc, erfinv, lgamma, digamma, polygamma, relu, rsqrt, sigmoid, softplus, sign, rint, round_to,
        floor_divide, trunc_divide, remainder, fmod, pow, xlogy, xlog1py, shift_left, shift_right, where)},
}
SPECIAL = dict(NAMES)
BOUND = {name: special_names(SPECIAL)(name) for name in (
    "erf_middle", "erfc_tail", "erf", "erfc", "erfinv", "lgamma_positive", "lgamma", "digamma", "polygamma")}
SPECIAL.update(BOUND)
