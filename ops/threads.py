"""All cores for one op: a pool of our own threads over pieces of the work, with NumPy's BLAS at one thread meanwhile.

A thread of OpenBLAS spins for milliseconds after each product and takes its core from whatever runs next; between two
layers of a network that was the largest single loss. So the pieces are cut here, each with its copies, its products and
its pointwise rest in cache, and BLAS gets its threads back when the op is done: a program's own NumPy keeps them.
"""
import ctypes
import functools
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

SYMBOLS = "scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}"
SMALL_PRODUCT = 1 << 20                  # multiplications below which another thread costs more than it does


@functools.cache
def blas(name: str):
    """OpenBLAS's own function of this name, set_num_threads for one; None where NumPy uses another BLAS."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        for path in sorted(folder.glob("*openblas*")):
            library = ctypes.CDLL(str(path))               # loaded already: this only finds it
            for symbol in SYMBOLS:
                if function := getattr(library, symbol.format(name), None):
                    return function
    return None


def blas_threads() -> int:
    function = blas("get_num_threads")
    return int(function()) if function else 1


def set_blas_threads(n: int) -> None:
    if function := blas("set_num_threads"):
        function(n)


class Region:
    """`with SINGLE:` BLAS has one thread, until the last thread of the program that is inside leaves."""

    def __init__(self):
        self.lock, self.inside, self.threads = threading.Lock(), 0, 1

    def __enter__(self):
        with self.lock:
            if not self.inside:
                self.threads = blas_threads()
                if self.threads > 1:
                    set_blas_threads(1)
            self.inside += 1

    def __exit__(self, *_):
        with self.lock:
            self.inside -= 1
            if not self.inside and self.threads > 1:
                set_blas_threads(self.threads)


class Pool:
    """Threads that wait for work; made at the first call that has work for them."""

    def __init__(self):
        self.lock, self.tasks, self.threads = threading.Lock(), SimpleQueue(), 0

    def grow(self, count: int) -> None:
        while self.threads < count:
            threading.Thread(target=self.serve, name="zoo", daemon=True).start()
            self.threads += 1

    def serve(self) -> None:
        while True:
            task, done = self.tasks.get()
            task()
            done.put(None)
            del task, done                     # or the last task's arrays live until the next one

    def run(self, task: Callable[[], None], helpers: int) -> None:
        """task() in this thread and in as many others; all have ended when it returns."""
        self.grow(helpers)
        done = SimpleQueue()
        for _ in range(helpers):
            self.tasks.put((task, done))
        task()
        for _ in range(helpers):
            done.get()


SINGLE, POOL = Region(), Pool()


def start_anew() -> None:
    """In the child of a fork: its parent's other threads, and what they were inside of, do not exist here."""
    if SINGLE.inside and SINGLE.threads > 1:
        set_blas_threads(SINGLE.threads)
    SINGLE.__init__()
    POOL.__init__()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=start_anew)


def set_num_threads(n: int) -> None:
    """Sets the number of threads: of NumPy's matrix products, and of the ops that cut their work themselves.

    Raises:
        ValueError: less than one.

    Example:
        >>> from zoo.ops.threads import get_num_threads, set_num_threads
        >>> set_num_threads(1); get_num_threads()
        1
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ValueError(f"set_num_threads: wants a positive integer, got {n!r}")
    with SINGLE.lock:
        if SINGLE.inside:
            SINGLE.threads = n                 # for when the last op ends
        else:
            set_blas_threads(n)


def get_num_threads() -> int:
    """The number of threads that an op may use; 1 where NumPy's BLAS is not OpenBLAS."""
    return SINGLE.threads if SINGLE.inside else blas_threads()


def run(work: Callable[[Any], Any], items: Sequence) -> list:
    """[work(item) for each item], on all threads; whichever is free takes the next one.

    Work must not depend on who does it. A call from within another's work, or beside one, runs in its own thread.
    """
    results: list = [None] * len(items)
    numbers, errors = iter(range(len(items))), []

    def task():
        try:
            for k in numbers:                  # shared: each number goes to one thread
                results[k] = work(items[k])
        except BaseException as error:         # raised again in the caller's thread
            errors.append(error)

    with SINGLE:
        helpers = min(SINGLE.threads, len(items)) - 1
        if helpers > 0 and POOL.lock.acquire(blocking=False):
            try:
                POOL.run(task, helpers)
            finally:
                POOL.lock.release()
        else:
            task()
    if errors:
        raise errors[0]
    return results


def shares(items: Sequence, count: int | None = None) -> list[Sequence]:
    """The items in as many runs as there are threads: for sums, whose order must not depend on who is free first."""
    count = max(1, min(count or get_num_threads(), len(items)))
    return [items[part] for part in even(len(items), count)]


def even(size: int, count: int) -> list[slice]:
    """range(size) in `count` slices of nearly the same length."""
    return [slice(size * i // count, size * (i + 1) // count) for i in range(count)]


def product(a, b, out=None):
    """a (..., M, C) @ b (..., C, K), on all threads: cut along the longer of M and K."""
    if out is None:
        out = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
    m, k = out.shape[-2:]
    parts = even(max(m, k), get_num_threads() if out.size * a.shape[-1] > SMALL_PRODUCT else 1)
    if m >= k:
        run(lambda s: np.matmul(a[..., s, :], b, out=out[..., s, :]), parts)
    else:
        run(lambda s: np.matmul(a, b[..., s], out=out[..., s]), parts)
    return out
