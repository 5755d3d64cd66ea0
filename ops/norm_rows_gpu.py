"""Kernels of layer, RMS and group norm. Group norm runs on those of batch norm: a group is a channel there."""
import math

import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import norm_rows as contract
from zoo.ops.cuda import DeviceArray
from zoo.ops.dtypes import float64
from zoo.ops.norm_gpu import Layout, applied, combine, dense, dense_all, moments, sums_of_gradient, wide_of

TILE = 2048                             # elements of one step
ROW = 8192                              # up to this length a row is kept in registers


def _grouped(x: DeviceArray, groups: int) -> Layout:
    """x (N, C, ...), dense, as one row of N * groups channels."""
    size = x.size // (x.shape[0] * groups)
    return Layout(1, x.shape[0] * groups, size, x.size, size)


def _by_channel(x: DeviceArray) -> Layout:
    return _grouped(x, x.shape[1])


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    contract.group_norm.check(input, num_groups, weight, bias, eps)
    x, y = dense(input), cuda.empty(input.shape, input.dtype, input.device)
    if not y.size:
        return y
    mean, var = moments(x, _grouped(x, num_groups))
    channels = x.shape[1]
    return applied(x, y, _by_channel(x), mean, var, weight, bias, eps, channels // num_groups, channels)


@triton.jit(do_not_specialize=["C", "size", "count"])
def group_coefficients(plain, weighted, var, weight, ca, cb, cc, C, size, count, eps: "fp64", WIDE: tl.constexpr,  # noqa: F821
                       BLOCK: tl.constexpr):
    """plain, weighted, ca (N, C), var, cb, cc (N, C / size): coefficients of `combine_channels`, in groups of `size`
    channels.

    count: elements of a group; weight (C,) or None. Grid: (N * C / size,).
    """
    group = tl.program_id(0)
    first = group.to(tl.int64) * size
    rstd = 1 / tl.sqrt(tl.load(var + group).to(WIDE) + eps.to(WIDE))
    s = tl.zeros((BLOCK,), WIDE)
    q = tl.zeros((BLOCK,), WIDE)
    for k in range(0, size, BLOCK):
        i = k + tl.arange(0, BLOCK)
        inside = i < size
        w = tl.full((BLOCK,), 1.0, WIDE)
        if weight is not None:
            w = tl.load(weight + (first + i) % C, mask=inside, other=0.0).to(WIDE)
        s += w * tl.load(plain + first + i, mask=inside, other=0.0)
        q += w * tl.load(weighted + first + i, mask=inside, other=0.0)
        tl.store(ca + first + i, w * rstd, mask=inside)
    n = count.to(WIDE)
    tl.store(cb + group, -rstd * rstd * tl.sum(q, 0) / n)
    tl.store(cc + group, -rstd * tl.sum(s, 0) / n)


@triton.jit(do_not_specialize=["R", "C"])
def add_rows(x, y, R, C, BR: tl.constexpr, BC: tl.constexpr):
    """y (C,) = the sum of the rows of x (R, C), in one order. Grid: (ceil(C / BC),)."""
    rc = tl.program_id(0) * BC + tl.arange(0, BC)
    inside = rc < C
    total = tl.zeros((BR, BC), y.dtype.element_ty)
    for r in range(0, R, BR):
        rr = r + tl.arange(0, BR)
        total += tl.load(x + rr[:, None] * C + rc[None, :], mask=(rr < R)[:, None] & inside[None, :], other=0.0)
    tl.store(y + rc, tl.sum(total, 0), mask=inside)


def _rows_added(x: DeviceArray, shape: tuple) -> DeviceArray:
    y = cuda.empty(shape, x.dtype, x.device)
    cuda.launch(add_rows, (-(-y.size // 128),), x, y, x.size // max(y.size, 1), y.size, BR=16, BC=128)
    return y


def no_gradients(input, *shapes: tuple):
    """Gradients of an empty input, and of parameters of these shapes: zeros."""
    affine = [cuda.empty(shape, contract.statistics_dtype(input.dtype), input.device) for shape in shapes]
    for v in affine:
        cuda.fill_bytes(v)
    return cuda.empty(input.shape, input.dtype, input.device), *affine


def group_norm_grad(dy, input, num_groups, weight, eps):
    channels = input.shape[1]
    if not input.size:
        return no_gradients(input, (channels,), (channels,))
    x, g = dense(input), dense(dy)
    layout, size, dtype = _by_channel(x), channels // num_groups, contract.statistics_dtype(x.dtype)
    mean, var = moments(x, _grouped(x, num_groups))
    plain, weighted = sums_of_gradient(g, x, layout, mean, var, eps, size)
    ca, cb, cc = (cuda.empty((n,), dtype, x.device) for n in (layout.C, layout.C // size, layout.C // size))
    weight = weight if weight is None else dense(weight)
    cuda.launch(group_coefficients, (layout.C // size,), plain, weighted, var, weight, ca, cb, cc, channels,
                size, size * layout.L, float(eps), WIDE=wide_of(x.dtype), BLOCK=128)
    dx = combine(g, x, cuda.empty(input.shape, input.dtype, input.device), layout, mean, ca, cb, cc, size)
    return dx, _rows_added(weighted, (channels,)), _rows_added(plain, (channels,))


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
def normalize_rows_grad(dy, x, weight, dx, dweight, dbias, R, ND, ROWS, eps: "fp64", CENTER: tl.constexpr,  # noqa: F821
                        DIV: tl.constexpr, WIDE: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr):
    """dy, x, dx (R, N), N = ND*DIV <= BN; weight (N,) or None; dweight, dbias (parts, N): sums over ROWS rows each.

    CENTER as in `normalize_rows`; without it dbias is None. Mean and deviation are worked out again: x is read anyway.
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
    tl.store(dweight + part * N + i, tl.sum(gw, 0)[None, :], mask=columns)
    if CENTER:
        tl.store(dbias + part * N + i, tl.sum(gb, 0)[None, :], mask=columns)


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
    sums = [cuda.empty((parts, width), contract.statistics_dtype(x.dtype), x.device) for _ in range(1 + center)]
    cuda.launch(normalize_rows_grad, (parts,), g, x, *dense_all(weight), dx, *(sums if center else (*sums, None)), rows,
                width // tile["DIV"], per, float(eps), CENTER=center, WIDE=wide_of(x.dtype), **tile)
    return [dx, *(_rows_added(v, shape) for v in sums)]


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    contract.layer_norm.check(input, normalized_shape, weight, bias, eps)
    return launch_normalize(input, math.prod(normalized_shape), weight, bias, eps, True)


def layer_norm_grad(dy, input, normalized_shape, weight, eps):
    width, shape = math.prod(normalized_shape), tuple(normalized_shape)
    if not input.size:
        return no_gradients(input, shape, shape)
    if width > longest(input.dtype):
        return contract.layer_norm_grad.decompose(dy, input, normalized_shape, weight, eps)
    return tuple(launch_normalize_grad(dy, input, shape, width, weight, eps, True))
