"""Kernels of matrix products: tiles, split along K, stream-K, and persistent with the Hopper tensor memory accelerator.

Triton knows of an integer argument only "divisible by 16 or not", and a K of 1000 would give 2-byte loads; so sizes and
row strides arrive divided by known powers of two (DM, DN, DK) and are multiplied back inside: 16-byte loads again.
Partial products lie in scratch memory and are added in a fixed order: no atomics, and the same bits in every run.

Shared by all: a (M, K), row stride LDA*DK, or lying as (K, M), row stride LDA*DM (TA); b (K, N), row stride LDB*DN, or
lying as (N, K), row stride LDB*DK (TB); M = MD*DM, N = ND*DN, K = KD*DK. SHORT (of a, of b): by how much an operand's
K is less, where the other was padded with zeros (`along_k`). STAGES with operands: epilogue_gpu.py.
Source of stream-K: M. Osama et al., "Stream-K", arXiv 2301.03598.
"""
import triton
import triton.language as tl

from zoo.ops.epilogue_gpu import through

SIZES = ["MD", "ND", "KD", "LDA", "LDB"]


@triton.jit
def tile_of(pid, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Row and column of a tile; GROUP tile rows are walked together, so that their operands stay in the L2 cache."""
    down = tl.cdiv(M, BM)
    across = tl.cdiv(N, BN)
    first = pid // (GROUP * across) * GROUP
    height = tl.minimum(down - first, GROUP)
    rest = pid % (GROUP * across)
    return first + rest % height, rest // height


@triton.jit
def batch_offset(z, sizes, strides, DIMS: tl.constexpr):
    """Where batch element z (row-major over sizes) begins."""
    offset = z.to(tl.int64) * 0
    for k in tl.static_range(DIMS):
        size = sizes[DIMS - 1 - k]
        rest = z // size
        offset += (z - rest * size).to(tl.int64) * strides[DIMS - 1 - k]
        z = rest
    return offset


@triton.jit
def strides_of(LDA, LDB, TA: tl.constexpr, TB: tl.constexpr, DM: tl.constexpr, DN: tl.constexpr, DK: tl.constexpr):
    """Strides (of a along M, of a along K, of b along K, of b along N)."""
    sam, sak = (1, LDA * DM) if TA else (LDA * DK, 1)
    sbk, sbn = (1, LDB * DK) if TB else (LDB * DN, 1)
    return sam, sak, sbk, sbn


@triton.jit
def sum_of_products(a, b, pm, pn, k0, steps, M, N, K, sam, sak, sbk, sbn, SHORT: tl.constexpr, EVEN_K: tl.constexpr,
                    EVEN_MN: tl.constexpr, DOT: tl.constexpr, ACC: tl.constexpr, PRECISION: tl.constexpr,
                    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Tile (pm, pn) of a @ b, summed over `steps` blocks of BK from k0 on, [BM, BN] in ACC.

    EVEN_K: BK divides K; EVEN_MN: BM divides M and BN divides N. DOT: tensor cores or FMA of floats, else integer sums.
    """
    # 64 bits only for the tile's origin, 32 inside the tile
    pa = a + (pm * BM).to(tl.int64) * sam + k0.to(tl.int64) * sak
    pb = b + (pn * BN).to(tl.int64) * sbn + k0.to(tl.int64) * sbk
    pa += tl.arange(0, BM)[:, None] * sam + tl.arange(0, BK)[None, :] * sak
    pb += tl.arange(0, BK)[:, None] * sbk + tl.arange(0, BN)[None, :] * sbn
    inside_m = (pm * BM + tl.arange(0, BM) < M)[:, None]
    inside_n = (pn * BN + tl.arange(0, BN) < N)[None, :]
    rk = k0 + tl.arange(0, BK)
    acc = tl.zeros((BM, BN), ACC)
    for k in range(0, steps):
        if EVEN_K and EVEN_MN:
            x = tl.load(pa)
            y = tl.load(pb)
        elif EVEN_K:
            x = tl.load(pa, mask=inside_m, other=0)
            y = tl.load(pb, mask=inside_n, other=0)
        else:
            x = tl.load(pa, mask=inside_m & (rk + k * BK < K - SHORT[0])[None, :], other=0)
            y = tl.load(pb, mask=(rk + k * BK < K - SHORT[1])[:, None] & inside_n, other=0)
        if DOT:
            acc = tl.dot(x, y, acc, input_precision=PRECISION, out_dtype=ACC)
        else:
            acc += tl.sum(x.to(ACC)[:, :, None] * y.to(ACC)[None, :, :], 1)
        pa += BK * sak
        pb += BK * sbk
    return acc


@triton.jit
def finish(acc, c, z, pm, pn, M, N, STAGES: tl.constexpr, operands, EVEN_MN: tl.constexpr):
    """Tile (pm, pn) of c[z], c (batch, M, N) dense, = acc [BM, BN] through the stages of the epilogue."""
    BM: tl.constexpr = acc.shape[0]
    BN: tl.constexpr = acc.shape[1]
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    first = (z.to(tl.int64) * M + pm * BM) * N
    rows = first + tl.arange(0, BM) * N
    inside_m = rm < M
    inside_n = rn < N
    out = through(acc, STAGES, operands, rows, rn, inside_m, inside_n).to(c.dtype.element_ty)
    pc = c + first + (tl.arange(0, BM)[:, None] * N + rn[None, :])
    if EVEN_MN:
        tl.store(pc, out)
    else:
        tl.store(pc, out, mask=inside_m[:, None] & inside_n[None, :])


# sa, sb are specialised: unless they are multiples of 16, the loads of all k-steps are neither wide nor asynchronous.
@triton.jit(do_not_specialize=[*SIZES, "sizes", "steps"])
def gemm(a, b, c, operands, MD, ND, KD, LDA, LDB, sizes, sa, sb, steps,
         TA: tl.constexpr, TB: tl.constexpr, DM: tl.constexpr, DN: tl.constexpr, DK: tl.constexpr, DIMS: tl.constexpr,
         SPLIT: tl.constexpr, SHORT: tl.constexpr, EVEN_K: tl.constexpr, EVEN_MN: tl.constexpr, DOT: tl.constexpr,
         ACC: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr, SWAP: tl.constexpr, BM: tl.constexpr,
         BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, WIDE: tl.constexpr):
    """c[z] = a[z] @ b[z] through STAGES, or its transpose where SWAP (then a, b are the transposed operands).

    c (batch, M, N) dense, or (batch, N, M) where SWAP; with SPLIT > 1 the partial products (SPLIT, M, N). Batch
    (*sizes) of a at strides sa, of b at sb. A split takes `steps` blocks of BK along K, the last one what is left.
    WIDE: offsets inside of a tile need 64 bits. Grid: (tiles * batch * SPLIT,).
    """
    if WIDE:
        MD, ND, KD = MD.to(tl.int64), ND.to(tl.int64), KD.to(tl.int64)
        LDA, LDB = LDA.to(tl.int64), LDB.to(tl.int64)
    M = MD * DM
    N = ND * DN
    K = KD * DK
    sam, sak, sbk, sbn = strides_of(LDA, LDB, TA, TB, DM, DN, DK)
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    z = tl.program_id(0) // tiles
    pm, pn = tile_of(tl.program_id(0) % tiles, M, N, BM, BN, GROUP)
    first = z * steps if SPLIT > 1 else z * 0
    base = z * 0 if SPLIT > 1 else z
    a += batch_offset(base, sizes, sa, DIMS)
    b += batch_offset(base, sizes, sb, DIMS)
    count = tl.minimum(steps, tl.cdiv(K, BK) - first)
    acc = sum_of_products(a, b, pm, pn, first * BK, count, M, N, K, sam, sak, sbk, sbn, SHORT, EVEN_K, EVEN_MN,
                          DOT, ACC, PRECISION, BM, BN, BK)
    if SWAP:
        finish(tl.trans(acc), c, z, pn, pm, N, M, STAGES, operands, EVEN_MN)
    else:
        finish(acc, c, z, pm, pn, M, N, STAGES, operands, EVEN_MN)


@triton.jit(do_not_specialize=["M", "ND", "SPLIT"])
def add_parts(parts, c, operands, M, ND, SPLIT, DN: tl.constexpr, STAGES: tl.constexpr, BM: tl.constexpr,
              BN: tl.constexpr):
    """c (M, N) = the sum of parts (SPLIT, M, N), in their order, through STAGES; N = ND*DN.

    Grid: (ceil(M / BM), ceil(N / BN)).
    """
    N = ND * DN
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (rm < M)[:, None] & (rn < N)[None, :]
    parts += (tl.program_id(0) * BM).to(tl.int64) * N + (tl.arange(0, BM)[:, None] * N + rn[None, :])
    acc = tl.load(parts, mask=inside, other=0)
    for _ in range(1, SPLIT):
        parts += M.to(tl.int64) * N
        acc += tl.load(parts, mask=inside, other=0)
    finish(acc, c, tl.program_id(0) * 0, tl.program_id(0), tl.program_id(1), M, N, STAGES, operands, False)


@triton.jit(do_not_specialize=[*SIZES, "whole"])
def gemm_stream(a, b, c, parts, operands, MD, ND, KD, LDA, LDB, whole,
                TA: tl.constexpr, TB: tl.constexpr, DM: tl.constexpr, DN: tl.constexpr, DK: tl.constexpr,
                SHORT: tl.constexpr, EVEN_K: tl.constexpr, EVEN_MN: tl.constexpr, ACC: tl.constexpr,
                PRECISION: tl.constexpr, STAGES: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                GROUP: tl.constexpr):
    """c (M, N) dense = a @ b through STAGES, the steps of the last tiles cut evenly over the programs (stream-K).

    The first `whole` tiles, a multiple of the programs, are taken in turn. Of the others' steps, lying one tile after
    the other, every program takes an equal stretch; where it cuts a tile, the part goes to parts (2 * programs, BM,
    BN): a program's part of a tile that another began first, of one that it begins second. Grid: (programs,).
    """
    M = MD * DM
    N = ND * DN
    K = KD * DK
    sam, sak, sbk, sbn = strides_of(LDA, LDB, TA, TB, DM, DN, DK)
    p = tl.program_id(0)
    steps = tl.cdiv(K, BK)
    rest = (tl.cdiv(M, BM) * tl.cdiv(N, BN) - whole) * steps
    each = tl.cdiv(rest, tl.num_programs(0))
    begin = tl.minimum(p * each, rest)
    end = tl.minimum(begin + each, rest)
    at = begin - whole // tl.num_programs(0) * steps          # whole tiles lie before the stretch
    while at < end:
        ahead = tl.maximum(begin - at, 0)
        t = tl.where(ahead > 0, p + whole - ahead // steps * tl.num_programs(0), whole + at // steps)
        k0 = tl.where(ahead > 0, 0, at % steps)
        count = tl.where(ahead > 0, steps, tl.minimum(steps - k0, end - at))
        pm, pn = tile_of(t, M, N, BM, BN, GROUP)
        acc = sum_of_products(a, b, pm, pn, k0 * BK, count, M, N, K, sam, sak, sbk, sbn, SHORT, EVEN_K, EVEN_MN,
                              True, ACC, PRECISION, BM, BN, BK)
        if count == steps:
            finish(acc, c, p * 0, pm, pn, M, N, STAGES, operands, EVEN_MN)
        else:
            part = 2 * p + (k0 == 0).to(tl.int32)
            tl.store(parts + part.to(tl.int64) * (BM * BN)
                     + (tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]), acc)
        at += count


@triton.jit(do_not_specialize=["MD", "ND", "steps", "whole", "programs"])
def add_stretches(parts, c, operands, MD, ND, steps, whole, programs, DM: tl.constexpr, DN: tl.constexpr,
                  STAGES: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ROWS: tl.constexpr, GROUP: tl.constexpr):
    """The tiles of c (M, N) that `gemm_stream` cut: sums of its parts, in order, through STAGES.

    ROWS rows of a tile at a time. Grid: (tiles - whole, BM / ROWS).
    """
    M = MD * DM
    N = ND * DN
    r = tl.program_id(0)
    each = tl.cdiv(tl.num_programs(0) * steps, programs)
    first = r * steps // each
    last = ((r + 1) * steps - 1) // each
    if first < last:
        pm, pn = tile_of(whole + r, M, N, BM, BN, GROUP)
        row = tl.program_id(1) * ROWS
        at = (row + tl.arange(0, ROWS))[:, None] * BN + tl.arange(0, BN)[None, :]
        acc = tl.load(parts + (2 * first + 1).to(tl.int64) * (BM * BN) + at)
        for q in range(first + 1, last + 1):
            acc += tl.load(parts + (2 * q + r * 0).to(tl.int64) * (BM * BN) + at)
        finish(acc, c, r * 0, pm * (BM // ROWS) + tl.program_id(1), pn, M, N, STAGES, operands, False)


@triton.jit(do_not_specialize=["R", "K", "STRIDE", "KD"])
def along_k(x, y, R, K, STRIDE, KD, TURNED: tl.constexpr, DIV: tl.constexpr, BR: tl.constexpr, BK: tl.constexpr):
    """y (R, KD*DIV) dense = x (R, K) and zeros behind it; x has row stride STRIDE, or lies as (K, R) if TURNED.

    Grid: (ceil(R / BR) * ceil(KD*DIV / BK),).
    """
    width = KD * DIV
    across = tl.cdiv(width, BK)
    r = (tl.program_id(0) // across).to(tl.int64) * BR + tl.arange(0, BR)[:, None]
    k = tl.program_id(0) % across * BK + tl.arange(0, BK)[None, :]
    at = k.to(tl.int64) * STRIDE + r if TURNED else r * STRIDE + k
    values = tl.load(x + at, mask=(r < R) & (k < K), other=0)
    tl.store(y + r * width + k, values, mask=(r < R) & (k < width))


@triton.jit
def load_operand(x, row, column, TURNED: tl.constexpr):
    """The block at (row, column) of a matrix behind a descriptor, which describes its transpose if TURNED."""
    if TURNED:
        return x.load([column, row]).T
    else:
        return x.load([row, column])


@triton.jit(do_not_specialize=SIZES)
def gemm_tma(a, b, c, operands, MD, ND, KD, LDA, LDB,
             TA: tl.constexpr, TB: tl.constexpr, DM: tl.constexpr, DN: tl.constexpr, DK: tl.constexpr,
             SHORT: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
             BK: tl.constexpr, GROUP: tl.constexpr, SUB: tl.constexpr, FLATTEN: tl.constexpr, WS: tl.constexpr):
    """c (M, N) dense = a @ b through STAGES: persistent programs, blocks copied by the tensor memory accelerator.

    Addresses and row strides of a and b are multiples of 16 bytes, with SUB > 0 of c too. What lies outside is read as
    0 and not written. SUB: a tile is stored in that many stripes of columns, which need less shared memory; with 0 by
    its threads, whatever the length of a row. FLATTEN: the next tile's first blocks are fetched while this one is
    stored. WS: one warp group fetches, the others multiply. Grid: (programs,).
    """
    M = MD * DM
    N = ND * DN
    K = KD * DK
    if TA:
        xs = tl.make_tensor_descriptor(a, [K - SHORT[0], M], [LDA * DM, 1], [BK, BM])
    else:
        xs = tl.make_tensor_descriptor(a, [M, K - SHORT[0]], [LDA * DK, 1], [BM, BK])
    if TB:
        ys = tl.make_tensor_descriptor(b, [N, K - SHORT[1]], [LDB * DK, 1], [BN, BK])
    else:
        ys = tl.make_tensor_descriptor(b, [K - SHORT[1], N], [LDB * DN, 1], [BK, BN])
    if SUB == 0:
        out = c
    else:
        out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN // SUB])
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    for t in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLATTEN, warp_specialize=WS):
        pm, pn = tile_of(t, M, N, BM, BN, GROUP)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            x = load_operand(xs, pm * BM, k * BK, TA)
            y = load_operand(ys, k * BK, pn * BN, TB)
            acc = tl.dot(x, y, acc, input_precision=PRECISION)
        rows = (pm * BM).to(tl.int64) * N + tl.arange(0, BM) * N
        inside_m = pm * BM + tl.arange(0, BM) < M
        if SUB == 0:
            finish(acc, c, pm * 0, pm, pn, M, N, STAGES, operands, False)
        elif SUB == 1:
            rn = pn * BN + tl.arange(0, BN)
            acc = through(acc, STAGES, operands, rows, rn, inside_m, rn < N)
            out.store([pm * BM, pn * BN], acc.to(c.dtype.element_ty))
        else:
            left, right = tl.split(tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1)))
            rn = pn * BN + tl.arange(0, BN // 2)
            left = through(left, STAGES, operands, rows, rn, inside_m, rn < N)
            out.store([pm * BM, pn * BN], left.to(c.dtype.element_ty))
            rn += BN // 2
            right = through(right, STAGES, operands, rows, rn, inside_m, rn < N)
            out.store([pm * BM, pn * BN + BN // 2], right.to(c.dtype.element_ty))
