"""An open file under limits: no read beyond its end, no more memory than its size allows, one kind of error."""
import io
import mmap as mapping
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from zoo.checkpoint.errors import FileError
from zoo.ops.errors import DeviceError

SMALL = 64 << 20              # memory that any file may take, however short it is
# What damaged bytes may raise in the readers; it becomes FileError, as no file shall choose what its reader raises.
DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error, zlib.error)


class Source:
    """The bytes of one file, and the memory that reading it may still take: twice its size and SMALL in all.

    Args:
        file: seekable; offset 0 of the source is its present position.
        name: how messages call it.
        pages: the whole file as a private mapping, or None: then arrays are copies.
    """

    def __init__(self, file: BinaryIO, name: str, pages: np.ndarray | None = None):
        self.file, self.name, self.pages = file, name, pages
        self.origin = file.tell()
        self.size = file.seek(0, os.SEEK_END) - self.origin
        self.left = 2 * self.size + SMALL

    def spend(self, count: int) -> None:
        """Counts memory that is about to be taken."""
        self.left -= count
        if self.left < 0:
            raise FileError(f"is refused: reading it takes more than twice its {self.size} bytes of memory")

    def seek(self, start: int) -> BinaryIO:
        """The file, standing at byte `start` of the source."""
        self.file.seek(self.origin + start)
        return self.file

    def read(self, start: int, count: int) -> bytes:
        """`count` bytes from byte `start` on."""
        self.inside(start, count)
        self.spend(count)
        data = self.seek(start).read(count)
        if len(data) != count:
            raise FileError(f"is truncated: {count - len(data)} bytes are missing at byte {start + len(data)}")
        return data

    def array(self, start: int, count: int, align: int = 1) -> np.ndarray:
        """The same as a writable array of bytes at a multiple of `align`: mapped where it can be, else a copy."""
        self.inside(start, count)
        if self.pages is not None and (self.pages.ctypes.data + start) % align == 0:
            return self.pages[start : start + count]
        self.spend(count)
        array = np.empty(count, np.uint8)
        self.fill(array, start)
        return array

    def fill(self, array: np.ndarray, start: int) -> None:
        """Reads the bytes from `start` on into a contiguous array of bytes."""
        self.inside(start, array.nbytes)
        if self.seek(start).readinto(array.data) != array.nbytes:      # type: ignore[attr-defined]
            raise FileError(f"is truncated: bytes are missing after byte {start}")

    def inside(self, start: int, count: int) -> None:
        if start < 0 or count < 0 or start + count > self.size:
            raise FileError(f"is truncated or corrupt: {count} bytes at byte {start} are beyond its {self.size} bytes")


@contextmanager
def opened(f: Any, mmap: bool) -> Iterator[Source]:
    """A Source of a path or an open binary file. What bad bytes raise inside leaves as a FileError with its name."""
    name = getattr(f, "name", None) if hasattr(f, "read") else f
    name = os.fspath(name) if isinstance(name, (str, os.PathLike)) else "the file"         # a pipe's is a number
    try:
        if hasattr(f, "read"):
            with buffered(f) as file:
                yield Source(file, name, mapped(file) if mmap and on_disk(file) else None)
            return
        if not stat.S_ISREG(os.stat(f).st_mode):
            raise FileError("is a folder or a device, not a file")
        with open(f, "rb") as file:
            yield Source(file, name, mapped(file) if mmap else None)
    except DeviceError:
        raise                         # the caller's map_location, no fault of the file
    except FileError as error:
        raise FileError(f"load: {name} {error}") from None
    except RecursionError:
        raise FileError(f"load: {name} is refused: it is nested too deeply") from None
    except MemoryError:
        raise FileError(f"load: {name} needs more memory than there is") from None
    except DAMAGE as error:
        raise FileError(f"load: {name} is corrupt: {type(error).__name__}: {error}") from error


@contextmanager
def buffered(f: Any) -> Iterator[BinaryIO]:
    """f with a buffer, or its bytes where it is not one of Python's own seekable files. f stays open."""
    if isinstance(f, io.FileIO) and f.seekable():
        file = io.BufferedReader(f)
        try:
            yield file
        finally:
            file.detach()
    elif isinstance(f, (io.BytesIO, io.BufferedReader, io.BufferedRandom)) and f.seekable():
        yield f
    else:
        data = f.read()
        if not isinstance(data, bytes):
            raise FileError(f"is not open in binary mode: it gave {type(data).__name__}")
        yield io.BytesIO(data)


def on_disk(file: BinaryIO) -> bool:
    """Whether the whole of an open file can be mapped: a regular one that stands at its beginning."""
    return not isinstance(file, io.BytesIO) and not file.tell() and stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def mapped(file: BinaryIO) -> np.ndarray:
    """The file as an array of bytes that share no memory with anybody: what is written into it is not written back."""
    if not os.fstat(file.fileno()).st_size:
        return np.empty(0, np.uint8)
    return np.frombuffer(mapping.mmap(file.fileno(), 0, access=mapping.ACCESS_COPY), np.uint8)
