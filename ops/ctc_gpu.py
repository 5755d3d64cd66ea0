"""CTC on the GPU: one program walks a sequence through its steps, all places side by side.

A step reads what the step before wrote, one and two places away, from memory, behind a barrier within the program.
"""
import numpy as np
import triton
import triton.language as tl

from zoo.ops import ctc as contract
from zoo.ops import cuda
from zoo.ops.dtypes import float32, float64
from zoo.ops.pointwise_gpu import contiguous_copy
from zoo.ops.scalar_gpu import exp, log


@triton.jit
def add_exp(a, b):
    """log(e^a + e^b), -inf for two -inf."""
    high = tl.maximum(a, b)
    base = tl.where(high == float("-inf"), 0.0, high)
    return base + log(exp(a - base) + exp(b - base))


@triton.jit
def label_at(targets, place, inside, blank):
    """targets (S,): the label at a place, a blank at even ones."""
    return tl.where(place % 2 == 1, tl.load(targets + place // 2, mask=inside & (place % 2 == 1), other=0), blank)


@triton.jit(do_not_specialize=["N", "C", "S", "blank"])
def ctc_alpha(x, targets, inputs, lengths, alpha, loss, N, C, S, steps, blank, ZERO: tl.constexpr, WIDE: tl.constexpr,
              BL: tl.constexpr):
    """x (T, N, C), targets (N, S), inputs and lengths (N,) -> alpha (T, N, 2 S + 1), loss (N,). Grid: (N,)."""
    n = tl.program_id(0).to(tl.int64)
    L = 2 * S + 1
    place = tl.arange(0, BL)
    inside = place < L
    minus = float("-inf")
    live, length = tl.load(inputs + n), tl.load(lengths + n)
    label = label_at(targets + n * S, place, inside, blank)
    earlier = label_at(targets + n * S, place - 2, inside & (place >= 2), blank)
    skip = (place >= 2) & (label != blank) & (label != earlier)
    last = tl.full((BL,), minus, WIDE)
    for t in range(0, steps):
        row = alpha + (t * N + n) * L + place
        emitted = tl.load(x + (t * N + n) * C + label, mask=inside, other=minus).to(WIDE)
        if t == 0:
            a = tl.where((place == 0) | (place == tl.minimum(length, 1)), tl.zeros((BL,), WIDE), minus)
        else:
            past = row - N * L
            a = tl.load(past, mask=inside, other=minus)
            a = add_exp(a, tl.load(past - 1, mask=inside & (place >= 1), other=minus))
            a = add_exp(a, tl.load(past - 2, mask=inside & skip, other=minus))
        a += emitted
        tl.store(row, a, mask=inside)
        last = tl.where(t == live - 1, a, last)
        tl.debug_barrier()
    last = tl.where((place == 2 * length) | (place == 2 * length - 1), last, minus)
    top = tl.max(last, 0)
    base = tl.where(top == minus, 0.0, top)
    total = base + log(tl.sum(exp(last - base), 0))
    total = tl.where((live == 0) & (length == 0), 0.0, total)
    if ZERO:
        total = tl.where(total == minus, 0.0, total)
    tl.store(loss + n, (-total).to(loss.dtype.element_ty))


@triton.jit(do_not_specialize=["N", "C", "S", "blank"])
def ctc_occupied(dloss, x, targets, inputs, lengths, loss, alpha, beta, occupied, N, C, S, steps, blank,
                 ZERO: tl.constexpr, WIDE: tl.constexpr, BL: tl.constexpr):
    """As ctc_alpha, backwards: beta, scratch, and occupied, both (T, N, 2 S + 1): each place's share of the gradient.

    Grid: (N,).
    """
    n = tl.program_id(0).to(tl.int64)
    L = 2 * S + 1
    place = tl.arange(0, BL)
    inside = place < L
    minus = float("-inf")
    live, length = tl.load(inputs + n), tl.load(lengths + n)
    label = label_at(targets + n * S, place, inside, blank)
    later = label_at(targets + n * S, place + 2, inside & (place + 2 < L), blank)
    skip = (place + 2 < L) & (later != blank) & (label != later)
    ends = tl.where((place == 2 * length) | (place == 2 * length - 1), 0.0, minus)
    cost = tl.load(loss + n).to(WIDE)
    factor = tl.load(dloss + n).to(WIDE)
    for k in range(0, steps):
        t = steps - 1 - k
        row = (t * N + n) * L + place
        b = tl.full((BL,), minus, WIDE)
        if k > 0:
            past = beta + row + N * L
            b = add_exp(tl.load(past, mask=inside, other=minus), tl.load(past + 1, mask=place + 1 < L, other=minus))
            b = add_exp(b, tl.load(past + 2, mask=skip, other=minus))
        b = tl.where(t == live - 1, ends, b)
        a = tl.load(alpha + row, mask=inside, other=minus).to(WIDE)
        counts = t < live
        if ZERO:
            counts = counts & (cost != 0.0)
        tl.store(occupied + row, tl.where(counts, -exp(a + b + cost) * factor, 0.0), mask=inside)
        emitted = tl.load(x + (t * N + n) * C + label, mask=inside, other=minus).to(WIDE)
        tl.store(beta + row, b + emitted, mask=inside)
        tl.debug_barrier()


@triton.jit(do_not_specialize=["N", "C", "S", "blank"])
def sum_places(occupied, targets, dx, N, C, S, blank, BL: tl.constexpr, BC: tl.constexpr):
    """dx (T, N, C): the sum of occupied (T, N, 2 S + 1) over the places of each label. Grid: (T * N, ceil(C / BC)).

    Each label looks at all places: a fixed order of summation, which atomics would not have.
    """
    row = tl.program_id(0).to(tl.int64)
    L = 2 * S + 1
    rc = tl.program_id(1) * BC + tl.arange(0, BC)
    total = tl.zeros((BC,), occupied.dtype.element_ty)
    for first in range(0, L, BL):
        place = first + tl.arange(0, BL)
        inside = place < L
        label = label_at(targets + row % N * S, place, inside, blank)
        v = tl.load(occupied + row * L + place, mask=inside, other=0.0)
        total += tl.sum(tl.where(label[None, :] == rc[:, None], v[None, :], 0.0), 1)
    tl.store(dx + row * C + rc, total.to(dx.dtype.element_ty), mask=rc < C)


def _dense(x):
    return x if x.is_contiguous else contiguous_copy(x)


def _lengths(values: tuple, device: int):
    return cuda.from_numpy(np.asarray(values, np.int64), device)


def ctc(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
    first, kept = contract.ctc.check(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    (steps, batch, classes), length, device = log_probs.shape, targets.shape[1], log_probs.device
    loss, alpha = (cuda.empty(s.shape, s.dtype, device) for s in (first, kept))
    cuda.launch(ctc_alpha, (batch,), _dense(log_probs), _dense(targets), _lengths(input_lengths, device),
                _lengths(target_lengths, device), alpha, loss, batch, classes, length, steps, blank,
                ZERO=bool(zero_infinity), WIDE=tl.float64 if kept.dtype == float64 else tl.float32,
                BL=triton.next_power_of_2(2 * length + 1))
    return loss, alpha


def ctc_grad(dloss, log_probs, targets, loss, alpha, input_lengths, target_lengths, blank, zero_infinity):
    (steps, batch, classes), length, device = log_probs.shape, targets.shape[1], log_probs.device
    dx, targets = cuda.empty(log_probs.shape, log_probs.dtype, device), _dense(targets)
    wide = float64 if alpha.dtype == float64 else float32
    beta, occupied = (cuda.empty(alpha.shape, wide, device) for _ in "bo")
    places = triton.next_power_of_2(2 * length + 1)
    cuda.launch(ctc_occupied, (batch,), _dense(dloss), _dense(log_probs), targets, _lengths(input_lengths, device),
                _lengths(target_lengths, device), _dense(loss), _dense(alpha), beta, occupied, batch, classes, length,
                steps, blank, ZERO=bool(zero_infinity), WIDE=tl.float64 if wide == float64 else tl.float32,
                BL=places)
    cuda.launch(sum_places, (steps * batch, -(-classes // 32)), occupied, targets, dx, batch, classes, length, blank,
                BL=min(places, 64), BC=32)
    return dx
