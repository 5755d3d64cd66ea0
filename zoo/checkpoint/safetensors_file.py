"""The safetensors format: 8 bytes length, a JSON header, the tensors' bytes without gaps.

Source: https://github.com/huggingface/safetensors#format
"""
import json
import math
from typing import Any, BinaryIO

import numpy as np

from zoo.checkpoint.costs import DICT, LIST, NUMBER, ORDERED
from zoo.checkpoint.dtypes import SAFETENSORS, SAFETENSORS_NAMES, native
from zoo.checkpoint.errors import FileError
from zoo.checkpoint.source import Source

MAX_HEADER = 100 << 20        # the format's own limit
METADATA = "__metadata__"


def read_safetensors(source: Source) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays by name and the metadata; the arrays are mapped where the source is."""
    header, begin = parse(source)
    metadata = header.pop(METADATA, {})
    check(header, source.size - begin)
    arrays = {}
    for name, row in header.items():
        dtype, (start, stop) = SAFETENSORS[row["dtype"]], row["data_offsets"]
        source.spend(ORDERED)
        arrays[name] = source.array(begin + start, stop - start, dtype.alignment).view(dtype).reshape(row["shape"])
    return arrays, metadata if type(metadata) is dict else {}


def parse(source: Source) -> tuple[dict[str, Any], int]:
    """The header, and where the data begins."""
    length = int.from_bytes(source.read(0, min(8, source.size)), "little")
    if not 2 <= length <= min(MAX_HEADER, source.size - 8):
        raise FileError(f"is not a safetensors file, or is truncated: {source.size} bytes, no whole header")
    text = source.read(8, length)
    # the most that JSON of this shape can take: an upper bound for each container and each item
    source.spend(2 * length + DICT * text.count(b"{") + LIST * text.count(b"[") + NUMBER * text.count(b","))
    try:
        header = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise FileError("is corrupt: the header is not JSON with one row for each name") from None
    if type(header) is not dict:
        raise FileError("is corrupt: the header is not JSON with one row for each name")
    return header, 8 + length


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; of two rows of one name readers would choose differently."""
    if len(out := dict(pairs)) != len(pairs):
        raise ValueError("a name stands twice")
    return out


def check(rows: dict[str, Any], size: int) -> None:
    """Every tensor lies in the data, has the size that its shape asks for, and overlaps no other."""
    end = 0
    try:
        for name, row in sorted(rows.items(), key=lambda item: item[1]["data_offsets"]):
            (start, stop), shape = row["data_offsets"], row["shape"]
            if row["dtype"] not in SAFETENSORS:
                raise FileError(f"has the tensor {name!r:.80} of dtype {row['dtype']!r:.20}, which zoo has not")
            if any(type(n) is not int or n < 0 for n in (*shape, start, stop)):
                raise ValueError
            if start != end or stop - start != math.prod(shape) * SAFETENSORS[row["dtype"]].itemsize:
                raise FileError(f"is corrupt: the offsets of tensor {name!r:.80} do not fit its shape and neighbours")
            end = stop
    except FileError:
        raise
    except (LookupError, TypeError, ValueError):
        raise FileError("is corrupt: the header does not describe tensors") from None
    if end != size:
        what = f"{end - size} bytes are missing" if end > size else f"{size - end} bytes too many"
        raise FileError(f"is corrupt or truncated: {what}")


def write_safetensors(file: BinaryIO, arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Writes arrays of any strides; wide elements come first, so that all are aligned.

    Raises:
        TypeError: an array of a dtype that the format has not.
    """
    arrays = {name: native(array) for name, array in arrays.items()}
    order = sorted(arrays, key=lambda name: -arrays[name].itemsize)
    header: dict[str, Any] = {METADATA: metadata}
    end = 0
    for name in order:
        array = arrays[name]
        if array.dtype not in SAFETENSORS_NAMES:
            raise TypeError(f"save: {name}: safetensors has no dtype {array.dtype}")
        start, end = end, end + array.nbytes
        header[name] = {"dtype": SAFETENSORS_NAMES[array.dtype], "shape": array.shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for name in order:
        file.write(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data)
