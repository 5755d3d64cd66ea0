"""Convolution of pictures: so few channels that a window's row in NHWC is a handful of numbers, slow to copy.

The columns are taken from the channels' planes instead, as rows: the row of tap (c, i, j) is what that tap sees at
all places, runs of a whole line of the result. For a stride the planes are first split into their phases (what is seen
by the taps of one remainder), so that the runs have no gaps. The bias is one row more, of ones.
"""
import numpy as np
from numpy.lib.stride_tricks import as_strided

from zoo.ops.conv_cpu_blocks import BLOCK, Finish, padded, pieces, scratch, sum_of
from zoo.ops.conv_cpu_panels import panel_product, width_of
from zoo.ops.threads import run
from zoo.ops.window import Window

LONG = 2 * BLOCK                         # bytes of columns: two threads wait for each other at many short copies


def phases_of(window: Window) -> list[tuple[int, int, int, int]]:
    """(i, j, taps down, taps across) for every remainder (i, j) of a tap by the stride that a tap has."""
    (r, s), (sh, sw) = window.kernel, window.stride
    return [(i, j, -(-(r - i) // sh), -(-(s - j) // sw)) for i in range(min(r, sh)) for j in range(min(s, sw))]


def kernel_of(weight, window: Window):
    """(K, C, R, S) -> panels (K / width, 1, C * R * S, width), the taps by phases."""
    k, (sh, sw) = len(weight), window.stride
    taps = [weight[:, :, i::sh, j::sw].reshape(k, -1) for i, j, *_ in phases_of(window)]
    rows = np.concatenate(taps, axis=1).reshape(-1, width_of(k), weight[0].size)
    return np.ascontiguousarray(rows.transpose(0, 2, 1))[:, None]


def by_planes(x):
    """x (N, H, W, C) with every channel's plane side by side in memory."""
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)


def planes_of(x, window: Window):
    """x (n, H, W, C) by planes -> (n, C, sh, sw, height, width): the area the window covers, by phases."""
    n, h, w, c = x.shape
    (height, width), (sh, sw) = window.covered(), window.stride
    planes = x.transpose(0, 3, 1, 2).reshape(n * c, h, w, 1)
    more = (-height % sh, -width % sw)
    area = window._replace(kernel=tuple(np.add(window.kernel, more)))
    split = padded(planes, area).reshape(n, c, (height + more[0]) // sh, sh, (width + more[1]) // sw, sw)
    split = split.transpose(0, 1, 3, 5, 2, 4)
    if sw == 1:
        return split
    out = scratch("planes", split.shape, x.dtype)
    np.copyto(out, split)
    return out


def columns(x, window: Window, ones: bool):
    """x (n, H, W, C) by planes -> (n, P * Q, C * R * S), and a column of ones if wanted; in memory as rows."""
    planes, (p, q), c = planes_of(x, window), window.out, x.shape[3]
    taps = c * window.kernel[0] * window.kernel[1]
    out = scratch("columns", (len(x), taps + ones, p * q), x.dtype)
    a, b, i, j, row, e = planes.strides
    start = 0
    for down, across, r, s in phases_of(window):
        phase = planes[:, :, down, across]
        view = as_strided(phase, (len(x), c, r, s, p, q), (a, b, row, e, row, e))
        part = out[:, start:start + c * r * s]
        np.copyto(part.reshape(view.shape), view)
        start += c * r * s
    if ones:
        out[:, taps] = 1
    return out.transpose(0, 2, 1)


def forward(x, kernel, window: Window, y, finish: Finish):
    """x (N, H, W, C), kernel (K / width, 1, C * R * S, width) -> y (N, P, Q, K)."""
    x = by_planes(x)
    q, k, bias = window.out[1], y.shape[3], finish.taken_bias()
    if bias is not None:
        kernel = np.concatenate([kernel, bias.reshape(len(kernel), 1, 1, -1)], axis=2)

    def block(cut):
        n, h, piece = cut
        out = y[n, h]
        panel_product(columns(x[n], piece, bias is not None), kernel, out.reshape(len(out), -1, k))
        finish(out, n, h)

    run(block, pieces(len(x), window, q * max(kernel.shape[2], k) * x.itemsize, LONG))


def weight_grad(dy, x, window: Window):
    """dy (N, P, Q, K), x (N, H, W, C) -> (K, C, R, S)."""
    x, k, c, (r, s), (sh, sw) = by_planes(x), dy.shape[3], x.shape[3], window.kernel, window.stride

    def total(cut):
        dw = np.zeros((c * r * s, k), dy.dtype)
        for n, h, piece in cut:
            d = dy[n, h]
            part = scratch("part", (len(d), c * r * s, k), dy.dtype)
            np.matmul(columns(x[n], piece, False).transpose(0, 2, 1), d.reshape(len(d), -1, k), out=part)
            dw += np.add.reduce(part, axis=0)
        return dw

    taps = sum_of(total, pieces(len(x), window, window.out[1] * c * r * s * x.itemsize))
    dw, start = np.empty((k, c, r, s), dy.dtype), 0
    for i, j, down, across in phases_of(window):
        size = c * down * across
        dw[:, :, i::sh, j::sw] = taps[start:start + size].T.reshape(k, c, down, across)
        start += size
    return dw
