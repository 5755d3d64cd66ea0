"""torch.nn.parallel's names on one device."""
from typing import Any

from zoo.nn.module import Module
from zoo.ops.errors import ArgumentError


def one_device(name: str, device_ids: Any) -> None:
    """Raises for more than one device: nothing here is split among several."""
    ids = list(device_ids or ())
    if len(ids) > 1:
        raise ArgumentError(f"{name}: runs on one device, got device_ids {ids}; give none, or one")


class DataParallel(Module):
    """Calls `module`, whose names get the prefix `module.` as in torch; on one device there is nothing to split.

    Raises:
        ArgumentError (ValueError, RuntimeError): several device_ids.

    Example:
        >>> import zoo
        >>> model = zoo.nn.DataParallel(zoo.nn.Linear(2, 3))
        >>> list(model.state_dict()), model(zoo.ones(4, 2)).shape
        (['module.weight', 'module.bias'], (4, 3))
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        one_device("DataParallel", device_ids)
        self.module, self.dim = module, dim

    def forward(self, *inputs: Any, **options: Any):
        return self.module(*inputs, **options)


def data_parallel(
    module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0,
    module_kwargs: dict | None = None,
):
    """`module(*inputs, **module_kwargs)`. Raises ArgumentError for several device_ids; see DataParallel."""
    one_device("data_parallel", device_ids)
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))


class SyncBatchNorm(Module):
    """Refused: batch statistics of several processes would need torch.distributed, which zoo does not have.

    Raises:
        NotImplementedError: always, here and in convert_sync_batchnorm. In one process BatchNorm1d, 2d and 3d do the
            same; over several, GroupNorm and LayerNorm need no statistics of others.
    """

    def __init__(self, *args: Any, **options: Any):
        raise NotImplementedError("SyncBatchNorm: zoo trains in one process on one device, where nn.BatchNorm2d "
                                  "(1d, 3d) does the same; there is no torch.distributed to take part in")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Raises NotImplementedError: see the class."""
        return cls(module, process_group)
