"""Rarer functions for Triton kernels, computed in float64 whatever the dtype: inverse trigonometry, powers, special."""
import triton
import triton.language as tl

from zoo.ops import scalar_gpu
from zoo.ops.scalar import special_names
from zoo.ops.scalar_gpu import bits, copysign, divide, log1p, rint, signbit


@triton.jit
def pow(a, b):
    if a.dtype.is_floating():
        return float_pow(a.to(tl.float64), b.to(tl.float64)).to(a.dtype)
    else:
        return integer_pow(a, b)


@triton.jit
def float_pow(a, b):
    """Whole exponents up to 64 by squaring, and e^(b log|a|) else, with the cases of IEEE 754."""
    size = tl.abs(b)
    rest = tl.where(size <= 64.0, size, 0.0).to(tl.int32)
    product = a * 0.0 + 1.0
    square = a
    for _ in tl.static_range(7):
        product = tl.where((rest & 1) != 0, product * square, product)
        square = square * square
        rest = rest >> 1
    product = tl.where(b < 0, 1.0 / product, product)
    whole = b == tl.floor(b)
    odd = whole & (b * 0.5 != tl.floor(b * 0.5))
    m = tl.abs(a)
    y = tl.exp(b * tl.log(m))
    y = tl.where((m == 1.0) & (size == float("inf")), 1.0, y)
    y = tl.where((a < 0) & (m != float("inf")) & (whole == 0), (b - b) / (b - b), y)
    y = tl.where(signbit(a) & odd, -y, y)
    y = tl.where(whole & (size <= 64.0), product, y)
    return tl.where((b == 0) | (a == 1.0), 1.0, y)


@triton.jit
def integer_pow(a, b):
    rest = tl.where(b < 0, 0, b)
    product = a * 0 + 1
    square = a
    for _ in range(20):
        product = tl.where((rest & 1) != 0, product * square, product)
        square = square * square
        rest = rest >> 1
    unit = tl.where(a == 1, 1, tl.where(a + 1 == 0, 1 - 2 * (b & 1).to(tl.int32), 0)).to(a.dtype)
    return tl.where(b < 0, unit, product)


@triton.jit
def round_to(x, decimals):
    if x.dtype.is_floating():
        scale = pow(tl.zeros_like(x) + 10.0, tl.abs(decimals))
        y = tl.where(decimals > 0, divide(rint(x * scale), scale), rint(divide(x, scale)) * scale)
        return tl.where(decimals == 0, rint(x), y)
    else:
        return x


@triton.jit
def atan64(x):
    a = tl.abs(x)
    far = a > 2.41421356237309504880
    middle = (a > 0.66) & (far == 0)
    r = tl.where(far, -1.0 / a, tl.where(middle, (a - 1.0) / (a + 1.0), a))
    z = r * r
    p = (((-8.750608600031904122785e-1 * z - 1.615753718733365076637e1) * z - 7.500855792314704667340e1) * z
         - 1.228866684490136173410e2) * z - 6.485021904942025371773e1
    q = ((((z + 2.485846490142306297962e1) * z + 1.650270098316988542046e2) * z + 4.328810604912902668951e2) * z
         + 4.853903996359136964868e2) * z + 1.945506571482613964425e2
    y = r + r * z * p / q
    turn = tl.where(far, x * 0 + 1.5707963267948966, tl.where(middle, x * 0 + 0.78539816339744831, x * 0))
    turn = tl.where(a == float("inf"), 1.5707963267948966, turn)
    y = tl.where(a == float("inf"), 0.0, y) + turn
    return copysign(y, x)


@triton.jit
def atan2_64(y, x):
    a = tl.abs(y)
    b = tl.abs(x)
    both = (a == b) & ((a == float("inf")) | (a == 0))
    angle = atan64(a / b)
    angle = tl.where(both, tl.where(a == 0, a * 0, 0.78539816339744831), angle)
    angle = tl.where(signbit(x), 3.14159265358979323846 - angle, angle)
    return copysign(tl.where((y != y) | (x != x), y + x, angle), y)


@triton.jit
def asin64(x):
    return atan2_64(x, tl.sqrt((1.0 - x) * (1.0 + x)))


@triton.jit
def acos64(x):
    return atan2_64(tl.sqrt((1.0 - x) * (1.0 + x)), x)


@triton.jit
def asinh64(x):
    a = tl.abs(x)
    near = log1p(a + a * a / (1.0 + tl.sqrt(a * a + 1.0)))
    return copysign(tl.where(a > 1e150, tl.log(a) + 0.6931471805599453, near), x)


@triton.jit
def acosh64(x):
    t = x - 1.0
    near = log1p(t + tl.sqrt(t * t + 2.0 * t))
    return tl.where(x > 1e150, tl.log(x) + 0.6931471805599453, near)


@triton.jit
def atanh64(x):
    a = tl.abs(x)
    return copysign(0.5 * log1p(2.0 * a / (1.0 - a)), x)


@triton.jit
def hypot64(a, b):
    high = tl.maximum(tl.abs(a), tl.abs(b))
    low = tl.minimum(tl.abs(a), tl.abs(b))
    r = low / high
    y = tl.where(high == 0, high, high * tl.sqrt(1.0 + r * r))
    y = tl.where((a != a) | (b != b), a + b, y)
    return tl.where((tl.abs(a) == float("inf")) | (tl.abs(b) == float("inf")), float("inf"), y)


@triton.jit
def log10(x):
    return (tl.log(x.to(tl.float64)) * 0.43429448190325182765).to(x.dtype)


@triton.jit
def atan(x):
    return atan64(x.to(tl.float64)).to(x.dtype)


@triton.jit
def asin(x):
    return asin64(x.to(tl.float64)).to(x.dtype)


@triton.jit
def acos(x):
    return acos64(x.to(tl.float64)).to(x.dtype)


@triton.jit
def asinh(x):
    return asinh64(x.to(tl.float64)).to(x.dtype)


@triton.jit
def acosh(x):
    return acosh64(x.to(tl.float64)).to(x.dtype)


@triton.jit
def atanh(x):
    return atanh64(x.to(tl.float64)).to(x.dtype)


@triton.jit
def atan2(a, b):
    return atan2_64(a.to(tl.float64), b.to(tl.float64)).to(a.dtype)


@triton.jit
def hypot(a, b):
    return hypot64(a.to(tl.float64), b.to(tl.float64)).to(a.dtype)


@triton.jit
def nextafter(a, b):
    """The next float from a towards b."""
    up = (a < b) == (a > 0)
    n = bits(a)
    step = (tl.where(up, n + 1, n - 1)).to(a.dtype, bitcast=True)
    tiny = copysign((n * 0 + 1).to(a.dtype, bitcast=True), b)
    y = tl.where(a == b, b, tl.where(a == 0, tiny, step))
    return tl.where((a != a) | (b != b), a + b, y)



# what the formulas of special.py call; filled by `_jitted`, callees first
SPECIAL = dict(scalar_gpu.NAMES, pow=float_pow, __name__=__name__)


def _jitted(name: str):
    """A formula of special.py as a jit function of float64."""
    SPECIAL[name] = triton.jit(special_names(SPECIAL)(name))
    return SPECIAL[name]


_jitted("erf_middle")
_jitted("erfc_tail")
_jitted("lgamma_positive")
erfc64 = _jitted("erfc")
erfinv64 = _jitted("erfinv")
lgamma64 = _jitted("lgamma")
digamma64 = _jitted("digamma")
polygamma64 = _jitted("polygamma")


@triton.jit
def erfc(x):
    return erfc64(x.to(tl.float64)).to(x.dtype)


@triton.jit
def erfinv(x):
    return erfinv64(x.to(tl.float64)).to(x.dtype)


@triton.jit
def lgamma(x):
    return lgamma64(x.to(tl.float64)).to(x.dtype)


@triton.jit
def digamma(x):
    return digamma64(x.to(tl.float64)).to(x.dtype)


@triton.jit
def polygamma(n, x):
    wide = x.to(tl.float64)
    return polygamma64(tl.zeros_like(wide) + n, wide).to(x.dtype)


NAMES = {f.fn.__name__: f for f in (
    pow, round_to, log10, atan, asin, acos, asinh, acosh, atanh, atan2, hypot, nextafter, erfc, erfinv, lgamma, digamma,
    polygamma)}
