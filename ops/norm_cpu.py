"""Batch normalisation on the CPU: sums as products with ones, in few long calls of NumPy, on all threads.

Data (N, C, L) is seen as one of two matrices: `Wide` has a row for each (n, c), and what belongs to a channel is a
column; `Narrow` has a row for each n, its C*L numbers side by side, and what belongs to a channel is a row of repeats.
NumPy runs along rows, so short L want the second.

A block's sums are float32, and are added up in float64, in the blocks' order.
"""
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from zoo.ops.buffers import empty_like
from zoo.ops.compiled import compiled
from zoo.ops.dtypes import float32
from zoo.ops.fast_cpu import relu_dx
from zoo.ops.threads import run

BLOCK = 1 << 18            # elements: two threads wait for the interpreter's lock between short calls, which costs more
                           # than the second-level cache gains (all passes over 1 M elements: 1.85 ms by 2^17, 1.4 so)
LONG = 192                 # from this L on rows are single channels
WIDTH = 2048               # a row of `Narrow`: what NumPy starts anew for each row is a twentieth of its time
NEAR = 4.0                 # |mean| / standard deviation up to which E[x^2] - mean^2 loses one digit at most


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
        self.width = self.length

    def spread(self, v, part: slice):
        """A number for each channel, beside the rows of a block."""
        rows = np.arange(*part.indices(self.shape[0]))
        return v[rows % self.channels][:, None]

    def sums(self, x):
        """The sum of each row of a block."""
        return (x @ np.ones(self.length, x.dtype)).astype(np.float64)

    def products(self, x, y):
        """The sum of x * y of each row of a block."""
        return np.vecdot(x, y).astype(np.float64)

    def total(self, parts: list):
        """The sum of each channel, from those of the rows of all blocks."""
        return np.concatenate(parts).reshape(self.n, self.channels).sum(0)


@lru_cache(64)
def channel_of(repeats: int, channels: int, length: int) -> np.ndarray:
    """The channel of each column of a `Narrow` row."""
    index = np.tile(np.repeat(np.arange(channels), length), repeats)
    index.flags.writeable = False
    return index


@lru_cache(64)
def divisor(n: int, most: int) -> int:
    """The largest divisor of n up to `most`."""
    return next(d for d in range(min(n, most), 0, -1) if n % d == 0)


class Narrow:
    """(N, C, L) as N rows of C*L; several n side by side if that is short."""

    def __init__(self, shape: tuple[int, int, int]):
        self.n, self.channels, self.length = shape
        self.count = self.n * self.length
        self.repeats = divisor(self.n, max(1, WIDTH // max(self.channels * self.length, 1)))
        self.width = self.repeats * self.channels * self.length
        self.shape = self.n // self.repeats, self.width

    def spread(self, v, part=None):
        """A number for each channel, as a row."""
        return v.take(channel_of(self.repeats, self.channels, self.length))

    def of_channels(self, columns):
        """The sum of each channel, from those of the columns."""
        shape = self.repeats, self.channels, self.length
        return np.add.reduce(columns.reshape(shape), axis=(0, 2), dtype=np.float64)

    def sums(self, x):
        """The sum of each channel of a block."""
        return self.of_channels(np.ones(len(x), x.dtype) @ x)

    def products(self, x, y):
        """The sum of x * y of each channel of a block."""
        return self.of_channels(np.einsum("ij,ij->j", x, y))      # one pass, and no array for the product

    def total(self, parts: list):
        return np.add.reduce(parts, axis=0)


View = Wide | Narrow


def layout(shape: tuple[int, int, int]) -> View:
    return Wide(shape) if shape[2] >= LONG else Narrow(shape)


def blocks(view: View) -> list[slice]:
    step = max(1, BLOCK // max(view.width, 1))
    return [slice(i, i + step) for i in range(0, view.shape[0], step)]


def totals(view: View, block_sums) -> list[np.ndarray]:
    """The sums per channel whose parts block_sums(part) gives for each block."""
    return [view.total(list(parts)) for parts in zip(*run(block_sums, blocks(view)), strict=True)]


def by_rows(view: View, *arrays):
    """The compiled functions, for float32 whose channels lie side by side in memory; or None."""
    return compiled("norm", *arrays) if view.length == 1 else None


def moments_of(x, view: View) -> Moments:
    """Of all blocks together: from the sums of x and x^2 where their difference keeps its digits, else around the mean.
    """
    if fast := by_rows(view, x):
        return Moments(*fast.moments_of(x, view))
    if x.dtype == float32:
        sums, squares = totals(view, lambda part: (view.sums(x[part]), view.products(x[part], x[part])))
        mean = sums / view.count
        var = squares / view.count - mean * mean
        if (mean * mean <= NEAR * NEAR * var).all():
            return Moments(mean, var)
    return centred_moments(x, view)


def centred_moments(x, view: View) -> Moments:
    """In two passes, around a mean that is a rounded one: what is left of the sum corrects both."""
    sums, = totals(view, lambda part: (view.sums(x[part]),))
    middle = (sums / view.count).astype(x.dtype)

    def block_sums(part):
        t = x[part] - view.spread(middle, part)
        return view.sums(t), view.products(t, t)

    rest, squares = totals(view, block_sums)
    rest /= view.count
    return Moments(middle + rest, squares / view.count - rest * rest)


def constants(view: View, dtype, *vs) -> list:
    """Numbers per channel (or None) as functions of a block: what broadcasts over it."""
    def over(v):
        if v is None:
            return lambda part: None
        v = v.astype(dtype)
        if isinstance(view, Wide):
            return lambda part: view.spread(v, part)
        row = view.spread(v)
        return lambda part: row
    return [over(v) for v in vs]


def scaled(x, view: View, factor, shift, mean=None, residual=None, relu: bool = False):
    """(x - mean) * factor + shift + residual, all but x and residual per channel; then relu. Into a new array."""
    if fast := by_rows(view, x):
        return fast.scaled(x, view, factor, shift, mean, residual, relu)
    y = empty_like(x)
    mean_of, factor_of, shift_of = constants(view, x.dtype, mean, factor, shift)
    zeros = np.zeros(view.width, x.dtype)

    def block(part):
        out, mean = y[part], mean_of(part)
        if mean is None:
            np.multiply(x[part], factor_of(part), out=out)
        else:
            np.subtract(x[part], mean, out=out)
            out *= factor_of(part)
        out += shift_of(part)
        if residual is not None:
            out += residual[part]
        if relu:
            np.maximum(out, zeros, out=out)

    run(block, blocks(view))
    return y


def behind_relu(g, dy, y) -> None:
    """g := dy, 0 where y <= 0."""
    if g.dtype == float32:
        relu_dx(g, dy, y)
    else:
        g[...] = np.where(y <= 0, 0.0, dy)


def backward_sums(dy, x, view: View, mean, near: bool, y=None):
    """(g, sum of g, sum of g * (x - mean)) per channel, g being dy, or with y dy where y > 0 in a new array.

    near: the mean is small beside the deviation, and may be taken out of the sum.
    """
    if fast := by_rows(view, x):
        return fast.backward_sums(dy, x, view, mean, y)
    g = dy if y is None else empty_like(dy)
    mean_of, = constants(view, x.dtype, None if near else mean)

    def block_sums(part):
        if y is not None:
            behind_relu(g[part], dy[part], y[part])
        t = x[part] if near else x[part] - mean_of(part)
        return view.sums(g[part]), view.products(g[part], t)

    plain, weighted = totals(view, block_sums)
    return g, plain, weighted - mean * plain if near else weighted


def combined(dy, x, view: View, a, b, c, mean=None, out=None):
    """a * dy + b * (x - mean) + c, all but dy and x per channel; into `out`, which may be dy, or a new array."""
    if fast := by_rows(view, x):
        return fast.combined(dy, x, view, a, b, c, mean, out)
    y = empty_like(x) if out is None else out
    a_of, b_of, c_of, mean_of = constants(view, x.dtype, a, b, c, mean)

    def block(part):
        out, mean = y[part], mean_of(part)
        np.multiply(dy[part], a_of(part), out=out)
        t = np.multiply(x[part], b_of(part)) if mean is None else (x[part] - mean) * b_of(part)
        out += t
        out += c_of(part)

    run(block, blocks(view))
    return y
