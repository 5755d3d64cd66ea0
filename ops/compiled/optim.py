"""Adam's rule in one pass over flat parameters; formula, state and numbers are those of ops/optim_rules.py."""
import numpy as np

from zoo.ops.compiled.build import boolean, inline, kernel, number, reads, writes
from zoo.ops.compiled.vector import LANES, fma, largest, load, splat, sqrt, store


@inline
def adam_at(p, g, m, v, top, amsgrad, rate, beta2, of_g, of_square, eps, i, n):
    d, before = load(g, i, n), load(m, i, n)
    mean = fma(d - before, splat(of_g), before)
    square = fma(d * d, splat(of_square), load(v, i, n) * splat(beta2))
    store(m, i, mean, n)
    store(v, i, square, n)
    if amsgrad:
        square = largest(square, load(top, i, n))
        store(top, i, square, n)
    store(p, i, load(p, i, n) - splat(rate) * (mean / (sqrt(square) + splat(eps))), n)


@kernel(writes(1), reads(1), writes(1), writes(1), writes(1), boolean, number, number, number, number, number)
def adam(p, g, m, v, top, amsgrad, rate, beta2, of_g, of_square, eps):
    """One step of p by its gradient g, exp_avg m, exp_avg_sq v and, for amsgrad, max_exp_avg_sq top."""
    rest = p.size % LANES
    full = p.size - rest
    for i in range(0, full, LANES):                        # without masks: Zen 5 does not prefetch what they read
        adam_at(p, g, m, v, top, amsgrad, rate, beta2, of_g, of_square, eps, i, LANES)
    adam_at(p, g, m, v, top, amsgrad, rate, beta2, of_g, of_square, eps, full, rest)


def adam_step(p, g, state, n, flags) -> None:
    """optim_rules.adam in place, on arrays without gaps."""
    p, g, m, v, top = (a.reshape(-1) for a in (p, g, *state[:2], state[-1]))
    adam(p, g, m, v, top, flags[0], *map(np.float32, n))
