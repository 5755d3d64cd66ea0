"""Pictures in folders as a dataset that names broken files instead of ending the run."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zoo.autograd.random import Generator, randperm
from zoo.autograd.tensor import wrap
from zoo.data.collate import default_collate
from zoo.data.dataset import Dataset
from zoo.data.datasets.folder import ImageFolder
from zoo.utils.command_line import UsageError

PARTS = {"train": ("train", "training"), "val": ("val", "valid", "validation"), "test": ("test",)}


class Pictures(Dataset):
    """Some samples of an ImageFolder: (picture or None, class, number, "" or what is wrong with the file).

    Args:
        folder: where the files are.
        numbers: which of its samples.
        transform: of a picture.
    """

    def __init__(self, folder: ImageFolder, numbers: Sequence[int], transform: Callable[[Any], Any]):
        self.folder, self.numbers, self.transform = folder, numbers, transform

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, k: int) -> tuple[Any, int, int, str]:
        from PIL import Image, UnidentifiedImageError

        path, label = self.folder.samples[self.numbers[k]]
        try:
            return self.transform(self.folder.loader(path)), label, k, ""
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:  # Pillow's ways to say it
            reason = getattr(error, "strerror", None) or error
            reason = "not a picture" if isinstance(error, UnidentifiedImageError) else reason
            return None, label, k, f"{path}: {reason}"

    def labels(self) -> np.ndarray:
        """The classes of the samples."""
        return np.array([self.folder.targets[number] for number in self.numbers], np.int64)

    def picture(self, k: int) -> Any:
        """A sample as a PIL image, not transformed."""
        return self.folder.loader(self.folder.samples[self.numbers[k]][0])


def collate(samples: Sequence[tuple[Any, int, int, str]]) -> list[Any]:
    """[pictures, classes, numbers, what is broken] of the samples that could be read; pictures is None if none could.

    Example:
        >>> import zoo
        >>> from zoo.train.pictures import collate
        >>> collate([(zoo.zeros(2), 1, 0, ""), (None, 0, 1, "b.png: truncated")])
        [tensor([[0., 0.]]), tensor([1]), tensor([0]), ['b.png: truncated']]
    """
    whole = [s[:3] for s in samples if not s[3]]
    broken = [s[3] for s in samples if s[3]]
    if whole:
        return [*default_collate(whole), broken]
    empty = wrap(np.zeros(0, np.int64))
    return [None, empty, empty, broken]


def find_parts(root: str) -> dict[str, ImageFolder]:
    """The parts of a folder of pictures: train, val and test where there are such folders; else all of it is "train".

    Raises:
        UsageError: no folder, no pictures, or parts with different classes.
    """
    base = Path(root).expanduser()
    if not base.is_dir():
        raise UsageError(f"--data: wants digits or a folder, got {root!r}")
    found = {part: base / name for part, names in PARTS.items() for name in names if (base / name).is_dir()}
    try:
        parts = {part: ImageFolder(path) for part, path in (found if "train" in found else {"train": base}).items()}
    except FileNotFoundError as error:
        raise UsageError(f"--data: {error}") from None
    for folder in parts.values():
        if folder.classes != parts["train"].classes:
            different = sorted(set(folder.classes) ^ set(parts["train"].classes))
            raise UsageError(f"--data: {os.fspath(folder.root)} has other classes than train: {', '.join(different)}")
    return parts


def hold_out(count: int, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers to train with and numbers held out: a random choice that only the seed decides.

    Example:
        >>> from zoo.train.pictures import hold_out
        >>> [len(part) for part in hold_out(50, 0.1, seed=0)]
        [45, 5]
    """
    order = randperm(count, generator=Generator().manual_seed(seed)).numpy()
    held = round(count * fraction)
    return np.sort(order[held:]), np.sort(order[:held])


def spread(numbers: Any, limit: int) -> Any:
    """So many of the numbers, evenly spread, as folders are sorted by class; all for 0.

    Example:
        >>> from zoo.train.pictures import spread
        >>> spread([3, 5, 7, 9], 2)
        [3, 7]
    """
    count = len(numbers)
    if not 0 < limit < count:
        return numbers
    return [numbers[k * count // limit] for k in range(limit)]
