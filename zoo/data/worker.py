"""A worker process: it loads batches into shared memory until its parent closes the pipe or dies."""

import os
import pickle
import signal
import sys
import threading
import traceback
from typing import Any, NamedTuple

from zoo.autograd.random import default_generator
from zoo.data.fetch import END, Recipe, Task, make_fetcher
from zoo.data.seeding import WORKER, Streams
from zoo.data.shared_memory import Packed, SharedFile, pack, unpack
from zoo.ops.threads import set_num_threads

PARENT_SECONDS = 1.0  # how often a worker that is busy looks whether its parent is alive


class WorkerInfo(NamedTuple):
    """What `get_worker_info()` tells: this worker's number, how many there are, its seed, its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class Start(NamedTuple):
    """Begin of a pass: its number in the life of the worker, and the key of its random streams."""

    run: int
    seed: int
    offset: int


class Order(NamedTuple):
    """A task, the pass it belongs to, and the piece of shared memory for its batch."""

    run: int
    task: Task
    slot: int


class Result(NamedTuple):
    """What became of an order: `kind` is "batch", "error", "skipped" or "end"; `where` has what lies in the memory."""

    run: int
    number: int
    slot: int
    kind: str
    where: Packed | None


class Desk(NamedTuple):
    """All that a worker is given when it starts. `recipe` is pickled in a file, or (by fork) the Recipe itself."""

    id: int
    num_workers: int
    connection: Any
    slots: list[SharedFile]
    recipe: SharedFile | Recipe
    where: Packed | None
    start: Start


here: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Which worker this process is; None in the training process.

    Returns:
        WorkerInfo: id, num_workers, seed, dataset.

    Example:
        >>> from zoo.data import get_worker_info
        >>> get_worker_info() is None
        True
    """
    return here


def main(desk: Desk) -> None:
    """The life of a worker. Control-C is the parent's to answer; SIGTERM runs `finally` blocks and ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    threading.Thread(target=watch_parent, daemon=True).start()
    set_num_threads(1)
    try:
        serve(desk)
    except (EOFError, BrokenPipeError, ConnectionResetError):  # the parent has closed the pipe: it wants no more
        pass


def watch_parent() -> None:
    """Ends this process when its parent is gone, whatever it is busy with."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent, number = parent_process(), os.getppid()
    while parent is not None and os.getppid() == number:
        if wait([parent.sentinel], PARENT_SECONDS):
            break
    os._exit(1)


def serve(desk: Desk) -> None:
    """Answers orders. An error of the set-up is the answer to all of them."""
    fetcher, failure = None, None
    try:
        recipe = set_up(desk)
    except Exception as error:
        recipe, failure = None, error
    while (message := desk.connection.recv()) is not None:
        if isinstance(message, Start):
            if recipe is not None:
                fetcher = make_fetcher(recipe, Streams(message.seed, message.offset), desk.id)
            continue
        desk.connection.send(answer(desk, message, fetcher, failure))


def set_up(desk: Desk) -> Recipe:
    """The recipe, after the user's worker_init_fn."""
    global here
    recipe: Any = desk.recipe
    if isinstance(recipe, SharedFile):  # private: a dataset that writes to its arrays writes to its own copy
        recipe = unpack(recipe.view(private=True), desk.where)
        desk.recipe.close()
    Streams(desk.start.seed, desk.start.offset).begin(WORKER, 0, desk.id)
    here = WorkerInfo(desk.id, desk.num_workers, default_generator.initial_seed(), recipe.dataset)
    if recipe.worker_init_fn is not None:
        recipe.worker_init_fn(desk.id)
    return recipe


def answer(desk: Desk, order: Order, fetcher: Any, failure: Exception | None) -> Result:
    """The batch in its piece of memory, or the exception there with what the user has to know."""
    run, number, slot = order.run, order.task.number, order.slot
    try:
        if failure is not None:
            raise failure
        batch = fetcher.load(order.task)
        if batch is END or order.task.skip:
            return Result(run, number, slot, "end" if batch is END else "skipped", None)
        return Result(run, number, slot, "batch", pack(batch, desk.slots[slot]))
    except Exception as error:
        told = portable(error, f"in worker {desk.id} (pid {os.getpid()}):\n{traceback.format_exc()}")
        return Result(run, number, slot, "error", pack(told, desk.slots[slot]))


def portable(error: Exception, note: str) -> Exception:
    """The exception with a note, or if it does not survive a pickle, a RuntimeError that has its words."""
    error.add_note(note)
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:
        pass
    made = RuntimeError(f"{type(error).__name__}: {error}")
    for line in error.__notes__:
        made.add_note(line)
    return made
