"""Samplers: which samples a pass over a dataset takes, and in which order.

All random orders are drawn when the pass begins, by `iter(sampler)`, so the state of the generator at that moment is
all that a later continuation of the pass needs.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from zoo.autograd.random import Generator, rand, randint, randperm
from zoo.ops.dtypes import float64


class Sampler:
    """Anything with `__iter__()` over the numbers of samples; `__len__()` where the count is known."""

    def __init__(self, data_source: Any = None):
        pass

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__}: __iter__ is not written")


def need_count(name: str, num_samples: Any) -> int:
    """num_samples, if it is a number of samples."""
    if isinstance(num_samples, bool) or not isinstance(num_samples, (int, np.integer)) or num_samples < 0:
        raise ValueError(f"{name}: wants num_samples of at least 0, got {num_samples!r}")
    return int(num_samples)


class SequentialSampler(Sampler):
    """0, 1, 2 ... len(data_source) - 1."""

    def __init__(self, data_source: Any):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """All samples in a new random order in every pass, or `num_samples` of them.

    Args:
        data_source: what has the length.
        replacement: draw each sample from all of them, so that one may come twice.
        num_samples: how many to draw (default: as many as there are). Without replacement one order after the other
            is begun until there are enough.
        generator: draws the order (default: the global one).

    Raises:
        ValueError: num_samples below 0.

    Example:
        >>> import zoo
        >>> from zoo.data import RandomSampler
        >>> sorted(RandomSampler(range(5), generator=zoo.Generator().manual_seed(0)))
        [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ):
        if not isinstance(replacement, bool):
            raise TypeError(f"RandomSampler: wants replacement to be a bool, got {replacement!r}")
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self.count = None if num_samples is None else need_count("RandomSampler", num_samples)

    @property
    def num_samples(self) -> int:
        """How many samples a pass takes."""
        return len(self.data_source) if self.count is None else self.count

    def __iter__(self) -> Iterator[int]:
        n, count = len(self.data_source), self.num_samples
        if self.replacement:
            return iter(randint(n, (count,), generator=self.generator, device="cpu").tolist())
        passes = math.ceil(count / n) if n else 0
        orders = [randperm(n, generator=self.generator, device="cpu").array for _ in range(passes)]
        return iter(np.concatenate(orders)[:count].tolist() if orders else [])

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given numbers in a new random order in every pass."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        order = randperm(len(self.indices), generator=self.generator, device="cpu").tolist()
        return iter([self.indices[k] for k in order])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """`num_samples` numbers, each with a probability in proportion to its weight.

    Args:
        weights: (N,) of at least 0; they need not sum to 1.
        num_samples: how many to draw.
        replacement: whether a number may come twice; if not, they are the num_samples greatest of u_k^(1 / w_k) with
            uniform u_k (P. Efraimidis and P. Spirakis, "Weighted random sampling with a reservoir", 2006).
        generator: draws the numbers (default: the global one).

    Raises:
        ValueError: weights that are no probabilities, or too few for num_samples.

    Example:
        >>> from zoo.data import WeightedRandomSampler
        >>> list(WeightedRandomSampler([0.0, 3.0], 4))
        [1, 1, 1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ):
        self.weights = np.asarray(getattr(weights, "array", weights), float64)
        self.num_samples = need_count("WeightedRandomSampler", num_samples)
        self.replacement, self.generator = replacement, generator
        w, possible = self.weights, np.count_nonzero(self.weights)
        if w.ndim != 1 or not np.isfinite(w).all() or (w < 0).any() or not possible:
            raise ValueError(f"WeightedRandomSampler: wants (N,) weights of at least 0, not all 0, got {weights}")
        if not replacement and num_samples > possible:
            raise ValueError(
                f"WeightedRandomSampler: wants num_samples of at most {possible} (weights above 0), got {num_samples}"
            )

    def __iter__(self) -> Iterator[int]:
        draws = self.num_samples if self.replacement else len(self.weights)
        u = rand(draws, generator=self.generator, dtype=float64, device="cpu").array
        if self.replacement:
            edges = np.cumsum(self.weights)
            return iter(np.searchsorted(edges, u * edges[-1], side="right").tolist())
        with np.errstate(divide="ignore"):
            score = np.log1p(-u) / self.weights  # log of a uniform in (0, 1]; -inf or nan where the weight is 0
        score[self.weights == 0] = -np.inf
        return iter(np.argsort(-score, kind="stable")[: self.num_samples].tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of `batch_size` numbers from another sampler; the last may be shorter unless drop_last.

    Raises:
        ValueError: batch_size below 1, or a drop_last that is no bool.

    Example:
        >>> from zoo.data import BatchSampler
        >>> list(BatchSampler(range(5), 2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool):
        if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
            raise ValueError(f"BatchSampler: wants a batch_size of at least 1, got {batch_size!r}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"BatchSampler: wants drop_last to be a bool, got {drop_last!r}")
        self.sampler, self.batch_size, self.drop_last = sampler, int(batch_size), drop_last

    def __iter__(self) -> Iterator[list]:
        return self.batches(iter(self.sampler))  # no generator itself: the sampler draws now

    def batches(self, numbers: Iterator[Any]) -> Iterator[list]:
        while batch := list(islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else math.ceil(n / self.batch_size)


class DistributedSampler(Sampler):
    """This process's share of the samples where several train together: every `num_replicas`-th of one common order.

    Args:
        dataset: what has the length.
        num_replicas: how many processes there are.
        rank: which one this is, from 0.
        shuffle: a random order, drawn from (seed, epoch); `set_epoch` before each epoch gives another.
        seed: must be the same in all processes.
        drop_last: leave out the samples that do not divide evenly; else some come twice.

    Raises:
        ValueError: a rank outside [0, num_replicas - 1].

    Example:
        >>> from zoo.data import DistributedSampler
        >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in (0, 1)]
        [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int = 1,
        rank: int = 0,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        if not 0 <= rank < num_replicas:
            raise ValueError(f"DistributedSampler: wants a rank in [0, {num_replicas - 1}], got {rank}")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0

    @property
    def num_samples(self) -> int:
        """How many samples a pass takes in this process: the same in all."""
        n = len(self.dataset)
        return n // self.num_replicas if self.drop_last else math.ceil(n / self.num_replicas)

    def set_epoch(self, epoch: int) -> None:
        """Which epoch the next pass belongs to."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        generator = Generator().manual_seed(self.seed + self.epoch)
        order = randperm(n, generator=generator, device="cpu").array if self.shuffle else np.arange(n)
        return iter(np.resize(order, self.num_samples * self.num_replicas)[self.rank :: self.num_replicas].tolist())

    def __len__(self) -> int:
        return self.num_samples
