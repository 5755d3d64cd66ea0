"""What colours pixels have: PIL's operations, under torchvision's names. uint8 tensors (C, H, W) go there and back.

Floats in [0, 1] have brightness, contrast, saturation and grey only; the others want the picture before ToTensor.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from zoo.autograd.tensor import Tensor, wrap
from zoo.data.transforms.picture import array_of, is_picture, on_picture, pil_to_tensor, to_pil_image
from zoo.ops.dtypes import FLOATS

# ITU-R 601-2, by which PIL too makes grey of RGB.
LUMA = np.array([0.299, 0.587, 0.114]).reshape(3, 1, 1)
GREY_ONLY = ("1", "L", "I", "F", "I;16")


def enhanced(name: str, kind: str, inpt: Any, factor: float) -> Any:
    """The picture between what one of PIL's enhancers makes of it at 0 and the picture itself at 1, and beyond.

    Raises:
        ValueError: a factor below 0.
    """
    if factor < 0:
        raise ValueError(f"{name}: wants a factor of at least 0, got {factor}")
    if kind in BASES and isinstance(inpt, Tensor) and inpt.dtype in FLOATS:
        array = array_of(name, inpt, 3)
        return wrap(np.clip(array * factor + BASES[kind](array) * (1 - factor), 0, 1).astype(array.dtype))

    def enhance(picture):
        from PIL import ImageEnhance

        return getattr(ImageEnhance, kind)(picture).enhance(factor)

    return on_picture(name, enhance, inpt)


def luma(array: np.ndarray) -> np.ndarray:
    """The grey of floats (..., C, H, W), as (..., 1, H, W).

    Raises:
        ValueError: neither 1 nor 3 channels.
    """
    if array.shape[-3] not in (1, 3):
        raise ValueError(f"rgb_to_grayscale: wants 1 or 3 channels, got shape {array.shape}")
    return (array * LUMA.astype(array.dtype)).sum(-3, keepdims=True) if array.shape[-3] == 3 else array


# What floats in [0, 1] become at factor 0.
BASES: dict[str, Callable[[np.ndarray], Any]] = {
    "Brightness": lambda array: 0,
    "Contrast": lambda array: luma(array).mean((-3, -2, -1), keepdims=True),
    "Color": luma,
}


def adjust_brightness(inpt: Any, brightness_factor: float) -> Any:
    """0 gives black, 1 the picture, 2 twice the brightness; for floats in [0, 1] too.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import functional as F
        >>> F.adjust_brightness(zoo.tensor([[[40, 200]]], dtype=zoo.uint8), 1.5)
        tensor([[[ 60, 255]]], dtype=zoo.uint8)
    """
    return enhanced("adjust_brightness", "Brightness", inpt, brightness_factor)


def adjust_contrast(inpt: Any, contrast_factor: float) -> Any:
    """0 gives the average grey, 1 the picture; for floats in [0, 1] too.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import functional as F
        >>> F.adjust_contrast(zoo.tensor([[[0.25, 0.75]]]), 0.0)
        tensor([[[0.5000, 0.5000]]])
    """
    return enhanced("adjust_contrast", "Contrast", inpt, contrast_factor)


def adjust_saturation(inpt: Any, saturation_factor: float) -> Any:
    """0 gives a grey picture, 1 the picture; for floats in [0, 1] too.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import functional as F
        >>> F.adjust_saturation(zoo.tensor([[[0.0]], [[1.0]], [[0.0]]]), 0.0).flatten()
        tensor([0.5870, 0.5870, 0.5870])
    """
    return enhanced("adjust_saturation", "Color", inpt, saturation_factor)


def adjust_sharpness(inpt: Any, sharpness_factor: float) -> Any:
    """0 gives a smoothed picture, 1 the picture, 2 a sharpened one."""
    return enhanced("adjust_sharpness", "Sharpness", inpt, sharpness_factor)


def adjust_hue(inpt: Any, hue_factor: float) -> Any:
    """Turns all colours on the colour circle; grey pictures stay.

    Args:
        hue_factor: in [-0.5, 0.5], in turns.

    Raises:
        ValueError: another hue_factor.
    """
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"adjust_hue: wants a hue_factor in [-0.5, 0.5], got {hue_factor}")

    def turn(picture):
        from PIL import Image

        if picture.mode in GREY_ONLY:
            return picture
        hue, *others = picture.convert("HSV").split()
        turned = (np.asarray(hue).astype(np.int16) + int(hue_factor * 255)).astype(np.uint8)
        return Image.merge("HSV", (Image.fromarray(turned), *others)).convert(picture.mode)

    return on_picture("adjust_hue", turn, inpt)


def rgb_to_grayscale(inpt: Any, num_output_channels: int = 1) -> Any:
    """Grey by 0.299 R + 0.587 G + 0.114 B.

    Args:
        num_output_channels: 1, or 3 equal ones.

    Raises:
        ValueError: another num_output_channels.
    """
    if num_output_channels not in (1, 3):
        raise ValueError(f"rgb_to_grayscale: wants num_output_channels 1 or 3, got {num_output_channels}")

    if isinstance(inpt, Tensor) and inpt.dtype in FLOATS:
        return wrap(np.repeat(luma(array_of("rgb_to_grayscale", inpt, 3)), num_output_channels, -3))

    def grey(picture):
        made = picture.convert("L")
        return made.convert("RGB") if num_output_channels == 3 else made

    return on_picture("rgb_to_grayscale", grey, inpt)


def from_image_ops(name: str, inpt: Any, *args: Any) -> Any:
    """One of PIL.ImageOps."""
    def change(picture):
        from PIL import ImageOps

        return getattr(ImageOps, name)(picture, *args)

    return on_picture(name, change, inpt)


def posterize(inpt: Any, bits: int) -> Any:
    """Keeps the highest `bits` (0 to 8) bits of every number."""
    return from_image_ops("posterize", inpt, bits)


def solarize(inpt: Any, threshold: float) -> Any:
    """Inverts numbers of at least `threshold` (0 to 255)."""
    return from_image_ops("solarize", inpt, threshold)


def autocontrast(inpt: Any) -> Any:
    """Stretches every channel to 0 ... 255."""
    return from_image_ops("autocontrast", inpt)


def equalize(inpt: Any) -> Any:
    """Gives every channel a flat histogram."""
    return from_image_ops("equalize", inpt)


def invert(inpt: Any) -> Any:
    """255 minus every number."""
    return from_image_ops("invert", inpt)


def erase(inpt: Any, i: int, j: int, h: int, w: int, v: Any) -> Any:
    """A rectangle of other numbers: top i, left j, height h, width w.

    Args:
        inpt: tensor (..., C, H, W), or a picture.
        v: the numbers: a tensor or ndarray that fits (C, h, w).
    """
    if is_picture(inpt):
        return to_pil_image(erase(pil_to_tensor(inpt), i, j, h, w, v))
    made = array_of("erase", inpt, 3).copy()
    made[..., i : i + h, j : j + w] = getattr(v, "array", v)
    return wrap(made)
