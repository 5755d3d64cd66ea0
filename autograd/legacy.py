"""torch's oldest names: FloatTensor(...) and its brothers, and x.type()."""
import warnings
from math import floor, prod
from typing import Any

import numpy as np

from zoo.autograd.called import called
from zoo.autograd.convert import to
from zoo.autograd.creation import arange, empty, shape_of, tensor
from zoo.autograd.size import Size
from zoo.autograd.tensor import Tensor
from zoo.ops.device import set_default_device
from zoo.ops.dtypes import bfloat16, default_dtype, is_dtype, set_default_dtype
from zoo.ops.errors import ArgumentError, GradError

NAMES = {
    "FloatTensor": np.float32, "DoubleTensor": np.float64, "HalfTensor": np.float16, "BFloat16Tensor": bfloat16,
    "LongTensor": np.int64, "IntTensor": np.int32, "ShortTensor": np.int16, "CharTensor": np.int8,
    "ByteTensor": np.uint8, "BoolTensor": np.bool_,
}
PACKAGES = "zoo", "zoo.cuda", "torch", "torch.cuda"
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
    if name not in NAMES or package not in PACKAGES:
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


def is_nonzero(input: Tensor) -> bool:  # noqa: A002
    """Is the one element of this tensor not 0? Raises for more elements."""
    return bool(input)


def is_signed(input: Tensor) -> bool:  # noqa: A002
    """Can this dtype hold negative numbers?"""
    return input.dtype.kind not in "ub"


def new(self: Tensor, *data: Any, device: Any = None) -> Tensor:
    """A tensor of this one's dtype and device: of these values, or of this shape with elements that mean nothing.

    Example:
        >>> import zoo
        >>> zoo.ones(2).new([1, 2]), zoo.ones(2).new(2, 3).shape
        (tensor([1., 2.]), (2, 3))
    """
    device = self.device if device is None else device
    if len(data) == 1 and not isinstance(data[0], (int, np.integer, Size)):
        return tensor(data[0], dtype=self.dtype, device=device)
    return empty(*(data or (0,)), dtype=self.dtype, device=device)


def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Makes this tensor one of that shape: of its first elements, and behind these of some that mean nothing.

    Raises:
        GradError (RuntimeError): the tensor requires grad.

    Example:
        >>> import zoo
        >>> zoo.arange(6).resize_(2, 2)
        tensor([[0, 1],
                [2, 3]])
    """
    if self.requires_grad:
        raise GradError("resize_: cannot resize a tensor that requires grad")
    shape = shape_of("resize_", sizes)
    count, flat = prod(shape), self.detach().reshape(-1)
    if count > flat.numel():
        larger = empty(count, dtype=self.dtype, device=self.device)
        larger[:flat.numel()] = flat
        flat = larger
    self.data = flat[:count].reshape(shape)
    return self


def resize_as_(self: Tensor, the_template: Tensor, memory_format: Any = None) -> Tensor:
    """resize_ to the shape of the_template."""
    return resize_(self, the_template.shape)


def range_(start: float, end: float, step: float = 1, **options: Any) -> Tensor:
    """start, start + step ... up to end, which is included; torch's old function, which warns: use arange.

    Example:
        >>> import warnings, zoo
        >>> with warnings.catch_warnings(action="ignore"):
        ...     zoo.range(1, 3)
        tensor([1., 2., 3.])
    """
    warnings.warn("range is deprecated, because its end is included, unlike Python's; use arange", UserWarning,
                  stacklevel=3)
    if step == 0 or (end - start) * step < 0:
        raise ArgumentError(f"range: wants a step from start towards end, got {start}, {end}, {step}")
    options.setdefault("dtype", default_dtype())
    return arange(floor((end - start) / step) + 1, **options) * step + start


def set_default_tensor_type(t: Any) -> None:
    """The dtype of new floats, and for a name with "cuda" the device too, by torch's old names of types.

    Raises:
        TypeError: no such type, or one of integers.

    Example:
        >>> import zoo
        >>> zoo.set_default_tensor_type(zoo.DoubleTensor)
        >>> zoo.zeros(1).dtype
        dtype('float64')
        >>> zoo.set_default_tensor_type("torch.FloatTensor")
    """
    package, _, name = (t if isinstance(t, str) else f"zoo.{getattr(t, '__name__', t)}").rpartition(".")
    if NAMES.get(name) not in (np.float16, np.float32, np.float64, bfloat16) or package not in PACKAGES:
        raise TypeError(f"set_default_tensor_type: wants a type of floats such as zoo.FloatTensor, got {t!r}")
    set_default_dtype(NAMES[name])
    set_default_device("cuda" if "cuda" in package else "cpu")


FUNCTIONS = {f.__name__: f for f in (typename, is_same_size, get_device, is_nonzero, is_signed,
                                     set_default_tensor_type)} | {"range": range_}
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
    "is_nonzero": is_nonzero,
    "is_signed": is_signed,
    "new": new,
    "resize_": resize_,
    "resize_as_": called("resize_as_", resize_as_, "zoo", "Tensor"),
    "adjoint": lambda self: self.mH,
}
