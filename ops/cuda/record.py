"""Records what the interpreter launches, so that all of it can be compiled for GPUs that are not here.

With `ZOO_RECORD=path` in the environment, or after `start(path)`, every distinct launch becomes a line of JSON: the
kernel, the class of every argument, the constexprs and the options. scripts/compile_kernels.py compiles them.
"""

import contextlib
import json
import os
from collections.abc import Callable
from importlib import import_module

import numpy as np

from zoo.ops.cuda import mode
from zoo.ops.cuda.array import DeviceArray

path = os.environ.get("ZOO_RECORD", "")
modules = "zoo."
seen: set[str] = set()
listener: Callable | None = None  # asked about every launch of the interpreter: (kernel, grid, arguments by name)


def start(where: str, prefix: str = "zoo."):
    """Appends to the file from now on what kernels of modules with this prefix do."""
    global path, modules
    path, modules = str(where), prefix
    seen.clear()


def stop():
    """No more lines."""
    start("")


@contextlib.contextmanager
def dry_run(where: str):
    """Inside, launches are only recorded: kernels of real sizes, in no time and without memory. Values mean nothing."""
    before = path, modules, mode.dry
    start(where)
    mode.dry = True
    try:
        yield
    finally:
        start(*before[:2])
        mode.dry = before[2]


@contextlib.contextmanager
def listening(hear: Callable):
    """Inside, `hear(kernel, grid, arguments by name)` is called for every launch, before it runs."""
    global listener
    before, listener = listener, hear
    try:
        yield
    finally:
        listener = before


def add(kernel, arguments):
    """One launch, unless an equal one was recorded by this process."""
    function, constants = kernel.function, kernel.constants
    if not function.fn.__module__.startswith(modules) or any(foreign(v) for v in constants.values()):
        return
    row = {
        "kernel": name_of(function),
        "args": [general(class_of(arguments[p.name]), p) for p in function.params if not p.is_constexpr],
        "constexprs": {k: spelled(v) for k, v in constants.items()},
        "options": list(kernel.options),
    }
    line = json.dumps(row)
    if line not in seen:
        seen.add(line)
        with open(path, "a") as file:
            file.write(line + "\n")


def foreign(value) -> bool:
    """True for the formula of an op that is not the library's, such as one a test wrote: nobody can import it later."""
    from zoo.ops.op import OPS

    name = getattr(value, "op_name", None)
    return name is not None and not OPS[name].module.startswith("zoo.")


def name_of(function) -> str:
    """`module:qualified name` of a jit function."""
    return f"{function.fn.__module__}:{function.fn.__qualname__}"


def class_of(value):
    """What a compiled kernel depends on of an argument; `sample` is its inverse."""
    from zoo.ops.cuda.launcher import int_class

    kind = type(value)
    if kind is DeviceArray:
        return f"*{value.dtype.name}" + ("" if value.pointer & 15 else "/16")
    if kind is tuple:
        return [class_of(v) for v in value]
    return int_class(value) if kind is int else None if value is None else kind.__name__


def general(code, parameter):
    """The class of an argument of a parameter that Triton is told not to specialise, or not on alignment.

    The elements of a tuple it specialises all the same, from 3.6 to 3.9.
    """
    if not isinstance(code, str) or not (parameter.do_not_specialize or parameter.do_not_specialize_on_alignment):
        return code
    if code == "1" and parameter.do_not_specialize:
        code = "i32"
    if parameter.annotation_type in ("i64", "u64") and code[0] != "*":
        code = "i64"  # the type is fixed, whatever the value
    return code.removesuffix("/16")


SAMPLES = {"1": 1, "i32": 17, "i32/16": 16, "i64": 2**33 + 1, "i64/16": 2**33, "u64": 2**63 + 1, "u64/16": 2**63}
SAMPLES |= {"float": 0.5, "bool": True}


class Pointer:
    """Stands in for an array when compiling."""

    def __init__(self, dtype, address):
        self.dtype, self.address = dtype, address

    def data_ptr(self):
        """An address of the wanted alignment."""
        return self.address


def sample(code):
    """An argument of the given class."""
    if code is None or isinstance(code, list):
        return code if code is None else tuple(sample(c) for c in code)
    if code[0] != "*":
        return SAMPLES[code]
    import ml_dtypes

    name, _, aligned = code[1:].partition("/")
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    return Pointer(dtype, 16 if aligned else 8)


def spelled(value):
    """A constexpr in JSON: functions as ["op", name, module] or ["jit", module:name], dtypes as ["dtype", name]."""
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    if isinstance(value, (tuple, list)):
        return ["tuple", *(spelled(v) for v in value)]
    if hasattr(value, "op_name"):
        from zoo.ops.op import OPS

        return ["op", value.op_name, OPS[value.op_name].module]
    if hasattr(value, "fn"):
        return ["jit", name_of(value)]
    if type(value).__name__ == "dtype":
        return ["dtype", value.name]
    raise TypeError(f"record: cannot write down a constexpr of type {type(value).__name__}")


def read(value):
    """The inverse of `spelled`."""
    if not isinstance(value, list):
        return value
    kind, *rest = value
    if kind == "tuple":
        return tuple(read(v) for v in rest)
    if kind == "dtype":
        import triton.language as tl

        return tl.dtype(rest[0])
    if kind == "op":
        from zoo.ops.op import OPS

        import_module(rest[1])  # registers the op
        from zoo.ops.pointwise_gpu import jitted

        return jitted(OPS[rest[0]])
    return find(rest[0])


def find(name: str):
    """The jit function `module:qualified name`."""
    module, _, path = name.partition(":")
    found = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found
