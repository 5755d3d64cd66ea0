"""torch's indexing functions: gather and scatter, index_*, masked_*, nonzero, take, put, embedding."""
from math import prod

from zoo.ops.dims import wrap
from zoo.ops.dtypes import COMPLEX, INTS, bool_, int64
from zoo.ops.errors import ArgumentError, DimError, DtypeError, ShapeError
from zoo.ops.face.getitem import getitem as getitem
from zoo.ops.face.getitem import put_at
from zoo.ops.face.getitem import setitem_functional as setitem_functional
from zoo.ops.face.pointwise import scaled
from zoo.ops.face.shape import broadcast_shapes, ravel
from zoo.ops.index import embedding as embedding_op
from zoo.ops.index import flat_nonzero, need_index
from zoo.ops.index import gather as gather_op
from zoo.ops.index import index as index_op
from zoo.ops.index import index_put as index_put_op
from zoo.ops.index import nonzero as nonzero_op
from zoo.ops.index import scatter as scatter_op
from zoo.ops.index import scatter_add as scatter_add_op
from zoo.ops.index import scatter_reduce as scatter_reduce_op
from zoo.ops.op import OPS, into
from zoo.ops.shape import basic_index, cast, constant_pad_nd, expand, filled, reshape

FUNCTIONS = ("argwhere", "gather", "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "index_select",
             "masked_fill", "masked_scatter", "masked_select", "nonzero", "nonzero_static", "put", "scatter",
             "scatter_add",
             "scatter_reduce", "take", "take_along_dim", "unravel_index", "where")
METHODS = tuple(name for name in FUNCTIONS if name != "unravel_index")
NN_FUNCTIONS = ("embedding", "one_hot")
INPLACE = ("index_add", "index_copy", "index_fill", "index_put", "index_reduce", "masked_fill", "masked_scatter", "put",
           "scatter", "scatter_add", "scatter_reduce")


def ending(result, out):
    if out is not None and out.dtype != result.dtype:
        raise DtypeError(f"out=: wants {result.dtype} as the result has, got {out.dtype}")
    return result if out is None else into(result, out)


# -- along one dim

def gather(input, dim, index, *, sparse_grad=False, out=None):
    """y[i][j] = input[i][index[i][j]] for dim 1: one element along `dim` for each element of index.

    index: integers, of input's number of dims; its sizes are at most input's except in `dim`.

    >>> import zoo
    >>> zoo.gather(zoo.tensor([[1, 2], [3, 4]]), 1, zoo.tensor([[1], [0]])).tolist()
    [[2], [3]]
    """
    return ending(gather_op(input, dim, index), out)


def source(name, input, index, src):
    """The part of src that index reaches, or a number as an array of index's shape."""
    if not hasattr(src, "shape"):
        return expand(filled(input, (), src), tuple(index.shape))
    if src.dtype != input.dtype:
        raise DtypeError(f"{name}: wants src of the dtype of x, got {src.dtype} and {input.dtype}")
    if not prod(index.shape) or tuple(src.shape) == tuple(index.shape):
        return src if prod(index.shape) else filled(input, tuple(index.shape), 0)
    full, ours = tuple(src.shape) or (1,), tuple(index.shape) or (1,)
    if len(full) != len(ours) or any(i > n for i, n in zip(ours, full, strict=True)):
        raise ShapeError(f"{name}: index wants at most src's sizes, got {tuple(index.shape)} and {tuple(src.shape)}")
    src = src if len(src.shape) else reshape(src, (1,))
    return reshape(basic_index(src, tuple(slice(0, n) for n in ours)), tuple(index.shape))


def scatter(input, dim, index, src=None, value=None, *, reduce=None, out=None):
    """input with src, an array or number, written to input[i][index[i][j]] (dim 1); reduce = add or multiply combines.

    index: integers, at most of the sizes of src, and of input except in `dim`.

    >>> import zoo
    >>> zoo.zeros(1, 3).scatter(1, zoo.tensor([[2, 0]]), zoo.tensor([[5.0, 6.0]])).tolist()
    [[6.0, 0.0, 5.0]]
    """
    src = value if src is None else src
    need_index("scatter", index)
    if reduce is not None:
        if reduce not in ("add", "multiply"):
            raise ArgumentError(f"scatter: wants reduce add or multiply, got {reduce!r}")
        src = source("scatter", input, index, src)
        kind = "sum" if reduce == "add" else "prod"
        return ending(scatter_reduce_op(input, dim, index, src, kind, True), out)
    src = source("scatter", input, index, src) if hasattr(src, "shape") else src
    return ending(scatter_op(input, dim, index, src), out)


def scatter_add(input, dim, index, src, *, out=None):
    """input with src added at input[i][index[i][j]] (dim 1); deterministic.

    >>> import zoo
    >>> zoo.zeros(2).scatter_add(0, zoo.tensor([1, 1]), zoo.tensor([3.0, 4.0]))
    tensor([0., 7.])
    """
    need_index("scatter_add", index)
    return ending(scatter_add_op(input, dim, index, source("scatter_add", input, index, src)), out)


def scatter_reduce(input, dim, index, src, reduce, *, include_self=True, out=None):
    """input combined with src at input[i][index[i][j]] (dim 1): reduce = sum, prod, mean, amax or amin.

    >>> import zoo
    >>> zoo.zeros(2).scatter_reduce(0, zoo.tensor([1, 1]), zoo.tensor([3.0, 4.0]), "amax")
    tensor([0., 4.])
    """
    need_index("scatter_reduce", index)
    src = source("scatter_reduce", input, index, src)
    return ending(scatter_reduce_op(input, dim, index, src, reduce, include_self), out)


def take_along_dim(input, indices, dim=None, *, out=None):
    """gather with all other dims broadcast; without dim, of the flattened input.

    >>> import zoo
    >>> zoo.take_along_dim(zoo.tensor([[3, 1]]), zoo.tensor([[1, 0]]), 1).tolist()
    [[1, 3]]
    """
    if indices.dtype not in INTS:
        raise DtypeError(f"take_along_dim: wants integer indices, got {indices.dtype}")
    if dim is None:
        return ending(gather_op(ravel(input), 0, from_front(ravel(indices), prod(input.shape))), out)
    if len(input.shape) != len(indices.shape):
        raise ShapeError(f"take_along_dim: wants as many dims, got {tuple(input.shape)} and {tuple(indices.shape)}")
    d = wrap("take_along_dim", dim, len(input.shape))
    mine, theirs = tuple(input.shape), tuple(indices.shape)
    others = broadcast_shapes((*mine[:d], 1, *mine[d + 1:]), (*theirs[:d], 1, *theirs[d + 1:]))
    input = expand(input, (*others[:d], *mine[d:d + 1], *others[d + 1:]))
    indices = expand(from_front(indices, mine[d] if mine else 1), (*others[:d], *theirs[d:d + 1], *others[d + 1:]))
    return ending(gather_op(input, dim, indices), out)


def from_front(indices, n):
    return OPS["where"](OPS["lt"](indices, 0), OPS["add"](indices, n), indices)


# -- whole slices by a 1-d index

def slices(name, input, dim, index, src=None) -> tuple:
    """(input with at least 1 dim, dim from the front, index of 1 dim, src of the slices' shape)"""
    need_index(name, index)
    if len(index.shape) > 1:
        raise DimError(f"{name}: index wants at most 1 dim, got shape {tuple(index.shape)}")
    d = wrap(name, dim, len(input.shape))
    x = input if len(input.shape) else reshape(input, (1,))
    index = index if len(index.shape) else reshape(index, (1,))
    if src is None or not hasattr(src, "shape"):
        return x, d, index, src
    if src.dtype != input.dtype:
        raise DtypeError(f"{name}: wants source of the dtype of input, got {src.dtype} and {input.dtype}")
    src = src if len(src.shape) else reshape(src, (1,))
    wanted = (*x.shape[:d], index.shape[0], *x.shape[d + 1:])
    if tuple(src.shape) != wanted:
        raise ShapeError(f"{name}: source wants the shape {wanted}, got {tuple(src.shape)}")
    return x, d, index, src


def index_select(input, dim, index, *, out=None):
    """The slices of input along `dim` that the 1-d integer index names.

    >>> import zoo
    >>> zoo.index_select(zoo.tensor([[1, 2], [3, 4]]), 1, zoo.tensor([1, 1])).tolist()
    [[2, 2], [4, 4]]
    """
    x, d, rows, _ = slices("index_select", input, dim, index)
    y = index_op(x, (d,), rows)
    return ending(y if len(input.shape) else reshape(y, ()), out)


def index_add(input, dim, index, source, *, alpha=1, out=None):
    """input with alpha * source added to the slices along `dim` that index names; deterministic.

    >>> import zoo
    >>> zoo.zeros(2).index_add(0, zoo.tensor([1, 1]), zoo.tensor([3.0, 4.0]))
    tensor([0., 7.])
    """
    x, d, rows, src = slices("index_add", input, dim, index, source)
    src = scaled("index_add", src, alpha, input)
    return ending(reshape(index_put_op(x, src, (d,), True, rows), tuple(input.shape)), out)


def index_copy(input, dim, index, source, *, out=None):
    """input with source in place of the slices along `dim` that index names."""
    x, d, rows, src = slices("index_copy", input, dim, index, source)
    return ending(reshape(index_put_op(x, src, (d,), False, rows), tuple(input.shape)), out)


def index_fill(input, dim, index, value):
    """input with value, a number or 0-d tensor, in the slices along `dim` that index names."""
    if len(getattr(value, "shape", ())):
        raise ShapeError(f"index_fill: wants a number or a 0-d tensor, got shape {tuple(value.shape)}")
    x, d, rows, _ = slices("index_fill", input, dim, index)
    named = index_put_op(OPS["ne"](filled(rows, (x.shape[d],), 0), 0), True, (0,), False, rows)
    return reshape(masked_fill(x, reshape(named, (-1,) + (1,) * (len(x.shape) - 1 - d)), value), tuple(input.shape))


def index_reduce(input, dim, index, source, reduce, *, include_self=True, out=None):
    """input combined with source in the slices along `dim` that index names: reduce = prod, mean, amax or amin."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise ArgumentError(f"index_reduce: wants reduce prod, mean, amax or amin, got {reduce!r}")
    x, d, rows, src = slices("index_reduce", input, dim, index, source)
    lines = expand(reshape(rows, tuple(rows.shape) + (1,) * (len(src.shape) - 1 - d)), tuple(src.shape))
    return ending(reshape(scatter_reduce_op(x, d, lines, src, reduce, include_self), tuple(input.shape)), out)


def index_put(input, indices, values, accumulate=False):
    """input with values, broadcast, written to (or added at) input[indices]: a tuple of integer and bool tensors.

    >>> import zoo
    >>> zoo.zeros(3).index_put((zoo.tensor([2]),), zoo.tensor(1.0))
    tensor([0., 0., 1.])
    """
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"index_put: wants a tuple of tensors, got {type(indices).__name__}")
    if not indices:
        raise DimError("index_put: wants at least one index, got none")
    return put_at(input, tuple(slice(None) if i is None else i for i in indices), values, accumulate)


# -- of the flattened input

def take(input, index, *, out=None):
    """The elements of the flattened input at index, in the shape of index.

    >>> import zoo
    >>> zoo.tensor([[1, 2], [3, 4]]).take(zoo.tensor([3, 0]))
    tensor([4, 1])
    """
    need_index("take", index)
    if prod(index.shape) and not prod(input.shape):
        raise DimError(f"take: cannot take from an empty tensor of shape {tuple(input.shape)}")
    flat = ravel(input)
    if not prod(index.shape):
        return ending(reshape(basic_index(flat, (slice(0, 0),)), tuple(index.shape)), out)
    return ending(index_op(flat, (0,), index), out)


def put(input, index, source, accumulate=False):
    """input with the elements of source written to (or added at) the flattened input's places index."""
    need_index("put", index)
    if source.dtype != input.dtype:
        raise DtypeError(f"put: wants source of the dtype of input, got {source.dtype} and {input.dtype}")
    if prod(source.shape) != prod(index.shape):
        raise DimError("put: wants as many elements in index and source, "
                         f"got shapes {tuple(index.shape)} and {tuple(source.shape)}")
    return reshape(index_put_op(ravel(input), ravel(source), (0,), accumulate, ravel(index)), tuple(input.shape))


# -- masks

def need_mask(name, mask) -> None:
    if mask.dtype != bool_:
        raise DtypeError(f"{name}: wants a mask of bools, got {mask.dtype}")


def masked_fill(input, mask, value):
    """input with value, a number or 0-d tensor, where mask is true.

    >>> import zoo
    >>> zoo.tensor([1.0, 2.0]).masked_fill(zoo.tensor([True, False]), 0)
    tensor([0., 2.])
    """
    need_mask("masked_fill", mask)
    if len(getattr(value, "shape", ())):
        raise ShapeError(f"masked_fill: wants a number or a 0-d tensor, got shape {tuple(value.shape)}")
    if input.dtype not in COMPLEX and (isinstance(value, complex) or getattr(value, "dtype", None) in COMPLEX):
        raise ArgumentError(f"masked_fill: value {value} cannot be converted to {input.dtype}")
    y = OPS["where"](mask, value, input)
    return y if y.dtype == input.dtype else cast(y, input.dtype)


def masked_select(input, mask, *, out=None):
    """The elements of input where mask is true, as 1-d; the two are broadcast.

    >>> import zoo
    >>> zoo.masked_select(zoo.tensor([1, 2, 3]), zoo.tensor([True, False, True]))
    tensor([1, 3])
    """
    need_mask("masked_select", mask)
    shape = broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    places = flat_nonzero(expand(getattr(mask, "array", mask), shape))
    return ending(index_op(ravel(expand(input, shape)), (0,), places), out)


def masked_scatter(input, mask, source):
    """input with the elements of source, one after the other, where mask is true.

    >>> import zoo
    >>> zoo.zeros(3).masked_scatter(zoo.tensor([True, False, True]), zoo.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    need_mask("masked_scatter", mask)
    if source.dtype != input.dtype:
        raise DtypeError(f"masked_scatter: wants source of the dtype of input, got {source.dtype} and {input.dtype}")
    shape = broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    places = flat_nonzero(expand(getattr(mask, "array", mask), shape))
    count = places.shape[0]
    if count > prod(source.shape):
        raise ShapeError(f"masked_scatter: mask has {count} true elements, source only {prod(source.shape)}")
    values = basic_index(ravel(source), (slice(0, count),))
    return reshape(index_put_op(ravel(expand(input, shape)), values, (0,), False, places), shape)


def nonzero(input, *, as_tuple=False, out=None):
    """The indices of all elements that are not zero: (count, dims), or with as_tuple one tensor for each dim.

    >>> import zoo
    >>> zoo.nonzero(zoo.tensor([[0, 1], [2, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    if not as_tuple:
        return ending(nonzero_op(input), out)
    x = input if len(input.shape) else reshape(input, (1,))
    found = nonzero_op(x)
    return tuple(basic_index(found, (slice(None), d)) for d in range(len(x.shape)))


def argwhere(input):
    """`nonzero(input)`."""
    return nonzero_op(input)


def nonzero_static(input, *, size, fill_value=-1, out=None):
    """`nonzero` cut or filled up with fill_value to `size` rows."""
    if size < 0:
        raise ArgumentError(f"nonzero_static: wants size >= 0, got {size}")
    found = nonzero_op(input)
    return ending(constant_pad_nd(found, (0, 0, 0, size - found.shape[0]), fill_value), out)


def where(condition, input=None, other=None, *, out=None):
    """input where condition is true, else other; with condition alone, `nonzero(condition, as_tuple=True)`.

    >>> import zoo
    >>> zoo.where(zoo.tensor([True, False]), zoo.tensor([1, 2]), zoo.tensor([3, 4]))
    tensor([1, 4])
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    need_mask("where", condition)
    return ending(OPS["where"](condition, input, other), out)


def where_method(self, condition, other):
    """self where condition is true, else other."""
    return where(condition, self, other)


def unravel_index(indices, shape):
    """The index in each dim of an array of `shape`, for places in the flattened array."""
    if indices.dtype not in INTS:
        raise TypeError(f"unravel_index: wants integer indices, got {indices.dtype}")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(not isinstance(n, int) or n < 0 for n in shape):
        raise ArgumentError(f"unravel_index: wants sizes >= 0, got {shape}")
    found, step = [], 1
    for n in reversed(shape):
        found.append(OPS["remainder"](OPS["floor_divide"](indices, step), n))
        step *= n
    return tuple(reversed(found))


# -- tables

def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The rows of weight (rows, size) that the integers `input` name: y[..., :] = weight[input[...]].

    padding_idx: this row gets no gradient. max_norm: first scales the rows used, in place, down to that norm_type-norm.
    scale_grad_by_freq: divides a row's gradient by how often it occurs. sparse is accepted; gradients are dense.

    Raises: DimError for an index out of range, DtypeError for one that is not an integer.

    >>> import zoo
    >>> zoo.nn.functional.embedding(zoo.tensor([1, 0]), zoo.tensor([[1.0], [2.0]])).tolist()
    [[2.0], [1.0]]
    """
    if input.dtype not in INTS:
        raise DtypeError(f"embedding: wants integer indices, got {input.dtype}")
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise ArgumentError(f"embedding: padding_idx {padding_idx} is out of range for {weight.shape[0]} rows")
    if max_norm is not None:
        table = weight.detach() if hasattr(weight, "detach") else weight
        into(shortened(input, table, max_norm, norm_type), table)
    return embedding_op(input, weight, padding_idx, scale_grad_by_freq)


def shortened(input, weight, max_norm, norm_type):
    """weight with the rows used scaled down to a norm of at most max_norm."""
    rows = index_op(weight, (0,), input)
    powers = OPS["pow"](OPS["abs"](rows), norm_type)
    norm = OPS["pow"](OPS["sum"](powers, -1, True, None), 1.0 / norm_type)
    scale = OPS["where"](OPS["gt"](norm, max_norm), OPS["div"](max_norm, OPS["add"](norm, 1e-7)), 1.0)
    return index_put_op(weight, OPS["mul"](rows, scale), (0,), False, input)


def one_hot(tensor, num_classes=-1):
    """int64 of shape (*tensor.shape, num_classes): 1 at each class number, else 0; -1 means largest class + 1.

    >>> import zoo
    >>> zoo.nn.functional.one_hot(zoo.tensor([2, 0])).tolist()
    [[0, 0, 1], [1, 0, 0]]
    """
    if tensor.dtype != int64:
        raise DtypeError(f"one_hot: wants int64 class numbers, got {tensor.dtype}")
    if not prod(tensor.shape):
        if num_classes <= 0:
            raise ArgumentError("one_hot: cannot infer the number of classes of an empty tensor")
        return filled(tensor, (*tensor.shape, num_classes), 0)
    top, low = (int(OPS[name](tensor, None, False)) for name in ("amax", "amin"))
    if low < 0 or num_classes != -1 and top >= num_classes or num_classes < -1 or num_classes == 0:
        raise ArgumentError(f"one_hot: wants classes from 0 to num_classes - 1, got {low} to {top} for {num_classes}")
    count = top + 1 if num_classes == -1 else num_classes
    zeros = filled(tensor, (*tensor.shape, count), 0)
    return scatter_op(zeros, -1, reshape(tensor, (*tensor.shape, 1)), 1)
