"""Convolution as products of columns: every window's row (`rows`), or the whole window (`columns`, im2col).

`rows` unfolds a window's row only, R times less to copy, and adds R products; `columns` does any stride and group.
"""
import numpy as np
from numpy.lib.stride_tricks import as_strided

from zoo.ops.conv_cpu_blocks import BLOCK, Finish, in_runs, padded, pieces, scratch, sum_of
from zoo.ops.conv_cpu_panels import panel_product, product_by_columns, width_of
from zoo.ops.threads import even, get_num_threads, run
from zoo.ops.window import Window

FEW = 64                                 # places for each thread, below which the channels of the result are cut


def row_columns(x, window: Window):
    """x (n, H, W, C) -> (n, covered height * Q, S * C): at every row, the window's row at each of its Q places."""
    x, q, s = padded(x, window), window.out[1], window.kernel[1]
    (n, height, _, c), (a, b, w, e), (_, dilation) = x.shape, x.strides, window.dilation
    runs, run = (1, s * c) if dilation == 1 else (s, c)
    view = as_strided(x, (n, height, q, runs, run), (a, b, w * window.stride[1], w * dilation, e))
    out = scratch("columns", view.shape, x.dtype)
    np.copyto(in_runs(out), in_runs(view))
    return out.reshape(n, height * q, s * c)


def columns(x, window: Window):
    """x (n, H, W, C) -> (G, n * P * Q, R * S * Cg)."""
    x, (p, q), (r, s) = padded(x, window), window.out, window.kernel
    (sh, sw), (dh, dw), g = window.stride, window.dilation, window.groups
    (n, _, _, c), (a, b, w, e) = x.shape, x.strides
    view = as_strided(x, (g, n, p, q, r, s, c // g), (c // g * e, a, sh * b, sw * w, dh * b, dw * w, e))
    out = scratch("columns", view.shape, x.dtype)
    np.copyto(out, view)
    return out.reshape(g, n * p * q, r * s * (c // g))


def row_kernel(weight, window: Window):
    """(K, C, R, S) -> (R, S * C, K)."""
    k, c, r, s = weight.shape
    return weight.transpose(2, 3, 1, 0).reshape(r, s * c, k)


def column_kernel(weight, window: Window):
    """(K, Cg, R, S) -> panels (Kg / width, G, R * S * Cg, width)."""
    (k, c, r, s), g = weight.shape, window.groups
    width = width_of(k // g)
    panels = weight.reshape(g, -1, width, c, r, s).transpose(1, 0, 4, 5, 3, 2)
    out = np.empty(panels.shape, weight.dtype)
    run(lambda n: np.copyto(out[n], panels[n]), range(len(panels)))
    return out.reshape(-1, g, r * s * c, width)


def forward_rows(x, kernel, window: Window, y, finish: Finish):
    """x (N, H, W, C), kernel (R, S * C, K) -> y (N, P, Q, K)."""
    q, k, (r, _) = window.out[1], y.shape[3], window.kernel

    def block(cut):
        n, h, piece = cut
        columns, places = row_columns(x[n], piece), piece.out[0] * q
        out = y[n, h].reshape(-1, places, k)
        part = scratch("part", out.shape, y.dtype)
        for i in range(r):
            start = i * window.dilation[0] * q
            np.matmul(columns[:, start:start + places], kernel[i], out=part if i else out)
            if i:
                np.add(out, part, out=out)
        finish(y[n, h], n, h)

    run(block, pieces(len(x), window, q * kernel.shape[1] * x.itemsize))


def forward_columns(x, kernel, window: Window, y, finish: Finish):
    """x (N, H, W, C), kernel (Kg / width, G, R * S * Cg, width) -> y (N, P, Q, K)."""
    g, k, (p, q) = window.groups, y.shape[3], window.out

    def block(cut):
        n, h, piece = cut
        panel_product(columns(x[n], piece), kernel, y[n, h].reshape(-1, g, k // g).transpose(1, 0, 2))
        finish(y[n, h], n, h)

    if g == 1 and len(x) * p * q < FEW * get_num_threads():
        product_by_columns(columns(x, window), kernel, y.reshape(1, -1, k))
        finish(y, slice(0, len(x)), slice(0, p))
        return
    row = q * kernel.shape[1] * kernel.shape[2] * x.itemsize
    run(block, pieces(len(x), window, row, max(BLOCK, kernel.nbytes)))


def weight_grad_rows(dy, x, window: Window):
    """dy (N, P, Q, K), x (N, H, W, C) -> (R * S * C, K)."""
    q, (r, s), k, c = window.out[1], window.kernel, dy.shape[3], x.shape[3]

    def total(cut):
        dw = np.zeros((r, s * c, k), dy.dtype)
        for n, h, piece in cut:
            columns, places = row_columns(x[n], piece).transpose(0, 2, 1), piece.out[0] * q
            d = dy[n, h].reshape(-1, places, k)
            part = scratch("part", (len(d), s * c, k), dy.dtype)
            for i in range(r):
                start = i * window.dilation[0] * q
                np.matmul(columns[..., start:start + places], d, out=part)
                dw[i] += np.add.reduce(part, axis=0)
        return dw

    return sum_of(total, pieces(len(x), window, q * s * c * x.itemsize)).reshape(-1, k)


def weight_grad_columns(dy, x, window: Window):
    """dy (N, P, Q, K), x (N, H, W, C) -> (G, Kg, R * S * Cg)."""
    (r, s), g, k = window.kernel, window.groups, dy.shape[3]
    shape = g, k // g, r * s * (x.shape[3] // g)

    def total(cut):
        dw = np.zeros(shape, dy.dtype)
        for n, h, piece in cut:
            d = dy[n, h].reshape(-1, g, k // g).transpose(1, 2, 0)
            dw += np.matmul(d, columns(x[n], piece), out=scratch("part", shape, dy.dtype))
        return dw

    row = window.out[1] * r * s * x.shape[3] * x.itemsize
    return sum_of(total, pieces(len(x), window, row, max(BLOCK, k * shape[2] * x.itemsize)))


def input_grad(dy, weight, window: Window):
    """dy (N, P, Q, K), weight (K, Cg, R, S) -> (N, H, W, C): the columns' gradients, added where they came from."""
    (h, w), (top, left), g, (k, c, r, s) = window.image, window.padding[:2], window.groups, weight.shape
    dx = np.empty((len(dy), h, w, g * c), dy.dtype)
    height, width = window.covered()
    kernel = weight.transpose(0, 2, 3, 1).reshape(g, k // g, r * s * c)

    def block(n):
        area = scratch("padded", (n.stop - n.start, max(height, top + h), max(width, left + w), g * c), dy.dtype)
        area.fill(0)
        spread(dy[n], kernel, window, area)
        dx[n] = area[:, top:top + h, left:left + w]

    column_bytes = dy[..., 0].size * r * s * c * g * dy.itemsize
    number = max(column_bytes // BLOCK, get_num_threads())
    run(block, even(len(dy), min(len(dy), number)))
    return dx


def spread(dy, kernel, window: Window, area):
    """Adds to `area` (n, height, width, C) what each place of dy (n, P, Q, K) passes back through each tap."""
    g, (r, s), (n, p, q, _) = window.groups, window.kernel, dy.shape
    c = kernel.shape[2] // (r * s)
    back = scratch("columns", (g, n * p * q, r * s * c), dy.dtype)
    np.matmul(dy.reshape(-1, g, kernel.shape[1]).transpose(1, 0, 2), kernel, out=back)
    back = back.reshape(g, n, p, q, r * s, c).transpose(4, 1, 2, 3, 0, 5)
    for t in range(r * s):
        area[:, *window.tap(t // s, t % s)] += back[t].reshape(n, p, q, g * c)
