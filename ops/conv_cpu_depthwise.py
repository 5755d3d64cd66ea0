"""Depthwise convolution, a kernel for each channel: no product to win by, so one multiply-add for each tap."""
import numpy as np

from zoo.ops.conv_cpu_blocks import Finish, padded, pieces, scratch, sum_of
from zoo.ops.threads import run
from zoo.ops.window import Window

BLOCK = 256 << 10                        # bytes of result: the block, its part and its image are touched at every tap


def kernel_of(weight, window: Window):
    """(C, 1, R, S) -> (R, S, Q, C): repeated along the row, which makes one long inner loop of it."""
    r, s = window.kernel
    taps = weight.reshape(-1, r, s).transpose(1, 2, 0)
    return np.repeat(taps[:, :, None], window.out[1], axis=2)


def forward(x, kernel, window: Window, y, finish: Finish):
    """x (N, H, W, C), kernel (R, S, Q, C) -> y (N, P, Q, C)."""
    r, s = window.kernel

    def block(cut):
        n, h, piece = cut
        area, out = padded(x[n], piece), y[n, h]
        part = scratch("part", out.shape, y.dtype)
        for i in range(r):
            for j in range(s):
                np.multiply(area[:, *piece.tap(i, j)], kernel[i, j], out=part if i + j else out)
                if i + j:
                    np.add(out, part, out=out)
        finish(out, n, h)

    run(block, pieces(len(x), window, y[:1, :1].nbytes, BLOCK))


def weight_grad(dy, x, window: Window):
    """dy (N, P, Q, C), x (N, H, W, C) -> (C, R, S)."""
    r, s = window.kernel

    def total(cut):
        dw = np.zeros((r, s, dy.shape[3]), dy.dtype)
        for n, h, piece in cut:
            area, d = padded(x[n], piece), dy[n, h]
            part, ones = scratch("part", d.shape, d.dtype), np.ones(d.size // d.shape[3], d.dtype)
            for i in range(r):
                for j in range(s):
                    np.multiply(area[:, *piece.tap(i, j)], d, out=part)
                    dw[i, j] += ones @ part.reshape(-1, d.shape[3])
        return dw

    return sum_of(total, pieces(len(x), window, dy[:1, :1].nbytes, BLOCK)).transpose(2, 0, 1)


def input_grad(dy, weight, window: Window):
    """dy (N, P, Q, C), weight (C, 1, R, S) -> (N, H, W, C), image by image."""
    (h, w), (top, left), (r, s) = window.image, window.padding[:2], window.kernel
    dx = np.empty((len(dy), h, w, dy.shape[3]), dy.dtype)
    height, width = window.covered()

    def image(n):
        area = scratch("padded", (max(height, top + h), max(width, left + w), dy.shape[3]), dy.dtype)
        area.fill(0)
        for i in range(r):
            for j in range(s):
                part = scratch("part", dy[n].shape, dy.dtype)
                area[window.tap(i, j)] += np.multiply(dy[n], weight[:, 0, i, j], out=part)
        dx[n] = area[top:top + h, left:left + w]

    run(image, range(len(dy)))
    return dx
