"""Batch norm where the channels lie side by side: x is a matrix (rows, channels), as channels-last images are.

Every access is 16 bytes wide: Triton knows of an integer only "divisible by 16 or not", so the number of channels comes
divided by a known power of two, DIV, and masks of whole rows or of whole groups of DIV columns do not split an access.
Two passes forward, two backward, and between them a small kernel that adds up parts of the rows in a fixed order.

The moments are a pass of their own, and no stage of the convolution in front. In a step of ResNet-50 (batch 256, bf16,
H200) that pass reads 5.7 GB, 1.3 ms; as a stage, the sums of a tile over its rows took 113-714 shuffles and 960-4,264
more instructions a thread (sm_90, Triton 3.6, counted in SASS), 2.9 ms of the multiprocessors' issue slots, and a
second program's registers, or spilled.
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
FEW_REGISTERS = 64                      # of kernels that divide in float64: by itself ptxas spills there to have 32


@triton.jit
def tile(x, rows, columns, inside, C):
    """x (R, C) at these rows and columns."""
    return tl.load(x + rows.to(tl.int64)[:, None] * C + columns[None, :], mask=inside, other=0.0)


@triton.jit
def place(C, BC: tl.constexpr):
    """(sample, columns) of a program that works on BC of C channels of a sample: the first dimension of the grid."""
    across = tl.cdiv(C, BC)
    pid = tl.program_id(0)
    return pid // across, pid % across * BC + tl.arange(0, BC)


@triton.jit
def place_of_sums(sums, sample, C, BC: tl.constexpr):
    """Where in sums (2, N, parts, C) this program writes its two rows; parts are the second dimension of the grid."""
    parts = tl.num_programs(1)
    at = sums + (sample * parts + tl.program_id(1)).to(tl.int64) * C
    return at, at + (tl.num_programs(0) // tl.cdiv(C, BC) * parts).to(tl.int64) * C


@triton.jit
def block_of(block, R, BR: tl.constexpr):
    """(sample, rows in all samples, are they the sample's) of a block of BR rows; R rows a sample."""
    blocks = tl.cdiv(R, BR)
    sample = block // blocks
    row = block % blocks * BR + tl.arange(0, BR)
    return sample, sample * R + row, row < R


@triton.jit(do_not_specialize=SUMS)
def moments_of_rows(x, sums, R, CD, ROWS, DIV: tl.constexpr, WIDE: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr):
    """x (N, R, C) -> sums (2, N, parts, C), fp64: means of ROWS rows each, and squares about these. C = CD * DIV.

    Sums are of differences from a part's first row, which keeps their digits where |mean| is far above the deviation.
    Grid: (N * ceil(C / BC), parts).
    """
    C = CD * DIV
    sample, rc = place(C, BC)
    first = sample * R + tl.program_id(1) * ROWS
    last = tl.minimum(first + ROWS, (sample + 1) * R)
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
    at, second = place_of_sums(sums, sample, C, BC)
    tl.store(at + rc, shift.to(tl.float64) + (total / n).to(tl.float64), mask=rc < C)
    tl.store(second + rc, (tl.sum(q, 0) - total * total / n).to(tl.float64), mask=rc < C)


@triton.jit
def of_groups(first, k, size, C, BS: tl.constexpr):
    """(channels k and on of groups that begin at channels `first`, are these theirs), both [groups, BS]."""
    c = (k + tl.arange(0, BS))[None, :]
    return first[:, None] + c, (first < C)[:, None] & (c < size)


@triton.jit
def parts_of(sums, sample, p, PARTS, c, inside, C, BP: tl.constexpr):
    """Of rows p and on of a sample's parts in sums (N, PARTS, C), channels c [groups, BS]: [BP, groups, BS]."""
    rp = (p + tl.arange(0, BP))[:, None, None]
    i = (sample * PARTS + rp).to(tl.int64) * C + c[None, :, :]
    return tl.load(sums + i, mask=(rp < PARTS) & inside[None, :, :], other=0.0)


@triton.jit(do_not_specialize=["R", "C", "ROWS", "PARTS"])
def merge_rows(sums, mean, var, R, C, size, ROWS, PARTS, BP: tl.constexpr, BG: tl.constexpr, BS: tl.constexpr):
    """sums (2, N, PARTS, C), fp64 -> mean, biased variance (N, C): first the mean, then squares about it.

    `size` channels that lie side by side are a group: they have one mean and variance, written for each of them.
    Grid: (N * ceil(C / size / BG),).
    """
    across = tl.cdiv(C // size, BG)
    sample = tl.program_id(0) // across
    squares = sums + (tl.num_programs(0) // across * PARTS).to(tl.int64) * C
    first = (tl.program_id(0) % across * BG + tl.arange(0, BG)) * size
    count = R.to(tl.float64) * size
    total = tl.zeros((BP, BG, BS), tl.float64)
    for p in range(0, PARTS, BP):
        n = tl.minimum(R - (p + tl.arange(0, BP)) * ROWS, ROWS).to(tl.float64)[:, None, None]
        for k in range(0, size, BS):
            c, inside = of_groups(first, k, size, C, BS)
            total += n * parts_of(sums, sample, p, PARTS, c, inside, C, BP)
    middle = tl.sum(tl.sum(total, 2), 0) / count
    square = tl.zeros((BP, BG, BS), tl.float64)
    for p in range(0, PARTS, BP):
        n = tl.minimum(R - (p + tl.arange(0, BP)) * ROWS, ROWS).to(tl.float64)[:, None, None]
        for k in range(0, size, BS):
            c, inside = of_groups(first, k, size, C, BS)
            apart = parts_of(sums, sample, p, PARTS, c, inside, C, BP) - middle[None, :, None]
            part = parts_of(squares, sample, p, PARTS, c, inside, C, BP) + n * apart * apart
            real = (p + tl.arange(0, BP) < PARTS)[:, None, None] & inside[None, :, :]
            square += tl.where(real, part, 0.0)
    middle = tl.broadcast_to(middle[:, None], (BG, BS)).to(mean.dtype.element_ty)
    square = tl.broadcast_to((tl.sum(tl.sum(square, 2), 0) / count)[:, None], (BG, BS)).to(var.dtype.element_ty)
    for k in range(0, size, BS):
        c, inside = of_groups(first, k, size, C, BS)
        tl.store(mean + sample * C + c, middle, mask=inside)
        tl.store(var + sample * C + c, square, mask=inside)


@triton.jit
def mean_of(mean, i, inside, WIDE: tl.constexpr):
    """The means at places i; 0 where mean is None."""
    if mean is None:
        return tl.zeros(i.shape, WIDE)
    else:
        return tl.load(mean + i, mask=inside, other=0.0).to(WIDE)


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
    """y = (x - mean) / sqrt(var + eps) * weight + bias + rest, then relu with RELU; x, y, rest or None (N, R, C).

    mean (N, C) or None for 0, var (N, C), weight, bias (C,) or None; C = CD * DIV.
    Grid: (N * ceil(R / BR) * ceil(C / BC),).
    """
    C = CD * DIV
    block, rc = place(C, BC)
    sample, rr, rows = block_of(block, R, BR)
    inside = rows[:, None] & (rc < C)[None, :]
    at = sample * C
    middle = mean_of(mean, at + rc, rc < C, WIDE)
    factor = factor_of(var + at, weight, eps, rc, C, WIDE)
    v = (tile(x, rr, rc, inside, C).to(WIDE) - middle[None, :]) * factor[None, :]
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
def gradient_of_rows(dy, more, x, y, dz, mean, var, weight, bias, sums, R, CD, ROWS, eps: "fp64",  # noqa: F821
                     RELU: tl.constexpr, DIV: tl.constexpr, WIDE: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr):
    """sums (2, N, parts, C): of dz and of dz * normalised x over ROWS rows each.

    dy, x (N, R, C); more (N, R, C), added to dy, or None. dz: dy, or with RELU dy where the result y was above 0:
    y (N, R, C) is read and dz (N, R, C) written, or both are None, and y is worked out again. mean (N, C) or None for
    0, var (N, C), weight, bias (C,) or None. C = CD * DIV. Grid: (N * ceil(C / BC), parts).
    """
    C = CD * DIV
    sample, rc = place(C, BC)
    first = sample * R + tl.program_id(1) * ROWS
    last = tl.minimum(first + ROWS, (sample + 1) * R)
    var += sample * C
    middle = mean_of(mean, sample * C + rc, rc < C, WIDE)
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
    at, second = place_of_sums(sums, sample, C, BC)
    tl.store(at + rc, tl.sum(s, 0), mask=rc < C)
    tl.store(second + rc, tl.sum(q, 0) * factor_of(var, None, eps, rc, C, WIDE), mask=rc < C)


@triton.jit(do_not_specialize=["C", "PARTS", "count"])
def coefficients_of_parts(sums, var, dmean, dvar, weight, dweight, dbias, factors, C, PARTS, count,
                          eps: "fp64", BATCH: tl.constexpr, WIDE: tl.constexpr, BP: tl.constexpr,  # noqa: F821
                          BC: tl.constexpr):
    """sums (2, PARTS, C) added up: dbias, dweight (C,), and factors (3, C) of `combine_rows`, all WIDE.

    var (C,), weight, dmean, dvar (C,) or None. BATCH: the statistics are the input's own; else two factors are 0.
    Grid: (ceil(C / BC),).
    """
    rc = tl.program_id(0) * BC + tl.arange(0, BC)
    s = tl.zeros((BP, BC), WIDE)
    q = tl.zeros((BP, BC), WIDE)
    for p in range(0, PARTS, BP):
        rp = p + tl.arange(0, BP)
        inside = (rp < PARTS)[:, None] & (rc < C)[None, :]
        s += tl.load(sums + rp[:, None] * C + rc[None, :], mask=inside, other=0.0)
        q += tl.load(sums + (PARTS + rp)[:, None] * C + rc[None, :], mask=inside, other=0.0)
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
    tl.store(factors + rc, a, mask=rc < C)
    tl.store(factors + C + rc, b, mask=rc < C)
    tl.store(factors + 2 * C + rc, c, mask=rc < C)


@triton.jit(do_not_specialize=["R", "CD"])
def combine_rows(dz, x, dx, mean, factors, bias, R, CD, RELU: tl.constexpr, DIV: tl.constexpr, WIDE: tl.constexpr,
                 BR: tl.constexpr, BC: tl.constexpr):
    """dx = a * dz + b * (x - mean) + c; dz, x, dx (N, R, C), mean (N, C), factors a, b, c (3, N, C); C = CD * DIV.

    RELU: of dz only what counts behind relu(a * (x - mean) + bias), bias (C,) or None.
    Grid: (N * ceil(R / BR) * ceil(C / BC),).
    """
    C = CD * DIV
    block, rc = place(C, BC)
    sample, rr, rows = block_of(block, R, BR)
    inside = rows[:, None] & (rc < C)[None, :]
    middle = tl.load(mean + sample * C + rc, mask=rc < C, other=0.0).to(WIDE)[None, :]
    apart = tl.num_programs(0) // tl.cdiv(C, BC) // tl.cdiv(R, BR) * C
    at = factors + sample * C + rc
    a = tl.load(at, mask=rc < C, other=0.0)
    b = tl.load(at + apart, mask=rc < C, other=0.0)[None, :]
    c = tl.load(at + 2 * apart, mask=rc < C, other=0.0)[None, :]
    d = tile(x, rr, rc, inside, C).to(WIDE) - middle
    g = tile(dz, rr, rc, inside, C)
    if RELU:
        g = behind_relu(g, d, a, bias, rc, C, x.dtype.element_ty)
    v = a[None, :] * g.to(WIDE) + b * d + c
    tl.store(dx + rr.to(tl.int64)[:, None] * C + rc[None, :], v.to(dx.dtype.element_ty), mask=inside)


def wide_of(dtype):
    """What is computed in."""
    return tl.float64 if dtype == float64 else tl.float32


class Masked(NamedTuple):
    """What tells where relu let nothing through: its result y, with dz to write; else the bias of the batch norm.

    more: to be added to dy where dz is written.
    """
    y: DeviceArray | None = None
    dz: DeviceArray | None = None
    bias: DeviceArray | None = None
    more: DeviceArray | None = None


def power_up_to(n: int, most: int) -> int:
    """The next power of two, but at most that one."""
    return min(most, triton.next_power_of_2(n))


def merge_tile(parts: int, groups: int, size: int) -> dict:
    """Parts, groups and channels of a group, of so many, that a program looks at together: 1,024 numbers at most."""
    bp, bs = power_up_to(parts, 64), power_up_to(size, 16)
    return dict(BP=bp, BG=power_up_to(groups, min(64, 1024 // (bp * bs))), BS=bs)


def merged(sums: DeviceArray, dtype, rows: int, each: int, size: int = 1) -> tuple[DeviceArray, DeviceArray]:
    """Mean and biased variance (N * C,), for groups of `size` channels, from sums (2, N, parts, C) of `each` rows."""
    _, samples, parts, channels = sums.shape
    padded = -(-samples * channels // 16) * 16                       # both begin at a multiple of 16 bytes
    both = cuda.empty((2, padded), dtype, sums.device)
    mean, var = (both.view((samples * channels,), (1,), k * padded) for k in range(2))
    tile = merge_tile(parts, channels // size, size)
    cuda.launch(merge_rows, (samples * -(-channels // size // tile["BG"]),), sums, mean, var, rows, channels, size,
                each, parts, maxnreg=FEW_REGISTERS, **tile)
    return mean, var


def coefficients(sums, factors, var, dmean, dvar, weight, count: int, eps: float, batch: bool) -> list[DeviceArray]:
    """dweight, dbias (C,) and the factors (..., C) of dx from sums (2, parts, C); `count` rows to a channel."""
    *_, parts, channels = sums.shape
    found = [cuda.empty((channels,), sums.dtype, sums.device) for _ in "wb"]
    cuda.launch(coefficients_of_parts, (-(-channels // 16),), sums, var, dmean, dvar, weight, *found, factors, channels,
                parts, count, float(eps), BATCH=batch, WIDE=wide_of(sums.dtype), BP=64, BC=16)
    return found


def workspace(samples: int, parts: int, channels: int, dtype, device: int) -> tuple[DeviceArray, DeviceArray]:
    """Room for sums (2, N, parts, C) and for factors (5, N, C) that are made of them, in one piece of memory."""
    every = samples * channels
    both = cuda.empty((2 * parts + 5, every), dtype, device)
    return (both.view((2, samples, parts, channels), (parts * every, parts * channels, channels, 1)),
            both.view((5, samples, channels), (every, channels, 1), 2 * parts * every))


class Rows:
    """The cut of matrices (N, R, C) of a dtype into tiles and, for sums, into parts of the rows of each.

    Batch norm has one of all pixels; group norm has one of each sample, with moments of its own.
    """

    def __init__(self, samples: int, rows: int, channels: int, like: DeviceArray):
        self.N, self.R, self.C, self.device = samples, rows, channels, like.device
        self.dtype = contract.statistics_dtype(like.dtype)
        self.div = divisor(16 // like.itemsize, channels)
        bc = min(64, max(16, triton.next_power_of_2(channels)))
        self.options = dict(DIV=self.div, WIDE=wide_of(like.dtype), BC=bc, BR=power_up_to(rows, 2048 // bc))
        self.across = samples * -(-channels // bc)
        self.blocks = -(-rows // self.options["BR"])
        each = -(-self.blocks // max(1, min(self.blocks, PROGRAMS // self.across)))
        self.each = each * self.options["BR"]                        # rows of a part
        self.parts = -(-rows // self.each)

    def moments(self, x: DeviceArray, size: int = 1) -> tuple[DeviceArray, DeviceArray]:
        """Mean and biased variance (N * C,) of each sample's groups of `size` channels, at each channel."""
        sums = cuda.empty((2, self.N, self.parts, self.C), float64, self.device)
        cuda.launch(moments_of_rows, (self.across, self.parts), x, sums, self.R, self.C // self.div, self.each,
                    **self.options)
        return merged(sums, self.dtype, self.R, self.each, size)

    def normalize(self, x, rest, y, mean, var, weight, bias, eps: float, relu: bool) -> None:
        """y = (x - mean) / sqrt(var + eps) * weight + bias + rest, and relu of it.

        Registers are bounded where elements are read one by one: by itself ptxas spills there to have 64 (sm_100).
        """
        cuda.launch(normalize_rows, (self.across * self.blocks,), x, rest, y, mean, var, weight, bias, self.R,
                    self.C // self.div, float(eps), RELU=relu, maxnreg=128 if self.div == 1 else None, **self.options)

    def workspace(self) -> tuple[DeviceArray, DeviceArray]:
        """What `workspace` gives for all samples."""
        return workspace(self.N, self.parts, self.C, self.dtype, self.device)

    def sums(self, dy, x, mean, var, weight, eps: float, sums, masked: Masked | None = None) -> None:
        """Of dy and of dy * normalised x, in parts. masked: a relu follows."""
        y, dz, bias, more = masked or Masked()
        cuda.launch(gradient_of_rows, (self.across, self.parts), dy, more, x, y, dz, mean, var, weight, bias, sums,
                    self.R, self.C // self.div, self.each, float(eps), RELU=masked is not None, **self.options)

    def combine(self, dz, x, dx, mean, factors, bias=None, relu: bool = False) -> None:
        """dx, from the factors; with relu, of dz only what it let through."""
        cuda.launch(combine_rows, (self.across * self.blocks,), dz, x, dx, mean, factors, bias, self.R,
                    self.C // self.div, RELU=relu, **self.options)

    def gradients(self, dy, x, dx, mean, var, dmean, dvar, weight, eps: float, batch: bool,
                  masked: Masked | None = None) -> list[DeviceArray]:
        """Of batch norm: writes dx; -> dweight, dbias. masked: a relu follows."""
        sums, factors = self.workspace()
        self.sums(dy, x, mean, var, weight, eps, sums, masked)
        affine = coefficients(sums, factors, var, dmean, dvar, weight, self.R, eps, batch)
        _, dz, bias, _ = masked or Masked()
        self.combine(dy if dz is None else dz, x, dx, mean, factors, bias, masked is not None and dz is None)
        return affine
