"""NumPy's .npy and .npz, numbers only: what would need pickle is refused, and no header is evaluated.

.npy: magic and version (8 bytes), length of the header (2 bytes; 4 since version 2), header, elements.
Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""
import math
import re

import numpy as np

from zoo.checkpoint.costs import ORDERED
from zoo.checkpoint.errors import FileError
from zoo.checkpoint.source import Source
from zoo.checkpoint.zip_file import Member, contents

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 10_000
LENGTHS = {b"\1\0": 2, b"\2\0": 4, b"\3\0": 4}         # version -> bytes of the header's length
HEADER = re.compile(rb"\{(?=.*'descr': *'([<>|=][biufc]\d{1,2})')(?=.*'fortran_order': *(True|False))"
                    rb"(?=.*'shape': *\(([\d, ]*)\)).*\}\s*")


def read_npz(source: Source, members: dict[str, Member]) -> dict[str, np.ndarray]:
    """The arrays of an .npz archive by name."""
    return {name.removesuffix(".npy"): parse(source, contents(source, member, 64)) for name, member in members.items()}


def read_npy(source: Source) -> np.ndarray:
    """The array of an .npy file."""
    return parse(source, source.array(0, source.size, 64))


def parse(source: Source, data: np.ndarray) -> np.ndarray:
    """The array in the bytes of an .npy file; it shares their memory."""
    source.spend(ORDERED)
    head = data[: LONGEST_HEADER + 12].tobytes()
    width = LENGTHS.get(head[6:8])
    if not head.startswith(MAGIC) or width is None:
        raise FileError(f"is corrupt or of a later version: an array begins with {head[:8]!r}")
    begin = 8 + width + int.from_bytes(head[8 : 8 + width], "little")
    match = HEADER.fullmatch(head[8 + width : begin])
    if match is None:
        raise FileError(f"is refused: only arrays of numbers are read, and one is {head[8 + width : begin]!r:.80}")
    dtype, fortran = np.dtype(match[1].decode()), match[2] == b"True"
    shape = tuple(int(n) for n in match[3].split(b",") if n.strip())
    if data.nbytes - begin != math.prod(shape) * dtype.itemsize:
        raise FileError(f"is truncated or corrupt: an array of shape {shape!r:.80} has {data.nbytes - begin} bytes")
    array = np.ndarray(shape, dtype, data.data, begin, order="F" if fortran else "C")
    return array if dtype.isnative else array.byteswap(inplace=True).view(dtype.newbyteorder("="))
