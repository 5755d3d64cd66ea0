"""kl_divergence(p, q) = E_p[log p(x) - log q(x)]: a table of formulas by the two classes."""
import math
from collections.abc import Callable

from zoo.autograd.tensor import Tensor
from zoo.distributions.composed import Independent, LowRankMultivariateNormal, MultivariateNormal
from zoo.distributions.continuous import EULER, Cauchy, Exponential, Gumbel, HalfNormal, Laplace, Normal, Uniform
from zoo.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    OneHotCategorical,
    Poisson,
    log1pexp,
)
from zoo.distributions.distribution import Distribution
from zoo.distributions.gamma import Beta, Dirichlet, Gamma
from zoo.distributions.transformed import Pareto, TransformedDistribution
from zoo.ops.face.linalg import solve

TABLE: dict[tuple[type, type], Callable] = {}


def register_kl(type_p: type, type_q: type) -> Callable:
    """Decorator: the function gives kl_divergence of these two classes and their subclasses.

    Raises:
        TypeError: a class that is no Distribution.
    """
    for t in (type_p, type_q):
        if not (isinstance(t, type) and issubclass(t, Distribution)):
            raise TypeError(f"register_kl: wants subclasses of Distribution, got {t!r}")

    def keep(function: Callable) -> Callable:
        TABLE[type_p, type_q] = function
        return function

    return keep


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """E_p[log p(x) - log q(x)] in nats, of the broadcast batch shape; never negative, 0 if p = q.

    The formula of the nearest classes in both orders of resolution is taken.

    Raises:
        NotImplementedError: no formula for these two.

    Example:
        >>> from zoo.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
        tensor(0.5000)
    """
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (a, b) in TABLE:
                return TABLE[a, b](p, q)
    raise NotImplementedError(f"kl_divergence: no formula for {type(p).__name__} and {type(q).__name__}")


@register_kl(Normal, Normal)
def normal_normal(p, q):
    """(r - 1 - log r + ((m - n) / t)^2) / 2, r the ratio of the variances."""
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def half_normals(p, q):
    """Of the whole normals: both fold alike."""
    return normal_normal(p.whole, q.whole)


@register_kl(Laplace, Laplace)
def laplaces(p, q):
    """With r the ratio of the scales and d the distance: -log r + d / t + r exp(-d / s) - 1."""
    ratio, far = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + far / q.scale + ratio * (-far / p.scale).exp() - 1


@register_kl(Cauchy, Cauchy)
def cauchys(p, q):
    """log(((s + t)^2 + (m - n)^2) / (4 s t))."""
    return ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2).log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def gumbels(p, q):
    """With r the ratio of the scales: -log r - d + exp(d) Gamma(r + 1) - 1 + euler (r - 1)."""
    ratio, far = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return -ratio.log() - far + (far + (ratio + 1).lgamma()).exp() - 1 + EULER * (ratio - 1)


@register_kl(Exponential, Exponential)
def exponentials(p, q):
    """r - log r - 1, r the ratio of the rates."""
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Uniform, Uniform)
def uniforms(p, q):
    """log of the ratio of the widths; infinite if q does not cover p."""
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return found.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(Uniform, Normal)
def uniform_normal(p, q):
    """-log width minus the mean of log q."""
    mean, width = (p.low + p.high) / 2, p.high - p.low
    return ((math.log(2 * math.pi) / 2 + (q.scale / width).log())
            + 0.5 * (width**2 / 12 + (mean - q.loc) ** 2) / q.scale**2)


@register_kl(Bernoulli, Bernoulli)
def bernoullis(p, q):
    """The sum over 0 and 1; what p never draws counts nothing."""
    ones = p.probs * (log1pexp(-q.logits) - log1pexp(-p.logits))
    zeros = (1 - p.probs) * (log1pexp(q.logits) - log1pexp(p.logits))
    return ones.masked_fill(p.probs == 0, 0.0) + zeros.masked_fill(p.probs == 1, 0.0)


@register_kl(Binomial, Binomial)
def binomials(p, q):
    """total_count times that of one try; infinite if p may count beyond q."""
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("kl_divergence: Binomials want q.total_count <= p.total_count")
    found = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return found.masked_fill(p.total_count > q.total_count, math.inf)


@register_kl(Geometric, Geometric)
def geometrics(p, q):
    """-entropy of p minus the mean of log q."""
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def poissons(p, q):
    """rate (log rate - log rate of q) - the difference of the rates."""
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Categorical, Categorical)
def categoricals(p, q):
    """sum p (log p - log q); infinite where q is 0 and p is not."""
    terms = p.probs * (p.logits - q.logits)
    return terms.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0.0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def one_hots(p, q):
    """As of the class numbers."""
    return categoricals(p.classes, q.classes)


@register_kl(Gamma, Gamma)
def gammas(p, q):
    """See Penny 2001, KL-divergences of normal, gamma, Dirichlet and Wishart densities."""
    a, b = p.concentration, q.concentration
    return (b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma() + (a - b) * a.digamma()
            + (q.rate - p.rate) * (a / p.rate))


@register_kl(Dirichlet, Dirichlet)
def dirichlets(p, q):
    """Penny 2001."""
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    return (total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
            + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1))


@register_kl(Beta, Beta)
def betas(p, q):
    """As Dirichlets of two."""
    return dirichlets(p.pair, q.pair)


@register_kl(MultivariateNormal, MultivariateNormal)
def multivariate_normals(p, q):
    """(trace(D^-1 C) + (n - m)^T D^-1 (n - m) - k + log det D - log det C) / 2."""
    if p.event_shape != q.event_shape:
        shapes = f"{tuple(p.event_shape)} and {tuple(q.event_shape)}"
        raise ValueError(f"kl_divergence: wants equal event shapes, got {shapes}")
    spread = solve(q.lower, p.lower)
    far = solve(q.lower, (q.loc - p.loc).unsqueeze(-1))
    return (q.half_log_det() - p.half_log_det()
            + 0.5 * ((spread**2).sum((-2, -1)) + (far**2).sum((-2, -1)) - p.event_shape[0]))


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def low_rank_normals(p, q):
    """By the whole covariances."""
    return multivariate_normals(*(d.dense() if isinstance(d, LowRankMultivariateNormal) else d for d in (p, q)))


@register_kl(Pareto, Pareto)
def paretos(p, q):
    """b log(s / t) - log r + r - 1, r the ratio b / a of the alphas; infinite if q does not cover p."""
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return found.masked_fill(p.scale < q.scale, math.inf)


@register_kl(Independent, Independent)
def independents(p, q):
    """The bases', added up over the event."""
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: wants two Independent of equal reinterpreted_batch_ndims")
    return p.added(kl_divergence(p.base_dist, q.base_dist))


@register_kl(TransformedDistribution, TransformedDistribution)
def transformed(p, q):
    """An invertible function changes nothing."""
    if [repr(t) for t in p.transforms] != [repr(t) for t in q.transforms] or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: wants two TransformedDistributions with the same transforms")
    return kl_divergence(p.base_dist, q.base_dist)
