"""Convolution on the CPU: which algorithm computes what, by shape.

Arrays come and go as (N, C, H, W) of any strides; results lie in memory as NHWC (a transposed view), so that a
network of convolutions converts its layout once, at its first layer. The decision table is `choice`.
"""
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from zoo.ops import conv_cpu_columns as by_columns
from zoo.ops import conv_cpu_depthwise as by_channel
from zoo.ops import conv_cpu_planes as by_plane
from zoo.ops import conv_cpu_winograd as by_winograd
from zoo.ops.buffers import empty
from zoo.ops.compiled import available
from zoo.ops.conv_cpu_blocks import BLOCK, Finish, cuts, nhwc
from zoo.ops.conv_cpu_panels import panel_product, product_by_columns
from zoo.ops.dtypes import float32
from zoo.ops.threads import SINGLE, get_num_threads, product, run
from zoo.ops.window import Window

WINOGRAD = [True]                        # zoo.backends.cpu.winograd
NARROW, NARROWER = 40, 16                # channels below which Winograd's transforms, NumPy's or compiled, do not pay
NARROW_GRADIENT = 24                     # the same for the weight's gradient, which transforms sums of tiles back


class Algorithm(NamedTuple):
    """kernel(weight, window) -> the weight as the algorithm reads it; forward(x, kernel, window, y, finish)."""
    kernel: Callable
    forward: Callable


def pointwise_forward(x, kernel, window: Window, y, finish: Finish):
    """x (N, H, W, C), kernel (K / width, 1, C, width) -> y (N, P, Q, K)."""
    x, (p, q), (c, k) = x[:, ::window.stride[0], ::window.stride[1]], window.out, (x.shape[3], y.shape[3])

    def block(cut):
        rows = flat(x[cut])
        panel_product(rows, kernel, y[cut].reshape(*rows.shape[:-1], k))
        finish(y[cut], *cut)

    if len(x) * p * q < by_columns.FEW * get_num_threads():
        product_by_columns(x.reshape(1, -1, c), kernel, y.reshape(1, -1, k))
        finish(y, slice(0, len(x)), slice(0, p))
    else:
        run(block, cuts(len(x), p, q * max(c, k) * x.itemsize, max(BLOCK, kernel.nbytes)))


def flat(x):
    """(n, H, W, C) -> (1, n * H * W, C), or (n, H * W, C) where only that is possible without a copy (NCHW memory)."""
    n, h, w, c = x.shape
    return x.reshape(1, n * h * w, c) if x.flags.c_contiguous else x.reshape(n, h * w, c)


POINTWISE = Algorithm(by_columns.column_kernel, pointwise_forward)
ROWS = Algorithm(by_columns.row_kernel, by_columns.forward_rows)
COLUMNS = Algorithm(by_columns.column_kernel, by_columns.forward_columns)
PLANES = Algorithm(by_plane.kernel_of, by_plane.forward)
DEPTHWISE = Algorithm(by_channel.kernel_of, by_channel.forward)
TILES = Algorithm(lambda weight, window: by_winograd.kernel_of(weight), by_winograd.forward)


def choice(images: int, channels: int, results: int, dtype, window: Window, narrow: int = NARROW) -> Algorithm:
    """The decision table: by images, channels of the image and of the result, dtype and window.

    narrow: channels below which NumPy's Winograd does not pay.
    """
    places = window.out[0] * window.out[1]
    if channels == results == window.groups > 1:
        return DEPTHWISE
    if window.groups > 1:
        return COLUMNS
    if window.is_pointwise:
        return POINTWISE
    if is_tiled(images, channels, results, dtype, window, narrow):
        return TILES
    if is_picture(channels, window):
        return PLANES
    if window.stride[0] == 1 and window.kernel[0] > 1 and 2 * places >= results:
        return ROWS                      # one product an image: worth it while its places are no fewer than channels
    return COLUMNS


def is_tiled(images: int, channels: int, results: int, dtype, window: Window, narrow: int = NARROW) -> bool:
    """Whether Winograd pays: a 3x3 kernel of stride 1 in float32, channels for its products, tiles for its kernel."""
    plain = window.kernel == (3, 3) and window.stride == window.dilation == (1, 1) and window.groups == 1
    tiles = images * -(-window.out[0] // 4) * -(-window.out[1] // 4)
    if not (plain and WINOGRAD[0] and dtype == float32 and min(channels, results) >= NARROWER and tiles >= 16):
        return False
    return min(channels, results) >= narrow or available("winograd", images * channels * math.prod(window.image))


def is_picture(channels: int, window: Window) -> bool:
    """Whether planes pay: up to three channels, no gaps between the taps, lines that are worth copying one by one."""
    return channels <= 3 and max(window.stride) <= 2 and window.dilation == (1, 1) and window.out[1] >= 16


def forward(x, weight, bias, window: Window, residual=None, relu: bool = False, kernels: dict | None = None):
    """relu(conv(x, weight) + bias + residual), as far as they are there: (N, C, H, W), (K, Cg, R, S) -> (N, K, P, Q).

    kernels: keeps the weight as each algorithm reads it, from call to call; the caller answers for its age.
    """
    x, k = nhwc(x), len(weight)
    y = empty((len(x), *window.out, k), x.dtype)
    algorithm = choice(len(x), x.shape[3], k, x.dtype, window)
    finish = Finish(bias, None if residual is None else nhwc(residual), relu, y)
    with SINGLE:
        kernel = None if kernels is None else kernels.get((algorithm, window.out[1]))
        if kernel is None:
            kernel = algorithm.kernel(weight, window)
        if kernels is not None:
            kernels[algorithm, window.out[1]] = kernel
        if y.size:
            algorithm.forward(x, kernel, window, y, finish)
    return y.transpose(0, 3, 1, 2)


def input_grad(dy, weight, window: Window):
    """(N, K, P, Q), (K, Cg, R, S) -> (N, C, H, W)."""
    g, (k, c, r, s) = window.groups, weight.shape
    back = mirrored(window)
    with SINGLE:
        if window.is_pointwise and g == 1:
            return pointwise_input_grad(dy, weight, window)
        if is_tiled(len(dy), k, c, dy.dtype, back):
            dx = empty((len(dy), *window.image, c), dy.dtype)
            kernel = by_winograd.turned_kernel_of(weight)
            by_winograd.forward(nhwc(dy), kernel, back, dx, Finish(None, None, False, dx))
            return dx.transpose(0, 3, 1, 2)
        if window.stride == (1, 1):
            flipped = weight.reshape(g, k // g, c, r, s)[..., ::-1, ::-1].transpose(0, 2, 1, 3, 4)
            return forward(dy, flipped.reshape(g * c, k // g, r, s), None, back)
        algorithm = by_channel if k == g > 1 == c else by_columns
        return algorithm.input_grad(np.ascontiguousarray(nhwc(dy)), weight, window).transpose(0, 3, 1, 2)


def mirrored(window: Window) -> Window:
    """The window of the convolution that undoes one of stride 1: over dy, with the kernel turned around."""
    before = [d * (k - 1) - p for d, k, p in zip(window.dilation, window.kernel, window.padding, strict=False)]
    return window._replace(image=window.out, out=window.image, padding=(*before, *before))


def pointwise_input_grad(dy, weight, window: Window):
    c, (h, w), (sh, sw) = weight.shape[1], window.image, window.stride
    dy = nhwc(dy)
    n, p, q, _ = dy.shape
    dx = product(flat(dy), weight.reshape(-1, c)).reshape(n, p, q, c)
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
    algorithm = choice(len(x), c, k, dy.dtype, window, NARROW_GRADIENT)
    with SINGLE:
        if algorithm is TILES:
            return by_winograd.weight_grad(dy, x, window)
        if algorithm is PLANES:
            return by_plane.weight_grad(dy, x, window)
        if algorithm is DEPTHWISE:
            dw = by_channel.weight_grad(dy, x, window)
        elif algorithm is POINTWISE:
            x = np.ascontiguousarray(x[:, ::window.stride[0], ::window.stride[1]])
            dw = product(dy.reshape(-1, k).T, x.reshape(-1, c))
        elif algorithm is ROWS:
            dw = by_columns.weight_grad_rows(dy, x, window).T
        else:
            dw = by_columns.weight_grad_columns(dy, x, window)
    return np.ascontiguousarray(dw.reshape(k, r, s, c // g).transpose(0, 3, 1, 2))
