"""What a matrix kernel does with its sums before it stores them: stages of any number, each a jit function.

`through` takes a tuple of stages with the operand of each: bias, factor, batch norm, residual, the formula of an op.
"""
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import triton
import triton.language as tl


@triton.jit
def column(vector, rn, inside_n, DTYPE: tl.constexpr):
    """The values [BN] of a vector (N,) that belong to a tile's columns."""
    return tl.load(vector + rn, mask=inside_n, other=0).to(DTYPE)


@triton.jit
def through(x, STAGES: tl.constexpr, operands, rows, columns, inside_m, inside_n):
    """x [BM, BN] through any number of stages: f(x) where the operand is None, else f(x, operand, *place).

    The place of the tile in a dense result is (rows, columns, inside_m, inside_n): where its rows begin, in elements
    [BM]; its columns [BN]; and which of both lie in the result. Stages are jit functions; every unary formula of an op
    (pointwise_gpu.jitted) is one.
    """
    for i in tl.static_range(len(STAGES)):
        if operands[i] is None:
            x = STAGES[i](x)
        else:
            x = STAGES[i](x, operands[i], rows, columns, inside_m, inside_n)
    return x


@triton.jit
def number(bits, DTYPE: tl.constexpr):
    """A number that came as the 64 bits of a double (see `bits_of`), since a Python float arrives as float32."""
    return bits.to(tl.int64).to(tl.float64, bitcast=True).to(DTYPE)


@triton.jit
def add_row(x, vector, rows, columns, inside_m, inside_n):
    """Stage: x plus a vector (N,), the bias."""
    return x + column(vector, columns, inside_n, x.dtype)[None, :]


@triton.jit
def scale_row(x, vector, rows, columns, inside_m, inside_n):
    """Stage: column n of x times element n of a vector (N,)."""
    return x * column(vector, columns, inside_n, x.dtype)[None, :]


@triton.jit
def scale_by(x, bits, rows, columns, inside_m, inside_n):
    """Stage: x times a number."""
    return x * number(bits, x.dtype)


@triton.jit
def add_matrix(x, matrix, rows, columns, inside_m, inside_n):
    """Stage: x plus a dense matrix (M, N), the residual."""
    inside = inside_m[:, None] & inside_n[None, :]
    return x + tl.load(matrix + rows[:, None] + columns[None, :], mask=inside, other=0).to(x.dtype)


@triton.jit
def add_multiple(x, operand, rows, columns, inside_m, inside_n):
    """Stage: x plus a number times a dense matrix (M, N); operand (matrix, the number's bits)."""
    inside = inside_m[:, None] & inside_n[None, :]
    y = tl.load(operand[0] + rows[:, None] + columns[None, :], mask=inside, other=0).to(x.dtype)
    return x + y * number(operand[1], x.dtype)


@triton.jit
def one_row(vector, columns, inside, DTYPE: tl.constexpr):
    """[ROWS, BN], of which only row 0 is `inside`, with the values of a vector (N,); zeros below."""
    return tl.load(vector + columns[None, :], mask=inside, other=0).to(DTYPE)


@triton.jit
def normalize(x, parts, rows, columns, inside_m, inside_n):
    """Stage: (x - mean) / sqrt(var + eps) * gamma + beta; parts (mean, var, gamma, beta, the bits of eps), all (N,).

    The vectors are loaded as tiles with one row that counts, and the factor and the shift are summed out of them: so
    they reach x's threads through shared memory, when they are needed. Loaded as vectors, each thread held all of them
    for all its columns: 222 registers instead of 123 (a 128 x 128 tile, 8 warps, sm_90), one program instead of two.
    """
    mean, var, gamma, beta, eps = parts
    dtype: tl.constexpr = x.dtype
    first = tl.arange(0, 8)[:, None] == 0
    inside = first & inside_n[None, :]
    factor = tl.where(first, 1 / tl.sqrt(one_row(var, columns, inside, dtype) + number(eps, dtype)), 0)
    factor *= one_row(gamma, columns, inside, dtype)
    shift = one_row(beta, columns, inside, dtype) - one_row(mean, columns, inside, dtype) * factor
    return x * tl.sum(factor, 0)[None, :] + tl.sum(shift, 0)[None, :]


@triton.jit
def standardize(x, parts, rows, columns, inside_m, inside_n):
    """Stage: (x - mean) / sqrt(var + eps), as `normalize`; parts (mean, var, the bits of eps).

    A stage of its own, since Triton 3.6 takes no None inside an operand.
    """
    mean, var, eps = parts
    dtype: tl.constexpr = x.dtype
    first = tl.arange(0, 8)[:, None] == 0
    inside = first & inside_n[None, :]
    factor = tl.where(first, 1 / tl.sqrt(one_row(var, columns, inside, dtype) + number(eps, dtype)), 0)
    shift = one_row(mean, columns, inside, dtype) * factor
    return x * tl.sum(factor, 0)[None, :] - tl.sum(shift, 0)[None, :]


def bits_of(value: float) -> int:
    """A number as a stage takes it."""
    return struct.unpack("<q", struct.pack("<d", value))[0]


class Epilogue(NamedTuple):
    """Stages for `through`, and the operand of each: an array, a number's bits, a tuple of these, or None."""
    stages: tuple[Callable, ...]
    operands: tuple


KNOWN: dict[tuple[int, ...], tuple[Callable, ...]] = {}         # ids of stages -> the one tuple of them
BY_ID: dict[int, tuple[Callable, ...]] = {}                     # id of such a tuple -> it


def epilogue(*pairs: tuple[Callable, Any]) -> Epilogue:
    """(stage, operand), ...: what to do with the sums, in this order.

    Equal stages are one tuple: the launch cache knows a constexpr by its id, as hashing a jit function takes long.
    """
    ids = tuple(id(stage) for stage, _ in pairs)
    stages = KNOWN.get(ids)
    if stages is None:
        stages = KNOWN[ids] = tuple(stage for stage, _ in pairs)
        BY_ID[id(stages)] = stages
    return Epilogue(stages, tuple(operand for _, operand in pairs))


def stages_of(key: int) -> tuple[Callable, ...]:
    """The stages whose tuple has this id; for the keys of caches."""
    return BY_ID[key]


NOTHING = epilogue()
