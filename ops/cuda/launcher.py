"""launch: the one call that runs a kernel.

Its own cache maps what a compiled kernel was specialised on to that kernel, so that a repeated launch goes straight
to Triton's C launcher. Tuples of numbers are arguments like others: a kernel reads `shape[k]` and `len(shape)` with
constant k, which works compiled and interpreted on triton 3.6 and 3.9 (tests/test_cuda.py).
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from zoo.ops.cuda import mode, record
from zoo.ops.cuda.array import DeviceArray, held
from zoo.ops.cuda.capture import outside
from zoo.ops.cuda.driver import state, use  # noqa: F401  (for what is written out)
from zoo.ops.cuda.mode import is_interpreting
from zoo.ops.cuda.streams import first_stream  # noqa: F401
from zoo.ops.errors import DeviceError

PLAIN = {DeviceArray, int, float, bool, type(None)}
BY_VALUE = {int, float, bool, str, type(None)}
MOST = 2**31

prepared: dict[tuple, "Kernel"] = {}
compile_lock = threading.RLock()


class Form(NamedTuple):
    """How a type of argument is written out: statements, and what the compiled kernel depends on (argument k)."""

    lines: tuple[str, ...]
    key: tuple[str, ...]


FORMS: dict[type, Form] = {
    DeviceArray: Form(("v{k} = a{k}.pointer",), ("a{k}.dtype.num if v{k} & 15 else ~a{k}.dtype.num",)),
    int: Form(("v{k} = a{k}",), ("a{k} & 15 == 0 if 1 < a{k} < 2147483648 else int_class(a{k})",)),
    tuple: Form(("v{k} = pointers(plain(a{k}))",), ("spelled(plain(a{k}))",)),
    **dict.fromkeys((float, bool, type(None)), Form(("v{k} = a{k}",), ())),
}
OTHER = Form(("v{k} = plain(a{k})",), ("spelled(v{k})",))
LAUNCH = """
def launch(x, y, z{arguments}):
{lines}    device = {device}
    if state.context != device:
        use(device)
    key = ({key}device,)
    entry = entries.get(key)
    if entry is None:
        entry = entries[key] = compile((x{arguments},)[1:])
    stream = state.streams.get(device) or first_stream(device)
    entry[0](x, y, z, stream.handle, entry[1], entry[2], None, None, None{values})
"""


class Kernel:
    """A `@triton.jit` function with its constexprs and options: `kernel(grid, *args)` launches it.

    `prepare` makes one per combination.
    """

    __slots__ = ("constants", "function", "names", "options", "written")

    def __init__(self, function, num_warps=4, num_stages=2, cooperative=False, maxnreg=None, **constexprs):
        self.function = function
        self.options = num_warps, num_stages, cooperative, maxnreg
        self.names = [p.name for p in function.params if not p.is_constexpr]
        wanted = [p.name for p in function.params if p.is_constexpr]
        values = {p.name: p.default for p in function.params if p.is_constexpr and p.has_default} | constexprs
        if sorted(values) != sorted(wanted):
            raise TypeError(f"{function.__name__}: wants constexprs {wanted}, got {sorted(values)}")
        self.constants = {name: values[name] for name in wanted}
        self.written: dict[tuple[type, ...], Callable] = {}

    def __call__(self, grid, *args):
        self.start(grid, args)

    def start(self, grid: tuple[int, ...], args: tuple):
        """Launches it, or runs it in the interpreter."""
        if len(grid) == 1:
            (x,), y, z = grid, 1, 1
        else:
            x, y, z = grid if len(grid) == 3 else (*grid, 1)
        if not (x and y and z):
            return
        if is_interpreting():
            self.interpret((x, y, z), args)
            return
        types = tuple(map(type, args))
        (self.written.get(types) or self.write(types))(x, y, z, *args)

    def write(self, types: tuple[type, ...]) -> Callable:
        """The launch for arguments of these types, written out: it looks up the compiled kernel and calls it.

        A loop over the arguments took 5.3 us a launch with 16 of them, this 4.0 (scripts/bench/launch.py).
        """
        if len(types) != len(self.names):
            raise TypeError(f"{self.function.__name__}: wants {self.names}, got {len(types)} arguments")
        lines, key, arguments = [], [], [f"a{k}" for k in range(len(types))]
        for k, kind in enumerate(types):
            form = FORMS.get(kind, OTHER)
            lines += [line.format(k=k) for line in form.lines]
            key += [text.format(k=k) for text in form.key]
        arrays = [k for k, kind in enumerate(types) if kind is DeviceArray]
        values, constants = (iter([f"{n}{k}" for k in range(len(self.function.params))]) for n in "vc")
        text = LAUNCH.format(
            arguments="".join(f", {a}" for a in arguments),
            lines="".join(f"    {line}\n" for line in lines),
            device=f"a{arrays[0]}.device" if arrays else "state.device",
            key="".join(f"{part}, " for part in key),
            values="".join(f", {next(constants if p.is_constexpr else values)}" for p in self.function.params),
        )
        named = {f"c{k}": value for k, value in enumerate(self.constants.values())}
        exec(text, space := {**globals(), **named, "compile": self.compile, "entries": {}})
        self.written[types] = space["launch"]
        return space["launch"]

    def named(self, args) -> dict:
        """Arguments by name, plain."""
        if len(args) != len(self.names):
            raise TypeError(f"{self.function.__name__}: wants {self.names}, got {len(args)} arguments")
        return {n: a if type(a) in PLAIN else plain(a) for n, a in zip(self.names, args, strict=True)}

    def interpret(self, grid, args):
        """The same launch on host memory."""
        arguments = self.named(args)
        if record.path:
            record.add(self, arguments)
        if record.listener is not None:
            record.listener(self, grid, arguments)
        if mode.dry:
            return
        from zoo.ops.cuda import interpreter

        if state.graph is None:
            interpreter.launch(self.function, grid, arguments, self.constants)
        else:
            arguments = {name: held(a) if type(a) is DeviceArray else a for name, a in arguments.items()}
            state.graph.steps.append(partial(interpreter.launch, self.function, grid, arguments, self.constants))

    def compile(self, args):
        """(run, function, metadata) for these arguments: compiled, or from Triton's disk cache, and loaded."""
        from zoo.ops.cuda import triton_driver

        arguments = self.named(args)
        with compile_lock, outside():  # loading a module is no part of a graph
            triton_driver.install()
            found = self.warm(arguments)
            try:
                run = found.run  # loads the module
            except RuntimeError:
                raise
            except Exception as e:  # triton's OutOfResources derives from Exception alone
                raise RuntimeError(f"{self.function.__name__}: {e}") from e
            return run, found.function, found.packed_metadata

    def warm(self, arguments):
        """Triton's CompiledKernel for the active driver's target, not launched."""
        num_warps, num_stages, cooperative, maxnreg = self.options
        options = dict(num_warps=num_warps, num_stages=num_stages, launch_cooperative_grid=bool(cooperative))
        return self.function.warmup(grid=(1,), maxnreg=maxnreg, **options, **arguments, **self.constants)


def launch(kernel, grid, *args, num_warps=4, num_stages=2, cooperative=False, maxnreg=None, **constexprs):
    """Runs `kernel`, a `@triton.jit` function, for every program of `grid` on the current stream.

    `args` are the parameters that are not constexpr, in order: DeviceArray, int, float, bool, None, or a tuple of
    numbers; constexprs go by name. A Python float arrives as float32 unless the parameter is annotated `"fp64"`.
    A grid with a 0 launches nothing. `cooperative` makes it an error if not all programs run at the same time.
    `maxnreg` is the most registers of a thread; without it the assembler spills a few to fit more programs at once.
    """
    options = num_warps, num_stages, cooperative, maxnreg
    found = prepared.get(key_of(kernel, options, constexprs)) or prepare(kernel, *options, **constexprs)
    found.start(grid, args)


def prepare(kernel, num_warps=4, num_stages=2, cooperative=False, maxnreg=None, **constexprs) -> Kernel:
    """The one `Kernel` for this function, these constexprs and options; what launches often keeps it."""
    options = num_warps, num_stages, cooperative, maxnreg
    key = key_of(kernel, options, constexprs)
    found = prepared.get(key)
    if found is None:
        found = prepared[key] = Kernel(kernel, *options, **constexprs)
    return found


def key_of(kernel, options: tuple, constexprs: dict) -> tuple:
    """What a Kernel is found by. Hashing a jit function or a dtype of Triton would take longer than all the rest."""
    key = [id(kernel), *options, *constexprs]
    for v in constexprs.values():
        kind = type(v)
        key += (kind, v) if kind in BY_VALUE else (kind, id(v))
    return tuple(key)


def plain(value):
    """An argument as one of DeviceArray, int, float, bool, None or a tuple of them."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        raise DeviceError(f"launch: wants arrays on the GPU, got a NumPy array of shape {value.shape} on the CPU")
    if isinstance(value, (tuple, list)):
        return tuple(v if type(v) in PLAIN else plain(v) for v in value)
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"launch: wants DeviceArray, int, float, bool, None or a tuple, got {type(value).__name__}")


def pointers(values: tuple) -> tuple:
    """A tuple's arrays as addresses: Triton's launcher would ask the driver about each array object."""
    return tuple([v.pointer if type(v) is DeviceArray else pointers(v) if type(v) is tuple else v for v in values])


def int_class(value: int) -> str:
    """What Triton specialises an integer on."""
    if value == 1:
        return "1"
    size = "i32" if -MOST <= value < MOST else "i64" if value < 2**63 else "u64"
    return size if value & 15 else f"{size}/16"


def spelled(value) -> object:
    """The class of an argument in the launch cache's key."""
    kind = type(value)
    if kind is tuple:
        return tuple(int_class(v) if type(v) is int else spelled(v) for v in value)
    if kind is DeviceArray:
        return value.dtype.num if value.pointer & 15 else ~value.dtype.num
    return kind
