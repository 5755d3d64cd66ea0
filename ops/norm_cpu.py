"""Normalisation on the CPU: sums as matrix-vector products, in blocks that stay in the second-level cache.

Data (N, C, L) is seen as one of two matrices: `Wide` has a row for each (n, c), and what belongs to a channel is a
column; `Narrow` has a row for each n, its C*L numbers side by side, and what belongs to a channel is a row of repeats.
NumPy runs along rows, so short L want the second. Statistics of blocks are centred on their own mean and merged by
Chan's formula: right in float32 for |mean| far above the standard deviation.
"""
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from zoo.ops.threads import run

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

    def blocks(self) -> list[slice]:
        step = max(1, BLOCK // max(self.length, 1))
        return [slice(i, i + step) for i in range(0, self.shape[0], step)]

    def spread(self, v, part: slice):
        """A number for each channel, beside the rows of a block."""
        rows = np.arange(*part.indices(self.shape[0]))
        return v[rows % self.channels][:, None]

    def sums(self, x):
        """The sum of each row of a block."""
        return x @ np.ones(self.length, x.dtype)

    def moments(self, x) -> Moments:
        sums, squares = (np.empty(self.shape[0]) for _ in range(2))

        def block_moments(part):
            block = x[part]
            mean = self.sums(block) / np.asarray(self.length, x.dtype)
            t = block - mean[:, None]
            rest = self.sums(t) / self.length
            sums[part] = mean.astype(np.float64) + rest
            squares[part] = np.vecdot(t, t) - self.length * rest.astype(np.float64) ** 2

        run(block_moments, self.blocks())
        means = sums.reshape(self.n, self.channels)
        mean = means.mean(0)
        var = (squares.reshape(self.n, self.channels).sum(0) + self.length * ((means - mean) ** 2).sum(0)) / self.count
        return Moments(mean, var)

    def backward_sums(self, dy, x, mean) -> tuple[np.ndarray, np.ndarray]:
        """Per channel: sum of dy, and sum of dy * (x - mean)."""
        plain, weighted = (np.empty(self.shape[0]) for _ in range(2))

        def block_sums(part):
            plain[part] = self.sums(dy[part])
            weighted[part] = np.vecdot(dy[part], x[part] - self.spread(mean, part))

        run(block_sums, self.blocks())
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

    def blocks(self) -> list[slice]:
        step = max(1, BLOCK // max(self.width, 1))
        return [slice(i, i + step) for i in range(0, self.shape[0], step)]

    def spread(self, v, part=None):
        """A number for each channel, as a row."""
        return v.take(channel_of(self.repeats, self.channels, self.length))

    def sums(self, x):
        """The sum of each channel of a block."""
        columns = np.ones(len(x), x.dtype) @ x
        shape = self.repeats, self.channels, self.length
        return np.add.reduce(columns.reshape(shape), axis=(0, 2), dtype=np.float64)

    def moments(self, x) -> Moments:
        def block_moments(part):
            block = x[part]
            n = len(block) * self.repeats * self.length
            middle = (self.sums(block) / n).astype(x.dtype)
            t = block - self.spread(middle)
            rest = self.sums(t) / n
            np.multiply(t, t, out=t)
            return n, middle + rest, self.sums(t) - n * rest * rest

        count, mean, square = 0, np.zeros(self.channels), np.zeros(self.channels)
        for n, here, spread_here in run(block_moments, self.blocks()):
            apart = here - mean
            square += spread_here + apart * apart * (count * n / (count + n))
            count += n
            mean += apart * (n / count)
        return Moments(mean, square / max(self.count, 1))

    def backward_sums(self, dy, x, mean) -> tuple[np.ndarray, np.ndarray]:
        """Per channel: sum of dy, and sum of dy * (x - mean)."""
        middle = self.spread(mean)

        def block_sums(part):
            t = x[part] - middle
            t *= dy[part]
            return self.sums(dy[part]), self.sums(t)

        parts = run(block_sums, self.blocks())
        nothing = np.zeros(self.channels)
        return sum((p for p, _ in parts), nothing), sum((w for _, w in parts), nothing)


def layout(shape: tuple[int, int, int]) -> Wide | Narrow:
    return Wide(shape) if shape[2] >= LONG else Narrow(shape)


def scaled(x, view, factor, shift, mean=None):
    """(x - mean) * factor + shift, all of them per channel; block by block into a new array."""
    y = np.empty_like(x)
    constant = [None if v is None else v.astype(x.dtype) for v in (mean, factor, shift)]
    if isinstance(view, Narrow):
        constant = [None if v is None else view.spread(v) for v in constant]

    def block(part):
        mean, factor, shift = (v if v is None or isinstance(view, Narrow) else view.spread(v, part) for v in constant)
        out = y[part]
        if mean is None:
            np.multiply(x[part], factor, out=out)
        else:
            np.subtract(x[part], mean, out=out)
            out *= factor
        out += shift

    run(block, view.blocks())
    return y


def combined(dy, x, view, a, b, c, mean=None):
    """a * dy + b * (x - mean) + c, all of them per channel; block by block into a new array."""
    y = np.empty_like(x)
    constant = [None if v is None else v.astype(x.dtype) for v in (a, b, c, mean)]
    if isinstance(view, Narrow):
        constant = [None if v is None else view.spread(v) for v in constant]

    def block(part):
        a, b, c, mean = (v if v is None or isinstance(view, Narrow) else view.spread(v, part) for v in constant)
        out = y[part]
        if mean is None:
            np.multiply(x[part], b, out=out)
        else:
            np.subtract(x[part], mean, out=out)
            out *= b
        out += a * dy[part]
        out += c

    run(block, view.blocks())
    return y
