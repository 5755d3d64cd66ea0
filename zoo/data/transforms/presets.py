"""Chains of transforms that pretrained models were trained and tested with."""

from collections.abc import Sequence
from typing import Any

from zoo.data.transforms import geometry, picture
from zoo.data.transforms.geometry import InterpolationMode
from zoo.data.transforms.transform import Transform

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class ImageClassification(Transform):
    """What a classifier is tested with: resize the shorter side, centre crop, [0, 1], normalise.

    Args:
        crop_size: pixels of the result's sides. resize_size: pixels of the shorter side before the crop.
        mean, std: one number per channel of pictures in [0, 1]. interpolation: of the resizing.
        antialias: on; False is refused.

    Returns:
        For a PIL image or a tensor (..., C, H, W), uint8 or floats in [0, 1]: float32 (..., C, crop_size, crop_size).

    Example:
        >>> from PIL import Image
        >>> from zoo.data.transforms import ImageClassification
        >>> ImageClassification(crop_size=224)(Image.new("RGB", (300, 500))).shape
        (3, 224, 224)

    Source: torchvision.transforms._presets.ImageClassification.
    """

    def __init__(
        self,
        *,
        crop_size: int,
        resize_size: int = 256,
        mean: Sequence[float] = IMAGENET_MEAN,
        std: Sequence[float] = IMAGENET_STD,
        interpolation: str = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ):
        geometry.pil_filter("ImageClassification", interpolation)
        if antialias is False:
            raise ValueError("ImageClassification: antialias=False is not offered")
        self.crop_size, self.resize_size, self.interpolation = crop_size, resize_size, interpolation
        self.mean, self.std = tuple(mean), tuple(std)

    def apply(self, inpt: Any) -> Any:
        inpt = geometry.resized_center_crop(inpt, self.resize_size, self.crop_size, self.interpolation)
        tensor = picture.pil_to_tensor(inpt) if picture.is_picture(inpt) else inpt
        return picture.normalize(picture.convert_image_dtype(tensor), self.mean, self.std)
