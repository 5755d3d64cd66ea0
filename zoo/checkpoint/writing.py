"""`write` and `convert`: dicts of arrays into files."""
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from zoo.checkpoint.atomic import replacing
from zoo.checkpoint.safetensors_file import write_safetensors
from zoo.checkpoint.state_dict import StateDict, read_state_dict
from zoo.checkpoint.torch_writer import write_torch
from zoo.checkpoint.tree import array_leaf

FORMATS = ("safetensors", "torch")
TORCH_SUFFIXES = (".pt", ".pth", ".bin", ".ckpt")


def format_of(f: Any, format: str | None, caller: str) -> str:  # noqa: A002
    """The format to write: the one that was asked for, else torch's for torch's suffixes, else safetensors."""
    if format is None:
        path = isinstance(f, (str, PathLike))
        return "torch" if path and Path(f).suffix.lower() in TORCH_SUFFIXES else "safetensors"
    if format not in FORMATS:
        raise ValueError(f"{caller}: wants the format {' or '.join(FORMATS)}, got {format!r}")
    return format


def write(f: Any, arrays: dict[str, np.ndarray], *, format: str | None = None) -> None:  # noqa: A002
    """Writes a dict of arrays.

    Args:
        f: a path, replaced in one step (a crash leaves the old file or the new one), or an open binary file.
        arrays: name -> np.ndarray of any strides. "torch" keeps what shares memory shared; safetensors cannot.
        format: "safetensors", or "torch" for the zip format that torch.load(weights_only=True) reads; None: "torch"
            for .pt, .pth, .bin and .ckpt, else "safetensors".

    Raises:
        TypeError: not arrays by name, or a dtype that the format has not. OSError: the file cannot be written.

    Example:
        >>> import numpy as np
        >>> from zoo import checkpoint
        >>> checkpoint.write("w.safetensors", {"w": np.arange(3)})
        >>> checkpoint.read("w.safetensors")
        {'w': array([0, 1, 2])}
    """
    kind = format_of(f, format, "write")
    for name, array in arrays.items():
        if not isinstance(name, str) or not isinstance(array, np.ndarray):
            raise TypeError(f"write: wants arrays by name, got {type(array).__name__} at {name!r}")
    with replacing(f) as file:
        if kind == "torch":
            write_torch(file, arrays, array_leaf)
        else:
            write_safetensors(file, arrays, {"format": "pt"})


def convert(src: Any, dst: Any, *, format: str | None = None, key: str | None = None,  # noqa: A002
            dtype: Any = None) -> StateDict:
    """Reads the weights of one file, and writes them into another.

    Args:
        src: a path or an open binary file of any format that `read` knows.
        dst: where to write; its suffix decides between torch's zip format and safetensors.
        format: as for `write`. key, dtype: as for `read_state_dict`.

    Returns:
        StateDict: what was written, with what was opened and dropped.

    Raises:
        FileError (ValueError, RuntimeError): src is no checkpoint. TypeError: a dtype that the format has not.

    Example:
        >>> import zoo
        >>> from zoo import checkpoint
        >>> zoo.save({"model": {"w": zoo.ones(2)}}, "in.pth")
        >>> checkpoint.convert("in.pth", "out.safetensors").wrappers
        ('model',)
        >>> zoo.load("out.safetensors")
        {'w': tensor([1., 1.])}
    """
    state = read_state_dict(src, key=key, dtype=dtype)
    write(dst, state, format=format)
    return state
