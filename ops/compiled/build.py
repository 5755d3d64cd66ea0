"""How the functions of this folder are compiled: for float32, at their first call, without the GIL.

None of them has `fastmath`: NaN, infinities and the order of sums are as written.
"""
import hashlib
import threading
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


class Kernel:
    """A function of these types of arguments, compiled by its first call: a module of them is there at once."""

    def __init__(self, function: Callable, arguments: tuple):
        self.function, self.signature = function, [types.void(*arguments)]
        self.compiled: Callable | None = None
        self.lock = threading.Lock()                           # several threads may come with the first pieces

    def __call__(self, *args) -> None:
        (self.compiled or self.compile())(*args)

    def compile(self) -> Callable:
        with self.lock:
            done = self.compiled
            if done is None:
                try:
                    done = njit(self.signature, cache=True, **OPTIONS)(self.function)
                except RuntimeError as error:
                    if "cannot cache" not in str(error):       # no folder can be written
                        raise
                    done = njit(self.signature, **OPTIONS)(self.function)
                self.compiled = done
            return done


def kernel(*arguments) -> Callable[[Callable], Kernel]:
    """Makes a function of these types of arguments a Kernel, whose code is kept beside the source or in a cache."""
    def build(function: Callable) -> Kernel:
        function.__qualname__ += "_" + DIGEST                  # part of the file's name
        return Kernel(function, arguments)
    return build


part = njit(**OPTIONS)                   # a function that kernels call
inline = njit(forceinline=True, **OPTIONS)
