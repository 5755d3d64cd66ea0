"""Elementwise ops that compare, combine truth values and bits. Rows as in pointwise.py."""
from zoo.ops.binding import elementwise


@elementwise
class eq:
    """a == b.

    Example:
        >>> import zoo
        >>> zoo.eq(zoo.tensor([1, 2]), 2)
        tensor([False,  True])
    """
    kind = "bool"
    def f(a, b): return a == b


@elementwise
class ne:
    """a != b.

    Example:
        >>> import zoo
        >>> zoo.ne(zoo.tensor([1, 2]), 2)
        tensor([ True, False])
    """
    kind = "bool"
    def f(a, b): return a != b


@elementwise
class lt:
    """a < b.

    Example:
        >>> import zoo
        >>> zoo.lt(zoo.tensor([1, 2]), 2)
        tensor([ True, False])
    """
    kind, refuses = "bool", "complex"
    def f(a, b): return a < b


@elementwise
class le:
    """a <= b.

    Example:
        >>> import zoo
        >>> zoo.le(zoo.tensor([1, 2]), 2)
        tensor([True, True])
    """
    kind, refuses = "bool", "complex"
    def f(a, b): return a <= b


@elementwise
class gt:
    """a > b.

    Example:
        >>> import zoo
        >>> zoo.gt(zoo.tensor([1, 2]), 1)
        tensor([False,  True])
    """
    kind, refuses = "bool", "complex"
    def f(a, b): return a > b


@elementwise
class ge:
    """a >= b.

    Example:
        >>> import zoo
        >>> zoo.ge(zoo.tensor([1, 2]), 2)
        tensor([False,  True])
    """
    kind, refuses = "bool", "complex"
    def f(a, b): return a >= b


@elementwise
class logical_and:
    """a and b as truth values.

    Example:
        >>> import zoo
        >>> zoo.logical_and(zoo.tensor([0, 2]), zoo.tensor([1, 1]))
        tensor([False,  True])
    """
    kind = "bool"
    def f(a, b): return (a != 0) & (b != 0)


@elementwise
class logical_or:
    """a or b as truth values.

    Example:
        >>> import zoo
        >>> zoo.logical_or(zoo.tensor([0, 2]), zoo.tensor([0, 1]))
        tensor([False,  True])
    """
    kind = "bool"
    def f(a, b): return (a != 0) | (b != 0)


@elementwise
class logical_xor:
    """Whether one of a and b is true, but not both.

    Example:
        >>> import zoo
        >>> zoo.logical_xor(zoo.tensor([0, 2]), zoo.tensor([1, 1]))
        tensor([ True, False])
    """
    kind = "bool"
    def f(a, b): return (a != 0) ^ (b != 0)


@elementwise
class logical_not:
    """Whether x is 0 or False.

    Example:
        >>> import zoo
        >>> zoo.logical_not(zoo.tensor([0, 2]))
        tensor([ True, False])
    """
    kind = "bool"
    def f(x): return x == 0


@elementwise
class bitwise_and:
    """a & b of integers or bools.

    Example:
        >>> import zoo
        >>> zoo.bitwise_and(zoo.tensor([6]), 3)
        tensor([2])
    """
    kind = "int"
    def f(a, b): return a & b


@elementwise
class bitwise_or:
    """a | b of integers or bools.

    Example:
        >>> import zoo
        >>> zoo.bitwise_or(zoo.tensor([6]), 3)
        tensor([7])
    """
    kind = "int"
    def f(a, b): return a | b


@elementwise
class bitwise_xor:
    """a ^ b of integers or bools.

    Example:
        >>> import zoo
        >>> zoo.bitwise_xor(zoo.tensor([6]), 3)
        tensor([5])
    """
    kind = "int"
    def f(a, b): return a ^ b


@elementwise
class bitwise_not:
    """~x of integers or bools.

    Example:
        >>> import zoo
        >>> zoo.bitwise_not(zoo.tensor([0, 5]))
        tensor([-1, -6])
    """
    kind = "int"
    def f(x): return invert(x)


@elementwise
class bitwise_left_shift:
    """a * 2^b; 0 for shifts that are negative or as wide as the dtype.

    Example:
        >>> import zoo
        >>> zoo.bitwise_left_shift(zoo.tensor([1, 3]), 2)
        tensor([ 4, 12])
    """
    kind, refuses, dtypes, domain = "int", "bool", "ints", (0.0, 3.0)
    def f(a, b): return shift_left(a, b)


@elementwise
class bitwise_right_shift:
    """a / 2^b rounded down, so that the sign is kept.

    Example:
        >>> import zoo
        >>> zoo.bitwise_right_shift(zoo.tensor([8, -8]), 2)
        tensor([ 2, -2])
    """
    kind, refuses, dtypes, domain = "int", "bool", "ints", (0.0, 3.0)
    def f(a, b): return shift_right(a, b)


@elementwise
class isclose:
    """|a - b| <= atol + rtol |b|, infinities equal themselves."""
    kind, refuses, dtypes = "bool", "bool int complex", "floats"
    def f(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
        near = (abs(a - b) <= atol + abs(rtol * b)) & isfinite(a) & isfinite(b)
        return (a == b) | near | ((equal_nan != 0) & (a != a) & (b != b))


@elementwise
class isnan:
    """Whether x is nan.

    Example:
        >>> import zoo
        >>> zoo.isnan(zoo.tensor([1.0, float('nan')]))
        tensor([False,  True])
    """
    kind = "bool"
    def f(x): return isnan(x)


@elementwise
class isinf:
    """Whether x is inf or -inf.

    Example:
        >>> import zoo
        >>> zoo.isinf(zoo.tensor([1.0, float('-inf')]))
        tensor([False,  True])
    """
    kind = "bool"
    def f(x): return isinf(x)


@elementwise
class isfinite:
    """Whether x is neither nan nor infinite.

    Example:
        >>> import zoo
        >>> zoo.isfinite(zoo.tensor([1.0, float('inf')]))
        tensor([ True, False])
    """
    kind = "bool"
    def f(x): return isfinite(x)


@elementwise
class signbit:
    """Whether the sign bit is set: also for -0.0.

    Example:
        >>> import zoo
        >>> zoo.signbit(zoo.tensor([0.0, -0.0, -1.0]))
        tensor([False,  True,  True])
    """
    kind, refuses = "bool", "complex"
    def f(x): return signbit(x)
