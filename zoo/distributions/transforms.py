"""Transforms, which are invertible functions with the log of their slope, and distributions seen through them.

If y = f(x) then log p(y) = log p(x) - log |det df/dx|.
"""
import math
from collections.abc import Sequence
from typing import Any

from zoo.autograd.mode import no_grad
from zoo.autograd.tensor import Tensor
from zoo.distributions import constraints
from zoo.distributions.constraints import Constraint
from zoo.distributions.continuous import Normal
from zoo.distributions.discrete import log1pexp
from zoo.distributions.distribution import Distribution, broadcast_all
from zoo.ops.limits import finfo


class Transform:
    """An invertible function: `t(x)`, `t.inv(y)`, and `log_abs_det_jacobian(x, y)`, elementwise if event_dim is 0.

    Subclasses give `forward`, `inverse` and `log_abs_det_jacobian`.
    """

    domain: Constraint = constraints.real
    codomain: Constraint = constraints.real
    sign = 1                           # of the slope: does the transform keep the order?

    @property
    def event_dim(self) -> int:
        """How many of the last dimensions it mixes."""
        return max(self.domain.event_dim, self.codomain.event_dim)

    def __call__(self, x: Tensor) -> Tensor:
        return self.forward(x)

    @property
    def inv(self) -> "Transform":
        """The inverse function, a transform too."""
        return Inverse(self)

    def forward(self, x: Tensor) -> Tensor:
        """y = f(x)."""
        raise NotImplementedError(f"{type(self).__name__}: has no forward")

    def inverse(self, y: Tensor) -> Tensor:
        """x with f(x) = y."""
        raise NotImplementedError(f"{type(self).__name__}: has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |dy/dx|."""
        raise NotImplementedError(f"{type(self).__name__}: has no log_abs_det_jacobian")

    def __repr__(self):
        return f"{type(self).__name__}()"


class Inverse(Transform):
    """A transform backwards."""

    def __init__(self, transform: Transform):
        self.transform, self.sign = transform, transform.sign
        self.domain, self.codomain = transform.codomain, transform.domain

    inv = property(lambda self: self.transform)

    def forward(self, x: Tensor) -> Tensor:
        return self.transform.inverse(x)

    def inverse(self, y: Tensor) -> Tensor:
        return self.transform.forward(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.transform.log_abs_det_jacobian(y, x)

    def __repr__(self):
        return f"{self.transform}.inv"


class ExpTransform(Transform):
    """y = exp(x)."""

    codomain = constraints.positive

    def forward(self, x: Tensor) -> Tensor:
        return x.exp()

    def inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class AffineTransform(Transform):
    """y = loc + scale * x.

    Args:
        loc, scale: numbers or tensors. event_dim: how many of the last dimensions are one event.

    Example:
        >>> import zoo
        >>> from zoo.distributions.transforms import AffineTransform
        >>> AffineTransform(1.0, 2.0).inv(zoo.tensor(5.0))
        tensor(2.)
    """

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0):
        self.loc, self.scale = loc, scale
        self.domain = self.codomain = constraints.independent(constraints.real, event_dim)

    @property
    def sign(self):
        return self.scale.sign() if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)

    def forward(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slope = self.scale.abs().log() if isinstance(self.scale, Tensor) else math.log(abs(self.scale))
        whole = x * 0 + slope
        return summed(whole, self.event_dim)

    def __repr__(self):
        return f"AffineTransform(loc={self.loc}, scale={self.scale})"


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval

    def forward(self, x: Tensor) -> Tensor:
        info = finfo(x.dtype)
        return x.sigmoid().clamp(info.tiny, 1 - info.eps)

    def inverse(self, y: Tensor) -> Tensor:
        info = finfo(y.dtype)
        y = y.clamp(info.tiny, 1 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -log1pexp(-x) - log1pexp(x)


class TanhTransform(Transform):
    """y = tanh(x): actions in (-1, 1), as in Soft Actor-Critic (Haarnoja et al. 2018)."""

    codomain = constraints.interval(-1.0, 1.0)

    def forward(self, x: Tensor) -> Tensor:
        return x.tanh()

    def inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * (math.log(2) - x - log1pexp(-2 * x))


class ComposeTransform(Transform):
    """One transform after the other, the first in the list first."""

    def __init__(self, parts: Sequence[Transform]):
        self.parts = list(parts)
        if self.parts:
            self.domain, self.codomain = self.parts[0].domain, self.parts[-1].codomain

    event_dim = property(lambda self: max((p.event_dim for p in self.parts), default=0))

    @property
    def sign(self):
        return math.prod(p.sign for p in self.parts)

    def forward(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.inverse(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        total = summed(x * 0, self.event_dim)
        for part in self.parts:
            after = part(x)
            total = total + summed(part.log_abs_det_jacobian(x, after), self.event_dim - part.event_dim)
            x = after
        return total

    def __repr__(self):
        return f"ComposeTransform({self.parts})"


def summed(values: Tensor, dims: int) -> Tensor:
    """The sum over the last `dims` dimensions."""
    return values.flatten(-dims).sum(-1) if dims else values


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
        more = max(0, self.all.event_dim - len(event))
        split = len(batch) - more
        super().__init__(batch[:split], (*batch[split:], *event), validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    support = property(lambda self: self.transforms[-1].codomain if self.transforms else self.base_dist.support)

    def expand(self, batch_shape: tuple, _instance: Any = None) -> "TransformedDistribution":
        more = len(self.base_dist.batch_shape) - len(self.batch_shape)
        wide = self.base_dist.expand((*batch_shape, *self.event_shape[:more]))
        return TransformedDistribution(wide, self.transforms, validate_args=False)

    def sample(self, sample_shape: tuple = ()) -> Tensor:
        with no_grad():
            return self.all(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        return self.all(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self.need(value)
        x = self.all.inverse(value)
        event = len(self.event_shape)
        slope = summed(self.all.log_abs_det_jacobian(x, value), event - self.all.event_dim)
        inner = self.base_dist.log_prob(x)
        return summed(inner, event - len(self.base_dist.event_shape)) - slope

    def cdf(self, value: Tensor) -> Tensor:
        self.need(value)
        below, sign = self.base_dist.cdf(self.all.inverse(value)), self.all.sign
        return sign * (below - 0.5) + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.all(self.base_dist.icdf(self.all.sign * (value - 0.5) + 0.5))

    def __repr__(self):
        return f"TransformedDistribution({self.base_dist}, {self.transforms})"


class LogNormal(TransformedDistribution):
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

    def expand(self, batch_shape: tuple, _instance: Any = None) -> "LogNormal":
        return LogNormal(self.loc.expand(batch_shape), self.scale.expand(batch_shape), validate_args=False)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
