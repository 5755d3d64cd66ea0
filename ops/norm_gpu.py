"""Normalisation kernels. Every layout here is (R, C, L) with strides: rows, channels, elements of a channel in a row.
Batch norm of images whose channels lie side by side is in norm_columns_gpu.py.

Statistics take two steps in a fixed order, without atomics: parts of the rows, each shifted by its own first value,
then their merge about the common mean; so float32 is right for |mean| far above the standard deviation.
"""
import math
from typing import NamedTuple

import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import norm as contract
from zoo.ops.cuda import DeviceArray
from zoo.ops.dtypes import float64
from zoo.ops.norm_columns_gpu import Rows, coefficients, mean_of, merged, wide_of, workspace
from zoo.ops.pointwise_gpu import contiguous_copy

TILE = 2048                             # elements of one step
MOST_PARTS = 64                         # of the rows: what the merging step still reads quickly


@triton.jit(do_not_specialize=["R", "C", "L", "ROWS"])
def moments_of_parts(x, sums, R, C, L, sr, sc, ROWS, WIDE: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr,
                     BL: tl.constexpr):
    """x (R, C, L), strides (sr, sc, 1) -> sums (2, parts, C), fp64: means of ROWS rows each, squares about these.

    Grid: (ceil(C / BC), parts).
    """
    rc = tl.program_id(0) * BC + tl.arange(0, BC)
    part = tl.program_id(1)
    first = part * ROWS
    last = tl.minimum(first + ROWS, R)
    channels = rc < C
    shift = tl.load(x + first.to(tl.int64) * sr + rc.to(tl.int64) * sc, mask=channels, other=0.0).to(WIDE)
    s = tl.zeros((BR, BC, BL), WIDE)
    q = tl.zeros((BR, BC, BL), WIDE)
    for r in range(first, last, BR):
        rr = r + tl.arange(0, BR)
        base = x + rr.to(tl.int64)[:, None, None] * sr + rc.to(tl.int64)[None, :, None] * sc
        outer = (rr < last)[:, None, None] & channels[None, :, None]
        for j in range(0, L, BL):
            rl = j + tl.arange(0, BL)
            inside = outer & (rl < L)[None, None, :]
            d = tl.load(base + rl[None, None, :], mask=inside, other=0.0).to(WIDE) - shift[None, :, None]
            d = tl.where(inside, d, 0.0)
            s += d
            q += d * d
    n = (last - first).to(WIDE) * L
    total = tl.sum(tl.sum(s, 2), 0)
    square = tl.sum(tl.sum(q, 2), 0) - total * total / n
    at = sums + part * C + rc
    tl.store(at, shift.to(tl.float64) + (total / n).to(tl.float64), mask=channels)
    tl.store(at + tl.num_programs(1) * C, square.to(tl.float64), mask=channels)


@triton.jit
def tile_of(R, L, BR: tl.constexpr, BC: tl.constexpr, BL: tl.constexpr):
    """Rows, channels and elements of this program's tile of (R, C, L); channels slowest.

    One grid dimension: channels of all pictures of a group norm are more than the 65,535 of a second one.
    """
    across = tl.cdiv(L, BL)
    tiles = tl.cdiv(R, BR) * across
    c, t = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    return t // across * BR + tl.arange(0, BR), c * BC + tl.arange(0, BC), t % across * BL + tl.arange(0, BL)


@triton.jit(do_not_specialize=["R", "C", "L", "groups", "factors"])
def normalize_channels(x, y, mean, var, weight, bias, R, C, L, sr, sc, tr, tc, groups, factors, eps: "fp64",  # noqa: F821
                       WIDE: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr, BL: tl.constexpr):
    """y = (x - mean) / sqrt(var + eps) * weight + bias; x (R, C, L), strides (sr, sc, 1), y (tr, tc, 1).

    mean (or None for 0), var (C / groups,): each for `groups` channels; weight, bias (factors,) or None: channel c has
    number c % factors. Grid: (ceil(C / BC) * ceil(R / BR) * ceil(L / BL),).
    """
    rr, rc, rl = tile_of(R, L, BR, BC, BL)
    channels = rc < C
    inside = (rr < R)[:, None, None] & channels[None, :, None] & (rl < L)[None, None, :]
    middle = mean_of(mean, rc // groups, channels, WIDE)
    factor = 1 / tl.sqrt(tl.load(var + rc // groups, mask=channels, other=1.0).to(WIDE) + eps.to(WIDE))
    if weight is not None:
        factor = factor * tl.load(weight + rc % factors, mask=channels, other=0.0).to(WIDE)
    rows, columns = rr.to(tl.int64)[:, None, None], rc.to(tl.int64)[None, :, None]
    v = tl.load(x + rows * sr + columns * sc + rl[None, None, :], mask=inside, other=0.0).to(WIDE)
    v = (v - middle[None, :, None]) * factor[None, :, None]
    if bias is not None:
        v += tl.load(bias + rc % factors, mask=channels, other=0.0).to(WIDE)[None, :, None]
    tl.store(y + rows * tr + columns * tc + rl[None, None, :], v.to(y.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["R", "C", "L", "groups", "ROWS"])
def gradient_sums(dy, x, mean, var, sums, R, C, L, sr, sc, groups, ROWS, eps: "fp64",  # noqa: F821
                  WIDE: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr, BL: tl.constexpr):
    """sums (2, parts, C): of dy and of dy * normalised x over ROWS rows each.

    dy, x (R, C, L), strides (sr, sc, 1); mean (or None for 0), var (C / groups,). Grid: (ceil(C / BC), parts).
    """
    rc = tl.program_id(0) * BC + tl.arange(0, BC)
    part = tl.program_id(1)
    first = part * ROWS
    last = tl.minimum(first + ROWS, R)
    channels = rc < C
    middle = mean_of(mean, rc // groups, channels, WIDE)
    rstd = 1 / tl.sqrt(tl.load(var + rc // groups, mask=channels, other=1.0).to(WIDE) + eps.to(WIDE))
    s = tl.zeros((BR, BC, BL), WIDE)
    q = tl.zeros((BR, BC, BL), WIDE)
    for r in range(first, last, BR):
        rr = r + tl.arange(0, BR)
        base = rr.to(tl.int64)[:, None, None] * sr + rc.to(tl.int64)[None, :, None] * sc
        outer = (rr < last)[:, None, None] & channels[None, :, None]
        for j in range(0, L, BL):
            rl = j + tl.arange(0, BL)
            inside = outer & (rl < L)[None, None, :]
            g = tl.load(dy + base + rl[None, None, :], mask=inside, other=0.0).to(WIDE)
            v = tl.load(x + base + rl[None, None, :], mask=inside, other=0.0).to(WIDE) - middle[None, :, None]
            s += g
            q += g * v
    at = sums + part * C + rc
    tl.store(at, tl.sum(tl.sum(s, 2), 0), mask=channels)
    tl.store(at + tl.num_programs(1) * C, tl.sum(tl.sum(q, 2), 0) * rstd, mask=channels)


@triton.jit(do_not_specialize=["R", "C", "L", "groups"])
def combine_channels(dy, x, dx, mean, factors, R, C, L, sr, sc, groups, WIDE: tl.constexpr, BR: tl.constexpr,
                     BC: tl.constexpr, BL: tl.constexpr):
    """dx = a * dy + b * (x - mean) + c; dy, x, dx (R, C, L), strides (sr, sc, 1); factors a, b, c (3, C).

    mean (C / groups,): each for `groups` channels. Grid: (ceil(C / BC) * ceil(R / BR) * ceil(L / BL),).
    """
    rr, rc, rl = tile_of(R, L, BR, BC, BL)
    channels = rc < C
    inside = (rr < R)[:, None, None] & channels[None, :, None] & (rl < L)[None, None, :]
    middle = tl.load(mean + rc // groups, mask=channels, other=0.0).to(WIDE)[None, :, None]
    a = tl.load(factors + rc, mask=channels, other=0.0)[None, :, None]
    b = tl.load(factors + C + rc, mask=channels, other=0.0)[None, :, None]
    c = tl.load(factors + 2 * C + rc, mask=channels, other=0.0)[None, :, None]
    i = rr.to(tl.int64)[:, None, None] * sr + rc.to(tl.int64)[None, :, None] * sc + rl[None, None, :]
    g = tl.load(dy + i, mask=inside, other=0.0).to(WIDE)
    v = tl.load(x + i, mask=inside, other=0.0).to(WIDE)
    tl.store(dx + i, (a * g + b * (v - middle) + c).to(dx.dtype.element_ty), mask=inside)


class Layout(NamedTuple):
    """(R, C, L) and strides of rows and channels; and the tile of a program."""
    R: int
    C: int
    L: int
    sr: int
    sc: int

    def tile(self) -> dict:
        """Along memory first: L if a channel's elements lie together, else the channels."""
        bl = min(1024, triton.next_power_of_2(self.L))
        bc = 1 if bl >= 32 else min(32, triton.next_power_of_2(self.C))
        return dict(BR=max(1, min(triton.next_power_of_2(self.R), TILE // (bl * bc))), BC=bc, BL=bl)

    def parts(self, tile: dict) -> int:
        """Rows of a part: at most MOST_PARTS, and not more than what fills a GPU, of whole tiles."""
        blocks = -(-self.R // tile["BR"])
        most = max(1, min(MOST_PARTS, 528 // max(-(-self.C // tile["BC"]), 1)))
        return -(-blocks // min(most, blocks)) * tile["BR"]


def dense(x: DeviceArray) -> DeviceArray:
    return x if x.is_contiguous else contiguous_copy(x)


def dense_all(*xs: DeviceArray | None) -> list:
    return [x if x is None else dense(x) for x in xs]


def _blocked(x: DeviceArray) -> tuple[DeviceArray, Layout]:
    """x in order of memory, and what lies where."""
    n, c, length = x.shape[0], x.shape[1], math.prod(x.shape[2:])
    return dense(x), Layout(n, c, length, c * length, length)


def _channels_at_end(x: DeviceArray) -> DeviceArray:
    """(N, C, ...) seen as (N, ..., C)."""
    order = (0, *range(2, x.ndim), 1)
    return x.view(tuple(x.shape[d] for d in order), tuple(x.strides[d] for d in order))


def has_rows(x: DeviceArray) -> bool:
    """Do the channels of x (N, C, ...) lie side by side, several of them, as the columns of a matrix?"""
    return x.size > 0 and x.shape[1] > 1 and _channels_at_end(x).is_contiguous


def rows_of(x: DeviceArray) -> DeviceArray:
    """The matrix (N * ..., C) of x (N, C, ...), which is copied unless its channels lie side by side."""
    c = x.shape[1]
    return dense(_channels_at_end(x)).view((x.size // c, c), (c, 1))


def new_with_rows(x: DeviceArray) -> DeviceArray:
    """An array like x with its channels side by side."""
    n, c, *sizes = x.shape
    y = cuda.empty((n, *sizes, c), x.dtype, x.device)
    return y.view(x.shape, (y.strides[0], y.strides[-1], *y.strides[1:-1]))


def moments(x: DeviceArray, layout: Layout) -> tuple[DeviceArray, DeviceArray]:
    """Mean and biased variance of each channel."""
    dtype, tile = contract.statistics_dtype(x.dtype), layout.tile()
    R, C, L, sr, sc = layout
    rows = layout.parts(tile)
    sums = cuda.empty((2, 1, -(-R // rows), C), float64, x.device)
    # float64 divides at the end: by itself ptxas of Triton 3.6 spills there to have 32 registers
    cuda.launch(moments_of_parts, (-(-C // tile["BC"]), sums.shape[2]), x, sums, R, C, L, sr, sc, rows,
                WIDE=wide_of(dtype), maxnreg=128 if dtype == float64 else None, **tile)
    return merged(sums, dtype, R * L, rows * L)


def _grid_of(layout: Layout, tile: dict) -> tuple[int]:
    return (-(-layout.R // tile["BR"]) * -(-layout.L // tile["BL"]) * -(-layout.C // tile["BC"]),)


def applied(x, y, layout: Layout, mean, var, weight, bias, eps: float, groups: int = 1, factors: int = 0):
    tile = layout.tile()
    weight, bias = dense_all(weight, bias)
    cuda.launch(normalize_channels, _grid_of(layout, tile), x, y, mean, var, weight, bias, *layout, layout.sr,
                layout.sc, groups, factors or layout.C, float(eps), WIDE=wide_of(x.dtype), **tile)
    return y


def sums_of_gradient(dy, x, layout: Layout, mean, var, eps: float, groups: int = 1):
    """sums (2, parts, C) of dy and of dy * normalised x of each channel, and room for factors."""
    tile = layout.tile()
    rows = layout.parts(tile)
    parts, C = -(-layout.R // rows), layout.C
    sums, factors = workspace(1, parts, C, contract.statistics_dtype(x.dtype), x.device)
    cuda.launch(gradient_sums, (-(-C // tile["BC"]), parts), dy, x, mean, var, sums, *layout, groups, rows, float(eps),
                WIDE=wide_of(x.dtype), **tile)
    return sums, factors


def combine(dy, x, dx, layout: Layout, mean, factors, groups: int = 1):
    tile = layout.tile()
    cuda.launch(combine_channels, _grid_of(layout, tile), dy, x, dx, mean, factors, *layout, groups,
                WIDE=wide_of(x.dtype), **tile)
    return dx


@cuda.remembered
def batch_norm_train(input, weight=None, bias=None, eps=1e-5):
    _, moment, _ = contract.batch_norm_train.check(input, weight, bias, eps)
    if has_rows(input):
        x, y, (weight, bias) = rows_of(input), new_with_rows(input), dense_all(weight, bias)
        rows = Rows(1, *x.shape, x)
        mean, var = rows.moments(x)
        rows.normalize(x, None, rows_of(y), mean, var, weight, bias, eps, False)
        return y, mean, var
    y = cuda.empty(input.shape, input.dtype, input.device)
    if not input.size:
        nan = cuda.empty(moment.shape, moment.dtype, input.device)
        cuda.fill_bytes(nan, 0xFF)
        return y, nan, nan
    x, layout = _blocked(input)
    mean, var = moments(x, layout)
    return applied(x, y, layout, mean, var, weight, bias, eps), mean, var


@cuda.remembered
def batch_norm_eval(input, mean, var, weight=None, bias=None, eps=1e-5):
    contract.batch_norm_eval.check(input, mean, var, weight, bias, eps)
    if has_rows(input):
        x, y, (weight, bias) = rows_of(input), new_with_rows(input), dense_all(weight, bias)
        Rows(1, *x.shape, x).normalize(x, None, rows_of(y), *dense_all(mean, var), weight, bias, eps, False)
        return y
    x, layout = _blocked(input)
    y = cuda.empty(input.shape, input.dtype, input.device)
    return applied(x, y, layout, *dense_all(mean, var), weight, bias, eps) if y.size else y


@cuda.remembered
def batch_norm_train_grad(dy, dmean, dvar, input, weight, mean, var, eps):
    if has_rows(input):
        x, g, dx = rows_of(input), rows_of(dy), new_with_rows(input)
        mean, var, dmean, dvar, weight = dense_all(mean, var, dmean, dvar, weight)
        rows = Rows(1, *x.shape, x)
        return dx, *rows.gradients(g, x, rows_of(dx), mean, var, dmean, dvar, weight, eps, True)
    dx = cuda.empty(input.shape, input.dtype, input.device)
    if not input.size:
        dweight, dbias = (cuda.empty(mean.shape, contract.statistics_dtype(input.dtype), input.device) for _ in "wb")
        cuda.fill_bytes(dweight)
        cuda.fill_bytes(dbias)
        return dx, dweight, dbias
    (x, layout), (g, _) = _blocked(input), _blocked(dy)
    mean, var, dmean, dvar, weight = dense_all(mean, var, dmean, dvar, weight)
    sums, factors = sums_of_gradient(g, x, layout, mean, var, eps)
    dweight, dbias = coefficients(sums, factors, var, dmean, dvar, weight, x.size // mean.size, eps, True)
    return combine(g, x, dx, layout, mean, factors), dweight, dbias


@cuda.remembered
def batch_norm_weight_grad(dy, input, mean, var, eps):
    mean, var = dense_all(mean, var)
    if not input.size:
        dweight = cuda.empty(var.shape, contract.statistics_dtype(input.dtype), input.device)
        cuda.fill_bytes(dweight)
        return dweight
    if has_rows(input):
        x, g = rows_of(input), rows_of(dy)
        rows = Rows(1, *x.shape, x)
        sums, factors = rows.workspace()
        rows.sums(g, x, mean, var, None, eps, sums)
    else:
        (x, layout), (g, _) = _blocked(input), _blocked(dy)
        sums, factors = sums_of_gradient(g, x, layout, mean, var, eps)
    return coefficients(sums, factors, var, None, None, None, x.size // var.size, eps, False)[0]
