"""torch.accelerator's names: scripts that run on whatever accelerator there is, here a GPU or none."""
from typing import Any

from zoo.cuda import current_device, set_device
from zoo.cuda import device_count as device_count
from zoo.cuda import empty_cache as empty_cache
from zoo.cuda import is_available as is_available
from zoo.cuda import max_memory_allocated as max_memory_allocated
from zoo.cuda import memory_allocated as memory_allocated
from zoo.cuda import synchronize as synchronize
from zoo.ops.device import device

current_device_index, set_device_index = current_device, set_device


def current_accelerator(check_available: bool = False) -> Any:
    """zoo.device("cuda") where there is a GPU, else None.

    Example:
        >>> import zoo
        >>> zoo.device(zoo.accelerator.current_accelerator() or "cpu").type in ("cpu", "cuda")
        True
    """
    return device("cuda") if is_available() else None
