"""Recurrent layers: one op for one layer and direction, over all steps.

Rows are packed as in torch's PackedSequence: step t has batch_sizes[t] rows, the steps lie one after the other, and
the sequences are in order of length, longest first, so batch_sizes never grows. N is the number of all rows, B that of
the sequences. With reverse=True each sequence is walked from its own last step to its first. A sequence that has
ended keeps its state; one that has not begun has its initial state: this is all that different lengths come to.

Gates have torch's order: i, f, g, o of LSTM (Hochreiter and Schmidhuber, 1997), r, z, n of GRU (Cho et al., 2014).
"""
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np

from zoo.ops import rnn_cpu as cpu
from zoo.ops.device import constant
from zoo.ops.dtypes import FLOATS, HALVES, float32
from zoo.ops.errors import DtypeError, ShapeError
from zoo.ops.index import embedding
from zoo.ops.join import cat
from zoo.ops.matmul import linear, linear_bias_grad, linear_input_grad, linear_weight_grad, transposed
from zoo.ops.norm import wide
from zoo.ops.op import OPS, Spec, structured
from zoo.ops.shape import basic_index, cast, filled


@lru_cache(64)
def spans_of(batch_sizes: tuple[int, ...], reverse: bool) -> tuple[slice, ...]:
    """The rows of each step, in the order in which the steps are walked."""
    spans = tuple(slice(stop - n, stop) for n, stop in zip(batch_sizes, accumulate(batch_sizes), strict=True))
    return spans[::-1] if reverse else spans


@lru_cache(64)
def rows_before(batch_sizes: tuple[int, ...], reverse: bool) -> np.ndarray:
    """For each row (N,), where the state before it is: a row of the initial states and the outputs together."""
    batch = batch_sizes[0]
    latest, found = np.arange(batch), np.empty(sum(batch_sizes), np.int64)
    for rows in spans_of(batch_sizes, reverse):
        n = rows.stop - rows.start
        found[rows] = latest[:n]
        latest[:n] = batch + np.arange(rows.start, rows.stop)
    found.flags.writeable = False
    return found


def states_before(h0, y, batch_sizes, reverse):
    """The state before each row (N, P), from initial states (B, P) and outputs (N, P)."""
    if batch_sizes[-1] == batch_sizes[0]:                       # of one length: those before are one step away
        size, rows = batch_sizes[0], y.shape[0]
        return cat(0, rows_of(y, slice(size, None)), h0) if reverse else cat(0, h0, rows_of(y, slice(rows - size)))
    return embedding(constant(rows_before(batch_sizes, reverse), y), cat(0, h0, y))


def check_sequence(op: str, gates: int, x, h0, w_ih, w_hh, biases: tuple, batch_sizes) -> int:
    """The hidden size; raises unless rows, states and weights fit together."""
    arrays = [a for a in (x, h0, w_ih, w_hh, *biases) if a is not None]
    if x.dtype not in FLOATS or any(a.dtype != x.dtype for a in arrays):
        raise DtypeError(f"{op}: wants one floating dtype, got {', '.join(str(a.dtype) for a in arrays)}")
    if any(a.ndim != 2 for a in (x, h0, w_ih, w_hh)) or len(w_hh.shape) != 2 or w_hh.shape[0] % gates:
        raise ShapeError(f"{op}: wants input (N, I), h0 (B, H), w_ih ({gates}H, I) and w_hh ({gates}H, H), got "
                         f"{', '.join(str(tuple(a.shape)) for a in (x, h0, w_ih, w_hh))}")
    rows, wanted = w_hh.shape[0], {"input": (sum(batch_sizes), w_ih.shape[1]), "h0": (h0.shape[0], w_hh.shape[1]),
                                   "w_ih": (w_hh.shape[0], x.shape[1])}
    for (name, shape), a in zip(wanted.items(), (x, h0, w_ih), strict=True):
        if tuple(a.shape) != shape:
            raise ShapeError(f"{op}: wants {name} {shape}, got {tuple(a.shape)}")
    for bias in biases:
        if bias is not None and tuple(bias.shape) != (rows,):
            raise ShapeError(f"{op}: wants biases ({rows},), got {tuple(bias.shape)}")
    batch = h0.shape[0]
    if not batch_sizes or batch_sizes[0] != batch or batch_sizes[-1] < min(batch, 1) \
            or any(a < b for a, b in pairwise(batch_sizes)):
        raise ShapeError(f"{op}: wants at least one step, of {batch} rows at first and never more, got {batch_sizes}")
    return rows // gates


def merged(new, old):
    """The states of a step: the first rows are new, the others wait or have ended."""
    n = new.shape[0]
    return new if n == old.shape[0] else cat(0, new, rows_of(old, slice(n, None)))


def rows_of(x, rows: slice):
    return basic_index(x, (rows,))


def gate_of(x, k: int, size: int):
    """Columns of gate k."""
    return basic_index(x, (slice(None), slice(k * size, (k + 1) * size)))


def in_order(parts: list, reverse: bool):
    """What the steps gave, in walking order, as rows (N, ...)."""
    return cat(0, *(parts[::-1] if reverse else parts))


def sequence_case(rng, gates: int, inputs: int, size: int, batch_sizes: tuple, cells: bool = False, out: int = 0):
    """x, h0, (c0), w_ih, w_hh of a sample."""
    batch, width = batch_sizes[0], out or size
    states = [rng.normal(size=(batch, width))] + ([rng.normal(size=(batch, size))] if cells else [])
    weights = [rng.normal(size=(gates * size, inputs)) * 0.5, rng.normal(size=(gates * size, width)) * 0.5]
    return rng.normal(size=(sum(batch_sizes), inputs)), *states, *weights


# -- plain: h = tanh(W x + U h + b), or relu

def rnn_check(op: str, x, h0, w_ih, w_hh, bias, batch_sizes):
    size = check_sequence(op, 1, x, h0, w_ih, w_hh, (bias,), batch_sizes)
    return Spec((x.shape[0], size), x.dtype), Spec(tuple(h0.shape), x.dtype)


def rnn_forward(op: str, x, h0, w_ih, w_hh, bias, batch_sizes, reverse, nonlinearity):
    specs = rnn_check(op, x, h0, w_ih, w_hh, bias, batch_sizes)
    ys = cpu.rnn_forward(*map(wide, (x, h0, w_ih, w_hh, bias)), nonlinearity, spans_of(batch_sizes, reverse))
    return tuple(y.astype(s.dtype, copy=False) for y, s in zip(ys, specs, strict=True))


def rnn_derivatives(dy, dhn, slope, x, h0, w_ih, w_hh, bias, batch_sizes, reverse, y, wanted):
    dgates, dh0 = rnn_grad(dy, dhn, w_hh, slope, batch_sizes, reverse)
    before = states_before(h0, y, batch_sizes, reverse) if wanted[3] else None
    return (*input_grads(dgates, x, w_ih, wanted[0], wanted[2], dh0), linear_weight_grad(dgates, before)
            if wanted[3] else None, linear_bias_grad(dgates) if bias is not None else None)


def input_grads(dgates, x, w_ih, want_x: bool, want_w: bool, *between):
    """Gradients of the product with the input, dx and dw_ih, around those of the states."""
    dx = linear_input_grad(dgates, w_ih) if want_x else None
    return dx, *between, linear_weight_grad(dgates, x) if want_w else None


def rnn_samples(rng):
    def case(inputs, size, batch_sizes, reverse=False, bias=True):
        rest = sequence_case(rng, 1, inputs, size, batch_sizes)
        return *rest, rng.normal(size=size) if bias else None, batch_sizes, reverse
    far = case(3, 4, (2, 2, 1))
    return {"ordinary": [case(3, 4, (2, 2, 2)), case(3, 4, (3, 2, 1), True), case(2, 3, (2, 1), False, False)],
            "empty": [case(3, 4, (0, 0))], "0-d": "wants (N, I)", "odd": [case(5, 7, (3, 3, 2, 1, 1), True)],
            "extreme": [(far[0] * 1e3, *far[1:])]}


@structured
class rnn_tanh:
    """h = tanh(w_ih x + w_hh h + bias) at every step.

    x (N, I), h0 (B, H), w_ih (H, I), w_hh (H, H), bias (H,) or None -> y (N, H), and each sequence's last h (B, H).
    """
    outputs = ("y", "hn")
    differentiable = ("x", "h0", "w_ih", "w_hh", "bias")

    def check(x, h0, w_ih, w_hh, bias, batch_sizes, reverse=False):
        return rnn_check("rnn_tanh", x, h0, w_ih, w_hh, bias, batch_sizes)

    def forward(x, h0, w_ih, w_hh, bias, batch_sizes, reverse=False):
        return rnn_forward("rnn_tanh", x, h0, w_ih, w_hh, bias, batch_sizes, reverse, np.tanh)

    def backward(dy, dhn, x, h0, w_ih, w_hh, bias, batch_sizes, reverse, y, wanted):
        return rnn_derivatives(dy, dhn, 1.0 - y * y, x, h0, w_ih, w_hh, bias, batch_sizes, reverse, y, wanted)

    samples = rnn_samples


def positive_part(a, out):
    np.maximum(a, 0, out=out)


@structured
class rnn_relu:
    """h = relu(w_ih x + w_hh h + bias) at every step; shapes as rnn_tanh."""
    outputs = ("y", "hn")
    differentiable = ("x", "h0", "w_ih", "w_hh", "bias")

    def check(x, h0, w_ih, w_hh, bias, batch_sizes, reverse=False):
        return rnn_check("rnn_relu", x, h0, w_ih, w_hh, bias, batch_sizes)

    def forward(x, h0, w_ih, w_hh, bias, batch_sizes, reverse=False):
        return rnn_forward("rnn_relu", x, h0, w_ih, w_hh, bias, batch_sizes, reverse, positive_part)

    def backward(dy, dhn, x, h0, w_ih, w_hh, bias, batch_sizes, reverse, y, wanted):
        slope = cast(OPS["gt"](y, 0.0), y.dtype)
        return rnn_derivatives(dy, dhn, slope, x, h0, w_ih, w_hh, bias, batch_sizes, reverse, y, wanted)

    samples = rnn_samples


@structured
class rnn_grad:
    """From dy (N, H) and dhn (B, H) to the gradients of the sums before the nonlinearity (N, H), and dh0 (B, H).

    slope (N, H) is the nonlinearity's derivative.
    """
    outputs = ("dgates", "dh0")

    def check(dy, dhn, w_hh, slope, batch_sizes, reverse):
        return Spec(tuple(dy.shape), dy.dtype), Spec(tuple(dhn.shape), dy.dtype)

    def forward(dy, dhn, w_hh, slope, batch_sizes, reverse):
        ys = cpu.rnn_backward(*map(wide, (dy, dhn, w_hh, slope)), spans_of(batch_sizes, reverse))
        return tuple(y.astype(dy.dtype, copy=False) for y in ys)

    def decompose(dy, dhn, w_hh, slope, batch_sizes, reverse):
        parts = []
        for rows in reversed(spans_of(batch_sizes, reverse)):
            n = rows.stop - rows.start
            d = (rows_of(dhn, slice(n)) + rows_of(dy, rows)) * rows_of(slope, rows)
            parts.append(d)
            dhn = merged(d @ w_hh, dhn)
        return in_order(parts, not reverse), dhn

    def samples(rng):
        def case(size, batch_sizes, reverse=False):
            n = sum(batch_sizes)
            return (rng.normal(size=(n, size)), rng.normal(size=(batch_sizes[0], size)),
                    rng.normal(size=(size, size)) * 0.5, rng.uniform(size=(n, size)), batch_sizes, reverse)
        return {"ordinary": [case(4, (2, 2)), case(3, (3, 2, 1), True)], "empty": [case(3, (0, 0))],
                "0-d": "wants (N, H)", "odd": [case(7, (3, 3, 2, 1, 1))], "extreme": "as the forward op"}


# -- LSTM: c = f c + i g, h = o tanh(c)

def lstm_gates(x, before, w_ih, w_hh, bias, size: int) -> list:
    """i, f, g, o (N, H) of all rows, given the states before them."""
    sums = linear(x, w_ih, bias) + linear(before, w_hh)
    return [OPS["tanh" if k == 2 else "sigmoid"](gate_of(sums, k, size)) for k in range(4)]


def lstm_steps(x, h0, c0, w_ih, w_hh, bias, w_hr, batch_sizes, reverse):
    """`lstm` in ops, step by step, halves in float32."""
    dtype, size = x.dtype, c0.shape[1]
    x, h, c, w_ih, w_hh, bias, w_hr = lifted(x, h0, c0, w_ih, w_hh, bias, w_hr)
    parts = []
    for rows in spans_of(batch_sizes, reverse):
        n = rows.stop - rows.start
        i, f, g, o = lstm_gates(rows_of(x, rows), rows_of(h, slice(n)), w_ih, w_hh, bias, size)
        before = rows_of(c, slice(n))
        cell = f * before + i * g
        bent = OPS["tanh"](cell)
        y = o * bent if w_hr is None else linear(o * bent, w_hr)
        parts.append((y, cat(1, i, f, o, g), cat(1, before, bent)))
        h, c = merged(y, h), merged(cell, c)
    y, gates, cells = (in_order(list(p), reverse) for p in zip(*parts, strict=True))
    return cast(y, dtype), cast(h, dtype), cast(c, dtype), gates, cells


def lifted(*xs) -> list:
    """Halves as float32, in ops."""
    return [cast(x, float32) if x is not None and x.dtype in HALVES else x for x in xs]


def lstm_samples(rng):
    def case(inputs, size, batch_sizes, reverse=False, bias=True, out=0):
        rest = sequence_case(rng, 4, inputs, size, batch_sizes, True, out)
        return (*rest, rng.normal(size=4 * size) if bias else None, rng.normal(size=(out, size)) if out else None,
                batch_sizes, reverse)
    far = case(3, 4, (2, 2, 1))
    return {"ordinary": [case(3, 4, (2, 2, 2)), case(3, 4, (3, 2, 1), True), case(2, 3, (2, 1), False, False, 2)],
            "empty": [case(3, 4, (0, 0))], "0-d": "wants (N, I)", "odd": [case(5, 7, (3, 3, 2, 1, 1), True)],
            "extreme": [(far[0] * 1e3, *far[1:])]}


@structured
class lstm:
    """i, f, g, o = w_ih x + w_hh h + bias through sigmoid (g: tanh); c = f c + i g; h = o tanh(c), or w_hr (o tanh(c)).

    x (N, I), h0 (B, P), c0 (B, H), w_ih (4H, I), w_hh (4H, P), bias (4H,) or None, w_hr (P, H) or None: then P = H
    -> y (N, P), each sequence's last h (B, P) and c (B, H), and for the backward pass, float32 or wider, gates (N, 4H):
    i, f, o, g, and cells (N, 2H): c before the step, tanh(c).
    """
    outputs = ("y", "hn", "cn", "gates", "cells")
    reserve = ("gates", "cells")
    differentiable = ("x", "h0", "c0", "w_ih", "w_hh", "bias", "w_hr")

    def check(x, h0, c0, w_ih, w_hh, bias, w_hr, batch_sizes, reverse=False):
        size = check_sequence("lstm", 4, x, h0, w_ih, w_hh, (bias,), batch_sizes)
        if tuple(c0.shape) != (h0.shape[0], size) or c0.dtype != x.dtype:
            raise ShapeError(f"lstm: wants c0 {(h0.shape[0], size)} {x.dtype}, got {tuple(c0.shape)} {c0.dtype}")
        width = size if w_hr is None else w_hr.shape[0]
        if h0.shape[1] != width or w_hr is not None and tuple(w_hr.shape) != (h0.shape[1], size):
            raise ShapeError(f"lstm: wants h0 {(h0.shape[0], width)}" + ("" if w_hr is None else f" and w_hr "
                             f"{(h0.shape[1], size)}, got {tuple(w_hr.shape)}") + f", got h0 {tuple(h0.shape)}")
        dtype, inner = x.dtype, float32 if x.dtype in HALVES else x.dtype
        return (Spec((x.shape[0], width), dtype), Spec(tuple(h0.shape), dtype), Spec(tuple(c0.shape), dtype),
                Spec((x.shape[0], 4 * size), inner), Spec((x.shape[0], 2 * size), inner))

    def forward(x, h0, c0, w_ih, w_hh, bias, w_hr, batch_sizes, reverse=False):
        specs = lstm.check(x, h0, c0, w_ih, w_hh, bias, w_hr, batch_sizes)
        ys = cpu.lstm_forward(*map(wide, (x, h0, c0, w_ih, w_hh, bias, w_hr)), spans_of(batch_sizes, reverse))
        return tuple(y.astype(s.dtype, copy=False) for y, s in zip(ys, specs, strict=True))

    def backward(dy, dhn, dcn, x, h0, c0, w_ih, w_hh, bias, w_hr, batch_sizes, reverse, y, gates, cells, wanted):
        before = states_before(h0, y, batch_sizes, reverse)
        dgates, dh0, dc0, dw_hr = lstm_grad(dy, dhn, dcn, x, before, c0, w_ih, w_hh, bias, w_hr, gates, cells,
                                            batch_sizes, reverse)
        return (*input_grads(dgates, x, w_ih, wanted[0], wanted[3], dh0, dc0),
                linear_weight_grad(dgates, before) if wanted[4] else None,
                linear_bias_grad(dgates) if bias is not None else None, dw_hr if w_hr is not None else None)

    samples = lstm_samples


@structured
class lstm_grad:
    """From dy (N, P), dhn (B, P) and dcn (B, H) to the gradients of the gates' sums (N, 4H), dh0, dc0, dw_hr (P, H).

    before (N, P): the states before the rows. Without w_hr, dw_hr is (0, H).
    """
    outputs = ("dgates", "dh0", "dc0", "dw_hr")

    def check(dy, dhn, dcn, x, before, c0, w_ih, w_hh, bias, w_hr, gates, cells, batch_sizes, reverse):
        shapes = (tuple(gates.shape), tuple(dhn.shape), tuple(dcn.shape),
                  (0, c0.shape[1]) if w_hr is None else tuple(w_hr.shape))
        return tuple(Spec(shape, dy.dtype) for shape in shapes)

    def forward(dy, dhn, dcn, x, before, c0, w_ih, w_hh, bias, w_hr, gates, cells, batch_sizes, reverse):
        size = c0.shape[1]
        dy, dhn, dcn, w_hh, w_hr, gates, cells = map(wide, (dy, dhn, dcn, w_hh, w_hr, gates, cells))
        *grads, dstates = cpu.lstm_backward(dy, dhn, dcn, w_hh, w_hr, gates, cells, spans_of(batch_sizes, reverse))
        if dstates is None:
            grads.append(np.empty((0, size), dy.dtype))
        else:
            grads.append(dstates.T @ (gates[:, 2 * size:3 * size] * cells[:, size:]))
        return tuple(g.astype(x.dtype, copy=False) for g in grads)

    def decompose(dy, dhn, dcn, x, before, c0, w_ih, w_hh, bias, w_hr, gates, cells, batch_sizes, reverse):
        # the gates anew, from what has a gradient: the reserve has none
        dtype, size, spans = x.dtype, c0.shape[1], spans_of(batch_sizes, reverse)
        dy, dh, dc, x, before, c, w_ih, w_hh, bias, w_hr = lifted(dy, dhn, dcn, x, before, c0, w_ih, w_hh, bias, w_hr)
        i, f, g, o = lstm_gates(x, before, w_ih, w_hh, bias, size)
        old, new, dgates, dstates = [], [], [], []
        for rows in spans:
            old.append(rows_of(c, slice(rows.stop - rows.start)))
            new.append(rows_of(f, rows) * old[-1] + rows_of(i * g, rows))
            c = merged(new[-1], c)
        bent = OPS["tanh"](in_order(new, reverse))
        slopes = cat(1, i * (1.0 - i) * g, f * (1.0 - f) * in_order(old, reverse), i * (1.0 - g * g))
        of_output, of_cell = o * (1.0 - o) * bent, o * (1.0 - bent * bent)
        for rows in reversed(spans):
            n = rows.stop - rows.start
            e = rows_of(dh, slice(n)) + rows_of(dy, rows)
            dstates.append(e)
            e = e if w_hr is None else e @ w_hr
            d = rows_of(dc, slice(n)) + e * rows_of(of_cell, rows)
            dgates.append(cat(1, cat(1, d, d, d) * rows_of(slopes, rows), e * rows_of(of_output, rows)))
            dh, dc = merged(dgates[-1] @ w_hh, dh), merged(d * rows_of(f, rows), dc)
        dw_hr = filled(dy, (0, size), 0) if w_hr is None else transposed(in_order(dstates, not reverse)) @ (o * bent)
        return tuple(cast(g, dtype) for g in (in_order(dgates, not reverse), dh, dc, dw_hr))

    def samples(rng):
        found = {}
        for kind, rows in lstm_samples(rng).items():
            found[kind] = rows if isinstance(rows, str) else [lstm_grad_case(rng, row) for row in rows]
        return found


def lstm_grad_case(rng, row: tuple) -> tuple:
    """Arguments of lstm_grad from those of lstm."""
    x, h0, c0, w_ih, w_hh, bias, w_hr, batch_sizes, reverse = row
    y, hn, cn, gates, cells = lstm.forward(*row)
    before = states_before(h0, y, batch_sizes, reverse)
    dy, dhn, dcn = (rng.normal(size=a.shape) for a in (y, hn, cn))
    return dy, dhn, dcn, x, before, c0, w_ih, w_hh, bias, w_hr, gates, cells, batch_sizes, reverse


# -- GRU: n = tanh(W x + r (U h + b)), h = (1 - z) n + z h

def gru_samples(rng):
    def case(inputs, size, batch_sizes, reverse=False, bias=True):
        rest = sequence_case(rng, 3, inputs, size, batch_sizes)
        biases = [rng.normal(size=3 * size) if bias else None for _ in "ih"]
        return *rest, *biases, batch_sizes, reverse
    far = case(3, 4, (2, 2, 1))
    return {"ordinary": [case(3, 4, (2, 2, 2)), case(3, 4, (3, 2, 1), True), case(2, 3, (2, 1), False, False)],
            "empty": [case(3, 4, (0, 0))], "0-d": "wants (N, I)", "odd": [case(5, 7, (3, 3, 2, 1, 1), True)],
            "extreme": [(far[0] * 1e3, *far[1:])]}


@structured
class gru:
    """r, z = sigmoid(w_ih x + b_ih + w_hh h + b_hh); n = tanh(w_ih x + b_ih + r (w_hh h + b_hh)); h = (1 - z) n + z h.

    x (N, I), h0 (B, H), w_ih (3H, I), w_hh (3H, H), b_ih and b_hh (3H,) or None -> y (N, H), each sequence's last h
    (B, H), and for the backward pass, float32 or wider, gates (N, 3H): r, z, n, and hidden (N, H): w_hh h + b_hh of n.
    """
    outputs = ("y", "hn", "gates", "hidden")
    reserve = ("gates", "hidden")
    differentiable = ("x", "h0", "w_ih", "w_hh", "b_ih", "b_hh")

    def check(x, h0, w_ih, w_hh, b_ih, b_hh, batch_sizes, reverse=False):
        size = check_sequence("gru", 3, x, h0, w_ih, w_hh, (b_ih, b_hh), batch_sizes)
        dtype, inner = x.dtype, float32 if x.dtype in HALVES else x.dtype
        return (Spec((x.shape[0], size), dtype), Spec(tuple(h0.shape), dtype), Spec((x.shape[0], 3 * size), inner),
                Spec((x.shape[0], size), inner))

    def forward(x, h0, w_ih, w_hh, b_ih, b_hh, batch_sizes, reverse=False):
        specs = gru.check(x, h0, w_ih, w_hh, b_ih, b_hh, batch_sizes)
        ys = cpu.gru_forward(*map(wide, (x, h0, w_ih, w_hh, b_ih, b_hh)), spans_of(batch_sizes, reverse))
        return tuple(y.astype(s.dtype, copy=False) for y, s in zip(ys, specs, strict=True))

    def backward(dy, dhn, x, h0, w_ih, w_hh, b_ih, b_hh, batch_sizes, reverse, y, gates, hidden, wanted):
        before = states_before(h0, y, batch_sizes, reverse)
        dgates, dstates, dh0 = gru_grad(dy, dhn, x, before, w_ih, w_hh, b_ih, b_hh, gates, hidden, batch_sizes, reverse)
        return (*input_grads(dgates, x, w_ih, wanted[0], wanted[2], dh0),
                linear_weight_grad(dstates, before) if wanted[3] else None,
                linear_bias_grad(dgates) if b_ih is not None else None,
                linear_bias_grad(dstates) if b_hh is not None else None)

    samples = gru_samples


@structured
class gru_grad:
    """From dy (N, H) and dhn (B, H) to the gradients of w_ih x + b_ih and of w_hh h + b_hh, both (N, 3H), and dh0.

    before (N, H): the states before the rows.
    """
    outputs = ("dgates", "dstates", "dh0")

    def check(dy, dhn, x, before, w_ih, w_hh, b_ih, b_hh, gates, hidden, batch_sizes, reverse):
        return (*(Spec(tuple(gates.shape), dy.dtype) for _ in "gs"), Spec(tuple(dhn.shape), dy.dtype))

    def forward(dy, dhn, x, before, w_ih, w_hh, b_ih, b_hh, gates, hidden, batch_sizes, reverse):
        ys = cpu.gru_backward(*map(wide, (dy, dhn, w_hh, gates, hidden, before)), spans_of(batch_sizes, reverse))
        return tuple(y.astype(x.dtype, copy=False) for y in ys)

    def decompose(dy, dhn, x, before, w_ih, w_hh, b_ih, b_hh, gates, hidden, batch_sizes, reverse):
        # the gates anew, from what has a gradient: the reserve has none
        dtype, size = x.dtype, before.shape[1]
        dy, dh, x, before, w_ih, w_hh, b_ih, b_hh = lifted(dy, dhn, x, before, w_ih, w_hh, b_ih, b_hh)
        of_x, of_h = linear(x, w_ih, b_ih), linear(before, w_hh, b_hh)
        r, z = (OPS["sigmoid"](gate_of(of_x, k, size) + gate_of(of_h, k, size)) for k in range(2))
        part = gate_of(of_h, 2, size)
        n = OPS["tanh"](gate_of(of_x, 2, size) + r * part)
        new = (1.0 - z) * (1.0 - n * n)
        both = cat(1, new * part * r * (1.0 - r), (before - n) * z * (1.0 - z))
        slopes, of_states = cat(1, both, new), cat(1, both, new * r)
        dgates, dstates = [], []
        for rows in reversed(spans_of(batch_sizes, reverse)):
            e = rows_of(dh, slice(rows.stop - rows.start)) + rows_of(dy, rows)
            wide_e = cat(1, e, e, e)
            dgates.append(wide_e * rows_of(slopes, rows))
            dstates.append(wide_e * rows_of(of_states, rows))
            dh = merged(e * rows_of(z, rows) + dstates[-1] @ w_hh, dh)
        return tuple(cast(g, dtype) for g in (in_order(dgates, not reverse), in_order(dstates, not reverse), dh))

    def samples(rng):
        def case(row):
            x, h0, w_ih, w_hh, b_ih, b_hh, batch_sizes, reverse = row
            y, hn, gates, hidden = gru.forward(*row)
            before = states_before(h0, y, batch_sizes, reverse)
            return (rng.normal(size=y.shape), rng.normal(size=hn.shape), x, before, w_ih, w_hh, b_ih, b_hh, gates,
                    hidden, batch_sizes, reverse)
        rows = gru_samples(rng)
        return {kind: r if isinstance(r, str) else [case(row) for row in r] for kind, r in rows.items()}
