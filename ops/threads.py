"""How many threads NumPy's BLAS uses. Many small products, as in training a small model, are quicker with one."""
import ctypes
import functools
from pathlib import Path

import numpy as np

SYMBOLS = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_",
           "openblas_{}_num_threads")


@functools.cache
def blas(verb: str):
    """OpenBLAS's function to set or get the number of threads; None where NumPy uses another BLAS."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        for path in sorted(folder.glob("*openblas*")):
            library = ctypes.CDLL(str(path))               # loaded already: this only finds it
            for symbol in SYMBOLS:
                if function := getattr(library, symbol.format(verb), None):
                    return function
    return None


def set_num_threads(n: int) -> None:
    """Sets the number of threads of NumPy's matrix products.

    Raises:
        ValueError: less than one.

    Example:
        >>> from zoo.ops.threads import get_num_threads, set_num_threads
        >>> set_num_threads(1); get_num_threads()
        1
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ValueError(f"set_num_threads: wants a positive integer, got {n!r}")
    if function := blas("set"):
        function(n)


def get_num_threads() -> int:
    """The number of threads of NumPy's matrix products; 1 where that is not known."""
    function = blas("get")
    return int(function()) if function else 1
