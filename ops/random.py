"""Random numbers by counter: Philox 4x32-10, the same bits on the CPU and on every GPU.

Element i of a draw is word i % 4 of the block with counter (i // 4, offset) under the key `seed`, so a value depends
on nothing but (seed, offset, i). Each draw of a Generator takes the next offset. Source: J. Salmon et al., "Parallel
Random Numbers: As Easy as 1, 2, 3", SC 2011.
"""
import math
from collections.abc import Callable

import numpy as np

from zoo.ops.compiled import available, module
from zoo.ops.device import device
from zoo.ops.dtypes import bfloat16, float16, float32, float64
from zoo.ops.errors import DtypeError
from zoo.ops.op import Spec, need_float, structured
from zoo.ops.pieces import each, slices
from zoo.ops.scalar import where

FACTORS = np.array([[0xD2511F53], [0xCD9E8D57]], np.uint64)
ROUNDS = np.array([[[k * 0x9E3779B9], [k * 0xBB67AE85]] for k in range(10)], np.uint64)      # added to the key
LOW, SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)
CAPTURED: list = []                                # generators that CUDA graphs go on with (ops/cuda/graphs.py)
BITS = {float32: 24, float16: 11, bfloat16: 8}     # how many random bits a uniform of this dtype holds exactly


def round_keys(seed: int) -> np.ndarray:
    """(10, 2, 1): what each round adds, bit by bit, to words 1 and 3."""
    return np.array([[seed & 0xFFFFFFFF], [seed >> 32 & 0xFFFFFFFF]], np.uint64) + ROUNDS & LOW


def philox(seed: int, offset: int, blocks: np.ndarray) -> np.ndarray:
    """The four 32-bit words of each block, (len(blocks), 4) uint32: key `seed`, counters (blocks, offset)."""
    count = len(blocks)
    evens, odds, high = (np.empty((2, count), np.uint64) for _ in range(3))       # words 0 and 2, and 1 and 3
    np.bitwise_and(blocks, LOW, out=evens[0])
    np.right_shift(blocks, SHIFT, out=odds[0])
    evens[1], odds[1] = offset & 0xFFFFFFFF, offset >> 32 & 0xFFFFFFFF
    for round_key in round_keys(seed):
        evens *= FACTORS
        np.right_shift(evens, SHIFT, out=high)
        evens &= LOW
        odds ^= high[::-1]
        odds ^= round_key
        evens, odds = odds, evens[::-1]
    out = np.empty((count, 4), np.uint32)
    out[:, 0], out[:, 1], out[:, 2], out[:, 3] = evens[0], odds[0], evens[1], odds[1]
    return out


def words_from(seed: int, offset: int, first: int, count: int) -> np.ndarray:
    """`count` words, the first one being that which begins block `first`."""
    blocks = -(-count // 4)
    if available("philox", count):
        out = np.empty(4 * blocks, np.uint32)
        module("philox").philox(out, first, offset, round_keys(seed).reshape(-1))
        return out[:count]
    return philox(seed, offset, np.arange(first, first + blocks, dtype=np.uint64)).reshape(-1)[:count]


def drawn(count: int, dtype: np.dtype, per: int, seed: int, offset: int, convert: Callable) -> np.ndarray:
    """`count` elements, each made by `convert` of `per` 32-bit words: convert(words of a piece) -> its elements."""
    out = np.empty(count, dtype)

    def work(s: slice) -> None:
        part = out[s]
        part[...] = convert(words_from(seed, offset, s.start * per // 4, -(-len(part) * per // 4) * 4))[:len(part)]
    each(work, slices(count), count * 4)                   # ten times the work of a multiplication
    return out


def words(count: int, seed: int, offset: int) -> np.ndarray:
    """The first `count` 32-bit words of draw `offset` of the stream `seed`."""
    return drawn(count, np.dtype(np.uint32), 1, seed, offset, lambda raw: raw)


def unit(raw: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Words as uniforms in [0, 1) in float32 (pairs of words in float64), every value exact in `dtype`."""
    if dtype == float64:
        w = raw.reshape(-1, 2).astype(np.uint64)
        return ((w[:, 0] >> np.uint64(5)) * 67108864.0 + (w[:, 1] >> np.uint64(6))) / 9007199254740992.0
    bits = BITS[dtype]
    raw >>= np.uint32(32 - bits)
    return np.multiply(raw.view(np.int32), float32.type(2.0 ** -bits), dtype=float32, casting="unsafe")


def uniform(shape: tuple, dtype: np.dtype, where: device, seed: int, offset: int):
    """Uniforms in [0, 1): k / 2^24 in float32, k / 2^11 in float16, k / 2^8 in bfloat16, k / 2^53 in float64."""
    if where.type != "cpu":
        from zoo.ops import random_gpu
        return random_gpu.uniform(shape, dtype, where, seed, offset)
    per = 2 if dtype == float64 else 1
    return drawn(math.prod(shape), dtype, per, seed, offset, lambda raw: unit(raw, dtype)).reshape(shape)


def normal(shape: tuple, dtype: np.dtype, where: device, seed: int, offset: int):
    """Standard normals by Box and Muller from pairs of uniforms: sqrt(-2 log(1 - u)) cos(2 pi v), and with sin."""
    if where.type != "cpu":
        from zoo.ops import random_gpu
        return random_gpu.normal(shape, dtype, where, seed, offset)
    wide = float64 if dtype == float64 else float32
    per = 2 if dtype == float64 else 1
    made = drawn(math.prod(shape), dtype, per, seed, offset, lambda raw: box_muller(unit(raw, wide), wide))
    return made.reshape(shape)


def box_muller(uniforms: np.ndarray, dtype: np.dtype) -> np.ndarray:
    radius, angle = (np.ascontiguousarray(uniforms[k::2]) for k in (0, 1))
    np.log(np.subtract(dtype.type(1), radius, out=radius), out=radius)
    radius *= dtype.type(-2)
    np.sqrt(radius, out=radius)
    angle *= dtype.type(2 * np.pi)
    out = np.empty_like(uniforms)
    np.multiply(radius, np.cos(angle), out=out[0::2])
    np.multiply(radius, np.sin(angle), out=out[1::2])
    return out


def integers(low: int, high: int, shape: tuple, dtype: np.dtype, where: device, seed: int, offset: int):
    """Integers in [low, high): low + (word * span >> 32), or (two words % span) for spans beyond 2^32."""
    if where.type != "cpu":
        from zoo.ops import random_gpu
        return random_gpu.integers(low, high, shape, dtype, where, seed, offset)
    count, span = int(np.prod(shape)), high - low
    if span <= 1 << 32:
        drawn = words(count, seed, offset).astype(np.uint64) * np.uint64(span) >> SHIFT
    else:
        w = words(2 * count, seed, offset).reshape(-1, 2).astype(np.uint64)
        drawn = (w[:, 0] << SHIFT | w[:, 1]) % np.uint64(span)
    return (drawn.astype(np.int64) + low).astype(dtype).reshape(shape)


@structured
class dropout_mask:
    """input with each element zeroed with probability p and the rest scaled by 1 / (1 - p).

    Element i is kept if its 24-bit draw (seed, offset, i) is at least p * 2^24: the backward pass draws the same mask
    again, nothing is stored.
    """
    def check(input, p, seed, offset):
        need_float("dropout", input)
        return Spec(input.shape, input.dtype)

    def forward(input, p, seed, offset):
        dropout_mask.check(input, p, seed, offset)
        flat, y = input.reshape(-1), np.empty(input.size, input.dtype)
        scale, least = np.asarray(scale_of(p), float64 if input.dtype == float64 else float32), np.uint32(threshold(p))

        def work(s: slice) -> None:
            raw = words_from(seed, offset, s.start // 4, len(flat[s]))
            raw >>= np.uint32(8)
            y[s] = where(raw >= least, flat[s] * scale, 0.0)
        each(work, slices(y.size), y.size * 4)
        return y.reshape(input.shape)

    def dinput(dy, p, seed, offset): return dropout_mask(dy, p, seed, offset)

    def samples(rng):
        return {
            "ordinary": [(rng.normal(size=(3, 4)), 0.5, 7, 3), (rng.normal(size=(3, 4)), 0.0, 7, 3)],
            "empty": [(rng.normal(size=(0, 4)), 0.5, 7, 3)],
            "0-d": [(rng.normal(size=()), 0.3, 1, 2)],
            "odd": [
                (rng.normal(size=(7, 1, 13)), 0.9, (1 << 40) + 1, (1 << 33) + 5),
                (rng.normal(size=(1031,)), 0.1, 3, 4),
            ],
            "extreme": [(rng.normal(size=(5,)), 1.0, 7, 3), (np.array([np.inf, -np.inf, np.nan, 0.0]), 0.5, 1, 1)],
        }


def threshold(p: float) -> int:
    return round(p * (1 << 24))


def scale_of(p: float) -> float:
    return 1.0 / (1.0 - p) if p < 1 else 0.0


def need_float_dtype(name: str, dtype: np.dtype) -> None:
    if dtype not in BITS and dtype != float64:
        raise DtypeError(f"{name}: wants a floating dtype, got {dtype}")
