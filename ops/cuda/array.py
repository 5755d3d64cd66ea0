"""DeviceArray: a strided view of GPU memory, the GPU's counterpart of `np.ndarray`."""

import math
from functools import lru_cache, partial

import numpy as np

from zoo.ops.cuda import ledger, mode
from zoo.ops.cuda.capture import Untraceable, outside, refuse
from zoo.ops.cuda.driver import state
from zoo.ops.cuda.ledger import live
from zoo.ops.cuda.memory import memory_class
from zoo.ops.cuda.mode import is_interpreting
from zoo.ops.cuda.shadow import copied_to_host, shared_with_host, written


@lru_cache(4096)
def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a row-major array of this shape."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


@lru_cache(1)
def ops() -> dict:
    """The registry of ops, which knows this module only by what `__op__` returns."""
    from zoo.ops.op import OPS

    return OPS


def binary(name):
    """The operator that runs an op with the array on the left."""

    def operator(self, other):
        return ops()[name](self, other)

    return operator


def reflected(name):
    """The operator that runs an op with the array on the right."""

    def operator(self, other):
        return ops()[name](other, self)

    return operator


class DeviceArray:
    """A view of GPU memory: address of element 0, shape, strides in elements, dtype, and the memory's owner."""

    __slots__ = ("__weakref__", "device", "dtype", "owner", "pointer", "shape", "strides")
    __op_level__ = -1
    __array_ufunc__ = None  # `ndarray + DeviceArray` comes to our reflected operator, which names both devices
    __hash__ = object.__hash__

    def __init__(self, pointer, shape, strides, dtype, owner, device=0):
        self.pointer = pointer
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.owner = owner
        self.device = device

    @staticmethod
    def __op__(op):
        from zoo.ops.cuda.dispatch import function_of

        return function_of(op)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def is_contiguous(self) -> bool:
        """True if the elements lie in memory in row-major order without gaps."""
        wanted = contiguous_strides(self.shape)
        if self.strides == wanted:
            return True
        return not self.size or all(
            n == 1 or s == w for n, s, w in zip(self.shape, self.strides, wanted, strict=True)
        )

    def data_ptr(self) -> int:
        """Address of element 0, as Triton asks for it."""
        return self.pointer

    def view(self, shape, strides, offset=0) -> "DeviceArray":
        """Another view of the same memory; strides and offset count elements."""
        pointer = self.pointer + offset * self.dtype.itemsize
        return DeviceArray(pointer, tuple(shape), tuple(strides), self.dtype, self.owner, self.device)

    def item(self):
        """The only element as a Python number; waits for the GPU."""
        if self.size != 1:
            raise ValueError(f"item: wants an array of one element, got shape {self.shape}")
        return to_numpy(self.view((), ())).item()

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of a 0-d DeviceArray")
        return self.shape[0]

    def __bool__(self):
        return bool(self.item())

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __repr__(self):
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device='cuda:{self.device}')"

    def __array__(self, dtype=None, copy=None):
        raise TypeError(f"{self!r} is not copied to the host silently: use zoo.ops.cuda.to_numpy, or Tensor.cpu()")

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        from zoo.ops.cuda.dlpack import export

        return export(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self):
        return (1, 0) if is_interpreting() else (2, self.device)

    def __neg__(self):
        return ops()["neg"](self)

    __add__, __radd__ = binary("add"), reflected("add")
    __sub__, __rsub__ = binary("sub"), reflected("sub")
    __mul__, __rmul__ = binary("mul"), reflected("mul")
    __truediv__, __rtruediv__ = binary("div"), reflected("div")
    __pow__, __rpow__ = binary("pow"), reflected("pow")
    __matmul__, __rmatmul__ = binary("matmul"), reflected("matmul")
    __eq__, __ne__ = binary("eq"), binary("ne")
    __lt__, __le__ = binary("lt"), binary("le")
    __gt__, __ge__ = binary("gt"), binary("ge")


def empty(shape, dtype, device: int | None = None) -> DeviceArray:
    """A new contiguous array with undefined contents, on the current device if none is named."""
    shape = tuple(shape)
    dtype = np.dtype(dtype)
    if device is None:
        device = state.device
    nbytes = math.prod(shape) * dtype.itemsize
    return new(shape, contiguous_strides(shape), dtype, nbytes, device)


def new(shape: tuple, strides: tuple, dtype: np.dtype, nbytes: int, device: int) -> DeviceArray:
    """`empty` with a dense layout that was worked out before."""
    owner = memory_class()(nbytes, device)
    pointer = owner.pointer
    if ledger.recording:
        live[pointer] = nbytes, shape, dtype, device, *ledger.origin()
    else:
        live[pointer] = nbytes, shape, dtype, device
    return DeviceArray(pointer, shape, strides, dtype, owner, device)


def from_numpy(array, device: int | None = None, non_blocking: bool = False) -> DeviceArray:
    """A contiguous copy of `array` on the GPU; see copy_from_numpy."""
    array = np.asarray(array, order="C")
    if array.dtype.kind in "OSUMmT":
        raise TypeError(f"from_numpy: wants numbers or bools, got dtype {array.dtype}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    x = empty(array.shape, array.dtype, device)
    copy_from_numpy(x, array, non_blocking)
    return x


def copy_from_numpy(x: DeviceArray, array: np.ndarray, non_blocking: bool = False):
    """Copies `array` into `x`, which is contiguous and of the same shape and dtype.

    The array may be changed when this returns; with non_blocking and page-locked memory only when the copy is done.
    """
    if x.shape != array.shape or x.dtype != array.dtype or not x.is_contiguous:
        raise ValueError(
            f"copy_from_numpy: wants a contiguous {x.dtype} array of shape {x.shape}, "
            f"got {array.dtype} of shape {array.shape}"
        )
    if state.trace is not None:
        raise Untraceable("copies values from the host")
    if state.graph is not None:
        record_constant(x, array)
    elif is_interpreting():
        if not mode.dry:
            host_write(x, array)
    elif array.size:
        from zoo.ops.cuda.pool import copy_to_device

        copy_to_device(x, np.asarray(array, order="C"), non_blocking)


def record_constant(x: DeviceArray, array: np.ndarray):
    """In a capture: every replay copies what the host array holds now, from memory that the graph keeps."""
    with outside():
        source = from_numpy(array, x.device)
    state.graph.kept.append(source)
    copy_device(x, source)


def held(x: DeviceArray) -> DeviceArray:
    """The array as a captured step holds it: a pool may hand out its memory to others, as on a GPU."""
    block = getattr(x.owner, "below", None)
    return x if block is None else DeviceArray(x.pointer, x.shape, x.strides, x.dtype, block, x.device)


def host_view(x: DeviceArray) -> np.ndarray:
    """The NumPy view of an array in the interpreter's memory: no copy."""
    if mode.sanitizing:
        shared_with_host(x)
    return bytes_of(x)


def bytes_of(x: DeviceArray) -> np.ndarray:
    """`host_view` to read."""
    step = x.dtype.itemsize
    return x.owner.array(x.pointer, x.shape, tuple(s * step for s in x.strides), x.dtype)


def host_write(x: DeviceArray, array: np.ndarray):
    """`copy_from_numpy` in the interpreter."""
    if mode.sanitizing:
        written(x)
    bytes_of(x)[...] = array


def host_copy(target: DeviceArray, source: DeviceArray):
    """`copy_device` in the interpreter."""
    if mode.dry:
        return
    if mode.sanitizing:
        written(target, source)
    bytes_of(target).reshape(-1).view(np.uint8)[...] = bytes_of(source).reshape(-1).view(np.uint8)


def host_fill(x: DeviceArray, byte: int):
    """`fill_bytes` in the interpreter."""
    if mode.dry:
        return
    if mode.sanitizing:
        written(x)
    bytes_of(x).reshape(-1).view(np.uint8).fill(byte)


def to_numpy(x: DeviceArray) -> np.ndarray:
    """A contiguous copy in host memory; waits for the GPU."""
    refuse("copies values to the host")
    if is_interpreting():
        if mode.sanitizing:
            copied_to_host(x)
        return bytes_of(x).copy()
    from zoo.ops.cuda.pool import copy_to_host

    if not x.is_contiguous:
        x = ops()["contiguous"](x)
    array = np.empty(x.shape, x.dtype)
    if array.size:
        copy_to_host(array, x)
    return array


def copy_device(target: DeviceArray, source: DeviceArray):
    """Copies `source` into `target`, both contiguous, of equal size in bytes."""
    if target.nbytes != source.nbytes or not (target.is_contiguous and source.is_contiguous):
        raise ValueError(f"copy_device: wants two contiguous arrays of equal bytes, got {target!r} and {source!r}")
    if state.trace is not None:
        state.trace.call(copy_device, target, source)
    elif is_interpreting():
        if state.graph is not None:
            state.graph.steps.append(partial(host_copy, held(target), held(source)))
        else:
            host_copy(target, source)
    elif target.nbytes:
        from zoo.ops.cuda.pool import copy_on_device

        copy_on_device(target, source)


def fill_bytes(x: DeviceArray, byte: int = 0):
    """Sets every byte of a contiguous array."""
    if not x.is_contiguous:
        raise ValueError(f"fill_bytes: wants a contiguous array, got strides {x.strides} for shape {x.shape}")
    if state.trace is not None:
        state.trace.call(fill_bytes, x, byte)
    elif is_interpreting():
        if state.graph is not None:
            state.graph.steps.append(partial(host_fill, held(x), byte))
        else:
            host_fill(x, byte)
    elif x.nbytes:
        from zoo.ops.cuda.pool import set_bytes

        set_bytes(x, byte)
