"""The CUDA driver: contexts, devices and errors. Everything else in this package goes through here."""

import os
import sys
import threading
from functools import cache
from typing import Any

from zoo.ops.cuda.mode import is_interpreting


class CudaError(RuntimeError):
    """A call of the CUDA driver failed."""


class OutOfMemoryError(RuntimeError):
    """The GPU has not enough free memory for an allocation."""


class State(threading.local):
    """What is current in this thread."""

    device = 0  # the user's choice
    context: int | None = None  # device whose CUDA context is current
    graph: Any = None  # the CUDAGraph that is being captured
    pool: Any = None  # the GraphPool that new memory comes from
    trace: Any = None  # the Trace that writes down what a launcher does (remember.py)
    streams: dict  # device -> Stream chosen by set_stream
    active: dict  # the device whose context is current -> its current stream, once `activate` was asked for it

    def __init__(self):
        self.streams, self.active = {}, {}


state = State()
forked = False  # is this the child of a process that had initialised CUDA? Its contexts do not work here


@cache
def cuda():
    """The module `cuda.bindings.driver`, initialised. Raises a one-line RuntimeError where there is no GPU."""
    if forked:
        raise RuntimeError("no CUDA GPU: it was in use when this process was forked; start processes by spawn")
    try:
        from cuda.bindings import driver
    except ImportError:
        raise RuntimeError("no CUDA GPU: the package cuda-bindings is not installed") from None
    try:
        code = driver.cuInit(0)[0]
    except RuntimeError:  # the driver's library is not on this machine
        raise RuntimeError("no CUDA GPU: libcuda.so.1, the NVIDIA driver, was not found") from None
    if code:
        raise RuntimeError(f"no CUDA GPU: cuInit gives {code.name}")
    if not driver.cuDeviceGetCount()[1]:
        raise RuntimeError("no CUDA GPU: the driver counts 0 devices")
    return driver


def after_fork():
    """In the child: what it inherited on the GPU is its parent's, who frees it."""
    global forked
    forked = forked or cuda.cache_info().currsize > 0
    cuda.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)


def is_over(finalizing=sys.is_finalizing) -> bool:
    """Is there nothing to give back any more? At the end of the process, and in a forked one."""
    return forked or finalizing()


def check(result):
    """What a driver call returned after its error code. Raises CudaError."""
    if result[0]:
        raise failure(result[0])
    return result[1] if len(result) == 2 else result[1:]


def failure(code) -> CudaError:
    """The exception for an error code."""
    text = cuda().cuGetErrorString(code)[1]
    return CudaError(f"CUDA: {code.name}: {text.decode() if text else 'unknown error'}")


def is_available() -> bool:
    """True if kernels can run: a GPU with a working driver, or the interpreter."""
    if is_interpreting():
        return True
    try:
        cuda()
    except RuntimeError:
        return False
    return True


def device_count() -> int:
    """Number of GPUs; 0 where there is none, 1 in the interpreter."""
    if is_interpreting():
        return 1
    return int(check(cuda().cuDeviceGetCount())) if is_available() else 0


@cache
def context(device: int):
    """The primary context of a device, kept for the life of the process."""
    count = device_count() or check(cuda().cuDeviceGetCount())
    if not 0 <= device < count:
        raise RuntimeError(f"CUDA: device {device} does not exist; there are {count}")
    return check(cuda().cuDevicePrimaryCtxRetain(check(cuda().cuDeviceGet(device))))


def use(device: int):
    """Makes the device's context current in this thread."""
    if state.context != device:
        check(cuda().cuCtxSetCurrent(context(device)))
        state.context = device
        state.active.clear()


def current_device() -> int:
    """Index of the device on which this thread makes new arrays."""
    return state.device


def index(device: Any = None) -> int:
    """The number of a device as torch's functions take it: None (the current one), a number, "cuda:1", a device."""
    if device is None:
        return state.device
    if isinstance(device, int):
        return device
    from zoo.ops.device import device as parsed

    found = parsed(device)
    if found.type != "cuda":
        raise ValueError(f"wants a cuda device, got {found}")
    return state.device if found.index is None else found.index


def set_device(device: Any):
    """Chooses the device on which this thread makes new arrays."""
    device = index(device)
    if not 0 <= device < device_count():
        raise RuntimeError(f"set_device: device {device} does not exist; there are {device_count()}")
    if not is_interpreting():
        use(device)
    state.device = device


@cache
def attribute(name: str, device: int) -> int:
    """A device attribute by the end of its name in the driver, such as "MULTIPROCESSOR_COUNT"."""
    key = getattr(cuda().CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    return int(check(cuda().cuDeviceGetAttribute(key, check(cuda().cuDeviceGet(device)))))


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """(major, minor) of the compute capability, such as (9, 0); the interpreter plays (9, 0)."""
    if is_interpreting():
        return 9, 0
    device = index(device)
    return attribute("COMPUTE_CAPABILITY_MAJOR", device), attribute("COMPUTE_CAPABILITY_MINOR", device)


def multiprocessors(device: int | None = None) -> int:
    """Number of streaming multiprocessors; 4 in the interpreter, where programs run one by one."""
    if is_interpreting():
        return 4
    return attribute("MULTIPROCESSOR_COUNT", state.device if device is None else device)


def get_device_name(device: Any = None) -> str:
    """The GPU's name as the driver gives it."""
    if is_interpreting():
        return "Triton interpreter on host memory"
    device = index(device)
    name = check(cuda().cuDeviceGetName(128, check(cuda().cuDeviceGet(device))))
    return name.split(b"\0")[0].decode()
