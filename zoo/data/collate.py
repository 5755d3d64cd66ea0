"""A list of samples as one batch, and a batch in page-locked memory."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from zoo.autograd.convert import pinned
from zoo.autograd.creation import tensor
from zoo.autograd.tensor import Tensor, wrap
from zoo.ops.errors import ShapeError
from zoo.ops.face.join import stack


def default_collate(batch: Sequence[Any]) -> Any:
    """Samples as one batch: tensors are stacked, numbers become one tensor, tuples and dicts go field by field.

    Args:
        batch: samples of one structure. Python floats give float64, ints int64; a tuple gives a list; texts
            stay as they come.

    Returns:
        The structure of one sample, with a first dimension of len(batch) on every tensor.

    Raises:
        TypeError: something that is no tensor, array, number, text, mapping or sequence.
        ShapeError (ValueError, RuntimeError): samples of unequal shapes or lengths.

    Example:
        >>> from zoo.data import default_collate
        >>> default_collate([(1, "a"), (2, "b")])
        [tensor([1, 2]), ('a', 'b')]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        plain = all(type(s.array) is np.ndarray and not s.requires_grad for s in batch)
        return wrap(stacked([s.array for s in batch])) if plain else stack(batch)
    if type(first) in (bool, int):
        return tensor(batch)                                     # of ints and floats: the default dtype, as in torch
    of_texts_or_objects = isinstance(first, np.ndarray) and first.dtype.kind in "OSU"
    if isinstance(first, (bool, int, float, complex, np.number, np.bool_, np.ndarray)) and not of_texts_or_objects:
        return tensor(stacked([np.asarray(s) for s in batch]))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return like(first, {key: default_collate([s[key] for s in batch]) for key in first})
    if isinstance(first, Sequence):
        if any(len(s) != len(first) for s in batch):
            raise ShapeError(f"default_collate: wants samples of one length, got {sorted({len(s) for s in batch})}")
        return like(first, [default_collate(field) for field in zip(*batch, strict=True)])
    raise TypeError(
        f"default_collate: wants tensors, arrays, numbers, texts, mappings or sequences, got {type(first).__name__}"
    )


def stacked(arrays: list[np.ndarray]) -> np.ndarray:
    """Arrays of one shape as one, with a first dimension more."""
    if len({a.shape for a in arrays}) > 1:
        raise ShapeError(f"default_collate: wants samples of one shape, got {sorted({a.shape for a in arrays})}")
    return np.stack(arrays)


def default_convert(data: Any) -> Any:
    """One sample as a DataLoader without batches gives it: arrays become tensors, all else stays.

    Example:
        >>> import numpy as np
        >>> from zoo.data import default_convert
        >>> default_convert({"x": np.arange(2), "y": 3})
        {'x': tensor([0, 1]), 'y': 3}
    """
    return map_leaves(data, lambda x: tensor(x) if isinstance(x, (np.ndarray, np.number)) else x)


def map_leaves(data: Any, function: Callable[[Any], Any]) -> Any:
    """`function` on every leaf of nested mappings and sequences."""
    if isinstance(data, Mapping):
        return like(data, {key: map_leaves(value, function) for key, value in data.items()})
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return like(data, [map_leaves(value, function) for value in data])
    return function(data)


def like(first: Any, made: Any) -> Any:
    """`made` (a dict or a list) as an object of first's class; as it is where that class takes something else."""
    kind = type(first)
    if kind in (dict, list, tuple, range):  # a plain tuple becomes a list, as in torch
        return made
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*made)
    try:
        return kind(made)
    except TypeError:
        return made


def pin(batch: Any) -> Any:
    """The batch with its CPU tensors in page-locked memory, whose copies to the GPU run beside the host."""
    return map_leaves(batch, lambda x: pinned(x) if isinstance(x, Tensor) and not x.is_cuda else x)


def can_pin() -> bool:
    """Whether there is a GPU to copy to; under the interpreter the device's memory is the host's."""
    from zoo.ops import cuda

    return cuda.is_available() and not cuda.is_interpreting()
