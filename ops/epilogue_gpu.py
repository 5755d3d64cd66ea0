"""What a matrix kernel does with its sums before it stores them: bias, batch norm, residual, activation, in that order.

The parts are pointers, and a part that is None costs nothing: Triton sees None as a constant. The activation is a jit
function handed to the kernel as a constexpr: `identity`, a formula's (scalar_gpu.relu, ...), or anybody's.
"""
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
