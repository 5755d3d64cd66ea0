"""Objects handed to another process through memory that has no name, so none can be left behind.

A SharedFile is a memfd (elsewhere a temporary file, deleted at once): the system frees it with the last process that
holds it, however that process ends. An object goes in by pickle protocol 5: its arrays are copied once into the
memory, the rest of the pickle (PEP 574) lies behind them, and the reader's arrays lie in the same memory.
"""

import mmap
import os
import pickle
import tempfile
from typing import Any, NamedTuple

import numpy as np

ALIGN = 64  # bytes: a cache line, and the widest vector registers


class Packed(NamedTuple):
    """Where in a SharedFile the pickle of an object lies; its arrays lie before it."""

    start: int
    stop: int


class SharedFile:
    """Memory without a name that two processes can map. It can be pickled only while a process is being started."""

    def __init__(self):
        self.fd = os.memfd_create("zoo.data") if hasattr(os, "memfd_create") else nameless_file()
        self.map: mmap.mmap | None = None

    def __getstate__(self):
        from multiprocessing.reduction import DupFd

        return DupFd(self.fd)

    def __setstate__(self, duplicate):
        self.fd, self.map = duplicate.detach(), None

    def grow(self, nbytes: int) -> None:
        """At least nbytes, all of them there: OSError now, and no SIGBUS later, where memory is short."""
        if nbytes > os.fstat(self.fd).st_size:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self.fd, 0, nbytes)
            else:
                os.ftruncate(self.fd, nbytes)

    def view(self, private: bool = False) -> np.ndarray:
        """All the bytes, as a new array that its views keep alive. If private, writes to them stay in this process."""
        size = os.fstat(self.fd).st_size
        if self.map is None or len(self.map) != size:
            self.map = mmap.mmap(self.fd, size, mmap.MAP_PRIVATE if private else mmap.MAP_SHARED)
        return np.frombuffer(self.map, np.uint8)

    def close(self) -> None:
        """Arrays that lie in the memory keep it."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd, self.map = -1, None


def nameless_file() -> int:
    """A file that is deleted already."""
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def pack(value: Any, file: SharedFile) -> Packed:
    """Writes an object into the file from its beginning."""
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    spans, stop = [], 0
    for raw in (b.raw() for b in buffers):
        start = -(-stop // ALIGN) * ALIGN
        stop = start + raw.nbytes
        spans.append((start, stop))
    tail = pickle.dumps((spans, text))
    file.grow(stop + len(tail))
    memory = file.view()
    for buffer, (start, end) in zip(buffers, spans, strict=True):
        memory[start:end] = np.frombuffer(buffer, np.uint8) if end > start else ()
    memory[stop : stop + len(tail)] = np.frombuffer(tail, np.uint8)
    return Packed(stop, stop + len(tail))


def unpack(memory: np.ndarray, where: Packed) -> Any:
    """The object; its arrays are views of `memory`."""
    spans, text = pickle.loads(memory[where.start : where.stop])
    return pickle.loads(text, buffers=[memory[start:stop] for start, stop in spans])
