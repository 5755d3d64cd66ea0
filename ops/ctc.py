"""Connectionist temporal classification (A. Graves et al., ICML 2006): minus the log probability of all alignments.

Between the target's labels, before and after them, stand blanks: L = 2 S + 1 places. alpha[t, n, s] is the log
probability of all ways to be at place s of sequence n after step t, beta that of all ways to go on from there.
"""
import numpy as np

from zoo.ops.device import constant, fetch
from zoo.ops.dtypes import FLOATS, HALVES, INTS, float32
from zoo.ops.errors import ArgumentError, DtypeError, ShapeError
from zoo.ops.index import gather, scatter_add
from zoo.ops.join import cat
from zoo.ops.norm import wide
from zoo.ops.op import OPS, Spec, structured
from zoo.ops.shape import basic_index, cast, filled, reshape

FAR = -1e30           # stands for log 0 in ops, where -inf would make a nan of a derivative


def places_of(targets, blank: int) -> np.ndarray:
    """The label at each place (N, 2 S + 1): a blank before, between and after the targets (N, S)."""
    batch, length = targets.shape
    places = np.full((batch, 2 * length + 1), blank, np.int64)
    places[:, 1::2] = targets
    return places


def may_skip(places, blank: int) -> np.ndarray:
    """(N, L): may one come to this place from two before it? Past a blank, if the labels differ."""
    found = np.zeros(places.shape, np.bool_)
    found[:, 2:] = (places[:, 2:] != places[:, :-2]) & (places[:, 2:] != blank)
    return found


def shifted(a, by: int) -> np.ndarray:
    """a (N, L) moved along L, to the right for by > 0; -inf comes in."""
    y = np.full_like(a, -np.inf)
    if by > 0:
        y[:, by:] = a[:, :-by]
    else:
        y[:, :by] = a[:, -by:]
    return y


def at_places(log_probs, places) -> np.ndarray:
    """The log probability of each place's label at each step: (T, N, L)."""
    steps = log_probs.shape[0]
    return np.take_along_axis(log_probs, np.broadcast_to(places, (steps, *places.shape)), 2)


def forward_sums(emitted, skip, target_lengths) -> np.ndarray:
    """alpha (T, N, L)."""
    alpha = np.full_like(emitted, -np.inf)
    alpha[:1, :, :1] = emitted[:1, :, :1]
    some = np.flatnonzero(np.asarray(target_lengths))
    if len(emitted):
        alpha[0, some, 1:2] = emitted[0, some, 1:2]
    for t in range(1, len(emitted)):
        before = alpha[t - 1]
        two = np.where(skip, shifted(before, 2), -np.inf)
        np.add(np.logaddexp(np.logaddexp(before, shifted(before, 1)), two), emitted[t], out=alpha[t])
    return alpha


def last_places(target_lengths, length: int) -> np.ndarray:
    """(N, L): 0 at the last label of each sequence and the blank after it, -inf elsewhere."""
    place, ends = np.arange(length), 2 * np.asarray(target_lengths)[:, None]
    return np.where((place == ends) | (place == ends - 1), 0.0, -np.inf)


def backward_sums(emitted, skip, input_lengths, target_lengths) -> np.ndarray:
    """beta (T, N, L), without the step's own emission."""
    beta, steps = np.full_like(emitted, -np.inf), len(emitted)
    ends = last_places(target_lengths, emitted.shape[2])
    forth = np.zeros_like(skip)
    forth[:, :-2] = skip[:, 2:]
    for t in reversed(range(steps)):
        if t + 1 < steps:
            after = beta[t + 1] + emitted[t + 1]
            two = np.where(forth, shifted(after, -2), -np.inf)
            beta[t] = np.logaddexp(np.logaddexp(after, shifted(after, -1)), two)
        beta[t] = np.where(np.asarray(input_lengths)[:, None] == t + 1, ends, beta[t])
    return beta


def number(allowed, like):
    """0 where allowed, FAR elsewhere, as an array beside `like`."""
    return constant(np.where(allowed, 0.0, FAR).astype(like.dtype), like)


def moved(a, by: int):
    """`shifted` in ops, with FAR for -inf."""
    gap, length = filled(a, (a.shape[0], min(abs(by), a.shape[1])), FAR), a.shape[1]
    kept = basic_index(a, (slice(None), slice(0, max(length - by, 0)) if by > 0 else slice(min(-by, length), length)))
    return cat(1, gap, kept) if by > 0 else cat(1, kept, gap)


def stacked(steps: list):
    """Arrays (N, L) as one (T, N, L)."""
    return cat(0, *(reshape(a, (1, *a.shape)) for a in steps))


def forward_steps(emitted, places, blank: int, target_lengths) -> list:
    """`forward_sums` in ops: the steps' alpha (N, L)."""
    skip, place = number(may_skip(places, blank), emitted), np.arange(places.shape[1])
    a = basic_index(emitted, (0,)) + number(place < 1 + (np.asarray(target_lengths)[:, None] > 0), emitted)
    found = [a]
    for t in range(1, emitted.shape[0]):
        a = OPS["logaddexp"](OPS["logaddexp"](a, moved(a, 1)), moved(a, 2) + skip) + basic_index(emitted, (t,))
        found.append(a)
    return found


def backward_steps(emitted, places, blank: int, input_lengths, target_lengths) -> list:
    """`backward_sums` in ops: the steps' beta (N, L)."""
    skip, ends = number(may_skip(places, blank), emitted), last_places(target_lengths, places.shape[1])
    ends, none = number(ends == 0, emitted), number(np.zeros(places.shape, np.bool_), emitted)
    b, found = none, []
    for t in reversed(range(emitted.shape[0])):
        if found:
            a = b + basic_index(emitted, (t + 1,))
            b = OPS["logaddexp"](OPS["logaddexp"](a, moved(a, -1)), moved(a + skip, -2))
        b = OPS["where"](constant(np.asarray(input_lengths)[:, None] == t + 1, emitted), ends, b)
        found.append(b)
    return found[::-1]


@structured
class ctc:
    """loss (N,): minus the log probability of targets under log_probs.

    log_probs (T, N, C), targets (N, S) integers in [0, C), input_lengths and target_lengths: N ints up to T and S
    -> loss (N,), and for the backward pass, float32 or wider, alpha (T, N, 2 S + 1). With zero_infinity a loss that is
    infinite, since the target does not fit, is 0 and has no gradient.
    """
    outputs = ("loss", "alpha")
    reserve = ("alpha",)
    differentiable = ("log_probs",)

    def check(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
        if log_probs.dtype not in FLOATS or targets.dtype not in INTS:
            raise DtypeError(f"ctc_loss: wants floating log_probs and integer targets, got {log_probs.dtype} and "
                             f"{targets.dtype}")
        if log_probs.ndim != 3 or targets.ndim != 2 or targets.shape[0] != log_probs.shape[1]:
            raise ShapeError(f"ctc_loss: wants log_probs (T, N, C) and targets (N, S), got {tuple(log_probs.shape)} "
                             f"and {tuple(targets.shape)}")
        (steps, batch, classes), longest = log_probs.shape, targets.shape[1]
        for name, lengths, most in (("input", input_lengths, steps), ("target", target_lengths, longest)):
            if len(lengths) != batch or any(not 0 <= n <= most for n in lengths):
                raise ArgumentError(f"ctc_loss: wants {batch} {name}_lengths in [0, {most}], got {lengths}")
        if not 0 <= blank < classes:
            raise ArgumentError(f"ctc_loss: wants blank in [0, {classes - 1}], got {blank}")
        dtype = log_probs.dtype
        return Spec((batch,), dtype), Spec((steps, batch, 2 * longest + 1), float32 if dtype in HALVES else dtype)

    def forward(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
        loss, kept = ctc.check(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
        places = places_of(targets, blank)
        alpha = forward_sums(at_places(wide(log_probs), places), may_skip(places, blank), target_lengths)
        total = np.where(np.asarray(target_lengths) > 0, -np.inf, 0.0)       # of no steps: certain, if of no labels
        for n, (steps, length) in enumerate(zip(input_lengths, target_lengths, strict=True)):
            if steps:
                total[n] = np.logaddexp.reduce(alpha[steps - 1, n, max(2 * length - 1, 0):2 * length + 1])
        if zero_infinity:
            total[np.isneginf(total)] = 0
        return (-total).astype(loss.dtype), alpha.astype(kept.dtype, copy=False)

    def backward(dloss, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity, loss, alpha, wanted):
        return (ctc_grad(dloss, log_probs, targets, loss, alpha, input_lengths, target_lengths, blank, zero_infinity),)

    def samples(rng):
        def case(steps, classes, inputs, lengths, blank=0, zero=False):
            logits = rng.normal(size=(steps, len(inputs), classes))
            labels = [c for c in range(classes) if c != blank]
            targets = rng.choice(labels, (len(inputs), max(lengths)))
            log_probs = logits - np.log(np.exp(logits).sum(2, keepdims=True))
            return log_probs, targets.astype(np.int64), inputs, lengths, blank, zero
        repeated = case(6, 3, (6, 6), (3, 2))
        repeated[1][:] = 1
        none = np.zeros((4, 0, 3)), np.zeros((0, 2), np.int64), (), (), 0, False
        return {"ordinary": [case(5, 4, (5, 5), (2, 2)), case(6, 4, (6, 4, 5), (3, 0, 1), 2), repeated,
                             case(3, 4, (3, 3), (1, 0), 0, True)],
                "empty": [none], "0-d": "wants (T, N, C)", "odd": [case(13, 7, (13, 11, 7), (5, 3, 1), 6)],
                "extreme": [(lambda c: (c[0] * 1e3, *c[1:]))(case(5, 4, (5, 5), (2, 1)))]}


@structured
class ctc_grad:
    """From dloss (N,) to dlog_probs (T, N, C): minus the probability, given the target, of each label at each step."""
    def check(dloss, log_probs, targets, loss, alpha, input_lengths, target_lengths, blank, zero_infinity):
        return Spec(tuple(log_probs.shape), log_probs.dtype)

    def forward(dloss, log_probs, targets, loss, alpha, input_lengths, target_lengths, blank, zero_infinity):
        places, x = places_of(targets, blank), wide(log_probs)
        beta = backward_sums(at_places(x, places), may_skip(places, blank), input_lengths, target_lengths)
        live = np.arange(len(x))[:, None] < np.asarray(input_lengths, np.int64)
        if zero_infinity:
            live &= wide(loss) != 0
        occupied = -np.exp(alpha + beta + wide(loss)[:, None]) * (wide(dloss) * live)[:, :, None]
        occupied = np.where(live[:, :, None], occupied, 0).astype(alpha.dtype)
        y = np.zeros(x.shape, x.dtype)
        t, n = np.arange(x.shape[0])[:, None, None], np.arange(x.shape[1])[:, None]
        np.add.at(y, (t, n, places), occupied)
        return y.astype(log_probs.dtype, copy=False)

    def decompose(dloss, log_probs, targets, loss, alpha, input_lengths, target_lengths, blank, zero_infinity):
        # alpha and beta anew, as recursions in ops: the reserve has no gradient
        steps, batch, _ = log_probs.shape
        zeros = filled(log_probs, tuple(log_probs.shape), 0)
        if not (steps and batch):
            return zeros
        x = cast(log_probs, float32) if log_probs.dtype in HALVES else log_probs
        places = places_of(fetch(getattr(targets, "array", targets)), blank)
        index = constant(np.broadcast_to(places, (steps, *places.shape)).copy(), x)
        emitted = gather(x, 2, index)
        joint = stacked(forward_steps(emitted, places, blank, target_lengths)) + stacked(
            backward_steps(emitted, places, blank, input_lengths, target_lengths))
        live = (np.arange(steps)[:, None] < np.asarray(input_lengths)).astype(x.dtype)
        weight = cast(reshape(dloss, (1, batch, 1)), x.dtype) * constant(-live[:, :, None], x)
        if zero_infinity:
            weight = weight * cast(OPS["gt"](OPS["amax"](joint, 2, True), FAR / 10), x.dtype)
        occupied = OPS["softmax"](joint, 2) * weight
        return cast(scatter_add(cast(zeros, x.dtype), 2, index, occupied), log_probs.dtype)

    def samples(rng):
        def case(row):
            loss, alpha = ctc.forward(*row)
            log_probs, targets, *rest = row
            return rng.normal(size=loss.shape), log_probs, targets, loss, alpha, *rest
        rows = ctc.samples(rng)
        return {kind: r if isinstance(r, str) else [case(row) for row in r] for kind, r in rows.items()}

