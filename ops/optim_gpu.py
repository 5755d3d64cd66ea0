"""Kernels of the optimiser updates: one launch for one parameter, in place.

Hyper-parameters are doubles (a Python float would arrive as float32), so that float64 parameters lose nothing. Whole
blocks take a path without mask: an odd n would make every access scalar.
"""
import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops.dtypes import float64
from zoo.ops.optim import adam_numbers

BLOCK = 1024


@triton.jit
def sgd_block(p, g, b, i, mask, lr, momentum, keep, decay, FIRST: tl.constexpr, NESTEROV: tl.constexpr,
              MAXIMIZE: tl.constexpr, T: tl.constexpr):
    x = tl.load(p + i, mask=mask).to(T)
    d = tl.load(g + i, mask=mask).to(T)
    if MAXIMIZE:
        d = -d
    d += decay.to(T) * x
    if b is not None:
        if FIRST:
            m = d
        else:
            m = momentum.to(T) * tl.load(b + i, mask=mask).to(T) + keep.to(T) * d
        tl.store(b + i, m.to(b.dtype.element_ty), mask=mask)
        if NESTEROV:
            d += momentum.to(T) * m
        else:
            d = m
    tl.store(p + i, (x - lr.to(T) * d).to(p.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["n"])
def sgd_kernel(p, g, b, n, lr: "fp64", momentum: "fp64", keep: "fp64", decay: "fp64",  # noqa: F821
               FIRST: tl.constexpr, NESTEROV: tl.constexpr, MAXIMIZE: tl.constexpr, T: tl.constexpr,
               BLOCK: tl.constexpr):
    """p, g, b: [n], b None without momentum; keep: 1 - dampening; T: what to compute in. Grid: (cdiv(n, BLOCK),)."""
    base = tl.program_id(0).to(tl.int64) * BLOCK
    i = base + tl.arange(0, BLOCK)
    if base + BLOCK <= n:
        sgd_block(p, g, b, i, None, lr, momentum, keep, decay, FIRST, NESTEROV, MAXIMIZE, T)
    else:
        sgd_block(p, g, b, i, i < n, lr, momentum, keep, decay, FIRST, NESTEROV, MAXIMIZE, T)


@triton.jit
def adam_block(p, g, m, v, top, i, mask, beta1, beta2, rest1, rest2, eps, rate, decay, DECOUPLED: tl.constexpr,
               MAXIMIZE: tl.constexpr, T: tl.constexpr):
    x = tl.load(p + i, mask=mask).to(T)
    d = tl.load(g + i, mask=mask).to(T)
    if MAXIMIZE:
        d = -d
    if DECOUPLED:
        x *= decay.to(T)
    else:
        d += decay.to(T) * x
    first = beta1.to(T) * tl.load(m + i, mask=mask).to(T) + rest1.to(T) * d
    second = beta2.to(T) * tl.load(v + i, mask=mask).to(T) + rest2.to(T) * d * d
    tl.store(m + i, first.to(m.dtype.element_ty), mask=mask)
    tl.store(v + i, second.to(v.dtype.element_ty), mask=mask)
    if top is not None:
        second = tl.maximum(second, tl.load(top + i, mask=mask).to(T))
        tl.store(top + i, second.to(top.dtype.element_ty), mask=mask)
    x -= rate.to(T) * first / (tl.sqrt(second) + eps.to(T))
    tl.store(p + i, x.to(p.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["n"])
def adam_kernel(p, g, m, v, top, n, beta1: "fp64", beta2: "fp64", rest1: "fp64", rest2: "fp64",  # noqa: F821
                eps: "fp64", rate: "fp64", decay: "fp64", DECOUPLED: tl.constexpr, MAXIMIZE: tl.constexpr,  # noqa: F821
                T: tl.constexpr, BLOCK: tl.constexpr):
    """p, g, m, v, top: [n], top None without amsgrad; rest: 1 - beta; T: what to compute in.

    Grid: (cdiv(n, BLOCK),).
    """
    base = tl.program_id(0).to(tl.int64) * BLOCK
    i = base + tl.arange(0, BLOCK)
    if base + BLOCK <= n:
        adam_block(p, g, m, v, top, i, None, beta1, beta2, rest1, rest2, eps, rate, decay, DECOUPLED, MAXIMIZE, T)
    else:
        adam_block(p, g, m, v, top, i, i < n, beta1, beta2, rest1, rest2, eps, rate, decay, DECOUPLED, MAXIMIZE, T)


def _launch(kernel, param, *args, **options) -> None:
    """One program for each block of the parameter's elements."""
    n = param.size
    if n:
        T = tl.float64 if param.dtype == float64 else tl.float32
        cuda.launch(kernel, (triton.cdiv(n, BLOCK),), *args, T=T, BLOCK=BLOCK, num_warps=4, **options)


def sgd_update(param, grad, momentum_buffer, first, lr, momentum, dampening, weight_decay, nesterov, maximize) -> None:
    """See ops/optim.py; contiguous arrays of one dtype, except grad, which may be of another."""
    numbers = (lr, momentum, 1 - dampening, weight_decay)
    _launch(sgd_kernel, param, param, grad, momentum_buffer, param.size, *map(float, numbers), FIRST=bool(first),
            NESTEROV=bool(nesterov), MAXIMIZE=bool(maximize))


def adam_update(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step, lr, beta1, beta2, eps, weight_decay, decoupled,
                maximize) -> None:
    """See ops/optim.py; contiguous arrays of one dtype, except grad, which may be of another."""
    beta1, beta2, eps, rate, decay = adam_numbers(step, lr, beta1, beta2, eps, weight_decay, decoupled)
    numbers = (beta1, beta2, 1 - beta1, 1 - beta2, eps, rate, decay)
    _launch(adam_kernel, param, param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, param.size, *map(float, numbers),
            DECOUPLED=bool(decoupled), MAXIMIZE=bool(maximize))
