"""Transforms: invertible functions with the log of their slope, elementwise and of whole vectors.

If y = f(x) then log p(y) = log p(x) - log |det df/dx|.
"""
import math
from collections.abc import Sequence
from typing import Any

from zoo.autograd.tensor import Tensor
from zoo.distributions import constraints
from zoo.distributions.constraints import Constraint
from zoo.distributions.discrete import log1pexp
from zoo.distributions.distribution import broadcast_all
from zoo.ops.face.join import cat
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

    def forward_shape(self, shape: tuple) -> tuple:
        """The shape of f(x) for x of this shape."""
        return tuple(shape)

    def inverse_shape(self, shape: tuple) -> tuple:
        """The shape of x for f(x) of this shape."""
        return tuple(shape)

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

    def forward_shape(self, shape: tuple) -> tuple:
        return self.transform.inverse_shape(shape)

    def inverse_shape(self, shape: tuple) -> tuple:
        return self.transform.forward_shape(shape)

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


class PowerTransform(Transform):
    """y = x^exponent, of positive numbers.

    Example:
        >>> import zoo
        >>> from zoo.distributions.transforms import PowerTransform
        >>> PowerTransform(2.0).inv(zoo.tensor(9.0))
        tensor(3.)
    """

    domain = codomain = constraints.positive

    def __init__(self, exponent: Any):
        (self.exponent,) = broadcast_all(exponent)

    sign = property(lambda self: self.exponent.sign())

    def forward(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def __repr__(self):
        return f"PowerTransform(exponent={self.exponent})"


class AbsTransform(Transform):
    """y = |x|; `inv` gives the positive one of the two."""

    codomain = constraints.positive

    def forward(self, x: Tensor) -> Tensor:
        return x.abs()

    def inverse(self, y: Tensor) -> Tensor:
        return y


class SoftplusTransform(Transform):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive

    def forward(self, x: Tensor) -> Tensor:
        return log1pexp(x)

    def inverse(self, y: Tensor) -> Tensor:
        return y + (-(-y).expm1()).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -log1pexp(-x)


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


class SoftmaxTransform(Transform):
    """y = exp(x) / sum exp(x) over the last dimension; `inv` gives log y, one of many x."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def forward(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(Transform):
    """K numbers to K + 1 shares of a stick: each breaks off a part of what is left, equal ones at x = 0.

    Example:
        >>> import zoo
        >>> from zoo.distributions.transforms import StickBreakingTransform
        >>> StickBreakingTransform()(zoo.zeros(3))
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    domain, codomain = constraints.real_vector, constraints.simplex

    def shift(self, x: Tensor) -> Tensor:
        """Log of how many shares come after each: then x = 0 breaks off an equal part."""
        return x.new_tensor(list(range(x.shape[-1], 0, -1))).log()

    def forward(self, x: Tensor) -> Tensor:
        part = (x - self.shift(x)).sigmoid()
        one, left = part[..., :1] * 0 + 1, (1 - part).cumprod(-1)
        return cat((part, one), -1) * cat((one, left), -1)

    def inverse(self, y: Tensor) -> Tensor:
        shares = y[..., :-1]
        left = (1 - shares.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return shares.log() - left.log() + self.shift(shares)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        z = x - self.shift(x)
        return (y[..., :-1].log() - z - log1pexp(-z)).sum(-1)

    def forward_shape(self, shape: tuple) -> tuple:
        return *shape[:-1], shape[-1] + 1

    def inverse_shape(self, shape: tuple) -> tuple:
        return *shape[:-1], shape[-1] - 1


class IndependentTransform(Transform):
    """`base_transform`, of whose batch the last dimensions belong to the event."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int):
        self.base_transform, self.dims = base_transform, reinterpreted_batch_ndims
        self.domain = constraints.independent(base_transform.domain, self.dims)
        self.codomain = constraints.independent(base_transform.codomain, self.dims)

    sign = property(lambda self: self.base_transform.sign)

    def forward(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inverse(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return summed(self.base_transform.log_abs_det_jacobian(x, y), self.dims)

    def __repr__(self):
        return f"IndependentTransform({self.base_transform}, {self.dims})"


class ReshapeTransform(Transform):
    """An event of in_shape as one of out_shape.

    Raises:
        ValueError: shapes of different numbers of elements.
    """

    def __init__(self, in_shape: tuple, out_shape: tuple):
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(f"ReshapeTransform: wants shapes of equal size, got {self.in_shape} and {self.out_shape}")
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[:x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: tuple) -> tuple:
        return *shape[:len(shape) - len(self.in_shape)], *self.out_shape

    def inverse_shape(self, shape: tuple) -> tuple:
        return *shape[:len(shape) - len(self.out_shape)], *self.in_shape


class ComposeTransform(Transform):
    """One transform after the other, the first in the list first."""

    def __init__(self, parts: Sequence[Transform]):
        self.parts = list(parts)
        if self.parts:
            self.domain = widened(self.parts[0].domain, [(p.codomain, p.domain) for p in reversed(self.parts)])
            self.codomain = widened(self.parts[-1].codomain, [(p.domain, p.codomain) for p in self.parts])

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
        total, dims = None, self.domain.event_dim
        for part in self.parts:
            after = part(x)
            slope = summed(part.log_abs_det_jacobian(x, after), dims - part.domain.event_dim)
            total = slope if total is None else total + slope
            x, dims = after, dims + part.codomain.event_dim - part.domain.event_dim
        return x * 0 if total is None else total

    def forward_shape(self, shape: tuple) -> tuple:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: tuple) -> tuple:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return tuple(shape)

    def __repr__(self):
        return f"ComposeTransform({self.parts})"


def widened(outer: Constraint, steps: list[tuple[Constraint, Constraint]]) -> Constraint:
    """`outer`, the last of a row of (from, to) sets, on events with as many dimensions as the row makes of them."""
    dims = steps[0][0].event_dim
    for before, after in steps:
        dims = max(dims + after.event_dim - before.event_dim, after.event_dim)
    more = dims - outer.event_dim
    return constraints.independent(outer, more) if more > 0 else outer


def summed(values: Tensor, dims: int) -> Tensor:
    """The sum over the last `dims` dimensions."""
    return values.flatten(-dims).sum(-1) if dims else values
