"""Batch normalisation of matrices (rows, channels): images with their channels side by side. See ops/norm_cpu.py.

A block of rows stays in cache between the passes over it. Sums are float32 over runs of rows, float64 from there on.
"""
import numpy as np

from zoo.ops.buffers import empty_like
from zoo.ops.compiled.build import boolean, double, inline, kernel, reads, writes
from zoo.ops.compiled.vector import LANES, chosen, fma, largest, load, splat, store
from zoo.ops.threads import run

RUN = 256                  # rows that are summed in float32
NEAR = 2048                # elements of an array that stay in the first-level cache beside those of another
BLOCK = 1 << 16            # elements of a block: 256 kB of each array
BY_CHANNEL = reads(1)


@inline
def added(sums, c, n, value, lanes):
    """sums[c:c + n] += value, in float64."""
    store(lanes, 0, value, LANES)
    for k in range(n):
        sums[c + k] += lanes[k]


@kernel(reads(2), writes(1, double), writes(1, double))
def block_moments(x, mean, square):
    """x (R, C) -> mean (C,), and in square (C,) the sums of the squared distances from it; two passes."""
    rows, channels = x.shape
    lanes = np.empty(LANES, np.float32)
    mean[:], square[:] = 0, 0
    for c in range(0, channels, LANES):
        n = min(LANES, channels - c)
        for start in range(0, rows, RUN):
            s = splat(0.0)
            for r in range(start, min(rows, start + RUN)):
                s = s + load(x, r * channels + c, n)
            added(mean, c, n, s, lanes)
        for k in range(n):
            mean[c + k] /= rows
            lanes[k] = mean[c + k]
        middle = load(lanes, 0, n)
        for start in range(0, rows, RUN):
            s = splat(0.0)
            for r in range(start, min(rows, start + RUN)):
                d = load(x, r * channels + c, n) - middle
                s = fma(d, d, s)
            added(square, c, n, s, lanes)
        for k in range(n):
            rest = mean[c + k] - np.float32(mean[c + k])          # what rounding the middle left
            square[c + k] -= rows * rest * rest


@kernel(reads(2), reads(2), reads(2), boolean, writes(2), BY_CHANNEL, writes(1, double), writes(1, double))
def block_gradient_sums(dy, x, y, masked, g, mean, plain, weighted):
    """plain (C,) = sum of g, weighted (C,) = sum of g * (x - mean), g being dy; all but mean (R, C).

    masked: g is written, dy where y > 0, else 0.
    """
    rows, channels = x.shape
    lanes = np.empty(LANES, np.float32)
    plain[:], weighted[:] = 0, 0
    for c in range(0, channels, LANES):
        n, zero = min(LANES, channels - c), splat(0.0)
        middle = load(mean, c, n)
        for start in range(0, rows, RUN):
            s, t = zero, zero
            for r in range(start, min(rows, start + RUN)):
                at = r * channels + c
                d = load(dy, at, n)
                if masked:
                    d = chosen(load(y, at, n), zero, zero, d)
                    store(g, at, d, n)
                s = s + d
                t = fma(d, load(x, at, n) - middle, t)
            added(plain, c, n, s, lanes)
            added(weighted, c, n, t, lanes)


@kernel(reads(2), BY_CHANNEL, BY_CHANNEL, BY_CHANNEL, reads(2), boolean, boolean, writes(2))
def block_scaled(x, mean, factor, shift, residual, more, relu, y):
    """y (R, C) = (x - mean) * factor + shift; more: + residual (R, C); relu: at least 0. mean, factor, shift (C,)."""
    rows, channels = x.shape
    step = max(1, NEAR // channels)
    for first in range(0, rows, step):
        stop = min(rows, first + step) * channels
        for c in range(0, channels, LANES):
            n = min(LANES, channels - c)
            m, f, s = load(mean, c, n), load(factor, c, n), load(shift, c, n)
            for at in range(first * channels + c, stop, channels):
                v = fma(load(x, at, n) - m, f, s)
                if more:
                    v = v + load(residual, at, n)
                store(y, at, largest(v, splat(0.0)) if relu else v, n)


@kernel(reads(2), reads(2), BY_CHANNEL, BY_CHANNEL, BY_CHANNEL, BY_CHANNEL, writes(2))
def block_combined(dy, x, mean, a, b, c, y):
    """y (R, C) = a * dy + b * (x - mean) + c; mean, a, b, c (C,)."""
    rows, channels = x.shape
    step = max(1, NEAR // channels)
    for first in range(0, rows, step):
        stop = min(rows, first + step) * channels
        for k in range(0, channels, LANES):
            n = min(LANES, channels - k)
            m, f, g, s = load(mean, k, n), load(a, k, n), load(b, k, n), load(c, k, n)
            for at in range(first * channels + k, stop, channels):
                store(y, at, fma(load(dy, at, n), f, fma(load(x, at, n) - m, g, s)), n)


# -- the functions of ops/norm_cpu.py: arrays without gaps, whose view has single places; all blocks, on all threads

def work_on_blocks(work, view, *arrays) -> list:
    """[work(*blocks)] of the arrays (or None) as rows of channels."""
    step = max(1, BLOCK // view.channels)
    rows = [None if a is None else a.reshape(-1, view.channels) for a in arrays]
    parts = [slice(i, i + step) for i in range(0, view.count, step)]
    return run(lambda part: work(*(None if a is None else a[part] for a in rows)), parts)


def per_channel(view, *vs) -> list[np.ndarray]:
    """Numbers of each channel, zeros for None."""
    return [np.zeros(view.channels, np.float32) if v is None else v.astype(np.float32) for v in vs]


def moments_of(x, view) -> tuple[np.ndarray, np.ndarray]:
    """Mean and biased variance of each channel, float64; blocks are merged by Chan's formula, in their order."""
    def work(x):
        mean, square = np.empty((2, view.channels))
        block_moments(x, mean, square)
        return len(x), mean, square

    count, mean, square = 0, *np.zeros((2, view.channels))
    for n, here, squares in work_on_blocks(work, view, x):
        apart = here - mean
        square += squares + apart * apart * (count * n / (count + n))
        count += n
        mean += apart * (n / count)
    return mean, square / count


def backward_sums(dy, x, view, mean, y=None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(g, sum of g, sum of g * (x - mean)) per channel, g being dy, or with y dy where y > 0 in a new array."""
    g, (middle,) = dy if y is None else empty_like(dy), per_channel(view, mean)

    def work(dy, x, y, g):
        sums = np.empty((2, view.channels))
        block_gradient_sums(dy, x, x if y is None else y, y is not None, g, middle, *sums)
        return sums

    plain, weighted = np.add.reduce(work_on_blocks(work, view, dy, x, y, g))
    return g, plain, weighted - (mean - middle) * plain


def scaled(x, view, factor, shift, mean=None, residual=None, relu: bool = False):
    """(x - mean) * factor + shift + residual, all but x and residual per channel; then relu. Into a new array."""
    y, numbers = empty_like(x), per_channel(view, mean, factor, shift)

    def work(x, residual, y):
        block_scaled(x, *numbers, x if residual is None else residual, residual is not None, relu, y)

    work_on_blocks(work, view, x, residual, y)
    return y


def combined(dy, x, view, a, b, c, mean=None, out=None):
    """a * dy + b * (x - mean) + c, all but dy and x per channel; into `out`, which may be dy, or a new array."""
    y, numbers = empty_like(x) if out is None else out, per_channel(view, mean, a, b, c)
    work_on_blocks(lambda dy, x, y: block_combined(dy, x, *numbers, y), view, dy, x, y)
    return y
