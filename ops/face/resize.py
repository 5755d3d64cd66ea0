"""Resizing: torch's interpolate. Each dimension by itself is a linear map from n to m samples, so it is a small matrix
made on the host and one matrix product; nearest modes select."""
from math import floor, prod

import numpy as np

from zoo.ops.device import constant
from zoo.ops.dtypes import float64
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.face.index import index_select
from zoo.ops.face.pool import adaptive_mean_pool
from zoo.ops.matmul import matmul
from zoo.ops.shape import reshape
from zoo.ops.window import ints

FUNCTIONS = ()
METHODS = ()
NN_FUNCTIONS = ("interpolate", "upsample", "upsample_bilinear", "upsample_nearest")
INPLACE = ()

RANKS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}        # spatial dimensions of each mode that mixes


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
                antialias=False):
    """input (N, C, *spatial) resized to `size`, or by scale_factor (sizes are rounded down).

    mode: nearest, nearest-exact, area (adaptive mean) for 1 to 3 dimensions; linear for 1, bilinear and bicubic for 2,
    trilinear for 3. align_corners: first and last samples stay where they are. antialias (bilinear, bicubic): the
    filter grows as the image shrinks.

    Raises:
        ShapeError: rank and mode, or rank and size, do not fit.
        ArgumentError: size and scale_factor, or an option that the mode does not take.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.interpolate(zoo.tensor([[[1.0, 3.0]]]), size=4, mode="linear").tolist()
        [[[1.0, 1.5, 2.5, 3.0]]]
    """
    image = tuple(input.shape[2:])
    check_mode(mode, tuple(input.shape), align_corners, antialias)
    size, scales = sizes("interpolate", image, size, scale_factor, recompute_scale_factor)
    if mode == "area":
        return adaptive_mean_pool(len(image), input, size)
    number = float if input.dtype == float64 else np.float32        # torch's arithmetic: rounding decides on neighbours
    for d, (n, m) in enumerate(zip(image, size, strict=True)):
        scale = number(n / m if scales[d] is None else 1 / scales[d])
        if mode.startswith("nearest"):
            at = np.arange(m, dtype=number) + number(0.5 if mode == "nearest-exact" else 0)
            index = np.minimum(np.floor(at * scale), n - 1).astype(np.int64)
            input = index_select(input, d + 2, constant(index, like=input))
            continue
        if align_corners:
            scale = number((n - 1) / (m - 1) if m > 1 else 0)
        if antialias:
            weights = smooth_weights(n, m, float(scale), mode == "bicubic")
        else:
            weights = (cubic_weights if mode == "bicubic" else linear_weights)(n, m, scale, bool(align_corners), number)
        input = along(input, d + 2, weights)
    return input


def check_mode(mode, shape, align_corners, antialias):
    rank = len(shape) - 2
    if not 1 <= rank <= 3 or 0 in shape[1:]:
        raise ShapeError(f"interpolate: wants (N, C and 1 to 3 spatial sizes), only N may be 0, got {shape}")
    if mode not in ("nearest", "nearest-exact", "area", *RANKS):
        raise ArgumentError(f"interpolate: unknown mode {mode!r}")
    if RANKS.get(mode, rank) != rank:
        raise ShapeError(f"interpolate: mode {mode} wants {RANKS[mode]} spatial dims, got shape {shape}")
    if align_corners is not None and mode not in RANKS:
        raise ArgumentError(f"interpolate: align_corners is an option of {', '.join(RANKS)}, got mode {mode}")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError(f"interpolate: antialias is an option of bilinear and bicubic, got mode {mode}")


def sizes(op: str, image, size, scale_factor, recompute) -> tuple[tuple, tuple]:
    """(new sizes, the scale of each dimension where the caller's own counts, else None)."""
    if (size is None) == (scale_factor is None):
        raise ArgumentError(f"{op}: wants either size or scale_factor, got {size} and {scale_factor}")
    unknown = (None,) * len(image)
    if size is not None:
        if recompute:
            raise ArgumentError(f"{op}: recompute_scale_factor wants a scale_factor, got size={size}")
        size = ints(op, "size", size, len(image))
        if min(size) < 1:
            raise ShapeError(f"{op}: size wants numbers > 0, got {size}")
        return size, unknown
    scales = tuple(scale_factor) if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * len(image)
    if len(scales) != len(image):
        raise ShapeError(f"{op}: scale_factor wants a number or {len(image)}, got {scale_factor}")
    size = tuple(floor(n * s) for n, s in zip(image, scales, strict=True))
    if min(size) < 1:
        raise ShapeError(f"{op}: scale_factor {scale_factor} leaves nothing of {image}")
    return size, unknown if recompute else scales


def along(x, dim: int, weights: np.ndarray):
    """weights (m, n) times dimension `dim` of x."""
    weights = weights.astype(x.dtype)
    shape = tuple(x.shape)
    if dim == len(shape) - 1:
        return matmul(x, constant(np.ascontiguousarray(weights.T), like=x))
    y = reshape(x, (prod(shape[:dim]), shape[dim], prod(shape[dim + 1:])))
    return reshape(matmul(constant(weights, like=x), y), (*shape[:dim], len(weights), *shape[dim + 1:]))


def linear_weights(n: int, m: int, scale, aligned: bool, number) -> np.ndarray:
    """(m, n): every new sample between its two neighbours."""
    at = np.arange(m, dtype=number)
    at = at * scale if aligned else np.maximum((at + number(0.5)) * scale - number(0.5), 0)
    low = np.minimum(at.astype(np.int64), n - 1)
    part = at - low
    weights, rows = np.zeros((m, n), number), np.arange(m)
    weights[rows, low] += 1 - part
    weights[rows, np.minimum(low + 1, n - 1)] += part
    return weights


def cubic(x, a):
    """The cubic convolution kernel (Keys 1981)."""
    x = np.abs(x)
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, (((x - 5) * x + 8) * x - 4) * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def cubic_weights(n: int, m: int, scale, aligned: bool, number) -> np.ndarray:
    """(m, n): every new sample from its four neighbours, those outside at the edge."""
    at = np.arange(m, dtype=number)
    at = at * scale if aligned else (at + number(0.5)) * scale - number(0.5)
    low = np.floor(at).astype(np.int64)
    weights, rows = np.zeros((m, n), number), np.arange(m)
    for tap in range(-1, 3):
        np.add.at(weights, (rows, np.clip(low + tap, 0, n - 1)), cubic(at - (low + tap), -0.75).astype(number))
    return weights


def smooth_weights(n: int, m: int, scale: float, is_cubic: bool) -> np.ndarray:
    """(m, n) with a filter as wide as `scale` old samples where that is more than one (as Pillow)."""
    stretch = max(scale, 1.0)
    center = (np.arange(m)[:, None] + 0.5) * scale
    support = stretch * (2 if is_cubic else 1)
    old = np.arange(n)[None, :]
    x = (old + 0.5 - center) / stretch
    weights = cubic(x, -0.5) if is_cubic else np.maximum(1 - np.abs(x), 0)
    first, last = np.trunc(np.maximum(center - support + 0.5, 0)), np.trunc(np.minimum(center + support + 0.5, n))
    weights = np.where((old >= first) & (old < last), weights, 0)
    return weights / weights.sum(1, keepdims=True)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """interpolate under its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """interpolate with mode nearest."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """interpolate with mode bilinear and align_corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)
