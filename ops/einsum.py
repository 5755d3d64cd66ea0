"""einsum: every equation becomes views, sums, broadcast products and one batched matrix product for each pair."""
import math

from zoo.ops.dims import wrap
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.matmul import matmul
from zoo.ops.shape import diagonal, permute, reshape, sum_to


def parse(equation: str) -> tuple[list[list], list | None]:
    """Labels of every operand and of the output (None: implicit); an ellipsis is one label, Ellipsis."""
    text = equation.replace(" ", "").replace("...", ".")
    left, arrow, right = text.partition("->")

    def labels(part):
        if any(not c.isascii() or not c.isalpha() and c != "." for c in part) or part.count(".") > 1:
            raise ArgumentError(f"einsum: wants letters and at most one ... in each operand, got {equation!r}")
        return [Ellipsis if c == "." else c for c in part]
    return [labels(p) for p in left.split(",")], labels(right) if arrow else None


def arguments(args: tuple) -> tuple[list[list], list | None, list]:
    """Both calling conventions: an equation and operands, or operands each with its labels, and those of the output."""
    if not args:
        raise ArgumentError("einsum: wants an equation and operands, got nothing")
    if isinstance(args[0], str):
        operands = args[1][:] if len(args) == 2 and isinstance(args[1], (tuple, list)) else args[1:]
        labels, output = parse(args[0])
    else:
        operands, labels = args[0:len(args) // 2 * 2:2], [list(s) for s in args[1::2]]
        output = list(args[-1]) if len(args) % 2 else None
    if len(labels) != len(operands) or not operands:
        raise ArgumentError(f"einsum: wants one operand for each of {len(labels)} subscripts, got {len(operands)}")
    return labels, output, list(operands)


def spread_ellipsis(labels: list, ndim: int) -> list:
    """Ellipsis replaced by one label for each dimension it stands for, numbered from the right."""
    hidden = ndim - len(labels) + (Ellipsis in labels)
    if hidden < 0 or hidden and Ellipsis not in labels:
        raise ShapeError(f"einsum: wants {len(labels)} dimensions for subscripts {labels}, got {ndim}")
    return [m for s in labels for m in ([(Ellipsis, k - hidden) for k in range(hidden)] if s is Ellipsis else [s])]


def output_of(labels: list[list], output: list | None) -> list:
    """The output's labels: as given, or what appears once, in order, behind the dimensions of the ellipsis."""
    seen = [s for part in labels for s in part]
    hidden = sorted({s for s in seen if isinstance(s, tuple)}, key=lambda s: s[1])
    if output is None:
        return hidden + sorted({s for s in seen if not isinstance(s, tuple) and seen.count(s) == 1})
    result = [m for s in output for m in (hidden if s is Ellipsis else [s])]
    for s in result:
        if s not in seen or result.count(s) > 1:
            raise ArgumentError(f"einsum: wants each output subscript once, and in an operand, got {s!r} in {output}")
    return result


def without(x, labels: list, dropped) -> tuple:
    """Sums over the dropped labels."""
    dropped = set(dropped)
    if not dropped:
        return x, labels
    x = sum_to(x, tuple(1 if s in dropped else n for s, n in zip(labels, x.shape, strict=True)))
    kept = [s for s in labels if s not in dropped]
    return reshape(x, tuple(n for s, n in zip(labels, x.shape, strict=True) if s not in dropped)), kept


def ordered(x, labels: list, wanted: list):
    """x with its dimensions in the wanted order."""
    order = tuple(labels.index(s) for s in wanted)
    return x if order == tuple(range(len(order))) else permute(x, order)


def prepared(x, labels: list, sizes: dict) -> tuple:
    """Repeated labels become diagonals; dimensions of size 1 that broadcast against others disappear."""
    for s in dict.fromkeys(labels):
        while labels.count(s) > 1:
            first = labels.index(s)
            second = labels.index(s, first + 1)
            if x.shape[first] != x.shape[second]:
                pair = x.shape[first], x.shape[second]
                raise ShapeError(f"einsum: subscript {s!r} is repeated for sizes {pair[0]} and {pair[1]}")
            x = diagonal(x, 0, first, second)
            labels = [t for i, t in enumerate(labels) if i not in (first, second)] + [s]
    for s, n in zip(labels, x.shape, strict=True):
        if n != 1 and sizes.setdefault(s, n) != n:
            raise ShapeError(f"einsum: subscript {s!r} has sizes {sizes[s]} and {n}, which do not broadcast")
    return x, labels


def squeezed(x, labels: list, sizes: dict) -> tuple:
    kept = [(s, n) for s, n in zip(labels, x.shape, strict=True) if n == sizes.get(s, 1)]
    if len(kept) == len(labels):
        return x, labels
    return reshape(x, tuple(n for _, n in kept)), [s for s, _ in kept]


def contract(a, la: list, b, lb: list, keep: set) -> tuple:
    """One operand of two: labels of both that are not kept are summed over by a matrix product."""
    a, la = without(a, la, [s for s in la if s not in lb and s not in keep])
    b, lb = without(b, lb, [s for s in lb if s not in la and s not in keep])
    batch, summed = [s for s in la if s in lb and s in keep], [s for s in la if s in lb and s not in keep]
    fa, fb = [s for s in la if s not in lb], [s for s in lb if s not in la]
    a, b = ordered(a, la, batch + fa + summed), ordered(b, lb, batch + summed + fb)
    lead, ma, nb = a.shape[:len(batch)], a.shape[len(batch):len(batch) + len(fa)], b.shape[len(batch) + len(summed):]
    result = batch + fa + fb
    if not summed:
        return reshape(a, (*lead, *ma, *(1,) * len(fb))) * reshape(b, (*lead, *(1,) * len(fa), *nb)), result
    outer, k = (math.prod(lead),) if batch else (), math.prod(a.shape[len(batch) + len(fa):])
    product = matmul(reshape(a, (*outer, math.prod(ma), k)), reshape(b, (*outer, k, math.prod(nb))))
    return reshape(product, (*lead, *ma, *nb)), result


def einsum(*args):
    """Sums of products by Einstein's notation: einsum("bij,bjk->bik", a, b), or einsum(a, [0, 1], b, [1, 2], [0, 2]).

    Each letter is a dimension; letters missing behind -> are summed over; without -> the letters that appear once stay,
    in alphabetical order. A repeated letter in one operand is its diagonal; ... are dimensions that broadcast.

    Raises:
        ArgumentError (ValueError, RuntimeError): an equation that makes no sense.
        ShapeError (ValueError, RuntimeError): operands that do not fit it.

    Example:
        >>> import zoo
        >>> zoo.einsum("ij,kj->ik", zoo.ones(2, 3), zoo.ones(4, 3)).shape
        (2, 4)
    """
    labels, output, operands = arguments(args)
    labels = [spread_ellipsis(part, x.ndim) for part, x in zip(labels, operands, strict=True)]
    output = output_of(labels, output)
    sizes: dict = {}
    parts = [prepared(x, part, sizes) for x, part in zip(operands, labels, strict=True)]
    x, left = squeezed(*parts[0], sizes)
    for k, part in enumerate(parts[1:], 1):
        keep = {*output, *(s for _, later in parts[k + 1:] for s in later)}
        x, left = contract(x, left, *squeezed(*part, sizes), keep)
    x, left = without(x, left, [s for s in left if s not in output])
    return ordered(x, left, output)


def tensordot(a, b, dims=2):
    """Sums over the last `dims` dimensions of a and the first of b, or over two lists of dimensions.

    Raises:
        ShapeError (ValueError, RuntimeError): the sizes differ.

    Example:
        >>> import zoo
        >>> zoo.tensordot(zoo.ones(2, 3, 4), zoo.ones(3, 4, 5)).shape
        (2, 5)
    """
    if hasattr(dims, "tolist"):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0 or dims > min(a.ndim, b.ndim):
            raise ArgumentError(f"tensordot: wants dims from 0 to {min(a.ndim, b.ndim)}, got {dims}")
        da, db = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        da, db = ([wrap("tensordot", d, x.ndim) for d in ds] for ds, x in zip(dims, (a, b), strict=True))
    pairs = [(a.shape[i], b.shape[j]) for i, j in zip(da, db, strict=False)]
    if len(da) != len(db) or any(p != q and 1 not in (p, q) for p, q in pairs):
        raise ShapeError(f"tensordot: wants equal sizes of dims {da} of {tuple(a.shape)} and {db} of {tuple(b.shape)}")
    for i, j in zip(da, db, strict=True):                     # a size 1 stands for the whole dimension of the other
        if a.shape[i] != b.shape[j]:
            a = sum_to(a, (*a.shape[:i], 1, *a.shape[i + 1:]))
            b = sum_to(b, (*b.shape[:j], 1, *b.shape[j + 1:]))
    fa, fb = [i for i in range(a.ndim) if i not in da], [j for j in range(b.ndim) if j not in db]
    k = math.prod(a.shape[i] for i in da)
    ma, nb = tuple(a.shape[i] for i in fa), tuple(b.shape[j] for j in fb)
    left = reshape(permute(a, (*fa, *da)), (math.prod(ma), k))
    right = reshape(permute(b, (*db, *fb)), (k, math.prod(nb)))
    return reshape(matmul(left, right), (*ma, *nb))
