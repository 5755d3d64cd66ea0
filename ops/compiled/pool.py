"""Max pooling of images with their channels side by side; see ops/pool_cpu.py. Each function does one image."""
import numpy as np

from zoo.ops.compiled.build import integer, kernel, pair, reads, writes
from zoo.ops.compiled.vector import LANES, chosen, load, splat, store, store_integers, stride


@kernel(reads(3), pair, pair, pair, pair, writes(3), writes(3, integer))
def max_pool(x, window, steps, padding, dilation, y, indices):
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
                            where = place if fresh else chosen(v, best, where, place)
                            best = v if fresh else chosen(v, best, best, v)
                            fresh = False
                store(y, p * stride(y, 0) + q * stride(y, 1) + c, best, n)
                store_integers(indices, p * stride(indices, 0) + q * stride(indices, 1) + c, where, n)


@kernel(reads(3), reads(3, integer), writes(3))
def max_pool_grad(dy, indices, dx):
    """dx (H, W, C) += dy (P, Q, C), each where the largest stood."""
    width = dx.shape[1]
    for p in range(dy.shape[0]):
        for q in range(dy.shape[1]):
            for c in range(dy.shape[2]):
                i = indices[p, q, c]
                dx[i // width, i % width, c] += dy[p, q, c]
