"""Padding as modules: (left, right, top, bottom, front, back), or one number for all sides."""

from typing import Any

from zoo.nn import functional as F  # noqa: N812
from zoo.nn.module import Module


class Pad(Module):
    """What the paddings share."""

    dims, mode = 0, "constant"

    def __init__(self, padding: Any):
        super().__init__()
        self.padding = (padding,) * (2 * self.dims) if isinstance(padding, int) else tuple(padding)

    def forward(self, input):  # noqa: A002
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ConstantPad(Module):
    """What the paddings with a value share."""

    dims = 0

    def __init__(self, padding: Any, value: float):
        super().__init__()
        self.padding = (padding,) * (2 * self.dims) if isinstance(padding, int) else tuple(padding)
        self.value = value

    def forward(self, input):  # noqa: A002
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(ConstantPad):
    """`value` around (N, C, L)."""

    dims = 1


class ConstantPad2d(ConstantPad):
    """`value` around (N, C, H, W)."""

    dims = 2


class ConstantPad3d(ConstantPad):
    """`value` around (N, C, D, H, W)."""

    dims = 3


class ZeroPad1d(Pad):
    """Zeros around (N, C, L)."""

    dims, mode = 1, "constant"


class ZeroPad2d(Pad):
    """Zeros around (N, C, H, W)."""

    dims, mode = 2, "constant"


class ZeroPad3d(Pad):
    """Zeros around (N, C, D, H, W)."""

    dims, mode = 3, "constant"


class ReflectionPad1d(Pad):
    """The mirrored inside around (N, C, L)."""

    dims, mode = 1, "reflect"


class ReflectionPad2d(Pad):
    """The mirrored inside around (N, C, H, W)."""

    dims, mode = 2, "reflect"


class ReflectionPad3d(Pad):
    """The mirrored inside around (N, C, D, H, W)."""

    dims, mode = 3, "reflect"


class ReplicationPad1d(Pad):
    """The border, repeated, around (N, C, L)."""

    dims, mode = 1, "replicate"


class ReplicationPad2d(Pad):
    """The border, repeated, around (N, C, H, W)."""

    dims, mode = 2, "replicate"


class ReplicationPad3d(Pad):
    """The border, repeated, around (N, C, D, H, W)."""

    dims, mode = 3, "replicate"


class CircularPad1d(Pad):
    """The opposite side around (N, C, L)."""

    dims, mode = 1, "circular"


class CircularPad2d(Pad):
    """The opposite side around (N, C, H, W)."""

    dims, mode = 2, "circular"


class CircularPad3d(Pad):
    """The opposite side around (N, C, D, H, W)."""

    dims, mode = 3, "circular"
