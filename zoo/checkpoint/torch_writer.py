"""Writes torch's zip format, so that torch.load(weights_only=True) reads tensors, numbers, dicts and lists of ours.

The pickle is put together opcode by opcode: torch's classes are only names in it. Source: torch/serialization.py, _save
"""
import struct
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from zoo.checkpoint.dtypes import TORCH_DTYPE_NAMES, TORCH_STORAGE_NAMES, native
from zoo.checkpoint.tree import Leaf, memory_key, place_of, unknown, wanted_key
from zoo.checkpoint.zip_file import LOCAL
from zoo.ops.device import device, fetch

ALIGNMENT = 64                # of every member's data in the file
ROOT = "archive/"
EPOCH = (1980, 1, 1, 0, 0, 0)     # the same object gives the same bytes
ORDERED = b"ccollections\nOrderedDict\n)R"


def write_torch(file: BinaryIO, obj: Any, leaf: Callable[[Any], Leaf | None]) -> None:
    """Writes obj into an open file.

    Args:
        file: needs `write` only.
        obj: nested dicts, lists and tuples of tensors, numbers, strings, bools, None, dtypes and devices.
        leaf: the Leaf of a tensor, None for what is none.

    Raises:
        TypeError: something else in obj; the message says where.
    """
    pickler = Pickler(leaf)
    pickler.put(obj, ())
    storages = lay_out([part for part in pickler.parts if isinstance(part, Slot)])
    pickle = b"\x80\x02" + b"".join(p.pickle() if isinstance(p, Slot) else p for p in pickler.parts) + b"."
    counted = Counted(file)
    with zipfile.ZipFile(counted, "w") as archive:      # type: ignore[arg-type]
        add(archive, counted, "data.pkl", pickle)
        add(archive, counted, "byteorder", sys.byteorder.encode())
        for key, storage in enumerate(storages):
            add(archive, counted, f"data/{key}", storage.view(np.uint8).data)
        add(archive, counted, "version", b"3\n")


class Counted:
    """What zipfile needs of a file that can only be written."""

    def __init__(self, file: BinaryIO):
        self.file, self.count = file, 0

    def write(self, data: Any) -> int:
        self.file.write(data)
        self.count += len(data)
        return len(data)

    def tell(self) -> int:
        return self.count

    def flush(self) -> None:
        """Nothing is held back here."""


def add(archive: zipfile.ZipFile, counted: Counted, name: str, data: Any) -> None:
    """A stored member whose data begins at a multiple of ALIGNMENT: an extra field fills the gap before it."""
    info = zipfile.ZipInfo(ROOT + name, EPOCH)
    fill = -(counted.tell() + LOCAL.size + len(info.filename) + 4) % ALIGNMENT
    info.extra = struct.pack("<2sH", b"FB", fill) + bytes(fill)
    archive.writestr(info, data)


class Slot:
    """One tensor of the pickle; `lay_out` says where its elements lie."""

    def __init__(self, leaf: Leaf, array: np.ndarray):
        self.leaf, self.array = leaf, array
        self.start = array.__array_interface__["data"][0]
        self.stop = self.start + extent(array)
        self.key, self.count, self.offset = 0, 0, 0

    def pickle(self) -> bytes:
        """The opcodes that make torch build the tensor."""
        dtype = self.array.dtype
        kind = TORCH_STORAGE_NAMES.get(dtype)
        count = self.count * (1 if kind else dtype.itemsize)
        place = (b"(" + string("storage") + (name("torch", kind) if kind else name("torch.storage", "UntypedStorage"))
                 + string(str(self.key)) + string(self.leaf.location) + integer(count) + b"tQ")
        steps = [step // dtype.itemsize for step in self.array.strides]
        grad = self.leaf.requires_grad
        tensor = (name("torch._utils", "_rebuild_tensor_v2" if kind else "_rebuild_tensor_v3") + b"(" + place
                  + integer(self.offset) + integers(self.array.shape) + integers(steps)
                  + truth(grad and not self.leaf.parameter) + ORDERED
                  + (b"" if kind else name("torch", TORCH_DTYPE_NAMES[dtype])) + b"tR")
        if not self.leaf.parameter:
            return tensor
        return name("torch._utils", "_rebuild_parameter") + b"(" + tensor + truth(grad) + ORDERED + b"tR"


def extent(array: np.ndarray) -> int:
    """Bytes from an array's first element to the end of its last; no stride is negative."""
    if not array.size:
        return 0
    return array.itemsize + sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True))


def lay_out(slots: list[Slot]) -> list[np.ndarray]:
    """Gives each slot its storage, shared by those whose memory overlaps, and returns the storages as flat arrays."""
    storages = []
    for key, group in enumerate(grouped(slots)):
        begin, item = group[0].start, group[0].array.itemsize
        count = (max(slot.stop for slot in group) - begin) // item
        # All of this memory belongs to the base that the group's arrays share, though none of them may reach all of it.
        raw = group[0].array.view(f"V{item}")
        storages.append(np.lib.stride_tricks.as_strided(raw, (count,), (item,), writeable=False))
        for slot in group:
            slot.key, slot.count, slot.offset = key, count, (slot.start - begin) // item
    return storages


def grouped(slots: list[Slot]) -> list[list[Slot]]:
    """Slots of one dtype that overlap, each group by ascending address; empty ones stay alone."""
    groups = [[slot] for slot in slots if not slot.array.size]
    full = [slot for slot in slots if slot.array.size]
    full.sort(key=lambda slot: (TORCH_DTYPE_NAMES[slot.array.dtype], slot.start))
    end = 0
    for previous, slot in zip([None, *full], full, strict=False):
        shared = (previous is not None and slot.array.dtype == previous.array.dtype and slot.start < end
                  and (slot.start - previous.start) % slot.array.itemsize == 0)
        if shared:
            groups[-1].append(slot)
        else:
            groups.append([slot])
        end = max(end, slot.stop) if shared else slot.stop
    return groups


class Pickler:
    """The pickle of an object in parts: opcodes, and Slots for the tensors.

    Args:
        leaf: the Leaf of a tensor, None for what is none.
    """

    def __init__(self, leaf: Callable[[Any], Leaf | None]):
        self.leaf = leaf
        self.parts: list[bytes | Slot] = []
        self.hosts: dict[tuple, np.ndarray] = {}
        self.keep: list = []  # arrays stay alive, so that no address is used twice

    def put(self, x: Any, path: tuple) -> None:
        """Adds the opcodes for x, which stands at `path`."""
        if isinstance(x, np.generic):
            x = x.item()
        if isinstance(x, (list, tuple, dict)):
            self.put_container(x, path)
        elif (leaf := self.leaf(x)) is not None:
            self.parts.append(Slot(leaf, self.host(leaf.array, path)))
        else:
            self.parts.append(scalar(x, path))

    def put_container(self, x: Any, path: tuple) -> None:
        add = self.parts.append
        if isinstance(x, dict):
            add((ORDERED if isinstance(x, OrderedDict) else b"}") + b"(")
            for key, value in x.items():
                wanted_key(key, path)
                self.put(key, path)
                self.put(value, (*path, key))
            add(b"u")
            return
        add(b"](" if isinstance(x, list) else b"(")
        for index, value in enumerate(x):
            self.put(value, (*path, index))
        add(b"e" if isinstance(x, list) else b"t")

    def host(self, array: Any, path: tuple) -> np.ndarray:
        """The array in NumPy's memory, as torch could hold it: no negative strides, none of part of an element."""
        key = memory_key(array)
        if key not in self.hosts:
            host = native(fetch(array))
            if host.dtype not in TORCH_DTYPE_NAMES:
                raise TypeError(f"save: {place_of(path)}: torch has no dtype {host.dtype}")
            fits = all(step >= 0 and step % host.itemsize == 0 for step in host.strides)
            self.hosts[key] = host if fits else np.ascontiguousarray(host)
            self.keep.append(array)
        return self.hosts[key]


def scalar(x: Any, path: tuple) -> bytes:
    """The opcodes for one value."""
    if x is None:
        return b"N"
    if isinstance(x, bool):
        return truth(x)
    if isinstance(x, int):
        return integer(x)
    if isinstance(x, float):
        return b"G" + struct.pack(">d", x)
    if isinstance(x, str):
        return string(x)
    if isinstance(x, complex):
        return name("builtins", "complex") + b"(" + scalar(x.real, path) + scalar(x.imag, path) + b"tR"
    if isinstance(x, np.dtype) and x in TORCH_DTYPE_NAMES:
        return name("torch", TORCH_DTYPE_NAMES[x])
    if isinstance(x, device):
        index = b"" if x.index is None else integer(x.index)
        return name("torch", "device") + b"(" + string(x.type) + index + b"tR"
    raise unknown(x, path)


def truth(x: bool) -> bytes:
    """NEWTRUE or NEWFALSE."""
    return b"\x88" if x else b"\x89"


def integer(x: int) -> bytes:
    """The shortest of BININT1, BININT2, BININT and LONG1."""
    for code, layout, low, high in ((b"K", "<B", 0, 1 << 8), (b"M", "<H", 0, 1 << 16), (b"J", "<i", -1 << 31, 1 << 31)):
        if low <= x < high:
            return code + struct.pack(layout, x)
    count = x.bit_length() // 8 + 1
    if count > 255:
        raise TypeError("save: wants integers of at most 255 bytes")
    return b"\x8a" + bytes([count]) + x.to_bytes(count, "little", signed=True)


def integers(numbers: Any) -> bytes:
    """A TUPLE of integers."""
    return b"(" + b"".join(map(integer, numbers)) + b"t"


def string(x: str) -> bytes:
    """BINUNICODE."""
    data = x.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(data)) + data


def name(module: str, attribute: str) -> bytes:
    """GLOBAL."""
    return f"c{module}\n{attribute}\n".encode()
