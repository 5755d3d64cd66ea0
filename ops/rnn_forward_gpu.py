"""Kernels of the recurrent layers' forward loops, from the products with the input to outputs and states.

A program owns BB sequences and BH hidden units for all steps. With PERSIST it walks all of them: the states stay in
its registers, and with RESIDENT the weights in registers or shared memory; else they come from L2 in each step. What
the others need of a step, the outputs, goes through memory, to rows that nobody has read before; so a step ends with a
barrier over the whole grid or, without PERSIST, with the end of the launch.

Rows are packed as in rnn.py: step t has the rows starts[t] to starts[t + 1]; hs holds the initial states (B, H) and
the outputs (N, H), one after the other, and before (N,) says in which of these rows the state before a row is.
A launch walks the steps from `first` to `last` of `steps`, in order or, with REVERSE, backwards.
"""
import triton
import triton.language as tl

from zoo.ops.scalar_gpu import sigmoid, tanh


@triton.jit
def grid_barrier(bar, target):
    """Waits until all programs of the grid have arrived: bar (1,), int32, counts arrivals up to target.

    Releases the writes of the whole program, not of one thread: debug_barrier waits for them first.
    """
    tl.debug_barrier()
    tl.atomic_add(bar, 1, sem="release", scope="gpu")
    while tl.atomic_add(bar, 0, sem="acquire", scope="gpu") < target:
        pass
    tl.debug_barrier()


@triton.jit
def block(x, rows, inside, columns, count, width):
    """x (*, width) at rows and columns below count; from L2, since another program may just have written it."""
    pointers = x + rows.to(tl.int64)[:, None] * width + columns[None, :]
    return tl.load(pointers, mask=inside[:, None] & (columns < count)[None, :], other=0.0, cache_modifier=".cg")


@triton.jit
def weights_of(w, gate, units, columns, H):
    """w (gates*H, H): the rows of `units` of a gate, as (columns, units)."""
    pointers = w + (gate * H + units)[None, :].to(tl.int64) * H + columns[:, None]
    return tl.load(pointers, mask=(columns < H)[:, None] & (units < H)[None, :], other=0.0)


@triton.jit
def rows_of(w, rows, inside, columns, H):
    """w (*, H): these rows, and columns below H."""
    return tl.load(w + rows[:, None].to(tl.int64) * H + columns[None, :], mask=inside[:, None] & (columns < H)[None, :],
                   other=0.0)


@triton.jit
def gate_sums(x, gate, gates: tl.constexpr, tile_rows, units, mask, H, WIDE: tl.constexpr):
    """x (N, gates*H): the products with the input of a gate, for these rows and units."""
    return tl.load(x + tile_rows * (gates * H) + (gate * H + units)[None, :], mask=mask, other=0.0).to(WIDE)


@triton.jit(do_not_specialize=["first", "last", "steps", "B", "programs"])
def rnn_steps(gx, w, hs, before, starts, hn, bar, first, last, steps, B, H, programs, RELU: tl.constexpr,
              REVERSE: tl.constexpr, PERSIST: tl.constexpr, RESIDENT: tl.constexpr, WIDE: tl.constexpr,
              PRECISION: tl.constexpr, BB: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr):
    """gx (N, H), w (H, H), hs (B + N, H), before (N,), starts (steps + 1,), hn (B, H), WIDE: in and out; bar (1,).

    Grid: (programs,) = (ceil(B / BB) * ceil(H / BH),).
    """
    blocks = tl.cdiv(B, BB)
    rb = tl.program_id(0) % blocks * BB + tl.arange(0, BB)
    ru = tl.program_id(0) // blocks * BH + tl.arange(0, BH)
    rk = tl.arange(0, BK)
    inside = (rb < B)[:, None] & (ru < H)[None, :]
    state = rb[:, None] * H + ru[None, :]
    h = tl.load(hn + state, mask=inside, other=0.0)
    wh = weights_of(w, 0, ru, rk, H) if RESIDENT else 0
    for k in range(first, last):
        t = steps - 1 - k if REVERSE else k
        start = tl.load(starts + t)
        active = rb < tl.load(starts + t + 1) - start
        mask = active[:, None] & (ru < H)[None, :]
        rows = (start + rb)[:, None]
        a = gate_sums(gx, 0, 1, rows, ru, mask, H, WIDE)
        old = tl.load(before + start + rb, mask=active, other=0)
        if RESIDENT:
            a = tl.dot(block(hs, old, active, rk, H, H), wh, a, input_precision=PRECISION, out_dtype=WIDE)
        else:
            for j in range(0, H, BK):
                a = tl.dot(block(hs, old, active, j + rk, H, H), weights_of(w, 0, ru, j + rk, H), a,
                           input_precision=PRECISION, out_dtype=WIDE)
        new = tl.maximum(a, 0.0) if RELU else tanh(a)
        h = tl.where(mask, new, h)
        tl.store(hs + (B + rows) * H + ru[None, :], new.to(hs.dtype.element_ty), mask=mask)
        if PERSIST:
            grid_barrier(bar, (k - first + 1) * programs)
    tl.store(hn + state, h, mask=inside)


@triton.jit(do_not_specialize=["first", "last", "steps", "B", "programs"])
def lstm_steps(gx, w, hs, before, starts, hn, cn, gates, cells, bar, first, last, steps, B, H, programs,
               REVERSE: tl.constexpr, PERSIST: tl.constexpr, RESIDENT: tl.constexpr, WIDE: tl.constexpr,
               PRECISION: tl.constexpr, BB: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr):
    """gx (N, 4H): i, f, g, o; w (4H, H), hs (B + N, H), before (N,), starts (steps + 1,); hn, cn (B, H), WIDE: in and
    out; gates (N, 4H): i, f, o, g and cells (N, 2H): c before, tanh(c), both WIDE; bar (1,).

    Tiles are (units, sequences): one product with the four rows of w of each unit, one below the other. With BH = 16
    they are the 64 rows that Hopper's tensor cores want, however few sequences a program owns.
    Grid: (programs,) = (ceil(B / BB) * ceil(H / BH),).
    """
    blocks = tl.cdiv(B, BB)
    rb = tl.program_id(0) % blocks * BB + tl.arange(0, BB)
    ru = tl.program_id(0) // blocks * BH + tl.arange(0, BH)
    rk = tl.arange(0, BK)
    four = tl.arange(0, 4 * BH)
    unit = tl.program_id(0) // blocks * BH + four // 4
    rw = four % 4 * H + unit
    inside = (ru < H)[:, None] & (rb < B)[None, :]
    state = rb[None, :] * H + ru[:, None]
    h = tl.load(hn + state, mask=inside, other=0.0)
    c = tl.load(cn + state, mask=inside, other=0.0)
    held = rows_of(w, rw, unit < H, rk, H) if RESIDENT else 0
    for k in range(first, last):
        t = steps - 1 - k if REVERSE else k
        start = tl.load(starts + t)
        active = rb < tl.load(starts + t + 1) - start
        mask = (ru < H)[:, None] & active[None, :]
        rows = (start + rb)[None, :]
        old = tl.load(before + start + rb, mask=active, other=0)
        acc = tl.zeros((4 * BH, BB), WIDE)
        if RESIDENT:
            acc = tl.dot(held, tl.trans(block(hs, old, active, rk, H, H)), acc, input_precision=PRECISION,
                         out_dtype=WIDE)
        else:
            for j in range(0, H, BK):
                acc = tl.dot(rows_of(w, rw, unit < H, j + rk, H), tl.trans(block(hs, old, active, j + rk, H, H)), acc,
                             input_precision=PRECISION, out_dtype=WIDE)
        even, odd = acc.reshape(BH, 2, 2, BB).permute(0, 3, 1, 2).split()
        i, g = even.split()
        f, o = odd.split()
        px = gx + rows * (4 * H) + ru[:, None]
        i = sigmoid(i + tl.load(px, mask=mask, other=0.0).to(WIDE))
        f = sigmoid(f + tl.load(px + H, mask=mask, other=0.0).to(WIDE))
        g = tanh(g + tl.load(px + 2 * H, mask=mask, other=0.0).to(WIDE))
        o = sigmoid(o + tl.load(px + 3 * H, mask=mask, other=0.0).to(WIDE))
        new = f * c + i * g
        bent = tanh(new)
        pg = gates + rows * (4 * H) + ru[:, None]
        tl.store(pg, i, mask=mask)
        tl.store(pg + H, f, mask=mask)
        tl.store(pg + 2 * H, o, mask=mask)
        tl.store(pg + 3 * H, g, mask=mask)
        pc = cells + rows * (2 * H) + ru[:, None]
        tl.store(pc, c, mask=mask)
        tl.store(pc + H, bent, mask=mask)
        c = tl.where(mask, new, c)
        h = tl.where(mask, o * bent, h)
        tl.store(hs + (B + rows) * H + ru[:, None], h.to(hs.dtype.element_ty), mask=mask)
        if PERSIST:
            grid_barrier(bar, (k - first + 1) * programs)
    tl.store(hn + state, h, mask=inside)
    tl.store(cn + state, c, mask=inside)


@triton.jit(do_not_specialize=["first", "last", "steps", "B", "programs"])
def gru_steps(gx, w, bias, hs, before, starts, hn, gates, hidden, bar, first, last, steps, B, H, programs,
              REVERSE: tl.constexpr, PERSIST: tl.constexpr, RESIDENT: tl.constexpr, WIDE: tl.constexpr,
              PRECISION: tl.constexpr, BB: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr):
    """gx (N, 3H): r, z, n; w (3H, H), bias (3H,) or None: of the state; hs (B + N, H), before (N,), starts
    (steps + 1,); hn (B, H), WIDE: in and out; gates (N, 3H) and hidden (N, H), both WIDE; bar (1,).

    Grid: (programs,) = (ceil(B / BB) * ceil(H / BH),).
    """
    blocks = tl.cdiv(B, BB)
    rb = tl.program_id(0) % blocks * BB + tl.arange(0, BB)
    ru = tl.program_id(0) // blocks * BH + tl.arange(0, BH)
    rk = tl.arange(0, BK)
    inside = (rb < B)[:, None] & (ru < H)[None, :]
    state = rb[:, None] * H + ru[None, :]
    h = tl.load(hn + state, mask=inside, other=0.0)
    br, bz, bn = tl.zeros((BH,), WIDE), tl.zeros((BH,), WIDE), tl.zeros((BH,), WIDE)
    if bias is not None:
        br = tl.load(bias + ru, mask=ru < H, other=0.0).to(WIDE)
        bz = tl.load(bias + H + ru, mask=ru < H, other=0.0).to(WIDE)
        bn = tl.load(bias + 2 * H + ru, mask=ru < H, other=0.0).to(WIDE)
    wr = weights_of(w, 0, ru, rk, H) if RESIDENT else 0
    wz = weights_of(w, 1, ru, rk, H) if RESIDENT else 0
    wn = weights_of(w, 2, ru, rk, H) if RESIDENT else 0
    for k in range(first, last):
        t = steps - 1 - k if REVERSE else k
        start = tl.load(starts + t)
        active = rb < tl.load(starts + t + 1) - start
        mask = active[:, None] & (ru < H)[None, :]
        rows = (start + rb)[:, None]
        r = gate_sums(gx, 0, 3, rows, ru, mask, H, WIDE) + br[None, :]
        z = gate_sums(gx, 1, 3, rows, ru, mask, H, WIDE) + bz[None, :]
        part = tl.zeros((BB, BH), WIDE) + bn[None, :]
        old = tl.load(before + start + rb, mask=active, other=0)
        if RESIDENT:
            a = block(hs, old, active, rk, H, H)
            r = tl.dot(a, wr, r, input_precision=PRECISION, out_dtype=WIDE)
            z = tl.dot(a, wz, z, input_precision=PRECISION, out_dtype=WIDE)
            part = tl.dot(a, wn, part, input_precision=PRECISION, out_dtype=WIDE)
        else:
            for j in range(0, H, BK):
                a = block(hs, old, active, j + rk, H, H)
                r = tl.dot(a, weights_of(w, 0, ru, j + rk, H), r, input_precision=PRECISION, out_dtype=WIDE)
                z = tl.dot(a, weights_of(w, 1, ru, j + rk, H), z, input_precision=PRECISION, out_dtype=WIDE)
                part = tl.dot(a, weights_of(w, 2, ru, j + rk, H), part, input_precision=PRECISION, out_dtype=WIDE)
        r, z = sigmoid(r), sigmoid(z)
        n = tanh(gate_sums(gx, 2, 3, rows, ru, mask, H, WIDE) + r * part)
        pg = gates + rows * (3 * H) + ru[None, :]
        tl.store(pg, r, mask=mask)
        tl.store(pg + H, z, mask=mask)
        tl.store(pg + 2 * H, n, mask=mask)
        tl.store(hidden + rows * H + ru[None, :], part, mask=mask)
        h = tl.where(mask, n + z * (h - n), h)
        tl.store(hs + (B + rows) * H + ru[None, :], h.to(hs.dtype.element_ty), mask=mask)
        if PERSIST:
            grid_barrier(bar, (k - first + 1) * programs)
    tl.store(hn + state, h, mask=inside)
