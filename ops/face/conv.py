"""torch's convolutions: any rank is said in conv2d. One dimension is an image of height 1; in three, the taps along
depth are a sum of conv2d over images (N * D, C, H, W)."""
from zoo.ops.conv import conv2d as conv2d_op
from zoo.ops.conv import conv_transpose2d as conv_transpose2d_op
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.fold import col2im, im2col
from zoo.ops.shape import basic_index, constant_pad_nd, permute, reshape
from zoo.ops.window import ints, places

FUNCTIONS = ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
METHODS = ()
NN_FUNCTIONS = (*FUNCTIONS, "unfold", "fold")
INPLACE = ()


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution along one dimension.

    y[n, k, q] = bias[k] + sum over c, s of weight[k, c, s] * input[n, c, q * stride + s * dilation - padding]

    input (N, C, L) or (C, L), weight (K, C / groups, S), bias (K,) or None -> (N, K, Q) or (K, Q); one floating dtype.
    padding is an int, "valid" (0) or "same" (the result is as long as the input; stride 1 only).

    Raises:
        ShapeError: ranks, channels, groups or the kernel do not fit.
        ArgumentError: stride, padding, dilation or groups out of range.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.conv1d(zoo.ones(1, 1, 5), zoo.ones(1, 1, 3)).shape
        (1, 1, 3)
    """
    return convolution("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution over images.

    y[n, k, p, q] = bias[k] + sum over c, r, s of weight[k, c, r, s] * input[n, c, p * stride + r * dilation - pad, ...]

    input (N, C, H, W) or (C, H, W), weight (K, C / groups, R, S), bias (K,) or None -> (N, K, P, Q); one float dtype.
    padding is an int, a pair, "valid" (0) or "same" (the result is as large as the input; stride 1 only).

    Raises:
        ShapeError: ranks, channels, groups or the kernel do not fit.
        ArgumentError: stride, padding, dilation or groups out of range.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.conv2d(zoo.ones(1, 3, 8, 8), zoo.ones(6, 3, 3, 3), stride=2, padding=1).shape
        (1, 6, 4, 4)
    """
    return convolution("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution over volumes, as a sum of conv2d along depth.

    input (N, C, D, H, W) or (C, D, H, W), weight (K, C / groups, T, R, S), bias (K,) or None; one floating dtype.

    Raises:
        ShapeError, ArgumentError: as conv2d.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.conv3d(zoo.ones(1, 2, 4, 5, 5), zoo.ones(3, 2, 2, 3, 3)).shape
        (1, 3, 3, 3, 3)
    """
    return convolution("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Transposed convolution along one dimension: the input gradient of conv1d as a layer.

    input (N, C, L) or (C, L), weight (C, K / groups, S), bias (K,) or None -> (N, K, Q) with
    Q = (L - 1) * stride - 2 * padding + dilation * (S - 1) + output_padding + 1.

    Raises:
        ShapeError: ranks, channels or groups do not fit.
        ArgumentError: an option is out of range.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.conv_transpose1d(zoo.ones(1, 1, 3), zoo.ones(1, 1, 3), stride=2).shape
        (1, 1, 7)
    """
    return transposed("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Transposed convolution over images: the input gradient of conv2d as a layer.

    input (N, C, H, W) or (C, H, W), weight (C, K / groups, R, S), bias (K,) or None -> (N, K, P, Q) with
    P = (H - 1) * stride - 2 * padding + dilation * (R - 1) + output_padding + 1.

    Raises:
        ShapeError: ranks, channels or groups do not fit.
        ArgumentError: an option is out of range.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.conv_transpose2d(zoo.ones(1, 3, 4, 4), zoo.ones(3, 2, 2, 2), stride=2).shape
        (1, 2, 8, 8)
    """
    return transposed("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Transposed convolution over volumes: the input gradient of conv3d as a layer.

    input (N, C, D, H, W) or (C, D, H, W), weight (C, K / groups, T, R, S), bias (K,) or None.

    Raises:
        ShapeError, ArgumentError: as conv_transpose2d.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.conv_transpose3d(zoo.ones(1, 2, 2, 4, 4), zoo.ones(2, 3, 2, 2, 2), stride=2).shape
        (1, 3, 4, 8, 8)
    """
    return transposed("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation)


def check_rank(op: str, rank: int, input, weight):
    if len(weight.shape) != rank + 2 or len(input.shape) not in (rank + 1, rank + 2):
        raise ShapeError(f"{op}: wants a weight of {rank + 2} dims and an input of {rank + 2} (or {rank + 1}, "
                         f"unbatched), got {tuple(weight.shape)} and {tuple(input.shape)}")


def convolution(op, rank, input, weight, bias, stride, padding, dilation, groups):
    """Unbatched inputs, ints for tuples, words for paddings; then the op of this rank."""
    check_rank(op, rank, input, weight)
    stride, dilation = ints(op, "stride", stride, rank), ints(op, "dilation", dilation, rank)
    begin, end = paddings(op, padding, weight.shape[2:], stride, dilation)
    if len(input.shape) == rank + 1:
        input = reshape(input, (1, *input.shape))
        y = ranked_convolution(rank, input, weight, bias, stride, begin, end, dilation, groups)
        return reshape(y, tuple(y.shape[1:]))
    return ranked_convolution(rank, input, weight, bias, stride, begin, end, dilation, groups)


def paddings(op, padding, kernel, stride, dilation):
    """(begin, end) padding of every dimension."""
    if not isinstance(padding, str):
        padding = ints(op, "padding", padding, len(kernel))
        return padding, padding
    if padding == "valid":
        return (0,) * len(kernel), (0,) * len(kernel)
    if padding != "same":
        raise ArgumentError(f"{op}: padding wants ints, 'valid' or 'same', got {padding!r}")
    if any(s != 1 for s in stride):
        raise ArgumentError(f"{op}: padding='same' wants stride 1, got {stride}")
    total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    return tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)


def ranked_convolution(rank, input, weight, bias, stride, begin, end, dilation, groups):
    if rank == 2:
        return conv2d_op(input, weight, bias, stride, begin if begin == end else (*begin, *end), dilation, groups)
    if rank == 3:
        return volume_convolution(input, weight, bias, stride, begin, end, dilation, groups)
    n, c, width = input.shape
    k, cg, s = weight.shape
    y = conv2d_op(reshape(input, (n, c, 1, width)), reshape(weight, (k, cg, 1, s)), bias, (1, *stride),
                  (0, *begin, 0, *end), (1, *dilation), groups)
    return reshape(y, (n, k, y.shape[3]))


def volume_convolution(input, weight, bias, stride, begin, end, dilation, groups):
    """Sum over the taps t along depth of conv2d(slices of input at t, weight[:, :, t])."""
    n, c, depth, height, width = input.shape
    (sd, *s), (dd, *d), taps = stride, dilation, weight.shape[2]
    if min(stride) <= 0 or min(dilation) <= 0 or min(begin) < 0:
        raise ArgumentError(f"conv3d: wants stride, dilation > 0 and padding >= 0, got {stride}, {dilation}, {begin}")
    out = places(depth, taps, sd, begin[0], end[0], dd)
    if out < 1:
        raise ShapeError(f"conv3d: wants a kernel that fits, got {tuple(weight.shape)} for input {tuple(input.shape)}")
    if begin[0] or end[0]:
        input = constant_pad_nd(input, (0, 0, 0, 0, begin[0], end[0]))
    y = None
    for t in range(taps):
        at = slice(t * dd, t * dd + (out - 1) * sd + 1, sd)
        images = permute(basic_index(input, (slice(None), slice(None), at)), (0, 2, 1, 3, 4))
        tap = basic_index(weight, (slice(None), slice(None), t))
        part = conv2d_op(reshape(images, (n * out, c, height, width)), tap, None if t else bias, tuple(s),
                         (*begin[1:], *end[1:]), tuple(d), groups)
        y = part if y is None else y + part
    return permute(reshape(y, (n, out, *y.shape[1:])), (0, 2, 1, 3, 4))


def transposed(op, rank, input, weight, bias, stride, padding, output_padding, groups, dilation):
    check_rank(op, rank, input, weight)
    stride, padding = ints(op, "stride", stride, rank), ints(op, "padding", padding, rank)
    dilation, extra = ints(op, "dilation", dilation, rank), ints(op, "output_padding", output_padding, rank)
    if len(input.shape) == rank + 1:
        input = reshape(input, (1, *input.shape))
        y = ranked_transposed(rank, input, weight, bias, stride, padding, extra, groups, dilation)
        return reshape(y, tuple(y.shape[1:]))
    return ranked_transposed(rank, input, weight, bias, stride, padding, extra, groups, dilation)


def ranked_transposed(rank, input, weight, bias, stride, padding, extra, groups, dilation):
    if rank == 2:
        return conv_transpose2d_op(input, weight, bias, stride, padding, extra, groups, dilation)
    if rank == 3:
        return volume_transposed(input, weight, bias, stride, padding, extra, groups, dilation)
    n, c, width = input.shape
    k, cg, s = weight.shape
    y = conv_transpose2d_op(reshape(input, (n, c, 1, width)), reshape(weight, (k, cg, 1, s)), bias, (1, *stride),
                            (0, *padding), (0, *extra), groups, (1, *dilation))
    return reshape(y, (n, *y.shape[1::2]))


def volume_transposed(input, weight, bias, stride, padding, extra, groups, dilation):
    """Sum over the taps t along depth of conv_transpose2d(slices, weight[:, :, t]), each moved to where t puts it."""
    n, c, depth, height, width = input.shape
    (sd, *s), (pd, *p), (ed, *e), (dd, *d), taps = stride, padding, extra, dilation, weight.shape[2]
    if min(stride) <= 0 or min(dilation) <= 0 or min(padding) < 0 or not 0 <= ed < max(sd, dd):
        raise ArgumentError(f"conv_transpose3d: wants stride, dilation > 0, padding >= 0, output_padding below stride "
                            f"or dilation, got {stride}, {dilation}, {padding}, {extra}")
    out = (depth - 1) * sd - 2 * pd + dd * (taps - 1) + ed + 1
    if out < 1:
        raise ShapeError(f"conv_transpose3d: the result would have depth {out} (input: {tuple(input.shape)})")
    images = reshape(permute(input, (0, 2, 1, 3, 4)), (n * depth, c, height, width))
    y = None
    for t in range(taps):
        tap = basic_index(weight, (slice(None), slice(None), t))
        part = conv_transpose2d_op(images, tap, None, tuple(s), tuple(p), tuple(e), groups, tuple(d))
        k, *size = part.shape[1:]
        part = permute(reshape(part, (n, depth, k, *size)), (0, 2, 1, 3, 4))
        if sd > 1:                                            # zeros between the slices
            part = constant_pad_nd(reshape(part, (n, k, depth, 1, *size)), (0, 0, 0, 0, 0, sd - 1))
            part = reshape(part, (n, k, depth * sd, *size))
        start = t * dd - pd
        part = constant_pad_nd(part, (0, 0, 0, 0, start, out - depth * sd - start))
        y = part if y is None else y + part
    return y if bias is None else y + reshape(bias, (bias.shape[0], 1, 1, 1))


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of images as columns: (N, C, H, W) or (C, H, W) -> (N, C * R * S, number of places).

    Raises:
        ShapeError: wrong rank, or no window fits.
        ArgumentError: an option is out of range.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.unfold(zoo.ones(1, 3, 5, 5), 3).shape
        (1, 27, 9)
    """
    kernel, dilation, padding, stride = folding("unfold", kernel_size, dilation, padding, stride)
    if len(input.shape) not in (3, 4):
        raise ShapeError(f"unfold: wants (N, C, H, W) or (C, H, W), got {tuple(input.shape)}")
    if len(input.shape) == 3:
        y = im2col(reshape(input, (1, *input.shape)), kernel, dilation, padding, stride)
        return reshape(y, tuple(y.shape[1:]))
    return im2col(input, kernel, dilation, padding, stride)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns summed into the images whose windows they are: (N, C * R * S, places), or without N, -> (N, C, *size).

    Raises:
        ShapeError: the columns are not those of an image of output_size.
        ArgumentError: an option is out of range.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.fold(zoo.ones(1, 27, 9), (5, 5), 3).shape
        (1, 3, 5, 5)
    """
    kernel, dilation, padding, stride = folding("fold", kernel_size, dilation, padding, stride)
    size = ints("fold", "output_size", output_size, 2)
    if len(input.shape) not in (2, 3):
        raise ShapeError(f"fold: wants (N, C * R * S, places) or without N, got {tuple(input.shape)}")
    if len(input.shape) == 2:
        y = col2im(reshape(input, (1, *input.shape)), size, kernel, dilation, padding, stride)
        return reshape(y, tuple(y.shape[1:]))
    return col2im(input, size, kernel, dilation, padding, stride)


def folding(op: str, *options) -> list[tuple[int, ...]]:
    names = "kernel_size", "dilation", "padding", "stride"
    return [ints(op, name, value, 2) for name, value in zip(names, options, strict=True)]
