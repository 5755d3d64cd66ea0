"""While work is recorded into a CUDA graph: what cannot be recorded and says so, and what is done at once all the same.

A replay runs kernels and copies, and no Python. So whatever waits for the GPU, or gives the step's Python code values
from it, is refused by name; what the host computes anew for each step (an optimizer's numbers, the place in a stream
of random numbers) is read by the kernels from device memory, which the host writes before a replay where it has to.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from zoo.ops.cuda.driver import check, cuda, state
from zoo.ops.cuda.mode import is_interpreting


class CaptureError(RuntimeError):
    """A step that is captured does what a CUDA graph cannot repeat."""


class Untraceable(RuntimeError):
    """A launcher does what depends on more than its arguments' layouts."""


class Live(int):
    """A number that differs from call to call, as a traced launcher gets it: it may be handed on to a kernel."""

    name: str

    def refuse(self, *_):
        """What is computed with it would be a constant."""
        raise Untraceable("computes with a number that differs from call to call")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = __and__ = refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __int__ = __hash__ = refuse  # type: ignore[assignment]


class StaleGraph(RuntimeError):
    """A captured step does not fit any more: what was fixed when it was captured has changed."""


def is_capturing() -> bool:
    """True while this thread's work is recorded into a graph."""
    return state.graph is not None


is_current_stream_capturing = is_capturing


def refuse(why: str):
    """Raises CaptureError, with the op and the user's line, if a capture is under way; Untraceable in a trace."""
    if state.trace is not None:
        raise Untraceable(why)
    if state.graph is not None:
        name, line = place(sys._getframe(1))
        raise CaptureError(f"{name}: {why}; a captured step cannot do that; called at {line}")


def place(frame: Any) -> tuple[str, str]:
    """The name of the op that runs, and the first line outside of zoo that led to it."""
    op = outermost = None
    while frame is not None and inside_zoo(frame):
        here = frame.f_locals.get("op")
        if op is None and hasattr(here, "handlers"):
            op = here.name
        if frame.f_globals.get("__name__", "").startswith(("zoo.ops.", "zoo.autograd.", "zoo.optim.")):
            outermost = frame.f_code.co_name
        frame = frame.f_back
    line = "no line of a script" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
    return op or outermost or "step", line


def inside_zoo(frame: Any) -> bool:
    """Is this the library's code, or text that it wrote (record.py)?"""
    return frame.f_code.co_filename == "<string>" or frame.f_globals.get("__name__", "").startswith("zoo.")


@contextlib.contextmanager
def outside() -> Iterator[None]:
    """Inside, the driver does at once what it is told, on a stream that is not recorded, though a capture goes on."""
    graph, pool = state.graph, state.pool
    if graph is None:
        yield
        return
    state.graph = state.pool = None
    try:
        if is_interpreting():
            yield
        else:
            with relaxed():
                yield
    finally:
        state.graph, state.pool = graph, pool


@contextlib.contextmanager
def relaxed() -> Iterator[None]:
    """The part of `outside` that is CUDA's: this thread may allocate and wait, on the default stream."""
    from zoo.ops.cuda.streams import default_stream, stream

    cu = cuda()
    mode = check(cu.cuThreadExchangeStreamCaptureMode(cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    try:
        with stream(default_stream()):
            yield
            default_stream().synchronize()
    finally:
        check(cu.cuThreadExchangeStreamCaptureMode(mode))


class Numbers:
    """float64 numbers that the host computes for each replay, in device memory.

    Args:
        values: those of the first replay.
        again: gives those of a later one; StaleGraph if the graph fits no more.
        undo: takes back what the last `again` did on the host.
    """

    def __init__(self, values: Sequence[float], again: Callable[[], Sequence[float]], undo: Callable[[], None]):
        from zoo.ops.cuda.array import from_numpy

        self.again, self.undo, self.computed = again, undo, True
        self.values = np.array(values, np.float64)
        with outside():
            self.array = from_numpy(self.values)

    def prepare(self):
        """Computes the numbers of the next replay, unless they are there."""
        if not self.computed:
            self.values = np.array(self.again(), np.float64)
            self.computed = True

    def write(self):
        """Moves them to the device."""
        from zoo.ops.cuda.array import copy_from_numpy

        copy_from_numpy(self.array, self.values)
        self.computed = False


class RandomStream:
    """A generator inside of a graph: (seed, offset) on the device, where the graph itself advances the offset.

    Args:
        generator: has `key`, `get_offset` and `set_offset`.
    """

    def __init__(self, generator: Any):
        from zoo.ops.cuda.array import from_numpy

        self.generator, self.draws, self.used = generator, 0, False
        self.key, self.first = generator.key, generator.get_offset()
        self.held = self.key, self.first  # what the device has
        self.array = from_numpy(np.array(self.held, np.int64))

    def end(self):
        """The capture is over: its draws belong to the first replay."""
        self.draws = self.generator.get_offset() - self.first
        self.generator.set_offset(self.first)

    def write(self):
        """Brings the device's state up to date if others drew, or seeded anew, since the last replay."""
        from zoo.ops.cuda.array import copy_from_numpy

        now = self.generator.key, self.generator.get_offset()
        if now != self.held:
            copy_from_numpy(self.array, np.array(now, np.int64))
        self.held = now[0], now[1] + self.draws
        self.generator.set_offset(self.held[1])


def random_state(seed: int, offset: int) -> tuple[Any, int, int]:
    """(state, seed, offset) of a draw, as kernels take them: in a capture the state's array, and how far behind it.

    Raises:
        CaptureError: the draw is of a generator that the graph does not know.
    """
    if state.trace is not None and type(offset) is not Live:
        raise Untraceable("draws random numbers")
    graph = state.graph
    if graph is None:
        return None, seed, offset
    for stream in graph.random:
        if stream.key == seed:
            stream.used = True  # also a backward pass, which draws nothing new
            return stream.array, 0, offset - stream.first
    refuse("draws from a generator that the graph does not know (CUDAGraph.register_generator_state)")
    raise AssertionError
