"""Layers that learn their number of inputs from the first input: torch.nn's LazyLinear, LazyConv2d and the like."""
import inspect
from typing import Any

from zoo.nn.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    Convolution,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from zoo.nn.linear import Linear
from zoo.nn.module import Module
from zoo.nn.norm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    RunningNorm,
)
from zoo.nn.parameter import Uninitialized, UninitializedBuffer, UninitializedParameter
from zoo.ops.errors import ShapeError


class LazyModuleMixin(Module):
    """What the lazy layers share: before a layer's class, it leaves out that class's first argument.

    Parameters and buffers are Uninitialized until the first call or `load_state_dict`. After the first call the module
    is of the class `cls_to_become`. An optimizer may be made before: the objects stay.
    """

    cls_to_become: type = Module

    def __init_subclass__(cls):
        """What inspect.signature and IDEs show."""
        if cls.cls_to_become is not Module:
            like = RunningNorm if issubclass(cls, RunningNorm) else cls.cls_to_become
            cls.__signature__ = inspect.Signature(list(inspect.signature(like).parameters.values())[1:])

    def __init__(self, *args: Any, **options: Any):
        super().__init__(0, *args, **options)
        for name, x in list(self._parameters.items()):
            if x is not None:
                setattr(self, name, UninitializedParameter(x.requires_grad, x.device, x.dtype))
        for name, x in list(self._buffers.items()):
            if x is not None and x.ndim:
                self.register_buffer(name, UninitializedBuffer(device=x.device, dtype=x.dtype))
        self._load_handle = self.register_load_state_dict_pre_hook(self._take_shapes)

    def _waiting(self) -> dict[str, Uninitialized]:
        return {name: x for name, x in {**self._parameters, **self._buffers}.items() if isinstance(x, Uninitialized)}

    def has_uninitialized_params(self) -> bool:
        """Whether there are parameters or buffers without a shape."""
        return bool(self._waiting())

    def _take_shapes(self, module: Module, state: dict, prefix: str, *_: Any) -> None:
        """Before load_state_dict: what it will fill gets the shapes of what comes."""
        for name, x in self._waiting().items():
            value = state.get(prefix + name)
            if value is not None and not isinstance(value, Uninitialized):
                x.materialize(value.shape)

    def reset_parameters(self) -> None:
        """Draws new weights, if there are any yet."""
        if self.__dict__.get("_load_handle") and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Any) -> None:  # noqa: A002
        """Sizes the module for this input, and draws weights unless they were loaded."""
        shapes = self.infer(input)
        waiting = self._waiting()
        for name, x in waiting.items():
            x.materialize(shapes[name])
        if waiting:
            self.reset_parameters()

    def infer(self, input: Any) -> dict[str, tuple]:  # noqa: A002
        """Sets the number of inputs by an input; gives the shapes of parameters and buffers by name."""
        raise NotImplementedError

    def __call__(self, input: Any, *args: Any, **options: Any) -> Any:  # noqa: A002
        self.initialize_parameters(input)
        self._load_handle.remove()
        del self._load_handle
        self.__class__ = self.cls_to_become
        return self(input, *args, **options)


class LazyLinear(LazyModuleMixin, Linear):
    """Linear whose in_features is that of the first input; arguments as Linear's, without in_features.

    Example:
        >>> import zoo
        >>> layer = zoo.nn.LazyLinear(3)
        >>> layer(zoo.ones(4, 5)).shape, layer
        ((4, 3), Linear(in_features=5, out_features=3, bias=True))
    """

    cls_to_become = Linear

    def infer(self, input: Any) -> dict[str, tuple]:  # noqa: A002
        """in_features, from the last dimension."""
        self.in_features = input.shape[-1]
        return {"weight": (self.out_features, self.in_features), "bias": (self.out_features,)}


class LazyConvolution(LazyModuleMixin, Convolution):
    """What lazy convolutions share; arguments as the convolution's, without in_channels."""

    def infer(self, input: Any) -> dict[str, tuple]:  # noqa: A002
        """in_channels, from the dimension before the spatial ones."""
        if input.ndim not in (self.dims + 1, self.dims + 2):
            raise ShapeError(f"{type(self).__name__}: wants {self.dims + 1} dims (unbatched) or {self.dims + 2} "
                             f"(batched), got shape {input.shape}")
        channels = self.in_channels = input.shape[-self.dims - 1]
        if channels % self.groups:
            raise ValueError(f"{type(self).__name__}: wants groups that divide the input's {channels} channels, got "
                             f"{self.groups}")
        pair = ((channels, self.out_channels // self.groups) if self.transposed
                else (self.out_channels, channels // self.groups))
        return {"weight": (*pair, *self.kernel_size), "bias": (self.out_channels,)}


class LazyNorm(LazyModuleMixin, RunningNorm):
    """What lazy batch and instance norms share; arguments as BatchNorm2d's, without num_features.

    That holds for instance norms too: by default they have a weight, a bias and running statistics, as torch's.
    """

    def __init__(self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None, **options: Any):
        super().__init__(eps, momentum, affine, track_running_stats, device, dtype, **options)

    def infer(self, input: Any) -> dict[str, tuple]:  # noqa: A002
        """num_features, from the channel dimension."""
        self.check_input(input)
        batched_only = issubclass(self.cls_to_become, (BatchNorm1d, BatchNorm2d, BatchNorm3d))
        self.num_features = input.shape[1 if batched_only else 1 - max(self.ranks)]
        return dict.fromkeys(("weight", "bias", "running_mean", "running_var"), (self.num_features,))


class LazyConv1d(LazyConvolution, Conv1d):
    """Conv1d whose in_channels is that of the first input."""

    cls_to_become = Conv1d


class LazyConv2d(LazyConvolution, Conv2d):
    """Conv2d whose in_channels is that of the first input; arguments as Conv2d's, without in_channels.

    Example:
        >>> import zoo
        >>> zoo.nn.LazyConv2d(4, kernel_size=3, padding=1)(zoo.ones(2, 3, 5, 5)).shape
        (2, 4, 5, 5)
    """

    cls_to_become = Conv2d


class LazyConv3d(LazyConvolution, Conv3d):
    """Conv3d whose in_channels is that of the first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(LazyConvolution, ConvTranspose1d):
    """ConvTranspose1d whose in_channels is that of the first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(LazyConvolution, ConvTranspose2d):
    """ConvTranspose2d whose in_channels is that of the first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(LazyConvolution, ConvTranspose3d):
    """ConvTranspose3d whose in_channels is that of the first input."""

    cls_to_become = ConvTranspose3d


class LazyBatchNorm1d(LazyNorm, BatchNorm1d):
    """BatchNorm1d whose num_features is that of the first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(LazyNorm, BatchNorm2d):
    """BatchNorm2d whose num_features is that of the first input; arguments as BatchNorm2d's, without num_features.

    Example:
        >>> import zoo
        >>> zoo.nn.LazyBatchNorm2d()(zoo.ones(2, 3, 5, 5)).shape
        (2, 3, 5, 5)
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(LazyNorm, BatchNorm3d):
    """BatchNorm3d whose num_features is that of the first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(LazyNorm, InstanceNorm1d):
    """InstanceNorm1d whose num_features is that of the first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(LazyNorm, InstanceNorm2d):
    """InstanceNorm2d whose num_features is that of the first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(LazyNorm, InstanceNorm3d):
    """InstanceNorm3d whose num_features is that of the first input."""

    cls_to_become = InstanceNorm3d
