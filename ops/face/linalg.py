"""torch.linalg: equations, determinants, Cholesky factors, norms and powers of matrices."""
from collections import namedtuple
from math import inf

import numpy as np

from zoo.ops import linalg as ops
from zoo.ops.device import constant
from zoo.ops.dims import wrap
from zoo.ops.dtypes import INEXACT
from zoo.ops.errors import ArgumentError, DtypeError, LinAlgError, ShapeError
from zoo.ops.face.reduce import vector_norm
from zoo.ops.face.shape import diagonal
from zoo.ops.matmul import matmul
from zoo.ops.op import OPS, into
from zoo.ops.shape import cast, expand, filled, permute, reshape

slogdet_result = namedtuple("slogdet", ("sign", "logabsdet"))
inv_ex_result = namedtuple("inv_ex", ("inverse", "info"))
cholesky_ex_result = namedtuple("cholesky_ex", ("L", "info"))


def given(result, out):
    """The result, or `out` with the result moved into it."""
    return result if out is None else into(result, out)


def identity(a):
    """Unit matrices like a."""
    n = ops.square("linalg.inv", a)
    return constant(np.ascontiguousarray(np.broadcast_to(np.eye(n, dtype=a.dtype), tuple(a.shape))), like=a)


def inv(A, *, out=None):  # noqa: N803
    """The inverse of square matrices (..., n, n).

    Raises:
        LinAlgError (ValueError, RuntimeError): a singular matrix. ShapeError: no square matrix.

    Example:
        >>> import zoo
        >>> zoo.linalg.inv(zoo.tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    one = identity(A)
    try:
        return given(ops.solve(A, one), out)
    except LinAlgError:
        raise LinAlgError(f"linalg.inv: Singular matrix, got shape {tuple(A.shape)}") from None


def no_errors(like, batch):
    """The `info` of functions that raise for what they cannot do: zeros, int32."""
    return cast(filled(like, batch, 0), np.dtype(np.int32))


def inv_ex(A, *, check_errors=False, out=None):  # noqa: N803
    """(inverse, info), info 0: a singular matrix raises here, unlike in torch."""
    return given(inv_ex_result(inv(A), no_errors(A, tuple(A.shape[:-2]))), out)


def solve(A, B, *, left=True, out=None):  # noqa: N803
    """X with A X = B, or with left=False X A = B. A (..., n, n); B (..., n, m), or vectors (..., n) or (n,).

    B is a batch of vectors if it has one dim, or one less than A and A's batch before it, as in torch.

    Raises:
        LinAlgError (ValueError, RuntimeError): a singular matrix. ShapeError: shapes that do not fit.

    Example:
        >>> import zoo
        >>> zoo.linalg.solve(zoo.tensor([[2.0, 0.0], [0.0, 4.0]]), zoo.tensor([2.0, 2.0])).tolist()
        [1.0, 0.5]
    """
    n = ops.square("linalg.solve", A)
    vector = len(B.shape) == 1 or len(B.shape) == len(A.shape) - 1 and tuple(B.shape) == tuple(A.shape[:-1])
    if vector and not left:
        raise ShapeError("linalg.solve: wants matrices B with left=False, got vectors")
    b = reshape(B, (*B.shape, 1)) if vector else B
    if len(b.shape) < 2 or b.shape[-2 if left else -1] != n:
        raise ShapeError(f"linalg.solve: wants B with {n} {'rows' if left else 'columns'}, got shape {tuple(B.shape)}")
    try:
        batch = np.broadcast_shapes(tuple(A.shape[:-2]), tuple(b.shape[:-2]))
    except ValueError:
        raise ShapeError(f"linalg.solve: batches do not broadcast: {tuple(A.shape)} and {tuple(B.shape)}") from None
    a, b = expand(A, (*batch, n, n)), expand(b, (*batch, *b.shape[-2:]))
    x = ops.solve(a, b) if left else ops.turned(ops.solve(ops.turned(a), ops.turned(b)))
    return given(reshape(x, tuple(x.shape[:-1])) if vector else x, out)


def det(A, *, out=None):  # noqa: N803
    """The determinants of square matrices (..., n, n) -> (...).

    Example:
        >>> import zoo
        >>> round(zoo.linalg.det(zoo.tensor([[1.0, 2.0], [3.0, 4.0]])).item(), 4)
        -2.0
    """
    return given(ops.det(A), out)


def slogdet(A, *, out=None):  # noqa: N803
    """(sign, logabsdet) of the determinants of square matrices (..., n, n); (0, -inf) for singular ones.

    Example:
        >>> import zoo
        >>> zoo.linalg.slogdet(zoo.tensor([[0.0, 1.0], [1.0, 0.0]])).sign.item()
        -1.0
    """
    return given(slogdet_result(*ops.slogdet(A)), out)


def logdet(input):
    """The logarithms of the determinants of square matrices; nan where one is negative, -inf where it is 0."""
    sign, size = ops.slogdet(input)
    return OPS["where"](OPS["lt"](sign, 0), float("nan"), size)


def cholesky(A, upper=False, out=None):  # noqa: N803
    """The lower triangular L with L L' = A, of symmetric positive definite (..., n, n); upper gives L'.

    Raises:
        LinAlgError (ValueError, RuntimeError): a matrix that is not positive definite.

    Example:
        >>> import zoo
        >>> zoo.linalg.cholesky(zoo.tensor([[4.0, 2.0], [2.0, 2.0]])).tolist()
        [[2.0, 0.0], [1.0, 1.0]]
    """
    y = ops.cholesky(A)
    return given(ops.turned(y) if upper else y, out)


def cholesky_ex(A, *, upper=False, check_errors=False, out=None):  # noqa: N803
    """(L, info), info 0: a matrix that is not positive definite raises here, unlike in torch."""
    return given(cholesky_ex_result(cholesky(A, upper=upper), no_errors(A, tuple(A.shape[:-2]))), out)


def cholesky_solve(B, L, upper=False, *, out=None):  # noqa: N803
    """X with A X = B, A = L L' (upper: L' L) given by its Cholesky factor."""
    l = ops.turned(L) if upper else L  # noqa: E741
    return solve(ops.turned(l), solve(l, B), out=out)


def cholesky_inverse(L, upper=False, *, out=None):  # noqa: N803
    """The inverse of A = L L' (upper: L' L), given by its Cholesky factor."""
    l = ops.turned(L) if upper else L  # noqa: E741
    return given(inv(matmul(l, ops.turned(l))), out)


def matrix_power(A, n, *, out=None):  # noqa: N803
    """The n-th power of square matrices by repeated squaring; the inverse's for n < 0.

    Raises:
        ShapeError: no square matrix. LinAlgError: n < 0 and a singular matrix.

    Example:
        >>> import zoo
        >>> zoo.linalg.matrix_power(zoo.tensor([[1.0, 1.0], [0.0, 1.0]]), 3).tolist()
        [[1.0, 3.0], [0.0, 1.0]]
    """
    ops.square("linalg.matrix_power", A)
    if n == 0:
        return given(identity_of(A), out)
    square, n, result = A if n > 0 else inv(A), abs(n), None
    while n:
        if n & 1:
            result = square if result is None else matmul(result, square)
        n >>= 1
        square = matmul(square, square) if n else square
    return given(result * 1 if result is A else result, out)


def identity_of(a):
    """Unit matrices like a, with a place in its graph."""
    return a * 0.0 + identity(a)


def linalg_diagonal(A, *, offset=0, dim1=-2, dim2=-1):  # noqa: N803
    """`diagonal` of the last two dims."""
    return diagonal(A, offset, dim1, dim2)


def linalg_vander(x, N=None, *, out=None):  # noqa: N803
    """The powers x^0 ... x^(N - 1) (N: as many as elements) of x (..., n) as columns: (..., n, N).

    Example:
        >>> import zoo
        >>> zoo.linalg.vander(zoo.tensor([1, 2, 3])).tolist()
        [[1, 1, 1], [1, 2, 4], [1, 3, 9]]
    """
    x = x if len(x.shape) else reshape(x, (1,))
    count = x.shape[-1] if N is None else N
    if N is not None and N <= 1:
        raise ArgumentError(f"linalg.vander: wants N > 1, got {N}")
    return given(powers(x, count), out)


def powers(x, count: int):
    """x^0 ... x^(count - 1) of x (..., n) as (..., n, count)."""
    shape = tuple(x.shape)
    rest = expand(reshape(x, (*shape, 1)), (*shape, max(count - 1, 0)))
    return OPS["cumprod"](OPS["cat"](len(shape), filled(x, (*shape, min(count, 1)), 1), rest), len(shape), None)


def vander(x, N=None, increasing=False):  # noqa: N803
    """The powers of x (n,) as columns, falling from x^(N - 1) unless `increasing`: (n, N)."""
    if len(x.shape) != 1:
        raise ShapeError(f"vander: wants 1 dim, got shape {tuple(x.shape)}")
    table = powers(x, x.shape[0] if N is None else N)
    return table if increasing else OPS["flip"](table, (1,))


def svdvals(A, *, out=None):  # noqa: N803
    """The singular values of matrices (..., m, n), descending: (..., min(m, n)).

    Raises:
        DtypeError: integers. ShapeError: fewer than 2 dims.

    Example:
        >>> import zoo
        >>> zoo.linalg.svdvals(zoo.tensor([[0.0, 2.0], [3.0, 0.0]])).tolist()
        [3.0, 2.0]
    """
    return given(ops.svd(A)[1], out)


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):  # noqa: N803
    """A norm of matrices over two dims: "fro" (the root of the sum of squares), "nuc" (the sum of singular values),
    2 and -2 (the largest and smallest of them), 1 and -1 (the largest and smallest sum |.| of a column), inf and -inf
    (of a row).

    Raises:
        ArgumentError: another ord. DtypeError: integers. ShapeError: fewer than two dims.

    Example:
        >>> import zoo
        >>> zoo.linalg.matrix_norm(zoo.tensor([[3.0, 0.0], [0.0, 4.0]])).item()
        5.0
    """
    if dtype is not None:
        A = cast(A, dtype)  # noqa: N806
    if A.dtype not in INEXACT:
        raise DtypeError(f"linalg.matrix_norm: wants a floating dtype, got {A.dtype}")
    if len(A.shape) < 2 or len(dim) != 2:
        raise ShapeError(f"linalg.matrix_norm: wants two dims of at least 2, got {dim} of shape {tuple(A.shape)}")
    row, column = (wrap("linalg.matrix_norm", d, len(A.shape)) for d in dim)
    if row == column:
        raise ArgumentError(f"linalg.matrix_norm: wants two different dims, got {dim}")
    if ord == "fro":
        return given(vector_norm(A, 2, (row, column), keepdim), out)
    if ord not in ("nuc", 1, -1, 2, -2, inf, -inf):
        raise ArgumentError(f"linalg.matrix_norm: wants ord 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}")
    rest = tuple(d for d in range(len(A.shape)) if d not in (row, column))
    x = permute(A, (*rest, row, column))
    if ord == "nuc":
        y = OPS["sum"](ops.svd(x)[1], -1, False, None)
    elif abs(ord) == 2:
        y = furthest(ops.svd(x)[1], ord > 0)
    else:
        y = furthest(OPS["sum"](OPS["abs"](x), -2 if abs(ord) == 1 else -1, False, None), ord > 0)
    return given(reshape(y, tuple(1 if d not in rest else n for d, n in enumerate(A.shape))) if keepdim else y, out)


def furthest(x, largest: bool):
    """The largest (0 of nothing) or smallest element along the last dim."""
    if largest and not x.shape[-1]:
        return OPS["sum"](x, -1, False, None)
    return OPS["amax" if largest else "amin"](x, (-1,), False)


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None, out=None):  # noqa: N803
    """The vector norm over one dim (or of all elements, without ord), the matrix norm over two.

    Raises:
        ArgumentError: an ord that is not built (see matrix_norm). DtypeError: integers.

    Example:
        >>> import zoo
        >>> zoo.linalg.norm(zoo.tensor([3.0, 4.0])).item()
        5.0
    """
    dims = (dim,) if isinstance(dim, int) else dim
    if ord is None or len(A.shape if dims is None else dims) == 1:
        if isinstance(ord, str):
            raise ArgumentError(f"linalg.norm: wants two dims for {ord!r}, got {dim} of shape {tuple(A.shape)}")
        if ord is None and dims is None:
            return vector_norm(A, 2, None, keepdim, dtype=dtype, out=out)
        return vector_norm(A, 2 if ord is None else ord, dims, keepdim, dtype=dtype, out=out)
    return matrix_norm(A, ord, (-2, -1) if dims is None else dims, keepdim, dtype=dtype, out=out)


inverse = inv
FUNCTIONS = ("cholesky", "cholesky_inverse", "cholesky_solve", "det", "inverse", "logdet", "matrix_power", "slogdet",
             "vander")
METHODS = ("cholesky", "cholesky_inverse", "cholesky_solve", "det", "inverse", "logdet", "matrix_power", "slogdet")
NN_FUNCTIONS = ()
INPLACE = ()
LINALG_FUNCTIONS = {f.__name__: f for f in (cholesky, cholesky_ex, det, inv, inv_ex, matrix_norm, matrix_power, norm,
                                            slogdet, solve, svdvals)}
LINALG_FUNCTIONS |= {"diagonal": linalg_diagonal, "vander": linalg_vander, "LinAlgError": LinAlgError}
