"""zoo.save and zoo.load: nested dicts and lists of tensors in one file. Nothing in a file is executed.

In safetensors the tensors are what any reader sees, and the tree around them (keys, order, numbers, strings) is JSON in
the metadata. In torch's zip format torch.load sees all of it. zoo.checkpoint has the formats.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from zoo.autograd.tensor import Tensor, wrap
from zoo.checkpoint.atomic import replacing
from zoo.checkpoint.builder import Builder
from zoo.checkpoint.errors import FileError as FileError
from zoo.checkpoint.reading import read_source
from zoo.checkpoint.safetensors_file import write_safetensors
from zoo.checkpoint.source import opened
from zoo.checkpoint.torch_writer import write_torch
from zoo.checkpoint.tree import KEY, Leaf, TreeWriter, array_leaf, memory_key
from zoo.checkpoint.writing import format_of
from zoo.nn.parameter import Parameter
from zoo.ops.device import device, put
from zoo.ops.errors import DeviceError


def save(obj: Any, f: Any, format: str | None = None) -> None:  # noqa: A002
    """Writes nested dicts, lists and tuples of tensors, numbers, strings, bools and None into one file.

    Args:
        obj: what to save. Tensors that share memory are stored once, and share it again when loaded.
        f: a path, or an open binary file. A path is replaced in one step: a crash leaves the old file or the new one.
        format: "safetensors", or "torch" for the zip format that torch.load(weights_only=True) reads (NumPy arrays
            become tensors in it); None: "torch" for .pt, .pth, .bin and .ckpt, else "safetensors".

    Raises:
        TypeError: something else in obj; the message says where. OSError: the file cannot be written.

    Example:
        >>> import io, zoo
        >>> file = io.BytesIO()
        >>> zoo.save({"step": 3, "weights": [zoo.ones(2)]}, file)
        >>> zoo.load(io.BytesIO(file.getvalue()))
        {'step': 3, 'weights': [tensor([1., 1.])]}
    """
    if format_of(f, format, "save") == "torch":
        with replacing(f) as file:
            write_torch(file, obj, lambda x: leaf(x) or array_leaf(x))
        return
    writer = TreeWriter(leaf)
    tree = json.dumps(writer.tree(obj), separators=(",", ":"))
    with replacing(f) as file:
        write_safetensors(file, writer.arrays, {"format": "pt", KEY: tree})


def leaf(x: Any) -> Leaf | None:
    """A Tensor as the writers see it; None for anything else."""
    if not isinstance(x, Tensor):
        return None
    return Leaf(x.array, str(x.device), x.requires_grad and x.is_leaf, isinstance(x, Parameter))


class TensorBuilder(Builder):
    """Makes Tensors on their devices; what shares memory in the file shares it there."""

    def __init__(self, place: Callable[[np.ndarray, str], Any]):
        self.place, self.placed = place, {}

    def tensor(self, array: np.ndarray, location: str, requires_grad: bool) -> Tensor:
        key = (*memory_key(array), location)
        if key not in self.placed:
            self.placed[key] = array, self.place(array, location)
        out = wrap(self.placed[key][1])
        return out.requires_grad_() if requires_grad else out

    def parameter(self, tensor: Tensor, requires_grad: bool) -> Parameter:
        return Parameter(tensor, requires_grad)

    def device(self, name: str) -> device:
        try:
            return device(name)
        except DeviceError as error:
            raise FileError(f"is corrupt: {error}") from None


def placer(map_location: Any) -> Callable[[np.ndarray, str], Any]:
    """(array, device it was saved from) -> array on the device it goes to."""

    def place(array: np.ndarray, where: str) -> Any:
        wanted = map_location.get(where) if isinstance(map_location, dict) else map_location
        target = where if wanted is None else wanted
        try:
            return put(array, device(target))
        except Exception as error:
            if wanted is not None:
                raise
            raise FileError(
                f"has tensors from {where}, which is not here ({error}); map_location='cpu' loads them onto the CPU"
            ) from error

    return place


def load(f: Any, map_location: Any = None, *, weights_only: bool = True, mmap: bool = False) -> Any:
    """Reads what zoo.save or torch.save wrote, any safetensors file, or an .npz file. Never runs code.

    Args:
        f: a path, or an open binary file. The format is told by the content.
        map_location: the device to put all tensors on, or a dict {saved: wanted}; default the one they were saved from.
        weights_only: taken for torch's sake; there is nothing else.
        mmap: tensors on the CPU are pages of the file, loaded when touched; it must then not be changed in place.

    Returns:
        What was saved; a dict of tensors by name for files of other safetensors writers and for .npz.

    Raises:
        FileError (ValueError, RuntimeError): truncated, corrupt, hostile, or of another format. OSError: not readable.

    Example:
        >>> import zoo
        >>> zoo.save({"w": zoo.ones(2)}, "w.pt")
        >>> zoo.load("w.pt")
        {'w': tensor([1., 1.])}
    """
    with opened(f, mmap) as source:
        return read_source(source, TensorBuilder(placer(map_location)))
