"""torch's functions that join, repeat, turn and pad."""
import itertools

import numpy as np

from zoo.ops.device import constant, fetch
from zoo.ops.dims import wrap
from zoo.ops.dtypes import number_in, result_type
from zoo.ops.errors import ArgumentError, DimError, ShapeError
from zoo.ops.face.shape import EVERY, atleast_1d, atleast_2d, atleast_3d, numbers, ravel, sequence, transpose, unsqueeze
from zoo.ops.index import index as index_op
from zoo.ops.join import cat as cat_op
from zoo.ops.op import OPS, into
from zoo.ops.shape import basic_index, cast, clone, expand, reshape
from zoo.ops.shape import constant_pad_nd as constant_pad_op
from zoo.ops.shape import diagonal as diagonal_op
from zoo.ops.shape import flip as flip_op
from zoo.ops.shape import tril as tril_op
from zoo.ops.shape import triu as triu_op


def ending(result, out):
    return result if out is None else into(result, out)


def cat(tensors, dim=0, *, out=None):
    """The tensors one after the other along `dim`; all other sizes agree. Empty ones of shape (0,) are left out.

    Raises: ShapeError if sizes differ, DimError for a dim out of range.

    >>> import zoo
    >>> zoo.cat([zoo.ones(2, 1), zoo.zeros(2, 2)], 1)
    tensor([[1., 0., 0.],
            [1., 0., 0.]])
    """
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(f"cat: wants a tuple or list of tensors, got {type(tensors).__name__}")
    if not all(hasattr(x, "shape") for x in tensors):
        raise TypeError(f"cat: wants tensors, got {', '.join(type(x).__name__ for x in tensors)}")
    return ending(cat_op(dim, *tensors), out)


def stack(tensors, dim=0, *, out=None):
    """The tensors, of one shape, along a new dim.

    >>> import zoo
    >>> zoo.stack([zoo.ones(3), zoo.zeros(3)]).shape
    (2, 3)
    """
    if not tensors:
        raise ArgumentError("stack: wants at least one tensor, got none")
    shape = tuple(tensors[0].shape)
    if any(x.shape != shape for x in tensors):
        raise ShapeError(f"stack: wants tensors of one shape, got {', '.join(str(tuple(x.shape)) for x in tensors)}")
    d = wrap("stack", dim, len(shape) + 1)
    if d < len(shape):                                       # the same order in memory, with one view instead of many
        return ending(reshape(cat_op(d, *tensors), (*shape[:d], len(tensors), *shape[d:])), out)
    return ending(cat_op(d, *(unsqueeze(x, d) for x in tensors)), out)


def hstack(tensors, *, out=None):
    """The tensors side by side: along dim 1, or dim 0 if they have one.

    >>> import zoo
    >>> zoo.hstack([zoo.ones(2, 1), zoo.ones(2, 3)]).shape
    (2, 4)
    """
    tensors = raised(tensors, atleast_1d, "hstack")
    return cat(tensors, 0 if len(tensors[0].shape) == 1 else 1, out=out)


def vstack(tensors, *, out=None):
    """The tensors, as rows if they have one dim, along dim 0.

    >>> import zoo
    >>> zoo.vstack([zoo.ones(3), zoo.ones(2, 3)]).shape
    (3, 3)
    """
    return cat(raised(tensors, atleast_2d, "vstack"), 0, out=out)


def dstack(tensors, *, out=None):
    """The tensors, with at least 3 dims, along dim 2."""
    return cat(raised(tensors, atleast_3d, "dstack"), 2, out=out)


def column_stack(tensors, *, out=None):
    """The tensors side by side, those of one dim as columns."""
    def column(x):
        return reshape(x, (-1 if x.shape != (0,) else 0, 1)) if len(x.shape) < 2 else x
    return cat(raised(tensors, column, "column_stack"), 1, out=out)


def raised(tensors, function, name) -> list:
    if not len(tensors):
        raise ArgumentError(f"{name}: wants at least one tensor, got none")
    return [function(x) for x in tensors]


def block_diag(*tensors):
    """The matrix with these matrices along its diagonal, zero elsewhere; numbers and vectors count as rows.

    >>> import zoo
    >>> zoo.block_diag(zoo.tensor([[1]]), zoo.tensor([[2, 3]])).tolist()
    [[1, 0, 0], [0, 2, 3]]
    """
    for x in tensors:
        if len(x.shape) > 2:
            raise ShapeError(f"block_diag: wants at most 2 dims, got shape {tuple(x.shape)}")
    dtype = result_type(*tensors)                    # before numbers are matrices: they count less
    blocks = [cast(atleast_2d(x), dtype) if x.dtype != dtype else atleast_2d(x) for x in tensors]
    width, left, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        rows.append(constant_pad_op(x, (left, width - left - x.shape[1]), 0))
        left += x.shape[1]
    return cat_op(0, *rows)


def meshgrid(*tensors, indexing="ij"):
    """Grids of the coordinates given by 1-d tensors: the k-th varies along dim k ("xy": dims 0 and 1 swapped).

    >>> import zoo
    >>> a, b = zoo.meshgrid(zoo.arange(2), zoo.arange(3), indexing="ij")
    >>> b
    tensor([[0, 1, 2],
            [0, 1, 2]])
    """
    tensors = sequence(tensors)
    if not tensors:
        raise ArgumentError("meshgrid: wants at least one tensor, got none")
    if any(len(x.shape) > 1 for x in tensors):
        shapes = ", ".join(str(tuple(x.shape)) for x in tensors)
        raise ShapeError(f"meshgrid: wants tensors of at most 1 dim, got {shapes}")
    if len({x.dtype for x in tensors}) > 1:
        raise ArgumentError(f"meshgrid: wants tensors of one dtype, got {', '.join(str(x.dtype) for x in tensors)}")
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"meshgrid: wants indexing ij or xy, got {indexing!r}")
    lines = [atleast_1d(x) for x in tensors]
    shape, n = tuple(x.shape[0] for x in lines), len(lines)
    swap = indexing == "xy" and n > 1
    grids = []
    for k, x in enumerate(lines):
        grid = expand(reshape(x, (1,) * k + x.shape + (1,) * (n - 1 - k)), shape)
        grids.append(transpose(grid, 0, 1) if swap else grid)
    return tuple(grids)


def cartesian_prod(*tensors):
    """All combinations of one element of each 1-d tensor, one row each.

    >>> import zoo
    >>> zoo.cartesian_prod(zoo.tensor([1, 2]), zoo.tensor([3, 4])).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    tensors = sequence(tensors)
    if any(len(x.shape) != 1 for x in tensors):
        raise ShapeError(f"cartesian_prod: wants 1-d tensors, got {', '.join(str(tuple(x.shape)) for x in tensors)}")
    return tensors[0] if len(tensors) == 1 else stack([ravel(g) for g in meshgrid(*tensors)], 1)


def combinations(input, r=2, with_replacement=False):
    """All ways to choose r elements of a 1-d tensor, in order, one row each.

    >>> import zoo
    >>> zoo.combinations(zoo.tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    if len(input.shape) != 1 or r < 0:
        raise ShapeError(f"combinations: wants 1 dim and r >= 0, got shape {tuple(input.shape)} and r {r}")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    if r == 0:
        return basic_index(input, (slice(0, 0),))
    rows = np.array(list(choose(range(input.shape[0]), r)), np.int64).reshape(-1, r)
    return index_op(input, (0,), constant(rows, like=input))


# -- repeat

def repeat(self, *repeats):
    """self repeated repeats[k] times along dim k; new dims come first.

    >>> import zoo
    >>> zoo.arange(2).repeat(2, 2)
    tensor([[0, 1, 0, 1],
            [0, 1, 0, 1]])
    """
    times = numbers("repeat", repeats)
    extra = len(times) - len(self.shape)
    if extra < 0 or min(times, default=0) < 0:
        raise ShapeError(f"repeat: wants a count >= 0 for each dim of shape {tuple(self.shape)}, got {times}")
    shape = (1,) * extra + tuple(self.shape)
    pairs = [n for pair in zip(times, shape, strict=True) for n in pair]
    x = reshape(self, tuple(n for s in shape for n in (1, s)))
    return reshape(clone(expand(x, tuple(pairs))), tuple(t * s for t, s in zip(times, shape, strict=True)))


def tile(input, *dims_, dims=None):
    """input repeated dims[k] times along dim k, counted from the last; missing counts are 1."""
    times = numbers("tile", dims_ if dims is None else (dims,))
    return repeat(input, (1,) * (len(input.shape) - len(times)) + times)


def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Each element (each slice along `dim`) `repeats` times in a row, or repeats[k] times the k-th.

    >>> import zoo
    >>> zoo.arange(2).repeat_interleave(2)
    tensor([0, 0, 1, 1])
    """
    if repeats is None:
        counts = fetch(getattr(input, "array", input))
        return index_of_repeats(counts, input)
    x, d = (ravel(input), 0) if dim is None else (input, wrap("repeat_interleave", dim, len(input.shape)))
    if not len(x.shape):
        x = reshape(x, (1,))
    n = x.shape[d]
    if hasattr(repeats, "dtype") and hasattr(repeats, "shape"):
        counts = fetch(getattr(repeats, "array", repeats))
        if counts.ndim > 1 or counts.size not in (1, n):
            raise ShapeError(f"repeat_interleave: wants 1 or {n} repeats, got shape {counts.shape}")
    else:
        counts = np.array(repeats)
    return index_op(x, (d,), constant(np.repeat(np.arange(n), np.broadcast_to(checked(counts), (n,))), like=x))


def checked(counts):
    if counts.dtype.kind not in "iu" or counts.size and counts.min() < 0:
        raise ArgumentError(f"repeat_interleave: wants integer repeats >= 0, got {counts.dtype} {counts.tolist()}")
    return counts


def index_of_repeats(counts, like):
    from zoo.ops.shape import filled
    rows = constant(np.repeat(np.arange(counts.size), checked(counts)), like=like)
    return OPS["add"](rows, filled(like, rows.shape, 0))


# -- turns

def flip(input, *dims_, dims=None):
    """A copy with the elements along `dims` in reverse order.

    >>> import zoo
    >>> zoo.arange(3).flip(0)
    tensor([2, 1, 0])
    """
    return flip_op(input, numbers("flip", dims_ if dims is None else ((dims,) if isinstance(dims, int) else dims,)))


def fliplr(input):
    """The columns (dim 1) in reverse order."""
    if len(input.shape) < 2:
        raise ShapeError(f"fliplr: wants at least 2 dims, got shape {tuple(input.shape)}")
    return flip_op(input, (1,))


def flipud(input):
    """The rows (dim 0) in reverse order."""
    if not len(input.shape):
        raise ShapeError("flipud: wants at least 1 dim, got a 0-d tensor")
    return flip_op(input, (0,))


def rot90(input, k=1, dims=(0, 1)):
    """Turned by k * 90 degrees in the plane of two dims, from the first towards the second.

    >>> import zoo
    >>> zoo.arange(4).view(2, 2).rot90().tolist()
    [[1, 3], [0, 2]]
    """
    if len(dims) != 2 or len(input.shape) < 2:
        raise ShapeError(f"rot90: wants two dims and 2-d input or more, got {tuple(dims)}, shape {tuple(input.shape)}")
    a, b = wrap("rot90", dims[0], len(input.shape)), wrap("rot90", dims[1], len(input.shape))
    if a == b:
        raise ArgumentError(f"rot90: wants two different dims, got {tuple(dims)}")
    if k % 4 == 2:
        return flip_op(input, (a, b))
    if k % 4 == 0:
        return flip_op(input, ())
    return transpose(flip_op(input, (b if k % 4 == 1 else a,)), a, b)


def roll(input, shifts, dims=None):
    """Elements moved by `shifts` places along `dims`; what leaves at the end comes in at the start.

    Without dims the flattened input is rolled.

    >>> import zoo
    >>> zoo.arange(4).roll(1)
    tensor([3, 0, 1, 2])
    """
    if dims is None and shifts != () and shifts != []:
        moved = roll(ravel(input), sum((shifts,) if isinstance(shifts, int) else shifts), 0)
        return reshape(moved, tuple(input.shape))
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = (dims,) if isinstance(dims, int) else tuple(dims or ())
    if len(shifts) != len(dims) or not shifts:
        raise ArgumentError(f"roll: wants as many shifts as dims, got {shifts} and {dims}")
    for shift, dim in zip(shifts, dims, strict=True):
        if not len(input.shape):
            raise DimError(f"roll: dim {dim} of a 0-d tensor")
        d = wrap("roll", dim, len(input.shape))
        n = input.shape[d]
        cut = n - shift % n if n else 0
        parts = [basic_index(input, (EVERY,) * d + (s,)) for s in (slice(cut, None), slice(0, cut))]
        input = cat_op(d, *parts)
    return input


def tril(input, diagonal=0, *, out=None):
    """The lower triangle of the last two dims, zero above it; diagonal > 0 keeps that many more diagonals.

    >>> import zoo
    >>> zoo.ones(2, 2).tril().tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return ending(tril_op(input, diagonal), out)


def triu(input, diagonal=0, *, out=None):
    """The upper triangle of the last two dims, zero below it; diagonal > 0 keeps that many less diagonals.

    >>> import zoo
    >>> zoo.ones(2, 2).triu().tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return ending(triu_op(input, diagonal), out)


def trace(input):
    """The sum of a matrix's diagonal.

    >>> import zoo
    >>> zoo.arange(4).view(2, 2).trace()
    tensor(3)
    """
    if len(input.shape) != 2:
        raise ShapeError(f"trace: wants 2 dims, got shape {tuple(input.shape)}")
    return OPS["sum"](diagonal_op(input, 0, 0, 1), None, False, None)


# -- pad

def constant_pad_nd(input, pad, value=0):
    """`pad` with mode "constant"."""
    return constant_pad_op(input, numbers("pad", (pad,)), number_in("pad", value, input.dtype))


def reflected(left, right, n):
    return (n - 1) - abs((n - 1) - abs(np.arange(-left, n + right)))


def replicated(left, right, n):
    return np.clip(np.arange(-left, n + right), 0, n - 1)


def around(left, right, n):
    """What is cropped does not come in again at the other end."""
    kept = np.arange(max(-left, 0), n - max(-right, 0))
    return kept[np.arange(-max(left, 0), len(kept) + max(right, 0)) % max(len(kept), 1)]


BORDERS = {"reflect": reflected, "replicate": replicated, "circular": around}


def pad(input, pad, mode="constant", value=None):
    """input with more elements around it: pad = (left, right) of the last dim, then of the one before it, and so on.

    mode: constant (value, default 0), reflect (without the border), replicate or circular. Negative pads crop.

    Raises: ShapeError if the pads do not fit, ArgumentError for an unknown mode.

    >>> import zoo
    >>> zoo.nn.functional.pad(zoo.arange(3.0), (1, 2))
    tensor([0., 0., 1., 2., 0., 0.])
    """
    pads = numbers("pad", (pad,))
    if mode == "constant":
        return constant_pad_op(input, pads, 0 if value is None else number_in("pad", value, input.dtype))
    if mode not in BORDERS:
        raise ArgumentError(f"pad: wants mode constant, reflect, replicate or circular, got {mode!r}")
    if value:
        raise ArgumentError(f"pad: mode {mode} takes no value, got {value}")
    n = len(input.shape)
    if len(pads) not in (2, 4, 6) or not len(pads) // 2 + 1 <= n <= len(pads) // 2 + 2:
        raise ShapeError(f"pad: mode {mode} takes 2, 4 or 6 pads for input of one or two dims more than padded ones, "
                         f"got {pads} for shape {tuple(input.shape)}")
    for k in range(len(pads) // 2):
        left, right = pads[2 * k:2 * k + 2]
        size = input.shape[n - 1 - k]
        limit = {"reflect": size - 1, "circular": size}.get(mode)
        if limit is not None and max(left, right) > limit or size + left + right < (0 if mode == "circular" else 1):
            raise ShapeError(f"pad: mode {mode} cannot pad dim {n - 1 - k} of shape {tuple(input.shape)} "
                             f"by {left} and {right}")
        input = index_op(input, (n - 1 - k,), constant(BORDERS[mode](left, right, size), like=input))
    return input


# -- images

concat = concatenate = cat
row_stack = vstack
METHODS = ("flip", "fliplr", "flipud", "repeat_interleave", "roll", "rot90", "tile", "trace", "tril", "triu", "repeat")
FUNCTIONS = (*METHODS[:-1], "block_diag", "cartesian_prod", "cat", "column_stack", "combinations", "concat",
             "concatenate", "constant_pad_nd", "dstack", "hstack", "meshgrid", "row_stack", "stack", "vstack")
NN_FUNCTIONS = ("pad",)
INPLACE = ("tril", "triu")
