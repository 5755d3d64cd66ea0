"""Recurrent layers on the CPU: one product for the inputs of all steps, then a loop that only writes into buffers.

A sigmoid is a tanh, sigmoid(a) = tanh(a / 2) / 2 + 1 / 2: the halves are folded into the weights, and the gates lie
so that the sigmoids come first; then one tanh serves all gates of a step.

Each thread walks all steps with a part of the batch, for no part needs another. What does not wait for the step before,
the slopes of the backward pass, is worked out for a block of steps at once: the threads take turns at Python's lock
with every call of NumPy, so a few calls on much are better than many on little.
`spans` are the rows of the steps in the order in which they are walked, see rnn.py.
"""
from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple

import numpy as np

from zoo.ops.compiled import compiled
from zoo.ops.threads import even, get_num_threads, run

ROWS = 16                      # of the batch for each thread: with fewer the calls' overhead is more than the work
STEPS = 8                      # in a block: its slopes stay in the cache until they are used
UNPACKED = 10 ** 6             # multiplications up to which OpenBLAS takes the matrices as they lie (AVX-512 kernels)
WIDTHS = range(64, 23, -1)     # of a strip: the kernel's best is 64, and below 24 the whole product is no slower
INPUTS = 1024                  # rows of the input product at a time: with fewer the weights are packed too often


class Block(NamedTuple):
    """Steps of one length that lie one after the other."""
    rows: slice
    steps: int
    size: int                  # rows of each step
    descending: bool           # walked from the last to the first


def blocks_of(spans) -> list[Block]:
    """The steps in blocks, in walking order."""
    found = []
    for size, group in groupby(spans, lambda rows: rows.stop - rows.start):
        group = list(group)
        for k in range(0, len(group), STEPS):
            first, last = group[k], group[k:k + STEPS][-1]
            rows = slice(min(first.start, last.start), max(first.stop, last.stop))
            found.append(Block(rows, len(group[k:k + STEPS]), size, last.start < first.start))
    return found


def steps_of(a, block: Block, part: slice):
    """This part of the batch in an array (N, C): a view (steps, rows, C), in walking order."""
    steps = a[block.rows].reshape(block.steps, block.size, a.shape[1])[:, part]
    return steps[::-1] if block.descending else steps


def parts_of(batch: int) -> list[slice]:
    """The batch in a part for each thread."""
    return even(batch, max(1, min(get_num_threads(), batch // ROWS)))


def largest_part(batch: int) -> int:
    return max(part.stop - part.start for part in parts_of(batch))


def each_part(walk: Callable, spans, batch: int) -> None:
    """walk(part, [(block, rows of the part in each of its steps)]), on all threads."""
    blocks = blocks_of(spans)

    def work(part: slice) -> None:
        counts = [min(part.stop, block.size) - part.start for block in blocks]
        walk(part, [(block, n) for block, n in zip(blocks, counts, strict=True) if n > 0])
    run(work, parts_of(batch))


def strips(w, rows: int):
    """w (..., K, C), for products of up to `rows` rows, as (..., C / width, K, width): each strip by itself in memory.

    OpenBLAS copies both matrices of a product into its own order first, for a thin one most of the work: 16 rows by
    256 x 1024 take 150 us, in 16 strips, for which it copies nothing, 41 us (one core of Zen 5).
    """
    *lead, k, c = w.shape
    width = next((n for n in WIDTHS if c % n == 0 and n * k * rows <= UNPACKED), c)
    return np.ascontiguousarray(np.moveaxis(w.reshape(*lead, k, c // width, width), -2, -3))


def in_strips(out, w):
    """Where np.matmul(x, w) of strips w belongs in an array (..., rows, C): a view (..., C / width, rows, width)."""
    return np.moveaxis(out.reshape(*out.shape[:-1], w.shape[-3], w.shape[-1]), -2, -3)


def folded(size: int, order: tuple[int, ...], sigmoids: int, *weights) -> list:
    """Weights (gates * size, ...) with their gates in this order; those of the first `sigmoids` gates are halved."""
    rows = np.concatenate([np.arange(k * size, (k + 1) * size) for k in order])
    found = []
    for w in weights:
        if w is not None:
            w = w[rows]
            w[:sigmoids * size] *= 0.5
        found.append(w)
    return found


def projected(x, weight, bias):
    """x @ weight.T + bias."""
    y = np.empty((len(x), len(weight)), x.dtype)

    def work(rows: slice) -> None:
        np.matmul(x[rows], weight.T, out=y[rows])
        if bias is not None:
            y[rows] += bias
    run(work, even(len(x), max(1, len(x) // INPUTS)))
    return y


def to_sigmoid(s, half) -> None:
    """tanh(a / 2) to sigmoid(a), in place."""
    np.multiply(s, half, s)
    np.add(s, half, s)


def columns(a, size: int, *gates: int):
    """Columns of these neighbouring gates of (..., gates * size)."""
    return a[..., gates[0] * size:(gates[-1] + 1) * size]


# -- plain

def rnn_forward(x, h0, w_ih, w_hh, bias, nonlinearity, spans):
    """y (N, H) and the last states (B, H)."""
    y, hn = projected(x, w_ih, bias), h0.copy()
    u = strips(w_hh.T, largest_part(len(h0)))

    def walk(part, blocks):
        h = hn[part]
        product = np.empty_like(h)
        spread = in_strips(product, u)
        for block, n in blocks:
            state, a, out = h[:n], product[:n], spread[:, :n]
            for step in steps_of(y, block, part):
                np.matmul(state, u, out=out)
                np.add(step, a, step)
                nonlinearity(step, step)
                state = step
            h[:n] = state
    each_part(walk, spans, len(h0))
    return y, hn


def rnn_backward(dy, dhn, w_hh, slope, spans):
    """dgates (N, H) and dh0 (B, H); slope (N, H) is the nonlinearity's derivative."""
    dgates, dh0 = np.empty_like(slope), dhn.copy()
    u = strips(w_hh, largest_part(len(dh0)))

    def walk(part, blocks):
        dh = dh0[part]
        for block, n in reversed(blocks):
            now = dh[:n]
            out = in_strips(now, u)
            for e, s, d in zip(*(steps_of(a, block, part)[::-1] for a in (dy, slope, dgates)), strict=True):
                np.add(now, e, now)
                np.multiply(now, s, d)
                np.matmul(d, u, out=out)
    each_part(walk, spans, len(dh0))
    return dgates, dh0


# -- LSTM

def whole_walk(spans, *arrays):
    """The compiled functions, in which a thread walks all steps at once; or None: one step is not worth packing."""
    return compiled("recurrent", *arrays) if len(spans) > 1 else None


def lstm_sums(x, h0, w_ih, w_hh, bias, spans):
    """The gates' sums without the states' share (N, 4H), and strips of the weights for that; None if it is in already.

    A single step reads each weight once: then the sums are folded, not the weights.
    """
    size = w_hh.shape[0] // 4
    if len(spans) > 1:
        w, u, b = folded(size, (0, 1, 3, 2), 3, w_ih, w_hh, bias)
        return projected(x, w, b), strips(u.T, largest_part(len(h0)))
    sums = projected(x, w_ih, bias)
    sums += h0 @ w_hh.T
    return np.ascontiguousarray(folded(size, (0, 1, 3, 2), 3, sums.T)[0].T), None


def lstm_forward(x, h0, c0, w_ih, w_hh, bias, w_hr, spans):
    """y (N, P), the last states (B, P) and (B, H), gates (N, 4H): i, f, o, g, and cells (N, 2H): c before, tanh(c)."""
    if w_hr is None and (fast := whole_walk(spans, x, h0, c0, w_ih, w_hh)):
        return fast.lstm_forward(x, h0, c0, w_ih, w_hh, bias, spans)
    size = w_hh.shape[0] // 4
    gates, u = lstm_sums(x, h0, w_ih, w_hh, bias, spans)
    cells, y = np.empty((len(x), 2 * size), x.dtype), np.empty((len(x), h0.shape[1]), x.dtype)
    hn, cn = h0.copy(), c0.copy()
    # tanh(a / 2) to sigmoid(a) in whole rows, as if the last gate were one: rows without gaps take a third of the time
    scale, shift = np.full((2, largest_part(len(h0)), 4 * size), 0.5, x.dtype)
    columns(scale, size, 3)[...], columns(shift, size, 3)[...] = 1, 0

    def walk(part, blocks):
        h, c = hn[part], cn[part]
        product, fresh = np.empty((len(h), 4 * size), x.dtype), np.empty((len(h), size), x.dtype)
        spread = None if u is None else in_strips(product, u)
        for block, n in blocks:
            state, a, t = h[:n], product[:n], fresh[:n]
            all_gates, kept, ys = (steps_of(z, block, part) for z in (gates, cells, y))
            before = columns(kept, size, 0)
            before[0] = c[:n]
            for g, i, f, o, new, cell, after, bent, out in zip(
                    all_gates, *(columns(all_gates, size, k) for k in range(4)), before, [*before[1:], c[:n]],
                    columns(kept, size, 1), ys, strict=True):
                if spread is not None:
                    np.matmul(state, u, out=spread[:, :n])
                    np.add(g, a, g)
                np.tanh(g, g)
                np.multiply(g, scale[:n], g)
                np.add(g, shift[:n], g)
                np.multiply(f, cell, after)
                np.multiply(i, new, t)
                np.add(after, t, after)
                np.tanh(after, bent)
                if w_hr is None:
                    np.multiply(o, bent, out)
                else:
                    np.matmul(np.multiply(o, bent, t), w_hr.T, out=out)
                state = out
            h[:n] = state
    each_part(walk, spans, len(h0))
    return y, hn, cn, gates, cells


def lstm_slopes(gates, cells, slopes, bend, t) -> None:
    """How the sums of a block of steps act on what comes next, by slopes (steps, rows, 4, H) of i, f, g, o.

    Those of i, f, g are factors of the gradient of c, that of o, and `bend` (steps, rows, H) of c itself, of the
    gradient of o tanh(c). t (steps, rows, 3H) is room.
    """
    size = bend.shape[-1]
    i, f, o, new = (columns(gates, size, k) for k in range(4))
    sigmoids, before, bent = columns(gates, size, 0, 1, 2), columns(cells, size, 0), columns(cells, size, 1)
    np.multiply(sigmoids, sigmoids, t)
    np.subtract(sigmoids, t, t)
    for k, slope, factor in ((0, 0, new), (1, 1, before), (2, 3, bent)):
        np.multiply(columns(t, size, k), factor, slopes[:, :, slope])
    one = bend.dtype.type(1)
    for a, factor, out in ((new, i, slopes[:, :, 2]), (bent, o, bend)):
        np.multiply(a, a, out)
        np.subtract(one, out, out)
        np.multiply(out, factor, out)


def lstm_backward(dy, dhn, dcn, w_hh, w_hr, gates, cells, spans):
    """dgates (N, 4H) in torch's order i, f, g, o, dh0 (B, P), dc0 (B, H), and dstates (N, P): of y with all it led to.

    dstates is None without projection.
    """
    if w_hr is None and (fast := whole_walk(spans, gates, dy, dhn, dcn, w_hh, cells)):
        return fast.lstm_backward(dy, dhn, dcn, w_hh, gates, cells, spans)
    size = w_hh.shape[0] // 4
    dgates, dh0, dc0 = np.empty_like(gates), dhn.copy(), dcn.copy()
    dstates = None if w_hr is None else np.empty_like(dy)
    u = strips(w_hh.reshape(4, size, -1), largest_part(len(dh0)))     # by gate: longer sums would be packed again

    def walk(part, blocks):
        dh, dc = dh0[part], dc0[part]
        slopes, bends, room = (np.empty((STEPS, len(dh), n * size), gates.dtype) for n in (4, 1, 3))
        products, fresh = np.empty((4, *dh.shape), gates.dtype), np.empty_like(dc)
        spread = in_strips(products, u)
        for block, n in reversed(blocks):
            now, cell, t, product, out = dh[:n], dc[:n], fresh[:n], products[:, :n], spread[:, :, :n]
            s, bend, space = (a[:block.steps, :n] for a in (slopes, bends, room))
            g, kept, d, es = (steps_of(a, block, part)[::-1] for a in (gates, cells, dgates, dy))
            led = es if dstates is None else steps_of(dstates, block, part)[::-1]
            s, d = (a.reshape(*a.shape[:2], 4, size) for a in (s, d))
            lstm_slopes(g, kept, s, bend, space)
            for e, to, b, f, s_cell, s_out, d_cell, d_out, by_gate in zip(
                    es, led, bend, columns(g, size, 1), s[:, :, :3], s[:, :, 3], d[:, :, :3], d[:, :, 3],
                    d.swapaxes(1, 2)[:, :, None], strict=True):
                np.add(now, e, now)
                if w_hr is None:
                    e = now
                else:
                    to[...] = now
                    e = now @ w_hr
                np.multiply(b, e, t)
                np.add(cell, t, cell)
                np.multiply(s_cell, cell[:, None], d_cell)
                np.multiply(s_out, e, d_out)
                np.multiply(cell, f, cell)
                np.matmul(by_gate, u, out=out)
                np.add.reduce(product, 0, None, now)
    each_part(walk, spans, len(dh0))
    return dgates, dh0, dc0, dstates


# -- GRU

def gru_forward(x, h0, w_ih, w_hh, b_ih, b_hh, spans):
    """y (N, H), the last states (B, H), gates (N, 3H): r, z, n, and hidden (N, H): the state's part of n before r."""
    if fast := whole_walk(spans, x, h0, w_ih, w_hh):
        return fast.gru_forward(x, h0, w_ih, w_hh, b_ih, b_hh, spans)
    size = w_hh.shape[0] // 3
    w, u, b, b_state = folded(size, (0, 1, 2), 2, w_ih, w_hh, b_ih, b_hh)
    if b_state is not None:
        of_sigmoids = np.concatenate([b_state[:2 * size], np.zeros(size, b_state.dtype)])
        b = of_sigmoids if b is None else b + of_sigmoids
    gates, u = projected(x, w, b), strips(u.T, largest_part(len(h0)))
    hidden, y = np.empty((len(x), size), x.dtype), np.empty((len(x), size), x.dtype)
    hn, half = h0.copy(), x.dtype.type(0.5)

    def walk(part, blocks):
        h = hn[part]
        product = np.empty((len(h), 3 * size), x.dtype)
        spread = in_strips(product, u)
        for block, n in blocks:
            state, a, out = h[:n], product[:n], spread[:, :n]
            of_sigmoids, of_new, t = columns(a, size, 0, 1), columns(a, size, 2), columns(a, size, 0)
            g, parts, ys = (steps_of(z, block, part) for z in (gates, hidden, y))
            for sigmoids, r, z, new, part_of_new, step in zip(
                    columns(g, size, 0, 1), *(columns(g, size, k) for k in range(3)), parts, ys, strict=True):
                np.matmul(state, u, out=out)
                np.add(sigmoids, of_sigmoids, sigmoids)
                np.tanh(sigmoids, sigmoids)
                to_sigmoid(sigmoids, half)
                if b_state is None:
                    part_of_new[...] = of_new
                else:
                    np.add(of_new, b_state[2 * size:], part_of_new)
                np.multiply(part_of_new, r, t)
                np.add(new, t, new)
                np.tanh(new, new)
                np.subtract(state, new, step)
                np.multiply(step, z, step)
                np.add(step, new, step)
                state = step
            h[:n] = state
    each_part(walk, spans, len(h0))
    return y, hn, gates, hidden


def gru_slopes(gates, hidden, before, slopes, of_state) -> None:
    """For a block of steps the factors of the gradient of h that give those of the sums r, z, n (steps, rows, 3, H),
    and of the state's part of n (steps, rows, H)."""
    size = of_state.shape[-1]
    r, z, new = (columns(gates, size, k) for k in range(3))
    of_r, of_z, of_new = (slopes[:, :, k] for k in range(3))
    one = of_state.dtype.type(1)
    np.subtract(one, z, of_state)                    # (1 - z) serves z and n
    np.multiply(new, new, of_new)
    np.subtract(one, of_new, of_new)
    np.multiply(of_new, of_state, of_new)
    np.subtract(before, new, of_z)
    np.multiply(of_z, of_state, of_z)
    np.multiply(of_z, z, of_z)
    np.multiply(of_new, r, of_state)
    np.subtract(one, r, of_r)
    np.multiply(of_r, hidden, of_r)
    np.multiply(of_r, of_state, of_r)


def gru_backward(dy, dhn, w_hh, gates, hidden, before, spans):
    """dgates (N, 3H) of what the input adds to r, z, n, dstates (N, 3H) of what the state adds, and dh0 (B, H)."""
    if fast := whole_walk(spans, gates, dy, dhn, w_hh, hidden, before):
        return fast.gru_backward(dy, dhn, w_hh, gates, hidden, before, spans)
    size = w_hh.shape[0] // 3
    dgates, dstates, dh0 = np.empty_like(gates), np.empty_like(gates), dhn.copy()
    u = strips(w_hh.reshape(3, size, size), largest_part(len(dh0)))

    def walk(part, blocks):
        dh = dh0[part]
        slopes, of_states = (np.empty((STEPS, len(dh), n * size), gates.dtype) for n in (3, 1))
        products = np.empty((4, *dh.shape), gates.dtype)     # of each gate, and what goes by the state alone
        spread = in_strips(products[:3], u)
        for block, n in reversed(blocks):
            now, terms, out = dh[:n], products[:, :n], spread[:, :, :n]
            s, of_state = (a[:block.steps, :n] for a in (slopes, of_states))
            g, kept, h, d, ds, es = (steps_of(a, block, part)[::-1]
                                     for a in (gates, hidden, before, dgates, dstates, dy))
            s, d, ds = (a.reshape(*a.shape[:2], 3, size) for a in (s, d, ds))
            gru_slopes(g, kept, h, s, of_state)
            for e, slope, of_new, z, to_input, d_same, ds_same, ds_new, by_gate in zip(
                    es, s, of_state, columns(g, size, 1), d, d[:, :, :2], ds[:, :, :2], ds[:, :, 2],
                    ds.swapaxes(1, 2)[:, :, None], strict=True):
                np.add(now, e, now)
                np.multiply(slope, now[:, None], to_input)
                ds_same[...] = d_same
                np.multiply(of_new, now, ds_new)
                np.multiply(now, z, terms[3])
                np.matmul(by_gate, u, out=out)
                np.add.reduce(terms, 0, None, now)
    each_part(walk, spans, len(dh0))
    return dgates, dstates, dh0
