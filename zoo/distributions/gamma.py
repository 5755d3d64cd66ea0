"""Distributions made of gamma numbers: Gamma, Chi2, Beta, Dirichlet, StudentT, FisherSnedecor."""
import math
from typing import Any

from zoo.autograd.mode import no_grad
from zoo.autograd.random import randn
from zoo.autograd.tensor import Tensor
from zoo.distributions import constraints
from zoo.distributions.continuous import uniform_like
from zoo.distributions.distribution import Distribution, broadcast_all
from zoo.distributions.gamma_slope import Draws
from zoo.ops.face.join import stack
from zoo.ops.limits import finfo


def standard_gamma(shape_parameter: Tensor) -> Tensor:
    """Draws with density x^(a-1) exp(-x) / Gamma(a), one for each a, by which they have a gradient (gamma_slope.py)."""
    with no_grad():
        draws = positive_draws(shape_parameter.detach())
    return Draws.apply(shape_parameter, draws)


def positive_draws(a: Tensor) -> Tensor:
    """The numbers themselves (Marsaglia and Tsang 2000); for a < 1 a draw for a + 1, times u^(1/a). None is 0."""
    boost = a < 1
    d = a + boost.type(a.dtype) - 1 / 3
    c = 1 / (9 * d).sqrt()
    found, open_ = a * 0, a == a
    while bool(open_.any()):
        x = randn(tuple(a.shape), dtype=a.dtype, device=a.device)
        v = (1 + c * x) ** 3
        positive = v > 0
        v = v.where(positive, 1.0)
        good = open_ & positive & (uniform_like(a, tuple(a.shape)).log() < 0.5 * x * x + d * (1 - v + v.log()))
        found = (d * v).where(good, found)
        open_ = open_ & ~good
    found = (found * uniform_like(a, tuple(a.shape)) ** (1 / a.where(boost, 1.0))).where(boost, found)
    return found.clamp(min=finfo(a.dtype).tiny)


class Gamma(Distribution):
    """p(x) = rate^a x^(a-1) exp(-rate x) / Gamma(a), a the concentration.

    Args:
        concentration: a > 0. rate: > 0, one over the scale.

    Example:
        >>> from zoo.distributions import Gamma
        >>> Gamma(3.0, 2.0).mean
        tensor(1.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate**2)

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        return standard_gamma(self.concentration.expand(self.extended(sample_shape))) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        a = self.concentration
        return a.xlogy(self.rate) + (a - 1).xlogy(value) - self.rate * value - a.lgamma()

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()


class Chi2(Gamma):
    """The sum of df squares of standard normal numbers.

    Example:
        >>> from zoo.distributions import Chi2
        >>> Chi2(3.0).mean
        tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None):
        (self.df,) = broadcast_all(df)
        super().__init__(0.5 * self.df, 0.5, validate_args)


class Dirichlet(Distribution):
    """p(x) = prod x_k^(a_k - 1) / B(a) on the simplex of the last dimension.

    Args:
        concentration: a, of shape (..., K), > 0.

    Example:
        >>> import zoo
        >>> from zoo.distributions import Dirichlet
        >>> Dirichlet(zoo.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None):
        if concentration.ndim < 1:
            raise ValueError("Dirichlet: `concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    total = property(lambda self: self.concentration.sum(-1, keepdim=True))
    mean = property(lambda self: self.concentration / self.total)

    @property
    def variance(self) -> Tensor:
        a, total = self.concentration, self.total
        return a * (total - a) / (total**2 * (total + 1))

    @property
    def mode(self) -> Tensor:
        rest = (self.concentration - 1).clamp(min=0)
        mode = rest / rest.sum(-1, keepdim=True)
        flat = (self.concentration < 1).all(-1, keepdim=True)          # torch: then the corner of the largest
        corner = self.concentration == self.concentration.amax(-1, keepdim=True)
        return corner.type(mode.dtype).where(flat, mode)

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        """Draws, as gamma numbers over their sum: another path to the same expected gradient than torch's."""
        parts = standard_gamma(self.concentration.expand(self.extended(sample_shape)))
        return parts / parts.sum(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        a = self.concentration
        return (a - 1).xlogy(value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        a = self.concentration
        k, total = a.shape[-1], a.sum(-1)
        return (a.lgamma().sum(-1) - total.lgamma() - (k - total) * total.digamma()
                - ((a - 1) * a.digamma()).sum(-1))


class Beta(Distribution):
    """p(x) = x^(a-1) (1 - x)^(b-1) / B(a, b) on [0, 1].

    Args:
        concentration1: a > 0. concentration0: b > 0.

    Example:
        >>> from zoo.distributions import Beta
        >>> Beta(1.0, 3.0).mean
        tensor(0.2500)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)
        self.pair = Dirichlet(stack((self.concentration1, self.concentration0), -1), validate_args=False)

    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = property(lambda self: self.pair.mode[..., 0])
    variance = property(lambda self: self.pair.variance[..., 0])

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        return self.pair.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        return self.pair.log_prob(stack((value, 1 - value), -1))

    def entropy(self) -> Tensor:
        return self.pair.entropy()


class StudentT(Distribution):
    """loc + scale z / sqrt(Chi2(df) / df), z standard normal.

    Args:
        df: degrees of freedom, > 0. loc, scale: as of Normal.

    Example:
        >>> from zoo.distributions import StudentT
        >>> StudentT(4.0).variance
        tensor(2.)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    mean = property(lambda self: self.loc.masked_fill(self.df <= 1, float("nan")))
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        v = self.scale**2 * self.df / (self.df.where(self.df > 2, 3.0) - 2)
        v = v.masked_fill((self.df <= 2) & (self.df > 1), math.inf)
        return v.masked_fill(self.df <= 1, float("nan"))

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        shape = self.extended(sample_shape)
        z = randn(shape, dtype=self.df.dtype, device=self.df.device)
        chi2 = 2 * standard_gamma((0.5 * self.df).expand(shape))
        return self.loc + self.scale * z * (self.df / chi2).sqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        z, df = (value - self.loc) / self.scale, self.df
        norm = self.scale.log() + 0.5 * (df * math.pi).log() + (0.5 * df).lgamma() - (0.5 * (df + 1)).lgamma()
        return -0.5 * (df + 1) * (z * z / df).log1p() - norm

    def entropy(self) -> Tensor:
        df = self.df
        log_beta = (0.5 * df).lgamma() + math.lgamma(0.5) - (0.5 * (df + 1)).lgamma()
        return (self.scale.log() + 0.5 * (df + 1) * ((0.5 * (df + 1)).digamma() - (0.5 * df).digamma())
                + 0.5 * df.log() + log_beta)


class FisherSnedecor(Distribution):
    """The ratio of two means of df1 and df2 squares of standard normal numbers: Fisher's F.

    Example:
        >>> from zoo.distributions import FisherSnedecor
        >>> FisherSnedecor(2.0, 4.0).mean
        tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    mean = property(lambda self: (self.df2 / (self.df2 - 2)).masked_fill(self.df2 <= 2, math.nan))
    mode = property(lambda self: ((self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)).masked_fill(
        self.df1 <= 2, math.nan))

    @property
    def variance(self) -> Tensor:
        n, m = self.df1, self.df2
        return (2 * m**2 * (n + m - 2) / (n * (m - 2) ** 2 * (m - 4))).masked_fill(m <= 4, math.nan)

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        shape = self.extended(sample_shape)
        above, below = (standard_gamma((0.5 * df).expand(shape)) / df for df in (self.df1, self.df2))
        return above / below

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        return ((a + b).lgamma() - a.lgamma() - b.lgamma() + a * ratio.log() + (a - 1) * value.log()
                - (a + b) * (ratio * value).log1p())
