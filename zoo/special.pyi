"""zoo.special's functions. Written by scripts/write_stubs.py: do not edit."""
# pyright: basic, reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false
# pyright: reportOverlappingOverload=false, reportMissingModuleSource=false
from builtins import bool as _bool, float as _float, int as _int, str as _str
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, TypeAlias, overload

import numpy as np

from zoo.autograd.attached import Device, DType, Number, ValuesAndIndices
from zoo.autograd.random import Generator
from zoo.autograd.size import Size
from zoo.autograd.tensor import Tensor
from zoo.ops.device import device
from zoo.ops.memory_format import memory_format

def digamma(input: Tensor, *, out: Any = None) -> Tensor:
    """The derivative of lgamma."""
    ...
def entr(input: Tensor, *, out: Any = None) -> Tensor:
    """-x log(x), 0 at 0 and -inf below: the elements' part in the entropy."""
    ...
def erf(input: Tensor, *, out: Any = None) -> Tensor:
    """2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    ...
def erfc(input: Tensor, *, out: Any = None) -> Tensor:
    """1 - erf(x), accurate for large x."""
    ...
def erfinv(input: Tensor, *, out: Any = None) -> Tensor:
    """The x whose erf(x) is given."""
    ...
def exp2(input: Tensor, *, out: Any = None) -> Tensor:
    """2^x."""
    ...
def expit(input: Tensor, *, out: Any = None) -> Tensor:
    """1 / (1 + exp(-x))."""
    ...
def expm1(input: Tensor, *, out: Any = None) -> Tensor:
    """e^x - 1, accurate near 0."""
    ...
def gammaln(input: Tensor, *, out: Any = None) -> Tensor:
    """log |gamma(x)|."""
    ...
def log1p(input: Tensor, *, out: Any = None) -> Tensor:
    """log(1 + x), accurate near 0."""
    ...
def log_softmax(
    input: Tensor, dim: _int | Sequence[_int] | None = None, dtype: DType | None = None, *, out: Any = None,
) -> Tensor:
    """x - log(sum(exp(x))) along `dim`: the logarithm of `softmax`, without underflow."""
    ...
def logit(input: Tensor, eps: Any = None, *, out: Any = None) -> Tensor:
    """log(x / (1 - x)), of x first moved into [eps, 1 - eps] where eps is given."""
    ...
def logsumexp(input: Tensor, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: Any = None) -> Tensor:
    """log(sum(exp(x))) over `dim` (int or list), without overflow."""
    ...
def multigammaln(input: Tensor, p: _float, *, out: Any = None) -> Tensor:
    """The logarithm of the multivariate gamma function: p (p - 1) / 4 log(pi) + sum over i < p of lgamma(x - i / 2)."""
    ...
def ndtr(input: Tensor, *, out: Any = None) -> Tensor:
    """The area under the normal distribution's curve up to x: erfc(-x / sqrt(2)) / 2."""
    ...
def ndtri(input: Tensor, *, out: Any = None) -> Tensor:
    """The inverse of `ndtr`: sqrt(2) erfinv(2 x - 1)."""
    ...
def polygamma(n: Any, input: Tensor, *, out: Any = None) -> Tensor:
    """The n-th derivative of digamma."""
    ...
def psi(input: Tensor, *, out: Any = None) -> Tensor:
    """The derivative of lgamma."""
    ...
def round(input: Tensor, decimals: Any = 0, *, out: Any = None) -> Tensor:
    """To `decimals` places, halves to the even neighbour; its gradient is 0."""
    ...
def sinc(input: Tensor, *, out: Any = None) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0."""
    ...
def softmax(
    input: Tensor, dim: _int | Sequence[_int] | None = None, dtype: DType | None = None, *, out: Any = None,
) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`."""
    ...
def xlog1py(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """input log(1 + other), and 0 where input is 0."""
    ...
def xlogy(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a log(b), and 0 where a is 0."""
    ...
