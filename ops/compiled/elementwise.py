"""relu and its gradient, in one pass over flat float32 arrays, into the first argument.

Whole vectors first, then the rest: Zen 5 does not prefetch what masked loads read, and memory is what these wait for.
"""
from zoo.ops.compiled.build import inline, kernel, reads, writes
from zoo.ops.compiled.vector import LANES, chosen, largest, load, splat, store


@inline
def relu_at(y, x, i, n):
    store(y, i, largest(load(x, i, n), splat(0.0)), n)


@kernel(writes(1), reads(1))
def relu(y, x):
    """y = max(x, 0), NaN where x is."""
    full = y.size - y.size % LANES
    for i in range(0, full, LANES):
        relu_at(y, x, i, LANES)
    relu_at(y, x, full, y.size - full)


@inline
def relu_dx_at(d, dy, y, i, n):
    store(d, i, chosen(load(y, i, n), splat(0.0), splat(0.0), load(dy, i, n)), n)


@kernel(writes(1), reads(1), reads(1))
def relu_dx(d, dy, y):
    """d = dy, 0 where y <= 0."""
    full = d.size - d.size % LANES
    for i in range(0, full, LANES):
        relu_dx_at(d, dy, y, i, LANES)
    relu_dx_at(d, dy, y, full, d.size - full)
