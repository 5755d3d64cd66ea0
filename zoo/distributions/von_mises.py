"""VonMises: the normal distribution of angles."""
import math
from typing import Any

from zoo.autograd.mode import no_grad
from zoo.autograd.tensor import Tensor
from zoo.distributions import constraints
from zoo.distributions.continuous import uniform_like
from zoo.distributions.distribution import Distribution, broadcast_all
from zoo.ops.dtypes import float64

# Bessel functions I0(x), and I1(x) / x, for x <= 3.75 by powers of (x / 3.75)^2, and sqrt(x) exp(-x) I(x) above by
# powers of 3.75 / x; errors below 2e-7 (Abramowitz and Stegun 1964, 9.8.1 to 9.8.4).
SMALL = ((1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813),
         (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411))
LARGE = ((0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633,
          0.00392377),
         (0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312, 0.01787654,
          -0.00420059))
TURN = 3.75


def polynomial(y: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """sum c_k y^k, by Horner's rule."""
    total = y * 0 + coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * y + c
    return total


def log_bessel(x: Tensor, order: int) -> Tensor:
    """log I(x) of order 0 or 1, x > 0."""
    below = x < TURN
    low, high = x.where(below, 1.0), x.where(~below, TURN)
    small = polynomial((low / TURN) ** 2, SMALL[order]).log() + (low.log() if order else 0.0)
    large = high - 0.5 * high.log() + polynomial(TURN / high, LARGE[order]).log()
    return small.where(below, large)


class VonMises(Distribution):
    """p(x) = exp(concentration cos(x - loc)) / (2 pi I0(concentration)) for angles x in radians.

    Args:
        loc: the mean angle. concentration: > 0; about 1 over the variance where that is small.

    `variance` is the circular one, 1 - E[cos(x - loc)]. Draws lie in [-pi, pi) (Best and Fisher 1979).

    Example:
        >>> import zoo
        >>> from zoo.distributions import VonMises
        >>> VonMises(0.0, 4.0).log_prob(zoo.tensor(0.0))
        tensor(-0.2628)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: 1 - (log_bessel(self.concentration, 1) - log_bessel(self.concentration, 0)).exp())

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        k = self.concentration
        return k * (value - self.loc).cos() - math.log(2 * math.pi) - log_bessel(k, 0)

    def sample(self, sample_shape: tuple = ()) -> Tensor:
        with no_grad():
            shape = self.extended(sample_shape)
            angle = angles(self.concentration.to(float64).expand(shape)).to(self.loc.dtype)
            return (angle + math.pi + self.loc) % (2 * math.pi) - math.pi


def angles(k: Tensor) -> Tensor:
    """Draws about 0: a wrapped Cauchy's, of which some are rejected. In float64: r grows as 1 / k for small k."""
    tau = 1 + (1 + 4 * k * k).sqrt()
    rho = (tau - (2 * tau).sqrt()) / (2 * k)
    r = ((1 + rho * rho) / (2 * rho)).where(k > 1e-5, 1 / k + k)      # rho has lost its digits there
    found, open_ = k * 0, k > 0
    while bool(open_.any()):
        u, v, side = (uniform_like(k, tuple(k.shape)) for _ in range(3))
        z = (math.pi * u).cos()
        f = ((1 + r * z) / (r + z)).clamp(-1, 1)
        c = k * (r - f)
        good = open_ & ((c * (2 - c) > v) | ((c / v).log() + 1 - c >= 0))
        found = ((side - 0.5).sign() * f.acos()).where(good, found)
        open_ = open_ & ~good
    return found
