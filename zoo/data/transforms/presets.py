"""Chains of transforms that pretrained models were trained and tested with."""

from collections.abc import Sequence
from typing import Any

from zoo.data.transforms import geometry, picture
from zoo.data.transforms.augment import RandAugment, TrivialAugmentWide
from zoo.data.transforms.geometry import InterpolationMode
from zoo.data.transforms.random import RandomErasing, RandomHorizontalFlip, RandomResizedCrop
from zoo.data.transforms.transform import Compose, Normalize, ToDtype, ToImage, Transform
from zoo.ops.dtypes import float32

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


class ClassificationPresetTrain(Compose):
    """What a classifier is trained with: random crop, flip, a policy of changes, normalise, erase.

    Args:
        crop_size: pixels of the result's sides.
        mean, std: one number per channel of pictures in [0, 1]. interpolation: of the resizing.
        hflip_prob: of a flip. auto_augment_policy: None, "ra" (RandAugment) or "ta_wide" (TrivialAugmentWide).
        ra_magnitude: strength of RandAugment. random_erase_prob: of RandomErasing.

    Raises:
        ValueError: another policy.

    Example:
        >>> from PIL import Image
        >>> from zoo.data.transforms import ClassificationPresetTrain
        >>> ClassificationPresetTrain(crop_size=64, auto_augment_policy="ta_wide")(Image.new("RGB", (300, 200))).shape
        (3, 64, 64)

    Source: references/classification/presets.py of torchvision.
    """

    def __init__(
        self,
        *,
        crop_size: int,
        mean: Sequence[float] = IMAGENET_MEAN,
        std: Sequence[float] = IMAGENET_STD,
        interpolation: str = InterpolationMode.BILINEAR,
        hflip_prob: float = 0.5,
        auto_augment_policy: str | None = None,
        ra_magnitude: int = 9,
        random_erase_prob: float = 0.0,
    ):
        policies = {
            None: [],
            "ra": [RandAugment(magnitude=ra_magnitude, interpolation=interpolation)],
            "ta_wide": [TrivialAugmentWide(interpolation=interpolation)],
        }
        if auto_augment_policy not in policies:
            raise ValueError(
                f"ClassificationPresetTrain: wants auto_augment_policy None, 'ra' or 'ta_wide', "
                f"got {auto_augment_policy!r}"
            )
        super().__init__([
            RandomResizedCrop(crop_size, interpolation=interpolation),
            *([RandomHorizontalFlip(hflip_prob)] if hflip_prob else []),
            *policies[auto_augment_policy],
            ToImage(),
            ToDtype(float32, scale=True),
            Normalize(mean, std),
            *([RandomErasing(random_erase_prob)] if random_erase_prob else []),
        ])
