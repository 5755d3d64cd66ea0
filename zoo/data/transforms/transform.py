"""Transforms that draw no random numbers, and what all transforms share. Names and arguments of torchvision's v2."""

from collections.abc import Callable, Sequence
from typing import Any

from zoo.data.transforms import color, geometry, picture
from zoo.data.transforms.geometry import InterpolationMode
from zoo.ops.dtypes import float32


class Transform:
    """A function of a picture or a tensor with named settings.

    Called with more than a picture, as `transform(picture, label)`, it changes the picture and passes on the rest.
    Subclasses write `apply(picture)`.
    """

    def __call__(self, inpt: Any, *rest: Any) -> Any:
        made = self.apply(inpt)
        return (made, *rest) if rest else made

    def apply(self, inpt: Any) -> Any:
        """The changed picture."""
        raise NotImplementedError(f"{type(self).__name__}: apply is not written")

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__}({settings})"


class Compose(Transform):
    """Transforms one after the other.

    Args:
        transforms: any functions of a picture.

    Raises:
        TypeError: transforms is no sequence of functions.

    Example:
        >>> from zoo.data.transforms import CenterCrop, Compose, ToTensor
        >>> from PIL import Image
        >>> Compose([CenterCrop(2), ToTensor()])(Image.new("RGB", (5, 4))).shape
        (3, 2, 2)
    """

    def __init__(self, transforms: Sequence[Callable]):
        if not isinstance(transforms, Sequence) or not all(map(callable, transforms)):
            raise TypeError(f"Compose: wants a sequence of functions, got {transforms!r}")
        self.transforms = list(transforms)

    def __call__(self, inpt: Any, *rest: Any) -> Any:
        given = (inpt, *rest)
        for transform in self.transforms:
            made = transform(*given)
            given = made if rest else (made,)
        return given if rest else given[0]

    def __repr__(self) -> str:
        lines = "".join(f"    {transform!r}\n" for transform in self.transforms)
        return f"{type(self).__name__}(\n{lines})"


class Lambda(Transform):
    """Any function of a picture.

    Example:
        >>> from zoo.data.transforms import Lambda
        >>> Lambda(lambda x: x + 1)(1)
        2
    """

    def __init__(self, lambd: Callable):
        if not callable(lambd):
            raise TypeError(f"Lambda: wants a function, got {type(lambd).__name__}")
        self.lambd = lambd

    def apply(self, inpt: Any) -> Any:
        return self.lambd(inpt)


class Identity(Transform):
    """The picture itself."""

    def apply(self, inpt: Any) -> Any:
        return inpt


class Resize(Transform):
    """`functional.resize`.

    Args:
        size: of the shorter side, or (height, width), or None with max_size.
        interpolation: of `InterpolationMode`. max_size: of the longer side.
        antialias: on; False is refused.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import Resize
        >>> Resize(4)(zoo.zeros(3, 8, 12)).shape
        (3, 4, 6)
    """

    def __init__(self, size: Any, interpolation: str = InterpolationMode.BILINEAR, max_size: int | None = None,
                 antialias: bool | None = True):
        geometry.resized_size(1, 1, size, max_size)
        geometry.pil_filter("Resize", interpolation)
        self.size, self.interpolation, self.max_size, self.antialias = size, interpolation, max_size, antialias

    def apply(self, inpt: Any) -> Any:
        return geometry.resize(inpt, self.size, self.interpolation, self.max_size, self.antialias)


class CenterCrop(Transform):
    """The middle of the picture, padded with 0 where it is too small.

    Args:
        size: one number, or (height, width).

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import CenterCrop
        >>> CenterCrop(1)(zoo.tensor([[[1, 2, 3]]]))
        tensor([[[2]]])
    """

    def __init__(self, size: Any):
        self.size = geometry.pair("CenterCrop", size)

    def apply(self, inpt: Any) -> Any:
        return geometry.center_crop(inpt, self.size)


class Pad(Transform):
    """A frame around the picture: `functional.pad` with its arguments.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import Pad
        >>> Pad([1, 0])(zoo.tensor([[[5]]]))
        tensor([[[0, 5, 0]]])
    """

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant"):
        geometry.margins("Pad", padding)
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def apply(self, inpt: Any) -> Any:
        return geometry.pad(inpt, self.padding, self.fill, self.padding_mode)


class Grayscale(Transform):
    """A grey picture of 1 channel, or of 3 equal ones.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import Grayscale
        >>> Grayscale()(zoo.tensor([[[100]], [[100]], [[100]]], dtype=zoo.uint8))
        tensor([[[100]]], dtype=zoo.uint8)
    """

    def __init__(self, num_output_channels: int = 1):
        self.num_output_channels = num_output_channels

    def apply(self, inpt: Any) -> Any:
        return color.rgb_to_grayscale(inpt, self.num_output_channels)


class ToTensor(Transform):
    """A picture or an ndarray (H, W, C) as a tensor (C, H, W); uint8 becomes float32 in [0, 1].

    Example:
        >>> from PIL import Image
        >>> from zoo.data.transforms import ToTensor
        >>> ToTensor()(Image.new("L", (1, 1), 51))
        tensor([[[0.2000]]])
    """

    def apply(self, inpt: Any) -> Any:
        return picture.to_tensor(inpt)


class ToImage(Transform):
    """A picture or an ndarray as a tensor (C, H, W) of the same dtype.

    Example:
        >>> from PIL import Image
        >>> from zoo.data.transforms import ToImage
        >>> ToImage()(Image.new("L", (1, 1), 51))
        tensor([[[51]]], dtype=zoo.uint8)
    """

    def apply(self, inpt: Any) -> Any:
        return picture.to_image(inpt)


class PILToTensor(Transform):
    """A picture as a tensor (C, H, W) of the same dtype.

    Example:
        >>> from PIL import Image
        >>> from zoo.data.transforms import PILToTensor
        >>> PILToTensor()(Image.new("L", (1, 1), 51))
        tensor([[[51]]], dtype=zoo.uint8)
    """

    def apply(self, inpt: Any) -> Any:
        return picture.pil_to_tensor(inpt)


class ToPILImage(Transform):
    """A tensor (C, H, W) or an ndarray (H, W, C) as a picture.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import ToPILImage
        >>> ToPILImage()(zoo.ones(1, 2, 3)).getpixel((0, 0))
        255
    """

    def __init__(self, mode: str | None = None):
        self.mode = mode

    def apply(self, inpt: Any) -> Any:
        return picture.to_pil_image(inpt, self.mode)


class ToDtype(Transform):
    """Another dtype; with scale, 0 ... 255 stands for 0 ... 1.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import ToDtype
        >>> ToDtype(zoo.float32, scale=True)(zoo.tensor([51], dtype=zoo.uint8))
        tensor([0.2000])
    """

    def __init__(self, dtype: Any, scale: bool = False):
        self.dtype, self.scale = dtype, scale

    def apply(self, inpt: Any) -> Any:
        return picture.to_dtype(inpt, self.dtype, self.scale)


class ConvertImageDtype(ToDtype):
    """ToDtype with scale: torchvision's older name.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import ConvertImageDtype
        >>> ConvertImageDtype()(zoo.tensor([51], dtype=zoo.uint8))
        tensor([0.2000])
    """

    def __init__(self, dtype: Any = float32):
        super().__init__(dtype, scale=True)


class Normalize(Transform):
    """(tensor - mean) / std, channel by channel.

    Args:
        mean, std: one number per channel; std not 0. inplace: writes into the tensor.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import Normalize
        >>> Normalize([1.0], [0.5])(zoo.zeros(1, 1, 2))
        tensor([[[-2., -2.]]])
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False):
        self.mean, self.std, self.inplace = list(mean), list(std), inplace

    def apply(self, inpt: Any) -> Any:
        return picture.normalize(inpt, self.mean, self.std, self.inplace)
