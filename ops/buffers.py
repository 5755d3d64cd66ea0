"""Memory of large results, kept for the next one: a training step asks for the same sizes again and again.

malloc hands blocks of 32 MB and more back to the system, so that each new one is 2 to 4 ms of page faults; those are
kept here, and come back when the last array on them dies. Of smaller ones malloc gives back what lies free at the end
of its heap: glibc's is told once to keep that too (a step of CIFAR ResNet-20 has no more page faults, of 4,000, and
takes 15% less). `zoo.backends.cpu.kept_memory` is the bound of each.
"""
import ctypes
import functools
import math

import numpy as np

LARGE = 32 << 20                         # bytes: where glibc's malloc ends to keep blocks (DEFAULT_MMAP_THRESHOLD_MAX)
STEP = 2 << 20                           # a block's size is a multiple of this, a huge page
NOTICED = 1 << 20                        # bytes: the first result of this size tells malloc
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # names of mallopt(3): from how many bytes on it trims, and asks the system


class Block:
    """What an array on kept memory has for its base: its views hold on to it, and with the last it gives back."""

    __slots__ = ("__array_interface__", "memory")

    def __init__(self, memory: np.ndarray, shape: tuple[int, ...], dtype: np.dtype):
        self.memory = memory
        self.__array_interface__ = {"shape": shape, "typestr": dtype.str, "version": 3,
                                    "data": memory.__array_interface__["data"]}

    def __del__(self):
        KEPT.put(self.memory)


class Kept:
    """Memory without arrays on it, the oldest first. Each step is one operation on a dict: no thread waits for another,
    and the child of a fork finds nothing half done."""

    def __init__(self, limit: int):
        self.limit, self.idle, self.malloc_knows = limit, {}, False

    def take(self, nbytes: int) -> np.ndarray:
        for key, memory in reversed(list(self.idle.items())):
            if memory.nbytes == nbytes and self.idle.pop(key, None) is not None:
                return memory
        return np.empty(nbytes, np.uint8)

    def put(self, memory: np.ndarray) -> None:
        self.shrink(self.limit - memory.nbytes)
        if memory.nbytes <= self.limit:
            self.idle[id(memory)] = memory

    def shrink(self, most: int) -> None:
        """Lets go of the oldest until `most` bytes are left, or none."""
        kept = list(self.idle.items())
        total = sum(memory.nbytes for _, memory in kept)
        for key, memory in kept:
            if total <= most:
                return
            self.idle.pop(key, None)
            total -= memory.nbytes

    def bound(self, limit: int) -> None:
        self.limit = limit
        self.shrink(limit)
        if self.malloc_knows:
            self.tell_malloc()

    def tell_malloc(self) -> None:
        self.malloc_knows = True
        if mallopt := glibc_mallopt():
            mallopt(TRIM_THRESHOLD, min(self.limit, (1 << 31) - 1))
            mallopt(MMAP_THRESHOLD, LARGE)             # else its own, which follows the sizes up to here, stands still


@functools.cache
def glibc_mallopt():
    """glibc's mallopt; None where the C library is another."""
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):                       # Windows
        return None
    return getattr(library, "mallopt", None) if hasattr(library, "gnu_get_libc_version") else None


KEPT = Kept(256 << 20)


def empty(shape: tuple[int, ...], dtype) -> np.ndarray:
    """np.empty, on memory that was used before if it is large."""
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes >= NOTICED and not KEPT.malloc_knows and KEPT.limit:
        KEPT.tell_malloc()
    if nbytes < LARGE or not KEPT.limit or dtype.kind == "V":           # bfloat16 has no name in the interface
        return np.empty(shape, dtype)
    return np.asarray(Block(KEPT.take(-(-nbytes // STEP) * STEP), shape, dtype))


def empty_like(x: np.ndarray) -> np.ndarray:
    """`empty` of x's shape and dtype, in C order."""
    return empty(x.shape, x.dtype)
