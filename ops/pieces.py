"""Formulas on large arrays, piece by piece: their temporaries stay in the cache, and all threads take part.

The borders of the pieces do not depend on the number of threads, and neither do the bits of the result.
"""
from collections.abc import Callable

import numpy as np

from zoo.ops.buffers import empty
from zoo.ops.dtypes import float32, float64
from zoo.ops.threads import get_num_threads, run

PIECE = 1 << 16            # elements: three or four arrays of float32 fit the L2 cache; smaller ones wait for the GIL
LONG = 4 * PIECE           # of a formula: two threads lose more by calls of 10 us than one by the second-level cache
WHOLE = 2 * PIECE          # up to here cutting costs more than it gains
SHARED = 1 << 18           # from 1 MB of float32 on the pool's 20 us are a small part

PLAIN = frozenset({float32, float64})


def slices(size: int, step: int = PIECE) -> list[slice]:
    return [slice(i, i + step) for i in range(0, size, step)]


def each(work: Callable, items: list, size: int) -> None:
    """work(item) for each, by the pool if `size`, the elements of all of them, is worth it."""
    if size >= SHARED:
        run(work, items)
    else:
        for item in items:
            work(item)


def on_pieces(fn: Callable, into: Callable | None, xs: tuple) -> np.ndarray:
    """fn(*xs) for an elementwise fn; `into`, if there is one, writes it: into(y, *xs). One function of NumPy's has no
    temporaries, and is cut for the threads alone.

    Arrays that are not laid out alike and without gaps, or expanded from one number, are done at once.
    """
    if isinstance(fn, np.ufunc) and into is None:
        if xs[0].size < SHARED or get_num_threads() == 1 or xs[0].dtype not in PLAIN or "f->f" not in fn.types:
            return fn(*xs)
        into = into_of(fn)
    shape, order, flat = layout(xs)
    if flat is None:
        return fn(*xs) if into is None else written(into, xs)
    size = max(x.size for x in flat if type(x) is np.ndarray)

    def part(s: slice) -> list:
        return [x[s] if type(x) is np.ndarray and x.ndim else x for x in flat]

    first, *rest = slices(size, LONG)
    if into is None:
        head = fn(*part(first))
        y = empty((size,), head.dtype)
        y[first] = head
    else:
        y, rest = empty((size,), xs[0].dtype), [first, *rest]

    def work(s: slice) -> None:
        if into is None:
            y[s] = fn(*part(s))
        else:
            into(y[s], *part(s))
    each(work, rest, size)
    return y.reshape([shape[d] for d in order]).transpose(np.argsort(order))


def into_of(ufunc: np.ufunc) -> Callable:
    return lambda y, x: ufunc(x, out=y)


def written(into: Callable, xs: tuple) -> np.ndarray:
    """What `into` writes of arrays of one shape, at once."""
    y = np.empty_like(next(x for x in reversed(xs) if type(x) is np.ndarray))
    into(y, *xs)
    return y


def layout(xs: tuple) -> tuple[tuple, list, list | None]:
    """(shape, order of dimensions in memory, each array as a vector in that order); no vectors if layouts differ."""
    arrays = [x for x in xs if type(x) is np.ndarray and x.ndim and any(x.strides)]
    shape, strides = arrays[0].shape if arrays else (), arrays[0].strides if arrays else ()
    order = sorted(range(len(shape)), key=lambda d: -strides[d])
    one_number = (0,) * len(shape)
    flat = []
    for x in xs:
        if type(x) is not np.ndarray or not x.ndim:
            flat.append(x)
        elif x.shape == shape and x.strides == strides and x.transpose(order).flags.c_contiguous:
            flat.append(x.transpose(order).reshape(-1))
        elif x.shape == shape and not any(x.strides):
            flat.append(np.asarray(x[one_number]))
        else:
            return shape, order, None
    return shape, order, flat if arrays else None
