"""Normalisation in torch's signatures."""
import math

import numpy as np

from zoo.ops import norm_act, norm_rms
from zoo.ops.dims import wrap
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.norm import batch_norm_eval, batch_norm_train, statistics_dtype
from zoo.ops.norm_rows import group_norm
from zoo.ops.norm_rows import layer_norm as rows_norm
from zoo.ops.norm_running import mover_for
from zoo.ops.op import OPS, into, memory_of
from zoo.ops.shape import basic_index, cast, constant_pad_nd, reshape


def update(running, new, momentum: float) -> None:
    """running := (1 - momentum) * running + momentum * new, in its memory and without history."""
    new = new.detach() if hasattr(new, "detach") else new
    into(cast(running * (1 - momentum) + cast(new, running.dtype) * momentum, running.dtype), running)


def raw(x):
    """The array of a Tensor; other citizens are what they are."""
    return getattr(x, "array", x)


def move(running_mean, running_var, mean, var, count: int, momentum: float | None, batches=None) -> None:
    """The running statistics towards those of a batch of `count` values a channel, and one more of `batches`, in place.

    The variance is made unbiased; momentum None: the plain average of all batches.
    """
    if not count:                                # no values, no statistics
        running_mean = running_var = None
        momentum = momentum or 0.0
    targets, mean, var = (running_mean, running_var, batches), raw(mean), raw(var)
    for x in targets[:2]:
        if x is not None and (tuple(x.shape) != mean.shape or type(raw(x)) is not type(mean)):
            wanted, got = f"{mean.shape} on the input's device", f"{tuple(x.shape)}, {type(raw(x)).__name__}"
            raise ShapeError(f"batch_norm: wants running statistics {wanted}, got {got}")
    if any(x is not None for x in targets):
        written = [x if x is None else memory_of(x) for x in targets]
        mover_for(type(mean)).move(*written, mean, var, momentum, count / max(count - 1, 1))


def need_several(op: str, input) -> int:
    """The number of values for each channel of a batch; raises unless there are two."""
    count = math.prod(input.shape) // max(input.shape[1], 1) if input.ndim > 1 else 2
    if count == 1:
        raise ArgumentError(f"{op}: wants more than 1 value per channel when training, got {tuple(input.shape)}")
    return count


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5,
               num_batches_tracked=None):
    """(input - mean) / sqrt(var + eps) * weight + bias for each channel (Ioffe and Szegedy, 2015).

    In training mean and biased variance are the batch's, and running_mean and running_var move towards them (the
    variance unbiased) by momentum, in place; else they are running_mean and running_var.

    Args:
        input: (N, C, ...), floating.
        running_mean, running_var: (C,), or None in training.
        weight, bias: (C,) or None.
        momentum: share of the batch; None for the plain average of all batches that num_batches_tracked counts.
        num_batches_tracked: (), int64, grows by one in training; or None.

    Raises:
        ArgumentError (ValueError, RuntimeError): one value per channel in training, or no running statistics otherwise.
        ShapeError (ValueError, RuntimeError): shapes that do not fit together.

    Example:
        >>> import zoo
        >>> x = zoo.tensor([[1.0], [3.0]])
        >>> zoo.nn.functional.batch_norm(x, None, None, training=True).round(decimals=3).tolist()
        [[-1.0], [1.0]]
    """
    if input.ndim == 1 and not input.shape[0]:                        # torch: a batch of nothing, of no channels
        return reshape(input, (0,))
    if not training:
        if running_mean is None or running_var is None:
            raise ArgumentError("batch_norm: wants running_mean and running_var when not training, got None")
        return batch_norm_eval(input, running_mean, running_var, weight, bias, eps)
    count = need_several("batch_norm", input)
    y, mean, var = batch_norm_train(input, weight, bias, eps)
    move(running_mean, running_var, mean, var, count, momentum, num_batches_tracked)
    return y


def batch_norm_act(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5,
                   residual=None, num_batches_tracked=None):
    """relu(batch_norm(input, ...) + residual) as one op: the result is written once.

    Arguments and errors as `batch_norm`; residual: like input, or None.

    Example:
        >>> import zoo
        >>> x = zoo.tensor([[1.0], [3.0]])
        >>> zoo.nn.functional.batch_norm_act(x, None, None, training=True).round(decimals=3).tolist()
        [[0.0], [1.0]]
    """
    if not training:
        if running_mean is None or running_var is None:
            raise ArgumentError("batch_norm_act: wants running_mean and running_var when not training, got None")
        return norm_act.batch_norm_act(input, weight, bias, residual, running_mean, running_var, eps)[0]
    count = need_several("batch_norm_act", input)
    y, mean, var = norm_act.batch_norm_act(input, weight, bias, residual, None, None, eps)
    move(running_mean, running_var, mean, var, count, momentum, num_batches_tracked)
    return y


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
                  momentum=0.1, eps=1e-5):
    """Each channel of each sample by its own mean and variance (Ulyanov, Vedaldi and Lempitsky, 2016).

    Arguments as `batch_norm`; with use_input_stats=False by running_mean and running_var.
    """
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise ArgumentError("instance_norm: wants running_mean and running_var without use_input_stats, got None")
        return batch_norm_eval(input, running_mean, running_var, weight, bias, eps)
    if input.ndim < 2:
        raise ShapeError(f"instance_norm: wants (N, C, ...), got {tuple(input.shape)}")
    n, channels = input.shape[:2]
    count = math.prod(input.shape[2:])
    if count == 1:
        raise ArgumentError(f"instance_norm: wants more than 1 spatial element when training, got {tuple(input.shape)}")
    if n * count and (running_mean is not None or running_var is not None):
        _, mean, var = batch_norm_train(reshape(input, (1, n * channels, count)), None, None, eps)
        for running, new, scale in ((running_mean, mean, 1), (running_var, var, count / max(count - 1, 1))):
            if running is not None:
                update(running, OPS["mean"](reshape(new, (n, channels)), 0) * scale, momentum)
    return group_norm(input, channels, weight, bias, eps)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """(input - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions `normalized_shape`.

    weight and bias have that shape or are None; mean and biased variance are each row's own (Ba et al., 2016).

    Raises:
        ShapeError (ValueError, RuntimeError): normalized_shape is not how input's shape ends, or weight or bias differ.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.layer_norm(zoo.tensor([[1.0, 3.0]]), (2,)).round(decimals=3).tolist()
        [[-1.0, 1.0]]
    """
    return rows_norm(input, tuple(normalized_shape), weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """input / sqrt(mean(input^2) + eps) * weight over the trailing `normalized_shape` (Zhang and Sennrich, 2019).

    eps is by default the distance from 1 to the next number of input's dtype.
    """
    shape = tuple(normalized_shape)
    dtype = statistics_dtype(input.dtype)
    if weight is not None and weight.dtype not in (dtype, input.dtype):
        weight = cast(weight, dtype)
    return norm_rms.rms_norm(input, shape, weight, float(np.finfo(dtype).eps) if eps is None else eps)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """input / (k + alpha * the mean of input^2 over `size` neighbouring channels) ** beta (Krizhevsky et al., 2012)."""
    if input.ndim < 3:
        raise ShapeError(f"local_response_norm: wants (N, C, d1 ...), got {tuple(input.shape)}")
    if not math.prod(input.shape):
        return input
    channels = input.shape[1]
    squares = constant_pad_nd(input * input, (*(0,) * 2 * (input.ndim - 2), size // 2, (size - 1) // 2), 0.0)
    total = None
    for i in range(size):
        part = basic_index(squares, (slice(None), slice(i, i + channels)))
        total = part if total is None else total + part
    return input / (total * (alpha / size) + k) ** beta


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """input / max(its p-norm along dim, eps).

    Example:
        >>> import zoo
        >>> zoo.nn.functional.normalize(zoo.tensor([[3.0, 4.0]])).tolist()
        [[0.6000000238418579, 0.800000011920929]]
    """
    norm = OPS["vector_norm"](input, p, dim, True)
    result = input / OPS["maximum"](norm, eps)
    return result if out is None else into(result, out)


def renorm(input, p, dim, maxnorm, *, out=None):
    """Each slice along `dim` whose p-norm is above maxnorm, scaled down to it."""
    if p <= 0 or maxnorm < 0 or input.ndim < 2:
        got = f"{p}, {maxnorm} and {tuple(input.shape)}"
        raise ArgumentError(f"renorm: wants p > 0, maxnorm >= 0 and two dimensions or more, got {got}")
    d = wrap("renorm", dim, input.ndim)
    norms = OPS["vector_norm"](input, p, tuple(i for i in range(input.ndim) if i != d), True)
    factor = OPS["where"](OPS["gt"](norms, maxnorm), maxnorm / (norms + 1e-7), 1.0)
    result = input * cast(factor, input.dtype)
    return result if out is None else into(result, out)


def row_moments(x, dim, eps: float):
    """Mean and 1 / standard deviation along the last dimension, kept."""
    mean = OPS["mean"](x, dim, True)
    d = x - mean
    return mean, OPS["rsqrt"](OPS["mean"](d * d, dim, True) + eps)


def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """`layer_norm`, with the mean and the reciprocal standard deviation of each row."""
    k = len(tuple(normalized_shape))
    y = layer_norm(input, normalized_shape, weight, bias, eps)
    return y, *row_moments(cast(input, statistics_dtype(input.dtype)), tuple(range(-k, 0)), eps)


def native_group_norm(input, weight, bias, N, C, HxW, group, eps):  # noqa: N803  (torch's names)
    """`group_norm`, with the mean and the reciprocal standard deviation of each group."""
    y = group_norm(input, group, weight, bias, eps)
    x = reshape(cast(input, statistics_dtype(input.dtype)), (N, group, C // group * HxW))
    return y, *(reshape(v, (N, group)) for v in row_moments(x, 2, eps))


def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """`batch_norm`, with the mean and the reciprocal standard deviation of the batch; nothing of them in evaluation."""
    if not training:
        nothing = basic_index(running_mean, (slice(0, 0),))
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps), nothing, nothing
    count = need_several("batch_norm", input)
    y, mean, var = batch_norm_train(input, weight, bias, eps)
    move(running_mean, running_var, mean, var, count, momentum)
    return y, mean, OPS["rsqrt"](var + eps)


FUNCTIONS = ("batch_norm", "instance_norm", "layer_norm", "group_norm", "rms_norm", "renorm", "native_layer_norm",
             "native_group_norm", "native_batch_norm")
METHODS = ("renorm",)
NN_FUNCTIONS = ("batch_norm", "batch_norm_act", "instance_norm", "layer_norm", "group_norm", "rms_norm",
                "local_response_norm", "normalize")
INPLACE = ("renorm",)
