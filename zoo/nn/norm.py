"""Normalisation layers."""

from typing import Any

from zoo.autograd.creation import empty, tensor, zeros
from zoo.autograd.creation import ones as new_ones
from zoo.nn import functional as F  # noqa: N812
from zoo.nn import init
from zoo.nn.module import Module
from zoo.nn.parameter import Parameter
from zoo.ops.dtypes import int64
from zoo.ops.errors import ShapeError


def scale_and_shift(module: Module, shape: Any, affine: bool, bias: bool, device, dtype) -> None:
    """weight of ones and bias of zeros, or None where they are not wanted."""
    module.register_parameter("weight", Parameter(empty(shape, device=device, dtype=dtype)) if affine else None)
    module.register_parameter("bias", Parameter(empty(shape, device=device, dtype=dtype)) if affine and bias else None)


def reset(module: Module) -> None:
    """weight 1 and bias 0, where they are."""
    if module.weight is not None:
        init.ones_(module.weight)
    if module.bias is not None:
        init.zeros_(module.bias)


class RunningNorm(Module):
    """What batch and instance norm share: running mean and variance, weight and bias."""

    _version = 2
    ranks: tuple[int, ...] = ()
    wanted = ""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        scale_and_shift(self, num_features, affine, bias, device, dtype)
        stats = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if stats else None)
        self.register_buffer("running_var", new_ones(num_features, device=device, dtype=dtype) if stats else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=int64, device=device) if stats else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forgets what was seen: mean 0, variance 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """weight 1, bias 0, running mean 0 and variance 1."""
        self.reset_running_stats()
        reset(self)

    def optional_keys(self, metadata: dict) -> tuple[str, ...]:
        """What a state_dict of version 1 does not have."""
        return ("num_batches_tracked",) if metadata.get("version", 1) < 2 and self.track_running_stats else ()

    def check_input(self, input) -> None:  # noqa: A002
        if input.ndim not in self.ranks:
            raise ShapeError(f"{type(self).__name__}: wants {self.wanted}, got {tuple(input.shape)}")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm(RunningNorm):
    """y = (x - mean) / sqrt(var + eps) * weight + bias over all but the channel dimension (Ioffe and Szegedy, 2015)."""

    def forward(self, input):  # noqa: A002
        return F.batch_norm(input, *self.arguments(input))

    def with_relu(self, input, residual=None):  # noqa: A002
        """relu(self(input) + residual) as one op; without residual relu(self(input))."""
        *rest, batches = self.arguments(input)
        return F.batch_norm_act(input, *rest, residual, batches)

    def arguments(self, input) -> tuple:  # noqa: A002
        """What `F.batch_norm` wants after the input."""
        self.check_input(input)
        use_batch = self.training or self.running_mean is None
        stats: tuple = (self.running_mean, self.running_var, self.num_batches_tracked)
        if self.training and not self.track_running_stats:
            stats = None, None, None
        return *stats[:2], self.weight, self.bias, use_batch, self.momentum, self.eps, stats[2]


class BatchNorm1d(BatchNorm):
    """Batch norm of (N, C) or (N, C, L); eval mode uses the running mean and variance.

    Example:
        >>> import zoo
        >>> zoo.nn.BatchNorm1d(3)(zoo.rand(4, 3)).shape
        (4, 3)
    """

    ranks, wanted = (2, 3), "(N, C) or (N, C, L)"


class BatchNorm2d(BatchNorm):
    """Batch norm of (N, C, H, W); eval mode uses the running mean and variance.

    Args:
        num_features: C. eps: added to the variance.
        momentum: share of the new batch in the running statistics; None for their plain average.
        affine: with weight and bias. track_running_stats: without, eval mode uses the batch as well.

    Example:
        >>> import zoo
        >>> zoo.nn.BatchNorm2d(3)(zoo.rand(4, 3, 5, 5)).shape
        (4, 3, 5, 5)
    """

    ranks, wanted = (4,), "(N, C, H, W)"


class BatchNorm3d(BatchNorm):
    """Batch norm of (N, C, D, H, W)."""

    ranks, wanted = (5,), "(N, C, D, H, W)"


class InstanceNorm(RunningNorm):
    """Normalises each channel of each sample by its own mean and variance (Ulyanov et al., 2016)."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input):  # noqa: A002
        self.check_input(input)
        if input.ndim == self.ranks[0]:  # no batch dimension
            return self.forward(input.unsqueeze(0)).squeeze(0)
        use_input = self.training or not self.track_running_stats
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            use_input,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )


class InstanceNorm1d(InstanceNorm):
    """Instance norm of (N, C, L) or (C, L)."""

    ranks, wanted = (2, 3), "(N, C, L) or (C, L)"


class InstanceNorm2d(InstanceNorm):
    """Instance norm of (N, C, H, W) or (C, H, W)."""

    ranks, wanted = (3, 4), "(N, C, H, W) or (C, H, W)"


class InstanceNorm3d(InstanceNorm):
    """Instance norm of (N, C, D, H, W) or (C, D, H, W)."""

    ranks, wanted = (4, 5), "(N, C, D, H, W) or (C, D, H, W)"


class LayerNorm(Module):
    """y = (x - mean) / sqrt(var + eps) * weight + bias over the last dimensions, `normalized_shape` (Ba et al., 2016).

    Example:
        >>> import zoo
        >>> zoo.nn.LayerNorm(4)(zoo.rand(2, 3, 4)).shape
        (2, 3, 4)
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        scale_and_shift(self, self.normalized_shape, elementwise_affine, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """weight 1, bias 0."""
        reset(self)

    def forward(self, input):  # noqa: A002
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        flags = f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        return f"{self.normalized_shape}, eps={self.eps}, {flags}"


class RMSNorm(Module):
    """y = x / sqrt(mean(x^2) + eps) * weight over the last dimensions (Zhang, Sennrich, 2019); eps None: the dtype's.

    Example:
        >>> import zoo
        >>> zoo.nn.RMSNorm(2)(zoo.tensor([[3.0, 3.0]])).detach()
        tensor([[1., 1.]])
    """

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, device=None, dtype=None
    ):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        weight = Parameter(empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """weight 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input):  # noqa: A002
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalises groups of channels of each sample together (Wu and He, 2018); (N, C, *) with num_groups dividing C.

    Example:
        >>> import zoo
        >>> zoo.nn.GroupNorm(2, 6)(zoo.rand(4, 6, 5, 5)).shape
        (4, 6, 5, 5)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"GroupNorm: wants num_groups that divides num_channels {num_channels}, got {num_groups}")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        scale_and_shift(self, num_channels, affine, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """weight 1, bias 0."""
        reset(self)

    def forward(self, input):  # noqa: A002
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        flags = f"affine={self.affine}, bias={self.bias is not None}"
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, {flags}"


class LocalResponseNorm(Module):
    """input / (k + alpha * mean of input^2 over `size` neighbouring channels)^beta (Krizhevsky et al., 2012)."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input):  # noqa: A002
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
