"""Batch normalisation, one op with one joint gradient; layer and group norm are in norm_rows.py.

Statistics are those of the biased variance, two-pass or merged, and computed in float32 or wider.
"""
import math

import numpy as np

from zoo.ops.dtypes import FLOATS, HALVES, float32
from zoo.ops.errors import DtypeError, ShapeError
from zoo.ops.norm_cpu import NEAR, backward_sums, combined, layout, moments_of, scaled
from zoo.ops.op import OPS, Spec, structured
from zoo.ops.shape import cast, reshape

FAR = 64.0            # |mean| / standard deviation from which x * a + b would lose digits: then (x - mean) * a + b


def statistics_dtype(dtype) -> np.dtype:
    """The dtype of means and variances."""
    return float32 if dtype in HALVES else dtype


def wide(x):
    """Halves as float32."""
    return x.astype(float32) if x is not None and x.dtype in HALVES else x


def check_affine(op: str, input, shape: tuple, *factors) -> None:
    """Raises unless input is floating and weight and bias have the wanted shape, or are None."""
    if input.dtype not in FLOATS:
        raise DtypeError(f"{op}: wants a floating input, got {input.dtype}")
    for name, f in zip(("weight", "bias"), factors, strict=False):
        if f is not None and tuple(f.shape) != shape:
            raise ShapeError(f"{op}: wants {name} {shape}, got {tuple(f.shape)} for input {tuple(input.shape)}")
        if f is not None and f.dtype != input.dtype and f.dtype != statistics_dtype(input.dtype):
            raise DtypeError(f"{op}: wants {name} of {input.dtype}, got {f.dtype}")


def channels_of(op: str, input) -> int:
    if input.ndim < 2:
        raise ShapeError(f"{op}: wants (N, C, ...), got {tuple(input.shape)}")
    return input.shape[1]


def beside(v, ndim: int, dim: int = 1):
    """v (C,) in the shape in which it broadcasts along a dimension of an array of ndim dimensions; None stays None."""
    return v if v is None else reshape(v, (*(1,) * dim, v.shape[0], *(1,) * (ndim - dim - 1)))


def blocked(x, like=None):
    """x (N, C, ...) as a dense (N', C, L), and how to go back: channels that lie last in memory stay there."""
    like = x if like is None else like
    if like.ndim > 2 and not like.flags.c_contiguous:
        last = (0, *range(2, like.ndim), 1)
        moved = like.transpose(last)
        if moved.flags.c_contiguous:
            back = (0, like.ndim - 1, *range(1, like.ndim - 1))
            x3 = np.ascontiguousarray(x.transpose(last)).reshape(-1, x.shape[1], 1)
            return x3, lambda y: y.reshape(moved.shape).transpose(back)
    x3 = np.ascontiguousarray(x).reshape(*x.shape[:2], math.prod(x.shape[2:]))
    return x3, lambda y: y.reshape(like.shape)


def per_channel(v, channels: int, default: float) -> np.ndarray:
    return np.full(channels, default) if v is None else v.astype(np.float64)


@structured
class batch_norm_train:
    """(input - mean) / sqrt(var + eps) * weight + bias, with mean and biased variance of each channel of the batch.

    input (N, C, ...), weight and bias (C,) or None -> y like input, mean (C,), var (C,).
    """
    outputs, idle = ("y", "mean", "var"), True
    differentiable = ("input", "weight", "bias")

    def check(input, weight=None, bias=None, eps=1e-5):
        channels = channels_of("batch_norm", input)
        check_affine("batch_norm", input, (channels,), weight, bias)
        moment = Spec((channels,), statistics_dtype(input.dtype))
        return Spec(tuple(input.shape), input.dtype), moment, moment

    def forward(input, weight=None, bias=None, eps=1e-5):
        out, moment, _ = batch_norm_train.check(input, weight, bias, eps)
        channels = input.shape[1]
        if not input.size:
            nan = np.full(channels, np.nan, moment.dtype)
            return np.empty(out.shape, out.dtype), nan, nan.copy()
        x3, restore = blocked(wide(input))
        view = layout(x3.shape)
        x = x3.reshape(view.shape)
        mean, var = moments_of(x, view)
        rstd = 1 / np.sqrt(var + eps)
        factor, shift = per_channel(weight, channels, 1.0) * rstd, per_channel(bias, channels, 0.0)
        far = bool((np.abs(mean) * rstd > FAR).any())
        y = scaled(x, view, factor, shift, mean) if far else scaled(x, view, factor, shift - mean * factor)
        return restore(y).astype(out.dtype, copy=False), mean.astype(moment.dtype), var.astype(moment.dtype)

    def backward(dy, dmean, dvar, input, weight, mean, var, eps, wanted):
        return batch_norm_train_grad(dy, dmean, dvar, input, weight, mean, var, eps)

    def samples(rng):
        def case(*shape):
            return rng.normal(size=shape), rng.uniform(0.5, 2, shape[1]), rng.normal(size=shape[1]), 1e-5
        far = rng.normal(size=(4, 3, 5)) + np.array([1000.0, -200.0, 0.0])[:, None]
        return {"ordinary": [case(4, 3, 5), case(6, 5), (rng.normal(size=(2, 3, 4, 5)), None, None, 1e-3),
                             (rng.normal(size=(3, 2, 4)), rng.normal(size=2), None, 1e-5)],
                "empty": [case(0, 3, 5), case(2, 0, 5)], "0-d": "wants (N, C, ...)",
                "odd": [case(3, 7, 13), case(31, 5), case(2, 3, 211)],
                "extreme": [(far, None, None, 1e-5), (np.ones((4, 3, 2)), None, None, 1e-5)]}


@structured
class batch_norm_train_grad:
    """Gradients of batch_norm_train by input, weight and bias, given those of y, mean and var or None."""
    outputs = ("dinput", "dweight", "dbias")

    def check(dy, dmean, dvar, input, weight, mean, var, eps):
        affine = Spec(mean.shape, statistics_dtype(input.dtype))
        return Spec(tuple(input.shape), input.dtype), affine, affine

    def forward(dy, dmean, dvar, input, weight, mean, var, eps):
        channels, dtype = input.shape[1], statistics_dtype(input.dtype)
        if not input.size:
            return np.empty(input.shape, input.dtype), *(np.zeros(channels, dtype) for _ in "wb")
        (x3, restore), (g3, _) = blocked(wide(input)), blocked(wide(dy), input)
        view = layout(x3.shape)
        x, g = x3.reshape(view.shape), g3.reshape(view.shape)
        mu, n = mean.astype(np.float64), view.count
        rstd = 1 / np.sqrt(var.astype(np.float64) + eps)
        apart = np.abs(mu) * rstd
        _, dbias, dweight = backward_sums(g, x, view, mu, near=bool((apart <= NEAR).all()))
        dweight *= rstd
        a = per_channel(weight, channels, 1.0) * rstd
        b, c = (-a * sums / n for sums in (rstd * dweight, dbias))
        if dvar is not None:
            b += 2 / n * dvar.astype(np.float64)
        if dmean is not None:
            c += dmean.astype(np.float64) / n
        far = bool((apart > FAR).any())
        dx = combined(g, x, view, a, b, c, mu) if far else combined(g, x, view, a, b, c - b * mu)
        return restore(dx).astype(input.dtype, copy=False), dweight.astype(dtype), dbias.astype(dtype)

    def decompose(dy, dmean, dvar, input, weight, mean, var, eps):
        # mean and var anew, from the input: so their own derivatives are in it
        average, total = OPS["mean"], OPS["sum"]
        dtype, ndim = statistics_dtype(input.dtype), input.ndim
        x, g = cast(input, dtype), cast(dy, dtype)
        dims = (0, *range(2, ndim))
        n = max(math.prod(input.shape) // max(input.shape[1], 1), 1)
        d = x - average(x, dims, True)
        rstd = OPS["rsqrt"](average(d * d, dims, True) + eps)
        h = d * rstd
        dweight, dbias = total(g * h, dims), total(g, dims)
        if weight is not None:
            g = g * beside(cast(weight, dtype), ndim)
        dx = rstd * (g - average(g, dims, True) - h * average(g * h, dims, True))
        if dmean is not None:
            dx = dx + beside(dmean, ndim) * (1 / n)
        if dvar is not None:
            dx = dx + beside(dvar, ndim) * d * (2 / n)
        return cast(dx, input.dtype), dweight, dbias

    def samples(rng):
        def case(*shape, weight=True, moments=True):
            x = rng.normal(size=shape)
            dims, c = (0, *range(2, len(shape))), shape[1]
            of_moments = rng.normal(size=(2, c)) if moments else (None, None)
            return (rng.normal(size=shape), *of_moments, x, rng.uniform(0.5, 2, c) if weight else None, x.mean(dims),
                    x.var(dims), 1e-5)
        return {"ordinary": [case(4, 3, 5), case(6, 5, weight=False), case(3, 4, 6, moments=False)],
                "empty": [(np.zeros((0, 3)), *np.zeros((2, 3)), np.zeros((0, 3)), None, np.zeros(3), np.ones(3), 1e-5)],
                "0-d": "wants (N, C, ...)", "odd": [case(3, 7, 13), case(2, 3, 211)], "extreme": "as the forward op"}


@structured
class batch_norm_eval:
    """(input - mean) / sqrt(var + eps) * weight + bias, with given mean (C,) or None, and var (C,)."""
    def check(input, mean, var, weight=None, bias=None, eps=1e-5):
        channels = channels_of("batch_norm", input)
        check_affine("batch_norm", input, (channels,), weight, bias)
        for name, v in (("running_mean", mean), ("running_var", var)):
            if v is not None and tuple(v.shape) != (channels,):
                got = f"{tuple(v.shape)} for input {tuple(input.shape)}"
                raise ShapeError(f"batch_norm: wants {name} {(channels,)}, got {got}")
        return Spec(tuple(input.shape), input.dtype)

    def forward(input, mean, var, weight=None, bias=None, eps=1e-5):
        batch_norm_eval.check(input, mean, var, weight, bias, eps)
        if not input.size:
            return np.empty(input.shape, input.dtype)
        x3, restore = blocked(wide(input))
        view, channels = layout(x3.shape), input.shape[1]
        rstd, mu = 1 / np.sqrt(var.astype(np.float64) + eps), per_channel(mean, channels, 0.0)
        factor, shift = per_channel(weight, channels, 1.0) * rstd, per_channel(bias, channels, 0.0)
        x = x3.reshape(view.shape)
        far = bool((np.abs(mu) * rstd > FAR).any())
        y = scaled(x, view, factor, shift, mu) if far else scaled(x, view, factor, shift - mu * factor)
        return restore(y).astype(input.dtype, copy=False)

    def dinput(dy, var, weight, eps):
        return batch_norm_eval(dy, None, var, weight, None, eps)

    def dmean(dy, var, weight, eps):
        factor = OPS["rsqrt"](var + eps) * -1.0
        total = OPS["sum"](dy, (0, *range(2, dy.ndim)))
        return total * (factor if weight is None else factor * weight)

    def dvar(dy, input, mean, var, weight, eps):
        factor = -0.5 / (var + eps)
        total = batch_norm_weight_grad(dy, input, mean, var, eps)
        return total * (factor if weight is None else factor * weight)

    def dweight(dy, input, mean, var, eps): return batch_norm_weight_grad(dy, input, mean, var, eps)

    def dbias(dy): return OPS["sum"](dy, (0, *range(2, dy.ndim)))

    def samples(rng):
        def case(*shape):
            c = shape[1]
            return (rng.normal(size=shape), rng.normal(size=c), rng.uniform(0.5, 2, c), rng.uniform(0.5, 2, c),
                    rng.normal(size=c), 1e-5)
        x, _, *rest = case(3, 4, 2)
        return {"ordinary": [case(4, 3, 5), case(6, 5), (*case(2, 3, 4, 5)[:3], None, None, 1e-3), (x, None, *rest)],
                "empty": [case(0, 3, 5)], "0-d": "wants (N, C, ...)", "odd": [case(3, 7, 13), case(2, 3, 211)],
                "extreme": [(np.array([[np.inf, 1e4], [np.nan, -1e4]]), np.zeros(2), np.array([1.0, 0.0]), None, None,
                             1e-5)]}


@structured
class batch_norm_weight_grad:
    """The gradient by weight of batch_norm_eval: the sum of dy * (input - mean) / sqrt(var + eps) for each channel.

    dy, input (N, C, ...), mean (C,) or None, var (C,) -> (C,).
    """
    def check(dy, input, mean, var, eps):
        return Spec(tuple(var.shape), statistics_dtype(input.dtype))

    def forward(dy, input, mean, var, eps):
        channels, dtype = input.shape[1], statistics_dtype(input.dtype)
        if not input.size:
            return np.zeros(channels, dtype)
        (x3, _), (g3, _) = blocked(wide(input)), blocked(wide(dy), input)
        view = layout(x3.shape)
        mu, rstd = per_channel(mean, channels, 0.0), 1 / np.sqrt(var.astype(np.float64) + eps)
        near = bool((np.abs(mu) * rstd <= NEAR).all())
        return (backward_sums(g3.reshape(view.shape), x3.reshape(view.shape), view, mu, near)[2] * rstd).astype(dtype)

    def decompose(dy, input, mean, var, eps):
        dtype = statistics_dtype(input.dtype)
        x = cast(input, dtype)
        d = x if mean is None else x - beside(mean, input.ndim)
        return OPS["sum"](cast(dy, dtype) * d, (0, *range(2, input.ndim))) * OPS["rsqrt"](var + eps)

    def samples(rng):
        def case(*shape, mean=True):
            return (*rng.normal(size=(2, *shape)), rng.normal(size=shape[1]) if mean else None,
                    rng.uniform(0.5, 2, shape[1]), 1e-5)
        return {"ordinary": [case(4, 3, 5), case(6, 5), case(2, 3, 4, 5, mean=False)], "empty": [case(0, 3, 5)],
                "0-d": "wants (N, C, ...)", "odd": [case(3, 7, 13), case(2, 3, 211)], "extreme": "as the forward op"}
