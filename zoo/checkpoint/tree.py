"""Nested dicts, lists and values as JSON beside the arrays of a safetensors file (in its metadata, under "zoo").

What JSON has not is a one-entry object whose key says the kind: {"tensor": [name, device, requires_grad]}.
"""
import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zoo.checkpoint.builder import Builder
from zoo.checkpoint.dtypes import SAFETENSORS, SAFETENSORS_NAMES
from zoo.checkpoint.errors import FileError
from zoo.checkpoint.opcodes import PLAIN_KEYS, check_key, parts_of
from zoo.ops.device import device, fetch

KEY = "zoo"                   # of the metadata


class Leaf(NamedTuple):
    """A tensor as the writers see it: ndarray or DeviceArray, device, whether it requires grad, whether a Parameter."""
    array: Any
    location: str
    requires_grad: bool
    parameter: bool


def array_leaf(x: Any) -> Leaf | None:
    """The Leaf of a plain array, which is saved as a tensor; None for anything else."""
    return Leaf(x, "cpu", False, False) if isinstance(x, np.ndarray) else None


def memory_key(array: Any) -> tuple:
    """Equal for arrays that are the same view of the same memory, while both live."""
    where = array.__array_interface__["data"][0] if isinstance(array, np.ndarray) else array.data_ptr()
    return type(array), where, array.shape, array.strides, array.dtype


def place_of(path: tuple) -> str:
    """A place in nested containers as a message shows it."""
    return ".".join(map(str, path)) or "the top"


class TreeWriter:
    """Turns an object into a tree of JSON and a dict of arrays; what shares memory is stored once.

    Args:
        leaf: the Leaf of a tensor, None for what is none.
    """

    def __init__(self, leaf: Callable[[Any], Leaf | None]):
        self.leaf = leaf
        self.arrays: dict[str, np.ndarray] = {}
        self.names: dict[tuple, str] = {}
        self.keep: list = []  # arrays stay alive, so that no address is used twice

    def store(self, array: Any, path: tuple) -> str:
        """The name under which an array is stored."""
        key = (*memory_key(array), path if not array.size else None)
        if key not in self.names:
            name = base = ".".join(map(str, path)) or "tensor"
            count = 1
            while name in self.arrays or name == "__metadata__":
                count += 1
                name = f"{base}#{count}"
            self.names[key], self.arrays[name] = name, fetch(array)
            self.keep.append(array)
        return self.names[key]

    def tree(self, x: Any, path: tuple = ()) -> Any:
        """x as JSON."""
        if isinstance(x, np.generic):
            x = x.item()
        if x is None or isinstance(x, (bool, str, int, float)):
            return x
        if isinstance(x, complex):
            return {"complex": [x.real, x.imag]}
        if isinstance(x, np.ndarray):
            return {"array": self.store(x, path)}
        if (leaf := self.leaf(x)) is not None:
            kind = "parameter" if leaf.parameter else "tensor"
            return {kind: [self.store(leaf.array, path), leaf.location, leaf.requires_grad]}
        if isinstance(x, (list, tuple)):
            return {"tuple" if isinstance(x, tuple) else "list": [self.tree(v, (*path, k)) for k, v in enumerate(x)]}
        if isinstance(x, dict):
            kind = "ordered" if isinstance(x, OrderedDict) else "dict"
            return {kind: [[self.key(k, path), self.tree(v, (*path, k))] for k, v in x.items()]}
        if isinstance(x, np.dtype) and x in SAFETENSORS_NAMES:
            return {"dtype": SAFETENSORS_NAMES[x]}
        if isinstance(x, device):
            return {"device": str(x)}
        raise unknown(x, path)

    def key(self, key: Any, path: tuple) -> Any:
        """A dict's key: a string, number, bool, None, or a tuple of them."""
        wanted_key(key, path)
        return self.tree(key, path)


def unknown(x: Any, path: tuple) -> TypeError:
    """The error for a value that no format holds."""
    return TypeError(
        f"save: wants tensors, numbers, strings, bools, None and dicts, lists and tuples of them, got "
        f"{type(x).__name__} at {place_of(path)}"
    )


def wanted_key(key: Any, path: tuple) -> None:
    """Raises TypeError for a key that the readers would refuse."""
    if not all(isinstance(part, (*PLAIN_KEYS, np.generic)) for part in parts_of(key)):
        raise TypeError(f"save: wants keys of strings or numbers, got {type(key).__name__} at {place_of(path)}")


class TreeReader:
    """The inverse of TreeWriter, on the arrays of a file."""

    def __init__(self, arrays: dict[str, np.ndarray], builder: Builder):
        self.arrays, self.builder = arrays, builder

    def object(self, x: Any) -> Any:
        """What TreeWriter.tree was given."""
        if not isinstance(x, dict):
            return x
        ((kind, value),) = x.items()
        if kind in ("tensor", "parameter"):
            name, where, wanted = value
            out = self.builder.tensor(self.arrays[name], where, wanted is True and kind == "tensor")
            return self.builder.parameter(out, wanted is True) if kind == "parameter" else out
        if kind == "array":
            return self.arrays[value]
        if kind in ("dict", "ordered"):
            return (dict if kind == "dict" else OrderedDict)((self.key(k), self.object(v)) for k, v in value)
        if kind in ("list", "tuple"):
            return (list if kind == "list" else tuple)(map(self.object, value))
        if kind == "complex":
            return complex(*value)
        return {"dtype": SAFETENSORS.__getitem__, "device": self.builder.device}[kind](value)

    def key(self, x: Any) -> Any:
        key = self.object(x)
        check_key(key)
        return key


def read_tree(text: str, arrays: dict[str, np.ndarray], builder: Builder) -> Any:
    """The object whose tree is the JSON `text`."""
    try:
        return TreeReader(arrays, builder).object(json.loads(text))
    except FileError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise FileError("is corrupt: the tree in its metadata does not fit its tensors") from None
