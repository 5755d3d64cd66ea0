"""Where pixels go: resize, crop, pad, flip, rotate, affine. torchvision's numbers on PIL images and tensors."""

import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from zoo.autograd.tensor import Tensor, wrap
from zoo.data.transforms.picture import array_of, get_size, is_picture
from zoo.ops.dtypes import FLOATS, float32

LARGEST = 1 << 26       # pixels of a resized picture that is made in full


class InterpolationMode(StrEnum):
    """How pixels between pixels are made; the string itself does as well."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


def pil_filter(name: str, interpolation: str) -> Any:
    """PIL's constant for an interpolation.

    Raises:
        ValueError: there is none of that name.
    """
    from PIL.Image import Resampling

    known = [mode.value for mode in InterpolationMode]
    if interpolation not in known:
        raise ValueError(f"{name}: wants an interpolation of {', '.join(known)}, got {interpolation!r}")
    return Resampling["NEAREST" if interpolation.startswith("nearest") else interpolation.upper()]


def pair(name: str, size: Any) -> tuple[int, int]:
    """(height, width) from a number, a sequence of one or of two.

    Raises:
        ValueError: other lengths, or a side that is no integer of at least 1.
    """
    sides = tuple(size) if isinstance(size, Sequence) else (size,)
    if len(sides) not in (1, 2) or not all(isinstance(n, (int, np.integer)) and n > 0 for n in sides):
        raise ValueError(f"{name}: wants a size of at least 1, or (height, width), got {size!r}")
    return int(sides[0]), int(sides[-1])


def resized_size(height: int, width: int, size: Any, max_size: int | None = None) -> tuple[int, int]:
    """The size that `resize` gives a picture of height x width; torchvision rounds the longer side down.

    Raises:
        ValueError: a picture without pixels; max_size with a size of two sides, not above size, or missing.
    """
    if isinstance(size, Sequence) and len(size) == 2:
        if max_size is not None:
            raise ValueError(f"resize: wants max_size only with a size of one number, got {size}")
        return pair("resize", size)
    if not height or not width:
        raise ValueError(f"resize: wants a picture of at least one pixel, got {height} x {width}")
    low, high = sorted((height, width))
    if size is None:
        if max_size is None:
            raise ValueError("resize: wants size or max_size, got neither")
        short, long = int(max_size * low / high), max_size
    else:
        short = pair("resize", size)[0]
        long = int(short * high / low)
        if max_size is not None and max_size <= short:
            raise ValueError(f"resize: wants max_size above size, got {max_size} and {short}")
        if max_size is not None and long > max_size:
            short, long = int(max_size * short / long), max_size
    return (long, short) if width <= height else (short, long)


def resize(
    inpt: Any,
    size: Any,
    interpolation: str = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """A picture or a tensor (..., H, W) of another size.

    Args:
        size: of the shorter side, the longer one in proportion; or (height, width); or None with max_size.
        interpolation: of `InterpolationMode`; "nearest" takes the pixels that PIL takes, on tensors too.
        max_size: of the longer side, where size is one number or None.
        antialias: torchvision's argument; here it is always on, as it is for PIL images there.

    Raises:
        ValueError: a wrong size, or antialias=False. TypeError: a tensor that is neither of integers nor of floats.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import functional as F
        >>> F.resize(zoo.zeros(3, 10, 15), 4).shape
        (3, 4, 6)
    """
    if antialias is False:
        raise ValueError("resize: antialias=False is not offered: models expect antialiased pictures")
    old = tuple(get_size(inpt))
    new = resized_size(*old, size, max_size)
    chosen = pil_filter("resize", interpolation)
    if old == new:
        return inpt
    if is_picture(inpt):
        return inpt.resize(new[::-1], chosen)
    return by_plane("resize", inpt, lambda plane, _: plane.resize(new[::-1], chosen))


def by_plane(name: str, tensor: Any, function: Callable[[Any, int], Any]) -> Tensor:
    """function(PIL image, its number) for each plane of (..., H, W): bytes as bytes, other numbers as float32.

    Raises:
        TypeError: neither integers nor floats.
    """
    from PIL import Image

    array = array_of(name, tensor)
    if array.dtype not in FLOATS and array.dtype.kind not in "iu":
        raise TypeError(f"{name}: wants integers or floats, got {array.dtype}")
    work = array.astype(np.uint8 if array.dtype == np.uint8 else float32, copy=False)
    planes = np.ascontiguousarray(work).reshape(-1, *array.shape[-2:])
    made = np.stack([np.asarray(function(Image.fromarray(plane), k)) for k, plane in enumerate(planes)])
    if work.dtype == float32 and array.dtype not in FLOATS:
        info = np.iinfo(array.dtype)
        made = np.clip(np.rint(made), info.min, info.max)
    return wrap(made.reshape(*array.shape[:-2], *made.shape[-2:]).astype(array.dtype, copy=False))


def crop(inpt: Any, top: int, left: int, height: int, width: int) -> Any:
    """The rectangle from (top, left) on; what lies outside of the picture is 0.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import functional as F
        >>> F.crop(zoo.ones(1, 2, 2), 1, 1, 1, 2)
        tensor([[[1., 0.]]])
    """
    if is_picture(inpt):
        return inpt.crop((left, top, left + width, top + height))
    rows, columns = get_size(inpt)
    inside = array_of("crop", inpt)[
        ..., max(top, 0) : max(min(top + height, rows), 0), max(left, 0) : max(min(left + width, columns), 0)
    ]
    if inside.shape[-2:] == (height, width):
        return wrap(inside.copy())
    made = np.zeros((*inside.shape[:-2], height, width), inside.dtype)
    y, x = max(-top, 0), max(-left, 0)
    made[..., y : y + inside.shape[-2], x : x + inside.shape[-1]] = inside
    return wrap(made)


def centre(size: tuple[int, int], outer: tuple[int, int]) -> tuple[int, int]:
    """(top, left) of a rectangle of `size` in the middle of a larger one; torchvision rounds halves to even."""
    return round((outer[0] - size[0]) / 2), round((outer[1] - size[1]) / 2)


def center_crop(inpt: Any, output_size: Any) -> Any:
    """The middle of a picture or tensor; a smaller one is padded with 0 first.

    Args:
        output_size: one number, or (height, width).

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import functional as F
        >>> F.center_crop(zoo.zeros(3, 10, 15), 4).shape
        (3, 4, 4)
    """
    size = pair("center_crop", output_size)
    lack = [max(wanted - has, 0) for wanted, has in zip(size, get_size(inpt), strict=True)]
    if any(lack):
        inpt = pad(inpt, [lack[1] // 2, lack[0] // 2, (lack[1] + 1) // 2, (lack[0] + 1) // 2])
    return crop(inpt, *centre(size, tuple(get_size(inpt))), *size)


def resized_center_crop(inpt: Any, resize_size: int, crop_size: int, interpolation: str) -> Any:
    """center_crop(resize(inpt, resize_size), crop_size).

    A picture of 20,000 x 2 pixels would need gigabytes for its resized self. Of such a one only the box under the
    crop is resized; PIL rounds the box's corners to float32, so the result can be two steps of 255 away.
    """
    old, size = tuple(get_size(inpt)), (crop_size, crop_size)
    new = resized_size(*old, resize_size)
    if math.prod(new) <= LARGEST or not is_picture(inpt) or min(new) < crop_size:
        return center_crop(resize(inpt, resize_size, interpolation), size)
    top, left = centre(size, new)
    y, x = old[0] / new[0], old[1] / new[1]
    box = (left * x, top * y, (left + crop_size) * x, (top + crop_size) * y)
    return inpt.resize(size, pil_filter("resize", interpolation), box=box)


def resized_crop(
    inpt: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Any,
    interpolation: str = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Any:
    """`crop`, then `resize` to (height, width) `size`.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import functional as F
        >>> F.resized_crop(zoo.zeros(3, 9, 9), 1, 2, 4, 6, (5, 5)).shape
        (3, 5, 5)
    """
    return resize(crop(inpt, top, left, height, width), pair("resized_crop", size), interpolation, None, antialias)


def margins(name: str, padding: Any) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) from one number, (x, y), or all four.

    Raises:
        ValueError: another length, or a negative margin.
    """
    given = tuple(padding) if isinstance(padding, Sequence) else (padding,)
    if len(given) not in (1, 2, 4) or min(given) < 0:
        raise ValueError(f"{name}: wants 1, 2 or 4 margins of at least 0, got {padding}")
    return given * (4 // len(given))


def pad(inpt: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """A frame around a picture or a tensor (..., H, W).

    Args:
        padding: one number, (left and right, top and bottom), or (left, top, right, bottom), in pixels.
        fill: of a constant frame: one number, or one for each channel.
        padding_mode: "constant", "edge", "reflect" or "symmetric".

    Raises:
        ValueError: wrong padding or padding_mode.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import functional as F
        >>> F.pad(zoo.ones(1, 1, 1), [1, 0], fill=7)
        tensor([[[7., 1., 7.]]])
    """
    left, top, right, bottom = margins("pad", padding)
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError(f"pad: wants padding_mode constant, edge, reflect or symmetric, got {padding_mode!r}")
    if is_picture(inpt):
        return pad_picture(inpt, (left, top, right, bottom), fill, padding_mode)
    array = array_of("pad", inpt)
    frame = [(0, 0)] * (array.ndim - 2) + [(top, bottom), (left, right)]
    if padding_mode != "constant":
        return wrap(np.pad(array, frame, mode=padding_mode))
    if not isinstance(fill, Sequence):
        return wrap(np.pad(array, frame, constant_values=fill))
    made = np.empty((*array.shape[:-2], array.shape[-2] + top + bottom, array.shape[-1] + left + right), array.dtype)
    made[...] = np.asarray(fill, array.dtype).reshape(-1, 1, 1)
    made[..., top : top + array.shape[-2], left : left + array.shape[-1]] = array
    return wrap(made)


def pad_picture(picture: Any, padding: tuple[int, int, int, int], fill: Any, padding_mode: str) -> Any:
    """`pad` of a PIL image."""
    from PIL import Image, ImageOps

    if padding_mode == "constant":
        return with_palette(ImageOps.expand(picture, padding, fill=fill_of(picture, fill)), picture)
    left, top, right, bottom = padding
    pixels = np.asarray(picture)
    frame = [(top, bottom), (left, right)] + [(0, 0)] * (pixels.ndim - 2)
    return with_palette(Image.fromarray(np.pad(pixels, frame, mode=padding_mode)), picture)


def with_palette(made: Any, picture: Any) -> Any:
    """A picture made from another's indexes shows the same colours."""
    if picture.mode == "P":
        made.putpalette(picture.getpalette())
    return made


def fill_of(picture: Any, fill: Any) -> Any:
    """A fill for each of the picture's channels, as PIL wants it."""
    bands = len(picture.getbands())
    if fill is None:
        fill = 0
    if not isinstance(fill, Sequence):
        return (int(fill),) * bands if bands > 1 else fill
    numbers = tuple(int(n) for n in fill)
    numbers = numbers * bands if len(numbers) == 1 else numbers
    if len(numbers) != bands:
        raise ValueError(f"pad: wants one fill or {bands} for a picture of mode {picture.mode}, got {fill}")
    return numbers[0] if bands == 1 else numbers


def horizontal_flip(inpt: Any) -> Any:
    """Left becomes right.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import functional as F
        >>> F.horizontal_flip(zoo.tensor([[[1, 2]]]))
        tensor([[[2, 1]]])
    """
    if is_picture(inpt):
        from PIL.Image import Transpose

        return inpt.transpose(Transpose.FLIP_LEFT_RIGHT)
    return wrap(array_of("horizontal_flip", inpt)[..., ::-1].copy())


def vertical_flip(inpt: Any) -> Any:
    """Top becomes bottom.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import functional as F
        >>> F.vertical_flip(zoo.tensor([[[1], [2]]]))
        tensor([[[2],
                 [1]]])
    """
    if is_picture(inpt):
        from PIL.Image import Transpose

        return inpt.transpose(Transpose.FLIP_TOP_BOTTOM)
    return wrap(array_of("vertical_flip", inpt)[..., ::-1, :].copy())


def rotate(
    inpt: Any,
    angle: float,
    interpolation: str = InterpolationMode.NEAREST,
    expand: bool = False,
    center: Any = None,
    fill: Any = None,
) -> Any:
    """A picture or a tensor (..., C, H, W) turned counter-clockwise.

    Args:
        angle: degrees. expand: enlarges the result so that it holds all of the picture.
        interpolation: "nearest", "bilinear" or "bicubic". center: (x, y) in pixels; None is the middle.
        fill: of what comes from outside: one number, or one for each channel.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import functional as F
        >>> F.rotate(zoo.tensor([[[1, 2], [3, 4]]], dtype=zoo.uint8), 90)
        tensor([[[2, 4],
                 [1, 3]]], dtype=zoo.uint8)
    """
    chosen = pil_filter("rotate", interpolation)
    return moved("rotate", inpt, fill, lambda p, color: p.rotate(angle, chosen, expand, center, fillcolor=color))


def affine(
    inpt: Any,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Sequence[float],
    interpolation: str = InterpolationMode.NEAREST,
    fill: Any = None,
    center: Any = None,
) -> Any:
    """A picture or a tensor (..., C, H, W) turned, sheared, scaled about `center`, and moved.

    Args:
        angle, shear: degrees, clockwise; shear along x and y. translate: pixels to the right and down.
        scale: above 0. interpolation, fill, center: as in `rotate`.

    Raises:
        ValueError: scale is not above 0.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import functional as F
        >>> F.affine(zoo.tensor([[[1, 2, 3]]], dtype=zoo.uint8), 0.0, [1, 0], 1.0, [0.0, 0.0])
        tensor([[[0, 1, 2]]], dtype=zoo.uint8)
    """
    from PIL.Image import Transform

    if scale <= 0:
        raise ValueError(f"affine: wants a scale above 0, got {scale}")
    chosen = pil_filter("affine", interpolation)
    middle = center or [side / 2 for side in reversed(get_size(inpt))]
    matrix = inverse_affine(middle, angle, translate, scale, shear)
    return moved(
        "affine", inpt, fill, lambda p, color: p.transform(p.size, Transform.AFFINE, matrix, chosen, fillcolor=color)
    )


def moved(name: str, inpt: Any, fill: Any, function: Callable[[Any, Any], Any]) -> Any:
    """function(picture, fill); of a tensor each channel, with that channel's fill."""
    if is_picture(inpt):
        return function(inpt, fill_of(inpt, fill))
    fills = fill if isinstance(fill, Sequence) else [fill or 0]
    return by_plane(name, inpt, lambda plane, k: function(plane, fills[k % len(fills)]))


def inverse_affine(center: Sequence[float], angle: float, translate: Sequence[float], scale: float,
                   shear: Sequence[float]) -> tuple[float, ...]:
    """Rows of the matrix that says for each pixel of the result where it comes from.

    With rotation R, shears S along y, then x, and shift C to the centre, it is the inverse of T C (scale R S) C^-1.
    R S has determinant 1, so its inverse needs no division; this order of roundings is torchvision's.
    """
    turn, x, y = (math.radians(degrees) for degrees in (angle, *shear))
    a, c = math.cos(turn - y) / math.cos(y), math.sin(turn - y) / math.cos(y)
    b, d = -a * math.tan(x) - math.sin(turn), math.cos(turn) - c * math.tan(x)
    rows = [(d / scale, -b / scale), (-c / scale, a / scale)]
    moved_x, moved_y = center[0] + translate[0], center[1] + translate[1]
    return tuple(
        n for (p, q), at in zip(rows, center, strict=True) for n in (p, q, -p * moved_x - q * moved_y + at)
    )
