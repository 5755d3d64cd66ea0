"""zoo.save and zoo.load: nested dicts and lists of tensors in one .safetensors file. Nothing in a file is executed.

The tensors are what any reader of safetensors sees; the tree around them (keys, order, numbers, strings) is JSON in
the file's metadata under "zoo". A dict of tensors keeps its keys as names, so a state_dict fits everywhere.
Format: 8 bytes length, JSON header, data (https://github.com/huggingface/safetensors#format).
"""

import json
import math
import os
import secrets
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from zoo.autograd.tensor import Tensor, wrap
from zoo.nn.parameter import Parameter
from zoo.ops.device import device as device_class
from zoo.ops.device import fetch, put
from zoo.ops.dtypes import bfloat16

DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
}
BY_NAME = {name: np.dtype(text) for name, text in DTYPES.items()} | {"BF16": bfloat16}
NAMES = {dtype: name for name, dtype in BY_NAME.items()}
MAX_HEADER = 100 << 20


class FileError(ValueError, RuntimeError):
    """A file that is not what it should be: truncated, corrupt, or of another format."""


# --- the tree ----------------------------------------------------------------------------------------------------
class Writer:
    """Turns an object into a tree of JSON and a dict of arrays; what shares memory is stored once."""

    def __init__(self):
        self.arrays: dict[str, np.ndarray] = {}
        self.names: dict[tuple, str] = {}
        self.keep: list = []  # arrays stay alive, so that no address is used twice

    def store(self, array: Any, path: tuple) -> str:
        """The name under which an array is stored."""
        where = array.__array_interface__["data"][0] if isinstance(array, np.ndarray) else array.data_ptr()
        key = (type(array), where, array.shape, array.strides, array.dtype, path if not array.size else None)
        if key not in self.names:
            name = base = ".".join(map(str, path)) or "tensor"
            count = 1
            while name in self.arrays or name == "__metadata__":
                count += 1
                name = f"{base}#{count}"
            host = fetch(array)
            if host.dtype not in NAMES:
                raise TypeError(f"save: {name}: safetensors has no dtype {host.dtype}")
            self.names[key], self.arrays[name] = name, host
            self.keep.append(array)
        return self.names[key]

    def tree(self, x: Any, path: tuple = ()) -> Any:
        """x as JSON: what JSON has not is a one-entry dict whose key says the kind."""
        if x is None or isinstance(x, (bool, str)):
            return x
        if isinstance(x, np.generic):
            x = x.item()
        if isinstance(x, (int, float)):
            return x
        if isinstance(x, complex):
            return {"complex": [x.real, x.imag]}
        if isinstance(x, Tensor):
            kind = "parameter" if isinstance(x, Parameter) else "tensor"
            return {kind: [self.store(x.array, path), str(x.device), x.requires_grad and x.is_leaf]}
        if isinstance(x, np.ndarray):
            return {"array": self.store(x, path)}
        if isinstance(x, (list, tuple)):
            return {"tuple" if isinstance(x, tuple) else "list": [self.tree(v, (*path, k)) for k, v in enumerate(x)]}
        if isinstance(x, dict):
            kind = "ordered" if isinstance(x, OrderedDict) else "dict"
            return {kind: [[self.key(k, path), self.tree(v, (*path, k))] for k, v in x.items()]}
        if isinstance(x, np.dtype):
            return {"dtype": NAMES[x]}
        if isinstance(x, device_class):
            return {"device": str(x)}
        raise TypeError(
            f"save: wants tensors, numbers, strings, bools, None and dicts, lists and tuples of them, got "
            f"{type(x).__name__} at {'.'.join(map(str, path)) or 'the top'}"
        )

    def key(self, key: Any, path: tuple) -> Any:
        """A dict's key: a string, number, bool, None, or a tuple of them."""
        if isinstance(key, (Tensor, np.ndarray, dict, list)):
            raise TypeError(
                f"save: wants keys of strings or numbers, got {type(key).__name__} at {'.'.join(map(str, path))}"
            )
        return self.tree(key, path)


class Reader:
    """The inverse of Writer, on the arrays of a file."""

    def __init__(self, arrays: dict[str, np.ndarray], place):
        self.arrays, self.place, self.placed = arrays, place, {}

    def tensor(self, name: str, where: str) -> Any:
        """The array `name` on its device; the same one for the same name."""
        if (name, where) not in self.placed:
            self.placed[name, where] = self.place(self.arrays[name], where)
        return self.placed[name, where]

    def object(self, x: Any) -> Any:
        """What Writer.tree was given."""
        if not isinstance(x, dict):
            return x
        ((kind, value),) = x.items()
        if kind in ("tensor", "parameter"):
            out = wrap(self.tensor(*value[:2]))
            return Parameter(out, value[2]) if kind == "parameter" else out.requires_grad_() if value[2] else out
        if kind == "array":
            return self.arrays[value]
        if kind in ("dict", "ordered"):
            return (dict if kind == "dict" else OrderedDict)((self.object(k), self.object(v)) for k, v in value)
        if kind in ("list", "tuple"):
            return (list if kind == "list" else tuple)(map(self.object, value))
        if kind == "complex":
            return complex(*value)
        return {"dtype": BY_NAME.get, "device": device_class}[kind](value)


# --- the file ----------------------------------------------------------------------------------------------------
def header_of(arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> tuple[bytes, list[np.ndarray]]:
    """The file's first part, and the arrays in the order they follow in: wide elements first, so all are aligned."""
    order = sorted(arrays, key=lambda name: -arrays[name].itemsize)
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name in order:
        start, end = end, end + arrays[name].nbytes
        header[name] = {"dtype": NAMES[arrays[name].dtype], "shape": arrays[name].shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, [arrays[name] for name in order]


def write(file: Any, head: bytes, arrays: list[np.ndarray]) -> None:
    """The header, then the arrays' bytes."""
    file.write(head)
    for array in arrays:
        file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def save(obj: Any, f: Any) -> None:
    """Writes nested dicts, lists and tuples of tensors, numbers, strings, bools and None into one .safetensors file.

    Args:
        obj: what to save. Tensors that share memory are stored once, and share it again when loaded.
        f: a path, or an open binary file. A path is replaced in one step: a crash leaves the old file or the new one.

    Raises:
        TypeError: something else in obj; the message says where. OSError: the file cannot be written.

    Example:
        >>> import io, zoo
        >>> file = io.BytesIO()
        >>> zoo.save({"step": 3, "weights": [zoo.ones(2)]}, file)
        >>> zoo.load(io.BytesIO(file.getvalue()))
        {'step': 3, 'weights': [tensor([1., 1.])]}
    """
    writer = Writer()
    tree = json.dumps(writer.tree(obj), separators=(",", ":"))
    head, arrays = header_of(writer.arrays, {"format": "pt", "zoo": tree})
    if hasattr(f, "write"):
        write(f, head, arrays)
        return
    path = Path(f)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(beside, "xb") as file:
            write(file, head, arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """The rename itself reaches the disk; not every system lets a folder be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


def parse(file: Any, name: str, size: int) -> tuple[dict[str, Any], int]:
    """The checked header of an open file, and where the data begins."""
    first = file.read(8)
    if first[:2] == b"PK" or first[:1] == b"\x80":
        raise FileError(
            f"load: {name} is a pickle made by torch.save; zoo.load reads .safetensors, and never runs code"
        )
    length = int.from_bytes(first, "little")
    if len(first) < 8 or not 2 <= length <= min(MAX_HEADER, size - 8):
        raise FileError(f"load: {name} is not a safetensors file: {size} bytes, no header")
    try:
        header = json.loads(file.read(length))
        if not isinstance(header, dict):
            raise ValueError
    except (ValueError, RecursionError):
        raise FileError(f"load: {name} is corrupt: the header is not JSON") from None
    check(header, name, size - 8 - length)
    return header, 8 + length


def check(header: dict[str, Any], name: str, size: int) -> None:
    """Every tensor lies in the data, has the size that its shape asks for, and overlaps no other."""
    end = 0
    rows = {k: v for k, v in header.items() if k != "__metadata__"}
    try:
        for key, row in sorted(rows.items(), key=lambda kv: kv[1]["data_offsets"]):
            (start, stop), shape = row["data_offsets"], row["shape"]
            if row["dtype"] not in BY_NAME:
                raise FileError(f"load: {name}: tensor {key!r} has dtype {row['dtype']}, which zoo has not")
            if any(type(n) is not int or n < 0 for n in (*shape, start, stop)):
                raise ValueError
            if start != end or stop - start != math.prod(shape) * BY_NAME[row["dtype"]].itemsize:
                raise FileError(
                    f"load: {name} is corrupt: the offsets of tensor {key!r} do not fit its shape and neighbours"
                )
            end = stop
    except FileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError):
        raise FileError(f"load: {name} is corrupt: the header does not describe tensors") from None
    if end != size:
        what = f"{end - size} bytes are missing" if end > size else f"{size - end} bytes too many"
        raise FileError(f"load: {name} is corrupt or truncated: {what}")


def read_arrays(file: Any, header: dict[str, Any], begin: int, name: str) -> dict[str, np.ndarray]:
    """All arrays of a file whose header was checked."""
    arrays = {}
    for key, row in header.items():
        if key == "__metadata__":
            continue
        array = np.empty(row["shape"], BY_NAME[row["dtype"]])
        file.seek(begin + row["data_offsets"][0])
        data = file.read(array.nbytes)
        if len(data) != array.nbytes:
            raise FileError(f"load: {name} is truncated inside tensor {key!r}")
        array.reshape(-1).view(np.uint8)[...] = np.frombuffer(data, np.uint8)
        arrays[key] = array
    return arrays


def placer(map_location: Any, name: str):
    """(array, device it was saved from) -> array on the device it goes to."""

    def place(array: np.ndarray, where: str) -> Any:
        target = (
            map_location.get(where, where)
            if isinstance(map_location, dict)
            else where
            if map_location is None
            else map_location
        )
        try:
            return put(array, device_class(target))
        except Exception as error:
            if map_location is not None:
                raise
            raise FileError(
                f"load: {name} has tensors from {where}, which is not here ({error}); map_location='cpu' "
                "loads them onto the CPU"
            ) from error

    return place


def load(f: Any, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Reads what `save` wrote, or any other .safetensors file (a dict of tensors). Never runs code.

    Args:
        f: a path, or an open binary file.
        map_location: the device to put all tensors on, or a dict {saved: wanted}; default the one they were saved from.
        weights_only: taken for torch's sake; there is nothing else.

    Raises:
        FileError (ValueError, RuntimeError): truncated, corrupt, or of another format. OSError: not readable.
    """
    if hasattr(f, "read"):
        import io

        data = f.read()
        return read(io.BytesIO(data), "the file", len(data), map_location)
    with open(f, "rb") as file:
        return read(file, str(f), os.fstat(file.fileno()).st_size, map_location)


def read(file: Any, name: str, size: int, map_location: Any) -> Any:
    """What an open file of `size` bytes holds."""
    header, begin = parse(file, name, size)
    arrays = read_arrays(file, header, begin, name)
    reader = Reader(arrays, placer(map_location, name))
    metadata = header.get("__metadata__")
    text = metadata.get("zoo") if isinstance(metadata, dict) else None
    if text is None:
        return {key: wrap(reader.tensor(key, "cpu")) for key in arrays}
    try:
        return reader.object(json.loads(text))
    except FileError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FileError(f"load: {name} is corrupt: the tree in its metadata does not fit its tensors") from None
