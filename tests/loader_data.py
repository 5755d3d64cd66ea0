"""Datasets for the tests of the DataLoader, in a module that worker processes import quickly."""

import os
import random
import signal
import time

import numpy as np

import zoo
from zoo.data import Dataset, IterableDataset, get_worker_info, sample_stream


class Noisy(Dataset):
    """Samples that draw from every source of random numbers."""

    def __init__(self, n=23):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return {
            "zoo": zoo.rand(3),
            "numpy": np.random.rand(2).astype(np.float32),
            "python": random.random(),
            "stream": (sample_stream().random(), sample_stream().integers(1 << 40)),
            "index": index,
        }


class Counting(IterableDataset):
    """Numbers 0 ... n - 1, cut among the workers, each with a random one beside it."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for k in range(first, self.n, step):
            yield k, random.random()


class Uneven(Dataset):
    """The first samples take long: they are ready after the later ones."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        time.sleep(0.3 if index < 2 else 0)
        return index


def add_noise(samples):
    """A collate_fn that draws, as mixup does."""
    return np.array(samples) + np.random.rand(), zoo.rand(2), sample_stream().random()


def initialise(number):
    os.environ["ZOO_TEST_WORKER"] = f"{number} of {get_worker_info().num_workers}"


class Told(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return os.environ.get("ZOO_TEST_WORKER", "none"), get_worker_info().seed, len(get_worker_info().dataset)


def list_of_one(sample):
    return [sample]


class Broken(Dataset):
    """Sample 5 cannot be read."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 5:
            raise KeyError("no picture")
        return index


class TwoWords(Exception):
    """Cannot be unpickled: its constructor wants two arguments, and pickle gives it one."""

    def __init__(self, first, second):
        super().__init__(f"{first} {second}")


class Awkward(Dataset):
    """Raises, or gives, what does not cross a process."""

    def __init__(self, kind):
        self.kind = kind

    def __len__(self):
        return 2

    def __getitem__(self, index):
        if self.kind == "value":
            return lambda: 0
        raise TwoWords("two", "words") if self.kind == "unpicklable" else StopIteration


class Deadly(Dataset):
    """Sample 5 kills the process that loads it."""

    def __init__(self, name):
        self.name = name

    def __len__(self):
        return 20

    def __getitem__(self, index):
        if index == 5:
            os.kill(os.getpid(), getattr(signal, self.name))
        return index


class Sleepy(Dataset):
    """Samples that never come."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        time.sleep(1000)


def broken_init(number):
    return 1 / 0
