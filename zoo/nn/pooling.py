"""Pooling as modules."""

from typing import Any

import numpy as np

from zoo.autograd.mode import MODE
from zoo.autograd.tensor import wrap
from zoo.nn import functional as F  # noqa: N812
from zoo.nn.conv import several
from zoo.nn.module import Module
from zoo.ops.pool import max_pool_values
from zoo.ops.window import ints


class MaxPool(Module):
    """What the max pools share."""

    function = ""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation, self.return_indices, self.ceil_mode = padding, dilation, return_indices, ceil_mode

    def forward(self, input):  # noqa: A002
        if MODE.inference and not self.return_indices and type(input.array) is np.ndarray:
            rank = int(self.function[-2])
            if input.ndim == rank + 2:
                return wrap(self.values(input.array, rank))
        return getattr(F, self.function)(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def values(self, x: np.ndarray, rank: int) -> np.ndarray:
        """The maxima alone: nobody will ask for a gradient, which is what the indices are for."""
        options = self.kernel_size, self.stride, self.padding, self.dilation
        return max_pool_values(x, *(ints(self.function, "options", v, rank) for v in options), self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(MaxPool):
    """The greatest value of each window along one dimension; (N, C, L) or (C, L)."""

    function = "max_pool1d"


class MaxPool2d(MaxPool):
    """The greatest value of each window; (N, C, H, W) or (C, H, W).

    Example:
        >>> import zoo
        >>> zoo.nn.MaxPool2d(2)(zoo.ones(1, 1, 4, 6)).shape
        (1, 1, 2, 3)
    """

    function = "max_pool2d"


class AvgPool1d(Module):
    """The mean of each window along one dimension; (N, C, L) or (C, L)."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):
        super().__init__()
        stride = kernel_size if stride is None else stride
        self.kernel_size, self.stride, self.padding = (several(v, 1) for v in (kernel_size, stride, padding))
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input):  # noqa: A002
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of each window; (N, C, H, W) or (C, H, W).

    Example:
        >>> import zoo
        >>> zoo.nn.AvgPool2d(2)(zoo.ones(1, 1, 4, 6)).shape
        (1, 1, 2, 3)
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def forward(self, input):  # noqa: A002
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AdaptiveAvgPool1d(Module):
    """The mean of windows such that the output has the wanted length."""

    def __init__(self, output_size: Any):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):  # noqa: A002
        return F.adaptive_avg_pool1d(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool2d(AdaptiveAvgPool1d):
    """The mean of windows such that the output has the wanted height and width; None keeps the input's.

    Example:
        >>> import zoo
        >>> zoo.nn.AdaptiveAvgPool2d((1, 1))(zoo.ones(2, 3, 7, 7)).shape
        (2, 3, 1, 1)
    """

    def forward(self, input):  # noqa: A002
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveMaxPool1d(Module):
    """The greatest value of windows such that the output has the wanted length."""

    def __init__(self, output_size: Any, return_indices: bool = False):
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input):  # noqa: A002
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool2d(AdaptiveMaxPool1d):
    """The greatest value of windows such that the output has the wanted height and width."""

    def forward(self, input):  # noqa: A002
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class MaxPool3d(MaxPool):
    """The greatest value of each window; (N, C, D, H, W) or (C, D, H, W)."""

    function = "max_pool3d"


class AvgPool3d(AvgPool2d):
    """The mean of each window; (N, C, D, H, W) or (C, D, H, W)."""

    def forward(self, input):  # noqa: A002
        return F.avg_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AdaptiveAvgPool3d(AdaptiveAvgPool1d):
    """The mean of windows such that the output has the wanted depth, height and width."""

    def forward(self, input):  # noqa: A002
        return F.adaptive_avg_pool3d(input, self.output_size)


class AdaptiveMaxPool3d(AdaptiveMaxPool1d):
    """The greatest value of windows such that the output has the wanted depth, height and width."""

    def forward(self, input):  # noqa: A002
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class MaxUnpool(Module):
    """What the unpoolings share."""

    dims = 0

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0):
        super().__init__()
        stride = kernel_size if stride is None else stride
        self.kernel_size, self.stride, self.padding = (several(v, self.dims) for v in (kernel_size, stride, padding))

    def forward(self, input, indices, output_size: Any = None):  # noqa: A002
        unpool = getattr(F, f"max_unpool{self.dims}d")
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(MaxUnpool):
    """Puts the values of MaxPool1d back where its indices say; zeros elsewhere."""

    dims = 1


class MaxUnpool2d(MaxUnpool):
    """Puts the values of MaxPool2d back where its indices say; zeros elsewhere."""

    dims = 2


class MaxUnpool3d(MaxUnpool):
    """Puts the values of MaxPool3d back where its indices say; zeros elsewhere."""

    dims = 3


class LPPool1d(Module):
    """The p-norm of each window along one dimension: (sum of x^p)^(1/p)."""

    function = "lp_pool1d"

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False):
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input):  # noqa: A002
        return getattr(F, self.function)(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool2d(LPPool1d):
    """The p-norm of each window of an image: (sum of x^p)^(1/p)."""

    function = "lp_pool2d"


class LPPool3d(LPPool1d):
    """The p-norm of each window of a volume: (sum of x^p)^(1/p)."""

    function = "lp_pool3d"
