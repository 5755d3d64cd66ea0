"""Batch norm, residual and relu as one op for training: the result is written once, and the gradient masked once."""
import numpy as np

from zoo.ops.dtypes import FLOATS
from zoo.ops.errors import ArgumentError, DtypeError, ShapeError
from zoo.ops.norm import (
    FAR,
    batch_norm_eval,
    batch_norm_train,
    blocked,
    channels_of,
    check_affine,
    per_channel,
    statistics_dtype,
    wide,
)
from zoo.ops.norm_cpu import NEAR, backward_sums, combined, layout, moments_of, scaled
from zoo.ops.op import OPS, Both, Spec, structured
from zoo.ops.shape import cast


def check_residual(op: str, input, residual) -> None:
    if residual is not None and (tuple(residual.shape) != tuple(input.shape) or residual.dtype != input.dtype):
        wanted, got = f"{tuple(input.shape)} of {input.dtype}", f"{tuple(residual.shape)} of {residual.dtype}"
        raise ShapeError(f"{op}: wants a residual like the input, {wanted}, got {got}")


def check_statistics(op: str, input, running_mean, running_var) -> None:
    if (running_mean is None) != (running_var is None):
        raise ArgumentError(f"{op}: wants both running_mean and running_var, or neither")
    for name, v in (("running_mean", running_mean), ("running_var", running_var)):
        if v is not None and tuple(v.shape) != (input.shape[1],):
            got = f"{tuple(v.shape)} for input {tuple(input.shape)}"
            raise ShapeError(f"{op}: wants {name} {(input.shape[1],)}, got {got}")
        if v is not None and v.dtype not in FLOATS:
            raise DtypeError(f"{op}: wants a floating {name}, got {v.dtype}")


@structured
class batch_norm_act:
    """relu((input - mean) / sqrt(var + eps) * weight + bias + residual), in one op.

    mean and biased var of each channel of the batch, or running_mean and running_var where these are given, which have
    no gradient. input (N, C, ...), weight and bias (C,) or None, residual like input or None, running_mean and
    running_var (C,) or None -> y like input, and what was used: mean (C,), var (C,), for the backward pass and for the
    running statistics.

    Raises:
        ShapeError, DtypeError: arguments that do not fit together. ArgumentError: one running statistic without the
            other.
    """
    outputs, reserve, adds = ("y", "mean", "var"), ("mean", "var"), True
    differentiable = ("input", "weight", "bias", "residual")

    def check(input, weight=None, bias=None, residual=None, running_mean=None, running_var=None, eps=1e-5):
        channels = channels_of("batch_norm_act", input)
        check_affine("batch_norm_act", input, (channels,), weight, bias)
        check_residual("batch_norm_act", input, residual)
        check_statistics("batch_norm_act", input, running_mean, running_var)
        moment = Spec((channels,), statistics_dtype(input.dtype))
        return Spec(tuple(input.shape), input.dtype), moment, moment

    def forward(input, weight=None, bias=None, residual=None, running_mean=None, running_var=None, eps=1e-5):
        out, moment, _ = batch_norm_act.check(input, weight, bias, residual, running_mean, running_var, eps)
        channels, given = input.shape[1], running_mean is not None
        if not input.size:
            nan = np.full(channels, np.nan, moment.dtype)
            mean, var = (running_mean, running_var) if given else (nan, nan)
            return np.empty(out.shape, out.dtype), mean.astype(moment.dtype), var.astype(moment.dtype)
        x3, restore = blocked(wide(input))
        view = layout(x3.shape)
        x = x3.reshape(view.shape)
        mean, var = (v.astype(np.float64) for v in (running_mean, running_var)) if given else moments_of(x, view)
        rest = None if residual is None else blocked(wide(residual), input)[0].reshape(view.shape)
        rstd = 1 / np.sqrt(var + eps)
        factor, shift = per_channel(weight, channels, 1.0) * rstd, per_channel(bias, channels, 0.0)
        far = bool((np.abs(mean) * rstd > FAR).any())
        center, shift = (mean, shift) if far else (None, shift - mean * factor)
        y = scaled(x, view, factor, shift, center, rest, relu=True)
        return restore(y).astype(out.dtype, copy=False), mean.astype(moment.dtype), var.astype(moment.dtype)

    def decompose(input, weight=None, bias=None, residual=None, running_mean=None, running_var=None, eps=1e-5):
        if running_mean is None:
            y, mean, var = batch_norm_train(input, weight, bias, eps)
        else:
            mean, var = (cast(v, statistics_dtype(input.dtype)) for v in (running_mean, running_var))
            y = batch_norm_eval(input, mean, var, weight, bias, eps)
        return OPS["relu"](y if residual is None else y + residual), mean, var

    def backward(dy, input, weight, bias, residual_shape, running_mean, y, mean, var, eps, wanted):
        batch = running_mean is None
        dy, more = dy if type(dy) is Both else (dy, None)
        if residual_shape is None:
            dy = dy if more is None else OPS["add"](dy, more)
            return *batch_norm_relu_grad(dy, input, weight, bias, y, mean, var, eps, batch), None
        return batch_norm_act_grad(dy, input, weight, y, mean, var, eps, batch, more)

    def samples(rng):
        def case(*shape, affine=True, residual=True, running=False, eps=1e-5):
            c = shape[1]
            return (rng.normal(size=shape), rng.uniform(0.5, 2, c) if affine else None,
                    rng.normal(size=c) if affine else None, rng.normal(size=shape) if residual else None,
                    rng.normal(size=c) if running else None, rng.uniform(0.5, 2, c) if running else None, eps)
        far = rng.normal(size=(4, 3, 5)) + np.array([1000.0, -200.0, 0.0])[:, None]
        return {"ordinary": [case(4, 3, 5), case(6, 5, residual=False), case(2, 3, 4, 5, affine=False, eps=1e-3),
                             case(3, 4, 6, running=True), case(5, 2, residual=False, running=True)],
                "empty": [case(0, 3, 5), case(2, 0, 5), case(0, 3, 5, running=True)], "0-d": "wants (N, C, ...)",
                "odd": [case(3, 7, 13), case(31, 5), case(2, 3, 211), case(3, 2, 211, running=True)],
                "extreme": [(far, None, None, None, None, None, 1e-5),
                            (np.ones((4, 3, 2)), None, None, np.ones((4, 3, 2)), None, None, 1e-5)]}


def gradients(dy, input, weight, y, mean, var, eps, batch: bool):
    """(dinput, dweight, dbias, dy where y > 0), of NumPy arrays."""
    channels, dtype = input.shape[1], statistics_dtype(input.dtype)
    if not input.size:
        zeros = np.zeros((2, channels), dtype)
        return np.empty(input.shape, input.dtype), *zeros, np.empty(input.shape, input.dtype)
    (x3, restore), (g3, _), (y3, _) = blocked(wide(input)), blocked(wide(dy), input), blocked(wide(y), input)
    view = layout(x3.shape)
    x, g, y = (v.reshape(view.shape) for v in (x3, g3, y3))
    mu, rstd = mean.astype(np.float64), 1 / np.sqrt(var.astype(np.float64) + eps)
    apart = np.abs(mu) * rstd
    g, dbias, dweight = backward_sums(g, x, view, mu, bool((apart <= NEAR).all()), y)
    dweight *= rstd
    a = per_channel(weight, channels, 1.0) * rstd
    if batch:
        b, c = -a * rstd * dweight / view.count, -a * dbias / view.count
        far = bool((apart > FAR).any())
        dx = combined(g, x, view, a, b, c, mu) if far else combined(g, x, view, a, b, c - b * mu)
    else:
        dx = scaled(g, view, a, np.zeros(channels))
    dx, g = (restore(v).astype(input.dtype, copy=False) for v in (dx, g))
    return dx, dweight.astype(dtype), dbias.astype(dtype), g


def gradients_in_ops(dy, input, weight, y, mean, var, eps, batch: bool):
    """The same in ops."""
    g = OPS["where"](OPS["le"](y, 0.0), 0.0, dy)
    if batch:
        return *OPS["batch_norm_train_grad"](g, None, None, input, weight, mean, var, eps), g
    backward, dtype = OPS["batch_norm_eval"].derivatives, statistics_dtype(input.dtype)
    x, h, mean, var = (cast(v, dtype) for v in (input, g, mean, var))
    weight = weight if weight is None else cast(weight, dtype)
    return (cast(backward["input"](h, var, weight, eps), input.dtype), backward["weight"](h, x, mean, var, eps),
            backward["bias"](h), g)


@structured
class batch_norm_act_grad:
    """Gradients of batch_norm_act by input, weight, bias and residual, given that of y.

    dy, input and y (N, C, ...), weight (C,) or None, mean and var (C,); batch: these are the input's own, and their
    derivatives are in the result; more: another gradient of y, to be added to dy, or None -> like input, (C,), (C,),
    like input: dy where y > 0, the gradient of the residual.
    """
    outputs = ("dinput", "dweight", "dbias", "dresidual")

    def check(dy, input, weight, y, mean, var, eps, batch, more=None):
        affine, image = Spec(mean.shape, statistics_dtype(input.dtype)), Spec(tuple(input.shape), input.dtype)
        return image, affine, affine, image

    def forward(dy, input, weight, y, mean, var, eps, batch, more=None):
        return gradients(dy if more is None else dy + more, input, weight, y, mean, var, eps, batch)

    def decompose(dy, input, weight, y, mean, var, eps, batch, more=None):
        return gradients_in_ops(dy if more is None else dy + more, input, weight, y, mean, var, eps, batch)

    def samples(rng):
        def case(*shape, weight=True, batch=True):
            x, c = rng.normal(size=shape), shape[1]
            dims = (0, *range(2, len(shape)))
            return (rng.normal(size=shape), x, rng.uniform(0.5, 2, c) if weight else None,
                    np.maximum(rng.normal(size=shape), 0), x.mean(dims), x.var(dims), 1e-5, batch)
        return {"ordinary": [case(4, 3, 5), case(6, 5, weight=False), case(3, 4, 6, batch=False),
                             (*case(4, 3, 5), rng.normal(size=(4, 3, 5)))],
                "empty": [(*np.zeros((2, 0, 3)), None, np.zeros((0, 3)), np.zeros(3), np.ones(3), 1e-5, True)],
                "0-d": "wants (N, C, ...)", "odd": [case(3, 7, 13), case(2, 3, 211)], "extreme": "as the forward op"}


@structured
class batch_norm_relu_grad:
    """Gradients of batch_norm_act without residual by input, weight and bias, given that of y = batch_norm_act(input).

    The arguments of batch_norm_act_grad, and bias (C,) or None: where relu let nothing through is written in y, and can
    be worked out again from the others -> like input, (C,), (C,).
    """
    outputs = ("dinput", "dweight", "dbias")

    def check(dy, input, weight, bias, y, mean, var, eps, batch):
        affine = Spec(mean.shape, statistics_dtype(input.dtype))
        return Spec(tuple(input.shape), input.dtype), affine, affine

    def forward(dy, input, weight, bias, y, mean, var, eps, batch):
        return gradients(dy, input, weight, y, mean, var, eps, batch)[:3]

    def decompose(dy, input, weight, bias, y, mean, var, eps, batch):
        return gradients_in_ops(dy, input, weight, y, mean, var, eps, batch)[:3]

    def samples(rng):
        def case(*shape, affine=True, batch=True):
            c, dims = shape[1], (0, *range(2, len(shape)))
            # far from where relu bends, also when half types round: half of the values near 1, the others near -1
            signs = rng.permutation(np.resize([1.0, -1.0], np.prod(shape) // c)).reshape(shape[0], 1, *shape[2:])
            x = signs * rng.uniform(0.8, 1.2, shape)
            weight, bias = (rng.uniform(0.5, 2, c), rng.uniform(-0.05, 0.05, c)) if affine else (None, None)
            mean, var = x.mean(dims), x.var(dims)
            y = batch_norm_act(x, weight, bias, None, mean, var, 1e-5)[0]
            return rng.normal(size=shape), x, weight, bias, y, mean, var, 1e-5, batch
        return {"ordinary": [case(4, 3, 5), case(6, 5, affine=False), case(3, 4, 6, batch=False)],
                "empty": [(*np.zeros((2, 0, 3)), None, None, np.zeros((0, 3)), np.zeros(3), np.ones(3), 1e-5, True)],
                "0-d": "wants (N, C, ...)", "odd": [case(3, 7, 13), case(2, 3, 211)], "extreme": "as the forward op"}
