"""The kernel of all optimizers that treat every element alike: one launch for many parameters, in place.

It takes the rule as a function. Addresses and sizes come from a table in device memory (multi_tensor_gpu.py). Numbers
are doubles (a Python float would arrive as float32), so that float64 parameters lose nothing.
"""
from typing import Any

import triton
import triton.language as tl

from zoo.ops import cuda, scalar_gpu
from zoo.ops.binding import bind
from zoo.ops.dtypes import float64
from zoo.ops.multi_tensor_gpu import BLOCK, TYPES, address, tables
from zoo.ops.optim import words_of
from zoo.ops.optim_rules import RULES

WORDS = ["n0", "n1", "n2", "n3", "n4", "n5", "decay", "shrink"]


def _jitted(rule) -> Any:
    """The rule with Triton's names, as a jit function of this module: the recorder finds it by that name."""
    formula = bind(rule, scalar_gpu.NAMES)
    formula.__module__ = __name__
    return triton.jit(formula)


globals().update({_name: _jitted(_rule) for _name, _rule in RULES.items()})


@triton.jit
def fetch(table, row, count, k, i, mask, S: tl.constexpr, T: tl.constexpr, ALIGN: tl.constexpr):
    return tl.load(address(table, row, count, k, S, ALIGN) + i, mask=mask).to(T)


@triton.jit
def fetch_state(table, count, k, i, mask, STATES: tl.constexpr, S: tl.constexpr, T: tl.constexpr, ALIGN: tl.constexpr):
    """The tuple of states: rows 2 and on. With `else`: Triton 3.6 goes on behind a return."""
    if STATES == 0:
        return ()
    else:
        a = fetch(table, 2, count, k, i, mask, S, T, ALIGN)
        if STATES == 1:
            return (a,)
        else:
            b = fetch(table, 3, count, k, i, mask, S, T, ALIGN)
            if STATES == 2:
                return (a, b)
            else:
                return (a, b, fetch(table, 4, count, k, i, mask, S, T, ALIGN))


@triton.jit
def step_chunk(table, count, k, i, mask, numbers, decay, shrink, RULE: tl.constexpr, FLAGS: tl.constexpr,
               MAXIMIZE: tl.constexpr, DECAY: tl.constexpr, STATES: tl.constexpr, S: tl.constexpr, T: tl.constexpr,
               ALIGN: tl.constexpr):
    p = fetch(table, 0, count, k, i, mask, S, T, ALIGN)
    g = fetch(table, 1, count, k, i, mask, S, T, ALIGN)
    if MAXIMIZE:
        g = -g
    if DECAY:                           # not 0 * p: p may be infinite
        g += decay * p
    state = fetch_state(table, count, k, i, mask, STATES, S, T, ALIGN)
    p, state = RULE(p * shrink, g, state, numbers, FLAGS)
    tl.store(address(table, 0, count, k, S, ALIGN) + i, p.to(S), mask=mask)
    for j in tl.static_range(STATES):
        tl.store(address(table, 2 + j, count, k, S, ALIGN) + i, state[j].to(S), mask=mask)


@triton.jit
def step_program(table, chunks, count, words, RULE: tl.constexpr, FLAGS: tl.constexpr, MAXIMIZE: tl.constexpr,
                 DECAY: tl.constexpr, STATES: tl.constexpr, S: tl.constexpr, T: tl.constexpr, ALIGN: tl.constexpr,
                 BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    k = tl.load(chunks + 2 * pid)
    base = tl.load(chunks + 2 * pid + 1) * BLOCK
    size = tl.load(table + (2 + STATES) * count + k)
    i = base + tl.arange(0, BLOCK)
    numbers = (words[0].to(T), words[1].to(T), words[2].to(T), words[3].to(T), words[4].to(T), words[5].to(T))
    decay, shrink = words[6].to(T), words[7].to(T)
    if base + BLOCK <= size:
        step_chunk(table, count, k, i, None, numbers, decay, shrink, RULE, FLAGS, MAXIMIZE, DECAY, STATES, S, T, ALIGN)
    else:
        step_chunk(table, count, k, i, i < size, numbers, decay, shrink, RULE, FLAGS, MAXIMIZE, DECAY, STATES, S, T,
                   ALIGN)


@triton.jit(do_not_specialize=["count", *WORDS])
def step_kernel(table, chunks, count, n0: "fp64", n1: "fp64", n2: "fp64", n3: "fp64", n4: "fp64", n5: "fp64",
                decay: "fp64", shrink: "fp64", held, found_inf, RULE: tl.constexpr, FLAGS: tl.constexpr,
                MAXIMIZE: tl.constexpr, DECAY: tl.constexpr, STATES: tl.constexpr, S: tl.constexpr, T: tl.constexpr,
                ALIGN: tl.constexpr, BLOCK: tl.constexpr):
    """table: int64 [2 + STATES + 1, count], addresses of param, grad and states, and in the last row the sizes.

    chunks: int64 [programs, 2], the parameter and the chunk of each program. held: None, or float64 [8], which takes
    the place of the eight numbers: a captured step finds there what the host wrote before its replay. found_inf: None,
    or bool [1]: True leaves everything as it is. S: what is stored, T: what it is computed in. Grid: (programs,).
    """
    if held is None:
        words = (n0, n1, n2, n3, n4, n5, decay, shrink)
    else:
        words = (tl.load(held), tl.load(held + 1), tl.load(held + 2), tl.load(held + 3), tl.load(held + 4),
                 tl.load(held + 5), tl.load(held + 6), tl.load(held + 7))
    if found_inf is None:
        step_program(table, chunks, count, words, RULE, FLAGS, MAXIMIZE, DECAY, STATES, S, T, ALIGN, BLOCK)
    elif tl.load(found_inf) == 0:
        step_program(table, chunks, count, words, RULE, FLAGS, MAXIMIZE, DECAY, STATES, S, T, ALIGN, BLOCK)


def update(rule, rows, numbers, flags, maximize, decay, shrink, found_inf=None) -> None:
    """See ops/optim.py; the arrays lie on one device, and those of a row are dense and laid out alike.

    numbers: also a DeviceArray, float64 (8,), of the rule's six numbers, decay and shrink, for a step that is captured.
    """
    rows = [row for row in rows if row[0].size]
    if not rows:
        return
    first = rows[0][0]
    table, chunks, aligned = tables(rows, BLOCK)
    dtype, wide = TYPES[first.dtype], tl.float64 if first.dtype == float64 else tl.float32
    held = numbers if isinstance(numbers, cuda.DeviceArray) else None
    words = [0.0] * 8 if held is not None else words_of(numbers, decay, shrink)
    cuda.launch(step_kernel, (chunks.shape[0],), table, chunks, len(rows), *words, held, found_inf,
                RULE=globals()[rule], FLAGS=tuple(map(bool, flags)), MAXIMIZE=bool(maximize), DECAY=bool(decay),
                STATES=len(rows[0]) - 2, S=dtype, T=wide, ALIGN=16 if aligned else first.itemsize, BLOCK=BLOCK,
                num_warps=4)
