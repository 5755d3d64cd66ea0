"""Compiled functions for the CPU where Numba is installed (`pip install triton-zoo[numba]`); NumPy does without them.

    if norm := compiled("norm", x): ...

A name is that of a module here. Numba is imported when the first large array asks; the machine code is compiled once,
in seconds, and kept on the disk. `zoo.backends.cpu.numba = False` turns all of it off.
"""
import functools
import importlib
import importlib.util
import warnings
from types import ModuleType

import numpy as np

from zoo.ops.dtypes import float32

ENABLED = [True]                         # zoo.backends.cpu.numba
SMALL = 1 << 13                          # elements below which NumPy has nearly done before a compiled function begins
SHORTEST, LONGEST = 16, 4096             # columns of rows.py: a vector, and as many terms as a sum in float32 may have


def compiled(name: str, *arrays: np.ndarray) -> ModuleType | None:
    """The module of compiled functions; None where an array is not float32, the first one is small, or it is off."""
    if not ENABLED[0] or arrays[0].size < SMALL or any(a.dtype != float32 or not a.flags.aligned for a in arrays):
        return None
    return module(name)


def rows_for(*arrays: np.ndarray) -> ModuleType | None:
    """compiled("rows") for matrices without gaps of 16 to 4096 columns, or None."""
    x = arrays[0]
    if x.size < SMALL or x.ndim != 2 or not SHORTEST <= x.shape[1] <= LONGEST:
        return None
    if not all(a.flags.c_contiguous for a in arrays):
        return None
    return compiled("rows", *arrays)


def available(name: str, size: int) -> bool:
    """Whether arrays of this size, if they are float32, will find the module."""
    return ENABLED[0] and size >= SMALL and module(name) is not None


@functools.cache
def module(name: str) -> ModuleType | None:
    """The module, its functions compiled or from the disk; None where Numba is missing or does not fit NumPy."""
    if not importlib.util.find_spec("numba"):
        return None
    try:
        return importlib.import_module(f"zoo.ops.compiled.{name}")
    except ImportError as error:         # Numba's own, mostly: it refuses a NumPy newer than it knows
        warnings.warn(f"zoo runs without Numba, which does not load: {error}", RuntimeWarning, stacklevel=2)
        return None
