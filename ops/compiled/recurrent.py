"""The LSTM and the GRU on the CPU: one function walks the time loop over a share of the batch, without the interpreter.

    h_t = cell(x_t W, h_{t-1} U)     U lies as `packed` has it and stays in the cache; the gates are made in registers

Shapes and the order of the gates are those of ops/rnn_cpu.py; weights of the sigmoids are halved beforehand. A step is
the rows `starts[t] : starts[t] + counts[t]`, of which those of the batch's elements first .. last - 1 are walked.
"""
import numpy as np

from zoo.ops.compiled.build import inline, integer, kernel, part, reads, writes
from zoo.ops.compiled.vector import LANES, fma, largest, load, smallest, splat, store, stride
from zoo.ops.rnn_cpu import folded, projected
from zoo.ops.threads import even, get_num_threads, run

PAIR = 2 * LANES           # columns of a panel: with 8 rows 16 sums, enough to keep the multipliers busy
ROWS = 8


def packed(w):
    """w (K, M) -> (M / 32 rounded up, K, 32): panels of 32 columns, zeros after the last."""
    panels = np.zeros((-(-w.shape[1] // PAIR), len(w), PAIR), np.float32)
    for panel, start in zip(panels, range(0, w.shape[1], PAIR), strict=True):
        columns = w[:, start:start + PAIR]
        panel[:, :columns.shape[1]] = columns
    return panels


@inline
def add(sums, number, left, right):
    s = splat(number)
    return fma(s, left, sums[0]), fma(s, right, sums[1])


@inline
def put(out, at, sums, n, m):
    store(out, at, sums[0], n)
    store(out, at + LANES, sums[1], m)


@part
def multiply(a, panels, out):
    """out (n, M) = a (n, K) @ w (K, M), packed: 8 rows at a time, the last 8 of them twice where n is not a multiple.

    Every sum runs along K from its beginning, whatever n is.
    """
    rows, depth = a.shape
    down, zero = stride(out, 0), (splat(0.0), splat(0.0))
    for p in range(len(panels)):
        c, panel = p * PAIR, p * depth * PAIR
        n = min(LANES, out.shape[1] - c)
        m = max(0, min(LANES, out.shape[1] - c - LANES))
        for start in range(0, rows if rows >= ROWS else 0, ROWS):
            r = min(start, rows - ROWS)
            s0, s1, s2, s3, s4, s5, s6, s7 = zero, zero, zero, zero, zero, zero, zero, zero
            for k in range(depth):
                u, v = load(panels, panel + k * PAIR, LANES), load(panels, panel + k * PAIR + LANES, LANES)
                s0, s1 = add(s0, a[r, k], u, v), add(s1, a[r + 1, k], u, v)
                s2, s3 = add(s2, a[r + 2, k], u, v), add(s3, a[r + 3, k], u, v)
                s4, s5 = add(s4, a[r + 4, k], u, v), add(s5, a[r + 5, k], u, v)
                s6, s7 = add(s6, a[r + 6, k], u, v), add(s7, a[r + 7, k], u, v)
            at = r * down + c
            put(out, at, s0, n, m)
            put(out, at + down, s1, n, m)
            put(out, at + 2 * down, s2, n, m)
            put(out, at + 3 * down, s3, n, m)
            put(out, at + 4 * down, s4, n, m)
            put(out, at + 5 * down, s5, n, m)
            put(out, at + 6 * down, s6, n, m)
            put(out, at + 7 * down, s7, n, m)
        for r in range(rows if rows < ROWS else 0):
            s = zero
            for k in range(depth):
                u, v = load(panels, panel + k * PAIR, LANES), load(panels, panel + k * PAIR + LANES, LANES)
                s = add(s, a[r, k], u, v)
            put(out, r * down + c, s, n, m)


@inline
def tanh(x):
    """x P(x^2) / Q(x^2) of degrees 4 and 4, within 2.1e-8 of tanh before rounding."""
    x = smallest(largest(x, splat(-9.02)), splat(9.02))
    z = x * x
    p = fma(splat(1.3317798e-08), z, splat(2.0582564e-05))
    q = fma(splat(7.7614976e-07), z, splat(3.2830023e-04))
    p = fma(fma(fma(p, z, splat(3.4939798e-03)), z, splat(1.3379672e-01)), z, splat(1.0))
    q = fma(fma(fma(q, z, splat(2.5870867e-02)), z, splat(4.6712989e-01)), z, splat(1.0))
    return smallest(largest(x * p / q, splat(-1.0)), splat(1.0))


@kernel(writes(1), reads(1))
def tanh_of(y, x):
    """The tanh of these kernels on flat arrays, for those who measure its error."""
    for i in range(0, y.size, LANES):
        n = min(LANES, y.size - i)
        store(y, i, tanh(load(x, i, n)), n)


@inline
def sigmoid_of_half(a):
    """sigmoid(2 a)."""
    half = splat(0.5)
    return fma(tanh(a), half, half)


@part
def lstm_step(gates, product, cell, kept, state, y):
    """gates (n, 4H) + product (n, 4H) -> gates: i, f, o, g; kept (n, 2H): cell and tanh(its new value); cell, state, y.

    state and y (n, H) get the same values.
    """
    rows, size = cell.shape
    for r in range(rows):
        at, by = r * stride(gates, 0), r * stride(product, 0)
        for k in range(0, size, LANES):
            n = min(LANES, size - k)
            i = sigmoid_of_half(load(gates, at + k, n) + load(product, by + k, n))
            f = sigmoid_of_half(load(gates, at + size + k, n) + load(product, by + size + k, n))
            o = sigmoid_of_half(load(gates, at + 2 * size + k, n) + load(product, by + 2 * size + k, n))
            g = tanh(load(gates, at + 3 * size + k, n) + load(product, by + 3 * size + k, n))
            before = load(cell, r * stride(cell, 0) + k, n)
            after = fma(f, before, i * g)
            bent = tanh(after)
            out = o * bent
            store(gates, at + k, i, n)
            store(gates, at + size + k, f, n)
            store(gates, at + 2 * size + k, o, n)
            store(gates, at + 3 * size + k, g, n)
            store(kept, r * stride(kept, 0) + k, before, n)
            store(kept, r * stride(kept, 0) + size + k, bent, n)
            store(cell, r * stride(cell, 0) + k, after, n)
            store(state, r * stride(state, 0) + k, out, n)
            store(y, r * stride(y, 0) + k, out, n)


@part
def lstm_step_back(dstate, dy, dcell, gates, kept, dgates):
    """dstate + dy (n, H) -> dgates (n, 4H): i, f, g, o; dcell (n, H) becomes that of the step before."""
    rows, size = dcell.shape
    one = splat(1.0)
    for r in range(rows):
        at, to = r * stride(gates, 0), r * stride(dgates, 0)
        for k in range(0, size, LANES):
            n = min(LANES, size - k)
            i, f = load(gates, at + k, n), load(gates, at + size + k, n)
            o, g = load(gates, at + 2 * size + k, n), load(gates, at + 3 * size + k, n)
            before = load(kept, r * stride(kept, 0) + k, n)
            bent = load(kept, r * stride(kept, 0) + size + k, n)
            e = load(dstate, r * stride(dstate, 0) + k, n) + load(dy, r * stride(dy, 0) + k, n)
            d = fma((one - bent * bent) * o, e, load(dcell, r * stride(dcell, 0) + k, n))
            store(dgates, to + k, (i - i * i) * g * d, n)
            store(dgates, to + size + k, (f - f * f) * before * d, n)
            store(dgates, to + 2 * size + k, (one - g * g) * i * d, n)
            store(dgates, to + 3 * size + k, (o - o * o) * bent * e, n)
            store(dcell, r * stride(dcell, 0) + k, d * f, n)


@part
def gru_step(gates, product, bias, hidden, state, y):
    """gates (n, 3H), product (n, 3H), bias (H,) -> gates: r, z, n; hidden (n, H): product's n + bias; state and y."""
    rows, size = state.shape
    for b in range(rows):
        at, by = b * stride(gates, 0), b * stride(product, 0)
        for k in range(0, size, LANES):
            n = min(LANES, size - k)
            r = sigmoid_of_half(load(gates, at + k, n) + load(product, by + k, n))
            z = sigmoid_of_half(load(gates, at + size + k, n) + load(product, by + size + k, n))
            part = load(product, by + 2 * size + k, n) + load(bias, k, n)
            new = tanh(fma(part, r, load(gates, at + 2 * size + k, n)))
            before = load(state, b * stride(state, 0) + k, n)
            out = fma(before - new, z, new)
            store(gates, at + k, r, n)
            store(gates, at + size + k, z, n)
            store(gates, at + 2 * size + k, new, n)
            store(hidden, b * stride(hidden, 0) + k, part, n)
            store(state, b * stride(state, 0) + k, out, n)
            store(y, b * stride(y, 0) + k, out, n)


@part
def gru_step_back(dstate, dy, gates, hidden, before, dgates, dstates):
    """dstate + dy (n, H) -> dgates and dstates (n, 3H); dstate: what goes straight to the step before."""
    rows, size = dstate.shape
    one = splat(1.0)
    for b in range(rows):
        at, to = b * stride(gates, 0), b * stride(dgates, 0)
        us = b * stride(dstates, 0)
        for k in range(0, size, LANES):
            n = min(LANES, size - k)
            r, z, new = load(gates, at + k, n), load(gates, at + size + k, n), load(gates, at + 2 * size + k, n)
            e = load(dstate, b * stride(dstate, 0) + k, n) + load(dy, b * stride(dy, 0) + k, n)
            t = (one - z) * e
            dnew = (one - new * new) * t
            dz = (load(before, b * stride(before, 0) + k, n) - new) * t * z
            dr = (one - r) * r * load(hidden, b * stride(hidden, 0) + k, n) * dnew
            store(dgates, to + k, dr, n)
            store(dgates, to + size + k, dz, n)
            store(dgates, to + 2 * size + k, dnew, n)
            store(dstates, us + k, dr, n)
            store(dstates, us + size + k, dz, n)
            store(dstates, us + 2 * size + k, dnew * r, n)
            store(dstate, b * stride(dstate, 0) + k, e * z, n)


SPANS = (reads(1, integer), reads(1, integer), integer, integer)


@kernel(writes(2), reads(3), writes(2), writes(2), writes(2), writes(2), *SPANS)
def lstm_walk(gates, panels, h, c, kept, y, starts, counts, first, last):
    """All steps: gates (N, 4H), U packed, states h and c (B, H), kept (N, 2H), y (N, H); see lstm_step."""
    product = np.empty((last - first, gates.shape[1]), np.float32)
    for t in range(len(starts)):
        n = min(counts[t], last) - first
        if n > 0:
            b, step = slice(first, first + n), slice(starts[t] + first, starts[t] + first + n)
            multiply(h[b], panels, product[:n])
            lstm_step(gates[step], product[:n], c[b], kept[step], h[b], y[step])


@kernel(reads(2), reads(3), writes(2), writes(2), reads(2), reads(2), writes(2), *SPANS)
def lstm_walk_back(dy, panels, dh, dc, gates, kept, dgates, starts, counts, first, last):
    """All steps from the last: dy (N, H), W_hh packed, dh and dc (B, H), dgates (N, 4H); see lstm_step_back."""
    for t in range(len(starts) - 1, -1, -1):
        n = min(counts[t], last) - first
        if n > 0:
            b, step = slice(first, first + n), slice(starts[t] + first, starts[t] + first + n)
            lstm_step_back(dh[b], dy[step], dc[b], gates[step], kept[step], dgates[step])
            multiply(dgates[step], panels, dh[b])


@kernel(writes(2), reads(3), reads(1), writes(2), writes(2), writes(2), *SPANS)
def gru_walk(gates, panels, bias, h, hidden, y, starts, counts, first, last):
    """All steps: gates (N, 3H), U packed, bias (H,), states h (B, H), hidden and y (N, H); see gru_step."""
    product = np.empty((last - first, gates.shape[1]), np.float32)
    for t in range(len(starts)):
        n = min(counts[t], last) - first
        if n > 0:
            b, step = slice(first, first + n), slice(starts[t] + first, starts[t] + first + n)
            multiply(h[b], panels, product[:n])
            gru_step(gates[step], product[:n], bias, hidden[step], h[b], y[step])


@kernel(reads(2), reads(3), writes(2), reads(2), reads(2), reads(2), writes(2), writes(2), *SPANS)
def gru_walk_back(dy, panels, dh, gates, hidden, before, dgates, dstates, starts, counts, first, last):
    """All steps from the last: dy (N, H), W_hh packed, dh (B, H), dgates and dstates (N, 3H); see gru_step_back."""
    product = np.empty((last - first, dh.shape[1]), np.float32)
    for t in range(len(starts) - 1, -1, -1):
        n = min(counts[t], last) - first
        if n > 0:
            b, step = slice(first, first + n), slice(starts[t] + first, starts[t] + first + n)
            now = dh[b]
            gru_step_back(now, dy[step], gates[step], hidden[step], before[step], dgates[step], dstates[step])
            multiply(dstates[step], panels, product[:n])
            now += product[:n]


def walk(kernel, arrays: tuple, spans: list[slice], batch: int) -> None:
    """The kernel over equal shares of the batch, one for each thread that gets 8 rows."""
    starts, stops = np.array([(s.start, s.stop) for s in spans], np.int64).reshape(-1, 2).T
    count = max(1, min(get_num_threads(), batch // ROWS))
    run(lambda rows: kernel(*arrays, starts, stops - starts, rows.start, rows.stop), even(batch, count))


# -- the functions of ops/rnn_cpu.py

def lstm_forward(x, h0, c0, w_ih, w_hh, bias, spans):
    """y (N, H), the last states (B, H) and (B, H), gates (N, 4H): i, f, o, g, and cells (N, 2H): c before, tanh(c)."""
    size = w_hh.shape[0] // 4
    w, u, b = folded(size, (0, 1, 3, 2), 3, w_ih, w_hh, bias)
    gates, hn, cn = projected(x, w, b), h0.copy(), c0.copy()
    cells, y = np.empty((len(x), 2 * size), np.float32), np.empty((len(x), size), np.float32)
    walk(lstm_walk, (gates, packed(u.T), hn, cn, cells, y), spans, len(hn))
    return y, hn, cn, gates, cells


def lstm_backward(dy, dhn, dcn, w_hh, gates, cells, spans):
    """dgates (N, 4H) in torch's order i, f, g, o, dh0 (B, H), dc0 (B, H), and None."""
    dgates, dh, dc = np.empty_like(gates), dhn.copy(), dcn.copy()
    walk(lstm_walk_back, (np.ascontiguousarray(dy), packed(w_hh), dh, dc, gates, cells, dgates), spans, len(dh))
    return dgates, dh, dc, None


def gru_forward(x, h0, w_ih, w_hh, b_ih, b_hh, spans):
    """y (N, H), the last states (B, H), gates (N, 3H): r, z, n, and hidden (N, H): the state's part of n before r."""
    size = w_hh.shape[0] // 3
    b_hh = np.zeros(3 * size, np.float32) if b_hh is None else b_hh
    w, u, b, b_state = folded(size, (0, 1, 2), 2, w_ih, w_hh, b_ih, b_hh)
    of_new = b_state[2 * size:].copy()
    b_state[2 * size:] = 0
    gates, hn = projected(x, w, b_state if b is None else b + b_state), h0.copy()
    hidden, y = np.empty((len(x), size), np.float32), np.empty((len(x), size), np.float32)
    walk(gru_walk, (gates, packed(u.T), of_new, hn, hidden, y), spans, len(hn))
    return y, hn, gates, hidden


def gru_backward(dy, dhn, w_hh, gates, hidden, before, spans):
    """dgates (N, 3H) of what the input adds to r, z, n, dstates (N, 3H) of what the state adds, and dh0 (B, H)."""
    dgates, dstates, dh = np.empty_like(gates), np.empty_like(gates), dhn.copy()
    arrays = np.ascontiguousarray(dy), packed(w_hh), dh, gates, hidden, np.ascontiguousarray(before), dgates, dstates
    walk(gru_walk_back, arrays, spans, len(dh))
    return dgates, dstates, dh
