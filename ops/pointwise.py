"""Elementwise ops of two and three inputs: arithmetic, comparison, logic, bits, selection.

A row is a scalar formula `f` and its derivatives: `dx` by the input `x`, of what it reads by name. The free names (exp,
where, erf ...) are bound in binding.py: to NumPy, to Triton, and to these ops themselves. Formulas have no branches:
use where. Derivatives at ties and kinks are torch's (tools/autograd/derivatives.yaml).
"""
import numpy as np

from zoo.ops.binding import elementwise


def divisor_samples(rng):
    """Like the default ones, with divisors that stay away from 0, also as integers."""
    def pair(*shape):
        return rng.uniform(-2, 2, shape), np.asarray(rng.uniform(0.4, 2, shape) * rng.choice([-1.0, 1.0], shape))
    a, b = np.meshgrid([0.0, -0.0, 1.0, -1.0, 7.0, -7.0, 1e4, -1e4, np.inf, -np.inf, np.nan],
                       [1.0, -1.0, 2.0, -3.0, 1e4, np.inf])
    return {"ordinary": [pair(3, 4), (pair(3, 4)[0], pair(4)[1])], "empty": [pair(0, 4)], "0-d": [pair()],
            "odd": [pair(7, 1, 13), pair(1031)], "extreme": [(a.ravel(), b.ravel())]}


@elementwise
class add:
    """a + b."""
    dtypes = "floats ints bool"
    def f(a, b): return a + b
    def da(dy): return dy
    def db(dy): return dy


@elementwise
class sub:
    """a - b."""
    refuses = "bool any-bool"
    def f(a, b): return a - b
    def da(dy): return dy
    def db(dy): return -dy


@elementwise
class mul:
    """a * b, broadcast and promoted.

    Example:
        >>> import zoo
        >>> zoo.mul(zoo.tensor([1.0, 2.0]), 3)
        tensor([3., 6.])
    """
    dtypes = "floats ints bool"
    def f(a, b): return a * b
    def da(dy, b): return dy * b
    def db(dy, a): return dy * a


@elementwise
class div:
    """a / b."""
    kind, domain = "float", (0.3, 2.0)
    def f(a, b): return divide(a, b)
    def da(dy, b): return dy / b
    def db(dy, a, b): return -dy * (a / b / b)             # reads no y: x / b may be changed in place, as in torch


@elementwise
class floor_divide:
    """a / b rounded down; integers stay integers. Raises ArgumentError for an integer divided by 0.

    Example:
        >>> import zoo
        >>> zoo.floor_divide(zoo.tensor([7, -7]), 2)
        tensor([ 3, -4])
    """
    refuses = "bool complex"
    samples = divisor_samples
    def f(a, b): return floor_divide(a, b)
    def da(dy): return sign(dy) * 0.0
    def db(dy): return sign(dy) * 0.0


@elementwise
class trunc_divide:
    """a / b rounded towards 0: what div(a, b, rounding_mode="trunc") is."""
    refuses = "bool complex"
    samples = divisor_samples
    def f(a, b): return trunc_divide(a, b)
    def da(dy): return sign(dy) * 0.0
    def db(dy): return sign(dy) * 0.0


@elementwise
class remainder:
    """a - b floor(a / b), with the sign of b. Raises ArgumentError for an integer divided by 0.

    Example:
        >>> import zoo
        >>> zoo.remainder(zoo.tensor([7, -7]), 3)
        tensor([1, 2])
    """
    refuses = "bool complex"
    samples = divisor_samples
    def f(a, b): return remainder(a, b)
    def da(dy): return dy
    def db(dy, a, b): return -dy * floor_divide(a, b)


@elementwise
class fmod:
    """a - b trunc(a / b), with the sign of a. Raises ArgumentError for an integer divided by 0.

    Example:
        >>> import zoo
        >>> zoo.fmod(zoo.tensor([7, -7]), 3)
        tensor([ 1, -1])
    """
    refuses = "bool complex"
    samples = divisor_samples
    def f(a, b): return fmod(a, b)
    def da(dy): return dy
    def db(dy, a, b): return -dy * trunc_divide(a, b)


@elementwise
class pow:
    """a to the power of exponent. Raises ArgumentError for an integer to a negative number.

    Example:
        >>> import zoo
        >>> zoo.pow(zoo.tensor([1.0, 3.0]), 2)
        tensor([1., 9.])
    """
    refuses = "bool"
    domain = (0.2, 2.0)
    def f(a, exponent): return pow(a, exponent)
    def da(dy, a, exponent): return where(exponent == 0, 0.0, dy * (exponent * pow(a, exponent - 1)))
    def dexponent(dy, a, exponent, y): return where((a == 0) & (exponent >= 0), 0.0, xlogy(dy * y, a))


@elementwise
class maximum:
    """The larger of a and b; nan if one is. A tie halves the gradient.

    Example:
        >>> import zoo
        >>> zoo.maximum(zoo.tensor([1.0, 5.0]), zoo.tensor([3.0, 2.0]))
        tensor([3., 5.])
    """
    refuses = "complex"
    dtypes = "floats ints bool"
    def f(a, b): return maximum(a, b)
    def da(dy, a, b): return where(a == b, dy * 0.5, where(a < b, 0.0, dy))
    def db(dy, a, b): return where(a == b, dy * 0.5, where(b < a, 0.0, dy))


@elementwise
class minimum:
    """The smaller of a and b; nan if one is. A tie halves the gradient.

    Example:
        >>> import zoo
        >>> zoo.minimum(zoo.tensor([1.0, 5.0]), zoo.tensor([3.0, 2.0]))
        tensor([1., 2.])
    """
    refuses = "complex"
    dtypes = "floats ints bool"
    def f(a, b): return minimum(a, b)
    def da(dy, a, b): return where(a == b, dy * 0.5, where(a > b, 0.0, dy))
    def db(dy, a, b): return where(a == b, dy * 0.5, where(b > a, 0.0, dy))


@elementwise
class fmax:
    """The larger of a and b; a number rather than a nan. The gradient of a tie goes to a.

    Example:
        >>> import zoo
        >>> zoo.fmax(zoo.tensor([1.0, float('nan')]), zoo.tensor([3.0, 2.0]))
        tensor([3., 2.])
    """
    refuses = "complex"
    def f(a, b): return fmax(a, b)
    def da(dy, a, b): return where((a >= b) | (b != b), dy, 0.0)
    def db(dy, a, b): return where((a >= b) | (b != b), 0.0, dy)


@elementwise
class fmin:
    """The smaller of a and b; a number rather than a nan. The gradient of a tie goes to a.

    Example:
        >>> import zoo
        >>> zoo.fmin(zoo.tensor([1.0, float('nan')]), zoo.tensor([3.0, 2.0]))
        tensor([1., 2.])
    """
    refuses = "complex"
    def f(a, b): return fmin(a, b)
    def da(dy, a, b): return where((a <= b) | (b != b), dy, 0.0)
    def db(dy, a, b): return where((a <= b) | (b != b), 0.0, dy)


@elementwise
class atan2:
    """The angle of the point (b, a) in (-pi, pi].

    Example:
        >>> import zoo
        >>> zoo.atan2(zoo.tensor([1.0]), zoo.tensor([0.0]))
        tensor([1.5708])
    """
    kind, refuses = "float", "complex"
    def f(a, b): return atan2(a, b)
    def da(dy, a, b): return dy * where((a == 0) & (b == 0), 0.0, b / (a * a + b * b))
    def db(dy, a, b): return dy * where((a == 0) & (b == 0), 0.0, -a / (a * a + b * b))


@elementwise
class hypot:
    """sqrt(a^2 + b^2), without overflow.

    Example:
        >>> import zoo
        >>> zoo.hypot(zoo.tensor([3.0]), zoo.tensor([4.0]))
        tensor([5.])
    """
    refuses, dtypes = "bool int complex", "floats"
    def f(a, b): return hypot(a, b)
    def da(dy, a, y): return dy * (a / y)
    def db(dy, b, y): return dy * (b / y)


@elementwise
class copysign:
    """|a| with the sign of b.

    Example:
        >>> import zoo
        >>> zoo.copysign(zoo.tensor([1.0, 2.0]), -1)
        tensor([-1., -2.])
    """
    kind, refuses = "float", "complex"
    def f(a, b): return copysign(a, b)
    def da(dy, a, y): return dy * where(a == 0, 0.0, y / a)
    def db(dy): return sign(dy) * 0.0


@elementwise
class nextafter:
    """The float next to a on the way to b.

    Example:
        >>> import zoo
        >>> zoo.nextafter(zoo.tensor([1.0]), zoo.tensor([2.0])) > 1
        tensor([True])
    """
    refuses, dtypes = "bool int complex", "floats"
    def f(a, b): return nextafter(a, b)
    def da(dy): return dy
    def db(dy): return sign(dy) * 0.0


@elementwise
class logaddexp:
    """log(exp(a) + exp(b)), without overflow.

    Example:
        >>> import zoo
        >>> zoo.logaddexp(zoo.tensor([100.0]), zoo.tensor([100.0]))
        tensor([100.6931])
    """
    refuses, dtypes = "bool int complex", "floats"
    def f(a, b): return logaddexp(a, b)
    def da(dy, a, b): return dy / (1 + exp(b - a))
    def db(dy, a, b): return dy / (1 + exp(a - b))


@elementwise
class logaddexp2:
    """log2(2^a + 2^b), without overflow.

    Example:
        >>> import zoo
        >>> zoo.logaddexp2(zoo.tensor([100.0]), zoo.tensor([100.0]))
        tensor([101.])
    """
    refuses, dtypes = "bool int complex", "floats"
    def f(a, b): return logaddexp2(a, b)
    def da(dy, a, b): return dy / (1 + exp2(b - a))
    def db(dy, a, b): return dy / (1 + exp2(a - b))


@elementwise
class xlogy:
    """a log(b), and 0 where a is 0.

    Example:
        >>> import zoo
        >>> zoo.xlogy(zoo.tensor([0.0, 1.0]), zoo.tensor([0.0, 1.0]))
        tensor([0., 0.])
    """
    kind, refuses, domain = "float", "complex", (0.2, 2.0)
    def f(a, b): return xlogy(a, b)
    def da(dy, a, b): return where((a == 0) & (b <= 0), 0.0, xlogy(dy, b))
    def db(dy, a, b): return dy * a / b


@elementwise
class xlog1py:
    """a log1p(b), 0 where a is 0."""
    kind, refuses, domain = "float", "complex", (0.2, 2.0)
    def f(a, b): return xlog1py(a, b)
    def da(dy, a, b): return where((a == 0) & (b <= -1), 0.0, xlog1py(dy, b))
    def db(dy, a, b): return dy * a / (b + 1)


@elementwise
class heaviside:
    """0 for a < 0, 1 for a > 0, values at 0."""
    refuses = "complex"
    def f(a, values): return where(a == 0, values, maximum(sign(a), 0))


@elementwise
class where:
    dtypes = "floats ints bool"
    def f(c, a, b): return where(c, a, b)
    def da(dy, c): return where(c, dy, 0.0)
    def db(dy, c): return where(c, 0.0, dy)
    def samples(rng):
        def draw(*shape):
            return rng.uniform(size=shape) > 0.5, rng.normal(size=shape), rng.normal(size=shape)
        return {"ordinary": [draw(3, 4)], "empty": [draw(0)], "0-d": [draw()],
                "odd": [(rng.uniform(size=(7, 1, 13)) > 0.5, rng.normal(size=(5, 13)), rng.normal(size=()))],
                "extreme": [(np.arange(6) % 2 == 0, np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e4]), np.zeros(6))]}


@elementwise
class clamp:
    """min(max(x, min), max); a nan stays a nan."""
    refuses = "complex"
    def f(x, min, max): return minimum(maximum(x, min), max)
    def dx(dy, x, min, max): return where((x >= min) & (x <= max), dy, 0.0)
    def dmin(dy, x, min, max): return where((min < max) & (x < min), dy, 0.0)
    def dmax(dy, x, min, max): return where((x > max) | (max < min), dy, 0.0)


@elementwise
class clamp_min:
    """Elements below min become min.

    Example:
        >>> import zoo
        >>> zoo.clamp_min(zoo.tensor([1.0, 3.0]), 2)
        tensor([2., 3.])
    """
    refuses = "complex"
    def f(x, min): return maximum(x, min)
    def dx(dy, x, min): return where(x >= min, dy, 0.0)
    def dmin(dy, x, min): return where(x < min, dy, 0.0)


@elementwise
class clamp_max:
    """Elements above max become max.

    Example:
        >>> import zoo
        >>> zoo.clamp_max(zoo.tensor([1.0, 3.0]), 2)
        tensor([1., 2.])
    """
    refuses = "complex"
    def f(x, max): return minimum(x, max)
    def dx(dy, x, max): return where(x <= max, dy, 0.0)
    def dmax(dy, x, max): return where(x > max, dy, 0.0)


@elementwise
class lerp:
    """a + weight (end - a), exact at both ends.

    Example:
        >>> import zoo
        >>> zoo.lerp(zoo.tensor([0.0]), zoo.tensor([10.0]), 0.25)
        tensor([2.5000])
    """
    refuses, dtypes = "bool int", "floats"
    def f(a, end, weight): return where(abs(weight) < 0.5, a + weight * (end - a), end - (end - a) * (1 - weight))
    def da(dy, weight): return dy * (1 - weight)
    def dend(dy, weight): return dy * weight
    def dweight(dy, a, end): return dy * (end - a)


@elementwise
class addcmul:
    """x + value tensor1 tensor2."""
    refuses = "bool"
    def f(x, tensor1, tensor2, value=1): return x + value * tensor1 * tensor2
    def dx(dy): return dy
    def dtensor1(dy, tensor2, value): return dy * (tensor2 * value)
    def dtensor2(dy, tensor1, value): return dy * (tensor1 * value)


@elementwise
class addcdiv:
    """x + value tensor1 / tensor2.

    Example:
        >>> import zoo
        >>> zoo.addcdiv(zoo.tensor([1.0]), zoo.tensor([2.0]), zoo.tensor([4.0]), value=2)
        tensor([2.])
    """
    refuses, dtypes = "bool int", "floats"
    def f(x, tensor1, tensor2, value=1): return x + value * tensor1 / tensor2
    def dx(dy): return dy
    def dtensor1(dy, tensor2, value): return dy * (value / tensor2)
    def dtensor2(dy, tensor1, tensor2, value): return -dy * (value * tensor1) / (tensor2 * tensor2)
    def samples(rng):
        made = divisor_samples(rng)
        return {kind: [(a, a[::-1] if a.ndim else a, b) for a, b in rows] for kind, rows in made.items()}
