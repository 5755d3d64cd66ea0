"""torch's elementwise functions: what an Op is not by itself, numbers and options said in ops. The rest are the Ops."""
from zoo.ops import comparison, transcendental, unary
from zoo.ops import pointwise as ops
from zoo.ops.dtypes import FLOATS, HALVES, INTS, NUMBERS, bool_, default_dtype, float32, float64, int64, result_type
from zoo.ops.errors import ArgumentError, DtypeError
from zoo.ops.op import OPS, into
from zoo.ops.pointwise import clamp_max, clamp_min, floor_divide, mul, pow
from zoo.ops.shape import cast

# Ops that are torch's function as they stand: parameters by torch's names, `out=` and broadcasting by the Op.
BINARY = ("addcdiv", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
          "bitwise_xor", "clamp_max", "clamp_min", "copysign", "eq", "floor_divide", "fmax", "fmin", "fmod", "ge", "gt",
          "hypot", "le", "lerp", "logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor", "lt", "maximum",
          "minimum", "mul", "ne", "nextafter", "pow", "remainder", "xlogy")
UNARY = ("abs", "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos", "cosh",
         "deg2rad", "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "frac", "isfinite", "isinf",
         "isnan", "lgamma", "log", "log1p", "log2", "log10", "logical_not", "neg", "positive", "rad2deg",
         "reciprocal", "round", "rsqrt", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "sqrt", "tan", "tanh",
         "trunc")
ALIASES = {"absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
           "arctan": "atan", "arctanh": "atanh", "arctan2": "atan2", "fix": "trunc", "greater": "gt",
           "greater_equal": "ge", "less": "lt",
           "less_equal": "le", "multiply": "mul", "negative": "neg", "not_equal": "ne", "sgn": "sign"}
# The binary ones that take no number at all, and those that take one in the second place only.
TENSORS = ("atan2", "fmax", "fmin", "logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor", "maximum",
           "minimum")
SECOND = ("copysign", "eq", "fmod", "ge", "gt", "le", "lt", "ne")


def strict(op, second: bool):
    """An op as a function that refuses a Python number as input, and as other unless `second`, as torch's does."""
    def call(input, other, *, out=None):
        if isinstance(input, NUMBERS) or not second and isinstance(other, NUMBERS):
            raise TypeError(f"{op.name}: wants tensors, got {type(input).__name__} and {type(other).__name__}")
        return given(op(input, other), out)
    call.__name__ = call.__qualname__ = op.name
    call.__doc__ = op.__doc__
    return call


def given(result, out):
    """The result, or `out` with the result moved into it."""
    return result if out is None else into(result, out)


def scaled(op: str, other, alpha, *inputs):
    """other * alpha. Raises where alpha's kind does not fit the inputs' dtype."""
    if type(alpha) is int and alpha == 1:
        return other
    dtype = result_type(*inputs)
    if isinstance(alpha, bool) and dtype != bool_:
        raise ArgumentError(f"{op}: Boolean alpha only supported for Boolean results, got dtype {dtype}")
    if isinstance(alpha, float) and dtype in INTS | {bool_}:
        raise ArgumentError(f"{op}: For integral input tensors, argument alpha must not be a floating point number, "
                            f"got {alpha}")
    if isinstance(other, NUMBERS):
        return other * alpha
    return mul(other if other.dtype == dtype else cast(other, dtype), bool(alpha) if dtype == bool_ else alpha)


def add(input, other, *, alpha=1, out=None):
    """input + alpha * other, broadcast and promoted.

    Raises:
        ShapeError: shapes that do not broadcast.
        ArgumentError: alpha is a float and the inputs are integers.

    Example:
        >>> import zoo
        >>> zoo.add(zoo.tensor([1.0, 2.0]), zoo.tensor([1.0, 1.0]), alpha=10).tolist()
        [11.0, 12.0]
    """
    return given(ops.add(input, scaled("add", other, alpha, input, other)), out)


def sub(input, other, *, alpha=1, out=None):
    """input - alpha * other, broadcast and promoted.

    Raises:
        ShapeError: shapes that do not broadcast.
        DtypeError: two bools.

    Example:
        >>> import zoo
        >>> zoo.sub(zoo.tensor([3, 4]), 1, alpha=2).tolist()
        [1, 2]
    """
    return given(ops.sub(input, scaled("sub", other, alpha, input, other)), out)


def rsub(input, other, *, alpha=1):
    """other - alpha * input.

    Example:
        >>> import zoo
        >>> zoo.rsub(zoo.tensor([1.0, 2.0]), 10).tolist()
        [9.0, 8.0]
    """
    if isinstance(input, NUMBERS):
        raise TypeError(f"rsub: wants a tensor as input, got {type(input).__name__}")
    return ops.sub(other, scaled("rsub", input, alpha, input, other))


def div(input, other, *, rounding_mode=None, out=None):
    """input / other; rounding_mode "trunc" rounds towards 0, "floor" down, and both keep integers integers.

    Raises:
        ShapeError: shapes that do not broadcast.
        ArgumentError: an unknown rounding_mode, or an integer division by 0.

    Example:
        >>> import zoo
        >>> zoo.div(zoo.tensor([7, -7]), 2, rounding_mode="floor").tolist()
        [3, -4]
    """
    table = {None: ops.div, "trunc": ops.trunc_divide, "floor": floor_divide}
    if rounding_mode not in table:
        raise ArgumentError(f"div: wants rounding_mode None, 'trunc' or 'floor', got {rounding_mode!r}")
    return given(table[rounding_mode](input, other), out)


def true_divide(input, other, *, out=None):
    """input / other, never rounded.

    Example:
        >>> import zoo
        >>> zoo.true_divide(zoo.tensor([1, 2]), 2).tolist()
        [0.5, 1.0]
    """
    return given(ops.div(input, other), out)


def as_double(x):
    """An array as float64, a number as float."""
    return float(x) if isinstance(x, NUMBERS) else cast(x, float64)


def float_power(input, exponent, *, out=None):
    """input to the power of exponent, in float64.

    Example:
        >>> import zoo
        >>> zoo.float_power(zoo.tensor([2, 3]), -1).dtype
        dtype('float64')
    """
    return given(pow(as_double(input), as_double(exponent)), out)


def ldexp(input, other, *, out=None):
    """input * 2^other.

    Example:
        >>> import zoo
        >>> zoo.ldexp(zoo.tensor([1.0]), zoo.tensor([3])).item()
        8.0
    """
    if isinstance(input, NUMBERS) or isinstance(other, NUMBERS):
        raise TypeError(f"ldexp: wants tensors, got {type(input).__name__} and {type(other).__name__}")
    dtype = result_type(input, other)
    dtype = default_dtype() if dtype in INTS or dtype == bool_ else dtype
    wide = float32 if dtype in HALVES else dtype
    return given(cast(mul(cast(input, wide), pow(2.0, cast(other, wide))), dtype), out)


def heaviside(input, values, *, out=None):
    """0 where input < 0, 1 where input > 0, and `values` at 0.

    Raises:
        DtypeError: two dtypes.

    Example:
        >>> import zoo
        >>> zoo.heaviside(zoo.tensor([-1.0, 0.0, 2.0]), zoo.tensor(0.5)).tolist()
        [0.0, 0.5, 1.0]
    """
    if not hasattr(values, "dtype"):
        raise TypeError(f"heaviside: wants a tensor of values, got {type(values).__name__}")
    if input.dtype != values.dtype:
        raise DtypeError(f"heaviside: wants one dtype, got {input.dtype} and {values.dtype}")
    op = OPS["logical_or"] if input.dtype == bool_ else ops.heaviside
    return given(op(input, values), out)


def clamp(input, min=None, max=None, *, out=None):
    """Elements below `min` become min, those above `max` become max; a nan stays. Either bound may be None.

    y = min(max(x, min), max). Bounds are numbers or tensors that broadcast.

    Raises:
        ArgumentError: both bounds are None.

    Example:
        >>> import zoo
        >>> zoo.clamp(zoo.tensor([-1.0, 0.5, 2.0]), 0, 1).tolist()
        [0.0, 0.5, 1.0]
    """
    if min is None and max is None:
        raise ArgumentError("clamp: wants min, max or both, got neither")
    if max is None:
        return given(clamp_min(input, min), out)
    if min is None:
        return given(clamp_max(input, max), out)
    return given(ops.clamp(input, min, max), out)


def square(input, *, out=None):
    """input^2; bools become int64.

    Example:
        >>> import zoo
        >>> zoo.square(zoo.tensor([-3.0]))
        tensor([9.])
    """
    return given(cast(input, int64) if input.dtype == bool_ else unary.square(input), out)


def nan_to_num(input, nan=0.0, posinf=None, neginf=None, *, out=None):
    """nan, inf and -inf replaced; by default by 0 and the largest and smallest number of the dtype.

    Example:
        >>> import zoo
        >>> zoo.nan_to_num(zoo.tensor([float("nan"), 1.0, float("inf")]), posinf=9.0).tolist()
        [0.0, 1.0, 9.0]
    """
    if input.dtype not in FLOATS:
        return given(mul(input, True) if input.dtype != bool_ else comparison.logical_or(input, False), out)
    largest = LARGEST[input.dtype.name]
    nan, posinf = 0.0 if nan is None else nan, largest if posinf is None else posinf
    return given(unary.nan_to_num(input, float(nan), float(posinf), -largest if neginf is None else float(neginf)), out)


LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38,
           "float64": 1.7976931348623157e308}


def logit(input, eps=None, *, out=None):
    """log(x / (1 - x)), of x first moved into [eps, 1 - eps] where eps is given.

    Example:
        >>> import zoo
        >>> zoo.logit(zoo.tensor([0.5, 0.0]), eps=0.5).tolist()
        [0.0, 0.0]
    """
    if eps is not None:
        input = ops.clamp(input if input.dtype in FLOATS else mul(input, 1.0), eps, 1 - eps)
    return given(transcendental.logit(input), out)


def polygamma(n, input, *, out=None):
    """The n-th derivative of digamma.

    Raises:
        ArgumentError: n is negative.

    Example:
        >>> import zoo
        >>> round(zoo.polygamma(1, zoo.tensor([1.0])).item(), 5)
        1.64493
    """
    if n < 0:
        raise ArgumentError(f"polygamma: wants n >= 0, got {n}")
    return given(transcendental.digamma(input) if n == 0 else transcendental.polygamma(n, input), out)


def isclose(input, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    """|input - other| <= atol + rtol |other|, elementwise; infinities are close to themselves.

    Raises:
        DtypeError: two dtypes.
        ArgumentError: a negative tolerance.

    Example:
        >>> import zoo
        >>> zoo.isclose(zoo.tensor([1.0, 2.0]), zoo.tensor([1.0, 2.1])).tolist()
        [True, False]
    """
    if input.dtype != other.dtype:
        raise DtypeError(f"isclose: wants one dtype, got {input.dtype} and {other.dtype}")
    if rtol < 0 or atol < 0:
        raise ArgumentError(f"isclose: wants tolerances >= 0, got rtol={rtol}, atol={atol}")
    if input.dtype == bool_:
        return comparison.eq(input, other)
    if input.dtype in INTS:
        input, other = cast(input, float64), cast(other, float64)
    return comparison.isclose(input, other, float(rtol), float(atol), bool(equal_nan))


def allclose(input, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether `isclose` holds everywhere, as a Python bool.

    Example:
        >>> import zoo
        >>> zoo.allclose(zoo.tensor([1.0]), zoo.tensor([1.0 + 1e-7]))
        True
    """
    return bool(OPS["all"](isclose(input, other, rtol, atol, equal_nan)))


def addcmul(input, tensor1, tensor2, *, value=1, out=None):
    """input + value * tensor1 * tensor2, broadcast and promoted; of integers, value counts without its fraction.

    Example:
        >>> import zoo
        >>> zoo.addcmul(zoo.tensor([1.0]), zoo.tensor([2.0]), zoo.tensor([3.0]), value=0.5)
        tensor([4.])
    """
    if isinstance(value, float) and result_type(input, tensor1, tensor2) in INTS:
        value = int(value)
    return given(ops.addcmul(input, tensor1, tensor2, value), out)


def where(condition, input=None, other=None, *, out=None):
    """Elements of `input` where condition, else those of `other`; with a condition alone, the indices of its Trues.

    Raises:
        DtypeError: condition is not bool.
        ShapeError: shapes that do not broadcast.

    Example:
        >>> import zoo
        >>> zoo.where(zoo.tensor([True, False]), zoo.tensor([1.0, 2.0]), 0.0).tolist()
        [1.0, 0.0]
    """
    if input is None and other is None:
        from zoo.ops.face.index import nonzero
        return nonzero(condition, as_tuple=True)
    return given(ops.where(condition, input, other), out)


globals().update({name: OPS[name] for name in (*BINARY, *UNARY)})
globals().update({name: strict(OPS[name], name in SECOND) for name in (*TENSORS, *SECOND)})
globals().update({name: globals()[of] for name, of in ALIASES.items()})
subtract, divide, clip = sub, div, clamp
OWN = ("add", "addcmul", "clamp", "clip", "div", "divide", "float_power", "heaviside", "ldexp", "logit", "nan_to_num",
       "square", "sub", "subtract", "true_divide")
SAME = (*BINARY, *UNARY, *ALIASES, *OWN)
FUNCTIONS = (*SAME, "rsub", "polygamma", "isclose", "allclose", "where")
METHODS = (*SAME, "isclose", "allclose")
NN_FUNCTIONS = ("tanh", "sigmoid")
INPLACE = SAME
