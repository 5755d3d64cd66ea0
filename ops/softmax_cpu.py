"""softmax and its like on the CPU: lines (K, R, N) along R, in blocks that stay in the cache, their sums by the BLAS.

Each function computes one block into `out`; `by_blocks` calls it for all of them.
"""
from collections.abc import Callable
from functools import partial

import numpy as np

from zoo.ops.compiled import rows_for
from zoo.ops.pieces import LONG, each, slices
from zoo.ops.reduce_cpu import CHUNK, add_up, ones


def by_blocks(fn: Callable, xs: tuple, dim: int) -> np.ndarray:
    """fn(out, *blocks) over all of the arrays, which have one shape and floating dtype and are not empty."""
    shape, d = xs[0].shape, dim % xs[0].ndim
    lines = -1, shape[d], int(np.prod(shape[d + 1:]))
    flat = [np.ascontiguousarray(x).reshape(lines) for x in xs]
    y = np.empty(shape, xs[0].dtype)
    out = y.reshape(lines)
    step = max(1, LONG // out[0].size)
    each(partial(block, fn, out, flat), slices(len(out), step), y.size)
    return y


def block(fn: Callable, out: np.ndarray, xs: list, part: slice) -> None:
    if out.shape[2] == 1:
        fn(out[part, :, 0], *(x[part, :, 0] for x in xs))
    else:
        fn(out[part], *(x[part] for x in xs))


def total(x: np.ndarray) -> np.ndarray:
    """The sums along dimension 1, which stays."""
    if x.ndim == 2 and x.shape[1] <= CHUNK:
        return (x @ ones(x.shape[1], x.dtype))[:, None]
    return add_up(x, (1,), True)


def within(x: np.ndarray, low: float, high: float) -> bool:
    """Are all elements? Extremes of the whole block take a third of the time of each line's."""
    return bool(np.maximum.reduce(x, axis=None) <= high and np.minimum.reduce(x, axis=None) >= low)


def softmax(e, x) -> None:
    if fast := rows_for(e, x):
        fast.softmax(e, x)
        return
    if x.shape[1] < 1 << 20 and within(x, -80, 60):          # every exp is a normal float32, and so is their sum
        np.exp(x, out=e)
    else:
        np.subtract(x, np.maximum.reduce(x, axis=1, keepdims=True), out=e)
        np.exp(e, out=e)
    e *= 1 / total(e)


def log_softmax(z, x) -> None:
    if fast := rows_for(z, x):
        fast.log_softmax(z, x)
    elif x.shape[1] < 1 << 20 and within(x, -8, 8):        # the logarithm of the sum is not much larger than without x
        np.subtract(x, np.log(total(np.exp(x))), out=z)
    else:
        np.subtract(x, np.maximum.reduce(x, axis=1, keepdims=True), out=z)
        z -= np.log(total(np.exp(z)))


def softmax_grad(dx, dy, y) -> None:
    if fast := rows_for(dx, dy, y):
        fast.softmax_grad(dx, dy, y)
        return
    np.multiply(dy, y, out=dx)
    np.subtract(dy, total(dx), out=dx)
    dx *= y


def log_softmax_grad(dx, dy, y) -> None:
    if fast := rows_for(dx, dy, y):
        fast.log_softmax_grad(dx, dy, y)
        return
    np.exp(y, out=dx)
    dx *= total(dy)
    np.subtract(dy, dx, out=dx)
