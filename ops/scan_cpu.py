"""Running sums of float32 on the CPU as products with a triangle of ones: one after the other, each would wait."""
from functools import lru_cache, partial

import numpy as np

from zoo.ops.dtypes import float32, float64
from zoo.ops.pieces import PIECE, each, slices
from zoo.ops.reduce_cpu import SMALL

WIDTHS = range(32, 15, -1)     # elements of a block: wider ones cost more in the product, narrower ones in the offsets


def is_long_line(x: np.ndarray, dim: int) -> bool:
    """Is `dim` the last dimension of a large array, and wide enough for blocks?"""
    return x.size >= SMALL and dim % x.ndim == x.ndim - 1 and x.shape[-1] >= 64


@lru_cache(32)
def triangle(width: int) -> np.ndarray:
    """(width, width): ones on the diagonal and above it."""
    ones = np.triu(np.ones((width, width), float32))
    ones.flags.writeable = False
    return ones


def running_sums(x: np.ndarray) -> np.ndarray:
    """The running sums of float32 x along its last dimension.

    Blocks of 16 to 32 elements are added in float32, the sums of blocks before them in float64. Lines with infinities,
    nan or an overflow go one after the other: in a product, 0 times infinity would reach the elements before it.
    """
    n = x.shape[-1]
    width = next((w for w in WIDTHS if n % w == 0), WIDTHS[0])
    lines = np.ascontiguousarray(x).reshape(-1, n)
    padded = lines if n % width == 0 else np.pad(lines, ((0, 0), (0, -n % width)))
    y = np.empty(padded.shape, float32)
    each(partial(add_lines, y, padded, width), slices(len(y), max(1, PIECE // padded.shape[1])), x.size)
    return y[:, :n].reshape(x.shape)


def add_lines(y: np.ndarray, x: np.ndarray, width: int, part: slice) -> None:
    lines, out = x[part], y[part]
    np.matmul(lines.reshape(-1, width), triangle(width), out=out.reshape(-1, width))
    blocks = out.reshape(len(out), -1, width)
    before = np.add.accumulate(blocks[:, :, -1], axis=1, dtype=float64)
    if not np.isfinite(before[:, -1]).all():
        out[...] = np.add.accumulate(lines, axis=1, dtype=float64)
        return
    blocks[:, 1:] += before[:, :-1, None].astype(float32)
