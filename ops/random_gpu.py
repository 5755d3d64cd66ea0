"""Philox on the GPU: the same counters as random.py, four words a block, stored interleaved."""
import math

import numpy as np
import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops.dtypes import bfloat16, float16, float32, float64
from zoo.ops.pointwise_gpu import contiguous_copy
from zoo.ops.random import scale_of, threshold

BLOCK4 = 512                                       # Philox blocks a program: 2,048 words


@triton.jit
def four_words(seed, offset, block):
    """The four uint32 words of each Philox block; seed, offset int64 scalars, block int64 (B,)."""
    c0 = (block & 0xFFFFFFFF).to(tl.uint32)
    c1 = (block >> 32).to(tl.uint32)
    zero = c0 * 0
    c2 = zero + (offset & 0xFFFFFFFF).to(tl.uint32)
    c3 = zero + ((offset >> 32) & 0xFFFFFFFF).to(tl.uint32)
    return tl.philox(seed, c0, c1, c2, c3)


@triton.jit
def stream_at(state, seed, offset):
    """(seed, offset) of a draw. state: None, or int64 [2] with those of a captured step, which offset then counts from.

    With `else`: Triton 3.6 goes on behind a return.
    """
    if state is None:
        return seed, offset
    else:
        return tl.load(state), tl.load(state + 1) + offset


@triton.jit(do_not_specialize=["draws"])
def advance_kernel(state, draws: "i64"):
    """state: int64 [2], seed and offset; the offset grows by draws. Grid: (1,)."""
    tl.atomic_add(state + 1, draws, sem="relaxed")         # read and written by one thread, not read by all


def advance(state, draws: int) -> None:
    """So many draws were made from the stream whose (seed, offset) is `state`, int64 (2,)."""
    cuda.launch(advance_kernel, (1,), state, draws)


@triton.jit
def interleave(a, b, c, d, B4: tl.constexpr):
    """(a0, b0, c0, d0, a1, ...): word k of block i at 4 i + k."""
    return tl.join(tl.join(a, c), tl.join(b, d)).reshape(4 * B4)


@triton.jit
def unit64(high, low):
    """53 bits of two words as a float64 in [0, 1)."""
    return ((high >> 5).to(tl.float64) * 67108864.0 + (low >> 6).to(tl.float64)) / 9007199254740992.0


@triton.jit
def unit32(word):
    """The top 24 bits as a float32 in [0, 1)."""
    return (word >> 8).to(tl.float32) * 5.9604644775390625e-08


@triton.jit(do_not_specialize=["seed", "offset"])
def uniform_kernel(y, n, state, seed: "i64", offset: "i64", BITS: tl.constexpr, B4: tl.constexpr):
    """y (n,) of a float dtype below 64 bits: BITS random bits / 2^BITS. Grid (ceil(n / 4 B4),)."""
    block = tl.program_id(0).to(tl.int64) * B4 + tl.arange(0, B4)
    seed, offset = stream_at(state, seed, offset)
    a, b, c, d = four_words(seed, offset, block)
    word = interleave(a, b, c, d, B4)
    i = tl.program_id(0).to(tl.int64) * (4 * B4) + tl.arange(0, 4 * B4)
    u = (word >> (32 - BITS)).to(tl.float32) * (1.0 / (1 << BITS))
    tl.store(y + i, u.to(y.dtype.element_ty), mask=i < n)


@triton.jit(do_not_specialize=["seed", "offset"])
def uniform64_kernel(y, n, state, seed: "i64", offset: "i64", B4: tl.constexpr):
    """y (n,) float64: two words an element. Grid (ceil(n / 2 B4),)."""
    block = tl.program_id(0).to(tl.int64) * B4 + tl.arange(0, B4)
    seed, offset = stream_at(state, seed, offset)
    a, b, c, d = four_words(seed, offset, block)
    u = tl.join(unit64(a, b), unit64(c, d)).reshape(2 * B4)
    i = tl.program_id(0).to(tl.int64) * (2 * B4) + tl.arange(0, 2 * B4)
    tl.store(y + i, u, mask=i < n)


@triton.jit(do_not_specialize=["seed", "offset"])
def normal_kernel(y, n, state, seed: "i64", offset: "i64", B4: tl.constexpr):
    """y (n,) of a float dtype below 64 bits: Box and Muller on words (0, 1) and (2, 3). Grid (ceil(n / 4 B4),)."""
    block = tl.program_id(0).to(tl.int64) * B4 + tl.arange(0, B4)
    seed, offset = stream_at(state, seed, offset)
    a, b, c, d = four_words(seed, offset, block)
    r0 = tl.sqrt(-2.0 * tl.log(1.0 - unit32(a)))
    r1 = tl.sqrt(-2.0 * tl.log(1.0 - unit32(c)))
    t0 = unit32(b) * 6.283185307179586
    t1 = unit32(d) * 6.283185307179586
    z = interleave(r0 * tl.cos(t0), r0 * tl.sin(t0), r1 * tl.cos(t1), r1 * tl.sin(t1), B4)
    i = tl.program_id(0).to(tl.int64) * (4 * B4) + tl.arange(0, 4 * B4)
    tl.store(y + i, z.to(y.dtype.element_ty), mask=i < n)


@triton.jit(do_not_specialize=["seed", "offset"])
def normal64_kernel(y, n, state, seed: "i64", offset: "i64", B4: tl.constexpr):
    """y (n,) float64: a pair of normals from the four words of a block. Grid (ceil(n / 2 B4),)."""
    block = tl.program_id(0).to(tl.int64) * B4 + tl.arange(0, B4)
    seed, offset = stream_at(state, seed, offset)
    a, b, c, d = four_words(seed, offset, block)
    r = tl.sqrt(-2.0 * tl.log(1.0 - unit64(a, b)))
    t = unit64(c, d) * 6.283185307179586
    z = tl.join(r * tl.cos(t), r * tl.sin(t)).reshape(2 * B4)
    i = tl.program_id(0).to(tl.int64) * (2 * B4) + tl.arange(0, 2 * B4)
    tl.store(y + i, z, mask=i < n)


@triton.jit(do_not_specialize=["seed", "offset", "low", "span"])
def integers_kernel(y, n, state, seed: "i64", offset: "i64", low: "i64", span: "i64", B4: tl.constexpr):
    """y (n,) of an integer dtype: low + (word * span >> 32). Grid (ceil(n / 4 B4),)."""
    block = tl.program_id(0).to(tl.int64) * B4 + tl.arange(0, B4)
    seed, offset = stream_at(state, seed, offset)
    a, b, c, d = four_words(seed, offset, block)
    word = interleave(a, b, c, d, B4).to(tl.uint64)
    drawn = ((word * span.to(tl.uint64)) >> 32).to(tl.int64) + low
    i = tl.program_id(0).to(tl.int64) * (4 * B4) + tl.arange(0, 4 * B4)
    tl.store(y + i, drawn.to(y.dtype.element_ty), mask=i < n)


@triton.jit(do_not_specialize=["seed", "offset", "low", "span"])
def wide_integers_kernel(y, n, state, seed: "i64", offset: "i64", low: "i64", span: "i64", B4: tl.constexpr):
    """y (n,) of an integer dtype: low + (64 random bits % span), span beyond 2^32. Grid (ceil(n / 2 B4),)."""
    block = tl.program_id(0).to(tl.int64) * B4 + tl.arange(0, B4)
    seed, offset = stream_at(state, seed, offset)
    a, b, c, d = four_words(seed, offset, block)
    first = (a.to(tl.uint64) << 32) | b.to(tl.uint64)
    second = (c.to(tl.uint64) << 32) | d.to(tl.uint64)
    drawn = (tl.join(first, second).reshape(2 * B4) % span.to(tl.uint64)).to(tl.int64) + low
    i = tl.program_id(0).to(tl.int64) * (2 * B4) + tl.arange(0, 2 * B4)
    tl.store(y + i, drawn.to(y.dtype.element_ty), mask=i < n)


@triton.jit(do_not_specialize=["seed", "offset", "cut", "bits"])
def dropout_kernel(
    x, y, n, state, seed: "i64", offset: "i64", cut: "i64", scale, bits: "i64", WIDE: tl.constexpr, B4: tl.constexpr
):
    """y (n,) = x (n,) * scale where the 24-bit draw is at least `cut`, else 0. Grid (ceil(n / 4 B4),).

    scale arrives twice: as float32, and as the bits of a float64 for WIDE."""
    block = tl.program_id(0).to(tl.int64) * B4 + tl.arange(0, B4)
    seed, offset = stream_at(state, seed, offset)
    a, b, c, d = four_words(seed, offset, block)
    keep = (interleave(a, b, c, d, B4) >> 8).to(tl.int32) >= cut
    i = tl.program_id(0).to(tl.int64) * (4 * B4) + tl.arange(0, 4 * B4)
    v = tl.load(x + i, mask=i < n, other=0.0)
    if WIDE:
        kept = v * bits.to(tl.float64, bitcast=True)
    else:
        kept = v.to(tl.float32) * scale
    tl.store(y + i, tl.where(keep, kept, 0.0).to(y.dtype.element_ty), mask=i < n)


def _draw(kernel, shape: tuple, dtype: np.dtype, where, per_block: int, seed: int, offset: int, *args, **options):
    y = cuda.empty(shape, dtype, where.index or 0)
    n = math.prod(shape)
    drawn = cuda.random_state(seed, offset)
    cuda.launch(kernel, (triton.cdiv(n, per_block * BLOCK4),), y, n, *drawn, *args, B4=BLOCK4, **options)
    return y


def uniform(shape, dtype, where, seed, offset):
    """Uniforms in [0, 1), bit for bit those of random.uniform."""
    if dtype == float64:
        return _draw(uniform64_kernel, shape, dtype, where, 2, seed, offset)
    return _draw(
        uniform_kernel, shape, dtype, where, 4, seed, offset, BITS={float32: 24, float16: 11, bfloat16: 8}[dtype]
    )


def normal(shape, dtype, where, seed, offset):
    """Standard normals, within a few units in the last place of random.normal."""
    kernel, per_block = (normal64_kernel, 2) if dtype == float64 else (normal_kernel, 4)
    return _draw(kernel, shape, dtype, where, per_block, seed, offset)


def integers(low, high, shape, dtype, where, seed, offset):
    """Integers in [low, high), those of random.integers."""
    narrow = high - low <= 1 << 32
    return _draw(
        integers_kernel if narrow else wide_integers_kernel,
        shape,
        dtype,
        where,
        4 if narrow else 2,
        seed,
        offset,
        low,
        high - low,
    )


@cuda.remembered
def dropout_mask(input, p, seed, offset):
    """random.dropout_mask: the mask is drawn, used and forgotten in registers."""
    x = contiguous_copy(input) if not input.is_contiguous else input
    y = cuda.empty(x.shape, x.dtype, x.device)
    cuda.launch(
        dropout_kernel,
        (triton.cdiv(x.size, 4 * BLOCK4),),
        x,
        y,
        x.size,
        *cuda.random_state(seed, offset),
        threshold(p),
        scale_of(p),
        int(np.float64(scale_of(p)).view(np.int64)),
        WIDE=x.dtype == float64,
        B4=BLOCK4,
    )
    return y


