"""Random numbers by counter: Philox 4x32-10, the same bits on the CPU and on every GPU.

Element i of a draw is word i % 4 of the block with counter (i // 4, offset) under the key `seed`, so a value depends
on nothing but (seed, offset, i). Each draw of a Generator takes the next offset. Source: J. Salmon et al., "Parallel
Random Numbers: As Easy as 1, 2, 3", SC 2011.
"""
import numpy as np

from zoo.ops.device import device
from zoo.ops.dtypes import bfloat16, float16, float32, float64
from zoo.ops.errors import DtypeError
from zoo.ops.op import Spec, need_float, structured

CHUNK = 1 << 14                                   # blocks at a time: the six work arrays stay in cache
M0, M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
W0, W1 = 0x9E3779B9, 0xBB67AE85
LOW, SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)
BITS = {float32: 24, float16: 11, bfloat16: 8}     # how many random bits a uniform of this dtype holds exactly


def philox(seed: int, offset: int, blocks: np.ndarray) -> np.ndarray:
    """The four 32-bit words of each block, (len(blocks), 4) uint32: key `seed`, counters (blocks, offset)."""
    c0, c1 = blocks & LOW, blocks >> SHIFT
    c2 = np.full_like(c0, offset & 0xFFFFFFFF)
    c3 = np.full_like(c0, offset >> 32 & 0xFFFFFFFF)
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    for _ in range(10):
        c0 *= M0
        c2 *= M1
        high0, high1 = c0 >> SHIFT, c2 >> SHIFT
        high1 ^= c1
        high1 ^= np.uint64(k0)
        high0 ^= c3
        high0 ^= np.uint64(k1)
        c0 &= LOW
        c2 &= LOW
        c0, c1, c2, c3 = high1, c2, high0, c0
        k0, k1 = (k0 + W0) & 0xFFFFFFFF, (k1 + W1) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=1).astype(np.uint32)


def words(count: int, seed: int, offset: int) -> np.ndarray:
    """The first `count` 32-bit words of draw `offset` of the stream `seed`."""
    out = np.empty((-(-count // 4), 4), np.uint32)
    for start in range(0, len(out), CHUNK):
        blocks = np.arange(start, min(start + CHUNK, len(out)), dtype=np.uint64)
        out[start:start + CHUNK] = philox(seed, offset, blocks)
    return out.reshape(-1)[:count]


def unit(count: int, dtype: np.dtype, seed: int, offset: int) -> np.ndarray:
    """`count` uniforms in [0, 1) as float32 (float64 for float64), every value exact in `dtype`."""
    if dtype == float64:
        w = words(2 * count, seed, offset).reshape(-1, 2).astype(np.uint64)
        return ((w[:, 0] >> np.uint64(5)) * 67108864.0 + (w[:, 1] >> np.uint64(6))) / 9007199254740992.0
    bits = BITS[dtype]
    return (words(count, seed, offset) >> np.uint32(32 - bits)).astype(float32) * np.float32(2.0 ** -bits)


def uniform(shape: tuple, dtype: np.dtype, where: device, seed: int, offset: int):
    """Uniforms in [0, 1): k / 2^24 in float32, k / 2^11 in float16, k / 2^8 in bfloat16, k / 2^53 in float64."""
    if where.type != "cpu":
        from zoo.ops import random_gpu
        return random_gpu.uniform(shape, dtype, where, seed, offset)
    return unit(int(np.prod(shape)), dtype, seed, offset).astype(dtype, copy=False).reshape(shape)


def normal(shape: tuple, dtype: np.dtype, where: device, seed: int, offset: int):
    """Standard normals by Box and Muller from pairs of uniforms: sqrt(-2 log(1 - u)) cos(2 pi v), and with sin."""
    if where.type != "cpu":
        from zoo.ops import random_gpu
        return random_gpu.normal(shape, dtype, where, seed, offset)
    wide, count = float64 if dtype == float64 else float32, int(np.prod(shape))
    pairs = unit(count + count % 2, wide, seed, offset).reshape(-1, 2)
    radius = np.sqrt(wide.type(-2) * np.log(wide.type(1) - pairs[:, 0]))
    angle = wide.type(2 * np.pi) * pairs[:, 1]
    out = np.empty_like(pairs)
    np.multiply(radius, np.cos(angle), out=out[:, 0])
    np.multiply(radius, np.sin(angle), out=out[:, 1])
    return out.reshape(-1)[:count].astype(dtype, copy=False).reshape(shape)


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
        keep = (words(input.size, seed, offset) >> np.uint32(8)) >= np.uint32(threshold(p))
        scale = np.asarray(scale_of(p), float64 if input.dtype == float64 else float32)
        factor = np.multiply(keep.reshape(input.shape), scale)
        return np.where(factor != 0, input * factor, 0).astype(input.dtype, copy=False)

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
