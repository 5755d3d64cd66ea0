"""Batches mixed with themselves: MixUp and CutMix, for a training loop or as part of a collate_fn."""

import math
from typing import Any

from zoo.autograd.tensor import Tensor
from zoo.data.seeding import sample_stream
from zoo.ops.dtypes import FLOATS, float32
from zoo.ops.face.index import one_hot
from zoo.ops.face.join import roll


class Mix:
    """What both do: check a batch, draw lambda from Beta(alpha, alpha), and mix the labels.

    Every sample meets the one before it, so the batch should be shuffled.

    Args:
        alpha: of the Beta distribution, above 0. num_classes: needed for labels that are class numbers.

    Raises:
        ValueError: alpha is not above 0; when called: images and labels that do not fit.
    """

    def __init__(self, *, alpha: float = 1.0, num_classes: int | None = None):
        if not alpha > 0:
            raise ValueError(f"{type(self).__name__}: wants alpha above 0, got {alpha}")
        self.alpha, self.num_classes = alpha, num_classes

    def __call__(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Mixed images and labels.

        Args:
            images: (N, C, H, W). labels: class numbers (N,), or probabilities (N, num_classes).

        Returns:
            Images as given in shape and dtype, and floating labels (N, num_classes).
        """
        name = type(self).__name__
        if images.ndim != 4 or labels.ndim not in (1, 2) or len(images) != len(labels):
            raise ValueError(
                f"{name}: wants images (N, C, H, W) and labels (N,) or (N, num_classes), "
                f"got {tuple(images.shape)} and {tuple(labels.shape)}"
            )
        if labels.ndim == 1 and self.num_classes is None:
            raise ValueError(f"{name}: wants num_classes for labels that are class numbers")
        if labels.ndim == 2 and self.num_classes not in (None, labels.shape[1]):
            raise ValueError(f"{name}: wants labels of {self.num_classes} classes, got shape {tuple(labels.shape)}")
        stream = sample_stream()
        images, share = self.mix(images, float(stream.beta(self.alpha, self.alpha)), stream)
        labels = one_hot(labels, self.num_classes) if labels.ndim == 1 else labels
        return images, blend(labels if labels.dtype in FLOATS else labels.to(float32), share)

    def mix(self, images: Tensor, lam: float, stream: Any) -> tuple[Tensor, float]:
        """Mixed images, and the share of each image in its mixture."""
        raise NotImplementedError(f"{type(self).__name__}: mix is not written")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(alpha={self.alpha}, num_classes={self.num_classes})"


def blend(x: Tensor, share: float) -> Tensor:
    """share x + (1 - share) of the rows before."""
    return x * share + roll(x, 1, 0) * (1.0 - share)


class MixUp(Mix):
    """lambda image + (1 - lambda) (the image before), and the labels likewise.

    Args:
        alpha: of the Beta distribution, above 0. num_classes: needed for labels that are class numbers.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import MixUp
        >>> images, labels = MixUp(alpha=0.2, num_classes=5)(zoo.rand(4, 3, 8, 8), zoo.arange(4))
        >>> images.shape, labels.shape
        ((4, 3, 8, 8), (4, 5))

    Source: H. Zhang et al., "mixup: Beyond Empirical Risk Minimization", https://arxiv.org/abs/1710.09412.
    """

    def mix(self, images: Tensor, lam: float, stream: Any) -> tuple[Tensor, float]:
        if images.dtype not in FLOATS:
            raise TypeError(f"MixUp: wants floating images, got {images.dtype}")
        return blend(images, lam), lam


class CutMix(Mix):
    """A random rectangle of each image comes from the image before; labels in proportion to the areas.

    Args:
        alpha: of the Beta distribution, above 0. num_classes: needed for labels that are class numbers.

    Example:
        >>> import zoo
        >>> from zoo.data.transforms import CutMix
        >>> CutMix(num_classes=5)(zoo.rand(4, 3, 8, 8), zoo.arange(4))[1].sum(1)
        tensor([1., 1., 1., 1.])

    Source: S. Yun et al., "CutMix", https://arxiv.org/abs/1905.04899.
    """

    def mix(self, images: Tensor, lam: float, stream: Any) -> tuple[Tensor, float]:
        height, width = images.shape[-2:]
        return self.paste(images, lam, int(stream.integers(height)), int(stream.integers(width)))

    @staticmethod
    def paste(images: Tensor, lam: float, y: int, x: int) -> tuple[Tensor, float]:
        """The images with a rectangle of 1 - lam of the area around (y, x) from those before, and what is left."""
        height, width = images.shape[-2:]
        half = 0.5 * math.sqrt(1.0 - lam)
        top, bottom = max(y - int(half * height), 0), min(y + int(half * height), height)
        left, right = max(x - int(half * width), 0), min(x + int(half * width), width)
        mixed = images.clone()
        mixed[..., top:bottom, left:right] = roll(images, 1, 0)[..., top:bottom, left:right]
        return mixed, 1.0 - (bottom - top) * (right - left) / (height * width)


Mixup = MixUp                # the paper's spelling
