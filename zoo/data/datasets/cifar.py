"""CIFAR-10 and CIFAR-100: 60,000 coloured pictures of 32 x 32, from the pickles that Python 2 wrote of them.

A pickle can run code. These are read by the closed machine of zoo.checkpoint, which here knows NumPy's arrays too.
Source: A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from zoo.checkpoint.errors import FileError
from zoo.checkpoint.opcodes import OPCODES, Constructor, Machine
from zoo.data.datasets.download import download as fetch_file
from zoo.data.datasets.download import extract, missing
from zoo.data.datasets.folder import VisionDataset

LARGEST = 1 << 28  # bytes of a string in a file; the largest, CIFAR-100's pictures to train with, has 153,600,000


class Made:
    """An array or a dtype before BUILD gives it its state. It is never called, and has no attribute but these."""

    def __init__(self, *arguments: Any):
        self.arguments, self.state = arguments, ()


class ArrayMachine(Machine):
    """The closed machine, for a pickle with NumPy arrays of bytes."""

    def run(self) -> Any:
        opcodes = {**OPCODES, b"b": ArrayMachine.build}
        while (code := self.read(1)) != b".":
            if code not in opcodes:
                raise FileError(f"is refused: its pickle has the opcode {code!r}, which arrays do not need")
            opcodes[code](self)
        return self.pop()

    def build(self) -> None:
        state = self.pop()
        self.top(Made).state = state


NAMES = {
    ("numpy.core.multiarray", "_reconstruct"): Constructor(Made),
    ("numpy", "dtype"): Constructor(Made),
    ("numpy", "ndarray"): None,
}


def array_of(made: Any) -> np.ndarray:
    """The bytes of an array's state: (version, shape, dtype, Fortran order, data as latin-1).

    Raises:
        ValueError: something else than an array of bytes in C order.
    """
    state = made.state if type(made) is Made else ()
    kind = state[2] if len(state) == 5 else None
    if type(kind) is not Made or kind.arguments[:1] not in (("u1",), ("uint8",)) or state[3] is not False:
        raise ValueError("CIFAR: wants an array of uint8 in C order in the file")
    data = state[4].encode("latin-1") if isinstance(state[4], str) else state[4]
    return np.frombuffer(data, np.uint8).reshape(state[1])


def read_batch(path: Path) -> dict[str, Any]:
    """The dictionary of one of CIFAR's files.

    Raises:
        ValueError: the file is broken, or has what these files do not have.
    """
    with open(path, "rb") as file:
        try:
            found = ArrayMachine(file, LARGEST, lambda count: None, NAMES).run()
        except FileError as error:
            raise ValueError(f"CIFAR: {path} {error}") from None
    if type(found) is not dict:
        raise ValueError(f"CIFAR: {path} wants a dictionary, has a {type(found).__name__}")
    return found


class CIFAR10(VisionDataset):
    """10 classes of things: 50,000 pictures to train with and 10,000 to test with, as PIL images in RGB.

    Args:
        root: the folder that has, or gets, the files as torchvision puts them.
        train: the pictures to train with, or those to test with.
        transform: of the picture. target_transform: of the label.
        download: fetch the archive if it is not there, check and unpack it.

    Raises:
        FileNotFoundError: the files are not there and download is False. ValueError: they are broken.
    """

    base_folder = "cifar-10-batches-py"
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    md5 = "c58f30108f718f92721af3b95e74349a"
    train_files = [f"data_batch_{k}" for k in range(1, 6)]
    test_files = ["test_batch"]
    meta_file, label_key, names_key = "batches.meta", "labels", "label_names"

    def __init__(self, root: str | os.PathLike, train: bool = True, transform: Callable | None = None,
                 target_transform: Callable | None = None, download: bool = False):
        super().__init__(root, transform, target_transform)
        self.train = train
        if download:
            self.fetch()
        batches = [self.read(name) for name in (self.train_files if train else self.test_files)]
        try:
            planes = np.concatenate([array_of(b["data"]) for b in batches]).reshape(-1, 3, 32, 32)
            self.targets = [int(label) for b in batches for label in b[self.label_key]]
            self.classes = list(self.read(self.meta_file)[self.names_key])
        except KeyError as error:
            raise ValueError(f"{type(self).__name__}: wants the key {error} in its files") from None
        if len(planes) != len(self.targets):
            raise ValueError(f"{type(self).__name__}: {len(planes)} pictures, but {len(self.targets)} labels")
        self.data = np.ascontiguousarray(planes.transpose(0, 2, 3, 1))
        self.class_to_idx = {name: k for k, name in enumerate(self.classes)}

    def fetch(self) -> None:
        """Downloads and unpacks what is not there."""
        names = [*self.train_files, *self.test_files, self.meta_file]
        if all((self.root / self.base_folder / name).is_file() for name in names):
            return
        archive = self.root / self.url.rpartition("/")[2]
        fetch_file(self.url, archive, self.md5)
        extract(archive, self.root, [f"{self.base_folder}/{name}" for name in names])

    def read(self, name: str) -> dict[str, Any]:
        """The dictionary of one file."""
        path = self.root / self.base_folder / name
        if not path.is_file():
            raise missing(type(self).__name__, path)
        return read_batch(path)

    def load(self, index: int) -> tuple[Any, int]:
        from PIL import Image

        return Image.fromarray(self.data[index]), self.targets[index]

    def __len__(self) -> int:
        return len(self.data)


class CIFAR100(CIFAR10):
    """100 classes of things; see CIFAR10 for the arguments."""

    base_folder = "cifar-100-python"
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_files, test_files = ["train"], ["test"]
    meta_file, label_key, names_key = "meta", "fine_labels", "fine_label_names"
