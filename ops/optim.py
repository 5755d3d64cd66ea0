"""One step of an optimizer on raw arrays, in place, by a rule of optim_rules.py.

Not records in the registry: it writes into its arguments, and has no derivative. The kernel is in optim_gpu.py.
"""
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from zoo.ops.compiled import compiled
from zoo.ops.dtypes import HALVES, float32
from zoo.ops.optim_rules import RULES
from zoo.ops.pieces import PIECE, each, slices

MOST = 6                # numbers that a rule may read


def updates_for(kind: type) -> Any:
    """The module whose `update` takes arrays of this type: this one, or that of the kernel."""
    if kind is np.ndarray:
        return sys.modules[__name__]
    from zoo.ops import optim_gpu
    return optim_gpu


def words_of(numbers: Sequence[float], decay: float, shrink: float) -> list[float]:
    """The eight numbers that a kernel takes: up to six of the rule, decay and shrink."""
    return [*map(float, numbers), *[0.0] * (MOST - len(numbers)), float(decay), float(shrink)]


def update(rule: str, rows: Sequence[tuple], numbers: Any, flags: tuple, maximize: bool, decay: float,
           shrink: float, found_inf: Any = None) -> None:
    """One step of every row (param, grad, *state), in place on param and state.

    g = (-grad if maximize else grad) + decay * param; param, state = rule(shrink * param, g, state, numbers, flags).
    Half types are computed in float32 and rounded once.

    Args:
        found_inf: a bool array (1,); True leaves everything as it is. None: go on.
        rule: a name of optim_rules.RULES. rows: arrays of one shape and dtype in each row, contiguous; the dtype is the
            same in all rows. numbers, flags: what the rule reads. maximize, decay, shrink: see the formula.
    """
    step = IN_PLACE.get(rule) or out_of_place(rule)
    if not rows or found_inf is not None and found_inf.all():
        return
    dtype = rows[0][0].dtype
    wide = float32 if dtype in HALVES else dtype
    n = [np.asarray(x, wide) for x in numbers]

    def work(parts: Sequence[np.ndarray]) -> None:
        p, g, *state = [a.astype(wide) for a in parts] if wide is not dtype else parts
        if maximize:
            g = -g
        if decay:
            g = g + p * np.asarray(decay, wide)
        if shrink != 1:
            p *= np.asarray(shrink, wide)
        step(p, g, state, n, flags)
        if wide is not dtype:
            for part, value in zip((parts[0], *parts[2:]), (p, *state), strict=True):
                part[...] = value
    each(work, [parts for arrays in rows for parts in pieces(arrays)], sum(arrays[0].size for arrays in rows))


def pieces(arrays: tuple) -> Iterable[Sequence[np.ndarray]]:
    """The arrays themselves, or flat pieces of larger ones."""
    size = arrays[0].size
    if size <= PIECE:
        return (arrays,)
    flat = [a.reshape(-1) for a in arrays]
    return ([a[s] for a in flat] for s in slices(size))


def out_of_place(rule: str):
    """A rule that writes its results into param and state."""
    formula = RULES[rule]

    def step(p, g, state, n, flags) -> None:
        p[...], new = formula(p, g, state, n, flags)
        for old, value in zip(state, new, strict=True):
            old[...] = value
    return step


def sgd(p, g, state, n, flags) -> None:
    """optim_rules.sgd without temporaries: as quick as memory allows."""
    momentum, first, nesterov = flags
    u = np.empty_like(p)
    if momentum:
        b = state[0]
        if first:
            b[...] = g
        else:
            b *= n[1]
            b += g if n[2] == 1 else np.multiply(g, n[2], u)
        g = np.add(g, np.multiply(b, n[1], u), u) if nesterov else b
    p -= np.multiply(g, n[0], u)


def adam(p, g, state, n, flags) -> None:
    """optim_rules.adam without temporaries: 13 passes over a chunk in the cache."""
    if fast := compiled("optim", p, g, *state):
        return fast.adam_step(p, g, state, n, flags)
    m, v, *top = state
    u = np.subtract(g, m)
    u *= n[2]
    m += u
    np.multiply(g, g, u)
    u *= n[3]
    v *= n[1]
    v += u
    if flags[0]:
        v = np.maximum(top[0], v, out=top[0])
    np.sqrt(v, u)
    u += n[4]
    np.divide(m, u, u)
    u *= n[0]
    p -= u


IN_PLACE = {"sgd": sgd, "adam": adam}
