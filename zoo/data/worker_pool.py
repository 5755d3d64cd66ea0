"""The worker processes of a DataLoader, as the training process sees them: started, given orders, watched, ended.

How they start: by forkserver. A fork of the training process copies locks that its other threads hold (BLAS, tqdm,
CUDA, a writer of logs) and can hang; spawn imports everything anew in each. Two workers were ready after 10 ms by
fork, 380 ms by spawn, and by forkserver 208 ms for the first loader and 22 ms for each later one (2 cores).
"""

import os
import signal
import sys
import time
import warnings
import weakref
from collections import OrderedDict, deque
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from zoo.data.fetch import Recipe, Task
from zoo.data.shared_memory import Packed, SharedFile, pack, unpack
from zoo.data.worker import Desk, Order, Result, Start, main

HELD = 2  # batches of one worker that the training loop may hold before they are copied out of the shared memory
GRACE = 3.0  # seconds for a worker to end by itself


class Worker:
    """One process, its pipe, and its ring of pieces of shared memory."""

    def __init__(self, number: int, slots: int):
        self.number = number
        self.slots = [SharedFile() for _ in range(slots)]
        self.free = deque(range(slots))
        self.orders: OrderedDict[tuple[int, int], Task] = OrderedDict()  # those not answered yet, the oldest first
        self.process: Any = None
        self.connection: Any = None


class WorkerPool:
    """The worker processes of one loader.

    Args:
        recipe: what they load.
        count: how many there are.
        prefetch: orders that one may have at a time.
        context: a start method, a multiprocessing context, or None for forkserver.
        start: the first pass.
    """

    def __init__(self, recipe: Recipe, count: int, prefetch: int, context: Any, start: Start):
        self.prefetch, self.run = prefetch, start.run
        self.workers = [Worker(k, prefetch + HELD) for k in range(count)]
        self.finalizer = weakref.finalize(self, end_all, self.workers, os.getpid())
        context, shared, where = self.prepare(recipe, context)
        try:
            for worker in self.workers:
                launch(worker, Desk(worker.number, count, None, worker.slots, shared or recipe, where, start), context)
        finally:
            if shared is not None:  # each worker has its own handle by now
                shared.close()
        self.begin(start)

    @staticmethod
    def prepare(recipe: Recipe, context: Any) -> tuple[Any, SharedFile | None, Packed | None]:
        """The multiprocessing context, and the recipe in shared memory unless the workers are forked."""
        import multiprocessing

        method = context or "forkserver"
        chosen = multiprocessing.get_context(method) if isinstance(method, str) else method
        if chosen.get_start_method() == "fork":
            return chosen, None, None
        shared = SharedFile()
        try:
            where = pack(recipe, shared)
            text = shared.view()[where.start : where.stop].tobytes()
            reason = "" if needs_fork(text) else None
        except Exception as error:  # whatever a class's own __reduce__ raises
            where, reason = None, str(error)
        if reason is None:
            if chosen.get_start_method() == "forkserver":
                chosen.set_forkserver_preload(modules_to_preload(recipe.dataset))
            return chosen, shared, where
        shared.close()
        if context is not None:
            raise TypeError("DataLoader: worker processes get dataset, collate_fn and worker_init_fn by pickle, "
                            f"which fails: {reason or 'they belong to a prompt or a notebook'}")
        if reason:
            warnings.warn(f"DataLoader: the workers are forked, as pickle fails ({reason}); a class or function at the "
                          "top level of a module can be pickled", stacklevel=6)
        return multiprocessing.get_context("fork"), None, None

    def begin(self, start: Start) -> None:
        """A new pass: answers to older orders will be dropped."""
        self.run = start.run
        for worker in self.workers:
            self.send(worker, start)

    def order(self, worker: Worker, task: Task) -> None:
        """Gives a worker with a free slot one more task."""
        worker.orders[self.run, task.number] = task
        self.send(worker, Order(self.run, task, worker.free.popleft()))

    def send(self, worker: Worker, message: Any) -> None:
        self.need_workers()
        try:
            worker.connection.send(message)
        except (BrokenPipeError, ConnectionResetError):
            self.fail(worker)

    def receive(self, timeout: float) -> tuple[Worker, Result, Any]:
        """The next answer of this pass, with the batch or the exception.

        Raises:
            RuntimeError: a worker has died, or there is no answer within `timeout` seconds (0: wait for ever).
        """
        from multiprocessing.connection import wait

        self.need_workers()
        limit = time.monotonic() + timeout
        by_handle = {w.connection: w for w in self.workers} | {w.process.sentinel: w for w in self.workers}
        while True:
            ready = wait(by_handle, max(0.0, limit - time.monotonic()) if timeout else None)
            if not ready:
                raise RuntimeError(f"DataLoader: no batch from the workers within the timeout of {timeout} s")
            worker = by_handle[ready[0]]
            result = self.read(worker)
            value = self.open(worker, result)
            if result.run == self.run:
                return worker, result, value

    def waiting(self) -> bool:
        """Is there an answer that can be received at once, from a worker that lives?"""
        return not self.closed and any(w.connection.poll() for w in self.workers if w.process.exitcode is None)

    def read(self, worker: Worker) -> Result:
        try:
            if worker.connection.poll():
                return worker.connection.recv()
        except (EOFError, OSError):  # the end of the pipe, before a message or within one
            pass
        self.fail(worker)

    def open(self, worker: Worker, result: Result) -> Any:
        """The object of an answer. Its memory is free again when the last of its arrays is gone."""
        del worker.orders[result.run, result.number]
        if result.where is None or result.run != self.run:
            worker.free.append(result.slot)
            return None
        memory = worker.slots[result.slot].view()
        if worker.free:
            weakref.finalize(memory, worker.free.append, result.slot).atexit = False
        else:
            memory = memory[: result.where.stop].copy()
            worker.free.append(result.slot)
        return unpack(memory, result.where)

    def fail(self, worker: Worker) -> NoReturn:
        """Ends all workers and says how this one died."""
        task = next(iter(worker.orders.values()), None)
        worker.process.join(GRACE)
        code, pid = worker.process.exitcode, worker.process.pid
        self.close()
        doing = f"while loading the samples {task.indices}" if task else "with nothing to load"
        raise RuntimeError(f"DataLoader: worker {worker.number} (pid {pid}) {cause(code)} {doing}")

    def need_workers(self) -> None:
        """Raises RuntimeError if the workers were ended: by an error of an earlier batch."""
        if self.closed:
            raise RuntimeError("DataLoader: the workers of this pass have ended; begin a new one")

    def close(self) -> None:
        """Ends the workers, and waits until they are gone."""
        self.finalizer()

    @property
    def closed(self) -> bool:
        """Whether the workers were ended."""
        return not self.finalizer.alive


def needs_fork(text: bytes) -> bool:
    """Whether no other process can import what this pickle needs: classes of a notebook or a prompt, or of no file."""
    main_module = sys.modules["__main__"]
    if getattr(main_module, "__spec__", None) is not None:
        return False
    path = getattr(main_module, "__file__", None)
    return b"__main__" in text if path is None else not os.path.isfile(path)


def modules_to_preload(dataset: Any) -> list[str]:
    """What the fork server imports once for all workers: zoo, and what the user's script and dataset come from.

    Not `__main__` itself, which Python 3.11 promises to import there and does not
    (https://github.com/python/cpython/issues/126631): each worker runs the script, with its imports made already.
    """
    found = ["zoo.data.worker", type(dataset).__module__]
    for value in list(vars(sys.modules["__main__"]).values()):
        if isinstance(value, (ModuleType, FunctionType, type)):
            found.append(value.__name__ if isinstance(value, ModuleType) else value.__module__)
    return [name for name in dict.fromkeys(found) if name not in ("__main__", "__mp_main__")]


def launch(worker: Worker, desk: Desk, context: Any) -> None:
    """Starts the process."""
    worker.connection, theirs = context.Pipe()
    worker.process = context.Process(
        target=main, args=(desk._replace(connection=theirs),), name=f"zoo.data worker {worker.number}", daemon=True
    )
    worker.process.start()
    theirs.close()  # so that the pipe ends when the worker does


def cause(code: int | None) -> str:
    """An exit status in words."""
    if code is None:
        return "closed its pipe"
    if code >= 0:
        hint = "; is the script's work under `if __name__ == '__main__':`?" if code == 1 else ""
        return f"ended with exit status {code}{hint}"
    name = signal.Signals(-code).name
    return f"was killed by {name}" + (" (the system does so when memory is short)" if name == "SIGKILL" else "")


def end_all(workers: list[Worker], owner: int) -> None:
    """Ends the processes: idle ones get a last message, busy ones SIGTERM, those that stay SIGKILL."""
    if os.getpid() != owner:  # a fork of the training process: the workers are not its own
        return
    for worker in workers:
        for slot in worker.slots:
            slot.close()
        if worker.process is not None and worker.process.pid:
            dismiss(worker)
    limit = time.monotonic() + GRACE
    for process in (w.process for w in workers if w.process is not None and w.process.pid):
        process.join(max(0.0, limit - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()
        process.close()


def dismiss(worker: Worker) -> None:
    """Tells a worker to end. (The end of the pipe says so too, but not to a fork, which has a copy of our side.)"""
    if worker.orders:
        worker.process.terminate()
    else:
        try:
            worker.connection.send(None)
        except OSError:  # it has ended already
            pass
    worker.connection.close()
