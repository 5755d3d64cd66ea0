"""Matrix products of float arrays in pieces that OpenBLAS multiplies where they lie.

OpenBLAS copies both operands of a product into its own order first, unless it is small: M * N * K of at most a million,
where it has kernels for that (AVX-512). In a convolution, whose matrices are a few dozen rows against a large kernel,
those copies take a third of the time: 36 products (16, 256) @ (256, 256) run at 83 GF, in panels of 64 columns at 193
(one thread of Zen 5). So a kernel is kept as panels, a few columns each, side by side in memory, and a product takes
one panel and as many rows as are small. Without such kernels (Haswell's: 70 and 73 GF, but 109 and 66 for large
matrices) there is one panel, of all columns, and one product.
"""
import ctypes
import functools

import numpy as np

from zoo.ops.conv_cpu_blocks import scratch
from zoo.ops.threads import blas, even, get_num_threads, run

SMALL = 1_000_000                        # OpenBLAS's border: multiplications of a product whose operands stay in place
CORES = b"SkylakeX", b"Cooperlake", b"SapphireRapids"      # its names of the kernels that do so
WIDTHS = 64, 48, 32                      # columns of a panel: whole registers, few enough that many rows fit
ROWS = 16                                # rows of a product below which its kernel is read too often
DEPTH = 512                              # of the summed dimension at once, if ROWS do not fit


@functools.cache
def multiplies_in_place() -> bool:
    """Whether NumPy's BLAS has kernels for small matrices that lie as they are."""
    if (core := blas("get_corename")) is None:
        return False
    core.restype = ctypes.c_char_p
    return core() in CORES


def width_of(columns: int) -> int:
    """Columns of a panel: what divides them all, else all of them."""
    return next((w for w in WIDTHS if columns % w == 0 and multiplies_in_place()), columns)


def rows_of(depth: int, width: int) -> int:
    """Rows of a product of this depth and width that is small; without end where small ones are nothing special."""
    return SMALL // (depth * width) if multiplies_in_place() else 1 << 62


def panel_product(a, panels, out) -> None:
    """a (B, P, C) @ panels (N, B, C, width) -> out (B, P, N * width)."""
    (b, p, c), (n, _, _, width) = a.shape, panels.shape
    out = out.reshape(b, p, n, width)
    depth = max(d for d in range(1, DEPTH + 1) if c % d == 0)
    if b > 1 or depth < DEPTH // 8 or rows_of(c, width) >= min(ROWS, p):
        by_rows(a, panels, out)
        return
    parts = scratch("parts", (c // depth, p, width), out.dtype)
    a = a.reshape(p, c // depth, depth).transpose(1, 0, 2)
    for k in range(n):
        by_rows(a, panels[k].reshape(1, c // depth, depth, width), parts[:, :, None])
        np.add.reduce(parts, axis=0, out=out[0, :, k])


def shares_of(panels) -> list[tuple]:
    """(columns, their panels) for every thread; of a single panel its columns."""
    n, width = len(panels), panels.shape[-1]
    if n == 1:
        return [(k, panels[..., k]) for k in even(width, min(width, get_num_threads()))]
    return [(slice(s.start * width, s.stop * width), panels[s]) for s in even(n, min(n, get_num_threads()))]


def product_by_columns(a, panels, out) -> None:
    """panel_product on all threads, each with its share of the columns: for few rows."""
    run(lambda share: panel_product(a, share[1], out[..., share[0]]), shares_of(panels))


def by_rows(a, panels, out) -> None:
    """a (B, P, C) @ panels (N, B, C, width) -> out (B, P, N, width), as many rows at once as are small."""
    (b, p, c), (n, _, _, width) = a.shape, panels.shape
    rows = rows_of(c, width)
    count = -(-p // rows) if rows >= min(ROWS // 2, p) else 1
    rows = -(-p // count)
    whole = p // rows * rows
    a, panels, out = a[:, None], panels.transpose(1, 0, 2, 3), out.transpose(0, 2, 1, 3)
    blocks = out[:, :, :whole].reshape(b, n, -1, rows, width)
    np.matmul(a[:, :, :whole].reshape(b, 1, -1, rows, c), panels[:, :, None], out=blocks)
    if whole < p:
        np.matmul(a[:, :, whole:], panels, out=out[:, :, whole:])
