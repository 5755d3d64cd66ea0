"""How fast a GPU could be at best: bytes that have to move, operations that have to be done. Pure functions."""
from typing import NamedTuple


class Peak(NamedTuple):
    """Measured limits of a GPU: bytes per second of a copy, operations per second by dtype."""

    copy: float
    flops: dict[str, float]


# shared facts: a copy and cubes of 8192 on one H200; tf32 at half of bfloat16's rate, as its data sheet says
PEAKS = {"H200": Peak(4.3e12, {"bfloat16": 790e12, "float32": 395e12})}


class Cost(NamedTuple):
    """What a call has to do at least."""

    flops: float
    nbytes: float
    dtype: str = "bfloat16"


def peak_of(gpu: str) -> Peak | None:
    """The limits of a GPU by its name; None if nobody measured them, and of a part of one (MIG)."""
    return next((peak for name, peak in PEAKS.items() if name in gpu and "MIG" not in gpu), None)


def floor_ms(cost: Cost, peak: Peak) -> float:
    """Milliseconds below which no kernel can be: the longer of moving the bytes and doing the operations."""
    return max(cost.nbytes / peak.copy, cost.flops / peak.flops[cost.dtype]) * 1e3


def gemm(m: int, n: int, k: int, dtype: str = "bfloat16") -> Cost:
    """(m, k) @ (k, n)."""
    width = 2 if dtype == "bfloat16" else 4
    return Cost(2.0 * m * n * k, width * (m * k + k * n + m * n), dtype)


def conv(n: int, c: int, k: int, r: int, stride: int, side: int) -> Cost:
    """A convolution (k, c, r, r) over (n, c, side, side), or one of its gradients: each array once, in bfloat16."""
    out = -(-side // stride)
    return Cost(2.0 * n * out * out * k * c * r * r, 2.0 * (n * c * side * side + n * k * out * out + k * c * r * r))


def moved(elements: float, arrays: float, width: int = 2) -> Cost:
    """A call that reads and writes `arrays` arrays of so many elements, and computes next to nothing."""
    return Cost(0.0, elements * arrays * width)


def lstm(steps: int, batch: int, size: int) -> Cost:
    """A layer with as many inputs as states: both products of each step; weights read once."""
    return Cost(2.0 * steps * batch * 8 * size * size, 2.0 * (8 * size * size + 2 * steps * batch * size))


def attention(heads: int, length: int, width: int) -> Cost:
    """Causal self-attention forward: both products of half of the pairs; its four arrays once."""
    return Cost(2.0 * heads * length * length * width, 2.0 * 4 * heads * length * width)
