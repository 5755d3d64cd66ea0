"""Convolutions as modules."""

import math
from typing import Any

from zoo.autograd.creation import empty
from zoo.nn import functional as F  # noqa: N812
from zoo.nn import init
from zoo.nn.module import Module
from zoo.nn.parameter import Parameter
from zoo.ops.errors import ArgumentError

MODES = ("zeros", "reflect", "replicate", "circular")


def several(value: Any, n: int) -> tuple[int, ...]:
    """3 -> (3, 3); a sequence stays as it is."""
    return tuple(value) if hasattr(value, "__iter__") else (value,) * n


class Convolution(Module):
    """What the four convolutions share: arguments, weights, their initialisation and the repr."""

    dims, transposed = 0, False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        output_padding: Any = 0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        name = type(self).__name__
        if groups <= 0 or in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{name}: wants groups that divide channels {in_channels} (in) and {out_channels} (out), got {groups}"
            )
        if padding_mode not in MODES or self.transposed and padding_mode != "zeros":
            raise ValueError(
                f"{name}: wants padding_mode of {MODES[:1] if self.transposed else MODES}, got {padding_mode!r}"
            )
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"{name}: wants padding of numbers, 'same' or 'valid', got {padding!r}")
        self.in_channels, self.out_channels, self.groups, self.padding_mode = (
            in_channels,
            out_channels,
            groups,
            padding_mode,
        )
        self.kernel_size, self.stride, self.dilation, self.output_padding = (
            several(v, self.dims) for v in (kernel_size, stride, dilation, output_padding)
        )
        self.padding = padding if isinstance(padding, str) else several(padding, self.dims)
        if padding == "same" and any(s != 1 for s in self.stride):
            raise ValueError(f"{name}: padding='same' wants stride 1, got {self.stride}")
        channels = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(empty((*channels, *self.kernel_size), device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights: U(-k, k) with k = 1/sqrt(weight.shape[1] * product of kernel_size)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = self.weight[0].numel()
            if fan_in:
                init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def around(self, input):  # noqa: A002
        """The input padded as padding_mode says, where the op itself cannot do it."""
        if self.padding == "valid":
            return input
        if self.padding == "same":
            total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            pairs = [(t // 2, t - t // 2) for t in total]
        else:
            pairs = [(p, p) for p in self.padding]
        return F.pad(input, tuple(p for pair in reversed(pairs) for p in pair), mode=self.padding_mode)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        nothing = (0,) * self.dims
        text += "" if self.padding == nothing else f", padding={self.padding}"
        text += "" if self.dilation == (1,) * self.dims else f", dilation={self.dilation}"
        text += "" if self.output_padding == nothing else f", output_padding={self.output_padding}"
        text += "" if self.groups == 1 else f", groups={self.groups}"
        text += "" if self.bias is not None else ", bias=False"
        return text + ("" if self.padding_mode == "zeros" else f", padding_mode={self.padding_mode}")


class ForwardConvolution(Convolution):
    """Arguments of Conv1d and Conv2d in torch's order."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ):
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )


class Conv1d(ForwardConvolution):
    """Cross-correlation along one dimension.

    Shape: (N, C_in, L) or (C_in, L) -> (N, C_out, L_out); weight (C_out, C_in / groups, K).

    Example:
        >>> import zoo
        >>> zoo.nn.Conv1d(3, 5, 3, stride=2)(zoo.ones(2, 3, 9)).shape
        (2, 5, 4)
    """

    dims = 1

    def forward(self, input):  # noqa: A002
        if self.padding_mode != "zeros":
            return F.conv1d(self.around(input), self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
        return F.conv1d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(ForwardConvolution):
    """Cross-correlation along height and width.

    Shape: (N, C_in, H, W) or (C_in, H, W) -> (N, C_out, H_out, W_out); weight (C_out, C_in / groups, KH, KW).
    H_out = floor((H + 2 padding - dilation (KH - 1) - 1) / stride) + 1.

    Example:
        >>> import zoo
        >>> zoo.nn.Conv2d(3, 8, 3, padding=1)(zoo.ones(2, 3, 5, 5)).shape
        (2, 8, 5, 5)
    """

    dims = 2

    def forward(self, input):  # noqa: A002
        if self.padding_mode != "zeros":
            return F.conv2d(self.around(input), self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
        return F.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class TransposedConvolution(Convolution):
    """Arguments of ConvTranspose1d and ConvTranspose2d in torch's order."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ):
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            output_padding,
            device,
            dtype,
        )

    def extra_padding(self, shape: tuple[int, ...], output_size: Any) -> tuple[int, ...]:
        """The output_padding that gives output_size."""
        if output_size is None:
            return self.output_padding
        wanted = tuple(output_size)[-self.dims :]
        sizes = zip(shape[-self.dims :], self.stride, self.padding, self.dilation, self.kernel_size, strict=True)
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in sizes]
        extra = tuple(w - m for w, m in zip(wanted, least, strict=True))
        if any(not 0 <= e < s for e, s in zip(extra, self.stride, strict=True)):
            most = [m + s - 1 for m, s in zip(least, self.stride, strict=True)]
            raise ArgumentError(f"{type(self).__name__}: wants output_size between {least} and {most}, got {wanted}")
        return extra


class ConvTranspose1d(TransposedConvolution):
    """The transpose of Conv1d, which is its gradient: it makes the length grow.

    Shape: (N, C_in, L) -> (N, C_out, L_out); weight (C_in, C_out / groups, K).
    """

    dims = 1

    def forward(self, input, output_size: Any = None):  # noqa: A002
        extra = self.extra_padding(input.shape, output_size)
        return F.conv_transpose1d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose2d(TransposedConvolution):
    """The transpose of Conv2d, which is its gradient: it makes height and width grow.

    Shape: (N, C_in, H, W) -> (N, C_out, H_out, W_out); weight (C_in, C_out / groups, KH, KW).
    H_out = (H - 1) stride - 2 padding + dilation (KH - 1) + output_padding + 1.

    Example:
        >>> import zoo
        >>> zoo.nn.ConvTranspose2d(3, 8, 2, stride=2)(zoo.ones(2, 3, 5, 5)).shape
        (2, 8, 10, 10)
    """

    dims = 2

    def forward(self, input, output_size: Any = None):  # noqa: A002
        extra = self.extra_padding(input.shape, output_size)
        return F.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class Conv3d(ForwardConvolution):
    """Cross-correlation along depth, height and width.

    Shape: (N, C_in, D, H, W) or (C_in, D, H, W) -> (N, C_out, ...); weight (C_out, C_in / groups, KD, KH, KW).
    """

    dims = 3

    def forward(self, input):  # noqa: A002
        if self.padding_mode != "zeros":
            return F.conv3d(self.around(input), self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
        return F.conv3d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class ConvTranspose3d(TransposedConvolution):
    """The transpose of Conv3d, which is its gradient.

    Shape: (N, C_in, D, H, W) -> (N, C_out, ...); weight (C_in, C_out / groups, KD, KH, KW).
    """

    dims = 3

    def forward(self, input, output_size: Any = None):  # noqa: A002
        extra = self.extra_padding(input.shape, output_size)
        return F.conv_transpose3d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )
