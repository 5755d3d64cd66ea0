"""What an op launches, remembered: its second call with arguments of some layout is traced, later ones repeat it.

Which kernels an op launches on which grid, after which checks and copies, takes 15 to 80 us of Python to work out, and
is the same for all arrays of equal shapes, strides and dtypes. So a launcher that is marked `@remembered` runs, when
such arrays come again, on arrays without memory, while a Trace writes down what it allocates and launches. That text is
the function for all later calls: 2 us to find it, 2.5 us an array, 1 us a launch (scripts/bench/launch.py).

The launcher itself stays straight-line code and knows nothing of this. It promises that what it does depends on nothing
but shapes, strides, dtypes, device and place within 16 bytes of its arrays, on its other arguments, which are few
different ones and alike if they are equal, and on the settings in CALL. What waits for values or copies from the host
cannot be written down (capture.Untraceable), and is worked out anew each time. Streams, captures and memory pools are
no part of the text: each call finds the present ones. Seed and offset of a draw are other numbers in each call: the
launcher may only hand them on (capture.Live).
"""

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from zoo.ops.cuda import ledger
from zoo.ops.cuda.array import DeviceArray, contiguous_strides, new
from zoo.ops.cuda.capture import Live, Untraceable
from zoo.ops.cuda.driver import state
from zoo.ops.cuda.launcher import PLAIN, Kernel, failed, form_of, plain
from zoo.ops.cuda.mode import is_interpreting
from zoo.ops.cuda.streams import activate
from zoo.ops.op import signature

MOST = 4096  # calls remembered per op
NOWHERE = -1  # the device of traced arrays
BEGIN, SPACE = 1 << 57, 1 << 44  # traced arrays' addresses: behind those of any GPU, and so far apart
numbers = itertools.count()  # of traced arrays in all threads: their addresses are keys of one ledger

marked: set[Callable] = set()
known: list[dict[tuple, Callable]] = []  # of every op, the calls it remembers

# A call that is known. A list or a host array cannot be part of a key: `first` finds the one, and moves the other to
# the GPU.
CALL = """
def call({all}):
    try:
        run = runs.get(({keys}Default.dtype, Precision.float32, gpu_configs.forced))
    except TypeError:
        run = None
    return first({all}) if run is None{captured} else run({all})
"""
KEY = ("({a}.shape, {a}.strides, {a}.dtype, {a}.device, {a}.pointer & 15) if type({a}) is DeviceArray "
       "else (type({a}), {a} if type({a}) is not float or {a} else str({a})), ")  # 0.0 == -0.0
LIVE, LIVE_KEY = ("seed", "offset"), "type({a}), "  # of a draw: no part of the key but by type
CAPTURED = " or state.graph is not None"  # a captured draw takes them from the graph
STREAM = "stream = (state.active.get(device) or activate(device)).handle"


def remembered(launcher: Callable) -> Callable:
    """Marks the function that launches an op's kernels as one that keeps the promise above."""
    marked.add(launcher)
    return launcher


def forget():
    """Forgets all calls: after a change of what launchers read beside their arguments, as tests make it."""
    for runs in known:
        runs.clear()


def remembering(op: Any, launcher: Callable, guarded: Callable) -> Callable:
    """The function that runs an op whose launcher is marked; it remembers what `guarded` let through."""
    from zoo.ops import gpu_configs
    from zoo.ops.dtypes import Default
    from zoo.ops.matmul import Precision

    runs: dict[tuple, Callable] = {}
    known.append(runs)
    live = live_among(signature(launcher)[0])

    def first(*args):
        """A call with arguments of a new layout, or with arrays inside of an argument, which CALL does not look at."""
        if state.trace is not None or live and state.graph is not None:  # inside of another op, or of a captured step
            return launcher(*args)
        key = (*(type(a) if k in live else layout(a) for k, a in enumerate(args)),
               Default.dtype, Precision.float32, gpu_configs.forced)
        run = runs.get(key)
        if run is not None:
            return run(*args)
        result = launcher(*args)
        if len(runs) >= MOST:
            runs.clear()
        runs[key] = partial(second, key)
        return result

    def second(key, *args):
        """A layout that comes again: one that does not is spared the 0.2 ms and more that writing it down takes."""
        run = runs[key] = traced(launcher, args, live)
        return run(*args)

    def call_of(count: int) -> Callable:
        names = [f"a{k}" for k in range(count)]
        keys = "".join((LIVE_KEY if k in live else KEY).format(a=a) for k, a in enumerate(names))
        exec(CALL.format(all=", ".join(names), keys=keys, captured=CAPTURED * bool(live)), space := {
            "DeviceArray": DeviceArray, "Default": Default, "Precision": Precision, "runs": runs, "state": state,
            "gpu_configs": gpu_configs, "first": guarded(op, first)})
        return space["call"]

    return call_of(op.arity) if op.arity >= 0 else by_count(call_of)


def by_count(call_of: Callable) -> Callable:
    """call_of(n)(*args) for n arguments: of an op that takes any number."""
    calls: dict[int, Callable] = {}

    def call(*args):
        count = len(args)
        return (calls.get(count) or calls.setdefault(count, call_of(count)))(*args)
    return call


def live_among(names: Sequence[str]) -> frozenset[int]:
    """Which parameters differ from call to call: those of a draw, (seed, offset)."""
    return frozenset(map(names.index, LIVE)) if set(LIVE) <= set(names) else frozenset()


def layout(a: Any) -> tuple:
    """What is remembered of an argument, as KEY has it; of a tuple with arrays that of each."""
    if type(a) is DeviceArray:
        return a.shape, a.strides, a.dtype, a.device, a.pointer & 15
    if type(a) is float and not a:
        return float, str(a)
    return type(a), tuple(map(layout, a)) if has_array(a) else tuple(a) if type(a) is list else a


def has_array(a: Any) -> bool:
    """Is this a tuple or list with arrays in it?"""
    return isinstance(a, (tuple, list)) and any(type(v) is DeviceArray or has_array(v) for v in a)


def device_of(args: tuple) -> int:
    """The device of the arrays among the arguments."""
    return next(a.device if type(a) is DeviceArray else device_of(a)
                for a in args if type(a) is DeviceArray or has_array(a))


def traced(launcher: Callable, args: tuple, live: frozenset[int] = frozenset()) -> Callable:
    """What a launcher does with arguments of this layout, written out; itself if that cannot be written down."""
    trace = Trace(device_of(args))
    given = [trace.number(a, f"a{k}") if k in live else trace.argument(a, f"a{k}") for k, a in enumerate(args)]
    before = state.trace, state.device
    state.trace, state.device = trace, trace.device
    try:
        return trace.written(launcher(*given), given)
    except Untraceable:
        return launcher
    finally:
        state.trace, state.device = before


def settled(a: Any) -> Any:
    """An argument of a launch with the value of this call."""
    return int.__int__(a) if type(a) is Live else a


class Block:
    """The memory of a traced array: its name in the text, and an address."""

    __slots__ = ("name", "pointer", "trace")

    def __init__(self, trace: "Trace", name: str, pointer: int):
        self.trace, self.name, self.pointer = trace, name, pointer

    def __del__(self):
        self.trace.free(self)


class Trace:
    """Writes down what a launcher does. Its arguments are a0, a1 ... in the text, what it allocates b0, b1 ..."""

    def __init__(self, device: int):
        self.device = device
        self.lines: list[str] = []
        self.open: dict[str, tuple[int, int, int]] = {}  # of new blocks whose line is not written: it, bytes, address
        self.space: dict[str, Any] = {"DeviceArray": DeviceArray, "new": new, "state": state, "activate": activate,
                                      "failed": failed, "device": device}

    def argument(self, a: Any, name: str) -> Any:
        """An argument as the launcher gets it."""
        if has_array(a):
            parts = [self.argument(v, f"{name}[{k}]") for k, v in enumerate(a)]
            return type(a)(*parts) if hasattr(a, "_fields") else type(a)(parts)
        if type(a) is not DeviceArray:
            return a
        block = self.block(name, a.pointer & 15)
        return DeviceArray(block.pointer, a.shape, a.strides, a.dtype, block, NOWHERE)

    def number(self, value: int, name: str) -> Live:
        """An argument that differs from call to call, as the launcher gets it."""
        live = Live(value)
        live.name = name
        return live

    def block(self, name: str, place: int = 0) -> Block:
        """Memory of that name, so many bytes behind an aligned address."""
        return Block(self, name, BEGIN + next(numbers) % 2**17 * SPACE + place)

    def allocate(self, nbytes: int, device: int) -> Block:
        """Stands in for the class of a new array's memory."""
        block = self.block(f"b{len(self.lines)}")
        self.open[block.name] = len(self.lines), nbytes, block.pointer
        self.lines.append("")
        return block

    def lay(self, name: str, *given: Any):
        """Writes the line of a new array: shape, strides and dtype, by default those it was made with."""
        line, nbytes, pointer = self.open.pop(name)
        _, shape, dtype, *_ = ledger.live[pointer]
        layout = map(self.constant, given or (shape, contiguous_strides(shape), dtype))
        self.lines[line] = f"{name} = new({', '.join(layout)}, {nbytes}, device)"

    def free(self, block: Block):
        """Nobody refers to a block any more."""
        if block.name in self.open:
            self.lay(block.name)
            self.lines.append(f"del {block.name}")
        ledger.live.pop(block.pointer, None)

    def launch(self, kernel: Kernel, grid: tuple[int, ...], args: tuple):
        """A launch: in the interpreter that, else the call of Triton's C launcher for the compiled kernel.

        That is compiled for what these arguments are, so a number that differs from call to call has a type of its own.
        """
        runtime = [p for p in kernel.function.params if not p.is_constexpr]
        for p, a in zip(runtime, args, strict=True):
            if type(a) is Live and form_of(p, int).key:
                raise TypeError(f"{kernel.function.__name__}: {p.name} wants a type, and to be in do_not_specialize")
        if is_interpreting():
            self.call(kernel.interpret, *grid, *args)
            return
        from zoo.ops.cuda.triton_driver import AS_TUPLE, HEAD

        if STREAM not in self.lines:
            activate(self.device)
            self.lines.append(STREAM)
        fields = "run", "function", "cooperative", "pdl", "packed", "annotations", "signature"
        compiled = dict(zip(fields, map(self.constant, kernel.compile(tuple(map(settled, args)))), strict=True))
        head = ", ".join(compiled.get(name, name) for name in HEAD.split(", "))
        given = iter(args)
        values = ", ".join(
            self.constant(kernel.constants[p.name]) if p.is_constexpr else self.text(next(given), self.address)
            for p in kernel.function.params)
        at = ", ".join(map(str, grid))
        self.lines.append(f"try: {compiled['run']}({at}, stream, {head}, {f'({values},)' if AS_TUPLE else values})")
        self.lines.append(f"except RuntimeError as e: raise failed({kernel.function.__name__!r}, {grid}, e) from e")

    def call(self, function: Callable, *args):
        """A call that gets arrays and returns nothing."""
        self.lines.append(f"{self.constant(function)}({', '.join(self.text(a, self.view) for a in args)})")

    def written(self, result: Any, given: list) -> Callable:
        """All of it as a function that returns what the launcher returned."""
        returned = self.result(result, {id(a): f"a{k}" for k, a in enumerate(given)})
        for name in list(self.open):
            self.lay(name)
        while self.lines and self.lines[-1].startswith("del "):  # returning does that too
            self.lines.pop()
        names = ", ".join(f"a{k}" for k in range(len(given)))
        text = "\n    ".join([f"def run({names}):", *self.lines, f"return {returned}"])
        exec(text, self.space)
        return self.space["run"]

    def result(self, value: Any, given: dict[int, str]) -> str:
        """What is returned; a new array is allocated with the strides that it is returned with."""
        if type(value) is tuple:
            return f"({''.join(self.result(v, given) + ', ' for v in value)})"
        if type(value) is not DeviceArray:
            if has_array(value):
                raise Untraceable("returns arrays inside of what is no tuple")
            return self.constant(value)
        if id(value) in given:
            return given[id(value)]
        name, offset = self.place(value)
        if offset or name not in self.open:
            return self.view(value)
        self.lay(name, value.shape, value.strides, value.dtype)
        return name

    def text(self, value: Any, array: Callable) -> str:
        """An argument of a launch."""
        if type(value) is DeviceArray:
            return array(value)
        if type(value) is Live:
            return value.name
        if has_array(value):
            return f"({''.join(self.text(v, array) + ', ' for v in value)})"
        return self.constant(value if type(value) in PLAIN else plain(value))

    def constant(self, value: Any) -> str:
        """What is the same at every call."""
        if value is None or type(value) in (int, bool):
            return str(value)
        name = f"c{len(self.space)}"
        self.space[name] = value
        return name

    def place(self, x: DeviceArray) -> tuple[str, int]:
        """The name of the memory in which x lies, and how many bytes behind its begin; a table of the library's own is
        a constant."""
        if type(x.owner) is not Block:
            return self.constant(x), 0
        return x.owner.name, x.pointer - x.owner.pointer

    def address(self, x: DeviceArray) -> str:
        """Where x lies."""
        name, offset = self.place(x)
        return f"{name}.pointer + {offset}" if offset else f"{name}.pointer"

    def view(self, x: DeviceArray) -> str:
        """x as an array."""
        layout = ", ".join(map(self.constant, (x.shape, x.strides, x.dtype)))
        return f"DeviceArray({self.address(x)}, {layout}, {self.place(x)[0]}.owner, device)"
