"""Distributions of whole numbers: Bernoulli, Geometric, Binomial, Poisson, Categorical and one-hot, Multinomial."""
import math
from typing import Any

from zoo.autograd.creation import arange, eye, zeros
from zoo.autograd.mode import no_grad
from zoo.autograd.random import bernoulli, multinomial, rand
from zoo.autograd.tensor import Tensor
from zoo.distributions import constraints
from zoo.distributions.continuous import uniform_like
from zoo.distributions.distribution import Distribution, broadcast_all
from zoo.ops.dtypes import int64
from zoo.ops.face.index import one_hot
from zoo.ops.face.reduce import softmax
from zoo.ops.limits import finfo


def one_of(name: str, probs: Any, logits: Any) -> Any:
    """The one that was given. Raises ValueError for both or none."""
    if (probs is None) == (logits is None):
        raise ValueError(f"{name}: Either `probs` or `logits` must be specified, but not both.")
    return logits if probs is None else probs


def inside(p: Tensor) -> Tensor:
    """Probabilities kept off 0 and 1, so that their logits are finite."""
    eps = finfo(p.dtype).eps
    return p.clamp(eps, 1 - eps)


def log1pexp(x: Tensor) -> Tensor:
    """log(1 + exp(x)), to the last bits also where exp(x) is very large or small."""
    return x.clamp(min=0) + (-x.abs()).exp().log1p()


class Binary(Distribution):
    """A probability of success, or its logit log(p / (1 - p)); each is made from the other where it is asked for."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        (given,) = broadcast_all(one_of(type(self).__name__, probs, logits))
        self.given_name = "logits" if probs is None else "probs"
        vars(self)[self.given_name] = given
        super().__init__(given.shape, validate_args=validate_args)

    def __getattr__(self, name: str) -> Tensor:
        if name not in ("probs", "logits"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name == "probs":
            return vars(self).setdefault(name, self.logits.sigmoid())
        p = inside(self.probs)
        return vars(self).setdefault(name, p.log() - (-p).log1p())

    @property
    def given(self) -> Tensor:
        """The parameter that the user gave."""
        return getattr(self, self.given_name)

    def given_names(self) -> list[str]:
        return [self.given_name]


class Bernoulli(Binary):
    """1 with probability `probs`, else 0.

    Args:
        probs: of a 1, in [0, 1]; or logits: log(probs / (1 - probs)).

    Example:
        >>> import zoo
        >>> from zoo.distributions import Bernoulli
        >>> Bernoulli(probs=0.25).log_prob(zoo.tensor(1.0)).exp()
        tensor(0.2500)
    """

    support = constraints.boolean
    has_enumerate_support = True

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self) -> Tensor:
        return (self.probs >= 0.5).type(self.probs.dtype).masked_fill(self.probs == 0.5, float("nan"))

    def sample(self, sample_shape: tuple = ()) -> Tensor:
        with no_grad():
            return bernoulli(self.probs.expand(self.extended(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        return value * self.logits - log1pexp(self.logits)

    def entropy(self) -> Tensor:
        return log1pexp(self.logits) - self.probs * self.logits

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(2, dtype=self.given.dtype, device=self.given.device).reshape(2, *[1] * len(self.batch_shape))
        return values.expand(2, *self.batch_shape) if expand else values


class Geometric(Binary):
    """Failures before the first success: p(k) = (1 - probs)^k probs, k = 0, 1, 2 ...

    Example:
        >>> from zoo.distributions import Geometric
        >>> Geometric(probs=0.25).mean
        tensor(3.)
    """

    support = constraints.nonnegative_integer

    mean = property(lambda self: 1 / self.probs - 1)
    mode = property(lambda self: self.probs * 0)
    variance = property(lambda self: (1 / self.probs - 1) / self.probs)

    def sample(self, sample_shape: tuple = ()) -> Tensor:
        with no_grad():
            u = uniform_like(self.probs, self.extended(sample_shape))
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        q = (-self.probs).where((self.probs != 1) | (value != 0), 0.0)     # 0 log 0 is 0
        return value * q.log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return (log1pexp(self.logits) - self.probs * self.logits) / self.probs


class Binomial(Binary):
    """Successes among total_count tries: p(k) = C(n, k) probs^k (1 - probs)^(n - k).

    Args:
        total_count: n, whole, >= 0. probs or logits: of one success.

    Example:
        >>> import zoo
        >>> from zoo.distributions import Binomial
        >>> Binomial(4, probs=0.5).log_prob(zoo.tensor(2.0)).exp()
        tensor(0.3750)
    """

    arg_constraints = {"total_count": constraints.nonnegative_integer, **Binary.arg_constraints}

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        count, given = broadcast_all(total_count, one_of("Binomial", probs, logits))
        self.total_count = count.type(given.dtype)
        key = "logits" if probs is None else "probs"
        super().__init__(**{key: given}, validate_args=validate_args)

    def given_names(self) -> list[str]:
        return ["total_count", self.given_name]

    support = property(lambda self: constraints.integer_interval(0, self.total_count))
    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().minimum(self.total_count))
    variance = property(lambda self: self.mean * (1 - self.probs))
    has_enumerate_support = True

    def sample(self, sample_shape: tuple = ()) -> Tensor:
        with no_grad():
            shape = self.extended(sample_shape)
            most = int(self.total_count.max().item()) if self.total_count.numel() else 0
            total = zeros(shape, dtype=self.probs.dtype, device=self.probs.device)
            for k in range(most):                              # one draw for each try
                hit = rand(shape, dtype=self.probs.dtype, device=self.probs.device) < self.probs
                total += (hit & (k < self.total_count)).type(total.dtype)
            return total

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * self.logits - n * log1pexp(self.logits)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = int(self.total_count.max().item())
        if bool((self.total_count != n).any()):
            raise NotImplementedError("Binomial.enumerate_support: wants one total_count for the whole batch")
        values = arange(n + 1, dtype=self.given.dtype, device=self.given.device)
        values = values.reshape(-1, *[1] * len(self.batch_shape))
        return values.expand(-1, *self.batch_shape) if expand else values

    def entropy(self) -> Tensor:
        log_p = self.log_prob(self.enumerate_support())
        return -(log_p.exp() * log_p).sum(0)


class Poisson(Distribution):
    """p(k) = rate^k exp(-rate) / k!.

    Samples by the inverse cdf for a rate up to 10, by Hörmann's transformed rejection (PTRS, 1993) above.

    Example:
        >>> import zoo
        >>> from zoo.distributions import Poisson
        >>> Poisson(2.0).log_prob(zoo.tensor(0.0))
        tensor(-2.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())

    def sample(self, sample_shape: tuple = ()) -> Tensor:
        with no_grad():
            rate = self.rate.expand(self.extended(sample_shape))
            small = rate <= 10
            if bool(small.all()):
                return few(rate)
            if not bool(small.any()):
                return many(rate)
            return few(rate.where(small, 1.0)).where(small, many(rate.where(~small, 11.0)))

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        return value.xlogy(self.rate) - self.rate - (value + 1).lgamma()


def few(rate: Tensor) -> Tensor:
    """Poisson numbers of small rates: how many terms of the cdf lie below one uniform number."""
    u, term = rand(rate.shape, dtype=rate.dtype, device=rate.device), (-rate).exp()
    total, k = term, rate * 0
    for n in range(1, 60):                           # P(k > 59) at rate 10 is 1e-25
        k = k + (u >= total).type(rate.dtype)
        term = term * rate / n
        total = total + term
    return k


def many(rate: Tensor) -> Tensor:
    """Poisson numbers of rates above 10 (Hörmann 1993, The transformed rejection method, algorithm PTRS)."""
    b = 0.931 + 2.53 * rate.sqrt()
    a, inverse, v_r = -0.059 + 0.02483 * b, 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    k, open_ = rate * 0, rate > 0
    while bool(open_.any()):
        u = rand(rate.shape, dtype=rate.dtype, device=rate.device) - 0.5
        v = uniform_like(rate, tuple(rate.shape))
        us = 0.5 - u.abs()
        found = ((2 * a / us + b) * u + rate + 0.43).floor()
        fits = v.log() + inverse.log() - (a / (us * us) + b).log() <= found * rate.log() - rate - (found + 1).lgamma()
        good = ((us >= 0.07) & (v <= v_r)) | ((found >= 0) & ~((us < 0.013) & (v > us)) & fits)
        k = found.where(open_ & good, k)
        open_ = open_ & ~good
    return k


class Categorical(Distribution):
    """One of K classes, as its number.

    Args:
        probs: of shape (..., K), >= 0, made to add up to 1; or logits: of shape (..., K), any real numbers.

    Example:
        >>> import zoo
        >>> from zoo.distributions import Categorical
        >>> policy = Categorical(logits=zoo.tensor([0.0, 0.0]))
        >>> policy.log_prob(policy.sample())
        tensor(-0.6931)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None):
        given = one_of("Categorical", probs, logits)
        if given.ndim < 1:
            raise ValueError(f"Categorical: wants at least one dimension of {'logits' if probs is None else 'probs'}")
        self.given_name = "logits" if probs is None else "probs"
        if probs is None:
            self.logits = given - given.logsumexp(-1, keepdim=True)
        else:
            self.probs = given / given.sum(-1, keepdim=True)
        super().__init__(given.shape[:-1], validate_args=validate_args)

    def __getattr__(self, name: str) -> Tensor:
        if name == "probs":
            return vars(self).setdefault(name, softmax(self.logits, -1))
        if name == "logits":
            return vars(self).setdefault(name, inside(self.probs).log())
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def given(self) -> Tensor:
        """The parameter that the user gave."""
        return getattr(self, self.given_name)

    def given_names(self) -> list[str]:
        return [self.given_name]

    param_shape = property(lambda self: self.given.shape)
    support = property(lambda self: constraints.integer_interval(0, self.param_shape[-1] - 1))
    mean = variance = property(lambda self: self.probs.sum(-1) * float("nan"))
    mode = property(lambda self: self.probs.argmax(-1))

    def sample(self, sample_shape: tuple = ()) -> Tensor:
        with no_grad():
            shape, classes = self.extended(sample_shape), self.param_shape[-1]
            rows = self.probs.reshape(-1, classes)
            draws = multinomial(rows, max(1, math.prod(shape) // max(1, len(rows))), True)
            return draws.mT.reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        value = value.type(int64).unsqueeze(-1)
        shape = broadcast_all(value, self.logits[..., :1])[0].shape
        return self.logits.expand(*shape[:-1], -1).gather(-1, value.expand(shape)).squeeze(-1)

    def entropy(self) -> Tensor:
        least = finfo(self.logits.dtype).min
        return -(self.probs * self.logits.clamp(min=least)).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self.param_shape[-1], dtype=int64, device=self.given.device)
        values = values.reshape(-1, *[1] * len(self.batch_shape))
        return values.expand(-1, *self.batch_shape) if expand else values


class OneHotCategorical(Distribution):
    """One of K classes, as a vector with a single 1.

    Example:
        >>> import zoo
        >>> from zoo.distributions import OneHotCategorical
        >>> OneHotCategorical(probs=zoo.tensor([0.0, 1.0])).sample()
        tensor([0., 1.])
    """

    arg_constraints = Categorical.arg_constraints
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None):
        self.classes = Categorical(probs, logits, validate_args)
        shape = self.classes.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    probs = property(lambda self: self.classes.probs)
    logits = property(lambda self: self.classes.logits)
    mean = property(lambda self: self.probs)
    mode = property(lambda self: one_hot(self.classes.mode, self.event_shape[0]).type(self.probs.dtype))
    variance = property(lambda self: self.probs * (1 - self.probs))

    def expand(self, batch_shape: tuple, _instance: Any = None) -> "OneHotCategorical":
        return type(self)(logits=self.logits.expand(*batch_shape, -1), validate_args=False)

    def sample(self, sample_shape: tuple = ()) -> Tensor:
        return one_hot(self.classes.sample(sample_shape), self.event_shape[0]).type(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        return self.classes.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self.classes.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = eye(n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.reshape(n, *[1] * len(self.batch_shape), n)
        return values.expand(n, *self.batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose samples carry the gradient of `probs` (Bengio et al. 2013)."""

    has_rsample = True

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(Distribution):
    """How often each of K classes came in total_count draws.

    Args:
        total_count: n, the same for the whole batch. probs or logits: of shape (..., K), as of Categorical.

    Example:
        >>> import zoo
        >>> from zoo.distributions import Multinomial
        >>> Multinomial(3, probs=zoo.tensor([0.0, 1.0])).sample()
        tensor([0., 3.])
    """

    arg_constraints = Categorical.arg_constraints

    def __init__(self, total_count: int = 1, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None):
        if not isinstance(total_count, int):
            raise NotImplementedError("Multinomial: wants one total_count, an int, for the whole batch")
        self.total_count, self.classes = total_count, Categorical(probs, logits, validate_args)
        shape = self.classes.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    probs = property(lambda self: self.classes.probs)
    logits = property(lambda self: self.classes.logits)
    support = property(lambda self: constraints.multinomial(self.total_count))
    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def expand(self, batch_shape: tuple, _instance: Any = None) -> "Multinomial":
        return type(self)(self.total_count, logits=self.logits.expand(*batch_shape, -1), validate_args=False)

    def sample(self, sample_shape: tuple = ()) -> Tensor:
        sample_shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        draws = self.classes.sample((self.total_count, *sample_shape))
        return one_hot(draws, self.event_shape[0]).sum(0).type(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        logits, value = broadcast_all(self.logits, value)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return ways + (value * logits.masked_fill((value == 0) & (logits == -math.inf), 0.0)).sum(-1)

    def entropy(self) -> Tensor:
        n = self.total_count
        counts = arange(1, n + 1, dtype=self.probs.dtype, device=self.probs.device)
        counts = counts.reshape(-1, *[1] * self.probs.ndim)
        one = Binomial(n, probs=self.probs, validate_args=False)
        expected = (one.log_prob(counts).exp() * (counts + 1).lgamma()).sum((0, -1))
        return n * self.classes.entropy() - math.lgamma(n + 1) + expected
