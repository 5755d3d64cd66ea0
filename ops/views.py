"""Views as data: the trail of view ops that leads from a base to a view, to go there again or to write through."""
import numpy as np

from zoo.ops.errors import ShapeError
from zoo.ops.op import Spec, structured


def steps(trail) -> list:
    """A trail is (trail before, op, further arguments), linked so that a view of a view costs nothing more."""
    found = []
    while trail is not None:
        trail, op, args = trail
        found.append((op, args))
    return found[::-1]


def joined(first, then):
    """The trail that goes along one and then along the other."""
    for op, args in steps(then):
        first = (first, op, args)
    return first


def replay(x, trail):
    """The view of x (any citizen) that the trail leads to."""
    for op, args in steps(trail):
        x = op(x, *args)
    return x


@structured
class write_through:
    """x with v in the window that the view ops of `trail` open: what a write to a view does to its base."""
    def check(x, v, trail): return Spec(x.shape, x.dtype)

    def forward(x, v, trail):
        y = np.array(x, order="C")
        if not y.size:
            return y
        window = replay(y, trail)
        if not window.size:
            return y
        if window.base is None or not np.may_share_memory(window, y):
            raise ShapeError(
                f"write to a view: the view of shape {window.shape} does not share memory with its base {x.shape}"
            )
        np.copyto(window, v, casting="unsafe")
        return y
    def dx(dy, trail): return write_through(dy, 0.0, trail)
    def dv(dy, trail): return replay(dy, trail)

    def samples(rng):
        from zoo.ops.shape import permute
        trail = (None, permute, ((1, 0),))
        return {
            "ordinary": [(rng.normal(size=(3, 4)), rng.normal(size=(4, 3)), trail)],
            "empty": [(rng.normal(size=(0, 4)), rng.normal(size=(4, 0)), trail)],
            "0-d": "a 0-d base has no other view",
            "odd": [(rng.normal(size=(7, 13)), rng.normal(size=(13, 7)), trail)],
            "extreme": "values are not computed with",
        }
