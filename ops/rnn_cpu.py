"""Recurrent layers on the CPU: one product for the inputs of all steps, then a loop that only writes into buffers.

A sigmoid is a tanh, sigmoid(a) = tanh(a / 2) / 2 + 1 / 2: the halves are folded into the weights, and the gates lie
so that the sigmoids come first; then one tanh serves all gates of a step.
`spans` are the rows of the steps in the order in which they are walked, see rnn.py.
"""
import numpy as np


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
    y = x @ weight.T
    if bias is not None:
        y += bias
    return y


def to_sigmoid(s, half) -> None:
    """tanh(a / 2) to sigmoid(a), in place."""
    np.multiply(s, half, s)
    np.add(s, half, s)


def rnn_forward(x, h0, w_ih, w_hh, bias, nonlinearity, spans):
    """y (N, H) and the last states (B, H)."""
    y, h, u = projected(x, w_ih, bias), h0.copy(), np.ascontiguousarray(w_hh.T)
    product = np.empty_like(h)
    for rows in spans:
        n = rows.stop - rows.start
        a, step = product[:n], y[rows]
        np.matmul(h[:n], u, out=a)
        np.add(step, a, step)
        nonlinearity(step, step)
        h[:n] = step
    return y, h


def rnn_backward(dy, dhn, w_hh, slope, spans):
    """dgates (N, H) and dh0 (B, H); slope (N, H) is the nonlinearity's derivative."""
    dgates, dh = np.empty_like(slope), dhn.copy()
    for rows in reversed(spans):
        now, d = dh[:rows.stop - rows.start], dgates[rows]
        np.add(now, dy[rows], now)
        np.multiply(now, slope[rows], d)
        np.matmul(d, w_hh, out=now)
    return dgates, dh


def lstm_forward(x, h0, c0, w_ih, w_hh, bias, w_hr, spans):
    """y (N, P), the last states (B, P) and (B, H), gates (N, 4H): i, f, o, g, and cells (N, 2H): c before, tanh(c)."""
    size = w_hh.shape[0] // 4
    w, u, b = folded(size, (0, 1, 3, 2), 3, w_ih, w_hh, bias)
    gates, u = projected(x, w, b), np.ascontiguousarray(u.T)     # with a transposed view a thin product is slower
    cells, y = np.empty((len(x), 2 * size), x.dtype), np.empty((len(x), h0.shape[1]), x.dtype)
    h, c, half = h0.copy(), c0.copy(), x.dtype.type(0.5)
    product, fresh = np.empty((len(h), 4 * size), x.dtype), np.empty((len(h), size), x.dtype)
    for rows in spans:
        n = rows.stop - rows.start
        g, a, t, cell, state = gates[rows], product[:n], fresh[:n], c[:n], h[:n]
        before, bent = cells[rows, :size], cells[rows, size:]
        np.matmul(state, u, out=a)
        np.add(g, a, g)
        np.tanh(g, g)
        to_sigmoid(g[:, :3 * size], half)
        before[...] = cell
        np.multiply(g[:, size:2 * size], cell, cell)
        np.multiply(g[:, :size], g[:, 3 * size:], t)
        np.add(cell, t, cell)
        np.tanh(cell, bent)
        if w_hr is None:
            np.multiply(g[:, 2 * size:3 * size], bent, state)
        else:
            np.matmul(np.multiply(g[:, 2 * size:3 * size], bent, t), w_hr.T, out=state)
        y[rows] = state
    return y, h, c, gates, cells


def lstm_backward(dy, dhn, dcn, w_hh, w_hr, gates, cells, spans):
    """dgates (N, 4H) in torch's order i, f, g, o, dh0 (B, P), dc0 (B, H), and dstates (N, P): of y with all it led to.

    dstates is None without projection.
    """
    size = w_hh.shape[0] // 4
    dgates, dh, dc = np.empty_like(gates), dhn.copy(), dcn.copy()
    dstates = None if w_hr is None else np.empty_like(dy)
    slopes, fresh = np.empty((len(dh), 3 * size), gates.dtype), np.empty((len(dh), size), gates.dtype)
    one = gates.dtype.type(1)
    for rows in reversed(spans):
        n = rows.stop - rows.start
        now, cell, s, t = dh[:n], dc[:n], slopes[:n], fresh[:n]
        before, bent = cells[rows, :size], cells[rows, size:]
        d, g, sigmoids = dgates[rows], gates[rows, 3 * size:], gates[rows, :3 * size]
        i, f, o = (sigmoids[:, k * size:(k + 1) * size] for k in range(3))
        np.add(now, dy[rows], now)
        e = now
        if dstates is not None:
            dstates[rows] = now
            e = now @ w_hr
        np.multiply(sigmoids, sigmoids, s)
        np.subtract(sigmoids, s, s)
        np.multiply(s[:, 2 * size:], bent, t)
        np.multiply(t, e, d[:, 3 * size:])
        np.multiply(bent, bent, t)
        np.subtract(one, t, t)
        np.multiply(t, o, t)
        np.multiply(t, e, t)
        np.add(cell, t, cell)
        np.multiply(s[:, :size], g, t)
        np.multiply(t, cell, d[:, :size])
        np.multiply(s[:, size:2 * size], before, t)
        np.multiply(t, cell, d[:, size:2 * size])
        np.multiply(g, g, t)
        np.subtract(one, t, t)
        np.multiply(t, i, t)
        np.multiply(t, cell, d[:, 2 * size:3 * size])
        np.multiply(cell, f, cell)
        np.matmul(d, w_hh, out=now)
    return dgates, dh, dc, dstates


def gru_forward(x, h0, w_ih, w_hh, b_ih, b_hh, spans):
    """y (N, H), the last states (B, H), gates (N, 3H): r, z, n, and hidden (N, H): the state's part of n before r."""
    size = w_hh.shape[0] // 3
    w, u, b, b_state = folded(size, (0, 1, 2), 2, w_ih, w_hh, b_ih, b_hh)
    gates, u = projected(x, w, b), np.ascontiguousarray(u.T)     # with a transposed view a thin product is slower
    if b_state is not None:
        gates[:, :2 * size] += b_state[:2 * size]
    hidden, y = np.empty((len(x), size), x.dtype), np.empty((len(x), size), x.dtype)
    h, half = h0.copy(), x.dtype.type(0.5)
    product = np.empty((len(h), 3 * size), x.dtype)
    for rows in spans:
        n = rows.stop - rows.start
        g, a, state, part = gates[rows], product[:n], h[:n], hidden[rows]
        np.matmul(state, u, out=a)
        sigmoids, new, t = g[:, :2 * size], g[:, 2 * size:], a[:, :size]
        np.add(sigmoids, a[:, :2 * size], sigmoids)
        np.tanh(sigmoids, sigmoids)
        to_sigmoid(sigmoids, half)
        if b_state is None:
            part[...] = a[:, 2 * size:]
        else:
            np.add(a[:, 2 * size:], b_state[2 * size:], part)
        np.multiply(part, g[:, :size], t)
        np.add(new, t, new)
        np.tanh(new, new)
        np.subtract(state, new, t)
        np.multiply(t, g[:, size:2 * size], t)
        np.add(t, new, state)
        y[rows] = state
    return y, h, gates, hidden


def gru_backward(dy, dhn, w_hh, gates, hidden, before, spans):
    """dgates (N, 3H) of what the input adds to r, z, n, dstates (N, 3H) of what the state adds, and dh0 (B, H)."""
    size = w_hh.shape[0] // 3
    dgates, dstates, dh = np.empty_like(gates), np.empty_like(gates), dhn.copy()
    fresh, one = np.empty((len(dh), size), gates.dtype), gates.dtype.type(1)
    for rows in reversed(spans):
        n = rows.stop - rows.start
        now, t, d, ds, g = dh[:n], fresh[:n], dgates[rows], dstates[rows], gates[rows]
        r, z, new = (g[:, k * size:(k + 1) * size] for k in range(3))
        dr, dz, dnew = (d[:, k * size:(k + 1) * size] for k in range(3))
        np.add(now, dy[rows], now)
        np.subtract(one, z, t)
        np.multiply(t, now, t)
        np.multiply(new, new, dnew)
        np.subtract(one, dnew, dnew)
        np.multiply(dnew, t, dnew)
        np.subtract(before[rows], new, dz)
        np.multiply(dz, t, dz)
        np.multiply(dz, z, dz)
        np.subtract(one, r, dr)
        np.multiply(dr, r, dr)
        np.multiply(dr, hidden[rows], dr)
        np.multiply(dr, dnew, dr)
        ds[:, :2 * size] = d[:, :2 * size]
        np.multiply(dnew, r, ds[:, 2 * size:])
        np.multiply(now, z, t)
        np.matmul(ds, w_hh, out=now)
        np.add(now, t, now)
    return dgates, dstates, dh
