"""Depthwise convolution, a kernel for each channel: no product to win by, so one multiply-add for each tap.

NumPy's einsum does a block's in one call, with no array for the products: two thirds of the time of multiplying and
adding tap by tap, and no wait of two threads for the interpreter's lock. It multiplies and adds in the order of the
taps. Where Numba is installed, a compiled loop keeps the sums in registers.
"""
import numpy as np
from numpy.lib.stride_tricks import as_strided

from zoo.ops.compiled import compiled
from zoo.ops.conv_cpu_blocks import Finish, padded, pieces, scratch, sum_of
from zoo.ops.reduce_cpu import ones
from zoo.ops.threads import run
from zoo.ops.window import Window

BLOCK = 1 << 20                          # bytes of result: most images whole


def kernel_of(weight, window: Window):
    """(C, 1, R, S) -> (R, S, Q, C): repeated along the row, which makes one long inner loop of it."""
    r, s = window.kernel
    taps = weight.reshape(-1, r, s).transpose(1, 2, 0)
    return np.repeat(taps[:, :, None], window.out[1], axis=2)


def lines(a, window: Window):
    """a (..., Q, C), Q and C without gaps, as einsum's inner loop takes it: (..., 1, Q * C) where places touch."""
    return a.reshape(*a.shape[:-2], 1, -1) if window.stride[1] == 1 else a


def seen(area, window: Window):
    """(R, S, n, P, Q, C) as `lines`: what each tap sees of the area (n, height, width, C), a view of it."""
    image, row, place, channel = area.strides
    (down, right), (dh, dw), (q, c) = window.stride, window.dilation, (window.out[1], area.shape[3])
    line = (1, q * c) if right == 1 else (q, c)
    return as_strided(area, (*window.kernel, len(area), window.out[0], *line),
                      (dh * row, dw * place, image, down * row, right * place, channel), writeable=False)


def forward(x, kernel, window: Window, y, finish: Finish):
    """x (N, H, W, C), kernel (R, S, Q, C) -> y (N, P, Q, C)."""
    fast = compiled("depthwise", y, x, kernel)
    taps = np.ascontiguousarray(kernel[:, :, 0])

    def block(cut):
        n, h, piece = cut
        area, out = padded(x[n], piece), y[n, h]
        if fast:
            fast.forward(area, taps, window.stride, window.dilation, out)
        else:
            np.einsum("rsnpqc,rsqc->npqc", seen(area, piece), lines(kernel, piece), out=lines(out, piece))
        finish(out, n, h)

    run(block, pieces(len(x), window, y[:1, :1].nbytes, BLOCK))


def weight_grad(dy, x, window: Window):
    """dy (N, P, Q, C), x (N, H, W, C) -> (C, R, S)."""
    fast, channels, q = compiled("depthwise", dy, x), dy.shape[3], window.out[1]

    def total(cut):
        dw = np.zeros((*window.kernel, channels), dy.dtype)
        for n, h, piece in cut:
            area, d = padded(x[n], piece), dy[n, h]
            if fast:
                fast.add_weight_grad(area, d, window.stride, window.dilation, dw)
            else:
                t = np.einsum("rsnpqc,npqc->rsqc", seen(area, piece), lines(d, piece))
                dw += ones(q, dy.dtype) @ t.reshape(*window.kernel, q, channels)
        return dw

    return sum_of(total, pieces(len(x), window, dy[:1, :1].nbytes, BLOCK)).transpose(2, 0, 1)


def input_grad(dy, weight, window: Window):
    """dy (N, P, Q, C), weight (C, 1, R, S) -> (N, H, W, C), image by image."""
    (h, w), (top, left) = window.image, window.padding[:2]
    dx = np.empty((len(dy), h, w, dy.shape[3]), dy.dtype)
    height, width = window.covered()
    taps, fast = np.ascontiguousarray(weight[:, 0].transpose(1, 2, 0)), compiled("depthwise", dy, weight)

    def image(n):
        area = scratch("padded", (1, max(height, top + h), max(width, left + w), dy.shape[3]), dy.dtype)
        if fast:
            fast.input_grad(dy[n:n + 1], taps, window.stride, window.dilation, area)
        else:
            add_taps(dy[n], taps, window, area[0])
        dx[n] = area[0, top:top + h, left:left + w]

    run(image, range(len(dy)))
    return dx


def add_taps(dy, taps, window: Window, area) -> None:
    """area = 0, then for each tap (R, S, C): what it sees += dy * tap."""
    part = scratch("part", dy.shape, dy.dtype)
    area.fill(0)
    for i, j in np.ndindex(window.kernel):
        area[window.tap(i, j)] += np.multiply(dy, taps[i, j], out=part)
