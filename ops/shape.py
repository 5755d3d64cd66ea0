"""Shapes: views and the moves between them. Views share memory on both devices and need no kernel.

A trail (None, op, arguments) says which window of an array a view op opens; see views.py.
"""
from collections.abc import Callable
from math import prod

import numpy as np

from zoo.ops.device import constant
from zoo.ops.dims import wrap
from zoo.ops.dtypes import HALVES, float32
from zoo.ops.errors import ArgumentError, DimError, ShapeError
from zoo.ops.op import OPS, Spec, structured
from zoo.ops.views import replay


def cases(ordinary: list, empty: list | str, zero: list | str, odd: list,
          extreme: str = "values are not computed with") -> Callable:
    """The `samples` of an op whose only array comes first: rows of (shape of x, *options)."""
    def samples(rng):
        rows = {"ordinary": ordinary, "empty": empty, "0-d": zero, "odd": odd, "extreme": extreme}
        return {kind: row if isinstance(row, str) else [(rng.normal(size=shape), *rest) for shape, *rest in row]
                for kind, row in rows.items()}
    return samples


def wrap_dims(op: str, dims, ndim: int) -> tuple[int, ...]:
    """A number or sequence of dims, counted from the front. Raises DimError, also for a dim given twice."""
    wrapped = tuple(wrap(op, d, ndim) for d in ((dims,) if hasattr(dims, "__index__") else dims))
    if len(set(wrapped)) != len(wrapped):
        raise ArgumentError(f"{op}: a dim appears twice in {tuple(dims)}")
    return wrapped


def resolve(op: str, shape, size: int) -> tuple[int, ...]:
    """`shape` with its -1 worked out for `size` elements. Raises ShapeError."""
    shape = tuple(shape)
    known = prod(n for n in shape if n != -1)
    free = shape.count(-1)
    if free == 1 and known and size % known == 0 and min(shape) >= -1:
        return tuple(size // known if n == -1 else n for n in shape)
    if free or known != size or (shape and min(shape) < 0):
        raise ShapeError(f"{op}: shape {shape} does not fit an array of {size} elements")
    return shape


@structured
class filled:
    """A new array of `shape` beside x (its device and dtype), every element `value`."""
    dtypes = "floats ints bool"
    def check(x, shape, value): return Spec(tuple(shape), x.dtype)
    def forward(x, shape, value): return np.full(shape, value, x.dtype) if value else np.zeros(shape, x.dtype)
    samples = cases([((3,), (2, 3), 1)], [((3,), (0, 3), 1)], [((), (), 0)], [((2,), (7, 13), 1)])


@structured
class expand:
    """x broadcast to `shape`, without a copy."""
    view = True
    dtypes = "floats ints bool"
    def check(x, shape):
        try:
            if np.broadcast_shapes(x.shape, shape) != tuple(shape):
                raise ValueError
        except ValueError:
            raise ShapeError(f"expand: wants a shape that {x.shape} broadcasts to, got {tuple(shape)}") from None
        return Spec(tuple(shape), x.dtype)

    def forward(x, shape):
        if not x.ndim and x.dtype is float32:                # the gradient of a sum, in a tenth of the time
            y = np.ndarray(shape, float32, x, 0, (0,) * len(shape))
            y.flags.writeable = False
            return y
        try:
            y = np.broadcast_to(x, shape)                    # read-only: an element stands for several
        except ValueError:
            expand.check(x, shape)
            raise
        return y if y.size != x.size else x.reshape(shape)
    def dx(dy, x_shape): return sum_to(dy, x_shape)
    samples = cases([((3, 1), (2, 3, 4))], [((1, 3), (0, 3))], [((), (2, 3))], [((7, 1), (7, 13))])


@structured
class sum_to:
    """Sum away what broadcasting had added: (2, 3, 4) -> (3, 1)."""
    def check(x, shape):
        lead = len(x.shape) - len(shape)
        if lead < 0 or any(m not in (1, n) for n, m in zip(x.shape[lead:], shape, strict=True)):
            raise ShapeError(f"sum_to: wants a shape that broadcasts to {x.shape}, got {tuple(shape)}")
        return Spec(tuple(shape), x.dtype)

    def forward(x, shape):
        sum_to.check(x, shape)
        dims = summed_dims(x.shape, shape)
        if not dims:
            return x
        wide = float32 if x.dtype in HALVES else x.dtype
        return np.asarray(np.add.reduce(x, dims, wide)).astype(x.dtype, copy=False).reshape(shape)
    def dx(dy, x_shape): return expand(dy, x_shape)
    samples = cases([((2, 3, 4), (3, 1))], [((0, 3), (3,))], [((), ())], [((7, 13), ())], "as sum")


def summed_dims(shape, target) -> tuple[int, ...]:
    """The dims of `shape` that sum_to(target) sums over."""
    lead = len(shape) - len(target)
    return (*range(lead), *(i + lead for i, m in enumerate(target) if m != shape[i + lead]))


@structured
class reshape:
    """x in another shape: a view if the strides allow it, else a copy. One size may be -1."""
    view = True
    dtypes = "floats ints bool"
    def check(x, shape): return Spec(resolve("reshape", shape, prod(x.shape)), x.dtype)

    def forward(x, shape):
        try:
            return x.reshape(shape)
        except ValueError:
            reshape.check(x, shape)
            raise
    def dx(dy, x_shape): return reshape(dy, x_shape)
    samples = cases([((3, 4), (2, 6)), ((2, 6), (-1, 3))], [((0, 4), (2, 0))], [((), (1, 1))], [((7, 13), (91,))])


@structured
class view:
    """x in another shape, never a copy. Raises ShapeError if the strides do not allow it."""
    view = True
    dtypes = "floats ints bool"
    def check(x, shape): return Spec(resolve("view", shape, prod(x.shape)), x.dtype)

    def forward(x, shape):
        try:
            y = x.reshape(shape)
        except ValueError:
            view.check(x, shape)
            raise
        if not x.flags.c_contiguous and x.size and not np.may_share_memory(x, y):
            raise ShapeError(f"view: shape {tuple(shape)} needs a copy of x of shape {x.shape} and strides "
                             f"{tuple(s // x.itemsize for s in x.strides)}; use reshape")
        return y
    def dx(dy, x_shape): return reshape(dy, x_shape)
    # one row: the strided variant of a shape that merges dims is an error
    samples = cases([((3, 4), (3, 1, 4))], [((0, 4), (0, 1, 4))], [((), (1, 1))], [((7, 13), (7, 1, 13))])


@structured
class permute:
    """The dims of x in the order `dims`."""
    view = True
    dtypes = "floats ints bool"
    def check(x, dims):
        if len(dims) != len(x.shape):
            raise ShapeError(f"permute: wants {len(x.shape)} dims for shape {x.shape}, got {tuple(dims)}")
        return Spec(tuple(x.shape[d] for d in wrap_dims("permute", dims, len(x.shape))), x.dtype)

    def forward(x, dims):
        try:
            return x.transpose(dims)
        except ValueError:
            permute.check(x, dims)
            raise

    def dx(dy, dims):
        n = len(dims)
        order = [d % n for d in dims]
        return permute(dy, tuple(order.index(i) for i in range(n)))
    samples = cases([((2, 3, 4), (2, 0, 1))], [((0, 4), (1, 0))], [((), ())], [((7, 1, 13), (-2, -1, 0))])


@structured
class cast:
    """x as another dtype; floats to integers truncate towards zero."""
    dtypes = "floats ints bool"
    def check(x, dtype): return Spec(x.shape, np.dtype(dtype))
    def forward(x, dtype): return x.astype(dtype)
    def dx(dy): return dy                                  # the engine casts a gradient to its target's dtype

    def samples(rng):
        wide = np.dtype(np.float64)
        return {"ordinary": [(rng.normal(size=(3, 4)), wide), (4 * rng.normal(size=(3, 4)), np.dtype(np.float64))],
                "empty": [(rng.normal(size=(0, 4)), wide)], "0-d": [(rng.normal(size=()), wide)],
                "odd": [(rng.normal(size=(7, 13)), wide)],
                "extreme": [(np.array([0.0, 1e30, -1e30, np.inf, np.nan]), wide)]}


@structured
class contiguous:
    """x itself if its elements lie in row-major order, else a copy in which they do."""
    view = True
    dtypes = "floats ints bool"
    def check(x): return Spec(x.shape, x.dtype)
    def forward(x): return x if x.flags.c_contiguous else x.copy()
    def dx(dy): return dy
    samples = cases([((3, 4),)], [((0, 4),)], [((),)], [((7, 13),)])


@structured
class clone:
    """A copy of x."""
    dtypes = "floats ints bool"
    def check(x): return Spec(x.shape, x.dtype)
    def forward(x): return x.copy()
    def dx(dy): return dy
    samples = cases([((3, 4),)], [((0, 4),)], [((),)], [((7, 13),)])


# -- windows: views that show a part of x. Their gradient lies in zeros, in the same window.

@structured
class view_backward:
    """Zeros of `shape` with v in the window that the view ops of `trail` open."""
    def check(v, shape, trail): return Spec(tuple(shape), v.dtype)

    def forward(v, shape, trail):
        y = np.zeros(shape, v.dtype)
        replay(y, trail)[...] = v
        return y
    def dv(dy, trail): return replay(dy, trail)

    def samples(rng):
        trail = (None, basic_index, ((slice(1, 3), 0),))
        return {"ordinary": [(rng.normal(size=(2, 4)), (3, 2, 4), trail)],
                "empty": [(rng.normal(size=(2, 0)), (3, 2, 0), trail)],
                "0-d": [(rng.normal(size=()), (3,), (None, basic_index, ((1,),)))],
                "odd": [(rng.normal(size=(2, 13)), (7, 5, 13), trail)], "extreme": "values are not computed with"}


def window_of(shape, strides, index) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Shape, strides and offset of x[index], for ints, slices, None and an Ellipsis. Raises DimError."""
    used = sum(1 for i in index if i is not None and i is not Ellipsis)
    if used > len(shape):
        raise DimError(f"getitem: too many indices: {used} for shape {tuple(shape)}")
    if index.count(Ellipsis) > 1:
        raise DimError("getitem: an index can have a single ellipsis (...)")
    new_shape, new_strides, offset, d = [], [], 0, 0
    for i in index if Ellipsis in index else (*index, Ellipsis):
        if i is None:
            new_shape.append(1)
            new_strides.append(0)
        elif i is Ellipsis:
            rest = len(shape) - used
            new_shape += shape[d:d + rest]
            new_strides += strides[d:d + rest]
            d += rest
        elif isinstance(i, slice):
            start, stop, step = slice_bounds(i, shape[d])
            new_shape.append(max(0, -((start - stop) // step)))
            new_strides.append(strides[d] * step)
            offset += start * strides[d]
            d += 1
        else:
            if not -shape[d] <= i < shape[d]:
                raise DimError(f"getitem: index {i} is out of range for dim {d} of shape {tuple(shape)}")
            offset += i % shape[d] * strides[d]
            d += 1
    return tuple(new_shape), tuple(new_strides), 0 if 0 in new_shape else offset


def slice_bounds(i: slice, size: int) -> tuple[int, int, int]:
    if i.step is not None and i.step <= 0:
        raise ArgumentError(f"getitem: a slice's step must be greater than zero, got {i.step}")
    return i.indices(size)


@structured
class basic_index:
    """x[index] for a tuple of ints, slices with positive steps, None and at most one Ellipsis."""
    view = True
    dtypes = "floats ints bool"
    def check(x, index): return Spec(window_of(x.shape, (0,) * len(x.shape), index)[0], x.dtype)

    def forward(x, index):
        for i in index:
            if type(i) is slice and i.step is not None and i.step <= 0:
                slice_bounds(i, 0)
        try:
            y = x[index]
        except IndexError:
            basic_index.check(x, index)
            raise
        return y if type(y) is np.ndarray else x[(*index, ...)]
    def dx(dy, index, x_shape): return view_backward(dy, x_shape, (None, basic_index, (index,)))
    samples = cases([((3, 4), (1,)), ((5, 4, 3), (slice(1, None, 2), None, ..., -1))], [((0, 4), (slice(None), 2))],
                    [((), ()), ((), (None,))], [((7, 13), (slice(2, 100, 3), slice(-4, -1)))])


@structured
class as_strided:
    """The elements offset + sum(i * stride) of x's memory, which has to be contiguous; windows may overlap."""
    view = True
    dtypes = "floats ints bool"

    def check(x, size, stride, offset=0):
        if len(size) != len(stride) or min((*size, *stride, offset, 0)) < 0:
            raise ShapeError("as_strided: wants sizes and strides >= 0 of equal length, "
                             f"got {tuple(size)} and {tuple(stride)}")
        if 0 not in size and offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) >= prod(x.shape):
            raise ShapeError(f"as_strided: size {tuple(size)}, stride {tuple(stride)}, offset {offset} leave the "
                             f"{prod(x.shape)} elements of an array of shape {x.shape}")
        return Spec(tuple(size), x.dtype)

    def forward(x, size, stride, offset=0):
        as_strided.check(x, size, stride, offset)
        if not x.flags.c_contiguous:
            raise ShapeError(f"as_strided: wants a contiguous array, got shape {x.shape}, strides {x.strides} (bytes)")
        start = x.reshape(-1)[offset if 0 not in size else 0:]
        return np.lib.stride_tricks.as_strided(start, size, [s * x.itemsize for s in stride])

    def dx(dy, size, stride, offset, x_shape):
        if not overlaps(size, stride):
            return view_backward(dy, x_shape, (None, as_strided, (size, stride, offset)))
        places = np.arange(prod(x_shape), dtype=np.int64)
        places = constant(as_strided.forward(places, size, stride, offset).reshape(-1), like=dy)
        zeros = filled(dy, (prod(x_shape),), 0)
        return reshape(OPS["index_put"](zeros, reshape(dy, (-1,)), (0,), True, places), x_shape)
    samples = cases([((3, 4), (2, 3), (4, 1), 1), ((12,), (4, 3), (2, 1), 1)], [((3, 4), (0, 3), (1, 1), 0)],
                    [((), (), (), 0), ((), (2, 2), (0, 0), 0)], [((7, 13), (5, 3), (14, 2), 3)])


def overlaps(size, stride) -> bool:
    """Whether two indices may lead to the same element (True also for some strides where none do)."""
    reach = 0
    for s, n in sorted((s, n) for s, n in zip(stride, size, strict=True) if n > 1):
        if s <= reach:
            return True
        reach += (n - 1) * s
    return False


@structured
class diagonal:
    """The diagonal of dims dim1 and dim2, as the last dim of a view; offset > 0 lies above the main one."""
    view = True
    dtypes = "floats ints bool"

    def check(x, offset=0, dim1=0, dim2=1):
        return Spec(diagonal_window(x.shape, (0,) * len(x.shape), offset, dim1, dim2)[0], x.dtype)

    def forward(x, offset=0, dim1=0, dim2=1):
        diagonal.check(x, offset, dim1, dim2)
        y = x.diagonal(offset, dim1, dim2)
        y.flags.writeable = x.flags.writeable                # NumPy hands it out read-only
        return y
    def dx(dy, offset, dim1, dim2, x_shape): return view_backward(dy, x_shape, (None, diagonal, (offset, dim1, dim2)))
    samples = cases([((3, 4), 0, 0, 1), ((3, 4, 2), -1, 2, 0)], [((0, 4), 0, 0, 1), ((3, 3), 5, 0, 1)],
                    "wants two dims",
                    [((7, 5, 13), 2, 0, -1)])


def diagonal_window(shape, strides, offset, dim1, dim2) -> tuple:
    """Shape, strides and offset in elements of a diagonal. Raises DimError."""
    d1, d2 = (wrap("diagonal", d, len(shape)) for d in (dim1, dim2))
    if d1 == d2:
        raise ArgumentError(f"diagonal: dims must differ, got {dim1} and {dim2} for shape {tuple(shape)}")
    down, right = max(-offset, 0), max(offset, 0)
    length = max(0, min(shape[d1] - down, shape[d2] - right))
    rest = [d for d in range(len(shape)) if d not in (d1, d2)]
    window = *(shape[d] for d in rest), length
    start = 0 if 0 in window else down * strides[d1] + right * strides[d2]
    return window, (*(strides[d] for d in rest), strides[d1] + strides[d2]), start


@structured
class unfold:
    """Windows of `size` elements, `step` apart, of dim `dimension`: their number stays there, they are the last dim."""
    view = True
    dtypes = "floats ints bool"

    def check(x, dimension, size, step):
        d = wrap("unfold", dimension, len(x.shape))
        n = x.shape[d] if x.shape else 1
        if not 0 <= size <= n:
            raise ShapeError(f"unfold: wants a size of 0 to {n} for dim {dimension} of shape {x.shape}, got {size}")
        if step <= 0:
            raise ArgumentError(f"unfold: step is {step} but must be > 0")
        return Spec((*x.shape[:d], (n - size) // step + 1, *x.shape[d + 1:], size) if x.shape else (size,), x.dtype)

    def forward(x, dimension, size, step):
        shape = unfold.check(x, dimension, size, step).shape
        if not x.ndim:
            return x.reshape(1)[:size]
        d = dimension % x.ndim
        strides = (*x.strides[:d], x.strides[d] * step, *x.strides[d + 1:], x.strides[d])
        return np.lib.stride_tricks.as_strided(x, shape, strides)
    def dx(dy, dimension, size, step, x_shape): return unfold_backward(dy, x_shape, dimension, size, step)
    samples = cases([((9,), 0, 3, 2), ((3, 8, 2), 1, 4, 1)], [((0, 4), 1, 2, 1)], [((), 0, 1, 1)],
                    [((7, 13), -1, 5, 3)])


@structured
class unfold_backward:
    """Sum the windows of `unfold` back to where they came from."""
    def check(dy, shape, dimension, size, step): return Spec(tuple(shape), dy.dtype)

    def forward(dy, shape, dimension, size, step):
        wide = float32 if dy.dtype in HALVES else dy.dtype
        y = np.zeros(shape or (1,), wide)
        d = wrap("unfold", dimension, len(shape))
        ends = np.moveaxis(y, d, -1)
        windows = np.moveaxis(dy, d, -2) if shape else dy[None]
        reach = step * (windows.shape[-2] - 1) + 1
        for k in range(size):
            ends[..., k:k + reach:step] += windows[..., k]
        return y.reshape(shape).astype(dy.dtype, copy=False)
    def ddy(dy, dimension, size, step): return unfold(dy, dimension, size, step)
    samples = cases([((4, 3), (9,), 0, 3, 2), ((3, 5, 2, 4), (3, 8, 2), 1, 4, 1)], [((0, 3, 2), (0, 4), 1, 2, 1)],
                    [((1,), (), 0, 1, 1)], [((7, 3, 5), (7, 13), -1, 5, 3)])


# -- moves that copy

@structured
class flip:
    """x with the order of the elements along `dims` reversed (a copy, as in torch)."""
    dtypes = "floats ints bool"
    def check(x, dims):
        wrap_dims("flip", dims, len(x.shape))
        return Spec(x.shape, x.dtype)

    def forward(x, dims):
        flip.check(x, dims)
        return np.flip(x, dims).copy() if x.ndim else x.copy()
    def dx(dy, dims): return flip(dy, dims)
    samples = cases([((3, 4), (0,)), ((3, 4, 2), (0, -1))], [((0, 4), (1,))], [((), ())], [((7, 13), (0, 1))])


def check_matrix(op: str, x, diagonal) -> Spec:
    if len(x.shape) < 2:
        raise ShapeError(f"{op}: wants at least 2 dims, got shape {x.shape}")
    return Spec(x.shape, x.dtype)


@structured
class tril:
    """x with zeros above the diagonal of its last two dims; diagonal > 0 keeps that many more."""
    dtypes = "floats ints bool"
    def check(x, diagonal=0): return check_matrix("tril", x, diagonal)
    def forward(x, diagonal=0):
        tril.check(x)
        return np.tril(x, diagonal)
    def dx(dy, diagonal): return tril(dy, diagonal)
    samples = cases([((3, 4), 0), ((2, 4, 3), -1)], [((0, 4), 0)], "wants two dims", [((7, 13), 3)])


@structured
class triu:
    """x with zeros below the diagonal of its last two dims; diagonal > 0 keeps that many less."""
    dtypes = "floats ints bool"
    def check(x, diagonal=0): return check_matrix("triu", x, diagonal)
    def forward(x, diagonal=0):
        triu.check(x)
        return np.triu(x, diagonal)
    def dx(dy, diagonal): return triu(dy, diagonal)
    samples = cases([((3, 4), 0), ((2, 4, 3), -1)], [((0, 4), 0)], "wants two dims", [((7, 13), 3)])


@structured
class constant_pad_nd:
    """x with `value` around it: pad = (left, right) of the last dim, then of the one before ...; negative pads crop."""
    dtypes = "floats ints bool"

    def check(input, pad, value=0):
        return Spec(pad_windows(input.shape, pad)[0], input.dtype)

    def forward(input, pad, value=0):
        shape, source, target = pad_windows(input.shape, pad)
        y = np.full(shape, value, input.dtype)
        y[target] = input[source]
        return y
    def dinput(dy, pad): return constant_pad_nd(dy, tuple(-p for p in pad), 0)
    samples = cases([((3, 4), (1, 2), 0), ((3, 4, 2), (1, -1, 0, 2), 2)], [((0, 4), (1, 1, 2, 0), 1)], [((), (), 1)],
                    [((7, 13), (3, 0, -2, 5), 0)])


def pad_windows(shape, pad) -> tuple:
    """Padded shape, the part of the input that stays, and where it goes. Raises ShapeError."""
    if len(pad) % 2 or len(pad) > 2 * len(shape):
        raise ShapeError(f"pad: wants an even number of at most {2 * len(shape)} pads for shape {tuple(shape)}, "
                         f"got {tuple(pad)}")
    new, source, target = list(shape), [slice(None)] * len(shape), [slice(None)] * len(shape)
    for k in range(len(pad) // 2):
        d, (left, right) = len(shape) - 1 - k, pad[2 * k:2 * k + 2]
        new[d] = shape[d] + left + right
        if new[d] < 0:
            raise ShapeError(f"pad: {left} and {right} leave a negative size of dim {d} of shape {tuple(shape)}")
        first, last = max(-left, 0), shape[d] - max(-right, 0)
        source[d] = slice(first, max(first, last))
        start = max(left, 0)
        target[d] = slice(start, start + max(0, last - first))
    return tuple(new), tuple(source), tuple(target)
