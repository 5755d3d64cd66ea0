"""torch.backends.cudnn, taken from scripts written for torch: there is no cuDNN here, and kernels are deterministic."""
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from zoo.backends.cuda import Matmul as _Matmul

benchmark, deterministic, enabled, benchmark_limit = False, True, False, None
conv = rnn = _Matmul()
_SWITCHES = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")


def is_available() -> bool:
    """False."""
    return False


def version() -> None:
    """None: there is no cuDNN."""


def is_acceptable(tensor: Any) -> bool:
    """False: no tensor goes to cuDNN."""
    return False


@contextmanager
def flags(enabled: bool = False, benchmark: bool = False, benchmark_limit: int = 10, deterministic: bool = False,
          allow_tf32: bool = True) -> Iterator[None]:
    """Inside, the switches stand like this; of them only allow_tf32 does anything.

    Example:
        >>> import zoo
        >>> with zoo.backends.cudnn.flags(benchmark=True):
        ...     zoo.backends.cudnn.benchmark
        True
    """
    module = sys.modules[__name__]
    before = [getattr(module, name) for name in _SWITCHES]
    _put(module, [enabled, benchmark, benchmark_limit, deterministic, allow_tf32])
    try:
        yield
    finally:
        _put(module, before)


def _put(module: ModuleType, values: list) -> None:
    """Sets all switches."""
    for name, value in zip(_SWITCHES, values, strict=True):
        setattr(module, name, value)


class _Switches(ModuleType):
    """This module with the property `allow_tf32`, which is that of matrix products."""
    allow_tf32 = _Matmul.allow_tf32


sys.modules[__name__].__class__ = _Switches
