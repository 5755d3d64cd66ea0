"""Datasets and batches: torch.utils.data's Dataset, TensorDataset, Subset and DataLoader, in one process."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import Any

import numpy as np

from zoo.autograd.creation import tensor
from zoo.autograd.random import Generator, randperm
from zoo.autograd.tensor import Tensor
from zoo.ops.errors import DimError
from zoo.ops.op import OPS


class Dataset:
    """Anything with `__getitem__(index)` and `__len__()`."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: __getitem__ is not written")

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__}: __len__ is not written")

    def __add__(self, other: "Dataset") -> "ConcatDataset":
        return ConcatDataset([self, other])


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


class Subset(Dataset):
    """Some samples of a dataset, by their numbers."""

    def __init__(self, dataset: Dataset, indices: Sequence[int]):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


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
    order = iter(randperm(n, generator=generator).tolist())
    return [Subset(dataset, list(islice(order, int(length)))) for length in parts]


def default_collate(samples: list) -> Any:
    """A list of samples as one batch: tensors are stacked, numbers become one, tuples and dicts go field by field."""
    first = samples[0]
    if isinstance(first, Tensor):
        return OPS["stack"](0, *samples) if "stack" in OPS else OPS["cat"](0, *(s.unsqueeze(0) for s in samples))
    if isinstance(first, (bool, int, float, np.number, np.ndarray)):
        return tensor(np.stack([np.asarray(s) for s in samples]))
    if isinstance(first, dict):
        return {key: default_collate([s[key] for s in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        return [default_collate(list(field)) for field in zip(*samples, strict=True)]
    return samples


class DataLoader:
    """Batches of a dataset, in order or shuffled anew in every pass.

    Args:
        dataset: with `__getitem__` and `__len__`.
        batch_size: samples in a batch; the last may be smaller unless drop_last.
        shuffle: a random order from `generator` (default: the global one).
        sampler: the samples' numbers, anew in every pass, in place of shuffle.
        batch_sampler: lists of such numbers, in place of batch_size, shuffle, sampler and drop_last.
        collate_fn: makes a batch from a list of samples.
        pin_memory, timeout, worker_init_fn, persistent_workers, prefetch_factor: taken from scripts written for
            torch; without worker processes they have nothing to do.

    Raises:
        ValueError: a batch_size below 1, or arguments that exclude each other.
        NotImplementedError: num_workers is not 0.

    Example:
        >>> import zoo
        >>> from zoo.data import DataLoader, TensorDataset
        >>> [len(x) for x, in DataLoader(TensorDataset(zoo.arange(5)), batch_size=2)]
        [2, 2, 1]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable | None = None,
        *,
        generator: Generator | None = None,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
    ):
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"DataLoader: wants a batch_size of at least 1, got {batch_size!r}")
        if num_workers:
            raise NotImplementedError(f"DataLoader: works in one process, wants num_workers=0, got {num_workers}")
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: wants shuffle or a sampler, got both")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("DataLoader: wants batch_sampler without batch_size, shuffle, sampler and drop_last")
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, bool(shuffle), drop_last
        self.sampler, self.batch_sampler, self.num_workers, self.pin_memory = sampler, batch_sampler, 0, pin_memory
        self.collate_fn, self.generator = collate_fn, generator

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        n = len(self.dataset if self.sampler is None else self.sampler) / self.batch_size
        return int(n) if self.drop_last else math.ceil(n)

    def batches(self) -> Iterator[Sequence[int]]:
        """The samples' numbers, batch by batch."""
        if self.batch_sampler is not None:
            yield from self.batch_sampler
            return
        n = len(self.dataset)
        order: Iterable = range(n) if self.sampler is None else self.sampler
        order = iter(randperm(n, generator=self.generator).tolist() if self.shuffle else order)
        while batch := list(islice(order, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __iter__(self) -> Iterator[Any]:
        for indices in self.batches():
            if self.collate_fn is None and hasattr(self.dataset, "batch"):
                yield list(self.dataset.batch(tensor(indices)))
            else:
                yield (self.collate_fn or default_collate)([self.dataset[int(i)] for i in indices])


def split_indices(n: int, part: int, parts: int) -> tuple[np.ndarray, np.ndarray]:
    """(the others, those) of 0 ... n - 1 whose remainder by `parts` is `part`."""
    if not 0 <= part < parts:
        raise DimError(f"split_indices: wants part in [0, {parts - 1}], got {part}")
    index = np.arange(n)
    return index[index % parts != part], index[index % parts == part]
