"""Distributions of one real number: Normal, its half, Uniform, Exponential, Laplace, Cauchy, Gumbel.

Each is a location and a scale, or a rate, and draws by its inverse cdf or from the normal distribution, so that every
sample is a differentiable function of the parameters.
"""
import math
from typing import Any

from zoo.autograd.random import rand, randn
from zoo.autograd.tensor import Tensor
from zoo.distributions import constraints
from zoo.distributions.distribution import Distribution, broadcast_all
from zoo.ops.limits import finfo

EULER = 0.57721566490153286060
LOG_2PI = math.log(2 * math.pi)


def uniform_like(p: Tensor, shape: tuple) -> Tensor:
    """Draws in (0, 1): neither end, so that their logarithms are finite."""
    tiny = finfo(p.dtype).tiny
    return rand(shape, dtype=p.dtype, device=p.device).clamp(tiny, 1 - finfo(p.dtype).eps / 2)


class LocationScale(Distribution):
    """loc + scale * z: what Normal, Laplace, Cauchy and Gumbel share."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def standard(self, value: Tensor) -> Tensor:
        """(value - loc) / scale, of a value that was checked."""
        self.need(value)
        return (value - self.loc) / self.scale

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        return self.icdf(uniform_like(self.loc, self.extended(sample_shape)))


class Normal(LocationScale):
    """p(x) = exp(-((x - loc) / scale)^2 / 2) / (scale sqrt(2 pi)).

    Args:
        loc: the mean. scale: the standard deviation, > 0.

    Example:
        >>> import zoo
        >>> from zoo.distributions import Normal
        >>> Normal(0.0, 1.0).log_prob(zoo.tensor(0.0))
        tensor(-0.9189)
    """

    mean = mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale**2)

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        z = randn(self.extended(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + z * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z = self.standard(value)
        return -0.5 * z * z - self.scale.log() - LOG_2PI / 2

    def cdf(self, value: Tensor) -> Tensor:
        return 0.5 * (1 + (self.standard(value) / math.sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + LOG_2PI / 2 + self.scale.log()


class Laplace(LocationScale):
    """p(x) = exp(-|x - loc| / scale) / (2 scale).

    Example:
        >>> from zoo.distributions import Laplace
        >>> Laplace(0.0, 2.0).variance
        tensor(8.)
    """

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: 2 * self.scale**2)

    def log_prob(self, value: Tensor) -> Tensor:
        return -(2 * self.scale).log() - self.standard(value).abs()

    def cdf(self, value: Tensor) -> Tensor:
        z = self.standard(value)
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Cauchy(LocationScale):
    """p(x) = 1 / (pi scale (1 + ((x - loc) / scale)^2)): it has neither mean nor variance.

    Example:
        >>> import zoo
        >>> from zoo.distributions import Cauchy
        >>> Cauchy(0.0, 1.0).cdf(zoo.tensor(1.0))
        tensor(0.7500)
    """

    mode = property(lambda self: self.loc)
    mean = property(lambda self: self.loc * float("nan"))
    variance = property(lambda self: self.scale * float("inf"))

    def log_prob(self, value: Tensor) -> Tensor:
        return -math.log(math.pi) - self.scale.log() - (self.standard(value) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.standard(value).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(LocationScale):
    """P(x <= t) = exp(-exp(-(t - loc) / scale)): the largest of many.

    Example:
        >>> from zoo.distributions import Gumbel
        >>> Gumbel(0.0, 1.0).mean
        tensor(0.5772)
    """

    mode = property(lambda self: self.loc)
    mean = property(lambda self: self.loc + EULER * self.scale)
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = property(lambda self: self.stddev**2)

    def log_prob(self, value: Tensor) -> Tensor:
        z = self.standard(value)
        return -z - (-z).exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return (-(-self.standard(value)).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)


class Half(Distribution):
    """|x| of an x that is symmetric about 0: what HalfNormal and HalfCauchy share."""

    family: type[LocationScale]
    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None):
        (self.scale,) = broadcast_all(scale)
        super().__init__(self.scale.shape, validate_args=validate_args)
        self.whole = self.family(0.0, self.scale, validate_args=False)

    mode = property(lambda self: self.scale * 0)

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        return self.whole.rsample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        inside = self.whole.log_prob(value) + math.log(2)
        return inside.masked_fill(value < 0, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self.need(value)
        return 2 * self.whole.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.whole.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.whole.entropy() - math.log(2)


class HalfNormal(Half):
    """|x| of a normal x with mean 0.

    Args:
        scale: of that normal distribution, > 0.

    Example:
        >>> from zoo.distributions import HalfNormal
        >>> HalfNormal(1.0).mean
        tensor(0.7979)
    """

    family = Normal
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale**2 * (1 - 2 / math.pi))


class HalfCauchy(Half):
    """|x| of an x with a Cauchy distribution about 0: its mean is infinite.

    Example:
        >>> import zoo
        >>> from zoo.distributions import HalfCauchy
        >>> HalfCauchy(1.0).cdf(zoo.tensor(1.0))
        tensor(0.5000)
    """

    family = Cauchy
    mean = variance = property(lambda self: self.scale * math.inf)


class Uniform(Distribution):
    """p(x) = 1 / (high - low) for low <= x < high.

    Raises:
        ValueError: low >= high somewhere.

    Example:
        >>> from zoo.distributions import Uniform
        >>> Uniform(0.0, 4.0).entropy()
        tensor(1.3863)
    """

    arg_constraints = {"low": constraints.dependent, "high": constraints.dependent}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None):
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self.checks and not bool((self.low < self.high).all()):
            raise ValueError("Uniform: wants low < high everywhere")

    support = property(lambda self: constraints.interval(self.low, self.high))
    mean = property(lambda self: (self.low + self.high) / 2)
    mode = property(lambda self: self.low * float("nan"))
    variance = property(lambda self: (self.high - self.low) ** 2 / 12)

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        u = rand(self.extended(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        inside = ((value >= self.low) & (value < self.high)).type(self.low.dtype)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        self.need(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class Exponential(Distribution):
    """p(x) = rate exp(-rate x) for x >= 0.

    Example:
        >>> from zoo.distributions import Exponential
        >>> Exponential(4.0).mean
        tensor(0.2500)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = stddev = property(lambda self: 1 / self.rate)
    mode = property(lambda self: self.rate * 0)
    variance = property(lambda self: self.rate**-2)

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        return -uniform_like(self.rate, self.extended(sample_shape)).log() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self.need(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()
