"""How the functions of this folder are compiled: for float32, ahead of their first call, without the GIL.

None of them has `fastmath`: NaN, infinities and the order of sums are as written.
"""
import hashlib
from collections.abc import Callable
from pathlib import Path

from numba import njit, types  # pyright: ignore[reportMissingImports]

# Numba asks only whether a function's own file has changed since its code was kept. Ours also consist of vector.py's.
DIGEST = hashlib.sha256(b"".join(p.read_bytes() for p in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()[:8]
OPTIONS = {"nogil": True, "error_model": "numpy"}
boolean, integer, number, double = types.boolean, types.int64, types.float32, types.float64
byte = types.uint8
pair = types.UniTuple(integer, 2)


def reads(ndim: int, dtype=types.float32):
    """An array that is read, its strides any."""
    return types.Array(dtype, ndim, "A", readonly=True)


def writes(ndim: int, dtype=types.float32):
    """An array that is written, its strides any."""
    return types.Array(dtype, ndim, "A")


def kernel(*arguments) -> Callable:
    """Compiles a function of these types of arguments; the code is kept beside the source or in the user's cache."""
    def build(function: Callable):
        function.__qualname__ += "_" + DIGEST                  # part of the file's name
        signature = [types.void(*arguments)]
        try:
            return njit(signature, cache=True, **OPTIONS)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):               # no folder can be written
                raise
            return njit(signature, **OPTIONS)(function)
    return build


part = njit(**OPTIONS)                   # a function that kernels call
inline = njit(forceinline=True, **OPTIONS)
