"""All that a pickle in a torch file may name, and the bounds of what it may build.

The list is that of torch.load(weights_only=True), less what zoo has no type for (quantized and sparse tensors).
Messages show types, not values: the repr of a tuple that was doubled 60 times never ends.
Source: torch/_weights_only_unpickler.py, torch/_utils.py
"""
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from zoo.checkpoint.builder import Builder
from zoo.checkpoint.costs import DICT_ITEM, ORDERED_ITEM, TEXT
from zoo.checkpoint.dtypes import TORCH_DTYPES, TORCH_STORAGES
from zoo.checkpoint.errors import FileError
from zoo.checkpoint.opcodes import Constructor, check_key
from zoo.ops.dtypes import uint8

DIMS = 64                     # NumPy's limit


class StorageKind:
    """torch.FloatStorage and its like, as the file names them; what has no dtype of its own holds bytes."""

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype


class Storage:
    """The memory that the tensors of one storage share.

    Args:
        data: its bytes.
        dtype: of its elements.
        location: the device it was saved from.
    """

    def __init__(self, data: np.ndarray, dtype: np.dtype, location: str):
        self.data, self.dtype, self.location = data, dtype, location


def view(storage: Storage, offset: Any, size: Any, stride: Any, dtype: np.dtype) -> np.ndarray:
    """The array of `size` whose elements lie `stride` apart (in elements) from element `offset` on; all are inside."""
    if type(size) is not tuple or type(stride) is not tuple or len(size) != len(stride) or len(size) > DIMS:
        raise FileError(f"is corrupt: the size and the stride of a tensor are no tuples of one length up to {DIMS}")
    if any(type(n) is not int or n < 0 for n in (offset, *size, *stride)):
        raise FileError("is corrupt: the offset, the size or the stride of a tensor has what is no natural number")
    if 0 in size:
        return np.empty(size, dtype)
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if (last + 1) * dtype.itemsize > storage.data.nbytes:
        raise FileError(f"is corrupt: a tensor wants element {last} of a storage of {storage.data.nbytes} bytes")
    steps = [step * dtype.itemsize if n > 1 else dtype.itemsize for n, step in zip(size, stride, strict=True)]
    return np.ndarray(size, dtype, storage.data, offset * dtype.itemsize, steps)    # type: ignore[arg-type]


class Names:
    """The table for one file.

    Args:
        builder: makes the tensors.
        spend: is told of memory before it is taken.
    """

    def __init__(self, builder: Builder, spend: Callable[[int], None]):
        self.builder, self.spend = builder, spend

    def table(self) -> dict[tuple[str, str], Any]:
        """(module, name) -> what the name stands for."""
        calls: dict[tuple[str, str], Callable[..., Any]] = {
            ("torch._utils", "_rebuild_tensor"): self.tensor,
            ("torch._utils", "_rebuild_tensor_v2"): self.tensor,
            ("torch._utils", "_rebuild_tensor_v3"): self.typed_tensor,
            ("torch._utils", "_rebuild_parameter"): self.parameter,
            ("torch._utils", "_rebuild_parameter_with_state"): self.parameter,
            ("torch", "Size"): self.size,
            ("torch", "device"): self.device,
            ("collections", "OrderedDict"): self.ordered,
            ("collections", "Counter"): self.counter,
            ("_codecs", "encode"): self.encode,
        }
        for module in ("builtins", "__builtin__"):                  # Python 3 and 2
            calls[module, "set"] = self.set
            calls[module, "complex"] = self.complex
        kinds = {name: StorageKind(dtype) for name, dtype in TORCH_STORAGES.items()}
        kinds["UntypedStorage"] = StorageKind(uint8)
        return {
            **{key: Constructor(call) for key, call in calls.items()},
            **{(module, name): kind for name, kind in kinds.items() for module in ("torch", "torch.storage")},
            **{("torch", name): dtype for name, dtype in TORCH_DTYPES.items()},
        }

    def tensor(self, storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False,
               hooks: Any = None, metadata: Any = None) -> Any:
        if type(storage) is not Storage:
            raise FileError(f"is corrupt: a tensor has a {type(storage).__name__} as its storage")
        return self.built(storage, offset, size, stride, requires_grad, storage.dtype, metadata)

    def typed_tensor(self, storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any,
                     hooks: Any, dtype: Any, metadata: Any = None) -> Any:
        if type(storage) is not Storage or not isinstance(dtype, np.dtype):
            raise FileError(f"is corrupt: a tensor has a {type(storage).__name__} as its storage and a "
                            f"{type(dtype).__name__} as its dtype")
        return self.built(storage, offset, size, stride, requires_grad, dtype, metadata)

    def built(self, storage: Storage, offset: Any, size: Any, stride: Any, requires_grad: Any, dtype: np.dtype,
              metadata: Any) -> Any:
        if metadata:
            raise FileError("is refused: it has a tensor with a conjugate or negative bit; save x.resolve_conj()")
        return self.builder.tensor(view(storage, offset, size, stride, dtype), storage.location, requires_grad is True)

    def parameter(self, tensor: Any, requires_grad: Any = True, hooks: Any = None, state: Any = None) -> Any:
        if not hasattr(tensor, "shape"):
            raise FileError(f"is corrupt: a parameter has a {type(tensor).__name__} as its data")
        return self.builder.parameter(tensor, requires_grad is True)

    def size(self, numbers: Any = ()) -> tuple:
        return tuple(self.plain(numbers, tuple, list))

    def device(self, kind: Any, index: Any = None) -> Any:
        if type(kind) is not str or type(index) not in (int, type(None)):
            raise FileError(f"is corrupt: it has a device of a {type(kind).__name__} and a {type(index).__name__}")
        return self.builder.device(kind if index is None else f"{kind}:{index}")

    def ordered(self, items: Any = ()) -> OrderedDict:
        pairs = self.plain(items, tuple, list)
        self.spend(ORDERED_ITEM * len(pairs))
        for key, _ in pairs:
            check_key(key)
        return OrderedDict(pairs)

    def counter(self, counts: Any) -> dict:
        self.spend(DICT_ITEM * len(self.plain(counts, dict)))
        return dict(counts)

    def set(self, items: Any = ()) -> set:
        self.spend(DICT_ITEM * len(self.plain(items, tuple, list)))
        for item in items:
            check_key(item)
        return set(items)

    def complex(self, real: Any, imag: Any = 0.0) -> complex:
        return complex(self.plain(real, float, int), self.plain(imag, float, int))

    def encode(self, text: Any, coding: Any = "utf-8") -> bytes:
        """How Python 2's protocol writes bytes."""
        if coding not in ("latin1", "latin-1", "utf-8"):
            raise FileError("is refused: it has bytes in a coding other than latin1 and utf-8")
        self.spend(TEXT + 4 * len(self.plain(text, str)))
        return text.encode(coding)

    def plain(self, value: Any, *kinds: type) -> Any:
        """value, which must be of exactly one of these types."""
        if type(value) not in kinds:
            raise FileError(f"is corrupt: it has a {type(value).__name__} where a {kinds[0].__name__} belongs")
        return value


def storage_id(pid: Any) -> tuple[str, np.dtype, int, str]:
    """Key, dtype, count of elements and device of ('storage', kind, key, device, count[, None])."""
    if type(pid) is not tuple or len(pid) not in (5, 6) or pid[0] != "storage" or type(pid[1]) is not StorageKind:
        old = type(pid) is tuple and pid[:1] == ("module",)
        raise FileError("is refused: it holds a whole pickled module; save its state_dict() instead" if old
                        else "is corrupt: its pickle refers to data in no known way")
    _, kind, key, location, count = pid[:5]
    if type(key) not in (str, int) or type(location) is not str or type(count) is not int or count < 0:
        raise FileError("is corrupt: its pickle describes a storage wrongly")
    if len(pid) == 6 and pid[5] is not None:
        raise FileError("is refused: torch before 0.4 wrote it, with views of storages; load and save it with torch")
    return str(key), kind.dtype, count, location
