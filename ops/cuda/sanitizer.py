"""Faults that the interpreter hides and a GPU shows, found while a kernel is interpreted: `ZOO_INTERPRET=sanitize`.

The interpreter runs one program after the other, and each as if it were one thread. On a GPU programs run at the same
time, and the threads of a program too. So in one launch these are errors, unless an atomic orders them:

- two programs write to one place, or one reads what the other writes. Writing what lies there already is none;
- a program's threads do so, with no `tl.debug_barrier()` in between: Triton puts barriers around shared memory only.
  An element at the same place of blocks of one shape belongs to the same thread;
- lanes of one store write different values to one place;
- work of another stream is still using the memory, and no event makes this stream wait (stream_order.py).

Errors as well: loads of what nobody wrote, addresses that are no multiple of the element's size, and untrue hints
(`tl.multiple_of`, `tl.max_contiguous`). Addresses outside living memory are errors in the interpreter anyway.

Order between programs is tracked with vector clocks: each program counts phases, which end with its barriers. A
release publishes the phases before the running one, and what an acquire learned holds after the next barrier.
"""

import contextlib
import ctypes
import os
import sys
from array import array
from functools import cache, lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
import triton

from zoo.ops.cuda import mode, stream_order
from zoo.ops.cuda.memory import HostMemory
from zoo.ops.cuda.shadow import PLACES, SanitizerError, Shadow, need_order, shadow_at
from zoo.ops.cuda.stream_order import merge, serial
from zoo.ops.cuda.streams import current_stream

PLACE = (1 << PLACES) - 1
NOT_KERNELS = tuple(os.path.dirname(file) for file in (__file__, triton.__file__, np.__file__))


@contextlib.contextmanager
def sanitizing():
    """Inside, launches of the interpreter are watched; memory that is there already counts as written."""
    before = mode.sanitizing
    if not before:
        HostMemory.shadows.update((start, Shadow(start, nbytes, True)) for start, nbytes in HostMemory.live.items())
    mode.sanitizing = True
    try:
        yield
    finally:
        mode.sanitizing = before


@lru_cache(256)
def all_places(n: int) -> np.ndarray:
    """The places of a block of n elements."""
    return np.arange(n)


@cache
def is_kernel(file: str) -> bool:
    """False for files of the interpreter."""
    return not file.startswith(NOT_KERNELS)


def line() -> tuple[str, int]:
    """The line of the kernel that runs."""
    frame = sys._getframe()
    while not is_kernel(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def spelled(file: str, number: int) -> str:
    """A line of a kernel, for people."""
    return f"{os.path.basename(file)}:{number}"


class Launch:
    """One launch under watch. A program's `threads` share out a block; of a smaller one several hold each element."""

    def __init__(self, kernel: str, programs: list[tuple[int, int, int]], threads: int,
                 spans: list[tuple[int, int]]):
        self.kernel, self.grid_indices, self.threads, self.spans = kernel, programs, threads, spans
        self.stream = current_stream().number
        self.first = self.now = stream_order.begin(self.stream)
        self.program = 0                                # the one that runs
        # Of each access of the launch: its program, that program's phase, the shape of its block, atomic, its line.
        self.programs, self.phases, self.shapes, self.atomics = (array("q", [-1]) for _ in range(4))
        self.lines: list[tuple[str, int]] = [("", 0)]
        self.shape_numbers: dict[tuple[int, ...], int] = {}
        self.phase = [1] * len(programs)                # of each program
        self.known: dict[int, dict[int, int]] = {}      # program -> other program -> the last phase that it may see
        self.learned: dict[int, dict[int, int]] = {}    # the same, from acquires since the last barrier
        self.released: dict[int, dict[int, int]] = {}   # address of an atomic -> program -> phase
        self.foreign: dict[int, Shadow] = {}            # of other libraries' blocks, by address

    def barrier(self):
        """All threads of the program have arrived."""
        p = self.program
        self.phase[p] += 1
        if p in self.learned:
            merge(self.known.setdefault(p, {}), self.learned.pop(p))

    def order(self, address: int, sem: str):
        """An atomic of the program on one address, with the memory order of that name."""
        if sem in ("RELEASE", "ACQUIRE_RELEASE"):
            published = merge({self.program: self.phase[self.program] - 1}, self.known.get(self.program, {}))
            merge(self.released.setdefault(address, {}), published)
        if sem in ("ACQUIRE", "ACQUIRE_RELEASE"):
            merge(self.learned.setdefault(self.program, {}), self.released.get(address, {}))

    def parts(self, addresses: np.ndarray, mask: np.ndarray, size: int):
        """The elements of a block that are not masked, block of memory by block: (shadow, addresses, places)."""
        flat, places = addresses.reshape(-1), all_places(addresses.size)
        if not mask.all():
            places = np.flatnonzero(np.broadcast_to(mask, addresses.shape))
            flat = flat[places]
        if not len(flat):
            return
        if (wrong := flat % np.uint64(size) != 0).any():
            self.fail(f"{int(wrong.sum())} addresses are no multiple of {size}, the element's size")
        first, last = int(flat.min()), int(flat.max())
        for start, end in self.spans:
            if start <= first and last < end:
                yield self.shadow(start, end - start), flat, places
                return
        starts = np.array(sorted(HostMemory.live), np.uint64)       # addresses that came from a table
        block = np.searchsorted(starts, flat, "right") - 1
        for b in np.unique(block):
            start = int(starts[b])
            yield self.shadow(start, HostMemory.live[start]), flat[block == b], places[block == b]

    def shadow(self, start: int, nbytes: int) -> Shadow:
        """Of a block of ours; that of another library's is kept for the launch."""
        if start in HostMemory.live:
            return shadow_at(start, nbytes)
        return self.foreign.setdefault(start, Shadow(start, nbytes, written=True))

    def begin(self, does, shape, size, shadow, addresses, places, atomic=False) -> "Access":
        """Numbers an access of the running program: elements at these places of a block of that shape."""
        self.now = next(serial)
        self.programs.append(self.program)
        self.phases.append(self.phase[self.program])
        self.shapes.append(self.shape_numbers.setdefault(shape, len(self.shape_numbers)))
        self.atomics.append(atomic)
        self.lines.append(line())
        return Access(does, shape, shadow, *shadow.cells(addresses, places, size))

    def load(self, addresses, mask, size):
        """A load."""
        for part in self.parts(addresses, mask, size):
            access = self.begin("reads", addresses.shape, size, *part)
            shadow, at = access.shadow, access.at
            self.compare(access, "wrote", self.need_written(access))
            reads = shadow.reads[at]
            if reads.max() >= self.first << PLACES:
                others = (reads >= self.first << PLACES) & (self.of(self.programs, reads) != self.program)
                shadow.other_reads[at] = np.where(others, reads, shadow.other_reads[at])
            shadow.reads[at] = self.now << PLACES | access.places

    def store(self, addresses, mask, size, values: np.ndarray):
        """A store, before it is done."""
        values = np.broadcast_to(values, addresses.shape).reshape(-1)
        for part in self.parts(addresses, mask, size):
            access = self.begin("writes", addresses.shape, size, *part)
            _, addresses_here, places = part
            self.compare_all(access, values[places])
            access.shadow.writes[access.at] = mine = self.now << PLACES | access.places
            if not isinstance(access.at, slice) and (access.shadow.writes[access.at] != mine).any():
                self.compare_lanes(addresses_here, values[places])

    def atomic(self, addresses, mask, size, order: str):
        """A read-modify-write of that memory order, before it is done."""
        for part in self.parts(addresses, mask, size):
            access = self.begin("updates", addresses.shape, size, *part, atomic=True)
            self.need_written(access)
            self.compare_all(access)
            access.shadow.writes[access.at] = self.now << PLACES | access.places
            if len(part[1]) == 1:
                self.order(int(part[1][0]), order)

    def hint(self, name: str, data: np.ndarray, step: int, values: list[int]):
        """Raises for a hint that is not true of a block; `step` is from one to the next: 1, or an element's bytes."""
        if not all(HINTS[name](np.moveaxis(data, axis, -1), step, v) for axis, v in enumerate(values)):
            self.fail(f"{name}({', '.join(map(str, values))}) is not true")

    def need_written(self, access: "Access") -> np.ndarray:
        """The last writes of the cells. Raises for cells that were never written."""
        writes = access.shadow.writes[access.at]
        if not writes.all():
            self.fault(access, writes == 0, "nobody wrote")
        return writes

    def compare_all(self, access: "Access", values: np.ndarray | None = None):
        """Compares with all earlier accesses."""
        shadow, at = access.shadow, access.at
        self.compare(access, "wrote", shadow.writes[at], values)
        self.compare(access, "read", shadow.reads[at], values)
        self.compare(access, "read", shadow.other_reads[at], values)

    def compare(self, access: "Access", did: str, before: np.ndarray, values: np.ndarray | None = None):
        """Raises for cells whose access before is not ordered before this one; writing what lies there is no fault."""
        recent = before >= self.first << PLACES
        if not recent.all():
            need_order(f"{self.kernel}, {spelled(*line())}", before[~recent], self.stream)
        if not recent.any():
            return
        mine = self.of(self.programs, before) == self.program
        bad = recent & ~np.where(mine, self.own_order(access, did, before), self.order_between(before))
        if self.atomics[-1]:
            bad &= self.of(self.atomics, before) == 0
        if values is not None and bad.any():
            bad &= access.changes(values)
        for own, what in (True, f"it {did} at {{1}} since its last barrier"), (False, f"program {{0}} {did} at {{1}}"):
            if (cells := bad & (mine == own)).any():
                self.fault(access, cells, what, before)

    def own_order(self, access: "Access", did: str, before: np.ndarray) -> np.ndarray:
        """Which accesses of the running program are before its last barrier, or by the same thread.

        Of the threads that hold an element all load it and one stores it. That one has read before it writes; only of
        a scalar it matters that the others have as well, since it decides for all which way a program goes.
        """
        done = self.of(self.phases, before) < self.phase[self.program]
        size = prod(access.shape)
        if size < self.threads and access.does == "reads" or size == 1 and did == "read":
            return done
        same_shape = self.of(self.shapes, before) == self.shapes[-1]
        return done | same_shape & (before & PLACE == access.places)

    def order_between(self, before: np.ndarray) -> np.ndarray:
        """Which accesses of other programs the running one comes after."""
        known = self.known.get(self.program)
        if not known:
            return np.zeros(len(before), bool)
        last = np.array([known.get(p, 0) for p in range(len(self.phase))])
        return self.of(self.phases, before) <= last[self.of(self.programs, before)]

    def of(self, table: array, accesses: np.ndarray) -> np.ndarray:
        """What a table of the launch says of accesses; of those of earlier launches, what it says of none."""
        return np.frombuffer(table, np.int64)[np.maximum((accesses >> PLACES) - self.first, 0)]

    def compare_lanes(self, addresses: np.ndarray, values: np.ndarray):
        """Raises for a store of several values to one place."""
        order = np.argsort(addresses, kind="stable")
        same = addresses[order][1:] == addresses[order][:-1]
        data = values[order].view(np.uint8).reshape(len(values), -1)
        if (wrong := same & (data[1:] != data[:-1]).any(-1)).any():
            self.fail(f"writes several values to one place, {int(wrong.sum())} times")

    def fault(self, access: "Access", bad: np.ndarray, who: str, before: np.ndarray | None = None):
        """Raises for the cells that are bad, of an access and of those before it."""
        k, shadow, at = int(np.argmax(bad)), access.shadow, access.at
        cell = at.start + k if isinstance(at, slice) else int(at[k])
        if before is not None:
            earlier = (int(before[k]) >> PLACES) - self.first
            who = who.format(self.grid_indices[self.programs[earlier]], spelled(*self.lines[earlier]))
        self.fail(f"{access.does} {int(bad.sum())} elements that {who}; the first lies {cell * shadow.unit} bytes into "
                  f"a block of {shadow.nbytes}")

    def fail(self, what: str):
        """Raises, for the running program and line."""
        raise SanitizerError(f"{self.kernel}, program {self.grid_indices[self.program]}, {spelled(*line())}: {what}")


def is_multiple_of(data: np.ndarray, step: int, value: int) -> bool:
    """Along the last axis, where a row without gaps begins."""
    begins = np.ones(data.shape, bool)
    begins[..., 1:] = data[..., 1:] - data[..., :-1] != step
    return not (data[begins] % value).any()


def grows(data: np.ndarray, step: int, value: int) -> bool:
    """Whether the values of each group of `value` grow by a step."""
    groups = data.reshape(*data.shape[:-1], -1, min(value, data.shape[-1]))
    return bool((np.diff(groups) == step).all())


def is_constant(data: np.ndarray, step: int, value: int) -> bool:
    """Whether the values of each group of `value` are equal."""
    return grows(data, 0, value)


HINTS = {"multiple_of": is_multiple_of, "max_contiguous": grows, "max_constancy": is_constant}


class Access(NamedTuple):
    """An access of a program to cells of a block of memory."""
    does: str
    shape: tuple[int, ...]        # of the block of elements
    shadow: Shadow
    at: slice | np.ndarray
    places: np.ndarray            # of the cells' elements in that block

    def changes(self, values: np.ndarray) -> np.ndarray:
        """Which cells a store of these values would change."""
        shadow = self.shadow
        memory = np.ctypeslib.as_array((ctypes.c_uint8 * shadow.nbytes).from_address(shadow.start))
        cells = memory[: shadow.nbytes // shadow.unit * shadow.unit].reshape(-1, shadow.unit)[self.at]
        return (cells != values.view(np.uint8).reshape(cells.shape)).any(-1)
