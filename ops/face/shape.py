"""torch's views: all share memory with their input where its strides allow it."""
from math import prod

import numpy as np

from zoo.ops.dims import wrap
from zoo.ops.errors import ArgumentError, DimError, ShapeError
from zoo.ops.memory_format import RANK, laid_out
from zoo.ops.op import into
from zoo.ops.shape import as_strided as as_strided_op
from zoo.ops.shape import basic_index, sum_to, view_backward, wrap_dims
from zoo.ops.shape import clone as clone_op
from zoo.ops.shape import contiguous as contiguous_op
from zoo.ops.shape import diagonal as diagonal_op
from zoo.ops.shape import expand as expand_op
from zoo.ops.shape import permute as permute_op
from zoo.ops.shape import reshape as reshape_op
from zoo.ops.shape import unfold as unfold_op
from zoo.ops.shape import view as view_op
from zoo.ops.views import write_through

EVERY = slice(None)


def numbers(name: str, sizes: tuple) -> tuple[int, ...]:
    """x.view(2, 3), x.view((2, 3)) -> (2, 3)."""
    if len(sizes) == 1 and hasattr(sizes[0], "__len__") and not hasattr(sizes[0], "dtype"):
        sizes = tuple(sizes[0])
    try:
        return tuple(n.__index__() for n in sizes)
    except (AttributeError, TypeError):
        raise TypeError(f"{name}: wants integers, got {sizes}") from None


def reshape(input, *shape_, shape=None):
    """The elements in another shape; one size may be -1. A view if the strides allow it, else a copy.

    Raises: ShapeError if the number of elements differs.

    >>> import zoo
    >>> zoo.arange(6).reshape(2, -1).shape
    (2, 3)
    """
    return reshape_op(input, numbers("reshape", shape_ if shape is None else (shape,)))


def view(self, *shape, size=None):
    """The elements in another shape, on the same memory. Raises ShapeError if that would need a copy.

    >>> import zoo
    >>> zoo.arange(6).view(2, -1).shape
    (2, 3)
    """
    return view_op(self, numbers("view", shape if size is None else (size,)))


def view_as(self, other):
    """`self.view(other.shape)`."""
    return view_op(self, tuple(other.shape))


def reshape_as(self, other):
    """`self.reshape(other.shape)`."""
    return reshape_op(self, tuple(other.shape))


def expand(self, *sizes, size=None):
    """Dims of size 1 repeated to `sizes` without a copy; -1 keeps a size, new dims come first.

    >>> import zoo
    >>> zoo.ones(3, 1).expand(2, -1, 4).shape
    (2, 3, 4)
    """
    shape = numbers("expand", sizes if size is None else (size,))
    extra = len(shape) - len(self.shape)
    if extra < 0 or -1 in shape[:extra]:
        raise ShapeError(f"expand: wants a shape that {tuple(self.shape)} broadcasts to, got {shape}")
    return expand_op(self, tuple(self.shape[d - extra] if n == -1 else n for d, n in enumerate(shape)))


def expand_as(self, other):
    """`self.expand(other.shape)`."""
    return expand_op(self, tuple(other.shape))


def broadcast_to(input, size):
    """input broadcast to `size`, without a copy."""
    return expand(input, tuple(size))


def sum_to_size(self, *size):
    """The sum over the dims that broadcasting from `size` had added."""
    return sum_to(self, numbers("sum_to_size", size))


def broadcast_shapes(*shapes):
    """The shape that all `shapes` broadcast to. Raises ShapeError.

    >>> import zoo
    >>> zoo.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    shapes = tuple((s,) if isinstance(s, int) else tuple(s) for s in shapes)
    length = max((len(s) for s in shapes), default=0)
    result = []
    for column in zip(*((1,) * (length - len(s)) + s for s in shapes), strict=True):
        if any(n < 0 for n in column):
            raise ArgumentError(f"broadcast_shapes: wants sizes >= 0, got {', '.join(map(str, shapes))}")
        sizes = {n for n in column if n != 1}
        if len(sizes) > 1:
            raise ShapeError(f"broadcast_shapes: shapes do not broadcast: {', '.join(map(str, shapes))}")
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def sequence(tensors: tuple) -> tuple:
    """f(a, b), f([a, b]) -> (a, b)."""
    return tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


def broadcast_tensors(*tensors):
    """All tensors expanded to their common shape.

    >>> import zoo
    >>> [x.shape for x in zoo.broadcast_tensors(zoo.ones(3), zoo.ones(2, 1))]
    [(2, 3), (2, 3)]
    """
    tensors = sequence(tensors)
    shape = broadcast_shapes(*(tuple(x.shape) for x in tensors))
    return tuple(expand_op(x, shape) for x in tensors)


def contiguous(self, memory_format=None):
    """self if its elements lie in row-major order, else a copy in which they do."""
    if memory_format in RANK:
        return laid_out(self, memory_format)
    array = getattr(self, "array", self)
    there = array.flags.c_contiguous if isinstance(array, np.ndarray) else getattr(array, "is_contiguous", False)
    return self if there else contiguous_op(self)


def clone(input, *, memory_format=None):
    """A copy."""
    return clone_op(input)


alias_copy = clone


# -- the order of the dims

def permute(input, *dims_, dims=None):
    """The dims in another order: dim i of the result is dim dims[i] of input.

    >>> import zoo
    >>> zoo.ones(2, 3, 4).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    return permute_op(input, numbers("permute", dims_ if dims is None else (dims,)))


def transpose(input, dim0, dim1):
    """Two dims swapped.

    >>> import zoo
    >>> zoo.ones(2, 3, 4).transpose(0, 2).shape
    (4, 3, 2)
    """
    n = len(input.shape)
    a, b = wrap("transpose", dim0, n), wrap("transpose", dim1, n)
    order = list(range(n))
    if n:
        order[a], order[b] = b, a
    return permute_op(input, tuple(order))


def t(input):
    """The transpose of a matrix; vectors and numbers stay."""
    if len(input.shape) > 2:
        raise ShapeError(f"t: wants at most 2 dims, got shape {tuple(input.shape)}")
    return permute_op(input, tuple(range(len(input.shape)))[::-1])


def reversed_dims(self):
    return permute_op(self, tuple(range(len(self.shape)))[::-1])


def swapped_ends(self):
    if len(self.shape) < 2:
        raise ShapeError(f"mT: wants at least 2 dims, got shape {tuple(self.shape)}")
    return transpose(self, -2, -1)


def matrix_only(self):
    if len(self.shape) not in (0, 2):
        raise ShapeError(f"H: wants 0 or 2 dims, got shape {tuple(self.shape)}")
    return reversed_dims(self)


T = property(reversed_dims, doc="All dims in reverse order.")
mT = property(swapped_ends, doc="The last two dims swapped.")  # noqa: N816
mH = property(swapped_ends, doc="The last two dims swapped (real dtypes).")  # noqa: N816
H = property(matrix_only, doc="The transpose of a matrix (real dtypes).")


def movedim(input, source, destination):
    """Dims `source` moved to the places `destination`; the others keep their order.

    >>> import zoo
    >>> zoo.movedim(zoo.ones(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    n = len(input.shape)
    source, destination = wrap_dims("movedim", source, n), wrap_dims("movedim", destination, n)
    if len(source) != len(destination):
        raise ArgumentError(f"movedim: wants as many sources as destinations, got {source} and {destination}")
    if not n:
        return permute_op(input, ())
    moved = dict(zip(destination, source, strict=True))
    rest = iter(d for d in range(n) if d not in source)
    return permute_op(input, tuple(moved[d] if d in moved else next(rest) for d in range(n)))


# -- dims of size 1, dims merged and split

def squeeze(input, dim=None):
    """Without dims of size 1: all of them, or those among `dim`.

    >>> import zoo
    >>> zoo.ones(1, 3, 1).squeeze(0).shape
    (3, 1)
    """
    n = len(input.shape)
    dims = range(n) if dim is None else wrap_dims("squeeze", dim, n)
    return reshape_op(input, tuple(s for d, s in enumerate(input.shape) if d not in dims or s != 1))


def unsqueeze(input, dim):
    """With a new dim of size 1 at place `dim`.

    >>> import zoo
    >>> zoo.ones(3).unsqueeze(-1).shape
    (3, 1)
    """
    d = wrap("unsqueeze", dim, len(input.shape) + 1)
    return basic_index(input, (EVERY,) * d + (None,))


def flatten(input, start_dim=0, end_dim=-1):
    """Dims start_dim to end_dim as one.

    >>> import zoo
    >>> zoo.ones(2, 3, 4).flatten(1).shape
    (2, 12)
    """
    n = len(input.shape)
    if start_dim == 0 and end_dim == -1:
        return input if n == 1 else ravel(input)
    start, end = wrap("flatten", start_dim, n), wrap("flatten", end_dim, n)
    if start > end:
        raise ArgumentError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}, shape {tuple(input.shape)}")
    shape = tuple(input.shape)
    if n and start == end:
        return input
    return reshape_op(input, (*shape[:start], prod(shape[start:end + 1]), *shape[end + 1:]))


def unflatten(input, dim, sizes):
    """One dim as several, of `sizes`; one of them may be -1.

    >>> import zoo
    >>> zoo.ones(2, 12).unflatten(1, (3, -1)).shape
    (2, 3, 4)
    """
    d = wrap("unflatten", dim, len(input.shape))
    sizes = numbers("unflatten", (sizes,))
    if not sizes:
        raise ArgumentError("unflatten: sizes must be non-empty")
    shape = tuple(input.shape)
    if len(shape) and -1 in sizes and prod(s for s in sizes if s != -1):
        sizes = tuple(shape[d] // prod(s for s in sizes if s != -1) if s == -1 else s for s in sizes)
    if not shape or prod(sizes) != shape[d] or min(sizes) < 0:
        raise ShapeError(f"unflatten: wants sizes whose product is that of dim {dim} of shape {shape}, got {sizes}")
    return reshape_op(input, (*shape[:d], *sizes, *shape[d + 1:]))


def ravel(input):
    """All elements in one dim; a view if input is contiguous, else a copy."""
    return reshape_op(contiguous_op(input), (prod(input.shape),))


def atleast_1d(*tensors):
    """Each tensor with at least 1 dim."""
    return atleast(tensors, lambda x: x if len(x.shape) else reshape_op(x, (1,)))


def atleast_2d(*tensors):
    """Each tensor with at least 2 dims; new ones come first."""
    def lift(x):
        return x if len(x.shape) > 1 else reshape_op(x, (1,) * (2 - len(x.shape)) + tuple(x.shape))
    return atleast(tensors, lift)


def atleast_3d(*tensors):
    """Each tensor with at least 3 dims: (n,) -> (1, n, 1), (m, n) -> (m, n, 1)."""
    def lift(x):
        n = len(x.shape)
        return x if n > 2 else reshape_op(x, (1,) * (n < 2) + tuple(x.shape) + (1,) * (2 if n == 0 else 1))
    return atleast(tensors, lift)


def atleast(tensors, function):
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return tuple(map(function, tensors[0]))
    return function(tensors[0]) if len(tensors) == 1 else tuple(map(function, tensors))


# -- windows

def as_strided(input, size, stride, storage_offset=None):
    """A view of input's memory with any sizes and strides (in elements), which may overlap; input is contiguous.

    >>> import zoo
    >>> zoo.arange(4).as_strided((3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    return as_strided_op(input, tuple(size), tuple(stride), storage_offset or 0)


def diagonal(input, offset=0, dim1=0, dim2=1):
    """The diagonal of two dims as the last dim of a view; offset > 0 lies above the main diagonal.

    >>> import zoo
    >>> zoo.arange(4).view(2, 2).diagonal()
    tensor([0, 3])
    """
    return diagonal_op(input, offset, dim1, dim2)


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """The last dim of input as the diagonal of two new dims; zero elsewhere."""
    shape = tuple(input.shape)
    n = len(shape) + 1
    d1, d2 = wrap("diag_embed", dim1, n), wrap("diag_embed", dim2, n)
    if d1 == d2 or not shape:
        raise ArgumentError("diag_embed: wants two different dims and at least 1-d input, "
                            f"got {dim1}, {dim2} and shape {shape}")
    rest, size = iter(shape[:-1]), shape[-1] + abs(offset)
    full = tuple(size if d in (d1, d2) else next(rest) for d in range(n))
    return view_backward(input, full, (None, diagonal_op, (offset, d1, d2)))


def diag(input, diagonal=0, *, out=None):
    """The diagonal of a matrix, or the matrix with this diagonal.

    >>> import zoo
    >>> zoo.diag(zoo.tensor([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    if len(input.shape) not in (1, 2):
        raise ShapeError(f"diag: wants 1 or 2 dims, got shape {tuple(input.shape)}")
    result = diag_embed(input, diagonal) if len(input.shape) == 1 else clone(diagonal_op(input, diagonal, 0, 1))
    return result if out is None else into(result, out)


def diagflat(input, offset=0):
    """The matrix whose diagonal are all elements of input."""
    return diag_embed(ravel(input), offset)


def unfold(self, dimension, size, step):
    """A view of all windows of `size` elements, `step` apart, along a dim; they become the last dim.

    >>> import zoo
    >>> zoo.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    return unfold_op(self, dimension, size, step)


def at(dim: int, part) -> tuple:
    return (*(EVERY,) * dim, part)


def select(input, dim, index):
    """x[..., index, ...] at `dim`.

    >>> import zoo
    >>> zoo.arange(4).view(2, 2).select(1, 0)
    tensor([0, 2])
    """
    if not len(input.shape):
        raise DimError("select: wants at least 1 dim, got a 0-d tensor")
    return basic_index(input, at(wrap("select", dim, len(input.shape)), index.__index__()))


def narrow(input, dim, start, length):
    """`length` elements from `start` along `dim`.

    >>> import zoo
    >>> zoo.arange(5).narrow(0, 1, 3)
    tensor([1, 2, 3])
    """
    if not len(input.shape):
        raise ShapeError("narrow: wants at least 1 dim, got a 0-d tensor")
    d = wrap("narrow", dim, len(input.shape))
    if hasattr(start, "shape") and (len(start.shape) or start.dtype.kind not in "iu"):
        raise ArgumentError(f"narrow: start wants an integer, got shape {tuple(start.shape)} of {start.dtype}")
    n, start = input.shape[d], int(start)
    if length < 0:
        raise ArgumentError(f"narrow: wants a length >= 0, got {length}")
    if not -n <= start <= n:
        raise DimError(f"narrow: start {start} is out of range for dim {dim} of size {n}")
    start = start + n if start < 0 else start
    if start + length > n:
        raise ShapeError(f"narrow: start {start} + length {length} exceeds size {n} of dim {dim}")
    return basic_index(input, at(d, slice(start, start + length)))


def slice_at(input, dim, start, end, step):
    d = wrap("slice", dim, len(input.shape))
    if not len(input.shape):
        raise DimError("slice: wants at least 1 dim, got a 0-d tensor")
    return at(d, slice(start, end, step))


def select_scatter(input, src, dim, index):
    """input with src in place of input.select(dim, index).

    >>> import zoo
    >>> zoo.select_scatter(zoo.zeros(2, 2), zoo.ones(2), 0, 1).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    return scattered("select_scatter", input, src, basic_index, (at(wrap("select", dim, len(input.shape)), index),))


def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """input with src in place of input[..., start:end:step, ...] at `dim`."""
    return scattered("slice_scatter", input, src, basic_index, (slice_at(input, dim, start, end, step),))


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """input with src in place of its diagonal."""
    return scattered("diagonal_scatter", input, src, diagonal_op, (offset, dim1, dim2))


def scattered(name, input, src, op, args):
    wanted = op.check(input, *args).shape
    if tuple(src.shape) != wanted:
        raise ShapeError(f"{name}: src wants the shape {wanted}, got {tuple(src.shape)}")
    return write_through(input, src, (None, op, args))


def swapaxes(input, axis0, axis1):
    """transpose under NumPy's name.

    >>> import zoo
    >>> zoo.swapaxes(zoo.ones(2, 3), axis0=0, axis1=1).shape
    (3, 2)
    """
    return transpose(input, axis0, axis1)


swapdims = transpose
moveaxis = movedim


def copied(view):
    """torch's view_copy functions: the same, on memory of its own."""
    def function(*args, **options):
        return clone(view(*args, **options))
    function.__name__ = f"{view.__name__}_copy"
    function.__doc__ = f"`{view.__name__}` as a copy."
    return function


as_strided_copy, diagonal_copy, expand_copy, narrow_copy = map(copied, (as_strided, diagonal, expand, narrow))
permute_copy, squeeze_copy, t_copy, transpose_copy = map(copied, (permute, squeeze, t, transpose))
unfold_copy, unsqueeze_copy, view_copy, select_copy = map(copied, (unfold, unsqueeze, view, select))

SAME = ("as_strided", "broadcast_to", "clone", "diag", "diag_embed", "diagflat", "diagonal",
        "diagonal_scatter", "flatten", "moveaxis", "movedim", "narrow", "narrow_copy", "permute", "ravel", "reshape",
        "select", "select_scatter", "slice_scatter", "squeeze", "swapaxes", "swapdims", "t", "transpose", "unflatten",
        "unsqueeze")
FUNCTIONS = (*SAME, "alias_copy", "as_strided_copy", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes",
             "broadcast_tensors", "diagonal_copy", "expand_copy", "permute_copy", "select_copy", "squeeze_copy",
             "t_copy", "transpose_copy", "unfold_copy", "unsqueeze_copy", "view_copy")
METHODS = (*SAME, "H", "T", "contiguous", "expand", "expand_as", "mH", "mT", "reshape_as", "sum_to_size", "unfold",
           "view", "view_as")
NN_FUNCTIONS = ()
INPLACE = ()
