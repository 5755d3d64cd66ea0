"""torch's oldest names: FloatTensor(...) and its brothers, and x.type()."""
from typing import Any

import numpy as np

from zoo.autograd.called import called
from zoo.autograd.convert import to
from zoo.autograd.creation import empty, tensor
from zoo.autograd.tensor import Tensor
from zoo.ops.dtypes import bfloat16, is_dtype

NAMES = {
    "FloatTensor": np.float32, "DoubleTensor": np.float64, "HalfTensor": np.float16, "BFloat16Tensor": bfloat16,
    "LongTensor": np.int64, "IntTensor": np.int32, "ShortTensor": np.int16, "CharTensor": np.int8,
    "ByteTensor": np.uint8, "BoolTensor": np.bool_,
}
OF_DTYPE = {np.dtype(dtype): name for name, dtype in NAMES.items()}


class TypedTensor(type):
    """The class of FloatTensor ...: calling one makes a Tensor of its dtype, and CPU Tensors of it are instances.

    FloatTensor(values) takes values, FloatTensor(2, 3) makes a tensor of that shape whose elements mean nothing.
    """
    dtype: np.dtype

    def __call__(cls, *data: Any, device: Any = None) -> Tensor:
        if len(data) == 1 and not isinstance(data[0], (int, np.integer)):
            return tensor(data[0], dtype=cls.dtype, device=device)
        return empty(*(data or (0,)), dtype=cls.dtype, device=device)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tensor) and x.dtype == cls.dtype and not x.is_cuda


TYPES = {
    name: TypedTensor(name, (), {"dtype": np.dtype(dtype), "__doc__": f"A Tensor of {np.dtype(dtype).name}."})
    for name, dtype in NAMES.items()
}


def type_method(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of this tensor's type, "zoo.FloatTensor"; with a dtype, or such a name, the tensor as that.

    Raises:
        TypeError: no such type.

    Example:
        >>> import zoo
        >>> zoo.ones(2).type(), zoo.ones(2).type(zoo.int64)
        ('zoo.FloatTensor', tensor([1, 1]))
    """
    if dtype is None:
        return f"zoo.{'cuda.' if self.is_cuda else ''}{OF_DTYPE.get(self.dtype, self.dtype.name)}"
    if is_dtype(dtype):
        return to(self, np.dtype(dtype))
    if isinstance(dtype, TypedTensor):
        return to(self, "cpu", dtype=dtype.dtype)
    package, _, name = str(dtype).rpartition(".")
    if name not in NAMES or package not in ("zoo", "zoo.cuda", "torch", "torch.cuda"):
        raise TypeError(f"type: wants a dtype or a name such as zoo.FloatTensor, got {dtype!r}")
    return to(self, "cuda" if package.endswith("cuda") else "cpu", dtype=np.dtype(NAMES[name]))


def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:  # noqa: N802
    """data without history; scripts older than torch 0.4 wrap their tensors so."""
    return data.detach().requires_grad_(requires_grad)


def get_device(self: Tensor) -> int:
    """The number of this tensor's GPU; -1 on the CPU."""
    return (self.device.index or 0) if self.is_cuda else -1


def typename(obj: Any) -> str:
    """The name of an object's type: "zoo.FloatTensor" for a Tensor, else module and class.

    Example:
        >>> import zoo
        >>> zoo.typename(zoo.ones(2))
        'zoo.FloatTensor'
    """
    if isinstance(obj, Tensor):
        return type_method(obj)
    kind = type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Have both the same shape?"""
    return self.shape == other.shape


FUNCTIONS = {f.__name__: f for f in (typename, is_same_size, get_device)}
FUNCTIONS |= {name: getattr(Tensor, name) for name in ("detach", "is_inference")}
METHODS = {
    "is_same_size": called("is_same_size", is_same_size, "zoo"),
    "is_conj": lambda self: False,
    "is_neg": lambda self: False,
    "is_shared": lambda self: False,
    "type": type_method,
    "get_device": get_device,
    "ndimension": Tensor.dim,
    "is_cpu": property(lambda self: not self.is_cuda),
    "is_nonzero": lambda self: bool(self),
    "is_signed": lambda self: self.dtype.kind not in "ub",
}
