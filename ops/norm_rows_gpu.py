"""Kernels of layer, RMS and group norm. Group norm runs on those of batch norm: a group is a channel there."""
import math

import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import norm_rows as contract
from zoo.ops.cuda import DeviceArray
from zoo.ops.dtypes import float64
from zoo.ops.norm_columns_gpu import FEW_REGISTERS, Rows, merge_tile, of_groups, parts_of, power_up_to
from zoo.ops.norm_gpu import (
    Layout,
    applied,
    combine,
    dense,
    dense_all,
    has_rows,
    moments,
    new_with_rows,
    rows_of,
    sums_of_gradient,
    wide_of,
)

TILE = 2048                             # elements of one step
ROW = 8192                              # up to this length a row is kept in registers


def _grouped(x: DeviceArray, groups: int) -> Layout:
    """x (N, C, ...), dense, as one row of N * groups channels."""
    size = x.size // (x.shape[0] * groups)
    return Layout(1, x.shape[0] * groups, size, x.size, size)


def _by_channel(x: DeviceArray) -> Layout:
    return _grouped(x, x.shape[1])


def _last(x: DeviceArray) -> bool:
    """Do the channels of x (N, C, ...) lie side by side, behind each other the pixels of a sample?"""
    return not x.is_contiguous and has_rows(x)


def _rows_of_samples(x: DeviceArray) -> Rows:
    """The cut of x (N, C, ...) into a matrix (pixels, C) for each sample."""
    return Rows(x.shape[0], math.prod(x.shape[2:]), x.shape[1], x)


@cuda.remembered
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    contract.group_norm.check(input, num_groups, weight, bias, eps)
    channels = input.shape[1]
    size = channels // num_groups
    if _last(input):
        rows, x, y = _rows_of_samples(input), rows_of(input), new_with_rows(input)
        mean, var = rows.moments(x, size)
        rows.normalize(x, None, rows_of(y), mean, var, *dense_all(weight, bias), eps, False)
        return y
    x, y = dense(input), cuda.empty(input.shape, input.dtype, input.device)
    if not y.size:
        return y
    mean, var = moments(x, _grouped(x, num_groups))
    return applied(x, y, _by_channel(x), mean, var, weight, bias, eps, size, channels)


@triton.jit(do_not_specialize=["C", "PARTS", "apart", "count"])
def group_coefficients(sums, var, weight, factors, C, size, PARTS, apart, count, eps: "fp64", WIDE: tl.constexpr,  # noqa: F821
                       BP: tl.constexpr, BG: tl.constexpr, BS: tl.constexpr):
    """sums (2, N, PARTS, C) -> factors (5, N, C): a, b, c of `combine_rows`, and the sums over all parts.

    Groups are `size` channels, of `count` elements; var (N, C / size) or (N, C): those of two groups are `apart`;
    weight (C,) or None. Grid: (N * ceil(C / size / BG),).
    """
    across = tl.cdiv(C // size, BG)
    sample = tl.program_id(0) // across
    samples = tl.num_programs(0) // across
    group = tl.program_id(0) % across * BG + tl.arange(0, BG)
    first = group * size
    of_group = (sample * (C // size) + group) * apart
    rstd = 1 / tl.sqrt(tl.load(var + of_group, mask=first < C, other=1.0).to(WIDE) + eps.to(WIDE))
    s = tl.zeros((BG, BS), WIDE)
    q = tl.zeros((BG, BS), WIDE)
    for k in range(0, size, BS):
        c, inside = of_groups(first, k, size, C, BS)
        w = tl.full((BG, BS), 1.0, WIDE)
        if weight is not None:
            w = tl.load(weight + c, mask=inside, other=0.0).to(WIDE)
        plain = tl.zeros((BG, BS), WIDE)
        weighted = tl.zeros((BG, BS), WIDE)
        for p in range(0, PARTS, BP):
            plain += tl.sum(parts_of(sums, sample, p, PARTS, c, inside, C, BP), 0)
            weighted += tl.sum(parts_of(sums, samples + sample, p, PARTS, c, inside, C, BP), 0)
        s += w * plain
        q += w * weighted
        at = factors + sample * C + c
        tl.store(at, w * rstd[:, None], mask=inside)
        tl.store(at + 3 * samples * C, plain, mask=inside)
        tl.store(at + 4 * samples * C, weighted, mask=inside)
    n = count.to(WIDE)
    b = tl.broadcast_to((-rstd * rstd * tl.sum(q, 1) / n)[:, None], (BG, BS))
    d = tl.broadcast_to((-rstd * tl.sum(s, 1) / n)[:, None], (BG, BS))
    for k in range(0, size, BS):
        c, inside = of_groups(first, k, size, C, BS)
        tl.store(factors + (samples + sample) * C + c, b, mask=inside)
        tl.store(factors + (2 * samples + sample) * C + c, d, mask=inside)


@triton.jit(do_not_specialize=["R", "C"])
def add_rows(x, y, z, R, C, BR: tl.constexpr, BC: tl.constexpr):
    """y, z (C,) = the sums of the rows of x[0] and x[1], in one order; x (2, R, C), or (R, C) where z is None.

    Grid: (ceil(C / BC),), or where z is given twice as many in the second dimension.
    """
    rc = tl.program_id(0) * BC + tl.arange(0, BC)
    inside = rc < C
    x += (tl.program_id(1) * R).to(tl.int64) * C
    total = tl.zeros((BR, BC), y.dtype.element_ty)
    for r in range(0, R, BR):
        rr = r + tl.arange(0, BR)
        total += tl.load(x + rr[:, None] * C + rc[None, :], mask=(rr < R)[:, None] & inside[None, :], other=0.0)
    if tl.program_id(1) == 0:
        tl.store(y + rc, tl.sum(total, 0), mask=inside)
    elif z is not None:
        tl.store(z + rc, tl.sum(total, 0), mask=inside)


def _rows_added(x: DeviceArray, shape: tuple) -> list[DeviceArray]:
    """Of x (1 or 2, R, C) the sums over R, of that shape."""
    count, rows, channels = x.shape
    found = [cuda.empty(shape, x.dtype, x.device) for _ in range(count)]
    bc = power_up_to(channels, 128)
    cuda.launch(add_rows, (-(-channels // bc), count), x, *found, *(None,) * (2 - count), rows, channels, BR=2048 // bc,
                BC=bc)
    return found


def no_gradients(input, *shapes: tuple):
    """Gradients of an empty input, and of parameters of these shapes: zeros."""
    affine = [cuda.empty(shape, contract.statistics_dtype(input.dtype), input.device) for shape in shapes]
    for v in affine:
        cuda.fill_bytes(v)
    return cuda.empty(input.shape, input.dtype, input.device), *affine


def _affine_and_factors(sums, factors, var, weight, shape: tuple, size: int, pixels: int, apart: int, eps: float):
    """Writes factors (5, N, C) from sums (2, N, parts, C), (N, C) = shape; -> dweight, dbias (C,)."""
    samples, channels = shape
    parts = sums.size // (2 * samples * channels)
    tile = merge_tile(parts, channels // size, size)
    cuda.launch(group_coefficients, (samples * -(-channels // size // tile["BG"]),), sums, var, weight, factors,
                channels, size, parts, apart, size * pixels, float(eps), WIDE=wide_of(sums.dtype),
                maxnreg=FEW_REGISTERS, **tile)
    every, row = samples * channels, (channels,)
    dbias, dweight = _rows_added(factors.view((2, *shape), (every, channels, 1), 3 * every), row)
    return dweight, dbias


@cuda.remembered
def group_norm_grad(dy, input, num_groups, weight, eps):
    channels = input.shape[1]
    if not input.size:
        return no_gradients(input, (channels,), (channels,))
    size, pixels, (weight,) = channels // num_groups, math.prod(input.shape[2:]), dense_all(weight)
    if _last(input):
        rows, x, g, dx = _rows_of_samples(input), rows_of(input), rows_of(dy), new_with_rows(input)
        mean, var = rows.moments(x, size)
        sums, factors = rows.workspace()
        rows.sums(g, x, mean, var, None, eps, sums)
        affine = _affine_and_factors(sums, factors, var, weight, input.shape[:2], size, pixels, size, eps)
        rows.combine(g, x, rows_of(dx), mean, factors)
        return dx, *affine
    x, g, layout = dense(input), dense(dy), _by_channel(input)
    mean, var = moments(x, _grouped(x, num_groups))
    sums, factors = sums_of_gradient(g, x, layout, mean, var, eps, size)
    affine = _affine_and_factors(sums, factors, var, weight, input.shape[:2], size, pixels, 1, eps)
    dx = combine(g, x, cuda.empty(input.shape, input.dtype, input.device), layout, mean, factors, size)
    return dx, *affine


@triton.jit(do_not_specialize=["R", "ND"])
def normalize_rows(x, y, weight, bias, R, ND, eps: "fp64", CENTER: tl.constexpr, DIV: tl.constexpr,  # noqa: F821
                   WIDE: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr):
    """x, y (R, N), N = ND*DIV; weight, bias (N,) or None. A row in registers if BN >= N, else read three times.

    CENTER: about the mean, else (RMS norm) about 0. Grid: (ceil(R / BR),).
    """
    N = ND * DIV
    rr = tl.program_id(0).to(tl.int64) * BR + tl.arange(0, BR)
    rows = (rr < R)[:, None]
    base = rr[:, None] * N
    mean = tl.zeros((BR, 1), WIDE)
    if CENTER:
        total = tl.zeros((BR, BN), WIDE)
        for j in range(0, N, BN):
            i = (j + tl.arange(0, BN))[None, :]
            total += tl.load(x + base + i, mask=rows & (i < N), other=0.0).to(WIDE)
        mean = (tl.sum(total, 1) / N)[:, None]
    total = tl.zeros((BR, BN), WIDE)
    missed = tl.zeros((BR, BN), WIDE)                # what rounding left of the mean, in its own small numbers
    for j in range(0, N, BN):
        i = (j + tl.arange(0, BN))[None, :]
        inside = rows & (i < N)
        d = tl.where(inside, tl.load(x + base + i, mask=inside, other=0.0).to(WIDE) - mean, 0.0)
        total += d * d
        if CENTER:
            missed += d
    rest = tl.sum(missed, 1) / N
    rstd = (1 / tl.sqrt(tl.sum(total, 1) / N - rest * rest + eps.to(WIDE)))[:, None]
    for j in range(0, N, BN):
        i = (j + tl.arange(0, BN))[None, :]
        inside = rows & (i < N)
        v = (tl.load(x + base + i, mask=inside, other=0.0).to(WIDE) - mean - rest[:, None]) * rstd
        if weight is not None:
            v = v * tl.load(weight + i, mask=i < N, other=0.0).to(WIDE)
        if bias is not None:
            v = v + tl.load(bias + i, mask=i < N, other=0.0).to(WIDE)
        tl.store(y + base + i, v.to(y.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["R", "ND", "ROWS"])
def normalize_rows_grad(dy, x, weight, dx, sums, R, ND, ROWS, eps: "fp64", CENTER: tl.constexpr,  # noqa: F821
                        DIV: tl.constexpr, WIDE: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr):
    """dy, x, dx (R, N), N = ND*DIV <= BN; weight (N,) or None; sums (2, parts, N): over ROWS rows each, the
    gradients of weight and bias. CENTER as in `normalize_rows`; without it sums are (1, parts, N), of weight alone.

    Mean and deviation are worked out again: x is read anyway.
    Grid: (ceil(R / ROWS),).
    """
    N = ND * DIV
    part = tl.program_id(0)
    first = part * ROWS
    last = tl.minimum(first + ROWS, R)
    i = tl.arange(0, BN)[None, :]
    columns = i < N
    w = tl.full((1, BN), 1.0, WIDE)
    if weight is not None:
        w = tl.load(weight + i, mask=columns, other=0.0).to(WIDE)
    gw = tl.zeros((BR, BN), WIDE)
    gb = tl.zeros((BR, BN), WIDE)
    for r in range(first, last, BR):
        rr = r + tl.arange(0, BR)
        inside = (rr < last)[:, None] & columns
        base = rr.to(tl.int64)[:, None] * N
        v = tl.load(x + base + i, mask=inside, other=0.0).to(WIDE)
        g = tl.load(dy + base + i, mask=inside, other=0.0).to(WIDE)
        d = v
        if CENTER:
            d = tl.where(inside, v - (tl.sum(v, 1) / N)[:, None], 0.0)
            d = tl.where(inside, d - (tl.sum(d, 1) / N)[:, None], 0.0)
        rstd = (1 / tl.sqrt(tl.sum(d * d, 1) / N + eps.to(WIDE)))[:, None]
        h = tl.where(inside, d * rstd, 0.0)                 # eps < 0 makes rstd of a masked row nan
        gw += g * h
        if CENTER:
            gb += g
        g = g * w
        out = g - h * (tl.sum(g * h, 1) / N)[:, None]
        if CENTER:
            out -= (tl.sum(g, 1) / N)[:, None]
        out *= rstd
        tl.store(dx + base + i, out.to(dx.dtype.element_ty), mask=inside)
    tl.store(sums + part * N + i, tl.sum(gw, 0)[None, :], mask=columns)
    if CENTER:
        tl.store(sums + (tl.num_programs(0) + part) * N + i, tl.sum(gb, 0)[None, :], mask=columns)


def _divisor(n: int) -> int:
    """A power of two up to 16 that divides the row length: the kernel multiplies it back, see matmul_gpu."""
    return next(d for d in (16, 8, 4, 2, 1) if n % d == 0)


def _row_tile(width: int) -> dict:
    bn = min(ROW, triton.next_power_of_2(max(width, 1)))
    return dict(BR=max(1, min(32, TILE // bn)), BN=bn, DIV=_divisor(width), num_warps=8 if bn > 2048 else 4)


def longest(dtype) -> int:
    """Elements of a row whose gradient stays in registers: six numbers of each, and float64 takes two."""
    return ROW // 4 if dtype == float64 else ROW


def launch_normalize(input, width: int, weight, bias, eps: float, center: bool):
    """Rows of so many elements of input, about their mean or about 0."""
    x, y = dense(input), cuda.empty(input.shape, input.dtype, input.device)
    if y.size:
        tile, rows = _row_tile(width), x.size // width
        cuda.launch(normalize_rows, (-(-rows // tile["BR"]),), x, y, *dense_all(weight, bias), rows,
                    width // tile["DIV"], float(eps), CENTER=center, WIDE=wide_of(x.dtype), **tile)
    return y


def launch_normalize_grad(dy, input, shape: tuple, width: int, weight, eps: float, center: bool) -> list:
    """dinput, dweight and, about the mean, dbias, both of `shape`: `width` elements, at most `longest`."""
    x, g, dx = dense(input), dense(dy), cuda.empty(input.shape, input.dtype, input.device)
    tile, rows = _row_tile(width), x.size // width
    per = -(-rows // (264 * tile["BR"])) * tile["BR"]
    parts = -(-rows // per)
    sums = cuda.empty((1 + center, parts, width), contract.statistics_dtype(x.dtype), x.device)
    cuda.launch(normalize_rows_grad, (parts,), g, x, *dense_all(weight), dx, sums, rows,
                width // tile["DIV"], per, float(eps), CENTER=center, WIDE=wide_of(x.dtype), **tile)
    return [dx, *_rows_added(sums, shape)]


@cuda.remembered
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    contract.layer_norm.check(input, normalized_shape, weight, bias, eps)
    return launch_normalize(input, math.prod(normalized_shape), weight, bias, eps, True)


@cuda.remembered
def layer_norm_grad(dy, input, normalized_shape, weight, eps):
    width, shape = math.prod(normalized_shape), tuple(normalized_shape)
    if not input.size:
        return no_gradients(input, shape, shape)
    if width > longest(input.dtype):
        return contract.layer_norm_grad.decompose(dy, input, normalized_shape, weight, eps)
    return tuple(launch_normalize_grad(dy, input, shape, width, weight, eps, True))
