"""How a gamma number moves with its parameter: implicit reparametrisation.

For x = F^-1(u; a) with u fixed, dx/da = -(dF/da) / f, F the cdf and f the density of Gamma(a, 1) at x (M. Figurnov,
S. Mohamed and A. Mnih, "Implicit reparameterization gradients", 2018). Here with psi the digamma function,

    -dF/da = integral over t in (0, x) of (psi(a) - log t) f(t) dt = the same over (x, inf) of (log t - psi(a)) f(t) dt.
"""
from typing import Any

import numpy as np

from zoo.autograd.function import Function, once_differentiable
from zoo.autograd.tensor import Tensor
from zoo.ops.dtypes import float64

TERMS = 24                          # of the series for x < 1, whose n-th is below x^n / n!
NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)
DEPTH = 40.0                        # the integrals end where the integrand is exp(-40) of its beginning


class Draws(Function):
    """Hands draws on, with their derivative by the parameter that they were drawn with."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, draws: Tensor) -> Tensor:
        ctx.save_for_backward(a, draws)
        return draws.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple:
        a, draws = ctx.saved_tensors
        return grad * slope(a, draws), None


def slope(a: Tensor, x: Tensor) -> Tensor:
    """dx/da of a draw x from Gamma(a, 1); computed in float64, to 1e-8 of itself."""
    a, x, dtype = a.to(float64), x.to(float64), x.dtype
    small = x < 1
    near = by_series(a, x.where(small, 0.5))
    x, a = x.where(~small, 2.0), a.where(~small, 2.0)
    left = x < a
    below = by_integral(a.where(left, 3.0), x.where(left, 2.0), -1)
    above = by_integral(a.where(~left, 1.0), x.where(~left, 2.0), 1)
    return near.where(small, below.where(left, above)).to(dtype)


def by_series(a: Tensor, x: Tensor) -> Tensor:
    """The series of the cdf, F / f = x sum_n x^n / (a (a + 1) ... (a + n)), differentiated term by term."""
    term, harmonic = 1 / a, 1 / a
    total, weighted = term, term * harmonic
    for n in range(1, TERMS):
        term = term * x / (a + n)
        harmonic = harmonic + 1 / (a + n)
        total, weighted = total + term, weighted + term * harmonic
    return x * ((a.digamma() - x.log()) * total + weighted)


def by_integral(a: Tensor, x: Tensor, side: int) -> Tensor:
    """The integral over t = x exp(side u), u > 0, by Gauss and Legendre; x < a below x (side -1), x >= a above (1).

    Its integrand is x (side (log t - psi(a))) exp(g(u)), with g(u) = a side u - x (exp(side u) - 1): concave, falling.
    """
    if side > 0:                                    # g <= -(x - a) u - x u^2 / 2
        away = x - a
        end = ((away * away + 2 * DEPTH * x).sqrt() - away) / x
    else:                             # g <= -(a - x) u, and g <= -a (u - 1 + exp(-u)) <= -a min(u^2 / 3, 0.367 u)
        end = (3 * DEPTH / a).sqrt().where(a > 3 * DEPTH, DEPTH / 0.367 / a).minimum(DEPTH / (a - x))
    start, total = side * (x.log() - a.digamma()), x * 0
    for node, weight in zip((NODES + 1) / 2, WEIGHTS / 2, strict=True):
        u = end * float(node)
        total = total + float(weight) * (start + u) * (a * side * u - x * (side * u).expm1()).exp()
    return total * end * x
