"""Exponentials, logarithms, trigonometry and special functions, elementwise. Rows as in pointwise.py."""
import numpy as np

from zoo.ops.binding import elementwise


@elementwise
class exp:
    """e^x.

    Example:
        >>> import zoo
        >>> zoo.exp(zoo.tensor([0.0, 1.0]))
        tensor([1.0000, 2.7183])
    """
    kind = "float"
    def f(x): return exp(x)
    def dx(dy, y): return dy * y


@elementwise
class exp2:
    """2^x.

    Example:
        >>> import zoo
        >>> zoo.exp2(zoo.tensor([3.0]))
        tensor([8.])
    """
    kind = "float"
    def f(x): return exp2(x)
    def dx(dy, y): return dy * (y * 0.6931471805599453)


@elementwise
class expm1:
    """e^x - 1, accurate near 0.

    Example:
        >>> import zoo
        >>> zoo.expm1(zoo.tensor([0.0]))
        tensor([0.])
    """
    kind = "float"
    def f(x): return expm1(x)
    def dx(dy, y): return dy * (y + 1)


@elementwise
class log:
    """The natural logarithm.

    Example:
        >>> import zoo
        >>> zoo.log(zoo.tensor([1.0]))
        tensor([0.])
    """
    kind, domain = "float", (0.1, 2.0)
    def f(x): return log(x)
    def dx(dy, x): return dy / x


@elementwise
class log2:
    """The logarithm to base 2.

    Example:
        >>> import zoo
        >>> zoo.log2(zoo.tensor([8.0]))
        tensor([3.])
    """
    kind, domain = "float", (0.1, 2.0)
    def f(x): return log2(x)
    def dx(dy, x): return dy / (x * 0.6931471805599453)


@elementwise
class log10:
    """The logarithm to base 10.

    Example:
        >>> import zoo
        >>> zoo.log10(zoo.tensor([100.0]))
        tensor([2.0000])
    """
    kind, domain = "float", (0.1, 2.0)
    def f(x): return log10(x)
    def dx(dy, x): return dy / (x * 2.302585092994046)


@elementwise
class log1p:
    """log(1 + x), accurate near 0.

    Example:
        >>> import zoo
        >>> zoo.log1p(zoo.tensor([0.0]))
        tensor([0.])
    """
    kind, domain = "float", (-0.9, 2.0)
    def f(x): return log1p(x)
    def dx(dy, x): return dy / (x + 1)


@elementwise
class sin:
    """The sine of x in radians.

    Example:
        >>> import zoo
        >>> zoo.sin(zoo.tensor([0.0]))
        tensor([0.])
    """
    kind = "float"
    def f(x): return sin(x)
    def dx(dy, x): return dy * cos(x)


@elementwise
class cos:
    """The cosine of x in radians.

    Example:
        >>> import zoo
        >>> zoo.cos(zoo.tensor([0.0]))
        tensor([1.])
    """
    kind = "float"
    def f(x): return cos(x)
    def dx(dy, x): return -dy * sin(x)


@elementwise
class tan:
    """The tangent of x in radians.

    Example:
        >>> import zoo
        >>> zoo.tan(zoo.tensor([0.0]))
        tensor([0.])
    """
    kind, domain = "float", (-1.4, 1.4)
    def f(x): return tan(x)
    def dx(dy, y): return dy * (1 + y * y)


@elementwise
class asin:
    """The inverse of sin, in [-pi / 2, pi / 2].

    Example:
        >>> import zoo
        >>> zoo.asin(zoo.tensor([1.0]))
        tensor([1.5708])
    """
    kind, domain = "float", (-0.95, 0.95)
    def f(x): return asin(x)
    def dx(dy, x): return dy * rsqrt(1 - x * x)


@elementwise
class acos:
    """The inverse of cos, in [0, pi].

    Example:
        >>> import zoo
        >>> zoo.acos(zoo.tensor([0.0]))
        tensor([1.5708])
    """
    kind, domain = "float", (-0.95, 0.95)
    def f(x): return acos(x)
    def dx(dy, x): return -dy * rsqrt(1 - x * x)


@elementwise
class atan:
    """The inverse of tan, in (-pi / 2, pi / 2).

    Example:
        >>> import zoo
        >>> zoo.atan(zoo.tensor([1.0]))
        tensor([0.7854])
    """
    kind = "float"
    def f(x): return atan(x)
    def dx(dy, x): return dy / (x * x + 1)


@elementwise
class sinh:
    """(e^x - e^-x) / 2.

    Example:
        >>> import zoo
        >>> zoo.sinh(zoo.tensor([0.0]))
        tensor([0.])
    """
    kind = "float"
    def f(x): return sinh(x)
    def dx(dy, x): return dy * cosh(x)


@elementwise
class cosh:
    """(e^x + e^-x) / 2.

    Example:
        >>> import zoo
        >>> zoo.cosh(zoo.tensor([0.0]))
        tensor([1.])
    """
    kind = "float"
    def f(x): return cosh(x)
    def dx(dy, x): return dy * sinh(x)


@elementwise
class tanh:
    """sinh(x) / cosh(x).

    Example:
        >>> import zoo
        >>> zoo.tanh(zoo.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """
    kind = "float"
    def f(x): return tanh(x)
    def dx(dy, y): return dy * (1 - y * y)


@elementwise
class asinh:
    """The inverse of sinh.

    Example:
        >>> import zoo
        >>> zoo.asinh(zoo.tensor([0.0]))
        tensor([0.])
    """
    kind = "float"
    def f(x): return asinh(x)
    def dx(dy, x): return dy * rsqrt(x * x + 1)


@elementwise
class acosh:
    """The inverse of cosh, of x >= 1.

    Example:
        >>> import zoo
        >>> zoo.acosh(zoo.tensor([1.0]))
        tensor([0.])
    """
    kind, domain = "float", (1.1, 3.0)
    def f(x): return acosh(x)
    def dx(dy, x): return dy * rsqrt(x * x - 1)


@elementwise
class atanh:
    """The inverse of tanh, of |x| < 1.

    Example:
        >>> import zoo
        >>> zoo.atanh(zoo.tensor([0.0]))
        tensor([0.])
    """
    kind, domain = "float", (-0.95, 0.95)
    def f(x): return atanh(x)
    def dx(dy, x): return dy / (1 - x * x)


@elementwise
class erf:
    """2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.

    Example:
        >>> import zoo
        >>> zoo.erf(zoo.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8427])
    """
    kind, refuses = "float", "complex"
    def f(x): return erf(x)
    def dx(dy, x): return dy * (1.1283791670955126 * exp(-(x * x)))


@elementwise
class erfc:
    """1 - erf(x), accurate for large x.

    Example:
        >>> import zoo
        >>> zoo.erfc(zoo.tensor([0.0, 1.0]))
        tensor([1.0000, 0.1573])
    """
    kind, refuses = "float", "complex"
    def f(x): return erfc(x)
    def dx(dy, x): return dy * (-1.1283791670955126 * exp(-(x * x)))


@elementwise
class erfinv:
    """The x whose erf(x) is given.

    Example:
        >>> import zoo
        >>> zoo.erfinv(zoo.tensor([0.0, 0.5]))
        tensor([0.0000, 0.4769])
    """
    kind, refuses, domain = "float", "complex", (-0.9, 0.9)
    def f(x): return erfinv(x)
    def dx(dy, x): return dy * (0.886226925452758 * exp(square(erfinv(x))))     # as torch's: y may be changed in place


@elementwise
class lgamma:
    """log |gamma(x)|.

    Example:
        >>> import zoo
        >>> zoo.lgamma(zoo.tensor([1.0, 5.0]))
        tensor([0.0000, 3.1781])
    """
    kind, refuses, domain = "float", "complex", (0.3, 4.0)
    def f(x): return lgamma(x)
    def dx(dy, x): return dy * digamma(x)


@elementwise
class digamma:
    """The derivative of lgamma.

    Example:
        >>> import zoo
        >>> zoo.digamma(zoo.tensor([1.0]))
        tensor([-0.5772])
    """
    kind, refuses, domain = "float", "complex", (0.3, 4.0)
    def f(x): return digamma(x)
    def dx(dy, x): return dy * polygamma(1, x)


@elementwise
class polygamma:
    """The n-th derivative of digamma, n >= 1."""
    kind, refuses, dtypes = "float", "complex", "floats"
    def f(n, x): return polygamma(n, x)
    def dx(dy, n, x): return dy * polygamma(n + 1, x)
    def samples(rng):
        def draw(*shape):
            return rng.uniform(0.3, 4.0, shape)
        return {"ordinary": [(1, draw(3, 4)), (2, draw(4))], "empty": [(1, draw(0, 4))], "0-d": [(1, draw())],
                "odd": [(3, draw(7, 1, 13))], "extreme": [(1, np.array([1e-3, 1e4, np.inf, np.nan, -0.5]))]}


@elementwise
class sigmoid:
    """1 / (1 + exp(-x)).

    Example:
        >>> import zoo
        >>> zoo.sigmoid(zoo.tensor([0.0, 2.0]))
        tensor([0.5000, 0.8808])
    """
    kind = "float"
    def f(x): return sigmoid(x)
    def dx(dy, y): return dy * (y * (1 - y))


@elementwise
class logit:
    """log(x / (1 - x)), the inverse of sigmoid."""
    kind, refuses, domain = "float", "complex", (0.05, 0.95)
    def f(x): return log(x / (1 - x))
    def dx(dy, x):
        root = sqrt(x * (1 - x))                           # nan outside of [0, 1], as torch's gradient is
        return dy / (root * root)


@elementwise
class sinc:
    """sin(pi x) / (pi x), 1 at 0.

    Example:
        >>> import zoo
        >>> zoo.sinc(zoo.tensor([0.0, 0.5]))
        tensor([1.0000, 0.6366])
    """
    kind = "float"
    def f(x):
        t = where(x == 0, 1.0, x * 3.141592653589793)
        return where(x == 0, 1.0, sin(t) / t)
    def dx(dy, x):
        t = where(x == 0, 1.0, x * 3.141592653589793)
        return where(x == 0, 0.0, dy * 3.141592653589793 * ((t * cos(t) - sin(t)) / (t * t)))


@elementwise
class entr:
    """-x log(x), 0 at 0 and -inf below."""
    kind, refuses, domain = "float", "complex", (0.2, 2.0)
    def f(x):
        t = where(x <= 0, 1.0, x)
        return where(x < 0, -1e300 * 1e300, where(x == 0, 0.0, -t * log(t)))
    def dx(dy, x): return dy * (-log(x) - 1)
