"""What the sanitizer knows of device memory: for every few bytes who wrote them last, and who read them.

A block's shadow has one cell per element; it is made finer when smaller elements are accessed. A cell holds accesses as
one number each, `serial << PLACES | place`: the access's number in the process, and the element's place in its block
of elements, which is at most 2**20 (Triton's largest). 0 means never, HOST that the host wrote it.
"""

import numpy as np

from zoo.ops.cuda import stream_order
from zoo.ops.cuda.memory import HostMemory
from zoo.ops.cuda.stream_order import HOST
from zoo.ops.cuda.streams import current_stream

PLACES = 20


class SanitizerError(RuntimeError):
    """A fault of a kernel that the interpreter's results do not show."""


class Shadow:
    """The cells of one block of memory: the last write, and the last reads by two programs."""

    __slots__ = ("nbytes", "other_reads", "reads", "start", "unit", "writes")

    def __init__(self, start: int, nbytes: int, written: bool = False):
        self.start, self.nbytes, self.unit = start, nbytes, max(nbytes, 1)
        self.writes = np.full(1, HOST if written else 0, np.int64)
        self.reads, self.other_reads = np.zeros((2, 1), np.int64)

    def refine(self, size: int):
        """Cells of at most `size` bytes."""
        if size >= self.unit:
            return
        cells = -(-self.nbytes // size)
        if len(self.writes) == 1:                     # a block that was touched as a whole, or never
            self.writes, self.reads, self.other_reads = (np.full(cells, a[0]) for a in self.all())
        else:
            parts = self.unit // size
            self.writes, self.reads, self.other_reads = (np.repeat(a, parts)[:cells] for a in self.all())
        self.unit = size

    def all(self):
        """The three arrays of cells."""
        return self.writes, self.reads, self.other_reads

    def cells(self, addresses: np.ndarray, places: np.ndarray, size: int):
        """The cells of elements of `size` bytes at these addresses, and the places of the elements there."""
        self.refine(size)
        at = (addresses - np.uint64(self.start)).astype(np.int64) // self.unit
        if size > self.unit:
            parts = size // self.unit
            at = (at[:, None] + np.arange(parts)).reshape(-1)
            places = np.repeat(places, parts)
        first, n = int(at[0]), len(at)
        if int(at[-1]) - first == n - 1 and (n == 1 or (np.diff(at) == 1).all()):
            return slice(first, first + n), places    # a row without gaps: several times quicker than a list of cells
        return at, places

    def of_view(self, pointer: int, shape: tuple, strides: tuple, size: int) -> list[np.ndarray]:
        """`all` of an array of elements of `size` bytes, strides in bytes: views of shape (*shape, cells)."""
        self.refine(size)
        first, steps = (pointer - self.start) // self.unit, (*(s // self.unit * 8 for s in strides), 8)
        shape = *shape, size // self.unit
        return [np.lib.stride_tricks.as_strided(a[first:], shape, steps) for a in self.all()]


def shadow_of(x) -> Shadow | None:
    """The shadow of the memory of an array; None if another library owns it."""
    owner = getattr(x.owner, "below", x.owner)
    return shadow_at(owner.pointer, owner.nbytes) if type(owner) is HostMemory else None


def shadow_at(start: int, nbytes: int) -> Shadow:
    """The shadow of the block that begins there."""
    found = HostMemory.shadows.get(start)
    if found is None:
        found = HostMemory.shadows[start] = Shadow(start, nbytes)
    return found


def cells_of(x) -> list[np.ndarray] | None:
    """Writes and reads of an array's cells, of shape (*shape, cells of an element); None if nothing is known."""
    shadow = shadow_of(x) if x.size else None
    size = x.dtype.itemsize
    return None if shadow is None else shadow.of_view(x.pointer, x.shape, tuple(s * size for s in x.strides), size)


def shared_with_host(x):
    """From now on the host may write the array's elements."""
    if (cells := cells_of(x)) is not None:
        cells[0][...] = HOST


def copied_to_host(x):
    """Raises SanitizerError if part of the array was never written, or if another stream is still writing it."""
    stream = current_stream(x.device)
    number = stream_order.begin(stream.number)
    if (cells := cells_of(x)) is not None:
        holes = int((cells[0] == 0).any(-1).sum())
        if 0 < holes < x.size:               # an array without contents, as of `empty_like`, may go to the host
            raise SanitizerError(f"to_numpy: {holes} of {x.size} elements of {x!r} were never written")
        need_order("to_numpy", cells[0], stream.number)
        cells[1][...] = number << PLACES
    stream_order.host_waits(stream_order.record(stream.number))


def written(x, source=None):
    """A copy or fill writes the array on its stream; of a source, what was never written stays so."""
    stream = current_stream(x.device)
    stamp = stream_order.begin(stream.number) << PLACES
    come, to = None if source is None else cells_of(source), cells_of(x)
    if come is not None:
        need_order("copy", come[0], stream.number)
        come[1][...] = stamp
    if to is None:
        return
    for cells in to:
        need_order("copy", cells, stream.number)
    if come is None or come[0].all():
        to[0][...] = stamp
        return
    shadows = shadow_of(x), shadow_of(source)
    unit = min(x.dtype.itemsize, *(s.unit for s in shadows))
    for shadow in shadows:
        shadow.refine(unit)
    to, come = cells_of(x), cells_of(source)
    to[0][...] = np.where(come[0].reshape(to[0].shape), stamp, 0)


def need_order(who: str, before: np.ndarray, stream: int):
    """Raises SanitizerError if one of these accesses may still be going on when the stream's next work begins."""
    if len(stream_order.epochs) == 1:
        return
    if any(stream_order.is_unordered(number, stream) for number in np.unique(before >> PLACES)):
        raise SanitizerError(f"{who}: another stream is at work on this memory, and nothing makes this stream wait")
