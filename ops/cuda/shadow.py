"""What the sanitizer knows of device memory: for every few bytes who wrote them last, and who read them.

A block's shadow has one cell per element; it is made finer when smaller elements are accessed. A cell holds accesses as
one number each, `serial << PLACES | place`: the access's number in the process, and the element's place in its block
of elements, which is at most 2**20 (Triton's largest). 0 means never, HOST that the host wrote it.
"""

import numpy as np

from zoo.ops.cuda.memory import HostMemory

PLACES = 20
HOST = 1


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

    def of_view(self, pointer: int, shape: tuple, strides: tuple, size: int) -> np.ndarray:
        """The writes of an array of elements of `size` bytes, strides in bytes: a view of shape (*shape, cells)."""
        self.refine(size)
        first = self.writes[(pointer - self.start) // self.unit :]
        steps = *(s // self.unit * 8 for s in strides), 8
        return np.lib.stride_tricks.as_strided(first, (*shape, size // self.unit), steps)


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


def writes_of(x) -> np.ndarray | None:
    """The writes of an array's cells, of shape (*shape, cells of an element); None if there is nothing to know."""
    shadow = shadow_of(x) if x.size else None
    size = x.dtype.itemsize
    return None if shadow is None else shadow.of_view(x.pointer, x.shape, tuple(s * size for s in x.strides), size)


def written_by_host(x):
    """The host wrote the array's elements, or may do so from now on."""
    if (cells := writes_of(x)) is not None:
        cells[...] = HOST


def need_written(x):
    """Raises SanitizerError for an array that goes to the host and was not wholly written."""
    cells = writes_of(x)
    if cells is not None and not cells.all():
        wrong = int((cells == 0).any(-1).sum())
        raise SanitizerError(f"to_numpy: {wrong} of {x.size} elements of {x!r} were never written")


def copied(target, source):
    """The host copied an array to another of equal bytes, both contiguous: what was never written stays so."""
    cells = writes_of(source)
    if cells is None or cells.all() or shadow_of(target) is None:
        written_by_host(target)
        return
    shadows = shadow_of(target), shadow_of(source)
    unit = min(target.dtype.itemsize, *(s.unit for s in shadows))
    for shadow in shadows:
        shadow.refine(unit)
    cells = writes_of(target)
    cells[...] = np.where(writes_of(source).reshape(cells.shape), HOST, 0)
