"""torch.cuda.amp's names, as scripts older than torch.amp have them."""
from typing import Any

from zoo.amp import GradScaler as GradScaler
from zoo.autograd import autocast as of_device


class autocast(of_device.autocast):  # noqa: N801
    """`amp.autocast("cuda", ...)`: matrix products and convolutions on the GPU compute in half precision.

    Example:
        >>> import zoo
        >>> with zoo.cuda.amp.autocast():
        ...     zoo.ones(2, 2).mm(zoo.ones(2, 2)).dtype              # on the CPU nothing changes
        dtype('float32')
    """

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool | None = None):
        super().__init__("cuda", dtype, enabled, cache_enabled)
