"""How one batch is loaded: the same code in the training process and in a worker, so the same batches."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from zoo.autograd.creation import tensor
from zoo.data.collate import default_collate, default_convert
from zoo.data.dataset import IterableDataset, has_batches
from zoo.data.seeding import COLLATE, ITEM, SAMPLE, WORD, Streams


class Task(NamedTuple):
    """One batch to load, as the training process orders it."""

    number: int  # of the batch in its pass
    place: int  # of the batch's first sample in its pass
    indices: Any  # the samples' numbers; without batches the sample's; of an iterable dataset how many samples
    skip: bool = False  # read and forget: the batch was used before the training was interrupted


class Recipe(NamedTuple):
    """What a process needs to know to load batches; a worker gets it by pickle."""

    dataset: Any
    collate_fn: Callable | None
    batched: bool
    drop_last: bool
    worker_init_fn: Callable | None = None


END = object()  # an iterable dataset has no more samples


class MapFetcher:
    """Loads samples by number."""

    def __init__(self, recipe: Recipe, streams: Streams, worker: int = 0):
        self.dataset, self.batched, self.streams = recipe.dataset, recipe.batched, streams
        self.whole = recipe.batched and recipe.collate_fn is None and has_batches(recipe.dataset)
        self.collate = recipe.collate_fn or (default_collate if recipe.batched else default_convert)

    def load(self, task: Task) -> Any:
        if self.whole:
            return list(self.dataset.batch(tensor(task.indices)))
        with self.streams.installed():
            made = self.samples(task) if self.batched else self.sample(task.indices, task.place)
            self.streams.begin(COLLATE, task.number)
            return self.collate(made)

    def samples(self, task: Task) -> list:
        if not hasattr(self.dataset, "__getitems__"):
            return [self.sample(index, task.place + k) for k, index in enumerate(task.indices)]
        self.streams.begin(SAMPLE, task.place)
        try:
            return self.dataset.__getitems__(task.indices)
        except Exception as error:
            error.add_note(f"DataLoader: while loading the samples {task.indices}")
            raise

    def sample(self, index: Any, place: int) -> Any:
        self.streams.begin(SAMPLE, place, number_of(index))
        try:
            return self.dataset[index]
        except Exception as error:
            error.add_note(f"DataLoader: while loading sample {index}")
            if isinstance(error, StopIteration):  # it would end the loop over the loader, without a word
                raise RuntimeError(f"DataLoader: sample {index} raised StopIteration") from error
            raise


class IterableFetcher:
    """Reads an iterable dataset on."""

    def __init__(self, recipe: Recipe, streams: Streams, worker: int = 0):
        self.recipe, self.streams, self.worker = recipe, streams, worker
        self.collate = recipe.collate_fn or (default_collate if recipe.batched else default_convert)
        self.source: Iterator | None = None
        self.read = 0

    def load(self, task: Task) -> Any:
        """The next batch; END when there is none."""
        with self.streams.installed():
            samples = self.next_samples(task.indices)
            if not samples or len(samples) < task.indices and self.recipe.drop_last:
                return END
            if task.skip:
                return None
            self.streams.begin(COLLATE, task.number)
            return self.collate(samples if self.recipe.batched else samples[0])

    def next_samples(self, wanted: int) -> list:
        if self.source is None:
            self.streams.begin(ITEM, WORD, self.worker)
            self.source = iter(self.recipe.dataset)
        samples = []
        for _ in range(wanted):
            self.streams.begin(ITEM, self.read, self.worker)
            try:
                samples.append(next(self.source))
            except StopIteration:
                break
            except Exception as error:
                error.add_note(f"DataLoader: while reading sample {self.read} of worker {self.worker}'s part")
                raise
            self.read += 1
        return samples


def make_fetcher(recipe: Recipe, streams: Streams, worker: int = 0) -> MapFetcher | IterableFetcher:
    """The fetcher of the recipe's kind of dataset, for one pass."""
    kind = IterableFetcher if isinstance(recipe.dataset, IterableDataset) else MapFetcher
    return kind(recipe, streams, worker)


def number_of(index: Any) -> int:
    """The index where it is a number; other keys are told apart by their place alone."""
    try:
        return int(index)
    except (TypeError, ValueError):
        return 0
