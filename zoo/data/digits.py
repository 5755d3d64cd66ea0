"""The handwritten digits that come with the package (DIGITS.md has their source and licence)."""

from importlib.resources import files

import numpy as np

from zoo.autograd.creation import from_numpy
from zoo.data.dataset import TensorDataset, split_indices


def digits(train: bool) -> TensorDataset:
    """1,437 digits to train with, or the 360 to test with: those whose number is divisible by 5.

    Returns:
        TensorDataset of images (N, 1, 8, 8) float32 from 0 to 1 and labels (N,) int64.

    Example:
        >>> from zoo.data import digits
        >>> len(digits(train=True)), len(digits(train=False))
        (1437, 360)
    """
    with np.load(str(files("zoo.data") / "digits.npz")) as file:
        images, labels = file["images"], file["labels"]
    chosen = split_indices(len(labels), 0, 5)[0 if train else 1]
    return TensorDataset(
        from_numpy(images[chosen, None].astype(np.float32) / 16), from_numpy(labels[chosen].astype(np.int64))
    )
