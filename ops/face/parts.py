"""torch's questions about the parts of numbers: sign and size of infinities, real and imaginary parts, powers of 2."""
from collections import namedtuple
from math import log, pi

import numpy as np

from zoo.ops.dtypes import COMPLEX, FLOATS, INTS, NUMBERS, bool_, int32, result_type
from zoo.ops.errors import DtypeError
from zoo.ops.op import OPS, into
from zoo.ops.shape import cast, expand, filled

frexp_result = namedtuple("frexp", ("mantissa", "exponent"))


def given(result, out):
    return result if out is None else into(result, out)


def infinite(name, input, value, out):
    if input.dtype in COMPLEX:
        raise DtypeError(f"{name}: wants a real dtype, got {input.dtype}")
    known = input if input.dtype in FLOATS else filled(input, tuple(input.shape), 0)
    return given(OPS["eq"](known, value), out)


def isposinf(input, *, out=None):
    """Is each element +inf?

    Raises:
        DtypeError (TypeError, RuntimeError): complex numbers.

    Example:
        >>> import zoo
        >>> zoo.isposinf(zoo.tensor([1.0, float("inf"), -float("inf")]))
        tensor([False,  True, False])
    """
    return infinite("isposinf", input, float("inf"), out)


def isneginf(input, *, out=None):
    """Is each element -inf?

    Raises:
        DtypeError (TypeError, RuntimeError): complex numbers.

    Example:
        >>> import zoo
        >>> zoo.isneginf(zoo.tensor([1.0, float("inf"), -float("inf")]))
        tensor([False, False,  True])
    """
    return infinite("isneginf", input, -float("inf"), out)


def need_real(name, input):
    """Raises for complex numbers, whose parts are no views here."""
    if input.dtype in COMPLEX:
        raise DtypeError(f"{name}: is not built for {input.dtype}")
    return input


def isreal(input):
    """Is each element real? True for every dtype but complex ones.

    Example:
        >>> import zoo
        >>> zoo.isreal(zoo.tensor([1.0, float("nan")]))
        tensor([True, True])
    """
    return cast(filled(need_real("isreal", input), tuple(input.shape), 1), bool_)


def real(input):
    """The real part: of a real tensor, itself. Raises DtypeError for complex ones.

    Example:
        >>> import zoo
        >>> zoo.real(zoo.tensor([1.0]))
        tensor([1.])
    """
    return need_real("real", input)


def conj(input):
    """The complex conjugate; of a real tensor, itself.

    Example:
        >>> import zoo
        >>> zoo.conj(zoo.tensor([1.0]))
        tensor([1.])
    """
    return OPS["conj"](input) if input.dtype in COMPLEX else input


def resolve_conj(input):
    """input: conjugates are never left to be taken later."""
    return input


def resolve_neg(input):
    """input: negations are never left to be taken later."""
    return input


def conj_physical(input, *, out=None):
    """The complex conjugate; of a real tensor, itself."""
    return given(conj(input), out)


def fill(input, value):
    """A tensor like input with `value`, a number or a 0-d tensor, everywhere.

    Example:
        >>> import zoo
        >>> zoo.fill(zoo.zeros(2), 3)
        tensor([3., 3.])
    """
    everywhere = cast(filled(input, (), 1), bool_)
    return cast(OPS["where"](everywhere, cast(value, input.dtype) if hasattr(value, "dtype") else value, input),
                input.dtype)


def frexp(input, *, out=None):
    """(mantissa, exponent) with input = mantissa * 2^exponent, 0.5 <= |mantissa| < 1, exponent int32; (0, 0) for 0.

    Raises:
        DtypeError (TypeError, RuntimeError): integers.

    Example:
        >>> import zoo
        >>> zoo.frexp(zoo.tensor([6.0])).mantissa.item()
        0.75
    """
    if input.dtype not in FLOATS:
        raise DtypeError(f"frexp: wants a floating dtype, got {input.dtype}")
    size = OPS["abs"](input.detach() if hasattr(input, "detach") else input)
    usual = OPS["logical_and"](OPS["gt"](size, 0), OPS["isfinite"](size))
    size = OPS["where"](usual, size, 0.5)
    power = OPS["floor"](OPS["log2"](size)) + 1.0
    rest = size * OPS["exp2"](-power)                     # log2 may round across a power of 2: one step sets it right
    power = power + cast(OPS["ge"](rest, 1.0), power.dtype) - cast(OPS["lt"](rest, 0.5), power.dtype)
    return given(frexp_result(input * OPS["exp2"](-power), cast(power, int32)), out)


def integers(name, input, other):
    """Both as |integers| of one dtype and shape."""
    if isinstance(input, NUMBERS) or isinstance(other, NUMBERS):
        raise TypeError(f"{name}: wants tensors, got {type(input).__name__} and {type(other).__name__}")
    dtype = result_type(input, other)
    if dtype not in INTS:
        raise DtypeError(f"{name}: wants integers, got {input.dtype} and {other.dtype}")
    shape = np.broadcast_shapes(tuple(input.shape), tuple(other.shape))
    return [OPS["abs"](expand(cast(x, dtype), shape)) for x in (input, other)]


def common(a, b):
    """Euclid's algorithm, on all elements until the last of them is done."""
    while bool(OPS["any"](b)):
        done = OPS["eq"](b, 0)
        rest = OPS["remainder"](a, OPS["where"](done, 1, b))
        a, b = OPS["where"](done, a, b), OPS["where"](done, 0, rest)
    return a


def gcd(input, other, *, out=None):
    """The greatest common divisor of integers, elementwise; gcd(0, 0) = 0.

    Raises:
        DtypeError (TypeError, RuntimeError): other dtypes.

    Example:
        >>> import zoo
        >>> zoo.gcd(zoo.tensor([12, 18]), zoo.tensor(8))
        tensor([4, 2])
    """
    return given(common(*integers("gcd", input, other)), out)


def lcm(input, other, *, out=None):
    """The least common multiple of integers, elementwise; 0 where one of them is 0.

    Raises:
        DtypeError (TypeError, RuntimeError): other dtypes.

    Example:
        >>> import zoo
        >>> zoo.lcm(zoo.tensor([4, 3]), zoo.tensor(6))
        tensor([12,  6])
    """
    a, b = integers("lcm", input, other)
    return given(OPS["abs"](OPS["floor_divide"](a, OPS["clamp_min"](common(a, b), 1)) * b), out)


def mvlgamma(input, p, *, out=None):
    """The logarithm of the multivariate gamma function: p (p - 1) / 4 log(pi) + sum over i < p of lgamma(x - i / 2).

    Example:
        >>> import zoo
        >>> round(zoo.mvlgamma(zoo.tensor([2.0]), 2).item(), 4)
        0.4516
    """
    if input.dtype not in FLOATS:
        input = input * 1.0
    total = OPS["lgamma"](input)
    for i in range(1, p):
        total = total + OPS["lgamma"](input - i / 2)
    return given(total + p * (p - 1) / 4 * log(pi), out)


SAME = ("conj", "conj_physical", "fill", "frexp", "gcd", "isneginf", "isposinf", "isreal", "lcm", "mvlgamma", "real",
        "resolve_conj", "resolve_neg")
FUNCTIONS = SAME
METHODS = tuple(name for name in SAME if name not in ("fill", "real"))
NN_FUNCTIONS = ()
INPLACE = ("conj_physical", "gcd", "lcm", "mvlgamma")
SPECIAL_FUNCTIONS = {"multigammaln": mvlgamma}
