"""What the convolutions on the CPU share: blocks of images or rows, memory kept from call to call, what ends a block.

Images are (n, H, W, C) here. A block is cut so that its columns or tiles stay in cache from their copy to their end.
"""
import math
import threading
from functools import cached_property

import numpy as np

from zoo.ops.threads import even, get_num_threads, run, shares
from zoo.ops.window import Window

BLOCK = 2 << 20                          # bytes of columns: more falls out of the cache, less feeds BLAS badly
SMALL = 128 << 10                        # bytes of columns below which another thread costs more than it does


class Scratch(threading.local):
    """Memory for columns and partial products, kept from call to call: fresh pages cost as much as the product."""
    def __init__(self):
        self.held = {}

    def __call__(self, name: str, shape: tuple, dtype):
        nbytes = math.prod(shape) * dtype.itemsize
        memory = self.held.get(name)
        if memory is None or memory.nbytes < nbytes:
            memory = self.held[name] = np.empty(nbytes, np.uint8)
        return memory[:nbytes].view(dtype).reshape(shape)


scratch = Scratch()


def nhwc(x):
    return x.transpose(0, 2, 3, 1)


def cuts(count: int, rows: int, bytes_per_row: int, block: int | None = None) -> list[tuple[slice, slice]]:
    """`count` images of `rows` as (images, rows), about `block` bytes each: whole images, or rows of one image.

    block: BLOCK by default. As many for every thread, if the whole is worth more than one.
    """
    threads = get_num_threads() if count * rows * bytes_per_row > SMALL else 1
    fit = max(1, (block or BLOCK) // max(bytes_per_row, 1))
    if fit >= rows and count >= threads:
        number = -(-count // max(1, fit // max(rows, 1)))
        number = min(count, -(-number // threads) * threads)
        return [(n, slice(0, rows)) for n in even(count, number)]
    number = -(-rows // fit)
    if count % threads:
        number = -(-number // threads) * threads
    return [(slice(i, i + 1), h) for i in range(count) for h in even(rows, min(rows, number))]


def part_of(window: Window, rows: slice) -> Window:
    """The window of these rows of the result."""
    top, *rest = window.padding
    return window._replace(out=(rows.stop - rows.start, window.out[1]),
                           padding=(top - rows.start * window.stride[0], *rest))


def pieces(count: int, window: Window, bytes_per_row: int,
           block: int | None = None) -> list[tuple[slice, slice, Window]]:
    """`cuts` of a convolution's result, each with its window."""
    return [(n, h, part_of(window, h)) for n, h in cuts(count, window.out[0], bytes_per_row, block)]


def padded(x, window: Window):
    """x (n, H, W, C) -> the area that the window covers, zeros outside of x; without a copy if it lies within x."""
    (height, width), (top, left) = window.covered(), window.padding[:2]
    n, h, w, c = x.shape
    inside = top <= 0 and left <= 0 and height - top <= h and width - left <= w
    if inside and x.strides[2:] == (c * x.itemsize, x.itemsize):
        return x[:, -top:height - top, -left:width - left]
    out = scratch("padded", (n, height, width, c), x.dtype)
    h0, h1, w0, w1 = max(0, -top), min(h, height - top), max(0, -left), min(w, width - left)
    if h1 <= h0 or w1 <= w0:
        out.fill(0)
        return out
    out[:, h0 + top:h1 + top, w0 + left:w1 + left] = x[:, h0:h1, w0:w1]
    for edge in (out[:, :h0 + top], out[:, h1 + top:], out[:, :, :w0 + left], out[:, :, w1 + left:]):
        edge.fill(0)
    return out


def in_runs(x):
    """x (..., L), L numbers side by side, with each L of them as one element: NumPy copies a run of a few dozen numbers
    in half the time if it does not count them."""
    return x.view(np.dtype((np.void, x.shape[-1] * x.itemsize)))


class Finish:
    """What ends a block of the result while it is in cache: y = relu(y + bias + residual), as far as they are there.

    bias (K,) or None, residual (N, P, Q, K) or None. A row of the bias and of zeros for every row of the result: NumPy
    adds and compares long rows twice as fast as K numbers, or one, again and again.
    """

    def __init__(self, bias, residual, relu: bool, y):
        self.bias, self.residual, self.row = bias, residual, y.shape[2:]
        self.zero = np.zeros(self.row, y.dtype) if relu else None

    @cached_property
    def bias_row(self):
        return np.ascontiguousarray(np.broadcast_to(self.bias, self.row))

    def taken_bias(self):
        """(K,) the bias or None, for an algorithm that adds it itself."""
        bias, self.bias = self.bias, None
        return bias

    def arrays(self) -> list:
        return [a for a in (self.bias, self.residual) if a is not None]

    def __call__(self, y, images: slice, rows: slice) -> None:
        if self.bias is not None:
            np.add(y, self.bias_row, out=y)
        if self.residual is not None:
            np.add(y, self.residual[images, rows], out=y)
        if self.zero is not None:
            np.maximum(y, self.zero, out=y)


def sum_of(total, cut: list):
    """The sum of `total` over a share of the cuts for each thread, in their order."""
    first, *rest = run(total, shares(cut))
    for other in rest:
        first += other
    return first
