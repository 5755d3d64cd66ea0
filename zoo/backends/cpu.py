"""Switches of the NumPy side, zoo's own: `zoo.backends.cpu.winograd = False`."""
import sys
from types import ModuleType

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


sys.modules[__name__].__class__ = _Switches
