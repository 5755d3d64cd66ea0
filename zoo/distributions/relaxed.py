"""NegativeBinomial, and classes made continuous, so that draws have gradients."""
import math
from typing import Any

from zoo.autograd.mode import no_grad
from zoo.autograd.tensor import Tensor
from zoo.distributions import constraints
from zoo.distributions.continuous import uniform_like
from zoo.distributions.discrete import Binary, Categorical, Poisson, log1pexp
from zoo.distributions.distribution import Distribution, broadcast_all
from zoo.distributions.gamma import standard_gamma
from zoo.distributions.transformed import TransformedDistribution
from zoo.distributions.transforms import ExpTransform, SigmoidTransform


class NegativeBinomial(Binary):
    """Successes before `total_count` failures: p(k) = C(k + n - 1, k) probs^k (1 - probs)^n.

    Args:
        total_count: n >= 0, also fractional. probs: of a success, in [0, 1); or logits: log(probs / (1 - probs)).

    Example:
        >>> from zoo.distributions import NegativeBinomial
        >>> NegativeBinomial(3.0, probs=0.5).mean
        tensor(3.)
    """

    arg_constraints = {"total_count": constraints.nonnegative, "probs": constraints.half_open_interval(0.0, 1.0),
                       "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self.total_count, given = broadcast_all(total_count, logits if probs is None else probs)
        self.total_count = self.total_count.type(given.dtype)
        super().__init__(None if probs is None else given, None if logits is None else given, validate_args)

    def given_names(self) -> list[str]:
        return ["total_count", self.given_name]

    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0))
    variance = property(lambda self: self.mean / (-self.logits).sigmoid())

    def sample(self, sample_shape: tuple = ()) -> Tensor:
        """Poisson numbers of gamma numbers."""
        with no_grad():
            shape = self.extended(sample_shape)
            rate = standard_gamma(self.total_count.expand(shape)) * self.logits.exp()
            return Poisson(rate, validate_args=False).sample()

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        n = self.total_count
        ways = (n + value).lgamma() - (value + 1).lgamma() - n.lgamma()
        return ways.masked_fill(n + value == 0, 0.0) - n * log1pexp(self.logits) - value * log1pexp(-self.logits)


class LogitRelaxedBernoulli(Binary):
    """The logit of RelaxedBernoulli (Maddison et al. 2017, Jang et al. 2017)."""

    support = constraints.real
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        (self.temperature,) = broadcast_all(temperature)
        super().__init__(probs, logits, validate_args)

    def expand(self, batch_shape: tuple, _instance: Any = None) -> "LogitRelaxedBernoulli":
        wide = {self.given_name: self.given.expand(batch_shape)}
        return LogitRelaxedBernoulli(self.temperature, **wide, validate_args=False)

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        u = uniform_like(self.given, self.extended(sample_shape))
        return (u.log() - (-u).log1p() + self.logits) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        far = self.logits - value * self.temperature
        return self.temperature.log() + far - 2 * log1pexp(far)


class Relaxed(TransformedDistribution):
    """What RelaxedBernoulli and RelaxedOneHotCategorical share: parameters are the base's."""

    has_rsample = True
    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)

    def expand(self, batch_shape: tuple, _instance: Any = None) -> "Relaxed":
        base = self.base_dist.expand(batch_shape)
        return type(self)(base.temperature, logits=base.logits, validate_args=False)


class RelaxedBernoulli(Relaxed):
    """A number in (0, 1) that comes near Bernoulli's 0 and 1 as temperature falls, with a gradient by the parameters.

    Args:
        temperature: > 0. probs or logits: as of Bernoulli.

    Source: C. Maddison et al., arXiv 1611.00712; E. Jang et al., arXiv 1611.01144.

    Example:
        >>> import zoo
        >>> from zoo.distributions import RelaxedBernoulli
        >>> RelaxedBernoulli(zoo.tensor(2.0), probs=zoo.tensor([0.1, 0.9])).rsample().shape
        (2,)
    """

    arg_constraints = LogitRelaxedBernoulli.arg_constraints
    support = constraints.unit_interval

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits, validate_args), SigmoidTransform(),
                         validate_args)


class ExpRelaxedCategorical(Distribution):
    """The logarithm of RelaxedOneHotCategorical."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Any, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None):
        (self.temperature,) = broadcast_all(temperature)
        self.classes = Categorical(probs, logits, validate_args)
        super().__init__(self.classes.batch_shape, self.classes.param_shape[-1:], validate_args=False)

    probs = property(lambda self: self.classes.probs)
    logits = property(lambda self: self.classes.logits)

    def expand(self, batch_shape: tuple, _instance: Any = None) -> "ExpRelaxedCategorical":
        logits = self.logits.expand(*batch_shape, *self.event_shape)
        return ExpRelaxedCategorical(self.temperature, logits=logits, validate_args=False)

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        gumbel = -(-uniform_like(self.logits, self.extended(sample_shape)).log()).log()
        return ((self.logits + gumbel) / self.temperature).log_softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        k = self.event_shape[0]
        score = (self.logits - value * self.temperature).log_softmax(-1).sum(-1)
        return score + math.lgamma(k) + (k - 1) * self.temperature.log()


class RelaxedOneHotCategorical(Relaxed):
    """A point of the simplex that comes near a corner as temperature falls: the Gumbel softmax.

    Args:
        temperature: > 0. probs or logits: as of Categorical.

    Source: C. Maddison et al., arXiv 1611.00712; E. Jang et al., arXiv 1611.01144.

    Example:
        >>> import zoo
        >>> from zoo.distributions import RelaxedOneHotCategorical
        >>> RelaxedOneHotCategorical(0.5, logits=zoo.zeros(3)).rsample((2,)).shape
        (2, 3)
    """

    arg_constraints = ExpRelaxedCategorical.arg_constraints
    support = constraints.simplex

    def __init__(self, temperature: Any, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None):
        super().__init__(ExpRelaxedCategorical(temperature, probs, logits, validate_args), ExpTransform(),
                         validate_args)
