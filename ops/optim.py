"""The updates of optimisers, in place on raw arrays: what a step of SGD or Adam does to one parameter.

Not records in the registry: they write into their arguments, and have no derivative. The kernels are in optim_gpu.py.
"""
import functools
import math
import sys
from typing import Any

import numpy as np

from zoo.ops.dtypes import HALVES, float32

CHUNK = 1 << 14          # elements: param, grad, moments and scratch of one chunk stay in the L2 cache


def updates_for(array: Any) -> Any:
    """The module whose updates take this array: this one, or that of the kernels."""
    if type(array) is np.ndarray:
        return sys.modules[__name__]
    from zoo.ops import optim_gpu
    return optim_gpu


@functools.lru_cache(256)
def number(x: float, dtype: np.dtype) -> np.ndarray:
    """A hyper-parameter as a 0-d array: NumPy multiplies by it in half the time that a Python number takes."""
    return np.array(x, dtype)


def in_chunks(update: Any, arrays: tuple, *options: Any) -> None:
    """Runs update(*arrays, scratch, *options) on flat pieces; half types are computed in float32 and rounded once."""
    n, dtype = arrays[0].size, arrays[0].dtype
    if n <= CHUNK and dtype not in HALVES:
        update(*arrays, np.empty(n, dtype), *options)
        return
    scratch = np.empty(min(n, CHUNK), float32 if dtype in HALVES else dtype)
    for start in range(0, n, CHUNK):
        parts = [a if a is None else a[start:start + CHUNK] for a in arrays]
        wide = [p if p is None else p.astype(scratch.dtype) for p in parts] if dtype in HALVES else parts
        update(*wide, scratch[:parts[0].size], *options)
        if wide is not parts:
            for part, w in zip(parts[:1] + parts[2:], wide[:1] + wide[2:], strict=True):
                if part is not None:
                    part[...] = w


def sgd_update(param, grad, momentum_buffer, first: bool, lr: float, momentum: float, dampening: float,
               weight_decay: float, nesterov: bool, maximize: bool) -> None:
    """One step of SGD in place on param and momentum_buffer.

    g = grad + weight_decay * param (-grad to maximize); b = momentum * b + (1 - dampening) * g, or g in the `first`
    step; param -= lr * (g + momentum * b if nesterov else b). Without momentum b is g, and momentum_buffer None.

    Shapes: flat (n,), all of param's dtype.
    """
    in_chunks(sgd_chunk, (param, grad, momentum_buffer), first, lr, momentum, dampening, weight_decay, nesterov,
              maximize)


def sgd_chunk(p, g, b, u, first, lr, momentum, dampening, weight_decay, nesterov, maximize) -> None:
    if weight_decay:
        np.multiply(p, number(-weight_decay if maximize else weight_decay, u.dtype), u)
        u += g
        g = u
    if maximize:
        g = np.negative(g, u)
    if b is not None:
        if first:
            b[...] = g
        else:
            b *= number(momentum, u.dtype)
            b += g * number(1 - dampening, u.dtype) if dampening else g
        if nesterov:
            g = np.add(g, b * number(momentum, u.dtype), u)
        else:
            g = b
    p -= np.multiply(g, number(lr, u.dtype), u)


def adam_update(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step: int, lr: float, beta1: float, beta2: float,
                eps: float, weight_decay: float, decoupled: bool, maximize: bool) -> None:
    """One step of Adam (Kingma and Ba, 2014) or AdamW (`decoupled`; Loshchilov and Hutter, 2017) in place.

    m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
    param -= lr / (1 - beta1^step) * m / (sqrt(v / (1 - beta2^step)) + eps).
    Weight decay adds weight_decay * param to g, or, decoupled, first shrinks param by lr * weight_decay. With
    max_exp_avg_sq (amsgrad) its running maximum takes the place of v.

    Shapes: flat (n,), all of param's dtype.
    """
    in_chunks(adam_chunk, (param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq),
              *adam_numbers(step, lr, beta1, beta2, eps, weight_decay, decoupled), decoupled, maximize)


def adam_numbers(step: int, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
                 decoupled: bool) -> tuple:
    """(beta1, beta2, eps', rate', decay): the bias corrections are folded into eps and the rate.

    lr / c1 * m / (sqrt(v) / c2 + eps) = (lr c2 / c1) * m / (sqrt(v) + eps c2)
    with c1 = 1 - beta1^t and c2 = sqrt(1 - beta2^t).
    """
    c1, c2 = 1 - beta1**step, math.sqrt(1 - beta2**step)
    return beta1, beta2, eps * c2, lr * c2 / c1, 1 - lr * weight_decay if decoupled else weight_decay


def adam_chunk(p, g, m, v, top, u, beta1, beta2, eps, rate, decay, decoupled, maximize) -> None:
    if decoupled:
        if decay != 1:
            p *= number(decay, p.dtype)
        g = np.negative(g) if maximize else g
    elif decay or maximize:
        g = np.add(-g if maximize else g, p * number(decay, p.dtype))
    np.subtract(g, m, u)
    u *= number(1 - beta1, u.dtype)
    m += u                                     # m + (1 - beta1) (g - m)
    np.multiply(g, g, u)
    u *= number(1 - beta2, u.dtype)
    v *= number(beta2, u.dtype)
    v += u
    if top is not None:
        v = np.maximum(top, v, out=top)
    np.sqrt(v, u)
    u += np.array(eps, u.dtype)
    np.divide(m, u, u)
    u *= np.array(rate, u.dtype)
    p -= u
