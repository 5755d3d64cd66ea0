"""Random chains of simple changes: RandAugment and TrivialAugment, on PIL images and uint8 tensors (C, H, W)."""

import math
from typing import Any, NamedTuple

import numpy as np

from zoo.data.seeding import sample_stream
from zoo.data.transforms import color, geometry
from zoo.data.transforms.geometry import InterpolationMode
from zoo.data.transforms.picture import get_size
from zoo.data.transforms.transform import Transform


class Range(NamedTuple):
    """The strengths of a change, from the weakest to the strongest; signed ones go either way."""

    weakest: float
    strongest: float
    signed: bool = True


Space = dict[str, Range | None]
UNGRADED: Space = {"AutoContrast": None, "Equalize": None}
SOLARIZE = Range(1.0, 0.0, False)
TRIVIAL: Space = {
    "Identity": None,
    "ShearX": Range(0.0, 0.99),
    "ShearY": Range(0.0, 0.99),
    "TranslateX": Range(0.0, 32.0),
    "TranslateY": Range(0.0, 32.0),
    "Rotate": Range(0.0, 135.0),
    "Brightness": Range(0.0, 0.99),
    "Color": Range(0.0, 0.99),
    "Contrast": Range(0.0, 0.99),
    "Sharpness": Range(0.0, 0.99),
    "Posterize": Range(8.0, 2.0, False),
    "Solarize": SOLARIZE,
    **UNGRADED,
}


def rand_augment_space(height: int, width: int) -> Space:
    """RandAugment's changes for a picture of this size."""
    return {
        "Identity": None,
        "ShearX": Range(0.0, 0.3),
        "ShearY": Range(0.0, 0.3),
        "TranslateX": Range(0.0, 150 / 331 * width),
        "TranslateY": Range(0.0, 150 / 331 * height),
        "Rotate": Range(0.0, 30.0),
        "Brightness": Range(0.0, 0.9),
        "Color": Range(0.0, 0.9),
        "Contrast": Range(0.0, 0.9),
        "Sharpness": Range(0.0, 0.9),
        "Posterize": Range(8.0, 4.0, False),
        "Solarize": SOLARIZE,
        **UNGRADED,
    }


def strength(space: Space, name: str, step: int, steps: int, negative: bool) -> float:
    """The magnitude of a change at one of `steps` equal steps."""
    found = space[name]
    if found is None:
        return 0.0
    magnitude = found.weakest + (found.strongest - found.weakest) * step / (steps - 1)
    magnitude = float(round(magnitude)) if name == "Posterize" else magnitude
    return -magnitude if found.signed and negative else magnitude


def change(inpt: Any, name: str, magnitude: float, interpolation: str, fill: Any) -> Any:
    """One change of a picture; names and magnitudes are AutoAugment's, in torchvision's reading.

    Raises:
        ValueError: no such change.
    """
    def affine(translate=(0, 0), shear=(0.0, 0.0), center=None):
        return geometry.affine(inpt, 0.0, translate, 1.0, shear, interpolation, fill, center)

    slope = math.degrees(math.atan(magnitude))
    changes = {
        "Identity": lambda: inpt,
        "ShearX": lambda: affine(shear=(slope, 0.0), center=(0, 0)),
        "ShearY": lambda: affine(shear=(0.0, slope), center=(0, 0)),
        "TranslateX": lambda: affine((int(magnitude), 0)),
        "TranslateY": lambda: affine((0, int(magnitude))),
        "Rotate": lambda: geometry.rotate(inpt, magnitude, interpolation, fill=fill),
        "Brightness": lambda: color.adjust_brightness(inpt, 1 + magnitude),
        "Color": lambda: color.adjust_saturation(inpt, 1 + magnitude),
        "Contrast": lambda: color.adjust_contrast(inpt, 1 + magnitude),
        "Sharpness": lambda: color.adjust_sharpness(inpt, 1 + magnitude),
        "Posterize": lambda: color.posterize(inpt, int(magnitude)),
        "Solarize": lambda: color.solarize(inpt, 255 * magnitude),
        "AutoContrast": lambda: color.autocontrast(inpt),
        "Equalize": lambda: color.equalize(inpt),
    }
    if name not in changes:
        raise ValueError(f"change: wants one of {', '.join(changes)}, got {name!r}")
    return changes[name]()


class Augment(Transform):
    """What both have: steps from the weakest change to the strongest, and how pixels are moved."""

    def __init__(self, num_magnitude_bins: int, interpolation: str, fill: Any):
        if num_magnitude_bins < 2:
            raise ValueError(
                f"{type(self).__name__}: wants num_magnitude_bins of at least 2, got {num_magnitude_bins}"
            )
        self.num_magnitude_bins, self.interpolation, self.fill = num_magnitude_bins, interpolation, fill

    def random_change(self, inpt: Any, space: Space, step: int, stream: np.random.Generator) -> Any:
        """A random change of the space at this step, either way."""
        name = list(space)[stream.integers(len(space))]
        magnitude = strength(space, name, step, self.num_magnitude_bins, negative=stream.random() < 0.5)
        return change(inpt, name, magnitude, self.interpolation, self.fill)


class RandAugment(Augment):
    """num_ops random changes of one strength.

    Args:
        num_ops: how many. magnitude: their strength, a step from 0 to num_magnitude_bins - 1.
        num_magnitude_bins: steps from the weakest change to the strongest.
        interpolation, fill: of those that move pixels, as in `functional.rotate`.

    Raises:
        ValueError: a magnitude that is no step.

    Example:
        >>> from PIL import Image
        >>> from zoo.data.transforms import RandAugment
        >>> RandAugment()(Image.new("RGB", (64, 48))).size
        (64, 48)

    Source: E. Cubuk et al., "RandAugment", https://arxiv.org/abs/1909.13719.
    """

    def __init__(self, num_ops: int = 2, magnitude: int = 9, num_magnitude_bins: int = 31,
                 interpolation: str = InterpolationMode.NEAREST, fill: Any = None):
        super().__init__(num_magnitude_bins, interpolation, fill)
        if num_ops < 0 or not 0 <= magnitude < num_magnitude_bins:
            raise ValueError(
                f"RandAugment: wants num_ops of at least 0 and a magnitude below num_magnitude_bins, "
                f"got {num_ops}, {magnitude} and {num_magnitude_bins}"
            )
        self.num_ops, self.magnitude = num_ops, magnitude

    def apply(self, inpt: Any) -> Any:
        stream, space = sample_stream(), rand_augment_space(*get_size(inpt))
        for _ in range(self.num_ops):
            inpt = self.random_change(inpt, space, self.magnitude, stream)
        return inpt


class TrivialAugmentWide(Augment):
    """One random change of a random strength.

    Args:
        num_magnitude_bins: steps from the weakest change to the strongest, at least 2.
        interpolation, fill: of those that move pixels, as in `functional.rotate`.

    Example:
        >>> from PIL import Image
        >>> from zoo.data.transforms import TrivialAugmentWide
        >>> TrivialAugmentWide()(Image.new("RGB", (64, 48))).size
        (64, 48)

    Source: S. Mueller and F. Hutter, "TrivialAugment", https://arxiv.org/abs/2103.10158.
    """

    def __init__(self, num_magnitude_bins: int = 31, interpolation: str = InterpolationMode.NEAREST, fill: Any = None):
        super().__init__(num_magnitude_bins, interpolation, fill)

    def apply(self, inpt: Any) -> Any:
        stream = sample_stream()
        return self.random_change(inpt, TRIVIAL, int(stream.integers(self.num_magnitude_bins)), stream)
