"""Distributions of a function of a random number: TransformedDistribution, and those that are named."""
import math
from typing import Any

from zoo.autograd.mode import no_grad
from zoo.autograd.tensor import Tensor
from zoo.distributions import constraints
from zoo.distributions.continuous import EULER, Exponential, Normal, Uniform
from zoo.distributions.distribution import Distribution, broadcast_all
from zoo.distributions.gamma import Gamma
from zoo.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    PowerTransform,
    StickBreakingTransform,
    Transform,
    summed,
)


class TransformedDistribution(Distribution):
    """The distribution of f(x), x drawn from `base_distribution` and f one transform or a list of them.

    Example:
        >>> import zoo
        >>> from zoo.distributions import Normal, TransformedDistribution
        >>> from zoo.distributions.transforms import TanhTransform
        >>> squashed = TransformedDistribution(Normal(0.0, 1.0), TanhTransform())
        >>> squashed.log_prob(zoo.tensor(0.0))
        tensor(-0.9189)
    """

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None):
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError("TransformedDistribution: transforms must be a Transform or a list of them, "
                             f"got {transforms}")
        self.base_dist, self.all = base_distribution, ComposeTransform(self.transforms)
        batch, event = base_distribution.batch_shape, base_distribution.event_shape
        domain, codomain = self.all.domain.event_dim, self.all.codomain.event_dim
        shape = self.all.forward_shape((*batch, *event))
        cut = len(shape) - codomain - max(len(event) - domain, 0)
        super().__init__(shape[:cut], shape[cut:], validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    support = property(lambda self: self.transforms[-1].codomain if self.transforms else self.base_dist.support)

    def expand(self, batch_shape: tuple, _instance: Any = None) -> "TransformedDistribution":
        wide = self.base_dist.expand((*batch_shape, *self.base_dist.batch_shape[len(self.batch_shape):]))
        return TransformedDistribution(wide, self.transforms, validate_args=False)

    def sample(self, sample_shape: tuple = ()) -> Tensor:
        with no_grad():
            return self.all(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        return self.all(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        x = self.all.inverse(value)
        more = len(self.event_shape) - self.all.codomain.event_dim   # of the event's dimensions
        slope = summed(self.all.log_abs_det_jacobian(x, value), more)
        inner = self.base_dist.log_prob(x)
        return summed(inner, more + self.all.domain.event_dim - len(self.base_dist.event_shape)) - slope

    def cdf(self, value: Tensor) -> Tensor:
        self.need(value)
        below, sign = self.base_dist.cdf(self.all.inverse(value)), self.all.sign
        return sign * (below - 0.5) + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.all(self.base_dist.icdf(self.all.sign * (value - 0.5) + 0.5))

    def __repr__(self):
        return f"TransformedDistribution({self.base_dist}, {self.transforms})"


class Named(TransformedDistribution):
    """A transformed distribution with parameters and formulas of its own."""

    expand = Distribution.expand
    __repr__ = Distribution.__repr__


class LogNormal(Named):
    """exp(x), x normal.

    Args:
        loc, scale: mean and standard deviation of the logarithm.

    Example:
        >>> from zoo.distributions import LogNormal
        >>> LogNormal(0.0, 1.0).mean
        tensor(1.6487)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(Normal(self.loc, self.scale, validate_args), ExpTransform(), validate_args)

    mean = property(lambda self: (self.loc + self.scale**2 / 2).exp())
    mode = property(lambda self: (self.loc - self.scale**2).exp())
    variance = property(lambda self: (self.scale**2).expm1() * (2 * self.loc + self.scale**2).exp())

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class InverseGamma(Named):
    """1 / x, x drawn from Gamma(concentration, rate).

    Example:
        >>> from zoo.distributions import InverseGamma
        >>> InverseGamma(3.0, 4.0).mean
        tensor(2.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(Gamma(self.concentration, self.rate, validate_args), PowerTransform(-self.rate.new_ones(())),
                         validate_args)

    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return (self.rate / (a.where(a > 1, 2.0) - 1)).masked_fill(a <= 1, math.inf)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        b = a.where(a > 2, 3.0)
        return (self.rate**2 / ((b - 1) ** 2 * (b - 2))).masked_fill(a <= 2, math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class Pareto(Named):
    """p(x) = alpha scale^alpha / x^(alpha + 1) for x >= scale.

    Example:
        >>> from zoo.distributions import Pareto
        >>> Pareto(1.0, 3.0).mean
        tensor(1.5000)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(Exponential(self.alpha, validate_args), [ExpTransform(), AffineTransform(0.0, self.scale)],
                         validate_args)

    support = property(lambda self: constraints.greater_than_eq(self.scale))
    mode = property(lambda self: self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + 1 / self.alpha


class Weibull(Named):
    """P(x > t) = exp(-(t / scale)^k), k the concentration.

    Example:
        >>> from zoo.distributions import Weibull
        >>> Weibull(2.0, 1.0).mean
        tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(Exponential(self.scale.detach() * 0 + 1, validate_args=False),
                         [PowerTransform(1 / self.concentration), AffineTransform(0.0, self.scale)], validate_args)

    mean = property(lambda self: self.scale * self.moment(1))
    mode = property(lambda self: self.scale * ((self.concentration - 1) / self.concentration)
                    ** (1 / self.concentration))
    variance = property(lambda self: self.scale**2 * (self.moment(2) - self.moment(1) ** 2))

    def moment(self, n: int) -> Tensor:
        """E[(x / scale)^n]."""
        return (1 + n / self.concentration).lgamma().exp()

    def entropy(self) -> Tensor:
        return EULER * (1 - 1 / self.concentration) + (self.scale / self.concentration).log() + 1


class Kumaraswamy(Named):
    """P(x <= t) = 1 - (1 - t^a)^b on (0, 1): near Beta(a, b), in closed form.

    Args:
        concentration1: a > 0. concentration0: b > 0.

    Example:
        >>> from zoo.distributions import Kumaraswamy
        >>> Kumaraswamy(1.0, 1.0).mean
        tensor(0.5000)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        self.concentration1, self.concentration0 = a, b = broadcast_all(concentration1, concentration0)
        zero = a.detach() * 0
        super().__init__(Uniform(zero, zero + 1, validate_args=False),
                         [PowerTransform(1 / b), AffineTransform(1.0, -1.0), PowerTransform(1 / a)], validate_args)

    mean = property(lambda self: self.moment(1))
    variance = property(lambda self: self.moment(2) - self.moment(1) ** 2)

    def moment(self, n: int) -> Tensor:
        """E[x^n]."""
        a, b = self.concentration1, self.concentration0
        return b * ((1 + n / a).lgamma() + b.lgamma() - (1 + n / a + b).lgamma()).exp()

    @property
    def mode(self) -> Tensor:
        """((a - 1) / (a b - 1))^(1 / a) for a, b >= 1; elsewhere nan, as torch's is everywhere but at b = 0."""
        a, b = self.concentration1, self.concentration0
        return (((a - 1) / (a * b - 1)) ** (1 / a)).masked_fill((a < 1) | (b < 1), math.nan)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return (1 - 1 / b) + (1 - 1 / a) * ((b + 1).digamma() + EULER) - a.log() - b.log()


class LogisticNormal(Named):
    """The simplex of K + 1 shares that stick breaking makes of K normal numbers.

    Args:
        loc, scale: of the normal numbers, of shape (..., K).

    Example:
        >>> import zoo
        >>> from zoo.distributions import LogisticNormal
        >>> LogisticNormal(zoo.zeros(3), zoo.ones(3)).sample().shape
        (4,)
    """

    arg_constraints = {"loc": constraints.real_vector, "scale": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = (p if p.ndim else p.expand(1) for p in broadcast_all(loc, scale))
        super().__init__(Normal(self.loc, self.scale, validate_args), StickBreakingTransform(), validate_args)
