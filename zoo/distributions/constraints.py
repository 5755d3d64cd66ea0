"""Constraints: which values a parameter or a sample may have, as torch.distributions.constraints names them."""
from collections.abc import Callable

from zoo.autograd.tensor import Tensor
from zoo.ops.face.linalg import cholesky


class Constraint:
    """A set of tensors; `check` says of each event whether it belongs to it.

    event_dim: how many of the last dimensions are one event. is_discrete: are these whole numbers?

    Example:
        >>> import zoo
        >>> from zoo.distributions import constraints
        >>> constraints.unit_interval.check(zoo.tensor([-0.5, 0.5]))
        tensor([False,  True])
    """

    def __init__(self, name: str, check: Callable[[Tensor], Tensor], event_dim: int = 0, is_discrete: bool = False):
        self.name, self.holds, self.event_dim, self.is_discrete = name, check, event_dim, is_discrete

    def check(self, value: Tensor) -> Tensor:
        """Bools, one for each event of `value`."""
        return self.holds(value)

    def __repr__(self):
        return self.name


class Dependent(Constraint):
    """Stands for a support that depends on the parameters; `check` raises."""

    def __init__(self, event_dim: int = 0, is_discrete: bool = False):
        super().__init__("Dependent()", self.refuse, event_dim, is_discrete)

    def refuse(self, value: Tensor) -> Tensor:
        raise ValueError("constraints.dependent: depends on a distribution's parameters; ask its `support`")


def independent(base: Constraint, dims: int) -> Constraint:
    """`base`, with the last `dims` dimensions of its batch as part of the event."""
    def check(value: Tensor) -> Tensor:
        found = base.check(value)
        return found if not dims else found.reshape(*found.shape[:found.ndim - dims], -1).all(-1)

    return Constraint(f"IndependentConstraint({base}, {dims})", check, base.event_dim + dims, base.is_discrete)


def greater_than(bound) -> Constraint:
    """x > bound."""
    return Constraint(f"GreaterThan(lower_bound={bound})", lambda x: x > bound)


def greater_than_eq(bound) -> Constraint:
    """x >= bound."""
    return Constraint(f"GreaterThanEq(lower_bound={bound})", lambda x: x >= bound)


def less_than(bound) -> Constraint:
    """x < bound."""
    return Constraint(f"LessThan(upper_bound={bound})", lambda x: x < bound)


def interval(low, high) -> Constraint:
    """low <= x <= high."""
    return Constraint(f"Interval(lower_bound={low}, upper_bound={high})", lambda x: (x >= low) & (x <= high))


def half_open_interval(low, high) -> Constraint:
    """low <= x < high."""
    return Constraint(f"HalfOpenInterval(lower_bound={low}, upper_bound={high})", lambda x: (x >= low) & (x < high))


def integer_interval(low, high) -> Constraint:
    """Whole numbers from low to high, both included."""
    return Constraint(f"IntegerInterval(lower_bound={low}, upper_bound={high})",
                      lambda x: (x % 1 == 0) & (x >= low) & (x <= high), is_discrete=True)


def multinomial(count) -> Constraint:
    """Counts of the last dimension that are not negative, and add up to at most `count`."""
    return Constraint(f"Multinomial(upper_bound={count})",
                      lambda x: (x >= 0).all(-1) & (x.sum(-1) <= count), 1, True)


def is_simplex(x: Tensor) -> Tensor:
    """Vectors >= 0 that add up to 1, within 1e-6."""
    return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)


def is_positive_definite(x: Tensor) -> Tensor:
    """Symmetric matrices within 1e-6 that have a Cholesky factor."""
    symmetric = ((x - x.mT).abs() <= 1e-6).all(-1).all(-1)
    try:
        cholesky(x.detach())
    except RuntimeError:                     # names one matrix of the batch: then none counts
        return symmetric & False
    return symmetric


def is_lower_cholesky(x: Tensor) -> Tensor:
    """Lower triangles with a positive diagonal."""
    return (x.tril() == x).all(-1).all(-1) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


dependent = Dependent()
real = Constraint("Real()", lambda x: x == x)
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean = Constraint("Boolean()", lambda x: (x == 0) | (x == 1), is_discrete=True)
nonnegative_integer = Constraint("IntegerGreaterThan(lower_bound=0)", lambda x: (x % 1 == 0) & (x >= 0),
                                 is_discrete=True)
positive_integer = Constraint("IntegerGreaterThan(lower_bound=1)", lambda x: (x % 1 == 0) & (x >= 1), is_discrete=True)
one_hot = Constraint("OneHot()", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), 1, True)
simplex = Constraint("Simplex()", is_simplex, 1)
positive_definite = Constraint("PositiveDefinite()", is_positive_definite, 2)
lower_cholesky = Constraint("LowerCholesky()", is_lower_cholesky, 2)
