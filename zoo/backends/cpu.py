"""Switches of the NumPy side, zoo's own: `zoo.backends.cpu.winograd = False`."""
import sys
from types import ModuleType

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


sys.modules[__name__].__class__ = _Switches
