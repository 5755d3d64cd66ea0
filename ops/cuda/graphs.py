"""CUDA graphs, in the shape of torch.cuda: a whole step is recorded once and replayed with one call.

Run the step once before capturing, so that every kernel is compiled and loaded. Arrays made inside keep their
addresses from replay to replay: feed new data by writing into arrays made before. In the interpreter the launches
are kept and run again, so that a captured step gives the same numbers with and without a GPU.
"""

import contextlib
import gc

from zoo.ops.cuda import mode
from zoo.ops.cuda.driver import check, cuda, state, use
from zoo.ops.cuda.mode import is_interpreting
from zoo.ops.cuda.streams import Stream, current_stream, stream

AUTO_FREE_ON_LAUNCH = 1  # a replay frees what the one before it allocated and nobody freed


class CUDAGraph:
    """A recorded sequence of GPU work; `graph(g)` records it and `g.replay()` runs it on the current stream."""

    def __init__(self):
        self.executable = None
        self.device = state.device
        self.steps: list | None = None  # in the interpreter: what to call
        self.deferred: list[tuple[int, int]] = []  # memory from before the capture that was let go inside it

    def capture_begin(self):
        """Work of the current stream is recorded from now on, and not run."""
        if state.graph is not None:
            raise RuntimeError("CUDAGraph: another capture is under way in this thread")
        state.graph = self
        if is_interpreting():
            self.steps = mode.captured = []
            return
        use(self.device)
        kind = cuda().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        check(cuda().cuStreamBeginCapture(current_stream(self.device).handle, kind))

    def capture_end(self):
        """Ends the recording and makes the graph ready to run. Raises CudaError if something inside was not allowed."""
        state.graph = None
        if is_interpreting():
            mode.captured = None
            return
        recorded = check(cuda().cuStreamEndCapture(current_stream(self.device).handle))
        self.executable = check(cuda().cuGraphInstantiate(recorded, AUTO_FREE_ON_LAUNCH))
        check(cuda().cuGraphDestroy(recorded))

    def replay(self):
        """Runs the recorded work on the current stream."""
        if self.steps is not None:
            for step in self.steps:
                step()
            return
        if self.executable is None:
            raise RuntimeError("CUDAGraph: nothing was captured yet")
        use(self.device)
        check(cuda().cuGraphLaunch(self.executable, current_stream(self.device).handle))

    def __del__(self):
        if getattr(self, "executable", None) is not None:
            use(self.device)
            cuda().cuGraphExecDestroy(self.executable)
            for pointer, handle in self.deferred:
                cuda().cuMemFreeAsync(pointer, handle)


@contextlib.contextmanager
def graph(cuda_graph: CUDAGraph, stream_: Stream | None = None):
    """Inside, the work of a side stream is recorded into `cuda_graph` instead of run."""
    side = Stream() if stream_ is None else stream_
    side.wait_stream(current_stream())
    gc.collect()
    collecting = gc.isenabled()
    gc.disable()  # a kernel that is collected unloads its module, which a capture does not allow
    try:
        with stream(side):
            cuda_graph.capture_begin()
            try:
                yield
            finally:
                cuda_graph.capture_end()
    finally:
        if collecting:
            gc.enable()
    current_stream().wait_stream(side)
