"""Kernels of few and of many arguments, whose launches are timed by launch.py."""
import triton
import triton.language as tl


@triton.jit
def few(x, y, out, n, factor, BLOCK: tl.constexpr):
    """x, y, out: (n,). Grid: (1,)."""
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + factor * tl.load(y + i, i < n), i < n)


@triton.jit
def many(x, y, out, n, a, b, c, d, e, f, g, h, k, p, q, r, BLOCK: tl.constexpr):
    """x, y, out: (n,). Grid: (1,)."""
    i = tl.arange(0, BLOCK)
    s = a + b + c + d + e + f + g + h + k + p + q + r
    tl.store(out + i, tl.load(x + i, i < n) + s * tl.load(y + i, i < n), i < n)
