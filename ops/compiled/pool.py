"""Max pooling of images with their channels side by side; see ops/pool_cpu.py."""
import numpy as np

from zoo.ops.buffers import empty
from zoo.ops.compiled.build import inline, integer, kernel, pair, reads, writes
from zoo.ops.compiled.vector import LANES, chosen, largest, load, splat, store, store_integers, stride
from zoo.ops.threads import run


@inline
def later(v, best, where, place):
    """The place where v is larger than the best, or NaN; else where the best is."""
    beside_nan = chosen(v, v, where, place)
    return chosen(v, best, where, chosen(best, best, place, beside_nan))


@kernel(reads(3), pair, pair, pair, pair, writes(3), writes(3, integer))
def image_max_pool(x, window, steps, padding, dilation, y, indices):
    """x (H, W, C) -> y (P, Q, C), the largest of each window, and its place h * W + w: the first, or the last NaN.

    H * W is at most 2^24: places are counted in float32.
    """
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
                            v, place = load(x, h * stride(x, 0) + w * stride(x, 1) + c, n), splat(h * width + w)
                            where = place if fresh else later(v, best, where, place)
                            best = v if fresh else largest(v, best)
                            fresh = False
                store(y, p * stride(y, 0) + q * stride(y, 1) + c, best, n)
                store_integers(indices, p * stride(indices, 0) + q * stride(indices, 1) + c, where, n)


@kernel(reads(3), reads(3, integer), writes(3))
def image_max_pool_grad(dy, indices, dx):
    """dx (H, W, C) = 0, then += dy (P, Q, C), each where the largest stood."""
    width = dx.shape[1]
    dx[:] = 0
    for p in range(dy.shape[0]):
        for q in range(dy.shape[1]):
            for c in range(dy.shape[2]):
                i = indices[p, q, c]
                dx[i // width, i % width, c] += dy[p, q, c]


# -- the functions of ops/pool_cpu.py: (N, C, H, W) with the channels side by side in memory

def max_pool(x, geometry) -> tuple[np.ndarray, np.ndarray]:
    """(values, indices): the largest of each window and where it first stands (the last NaN, if any)."""
    x = x.transpose(0, 2, 3, 1)
    shape = len(x), *geometry.out, x.shape[3]
    y, indices = np.empty(shape, np.float32), np.empty(shape, np.int64)
    how = geometry.kernel, geometry.stride, geometry.padding, geometry.dilation
    run(lambda i: image_max_pool(x[i], *how, y[i], indices[i]), range(len(x)))
    return y.transpose(0, 3, 1, 2), indices.transpose(0, 3, 1, 2)


def max_pool_grad(grad, indices, geometry) -> np.ndarray:
    """(N, C, P, Q) -> (N, C, H, W): each gradient goes to where the largest stood."""
    grad, indices = grad.transpose(0, 2, 3, 1), indices.transpose(0, 2, 3, 1)
    dx = empty((len(grad), *geometry.image, grad.shape[3]), grad.dtype)
    run(lambda i: image_max_pool_grad(grad[i], indices[i], dx[i]), range(len(dx)))
    return dx.transpose(0, 3, 1, 2)
