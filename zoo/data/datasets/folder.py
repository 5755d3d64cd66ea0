"""Samples in folders, one for each class: DatasetFolder for any files, ImageFolder for pictures."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from zoo.data.dataset import Dataset

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def pil_loader(path: str | os.PathLike, draft: int | None = None) -> Any:
    """A picture file as a PIL image in RGB.

    Args:
        path: of the file.
        draft: a JPEG is decoded at 1/2, 1/4 or 1/8 of its size, the smallest with both sides of at least this many
            pixels. libjpeg leaves out the fine frequencies, so it takes a fraction of the time.

    Raises:
        OSError: the file cannot be read as a picture.

    Example:
        >>> from PIL import Image
        >>> from zoo.data.datasets import pil_loader
        >>> Image.new("L", (640, 480)).save("grey.jpg")
        >>> pil_loader("grey.jpg").size, pil_loader("grey.jpg", draft=224).size
        ((640, 480), (320, 240))
    """
    from PIL import Image

    with open(path, "rb") as file, Image.open(file) as image:
        if draft is not None:
            image.draft("RGB", (draft, draft))
        return image.convert("RGB")


def find_classes(directory: str | os.PathLike) -> tuple[list[str], dict[str, int]]:
    """The names of the folders in a folder, in order, and their numbers.

    Raises:
        FileNotFoundError: there is no folder in it.
    """
    classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"find_classes: wants a folder for each class in {directory}, found none")
    return classes, {name: k for k, name in enumerate(classes)}


def find_files(folder: Path, is_valid: Callable[[str], bool]) -> list[str]:
    """The valid files below a folder, in order; links are followed."""
    walked = sorted((root, sorted(names)) for root, _, names in os.walk(folder, followlinks=True))
    return [path for root, names in walked for name in names if is_valid(path := os.path.join(root, name))]


class VisionDataset(Dataset):
    """Samples and targets, of which subclasses write `load(index)`, with the user's transforms on both.

    Args:
        root: the folder of the data.
        transform: of the sample. target_transform: of the target.
    """

    def __init__(self, root: str | os.PathLike, transform: Callable | None = None,
                 target_transform: Callable | None = None):
        self.root, self.transform, self.target_transform = Path(root).expanduser(), transform, target_transform

    def load(self, index: int) -> tuple[Any, Any]:
        """The sample and the target as they are stored."""
        raise NotImplementedError(f"{type(self).__name__}: load is not written")

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        sample, target = self.load(index)
        sample = sample if self.transform is None else self.transform(sample)
        return sample, target if self.target_transform is None else self.target_transform(target)


class DatasetFolder(VisionDataset):
    """root/class/.../file: sample and number of the class.

    Args:
        root: the folder with a folder for each class.
        loader: makes a sample of a file's path.
        extensions: of the files to take, with the dot; or
        is_valid_file: whether to take the file of a path. One of the two.
        transform: of the sample. target_transform: of the class's number.
        allow_empty: whether a class may have no file.

    Raises:
        FileNotFoundError: no folder in root, or none of the wanted files in one of them.
        ValueError: both or neither of extensions and is_valid_file.

    Example:
        >>> from pathlib import Path
        >>> from zoo.data.datasets import DatasetFolder
        >>> for name in ("cat", "dog"):
        ...     Path("pets", name).mkdir(parents=True)
        ...     _ = Path("pets", name, "1.txt").write_text(name)
        >>> pets = DatasetFolder("pets", lambda path: Path(path).read_text(), extensions=(".txt",))
        >>> pets[1], pets.class_to_idx
        (('dog', 1), {'cat': 0, 'dog': 1})
    """

    def __init__(
        self,
        root: str | os.PathLike,
        loader: Callable[[str], Any],
        extensions: Sequence[str] | None = None,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ):
        super().__init__(root, transform, target_transform)
        if (extensions is None) == (is_valid_file is None):
            raise ValueError("DatasetFolder: wants extensions or is_valid_file, got both or neither")
        endings = tuple(e.lower() for e in extensions or ())
        is_valid = is_valid_file or (lambda path: path.lower().endswith(endings))
        self.loader, self.extensions = loader, extensions
        self.classes, self.class_to_idx = self.find_classes(self.root)
        files = {name: find_files(self.root / name, is_valid) for name in sorted(self.class_to_idx)}
        if (empty := [name for name, found in files.items() if not found]) and not allow_empty:
            wanted = f"files with the extensions {', '.join(extensions)}" if extensions else "files that are valid"
            raise FileNotFoundError(f"DatasetFolder: wants {wanted} in each class, found none in {', '.join(empty)}")
        self.samples = [(path, self.class_to_idx[name]) for name, found in files.items() for path in found]
        self.targets = [target for _, target in self.samples]

    def find_classes(self, directory: str | os.PathLike) -> tuple[list[str], dict[str, int]]:
        """The classes and their numbers; a subclass may have others."""
        return find_classes(directory)

    def load(self, index: int) -> tuple[Any, int]:
        path, target = self.samples[index]
        return self.loader(path), target

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """root/class/.../picture: the picture in RGB and the number of its class.

    Args:
        root: the folder with a folder for each class.
        transform: of the picture. target_transform: of the class's number.
        loader: makes a picture of a path.
        is_valid_file: whether to take the file of a path (default: by its extension).
        allow_empty: whether a class may have no picture.
        draft: pixels of the shorter side that are enough, see `pil_loader`; for the default loader.

    Raises:
        FileNotFoundError: no folder in root, or no picture in one of them.

    Example:
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from zoo.data.datasets import ImageFolder
        >>> Path("pictures/red").mkdir(parents=True)
        >>> Image.new("RGB", (4, 2), "red").save("pictures/red/1.png")
        >>> ImageFolder("pictures")[0][0].size
        (4, 2)
    """

    def __init__(
        self,
        root: str | os.PathLike,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        loader: Callable[[str], Any] = pil_loader,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
        draft: int | None = None,
    ):
        if draft is not None:
            if loader is not pil_loader:
                raise ValueError("ImageFolder: wants draft only with its own loader")
            loader = partial(pil_loader, draft=draft)
        extensions = IMG_EXTENSIONS if is_valid_file is None else None
        super().__init__(root, loader, extensions, transform, target_transform, is_valid_file, allow_empty)
        self.imgs = self.samples
