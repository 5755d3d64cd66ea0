"""Memory that kernels see. It is freed when the last array that refers to it is gone.

On a GPU it comes from the driver's stream-ordered pool, with a release threshold that keeps freed memory in the
pool; in the interpreter it is host memory, aligned as the driver aligns and filled with 0xFF (NaN in every float
type), so that a kernel which reads what nobody wrote is found out.
"""

from functools import cache
from typing import Any

import numpy as np

from zoo.ops.cuda import ledger, mode
from zoo.ops.cuda.driver import state
from zoo.ops.cuda.mode import is_interpreting

ALIGNMENT = 256


class HostMemory:
    """Host memory that plays GPU memory while kernels are interpreted."""

    __slots__ = ("block", "device", "nbytes", "pointer")

    live: dict[int, int] = {}  # pointer -> bytes of every block, for the interpreter's bounds check
    shadows: dict[int, Any] = {}  # pointer -> what the sanitizer knows of a block (shadow.py)

    def __init__(self, nbytes: int, device: int):
        account = ledger.accounts[device]
        account.need(nbytes, device)
        raw = np.empty(nbytes + ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % ALIGNMENT
        self.block = raw[start : start + nbytes]
        self.block.fill(0xFF)
        self.pointer = raw.ctypes.data + start
        self.nbytes = nbytes
        self.device = device
        HostMemory.live[self.pointer] = nbytes
        account.add(nbytes)

    def __del__(self, live=live, shadows=shadows):
        pointer = getattr(self, "pointer", None)
        shadows.pop(pointer, None)
        if live.pop(pointer, None) is not None and ledger is not None:
            ledger.live.pop(self.pointer, None)
            ledger.accounts[self.device].remove(self.nbytes)

    def array(self, pointer, shape, strides, dtype) -> np.ndarray:
        """The NumPy view of the same bytes; strides in bytes. Raises ValueError if it reaches out of the block."""
        if 0 in shape:                       # a view of nothing may begin where the block ends
            return np.empty(shape, dtype)
        return np.ndarray(shape, dtype, self.block, pointer - self.pointer, strides)

    def record_stream(self, stream):
        """There is one order of work: nothing to wait for."""


class DryMemory:
    """An address without memory, for launches that are only recorded; it is counted, and reads as zeros."""

    __slots__ = ("device", "nbytes", "pointer")

    def __init__(self, nbytes: int, device: int):
        self.pointer, self.nbytes, self.device = ALIGNMENT, nbytes, device
        ledger.accounts[device].add(nbytes)

    def __del__(self):
        if ledger is not None:
            ledger.accounts[self.device].remove(self.nbytes)

    def array(self, pointer, shape, strides, dtype) -> np.ndarray:
        """Zeros of that shape."""
        return np.zeros(shape, dtype)

    record_stream = HostMemory.record_stream


def memory_class():
    """What makes a block of at least `nbytes` on `device`, owned by the object: `memory_class()(nbytes, device)`."""
    if state.trace is not None:
        return state.trace.allocate
    if mode.dry:
        return DryMemory
    if state.pool is not None:
        from zoo.ops.cuda.graph_pool import PoolMemory

        return PoolMemory
    return real_memory()


@cache
def real_memory():
    """Host memory for the interpreter, the pool's for a GPU."""
    if is_interpreting():
        return HostMemory
    from zoo.ops.cuda.pool import DeviceMemory

    return DeviceMemory
