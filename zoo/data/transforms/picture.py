"""Pictures and tensors: what they are, their size, and how one becomes the other. Tensors are (..., C, H, W)."""

from typing import Any

import numpy as np

from zoo.autograd.creation import dtype_of
from zoo.autograd.inplace import copy_
from zoo.autograd.tensor import Tensor, wrap
from zoo.ops.dtypes import FLOATS, bool_, float32

ARRAY_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def is_picture(x: Any) -> bool:
    """Whether x is a PIL image."""
    from PIL.Image import Image

    return isinstance(x, Image)


def array_of(name: str, x: Any, least: int = 2) -> np.ndarray:
    """The array of a tensor of at least (H, W).

    Raises:
        TypeError: x is no tensor on the CPU. ValueError: it has too few dimensions.
    """
    if not isinstance(x, Tensor) or not isinstance(x.array, np.ndarray):
        got = f"one on {x.device}" if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"{name}: wants a PIL image or a tensor on the CPU, got {got}")
    if x.ndim < least:
        raise ValueError(f"{name}: wants a tensor of at least {least} dimensions (..., H, W), got shape {x.shape}")
    return x.array


def get_size(inpt: Any) -> list[int]:
    """[height, width] of a picture or a tensor.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import functional as F
        >>> F.get_size(zoo.zeros(3, 4, 6))
        [4, 6]
    """
    if is_picture(inpt):
        return [inpt.height, inpt.width]
    return list(array_of("get_size", inpt).shape[-2:])


def get_num_channels(inpt: Any) -> int:
    """Channels of a picture or a tensor (..., C, H, W)."""
    if is_picture(inpt):
        return len(inpt.getbands())
    return array_of("get_num_channels", inpt, 3).shape[-3]


def pil_to_tensor(inpt: Any) -> Tensor:
    """A picture as a tensor (C, H, W) of its own numbers: uint8 0 ... 255, or what its mode holds.

    Raises:
        TypeError: inpt is no PIL image.

    Example:
        >>> from PIL import Image
        >>> from zoo.data.transforms import functional as F
        >>> F.pil_to_tensor(Image.new("RGB", (6, 4), "red")).shape
        (3, 4, 6)
    """
    if not is_picture(inpt):
        raise TypeError(f"pil_to_tensor: wants a PIL image, got {type(inpt).__name__}")
    return wrap(np.atleast_3d(np.asarray(inpt)).transpose(2, 0, 1).copy())


def to_image(inpt: Any) -> Tensor:
    """A picture, an ndarray (H, W) or (H, W, C), or a tensor, as a tensor (..., C, H, W) of the same dtype.

    Raises:
        TypeError: anything else. ValueError: an ndarray of another shape.

    Example:
        >>> import numpy as np
        >>> from zoo.data.transforms import functional as F
        >>> F.to_image(np.zeros((4, 6), np.uint8)).shape
        (1, 4, 6)
    """
    if isinstance(inpt, Tensor):
        return inpt if inpt.ndim > 2 else wrap(array_of("to_image", inpt)[None])
    if is_picture(inpt):
        return pil_to_tensor(inpt)
    if not isinstance(inpt, np.ndarray):
        raise TypeError(f"to_image: wants a PIL image, an ndarray or a tensor, got {type(inpt).__name__}")
    if inpt.ndim not in (2, 3):
        raise ValueError(f"to_image: wants an ndarray (H, W) or (H, W, C), got shape {inpt.shape}")
    return wrap(np.atleast_3d(inpt).transpose(2, 0, 1).copy())


def to_dtype(inpt: Tensor, dtype: Any = float32, scale: bool = False) -> Tensor:
    """A tensor of another dtype.

    Args:
        inpt: tensor of any shape.
        dtype: of the result.
        scale: numbers keep their meaning: integers 0 ... max stand for floats 0 ... 1, and wider integers are
            shifted to narrower ones, as in torchvision.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import functional as F
        >>> F.to_dtype(zoo.tensor([0, 255], dtype=zoo.uint8), zoo.float32, scale=True)
        tensor([0., 1.])
    """
    old, dtype = array_of("to_dtype", inpt, 0), dtype_of("to_dtype", dtype)
    if old.dtype == dtype:
        return inpt
    was_float, is_float = old.dtype in FLOATS, dtype in FLOATS
    if not scale or was_float and is_float or bool_ in (old.dtype, dtype):
        return wrap(old.astype(dtype))
    if is_float:
        return wrap(np.divide(old, np.asarray(np.iinfo(old.dtype).max, dtype), dtype=dtype))
    if was_float:
        # As torchvision: [0, 1] in max + 1 bins, of which the last takes 1.0 too.
        return wrap((old * np.asarray(np.iinfo(dtype).max + 1.0 - 1e-3, old.dtype)).astype(dtype))
    shift = bits(old.dtype) - bits(dtype)
    return wrap((old >> shift).astype(dtype) if shift >= 0 else old.astype(dtype) << -shift)


def bits(dtype: np.dtype) -> int:
    """Bits of an integer dtype without the sign."""
    return int(np.iinfo(dtype).max).bit_length()


def convert_image_dtype(image: Tensor, dtype: Any = float32) -> Tensor:
    """`to_dtype` with scale: torchvision's older name."""
    return to_dtype(image, dtype, scale=True)


def to_tensor(inpt: Any) -> Tensor:
    """A picture or an ndarray (H, W, C) as a tensor (C, H, W); uint8 becomes float32 in [0, 1].

    Raises:
        TypeError: inpt is something else.

    Example:
        >>> from PIL import Image
        >>> from zoo.data.transforms import functional as F
        >>> F.to_tensor(Image.new("L", (2, 1), 255))
        tensor([[[1., 1.]]])
    """
    if isinstance(inpt, Tensor):
        raise TypeError("to_tensor: wants a PIL image or an ndarray, got Tensor")
    image = to_image(inpt)
    if is_picture(inpt) and inpt.mode == "1":
        return to_dtype(image, float32)
    return to_dtype(image, float32, scale=True) if image.dtype == np.uint8 else image


def to_pil_image(inpt: Any, mode: str | None = None) -> Any:
    """A tensor (C, H, W) or an ndarray (H, W, C) as a PIL image; floats in [0, 1] become 0 ... 255.

    Raises:
        ValueError: a shape or dtype that no picture has.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import functional as F
        >>> F.to_pil_image(zoo.ones(3, 4, 6)).size
        (6, 4)
    """
    from PIL import Image

    pixels = inpt if isinstance(inpt, np.ndarray) else array_of("to_pil_image", inpt)
    if isinstance(inpt, Tensor) and pixels.ndim == 3:
        pixels = pixels.transpose(1, 2, 0)
    pixels = np.atleast_3d(pixels)
    if pixels.ndim != 3 or pixels.shape[2] not in ARRAY_MODES:
        raise ValueError(f"to_pil_image: wants (C, H, W) with 1 to 4 channels, got shape {inpt.shape}")
    if pixels.dtype in FLOATS:
        pixels = (pixels * 255).astype(np.uint8)         # torchvision's: not rounded
    elif pixels.dtype != np.uint8:
        raise ValueError(f"to_pil_image: wants uint8 or floats, got {pixels.dtype}")
    made = Image.fromarray(np.ascontiguousarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels))
    return made.convert(mode) if mode and mode != made.mode else made


def on_picture(name: str, function: Any, inpt: Any) -> Any:
    """function(picture); a uint8 tensor (C, H, W) goes there and back.

    Raises:
        TypeError: floats, which pictures do not hold.
    """
    if is_picture(inpt):
        return function(inpt)
    if not isinstance(inpt, Tensor) or inpt.dtype != np.uint8:
        got = f"a tensor of {inpt.dtype}" if isinstance(inpt, Tensor) else type(inpt).__name__
        raise TypeError(f"{name}: wants a PIL image or a uint8 tensor (C, H, W): put it before ToTensor; got {got}")
    return pil_to_tensor(function(to_pil_image(inpt)))


def normalize(inpt: Tensor, mean: Any, std: Any, inplace: bool = False) -> Tensor:
    """(inpt - mean) / std, channel by channel.

    Args:
        inpt: floating tensor (..., C, H, W).
        mean, std: C numbers each, or one for all channels; std not 0.
        inplace: writes the result into inpt.

    Raises:
        TypeError: inpt is not floating. ValueError: wrong numbers of mean and std, or a std of 0.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import functional as F
        >>> F.normalize(zoo.ones(1, 1, 2), [0.5], [0.25])
        tensor([[[2., 2.]]])
    """
    old = array_of("normalize", inpt, 3)
    if old.dtype not in FLOATS:
        raise TypeError(f"normalize: wants a floating tensor, got {old.dtype}")
    center, width = (np.asarray(numbers, old.dtype).reshape(-1, 1, 1) for numbers in (mean, std))
    if len(center) not in (1, old.shape[-3]) or len(width) not in (1, old.shape[-3]):
        raise ValueError(
            f"normalize: wants mean and std for each of {old.shape[-3]} channels, got {len(center)} and {len(width)}"
        )
    if not width.all():
        raise ValueError(f"normalize: wants std other than 0, got {std}")
    made = old - center
    made /= width
    return copy_(inpt, wrap(made)) if inplace else wrap(made)
