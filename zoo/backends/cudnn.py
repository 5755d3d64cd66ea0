"""torch.backends.cudnn, taken from scripts written for torch: there is no cuDNN here, and kernels are deterministic."""
import sys
from types import ModuleType

from zoo.backends.cuda import Matmul as _Matmul

benchmark, deterministic, enabled = False, True, False


def is_available() -> bool:
    """False."""
    return False


def version() -> None:
    """None: there is no cuDNN."""


class _Switches(ModuleType):
    """This module with the property `allow_tf32`, which is that of matrix products."""
    allow_tf32 = _Matmul.allow_tf32


sys.modules[__name__].__class__ = _Switches
