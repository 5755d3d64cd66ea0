"""launch: the one call that runs a kernel.

Its own cache maps what a compiled kernel was specialised on to that kernel, so that a repeated launch goes straight
to Triton's C launcher. Tuples of numbers are arguments like others: a kernel reads `shape[k]` and `len(shape)` with
constant k, which works compiled and interpreted on triton 3.6 and 3.9 (tests/test_cuda.py).
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import numpy as np

from zoo.ops.cuda import mode, record
from zoo.ops.cuda.array import DeviceArray, held
from zoo.ops.cuda.capture import outside
from zoo.ops.cuda.cubin import limits, usage
from zoo.ops.cuda.driver import CudaError, state
from zoo.ops.cuda.mode import is_interpreting
from zoo.ops.cuda.streams import activate  # noqa: F401  (for what is written out)
from zoo.ops.errors import DeviceError

PLAIN = {DeviceArray, int, float, bool, type(None)}
AS_IT_IS = PLAIN - {DeviceArray}
BY_VALUE = {int, float, bool, str, type(None)}
MOST = 2**31
MOST_BESIDE = 65535  # programs in the second and third dimension of a grid

prepared: dict[tuple, "Kernel"] = {}
compile_lock = threading.RLock()


class Numbers(tuple):
    """A tuple of ints that is launched with again and again: what a kernel depends on of it is worked out once.

    Other tuples are looked through in each launch: a matrix product, which has four of these, took 17 us, now 13.
    """

    classes: tuple

    def __new__(cls, values):
        made = super().__new__(cls, values)
        made.classes = spelled(tuple(made))
        return made


def kept(args: tuple) -> tuple:
    """Arguments that a plan keeps: tuples of ints become Numbers."""
    return tuple(Numbers(a) if type(a) is tuple and all(type(v) is int for v in a) else a for a in args)


class Form(NamedTuple):
    """How a type of argument is written out: its value, and what the compiled kernel depends on (argument a, value v).

    A value that is more than the argument itself is worked out first, as v."""

    value: str
    key: str


FORMS: dict[type, Form] = {
    DeviceArray: Form("{a}.pointer", "{a}.dtype.num if {v} & 15 else ~{a}.dtype.num"),
    int: Form("{a}", "{a} & 15 == 0 if 1 < {a} < 2147483648 else int_class({a})"),
    tuple: Form("pointers({a})", "spelled({a})"),
    Numbers: Form("{a}", "{a}.classes"),
    **dict.fromkeys((float, bool, type(None)), Form("{a}", "")),
}
OTHER = Form("plain({a})", "spelled({v})")
ANY_INT = Form("{a}", "-2147483648 <= {a} < 2147483648 or int_class({a})")  # of a parameter that is not specialised
FIXED_INT = Form("{a}", "")  # and whose type is written down
LAUNCH = """
def launch(x, y, z{arguments}):
{lines}    device = {device}
    stream = state.active.get(device) or activate(device)
    key = ({key}device)
    entry = entries.get(key)
    if entry is None:
        entry = entries[key] = compile((x{arguments},)[1:])
    run, function, cooperative, pdl, packed, annotations, signature = entry
    try:
        run(x, y, z, stream.handle, {head}, {values})
    except RuntimeError as e:
        raise failed(name, (x, y, z), e) from e
"""


class Sourced(tuple):
    """A tuple of jit functions as Triton gets it, whose disk cache knows a constexpr by its `cache_key`, else by its
    text: of functions in a tuple only the names, so that an edited stage of an epilogue was served as it had been."""

    cache_key = property(lambda self: "-".join(getattr(v, "cache_key", str(v)) for v in self))


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
        if x and y and z:
            self.starter(tuple(map(type, args)))(x, y, z, *args)

    def starter(self, types: tuple[type, ...]) -> Callable:
        """`run(x, y, z, *args)` for arguments of these types and a grid without a 0; what launches often keeps it."""
        if state.trace is not None:
            return self.note
        return self.written.get(types) or (self.interpret if is_interpreting() else self.write(types))

    def note(self, x: int, y: int, z: int, *args):
        """The same launch in a call that is only written down."""
        state.trace.launch(self, (x, y, z), args)

    def write(self, types: tuple[type, ...]) -> Callable:
        """The launch for arguments of these types, written out: it looks up the compiled kernel and calls it.

        A loop over the arguments took 5.3 us a launch with 16 of them, this 3.0 (scripts/bench/launch.py).
        """
        from zoo.ops.cuda.triton_driver import AS_TUPLE, HEAD

        if len(types) != len(self.names):
            raise TypeError(f"{self.function.__name__}: wants {self.names}, got {len(types)} arguments")
        lines, key, values, constants = [], [], [], {}
        given = iter(enumerate(types))
        for p in self.function.params:
            if p.is_constexpr:
                values.append(f"c{len(constants)}")
                constants[values[-1]] = self.constants[p.name]
                continue
            k, kind = next(given)
            form, a = form_of(p, kind), f"a{k}"
            values.append(a if form.value == "{a}" else f"v{k}")
            if form.value != "{a}":
                lines.append(f"    v{k} = {form.value.format(a=a)}\n")
            if form.key:
                key.append(form.key.format(a=a, v=f"v{k}"))
        arrays = [k for k, kind in enumerate(types) if kind is DeviceArray]
        text = LAUNCH.format(
            arguments="".join(f", a{k}" for k in range(len(types))),
            lines="".join(lines),
            device=f"a{arrays[0]}.device" if arrays else "state.device",
            key="".join(f"{part}, " for part in key),
            head=HEAD,
            values=f"({', '.join(values)},)" if AS_TUPLE else ", ".join(values),
        )
        exec(text, space := {**globals(), **constants, "compile": self.compile, "entries": {},
                              "name": self.function.__name__})
        self.written[types] = space["launch"]
        return space["launch"]

    def named(self, args) -> dict:
        """Arguments by name, plain."""
        if len(args) != len(self.names):
            raise TypeError(f"{self.function.__name__}: wants {self.names}, got {len(args)} arguments")
        return {n: a if type(a) in PLAIN else plain(a) for n, a in zip(self.names, args, strict=True)}

    def interpret(self, x: int, y: int, z: int, *args):
        """The same launch on host memory."""
        grid, arguments = (x, y, z), self.named(args)
        if x >= MOST or max(y, z) > MOST_BESIDE:
            raise ValueError(f"{self.function.__name__}: a GPU takes no grid of {grid} programs")
        if record.path:
            record.add(self, arguments)
        if record.listener is not None:
            record.listener(self, grid, arguments)
        if mode.dry:
            return
        from zoo.ops.cuda import interpreter

        if state.graph is not None:
            arguments = {name: held(a) if type(a) is DeviceArray else a for name, a in arguments.items()}
        num_warps, _, cooperative, _ = self.options
        run = partial(interpreter.launch, self.function, grid, arguments, self.constants, 32 * num_warps, cooperative)
        if state.graph is None:
            run()
        else:
            state.graph.steps.append(run)

    def compile(self, args):
        """What starts the kernel for these arguments: compiled, or from Triton's disk cache, and loaded."""
        from zoo.ops.cuda import triton_driver

        arguments = self.named(args)
        with compile_lock, outside():  # loading a module is no part of a graph
            triton_driver.install()
            found = self.warm(arguments)
            try:
                return self.loaded(found)
            except RuntimeError:
                raise
            except Exception as e:  # triton's OutOfResources derives from Exception alone
                raise RuntimeError(f"{self.function.__name__}: {e}") from e

    def loaded(self, found) -> tuple:
        """What `triton_driver.direct` gives; a second try, if the memory pool had taken what a module needs."""
        from zoo.ops.cuda import pool, triton_driver

        try:
            return triton_driver.direct(found)
        except RuntimeError as e:
            if "out of memory" not in str(e).lower().replace("_", " "):
                raise
        pool.make_room(triton_driver.current_context())
        return triton_driver.direct(found)

    def warm(self, arguments):
        """Triton's CompiledKernel for the active driver's target, not launched.

        Where the assembler spills, other limits of registers are tried, and what spills least is taken. Which limit
        helps is the luck of a version and a family: of 1,576 launches for sm_80, Triton 3.6 left 31 with 8 to 32 bytes
        on the stack and 3.9 three others; 9 and none are left.
        """
        from triton.runtime.errors import PTXASError

        num_warps, _, _, limit = self.options
        found = self.built(arguments, limit)
        least = usage(found.asm["cubin"])
        for other in limits(least.registers, num_warps, limit) if least.stack else ():
            with suppress(PTXASError):                    # instructions of whole warp groups refuse some limits
                again = self.built(arguments, other)
                taken = usage(again.asm["cubin"])
                if taken.stack < least.stack:
                    found, least = again, taken
            if not least.stack:
                break
        return found

    def built(self, arguments, limit: int | None):
        """Triton's CompiledKernel with at most so many registers a thread, or as the assembler likes."""
        num_warps, num_stages, cooperative, _ = self.options
        options = dict(num_warps=num_warps, num_stages=num_stages, launch_cooperative_grid=bool(cooperative))
        constants = {name: Sourced(v) if type(v) is tuple else v for name, v in self.constants.items()}
        return self.function.warmup(grid=(1,), maxnreg=limit, **options, **arguments, **constants)


def failed(name: str, grid: tuple[int, ...], error: RuntimeError) -> CudaError:
    """The error of a launch that the driver refused."""
    return CudaError(f"{name}, grid {grid}: {error}; it may be of work that was launched before")


def form_of(parameter, kind: type) -> Form:
    """How an argument of this type is written out, for this parameter of a kernel."""
    if kind is int and parameter.do_not_specialize:
        return FIXED_INT if parameter.annotation_type else ANY_INT
    return FORMS.get(kind, OTHER)


def launch(kernel, grid, *args, num_warps=4, num_stages=2, cooperative=False, maxnreg=None, **constexprs):
    """Runs `kernel`, a `@triton.jit` function, for every program of `grid` on the current stream.

    `args` are the parameters that are not constexpr, in order: DeviceArray, int, float, bool, None, or a tuple of
    numbers; constexprs go by name. A Python float arrives as float32 unless the parameter is annotated `"fp64"`.
    A grid with a 0 launches nothing. `cooperative` makes it an error if not all programs run at the same time.
    `maxnreg` is the most registers of a thread; what spills with it, or without, is compiled with other limits too.
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
        key += (kind, v) if kind in BY_VALUE else key_of_members(v) if kind is tuple else (kind, id(v))
    return tuple(key)


def key_of_members(values: tuple) -> tuple:
    """What a tuple among the constexprs is found by: equal ones are one, whoever made them."""
    members = [(kind, v) if (kind := type(v)) in BY_VALUE else key_of_members(v) if kind is tuple else (kind, id(v))
               for v in values]
    return tuple, tuple(members)


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
    """A tuple as `plain` has it, its arrays as addresses: Triton would ask the driver about each array object."""
    return tuple([
        v if (kind := type(v)) in AS_IT_IS
        else v.pointer if kind is DeviceArray
        else pointers(v) if kind is tuple or kind is list
        else plain(v)
        for v in values
    ])


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
        return tuple([int_class(v) if type(v) is int else spelled(v) for v in value])
    if kind is DeviceArray:
        return value.dtype.num if value.pointer & 15 else ~value.dtype.num
    if kind is int:
        return int_class(value)
    return kind if kind in PLAIN else spelled(plain(value))
