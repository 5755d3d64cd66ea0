"""Dimensions: what `dim` means for an array, and what is left of a shape when some are reduced."""
import math

from zoo.ops.errors import ArgumentError, DimError


def wrap(op: str, dim: int, ndim: int) -> int:
    """A dimension counted from the front. An array without dimensions takes 0 and -1, as one with one."""
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"{op}: wants an integer dim, got {dim!r}")
    count = max(ndim, 1)
    if not -count <= dim < count:
        raise DimError(f"{op}: wants dim from {-count} to {count - 1} for {ndim} dimensions, got {dim}")
    return dim.__index__() % count


def wrap_all(op: str, dim, ndim: int) -> tuple[int, ...]:
    """The reduced dimensions in ascending order; None and () mean all of them."""
    if dim is None:
        return tuple(range(ndim))
    if hasattr(dim, "__index__") or not hasattr(dim, "__iter__"):
        dims = (wrap(op, dim, ndim),)
    else:
        dims = tuple(sorted(wrap(op, d, ndim) for d in dim)) or tuple(range(ndim))
    if len(set(dims)) != len(dims):
        raise ArgumentError(f"{op}: wants each dim once, got {dim}")
    return dims if ndim else ()


def reduced(shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    """The shape after reducing `dims`."""
    if keepdim:
        return tuple(1 if i in dims else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in dims)


def count(shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    """How many elements go into one element of the result."""
    return math.prod(shape[d] for d in dims)
