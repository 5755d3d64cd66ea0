"""The iterator of a pass whose batches come from worker processes."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from zoo.data.collate import can_pin, pin
from zoo.data.loader import DataLoader, Pass
from zoo.data.worker import Start
from zoo.data.worker_pool import Worker, WorkerPool


class WorkerBatches:
    """Gives out the pass's tasks ahead of time and hands on the batches, in their order if the loader wants that.

    The tasks of an iterable dataset go round the workers, each of which reads its own part. Others go to the worker
    with the fewest: who loads a batch does not change it. With pin_memory a thread of its own copies the batches that
    are here into page-locked memory, while the training loop has the one before.
    """

    def __init__(self, run: Pass):
        self.run, self.loader = run, run.loader
        self.pool = pool_for(run)
        self.active = deque(self.pool.workers)  # those whose part of an iterable dataset goes on; the next one first
        self.answers: dict[int, tuple[Worker, str, Any]] = {}
        self.pinner = ThreadPoolExecutor(1, "zoo.data pin") if self.loader.pin_memory and can_pin() else None
        self.next_task = next(run.tasks, None)
        self.first = self.next_task.number if self.next_task else 0
        self.ordered = self.taken = 0
        self.order_more()

    def __iter__(self) -> "WorkerBatches":
        return self

    def __len__(self) -> int:
        return len(self.loader)

    def __next__(self) -> Any:
        while self.taken < self.ordered:
            number = self.next_number()
            if number is None:
                self.receive()
                continue
            worker, kind, value = self.answers.pop(number)
            self.taken += 1
            if kind == "end" and worker in self.active:  # now and not on arrival: the order must not depend on time
                self.active.remove(worker)
            self.order_more()
            if kind == "error":
                self.run.progress.used = number + 1
                try:
                    raise value
                finally:
                    del value  # else the exception's traceback would hold this frame, and the frame the exception
            if kind == "batch":
                return self.run.ready(number, value if self.pinner is None else self.pinned(value))
        self.run.progress.end()
        if not self.loader.persistent_workers:
            self.pool.close()
        raise StopIteration

    def next_number(self) -> int | None:
        """The number of the batch to hand on, if it is here."""
        number = self.first + self.taken if self.loader.in_order else next(iter(self.answers), -1)
        return number if number in self.answers else None

    def receive(self) -> None:
        worker, result, value = self.pool.receive(self.loader.timeout)
        if self.pinner is not None and result.kind == "batch":
            value = self.pinner.submit(pin, value)
        self.answers[result.number] = worker, result.kind, value

    def pinned(self, batch: Any) -> Any:
        """A batch that is handed on, in page-locked memory; those that have come by now follow it there."""
        while self.pool.waiting():
            self.receive()
        return batch.result()

    def order_more(self) -> None:
        """Gives out tasks until each worker has its share ahead, or there is no task or no free memory."""
        ahead = self.loader.num_workers * self.pool.prefetch
        while self.next_task is not None and self.ordered - self.taken < ahead:
            worker = self.choose()
            if worker is None:
                return
            self.pool.order(worker, self.next_task)
            self.ordered += 1
            self.next_task = next(self.run.tasks, None)

    def choose(self) -> Worker | None:
        """Who gets the next task: of those with free memory the least busy, or whose turn it is."""
        if not self.loader.iterable:
            free = [w for w in self.active if w.free]
            return min(free, key=lambda w: len(w.orders)) if free else None
        if not self.active or not self.active[0].free:
            return None
        self.active.rotate(-1)
        return self.active[-1]


def pool_for(run: Pass) -> WorkerPool:
    """The loader's workers: those it kept, or new ones."""
    loader: DataLoader = run.loader
    pool = loader.kept_pool
    if pool is not None and not pool.closed:
        pool.begin(Start(pool.run + 1, *run.key))
        return pool
    start = Start(0, *run.key)
    pool = WorkerPool(loader.recipe, loader.num_workers, loader.prefetch_factor, loader.multiprocessing_context, start)
    if loader.persistent_workers:
        loader.kept_pool = pool
    return pool
