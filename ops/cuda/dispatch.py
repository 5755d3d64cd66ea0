"""Which function runs an op on DeviceArrays: asked once per op, by `zoo.ops.op`."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from zoo.ops.cuda.array import DeviceArray, from_numpy
from zoo.ops.cuda.remember import marked, remembering
from zoo.ops.errors import DeviceError, KernelError
from zoo.ops.op import PLAIN


def function_of(op) -> Callable:
    """The kernel launcher of an op: by formula, its own, by name in the family's `_gpu` module, or by decomposition."""
    if op.formula is not None:
        from zoo.ops.pointwise_gpu import launcher

        return launcher(op, guarded)
    module = f"{op.module}_gpu"
    function = op.gpu
    if function is None and op.module and find_spec(module):
        function = getattr(import_module(module), op.name, None)
    function = function or op.decompose
    if function is None:
        raise KernelError(f"{op.name}: no GPU kernel: {module} has no function of that name")
    return remembering(op, function, guarded) if function in marked else guarded(op, function)


def guarded(op, function: Callable) -> Callable:
    """Lets only arrays of one device, and what is no array, through to the kernel."""

    def run(*args):
        device = -1
        for a in args:
            kind = type(a)
            if kind is DeviceArray:
                if device != a.device:
                    if device >= 0:
                        raise DeviceError(f"{op.name}: arrays of two devices: cuda:{device} and cuda:{a.device}")
                    device = a.device
            elif kind is np.ndarray:
                return run(*uploaded(op, args))
            elif kind not in PLAIN:
                owner = op.handler(args)
                if owner is not op.handlers.get(DeviceArray, run):
                    return owner(*args)
        return function(*args)

    run.__name__ = op.name
    run.__wrapped__ = function
    return run


def uploaded(op, args):
    """The arguments with 0-d host arrays moved to the GPU. Raises DeviceError for larger ones."""
    device = next(a.device for a in args if type(a) is DeviceArray)
    for i, a in enumerate(args):
        if type(a) is np.ndarray and a.ndim:
            raise DeviceError(
                f"{op.name}: arrays of two devices: argument {i + 1}, of shape {a.shape}, is on cpu, "
                f"another on cuda:{device}"
            )
    return [from_numpy(a, device) if type(a) is np.ndarray else a for a in args]
