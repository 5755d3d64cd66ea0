"""Pooling on the CPU: tap by tap (an offset inside the window), over strided views of what a tap sees at all places.

Arrays are (N, C, *spatial) of any strides; results lie in memory as their input does (NCHW or NHWC), because all
views and buffers keep its order. Maxima and sums are taken dimension by dimension: k1 + k2 passes instead of k1 * k2.
"""
import math
from itertools import product

import numpy as np

from zoo.ops.buffers import empty
from zoo.ops.compiled import compiled
from zoo.ops.dtypes import HALVES, float32
from zoo.ops.pieces import LONG, each, slices
from zoo.ops.threads import SINGLE, get_num_threads, run


def wide(x):
    return x.astype(float32) if x.dtype in HALVES else x


def channels_last(x) -> bool:
    return x.shape[1] > 1 and x.strides[1] == x.itemsize and x.strides[-1] >= x.shape[1] * x.itemsize


def full(x, spatial, value, dtype):
    """A new array (N, C, *spatial) in x's memory order."""
    n, c = x.shape[:2]
    if channels_last(x):
        return np.moveaxis(np.full((n, *spatial, c), value, dtype), -1, 1)
    return np.full((n, c, *spatial), value, dtype)


def tap_slice(t: int, stride: int, dilation: int, places: int) -> slice:
    return slice(t * dilation, t * dilation + (places - 1) * stride + 1, stride)


def padded(x, geometry, value):
    """x in the area that the windows cover, `value` around it; x itself where nothing is around it."""
    area = geometry.area()
    if not any(geometry.padding) and all(a <= n for a, n in zip(area, x.shape[2:], strict=True)):
        return x
    area = tuple(max(a, n + p) for a, n, p in zip(area, x.shape[2:], geometry.padding, strict=True))
    out = full(x, area, value, x.dtype)
    out[(..., *(slice(p, p + n) for p, n in zip(geometry.padding, x.shape[2:], strict=True)))] = x
    return out


def reduced(x, geometry, ufunc):
    """ufunc over each window of the padded x, one dimension after the other, the last first."""
    for d in reversed(range(len(geometry.kernel))):
        k, s, dil, places = geometry.kernel[d], geometry.stride[d], geometry.dilation[d], geometry.out[d]
        at = [slice(None)] * x.ndim
        if places == 1 and dil == 1:
            at[d + 2] = slice(0, k)
            x = ufunc.reduce(x[tuple(at)], axis=d + 2, keepdims=True)
            continue
        at[d + 2] = tap_slice(0, s, dil, places)
        y = x[tuple(at)]
        for t in range(1, k):
            at[d + 2] = tap_slice(t, s, dil, places)
            y = ufunc(y, x[tuple(at)], out=y if t > 1 else None)
        x = y
    return x


def tap_offsets(geometry) -> np.ndarray:
    """Flat offset, in an unpadded image, of every tap from its window's corner."""
    return np.array([sum(t * d * s for t, d, s in zip(tap, geometry.dilation, geometry.steps(), strict=True))
                     for tap in product(*map(range, geometry.kernel))], np.int64)


def corners(geometry) -> np.ndarray:
    """(*out) flat index of every window's corner; outside of the image it is a number that no tap in it shares."""
    corner = np.zeros(geometry.out, np.int64)
    rows = zip(geometry.out, geometry.stride, geometry.padding, geometry.steps(), strict=True)
    for d, (n, s, p, step) in enumerate(rows):
        line = (np.arange(n) * s - p) * step
        corner += line.reshape([-1 if i == d else 1 for i in range(len(geometry.out))])
    return corner


def by_image(op):
    """op(*arrays, geometry), which gives an array or several, image by image, so that one image stays in cache."""
    def each(*args):
        *arrays, geometry = args
        count = len(arrays[0])
        if count < 2:
            return op(*args)

        def image(i) -> tuple:
            parts = op(*(x[i:i + 1] for x in arrays), geometry)
            return parts if isinstance(parts, tuple) else (parts,)

        first = run(image, range(min(count, get_num_threads())))
        results = [begun(parts, count) for parts in zip(*first, strict=True)]

        def put(i):
            for y, part in zip(results, image(i), strict=True):
                y[i:i + 1] = part
        run(put, range(len(first), count))
        return tuple(results) if len(results) > 1 else results[0]
    return each


def begun(parts, count: int):
    """A new array of `count` images, of which the first ones (1, C, *spatial) are there, in their memory order."""
    _, c, *spatial = parts[0].shape
    last = channels_last(parts[0])
    y = empty((count, *spatial, c) if last else (count, c, *spatial), parts[0].dtype)
    y = np.moveaxis(y, -1, 1) if last else y
    np.concatenate(parts, out=y[:len(parts)])
    return y


def by_rows(x):
    """The compiled functions, for float32 pictures whose channels lie side by side in memory; or None."""
    return compiled("pool", x) if x.ndim == 4 and channels_last(x) else None


def max_pool(x, geometry):
    """(values, taps): the largest of each window and the first tap that sees it (the last NaN, if any)."""
    if math.prod(geometry.kernel) <= 256 and (fast := by_rows(x)):
        return fast.max_pool(x, geometry)
    return max_pool_by_taps(x, geometry)


@by_image
def max_pool_by_taps(x, geometry):
    dtype, x = x.dtype, wide(x)
    area = padded(x, geometry, -np.inf)
    best = reduced(area, geometry, np.maximum)
    if best is area or np.shares_memory(best, x):
        best = best.copy(order="K")
    if best.size and not best.min() > -np.inf:
        return slow_max_pool(x, geometry, dtype)
    taps = list(product(*map(range, geometry.kernel)))
    count = np.zeros_like(best, np.uint8 if len(taps) <= 256 else np.int32)     # taps before the first of the largest
    found = np.zeros_like(best, bool)
    for tap in taps[:-1]:
        found |= area[(..., *map(tap_slice, tap, geometry.stride, geometry.dilation, geometry.out))] == best
        count += ~found
    return best.astype(dtype, copy=False), count


def tap_indices(taps, geometry):
    """The flat positions in the image, of int64; 0 where a window sees nothing of the image."""
    sees = padded(np.ones((1, 1, *geometry.image), bool), geometry, False)
    indices = np.add(tap_offsets(geometry)[taps], corners(geometry), out=np.empty_like(taps, np.int64))
    return np.where(reduced(sees, geometry, np.logical_or), indices, 0)


def slow_max_pool(x, geometry, dtype):
    """Where a window has NaN or only -inf: scan as torch does, among the taps inside the image."""
    area = padded(x, geometry, -np.inf)
    inside = padded(np.ones((1, 1, *x.shape[2:]), bool), geometry, False)
    best = full(x, geometry.out, -np.inf, x.dtype)
    found = np.full_like(best, -1, np.int32)                 # nothing seen yet
    for number, tap in enumerate(product(*map(range, geometry.kernel))):
        at = (..., *map(tap_slice, tap, geometry.stride, geometry.dilation, geometry.out))
        v = area[at]
        take = inside[at] & ((v > best) | (v != v) | (found < 0))
        best = np.where(take, v, best)
        found = np.where(take, number, found)
    taps = np.maximum(found, 0)                              # 0 where dilation leaves nothing to see
    return best.astype(dtype, copy=False), taps.astype(np.uint8 if math.prod(geometry.kernel) <= 256 else np.int32)


def max_pool_grad(grad, taps, geometry):
    """(N, C, *out) -> (N, C, *image): each gradient goes to where the largest stood."""
    if taps.dtype == np.uint8 and (fast := by_rows(grad)):
        return fast.max_pool_grad(grad, taps, geometry)
    return max_pool_grad_by_taps(grad, taps, geometry)


@by_image
def max_pool_grad_by_taps(grad, taps, geometry):
    dtype, grad = grad.dtype, wide(grad)
    area = tuple(max(a, n + p) for a, n, p in zip(geometry.area(), geometry.image, geometry.padding, strict=True))
    out = full(grad, area, 0, grad.dtype)
    bits = grad.view(f"i{grad.itemsize}")        # bits times 0 or 1: inf and NaN stay where they belong
    part = np.empty_like(bits)
    for number, tap in enumerate(product(*map(range, geometry.kernel))):
        np.multiply(bits, taps == number, out=part)
        out[(..., *map(tap_slice, tap, geometry.stride, geometry.dilation, geometry.out))] += part.view(grad.dtype)
    return crop(out, geometry).astype(dtype, copy=False)


def crop(area, geometry):
    return area[(..., *(slice(p, p + n) for p, n in zip(geometry.padding, geometry.image, strict=True)))]


def is_dense(x) -> bool:
    """Whether x lies in memory as one of the two layouts, and has something in it."""
    return bool(x.size) and (x.flags.c_contiguous or np.moveaxis(x, 1, -1).flags.c_contiguous)


def sums_of_images(x):
    """x (N, C, *spatial), dense -> (N, C), as products with ones: NumPy's sum takes 10 times as long."""
    n, c = x.shape[:2]
    size, last = math.prod(x.shape[2:]), channels_last(x)
    ones, y = np.ones(size, x.dtype), np.empty((n, c), x.dtype)
    x = np.moveaxis(x, 1, -1).reshape(n, size, c) if last else x.reshape(n, c, size)

    def sums(part):
        if last:
            np.matmul(ones[None], x[part], out=y[part, None])
        else:
            np.matmul(x[part], ones, out=y[part])

    with SINGLE:
        each(sums, slices(n, max(1, 4 * LONG // (c * size))), x.size)
    return y


def avg_pool(x, geometry, divisor):
    """Sums of the windows over `divisor`, a number or an array (*out)."""
    dtype, x = x.dtype, wide(x)
    if geometry.kernel == geometry.image and not any(geometry.padding) and is_dense(x):
        y = sums_of_images(x).reshape(*x.shape[:2], *geometry.out)
    else:
        y = reduced(padded(x, geometry, 0), geometry, np.add)
    return np.divide(y, np.asarray(divisor, y.dtype)).astype(dtype, copy=False)


def avg_pool_grad(grad, geometry, divisor):
    """(N, C, *out) -> (N, C, *image): each gradient in equal parts to all of its window, dimension by dimension."""
    dtype, grad = grad.dtype, wide(grad)
    y = np.divide(grad, np.asarray(divisor, grad.dtype))
    for d, (k, s, places) in enumerate(zip(geometry.kernel, geometry.stride, geometry.out, strict=True)):
        if places == 1 and k == geometry.image[d] and not geometry.padding[d]:
            y = np.broadcast_to(y, (*y.shape[:d + 2], k, *y.shape[d + 3:]))
            continue
        size = max(geometry.area()[d], geometry.image[d] + geometry.padding[d])
        out = full(y, (*y.shape[2:d + 2], size, *y.shape[d + 3:]), 0, y.dtype)
        for t in range(k):
            out[(slice(None),) * (d + 2) + (tap_slice(t, s, 1, places),)] += y
        first = geometry.padding[d]
        y = out[(slice(None),) * (d + 2) + (slice(first, first + geometry.image[d]),)]
    return y.astype(dtype, copy=False)


# -- adaptive: windows of unequal sizes, so place by place

def adaptive_windows(image, out):
    """(place, its slices of the image) of every place."""
    spans = [[slice(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in zip(image, out, strict=True)]
    return zip(product(*map(range, out)), product(*spans), strict=True)


def adaptive_avg_pool(x, out):
    dtype, x = x.dtype, wide(x)
    if math.prod(out) == 1 and is_dense(x):
        y = sums_of_images(x) / x.dtype.type(math.prod(x.shape[2:]))
        return y.reshape(*x.shape[:2], *out).astype(dtype, copy=False)
    y = full(x, out, 0, x.dtype)
    for place, span in adaptive_windows(x.shape[2:], out):
        y[(..., *place)] = x[(..., *span)].mean(tuple(range(2, x.ndim)))
    return y.astype(dtype, copy=False)


def adaptive_avg_pool_grad(grad, image):
    dtype, grad = grad.dtype, wide(grad)
    dx = full(grad, image, 0, grad.dtype)
    for place, span in adaptive_windows(image, grad.shape[2:]):
        window = dx[(..., *span)]
        window += (grad[(..., *place)] / window[0, 0].size)[(..., *(None,) * len(image))] if window.size else 0
    return dx.astype(dtype, copy=False)


def adaptive_max_pool(x, out):
    dtype, x = x.dtype, wide(x)
    values, indices = full(x, out, 0, x.dtype), full(x, out, 0, np.int64)
    positions = np.arange(math.prod(x.shape[2:])).reshape(x.shape[2:])
    for place, span in adaptive_windows(x.shape[2:], out):
        where = positions[span].reshape(-1)
        window = x[(..., *span)].reshape(*x.shape[:2], len(where))
        nan = np.isnan(window)
        first = np.where(nan.any(2), window.shape[2] - 1 - nan[..., ::-1].argmax(2), window.argmax(2))
        values[(..., *place)] = np.take_along_axis(window, first[..., None], 2)[..., 0]
        indices[(..., *place)] = where[first]
    return values.astype(dtype, copy=False), indices


def adaptive_max_pool_grad(grad, indices, image):
    dtype, grad = grad.dtype, wide(grad)
    n, c = grad.shape[:2]
    dx = np.zeros((n * c, math.prod(image)), grad.dtype)
    rows = np.arange(n * c)
    places = math.prod(grad.shape[2:])
    grads, indices = grad.reshape(n * c, places), indices.reshape(n * c, places)
    for place in range(places):                      # one a row: no index twice in a pass
        dx[rows, indices[:, place]] += grads[:, place]
    return dx.reshape(n, c, *image).astype(dtype, copy=False)
