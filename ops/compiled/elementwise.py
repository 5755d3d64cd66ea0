"""relu and its gradient, in one pass over flat float32 arrays, into the first argument."""
from zoo.ops.compiled.build import kernel, reads, writes
from zoo.ops.compiled.vector import LANES, chosen, largest, load, splat, store


@kernel(writes(1), reads(1))
def relu(y, x):
    """y = max(x, 0), NaN where x is."""
    for i in range(0, y.size, LANES):
        n = min(LANES, y.size - i)
        store(y, i, largest(load(x, i, n), splat(0.0)), n)


@kernel(writes(1), reads(1), reads(1))
def relu_dx(d, dy, y):
    """d = dy, 0 where y <= 0."""
    for i in range(0, d.size, LANES):
        n = min(LANES, d.size - i)
        store(d, i, chosen(load(y, i, n), splat(0.0), splat(0.0), load(dy, i, n)), n)
