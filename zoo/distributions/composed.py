"""Distributions made of others: MultivariateNormal, Independent, MixtureSameFamily."""
import math
from typing import Any

import numpy as np

from zoo.autograd.creation import eye
from zoo.autograd.mode import no_grad
from zoo.autograd.random import randn
from zoo.autograd.tensor import Tensor
from zoo.distributions import constraints
from zoo.distributions.discrete import Categorical
from zoo.distributions.distribution import Distribution
from zoo.ops.face.linalg import cholesky, inv, solve
from zoo.ops.face.shape import diag_embed


class MultivariateNormal(Distribution):
    """p(x) = exp(-(x - loc)^T C^-1 (x - loc) / 2) / sqrt((2 pi)^n det C), C the covariance.

    Args:
        loc: of shape (..., n).
        covariance_matrix, precision_matrix or scale_tril: exactly one, of shape (..., n, n): C, its inverse, or the
            lower triangle L with a positive diagonal and C = L L^T.

    Raises:
        ValueError: none or more than one of the three, or loc without a dimension.

    Example:
        >>> import zoo
        >>> from zoo.distributions import MultivariateNormal
        >>> MultivariateNormal(zoo.zeros(2), zoo.eye(2)).log_prob(zoo.zeros(2))
        tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
                 scale_tril: Tensor | None = None, validate_args: bool | None = None):
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: m for name, m in given.items() if m is not None}
        if loc.ndim < 1:
            raise ValueError("MultivariateNormal: loc must be at least one-dimensional.")
        if len(given) != 1:
            raise ValueError("MultivariateNormal: Exactly one of covariance_matrix or precision_matrix or scale_tril "
                             "may be specified.")
        ((name, matrix),) = given.items()
        if matrix.ndim < 2:
            raise ValueError(f"MultivariateNormal: {name} must be at least two-dimensional, with optional leading "
                             "batch dimensions")
        shape = np.broadcast_shapes(loc.shape, matrix.shape[:-1])
        self.loc = loc.expand(shape)
        vars(self)[name] = matrix.expand(*shape, -1)
        super().__init__(shape[:-1], shape[-1:], validate_args)
        self.lower = self.scale_tril if name == "scale_tril" else (
            cholesky(matrix) if name == "covariance_matrix" else cholesky(inv(matrix)))

    def __getattr__(self, name: str) -> Tensor:
        lower = vars(self).get("lower")
        if lower is None or name not in self.arg_constraints:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name == "scale_tril":
            return lower.expand(*self.loc.shape, -1)
        covariance = (lower @ lower.mT).expand(*self.loc.shape, -1)
        return covariance if name == "covariance_matrix" else inv(covariance)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: (self.lower**2).sum(-1).expand(self.loc.shape))

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        z = randn(self.extended(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self.lower @ z.unsqueeze(-1)).squeeze(-1)

    def half_log_det(self) -> Tensor:
        """log sqrt(det C)."""
        return self.lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        z = solve(self.lower, (value - self.loc).unsqueeze(-1)).squeeze(-1)
        return -0.5 * ((z * z).sum(-1) + self.event_shape[0] * math.log(2 * math.pi)) - self.half_log_det()

    def entropy(self) -> Tensor:
        return (0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self.half_log_det()).expand(self.batch_shape)


class LowRankMultivariateNormal(Distribution):
    """MultivariateNormal with covariance W W^T + diag(d), by matrices (r, r) instead of (n, n) (Woodbury's identity).

    Args:
        loc: (..., n). cov_factor: W (..., n, r). cov_diag: d (..., n), > 0.

    Raises:
        ValueError: shapes that do not fit together.

    Example:
        >>> import zoo
        >>> from zoo.distributions import LowRankMultivariateNormal
        >>> LowRankMultivariateNormal(zoo.zeros(2), zoo.ones(2, 1), zoo.ones(2)).variance
        tensor([2., 2.])
    """

    arg_constraints = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None):
        n = loc.shape[-1] if loc.ndim else 0
        if not loc.ndim or cov_factor.ndim < 2 or cov_factor.shape[-2] != n or cov_diag.shape[-1:] != (n,):
            raise ValueError("LowRankMultivariateNormal: wants loc (..., n), cov_factor (..., n, r) and cov_diag "
                             f"(..., n), got {tuple(loc.shape)}, {tuple(cov_factor.shape)}, {tuple(cov_diag.shape)}")
        shape = np.broadcast_shapes(loc.shape, cov_factor.shape[:-1], cov_diag.shape)
        self.loc, self.cov_diag = loc.expand(shape), cov_diag.expand(shape)
        self.cov_factor = cov_factor.expand(*shape, cov_factor.shape[-1])
        super().__init__(shape[:-1], shape[-1:], validate_args)
        scaled = self.cov_factor / self.cov_diag.unsqueeze(-1)                          # d^-1 W
        one = eye(cov_factor.shape[-1], dtype=loc.dtype, device=loc.device)
        self.scaled, self.inner = scaled, cholesky(one + self.cov_factor.mT @ scaled)   # of I + W^T d^-1 W

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: (self.cov_factor**2).sum(-1) + self.cov_diag)
    covariance_matrix = property(lambda self: self.cov_factor @ self.cov_factor.mT + diag_embed(self.cov_diag))
    precision_matrix = property(lambda self: self.dense().precision_matrix)
    scale_tril = property(lambda self: self.dense().scale_tril)

    def dense(self) -> MultivariateNormal:
        """The same distribution by its whole covariance."""
        return MultivariateNormal(self.loc, self.covariance_matrix, validate_args=False)

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        shape, like = self.extended(sample_shape), dict(dtype=self.loc.dtype, device=self.loc.device)
        few = randn((*shape[:-1], self.cov_factor.shape[-1], 1), **like)
        return self.loc + (self.cov_factor @ few).squeeze(-1) + self.cov_diag.sqrt() * randn(shape, **like)

    def half_log_det(self) -> Tensor:
        """log sqrt(det C) (the matrix determinant lemma)."""
        return self.inner.diagonal(dim1=-2, dim2=-1).log().sum(-1) + 0.5 * self.cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        far = value - self.loc
        along = solve(self.inner, (self.scaled.mT @ far.unsqueeze(-1))).squeeze(-1)
        distance = (far * far / self.cov_diag).sum(-1) - (along * along).sum(-1)
        return -0.5 * (distance + self.event_shape[0] * math.log(2 * math.pi)) - self.half_log_det()

    def entropy(self) -> Tensor:
        return 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self.half_log_det()


class Independent(Distribution):
    """`base_distribution`, of whose batch the last dimensions belong to the event: their log-densities add up.

    Example:
        >>> import zoo
        >>> from zoo.distributions import Independent, Normal
        >>> Independent(Normal(zoo.zeros(3), zoo.ones(3)), 1).log_prob(zoo.zeros(3))
        tensor(-2.7568)
    """

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int,
                 validate_args: bool | None = None):
        dims = reinterpreted_batch_ndims
        if dims > len(base_distribution.batch_shape):
            raise ValueError("Independent: Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                             f"actual {dims} vs {len(base_distribution.batch_shape)}")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, dims
        split = len(base_distribution.batch_shape) - dims
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        super().__init__(shape[:split], shape[split:], validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    support = property(lambda self: constraints.independent(self.base_dist.support, self.reinterpreted_batch_ndims))
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    def expand(self, batch_shape: tuple, _instance: Any = None) -> "Independent":
        dims = self.reinterpreted_batch_ndims
        wide = self.base_dist.expand((*batch_shape, *self.event_shape[:dims]))
        return type(self)(wide, dims, validate_args=False)

    def sample(self, sample_shape: tuple = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def added(self, values: Tensor) -> Tensor:
        """The sum over the dimensions that joined the event."""
        dims = self.reinterpreted_batch_ndims
        return values.sum(tuple(range(-dims, 0))) if dims else values

    def log_prob(self, value: Tensor) -> Tensor:
        return self.added(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self.added(self.base_dist.entropy())

    def __repr__(self):
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamily(Distribution):
    """One of K distributions of a family, chosen at random.

    Args:
        mixture_distribution: a Categorical with batch_shape B over K components.
        component_distribution: with batch_shape B + (K,).

    Example:
        >>> import zoo
        >>> from zoo.distributions import Categorical, MixtureSameFamily, Normal
        >>> two = MixtureSameFamily(Categorical(zoo.ones(2)), Normal(zoo.tensor([-1.0, 1.0]), zoo.ones(2)))
        >>> two.mean, two.variance
        (tensor(0.), tensor(2.))
    """

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution,
                 validate_args: bool | None = None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("MixtureSameFamily: The Mixture distribution needs to be an instance of "
                             "zoo.distributions.Categorical")
        weights, parts = mixture_distribution, component_distribution
        if tuple(weights.param_shape) != tuple(parts.batch_shape):
            raise ValueError(f"MixtureSameFamily: wants a component for each weight, got weights of shape "
                             f"{tuple(weights.param_shape)} and components of batch_shape {tuple(parts.batch_shape)}")
        self.mixture_distribution, self.component_distribution = weights, parts
        super().__init__(parts.batch_shape[:-1], parts.event_shape, validate_args)

    support = property(lambda self: self.component_distribution.support)

    def weighted(self, values: Tensor) -> Tensor:
        """The mean over the components of `values`, of shape B + (K,) + E."""
        weights = self.mixture_distribution.probs
        for _ in self.event_shape:
            weights = weights.unsqueeze(-1)
        return (weights * values).sum(-1 - len(self.event_shape))

    mean = property(lambda self: self.weighted(self.component_distribution.mean))

    @property
    def variance(self) -> Tensor:
        parts, k = self.component_distribution, -1 - len(self.event_shape)
        return self.weighted(parts.variance + (parts.mean - self.mean.unsqueeze(k)) ** 2)

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        inner = self.component_distribution.log_prob(value.unsqueeze(-1 - len(self.event_shape)))
        return (self.mixture_distribution.logits + inner).logsumexp(-1)

    def cdf(self, value: Tensor) -> Tensor:
        inner = self.component_distribution.cdf(value.unsqueeze(-1 - len(self.event_shape)))
        return (self.mixture_distribution.probs * inner).sum(-1)

    def sample(self, sample_shape: tuple = ()) -> Tensor:
        with no_grad():
            k = -1 - len(self.event_shape)
            values = self.component_distribution.sample(sample_shape)
            which = self.mixture_distribution.sample(sample_shape)
            which = which.reshape(*which.shape, *[1] * (1 + len(self.event_shape)))
            which = which.expand(*which.shape[:which.ndim + k], 1, *self.event_shape)
            return values.gather(values.ndim + k, which).squeeze(k)

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
