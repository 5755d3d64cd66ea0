"""Out of and between tensors: dtypes, devices, NumPy, Python numbers, pickle."""
import sys
from typing import Any

import numpy as np

from zoo.autograd.tensor import Tensor, wrap
from zoo.ops.cuda import mode as interpreter
from zoo.ops.device import device as device_class
from zoo.ops.device import fetch, put, put_as_it_lies, to_device
from zoo.ops.dtypes import bfloat16, is_dtype
from zoo.ops.errors import ArgumentError, GradError
from zoo.ops.memory_format import RANK, laid_out
from zoo.ops.memory_format import memory_format as memory_format_class
from zoo.ops.shape import cast


def to(
    self: Tensor, *args, dtype=None, device=None, non_blocking: bool = False, copy: bool = False, memory_format=None
) -> Tensor:
    """This tensor as another dtype, on another device, or as `other` is: x.to(zoo.float16), x.to("cuda"), x.to(other).

    Returns self if nothing changes (unless copy=True). Differentiable. non_blocking: from page-locked memory
    (`pin_memory`) to a GPU the copy runs beside the host, which must not write to the tensor until it is done.

    Raises:
        TypeError: an argument that is neither dtype, device nor tensor. DeviceError: no such device.
    """
    for position, x in enumerate(args):
        if isinstance(x, Tensor):
            dtype, device = x.dtype, x.device
        elif isinstance(x, (str, device_class)) or isinstance(x, int) and not isinstance(x, bool) and position == 0:
            device = x
        elif is_dtype(x):
            dtype = x
        elif isinstance(x, memory_format_class):
            memory_format = x
        elif isinstance(x, bool):
            copy = copy or position > 1 and x
        elif x is not None:
            raise TypeError(f"to: wants a dtype, a device or a tensor, got {x!r}")
    out = self
    if device is not None:
        where = device_class(device)
        if where.type != self.device.type or where.index not in (None, self.device.index):
            if non_blocking and where.type == "cuda" and is_pinned(self) and not self.requires_grad:
                out = wrap(put_as_it_lies(self.array, where, True))
            else:
                out = to_device(out, where)
    if dtype is not None and np.dtype(dtype) != out.dtype:
        out = cast(out, np.dtype(dtype))
    out = out.clone() if copy and out is self else out
    return laid_out(out, memory_format) if memory_format in RANK else out


def cpu(self: Tensor, memory_format=None) -> Tensor:
    """This tensor on the CPU."""
    return to(self, "cpu")


def cuda(self: Tensor, device=None, non_blocking: bool = False, memory_format=None) -> Tensor:
    """This tensor on a GPU (the current one)."""
    return to(self, "cuda" if device is None else device_class(device), non_blocking=non_blocking)


def is_pinned(self: Tensor, device=None) -> bool:
    """True if the tensor lies in page-locked memory."""
    if self.is_cuda or interpreter.is_interpreting() or "cuda" not in sys.modules:
        return False
    from zoo.ops.cuda.pool import is_pinned as lies_pinned

    return lies_pinned(self.array)


def pin_memory(self: Tensor, device=None) -> Tensor:
    """A copy in page-locked memory, from which copies to the GPU run beside the host; itself where there is no GPU."""
    from zoo.ops import cuda as gpu

    if self.is_cuda:
        raise TypeError(f"pin_memory: wants a tensor on the CPU, got one on {self.device}")
    if is_pinned(self) or not gpu.is_available() or gpu.is_interpreting():
        return self
    return pinned(self)


def pinned(x: Tensor) -> Tensor:
    """A copy of a CPU tensor in page-locked memory."""
    from zoo.ops.cuda.pool import pinned_empty

    array = pinned_empty(x.shape, x.dtype)
    array[...] = x.array
    return wrap(array)


def caster(name: str, dtype):
    def method(self, memory_format=None):
        return to(self, np.dtype(dtype))
    method.__name__ = name
    method.__doc__ = f"This tensor as {np.dtype(dtype)}."
    return method


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor with the dtype and device of `other`."""
    return to(self, other)


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The ndarray on the same memory; bfloat16 is ml_dtypes'.

    Raises:
        GradError: the tensor requires grad (detach it, or force=True).
        TypeError: it lies on a GPU (cpu() first, or force=True).
    """
    if self.requires_grad and not force:
        raise GradError("numpy: can't call numpy() on a tensor that requires grad; use detach().numpy()")
    if not isinstance(self.array, np.ndarray) and not force:
        raise TypeError(f"numpy: the tensor is on {self.device}; use cpu() first")
    return fetch(self.array)


def item(self: Tensor):
    """The only element as a Python number.

    Raises:
        ArgumentError: more or fewer than one element.
    """
    if self.array.size != 1:
        raise ArgumentError(
            f"item: a tensor with {self.array.size} elements cannot be converted to a number, shape {self.shape}"
        )
    x = fetch(self.array).reshape(())
    return x.item() if x.dtype != bfloat16 else float(x)


def tolist(self: Tensor):
    """Nested lists of Python numbers."""
    array = fetch(self.array)
    return (array.astype(np.float32) if array.dtype == bfloat16 else array).tolist()


def __bool__(self: Tensor) -> bool:
    if self.array.size != 1:
        raise ArgumentError(
            f"bool: the truth value of a tensor with {self.array.size} elements is ambiguous, shape {self.shape}"
        )
    return bool(item(self))


def __index__(self: Tensor) -> int:
    x = item(self)
    if not isinstance(x, int):
        raise TypeError(f"only integer tensors of one element can be an index, got {self.dtype}")
    return int(x)


def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    a = numpy(self)
    return a if dtype is None else a.astype(dtype, copy=False)


def __contains__(self: Tensor, x: Any) -> bool:
    return bool((self == x).any())


def __format__(self: Tensor, spec: str) -> str:
    return format(item(self), spec) if not self.ndim else object.__format__(self, spec)


def __dlpack__(self: Tensor, **options):
    if self.requires_grad:
        raise GradError("__dlpack__: a tensor that requires grad cannot be exported; detach() it first")
    return self.array.__dlpack__(**options)


def __dlpack_device__(self: Tensor):
    return self.array.__dlpack_device__()


def rebuild(kind: type, array: np.ndarray, where: str, requires_grad: bool, state: dict | None) -> Tensor:
    out = wrap(put(array, device_class(where)))
    if kind is not Tensor:
        made = kind.__new__(kind)
        for name in ("array", "requires_grad", "node", "_grad", "clock", "hooks"):
            setattr(made, name, getattr(out, name))
        out = made
    out.requires_grad = requires_grad
    if state:
        out.__dict__.update(state)
    return out


def __reduce_ex__(self: Tensor, protocol):
    from zoo.autograd.tensor import View
    kind = Tensor if type(self) is View else type(self)
    return rebuild, (
        kind,
        np.ascontiguousarray(fetch(self.array)).reshape(self.shape),
        str(self.device),
        self.requires_grad,
        getattr(self, "__dict__", None),
    )


def __deepcopy__(self: Tensor, memo: dict) -> Tensor:
    if self.node is not None:
        raise GradError("deepcopy: only leaf tensors can be copied deeply; use clone() for the others")
    copy = rebuild(*__reduce_ex__(self, 2)[1])
    if type(self.array) is np.ndarray:
        copy.array = copy.array.copy()                     # pickling copies, this has to by itself
    if self.grad is not None:
        copy.grad = __deepcopy__(self.grad, memo)
    memo[id(self)] = copy
    return copy


METHODS = {
    f.__name__: f
    for f in (
        to,
        cpu,
        cuda,
        is_pinned,
        pin_memory,
        type_as,
        numpy,
        item,
        tolist,
        __bool__,
        __index__,
        __array__,
        __contains__,
        __format__,
        __dlpack__,
        __dlpack_device__,
        __reduce_ex__,
        __deepcopy__,
    )
}
METHODS |= {
    name: caster(name, dtype)
    for name, dtype in {
        "float": np.float32,
        "double": np.float64,
        "half": np.float16,
        "bfloat16": bfloat16,
        "int": np.int32,
        "long": np.int64,
        "short": np.int16,
        "char": np.int8,
        "byte": np.uint8,
        "bool": np.bool_,
        "cfloat": np.complex64,
        "cdouble": np.complex128,
    }.items()
}
METHODS |= {
    "__int__": lambda self: int(item(self)),
    "__float__": lambda self: float(item(self)),
    "__complex__": lambda self: complex(item(self)),
}
