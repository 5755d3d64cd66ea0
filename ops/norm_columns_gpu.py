"""Batch norm where the channels lie side by side: x is a matrix (rows, channels), as channels-last images are.

Every access is 16 bytes wide: Triton knows of an integer only "divisible by 16 or not", so the number of channels comes
divided by a known power of two, DIV, and masks of whole rows or of whole groups of DIV columns do not split an access.
Two passes forward, two backward, and between them a small kernel that adds up parts of the rows in a fixed order.
"""
from typing import NamedTuple

import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import norm as contract
from zoo.ops.cuda import DeviceArray
from zoo.ops.dtypes import float64
from zoo.ops.matmul_gpu import divisor

SUMS = ["R", "CD", "ROWS"]
PROGRAMS = 1056                         # of a pass that sums: eight for each of 132 multiprocessors


@triton.jit
def tile(x, rows, columns, inside, C):
    """x (R, C) at these rows and columns."""
    return tl.load(x + rows.to(tl.int64)[:, None] * C + columns[None, :], mask=inside, other=0.0)


@triton.jit(do_not_specialize=SUMS)
def moments_of_rows(x, means, squares, R, CD, ROWS, DIV: tl.constexpr, WIDE: tl.constexpr, BR: tl.constexpr,
                    BC: tl.constexpr):
    """x (R, C) -> means, squares (parts, C), fp64, of ROWS rows each: squares about the mean. C = CD * DIV.

    Sums are of differences from a part's first row, which keeps their digits where |mean| is far above the deviation.
    Grid: (ceil(C / BC), parts).
    """
    C = CD * DIV
    rc = tl.program_id(0) * BC + tl.arange(0, BC)
    first = tl.program_id(1) * ROWS
    last = tl.minimum(first + ROWS, R)
    shift = tl.load(x + first.to(tl.int64) * C + rc, mask=rc < C, other=0.0).to(WIDE)
    s = tl.zeros((BR, BC), WIDE)
    q = tl.zeros((BR, BC), WIDE)
    for r in range(first, last, BR):
        rr = r + tl.arange(0, BR)
        inside = (rr < last)[:, None] & (rc < C)[None, :]
        d = tl.where(inside, tile(x, rr, rc, inside, C).to(WIDE) - shift[None, :], 0.0)
        s += d
        q += d * d
    n = (last - first).to(WIDE)
    total = tl.sum(s, 0)
    at = tl.program_id(1) * C + rc
    tl.store(means + at, shift.to(tl.float64) + (total / n).to(tl.float64), mask=rc < C)
    tl.store(squares + at, (tl.sum(q, 0) - total * total / n).to(tl.float64), mask=rc < C)


@triton.jit(do_not_specialize=["R", "C", "ROWS", "PARTS"])
def merge_rows(means, squares, mean, var, R, C, ROWS, PARTS, BP: tl.constexpr, BC: tl.constexpr):
    """means, squares (PARTS, C), fp64 -> mean, biased variance (C,): first the mean, then squares about it.

    Grid: (ceil(C / BC),).
    """
    rc = tl.program_id(0) * BC + tl.arange(0, BC)
    total = tl.zeros((BP, BC), tl.float64)
    for p in range(0, PARTS, BP):
        rp = p + tl.arange(0, BP)
        inside = (rp < PARTS)[:, None] & (rc < C)[None, :]
        n = tl.minimum(R - rp * ROWS, ROWS).to(tl.float64)[:, None]
        total += n * tl.load(means + rp[:, None] * C + rc[None, :], mask=inside, other=0.0)
    middle = tl.sum(total, 0) / R
    square = tl.zeros((BP, BC), tl.float64)
    for p in range(0, PARTS, BP):
        rp = p + tl.arange(0, BP)
        inside = (rp < PARTS)[:, None] & (rc < C)[None, :]
        n = tl.minimum(R - rp * ROWS, ROWS).to(tl.float64)[:, None]
        i = rp[:, None] * C + rc[None, :]
        apart = tl.load(means + i, mask=inside, other=0.0) - middle[None, :]
        part = tl.load(squares + i, mask=inside, other=0.0) + n * apart * apart
        square += tl.where(inside, part, 0.0)
    tl.store(mean + rc, middle.to(mean.dtype.element_ty), mask=rc < C)
    tl.store(var + rc, (tl.sum(square, 0) / R).to(var.dtype.element_ty), mask=rc < C)


@triton.jit
def factor_of(var, weight, eps, rc, C, WIDE: tl.constexpr):
    """weight / sqrt(var + eps) of these channels; var (C,), weight (C,) or None."""
    factor = 1 / tl.sqrt(tl.load(var + rc, mask=rc < C, other=1.0).to(WIDE) + eps.to(WIDE))
    if weight is not None:
        factor = factor * tl.load(weight + rc, mask=rc < C, other=0.0).to(WIDE)
    return factor


@triton.jit(do_not_specialize=["R", "CD"])
def normalize_rows(x, rest, y, mean, var, weight, bias, R, CD, eps: "fp64", DIV: tl.constexpr,  # noqa: F821
                   RELU: tl.constexpr, WIDE: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr):
    """y = (x - mean) / sqrt(var + eps) * weight + bias + rest, then relu with RELU; x, y, rest or None (R, C).

    mean, var (C,), weight, bias (C,) or None; C = CD * DIV. Grid: (ceil(C / BC), ceil(R / BR)) in the first dimension.
    """
    C = CD * DIV
    across = tl.cdiv(C, BC)
    rc = tl.program_id(0) % across * BC + tl.arange(0, BC)
    rr = tl.program_id(0) // across * BR + tl.arange(0, BR)
    inside = (rr < R)[:, None] & (rc < C)[None, :]
    middle = tl.load(mean + rc, mask=rc < C, other=0.0).to(WIDE)
    v = (tile(x, rr, rc, inside, C).to(WIDE) - middle[None, :]) * factor_of(var, weight, eps, rc, C, WIDE)[None, :]
    if bias is not None:
        v += tl.load(bias + rc, mask=rc < C, other=0.0).to(WIDE)[None, :]
    if rest is not None:
        v += tile(rest, rr, rc, inside, C).to(WIDE)
    if RELU:
        v = tl.where(v < 0, 0.0, v)                                  # as relu does: what is not a number stays
    tl.store(y + rr.to(tl.int64)[:, None] * C + rc[None, :], v.to(y.dtype.element_ty), mask=inside)


@triton.jit
def behind_relu(g, d, factor, bias, rc, C, DTYPE: tl.constexpr):
    """g [BR, BC] where relu let d * factor + bias through, of DTYPE as `normalize_rows` stored it; 0 elsewhere."""
    v = d * factor[None, :]
    if bias is not None:
        v += tl.load(bias + rc, mask=rc < C, other=0.0).to(d.dtype)[None, :]
    return tl.where(v.to(DTYPE) <= 0, 0.0, g).to(g.dtype)


@triton.jit(do_not_specialize=SUMS)
def gradient_of_rows(dy, more, x, y, dz, mean, var, weight, bias, plain, weighted, R, CD, ROWS, eps: "fp64",  # noqa: F821
                     RELU: tl.constexpr, DIV: tl.constexpr, WIDE: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr):
    """plain, weighted (parts, C): sums of dz and of dz * normalised x over ROWS rows each.

    dy, x (R, C); more (R, C), added to dy, or None. dz: dy, or with RELU dy where the result y was above 0: y (R, C) is
    read and dz (R, C) written, or both are None, and y is worked out again. mean, var (C,), weight, bias (C,) or None.
    C = CD * DIV. Grid: (ceil(C / BC), parts).
    """
    C = CD * DIV
    rc = tl.program_id(0) * BC + tl.arange(0, BC)
    first = tl.program_id(1) * ROWS
    last = tl.minimum(first + ROWS, R)
    middle = tl.load(mean + rc, mask=rc < C, other=0.0).to(WIDE)
    factor = factor_of(var, weight, eps, rc, C, WIDE)
    s = tl.zeros((BR, BC), WIDE)
    q = tl.zeros((BR, BC), WIDE)
    for r in range(first, last, BR):
        rr = r + tl.arange(0, BR)
        inside = (rr < last)[:, None] & (rc < C)[None, :]
        g = tile(dy, rr, rc, inside, C)
        if more is not None:
            g = (g.to(WIDE) + tile(more, rr, rc, inside, C).to(WIDE)).to(g.dtype)
        d = tile(x, rr, rc, inside, C).to(WIDE) - middle[None, :]
        if RELU:
            if y is None:
                g = behind_relu(g, d, factor, bias, rc, C, x.dtype.element_ty)
            else:
                g = tl.where(tile(y, rr, rc, inside, C) <= 0, 0.0, g).to(g.dtype)
                tl.store(dz + rr.to(tl.int64)[:, None] * C + rc[None, :], g, mask=inside)
        s += g.to(WIDE)
        q += g.to(WIDE) * d
    at = tl.program_id(1) * C + rc
    tl.store(plain + at, tl.sum(s, 0), mask=rc < C)
    tl.store(weighted + at, tl.sum(q, 0) * factor_of(var, None, eps, rc, C, WIDE), mask=rc < C)


@triton.jit(do_not_specialize=["C", "PARTS", "count"])
def coefficients_of_parts(plain, weighted, var, dmean, dvar, weight, dweight, dbias, ca, cb, cc, C, PARTS, count,
                          eps: "fp64", BATCH: tl.constexpr, WIDE: tl.constexpr, BP: tl.constexpr,  # noqa: F821
                          BC: tl.constexpr):
    """Parts (PARTS, C) added up: dweight, dbias, and ca, cb, cc (C,) of `combine_rows`, all WIDE.

    var (C,), weight, dmean, dvar (C,) or None. BATCH: the statistics are the input's own; else cb and cc are 0.
    Grid: (ceil(C / BC),).
    """
    rc = tl.program_id(0) * BC + tl.arange(0, BC)
    s = tl.zeros((BP, BC), WIDE)
    q = tl.zeros((BP, BC), WIDE)
    for p in range(0, PARTS, BP):
        rp = p + tl.arange(0, BP)
        inside = (rp < PARTS)[:, None] & (rc < C)[None, :]
        s += tl.load(plain + rp[:, None] * C + rc[None, :], mask=inside, other=0.0)
        q += tl.load(weighted + rp[:, None] * C + rc[None, :], mask=inside, other=0.0)
    ds, dw = tl.sum(s, 0), tl.sum(q, 0)
    a = factor_of(var, weight, eps, rc, C, WIDE)
    b = tl.zeros((BC,), WIDE)
    c = tl.zeros((BC,), WIDE)
    if BATCH:
        n = count.to(WIDE)
        b -= a * factor_of(var, None, eps, rc, C, WIDE) * dw / n
        c -= a * ds / n
        if dvar is not None:
            b += tl.load(dvar + rc, mask=rc < C, other=0.0).to(WIDE) * 2 / n
        if dmean is not None:
            c += tl.load(dmean + rc, mask=rc < C, other=0.0).to(WIDE) / n
    tl.store(dweight + rc, dw, mask=rc < C)
    tl.store(dbias + rc, ds, mask=rc < C)
    tl.store(ca + rc, a, mask=rc < C)
    tl.store(cb + rc, b, mask=rc < C)
    tl.store(cc + rc, c, mask=rc < C)


@triton.jit(do_not_specialize=["R", "CD"])
def combine_rows(dz, x, dx, mean, ca, cb, cc, bias, R, CD, RELU: tl.constexpr, DIV: tl.constexpr, WIDE: tl.constexpr,
                 BR: tl.constexpr, BC: tl.constexpr):
    """dx = ca * dz + cb * (x - mean) + cc; dz, x, dx (R, C), mean, ca, cb, cc (C,); C = CD * DIV.

    RELU: of dz only what counts behind relu(ca * (x - mean) + bias), bias (C,) or None.
    Grid: (ceil(C / BC) * ceil(R / BR),).
    """
    C = CD * DIV
    across = tl.cdiv(C, BC)
    rc = tl.program_id(0) % across * BC + tl.arange(0, BC)
    rr = tl.program_id(0) // across * BR + tl.arange(0, BR)
    inside = (rr < R)[:, None] & (rc < C)[None, :]
    middle = tl.load(mean + rc, mask=rc < C, other=0.0).to(WIDE)[None, :]
    a = tl.load(ca + rc, mask=rc < C, other=0.0)
    b = tl.load(cb + rc, mask=rc < C, other=0.0)[None, :]
    c = tl.load(cc + rc, mask=rc < C, other=0.0)[None, :]
    d = tile(x, rr, rc, inside, C).to(WIDE) - middle
    g = tile(dz, rr, rc, inside, C)
    if RELU:
        g = behind_relu(g, d, a, bias, rc, C, x.dtype.element_ty)
    v = a[None, :] * g.to(WIDE) + b * d + c
    tl.store(dx + rr.to(tl.int64)[:, None] * C + rc[None, :], v.to(dx.dtype.element_ty), mask=inside)


def wide_of(dtype):
    """What is computed in."""
    return tl.float64 if dtype == float64 else tl.float32


def coefficients(plain, weighted, var, dmean, dvar, weight, count: int, eps: float, batch: bool) -> list[DeviceArray]:
    """dweight, dbias and the three factors of dx from the parts (PARTS, C) of both sums; `count` rows to a channel."""
    parts, channels = plain.shape
    found = [cuda.empty((channels,), plain.dtype, plain.device) for _ in range(5)]
    cuda.launch(coefficients_of_parts, (-(-channels // 16),), plain, weighted, var, dmean, dvar, weight, *found,
                channels, parts, count, float(eps), BATCH=batch, WIDE=wide_of(plain.dtype), BP=64, BC=16)
    return found


class Masked(NamedTuple):
    """What tells where relu let nothing through: its result y, with dz to write; else the bias of the batch norm.

    more: to be added to dy where dz is written.
    """
    y: DeviceArray | None = None
    dz: DeviceArray | None = None
    bias: DeviceArray | None = None
    more: DeviceArray | None = None


class Rows:
    """The cut of a matrix (R, C) of a dtype into tiles and, for sums, into parts of the rows."""

    def __init__(self, rows: int, channels: int, like: DeviceArray):
        self.R, self.C, self.device = rows, channels, like.device
        self.dtype = contract.statistics_dtype(like.dtype)
        self.div = divisor(16 // like.itemsize, channels)
        bc = min(64, max(16, triton.next_power_of_2(channels)))
        self.options = dict(DIV=self.div, WIDE=wide_of(like.dtype), BC=bc,
                            BR=max(1, min(2048 // bc, triton.next_power_of_2(rows))))
        self.across = -(-channels // bc)
        blocks = -(-rows // self.options["BR"])
        each = -(-blocks // max(1, min(blocks, PROGRAMS // self.across)))
        self.each = each * self.options["BR"]                        # rows of a part
        self.parts = -(-rows // self.each)

    def partial(self, dtype) -> list[DeviceArray]:
        """Two arrays (parts, C)."""
        return [cuda.empty((self.parts, self.C), dtype, self.device) for _ in range(2)]

    def moments(self, x: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        """Mean and biased variance of each channel."""
        means, squares = self.partial(float64)
        mean, var = (cuda.empty((self.C,), self.dtype, self.device) for _ in "mv")
        cuda.launch(moments_of_rows, (self.across, self.parts), x, means, squares, self.R, self.C // self.div,
                    self.each, **self.options)
        cuda.launch(merge_rows, (-(-self.C // 16),), means, squares, mean, var, self.R, self.C, self.each, self.parts,
                    BP=64, BC=16)
        return mean, var

    def normalize(self, x, rest, y, mean, var, weight, bias, eps: float, relu: bool) -> None:
        """y = (x - mean) / sqrt(var + eps) * weight + bias + rest, and relu of it.

        Registers are bounded where elements are read one by one: by itself ptxas spills there to have 64 (sm_100).
        """
        grid = self.across * -(-self.R // self.options["BR"])
        cuda.launch(normalize_rows, (grid,), x, rest, y, mean, var, weight, bias, self.R, self.C // self.div,
                    float(eps), RELU=relu, maxnreg=128 if self.div == 1 else None, **self.options)

    def gradients(self, dy, x, dx, mean, var, dmean, dvar, weight, eps: float, batch: bool,
                  masked: Masked | None = None) -> list[DeviceArray]:
        """Writes dx; -> dweight, dbias. masked: a relu follows."""
        plain, weighted = self.partial(self.dtype)
        y, dz, bias, more = masked or Masked()
        cuda.launch(gradient_of_rows, (self.across, self.parts), dy, more, x, y, dz, mean, var, weight, bias, plain,
                    weighted, self.R, self.C // self.div, self.each, float(eps), RELU=masked is not None,
                    **self.options)
        dweight, dbias, *factors = coefficients(plain, weighted, var, dmean, dvar, weight, self.R, eps, batch)
        again = masked is not None and dz is None
        cuda.launch(combine_rows, (self.across * -(-self.R // self.options["BR"]),), dy if dz is None else dz, x, dx,
                    mean, *factors, bias, self.R, self.C // self.div, RELU=again, **self.options)
        return [dweight, dbias]
