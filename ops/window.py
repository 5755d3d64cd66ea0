"""Sliding windows: what convolution and pooling share. Geometry only, no arithmetic on arrays."""
from typing import NamedTuple

from zoo.ops.errors import ShapeError


class Window(NamedTuple):
    """A kernel (R, S) that slides over an image (H, W) and stops at (P, Q) places."""
    image: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]       # top, left, bottom, right
    dilation: tuple[int, int]
    groups: int
    out: tuple[int, int]

    @property
    def is_pointwise(self) -> bool:
        return self.kernel == (1, 1) and not any(self.padding)

    def covered(self) -> tuple[int, int]:
        """Height and width that the places reach over, counted from the padded image's corner."""
        (r, s), (p, q) = self.kernel, self.out
        return ((p - 1) * self.stride[0] + (r - 1) * self.dilation[0] + 1,
                (q - 1) * self.stride[1] + (s - 1) * self.dilation[1] + 1)

    def tap(self, r: int, s: int) -> tuple[slice, slice]:
        """Where tap (r, s) looks, over all places, in the padded image."""
        (dh, dw), (sh, sw), (p, q) = self.dilation, self.stride, self.out
        return (slice(r * dh, r * dh + (p - 1) * sh + 1 if p else r * dh, sh),
                slice(s * dw, s * dw + (q - 1) * sw + 1 if q else s * dw, sw))


def four(padding: tuple[int, ...]) -> tuple[int, int, int, int]:
    """(h, w) or (top, left, bottom, right) -> the latter."""
    top, left, bottom, right = padding if len(padding) == 4 else (*padding, *padding)
    return top, left, bottom, right


def places(size: int, kernel: int, stride: int, before: int, after: int, dilation: int) -> int:
    """How many places a kernel has along one dimension; below 1 if it does not fit."""
    return (size + before + after - dilation * (kernel - 1) - 1) // stride + 1


def ints(op: str, name: str, value, count: int) -> tuple[int, ...]:
    """An int or a sequence of 1 or `count` ints as a tuple of `count`."""
    if hasattr(value, "__index__"):
        return (value.__index__(),) * count
    try:
        value = tuple(v.__index__() for v in value)
    except (TypeError, AttributeError):
        raise TypeError(f"{op}: {name} wants an int or {count} ints, got {value!r}") from None
    if len(value) not in (1, count):
        raise ShapeError(f"{op}: {name} wants an int or {count} ints, got {value}")
    return value * count if len(value) == 1 else value
