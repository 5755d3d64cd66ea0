"""The largest element of every window, without its place, on the CPU: for inference.

Dimension by dimension, the first one first: in the memory of either layout its taps are whole lines, and it leaves less
to the others. Padding is not laid out: a tap that looks outside of the image skips those places.
"""
import numpy as np

from zoo.ops.conv_cpu_blocks import cuts, scratch
from zoo.ops.pool_cpu import channels_last, wide
from zoo.ops.threads import run


def max_pool_values(x, geometry):
    """x (N, C, *spatial) -> (N, C, *places), NaN where a window has one; in memory as x lies."""
    dtype, x = x.dtype, wide(x)
    last, (n, c), places = channels_last(x), x.shape[:2], geometry.out
    y = np.empty((n, *places, c) if last else (n, c, *places), x.dtype)
    y = np.moveaxis(y, -1, 1) if last else y

    def block(cut):
        images, rows = cut
        part, first = x[images], rows.start
        for d in range(len(places)):
            shape = part.shape[:d + 2] + (rows.stop - rows.start if d == 0 else places[d],) + part.shape[d + 3:]
            out = y[images, :, rows] if d == len(places) - 1 else buffer(shape, x.dtype, last, d)
            largest(part, geometry, d, first, out)
            part, first = out, 0

    row_bytes = x[:1].nbytes // max(x.shape[2], 1)
    run(block, cuts(n, places[0], row_bytes))
    return y.astype(dtype, copy=False)


def buffer(shape: tuple, dtype, last: bool, d: int):
    if not last:
        return scratch(f"pool{d}", shape, dtype)
    return np.moveaxis(scratch(f"pool{d}", (shape[0], *shape[2:], shape[1]), dtype), -1, 1)


def taps_of(geometry, d: int, size: int, first: int, places: int) -> list[tuple[slice, slice]]:
    """(which places it serves, where it looks) for every tap along dimension d; whole taps, which serve all, first."""
    step, taps = geometry.stride[d], []
    for t in range(geometry.kernel[d]):
        offset = t * geometry.dilation[d] - geometry.padding[d]
        start, stop = max(0, -(offset // step) - first), min(places, (size - 1 - offset) // step + 1 - first)
        if stop > start:
            seen = (first + start) * step + offset
            taps.append((slice(start, stop), slice(seen, seen + (stop - start - 1) * step + 1, step)))
    return sorted(taps, key=lambda tap: tap[0] != slice(0, places))


def largest(x, geometry, d: int, first: int, out) -> None:
    """out[p]: the largest of x along dimension d in the window of place first + p."""
    places, at = out.shape[d + 2], (slice(None),) * (d + 2)
    taps = taps_of(geometry, d, x.shape[d + 2], first, places)
    whole = [x[(*at, seen)] for served, seen in taps[:2] if served == slice(0, places)]
    if len(whole) == 2:
        np.maximum(*whole, out=out)
    elif whole:
        np.copyto(out, whole[0])
    else:
        out.fill(-np.inf)
    for served, seen in taps[len(whole):]:
        to = out[(*at, served)]
        np.maximum(to, x[(*at, seen)], out=to)
