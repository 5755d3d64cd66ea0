"""Streams and events, in the shapes of torch.cuda. Nothing runs on the legacy stream 0."""

import contextlib
import itertools
import time
from functools import cache
from typing import Any

from zoo.ops.cuda import mode, stream_order
from zoo.ops.cuda.capture import refuse
from zoo.ops.cuda.driver import check, cuda, index, is_over, set_device, state, use
from zoo.ops.cuda.mode import is_interpreting

numbers = itertools.count()


class Stream:
    """A queue of GPU work.

    Work of one stream runs in order; `wait_stream` and `wait_event` order streams among each other.
    """

    def __init__(self, device: int | None = None, priority: int = 0):
        self.device = index(device)
        self.priority = priority
        self.number = next(numbers)
        self.handle = 0
        if not is_interpreting():
            use(self.device)
            flag = cuda().CUstream_flags.CU_STREAM_NON_BLOCKING
            self.handle = int(check(cuda().cuStreamCreateWithPriority(flag, priority)))

    @property
    def cuda_stream(self) -> int:
        """The raw handle."""
        return self.handle

    def synchronize(self):
        """Waits on the host until the stream has done its work."""
        refuse("waits for the GPU")
        if mode.sanitizing:
            stream_order.host_waits(stream_order.record(self.number))
        if self.handle:
            use(self.device)
            check(cuda().cuStreamSynchronize(self.handle))

    def query(self) -> bool:
        """True if the stream has done its work."""
        refuse("asks how far the GPU is")
        if not self.handle:
            return True
        use(self.device)
        return ready(cuda().cuStreamQuery(self.handle))

    def record_event(self, event=None) -> "Event":
        """Marks the present end of this stream's work with an event, new if none is given."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: "Event"):
        """Later work of this stream waits for the event."""
        event.wait(self)

    def wait_stream(self, stream: "Stream"):
        """Later work of this stream waits for all present work of another."""
        self.wait_event(stream.record_event())

    def __eq__(self, other):
        if not isinstance(other, Stream):
            return NotImplemented
        return self is other or (self.handle == other.handle != 0 and self.device == other.device)

    def __hash__(self):
        return hash((self.device, self.handle))

    def __repr__(self):
        return f"Stream(device='cuda:{self.device}', cuda_stream={self.handle:#x})"

    def __del__(self, is_over=is_over):
        if getattr(self, "handle", 0) and not is_over():
            use(self.device)
            cuda().cuStreamDestroy(self.handle)  # the driver lets queued work finish


class ExternalStream(Stream):
    """A stream of another library, by its raw handle, which lives as long as it is used here."""

    def __init__(self, stream_ptr: int, device: int | None = None):
        self.device, self.priority, self.handle = index(device), 0, int(stream_ptr)

    def __del__(self):
        """It is the other library's."""


def ready(result) -> bool:
    """False if the driver says that work is still under way."""
    if result[0] == cuda().CUresult.CUDA_ERROR_NOT_READY:
        return False
    check(result)
    return True


class Event:
    """A mark in a stream's work, to wait for or to measure time with.

    `blocking` lets the waiting host sleep instead of spin. `interprocess` is not supported.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        if interprocess:
            raise ValueError("Event: interprocess events are not supported")
        self.enable_timing, self.blocking = enable_timing, blocking
        self.handle = 0
        self.time: float | None = None  # in the interpreter: when it was recorded
        self.clock: stream_order.Clock = {}  # in the sanitizer: what is done when it is reached
        self.device: int | None = None  # of the stream that recorded it

    def record(self, stream: Stream | None = None):
        """Marks the present end of the stream's work."""
        stream = current_stream() if stream is None else stream
        self.device = stream.device
        if is_interpreting():
            self.time = time.perf_counter()
            self.clock = stream_order.record(stream.number) if mode.sanitizing else {}
            return
        use(stream.device)
        if not self.handle:
            flags = cuda().CUevent_flags
            flag = 0 if self.enable_timing else int(flags.CU_EVENT_DISABLE_TIMING)
            flag |= int(flags.CU_EVENT_BLOCKING_SYNC) if self.blocking else 0
            self.handle = int(check(cuda().cuEventCreate(flag)))
        check(cuda().cuEventRecord(self.handle, stream.handle))

    def wait(self, stream: Stream | None = None):
        """Later work of the stream waits for this event."""
        stream = current_stream() if stream is None else stream
        if mode.sanitizing:
            stream_order.wait(stream.number, self.clock)
        if self.handle:
            use(stream.device)
            check(cuda().cuStreamWaitEvent(stream.handle, self.handle, 0))

    def synchronize(self):
        """Waits on the host for the event."""
        refuse("waits for the GPU")
        if mode.sanitizing:
            stream_order.host_waits(self.clock)
        if self.handle:
            use(self.device)
            check(cuda().cuEventSynchronize(self.handle))

    def query(self) -> bool:
        """True if the work before the mark is done."""
        refuse("asks how far the GPU is")
        if not self.handle:
            return True
        use(self.device)
        return ready(cuda().cuEventQuery(self.handle))

    def elapsed_time(self, end_event: "Event") -> float:
        """Milliseconds from this event to `end_event`; both with `enable_timing=True` and recorded."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("elapsed_time: both events want enable_timing=True")
        if self.device is None or end_event.device is None:
            raise ValueError("elapsed_time: both events want to be recorded first")
        if is_interpreting():
            return (end_event.time - self.time) * 1e3
        use(self.device)
        return float(check(cuda().cuEventElapsedTime(self.handle, end_event.handle)))

    def __del__(self, is_over=is_over):
        if getattr(self, "handle", 0) and not is_over():
            use(self.device)
            cuda().cuEventDestroy(self.handle)


first_stream = cache(Stream)


def default_stream(device: Any = None) -> Stream:
    """The stream on which everything runs that chose no other; not the legacy stream 0."""
    return first_stream(index(device))


def current_stream(device: Any = None) -> Stream:
    """The stream on which this thread's work runs now."""
    device = index(device)
    return state.streams.get(device) or first_stream(device)


def activate(device: int) -> Stream:
    """Makes the device's context current and gives its current stream: what a driver call on it needs.

    Where every 0.1 us counts, `state.active.get(device)` is asked first.
    """
    use(device)
    found = state.active[device] = current_stream(device)
    return found


def set_stream(stream: Stream):
    """Lets this thread's work on the stream's device run on `stream`."""
    state.streams[stream.device] = stream
    state.active.pop(stream.device, None)


@contextlib.contextmanager
def stream(chosen: Stream | None):
    """Inside, this thread works on the given stream; None changes nothing."""
    if chosen is None:
        yield
        return
    before, device = current_stream(chosen.device), state.device
    set_stream(chosen)
    state.device = chosen.device
    try:
        yield
    finally:
        state.device = device
        set_stream(before)


@contextlib.contextmanager
def device(device: Any):
    """Inside, this thread makes new arrays on the given device; None changes nothing."""
    before = state.device
    if device is not None:
        set_device(device)
    try:
        yield
    finally:
        state.device = before


def synchronize(device: Any = None):
    """Waits until the device has done all work of all streams."""
    refuse("waits for the GPU")
    if mode.sanitizing:
        stream_order.host_waits(stream_order.everything())
    if not is_interpreting():
        use(index(device))
        check(cuda().cuCtxSynchronize())
