"""launch: the one call that runs a kernel.

Its own cache maps what a compiled kernel was specialised on to that kernel, so that a repeated launch goes straight
to Triton's C launcher. Tuples of numbers are arguments like others: a kernel reads `shape[k]` and `len(shape)` with
constant k, which works compiled and interpreted on triton 3.6 and 3.9 (tests/test_cuda.py).
"""

import threading
from functools import partial

import numpy as np

from zoo.ops.cuda import mode, record
from zoo.ops.cuda.array import DeviceArray, held
from zoo.ops.cuda.capture import outside
from zoo.ops.cuda.driver import state, use
from zoo.ops.cuda.mode import is_interpreting
from zoo.ops.cuda.streams import current_stream
from zoo.ops.errors import DeviceError

PLAIN = {DeviceArray, int, float, bool, type(None)}
BY_VALUE = {int, float, bool, str, type(None)}
SMALL = ("i32/16", *["i32"] * 15)  # class of an int that fits 32 bits and is not 1, by its last four bits
MOST = 2**31

prepared: dict[tuple, "Kernel"] = {}
compile_lock = threading.RLock()


class Kernel:
    """A `@triton.jit` function with its constexprs and options: `kernel(grid, *args)` launches it.

    `prepare` makes one per combination.
    """

    __slots__ = ("compiled", "constants", "function", "names", "options", "trailing")

    def __init__(self, function, num_warps=4, num_stages=2, cooperative=False, maxnreg=None, **constexprs):
        self.function = function
        self.options = num_warps, num_stages, cooperative, maxnreg
        self.names = [p.name for p in function.params if not p.is_constexpr]
        wanted = [p.name for p in function.params if p.is_constexpr]
        values = {p.name: p.default for p in function.params if p.is_constexpr and p.has_default} | constexprs
        if sorted(values) != sorted(wanted):
            raise TypeError(f"{function.__name__}: wants constexprs {wanted}, got {sorted(values)}")
        self.constants = {name: values[name] for name in wanted}
        self.trailing = [p.name for p in function.params] == self.names + wanted
        self.compiled: dict[tuple, tuple] = {}

    def __call__(self, grid, *args):
        x, y, z = grid if len(grid) == 3 else (*grid, 1, 1)[:3]
        if not (x and y and z):
            return
        if is_interpreting():
            self.interpret((x, y, z), args)
            return
        values, key, device = [], [], -1
        for a in args:
            kind = type(a)
            if kind is DeviceArray:
                pointer = a.pointer
                values.append(pointer)
                key.append(a.dtype.num if pointer & 15 else ~a.dtype.num)  # what Triton specialises on: alignment
                device = a.device
            elif kind is int:
                values.append(a)
                key.append(SMALL[a & 15] if a != 1 and -MOST <= a < MOST else int_class(a))
            elif a is None:
                values.append(a)
                key.append(a)
            else:
                a = a if kind in PLAIN else plain(a)
                values.append(a)
                key.append(spelled(a))
        if device < 0:
            device = state.device
        if state.context != device:
            use(device)
        key.append(device)
        entry = self.compiled.get(key := tuple(key)) or self.compile(key, args)
        run, function, metadata, tail = entry
        if self.trailing:
            values += tail
        else:
            values = self.in_order(values)
        run(x, y, z, current_stream(device).handle, function, metadata, None, None, None, *values)

    def in_order(self, values):
        """Arguments and constexprs in the order in which the kernel mixes them."""
        arguments = iter(values)
        return [self.constants[p.name] if p.is_constexpr else next(arguments) for p in self.function.params]

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
        if mode.dry:
            return
        from zoo.ops.cuda import interpreter

        if state.graph is None:
            interpreter.launch(self.function, grid, arguments, self.constants)
        else:
            arguments = {name: held(a) if type(a) is DeviceArray else a for name, a in arguments.items()}
            state.graph.steps.append(partial(interpreter.launch, self.function, grid, arguments, self.constants))

    def compile(self, key, args):
        """Compiles for this key, or takes it from Triton's disk cache, and loads it onto the current device."""
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
            tail = tuple(self.constants.values())
            self.compiled[key] = entry = run, found.function, found.packed_metadata, tail
        return entry

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
    prepare(kernel, num_warps, num_stages, cooperative, maxnreg, **constexprs)(grid, *args)


def prepare(kernel, num_warps=4, num_stages=2, cooperative=False, maxnreg=None, **constexprs) -> Kernel:
    """The one `Kernel` for this function, these constexprs and options; what launches often keeps it."""
    key = [id(kernel), num_warps, num_stages, cooperative, maxnreg, *constexprs]
    for v in constexprs.values():  # hashing a jit function or a dtype of Triton takes longer than all the rest
        kind = type(v)
        key += (kind, v) if kind in BY_VALUE else (kind, id(v))
    found = prepared.get(key := tuple(key))
    if found is None:
        found = prepared[key] = Kernel(kernel, num_warps, num_stages, cooperative, maxnreg, **constexprs)
    return found


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
