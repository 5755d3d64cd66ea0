"""Devices: which one an array lies on, and moving between them. ndarray = "cpu", DeviceArray = "cuda"."""
import threading
from typing import Any

import numpy as np

from zoo.ops.errors import DeviceError
from zoo.ops.op import PLAIN, Spec, structured


class device:  # noqa: N801  (torch's name)
    """Where a tensor lies: `device("cpu")`, `device("cuda")`, `device("cuda:1")`, `device("cuda", 1)`, `device(1)`.

    As a context manager it is the device of what is created without device=.

    Raises:
        DeviceError (RuntimeError): no such kind of device.

    Example:
        >>> import zoo
        >>> zoo.device("cuda:1").index
        1
    """
    __slots__ = ("type", "index", "_outer")

    def __init__(self, type: Any, index: int | None = None):  # noqa: A002
        if isinstance(type, device):
            type, index = type.type, type.index
        elif isinstance(type, int) and not isinstance(type, bool):
            type, index = "cuda", type
        elif isinstance(type, str) and ":" in type:
            type, _, number = type.partition(":")
            if not number.isdigit():
                raise DeviceError(f"device: wants cpu, cuda or cuda:<number>, got {type}:{number}")
            index = int(number)
        if type not in ("cpu", "cuda"):
            raise DeviceError(f"device: wants cpu, cuda or cuda:<number>, got {type!r}")
        self.type, self.index = type, index

    def __eq__(self, other):
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __repr__(self):
        return f"device(type={self.type!r}" + (f", index={self.index})" if self.index is not None else ")")

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self):
        return device, (self.type, self.index)

    def __enter__(self):
        self._outer = CURRENT.where
        CURRENT.where = self
        return self

    def __exit__(self, *_):
        CURRENT.where = self._outer


CPU = device("cpu")
# set in place: op.py's written-out calls hold this very set
PLAIN.add(device)


class Current(threading.local):
    """The device of what is created without device=."""
    where: device | None = None


CURRENT = Current()


def default_device() -> device:
    return CURRENT.where or CPU


def set_default_device(value) -> None:
    """Sets where tensors are created when no device= is given; None is the CPU again."""
    CURRENT.where = None if value is None else device(value)


def device_of(array: Any) -> device:
    """The device of an ndarray or DeviceArray (or of a citizen above, which has .device)."""
    if isinstance(array, np.ndarray):
        return CPU
    where = array.device
    return device("cuda", where) if isinstance(where, int) else where


def constant(array: np.ndarray, like: Any) -> Any:
    """`array` as a raw array on the device of `like` (ndarray, DeviceArray or Tensor)."""
    like = getattr(like, "array", like)
    where = device_of(like)
    return array if where.type == "cpu" else put(array, where)


def put(array: np.ndarray, where: device, non_blocking: bool = False) -> Any:
    """A NumPy array on a device; see cuda.copy_from_numpy."""
    if where.type == "cpu":
        return array
    from zoo.ops import cuda
    index = where.index if where.index is not None else cuda.current_device()
    return cuda.from_numpy(np.asarray(array), index, non_blocking)


def memory_order(x: Any) -> tuple[int, ...]:
    """The dimensions of a raw array from the one with the longest steps in memory to the one with the shortest."""
    return tuple(sorted(range(x.ndim), key=lambda d: -x.strides[d]))


def put_as_it_lies(array: np.ndarray, where: device, non_blocking: bool = False) -> Any:
    """`put`, with the order of dimensions in memory kept if there are no gaps: channels-last stays channels-last."""
    order = memory_order(array)
    dense = array.transpose(order)
    if where.type == "cpu" or array.flags.c_contiguous or not dense.flags.c_contiguous:
        return put(array, where, non_blocking)
    y, back = put(dense, where, non_blocking), np.argsort(order)
    return y.view(array.shape, tuple(y.strides[d] for d in back))


def fetch(x: Any) -> np.ndarray:
    """A raw array's values as an ndarray: itself on the CPU, a copy from the GPU."""
    if isinstance(x, np.ndarray):
        return x
    from zoo.ops import cuda
    return cuda.to_numpy(x)


@structured
class to_device:
    """x on another device; the gradient goes back to x's."""
    dtypes = "floats ints bool"
    def check(x, where): return Spec(x.shape, x.dtype)
    def forward(x, where):
        if where.type != "cpu" and x.ndim:
            from zoo.ops.cuda.capture import refuse
            refuse("copies an array from the host, which a replay would not look at again")
        return put_as_it_lies(x, where)
    def dx(dy, x): return to_device(dy, device_of(getattr(x, "array", x)))
    def samples(rng):
        return {"ordinary": [(rng.normal(size=(3, 4)), CPU)], "empty": [(rng.normal(size=(0, 4)), CPU)],
                "0-d": [(rng.normal(size=()), CPU)], "odd": [(rng.normal(size=(7, 13)), CPU)],
                "extreme": "values are not computed with"}
