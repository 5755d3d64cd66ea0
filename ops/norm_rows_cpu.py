"""Layer and group normalisation on the CPU: rows in blocks that stay in the cache, sums as products with vectors."""
from functools import partial

import numpy as np

from zoo.ops.pieces import PIECE, each, slices
from zoo.ops.reduce_cpu import ones


def row_blocks(x) -> list[slice]:
    """Of x (A, G, D), the borders of blocks of A."""
    return slices(len(x), max(1, PIECE // max(x[0].size, 1))) if x.size else []


def row_sums(x):
    """The sums over the last dimension."""
    return (x.reshape(-1, x.shape[-1]) @ ones(x.shape[-1], x.dtype)).reshape(*x.shape[:-1], 1)


def centred(x, eps: float, out):
    """out = x - mean over the last dimension, in two passes; gives 1 / standard deviation."""
    n = np.asarray(x.shape[-1], x.dtype)
    np.subtract(x, row_sums(x) / n, out=out)
    rest = row_sums(out) / n                               # what rounding left of the mean
    var = np.vecdot(out, out)[..., None] / n - rest * rest
    var += np.asarray(eps, x.dtype)
    rstd = 1 / np.sqrt(var, out=var)
    if np.abs(rest * rstd).max(initial=0) > 1e-6:
        out -= rest
    return rstd


def normalize(y, x, weight, bias, eps: float, part: slice) -> None:
    out = y[part]
    out *= centred(x[part], eps, out)
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias


def normalized(x, weight, bias, eps: float):
    """x (A, G, D) normalised over D, times weight (G, D) plus bias (G, D), which may be None."""
    y = np.empty_like(x)
    each(partial(normalize, y, x, weight, bias, eps), row_blocks(x), x.size)
    return y


def normalize_grad(dx, sums, dy, x, weight, eps: float, item: tuple[int, slice]) -> None:
    """One block of dx, and what it adds to the sums over rows of dy (x - mean) rstd and of dy."""
    k, part = item
    g, out, n = dy[part], dx[part], np.asarray(x.shape[-1], x.dtype)
    rstd = centred(x[part], eps, out)
    t = g * out
    sums[0, k] = np.matmul(rstd.transpose(1, 2, 0), t.transpose(1, 0, 2))[:, 0]
    sums[1, k] = (ones(len(g), x.dtype) @ g.reshape(len(g), -1)).reshape(x.shape[1:])
    if weight is None:
        along, plain = row_sums(t), row_sums(g)
        np.multiply(g, rstd, out=t)
    else:
        along, plain = np.vecdot(t, weight)[..., None], np.vecdot(g, weight)[..., None]
        np.multiply(g, weight, out=t)
        t *= rstd
    out *= along * rstd ** 3 / n
    np.subtract(t, out, out=out)
    out -= plain * rstd / n


def normalized_grad(dy, x, weight, eps: float):
    """Gradients by x (A, G, D), weight (G, D) and bias (G, D).

    With c = x - mean and g = dy weight: dx = rstd g - rstd^3 c mean(g c) - rstd mean(g); rstd goes into the sums.
    """
    blocks = row_blocks(x)
    dx, sums = np.empty_like(x), np.empty((2, len(blocks), *x.shape[1:]), x.dtype)
    each(partial(normalize_grad, dx, sums, dy, x, weight, eps), list(enumerate(blocks)), x.size)
    return dx, *np.add.reduce(sums, axis=1, dtype=np.float64)
