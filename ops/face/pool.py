"""torch's pooling functions: unbatched inputs, ints for tuples, and the ops of ops/pool.py."""
from math import prod

from zoo.ops.activation import relu
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.index import scatter
from zoo.ops.pool import adaptive_avg_pool, adaptive_max_pool, avg_pool, max_pool, tap_indices
from zoo.ops.shape import clone, filled, permute, reshape
from zoo.ops.unary import sign
from zoo.ops.window import ints

FUNCTIONS = ("max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool3d", "avg_pool1d", "adaptive_avg_pool1d",
             "adaptive_max_pool1d", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle")
METHODS = ()
NN_FUNCTIONS = (
    "max_pool1d", "max_pool2d", "max_pool3d",
    "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d_with_indices",
    "max_unpool1d", "max_unpool2d", "max_unpool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "pixel_shuffle", "pixel_unshuffle", "channel_shuffle")
INPLACE = ()


def batched(op: str, input, rank: int):
    """(input with a batch dimension, was there none)"""
    if len(input.shape) == rank + 1:
        return reshape(input, (1, *input.shape)), True
    if len(input.shape) != rank + 2:
        raise ShapeError(f"{op}: wants {rank + 1} dims (unbatched) or {rank + 2}, got shape {tuple(input.shape)}")
    return input, False


def unbatched(y, alone: bool):
    return reshape(y, tuple(y.shape[1:])) if alone else y


def maximum_pool(rank, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    op = f"max_pool{rank}d"
    kernel = ints(op, "kernel_size", kernel_size, rank)
    stride = kernel if stride is None or stride in ((), []) else ints(op, "stride", stride, rank)
    input, alone = batched(op, input, rank)
    options = kernel, stride, ints(op, "padding", padding, rank), ints(op, "dilation", dilation, rank)
    return maxima(input, alone, *options, bool(ceil_mode), return_indices=return_indices)


def maxima(input, alone: bool, *options, return_indices: bool):
    """max_pool's values, and the flat indices of the taps only where they are asked for."""
    values, taps = max_pool(input, *options)
    if not return_indices:
        return unbatched(values, alone)
    return unbatched(values, alone), unbatched(tap_indices(taps, tuple(input.shape[2:]), *options[:4]), alone)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of every window along the last dimension; with return_indices also where it stands.

    input (N, C, L) or (C, L) floating -> (N, C, P) with
    P = floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1; ceil_mode rounds P up; stride is
    kernel_size by default.

    Raises:
        ShapeError: no window fits, or the rank is wrong.
        ArgumentError: an option is out of range.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.max_pool1d(zoo.tensor([[1.0, 3.0, 2.0, 0.0]]), 2).tolist()
        [[3.0, 2.0]]
    """
    return maximum_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of every window of an image; with return_indices also where it stands (flat in the image).

    input (N, C, H, W) or (C, H, W) floating -> (N, C, P, Q); see max_pool1d for the sizes.

    Raises:
        ShapeError, ArgumentError: as max_pool1d.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.max_pool2d(zoo.ones(1, 3, 8, 8), 3, stride=2, padding=1).shape
        (1, 3, 4, 4)
    """
    return maximum_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of every window of a volume (N, C, D, H, W) or (C, D, H, W); otherwise as max_pool2d.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.max_pool3d(zoo.ones(1, 3, 4, 4, 4), 2).shape
        (1, 3, 2, 2, 2)
    """
    return maximum_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool1d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=False):
    """max_pool1d that always gives (values, indices)."""
    return maximum_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=False):
    """max_pool2d that always gives (values, indices)."""
    return maximum_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=False):
    """max_pool3d that always gives (values, indices)."""
    return maximum_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def mean_pool(rank, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override=None):
    op = f"avg_pool{rank}d"
    kernel = ints(op, "kernel_size", kernel_size, rank)
    stride = kernel if stride is None or stride in ((), []) else ints(op, "stride", stride, rank)
    input, alone = batched(op, input, rank)
    padding = ints(op, "padding", padding, rank)
    y = avg_pool(input, kernel, stride, padding, bool(ceil_mode), bool(count_include_pad), divisor_override)
    return unbatched(y, alone)


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """The mean of every window along the last dimension.

    input (N, C, L) or (C, L) floating -> (N, C, P), P as in max_pool1d. The padding's zeros count as elements unless
    count_include_pad is False.

    Raises:
        ShapeError: no window fits, or the rank is wrong.
        ArgumentError: an option is out of range.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.avg_pool1d(zoo.tensor([[1.0, 3.0, 2.0, 0.0]]), 2).tolist()
        [[2.0, 1.0]]
    """
    return mean_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None):
    """The mean of every window of an image: its sum over the number of elements, or over divisor_override.

    input (N, C, H, W) or (C, H, W) floating -> (N, C, P, Q).

    Raises:
        ShapeError, ArgumentError: as avg_pool1d.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.avg_pool2d(zoo.ones(1, 3, 8, 8), 2).shape
        (1, 3, 4, 4)
    """
    return mean_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None):
    """The mean of every window of a volume (N, C, D, H, W) or (C, D, H, W); otherwise as avg_pool2d.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.avg_pool3d(zoo.ones(1, 3, 4, 4, 4), 2).shape
        (1, 3, 2, 2, 2)
    """
    return mean_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_size(op: str, input, output_size, rank: int) -> tuple[int, ...]:
    """output_size as a tuple; None keeps a dimension's size."""
    if len(input.shape) not in (rank + 1, rank + 2):
        raise ShapeError(f"{op}: wants {rank + 1} dims (unbatched) or {rank + 2}, got shape {tuple(input.shape)}")
    if output_size is None or hasattr(output_size, "__index__"):
        output_size = (output_size,) * rank
    if len(output_size) != rank:
        raise ShapeError(f"{op}: output_size wants an int or {rank} ints, got {output_size}")
    size = [n if m is None else m for m, n in zip(output_size, input.shape[-rank:], strict=True)]
    return ints(op, "output_size", size, rank)


def even(input, size) -> tuple[int, ...] | None:
    """The kernel, and stride, of ordinary pooling that is the same: where the windows of adaptive pooling are equal."""
    image = input.shape[2:]
    if any(m < 1 or n < m or n % m for n, m in zip(image, size, strict=True)):
        return None
    return tuple(n // m for n, m in zip(image, size, strict=True))


def adaptive_mean_pool(rank, input, output_size):
    op = f"adaptive_avg_pool{rank}d"
    size = adaptive_size(op, input, output_size, rank)
    input, alone = batched(op, input, rank)
    kernel = even(input, size)
    if kernel is None:
        return unbatched(adaptive_avg_pool(input, size), alone)
    return unbatched(avg_pool(input, kernel, kernel, (0,) * rank, False, True, None), alone)


def adaptive_maximum_pool(rank, input, output_size, return_indices):
    op = f"adaptive_max_pool{rank}d"
    size = adaptive_size(op, input, output_size, rank)
    input, alone = batched(op, input, rank)
    kernel = even(input, size)
    if kernel is not None:
        return maxima(input, alone, kernel, kernel, (0,) * rank, (1,) * rank, False, return_indices=return_indices)
    values, indices = adaptive_max_pool(input, size)
    return (unbatched(values, alone), unbatched(indices, alone)) if return_indices else unbatched(values, alone)


def adaptive_avg_pool1d(input, output_size):
    """Means of output_size windows that cover the last dimension: window i spans floor(i L / P) to ceil((i + 1) L / P).

    input (N, C, L) or (C, L) floating -> (N, C, P).

    Raises:
        ShapeError: rank or output_size do not fit.
        ArgumentError: a negative output_size.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.adaptive_avg_pool1d(zoo.tensor([[1.0, 3.0, 2.0]]), 2).tolist()
        [[2.0, 2.5]]
    """
    return adaptive_mean_pool(1, input, output_size)


def adaptive_avg_pool2d(input, output_size):
    """Means of windows that cover an image evenly, output_size of them; None keeps a size.

    input (N, C, H, W) or (C, H, W) floating -> (N, C, P, Q).

    Raises:
        ShapeError, ArgumentError: as adaptive_avg_pool1d.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.adaptive_avg_pool2d(zoo.ones(1, 3, 7, 5), (2, None)).shape
        (1, 3, 2, 5)
    """
    return adaptive_mean_pool(2, input, output_size)


def adaptive_avg_pool3d(input, output_size):
    """Means of windows that cover a volume (N, C, D, H, W) or (C, D, H, W) evenly.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.adaptive_avg_pool3d(zoo.ones(1, 3, 4, 5, 6), 2).shape
        (1, 3, 2, 2, 2)
    """
    return adaptive_mean_pool(3, input, output_size)


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The largest elements of output_size windows that cover the last dimension evenly (see adaptive_avg_pool1d).

    input (N, C, L) or (C, L) floating -> (N, C, P), with return_indices also where they stand.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.adaptive_max_pool1d(zoo.tensor([[1.0, 3.0, 2.0]]), 2).tolist()
        [[3.0, 3.0]]
    """
    return adaptive_maximum_pool(1, input, output_size, return_indices)


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """The largest elements of windows that cover an image (N, C, H, W) or (C, H, W) evenly.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.adaptive_max_pool2d(zoo.ones(1, 3, 7, 5), 2).shape
        (1, 3, 2, 2)
    """
    return adaptive_maximum_pool(2, input, output_size, return_indices)


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """The largest elements of windows that cover a volume (N, C, D, H, W) or (C, D, H, W) evenly.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.adaptive_max_pool3d(zoo.ones(1, 3, 4, 5, 6), 2).shape
        (1, 3, 2, 2, 2)
    """
    return adaptive_maximum_pool(3, input, output_size, return_indices)


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool1d that always gives (values, indices)."""
    return adaptive_maximum_pool(1, input, output_size, True)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool2d that always gives (values, indices)."""
    return adaptive_maximum_pool(2, input, output_size, True)


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool3d that always gives (values, indices)."""
    return adaptive_maximum_pool(3, input, output_size, True)


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts the values of max_pool1d back where its indices say, zeros elsewhere.

    input and int64 indices (N, C, P) or (C, P) -> (N, C, L), L = (P - 1) * stride - 2 * padding + kernel_size, or
    output_size.

    Raises:
        ShapeError: shapes, or output_size, do not fit.
        ArgumentError: an index is outside of the result.

    Example:
        >>> import zoo
        >>> y, i = zoo.nn.functional.max_pool1d(zoo.tensor([[1.0, 3.0, 2.0, 0.0]]), 2, return_indices=True)
        >>> zoo.nn.functional.max_unpool1d(y, i, 2).tolist()
        [[0.0, 3.0, 2.0, 0.0]]
    """
    return unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts the values of max_pool2d, (N, C, P, Q) or (C, P, Q), back where its indices say; else as max_unpool1d."""
    return unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts the values of max_pool3d back where its indices say; otherwise as max_unpool1d."""
    return unpool(3, input, indices, kernel_size, stride, padding, output_size)


def unpool(rank, input, indices, kernel_size, stride, padding, output_size):
    op = f"max_unpool{rank}d"
    if tuple(indices.shape) != tuple(input.shape):
        raise ShapeError(f"{op}: wants indices of the input's shape {tuple(input.shape)}, got {tuple(indices.shape)}")
    (input, alone), (indices, _) = batched(op, input, rank), batched(op, indices, rank)
    kernel, padding = ints(op, "kernel_size", kernel_size, rank), ints(op, "padding", padding, rank)
    stride = kernel if stride is None or stride in ((), []) else ints(op, "stride", stride, rank)
    n, c, *places = input.shape
    size = tuple((m - 1) * s - 2 * p + k for m, s, p, k in zip(places, stride, padding, kernel, strict=True))
    if output_size is not None:
        wanted = tuple(output_size)[-rank:]
        if len(wanted) < rank or any(not w - s < m < w + s for w, m, s in zip(wanted, size, stride, strict=True)):
            raise ShapeError(f"{op}: output_size wants sizes less than stride {stride} from {size}, got {output_size}")
        size = wanted
    zeros = filled(input, (n, c, prod(size)), 0)
    y = scatter(zeros, 2, reshape(indices, (n, c, prod(places))), reshape(input, (n, c, prod(places))))
    return unbatched(reshape(y, (n, c, *size)), alone)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of every window: (sum of x ** p) ** (1 / p). input (N, C, L) or (C, L) floating.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.lp_pool1d(zoo.tensor([[3.0, 4.0]]), 2, 2).tolist()
        [[5.0]]
    """
    return norm_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of every window of an image (N, C, H, W) or (C, H, W): (sum of x ** p) ** (1 / p).

    Example:
        >>> import zoo
        >>> zoo.nn.functional.lp_pool2d(zoo.ones(1, 1, 4, 4), 2, 2).tolist()
        [[[[2.0, 2.0], [2.0, 2.0]]]]
    """
    return norm_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of every window of a volume (N, C, D, H, W) or (C, D, H, W): (sum of x ** p) ** (1 / p).

    Example:
        >>> import zoo
        >>> zoo.nn.functional.lp_pool3d(zoo.ones(1, 1, 2, 2, 4), 3, 2).tolist()
        [[[[[2.0, 2.0]]]]]
    """
    return norm_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def norm_pool(rank, input, norm_type, kernel_size, stride, ceil_mode):
    means = mean_pool(rank, input ** norm_type, kernel_size, stride, 0, ceil_mode, True)
    sums = means * prod(ints("lp_pool", "kernel_size", kernel_size, rank))
    return (sign(sums) * relu(abs(sums))) ** (1.0 / norm_type)      # relu: a window of zeros has slope 0, not inf


def pixel_shuffle(input, upscale_factor):
    """Channels become pixels: (..., C * r * r, H, W) -> (..., C, H * r, W * r) with r = upscale_factor.

    Raises:
        ShapeError: fewer than 3 dims, or the channels are no multiple of r * r.
        ArgumentError: upscale_factor < 1.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.pixel_shuffle(zoo.ones(1, 8, 2, 3), 2).shape
        (1, 2, 4, 6)
    """
    r = check_pixels("pixel_shuffle", input, upscale_factor)
    *lead, c, h, w = input.shape
    if c % (r * r):
        raise ShapeError(f"pixel_shuffle: wants a multiple of {r * r} channels, got shape {tuple(input.shape)}")
    n, c = len(lead), c // (r * r)
    y = permute(reshape(input, (*lead, c, r, r, h, w)), (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshape(clone(y), (*lead, c, h * r, w * r))


def pixel_unshuffle(input, downscale_factor):
    """Pixels become channels: (..., C, H * r, W * r) -> (..., C * r * r, H, W) with r = downscale_factor.

    Raises:
        ShapeError: fewer than 3 dims, or height or width is no multiple of r.
        ArgumentError: downscale_factor < 1.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.pixel_unshuffle(zoo.ones(1, 2, 4, 6), 2).shape
        (1, 8, 2, 3)
    """
    r = check_pixels("pixel_unshuffle", input, downscale_factor)
    *lead, c, h, w = input.shape
    if h % r or w % r:
        raise ShapeError(f"pixel_unshuffle: wants multiples of {r} as height and width, got {tuple(input.shape)}")
    n = len(lead)
    y = permute(reshape(input, (*lead, c, h // r, r, w // r, r)), (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return reshape(clone(y), (*lead, c * r * r, h // r, w // r))


def check_pixels(op: str, input, factor) -> int:
    (r,) = ints(op, "factor", factor, 1)
    if r < 1:
        raise ArgumentError(f"{op}: wants a factor >= 1, got {r}")
    if len(input.shape) < 3:
        raise ShapeError(f"{op}: wants at least 3 dims, got shape {tuple(input.shape)}")
    return r


def channel_shuffle(input, groups):
    """Takes channels in turn from each of `groups` runs of them: (N, g * c, ...) -> the same shape.

    Raises:
        ShapeError: fewer than 3 dims, or the channels are no multiple of groups.
        ArgumentError: groups < 1.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.channel_shuffle(zoo.arange(4.0).reshape(1, 4, 1), 2).flatten().tolist()
        [0.0, 2.0, 1.0, 3.0]
    """
    g = check_pixels("channel_shuffle", input, groups)
    n, c, *spatial = input.shape
    if c % g:
        raise ShapeError(f"channel_shuffle: wants a multiple of {g} channels, got shape {tuple(input.shape)}")
    y = permute(reshape(input, (n, g, c // g, *spatial)), (0, 2, 1, *range(3, 3 + len(spatial))))
    return reshape(clone(y), tuple(input.shape))
