"""Files of torch.save, read without torch: the zip archives since 1.6 and the stream of pickles before.

zip: <root>/data.pkl, <root>/byteorder, <root>/data/<key>, stored unpacked. legacy: five pickles (magic number, version,
system, object, keys of the storages), then for each key its count of elements (8 bytes) and its elements.
Source: torch/serialization.py
"""
import io
import sys
from typing import Any

import numpy as np

from zoo.checkpoint.builder import Builder
from zoo.checkpoint.errors import FileError
from zoo.checkpoint.opcodes import Machine
from zoo.checkpoint.source import Source
from zoo.checkpoint.torch_names import Names, Storage, storage_id
from zoo.checkpoint.zip_file import DEFLATED, Member, contents

MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001
LEGACY = b"\x8a\x0a" + MAGIC.to_bytes(10, "little") + b"."      # its first pickle, behind PROTO and perhaps FRAME
PICKLE = "data.pkl"


def root_of(members: dict[str, Member]) -> str | None:
    """The folder of data.pkl with its slash; None where the archive is not torch's."""
    return next((n.removesuffix(PICKLE) for n in members if n == PICKLE or n.endswith("/" + PICKLE)), None)


class ZipStorages:
    """The storages of a zip archive, each made when its pickle first names it."""

    def __init__(self, source: Source, members: dict[str, Member], root: str):
        self.source, self.members, self.root = source, members, root
        self.swapped = self.record("byteorder", sys.byteorder) != sys.byteorder
        self.made: dict[str, Storage] = {}

    def record(self, name: str, default: str) -> str:
        """A short text of the archive."""
        member = self.members.get(self.root + name)
        return default if member is None else contents(self.source, member).tobytes().decode().strip()

    def __call__(self, pid: Any) -> Storage:
        key, dtype, count, location = storage_id(pid)
        if key not in self.made:
            self.made[key] = self.make(key, dtype, count, location)
        return consistent(self.made[key], key, dtype, count)

    def make(self, key: str, dtype: np.dtype, count: int, location: str) -> Storage:
        member = self.members.get(f"{self.root}data/{key}")
        if member is None or member.size != count * dtype.itemsize:
            size = "no such member" if member is None else f"{member.size} bytes"
            raise FileError(f"is corrupt: storage {key!r:.40} wants {count * dtype.itemsize} bytes, there is {size}")
        if self.source.pages is None or member.method == DEFLATED:
            data = contents(self.source, member)
        else:                                # mapped: a checksum would read what the caller may never ask for
            data = contents(self.source, member, dtype.alignment, check=False)
        if self.swapped:
            data.view(dtype).byteswap(inplace=True)
        return Storage(data, dtype, location)


def consistent(storage: Storage, key: str, dtype: np.dtype, count: int) -> Storage:
    """The storage, which must be what a second mention says."""
    if storage.dtype != dtype or storage.data.nbytes != count * dtype.itemsize:
        raise FileError(f"is corrupt: storage {key!r:.40} is described in two ways")
    return storage


def read_zip(source: Source, members: dict[str, Member], root: str, builder: Builder) -> Any:
    """The object in a zip archive of torch.save."""
    if root + "constants.pkl" in members:
        raise FileError("is a TorchScript program; where torch is, save torch.jit.load(f).state_dict() instead")
    pickle = contents(source, members[root + PICKLE])
    source.spend(pickle.nbytes)
    storages = ZipStorages(source, members, root)
    names = Names(builder, source.spend).table()
    return Machine(io.BytesIO(pickle.data), pickle.nbytes, source.spend, names, storages).run()


class LegacyStorages:
    """The storages of a legacy file: memory of the sizes that the pickle names, filled when it has ended."""

    def __init__(self, source: Source):
        self.source, self.made, self.total = source, {}, 0

    def __call__(self, pid: Any) -> Storage:
        key, dtype, count, location = storage_id(pid)
        if key not in self.made:
            size = count * dtype.itemsize
            self.total += size
            if self.total > self.source.size:
                raise FileError(f"is truncated or corrupt: storage {key!r:.40} of {size} bytes does not fit in it")
            self.source.spend(size)
            self.made[key] = Storage(np.empty(size, np.uint8), dtype, location)
        return consistent(self.made[key], key, dtype, count)

    def fill(self, at: int, keys: Any, swapped: bool) -> None:
        """Reads all storages from byte `at` on."""
        known = type(keys) is list and all(type(key) in (str, int) for key in keys)
        if not known or sorted(map(str, keys)) != sorted(self.made):
            raise FileError("is corrupt: its list of storages does not fit its tensors")
        for key in map(str, keys):
            storage = self.made[key]
            count = int.from_bytes(self.source.read(at, 8), "big" if swapped else "little")
            if count * storage.dtype.itemsize != storage.data.nbytes:
                raise FileError(f"is corrupt: storage {key!r:.40} has two sizes")
            self.source.fill(storage.data, at + 8)
            at += 8 + storage.data.nbytes
            if swapped:
                storage.data.view(storage.dtype).byteswap(inplace=True)


def read_legacy(source: Source, builder: Builder) -> Any:
    """The object in a file of torch.save(..., _use_new_zipfile_serialization=False)."""
    file = source.seek(0)
    storages = LegacyStorages(source)
    head = [Machine(file, source.size, source.spend, {}).run() for _ in range(3)]
    if head[:2] != [MAGIC, VERSION] or type(head[2]) is not dict:
        raise FileError("is corrupt: the head of its legacy format is damaged")
    begin = file.tell() - source.origin
    # The bytes stand behind the pickle that describes them: one run to find them, one to build with them.
    Machine(file, source.size, source.spend, Names(Builder(), source.spend).table(), storages).run()
    keys = Machine(file, source.size, source.spend, {}).run()
    storages.fill(file.tell() - source.origin, keys, head[2].get("little_endian") is False)
    return Machine(source.seek(begin), source.size, source.spend, Names(builder, source.spend).table(), storages).run()
