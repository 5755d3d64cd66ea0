"""Derivatives against finite differences, along random directions in float64."""
from typing import Any

import numpy as np

from zoo.autograd.tensor import Tensor, grad, wrap
from zoo.ops.device import fetch, put
from zoo.ops.dtypes import INEXACT
from zoo.ops.errors import GradError


class GradcheckError(GradError):
    """A derivative that does not agree with finite differences."""


def flat(outputs: Any) -> list[Tensor]:
    outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    return [y for y in outputs if isinstance(y, Tensor) and y.dtype in INEXACT]


def moved(inputs: tuple, steps: list, h: float) -> list:
    steps = iter(steps)
    return [
        wrap(put(np.asarray(fetch(x.array) + h * next(steps)), x.device))
        if isinstance(x, Tensor) and x.requires_grad
        else x
        for x in inputs
    ]


def gradcheck(func, inputs, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
              nondet_tol: float = 0.0, directions: int = 2, **ignored) -> bool:
    """Compares the gradient of `func` with central differences (f(x + eps u) - f(x - eps u)) / 2 eps.

    Along `directions` random directions u of all inputs at once, weighted by a random v over all outputs: two
    evaluations a direction, whatever the size (HIPS autograd's check_vjp). Inputs should be float64.

    Args:
        func: of Tensors, gives a Tensor or a tuple of them.
        inputs: a Tensor or a tuple; those that require grad are checked.
        eps, atol, rtol: step and tolerances. raise_exception: False returns False instead.

    Raises:
        GradcheckError: they differ.

    Example:
        >>> import zoo
        >>> x = zoo.ones(3, dtype=zoo.float64, requires_grad=True)
        >>> zoo.autograd.gradcheck(lambda x: x * x, (x,))
        True
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    wanted = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise ValueError("gradcheck: wants at least one input that requires grad")
    rng = np.random.default_rng(0)
    outputs = flat(func(*inputs))
    for _ in range(directions):
        vs = [rng.normal(size=y.shape) for y in outputs]
        live = [(y, v) for y, v in zip(outputs, vs, strict=True) if y.requires_grad]
        grads = grad([y for y, _ in live], wanted, [wrap(put(np.asarray(v, y.dtype), y.device)) for y, v in live],
                     retain_graph=True, allow_unused=True) if live else [None] * len(wanted)
        us = [rng.normal(size=x.shape) for x in wanted]
        analytic = sum(
            (float((fetch(g.array) * u).sum()) for g, u in zip(grads, us, strict=True) if g is not None), 0.0
        )
        ends = [
            sum(
                float((fetch(y.array).astype(np.float64) * v).sum())
                for y, v in zip(flat(func(*moved(inputs, us, h))), vs, strict=True)
            )
            for h in (eps, -eps)
        ]
        numeric = (ends[0] - ends[1]) / (2 * eps)
        if not abs(analytic - numeric) <= atol + rtol * abs(numeric):
            if raise_exception:
                raise GradcheckError(
                    f"gradcheck: directional derivative is {analytic}, finite differences give {numeric}"
                )
            return False
    return True


def gradgradcheck(func, inputs, grad_outputs=None, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                  raise_exception: bool = True, **options) -> bool:
    """gradcheck of the gradient itself: second derivatives, by `create_graph=True`.

    Raises:
        GradcheckError: they differ.
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    wanted = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    rng = np.random.default_rng(1)
    outputs = flat(func(*inputs))
    if grad_outputs is None:
        given = [wrap(put(np.asarray(rng.normal(size=y.shape), y.dtype), y.device)).requires_grad_() for y in outputs]
    else:
        given = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)

    def first(*args):
        xs, gs = args[:len(inputs)], args[len(inputs):]
        xs = [x.detach().requires_grad_() if i in wanted and not x.requires_grad else x for i, x in enumerate(xs)]
        live = [(y, g) for y, g in zip(flat(func(*xs)), gs, strict=True) if y.requires_grad]
        if not live:
            return tuple(xs[i] * 0 for i in wanted)
        grads = grad(
            [y for y, _ in live], [xs[i] for i in wanted], [g for _, g in live], create_graph=True, allow_unused=True
        )
        return tuple(g if g is not None else xs[i] * 0 for i, g in zip(wanted, grads, strict=True))
    return gradcheck(first, (*inputs, *given), eps, atol, rtol, raise_exception, **options)
