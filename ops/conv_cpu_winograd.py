"""3x3 convolution by Winograd's minimal filtering F(4x4, 3x3): 36 multiplications for 16 results instead of 144.

    y = A^T ((G w G^T) * (B^T d B)) A   for every 6x6 tile d, tiles 4 apart      (Lavin and Gray, arXiv:1509.09308)

Both sides of a transform are one Kronecker product, so each is one matrix product for every tile, and the 36
elementwise products, summed over channels, are 36 more. The two gradients are the exact adjoints of these steps.

float32 loses about one digit: errors of 1e-5 relative to the largest result, where the direct sum has 1e-6. An inf
makes its whole tile NaN. `zoo.backends.cpu.winograd = False` turns it off; float64 never comes here.
"""
import math

import numpy as np
from numpy.lib.stride_tricks import as_strided

from zoo.ops.compiled import compiled
from zoo.ops.conv_cpu_blocks import BLOCK, Finish, cuts, padded, scratch, sum_of
from zoo.ops.conv_cpu_panels import panel_product, shares_of, width_of
from zoo.ops.threads import even, get_num_threads, run
from zoo.ops.window import Window

TILE, REACH = 4, 6                       # a tile of results, and of what it reads
B = np.array([[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
              [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]], np.float64)          # B^T
G = np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]], np.float64) / 24
A = np.array([[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]], np.float64)  # A^T
BB, GG, AA = (np.kron(m, m).astype(np.float32) for m in (B, G, A))     # (36, 36), (36, 9), (16, 36)
SHIFTED = np.concatenate([AA, np.ones((16, 1), np.float32)], axis=1).reshape(TILE, TILE, 37)     # a row more: the bias
PANEL = 64                               # channels of the weight's gradient at a time, if all tiles are there
FEW = 64                                 # tiles for each thread, below which the channels of the result are cut instead


def kernel_of(weight):
    """(K, C, 3, 3) -> panels (K / width, 36, C, width)."""
    k, c = weight.shape[:2]
    width = width_of(k)
    return transformed(weight.reshape(k // width, width, c, 9).transpose(0, 3, 2, 1))


def turned_kernel_of(weight):
    """(K, C, 3, 3) -> panels (C / width, 36, K, width), of the convolution that gives the input's gradient: turned
    around, from K to C."""
    k, c = weight.shape[:2]
    width = width_of(c)
    return transformed(weight.reshape(k, c // width, width, 9).transpose(1, 3, 0, 2)[:, ::-1])


def transformed(taps):
    """(N, 9, C, width) -> (N, 36, C, width): G w G^T of every 3x3 kernel w."""
    n, _, c, width = taps.shape
    out = np.empty((n, 36, c, width), np.float32)
    run(lambda k: np.matmul(GG, taps[k].reshape(9, c * width), out=out[k].reshape(36, -1)), range(n))
    return out


def tiles_of(x, window: Window, rows: slice, tiles: tuple[int, int], out=None):
    """x (n, H, W, C) -> (36, n * tiles in these rows, C): B^T d B of every tile d."""
    height, width = rows.stop - rows.start, tiles[1]
    top, *rest = window.padding
    piece = window._replace(out=(height * TILE, width * TILE), padding=(top - rows.start * TILE, *rest))
    return by_tile(BB, padded(x, piece), (height, width), "transformed", out)


def spread_tiles(dy, window: Window, rows: slice, tiles: tuple[int, int], out=None):
    """dy (n, P, Q, K) -> (36, n * tiles in these rows, K): A dy A^T of every tile, zeros where it stands out."""
    height, width = rows.stop - rows.start, tiles[1]
    piece = window._replace(image=window.out, out=(height * TILE, width * TILE), kernel=(1, 1),
                            padding=(-rows.start * TILE, 0, 0, 0))
    return by_tile(AA.T, padded(dy, piece), (height, width), "spread", out)


def by_tile(matrix, x, tiles: tuple[int, int], name: str, out=None):
    """x (n, height, width, C) -> (36, n * tiles, C): the matrix (36, r * r) times every tile of r x r, 4 apart."""
    (n, _, _, c), (a, b, w, e), (height, width) = x.shape, x.strides, tiles
    places = matrix.shape[1]
    reach = math.isqrt(places)
    view = as_strided(x, (n, height, width, reach, reach * c), (a, TILE * b, TILE * w, b, e))
    read = scratch("tiles", view.shape, x.dtype)
    np.copyto(read, view)
    out = planes(name, n * height * width, c) if out is None else out
    np.matmul(matrix, read.reshape(-1, places, c), out=out.transpose(1, 0, 2))         # each in the L1 cache
    return out


def planes(name: str, places: int, channels: int) -> np.ndarray:
    """Scratch memory (36, places, channels); planes a power of two apart would all fall on one set of the cache."""
    return scratch(name, (36, places + 1, channels), np.dtype(np.float32))[:, :places]


def blocks_of(count: int, tiles: tuple[int, int], channels: int, kernel_bytes: int):
    """Cuts in rows of tiles; every block reads the whole kernel once, so it is no smaller than a good part of that."""
    return cuts(count, tiles[0], tiles[1] * 36 * channels * 4, max(BLOCK, kernel_bytes // 2))


def tile_counts(window: Window) -> tuple[int, int]:
    return -(-window.out[0] // TILE), -(-window.out[1] // TILE)


def multiplied(read, kernel, bias, y) -> None:
    """The tiles read, (36, n * tiles, C), times the kernel (N, 36, C, width), transformed back, into y (n, p, Q, K).

    The bias is one more product: a 37th row of the last transform's operand.
    """
    (n, p, q, k), places = y.shape, read.shape[1]
    width = -(-q // TILE)
    height, taps = places // n // width, 36 if bias is None else 37
    products = scratch("products", (taps, places, k), y.dtype)
    panel_product(read, kernel, products[:36])
    if bias is not None:
        products[36] = bias
    whole = (p, q) == (height * TILE, width * TILE)
    to = y if whole else scratch("results", (n, height * TILE, width * TILE, k), y.dtype)
    products = products.reshape(taps, n, height, width, 1, k).transpose(1, 2, 3, 4, 0, 5)
    tiled = to.reshape(n, height, TILE, width, TILE, k).transpose(0, 1, 3, 2, 4, 5)
    np.matmul(SHIFTED[..., :taps], products, out=tiled)
    if not whole:
        np.copyto(y, to[:, :p, :q])


def forward(x, kernel, window: Window, y, finish: Finish):
    """x (N, H, W, C), kernel (K / width, 36, C, width) -> y (N, P, Q, K)."""
    if fast := compiled("winograd", x, *finish.arrays()):
        return fast.forward(x, kernel, window, y, finish)
    tiles, c, bias = tile_counts(window), kernel.shape[2], finish.taken_bias()

    def block(cut):
        images, rows = cut
        h = slice(TILE * rows.start, min(TILE * rows.stop, window.out[0]))
        multiplied(tiles_of(x[images], window, rows, tiles), kernel, bias, y[images, h])
        finish(y[images, h], images, h)

    if len(x) * tiles[0] * tiles[1] >= FEW * get_num_threads():
        run(block, blocks_of(len(x), tiles, c, kernel.nbytes))
        return
    read = tiles_of(x, window, slice(0, tiles[0]), tiles)

    def channels(share):
        k, panels = share
        multiplied(read, panels, None if bias is None else bias[k], y[..., k])

    run(channels, shares_of(kernel))
    finish(y, slice(0, len(x)), slice(0, window.out[0]))


def weight_grad(dy, x, window: Window):
    """dy (N, P, Q, K), x (N, H, W, C) -> (K, C, 3, 3)."""
    tiles, k, c = tile_counts(window), dy.shape[3], x.shape[3]
    fast = compiled("winograd", x, dy)
    transforms = (fast.tiles_of, fast.spread_tiles) if fast else (tiles_of, spread_tiles)
    dw = np.empty((k, c, 9), x.dtype)
    places = len(x) * tiles[0] * tiles[1]
    by = weight_grad_by_channels if places * (k + c) <= 2 * k * c else weight_grad_by_blocks
    by(dy, x, window, tiles, transforms, dw)
    return dw.reshape(k, c, 3, 3)


def weight_grad_by_blocks(dy, x, window: Window, tiles: tuple[int, int], transforms, dw) -> None:
    """dw (K, C, 9): every thread has a share of the tiles, and their sums are added up."""
    (tiles_of, spread_tiles), k, c = transforms, dy.shape[3], x.shape[3]

    def total(blocks):
        """Of one thread: the sum over its blocks of the 36 products (K, P) @ (P, C)."""
        out = np.empty((36, k, c), x.dtype)
        for i, (images, rows) in enumerate(blocks):
            read = tiles_of(x[images], window, rows, tiles)
            spread = spread_tiles(dy[images], window, rows, tiles).transpose(0, 2, 1)
            part = scratch("products", out.shape, x.dtype) if i else out
            np.matmul(spread, read, out=part)
            if i:
                out += part
        return out

    sums = sum_of(total, blocks_of(len(x), tiles, max(c, k), 36 * c * k * 4))
    run(lambda part: gathered(sums[:, part], dw[part]), even(k, get_num_threads()))


def weight_grad_by_channels(dy, x, window: Window, tiles: tuple[int, int], transforms, dw) -> None:
    """dw (K, C, 9), few tiles against a large kernel: first all tiles, then every thread has channels of the result."""
    (tiles_of, spread_tiles), k, c = transforms, dy.shape[3], x.shape[3]
    per_image, threads = tiles[0] * tiles[1], get_num_threads()
    read, spread = planes("all tiles", len(x) * per_image, c), planes("all spread", len(x) * per_image, k)

    def transform(images):
        places, rows = slice(images.start * per_image, images.stop * per_image), slice(0, tiles[0])
        tiles_of(x[images], window, rows, tiles, read[:, places])
        spread_tiles(dy[images], window, rows, tiles, spread[:, places])

    def multiply(part):
        sums = scratch("products", (36, part.stop - part.start, c), x.dtype)
        np.matmul(spread[..., part].transpose(0, 2, 1), read, out=sums)
        gathered(sums, dw[part])

    run(transform, even(len(x), min(len(x), threads)))
    run(multiply, even(k, min(k, -(-k // (threads * PANEL)) * threads)))


def gathered(sums, dw) -> None:
    """sums (36, K, C) -> dw (K, C, 9): G^T s G of every kernel."""
    np.matmul(sums.transpose(1, 2, 0), GG, out=dw)
