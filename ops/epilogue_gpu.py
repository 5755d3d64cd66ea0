"""What a matrix kernel does with its sums before it stores them: stages of any number, or the fixed ones of `finish`.

`through` takes a tuple of stages, each a jit function with its operand: bias, factor, residual, batch norm, an op's
formula. `finish` is bias, batch norm, residual, activation, in that order, for kernels that name their parts: pointers,
and one that is None costs nothing, as Triton sees None as a constant. The activation is a jit function handed to the
kernel as a constexpr: `identity`, a formula's (scalar_gpu.relu, ...), or anybody's.
"""
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import triton
import triton.language as tl


@triton.jit
def identity(x):
    """No activation."""
    return x


@triton.jit
def column(vector, rn, inside_n, DTYPE: tl.constexpr):
    """The values [BN] of a vector (N,) that belong to a tile's columns."""
    return tl.load(vector + rn, mask=inside_n, other=0).to(DTYPE)


@triton.jit
def finish(acc, bias, mean, var, gamma, beta, residual, eps, rows, rn, inside_m, inside_n, ACT: tl.constexpr):
    """ACT((acc + bias - mean) / sqrt(var + eps) * gamma + beta + residual) for a tile [BM, BN], in acc's dtype.

    bias, mean, var, gamma, beta (N,) or None, mean and var together; residual (M, N) or None, its rows beginning at
    rows [BM]. rn [BN]: columns; inside_m [BM], inside_n [BN]: what lies in the result.
    """
    dtype: tl.constexpr = acc.dtype
    if mean is not None:                                # one factor and one shift: two vectors live beside the tile
        factor = 1 / tl.sqrt(column(var, rn, inside_n, dtype) + eps.to(dtype))
        if gamma is not None:
            factor *= column(gamma, rn, inside_n, dtype)
        shift = -column(mean, rn, inside_n, dtype)
        if bias is not None:
            shift += column(bias, rn, inside_n, dtype)
        shift *= factor
        if beta is not None:
            shift += column(beta, rn, inside_n, dtype)
        acc = acc * factor[None, :] + shift[None, :]
    elif bias is not None:
        acc += column(bias, rn, inside_n, dtype)[None, :]
    if residual is not None:
        inside = inside_m[:, None] & inside_n[None, :]
        acc += tl.load(residual + rows[:, None] + rn[None, :], mask=inside, other=0).to(dtype)
    return ACT(acc)


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
def normalize(x, parts, rows, columns, inside_m, inside_n):
    """Stage: `finish` without an activation; parts (bias, mean, var, gamma, beta, residual, the bits of eps)."""
    bias, mean, var, gamma, beta, residual, eps = parts
    return finish(x, bias, mean, var, gamma, beta, residual, number(eps, x.dtype), rows, columns, inside_m, inside_n,
                  identity)


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
