"""Normalisation on the CPU: sums as matrix-vector products, in blocks that stay in the second-level cache.

Data (N, C, L) is seen as one of two matrices: `Wide` has a row for each (n, c), and what belongs to a channel is a
column; `Narrow` has a row for each n, its C*L numbers side by side, and what belongs to a channel is a row of repeats.
NumPy runs along rows, so short L want the second. Statistics of blocks are centred on their own mean and merged by
Chan's formula: right in float32 for |mean| far above the standard deviation.
"""
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

BLOCK = 1 << 16            # elements of a block
LONG = 192                 # from this L on rows are single channels


class Moments(NamedTuple):
    """Mean and biased variance of each channel, float64."""
    mean: np.ndarray
    var: np.ndarray


class Wide:
    """(N, C, L) as N*C rows of L."""

    def __init__(self, shape: tuple[int, int, int]):
        self.n, self.channels, self.length = shape
        self.shape = self.n * self.channels, self.length
        self.count = self.n * self.length
        self.ones = np.ones(self.length, np.float32)

    def blocks(self) -> Iterator[slice]:
        step = max(1, BLOCK // max(self.length, 1))
        return (slice(i, i + step) for i in range(0, self.shape[0], step))

    def spread(self, v, part: slice):
        """A number for each channel, beside the rows of a block."""
        rows = np.arange(*part.indices(self.shape[0]))
        return v[rows % self.channels][:, None]

    def sums(self, x):
        """The sum of each row of a block."""
        return x @ np.ones(self.length, x.dtype)

    def moments(self, x) -> Moments:
        sums, squares = (np.empty(self.shape[0]) for _ in range(2))
        for part in self.blocks():
            block = x[part]
            mean = self.sums(block) / np.asarray(self.length, x.dtype)
            t = block - mean[:, None]
            rest = self.sums(t) / self.length
            sums[part] = mean.astype(np.float64) + rest
            squares[part] = np.vecdot(t, t) - self.length * rest.astype(np.float64) ** 2
        means = sums.reshape(self.n, self.channels)
        mean = means.mean(0)
        var = (squares.reshape(self.n, self.channels).sum(0) + self.length * ((means - mean) ** 2).sum(0)) / self.count
        return Moments(mean, var)

    def backward_sums(self, dy, x, mean) -> tuple[np.ndarray, np.ndarray]:
        """Per channel: sum of dy, and sum of dy * (x - mean)."""
        plain, weighted = (np.empty(self.shape[0]) for _ in range(2))
        for part in self.blocks():
            plain[part] = self.sums(dy[part])
            weighted[part] = np.vecdot(dy[part], x[part] - self.spread(mean, part))
        return tuple(s.reshape(self.n, self.channels).sum(0) for s in (plain, weighted))


@lru_cache(64)
def channel_of(repeats: int, channels: int, length: int) -> np.ndarray:
    """The channel of each column of a `Narrow` row."""
    index = np.tile(np.repeat(np.arange(channels), length), repeats)
    index.flags.writeable = False
    return index


class Narrow:
    """(N, C, L) as N rows of C*L; several n side by side if that is short."""

    def __init__(self, shape: tuple[int, int, int]):
        self.n, self.channels, self.length = shape
        self.count = self.n * self.length
        most = max(1, 2048 // max(self.channels * self.length, 1))
        self.repeats = next(r for r in (16, 8, 4, 2, 1) if self.n % r == 0 and r <= most)
        self.width = self.repeats * self.channels * self.length
        self.shape = self.n // self.repeats, self.width

    def blocks(self) -> Iterator[slice]:
        step = max(1, BLOCK // max(self.width, 1))
        return (slice(i, i + step) for i in range(0, self.shape[0], step))

    def spread(self, v, part=None):
        """A number for each channel, as a row."""
        return v.take(channel_of(self.repeats, self.channels, self.length))

    def sums(self, x):
        """The sum of each channel of a block."""
        columns = np.ones(len(x), x.dtype) @ x
        shape = self.repeats, self.channels, self.length
        return np.add.reduce(columns.reshape(shape), axis=(0, 2), dtype=np.float64)

    def moments(self, x) -> Moments:
        count, mean, square = 0, np.zeros(self.channels), np.zeros(self.channels)
        for part in self.blocks():
            block = x[part]
            n = len(block) * self.repeats * self.length
            middle = (self.sums(block) / n).astype(x.dtype)
            t = block - self.spread(middle)
            rest = self.sums(t) / n
            np.multiply(t, t, out=t)
            here, spread_here = middle + rest, self.sums(t) - n * rest * rest
            apart = here - mean
            square += spread_here + apart * apart * (count * n / (count + n))
            count += n
            mean += apart * (n / count)
        return Moments(mean, square / max(self.count, 1))

    def backward_sums(self, dy, x, mean) -> tuple[np.ndarray, np.ndarray]:
        """Per channel: sum of dy, and sum of dy * (x - mean)."""
        plain, weighted, middle = np.zeros(self.channels), np.zeros(self.channels), self.spread(mean)
        for part in self.blocks():
            plain += self.sums(dy[part])
            t = x[part] - middle
            t *= dy[part]
            weighted += self.sums(t)
        return plain, weighted


def layout(shape: tuple[int, int, int]) -> Wide | Narrow:
    return Wide(shape) if shape[2] >= LONG else Narrow(shape)


def scaled(x, view, factor, shift, mean=None):
    """(x - mean) * factor + shift, all of them per channel; block by block into a new array."""
    y = np.empty_like(x)
    constant = [None if v is None else v.astype(x.dtype) for v in (mean, factor, shift)]
    if isinstance(view, Narrow):
        constant = [None if v is None else view.spread(v) for v in constant]
    for part in view.blocks():
        mean, factor, shift = (v if v is None or isinstance(view, Narrow) else view.spread(v, part) for v in constant)
        out = y[part]
        if mean is None:
            np.multiply(x[part], factor, out=out)
        else:
            np.subtract(x[part], mean, out=out)
            out *= factor
        out += shift
    return y


def combined(dy, x, view, a, b, c, mean=None):
    """a * dy + b * (x - mean) + c, all of them per channel; block by block into a new array."""
    y = np.empty_like(x)
    constant = [None if v is None else v.astype(x.dtype) for v in (a, b, c, mean)]
    if isinstance(view, Narrow):
        constant = [None if v is None else view.spread(v) for v in constant]
    for part in view.blocks():
        a, b, c, mean = (v if v is None or isinstance(view, Narrow) else view.spread(v, part) for v in constant)
        out = y[part]
        if mean is None:
            np.multiply(x[part], b, out=out)
        else:
            np.subtract(x[part], mean, out=out)
            out *= b
        out += a * dy[part]
        out += c
    return y


def row_sums(x):
    """The sums over the last dimension."""
    return (x.reshape(-1, x.shape[-1]) @ np.ones(x.shape[-1], x.dtype)).reshape(*x.shape[:-1], 1)


def centred(x, eps: float):
    """(x - mean over the last dimension, 1 / standard deviation): two passes, and what rounding left of the mean."""
    n = np.asarray(x.shape[-1], x.dtype)
    t = x - row_sums(x) / n
    rest = row_sums(t) / n
    rstd = 1 / np.sqrt(row_sums(t * t) / n - rest * rest + np.asarray(eps, x.dtype))
    if np.abs(rest * rstd).max(initial=0) > 1e-6:
        t -= rest
    return t, rstd


def row_blocks(x) -> Iterator[slice]:
    step = max(1, BLOCK // max(x[0].size, 1))
    return (slice(i, i + step) for i in range(0, len(x), step))


def normalized(x, weight, bias, eps: float):
    """x (A, G, D) normalised over D, times weight (G, D) plus bias (G, D), which may be None."""
    y = np.empty_like(x)
    for part in row_blocks(x) if x.size else ():
        t, rstd = centred(x[part], eps)
        out = y[part]
        np.multiply(t, rstd, out=out)
        if weight is not None:
            out *= weight
        if bias is not None:
            out += bias
    return y


def normalized_grad(dy, x, weight, eps: float):
    """Gradients by x (A, G, D), weight (G, D) and bias (G, D)."""
    dx, dweight, dbias = np.empty_like(x), np.zeros(x.shape[1:]), np.zeros(x.shape[1:])
    n = np.asarray(x.shape[-1], x.dtype)
    for part in row_blocks(x) if x.size else ():
        h, rstd = centred(x[part], eps)
        h *= rstd
        g = dy[part]
        ones = np.ones(len(g), x.dtype)
        dbias += (ones @ g.reshape(len(g), -1)).reshape(dbias.shape)
        t = g * h
        dweight += (ones @ t.reshape(len(g), -1)).reshape(dweight.shape)
        if weight is not None:
            g = g * weight
            np.multiply(g, h, out=t)
        h *= row_sums(t) / n
        np.subtract(g, h, out=t)
        t -= row_sums(g) / n
        np.multiply(t, rstd, out=dx[part])
    return dx, dweight, dbias
