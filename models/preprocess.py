"""From a photo to a model's input: the callable that a row of weights asks for."""

import io
import os
from typing import Any

import numpy as np

from zoo.autograd.tensor import Tensor, wrap
from zoo.data.transforms import ImageClassification
from zoo.data.transforms.color import rgb_to_grayscale
from zoo.data.transforms.picture import is_picture, to_dtype, to_image, to_pil_image
from zoo.models.weights_row import Preprocessing
from zoo.ops.dtypes import FLOATS, float32


class Preprocess:
    """A picture, or a list of them, as a model's input; equal to torchvision's and timm's eval transforms.

    A file or an encoded picture is decoded as `PIL.Image.open(f).convert("RGB")` does it: alpha is dropped, palettes
    are looked up. The exceptions are pictures of 16 bits, whose numbers are scaled to 8 bits (PIL would cut them off
    at 255), and, if asked for, the camera's orientation.

    Args:
        preprocessing: of a row of weights.

    Example:
        >>> from PIL import Image
        >>> from zoo.models.preprocess import Preprocess
        >>> from zoo.models.weights import get
        >>> preprocess = Preprocess(get("resnet50").preprocessing)
        >>> preprocess(Image.new("L", (640, 480))).shape, preprocess([Image.new("RGB", (9, 9))] * 2).shape
        ((3, 224, 224), (2, 3, 224, 224))
    """

    def __init__(self, preprocessing: Preprocessing):
        if preprocessing.channels not in (1, 3):
            raise ValueError(f"Preprocess: wants 1 or 3 channels, got {preprocessing.channels}")
        self.preprocessing = preprocessing
        self.transform = ImageClassification(
            crop_size=preprocessing.crop,
            resize_size=preprocessing.resize,
            mean=preprocessing.mean,
            std=preprocessing.std,
            interpolation=preprocessing.interpolation,
        )

    def __call__(self, picture: Any, *, apply_exif_orientation: bool = False) -> Tensor:
        """The normalised input.

        Args:
            picture: a PIL image; a path, the bytes of a file or an open one; an ndarray (H, W) or (H, W, C), or a
                tensor (C, H, W): uint8, uint16, bool, or floats in [0, 1], of 1 to 4 channels (the second of 2 and
                the fourth of 4 are alpha). Or a list or tuple of these.
            apply_exif_orientation: turns a photo as its camera says. torchvision and timm do not.

        Returns:
            float32 (C, crop, crop); (N, C, crop, crop) for a list of N.

        Raises:
            TypeError: not a picture. ValueError: not decodable, of another shape, or floats outside of [0, 1].
            OSError: no such file, or one that cannot be read.
        """
        if isinstance(picture, (list, tuple)):
            if not picture:
                raise ValueError("preprocess: wants at least one picture, got an empty list")
            made = [self(one, apply_exif_orientation=apply_exif_orientation).array for one in picture]
            return wrap(np.stack(made))
        if isinstance(picture, (np.ndarray, Tensor)):
            return self.transform(self.from_array(picture))
        image = picture if is_picture(picture) else opened(picture)
        if apply_exif_orientation:
            from PIL import ImageOps

            image = ImageOps.exif_transpose(image)
        return self.transform(converted(image, self.preprocessing.channels))

    def from_array(self, given: Any) -> Any:
        """A PIL image of bytes, a float32 tensor (C, H, W) of anything else, with the model's channels."""
        image = to_image(given)
        if image.ndim != 3 or not 1 <= image.shape[0] <= 4 or not image.numel():
            raise ValueError(
                f"preprocess: wants an ndarray (H, W) or (H, W, C) or a tensor (C, H, W) with 1 to 4 channels, "
                f"got shape {tuple(given.shape)}"
            )
        if image.dtype == np.uint8:
            return converted(to_pil_image(image), self.preprocessing.channels)
        if image.dtype == np.bool_ or image.dtype in FLOATS:
            pixels = image.array.astype(float32)
        elif image.dtype == np.uint16:
            pixels = to_dtype(image, float32, scale=True).array
        else:
            raise TypeError(f"preprocess: wants uint8, uint16, bool or floats in [0, 1], got {image.dtype}")
        if not (pixels.min() >= 0 and pixels.max() <= 1):
            raise ValueError(f"preprocess: wants floats in [0, 1], got {pixels.min()} to {pixels.max()}")
        pixels = pixels[: 3 if len(pixels) > 2 else 1]             # without alpha
        if self.preprocessing.channels == 1:
            return rgb_to_grayscale(wrap(pixels))
        return wrap(np.repeat(pixels, 3, 0) if len(pixels) == 1 else pixels)

    def __repr__(self) -> str:
        return f"Preprocess({self.preprocessing})"


def opened(source: Any) -> Any:
    """The PIL image in a file, decoded.

    Raises:
        TypeError: source is no path, bytes or open file. ValueError: no picture, or a broken one.
    """
    from PIL import Image, UnidentifiedImageError

    encoded = isinstance(source, (bytes, bytearray, memoryview))
    if not encoded and not isinstance(source, (str, os.PathLike)) and not hasattr(source, "read"):
        raise TypeError(
            f"preprocess: wants a PIL image, a path, bytes, an open file, an ndarray or a tensor, or a list of these, "
            f"got {type(source).__name__}"
        )
    where = f"{len(source)} bytes" if encoded else repr(source)
    try:
        image = Image.open(io.BytesIO(source) if encoded else source)
    except (UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise ValueError(f"preprocess: wants a picture that PIL reads, got {where}: {error}") from error
    with image:                                                    # closes the file; the pixels stay
        try:
            image.load()
        except (OSError, SyntaxError) as error:                    # PIL's ways to say truncated and corrupt
            raise ValueError(f"preprocess: cannot decode the picture in {where}: {error}") from error
    return image


def converted(image: Any, channels: int) -> Any:
    """A picture of any mode as RGB (3 channels) or grey (1)."""
    from PIL import Image

    if image.mode.startswith("I"):                                 # 16 bits; "I" is how older PILs open them
        wide = np.clip(np.asarray(image), 0, 65535)
        image = Image.fromarray(((wide.astype(np.uint32) + 128) // 257).astype(np.uint8))
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")                              # PIL warns about the direct way to RGB
    return image.convert("RGB" if channels == 3 else "L")
