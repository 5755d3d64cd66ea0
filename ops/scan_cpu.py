"""Running sums and products of float32 on the CPU in blocks of a line: one after the other, each would wait.

Sums are float32 within blocks of 16 to 32 elements, what is before a block is float64, and so are products. Where Numba
is installed, a compiled loop goes from one element to the next in float64, on four lines at a time.
"""
from functools import lru_cache, partial

import numpy as np

from zoo.ops.compiled import compiled
from zoo.ops.dtypes import float32, float64
from zoo.ops.pieces import LONG, each, slices
from zoo.ops.reduce_cpu import SMALL

WIDTHS = range(32, 15, -1)     # elements of a block: wider ones cost more in the product, narrower ones in the offsets


def is_long_line(x: np.ndarray, dim: int) -> bool:
    """Is `dim` the last dimension of a large array, and wide enough for blocks?"""
    return x.size >= SMALL and dim % x.ndim == x.ndim - 1 and x.shape[-1] >= 64


@lru_cache(32)
def triangle(width: int, reverse: bool) -> np.ndarray:
    """(width, width): ones on the diagonal and above it, or below it."""
    ones = np.ones((width, width), float32)
    ones = np.tril(ones) if reverse else np.triu(ones)
    ones.flags.writeable = False
    return ones


def by_lines(write, x: np.ndarray) -> np.ndarray:
    """write(y, lines) of all of x (M, N), a few lines at a time."""
    y = np.empty_like(x)
    each(lambda part: write(y[part], x[part]), slices(len(x), max(1, LONG // x.shape[1])), x.size)
    return y


def in_blocks(write, x: np.ndarray, fill: int, reverse: bool = False) -> np.ndarray:
    """write(y, lines, width) of lines x (M, N), which are made longer by `fill` where they are not whole blocks."""
    n = x.shape[1]
    width = next((w for w in WIDTHS if n % w == 0), WIDTHS[0])
    missing = -n % width
    if missing:
        x = np.pad(x, ((0, 0), (missing, 0) if reverse else (0, missing)), constant_values=fill)
    y = by_lines(partial(write, width=width), x)
    return y[:, missing:] if reverse else y[:, :n]


def running_sums(x: np.ndarray, reverse: bool = False) -> np.ndarray:
    """The running sums of float32 x along its last dimension; reverse: from its end."""
    lines = np.ascontiguousarray(x).reshape(-1, x.shape[-1])
    if fast := compiled("rows", lines):
        return by_lines(lambda y, x: fast.scan(y, x, False, reverse), lines).reshape(x.shape)
    return in_blocks(partial(add_lines, reverse=reverse), lines, 0, reverse).reshape(x.shape)


def running_products(x: np.ndarray) -> np.ndarray:
    """The running products of float32 x along its last dimension."""
    lines = np.ascontiguousarray(x).reshape(-1, x.shape[-1])
    if fast := compiled("rows", lines):
        return by_lines(lambda y, x: fast.scan(y, x, True, False), lines).reshape(x.shape)
    return in_blocks(multiply_lines, lines, 1).reshape(x.shape)


def add_lines(y: np.ndarray, x: np.ndarray, width: int, reverse: bool) -> None:
    """By the BLAS, as products with a triangle of ones.

    Lines with infinities, nan or an overflow go one after the other: in a product, 0 times infinity would reach the
    elements before it.
    """
    np.matmul(x.reshape(-1, width), triangle(width, reverse), out=y.reshape(-1, width))
    blocks = y.reshape(len(y), -1, width)
    if reverse:
        blocks = blocks[:, ::-1]
    before = np.add.accumulate(blocks[:, :, 0 if reverse else -1], axis=1, dtype=float64)
    if np.isfinite(before[:, -1]).all():
        blocks[:, 1:] += before[:, :-1, None].astype(float32)
    else:
        x, y = (x[:, ::-1], y[:, ::-1]) if reverse else (x, y)
        y[...] = np.add.accumulate(x, axis=1, dtype=float64)


def multiply_lines(y: np.ndarray, x: np.ndarray, width: int) -> None:
    """In float64, blocks side by side, one element of each at a time; one after the other if a block overflows."""
    columns = x.reshape(-1, width).T.astype(float64, order="C")
    for k in range(1, width):
        np.multiply(columns[k - 1], columns[k], out=columns[k])
    if np.isfinite(columns[-1]).all():
        before = np.ones((len(x), x.shape[1] // width))
        np.multiply.accumulate(columns[-1].reshape(before.shape)[:, :-1], axis=1, out=before[:, 1:])
        np.multiply(columns, before.reshape(-1), out=columns)
        y.reshape(-1, width)[...] = columns.T
    else:
        y[...] = np.multiply.accumulate(x, axis=1, dtype=float64)
