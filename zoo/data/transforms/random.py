"""Transforms that draw random numbers, all from the sample's own stream (zoo.data.seeding): names of torchvision's v2.

In a DataLoader the numbers depend on the pass and the sample alone, not on the worker that loads it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zoo.data.seeding import sample_stream
from zoo.data.transforms import color, geometry
from zoo.data.transforms.geometry import InterpolationMode
from zoo.data.transforms.picture import get_num_channels, get_size
from zoo.data.transforms.transform import Compose, Transform

Stream = np.random.Generator


def probability(name: str, p: float) -> float:
    """p.

    Raises:
        ValueError: it is not in [0, 1].
    """
    if not 0 <= p <= 1:
        raise ValueError(f"{name}: wants p in [0, 1], got {p}")
    return p


def limits(name: str, what: str, given: Any, low: float, high: float) -> tuple[float, float]:
    """Two numbers in order, within [low, high].

    Raises:
        ValueError: they are not.
    """
    if not isinstance(given, Sequence) or len(given) != 2 or not low <= given[0] <= given[1] <= high:
        raise ValueError(f"{name}: wants {what} as two numbers in order in [{low}, {high}], got {given}")
    return float(given[0]), float(given[1])


class RandomTransform(Transform):
    """A transform with random parameters, applied with probability `p`.

    Subclasses write `make_params(inpt, stream)`, which draws them, and `transform(inpt, **params)`, which uses them.
    """

    p = 1.0

    def apply(self, inpt: Any) -> Any:
        stream = sample_stream()
        if self.p < 1 and stream.random() >= self.p:
            return inpt
        return self.transform(inpt, **self.make_params(inpt, stream))

    def make_params(self, inpt: Any, stream: Stream) -> dict[str, Any]:
        """Random parameters for this picture."""
        return {}

    def transform(self, inpt: Any, **params: Any) -> Any:
        """The picture, changed by these parameters."""
        raise NotImplementedError(f"{type(self).__name__}: transform is not written")


class RandomApply(RandomTransform):
    """All of some transforms, or none, with probability p.

    Example:
        >>> from zoo.data.transforms import Lambda, RandomApply
        >>> RandomApply([Lambda(lambda x: x + 1)], p=1.0)(1)
        2
    """

    def __init__(self, transforms: Sequence[Callable], p: float = 0.5):
        self.transforms, self.p = Compose(transforms), probability("RandomApply", p)

    def transform(self, inpt: Any, **params: Any) -> Any:
        return self.transforms(inpt)


class RandomHorizontalFlip(RandomTransform):
    """Left becomes right, with probability p.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import RandomHorizontalFlip
        >>> RandomHorizontalFlip(1.0)(zoo.tensor([[[1, 2]]]))
        tensor([[[2, 1]]])
    """

    def __init__(self, p: float = 0.5):
        self.p = probability("RandomHorizontalFlip", p)

    def transform(self, inpt: Any, **params: Any) -> Any:
        return geometry.horizontal_flip(inpt)


class RandomVerticalFlip(RandomTransform):
    """Top becomes bottom, with probability p.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import RandomVerticalFlip
        >>> RandomVerticalFlip(0.0)(zoo.tensor([[[1], [2]]])).tolist()
        [[[1], [2]]]
    """

    def __init__(self, p: float = 0.5):
        self.p = probability("RandomVerticalFlip", p)

    def transform(self, inpt: Any, **params: Any) -> Any:
        return geometry.vertical_flip(inpt)


class RandomResizedCrop(RandomTransform):
    """A random part of the picture, resized: the crop that most classifiers are trained with.

    Args:
        size: of the result: one number, or (height, width).
        scale: limits of the part's share of the area. ratio: limits of its width / height.
        interpolation: of the resizing. antialias: on; False is refused.

    Raises:
        ValueError: limits that are none, or another interpolation.

    Example:
        >>> from PIL import Image
        >>> from zoo.data.transforms import RandomResizedCrop
        >>> RandomResizedCrop(224)(Image.new("RGB", (640, 480))).size
        (224, 224)

    Source: C. Szegedy et al., "Going Deeper with Convolutions", CVPR 2015.
    """

    def __init__(
        self,
        size: Any,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3 / 4, 4 / 3),
        interpolation: str = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ):
        geometry.pil_filter("RandomResizedCrop", interpolation)
        self.size, self.interpolation = geometry.pair("RandomResizedCrop", size), interpolation
        self.scale = limits("RandomResizedCrop", "scale", scale, 0, math.inf)
        self.ratio = limits("RandomResizedCrop", "ratio", ratio, 1e-9, math.inf)
        self.antialias = antialias

    def make_params(self, inpt: Any, stream: Stream) -> dict[str, Any]:
        rows, columns = get_size(inpt)
        for _ in range(10):
            height, width = random_box(rows * columns, self.scale, self.ratio, stream)
            if 0 < width <= columns and 0 < height <= rows:
                top, left = stream.integers(rows - height + 1), stream.integers(columns - width + 1)
                return {"top": int(top), "left": int(left), "height": height, "width": width}
        # No luck: the largest part of an allowed ratio, from the middle.
        height = min(rows, round(columns / self.ratio[0]))
        width = min(columns, round(rows * self.ratio[1]))
        return {"top": (rows - height) // 2, "left": (columns - width) // 2, "height": height, "width": width}

    def transform(self, inpt: Any, **params: Any) -> Any:
        return geometry.resized_crop(
            inpt, **params, size=self.size, interpolation=self.interpolation, antialias=self.antialias
        )


def random_box(area: int, scale: tuple[float, float], ratio: tuple[float, float], stream: Stream) -> tuple[int, int]:
    """(height, width) of a share of the area in `scale`, of a width / height in `ratio` (uniform in its logarithm)."""
    part = area * stream.uniform(*scale)
    aspect = math.exp(stream.uniform(math.log(ratio[0]), math.log(ratio[1])))
    return round(math.sqrt(part / aspect)), round(math.sqrt(part * aspect))


class RandomCrop(RandomTransform):
    """A part of the given size, from a random place.

    Args:
        size: one number, or (height, width).
        padding: a frame put around the picture first, as for `Pad`; None for none.
        pad_if_needed: enlarges a picture that is smaller than size, on both sides.
        fill, padding_mode: of the frames.

    Raises:
        ValueError: when called: the picture is smaller than size.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import RandomCrop
        >>> RandomCrop(32, padding=4)(zoo.zeros(3, 32, 32)).shape
        (3, 32, 32)
    """

    def __init__(self, size: Any, padding: Any = None, pad_if_needed: bool = False, fill: Any = 0,
                 padding_mode: str = "constant"):
        self.size = geometry.pair("RandomCrop", size)
        self.padding = geometry.margins("RandomCrop", 0 if padding is None else padding)
        self.pad_if_needed, self.fill, self.padding_mode = pad_if_needed, fill, padding_mode

    def make_params(self, inpt: Any, stream: Stream) -> dict[str, Any]:
        left, top, right, bottom = self.padding
        height, width = get_size(inpt)
        height, width = height + top + bottom, width + left + right
        if self.pad_if_needed:
            y, x = max(self.size[0] - height, 0), max(self.size[1] - width, 0)
            left, top, right, bottom = left + x, top + y, right + x, bottom + y
            height, width = height + 2 * y, width + 2 * x
        if height < self.size[0] or width < self.size[1]:
            raise ValueError(f"RandomCrop: wants at least {self.size} pixels with the padding, got {(height, width)}")
        at = stream.integers(height - self.size[0] + 1), stream.integers(width - self.size[1] + 1)
        return {"padding": (left, top, right, bottom), "top": int(at[0]), "left": int(at[1])}

    def transform(self, inpt: Any, **params: Any) -> Any:
        padding = params["padding"]
        framed = geometry.pad(inpt, padding, self.fill, self.padding_mode) if any(padding) else inpt
        return geometry.crop(framed, params["top"], params["left"], *self.size)


class RandomRotation(RandomTransform):
    """Turned by a random angle.

    Args:
        degrees: limits of the angle, counter-clockwise; one number d stands for (-d, d).
        interpolation, expand, center, fill: as in `functional.rotate`.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import RandomRotation
        >>> RandomRotation((90, 90))(zoo.tensor([[[1, 2], [3, 4]]], dtype=zoo.uint8)).tolist()
        [[[2, 4], [1, 3]]]
    """

    def __init__(self, degrees: Any, interpolation: str = InterpolationMode.NEAREST, expand: bool = False,
                 center: Any = None, fill: Any = 0):
        given = (-degrees, degrees) if isinstance(degrees, (int, float)) else degrees
        self.degrees = limits("RandomRotation", "degrees", given, -math.inf, math.inf)
        self.interpolation, self.expand, self.center, self.fill = interpolation, expand, center, fill

    def make_params(self, inpt: Any, stream: Stream) -> dict[str, Any]:
        return {"angle": float(stream.uniform(*self.degrees))}

    def transform(self, inpt: Any, **params: Any) -> Any:
        return geometry.rotate(inpt, params["angle"], self.interpolation, self.expand, self.center, self.fill)


class RandomGrayscale(RandomTransform):
    """A grey picture with as many channels as before, with probability p.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import RandomGrayscale
        >>> RandomGrayscale(1.0)(zoo.zeros(3, 4, 5, dtype=zoo.uint8)).shape
        (3, 4, 5)
    """

    def __init__(self, p: float = 0.1):
        self.p = probability("RandomGrayscale", p)

    def transform(self, inpt: Any, **params: Any) -> Any:
        return color.rgb_to_grayscale(inpt, 3 if get_num_channels(inpt) == 3 else 1)


class ColorJitter(RandomTransform):
    """Random brightness, contrast, saturation and hue, in a random order.

    Args:
        brightness, contrast, saturation: limits of the factors, at least 0; one number b stands for
            (max(0, 1 - b), 1 + b). None: left as it is.
        hue: limits of the turn in [-0.5, 0.5]; one number h stands for (-h, h).

    Raises:
        ValueError: other limits.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import ColorJitter
        >>> ColorJitter(brightness=(2, 2))(zoo.full((1, 1, 1), 40, dtype=zoo.uint8))
        tensor([[[80]]], dtype=zoo.uint8)
    """

    def __init__(self, brightness: Any = None, contrast: Any = None, saturation: Any = None, hue: Any = None):
        self.brightness = around("brightness", brightness, 1.0, 0.0, math.inf)
        self.contrast = around("contrast", contrast, 1.0, 0.0, math.inf)
        self.saturation = around("saturation", saturation, 1.0, 0.0, math.inf)
        self.hue = around("hue", hue, 0.0, -0.5, 0.5)

    def make_params(self, inpt: Any, stream: Stream) -> dict[str, Any]:
        drawn = {
            name: float(stream.uniform(*setting))
            for name in ("brightness", "contrast", "saturation", "hue")
            if (setting := getattr(self, name)) is not None
        }
        return {name: drawn[name] for name in stream.permutation(list(drawn)).tolist()}

    def transform(self, inpt: Any, **params: Any) -> Any:
        for name, factor in params.items():
            inpt = getattr(color, f"adjust_{name}")(inpt, factor)
        return inpt


def around(what: str, value: Any, center: float, low: float, high: float) -> tuple[float, float] | None:
    """Limits of a factor of ColorJitter; None if it is always `center`."""
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"ColorJitter: wants {what} of at least 0, got {value}")
        value = (max(center - value, low), center + value)
    if value is None:
        return None
    made = limits("ColorJitter", what, value, low, high)
    return None if made == (center, center) else made


class RandomErasing(RandomTransform):
    """A random rectangle of other numbers, with probability p.

    Args:
        p: probability. scale: limits of the rectangle's share of the area. ratio: limits of its height / width.
        value: one number, one for each channel, or "random" for normal noise.
        inplace: taken from scripts written for torch; the tensor given stays as it is.

    Raises:
        ValueError: other limits or another value.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import RandomErasing
        >>> bool((RandomErasing(p=1.0)(zoo.ones(1, 9, 9)) == 0).any())
        True

    Source: Z. Zhong et al., "Random Erasing Data Augmentation", https://arxiv.org/abs/1708.04896.
    """

    def __init__(self, p: float = 0.5, scale: Sequence[float] = (0.02, 0.33), ratio: Sequence[float] = (0.3, 3.3),
                 value: Any = 0.0, inplace: bool = False):
        self.p, self.value = probability("RandomErasing", p), value
        self.scale = limits("RandomErasing", "scale", scale, 0, 1)
        self.ratio = limits("RandomErasing", "ratio", ratio, 1e-9, math.inf)
        if isinstance(value, str) and value != "random":
            raise ValueError(f"RandomErasing: wants value as numbers or 'random', got {value!r}")

    def make_params(self, inpt: Any, stream: Stream) -> dict[str, Any]:
        channels, (rows, columns) = get_num_channels(inpt), get_size(inpt)
        if isinstance(self.value, Sequence) and self.value != "random" and len(self.value) not in (1, channels):
            raise ValueError(f"RandomErasing: wants 1 or {channels} values, got {self.value}")
        for _ in range(10):
            w, h = random_box(rows * columns, self.scale, self.ratio, stream)
            if h < rows and w < columns:
                i, j = stream.integers(rows - h + 1), stream.integers(columns - w + 1)
                noise = self.value == "random"
                v = stream.normal(size=(channels, h, w)) if noise else np.reshape(self.value, (-1, 1, 1))
                return {"i": int(i), "j": int(j), "h": h, "w": w, "v": v}
        return {"i": 0, "j": 0, "h": 0, "w": 0, "v": 0}              # no luck: nothing is erased

    def transform(self, inpt: Any, **params: Any) -> Any:
        return color.erase(inpt, **params)
