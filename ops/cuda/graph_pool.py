"""Memory of captured steps: replays find it at the addresses of the capture.

A pool is in use while a step is warmed up and captured. What is freed meanwhile goes back to the pool and is handed
out again; the driver is asked only if no block fits, so that after a warm-up a capture allocates nothing. No replay is
slowed down by allocations, as it would be if the driver recorded them.
"""

import bisect
import contextlib
from collections.abc import Iterator
from operator import itemgetter

from zoo.ops.cuda.capture import outside
from zoo.ops.cuda.driver import state
from zoo.ops.cuda.ledger import live
from zoo.ops.cuda.memory import HostMemory, real_memory
from zoo.ops.cuda.streams import Stream

STEP = 512  # sizes are rounded up to a multiple, so that blocks of nearly one size serve for each other


class GraphPool:
    """Free blocks by size. They go back to the driver with the last graph and array that refer to the pool."""

    def __init__(self):
        self.free: dict[tuple[int, bool], list[tuple[int, object]]] = {}  # (device, replays write it) -> (bytes, block)
        self.written: set[int] = set()  # addresses that replays write: what is no part of a graph must not lie there
        self.ran_on: set[Stream] = set()  # where graphs were replayed that are gone now
        self.allocated = 0

    def __del__(self):
        for _, block in (pair for free in self.free.values() for pair in free):
            for stream in self.ran_on:
                block.record_stream(stream)

    def take(self, nbytes: int, device: int):
        """The smallest free block that is not more than twice as large as needed, or a new one."""
        size = max(STEP, -(-nbytes // STEP) * STEP)
        for written in (True, False) if state.graph is not None else (False,):
            free = self.free.get((device, written), ())
            k = bisect.bisect_left(free, size, key=itemgetter(0))
            if k < len(free) and free[k][0] <= 2 * size:
                block = free.pop(k)[1]
                break
        else:
            block = self.new(size, device)
        if state.graph is not None:
            self.written.add(block.pointer)
        return block

    def new(self, size: int, device: int):
        """A block from the driver."""
        self.allocated += size
        with outside():
            return real_memory()(size, device)

    def give(self, block):
        """A block that nobody uses any more."""
        free = self.free.setdefault((block.device, block.pointer in self.written), [])
        bisect.insort(free, (block.nbytes, block), key=itemgetter(0))


class PoolMemory:
    """A block of the pool that is in use now; it goes back when the last array on it is gone."""

    __slots__ = ("below", "device", "nbytes", "pointer", "pool")

    def __init__(self, nbytes: int, device: int):
        self.pool = state.pool
        self.below = block = self.pool.take(nbytes, device)
        self.pointer, self.nbytes, self.device = block.pointer, nbytes, device
        HostMemory.shadows.pop(block.pointer, None)        # its contents are undefined again

    def record_stream(self, stream):
        """As of the memory below."""
        self.below.record_stream(stream)

    def array(self, pointer, shape, strides, dtype):
        """As of the memory below."""
        return self.below.array(pointer, shape, strides, dtype)

    def __del__(self):
        if (block := getattr(self, "below", None)) is not None and live is not None:
            live.pop(self.pointer, None)
            self.pool.give(block)


@contextlib.contextmanager
def memory_of(pool: GraphPool | None) -> Iterator[None]:
    """Inside, this thread's new arrays come from the pool; None changes nothing."""
    before = state.pool
    state.pool = before if pool is None else pool
    try:
        yield
    finally:
        state.pool = before


@contextlib.contextmanager
def lasting() -> Iterator[None]:
    """Inside, arrays are made at once and in ordinary memory, for a cache: one block of a pool would keep all of it."""
    before, state.pool = state.pool, None
    try:
        with outside():
            yield
    finally:
        state.pool = before


def graph_pool_handle() -> GraphPool:
    """A new pool, for graphs that are never replayed at the same time."""
    return GraphPool()
