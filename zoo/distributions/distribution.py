"""Distribution: what all of them share, in the shapes of torch.distributions.

A distribution of batch_shape B and event_shape E gives samples of shape sample_shape + B + E and log-densities of
shape sample_shape + B. Parameters broadcast against each other to B.
"""
from typing import Any, ClassVar

from zoo.autograd.creation import tensor
from zoo.autograd.mode import no_grad
from zoo.autograd.size import Size
from zoo.autograd.tensor import Tensor
from zoo.distributions.constraints import Constraint
from zoo.ops.dtypes import default_dtype
from zoo.ops.face.shape import broadcast_tensors


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of one shape; numbers take the dtype and device of the first tensor.

    Raises:
        TypeError: something that is neither a tensor nor a number.
    """
    for v in values:
        if not isinstance(v, (Tensor, int, float)):
            raise TypeError(f"distributions: a parameter wants a tensor or a number, got {type(v).__name__}")
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = default_dtype() if like is None else like.dtype
    device = None if like is None else like.device
    return tuple(broadcast_tensors(*(v if isinstance(v, Tensor) else tensor(v, dtype=dtype, device=device)
                                     for v in values)))


class Distribution:
    """The base of all distributions.

    Subclasses give `arg_constraints` (a row per parameter, which is an attribute of that name), `support`, and of the
    methods below those that they have; `rsample` with `has_rsample`, `sample` otherwise.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    support: Any = None
    has_rsample = False
    has_enumerate_support = False
    checks: ClassVar[bool] = __debug__

    def __init__(self, batch_shape: tuple = (), event_shape: tuple = (), validate_args: bool | None = None):
        self.batch_shape, self.event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self.checks = bool(validate_args)
        if not self.checks:
            return
        for name, constraint in self.arg_constraints.items():
            value = vars(self).get(name)
            if value is not None and type(constraint) is Constraint and not bool(constraint.check(value).all()):
                raise ValueError(
                    f"{type(self).__name__}: expected parameter {name} (Tensor of shape {tuple(value.shape)}) to "
                    f"satisfy the constraint {constraint}, but found invalid values:\n{value}"
                )

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether parameters and values are checked where nothing else is said; as Python's -O says at the start."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: wants a bool, got {value!r}")
        Distribution.checks = value

    def expand(self, batch_shape: tuple, _instance: Any = None) -> "Distribution":
        """The same distribution with a larger batch; no memory is copied."""
        wide = {}
        for name in self.given_names():
            p = getattr(self, name)
            wide[name] = p.expand(*batch_shape, *p.shape[p.ndim - self.arg_constraints[name].event_dim:])
        return type(self)(**wide, validate_args=False)

    def given_names(self) -> list[str]:
        """The constructor's arguments that the user gave."""
        return [name for name in self.arg_constraints if vars(self).get(name) is not None]

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        raise NotImplementedError(f"{type(self).__name__}: has no mean")

    @property
    def mode(self) -> Tensor:
        """Where the density is largest."""
        raise NotImplementedError(f"{type(self).__name__}: has no mode")

    @property
    def variance(self) -> Tensor:
        """The expectation of (x - mean)^2, element by element."""
        raise NotImplementedError(f"{type(self).__name__}: has no variance")

    @property
    def stddev(self) -> Tensor:
        """sqrt(variance)."""
        return self.variance.sqrt()

    def sample(self, sample_shape: tuple = ()) -> Tensor:
        """Independent draws without a gradient, of shape sample_shape + batch_shape + event_shape."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: tuple = ()) -> Tensor:
        """Draws as a differentiable function of the parameters (the reparametrisation trick).

        Raises:
            NotImplementedError: `has_rsample` is False.
        """
        raise NotImplementedError(f"{type(self).__name__}: rsample is not built, has_rsample is False")

    def log_prob(self, value: Tensor) -> Tensor:
        """Log of the density, or of the probability, at `value`."""
        raise NotImplementedError(f"{type(self).__name__}: has no log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """P(x <= value)."""
        raise NotImplementedError(f"{type(self).__name__}: has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile: the x with cdf(x) = value."""
        raise NotImplementedError(f"{type(self).__name__}: has no icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first dimension."""
        raise NotImplementedError(f"{type(self).__name__}: has no enumerate_support")

    def entropy(self) -> Tensor:
        """-E[log p(x)] in nats, of shape batch_shape."""
        raise NotImplementedError(f"{type(self).__name__}: has no entropy")

    def perplexity(self) -> Tensor:
        """exp(entropy)."""
        return self.entropy().exp()

    def extended(self, sample_shape: Any = ()) -> tuple[int, ...]:
        """sample_shape + batch_shape + event_shape."""
        sample_shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    def need(self, value: Tensor) -> None:
        """Raises ValueError if `value` is not in the support, or its shape does not fit."""
        if not self.checks:
            return
        if not isinstance(value, Tensor):
            raise ValueError(f"{type(self).__name__}.log_prob: wants a tensor, got {type(value).__name__}")
        wanted = self.extended()
        for mine, other in zip(reversed(value.shape), reversed(wanted), strict=False):
            if mine != 1 and other != 1 and mine != other:
                raise ValueError(f"{type(self).__name__}: a value of shape {tuple(value.shape)} does not broadcast "
                                 f"against batch_shape + event_shape {wanted}")
        if len(self.event_shape) > value.ndim:
            raise ValueError(f"{type(self).__name__}: wants values with the event_shape {tuple(self.event_shape)} as "
                             f"last dimensions, got shape {tuple(value.shape)}")
        if self.support is not None and not bool(self.support.check(value).all()):
            raise ValueError(f"{type(self).__name__}: expected value argument (Tensor of shape {tuple(value.shape)}) "
                             f"to be within the support {self.support}, but found invalid values:\n{value}")

    def __repr__(self):
        shown = {n: vars(self).get(n) for n in self.arg_constraints}
        text = (f"{n}: {p if p.numel() == 1 else p.size()}" for n, p in shown.items() if p is not None)
        return f"{type(self).__name__}({', '.join(text)})"
