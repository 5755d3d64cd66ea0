"""Joining arrays into one."""
import numpy as np

from zoo.ops.dims import wrap
from zoo.ops.dtypes import result_type
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.op import Spec, structured
from zoo.ops.shape import basic_index, expand, filled


def dim_and_parts(dim, xs) -> tuple[int, list]:
    """The dim counted from the front, and the arrays that take part: as in torch, not those of shape (0,)."""
    if not xs:
        raise ArgumentError("cat: wants at least one tensor, got none")
    if any(not len(x.shape) for x in xs):
        raise ShapeError(f"cat: zero-dimensional tensors cannot be concatenated, got shapes {[x.shape for x in xs]}")
    parts = [x for x in xs if x.shape != (0,)] or list(xs)
    return wrap("cat", dim, len(parts[0].shape)), parts


@structured
class cat:
    """The arrays one after the other along `dim`; in all other dims their sizes agree."""
    dtypes = "floats ints bool"

    def check(dim, *xs):
        d, parts = dim_and_parts(dim, xs)
        first = parts[0].shape
        for x in parts:
            if len(x.shape) != len(first) or x.shape[:d] != first[:d] or x.shape[d + 1:] != first[d + 1:]:
                shapes = ", ".join(str(x.shape) for x in xs)
                raise ShapeError(f"cat: sizes must agree except in dim {dim}, got {shapes}")
        return Spec((*first[:d], sum(x.shape[d] for x in parts), *first[d + 1:]), result_type(*xs))

    def forward(dim, *xs):
        if len({x.dtype for x in xs}) == 1:
            try:
                return np.concatenate(xs, dim)
            except (ValueError, TypeError):                  # a wrong call, or an empty (0,) among others
                pass
        spec = cat.check(dim, *xs)
        d, parts = dim_and_parts(dim, xs)
        return np.concatenate([x.astype(spec.dtype, copy=False) for x in parts], d)

    def dxs(dy, dim, xs_shape):
        d = dim % len(dy.shape)
        start, pieces = 0, []
        for shape in xs_shape:
            if len(shape) != len(dy.shape):                  # an empty (0,) among others
                pieces.append(expand(filled(dy, (), 0), shape))
                continue
            pieces.append(basic_index(dy, (slice(None),) * d + (slice(start, start + shape[d]),)))
            start += shape[d]
        return pieces

    def samples(rng):
        draw = lambda *shape: rng.normal(size=shape)  # noqa: E731
        return {"ordinary": [(0, draw(2, 3), draw(1, 3)), (-1, draw(2, 3), draw(2, 1), draw(2, 2))],
                "empty": [(0, draw(0, 3), draw(2, 3)), (1, draw(0), draw(2, 3))], "0-d": "wants a dim",
                "odd": [(1, draw(7, 13, 3), draw(7, 5, 3))], "extreme": "values are not computed with"}
