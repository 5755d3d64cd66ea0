"""torch's splits: views of the parts of a tensor along one dim."""
from zoo.ops.dims import wrap
from zoo.ops.dtypes import int64
from zoo.ops.errors import ArgumentError, DimError, ShapeError
from zoo.ops.face.shape import at, numbers
from zoo.ops.shape import basic_index, clone


def split(self, split_size_or_sections=None, dim=0, *, split_size=None):
    """Views of `split_size` elements each (the last may be shorter), or of the given sizes, along `dim`.

    >>> import zoo
    >>> [len(x) for x in zoo.arange(5).split(2)]
    [2, 2, 1]
    """
    size = split_size if split_size_or_sections is None else split_size_or_sections
    if isinstance(size, (list, tuple)):
        return split_with_sizes(self, size, dim)
    n = length_of("split", self, dim)
    if size < 0 or size == 0 and n:
        raise ArgumentError(f"split: wants a split_size > 0, got {size} for size {n} of dim {dim}")
    count = max(1, -(-n // size)) if size else 1
    return pieces(self, dim, [*range(0, count * size, size or 1), n] if size else [0, n])


def split_with_sizes(self, split_sizes, dim=0):
    """Views of the given sizes along `dim`, which add up to its size."""
    n = length_of("split_with_sizes", self, dim)
    sizes = numbers("split_with_sizes", (split_sizes,))
    if sum(sizes) != n or min(sizes, default=0) < 0:
        raise ShapeError(f"split_with_sizes: wants sizes >= 0 that add up to {n}, the size of dim {dim}, got {sizes}")
    return pieces(self, dim, [sum(sizes[:k]) for k in range(len(sizes) + 1)])


def chunk(input, chunks, dim=0):
    """At most `chunks` views of equal size (the last may be shorter) along `dim`.

    >>> import zoo
    >>> [len(x) for x in zoo.arange(7).chunk(3)]
    [3, 3, 1]
    """
    if chunks <= 0:
        raise ArgumentError(f"chunk: wants chunks > 0, got {chunks}")
    n = length_of("chunk", input, dim)
    if not n:
        return pieces(input, dim, [0] * (chunks + 1))
    size = -(-n // chunks)
    return pieces(input, dim, [*range(0, n, size), n])


def tensor_split(input, indices_or_sections=None, dim=0, *, indices=None, sections=None):
    """Views along `dim`: that many of nearly equal size, or cut before each of the given indices.

    >>> import zoo
    >>> [x.tolist() for x in zoo.arange(5).tensor_split((1, 3))]
    [[0], [1, 2], [3, 4]]
    """
    if not len(input.shape):
        raise ShapeError("tensor_split: wants at least 1 dim, got a 0-d tensor")
    given = next((g for g in (indices_or_sections, indices, sections) if g is not None), None)
    n = length_of("tensor_split", input, dim)
    if hasattr(given, "dtype"):
        if given.dtype != int64 or len(given.shape) > 1:
            raise ArgumentError("tensor_split: wants int64 of at most 1 dim, "
                                f"got {given.dtype} of shape {tuple(given.shape)}")
        given = given.tolist()
    if isinstance(given, int):
        if given <= 0:
            raise ArgumentError(f"tensor_split: wants sections > 0, got {given}")
        return pieces(input, dim, [k * (n // given) + min(k, n % given) for k in range(given + 1)])
    d = wrap("tensor_split", dim, len(input.shape))
    cuts = [0, *numbers("tensor_split", (given,)), None]
    return tuple(basic_index(input, at(d, slice(a, b))) for a, b in zip(cuts, cuts[1:], strict=False))


def length_of(name, input, dim) -> int:
    if not len(input.shape):
        raise ShapeError(f"{name}: wants at least 1 dim, got a 0-d tensor")
    return input.shape[wrap(name, dim, len(input.shape))]


def pieces(input, dim, cuts) -> tuple:
    d = dim % len(input.shape)
    return tuple(basic_index(input, at(d, slice(a, b))) for a, b in zip(cuts, cuts[1:], strict=False))


def unbind(input, dim=0):
    """The slices along `dim`, without it.

    >>> import zoo
    >>> [x.tolist() for x in zoo.arange(4).view(2, 2).unbind(1)]
    [[0, 2], [1, 3]]
    """
    if not len(input.shape):
        raise DimError("unbind: wants at least 1 dim, got a 0-d tensor")
    d = wrap("unbind", dim, len(input.shape))
    return tuple(basic_index(input, at(d, k)) for k in range(input.shape[d]))


def splitter(name: str, least: int, dim_of):
    def function(input, indices_or_sections=None, *, indices=None, sections=None):
        given = next((g for g in (indices_or_sections, indices, sections) if g is not None), None)
        if len(input.shape) < least:
            raise ShapeError(f"{name}: wants at least {least} dims, got shape {tuple(input.shape)}")
        dim = dim_of(len(input.shape))
        if isinstance(given, int) and (given <= 0 or input.shape[dim] % given):
            raise ShapeError(f"{name}: wants sections that divide size {input.shape[dim]} of dim {dim}, got {given}")
        return tensor_split(input, given, dim)
    function.__name__ = name
    function.__doc__ = f"tensor_split along dim {'0 or 1' if least == 1 else dim_of(least)}; sections divide its size."
    return function


hsplit = splitter("hsplit", 1, lambda n: 1 if n > 1 else 0)
vsplit = splitter("vsplit", 2, lambda n: 0)
dsplit = splitter("dsplit", 3, lambda n: 2)

unsafe_split, unsafe_chunk, unsafe_split_with_sizes = split, chunk, split_with_sizes


def unbind_copy(input, dim=0):
    """`unbind` as copies."""
    return tuple(map(clone, unbind(input, dim)))


def split_with_sizes_copy(self, split_sizes, dim=0):
    """`split_with_sizes` as copies."""
    return tuple(map(clone, split_with_sizes(self, split_sizes, dim)))


METHODS = ("chunk", "dsplit", "hsplit", "split", "split_with_sizes", "tensor_split", "unbind", "unsafe_chunk",
           "unsafe_split", "unsafe_split_with_sizes", "vsplit")
FUNCTIONS = (*METHODS, "split_with_sizes_copy", "unbind_copy")
NN_FUNCTIONS = ()
INPLACE = ()
