"""Matrix products of float arrays in pieces that OpenBLAS multiplies where they lie.

OpenBLAS copies both operands of a product into its own order first, unless it is small: M * N * K of at most a million
(SMALL_MATRIX_OPT, on processors with AVX-512). In a convolution, whose matrices are a few dozen rows against a large
kernel, those copies take a third of the time: 36 products (16, 256) @ (256, 256) run at 114 GF, the same in panels of
64 columns at 215 GF (one thread of Zen 5). So a kernel is kept as panels: a few columns each, side by side in memory,
and a product takes one panel and as many rows as are small.
"""
import numpy as np

from zoo.ops.conv_cpu_blocks import scratch
from zoo.ops.threads import even, get_num_threads, run

SMALL = 1_000_000                        # OpenBLAS's border: multiplications of a product whose operands stay in place
WIDTHS = 64, 48, 32                      # columns of a panel: whole registers, few enough that many rows fit
ROWS = 16                                # rows of a product below which its kernel is read too often
DEPTH = 512                              # of the summed dimension at once, if ROWS do not fit


def width_of(columns: int) -> int:
    """Columns of a panel: what divides them all, else all of them."""
    return next((w for w in WIDTHS if columns % w == 0), columns)


def panel_product(a, panels, out) -> None:
    """a (B, P, C) @ panels (N, B, C, width) -> out (B, P, N * width)."""
    (b, p, c), (n, _, _, width) = a.shape, panels.shape
    out = out.reshape(b, p, n, width)
    depth = max(d for d in range(1, DEPTH + 1) if c % d == 0)
    if b > 1 or depth < DEPTH // 8 or SMALL // (c * width) >= min(ROWS, p):
        by_rows(a, panels, out)
        return
    parts = scratch("parts", (c // depth, p, width), out.dtype)
    a = a.reshape(p, c // depth, depth).transpose(1, 0, 2)
    for k in range(n):
        by_rows(a, panels[k].reshape(1, c // depth, depth, width), parts[:, :, None])
        np.add.reduce(parts, axis=0, out=out[0, :, k])


def product_by_panels(a, panels, out) -> None:
    """The same on all threads, each with its share of the panels: for few rows."""
    n, width = len(panels), panels.shape[3]

    def share(part):
        panel_product(a, panels[part], out[..., part.start * width:part.stop * width])

    run(share, even(n, min(n, get_num_threads())))


def by_rows(a, panels, out) -> None:
    """a (B, P, C) @ panels (N, B, C, width) -> out (B, P, N, width), as many rows at once as are small."""
    (b, p, c), (n, _, _, width) = a.shape, panels.shape
    rows = SMALL // (c * width)
    count = -(-p // rows) if rows >= min(ROWS // 2, p) else 1
    rows = -(-p // count)
    whole = p // rows * rows
    a, panels, out = a[:, None], panels.transpose(1, 0, 2, 3), out.transpose(0, 2, 1, 3)
    blocks = out[:, :, :whole].reshape(b, n, -1, rows, width)
    np.matmul(a[:, :, :whole].reshape(b, 1, -1, rows, c), panels[:, :, None], out=blocks)
    if whole < p:
        np.matmul(a[:, :, whole:], panels, out=out[:, :, whole:])
