"""Pooling over 1 to 3 dimensions: max_pool, avg_pool, their adaptive forms, and the gradients.

Options are tuples, one number a spatial dimension. Where a maximum stands is kept as its tap, the number of an element
of the window (row-major): a byte, where torch keeps the flat position in the unpadded image in eight (`tap_indices`).
Sums are linear, so avg_pool and avg_pool_grad are each other's derivatives; a maximum passes gradients to its element.
"""
import math
from typing import NamedTuple

import numpy as np

from zoo.ops import max_pool_cpu, pool_cpu
from zoo.ops.dtypes import FLOATS, int32, int64, uint8
from zoo.ops.errors import ArgumentError, DtypeError, ShapeError
from zoo.ops.index import gather
from zoo.ops.op import Spec, structured
from zoo.ops.shape import reshape


class Geometry(NamedTuple):
    """Windows of a kernel over an image, and the number of their places; one number a spatial dimension."""
    image: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    out: tuple[int, ...]

    def area(self) -> tuple[int, ...]:
        """Size that all windows together cover, counted from the padded image's corner."""
        return tuple((n - 1) * s + (k - 1) * d + 1
                     for n, s, k, d in zip(self.out, self.stride, self.kernel, self.dilation, strict=True))

    def steps(self) -> tuple[int, ...]:
        """Strides in elements of a dense image."""
        return tuple(math.prod(self.image[i + 1:]) for i in range(len(self.image)))


def check_input(op: str, input, rank: int):
    if input.dtype not in FLOATS:
        raise DtypeError(f"{op}: wants a floating dtype, got {input.dtype}")
    if len(input.shape) != rank + 2 or 0 in input.shape[1:]:
        raise ShapeError(f"{op}: wants (N, C and {rank} spatial sizes), only N may be 0, got {input.shape}")


def geometry_of(op: str, image, kernel, stride, padding, dilation, ceil_mode) -> Geometry:
    """Raises ArgumentError where an option makes no sense, ShapeError where no window fits."""
    for name, value in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if min(value) <= 0:
            raise ArgumentError(f"{op}: {name} wants numbers > 0, got {value}")
    for k, p, d in zip(kernel, padding, dilation, strict=True):
        if not 0 <= p <= ((k - 1) * d + 1) // 2:
            raise ArgumentError(f"{op}: padding wants 0 to half of the effective kernel size, got {padding} for kernel "
                                f"{kernel} with dilation {dilation}")
    out = tuple(places(*sizes, ceil_mode) for sizes in zip(image, kernel, stride, padding, dilation, strict=True))
    if min(out) < 1:
        raise ShapeError(f"{op}: wants a window that fits, got kernel {kernel} with padding {padding} and dilation "
                         f"{dilation} for an image of {image}")
    return Geometry(tuple(image), kernel, stride, padding, dilation, out)


def places(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """With ceil_mode a last, partial window counts if it starts inside the image or its padding in front."""
    reach = size + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return reach // stride + 1
    count = -(-reach // stride) + 1
    return count - 1 if (count - 1) * stride >= size + padding else count


def pool_geometry(op: str, input, kernel, stride, padding, dilation, ceil_mode) -> Geometry:
    geometry = geometry_of(op, input.shape[2:], kernel, stride, padding, dilation, ceil_mode)
    check_input(op, input, len(kernel))
    return geometry


def grad_geometry(op: str, grad, size, kernel, stride, padding, dilation) -> Geometry:
    """Of the gradients: how many places there were is what the gradient's shape says."""
    if len(grad.shape) != len(size) + 2:
        raise ShapeError(f"{op}: wants a gradient (N, C and {len(size)} spatial sizes), got {grad.shape}")
    return Geometry(tuple(size), kernel, stride, padding, dilation, grad.shape[2:])


def check_adaptive(op: str, input, output_size):
    if min(output_size, default=0) < 0:
        raise ArgumentError(f"{op}: output_size wants numbers >= 0, got {output_size}")
    check_input(op, input, len(output_size))


def counts(geometry: Geometry, include_pad: bool) -> tuple[np.ndarray, ...]:
    """Per dimension, how many elements a window has at each place: within the padded image, or within the image."""
    out = []
    for n, k, s, p, places in zip(*geometry[:4], geometry.out, strict=True):
        start = np.arange(places) * s - p
        end = np.minimum(start + k, n + p)
        out.append(end - start if include_pad else np.minimum(end, n) - np.maximum(start, 0))
    return tuple(out)


def divisors(geometry: Geometry, include_pad: bool, override: int | None) -> np.ndarray | int:
    """What each window's sum is divided by: one number, or an array (*out)."""
    if override is not None:
        return override
    each = counts(geometry, include_pad)
    if all((c == c[0]).all() for c in each):
        return math.prod(int(c[0]) for c in each)
    total = np.ones((1,) * len(each), np.int64)
    for d, c in enumerate(each):
        total = total * c.reshape([-1 if i == d else 1 for i in range(len(each))])
    return total


def check_override(op: str, divisor_override):
    if divisor_override == 0:
        raise ArgumentError(f"{op}: divisor_override wants a number that is not zero, got 0")


def distinct(rng, *shape):
    """No two values near each other: maxima stay where they are when an input moves a little."""
    return rng.permutation(np.linspace(-2, 2, math.prod(shape))).reshape(shape)


def max_samples(rng):
    def draw(*args): return distinct(rng, *args[0]), *args[1:]
    ties = np.zeros((1, 2, 5, 5))
    ties[0, 0, 2, 2:4], ties[0, 1, 1, 1], ties[0, 1, 4, 0] = np.nan, np.inf, -np.inf
    return {"ordinary": [draw((2, 3, 6, 7), (2, 2), (2, 2), (0, 0), (1, 1), False),
                         draw((2, 3, 7, 6), (3, 3), (2, 2), (1, 1), (1, 1), True),
                         draw((2, 3, 9), (3,), (2,), (1,), (1,), False)],
            "odd": [draw((1, 2, 13, 7), (3, 2), (1, 3), (1, 0), (2, 3), True),
                    draw((1, 2, 5, 4, 6), (2, 3, 2), (2, 1, 3), (1, 0, 1), (1, 1, 2), False)],
            "empty": [draw((0, 3, 6, 7), (2, 2), (2, 2), (0, 0), (1, 1), False)],
            "0-d": "pooling wants spatial dimensions",
            "extreme": [(ties, (3, 3), (2, 2), (1, 1), (1, 1), False),
                        (np.full((1, 1, 4, 4), -np.inf), (2, 2), (2, 2), (1, 1), (1, 1), False)]}


def tap_dtype(kernel: tuple) -> np.dtype:
    """The dtype of taps of a window."""
    return uint8 if math.prod(kernel) <= 256 else int32


@structured
class max_pool:
    """The largest element of every window, and which of the window it is (the first of equals, the last NaN).

    input (N, C, *spatial) floating -> values and taps (N, C, *places), uint8, or int32 for windows of more than 256.
    """
    outputs, reserve = ("values", "taps"), ("taps",)

    def check(input, kernel_size, stride, padding, dilation, ceil_mode):
        geometry = pool_geometry("max_pool", input, kernel_size, stride, padding, dilation, ceil_mode)
        shape = *input.shape[:2], *geometry.out
        return Spec(shape, input.dtype), Spec(shape, tap_dtype(kernel_size))

    def forward(input, kernel_size, stride, padding, dilation, ceil_mode):
        geometry = pool_geometry("max_pool", input, kernel_size, stride, padding, dilation, ceil_mode)
        return pool_cpu.max_pool(input, geometry)

    def dinput(dvalues, taps, input_shape, kernel_size, stride, padding, dilation):
        return max_pool_grad(dvalues, taps, input_shape[2:], kernel_size, stride, padding, dilation)
    samples = max_samples


def tap_samples(rng):
    def convert(x, kernel, stride, padding, dilation, ceil_mode):
        return max_pool.forward(x, kernel, stride, padding, dilation, ceil_mode)[1], x.shape[2:], kernel, stride, \
            padding, dilation
    return {k: v if isinstance(v, str) else [convert(*case) for case in v] for k, v in max_samples(rng).items()}


@structured
class tap_indices:
    """Where the elements that taps name stand, flat in the unpadded image of `size`; 0 for a window that sees nothing.

    taps (N, C, *places) -> int64 (N, C, *places).
    """
    dtypes = "ints"

    def check(taps, size, kernel_size, stride, padding, dilation):
        return Spec(tuple(taps.shape), int64)

    def forward(taps, size, kernel_size, stride, padding, dilation):
        geometry = grad_geometry("tap_indices", taps, size, kernel_size, stride, padding, dilation)
        return pool_cpu.tap_indices(taps, geometry)
    samples = tap_samples


def max_pool_values(input, kernel_size, stride, padding, dilation, ceil_mode):
    """max_pool's values alone, of an ndarray: for inference, where nobody asks for indices."""
    geometry = pool_geometry("max_pool", input, kernel_size, stride, padding, dilation, ceil_mode)
    return max_pool_cpu.max_pool_values(input, geometry)


def take_indexed(dy, indices):
    """dy (N, C, *spatial) at flat indices (N, C, *places)."""
    n, c, *image = dy.shape
    lines = reshape(indices, (n, c, math.prod(indices.shape[2:])))
    return reshape(gather(reshape(dy, (n, c, math.prod(image))), 2, lines), tuple(indices.shape))


@structured
class max_pool_grad:
    """Moves every gradient to the element that was its window's largest; overlapping windows add up.

    grad and taps (N, C, *places) -> (N, C, *size).
    """
    def check(grad, taps, size, kernel_size, stride, padding, dilation):
        grad_geometry("max_pool_grad", grad, size, kernel_size, stride, padding, dilation)
        return Spec((*grad.shape[:2], *size), grad.dtype)

    def forward(grad, taps, size, kernel_size, stride, padding, dilation):
        geometry = grad_geometry("max_pool_grad", grad, size, kernel_size, stride, padding, dilation)
        return pool_cpu.max_pool_grad(grad, taps, geometry)

    def dgrad(dy, taps, size, kernel_size, stride, padding, dilation):
        return take_indexed(dy, tap_indices(taps, size, kernel_size, stride, padding, dilation))

    def samples(rng):
        def convert(taps, *rest): return distinct(rng, *taps.shape), taps, *rest
        cases = {k: v if isinstance(v, str) else [convert(*case) for case in v] for k, v in tap_samples(rng).items()}
        cases["extreme"][0][0][0, 0, 0, 0] = np.inf
        return cases


def avg_samples(rng):
    def draw(*args): return rng.normal(size=args[0]), *args[1:]
    x = np.zeros((1, 2, 5, 5))
    x[0, 0, 2, 2], x[0, 1, 1, 1], x[0, 1, 4, 0] = np.nan, np.inf, 1e4
    return {"ordinary": [draw((2, 3, 6, 7), (2, 2), (2, 2), (0, 0), False, True, None),
                         draw((2, 3, 7, 6), (3, 3), (2, 2), (1, 1), True, False, None),
                         draw((2, 3, 9), (3,), (2,), (1,), False, True, None)],
            "odd": [draw((1, 2, 13, 7), (3, 2), (1, 3), (1, 0), True, True, None),
                    draw((2, 2, 7, 5), (7, 5), (1, 1), (0, 0), False, True, None),
                    draw((1, 2, 5, 4, 6), (2, 3, 2), (2, 1, 3), (1, 0, 1), False, False, 5)],
            "empty": [draw((0, 3, 6, 7), (2, 2), (2, 2), (0, 0), False, True, None)],
            "0-d": "pooling wants spatial dimensions",
            "extreme": [(x, (3, 3), (2, 2), (1, 1), False, True, None)]}


@structured
class avg_pool:
    """The mean of every window: its sum over the number of its elements (in the padded image, or only in the image).

    input (N, C, *spatial) floating -> (N, C, *places).
    """
    def check(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        check_override("avg_pool", divisor_override)
        geometry = pool_geometry("avg_pool", input, kernel_size, stride, padding, (1,) * len(kernel_size), ceil_mode)
        return Spec((*input.shape[:2], *geometry.out), input.dtype)

    def forward(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        check_override("avg_pool", divisor_override)
        geometry = pool_geometry("avg_pool", input, kernel_size, stride, padding, (1,) * len(kernel_size), ceil_mode)
        return pool_cpu.avg_pool(input, geometry, divisors(geometry, count_include_pad, divisor_override))

    def dinput(dy, input_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        return avg_pool_grad(dy, input_shape[2:], kernel_size, stride, padding, ceil_mode, count_include_pad,
                             divisor_override)
    samples = avg_samples


@structured
class avg_pool_grad:
    """Spreads every gradient evenly over its window. grad (N, C, *places) -> (N, C, *size)."""
    def check(grad, size, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        grad_geometry("avg_pool_grad", grad, size, kernel_size, stride, padding, (1,) * len(size))
        return Spec((*grad.shape[:2], *size), grad.dtype)

    def forward(grad, size, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        geometry = grad_geometry("avg_pool_grad", grad, size, kernel_size, stride, padding, (1,) * len(size))
        return pool_cpu.avg_pool_grad(grad, geometry, divisors(geometry, count_include_pad, divisor_override))

    def dgrad(dy, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        return avg_pool(dy, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    def samples(rng):
        def convert(x, *options): return rng.normal(size=avg_pool.check(x, *options).shape), x.shape[2:], *options
        return {k: v if isinstance(v, str) else [convert(*c) for c in v] for k, v in avg_samples(rng).items()}


def adaptive_samples(rng):
    def draw(shape, out): return distinct(rng, *shape), out
    x = np.zeros((1, 2, 5, 5))
    x[0, 0, 2, 2:4], x[0, 1, 1, 1], x[0, 1, 4, 0] = np.nan, np.inf, -np.inf
    return {"ordinary": [draw((2, 3, 7, 5), (3, 4)), draw((2, 3, 9), (4,)), draw((2, 3, 2, 3), (5, 3))],
            "odd": [draw((1, 2, 5, 4, 7), (2, 3, 3)), draw((1, 2, 13, 7), (1, 5))],
            "empty": [draw((0, 3, 6, 7), (4, 4)), draw((1, 2, 3, 3), (0, 2))],
            "0-d": "pooling wants spatial dimensions", "extreme": [(x, (3, 2))]}


@structured
class adaptive_avg_pool:
    """The means of output_size windows that cover the image: window i spans floor(i n / m) to ceil((i + 1) n / m).

    input (N, C, *spatial) floating -> (N, C, *output_size).
    """
    def check(input, output_size):
        check_adaptive("adaptive_avg_pool", input, output_size)
        return Spec((*input.shape[:2], *output_size), input.dtype)

    def forward(input, output_size):
        check_adaptive("adaptive_avg_pool", input, output_size)
        return pool_cpu.adaptive_avg_pool(input, output_size)

    def dinput(dy, input_shape): return adaptive_avg_pool_grad(dy, input_shape[2:])
    samples = adaptive_samples


@structured
class adaptive_avg_pool_grad:
    """Spreads every gradient evenly over its window. grad (N, C, *places) -> (N, C, *size)."""
    def check(grad, size): return Spec((*grad.shape[:2], *size), grad.dtype)
    def forward(grad, size): return pool_cpu.adaptive_avg_pool_grad(grad, size)
    def dgrad(dy, grad_shape): return adaptive_avg_pool(dy, tuple(grad_shape[2:]))

    def samples(rng):
        def convert(x, out): return rng.normal(size=(*x.shape[:2], *out)), x.shape[2:]
        return {k: v if isinstance(v, str) else [convert(*c) for c in v] for k, v in adaptive_samples(rng).items()}


@structured
class adaptive_max_pool:
    """The largest element of output_size windows that cover the image, and where it stands (flat in the image).

    input (N, C, *spatial) floating -> values and int64 indices (N, C, *output_size).
    """
    outputs = ("values", "indices")

    def check(input, output_size):
        check_adaptive("adaptive_max_pool", input, output_size)
        shape = *input.shape[:2], *output_size
        return Spec(shape, input.dtype), Spec(shape, int64)

    def forward(input, output_size):
        check_adaptive("adaptive_max_pool", input, output_size)
        return pool_cpu.adaptive_max_pool(input, output_size)

    def dinput(dvalues, indices, input_shape): return adaptive_max_pool_grad(dvalues, indices, input_shape[2:])
    samples = adaptive_samples


@structured
class adaptive_max_pool_grad:
    """Moves every gradient to its window's largest element. grad, indices (N, C, *places) -> (N, C, *size)."""
    def check(grad, indices, size): return Spec((*grad.shape[:2], *size), grad.dtype)
    def forward(grad, indices, size): return pool_cpu.adaptive_max_pool_grad(grad, indices, size)
    def dgrad(dy, indices): return take_indexed(dy, indices)

    def samples(rng):
        def convert(x, out):
            return rng.normal(size=(*x.shape[:2], *out)), adaptive_max_pool.forward(x, out)[1], x.shape[2:]
        return {k: v if isinstance(v, str) else [convert(*c) for c in v] for k, v in adaptive_samples(rng).items()}
