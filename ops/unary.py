"""Elementwise ops of one input: signs, roots, rounding. Rows as in pointwise.py."""
from zoo.ops.binding import elementwise


@elementwise
class neg:
    """-x.

    Example:
        >>> import zoo
        >>> zoo.neg(zoo.tensor([1.0, -2.0]))
        tensor([-1.,  2.])
    """
    refuses = "bool"
    def f(x): return -x
    def dx(dy): return -dy


@elementwise
class positive:
    """x.

    Example:
        >>> import zoo
        >>> zoo.positive(zoo.tensor([-1]))
        tensor([-1])
    """
    refuses = "bool"
    def f(x): return x * 1
    def dx(dy): return dy


@elementwise
class conj:
    """The complex conjugate; x itself if that is real."""
    def f(x): return conj(x)
    def dx(dy): return conj(dy)


@elementwise
class abs:
    """|x|, with slope 0 at 0.

    Example:
        >>> import zoo
        >>> zoo.abs(zoo.tensor([-1.0, 2.0]))
        tensor([1., 2.])
    """
    refuses = "bool complex"
    def f(x): return abs(x)
    def dx(dy, x): return dy * sign(x)


@elementwise
class sign:
    """-1, 0 or 1; 0 for nan.

    Example:
        >>> import zoo
        >>> zoo.sign(zoo.tensor([-3.0, 0.0, 2.0]))
        tensor([-1.,  0.,  1.])
    """
    refuses, dtypes = "complex", "floats ints bool"
    def f(x): return sign(x)
    def dx(dy): return sign(dy) * 0.0


@elementwise
class square:
    """x^2.

    Example:
        >>> import zoo
        >>> zoo.square(zoo.tensor([-3.0]))
        tensor([9.])
    """
    refuses = "bool"
    def f(x): return square(x)
    def dx(dy, x): return dy * (2 * x)


@elementwise
class reciprocal:
    """1 / x.

    Example:
        >>> import zoo
        >>> zoo.reciprocal(zoo.tensor([4.0]))
        tensor([0.2500])
    """
    kind, domain = "float", (0.3, 2.0)
    def f(x): return reciprocal(x)
    def dx(dy, y): return -dy * (y * y)


@elementwise
class sqrt:
    """The square root; nan below 0.

    Example:
        >>> import zoo
        >>> zoo.sqrt(zoo.tensor([9.0]))
        tensor([3.])
    """
    kind, domain = "float", (0.1, 2.0)
    def f(x): return sqrt(x)
    def dx(dy, y): return dy / (2 * y)


@elementwise
class rsqrt:
    """1 / sqrt(x).

    Example:
        >>> import zoo
        >>> zoo.rsqrt(zoo.tensor([4.0]))
        tensor([0.5000])
    """
    kind, domain = "float", (0.1, 2.0)
    def f(x): return rsqrt(x)
    def dx(dy, y): return -0.5 * dy * (y * y * y)


@elementwise
class floor:
    """The next integer below; its gradient is 0.

    Example:
        >>> import zoo
        >>> zoo.floor(zoo.tensor([1.5, -1.5]))
        tensor([ 1., -2.])
    """
    refuses = "bool complex"
    def f(x): return floor(x)
    def dx(dy): return sign(dy) * 0.0


@elementwise
class ceil:
    """The next integer above; its gradient is 0.

    Example:
        >>> import zoo
        >>> zoo.ceil(zoo.tensor([1.5, -1.5]))
        tensor([ 2., -1.])
    """
    refuses = "bool complex"
    def f(x): return ceil(x)
    def dx(dy): return sign(dy) * 0.0


@elementwise
class trunc:
    """Without what is behind the point; its gradient is 0.

    Example:
        >>> import zoo
        >>> zoo.trunc(zoo.tensor([1.5, -1.5]))
        tensor([ 1., -1.])
    """
    refuses = "bool complex"
    def f(x): return trunc(x)
    def dx(dy): return sign(dy) * 0.0


@elementwise
class round:
    """To `decimals` places, halves to the even neighbour; its gradient is 0.

    Example:
        >>> import zoo
        >>> zoo.round(zoo.tensor([0.5, 1.5, 2.5]))
        tensor([0., 2., 2.])
    """
    refuses = "bool complex"
    def f(x, decimals=0): return round_to(x, decimals)
    def dx(dy): return sign(dy) * 0.0


@elementwise
class frac:
    """x - trunc(x).

    Example:
        >>> import zoo
        >>> zoo.frac(zoo.tensor([1.5, -1.5]))
        tensor([ 0.5000, -0.5000])
    """
    refuses, dtypes = "bool int complex", "floats"
    def f(x): return x - trunc(x)
    def dx(dy): return dy


@elementwise
class nan_to_num:
    """nan, inf and -inf replaced by numbers."""
    refuses = "complex"
    dtypes = "floats"
    def f(x, nan=0.0, posinf=3.4028234663852886e38, neginf=-3.4028234663852886e38):
        return where(isinf(x) & (x > 0), posinf, where(isinf(x), neginf, where(x != x, nan, x)))
    def dx(dy, x): return where(isfinite(x), dy, 0.0)


@elementwise
class deg2rad:
    """Degrees to radians: x pi / 180.

    Example:
        >>> import zoo
        >>> zoo.deg2rad(zoo.tensor([180.0]))
        tensor([3.1416])
    """
    kind, refuses = "float", "complex"
    def f(x): return x * 0.017453292519943295
    def dx(dy): return dy * 0.017453292519943295


@elementwise
class rad2deg:
    """Radians to degrees: 180 x / pi.

    Example:
        >>> import zoo
        >>> zoo.rad2deg(zoo.tensor([0.0]))
        tensor([0.])
    """
    kind, refuses = "float", "complex"
    def f(x): return x * 57.29577951308232
    def dx(dy): return dy * 57.29577951308232


@elementwise
class angle:
    """The angle of a real number in the complex plane: 0, or pi below 0; nan stays.

    Example:
        >>> import zoo
        >>> zoo.angle(zoo.tensor([1.0, -2.0]))
        tensor([0.0000, 3.1416])
    """
    kind, refuses = "float", "complex"
    def f(x): return where(x == x, where(x < 0, 3.141592653589793, sign(x) * 0.0), x)
    def dx(dy): return sign(dy) * 0.0
