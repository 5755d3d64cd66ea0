"""Layer and group normalisation on the CPU: rows in blocks that stay in the cache, sums as products with vectors.

Layer norm of float32 is written as x * A + B with A and B of rank two, which BLAS makes in a third of the time that
NumPy takes to multiply each row by its own number. A row whose mean is far from 0 would lose digits that way: then all
take the other road, as in group norm and float64, and subtract the mean first. Where Numba is installed, layer norm of
float32 is a compiled loop over rows instead, which always subtracts the mean first.
"""
from functools import partial

import numpy as np

from zoo.ops.compiled import rows_for
from zoo.ops.dtypes import float32
from zoo.ops.pieces import PIECE, each, slices
from zoo.ops.reduce_cpu import ones

FAR = 4                  # mean^2 / variance from which the rows' means are subtracted first: up to here 2 bits are lost


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


def moments(x, eps: float):
    """(mean, 1 / standard deviation) of each row of x (R, 1, D); None if a mean is far from 0, or not a number."""
    rows, n = x[:, 0], np.asarray(x.shape[2], x.dtype)
    mean, var = np.empty(len(x), x.dtype), np.empty(len(x), x.dtype)

    def add(part: slice) -> None:
        np.matmul(rows[part], ones(x.shape[2], x.dtype), out=mean[part])
        np.vecdot(rows[part], rows[part], out=var[part])
    each(add, row_blocks(x), x.size)
    mean /= n
    var /= n
    square = mean * mean
    var -= square
    if not np.all(square <= FAR * var):
        return None
    var += np.asarray(eps, x.dtype)
    return mean, 1 / np.sqrt(var, out=var)


def pair(a, b) -> np.ndarray:
    """Two vectors as the columns of a matrix; its product with two rows is out[i, j] = a[i] v[j] + b[i] u[j]."""
    columns = np.empty((len(a), 2), a.dtype)
    columns[:, 0], columns[:, 1] = a, b
    return columns


def normalized_by(mean, rstd, x, weight, bias):
    """x (R, 1, D) normalised: x * (rstd weight) + (bias - mean rstd weight)."""
    y = np.empty_like(x)
    v = ones(x.shape[2], x.dtype) if weight is None else weight[0]
    scale, shift = pair(rstd, 0), pair(-mean * rstd, 1)
    by, beside = np.stack([v, np.zeros_like(v)]), np.stack([v, np.zeros_like(v) if bias is None else bias[0]])

    def write(part: slice) -> None:
        out = y[part, 0]
        t = scale[part] @ by
        t *= x[part, 0]
        np.matmul(shift[part], beside, out=out)
        out += t
    each(write, row_blocks(x), x.size)
    return y


def normalized_grad_by(mean, rstd, dy, x, weight):
    """The gradients of `normalized_by`: dx = dy * (rstd weight) + x * a + b, a and b numbers of each row."""
    blocks, one, n = row_blocks(x), ones(x.shape[2], x.dtype), np.asarray(x.shape[2], x.dtype)
    dx, sums = np.empty_like(x), np.empty((2, len(blocks), *x.shape[1:]), x.dtype)
    v = one if weight is None else weight[0]
    scale, of_rows = pair(rstd, 0), pair(mean * rstd, 1).T
    by, beside = np.stack([v, np.zeros_like(v)]), np.stack([one, np.zeros_like(v)])

    def write(item: tuple[int, slice]) -> None:
        k, part = item
        g, rows, out, m, r = dy[part, 0], x[part, 0], dx[part, 0], mean[part], rstd[part]
        t = g * rows
        shifted, sums[1, k, 0] = of_rows[:, part] @ g
        np.subtract(r @ t, shifted, out=sums[0, k, 0])
        plain = g @ v
        along = (t @ v - m * plain) * r ** 3 / n
        np.matmul(scale[part], by, out=out)
        out *= g
        np.matmul(pair(-along, 0), beside, out=t)
        t *= rows
        out += t
        out += np.matmul(pair(m * along - plain * r / n, 0), beside, out=t)
    each(write, list(enumerate(blocks)), x.size)
    return dx, sums


def row_or(v, x, value: float) -> np.ndarray:
    """v (1, D) as (D,) without gaps, or what stands for None."""
    return np.full(x.shape[2], value, x.dtype) if v is None else np.ascontiguousarray(v[0])


def compiled_norm(fast, x, weight, bias, eps: float):
    y, weight, bias = np.empty_like(x), row_or(weight, x, 1), row_or(bias, x, 0)
    each(lambda part: fast.layer_norm(y[part, 0], x[part, 0], weight, bias, eps), row_blocks(x), x.size)
    return y


def compiled_norm_grad(fast, dy, x, weight, eps: float):
    blocks, weight = row_blocks(x), row_or(weight, x, 1)
    dx, sums = np.empty_like(x), np.empty((2, len(blocks), *x.shape[1:]), x.dtype)

    def write(item: tuple[int, slice]) -> None:
        k, part = item
        fast.layer_norm_grad(dx[part, 0], sums[0, k, 0], sums[1, k, 0], dy[part, 0], x[part, 0], weight, eps)
    each(write, list(enumerate(blocks)), x.size)
    return dx, sums


def normalized(x, weight, bias, eps: float):
    """x (A, G, D) normalised over D, times weight (G, D) plus bias (G, D), which may be None."""
    if x.shape[1] == 1 and (fast := rows_for(x[:, 0])):
        return compiled_norm(fast, x, weight, bias, eps)
    if x.shape[1] == 1 and x.dtype == float32 and (found := moments(x, eps)):
        return normalized_by(*found, x, weight, bias)
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
    if x.shape[1] == 1 and (fast := rows_for(x[:, 0])):
        dx, sums = compiled_norm_grad(fast, dy, x, weight, eps)
    elif x.shape[1] == 1 and x.dtype == float32 and (found := moments(x, eps)):
        dx, sums = normalized_grad_by(*found, dy, x, weight)
    else:
        blocks = row_blocks(x)
        dx, sums = np.empty_like(x), np.empty((2, len(blocks), *x.shape[1:]), x.dtype)
        each(partial(normalize_grad, dx, sums, dy, x, weight, eps), list(enumerate(blocks)), x.size)
    return dx, *np.add.reduce(sums, axis=1, dtype=np.float64)
