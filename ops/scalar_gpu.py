"""What the free names of a formula mean in a Triton kernel: functions that compile, and run in the interpreter.

No libdevice and no inline assembly. Only jit functions: the interpreter swaps the attributes of `tl`, and a formula
that held tl.exp itself would miss that. float32 stays within 4e-7 of NumPy: what activations use is computed in the
dtype of its argument, rarer functions (`wide`) in float64, which costs a data-centre GPU little.
"""
import triton
import triton.language as tl


@triton.jit
def truth(c):
    if c.dtype == tl.int1:
        return c
    else:
        return c != 0


@triton.jit
def where(c, a, b):
    return tl.where(truth(c), a, b)


@triton.jit
def maximum(a, b):
    return tl.where((a > b) | (a != a), a, b)


@triton.jit
def minimum(a, b):
    return tl.where((a < b) | (a != a), a, b)


@triton.jit
def fmax(a, b):
    return tl.where((a >= b) | (b != b), a, b)


@triton.jit
def fmin(a, b):
    return tl.where((a <= b) | (b != b), a, b)


@triton.jit
def bits(x):
    """The bits of a float as a signed integer of its size."""
    if x.dtype == tl.float64:
        return x.to(tl.int64, bitcast=True)
    else:
        return x.to(tl.int32, bitcast=True)


@triton.jit
def signbit(x):
    if x.dtype.is_floating():
        return bits(x) < 0
    else:
        return x < 0


@triton.jit
def isnan(x):
    return x != x


@triton.jit
def isinf(x):
    if x.dtype.is_floating():
        return tl.abs(x) == float("inf")
    else:
        return x != x


@triton.jit
def isfinite(x):
    if x.dtype.is_floating():
        return tl.abs(x) < float("inf")
    else:
        return x == x


@triton.jit
def abs(x):
    return tl.where(x < 0, -x, x) if not x.dtype.is_floating() else tl.abs(x)


@triton.jit
def sign(x):
    if x.dtype.is_floating():
        return tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0)).to(x.dtype)
    else:
        return tl.where(x > 0, x * 0 + 1, tl.where(x < 0, x * 0 - 1, x * 0))


@triton.jit
def conj(x):
    return x


@triton.jit
def copysign(a, b):
    return tl.where(signbit(a) == signbit(b), a, -a)


@triton.jit
def divide(a, b):
    """a / b, correctly rounded."""
    if a.dtype == tl.float32:
        return tl.div_rn(a, b)
    else:
        return a / b


@triton.jit
def reciprocal(x):
    if x.dtype == tl.float32:
        return tl.div_rn(tl.full(x.shape, 1.0, tl.float32), x)
    else:
        return 1.0 / x


@triton.jit
def sqrt(x):
    if x.dtype == tl.float32:
        return tl.sqrt_rn(x)
    else:
        return tl.sqrt(x)


@triton.jit
def rsqrt(x):
    return tl.rsqrt(x)


@triton.jit
def square(x):
    return x * x


@triton.jit
def floor(x):
    return tl.floor(x) if x.dtype.is_floating() else x


@triton.jit
def ceil(x):
    return tl.ceil(x) if x.dtype.is_floating() else x


@triton.jit
def trunc(x):
    return tl.where(x < 0, tl.ceil(x), tl.floor(x)) if x.dtype.is_floating() else x


@triton.jit
def rint(x):
    """To the nearest integer, halves to even."""
    if x.dtype.is_floating():
        low = tl.floor(x)
        part = x - low
        odd = low * 0.5 != tl.floor(low * 0.5)
        y = tl.where((part > 0.5) | ((part == 0.5) & odd), low + 1.0, low)
        return copysign(tl.where(part == part, y, x), x)           # x - x is nan for infinities
    else:
        return x


@triton.jit
def trunc_divide(a, b):
    return trunc(divide(a, b)) if a.dtype.is_floating() else a // b


@triton.jit
def fmod(a, b):
    """The remainder with the sign of a."""
    if a.dtype.is_floating():
        return float_mod(a.to(tl.float64), b.to(tl.float64)).to(a.dtype)
    else:
        return a % b


@triton.jit
def float_mod(a, b):
    """Two rounds of x -= floor(x / step) * step, exact up to a quotient of 2^52: products of 26 and 26 bits."""
    x = tl.abs(a)
    y = tl.abs(b)
    for k in tl.static_range(2):
        step = y * (67108864.0 if k == 0 else 1.0)
        high = (step.to(tl.int64, bitcast=True) & -134217728).to(tl.float64, bitcast=True)
        q = tl.floor(x / step)
        rest = (x - q * high) - q * (step - high)
        rest = tl.where(rest < 0, rest + step, tl.where(rest >= step, rest - step, rest))
        x = tl.where((q >= 1) & (y != float("inf")), rest, x)
    x = tl.where((y == 0) | (tl.abs(a) == float("inf")) | (y != y), float("nan"), x)
    return copysign(x, a)


@triton.jit
def remainder(a, b):
    """The remainder with the sign of b."""
    r = fmod(a, b)
    return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)


@triton.jit
def floor_divide(a, b):
    if a.dtype.is_floating():
        r = fmod(a, b)
        q = divide(a - r, b)
        q = tl.where((r != 0) & ((b < 0) != (r < 0)), q - 1.0, q)
        low = tl.floor(q)
        low = tl.where(q - low > 0.5, low + 1.0, low)
        low = tl.where(q == 0, copysign(q, divide(a, b)), low)
        return tl.where(b == 0, divide(a, b), low)
    else:
        q = a // b
        return tl.where((q * b != a) & ((a < 0) != (b < 0)), q - 1, q)


@triton.jit
def exp(x):
    """e^x. tl.exp of float32 is 2^(x log2 e) with a rounded product, off by 5e-6 at 80: here x is reduced first."""
    if x.dtype == tl.float32:
        n = tl.floor(tl.minimum(tl.maximum(x, -150.0), 150.0) * 1.4426950408889634 + 0.5)
        r = (x - n * 0.693359375) + n * 2.12194440e-4
        half = tl.floor(n * 0.5)
        y = tl.exp2(r * 1.4426950408889634) * power_of_two(half) * power_of_two(n - half)
        return tl.where(x > 89.0, float("inf"), tl.where(x < -104.0, 0.0, y))
    else:
        return tl.exp(x)


@triton.jit
def power_of_two(n):
    """2^n for whole float32 n in [-126, 127]."""
    return ((n.to(tl.int32) + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def exp2(x):
    return tl.exp2(x)


@triton.jit
def expm1(x):
    """e^x - 1: a rational near 0."""
    z = x * x
    p = x * ((1.2617719307481059087798e-4 * z + 3.0299440770744196129956e-2) * z + 1.0)
    q = ((3.0019850513866445504159e-6 * z + 2.5244834034968410419224e-3) * z + 2.2726554820815502876593e-1) * z + 2.0
    near = 2.0 * p / (q - p)
    return tl.where(tl.abs(x) < 0.5, near, exp(x) - 1.0)


@triton.jit
def log(x):
    return tl.log(x)


@triton.jit
def log2(x):
    return tl.log2(x)


@triton.jit
def log1p(x):
    u = 1.0 + x
    y = tl.log(u) + (x - (u - 1.0)) / u
    return tl.where((u == 0) | (u == float("inf")), tl.log(u), tl.where(x == 0, x, y))


@triton.jit
def sin(x):
    return tl.sin(x)


@triton.jit
def cos(x):
    return tl.cos(x)


@triton.jit
def tan(x):
    return tl.sin(x) / tl.cos(x)


@triton.jit
def tanh(x):
    z = x * x
    p = (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3
    q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z + 4.84406305325125486048e3
    e = exp(-2.0 * tl.abs(x))
    far = (1.0 - e) / (1.0 + e)
    return tl.where(tl.abs(x) < 0.625, x + x * z * p / q, tl.where(x < 0, -far, far))


@triton.jit
def sinh(x):
    a = tl.abs(x)
    e = expm1(tl.minimum(a, 80.0))
    half = exp(0.5 * a)
    y = tl.where(a < 80.0, 0.5 * (e + e / (e + 1.0)), 0.5 * half * half)
    return tl.where(x < 0, -y, tl.where(x == 0, x, tl.where(x == x, y, x)))


@triton.jit
def cosh(x):
    half = exp(0.5 * tl.abs(x))
    return 0.5 * half * half + 0.5 / half / half


@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + exp(-x))


@triton.jit
def relu(x):
    return maximum(x, 0)


@triton.jit
def softplus(x):
    """log(1 + exp(x)) without overflow."""
    return maximum(x, 0.0) + log1p(exp(-tl.abs(x)))


@triton.jit
def erf(x):
    return tl.erf(x)


@triton.jit
def logaddexp(a, b):
    high = maximum(a, b)
    return tl.where(a == b, a + 0.6931471805599453, high + log1p(exp(-tl.abs(a - b))))


@triton.jit
def logaddexp2(a, b):
    high = maximum(a, b)
    return tl.where(a == b, a + 1.0, high + log1p(exp2(-tl.abs(a - b))) * 1.4426950408889634)


@triton.jit
def xlogy(a, b):
    return tl.where((a == 0) & (b == b), 0.0, a * tl.log(b))


@triton.jit
def xlog1py(a, b):
    return tl.where((a == 0) & (b == b), 0.0, a * log1p(b))


@triton.jit
def invert(x):
    return ~x if x.dtype != tl.int1 else x == 0


@triton.jit
def shift_left(a, b):
    width: tl.constexpr = a.dtype.primitive_bitwidth
    return tl.where((b < 0) | (b >= width), 0, a << (b & (width - 1)))


@triton.jit
def shift_right(a, b):
    width: tl.constexpr = a.dtype.primitive_bitwidth
    far = tl.where(a < 0, -1, 0).to(a.dtype)
    return tl.where((b < 0) | (b >= width), far, a >> (b & (width - 1)))


NAMES = {f.fn.__name__: f for f in (
    where, maximum, minimum, fmax, fmin, signbit, isnan, isinf, isfinite, abs, sign, conj, copysign, divide, reciprocal,
    sqrt, rsqrt, square, floor, ceil, trunc, rint, trunc_divide, fmod, remainder, floor_divide, exp, exp2, expm1, log,
    log2, log1p, sin, cos, tan, tanh, sinh, cosh, sigmoid, softplus, relu, erf, logaddexp, logaddexp2, xlogy, xlog1py,
    invert, shift_left, shift_right)}
