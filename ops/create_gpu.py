"""Arrays from nothing on the GPU."""
import math

import numpy as np
import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops.pointwise_gpu import copy_into

BLOCK = 1024


@triton.jit(do_not_specialize=["n", "start", "step"])
def ramp_kernel(y, n, start: "i64", step: "i64", INTEGER: tl.constexpr, BLOCK: tl.constexpr):
    """y (n,): start + i * step in int64, or in float64 from the bits of two float64. Grid (ceil(n / BLOCK),)."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    if INTEGER:
        value = start + i * step
    else:
        value = start.to(tl.float64, bitcast=True) + i.to(tl.float64) * step.to(tl.float64, bitcast=True)
    tl.store(y + i, value.to(y.dtype.element_ty), mask=i < n)


@triton.jit(do_not_specialize=["n", "start", "end", "step"])
def linspace_kernel(y, n, start: "i64", end: "i64", step: "i64", HALF: tl.constexpr, BLOCK: tl.constexpr):
    """y (n,): start + i * step, exact at both ends; with HALF (integers, as torch) counted from the nearer end.

    start, end, step: bits of float64. Grid (ceil(n / BLOCK),)."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a, b, h = start.to(tl.float64, bitcast=True), end.to(tl.float64, bitcast=True), step.to(tl.float64, bitcast=True)
    up = a + i.to(tl.float64) * h
    if HALF:
        value = tl.where(i < n // 2, up, b - h * (n - 1 - i).to(tl.float64))
    else:
        value = tl.where((i == n - 1) & (n > 1), b, up)
    tl.store(y + i, value.to(y.dtype.element_ty), mask=i < n)


@triton.jit(do_not_specialize=["n", "cols"])
def eye_kernel(y, n, cols, BLOCK: tl.constexpr):
    """y (n // cols, cols), contiguous: 1 where row == column. Grid (ceil(n / BLOCK),)."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, (i // cols == i % cols).to(y.dtype.element_ty), mask=i < n)


def _bits(x: float) -> int:
    return int(np.float64(x).view(np.int64))


def full(shape, value, dtype, where):
    """A new array of `shape` filled with `value`."""
    return copy_into(cuda.empty(shape, dtype, where.index or 0), value)


def arange(start, end, step, dtype, where):
    """start + i * step below end."""
    n = max(0, math.ceil((end - start) / step))
    y = cuda.empty((n,), dtype, where.index or 0)
    whole = dtype.kind in "iub"
    ends = (int(start), int(step)) if whole else (_bits(start), _bits(step))
    cuda.launch(ramp_kernel, (triton.cdiv(n, BLOCK),), y, n, *ends, INTEGER=whole, BLOCK=BLOCK)
    return y


def linspace(start, end, steps, dtype, where):
    """`steps` values from start to end."""
    y = cuda.empty((steps,), dtype, where.index or 0)
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    cuda.launch(linspace_kernel, (triton.cdiv(steps, BLOCK),), y, steps, _bits(start), _bits(end), _bits(step),
                HALF=dtype.kind in "iu", BLOCK=BLOCK)
    return y


def eye(n, m, dtype, where):
    """Ones on the diagonal."""
    y = cuda.empty((n, m), dtype, where.index or 0)
    cuda.launch(eye_kernel, (triton.cdiv(n * m, BLOCK),), y, n * m, m, BLOCK=BLOCK)
    return y
