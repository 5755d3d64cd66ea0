"""torch.linalg: QR, singular values and vectors, eigenvectors of symmetric matrices, and what is made of these."""
from collections import namedtuple
from math import inf, prod

import numpy as np

from zoo.ops import factors as ops
from zoo.ops.dtypes import int64
from zoo.ops.errors import ArgumentError, LinAlgError, ShapeError
from zoo.ops.face.linalg import given, identity, inv, matrix_norm, no_errors, solve
from zoo.ops.limits import finfo
from zoo.ops.linalg import det, turned
from zoo.ops.linalg import svd as svd_op
from zoo.ops.matmul import matmul
from zoo.ops.op import OPS
from zoo.ops.shape import basic_index, cast, reshape, tril, triu

qr_result = namedtuple("qr", ("Q", "R"))
eigh_result = namedtuple("eigh", ("eigenvalues", "eigenvectors"))
svd_result = namedtuple("svd", ("U", "S", "Vh"))
old_svd_result = namedtuple("svd", ("U", "S", "V"))
lstsq_result = namedtuple("lstsq", ("solution", "residuals", "rank", "singular_values"))
solve_ex_result = namedtuple("solve_ex", ("result", "info"))


def linalg_qr(A, mode="reduced", *, out=None):  # noqa: N803
    """(Q, R) with A = Q R, Q' Q = 1 and R upper triangular, of matrices (..., m, n), by Householder's reflections.

    mode "reduced" gives k = min(m, n) columns of Q and rows of R, "complete" m of both, "r" an empty Q.

    Raises:
        ArgumentError: another mode. ShapeError: fewer than 2 dims. GradError: the derivative of "complete", m > n.

    Example:
        >>> import zoo
        >>> Q, R = zoo.linalg.qr(zoo.tensor([[3.0, 0.0], [4.0, 5.0]]))
        >>> zoo.allclose(Q @ R, zoo.tensor([[3.0, 0.0], [4.0, 5.0]]), atol=1e-6)
        True
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"linalg.qr: wants mode 'reduced', 'complete' or 'r', got {mode!r}")
    q, r = ops.qr(A, mode == "complete")
    return given(qr_result(OPS["filled"](r, (0,), 0) if mode == "r" else q, r), out)


def qr(input, some=True, *, out=None):  # noqa: A002
    """torch's old name of linalg.qr: `some` is mode "reduced", otherwise "complete"."""
    return linalg_qr(input, "reduced" if some else "complete", out=out)


def symmetric(name, A, UPLO):  # noqa: N803
    """A as its triangle says; the gradient goes to both triangles alike, as torch's does."""
    if UPLO not in ("L", "U", "l", "u"):
        raise ArgumentError(f"{name}: wants UPLO 'L' or 'U', got {UPLO!r}")
    n = ops.square(name, A)
    raw = A.detach() if hasattr(A, "detach") else A
    half = tril(raw, 0) if UPLO in "Ll" else triu(raw, 0)
    beside = tril(raw, -1) if UPLO in "Ll" else triu(raw, 1)
    return (A + turned(A)) * 0.5 + (half + turned(beside) - (raw + turned(raw)) * 0.5) if n else A


def eigh(A, UPLO="L", *, out=None):  # noqa: N803
    """(eigenvalues ascending, eigenvectors as columns) of symmetric matrices (..., n, n): one triangle is read.

    The largest element of each vector is positive.

    Raises:
        ArgumentError: another UPLO. ShapeError: no square matrix.

    Example:
        >>> import zoo
        >>> zoo.linalg.eigh(zoo.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
        [1.0, 2.0]
    """
    return given(eigh_result(*ops.eigh(symmetric("linalg.eigh", A, UPLO))), out)


def eigvalsh(A, UPLO="L", *, out=None):  # noqa: N803
    """The eigenvalues of symmetric matrices, ascending: see `eigh`.

    Example:
        >>> import zoo
        >>> zoo.linalg.eigvalsh(zoo.tensor([[0.0, 3.0], [3.0, 0.0]])).tolist()
        [-3.0, 3.0]
    """
    return given(ops.eigh(symmetric("linalg.eigvalsh", A, UPLO))[0], out)


def whole(u, n: int):
    """u (..., n, k) with orthonormal columns, filled up to n of them."""
    k = u.shape[-1]
    if k == n:
        return u
    q, _ = ops.qr(u.detach() if hasattr(u, "detach") else u, True)
    return OPS["cat"](len(u.shape) - 1, u, ops.columns(q, k, None))


def linalg_svd(A, full_matrices=True, *, driver=None, out=None):  # noqa: N803
    """(U, S, Vh) with A = U diag(S) Vh, S descending, of matrices (..., m, n).

    With full_matrices U is (..., m, m) and Vh (..., n, n), otherwise both have min(m, n) vectors. The largest element
    of each column of U is positive. Gradients of the vectors that fill up are 0; the others want distinct values.

    Example:
        >>> import zoo
        >>> zoo.linalg.svd(zoo.tensor([[0.0, 2.0], [3.0, 0.0]])).S.tolist()
        [3.0, 2.0]
    """
    u, s, vh = svd_op(A)
    if full_matrices:
        u, vh = whole(u, A.shape[-2]), turned(whole(turned(vh), A.shape[-1]))
    return given(svd_result(u, s, vh), out)


def svd(input, some=True, compute_uv=True, *, out=None):  # noqa: A002
    """torch's old svd: (U, S, V) with V in place of its transpose; zeros for U and V without compute_uv."""
    u, s, vh = linalg_svd(input, not some)
    if not compute_uv:
        u, vh = (OPS["filled"](y, tuple(y.shape), 0) for y in (u, vh))
    return given(old_svd_result(u, s, turned(vh)), out)


def tolerances(A, atol, rtol) -> tuple[float, float]:  # noqa: N803
    """(atol, rtol) as torch's defaults have them: rtol max(m, n) eps unless an atol was given."""
    if rtol is None:
        rtol = 0.0 if atol is not None else max(A.shape[-2:]) * float(finfo(A.dtype).eps)
    return 0.0 if atol is None else atol, rtol


def beside(x):
    """A tolerance for each matrix as a column, to broadcast against the singular values."""
    return reshape(x, (*x.shape, 1)) if hasattr(x, "shape") else x


def pinv(A, *, atol=None, rtol=None, hermitian=False, out=None):  # noqa: N803
    """The pseudoinverse (..., n, m) of matrices (..., m, n): 1 / singular value where it is above the tolerance.

    Args:
        atol, rtol: the tolerance is max(atol, rtol * the largest singular value); rtol is max(m, n) eps by default.
        hermitian: read only the lower triangle, of symmetric matrices.

    Example:
        >>> import zoo
        >>> zoo.linalg.pinv(zoo.tensor([[2.0, 0.0], [0.0, 0.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.0]]
    """
    absolute, relative = map(float, tolerances(A, atol, rtol))
    return given(ops.pinv(symmetric("linalg.pinv", A, "L") if hermitian else A, absolute, relative)[0], out)


def pinverse(input, rcond=1e-15):  # noqa: A002
    """torch's old name of linalg.pinv, with rtol = rcond."""
    return ops.pinv(input, 0.0, float(rcond))[0]


def matrix_rank(A, tol=None, *, atol=None, rtol=None, hermitian=False, out=None):  # noqa: N803
    """How many singular values lie above the tolerance of `pinv`: int64 (...).

    Example:
        >>> import zoo
        >>> zoo.linalg.matrix_rank(zoo.ones(3, 3)).item()
        1
    """
    absolute, relative = map(beside, (tol, 0.0) if tol is not None else tolerances(A, atol, rtol))
    s = svd_op(symmetric("linalg.matrix_rank", A, "L") if hermitian else A)[1]
    return given(count_above(s, absolute, relative), out)


def count_above(s, atol, rtol):
    """How many of the singular values s (..., k) lie above the tolerance: int64 (...)."""
    if not s.shape[-1]:
        return cast(OPS["filled"](s, tuple(s.shape[:-1]), 0), int64)
    return OPS["sum"](cast(ops.above(s, atol, rtol), int64), -1, False, None)


def lstsq(A, B, rcond=None, *, driver=None):  # noqa: N803
    """X that makes |A X - B| least, and of these the smallest: A (..., m, n), B (..., m, k) or (..., m).

    Gives (solution, residuals, rank, singular_values), as far as LAPACK's driver of that name does, the rest empty:
    "gelsy" (the default) the rank; "gels" the residuals, sums of squares by column, if m > n; "gelsd" and "gelss" all,
    the residuals only for full rank. Here all drivers compute with the pseudoinverse.

    Example:
        >>> import zoo
        >>> zoo.linalg.lstsq(zoo.tensor([[1.0], [1.0]]), zoo.tensor([[1.0], [3.0]])).solution
        tensor([[2.0000]])
    """
    vector = len(B.shape) == len(A.shape) - 1 and tuple(B.shape) == tuple(A.shape[:-1])
    b = reshape(B, (*B.shape, 1)) if vector else B
    if len(b.shape) < 2 or b.shape[-2] != A.shape[-2] or b.dtype != A.dtype:
        raise ShapeError(f"linalg.lstsq: wants A (..., m, n) and B (..., m, k) or (..., m) of one dtype, got "
                         f"{tuple(A.shape)} and {tuple(B.shape)}, {A.dtype} and {B.dtype}")
    relative = max(A.shape[-2:]) * float(finfo(A.dtype).eps) if rcond is None else float(rcond)
    driver = driver or "gelsy"
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise ArgumentError(f"linalg.lstsq: wants driver 'gels', 'gelsy', 'gelsd' or 'gelss', got {driver!r}")
    inverse, s = ops.pinv(A, 0.0, relative)
    x, (m, n) = matmul(inverse, b), A.shape[-2:]
    residuals = nothing = basic_index(reshape(x, (-1,)), (slice(0, 0),))
    rank = cast(nothing, int64) if driver == "gels" else count_above(s, 0.0, relative)
    values = s if driver in ("gelsd", "gelss") else nothing
    if m > n and (driver == "gels" or driver != "gelsy" and bool(OPS["all"](OPS["eq"](rank, n), None, False))):
        error = matmul(A, x) - b
        residuals = OPS["sum"](error * error, -2, False, None)
    return lstsq_result(reshape(x, tuple(x.shape[:-1])) if vector else x, residuals, rank, values)


def cond(A, p=None, *, out=None):  # noqa: N803
    """The condition number |A| |A^-1| in the norm p of `matrix_norm`; None and 2: the ratio of the singular values.

    A singular matrix has inf, except by that ratio, in which its least singular value is seldom 0 to the last bit.

    Example:
        >>> import zoo
        >>> zoo.linalg.cond(zoo.tensor([[4.0, 0.0], [0.0, 2.0]])).item()
        2.0
    """
    if p in (None, 2, -2):
        s = svd_op(A)[1]
        large, small = basic_index(s, (..., 0)), basic_index(s, (..., -1))
        return given(OPS["div"](small, large) if p == -2 else OPS["div"](large, small), out)
    if p not in ("fro", "nuc", 1, -1, inf, -inf):
        raise ArgumentError(f"linalg.cond: wants p None, 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {p!r}")
    try:
        result = OPS["mul"](matrix_norm(A, p), matrix_norm(inv(A), p))
    except LinAlgError:                              # the others of the batch beside identity matrices
        singular = OPS["eq"](det(A), 0.0)
        regular = OPS["where"](reshape(singular, (*singular.shape, 1, 1)), identity(A), A)
        result = OPS["where"](singular, inf, OPS["mul"](matrix_norm(regular, p), matrix_norm(inv(regular), p)))
    return given(result, out)


def solve_triangular(A, B, *, upper, left=True, unitriangular=False, out=None):  # noqa: N803
    """X with A X = B, or with left=False X A = B, of which only A's upper or lower triangle is read.

    Args:
        unitriangular: A's diagonal counts as ones.

    Example:
        >>> import zoo
        >>> zoo.linalg.solve_triangular(zoo.tensor([[2.0, 9.0], [0.0, 1.0]]), zoo.ones(2, 1), upper=True).tolist()
        [[-4.0], [1.0]]
    """
    n = ops.square("linalg.solve_triangular", A)
    if len(B.shape) < 2:
        raise ShapeError(f"linalg.solve_triangular: wants matrices B, got shape {tuple(B.shape)}")
    off = 1 if unitriangular else 0
    t = triu(A, off) if upper else tril(A, -off)
    if unitriangular:
        t = t + ops.constant(np.eye(n, dtype=A.dtype), like=A)
    return solve(t, B, left=left, out=out)


def solve_ex(A, B, *, left=True, check_errors=False, out=None):  # noqa: N803
    """(result, info), info 0: a singular matrix raises here, unlike in torch."""
    return given(solve_ex_result(solve(A, B, left=left), no_errors(A, tuple(A.shape[:-2]))), out)


def tensorinv(A, ind=2, *, out=None):  # noqa: N803
    """The tensor inverse: A's first `ind` dims as rows, the rest as columns; the result has them exchanged.

    Raises:
        ArgumentError: ind < 1. ShapeError: the products of the two groups of sizes differ.

    Example:
        >>> import zoo
        >>> tuple(zoo.linalg.tensorinv(zoo.eye(4).reshape(2, 2, 4), ind=2).shape)
        (4, 2, 2)
    """
    if ind < 1:
        raise ArgumentError(f"linalg.tensorinv: wants ind >= 1, got {ind}")
    rows, cols = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if prod(rows) != prod(cols):
        raise ShapeError(f"linalg.tensorinv: wants sizes of equal product up to and from {ind}, got {tuple(A.shape)}")
    return given(reshape(inv(reshape(A, (prod(rows), prod(cols)))), (*cols, *rows)), out)


def tensorsolve(A, B, dims=None, *, out=None):  # noqa: N803
    """X with tensordot(A, X, X.ndim) = B: A's first dims are B's, the rest X's; `dims` are first moved to the end.

    Raises:
        ShapeError: sizes that do not fit.

    Example:
        >>> import zoo
        >>> zoo.linalg.tensorsolve(zoo.eye(4).reshape(2, 2, 4), zoo.ones(2, 2)).tolist()
        [1.0, 1.0, 1.0, 1.0]
    """
    if dims is not None:
        last = [d % len(A.shape) for d in dims]
        A = OPS["permute"](A, (*(d for d in range(len(A.shape)) if d not in last), *last))  # noqa: N806
    rest = tuple(A.shape[len(B.shape):])
    if prod(rest) != prod(B.shape) or prod(A.shape) != prod(rest) ** 2:
        raise ShapeError(f"linalg.tensorsolve: wants A (*B.shape, *X.shape) with as many elements in X as in B, got "
                         f"{tuple(A.shape)} and {tuple(B.shape)}")
    return given(reshape(solve(reshape(A, (prod(B.shape), prod(rest))), reshape(B, (prod(B.shape),))), rest), out)


FUNCTIONS = ("pinverse", "qr", "svd")
METHODS = ("pinverse", "qr", "svd")
NN_FUNCTIONS = ()
INPLACE = ()
LINALG_FUNCTIONS = {f.__name__: f for f in (cond, eigh, eigvalsh, lstsq, matrix_rank, pinv, solve_ex, solve_triangular,
                                            tensorinv, tensorsolve)}
LINALG_FUNCTIONS |= {"qr": linalg_qr, "svd": linalg_svd}
