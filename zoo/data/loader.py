"""DataLoader: batches of a dataset, loaded here or by worker processes, the same ones either way."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import Any

from zoo.autograd.random import Generator, default_generator
from zoo.autograd.tensor import Tensor
from zoo.data.collate import can_pin, pin
from zoo.data.dataset import IterableDataset
from zoo.data.fetch import END, Recipe, Task, make_fetcher
from zoo.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from zoo.data.seeding import Streams

PREFETCH = 2  # batches that each worker has in hand


class DataLoader:
    """Batches of a dataset, in order or shuffled anew in every pass.

    The batches do not depend on the number of workers: what a sample draws, from `sample_stream()`, zoo, NumPy's
    global generator or `random`, is fixed by the pass and the sample's place and index. The global generators of the
    training process stay untouched. (An iterable dataset is read by each worker: its batches depend on their number.)

    Args:
        dataset: with `__getitem__` and `__len__`, or an IterableDataset.
        batch_size: samples in a batch; the last may be smaller unless drop_last. None: single samples.
        shuffle: a random order from `generator`.
        sampler: the samples' numbers, anew in every pass, in place of shuffle.
        batch_sampler: lists of such numbers, in place of batch_size, shuffle, sampler and drop_last.
        num_workers: processes that load; 0: this one does. They start with each pass and get the dataset by pickle.
        collate_fn: makes a batch from a list of samples (default: `default_collate`).
        pin_memory: CPU tensors come in page-locked memory where there is a GPU; with workers by a thread of its own.
        drop_last: leave out a last batch that is not full.
        timeout: seconds to wait for a batch from the workers; 0: for ever. (A worker that dies is noticed at once.)
        worker_init_fn: called with the worker's number in each worker before it loads.
        multiprocessing_context: how workers start: "forkserver" (default), "spawn", "fork", or a context.
        generator: draws the order and the key of each pass (default: the global one).
        prefetch_factor: batches each worker loads ahead (default 2).
        persistent_workers: keep the workers from one pass to the next.
        pin_memory_device: taken from scripts written for torch, which no longer reads it.
        in_order: batches come in their order; if not, as they are ready.

    Raises:
        ValueError: a number out of range, or arguments that exclude each other.
        RuntimeError: from the loop: a worker was killed, or the timeout is over. What a dataset raises in a worker is
            raised here, with notes that have the sample's number and the worker's traceback.

    Example:
        >>> import zoo
        >>> from zoo.data import DataLoader, TensorDataset
        >>> [len(x) for x, in DataLoader(TensorDataset(zoo.arange(5)), batch_size=2)]
        [2, 2, 1]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable | None = None,
        batch_sampler: Iterable[Sequence] | None = None,
        num_workers: int = 0,
        collate_fn: Callable | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        self.dataset, self.num_workers, self.collate_fn = dataset, num_workers, collate_fn
        self.pin_memory, self.timeout, self.worker_init_fn = pin_memory, timeout, worker_init_fn
        self.multiprocessing_context, self.generator, self.in_order = multiprocessing_context, generator, in_order
        self.prefetch_factor = PREFETCH if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers, self.pin_memory_device = persistent_workers, pin_memory_device
        self.choose_samplers(batch_size, bool(shuffle), sampler, batch_sampler, drop_last)
        self.recipe = Recipe(dataset, collate_fn, self.batched, self.drop_last, worker_init_fn)
        self.kept_pool: Any = None
        self.progress = Progress()
        self.resumed: Progress | None = None

    def choose_samplers(self, batch_size, shuffle: bool, sampler, batch_sampler, drop_last: bool) -> None:
        """Sets batch_size, sampler, batch_sampler and drop_last from what excludes each other."""
        self.iterable = isinstance(self.dataset, IterableDataset)
        if self.iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("DataLoader: wants no shuffle, sampler or batch_sampler with an IterableDataset")
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: wants shuffle or a sampler, got both")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("DataLoader: wants batch_sampler without batch_size, shuffle, sampler and drop_last")
        if batch_size is None and drop_last:
            raise ValueError("DataLoader: wants a batch_size with drop_last, got None")
        if sampler is None and not self.iterable:
            order = RandomSampler(self.dataset, generator=self.generator) if shuffle else None
            sampler = order or SequentialSampler(self.dataset)
        self.batched = batch_size is not None
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            try:
                batch_sampler = BatchSampler(sampler or (), batch_size, drop_last)
            except ValueError as error:
                raise ValueError(f"DataLoader: {error}") from None
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler = sampler, batch_sampler

    def __len__(self) -> int:
        if not self.iterable:
            return len(self.batch_sampler if self.batched else self.sampler)
        n = len(self.dataset) / (self.batch_size or 1)
        return int(n) if self.drop_last else math.ceil(n)

    def __iter__(self) -> Iterator[Any]:
        run = Pass(self)
        self.progress = run.progress
        if not self.num_workers:
            return Batches(run)
        from zoo.data.worker_batches import WorkerBatches

        return WorkerBatches(run)

    def generators(self) -> list[Generator]:
        """The generators of this loader and its samplers, without the global one."""
        holders = (self, self.sampler, self.batch_sampler, getattr(self.batch_sampler, "sampler", None))
        found = [g for h in holders if isinstance(g := getattr(h, "generator", None), Generator)]
        return list({id(g): g for g in found if g is not default_generator}.values())

    def state_dict(self) -> dict[str, Any]:
        """Where the current pass stands, for `load_state_dict`; also in the middle of it, and with workers.

        The global generator is not part of it: a checkpoint has it from `zoo.get_rng_state()`. A sampler of your own
        is repeated from the same states, so what it draws at random it has to draw in `__iter__`.

        Raises:
            ValueError: with in_order=False nobody knows which batches are still to come.
        """
        if not self.in_order and self.num_workers:
            raise ValueError("DataLoader: state_dict wants in_order=True, got False")
        return {
            "batches": self.progress.used,
            "begin": self.progress.begin,
            "generators": [g.get_state() for g in self.generators()],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The next pass goes on where `state_dict()` was called, on the same batches and random numbers.

        Raises:
            ValueError: the state of another kind of loader.
        """
        own = self.generators()
        if len(state_dict["generators"]) != len(own):
            count = len(state_dict["generators"])
            raise ValueError(f"DataLoader: load_state_dict wants the states of {len(own)} generators, got {count}")
        restore(own, state_dict["generators"])
        self.progress = Progress(state_dict["begin"], state_dict["batches"])
        self.resumed = self.progress if self.progress.begin is not None else None


class Progress:
    """How far a pass is: the generators' states at its begin (None: no pass is underway), and the batches used.

    It is all that a loader knows of its pass: an iterator that the training loop leaves is freed at once, and with it
    its workers.
    """

    def __init__(self, begin: list[Tensor] | None = None, used: int = 0):
        self.begin, self.used = begin, used

    def end(self) -> None:
        self.begin, self.used = None, 0


class Pass:
    """One pass over the dataset: its key and its tasks.

    Args:
        loader: whose pass; if it was resumed, the tasks begin after the batches used before.
    """

    def __init__(self, loader: DataLoader):
        self.loader, saved, loader.resumed = loader, loader.resumed, None
        generators = [default_generator, *loader.generators()]
        now = [g.get_state() for g in generators]
        self.progress = saved or Progress(now)
        restore(generators, self.progress.begin)
        self.key = (loader.generator or default_generator).draw()
        self.tasks = self.make_tasks(self.numbers(), self.progress.used)
        if saved is not None:
            restore(generators, now)

    def numbers(self) -> Iterator[Any]:
        """What to load for each batch."""
        loader = self.loader
        if loader.iterable:
            return repeat(loader.batch_size or 1)
        return iter(loader.batch_sampler if loader.batched else loader.sampler)

    def make_tasks(self, numbers: Iterator[Any], skipped: int) -> Iterator[Task]:
        """The tasks; those of an iterable dataset have to be read even where their batches were used before."""
        made = enumerate_tasks(numbers, self.loader.batched and not self.loader.iterable, skipped)
        if not self.loader.iterable:
            deque(islice(made, skipped), maxlen=0)
        return made

    def ready(self, number: int, batch: Any) -> Any:
        """A batch as the training loop gets it."""
        self.progress.used = number + 1
        return batch


def enumerate_tasks(numbers: Iterator[Any], lists: bool, skipped: int) -> Iterator[Task]:
    """Tasks with their numbers and places; the first `skipped` are marked."""
    place = 0
    for number, indices in enumerate(numbers):
        yield Task(number, place, indices, number < skipped)
        place += len(indices) if lists else 1


class Batches:
    """The iterator of a pass whose batches are loaded in this process."""

    def __init__(self, run: Pass):
        self.run, self.pinning = run, run.loader.pin_memory and can_pin()
        self.fetcher = make_fetcher(run.loader.recipe, Streams(*run.key))

    def __iter__(self) -> "Batches":
        return self

    def __len__(self) -> int:
        return len(self.run.loader)

    def __next__(self) -> Any:
        for task in self.run.tasks:
            try:
                batch = self.fetcher.load(task)
            except Exception:
                self.run.progress.used = task.number + 1
                raise
            if batch is END:
                break
            if not task.skip:
                return self.run.ready(task.number, pin(batch) if self.pinning else batch)
        self.run.progress.end()
        raise StopIteration


def restore(generators: Sequence[Generator], states: Sequence[Tensor]) -> None:
    """Sets the states of generators."""
    for generator, state in zip(generators, states, strict=True):
        generator.set_state(state)


def check_workers(num_workers, timeout, prefetch_factor, persistent_workers, context) -> None:
    """The arguments that are about worker processes.

    Raises:
        ValueError: one out of range, or one that wants workers where there are none.
    """
    if isinstance(num_workers, bool) or not isinstance(num_workers, int) or num_workers < 0:
        raise ValueError(f"DataLoader: wants num_workers of at least 0, got {num_workers!r}")
    if timeout < 0:
        raise ValueError(f"DataLoader: wants a timeout of at least 0 seconds, got {timeout}")
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError(f"DataLoader: wants a prefetch_factor of at least 1, got {prefetch_factor}")
    if num_workers == 0 and (prefetch_factor is not None or persistent_workers or context is not None):
        raise ValueError(
            "DataLoader: prefetch_factor, persistent_workers and multiprocessing_context want num_workers of at least 1"
        )
    if isinstance(context, str):
        from multiprocessing import get_all_start_methods

        if context not in (methods := get_all_start_methods()):
            raise ValueError(f"DataLoader: wants a multiprocessing_context of {methods}, got {context!r}")
