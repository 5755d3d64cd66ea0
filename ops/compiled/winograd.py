"""The transforms of Winograd's F(4x4, 3x3), 16 channels at a time in registers: additions where NumPy has products.

The three matrices are those of ops/conv_cpu_winograd.py. Images are NHWC, with the channels side by side in memory.
"""
import numpy as np

from zoo.ops.compiled.build import boolean, inline, integer, kernel, reads, writes
from zoo.ops.compiled.vector import LANES, fma, largest, load, prefetch, splat, store, stride
from zoo.ops.conv_cpu_blocks import Finish
from zoo.ops.conv_cpu_panels import panel_product
from zoo.ops.conv_cpu_winograd import FEW, TILE, blocks_of, planes, tile_counts
from zoo.ops.threads import even, get_num_threads, run
from zoo.ops.window import Window


@inline
def read_six(x, at, step, n):
    """Six vectors of a line times B^T."""
    a, b, c = load(x, at, n), load(x, at + step, n), load(x, at + 2 * step, n)
    d, e, f = load(x, at + 3 * step, n), load(x, at + 4 * step, n), load(x, at + 5 * step, n)
    return times_b(a, b, c, d, e, f)


@inline
def times_b(a, b, c, d, e, f):
    two, four, five = splat(2.0), splat(4.0), splat(-5.0)
    even, odd = fma(splat(-4.0), c, e), fma(splat(-4.0), b, d)
    rest, twice = e - c, two * (d - b)
    return (fma(four, a, fma(five, c, e)), even + odd, even - odd, rest + twice, rest - twice,
            fma(four, b, fma(five, d, f)))


@inline
def write_six(out, at, step, line, n):
    for k in range(6):
        store(out, at + k * step, line[k], n)


@inline
def tile(x, at, down, right, out, place, plane, n):
    """B^T d B of the 6x6 tile whose corner is x[at] -> out[place], one plane for each of the 36."""
    s, t, u = read_six(x, at, down, n), read_six(x, at + right, down, n), read_six(x, at + 2 * right, down, n)
    v, w, z = (read_six(x, at + 3 * right, down, n), read_six(x, at + 4 * right, down, n),
               read_six(x, at + 5 * right, down, n))
    write_six(out, place, plane, times_b(s[0], t[0], u[0], v[0], w[0], z[0]), n)
    write_six(out, place + 6 * plane, plane, times_b(s[1], t[1], u[1], v[1], w[1], z[1]), n)
    write_six(out, place + 12 * plane, plane, times_b(s[2], t[2], u[2], v[2], w[2], z[2]), n)
    write_six(out, place + 18 * plane, plane, times_b(s[3], t[3], u[3], v[3], w[3], z[3]), n)
    write_six(out, place + 24 * plane, plane, times_b(s[4], t[4], u[4], v[4], w[4], z[4]), n)
    write_six(out, place + 30 * plane, plane, times_b(s[5], t[5], u[5], v[5], w[5], z[5]), n)


@kernel(reads(4), integer, integer, integer, integer, writes(3))
def tiles(x, top, left, rows, columns, out):
    """x (n, H, W, C) -> out (36, n * rows * columns, C): B^T d B of every 6x6 tile d, 4 apart.

    The first tile begins `top` rows above the image and `left` of it; around it are zeros.
    """
    count, height, width, channels = x.shape
    image, down, right = stride(x, 0), stride(x, 1), stride(x, 2)
    plane, spot = stride(out, 0), stride(out, 1)
    edge = np.zeros((6, 6, LANES), np.float32)
    for k in range(count * rows * columns):
        i, h, w = k // (rows * columns), 4 * (k // columns % rows) - top, 4 * (k % columns) - left
        inside = h >= 0 and w >= 0 and h + 6 <= height and w + 6 <= width
        at = i * image + h * down + w * right
        for c in range(0, channels, LANES):
            n = min(LANES, channels - c)
            if inside:
                for r in range(6):
                    for s in range(6, 10):
                        prefetch(x, at + r * down + s * right + c)
                tile(x, at + c, down, right, out, k * spot + c, plane, n)
            else:
                for r in range(6):
                    for s in range(6):
                        here = n if 0 <= h + r < height and 0 <= w + s < width else 0
                        store(edge, (r * 6 + s) * LANES, load(x, at + r * down + s * right + c, here), LANES)
                tile(edge, 0, 6 * LANES, LANES, out, k * spot + c, plane, n)


@inline
def times_a(a, b, c, d, e, f):
    near, far, less, apart = b + c, d + e, b - c, d - e
    return (a + near) + far, fma(splat(2.0), apart, less), fma(splat(4.0), far, near), fma(splat(8.0), apart, less) + f


@inline
def read_four(m, at, plane, n):
    """Six planes, six apart, times A^T."""
    return times_a(load(m, at, n), load(m, at + 6 * plane, n), load(m, at + 12 * plane, n),
                   load(m, at + 18 * plane, n), load(m, at + 24 * plane, n), load(m, at + 30 * plane, n))


@inline
def write_four(y, at, right, rest, rest_at, rest_right, line, bias, more, relu, width, n):
    for k in range(4):
        if k < width:
            v = line[k] + bias
            if more:
                v = v + load(rest, rest_at + k * rest_right, n)
            if relu:
                v = largest(v, splat(0.0))
            store(y, at + k * right, v, n)


@kernel(reads(3), reads(1), reads(4), boolean, boolean, integer, integer, writes(4))
def results(m, bias, residual, more, relu, rows, columns, y):
    """m (36, n * rows * columns, K) -> y (n, P, Q, K) = A^T m A of every tile + bias (K,), cut where tiles stand out.

    more: + residual (n, P, Q, K). relu: at least 0.
    """
    count, height, width, channels = y.shape
    image, down, right = stride(y, 0), stride(y, 1), stride(y, 2)
    image2, down2, right2 = stride(residual, 0), stride(residual, 1), stride(residual, 2)
    plane, spot = stride(m, 0), stride(m, 1)
    for k in range(count * rows * columns):
        i, h, w = k // (rows * columns), 4 * (k // columns % rows), 4 * (k % columns)
        high, wide = height - h, width - w
        for c in range(0, channels, LANES):
            n, p = min(LANES, channels - c), k * spot + c
            at, at2 = i * image + h * down + w * right + c, i * image2 + h * down2 + w * right2 + c
            b = load(bias, c, n)
            for r in range(4):
                for s in range(4, 8):
                    prefetch(y, at + r * down + s * right)
            s, t = read_four(m, p, plane, n), read_four(m, p + plane, plane, n)
            u, v = read_four(m, p + 2 * plane, plane, n), read_four(m, p + 3 * plane, plane, n)
            x, z = read_four(m, p + 4 * plane, plane, n), read_four(m, p + 5 * plane, plane, n)
            line = times_a(s[0], t[0], u[0], v[0], x[0], z[0])
            write_four(y, at, right, residual, at2, right2, line, b, more, relu, wide, n)
            if high > 1:
                line = times_a(s[1], t[1], u[1], v[1], x[1], z[1])
                write_four(y, at + down, right, residual, at2 + down2, right2, line, b, more, relu, wide, n)
            if high > 2:
                line = times_a(s[2], t[2], u[2], v[2], x[2], z[2])
                write_four(y, at + 2 * down, right, residual, at2 + 2 * down2, right2, line, b, more, relu, wide, n)
            if high > 3:
                line = times_a(s[3], t[3], u[3], v[3], x[3], z[3])
                write_four(y, at + 3 * down, right, residual, at2 + 3 * down2, right2, line, b, more, relu, wide, n)


@inline
def spread_four(dy, at, step, count, n):
    """Four vectors of a line times A, those from `count` on are 0."""
    a, b = load(dy, at, n), load(dy, at + step, n if count > 1 else 0)
    c, d = load(dy, at + 2 * step, n if count > 2 else 0), load(dy, at + 3 * step, n if count > 3 else 0)
    return times_a_turned(a, b, c, d)


@inline
def times_a_turned(a, b, c, d):
    even, odd, far, apart = a + c, b + d, fma(splat(4.0), c, a), fma(splat(8.0), d, splat(2.0) * b)
    return a, even + odd, even - odd, far + apart, far - apart, d


@kernel(reads(4), integer, integer, writes(3))
def spread(dy, rows, columns, out):
    """dy (n, P, Q, K) -> out (36, n * rows * columns, K): A dy A^T of every tile, zeros where it stands out."""
    count, height, width, channels = dy.shape
    image, down, right = stride(dy, 0), stride(dy, 1), stride(dy, 2)
    plane, spot = stride(out, 0), stride(out, 1)
    for k in range(count * rows * columns):
        i, h, w = k // (rows * columns), 4 * (k // columns % rows), 4 * (k % columns)
        high, wide = height - h, width - w
        for c in range(0, channels, LANES):
            n, to = min(LANES, channels - c), k * spot + c
            at = i * image + h * down + w * right + c
            s = spread_four(dy, at, down, high, n)
            t = spread_four(dy, at + right, down, high, n if wide > 1 else 0)
            u = spread_four(dy, at + 2 * right, down, high, n if wide > 2 else 0)
            v = spread_four(dy, at + 3 * right, down, high, n if wide > 3 else 0)
            write_six(out, to, plane, times_a_turned(s[0], t[0], u[0], v[0]), n)
            write_six(out, to + 6 * plane, plane, times_a_turned(s[1], t[1], u[1], v[1]), n)
            write_six(out, to + 12 * plane, plane, times_a_turned(s[2], t[2], u[2], v[2]), n)
            write_six(out, to + 18 * plane, plane, times_a_turned(s[3], t[3], u[3], v[3]), n)
            write_six(out, to + 24 * plane, plane, times_a_turned(s[4], t[4], u[4], v[4]), n)
            write_six(out, to + 30 * plane, plane, times_a_turned(s[5], t[5], u[5], v[5]), n)


# -- the functions of ops/conv_cpu_winograd.py

def side_by_side(x):
    """x (N, H, W, C) with its channels side by side in memory."""
    return x if x.strides[3] == x.itemsize else np.ascontiguousarray(x)


def tiles_of(x, window: Window, rows: slice, counts: tuple[int, int], out=None):
    """x (n, H, W, C) -> (36, n * tiles in these rows, C): B^T d B of every tile d."""
    height, (top, left) = rows.stop - rows.start, window.padding[:2]
    out = planes("transformed", len(x) * height * counts[1], x.shape[3]) if out is None else out
    tiles(side_by_side(x), top - rows.start * TILE, left, height, counts[1], out)
    return out


def spread_tiles(dy, window: Window, rows: slice, counts: tuple[int, int], out=None):
    """dy (n, P, Q, K) -> (36, n * tiles in these rows, K): A dy A^T of every tile, zeros where it stands out."""
    dy, height = dy[:, rows.start * TILE:rows.stop * TILE], rows.stop - rows.start
    out = planes("spread", len(dy) * height * counts[1], dy.shape[3]) if out is None else out
    spread(dy, height, counts[1], out)
    return out


def forward(x, kernel, window: Window, y, finish: Finish) -> None:
    """x (N, H, W, C), kernel (K / width, 36, C, width) -> y (N, P, Q, K); what ends a block is done in registers."""
    counts, (panels, _, c, width), k = tile_counts(window), kernel.shape, y.shape[3]
    x, residual = side_by_side(x), y if finish.residual is None else side_by_side(finish.residual)
    bias = np.zeros(k, np.float32) if finish.bias is None else np.ascontiguousarray(finish.bias)
    more, relu = finish.residual is not None, finish.zero is not None

    def put(read, images, rows, panel):
        channels = slice(panel.start * width, panel.stop * width)
        at = images, slice(TILE * rows.start, TILE * rows.stop), slice(None), channels
        products = planes("products", read.shape[1], channels.stop - channels.start)
        panel_product(read, kernel[panel], products)
        results(products, bias[channels], residual[at], more, relu, rows.stop - rows.start, counts[1], y[at])

    def block(cut):
        images, rows = cut
        put(tiles_of(x[images], window, rows, counts), images, rows, slice(0, panels))

    if len(x) * counts[0] * counts[1] >= FEW * get_num_threads():
        run(block, blocks_of(len(x), counts, c, kernel.nbytes))
        return
    images, rows = slice(0, len(x)), slice(0, counts[0])
    read = tiles_of(x, window, rows, counts)
    run(lambda panel: put(read, images, rows, panel), even(panels, min(panels, get_num_threads())))
