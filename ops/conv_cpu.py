"""Convolution on the CPU: blocks of NHWC columns that stay in cache, and BLAS.

Arrays come and go as (N, C, H, W) of any strides; results lie in memory as NHWC (a transposed view), so that a
network of convolutions converts its layout once, at its first layer. Three ways, by shape:
pointwise (1x1) is a product as it stands; `rows` unfolds a window's row only, R times less to copy than `columns`
(the usual im2col), and adds R products; a depthwise kernel has no product to win by: one multiply-add a tap.
"""
import math
import threading

import numpy as np
from numpy.lib.stride_tricks import as_strided

from zoo.ops.window import Window

BLOCK = 2 << 20                          # bytes of columns: more falls out of the cache, less feeds BLAS badly
DEPTHWISE_BLOCK = 256 << 10              # bytes of result: the block, its part and its image are touched at every tap


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


def pieces(count: int, window: Window, bytes_per_row: int, block: int = BLOCK):
    """Cuts `count` images of `window` into (images, rows of the result, the window of these rows), about `block` bytes:
    whole images, or rows of one image."""
    p, q = window.out
    rows = max(1, min(p, block // max(bytes_per_row, 1)))
    if rows == p:
        step = max(1, block // max(bytes_per_row * p, 1))
        for i in range(0, count, step):
            yield slice(i, min(i + step, count)), slice(0, p), window
        return
    top, left, bottom, right = window.padding
    for i in range(count):
        for r in range(0, p, rows):
            part = slice(r, min(r + rows, p))
            padding = top - r * window.stride[0], left, bottom, right
            yield slice(i, i + 1), part, window._replace(out=(part.stop - r, q), padding=padding)


def padded(x, window: Window):
    """x (n, H, W, C) -> the area that the window covers, zeros outside of x; without a copy if it lies within x."""
    (height, width), (top, left) = window.covered(), window.padding[:2]
    n, h, w, c = x.shape
    inside = top <= 0 and left <= 0 and height - top <= h and width - left <= w
    if inside and x.strides[2:] == (c * x.itemsize, x.itemsize):
        return x[:, -top:height - top, -left:width - left]
    out = scratch("padded", (n, height, width, c), x.dtype)
    if not inside:
        out.fill(0)
    h0, h1, w0, w1 = max(0, -top), min(h, height - top), max(0, -left), min(w, width - left)
    if h1 > h0 and w1 > w0:
        out[:, h0 + top:h1 + top, w0 + left:w1 + left] = x[:, h0:h1, w0:w1]
    return out


def row_columns(x, window: Window):
    """x (n, H, W, C) -> (n, covered height * Q, S * C): at every row, the window's row at each of its Q places."""
    x, q, s = padded(x, window), window.out[1], window.kernel[1]
    (n, height, _, c), (a, b, w, e) = x.shape, x.strides
    view = as_strided(x, (n, height, q, s, c), (a, b, w * window.stride[1], w * window.dilation[1], e))
    out = scratch("columns", view.shape, x.dtype)
    np.copyto(out, view)
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


def weight_rows(weight, groups: int):
    """(K, Cg, R, S) -> (G, Kg, R * S * Cg), without a copy if the weight lies as KRSC."""
    k, c, r, s = weight.shape
    return weight.transpose(0, 2, 3, 1).reshape(groups, k // groups, r * s * c)


def is_depthwise(weight, window: Window) -> bool:
    return weight.shape[1] == 1 and window.groups > 1 and weight.shape[0] == window.groups


def by_rows(window: Window, channels: int) -> bool:
    """Rows make one product an image: worth it while an image has places enough for the channels of the result."""
    places = window.out[0] * window.out[1]
    return window.groups == 1 and window.stride[0] == 1 and window.kernel[0] > 1 and 2 * places >= channels


def flat(x):
    """(n, H, W, C) -> (n * H * W, C), or (n, H * W, C) where only that is possible without a copy (NCHW memory)."""
    n, h, w, c = x.shape
    return x.reshape(n * h * w, c) if x.flags.c_contiguous else x.reshape(n, h * w, c)


def forward(x, weight, bias, window: Window):
    """(N, C, H, W), (K, Cg, R, S) -> (N, K, P, Q)."""
    x, (p, q), k = nhwc(x), window.out, weight.shape[0]
    y = np.empty((len(x), p, q, k), x.dtype)
    if is_depthwise(weight, window):
        depthwise(x, weight, window, y)
    elif window.is_pointwise and window.groups == 1:
        x = flat(x[:, ::window.stride[0], ::window.stride[1]])
        np.matmul(x, weight.reshape(k, -1).T, out=y.reshape(*x.shape[:-1], k))
    elif by_rows(window, k):
        forward_rows(x, weight, window, y)
    else:
        forward_columns(x, weight, window, y)
    if bias is not None:
        y += bias
    return y.transpose(0, 3, 1, 2)


def forward_rows(x, weight, window: Window, y):
    q, (r, s), c, k = window.out[1], window.kernel, x.shape[3], y.shape[3]
    rows = weight.transpose(2, 3, 1, 0).reshape(r, s * c, k)
    for n, h, piece in pieces(len(x), window, q * s * c * x.itemsize):
        columns, places = row_columns(x[n], piece), piece.out[0] * q
        out = y[n, h].reshape(-1, places, k)
        part = scratch("part", out.shape, y.dtype)
        for i in range(r):
            start = i * window.dilation[0] * q
            np.matmul(columns[:, start:start + places], rows[i], out=part if i else out)
            if i:
                np.add(out, part, out=out)


def forward_columns(x, weight, window: Window, y):
    g, k = window.groups, y.shape[3]
    rows = weight_rows(weight, g).transpose(0, 2, 1)
    row = window.out[1] * g * rows.shape[1] * x.itemsize
    for n, h, piece in pieces(len(x), window, row, max(BLOCK, weight.nbytes)):
        out = y[n, h].reshape(-1, g, k // g).transpose(1, 0, 2)
        np.matmul(columns(x[n], piece), rows, out=out)


def depthwise(x, weight, window: Window, y):
    r, s = window.kernel
    taps = weight.reshape(-1, r, s).transpose(1, 2, 0)
    taps = np.repeat(taps[:, :, None], y.shape[2], axis=2)                     # (R, S, Q, C): one long inner loop a row
    for n, h, piece in pieces(len(x), window, y[:1, :1].nbytes, DEPTHWISE_BLOCK):
        area, out = padded(x[n], piece), y[n, h]
        part = scratch("part", out.shape, y.dtype)
        for i in range(r):
            for j in range(s):
                np.multiply(area[:, *piece.tap(i, j)], taps[i, j], out=part if i + j else out)
                if i + j:
                    np.add(out, part, out=out)


def input_grad(dy, weight, window: Window):
    """(N, K, P, Q), (K, Cg, R, S) -> (N, C, H, W)."""
    g, (k, c, r, s) = window.groups, weight.shape
    if window.is_pointwise and g == 1:
        return pointwise_input_grad(dy, weight, window)
    if window.stride == (1, 1):
        flipped = weight.reshape(g, k // g, c, r, s)[..., ::-1, ::-1].transpose(0, 2, 1, 3, 4)
        return forward(dy, flipped.reshape(g * c, k // g, r, s), None, mirrored(window))
    dy, (h, w), (top, left) = np.ascontiguousarray(nhwc(dy)), window.image, window.padding[:2]
    dx = np.empty((len(dy), h, w, g * c), dy.dtype)
    height, width = window.covered()
    step = max(1, BLOCK // max(1, window.out[0] * window.out[1] * r * s * c * g * dy.itemsize))
    for n in (slice(i, min(i + step, len(dy))) for i in range(0, len(dy), step)):
        area = scratch("padded", (n.stop - n.start, max(height, top + h), max(width, left + w), g * c), dy.dtype)
        area.fill(0)
        spread(dy[n], weight, window, area)
        dx[n] = area[:, top:top + h, left:left + w]
    return dx.transpose(0, 3, 1, 2)


def mirrored(window: Window) -> Window:
    """The window of the convolution that undoes one of stride 1: over dy, with the kernel turned around."""
    before = [d * (k - 1) - p for d, k, p in zip(window.dilation, window.kernel, window.padding, strict=False)]
    return window._replace(image=window.out, out=window.image, padding=(*before, *before))


def spread(dy, weight, window: Window, area):
    """Adds to `area` (n, height, width, C) what each place of dy (n, P, Q, K) passes back through each tap."""
    g, (k, c, r, s), (n, p, q, _) = window.groups, weight.shape, dy.shape
    if is_depthwise(weight, window):
        parts = (dy * weight[:, 0, i, j] for i in range(r) for j in range(s))
    else:
        back = scratch("columns", (g, n * p * q, r * s * c), dy.dtype)
        np.matmul(dy.reshape(-1, g, k // g).transpose(1, 0, 2), weight_rows(weight, g), out=back)
        back = back.reshape(g, n, p, q, r * s, c).transpose(4, 1, 2, 3, 0, 5)
        parts = (back[t].reshape(n, p, q, g * c) for t in range(r * s))
    for t, part in enumerate(parts):
        area[:, *window.tap(t // s, t % s)] += part


def pointwise_input_grad(dy, weight, window: Window):
    c, (h, w), (sh, sw) = weight.shape[1], window.image, window.stride
    dy = nhwc(dy)
    n, p, q, _ = dy.shape
    dx = np.matmul(flat(dy), weight.reshape(-1, c)).reshape(n, p, q, c)
    if (p, q) != (h, w):
        dx, part = np.zeros((n, h, w, c), dy.dtype), dx
        dx[:, :(p - 1) * sh + 1:sh, :(q - 1) * sw + 1:sw] = part
    return dx.transpose(0, 3, 1, 2)


def weight_grad(dy, x, window: Window):
    """(N, K, P, Q), (N, C, H, W) -> (K, Cg, R, S)."""
    x, dy = nhwc(x), np.ascontiguousarray(nhwc(dy))
    g, (r, s), k, c = window.groups, window.kernel, dy.shape[3], x.shape[3]
    if not (x.size and dy.size):
        return np.zeros((k, c // g, r, s), dy.dtype)
    if g == c == k and g > 1:
        dw = depthwise_weight_grad(dy, x, window)
    elif window.is_pointwise and g == 1:
        x = np.ascontiguousarray(x[:, ::window.stride[0], ::window.stride[1]])
        dw = dy.reshape(-1, k).T @ x.reshape(-1, c)
    elif by_rows(window, k):
        dw = weight_grad_rows(dy, x, window)
    else:
        dw = weight_grad_columns(dy, x, window)
    return np.ascontiguousarray(dw.reshape(k, r, s, c // g).transpose(0, 3, 1, 2))


def weight_grad_rows(dy, x, window: Window):
    q, (r, s), k, c = window.out[1], window.kernel, dy.shape[3], x.shape[3]
    dw = np.zeros((r, s * c, k), dy.dtype)
    for n, h, piece in pieces(len(x), window, q * s * c * x.itemsize):
        columns, places = row_columns(x[n], piece).transpose(0, 2, 1), piece.out[0] * q
        d = dy[n, h].reshape(-1, places, k)
        part = scratch("part", (len(d), s * c, k), dy.dtype)
        for i in range(r):
            start = i * window.dilation[0] * q
            np.matmul(columns[..., start:start + places], d, out=part)
            dw[i] += np.add.reduce(part, axis=0)
    return dw.reshape(-1, k).T


def weight_grad_columns(dy, x, window: Window):
    (r, s), g, k = window.kernel, window.groups, dy.shape[3]
    dw = np.zeros((g, k // g, r * s * (x.shape[3] // g)), dy.dtype)
    for n, h, piece in pieces(len(x), window, window.out[1] * r * s * x.shape[3] * x.itemsize, max(BLOCK, dw.nbytes)):
        dw += np.matmul(dy[n, h].reshape(-1, g, k // g).transpose(1, 2, 0), columns(x[n], piece))
    return dw


def depthwise_weight_grad(dy, x, window: Window):
    r, s = window.kernel
    dw = np.zeros((r, s, dy.shape[3]), dy.dtype)
    for n, h, piece in pieces(len(x), window, dy[:1, :1].nbytes, DEPTHWISE_BLOCK):
        area, d = padded(x[n], piece), dy[n, h]
        part, ones = scratch("part", d.shape, d.dtype), np.ones(d.size // d.shape[3], d.dtype)
        for i in range(r):
            for j in range(s):
                np.multiply(area[:, *piece.tap(i, j)], d, out=part)
                dw[i, j] += ones @ part.reshape(-1, d.shape[3])
    return dw.transpose(2, 0, 1)
