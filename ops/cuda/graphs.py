"""CUDA graphs, in the shape of torch.cuda: a whole step is recorded once and replayed with one call.

Run the step once before capturing, so that every kernel is compiled and loaded. Arrays made inside keep their
addresses from replay to replay: feed new data by writing into arrays made before. In the interpreter the launches
are kept and run again, so that a captured step gives the same numbers with and without a GPU.
"""

import contextlib
import gc
from collections.abc import Callable, Sequence
from typing import Any

from zoo.ops.cuda import streams
from zoo.ops.cuda.array import DeviceArray
from zoo.ops.cuda.capture import Numbers, RandomStream
from zoo.ops.cuda.driver import CudaError, check, cuda, is_over, state, use
from zoo.ops.cuda.graph_pool import GraphPool
from zoo.ops.cuda.mode import is_interpreting
from zoo.ops.cuda.streams import Stream, current_stream
from zoo.ops.random import CAPTURED

MODES = ("global", "thread_local", "relaxed")


class CUDAGraph:
    """A recorded sequence of GPU work; `graph(g)` records it and `g.replay()` runs it on the current stream.

    Random numbers go on from replay to replay as they would without a graph. An optimizer's step in the graph counts
    and reads its learning rate at each replay.
    """

    def __init__(self):
        self.device = state.device
        self.generators = list(CAPTURED)
        self.ran_on: set[Stream] = set()
        self.clear()

    def clear(self):
        """Nothing is captured."""
        self.executable: Any = None
        self.steps: list[Callable] = []  # in the interpreter: what to call
        self.captured = False
        self.memory: GraphPool | None = None
        # memory from before the capture that was let go inside it: address, its stream, others that worked on it
        self.deferred: list[tuple[int, Stream, tuple[Stream, ...]]] = []
        self.kept: list[Any] = []  # what recorded copies read
        self.numbers: list[Numbers] = []
        self.leaves: dict[Any, Any] = {}  # tensors that got a gradient, and which they had before
        self.before: list[Callable[[], None]] = []  # to call before a replay; may raise StaleGraph
        self.after: list[Callable[[], None]] = []  # to call when a replay was launched
        self.random: list[RandomStream] = []

    def register_generator_state(self, generator: Any):
        """Draws of this generator in the capture go on from replay to replay; the default one's do anyway."""
        if generator not in self.generators:
            self.generators.append(generator)

    def capture_begin(self, pool: GraphPool | None = None, capture_error_mode: str = "thread_local"):
        """Work of the current stream is recorded from now on, and not run.

        Args:
            pool: where memory comes from (default: one of this graph's own).
            capture_error_mode: of torch: global, thread_local or relaxed.
        """
        if state.graph is not None:
            raise RuntimeError("CUDAGraph: another capture is under way in this thread")
        if self.captured:
            raise RuntimeError("CUDAGraph: something is captured already; reset() lets it go")
        if capture_error_mode not in MODES:
            raise ValueError(f"CUDAGraph: wants a capture_error_mode of {MODES}, got {capture_error_mode!r}")
        self.memory = GraphPool() if pool is None else pool
        self.random = [RandomStream(g) for g in self.generators]
        self.began_with, state.pool = state.pool, self.memory
        if not is_interpreting():
            use(self.device)
            here = current_stream(self.device)
            kind = getattr(cuda().CUstreamCaptureMode, f"CU_STREAM_CAPTURE_MODE_{capture_error_mode.upper()}")
            check(cuda().cuStreamBeginCapture(here.handle, kind))
        state.graph = self

    def capture_end(self):
        """Ends the recording and makes the graph ready to run. Raises CudaError if something inside was not allowed."""
        for r in self.random:
            if drawn := r.generator.get_offset() - r.first:
                from zoo.ops.random_gpu import advance

                advance(r.array, drawn)
        recorded = self.leave()
        if not is_interpreting():
            self.executable = check(cuda().cuGraphInstantiate(recorded, 0))
            check(cuda().cuGraphDestroy(recorded))
        self.captured = True

    def leave(self):
        """Out of the capture; what the driver recorded."""
        state.graph, state.pool = None, self.began_with
        for r in self.random:
            r.end()
        self.random = [r for r in self.random if r.used]
        return None if is_interpreting() else check(cuda().cuStreamEndCapture(current_stream(self.device).handle))

    def abandon(self):
        """Out of a capture that failed, whose error is on its way."""
        with contextlib.suppress(CudaError):  # the driver has invalidated the capture itself
            recorded = self.leave()
            if recorded is not None:
                check(cuda().cuGraphDestroy(recorded))
        for n in reversed(self.numbers):
            n.undo()
        self.clear()

    def numbers_of(self, values: Sequence[float], again: Callable, undo: Callable) -> DeviceArray:
        """Float64 numbers in device memory, computed on the host for each replay; see capture.Numbers."""
        self.numbers.append(Numbers(values, again, undo))
        return self.numbers[-1].array

    def replay(self):
        """Runs the recorded work on the current stream.

        Raises:
            StaleGraph: what was fixed at the capture has changed, such as a flag of an optimizer; nothing was run.
        """
        if not self.captured:
            raise RuntimeError("CUDAGraph: nothing was captured yet")
        for call in self.before:
            call()
        done = []
        try:
            for n in self.numbers:
                n.prepare()
                done.append(n)
        except Exception:
            for n in reversed(done):
                n.undo()
                n.computed = False
            raise
        here = current_stream(self.device)
        with streams.stream(here):
            for x in (*self.numbers, *self.random):
                x.write()
            for step in self.steps:
                step()
            if self.executable is not None:
                use(self.device)
                check(cuda().cuGraphLaunch(self.executable, here.handle))
                self.ran_on.add(here)
        for call in self.after:
            call()

    def pool(self) -> GraphPool | None:
        """The pool of its memory, for `graph(other, pool=...)`."""
        return self.memory

    def reset(self):
        """Lets go of what was captured and of its memory."""
        if self.executable is not None:
            use(self.device)
            cuda().cuGraphExecDestroy(self.executable)
            from zoo.ops.cuda.pool import free

            self.memory.ran_on |= self.ran_on  # what is freed now or later may still be at work there
            for pointer, stream, users in self.deferred:
                free(pointer, stream, self.ran_on.union(users))
        self.clear()

    def __del__(self, is_over=is_over):
        if getattr(self, "executable", None) is not None and not is_over():
            self.reset()


@contextlib.contextmanager
def graph(cuda_graph: CUDAGraph, pool: GraphPool | None = None, stream: Stream | None = None,
          capture_error_mode: str = "thread_local"):
    """Inside, the work of a side stream is recorded into `cuda_graph` instead of run."""
    side = Stream() if stream is None else stream
    side.wait_stream(current_stream())
    with not_collecting(), streams.stream(side):
        cuda_graph.capture_begin(pool, capture_error_mode)
        try:
            yield
        except BaseException:
            cuda_graph.abandon()
            raise
        cuda_graph.capture_end()
    current_stream().wait_stream(side)


@contextlib.contextmanager
def not_collecting():
    """Inside, no garbage is collected: a kernel that is collected unloads its module, which a capture forbids."""
    gc.collect()
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()

