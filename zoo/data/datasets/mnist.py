"""MNIST and FashionMNIST: 70,000 grey pictures of 28 x 28 in idx files.

Source of the format: http://yann.lecun.com/exdb/mnist (Y. LeCun, C. Cortes, C. Burges).
"""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from zoo.autograd.creation import from_numpy
from zoo.autograd.tensor import Tensor
from zoo.data.datasets.download import download as fetch_file
from zoo.data.datasets.download import missing, read_plain_or_gz
from zoo.data.datasets.folder import VisionDataset

IDX_DTYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def parse_idx(data: bytes, name: str = "idx") -> np.ndarray:
    """The array of an idx file: two zeros, a code of the dtype, the number of dimensions, their sizes, the elements.

    Args:
        data: the file's bytes.
        name: how errors call it.

    Raises:
        ValueError: no idx file, or one that is cut off or too long.

    Example:
        >>> from zoo.data.datasets import parse_idx
        >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]))
        array([7, 9], dtype=uint8)
    """
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in IDX_DTYPES:
        raise ValueError(f"parse_idx: {name} is no idx file, it begins with {data[:4].hex()}")
    dtype, begin = np.dtype(IDX_DTYPES[data[2]]), 4 + 4 * data[3]
    shape = np.frombuffer(data[4:begin], ">u4").tolist() if len(data) >= begin else [-1]
    size = math.prod(shape) * dtype.itemsize
    if len(data) - begin != size:
        raise ValueError(f"parse_idx: {name} wants {size} bytes for shape {tuple(shape)}, got {len(data) - begin}")
    return np.frombuffer(data, dtype, offset=begin).reshape(shape).astype(dtype.newbyteorder("="))


class MNIST(VisionDataset):
    """Handwritten digits: 60,000 to train with and 10,000 to test with, as PIL images in mode L.

    Args:
        root: the folder that has, or gets, MNIST/raw.
        train: the pictures to train with, or those to test with.
        transform: of the picture. target_transform: of the label 0 ... 9.
        download: fetch the files that are not there, and check them.

    Raises:
        FileNotFoundError: the files are not there and download is False. ValueError: they are broken.

    Source: Y. LeCun et al., "Gradient-based learning applied to document recognition", 1998.
    """

    url = "https://ossci-datasets.s3.amazonaws.com/mnist/"
    md5s = {
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    }
    classes = ["0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five", "6 - six", "7 - seven",
               "8 - eight", "9 - nine"]

    def __init__(self, root: str | os.PathLike, train: bool = True, transform: Callable | None = None,
                 target_transform: Callable | None = None, download: bool = False):
        super().__init__(root, transform, target_transform)
        self.train = train
        if download:
            for name, md5 in self.md5s.items():
                if not (self.raw_folder / name.removesuffix(".gz")).exists():
                    fetch_file(self.url + name, self.raw_folder / name, md5)
        part = "train" if train else "t10k"
        self.data = self.read(f"{part}-images-idx3-ubyte", 3)
        self.targets = self.read(f"{part}-labels-idx1-ubyte", 1).long()
        if len(self.data) != len(self.targets):
            raise ValueError(f"{type(self).__name__}: {len(self.data)} pictures, but {len(self.targets)} labels")

    @property
    def raw_folder(self) -> Path:
        """Where the idx files lie, as torchvision puts them."""
        return self.root / type(self).__name__ / "raw"

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class."""
        return {name: k for k, name in enumerate(self.classes)}

    def read(self, name: str, dimensions: int) -> Tensor:
        """The array of one file."""
        try:
            array = parse_idx(read_plain_or_gz(self.raw_folder / name), name)
        except FileNotFoundError:
            raise missing(type(self).__name__, self.raw_folder / name) from None
        if array.ndim != dimensions or array.dtype != np.uint8:
            raise ValueError(f"{type(self).__name__}: {name} wants {dimensions} dimensions of uint8, got "
                             f"{array.ndim} of {array.dtype}")
        return from_numpy(array)

    def load(self, index: int) -> tuple[Any, int]:
        from PIL import Image

        return Image.fromarray(self.data.array[index]), int(self.targets.array[index])

    def __len__(self) -> int:
        return len(self.data)


class FashionMNIST(MNIST):
    """Clothes in MNIST's sizes and files; see MNIST for the arguments.

    Source: H. Xiao et al., "Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning Algorithms", 2017.
    """

    # The authors' repository: the address in their paper has no TLS.
    url = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"
    md5s = {
        "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    }
    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
