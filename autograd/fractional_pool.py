"""Max pooling over windows at random places."""
from itertools import product
from math import prod
from typing import Any

from zoo.autograd.creation import arange
from zoo.autograd.random import rand
from zoo.autograd.tensor import Tensor
from zoo.ops.dtypes import int64
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.window import ints


def starts(size: int, window: int, count: int, u: Tensor) -> Tensor:
    """Where windows begin, int64 (N, C, count): floor((k + u) a) - floor(u a) with a = (size - window) / (count - 1).

    They overlap or leave gaps of one element, as u (N, C) has it; the last one ends with the signal.
    """
    if count == 1:
        return (u * 0).to(int64).unsqueeze(-1) + (size - window)
    step = (size - window) / (count - 1)
    k, u = arange(count - 1, dtype=u.dtype, device=u.device), u.unsqueeze(-1)
    inner = ((k + u) * step).to(int64) - (u * step).to(int64)
    return inner.new_full((*inner.shape[:-1], count), size - window).slice_scatter(inner, -1, 0, count - 1)


def sizes_of(name: str, rank: int, shape: tuple, kernel_size: Any, output_size: Any, output_ratio: Any) -> tuple:
    """(windows' sizes, how many of them along each dimension), checked."""
    if (output_size is None) == (output_ratio is None):
        raise ArgumentError(f"{name}: wants either output_size or output_ratio, got {output_size} and {output_ratio}")
    if len(shape) not in (rank + 1, rank + 2):
        raise ShapeError(f"{name}: wants (N, C) or (C) and {rank} dimensions, got {shape}")
    kernel = ints(name, "kernel_size", kernel_size, rank)
    if output_size is None:
        ratios = (output_ratio,) * rank if isinstance(output_ratio, (int, float)) else tuple(output_ratio)
        if len(ratios) != rank or not all(0 < r < 1 for r in ratios):
            raise ArgumentError(f"{name}: wants output_ratio between 0 and 1 (exclusive), got {output_ratio}")
        counts = tuple(int(n * r) for n, r in zip(shape[-rank:], ratios, strict=True))
    else:
        counts = ints(name, "output_size", output_size, rank)
    if any(w < 1 or c < 1 or w + c - 1 > n for n, w, c in zip(shape[-rank:], kernel, counts, strict=True)):
        raise ShapeError(f"{name}: wants kernel_size + output_size - 1 within the input's {shape[-rank:]}, "
                         f"got {kernel} and {counts}")
    return kernel, counts


def pool(name: str, rank: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any,  # noqa: A002
         samples: Tensor | None) -> tuple[Tensor, Tensor]:
    """(largest value of each window, its index in the flat signal)."""
    kernel, counts = sizes_of(name, rank, tuple(input.shape), kernel_size, output_size, output_ratio)
    x = input if input.ndim == rank + 2 else input.unsqueeze(0)
    if samples is None:
        samples = rand(*x.shape[:2], rank, dtype=x.dtype, device=x.device)
    elif tuple(samples.shape) != (*x.shape[:2], rank):
        raise ShapeError(f"{name}: wants _random_samples {(*x.shape[:2], rank)}, got {tuple(samples.shape)}")
    size = tuple(x.shape[2:])
    order = (1, 0) if rank == 2 else (0, 1, 2)                   # torch's: the number of images' columns comes first
    places: Any = 0                                              # of the windows' first elements, (N, C, *counts)
    for d in range(rank):
        along = starts(size[d], kernel[d], counts[d], samples[..., order[d]]) * prod(size[d + 1:])
        places = along.reshape(*x.shape[:2], *(counts[d] if k == d else 1 for k in range(rank))) + places
    offsets = [sum(t * prod(size[d + 1:]) for d, t in enumerate(tap)) for tap in product(*map(range, kernel))]
    taps = places.reshape(*x.shape[:2], prod(counts), 1) + places.new_tensor(offsets)
    flat = x.reshape(*x.shape[:2], prod(size))                   # no -1: a batch may be empty
    found, which = flat.gather(2, taps.reshape(*x.shape[:2], prod(counts) * len(offsets))).reshape(taps.shape).max(-1)
    shape = (*input.shape[:input.ndim - rank], *counts)
    return found.reshape(shape), taps.gather(-1, which.unsqueeze(-1)).reshape(shape)


def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,  # noqa: A002
    return_indices: bool = False, _random_samples: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """(fractional_max_pool2d, int64 indices of the largest elements in the flat image)."""
    return pool("fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,  # noqa: A002
    return_indices: bool = False, _random_samples: Tensor | None = None
) -> Any:
    """The largest value of windows whose steps are drawn, one draw per image, channel and dimension (Graham 2014).

    Args:
        input: (N, C, H, W) or (C, H, W). kernel_size: of the windows, an int or two.
        output_size: how many windows along H and W; or output_ratio: that by the input's size, between 0 and 1.
        return_indices: give (values, indices) as max_pool2d does.

    Raises:
        ArgumentError (ValueError, RuntimeError): both or none of output_size and output_ratio, or a wrong ratio.
        ShapeError: another number of dimensions, or windows that do not fit.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.fractional_max_pool2d(zoo.rand(2, 3, 9, 9), 2, output_ratio=0.6).shape
        (2, 3, 5, 5)
    """
    both = pool("fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio, _random_samples)
    return both if return_indices else both[0]


def fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,  # noqa: A002
    return_indices: bool = False, _random_samples: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """(fractional_max_pool3d, int64 indices of the largest elements in the flat volume)."""
    return pool("fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,  # noqa: A002
    return_indices: bool = False, _random_samples: Tensor | None = None
) -> Any:
    """fractional_max_pool2d of volumes (N, C, D, H, W) or (C, D, H, W).

    Example:
        >>> import zoo
        >>> zoo.nn.functional.fractional_max_pool3d(zoo.rand(3, 9, 9, 9), 2, output_size=4).shape
        (3, 4, 4, 4)
    """
    both = pool("fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio, _random_samples)
    return both if return_indices else both[0]


NN_FUNCTIONS = {f.__name__: f for f in (fractional_max_pool2d, fractional_max_pool2d_with_indices,
                                        fractional_max_pool3d, fractional_max_pool3d_with_indices)}
