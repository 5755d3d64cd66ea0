"""Kernels of the recurrent layers' backward loops, from the outputs' gradients to those of the gates' sums.

As in rnn_forward_gpu.py a program owns BB sequences and BH hidden units for all steps, walked the other way round.
after (N,) says in which row a sequence's next walked step is, -1 at its end. What goes through memory are the gates'
gradients: the state's gradient is their product with w (gates*H, H), K = gates*H, of the row after.
dh (B, H), WIDE, comes with the gradient of the last states, and goes with what dh0 is beside such a product.
"""
import triton
import triton.language as tl

from zoo.ops.rnn_forward_gpu import block, grid_barrier


@triton.jit
def columns_of(w, units, rows, count, H):
    """w (*, H): these rows, the first `count` of them, and the columns of `units`."""
    pointers = w + rows[:, None].to(tl.int64) * H + units[None, :]
    inside = tl.arange(0, rows.shape[0]) < count
    return tl.load(pointers, mask=inside[:, None] & (units < H)[None, :], other=0.0)


@triton.jit
def add_gate(e, d, rows, there, gate, gates: tl.constexpr, held, H, PRECISION: tl.constexpr, BK: tl.constexpr):
    """e (BB, BH) + d[rows] @ held: the columns of one gate of d (N, gates*H), and its weights (BK, BH)."""
    part = block(d + gate * H, rows, there, tl.arange(0, BK), H, gates * H)
    return tl.dot(part, held, e, input_precision=PRECISION, out_dtype=e.dtype)


@triton.jit
def add_product(e, d, rows, there, w, units, K, H, PRECISION: tl.constexpr, BK: tl.constexpr):
    """e (BB, BH) + d[rows] @ w, in blocks of BK: d (N, K), w (K, H) at the columns of `units`."""
    for j in range(0, K, BK):
        rk = j + tl.arange(0, BK)
        e = tl.dot(block(d, rows, there, rk, K, K), columns_of(w, units, rk, K - j, H), e, input_precision=PRECISION,
                   out_dtype=e.dtype)
    return e


@triton.jit(do_not_specialize=["first", "last", "steps", "B", "programs"])
def rnn_steps_back(dy, w, slope, dgates, dh, after, starts, bar, first, last, steps, B, H, programs,
                   REVERSE: tl.constexpr, PERSIST: tl.constexpr, RESIDENT: tl.constexpr, WIDE: tl.constexpr,
                   PRECISION: tl.constexpr, BB: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr):
    """dy, slope, dgates (N, H), w (H, H), dh (B, H), after (N,), starts (steps + 1,), bar (1,).

    Grid: (programs,) = (ceil(B / BB) * ceil(H / BH),).
    """
    blocks = tl.cdiv(B, BB)
    rb = tl.program_id(0) % blocks * BB + tl.arange(0, BB)
    ru = tl.program_id(0) // blocks * BH + tl.arange(0, BH)
    inside = (rb < B)[:, None] & (ru < H)[None, :]
    state = rb[:, None] * H + ru[None, :]
    kept = tl.load(dh + state, mask=inside, other=0.0)
    rk = tl.arange(0, BK)
    w0 = columns_of(w, ru, rk, H, H) if RESIDENT else 0
    for k in range(first, last):
        t = k if REVERSE else steps - 1 - k
        start = tl.load(starts + t)
        active = rb < tl.load(starts + t + 1) - start
        mask = active[:, None] & (ru < H)[None, :]
        here = (start + rb)[:, None] * H + ru[None, :]
        e = kept + tl.load(dy + here, mask=mask, other=0.0).to(WIDE)
        later = tl.load(after + start + rb, mask=active, other=-1)
        there = active & (later >= 0)
        later = tl.where(there, later, 0)
        if RESIDENT:
            e = add_gate(e, dgates, later, there, 0, 1, w0, H, PRECISION, BK)
        else:
            e = add_product(e, dgates, later, there, w, ru, H, H, PRECISION, BK)
        d = e * tl.load(slope + here, mask=mask, other=0.0).to(WIDE)
        tl.store(dgates + here, d.to(dgates.dtype.element_ty), mask=mask)
        kept = tl.where(mask, 0.0, kept)
        if PERSIST:
            grid_barrier(bar, (k - first + 1) * programs)
    tl.store(dh + state, kept, mask=inside)


@triton.jit(do_not_specialize=["first", "last", "steps", "B", "programs"])
def lstm_steps_back(dy, w, gates, cells, dgates, dh, dc, after, starts, bar, first, last, steps, B, H, programs,
                    REVERSE: tl.constexpr, PERSIST: tl.constexpr, RESIDENT: tl.constexpr, WIDE: tl.constexpr,
                    PRECISION: tl.constexpr, BB: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr):
    """dy (N, H), w (4H, H), gates (N, 4H): i, f, o, g, cells (N, 2H); dgates (N, 4H): i, f, g, o; dh, dc (B, H), WIDE:
    in and out; after (N,), starts (steps + 1,), bar (1,).

    Grid: (programs,) = (ceil(B / BB) * ceil(H / BH),).
    """
    blocks = tl.cdiv(B, BB)
    rb = tl.program_id(0) % blocks * BB + tl.arange(0, BB)
    ru = tl.program_id(0) // blocks * BH + tl.arange(0, BH)
    inside = (rb < B)[:, None] & (ru < H)[None, :]
    state = rb[:, None] * H + ru[None, :]
    kept = tl.load(dh + state, mask=inside, other=0.0)
    dcell = tl.load(dc + state, mask=inside, other=0.0)
    rk = tl.arange(0, BK)
    wi = columns_of(w, ru, rk, H, H) if RESIDENT else 0
    wf = columns_of(w, ru, H + rk, H, H) if RESIDENT else 0
    wg = columns_of(w, ru, 2 * H + rk, H, H) if RESIDENT else 0
    wo = columns_of(w, ru, 3 * H + rk, H, H) if RESIDENT else 0
    for k in range(first, last):
        t = k if REVERSE else steps - 1 - k
        start = tl.load(starts + t)
        active = rb < tl.load(starts + t + 1) - start
        mask = active[:, None] & (ru < H)[None, :]
        rows = (start + rb)[:, None]
        e = kept + tl.load(dy + rows * H + ru[None, :], mask=mask, other=0.0).to(WIDE)
        later = tl.load(after + start + rb, mask=active, other=-1)
        there = active & (later >= 0)
        later = tl.where(there, later, 0)
        if RESIDENT:
            e = add_gate(e, dgates, later, there, 0, 4, wi, H, PRECISION, BK)
            e = add_gate(e, dgates, later, there, 1, 4, wf, H, PRECISION, BK)
            e = add_gate(e, dgates, later, there, 2, 4, wg, H, PRECISION, BK)
            e = add_gate(e, dgates, later, there, 3, 4, wo, H, PRECISION, BK)
        else:
            e = add_product(e, dgates, later, there, w, ru, 4 * H, H, PRECISION, BK)
        pg = gates + rows * (4 * H) + ru[None, :]
        pc = cells + rows * (2 * H) + ru[None, :]
        i, f = tl.load(pg, mask=mask, other=0.0), tl.load(pg + H, mask=mask, other=0.0)
        o, g = tl.load(pg + 2 * H, mask=mask, other=0.0), tl.load(pg + 3 * H, mask=mask, other=0.0)
        before, bent = tl.load(pc, mask=mask, other=0.0), tl.load(pc + H, mask=mask, other=0.0)
        d = dcell + e * o * (1 - bent * bent)
        pd = dgates + rows * (4 * H) + ru[None, :]
        kind = dgates.dtype.element_ty
        tl.store(pd, (d * g * i * (1 - i)).to(kind), mask=mask)
        tl.store(pd + H, (d * before * f * (1 - f)).to(kind), mask=mask)
        tl.store(pd + 2 * H, (d * i * (1 - g * g)).to(kind), mask=mask)
        tl.store(pd + 3 * H, (e * bent * o * (1 - o)).to(kind), mask=mask)
        dcell = tl.where(mask, d * f, dcell)
        kept = tl.where(mask, 0.0, kept)
        if PERSIST:
            grid_barrier(bar, (k - first + 1) * programs)
    tl.store(dh + state, kept, mask=inside)
    tl.store(dc + state, dcell, mask=inside)


@triton.jit(do_not_specialize=["first", "last", "steps", "B", "programs"])
def gru_steps_back(dy, w, gates, hidden, states, dgates, dstates, dh, after, starts, bar, first, last, steps, B, H,
                   programs, REVERSE: tl.constexpr, PERSIST: tl.constexpr, RESIDENT: tl.constexpr, WIDE: tl.constexpr,
                   PRECISION: tl.constexpr, BB: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr):
    """dy, hidden and states, the ones before the rows, (N, H), w (3H, H), gates (N, 3H): r, z, n; dgates, dstates
    (N, 3H); dh (B, H), WIDE: in and out; after (N,), starts (steps + 1,), bar (1,).

    Grid: (programs,) = (ceil(B / BB) * ceil(H / BH),).
    """
    blocks = tl.cdiv(B, BB)
    rb = tl.program_id(0) % blocks * BB + tl.arange(0, BB)
    ru = tl.program_id(0) // blocks * BH + tl.arange(0, BH)
    inside = (rb < B)[:, None] & (ru < H)[None, :]
    state = rb[:, None] * H + ru[None, :]
    kept = tl.load(dh + state, mask=inside, other=0.0)
    rk = tl.arange(0, BK)
    wr = columns_of(w, ru, rk, H, H) if RESIDENT else 0
    wz = columns_of(w, ru, H + rk, H, H) if RESIDENT else 0
    wn = columns_of(w, ru, 2 * H + rk, H, H) if RESIDENT else 0
    for k in range(first, last):
        t = k if REVERSE else steps - 1 - k
        start = tl.load(starts + t)
        active = rb < tl.load(starts + t + 1) - start
        mask = active[:, None] & (ru < H)[None, :]
        rows = (start + rb)[:, None]
        here = rows * H + ru[None, :]
        e = kept + tl.load(dy + here, mask=mask, other=0.0).to(WIDE)
        later = tl.load(after + start + rb, mask=active, other=-1)
        there = active & (later >= 0)
        later = tl.where(there, later, 0)
        if RESIDENT:
            e = add_gate(e, dstates, later, there, 0, 3, wr, H, PRECISION, BK)
            e = add_gate(e, dstates, later, there, 1, 3, wz, H, PRECISION, BK)
            e = add_gate(e, dstates, later, there, 2, 3, wn, H, PRECISION, BK)
        else:
            e = add_product(e, dstates, later, there, w, ru, 3 * H, H, PRECISION, BK)
        three = rows * (3 * H) + ru[None, :]
        r, z = tl.load(gates + three, mask=mask, other=0.0), tl.load(gates + three + H, mask=mask, other=0.0)
        n = tl.load(gates + three + 2 * H, mask=mask, other=0.0)
        old = tl.load(states + here, mask=mask, other=0.0).to(WIDE)
        dn = e * (1 - z) * (1 - n * n)
        dz = e * (old - n) * z * (1 - z)
        dr = dn * tl.load(hidden + here, mask=mask, other=0.0) * r * (1 - r)
        kind = dgates.dtype.element_ty
        tl.store(dgates + three, dr.to(kind), mask=mask)
        tl.store(dgates + three + H, dz.to(kind), mask=mask)
        tl.store(dgates + three + 2 * H, dn.to(kind), mask=mask)
        tl.store(dstates + three, dr.to(kind), mask=mask)
        tl.store(dstates + three + H, dz.to(kind), mask=mask)
        tl.store(dstates + three + 2 * H, (dn * r).to(kind), mask=mask)
        kept = tl.where(mask, e * z, kept)
        if PERSIST:
            grid_barrier(bar, (k - first + 1) * programs)
    tl.store(dh + state, kept, mask=inside)
