"""Max pooling of images with their channels side by side; see ops/pool_cpu.py."""
import numpy as np

from zoo.ops.buffers import empty
from zoo.ops.compiled.build import byte, inline, kernel, pair, reads, writes
from zoo.ops.compiled.vector import LANES, chosen, largest, load, splat, store, store_bytes, stride
from zoo.ops.threads import run


@inline
def later(v, best, where, tap):
    """The tap where v is larger than the best, or NaN; else where the best is."""
    beside_nan = chosen(v, v, where, tap)
    return chosen(v, best, where, chosen(best, best, tap, beside_nan))


@kernel(reads(3), pair, pair, pair, pair, writes(3), writes(3, byte))
def image_max_pool(x, window, steps, padding, dilation, y, taps):
    """x (H, W, C) -> y (P, Q, C), the largest of each window, and its tap, at most 255: the first, or the last NaN."""
    height, width, channels = x.shape
    for p in range(y.shape[0]):
        for q in range(y.shape[1]):
            for c in range(0, channels, LANES):
                n, fresh = min(LANES, channels - c), True
                best, where = splat(-np.inf), splat(0.0)
                for r in range(window[0]):
                    h = p * steps[0] - padding[0] + r * dilation[0]
                    for s in range(window[1]):
                        w = q * steps[1] - padding[1] + s * dilation[1]
                        if 0 <= h < height and 0 <= w < width:
                            v, tap = load(x, h * stride(x, 0) + w * stride(x, 1) + c, n), splat(r * window[1] + s)
                            where = tap if fresh else later(v, best, where, tap)
                            best = v if fresh else largest(v, best)
                            fresh = False
                store(y, p * stride(y, 0) + q * stride(y, 1) + c, best, n)
                store_bytes(taps, p * stride(taps, 0) + q * stride(taps, 1) + c, where, n)


@kernel(reads(3), reads(3, byte), pair, pair, pair, pair, writes(3))
def image_max_pool_grad(dy, taps, window, steps, padding, dilation, dx):
    """dx (H, W, C) = 0, then += dy (P, Q, C), each where the largest stood."""
    height, width = dx.shape[:2]
    dx[:] = 0
    for p in range(dy.shape[0]):
        for q in range(dy.shape[1]):
            for c in range(dy.shape[2]):
                h = p * steps[0] - padding[0] + taps[p, q, c] // window[1] * dilation[0]
                w = q * steps[1] - padding[1] + taps[p, q, c] % window[1] * dilation[1]
                if 0 <= h < height and 0 <= w < width:
                    dx[h, w, c] += dy[p, q, c]


# -- the functions of ops/pool_cpu.py: (N, C, H, W) with the channels side by side in memory

def max_pool(x, geometry) -> tuple[np.ndarray, np.ndarray]:
    """(values, taps): the largest of each window and the first tap that sees it (the last NaN, if any)."""
    x = x.transpose(0, 2, 3, 1)
    shape = len(x), *geometry.out, x.shape[3]
    y, taps = np.empty(shape, np.float32), np.empty(shape, np.uint8)
    how = geometry.kernel, geometry.stride, geometry.padding, geometry.dilation
    run(lambda i: image_max_pool(x[i], *how, y[i], taps[i]), range(len(x)))
    return y.transpose(0, 3, 1, 2), taps.transpose(0, 3, 1, 2)


def max_pool_grad(grad, taps, geometry) -> np.ndarray:
    """(N, C, P, Q) -> (N, C, H, W): each gradient goes to where the largest stood."""
    grad, taps = grad.transpose(0, 2, 3, 1), taps.transpose(0, 2, 3, 1)
    dx = empty((len(grad), *geometry.image, grad.shape[3]), grad.dtype)
    how = geometry.kernel, geometry.stride, geometry.padding, geometry.dilation
    run(lambda i: image_max_pool_grad(grad[i], taps[i], *how, dx[i]), range(len(dx)))
    return dx.transpose(0, 3, 1, 2)
