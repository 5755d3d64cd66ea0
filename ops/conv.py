"""Convolution: conv2d, its two gradients as ops of their own, and conv_transpose2d. NumPy paths: conv_cpu.py.

The three are derivatives of one another, which is why any order works: with L(x, w) = conv2d, the form <dy, L(x, w)> is
linear in each of dy, x and w, and conv2d, conv2d_input_grad and conv2d_weight_grad are its three partial gradients.
Options are tuples here: stride and dilation (height, width), padding (height, width) or (top, left, bottom, right).
"""
import numpy as np

from zoo.ops import conv_cpu
from zoo.ops.dtypes import FLOATS, HALVES, float32
from zoo.ops.errors import ArgumentError, DtypeError, ShapeError
from zoo.ops.op import OPS, Spec, structured
from zoo.ops.shape import reshape, sum_to
from zoo.ops.window import Window, four, places


def wide(x):
    """float16 and bfloat16 are computed in float32."""
    return x.astype(float32) if x is not None and x.dtype in HALVES else x


def window_of(op: str, image, kernel, stride, padding, dilation, groups) -> Window:
    """The window over an image (H, W); raises if the options make no sense or the kernel does not fit."""
    if min(stride) <= 0 or min(dilation) <= 0:
        raise ArgumentError(f"{op}: stride and dilation want positive numbers, got {stride} and {dilation}")
    if min(padding[:2]) < 0:
        raise ArgumentError(f"{op}: padding wants numbers >= 0, got {padding}")
    pad = four(padding)                  # its end may be negative: rows that no place reaches, see `cut`
    out = tuple(places(image[i], kernel[i], stride[i], pad[i], pad[i + 2], dilation[i]) for i in (0, 1))
    if min(out) < 1 or min(kernel) < 1:
        sizes = tuple(image[i] + pad[i] + pad[i + 2] for i in (0, 1))
        raise ShapeError(f"{op}: wants a kernel that fits in the padded image, got kernel {kernel} with dilation "
                         f"{dilation} and padded image {sizes} (image: {image})")
    return Window(image, tuple(kernel), stride, pad, dilation, groups, out)


def check_dtypes(op: str, *xs) -> np.dtype:
    dtypes = [x.dtype for x in xs if x is not None]
    if dtypes[0] not in FLOATS or any(d != dtypes[0] for d in dtypes):
        raise DtypeError(f"{op}: wants one floating dtype for all arrays, got {', '.join(map(str, dtypes))}")
    return dtypes[0]


def check_groups(op: str, groups, **channels):
    if groups <= 0:
        raise ArgumentError(f"{op}: groups wants a positive number, got {groups}")
    for name, count in channels.items():
        if count % groups:
            raise ShapeError(f"{op}: {name} wants a multiple of groups={groups}, got {count}")


def check_bias(op: str, bias, channels: int):
    if bias is not None and bias.shape != (channels,):
        raise ShapeError(f"{op}: bias wants shape ({channels},), got {bias.shape}")


def conv2d_window(op: str, input, weight, bias, stride, padding, dilation, groups) -> Window:
    check_dtypes(op, input, weight, bias)
    if len(input.shape) != 4 or len(weight.shape) != 4:
        raise ShapeError(f"{op}: wants input (N, C, H, W) and weight (K, C / groups, R, S), "
                         f"got {input.shape} and {weight.shape}")
    check_groups(op, groups, weight=weight.shape[0])
    if input.shape[1] != weight.shape[1] * groups:
        raise ShapeError(f"{op}: weight expects {weight.shape[1] * groups} input channels, input has {input.shape[1]} "
                         f"(input: {input.shape}, weight: {weight.shape}, groups: {groups})")
    check_bias(op, bias, weight.shape[0])
    return window_of(op, input.shape[2:], weight.shape[2:], stride, padding, dilation, groups)


def input_grad_window(op: str, grad, weight, size, stride, padding, dilation, groups) -> Window:
    check_dtypes(op, grad, weight)
    if len(grad.shape) != 4 or len(weight.shape) != 4 or grad.shape[1] != weight.shape[0]:
        raise ShapeError(f"{op}: wants (N, K, P, Q) and (K, C / groups, R, S), got {grad.shape} and {weight.shape}")
    check_groups(op, groups, weight=weight.shape[0])
    window = window_of(op, tuple(size), weight.shape[2:], stride, padding, dilation, groups)
    if window.out != grad.shape[2:]:
        raise ShapeError(f"{op}: an image of size {tuple(size)} gives a map of {window.out}, got {grad.shape}")
    return window


def weight_grad_window(op: str, grad, input, kernel, stride, padding, dilation, groups) -> Window:
    check_dtypes(op, grad, input)
    if len(grad.shape) != 4 or len(input.shape) != 4 or grad.shape[0] != input.shape[0]:
        raise ShapeError(f"{op}: wants (N, K, P, Q) and (N, C, H, W), got {grad.shape} and {input.shape}")
    check_groups(op, groups, grad=grad.shape[1], input=input.shape[1])
    window = window_of(op, input.shape[2:], tuple(kernel), stride, padding, dilation, groups)
    if window.out != grad.shape[2:]:
        raise ShapeError(f"{op}: kernel {tuple(kernel)} over {input.shape} gives a map of {window.out}, "
                         f"got {grad.shape}")
    return window


def transpose_window(input, weight, bias, stride, padding, output_padding, groups, dilation) -> Window:
    """The window of the convolution whose input gradient a transposed convolution is: its `image` is the result."""
    op = "conv_transpose2d"
    check_dtypes(op, input, weight, bias)
    if len(input.shape) != 4 or len(weight.shape) != 4:
        raise ShapeError(f"{op}: wants input (N, C, H, W) and weight (C, K / groups, R, S), "
                         f"got {input.shape} and {weight.shape}")
    check_groups(op, groups, input=input.shape[1])
    if input.shape[1] != weight.shape[0]:
        raise ShapeError(f"{op}: weight expects {weight.shape[0]} input channels, input has {input.shape[1]} "
                         f"(input: {input.shape}, weight: {weight.shape})")
    check_bias(op, bias, weight.shape[1] * groups)
    if any(not 0 <= o < max(s, d) for o, s, d in zip(output_padding, stride, dilation, strict=True)):
        raise ArgumentError(f"{op}: output_padding wants to be >= 0 and below stride or dilation, got {output_padding} "
                            f"(stride: {stride}, dilation: {dilation})")
    pad = four(padding)
    size = tuple((input.shape[i + 2] - 1) * stride[i] - pad[i] - pad[i + 2] + dilation[i] * (weight.shape[i + 2] - 1)
                 + output_padding[i] + 1 for i in (0, 1))
    if min(size) < 1 or min(input.shape[2:]) < 1:
        raise ShapeError(f"{op}: the result would have size {size} (input: {input.shape}, weight: {weight.shape})")
    # output_padding >= stride (dilation allows it) gives the convolution more places than input has: they are cut
    window = window_of(op, size, weight.shape[2:], stride, padding, dilation, groups)
    return window._replace(out=tuple(input.shape[2:]))


def norm_act_window(input, weight, bias, mean, var, norm_weight, norm_bias, residual, stride, padding, dilation,
                    groups) -> Window:
    op = "conv2d_norm_act"
    window = conv2d_window(op, input, weight, bias, stride, padding, dilation, groups)
    check_dtypes(op, input, residual)
    if (mean is None) != (var is None) or mean is None and (norm_weight is not None or norm_bias is not None):
        raise ArgumentError(f"{op}: wants mean and var together, and norm_weight and norm_bias only with them")
    for name, vector in (("mean", mean), ("var", var), ("norm_weight", norm_weight), ("norm_bias", norm_bias)):
        if vector is not None and tuple(vector.shape) != (weight.shape[0],):
            raise ShapeError(f"{op}: wants {name} of shape ({weight.shape[0]},), got {tuple(vector.shape)}")
    shape = (input.shape[0], weight.shape[0], *window.out)
    if residual is not None and tuple(residual.shape) != shape:
        raise ShapeError(f"{op}: wants a residual of the result's shape {shape}, got {tuple(residual.shape)}")
    return window


def folded(weight, bias, mean, var, norm_weight, norm_bias, eps):
    """Weight and bias (K,), in float64, of a convolution that does a batch norm with fixed statistics too."""
    factor = 1 / np.sqrt(var.astype(np.float64) + eps)
    if norm_weight is not None:
        factor *= norm_weight
    shift = ((0.0 if bias is None else bias) - mean.astype(np.float64)) * factor
    return weight * factor[:, None, None, None], shift if norm_bias is None else shift + norm_bias


def bias_grad(dy):
    return reshape(sum_to(dy, (1, dy.shape[1], 1, 1)), (dy.shape[1],))


def conv_samples(rng):
    def draw(n, c, h, w, k, kernel, groups=1, bias=False, stride=(1, 1), padding=(0, 0), dilation=(1, 1)):
        weight = rng.normal(size=(k, c // groups, *kernel))
        bias = rng.normal(size=k) if bias else None
        return rng.normal(size=(n, c, h, w)), weight, bias, stride, padding, dilation, groups
    ordinary = [draw(2, 3, 6, 5, 4, (3, 3), bias=True, padding=(1, 1)),
                draw(2, 4, 7, 6, 6, (3, 2), groups=2, stride=(2, 1), padding=(1, 0, 2, 1), bias=True),
                draw(1, 4, 6, 7, 4, (3, 3), groups=4, stride=(2, 2), padding=(1, 1)),
                draw(2, 5, 4, 4, 3, (1, 1), bias=True), draw(1, 3, 9, 9, 2, (3, 3), dilation=(2, 3), padding=(2, 3))]
    odd = [draw(1, 1, 13, 7, 3, (5, 3), padding=(6, 2)), draw(3, 3, 7, 5, 5, (1, 1), stride=(2, 3)),
           draw(1, 2, 9, 11, 2, (3, 3), stride=(3, 2), dilation=(2, 2), padding=(3, 2)),
           draw(2, 4, 1, 7, 8, (1, 3), groups=4, bias=True),
           draw(2, 32, 3, 4, 5, (2, 3), padding=(1, 1), stride=(1, 2)),
           draw(1, 36, 4, 3, 18, (2, 2), groups=2, bias=True)]
    x, w = rng.normal(size=(1, 2, 5, 5)), rng.normal(size=(3, 2, 3, 3))
    x[0, 0, 0, 0], x[0, 1, 4, 4], x[0, 1, 2, 1] = np.inf, np.nan, 1e4
    return {"ordinary": ordinary, "odd": odd, "empty": [draw(0, 3, 6, 5, 4, (3, 3), bias=True, padding=(1, 1))],
            "0-d": "convolution wants 4 dimensions", "extreme": [(x, w, None, (1, 1), (0, 0), (1, 1), 1)]}


def gradient_samples(rng, arguments):
    """Samples of the two gradients: those of conv2d, with a gradient of its result's shape."""
    def convert(x, weight, _, *options):
        shape = (len(x), len(weight), *conv2d_window("conv2d", x, weight, None, *options).out)
        return *arguments(x, weight, rng.normal(size=shape)), *options
    samples = conv_samples(rng)
    return {kind: s if isinstance(s, str) else [convert(*case) for case in s] for kind, s in samples.items()}


def norm_act_samples(rng):
    """Those of conv2d, with each part of the epilogue on its own and all together."""
    def draw(case, norm=True, affine=True, residual=True, relu=True):
        x, weight, bias, *options = case
        k, shape = len(weight), (len(x), len(weight), *conv2d_window("conv2d", x, weight, bias, *options).out)
        moments = (rng.normal(size=k), rng.uniform(0.5, 2, k)) if norm else (None, None)
        scale = (rng.normal(size=k), rng.normal(size=k)) if norm and affine else (None, None)
        return x, weight, bias, *moments, *scale, rng.normal(size=shape) if residual else None, relu, 1e-5, *options
    found = conv_samples(rng)
    parts = [dict(norm=False), dict(residual=False), dict(affine=False, relu=False), {}, dict(norm=False, relu=False)]
    return {kind: rows if isinstance(rows, str) else
            [draw(case, **parts[i % len(parts)]) for i, case in enumerate(rows)] for kind, rows in found.items()}


def transpose_samples(rng):
    def draw(n, c, h, w, k, kernel, groups=1, bias=False, stride=(1, 1), padding=(0, 0), output_padding=(0, 0),
             dilation=(1, 1)):
        weight, bias = rng.normal(size=(c, k // groups, *kernel)), rng.normal(size=k) if bias else None
        return rng.normal(size=(n, c, h, w)), weight, bias, stride, padding, output_padding, groups, dilation
    ordinary = [draw(2, 3, 5, 4, 4, (3, 3), bias=True, padding=(1, 1)),
                draw(2, 4, 4, 3, 6, (3, 2), groups=2, stride=(2, 3), padding=(1, 0), output_padding=(1, 2), bias=True),
                draw(1, 4, 3, 4, 4, (2, 2), groups=4, stride=(2, 2))]
    odd = [draw(1, 2, 3, 5, 3, (3, 2), dilation=(3, 2), output_padding=(2, 1)),
           draw(1, 5, 1, 1, 2, (1, 1), stride=(2, 2), bias=True)]
    x, w = rng.normal(size=(1, 2, 4, 4)), rng.normal(size=(2, 3, 3, 3))
    x[0, 0, 0, 0], x[0, 1, 3, 3], x[0, 1, 2, 1] = np.inf, np.nan, 1e4
    return {"ordinary": ordinary, "odd": odd, "empty": [draw(0, 3, 5, 4, 4, (3, 3), bias=True)],
            "0-d": "convolution wants 4 dimensions", "extreme": [(x, w, None, (1, 1), (0, 0), (0, 0), 1, (1, 1))]}


def cut(image, weight, places, stride, padding, dilation):
    """Padding (top, left, bottom, right) with which a kernel has exactly as many places as a transposed convolution's
    input: output_padding adds rows at the end that stay out of reach (shapes in, of dy, weight and input)."""
    pad = four(padding)
    reach = [(n - 1) * s + d * (k - 1) + s
             for n, s, d, k in zip(places[2:], stride, dilation, weight[2:], strict=True)]
    return *pad[:2], *(min(pad[i + 2], reach[i] - image[i + 2] - pad[i]) for i in (0, 1))


@structured
class conv2d:
    """Slides the weight over the image: a weighted sum of the window at every place.

    y[n, k, p, q] = bias[k] + sum over c, r, s of weight[k, c, r, s] * input[n, c, p * stride + r * dilation - pad, .]
    input (N, C, H, W), weight (K, C / groups, R, S), bias (K,) or None -> (N, K, P, Q), all of one floating dtype.

    Raises:
        ShapeError: channels, groups, bias or kernel do not fit.
        DtypeError: dtypes differ or are not floating.
    """
    def check(input, weight, bias, stride, padding, dilation, groups):
        window = conv2d_window("conv2d", input, weight, bias, stride, padding, dilation, groups)
        return Spec((input.shape[0], weight.shape[0], *window.out), input.dtype)

    def forward(input, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
        window = conv2d_window("conv2d", input, weight, bias, stride, padding, dilation, groups)
        y = conv_cpu.forward(wide(input), wide(weight), wide(bias), window)
        return y.astype(input.dtype, copy=False)

    def dinput(dy, weight, input_shape, stride, padding, dilation, groups):
        return conv2d_input_grad(dy, weight, input_shape[2:], stride, padding, dilation, groups)

    def dweight(dy, input, weight_shape, stride, padding, dilation, groups):
        return conv2d_weight_grad(dy, input, weight_shape[2:], stride, padding, dilation, groups)

    def dbias(dy): return bias_grad(dy)
    samples = conv_samples


@structured
class conv2d_norm_act:
    """A convolution with what follows it in a network at inference: one pass over memory.

    y = relu((conv2d(input, weight, bias) - mean) / sqrt(var + eps) * norm_weight + norm_bias + residual)
    input (N, C, H, W), weight (K, C / groups, R, S), residual (N, K, P, Q), all of one floating dtype; bias, mean, var,
    norm_weight, norm_bias (K,) -> (N, K, P, Q). Any of those behind weight may be None, mean and var only together.
    On Tensors it is its parts, and so are its derivatives.

    Raises:
        ShapeError: channels, groups, a vector, the residual or the kernel do not fit.
        ArgumentError: mean without var, or norm_weight or norm_bias without them.
        DtypeError: dtypes differ or are not floating.
    """
    def check(input, weight, bias, mean, var, norm_weight, norm_bias, residual, relu, eps, stride, padding, dilation,
              groups):
        window = norm_act_window(input, weight, bias, mean, var, norm_weight, norm_bias, residual, stride, padding,
                                 dilation, groups)
        return Spec((input.shape[0], weight.shape[0], *window.out), input.dtype)

    def forward(input, weight, bias=None, mean=None, var=None, norm_weight=None, norm_bias=None, residual=None,
                relu=False, eps=1e-5, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
        window = norm_act_window(input, weight, bias, mean, var, norm_weight, norm_bias, residual, stride, padding,
                                 dilation, groups)
        x, weight, bias = wide(input), wide(weight), wide(bias)
        if mean is not None:
            weight, bias = (v.astype(x.dtype) for v in folded(weight, bias, mean, var, norm_weight, norm_bias, eps))
        return conv_cpu.forward(x, weight, bias, window, wide(residual), relu).astype(input.dtype, copy=False)

    def decompose(input, weight, bias, mean, var, norm_weight, norm_bias, residual, relu, eps, stride, padding,
                  dilation, groups):
        y = conv2d(input, weight, bias, stride, padding, dilation, groups)
        if mean is not None:
            y = OPS["batch_norm_eval"](y, mean, var, norm_weight, norm_bias, eps)
        if residual is not None:
            y = y + residual
        return OPS["relu"](y) if relu else y

    samples = norm_act_samples


@structured
class conv2d_input_grad:
    """Gradient of <grad, conv2d(x, weight)> by x, an image of `size` (H, W).

    grad (N, K, P, Q), weight (K, C / groups, R, S) -> (N, C, H, W).
    """
    def check(grad, weight, size, stride, padding, dilation, groups):
        input_grad_window("conv2d_input_grad", grad, weight, size, stride, padding, dilation, groups)
        return Spec((grad.shape[0], weight.shape[1] * groups, *size), grad.dtype)

    def forward(grad, weight, size, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
        window = input_grad_window("conv2d_input_grad", grad, weight, size, stride, padding, dilation, groups)
        return conv_cpu.input_grad(wide(grad), wide(weight), window).astype(grad.dtype, copy=False)

    def dgrad(dy, weight, stride, padding, dilation, groups):
        return conv2d(dy, weight, None, stride, padding, dilation, groups)

    def dweight(dy, grad, weight_shape, stride, padding, dilation, groups):
        return conv2d_weight_grad(grad, dy, weight_shape[2:], stride, padding, dilation, groups)

    def samples(rng):
        return gradient_samples(rng, lambda x, w, grad: (grad, w, x.shape[2:]))


@structured
class conv2d_weight_grad:
    """Gradient of <grad, conv2d(input, w)> by w, whose kernel has the size (R, S).

    grad (N, K, P, Q), input (N, C, H, W) -> (K, C / groups, R, S).
    """
    def check(grad, input, kernel, stride, padding, dilation, groups):
        weight_grad_window("conv2d_weight_grad", grad, input, kernel, stride, padding, dilation, groups)
        return Spec((grad.shape[1], input.shape[1] // groups, *kernel), grad.dtype)

    def forward(grad, input, kernel, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
        window = weight_grad_window("conv2d_weight_grad", grad, input, kernel, stride, padding, dilation, groups)
        return conv_cpu.weight_grad(wide(grad), wide(input), window).astype(grad.dtype, copy=False)

    def dgrad(dy, input, stride, padding, dilation, groups):
        return conv2d(input, dy, None, stride, padding, dilation, groups)

    def dinput(dy, grad, input_shape, stride, padding, dilation, groups):
        return conv2d_input_grad(grad, dy, input_shape[2:], stride, padding, dilation, groups)

    def samples(rng):
        return gradient_samples(rng, lambda x, w, grad: (grad, x, w.shape[2:]))


@structured
class conv_transpose2d:
    """The input gradient of a convolution, taken as a layer of its own: y = conv2d_input_grad(input, weight) + bias.

    input (N, C, H, W), weight (C, K / groups, R, S), bias (K,) or None -> (N, K, P, Q) with
    P = (H - 1) * stride - 2 * padding + dilation * (R - 1) + output_padding + 1, all of one floating dtype.

    Raises:
        ShapeError: channels, groups or bias do not fit, or the result would be empty.
        ArgumentError: output_padding is not below stride or dilation.
        DtypeError: dtypes differ or are not floating.
    """
    def check(input, weight, bias, stride, padding, output_padding, groups, dilation):
        window = transpose_window(input, weight, bias, stride, padding, output_padding, groups, dilation)
        return Spec((input.shape[0], weight.shape[1] * groups, *window.image), input.dtype)

    def forward(input, weight, bias=None, stride=(1, 1), padding=(0, 0), output_padding=(0, 0), groups=1,
                dilation=(1, 1)):
        window = transpose_window(input, weight, bias, stride, padding, output_padding, groups, dilation)
        y = conv_cpu.input_grad(wide(input), wide(weight), window)
        if bias is not None:
            y += wide(bias)[:, None, None]
        return y.astype(input.dtype, copy=False)

    def dinput(dy, weight, input_shape, stride, padding, groups, dilation):
        padding = cut(dy.shape, weight.shape, input_shape, stride, padding, dilation)
        return conv2d(dy, weight, None, stride, padding, dilation, groups)

    def dweight(dy, input, weight_shape, stride, padding, groups, dilation):
        padding = cut(dy.shape, weight_shape, input.shape, stride, padding, dilation)
        return conv2d_weight_grad(input, dy, weight_shape[2:], stride, padding, dilation, groups)

    def dbias(dy): return bias_grad(dy)

    def samples(rng):
        return transpose_samples(rng)
