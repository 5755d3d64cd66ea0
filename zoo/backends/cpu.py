"""Switches of the NumPy side, zoo's own: `zoo.backends.cpu.winograd = False`."""
import sys
from types import ModuleType

from zoo.ops.buffers import KEPT as _KEPT
from zoo.ops.compiled import ENABLED as _COMPILED
from zoo.ops.conv_cpu import WINOGRAD as _WINOGRAD


class _Switches(ModuleType):
    @property
    def winograd(self) -> bool:
        """Whether 3x3 convolutions of float32 may use Winograd's F(4x4, 3x3).

        It needs a quarter of the multiplications and loses a digit: errors are about 1e-5 of the largest result instead
        of 1e-6, and an inf makes NaN of the results around it. float64 never uses it.

        Example:
            >>> import zoo
            >>> zoo.backends.cpu.winograd
            True
        """
        return _WINOGRAD[0]

    @winograd.setter
    def winograd(self, value: bool) -> None:
        _WINOGRAD[0] = bool(value)

    @property
    def numba(self) -> bool:
        """Whether functions compiled by Numba take the place of NumPy's for large float32 arrays, if it is installed.

        The first of them imports Numba (0.6 s) and compiles for seconds, once: the code is kept on the disk. Results
        differ from NumPy's by rounding, and do not depend on the number of threads.

        Example:
            >>> import zoo
            >>> zoo.backends.cpu.numba
            True
        """
        return _COMPILED[0]

    @numba.setter
    def numba(self, value: bool) -> None:
        _COMPILED[0] = bool(value)

    @property
    def kept_memory(self) -> int:
        """Bytes of large results that are kept when nothing uses them, for the next result; 0 keeps nothing.

        malloc would give blocks of 32 MB and more back to the system, which takes as long as a pass over them. Of
        smaller ones glibc's malloc keeps as many bytes at the end of its heap, from the first result of 1 MB on.

        Example:
            >>> import zoo
            >>> zoo.backends.cpu.kept_memory >> 20
            256
        """
        return _KEPT.limit

    @kept_memory.setter
    def kept_memory(self, value: int) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"kept_memory: wants a number of bytes, 0 or more, got {value!r}")
        _KEPT.bound(value)


sys.modules[__name__].__class__ = _Switches
