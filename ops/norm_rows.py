"""Layer and group normalisation: rows, each by its own mean and variance, two-pass and in float32 or wider."""
import math

import numpy as np

from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.norm import beside, channels_of, check_affine, statistics_dtype, wide
from zoo.ops.norm_rows_cpu import normalized, normalized_grad
from zoo.ops.op import OPS, Spec, structured
from zoo.ops.shape import cast, reshape


def rows_of(op: str, input, normalized_shape) -> tuple[int, int, int]:
    """Input as (rows, 1, elements of normalized_shape), the trailing dimensions of input."""
    shape = tuple(normalized_shape)
    if not shape or tuple(input.shape[-len(shape):]) != shape:
        raise ShapeError(f"{op}: wants an input of shape (..., {', '.join(map(str, shape))}), got {tuple(input.shape)}")
    return math.prod(input.shape[:-len(shape)]), 1, math.prod(shape)


def flat(v, shape: tuple, dtype):
    """A factor for each element of a row, or None."""
    return v if v is None else v.astype(dtype, copy=False).reshape(shape)


@structured
class layer_norm:
    """(input - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions `normalized_shape`.

    weight and bias have that shape or are None; mean and biased variance are each row's own (Ba et al., 2016).

    Raises:
        ShapeError (ValueError, RuntimeError): normalized_shape is not how input's shape ends, or weight or bias differ.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.layer_norm(zoo.tensor([[1.0, 3.0]]), (2,)).round(decimals=3).tolist()
        [[-1.0, 1.0]]
    """
    differentiable = ("input", "weight", "bias")

    def check(input, normalized_shape, weight=None, bias=None, eps=1e-5):
        rows_of("layer_norm", input, normalized_shape)
        check_affine("layer_norm", input, tuple(normalized_shape), weight, bias)
        return Spec(tuple(input.shape), input.dtype)

    def forward(input, normalized_shape, weight=None, bias=None, eps=1e-5):
        layer_norm.check(input, normalized_shape, weight, bias, eps)
        x = np.ascontiguousarray(wide(input)).reshape(rows_of("layer_norm", input, normalized_shape))
        y = normalized(x, flat(weight, x.shape[1:], x.dtype), flat(bias, x.shape[1:], x.dtype), eps)
        return y.reshape(input.shape).astype(input.dtype, copy=False)

    def backward(dy, input, normalized_shape, weight, eps, wanted):
        return layer_norm_grad(dy, input, normalized_shape, weight, eps)

    def samples(rng):
        def case(shape, k):
            tail = shape[-k:]
            return rng.normal(size=shape), tail, rng.uniform(0.5, 2, tail), rng.normal(size=tail), 1e-5
        far = rng.normal(size=(3, 37)) + np.array([[1000.0], [-200.0], [0.0]])
        return {"ordinary": [case((4, 5), 1), case((2, 3, 4), 2), (rng.normal(size=(3, 6)), (6,), None, None, 1e-3)],
                "empty": [case((0, 5), 1), (np.zeros((3, 0)), (0,), None, None, 1e-5)],
                "0-d": "wants a dimension to normalise over", "odd": [case((7, 67), 1), case((3, 1031), 1)],
                "extreme": [(far, (37,), None, None, 1e-5), (np.ones((2, 5)), (5,), None, None, 1e-5)]}


@structured
class layer_norm_grad:
    """Gradients of layer_norm by input, weight and bias."""
    outputs = ("dinput", "dweight", "dbias")

    def check(dy, input, normalized_shape, weight, eps):
        affine = Spec(tuple(normalized_shape), statistics_dtype(input.dtype))
        return Spec(tuple(input.shape), input.dtype), affine, affine

    def forward(dy, input, normalized_shape, weight, eps):
        rows, dtype = rows_of("layer_norm", input, normalized_shape), statistics_dtype(input.dtype)
        x, g = (np.ascontiguousarray(wide(v)).reshape(rows) for v in (input, dy))
        dx, *affine = normalized_grad(g, x, flat(weight, x.shape[1:], x.dtype), eps)
        return dx.reshape(input.shape).astype(input.dtype, copy=False), *(
            v.reshape(tuple(normalized_shape)).astype(dtype) for v in affine)

    def decompose(dy, input, normalized_shape, weight, eps):
        rows, _, width = rows_of("layer_norm", input, normalized_shape)
        dtype = statistics_dtype(input.dtype)
        x, g = (reshape(cast(v, dtype), (rows, width)) for v in (input, dy))
        w = None if weight is None else reshape(cast(weight, dtype), (width,))
        dx, gh = row_gradient(g, x, g if w is None else g * w, eps, 1)
        shape, total = tuple(normalized_shape), OPS["sum"]
        sums = (reshape(total(v, 0), shape) for v in (gh, g))
        return cast(reshape(dx, tuple(input.shape)), input.dtype), *sums

    def samples(rng):
        def case(shape, k, weight=True):
            factor = rng.uniform(0.5, 2, shape[-k:]) if weight else None
            return rng.normal(size=shape), rng.normal(size=shape), shape[-k:], factor, 1e-5
        return {"ordinary": [case((4, 5), 1), case((2, 3, 4), 2, False)], "empty": [case((0, 5), 1)],
                "0-d": "wants a dimension to normalise over", "odd": [case((7, 67), 1), case((3, 1031), 1)],
                "extreme": "as the forward op"}


def row_gradient(dy, x, g, eps, dim: int):
    """In ops: (gradient by x, dy * normalised x), given g = dy * weight; normalised over the last dimension, `dim`."""
    average = OPS["mean"]
    d = x - average(x, dim, True)
    rstd = OPS["rsqrt"](average(d * d, dim, True) + eps)
    h = d * rstd
    return rstd * (g - average(g, dim, True) - h * average(g * h, dim, True)), dy * h


def groups_of(input, num_groups: int) -> tuple[int, int, int]:
    """(N, groups, elements of a group)."""
    channels = channels_of("group_norm", input)
    if num_groups <= 0 or channels % num_groups:
        raise ShapeError(f"group_norm: wants channels that num_groups={num_groups} divides, got {tuple(input.shape)}")
    return input.shape[0], num_groups, math.prod(input.shape[1:]) // num_groups


def repeated(v, input, shape: tuple):
    """v (C,) for each element of a sample of input, as (groups, elements of a group), or None."""
    return v if v is None else np.repeat(wide(v), math.prod(input.shape[2:])).reshape(shape)


@structured
class group_norm:
    """(input - mean) / sqrt(var + eps) * weight + bias over groups of channels of one sample (Wu and He, 2018).

    input (N, C, ...), weight and bias (C,) or None; num_groups divides C.

    Raises:
        ShapeError (ValueError, RuntimeError): num_groups does not divide C, or weight or bias is not (C,).
        ArgumentError (ValueError, RuntimeError): one value is all that a group and the batch have.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.group_norm(zoo.tensor([[1.0, 3.0]]), 1).round(decimals=3).tolist()
        [[-1.0, 1.0]]
    """
    differentiable = ("input", "weight", "bias")

    def check(input, num_groups, weight=None, bias=None, eps=1e-5):
        n, _, size = groups_of(input, num_groups)
        if n * size == 1:
            raise ArgumentError(f"group_norm: wants more than 1 value in a group, got {tuple(input.shape)}")
        check_affine("group_norm", input, (input.shape[1],), weight, bias)
        return Spec(tuple(input.shape), input.dtype)

    def forward(input, num_groups, weight=None, bias=None, eps=1e-5):
        group_norm.check(input, num_groups, weight, bias, eps)
        x = np.ascontiguousarray(wide(input)).reshape(groups_of(input, num_groups))
        y = normalized(x, repeated(weight, input, x.shape[1:]), repeated(bias, input, x.shape[1:]), eps)
        return y.reshape(input.shape).astype(input.dtype, copy=False)

    def backward(dy, input, num_groups, weight, eps, wanted):
        return group_norm_grad(dy, input, num_groups, weight, eps)

    def samples(rng):
        def case(groups, *shape):
            return rng.normal(size=shape), groups, rng.uniform(0.5, 2, shape[1]), rng.normal(size=shape[1]), 1e-5
        far = rng.normal(size=(2, 4, 37)) + np.array([1000.0, 1000.0, 0.0, 0.0])[:, None]
        return {"ordinary": [case(2, 3, 4, 5), case(2, 2, 6), (rng.normal(size=(2, 4, 3, 2)), 4, None, None, 1e-3)],
                "empty": [case(2, 0, 4, 5), (np.zeros((2, 4, 0)), 2, None, None, 1e-5)], "0-d": "wants (N, C, ...)",
                "odd": [case(3, 5, 9, 7), case(1, 2, 3, 211)], "extreme": [(far, 2, None, None, 1e-5)]}


@structured
class group_norm_grad:
    """Gradients of group_norm by input, weight and bias."""
    outputs = ("dinput", "dweight", "dbias")

    def check(dy, input, num_groups, weight, eps):
        affine = Spec(tuple(input.shape[1:2]), statistics_dtype(input.dtype))
        return Spec(tuple(input.shape), input.dtype), affine, affine

    def forward(dy, input, num_groups, weight, eps):
        shape, channels, dtype = groups_of(input, num_groups), input.shape[1], statistics_dtype(input.dtype)
        x, g = (np.ascontiguousarray(wide(v)).reshape(shape) for v in (input, dy))
        dx, *affine = normalized_grad(g, x, repeated(weight, input, x.shape[1:]), eps)
        per = math.prod(input.shape[2:])
        return dx.reshape(input.shape).astype(input.dtype, copy=False), *(
            v.reshape(channels, per).sum(1).astype(dtype) for v in affine)

    def decompose(dy, input, num_groups, weight, eps):
        n, groups, size = groups_of(input, num_groups)
        dtype, channels = statistics_dtype(input.dtype), input.shape[1]
        g = cast(dy, dtype)
        weighted = g if weight is None else g * beside(cast(weight, dtype), input.ndim)
        x, g, weighted = (reshape(v, (n, groups, size)) for v in (cast(input, dtype), g, weighted))
        dx, gh = row_gradient(g, x, weighted, eps, 2)
        by_channel = n, channels, math.prod(input.shape[2:])
        sums = (OPS["sum"](reshape(v, by_channel), (0, 2)) for v in (gh, g))
        return cast(reshape(dx, tuple(input.shape)), input.dtype), *sums

    def samples(rng):
        def case(groups, *shape, weight=True):
            factor = rng.uniform(0.5, 2, shape[1]) if weight else None
            return rng.normal(size=shape), rng.normal(size=shape), groups, factor, 1e-5
        return {"ordinary": [case(2, 3, 4, 5), case(4, 2, 4, 3, weight=False)], "empty": [case(2, 0, 4, 5)],
                "0-d": "wants (N, C, ...)", "odd": [case(3, 5, 9, 7), case(1, 2, 3, 211)],
                "extreme": "as the forward op"}
