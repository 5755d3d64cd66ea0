"""Tensors from values and from nothing, with torch's names and defaults."""
import math
import operator
from typing import Any

import numpy as np

from zoo.autograd.tensor import Tensor, wrap
from zoo.ops import create
from zoo.ops.device import default_device, put, to_device
from zoo.ops.device import device as device_class
from zoo.ops.dtypes import bool_, default_dtype, int64, is_dtype
from zoo.ops.errors import ArgumentError, DtypeError, ShapeError
from zoo.ops.shape import cast


def place(device) -> device_class:
    return default_device() if device is None else device_class(device)


def dtype_of(name: str, dtype) -> np.dtype:
    if not is_dtype(dtype):
        raise TypeError(f"{name}: dtype wants a zoo dtype such as zoo.float32, got {dtype!r}")
    return np.dtype(dtype)


def leaf(array, requires_grad: bool) -> Tensor:
    out = wrap(array)
    return out.requires_grad_() if requires_grad else out


def shape_of(name: str, sizes: tuple) -> tuple[int, ...]:
    """(2, 3) from f(2, 3), f((2, 3)) or f([2, 3])."""
    if len(sizes) == 1 and not isinstance(sizes[0], (int, np.integer)) and hasattr(sizes[0], "__iter__"):
        sizes = tuple(sizes[0])
    try:
        sizes = tuple(map(operator.index, sizes))
    except TypeError:
        raise TypeError(f"{name}: wants integer sizes, got {sizes}") from None
    if any(n < 0 for n in sizes):
        raise ShapeError(f"{name}: trying to create a tensor with negative dimension: {sizes}")
    return sizes


def unequal(data: Any) -> str:
    """Where nested lists differ in length, in torch's words; "" where they do not."""
    level, dim = [data], 0
    while True:
        sizes = [len(x) if isinstance(x, (list, tuple)) else None for x in level]
        other = [n for n in sizes if n != sizes[0]]
        if other:
            return (f"expected sequence of length {sizes[0]} at dim {dim} (got {other[0]})" if None not in sizes else
                    f"wants nested sequences of equal lengths, got numbers and sequences at dim {dim}")
        if not sizes or sizes[0] is None:
            return ""
        level, dim = [x for part in level for x in part], dim + 1


def from_python(data: Any, dtype) -> np.ndarray:
    """An array of nested lists, numbers, Tensors; Python floats get the default dtype."""
    if isinstance(data, (list, tuple)) and any(isinstance(x, Tensor) for x in data):
        data = [x.cpu().tolist() if isinstance(x, Tensor) else x for x in data]
    if hasattr(data, "__array_interface__") or isinstance(data, np.generic):
        return np.array(data, dtype) if dtype is not None else np.array(data)
    try:
        array = np.array(data)
    except ValueError as error:
        raise ShapeError(f"tensor: {unequal(data) or error}") from None
    if array.dtype.kind in "OUSM":
        raise DtypeError(f"tensor: cannot make a tensor of {type(data).__name__} with elements like {array.dtype}")
    if dtype is not None:
        return array.astype(dtype)
    if array.dtype == np.float64 and not (isinstance(data, (list, tuple)) and holds_float64(data)):
        return array.astype(default_dtype())
    if array.dtype == np.complex128:
        return array.astype(np.complex64 if default_dtype() != np.float64 else np.complex128)
    return array


def holds_float64(data) -> bool:
    first = data
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    return isinstance(first, (np.ndarray, np.float64)) and not isinstance(first, float)


def tensor(data: Any, *, dtype=None, device=None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A new tensor that holds a copy of `data`: nested lists, numbers, an ndarray, a Tensor.

    Raises:
        ShapeError: lists of unequal lengths. DtypeError: elements that are no numbers.

    Example:
        >>> import zoo
        >>> zoo.tensor([[1, 2], [3, 4]]).dtype
        dtype('int64')
    """
    dtype = None if dtype is None else dtype_of("tensor", dtype)
    if isinstance(data, Tensor):
        out = data.detach().clone()
        out = out if dtype is None else out.to(dtype)
        return leaf((out if device is None else out.to(device)).array, requires_grad)
    return leaf(put(from_python(data, dtype), place(device)), requires_grad)


def as_tensor(data: Any, dtype=None, device=None) -> Tensor:
    """Like `tensor`, but shares memory and history where it can (Tensors, ndarrays, right dtype and device)."""
    if isinstance(data, Tensor):
        data = data if dtype is None or data.dtype == np.dtype(dtype) else cast(data, dtype_of("as_tensor", dtype))
        return data if device is None else to_device(data, device_class(device))
    if isinstance(data, np.ndarray):
        return wrap(put(data if dtype is None else data.astype(dtype, copy=False), place(device)))
    if hasattr(data, "__dlpack__") and not isinstance(data, (list, tuple, np.generic)):
        return as_tensor(from_dlpack(data), dtype, device)
    return tensor(data, dtype=dtype, device=device)


def asarray(obj: Any, *, dtype=None, device=None, copy: bool | None = None, requires_grad: bool = False) -> Tensor:
    """as_tensor with torch.asarray's options."""
    out = tensor(obj, dtype=dtype, device=device) if copy else as_tensor(obj, dtype, device)
    return out.detach().requires_grad_() if requires_grad else out


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor on the memory of `array`: a write to one is seen in the other.

    Raises:
        TypeError: not an ndarray, or a dtype that tensors do not have.

    Example:
        >>> import numpy as np, zoo
        >>> a = np.zeros(2, np.float32)
        >>> zoo.from_numpy(a)[0] = 1
        >>> float(a[0])
        1.0
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy: wants an ndarray, got {type(array).__name__}")
    if array.dtype.kind in "OUSMm" or array.dtype.names:
        raise TypeError(f"from_numpy: wants numbers or bools, got dtype {array.dtype}")
    return wrap(array)


def from_dlpack(source: Any) -> Tensor:
    """A tensor on the memory of any object with `__dlpack__`, without a copy.

    Raises:
        TypeError: an object without it.

    Example:
        >>> import numpy as np, zoo
        >>> zoo.from_dlpack(np.arange(3))
        tensor([0, 1, 2])
    """
    if not hasattr(source, "__dlpack__"):
        raise TypeError(f"from_dlpack: source: wants an object with __dlpack__, got {type(source).__name__}")
    if hasattr(source, "__dlpack_device__") and int(source.__dlpack_device__()[0]) not in (1, 3):
        from zoo.ops.cuda.dlpack import from_dlpack as on_gpu
        return wrap(on_gpu(source))
    return wrap(np.from_dlpack(source))


def full(size, fill_value, *, dtype=None, device=None, requires_grad: bool = False, out=None) -> Tensor:
    """A tensor of `size` filled with `fill_value`, whose kind gives the dtype.

    Example:
        >>> import zoo
        >>> zoo.full((2,), 7)
        tensor([7, 7])
    """
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    if dtype is None:
        dtype = bool_ if isinstance(value, bool) else int64 if isinstance(value, int) else default_dtype()
    size = (size,) if isinstance(size, int) else size
    made = leaf(create.full(shape_of("full", (size,)), value, dtype_of("full", dtype), place(device)), requires_grad)
    return made if out is None else out.copy_(made)


def filled(name: str, value):
    def function(*size, dtype=None, device=None, requires_grad: bool = False, out=None) -> Tensor:
        dtype = default_dtype() if dtype is None else dtype_of(name, dtype)
        size = shape_of(name, size or ((),))
        made = (
            create.empty(size, dtype, place(device))
            if value is None
            else create.full(size, value, dtype, place(device))
        )
        return leaf(made, requires_grad) if out is None else out.copy_(wrap(made))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"A tensor of the given sizes, {'of undefined contents' if value is None else f'filled with {value}'}."
    )
    return function


zeros, ones, empty = filled("zeros", 0), filled("ones", 1), filled("empty", None)


def like(name: str, value):
    def function(input, *, dtype=None, device=None, requires_grad: bool = False, memory_format=None) -> Tensor:  # noqa: A002
        dtype = input.dtype if dtype is None else dtype_of(name, dtype)
        where = input.device if device is None else device_class(device)
        made = (
            create.empty(input.shape, dtype, where) if value is None else create.full(input.shape, value, dtype, where)
        )
        return leaf(made, requires_grad)
    function.__name__ = function.__qualname__ = name
    contents = "of undefined contents" if value is None else f"filled with {value}"
    function.__doc__ = f"A tensor of input's shape, dtype and device, {contents}."
    return function


zeros_like, ones_like, empty_like = like("zeros_like", 0), like("ones_like", 1), like("empty_like", None)


def full_like(input, fill_value, *, dtype=None, device=None, requires_grad: bool = False, memory_format=None) -> Tensor:  # noqa: A002
    """A tensor of input's shape, dtype and device filled with `fill_value`."""
    return full(
        input.shape,
        fill_value,
        dtype=input.dtype if dtype is None else dtype,
        device=input.device if device is None else device,
        requires_grad=requires_grad,
    )


def number(x):
    return x.item() if isinstance(x, (Tensor, np.generic)) else x


def arange(start, end=None, step=1, *, dtype=None, device=None, requires_grad: bool = False, out=None) -> Tensor:
    """start, start + step, ... below `end`; int64 if all are integers, else the default dtype.

    Raises:
        ArgumentError: step is 0, or of the wrong sign.

    Example:
        >>> import zoo
        >>> zoo.arange(2, 8, 3)
        tensor([2, 5])
    """
    start, end = (0, start) if end is None else (start, end)
    start, end, step = number(start), number(end), number(step)
    if step == 0:
        raise ArgumentError("arange: step must be nonzero, got 0")
    if not all(math.isfinite(x) for x in (start, end, step)):
        raise ArgumentError(f"arange: unsupported range: {start} -> {end} in steps of {step}")
    if (end - start) * step < 0:
        raise ArgumentError(
            f"arange: upper bound and lower bound inconsistent with step sign, got {start}, {end}, {step}"
        )
    if dtype is None:
        dtype = int64 if all(isinstance(x, int) for x in (start, end, step)) else default_dtype()
    made = leaf(create.arange(start, end, step, dtype_of("arange", dtype), place(device)), requires_grad)
    return made if out is None else out.copy_(made)


def linspace(start, end, steps: int, *, dtype=None, device=None, requires_grad: bool = False, out=None) -> Tensor:
    """`steps` evenly spaced values from start to end, both included."""
    if steps < 0:
        raise ArgumentError(f"linspace: number of steps must be non-negative, got {steps}")
    for x in (start, end):
        if isinstance(x, Tensor) and x.ndim:
            raise ArgumentError(f"linspace: start and end must be numbers or 0-d tensors, got shape {x.shape}")
    dtype = default_dtype() if dtype is None else dtype_of("linspace", dtype)
    made = leaf(create.linspace(number(start), number(end), steps, dtype, place(device)), requires_grad)
    return made if out is None else out.copy_(made)


def logspace(
    start, end, steps: int, base: float = 10.0, *, dtype=None, device=None, requires_grad: bool = False
) -> Tensor:
    """base ** linspace(start, end, steps)."""
    exponents = linspace(start, end, steps, dtype=np.dtype(np.float64), device=device)
    return leaf(
        (base**exponents).to(default_dtype() if dtype is None else dtype_of("logspace", dtype)).array, requires_grad
    )


def eye(n: int, m: int | None = None, *, dtype=None, device=None, requires_grad: bool = False, out=None) -> Tensor:
    """An (n, m) tensor with ones on the diagonal."""
    m = n if m is None else m
    if n < 0 or m < 0:
        raise ArgumentError(f"eye: wants sizes of at least 0, got {n}, {m}")
    made = leaf(
        create.eye(n, m, default_dtype() if dtype is None else dtype_of("eye", dtype), place(device)), requires_grad
    )
    return made if out is None else out.copy_(made)


def triangle(name: str, indices, row: int, col: int, offset: int, dtype, device) -> Tensor:
    """The row and column numbers of a triangle of a (row, col) matrix, as (2, count)."""
    if row < 0 or col < 0:
        raise ArgumentError(f"{name}: wants sizes of at least 0, got {row}, {col}")
    found = np.stack(indices(row, offset, col)).astype(dtype_of(name, int64 if dtype is None else dtype))
    return wrap(put(found, place(device)))


def tril_indices(row: int, col: int, offset: int = 0, *, dtype=None, device=None) -> Tensor:
    """Row and column numbers of a (row, col) matrix's lower triangle, row by row: (2, count), int64.

    offset > 0 takes that many diagonals above the main one as well, offset < 0 leaves out that many.

    Raises:
        ArgumentError (ValueError, RuntimeError): a negative size.

    Example:
        >>> import zoo
        >>> zoo.tril_indices(2, 2).tolist()
        [[0, 1, 1], [0, 0, 1]]
    """
    return triangle("tril_indices", np.tril_indices, row, col, offset, dtype, device)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype=None, device=None) -> Tensor:
    """Row and column numbers of a (row, col) matrix's upper triangle, row by row: (2, count), int64.

    offset > 0 leaves out that many diagonals from the main one on, offset < 0 takes that many below it as well.

    Raises:
        ArgumentError (ValueError, RuntimeError): a negative size.

    Example:
        >>> import zoo
        >>> zoo.triu_indices(2, 2).tolist()
        [[0, 0, 1], [0, 1, 1]]
    """
    return triangle("triu_indices", np.triu_indices, row, col, offset, dtype, device)


def empty_permuted(size, physical_layout, *, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """A tensor of `size` of undefined contents whose dims lie in memory in the order physical_layout.

    Raises:
        ArgumentError (ValueError, RuntimeError): physical_layout is no order of all dims.

    Example:
        >>> import zoo
        >>> zoo.empty_permuted((2, 3), (1, 0)).stride()
        (1, 2)
    """
    size, order = shape_of("empty_permuted", (size,)), tuple(physical_layout)
    if sorted(order) != list(range(len(size))):
        raise ArgumentError(f"empty_permuted: wants each of the {len(size)} dims once, got {order}")
    made = empty([size[d] for d in order], dtype=dtype, device=device)
    return leaf(made.permute([order.index(d) for d in range(len(size))]).array, requires_grad)


def frombuffer(buffer: Any, *, dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A 1-d tensor on the memory of a bytes-like object: `count` elements (all) from byte `offset` on.

    Raises:
        ArgumentError (ValueError, RuntimeError): the buffer has fewer elements.

    Example:
        >>> import zoo
        >>> zoo.frombuffer(bytearray([1, 2, 3]), dtype=zoo.uint8, offset=1)
        tensor([2, 3], dtype=zoo.uint8)
    """
    try:
        array = np.frombuffer(buffer, dtype_of("frombuffer", dtype), count, offset)
    except ValueError as error:
        raise ArgumentError(f"frombuffer: {error}") from None
    return leaf(array, requires_grad)


def scalar_tensor(s, *, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """A 0-d tensor."""
    return full((), s, dtype=default_dtype() if dtype is None else dtype, device=device, requires_grad=requires_grad)


def new_method(function):
    """`x.new_zeros(...)`: like zeros, with x's dtype and device."""
    def method(self, *args, dtype=None, device=None, requires_grad=False, **unused):
        return function(
            *args,
            dtype=self.dtype if dtype is None else dtype,
            device=self.device if device is None else device,
            requires_grad=requires_grad,
        )
    method.__name__ = f"new_{function.__name__}"
    method.__doc__ = f"`{function.__name__}` with this tensor's dtype and device."
    return method


METHODS = {f"new_{f.__name__}": new_method(f) for f in (zeros, ones, empty, full, tensor)}
FUNCTIONS = {
    f.__name__: f
    for f in (
        tensor,
        as_tensor,
        asarray,
        from_numpy,
        from_dlpack,
        full,
        zeros,
        ones,
        empty,
        zeros_like,
        ones_like,
        empty_like,
        full_like,
        arange,
        linspace,
        logspace,
        eye,
        tril_indices,
        triu_indices,
        empty_permuted,
        frombuffer,
        scalar_tensor,
    )
}
