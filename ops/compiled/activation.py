"""Activation functions and their gradients in one pass over flat float32 arrays of 16 elements or more.

The first argument gets the result and has no memory in common with the others: the last 16 elements are computed as
one vector, which may begin within the one before. A masked load there would cost up to five times: with it in the loop,
Zen 5 does not prefetch.

The formulas are those of ops/activation.py; the distribution function of gelu is that of ops/fast_cpu.py, whose
(1 + tanh(u)) / 2 is written as 1 / (1 + exp(-2 u)), which keeps its digits where it is small.
"""
from zoo.ops.compiled.build import inline, kernel, reads, writes
from zoo.ops.compiled.functions import exp
from zoo.ops.compiled.vector import LANES, fma, load, splat, store
from zoo.ops.fast_cpu import NORMAL

A, B, C, D, E, F, G = (float(-2 * c) for c in NORMAL)


@inline
def inverse_of_one_plus(e):
    one = splat(1.0)
    return one / (one + e)


@inline
def sigmoid_of(x):
    return inverse_of_one_plus(exp(splat(0.0) - x))


@inline
def cdf(x):
    """The normal distribution's."""
    z = x * x
    p = fma(splat(A), z, splat(B))
    p = fma(p, z, splat(C))
    p = fma(p, z, splat(D))
    p = fma(p, z, splat(E))
    p = fma(p, z, splat(F))
    return inverse_of_one_plus(exp(x * fma(p, z, splat(G))))


@inline
def nearly_cdf(x):
    """(1 + tanh(0.798 (x + 0.0447 x^3))) / 2."""
    return inverse_of_one_plus(exp(x * fma(x * x, splat(-2 * 0.7978845608028654 * 0.044715),
                                           splat(-2 * 0.7978845608028654))))


@kernel(writes(1), reads(1))
def sigmoid(y, x):
    for k in range(0, y.size, LANES):
        i = min(k, y.size - LANES)
        store(y, i, sigmoid_of(load(x, i, LANES)), LANES)


@kernel(writes(1), reads(1), reads(1))
def sigmoid_dx(d, dy, y):
    for k in range(0, d.size, LANES):
        i = min(k, d.size - LANES)
        s = load(y, i, LANES)
        store(d, i, load(dy, i, LANES) * (s * (splat(1.0) - s)), LANES)


@kernel(writes(1), reads(1), reads(1))
def tanh_dx(d, dy, y):
    for k in range(0, d.size, LANES):
        i = min(k, d.size - LANES)
        t = load(y, i, LANES)
        store(d, i, load(dy, i, LANES) * (splat(1.0) - t * t), LANES)


@kernel(writes(1), reads(1))
def silu(y, x):
    for k in range(0, y.size, LANES):
        i = min(k, y.size - LANES)
        v = load(x, i, LANES)
        store(y, i, v * sigmoid_of(v), LANES)


@kernel(writes(1), reads(1), reads(1))
def silu_dx(d, dy, x):
    for k in range(0, d.size, LANES):
        i = min(k, d.size - LANES)
        v = load(x, i, LANES)
        s = sigmoid_of(v)
        store(d, i, load(dy, i, LANES) * (s * (splat(1.0) + v * (splat(1.0) - s))), LANES)


@kernel(writes(1), reads(1))
def gelu(y, x):
    for k in range(0, y.size, LANES):
        i = min(k, y.size - LANES)
        v = load(x, i, LANES)
        store(y, i, v * cdf(v), LANES)


@kernel(writes(1), reads(1), reads(1))
def gelu_dx(d, dy, x):
    for k in range(0, d.size, LANES):
        i = min(k, d.size - LANES)
        v = load(x, i, LANES)
        density = exp(v * v * splat(-0.5)) * splat(0.3989422804014327)
        store(d, i, load(dy, i, LANES) * fma(v, density, cdf(v)), LANES)


@kernel(writes(1), reads(1))
def gelu_tanh(y, x):
    for k in range(0, y.size, LANES):
        i = min(k, y.size - LANES)
        v = load(x, i, LANES)
        store(y, i, v * nearly_cdf(v), LANES)


@kernel(writes(1), reads(1), reads(1))
def gelu_tanh_dx(d, dy, x):
    """With s = nearly_cdf(x), of 2 u: s + x s (1 - s) d(2 u)/dx."""
    for k in range(0, d.size, LANES):
        i = min(k, d.size - LANES)
        v = load(x, i, LANES)
        s = nearly_cdf(v)
        slope = fma(v * v, splat(6 * 0.7978845608028654 * 0.044715), splat(2 * 0.7978845608028654))
        store(d, i, load(dy, i, LANES) * fma(v * s * (splat(1.0) - s), slope, s), LANES)
