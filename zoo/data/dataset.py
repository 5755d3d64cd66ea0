"""Datasets: where samples come from, by number or one after the other, and how datasets are cut and joined."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice
from typing import Any

import numpy as np

from zoo.autograd.creation import tensor
from zoo.autograd.random import Generator, randperm
from zoo.autograd.tensor import Tensor
from zoo.ops.errors import DimError


class Dataset:
    """Anything with `__getitem__(index)` and `__len__()`."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: __getitem__ is not written")

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__}: __len__ is not written")

    def __add__(self, other: "Dataset") -> "ConcatDataset":
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Samples one after the other, from `__iter__()`: for streams without numbers.

    With worker processes each has its own copy and reads all of it: `get_worker_info()` says which part to give.

    Example:
        >>> from zoo.data import DataLoader, IterableDataset
        >>> class Countdown(IterableDataset):
        ...     def __iter__(self):
        ...         return iter([3, 2, 1])
        >>> [x.tolist() for x in DataLoader(Countdown(), batch_size=2)]
        [[3, 2], [1]]
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__}: __iter__ is not written")

    def __add__(self, other: Dataset) -> "ChainDataset":
        return ChainDataset([self, other])


class ChainDataset(IterableDataset):
    """Iterable datasets one after the other.

    Raises:
        TypeError: a dataset that is no IterableDataset.
    """

    def __init__(self, datasets: Iterable[IterableDataset]):
        self.datasets = list(datasets)
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise TypeError(f"ChainDataset: wants IterableDatasets, got {type(dataset).__name__}")

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)


class TensorDataset(Dataset):
    """Tensors of equal length: sample k is the tuple of their k-th rows.

    Example:
        >>> import zoo
        >>> from zoo.data import TensorDataset
        >>> TensorDataset(zoo.arange(3), zoo.arange(3, 6))[1]
        (tensor(1), tensor(4))
    """

    def __init__(self, *tensors: Tensor):
        if not tensors or any(t.shape[:1] != tensors[0].shape[:1] or not t.ndim for t in tensors):
            raise ValueError(
                f"TensorDataset: wants tensors of one length, got shapes {[tuple(t.shape) for t in tensors]}"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]

    def batch(self, indices: Tensor) -> tuple[Tensor, ...]:
        """Many samples at once: one indexing per tensor."""
        return tuple(t[indices.to(t.device)] for t in self.tensors)


class StackDataset(Dataset):
    """Datasets of equal length side by side: sample k is the tuple, or by keywords the dict, of their samples k.

    Raises:
        ValueError: no dataset, lengths that differ, or datasets both with and without a name.

    Example:
        >>> from zoo.data import StackDataset
        >>> StackDataset(range(3), "abc")[1], StackDataset(number=range(3), letter="abc")[1]
        ((1, 'b'), {'number': 1, 'letter': 'b'})
    """

    def __init__(self, *args: Any, **kwargs: Any):
        parts = args or tuple(kwargs.values())
        if not parts or args and kwargs:
            raise ValueError("StackDataset: wants datasets, either all with a name or all without one, "
                             f"got {len(args)} without and {len(kwargs)} with one")
        if len({len(part) for part in parts}) > 1:
            raise ValueError(f"StackDataset: wants datasets of one length, got {[len(part) for part in parts]}")
        self.datasets: Any = args or kwargs

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple(part[index] for part in self.datasets)

    def __len__(self) -> int:
        return len(self.datasets[0] if isinstance(self.datasets, tuple) else next(iter(self.datasets.values())))


class Subset(Dataset):
    """Some samples of a dataset, by their numbers."""

    def __init__(self, dataset: Dataset, indices: Sequence[int]):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int | list[int]) -> Any:
        return self.dataset[[self.indices[i] for i in index] if isinstance(index, list) else self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)

    def batch(self, indices: Tensor) -> tuple[Tensor, ...]:
        """Many samples at once, where the dataset can do that (`has_batches`)."""
        return self.dataset.batch(tensor([self.indices[i] for i in indices.tolist()]))


def has_batches(dataset: Any) -> bool:
    """Whether the dataset gives a whole batch by one indexing per tensor."""
    return isinstance(dataset, TensorDataset) or isinstance(dataset, Subset) and has_batches(dataset.dataset)


class ConcatDataset(Dataset):
    """Datasets one after the other; `a + b` makes one too.

    Raises:
        ValueError: no dataset. DimError (ValueError, IndexError): no such sample.

    Example:
        >>> import zoo
        >>> from zoo.data import ConcatDataset
        >>> [ConcatDataset([range(3), range(5, 7)])[k] for k in (2, 3, -1)]
        [2, 5, 6]
    """

    def __init__(self, datasets: Iterable[Any]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: wants at least one dataset, got none")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise TypeError("ConcatDataset: wants datasets with numbers, got an IterableDataset; see ChainDataset")
        self.cumulative_sizes = list(accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise DimError(f"ConcatDataset: wants an index in [{-len(self)}, {len(self) - 1}], got {index}")
        index = index % len(self)
        which = bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


def random_split(
    dataset: Dataset, lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset]:
    """The dataset's samples in a random order, cut into parts that do not overlap.

    Args:
        lengths: samples of each part, together all of them; or fractions that sum to 1, whose parts are rounded
            down and given the samples left over in turn.
        generator: draws the order (default: the global one).

    Raises:
        ValueError: the lengths are not those of this dataset.

    Example:
        >>> import zoo
        >>> from zoo.data import random_split
        >>> [len(part) for part in random_split(range(10), [0.7, 0.25, 0.05])]
        [8, 2, 0]
    """
    n, parts = len(dataset), list(lengths)
    if all(0 <= x <= 1 for x in parts) and math.isclose(sum(parts), 1):
        parts = [math.floor(n * x) for x in parts]
        for k in range(n - sum(parts)):
            parts[k % len(parts)] += 1
    if sum(parts) != n:
        raise ValueError(f"random_split: wants lengths that sum to {n}, the length of the dataset, got {list(lengths)}")
    order = iter(randperm(n, generator=generator, device="cpu").tolist())
    return [Subset(dataset, list(islice(order, int(length)))) for length in parts]


def split_indices(n: int, part: int, parts: int) -> tuple[np.ndarray, np.ndarray]:
    """(the others, those) of 0 ... n - 1 whose remainder by `parts` is `part`."""
    if not 0 <= part < parts:
        raise DimError(f"split_indices: wants part in [0, {parts - 1}], got {part}")
    index = np.arange(n)
    return index[index % parts != part], index[index % parts == part]
