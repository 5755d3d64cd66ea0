"""NumPy's .npy and .npz, numbers only: what would need pickle is refused.

Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""
import io
import math

import numpy as np
from numpy.lib import format as npy

from zoo.checkpoint.errors import FileError
from zoo.checkpoint.opcodes import ORDERED
from zoo.checkpoint.source import Source
from zoo.checkpoint.zip_file import Member, contents

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 10_000       # NumPy's own limit for text that it evaluates as a literal
KINDS = "biufc"
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_npz(source: Source, members: dict[str, Member]) -> dict[str, np.ndarray]:
    """The arrays of an .npz archive by name."""
    return {name.removesuffix(".npy"): parse(source, contents(source, member, 64)) for name, member in members.items()}


def read_npy(source: Source) -> np.ndarray:
    """The array of an .npy file."""
    return parse(source, source.array(0, source.size, 64))


def parse(source: Source, data: np.ndarray) -> np.ndarray:
    """The array in the bytes of an .npy file; it shares their memory."""
    source.spend(ORDERED)
    head = io.BytesIO(data[: LONGEST_HEADER + 12].tobytes())
    version = npy.read_magic(head)
    if version not in HEADERS:
        raise FileError(f"has an .npy header of version {version}, which only structured arrays need")
    shape, fortran, dtype = HEADERS[version](head, max_header_size=LONGEST_HEADER)
    if dtype.kind not in KINDS:
        raise FileError(f"is refused: it has an array of dtype {dtype.str!r:.40}, and only numbers are read")
    if any(type(n) is not int or n < 0 for n in shape):
        raise FileError(f"is corrupt: it has an array of shape {shape!r:.80}")
    begin = head.tell()
    if data.nbytes - begin != math.prod(shape) * dtype.itemsize:
        raise FileError(f"is truncated or corrupt: an array of shape {shape} has {data.nbytes - begin} bytes")
    array = np.ndarray(shape, dtype, data.data, begin, order="F" if fortran else "C")
    if not dtype.isnative:
        array = array.byteswap(inplace=True).view(dtype.newbyteorder("="))
    return array
