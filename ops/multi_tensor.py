"""Lists of arrays worked on together, in place: norms and clipping of gradients, unscaling, averages, zeros.

Not records in the registry: they write into their arguments, and have no derivative. On a GPU each is one launch for
all arrays of a dtype (multi_tensor_gpu.py), whatever their number, and none of them waits for the GPU.
"""
import sys
from collections.abc import Sequence
from functools import reduce
from types import ModuleType
from typing import Any

import numpy as np

from zoo.ops.dtypes import FLOATS, HALVES, SIGNED, float32, float64, join, uint8
from zoo.ops.optim import pieces
from zoo.ops.pieces import each

DTYPES = FLOATS | SIGNED | {uint8}       # of arrays that can be averaged; everything else takes FLOATS


def lists_for(kind: type) -> ModuleType:
    """The module whose functions take arrays of this type: this one, or that of the kernels."""
    if kind is np.ndarray:
        return sys.modules[__name__]
    from zoo.ops import multi_tensor_gpu
    return multi_tensor_gpu


def norm(arrays: Sequence[Any], order: float) -> Any:
    """(sum |x|^order)^(1/order) over all elements of all arrays; the largest |x| for order inf, nan if there is one.

    Half types are added up in float32 and rounded once; the order of the sums depends on the sizes alone.

    Args:
        arrays: floating, at least one, on one device. order: above 0.

    Returns:
        A 0-d array of the arrays' common dtype.
    """
    flat = [x for a in arrays for x, in pieces((np.ravel(a, "K"),))]
    parts: list[Any] = [0.0] * len(flat)

    def work(k: int) -> None:
        parts[k] = part_of(flat[k], order)
    each(work, list(range(len(flat))), sum(a.size for a in arrays))
    total = reduce(np.maximum, parts) if order == np.inf else reduce(np.add, parts) ** (1.0 / order)
    return np.asarray(total, reduce(join, (a.dtype for a in arrays)))


def part_of(x: np.ndarray, order: float) -> Any:
    """What a piece adds to the norm, in float32 for half types."""
    x = np.abs(x.astype(float32) if x.dtype in HALVES else x)
    if order == np.inf:
        return x.max(initial=0)
    if order == 2:
        x *= x
    elif order != 1:
        x **= order
    return x.sum()


def clip_to_norm(arrays: Sequence[Any], total: Any, most: float) -> None:
    """x *= min(1, most / (total + 1e-6)) for each array, in place.

    Args:
        total: 0-d array, what `norm` gave. most: the norm that is allowed.
    """
    wide = join(total.dtype, float32)
    factor = np.minimum(wide.type(most) / (total.astype(wide) + wide.type(1e-6)), 1)
    scale(arrays, factor)


def scale(arrays: Sequence[Any], factor: Any) -> None:
    """x *= factor for each array, in place; half types are rounded once."""
    def work(parts: Sequence[np.ndarray]) -> None:
        x, = parts
        wide = float32 if x.dtype in HALVES else x.dtype
        np.multiply(x, wide.type(factor), out=x, dtype=wide, casting="same_kind")
    in_pieces(work, [(a,) for a in arrays])


def clip_to_value(arrays: Sequence[Any], most: float) -> None:
    """x = min(max(x, -most), most) for each array, in place; nan stays."""
    def work(parts: Sequence[np.ndarray]) -> None:
        np.clip(parts[0], -most, most, out=parts[0])
    in_pieces(work, [(a,) for a in arrays])


def unscale(arrays: Sequence[Any], inverse: Any) -> Any:
    """x *= inverse for each array, in place.

    Args:
        arrays: floating, at least one, on one device. inverse: a number, or a 0-d array on the device.

    Returns:
        found_inf: bool (1,), whether a result is infinite or nan.
    """
    scale(arrays, inverse)
    return np.array([not all(np.isfinite(a).all() for a in arrays)])


def average(arrays: Sequence[Any], others: Sequence[Any], weight: Any) -> None:
    """x += weight (y - x) for each pair, in place, exact at both ends; integers are rounded towards 0.

    Args:
        arrays: floating or integers, at least one. others: y, of the same shapes and dtypes.
        weight: a number in [0, 1], or on a GPU also a 0-d array.
    """
    def work(parts: Sequence[np.ndarray]) -> None:
        x, y = parts
        if weight == 1:
            x[...] = y
            return
        if x.dtype.kind in "iu":             # rounded to float32 before it is cut: of 3 - 1e-16 nobody wants 2
            x[...] = (x * (1 - float64.type(weight)) + y * float64.type(weight)).astype(float32)
            return
        wide = float32 if x.dtype in HALVES else x.dtype
        a, b, w = x.astype(wide, copy=False), y.astype(wide, copy=False), wide.type(weight)
        x[...] = a + w * (b - a) if w < 0.5 else b - (b - a) * (1 - w)
    in_pieces(work, list(zip(arrays, others, strict=True)))


def cast_all(arrays: Sequence[Any], dtype: Any) -> list[Any]:
    """Each array in another dtype, in memory of its own where it lies as the array does.

    Args:
        arrays: floating, at least one, on one device. dtype: floating.
    """
    return [a.astype(dtype) for a in arrays]


def zero(arrays: Sequence[Any]) -> None:
    """x = 0 for each array, in place."""
    for a in arrays:
        a.fill(0)


def in_pieces(work: Any, rows: Sequence[tuple]) -> None:
    """work(parts) for the pieces of each row; rows that are not contiguous at once."""
    items = [parts for row in rows
             for parts in (pieces(row) if all(a.flags.c_contiguous for a in row) else (row,))]
    each(work, items, sum(row[0].size for row in rows))
