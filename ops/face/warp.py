"""Images sampled along a grid: torch's affine_grid and grid_sample, made of gathers and products."""
from itertools import product
from math import prod

import numpy as np

from zoo.ops.device import constant
from zoo.ops.dtypes import int64
from zoo.ops.errors import ArgumentError, DtypeError, ShapeError
from zoo.ops.matmul import matmul
from zoo.ops.op import OPS
from zoo.ops.shape import basic_index, cast, expand, permute, reshape

FUNCTIONS = ()
METHODS = ()
NN_FUNCTIONS = ("affine_grid", "grid_sample")
INPLACE = ()
MODES, PADDING = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def affine_grid(theta, size, align_corners=None):
    """Where an affine map sends each pixel: theta (N, 2, 3) and size (N, C, H, W) -> (N, H, W, 2), in [-1, 1] inside.

    theta (N, 3, 4) and size (N, C, D, H, W) -> (N, D, H, W, 3). align_corners: -1 and 1 are the centers of the corner
    pixels, else their outer edges.

    Raises:
        ShapeError (ValueError, RuntimeError): theta and size do not fit.

    Example:
        >>> import zoo
        >>> theta = zoo.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
        >>> zoo.nn.functional.affine_grid(theta, (1, 1, 1, 2), align_corners=True).tolist()
        [[[[-1.0, 0.0], [1.0, 0.0]]]]
    """
    rank, size = len(size) - 2, tuple(size)
    if rank not in (2, 3) or tuple(theta.shape) != (size[0], rank, rank + 1):
        raise ShapeError("affine_grid: wants theta (N, 2, 3) with size (N, C, H, W) or (N, 3, 4) with (N, C, D, H, W), "
                         f"got {tuple(theta.shape)} and {size}")
    lines = []
    for n in size[2:]:
        line = np.linspace(-1, 1, n) if n > 1 else np.zeros(n)
        lines.append(line if align_corners else line * (n - 1) / max(n, 1))
    grid = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(size[2:])], -1)
    points = constant(grid.reshape(1, -1, rank + 1).astype(theta.dtype), like=theta)
    points = expand(points, (size[0], prod(size[2:]), rank + 1))
    return reshape(matmul(points, permute(theta, (0, 2, 1))), (size[0], *size[2:], rank))


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """input (N, C, H, W) read at the places of grid (N, P, Q, 2), whose last dim is (x, y) in [-1, 1] -> (N, C, P, Q).

    input (N, C, D, H, W) takes a grid (N, O, P, Q, 3). mode: bilinear (trilinear in three dimensions), nearest, and
    bicubic in two. padding_mode: what lies outside is 0 (zeros), the edge (border), or mirrored (reflection).

    Raises:
        ShapeError: ranks or sizes that do not fit. DtypeError: two dtypes. ArgumentError: an unknown mode.

    Example:
        >>> import zoo
        >>> image = zoo.tensor([[[[1.0, 3.0]]]])
        >>> zoo.nn.functional.grid_sample(image, zoo.zeros(1, 1, 1, 2), align_corners=True).item()
        2.0
    """
    rank = len(input.shape) - 2
    check(input, grid, rank, mode, padding_mode)
    sizes = tuple(input.shape[2:])
    places = [unnormalized(basic_index(grid, (..., rank - 1 - d)), sizes[d], align_corners) for d in range(rank)]
    if mode != "bicubic":
        places = [inside(p, n, padding_mode, align_corners) for p, n in zip(places, sizes, strict=True)]
    lines = [[read(place, weight, n, padding_mode, align_corners, mode) for place, weight in taps(p, mode)]
             for p, n in zip(places, sizes, strict=True)]
    total = None
    for corner in product(*lines):
        weight = corner[0][1]
        for _, factor in corner[1:]:
            weight = OPS["mul"](weight, factor)
        weight = cast(reshape(weight, (weight.shape[0], 1, *weight.shape[1:])), input.dtype)
        value = OPS["mul"](pixels(input, [at for at, _ in corner], sizes), weight)
        total = value if total is None else OPS["add"](total, value)
    return total


def read(place, weight, n: int, padding_mode: str, align_corners, mode: str) -> tuple:
    """(index, weight) of one tap along a dimension of n pixels: what lies outside weighs nothing."""
    place = inside(place, n, padding_mode, align_corners) if mode == "bicubic" else place
    index = OPS["clamp"](place, 0, n - 1)
    there = OPS["eq"](index, place)
    return cast(index, int64), cast(there, place.dtype) if weight is None else OPS["where"](there, weight, 0.0)


def check(input, grid, rank: int, mode: str, padding_mode: str) -> None:
    """Raises unless grid_sample's arguments fit together."""
    if mode not in MODES or padding_mode not in PADDING:
        raise ArgumentError(f"grid_sample: wants mode in {MODES} and padding_mode in {PADDING}, "
                            f"got {mode!r} and {padding_mode!r}")
    if rank not in (2, 3) or len(grid.shape) != rank + 2 or grid.shape[-1] != rank or grid.shape[0] != input.shape[0]:
        raise ShapeError("grid_sample: wants input (N, C, H, W) and grid (N, P, Q, 2), or one dim more and 3, "
                         f"got {tuple(input.shape)} and {tuple(grid.shape)}")
    if 0 in input.shape[2:]:
        raise ShapeError(f"grid_sample: wants spatial sizes > 0, got input {tuple(input.shape)}")
    if mode == "bicubic" and rank == 3:
        raise ArgumentError("grid_sample: bicubic wants input (N, C, H, W), got 3 spatial dims")
    if input.dtype != grid.dtype:
        raise DtypeError(f"grid_sample: wants one dtype, got {input.dtype} and {grid.dtype}")


def unnormalized(x, n: int, align_corners):
    """[-1, 1] as places among n pixels."""
    return (x + 1.0) * ((n - 1) / 2) if align_corners else ((x + 1.0) * n - 1.0) * 0.5


def inside(x, n: int, padding_mode: str, align_corners):
    """The place that is read for x: x itself, clamped, or mirrored at the borders first."""
    if padding_mode == "zeros":
        return x
    if padding_mode == "reflection":
        low, high = (0.0, n - 1.0) if align_corners else (-0.5, n - 0.5)
        span = high - low
        if span <= 0:
            return x * 0.0
        away = OPS["abs"](x - low)
        turns = OPS["floor"](away / span)
        left = away - turns * span
        x = OPS["where"](OPS["eq"](OPS["remainder"](turns, 2.0), 0.0), left + low, high - left)
    return OPS["clamp"](x, 0.0, n - 1.0)


def taps(x, mode: str) -> list:
    """(place, weight) of each pixel that x reads along one dimension; a weight of None is 1."""
    if mode == "nearest":
        return [(OPS["round"](x), None)]
    low = OPS["floor"](x)
    part = x - low
    if mode == "bilinear":
        return [(low, 1.0 - part), (low + 1.0, part)]
    return [(low + float(k), cubic(part - float(k))) for k in range(-1, 3)]


def cubic(x, a=-0.75):
    """The cubic convolution kernel of R. Keys, 1981."""
    x = OPS["abs"](x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1.0
    far = (((x - 5.0) * x + 8.0) * x - 4.0) * a
    return OPS["where"](OPS["le"](x, 1.0), near, far)


def pixels(input, at: list, sizes: tuple):
    """input (N, C, *sizes) at the integer places at[d] (N, *out), one per dimension -> (N, C, *out)."""
    n, channels, out = input.shape[0], input.shape[1], tuple(at[0].shape[1:])
    flat = at[0]
    for place, size in zip(at[1:], sizes[1:], strict=True):
        flat = flat * size + place
    index = expand(reshape(flat, (n, 1, prod(out))), (n, channels, prod(out)))
    found = OPS["gather"](reshape(input, (n, channels, prod(sizes))), 2, index)
    return reshape(found, (n, channels, *out))
