"""torch.linalg: the exponential of matrices, and products of Householder's reflections; written in other ops."""
from collections import namedtuple

import numpy as np

from zoo.ops import linalg as ops
from zoo.ops.dtypes import float64
from zoo.ops.errors import ShapeError
from zoo.ops.face.linalg import given
from zoo.ops.linalg import turned
from zoo.ops.matmul import matmul
from zoo.ops.op import OPS, need_float
from zoo.ops.shape import basic_index, reshape

geqrf_result = namedtuple("geqrf", ("a", "tau"))
# So many terms of exp's series, for matrices of at most this norm, are exact up to the dtype's rounding (Bader et al.).
TERMS, LIMIT, LIMIT_OF_LESS = 18, {float64: 1.09}, 3.01


def matrix_exp(A, *, out=None):  # noqa: N803
    """The exponential 1 + A + A^2 / 2 + A^3 / 6 ... of square matrices (..., n, n).

    exp(A) = exp(A / 2^s)^(2^s): 18 terms of the series of A / 2^s, squared s times, with an s for each matrix that
    makes its norm small enough. Any order of derivatives, by those of the products.

    Raises:
        ShapeError: no square matrix. DtypeError: integers.

    Source: P. Bader, S. Blanes and F. Casas, "Computing the matrix exponential with an optimized Taylor polynomial
    approximation", Mathematics 7 (2019), table 1.

    Example:
        >>> import zoo
        >>> zoo.linalg.matrix_exp(zoo.tensor([[0.0, 1.0], [0.0, 0.0]])).tolist()
        [[1.0, 1.0], [0.0, 1.0]]
    """
    need_float("linalg.matrix_exp", A)
    n = ops.square("linalg.matrix_exp", A)
    one = ops.constant(np.eye(n, dtype=A.dtype), like=A)
    if 0 in A.shape:
        return given(OPS["add"](A, one), out)
    raw = A.detach() if hasattr(A, "detach") else A
    norm = OPS["amax"](OPS["sum"](OPS["abs"](raw), -1, False, None), (-1,), False)
    ratio = OPS["where"](OPS["isfinite"](norm), norm, 1.0) * (1 / LIMIT.get(A.dtype, LIMIT_OF_LESS))
    ratio = OPS["maximum"](ratio, 1.0)
    halvings = reshape(OPS["ceil"](OPS["log2"](ratio)), (*norm.shape, 1, 1))
    x = A * OPS["exp2"](-halvings)
    y = one
    for k in range(TERMS, 0, -1):
        y = OPS["add"](matmul(x, y) * (1 / k), one)
    for k in range(int(OPS["amax"](reshape(halvings, (-1,)), (0,), False))):
        y = OPS["where"](OPS["gt"](halvings, k), matmul(y, y), y)
    return given(y, out)


def householder_product(A, tau, *, out=None):  # noqa: N803
    """The first n columns of H_1 H_2 ... H_k, with H_i = 1 - tau_i v_i v_i'.

    Args:
        A: (..., m, n), m >= n. v_i is 0 above row i, 1 in row i, and column i of A below.
        tau: (..., k), k <= n.

    Raises:
        ShapeError: shapes that do not fit. DtypeError: integers.

    Example:
        >>> import zoo
        >>> zoo.linalg.householder_product(zoo.tensor([[5.0], [1.0]]), zoo.tensor([1.0])).tolist()
        [[0.0], [-1.0]]
    """
    need_float("linalg.householder_product", A, tau)
    shape, count = tuple(A.shape), tau.shape[-1] if len(tau.shape) else -1
    if len(shape) < 2 or shape[-2] < shape[-1] or tuple(tau.shape[:-1]) != shape[:-2] or not 0 <= count <= shape[-1]:
        raise ShapeError(f"linalg.householder_product: wants A (..., m, n), m >= n, and tau (..., k), k <= n, got "
                         f"{shape} and {tuple(tau.shape)}")
    m, n = shape[-2:]
    unit = ops.constant(np.eye(m, n, dtype=A.dtype), like=A)
    y = OPS["tril"](A, -m) + unit                               # zeros and ones, that depend on A also where k = 0
    below = OPS["tril"](A, -1) + unit
    for i in reversed(range(count)):
        v = basic_index(below, (..., slice(i, i + 1)))
        y = y - matmul(v * basic_index(tau, (..., slice(i, i + 1), None)), matmul(turned(v), y))
    return given(y, out)


def geqrf(input, *, out=None):  # noqa: A002
    """(a, tau) of matrices (..., m, n): R in a's upper triangle, below it the reflections for householder_product.

    Signs are LAPACK's; no gradient, as in torch.

    Example:
        >>> import zoo
        >>> a, tau = zoo.geqrf(zoo.tensor([[3.0], [4.0]]))
        >>> a[0, 0].item(), zoo.linalg.householder_product(a, tau).tolist()
        (-5.0, [[-0.6000000238418579], [-0.800000011920929]])
    """
    need_float("geqrf", input)
    if len(input.shape) < 2:
        raise ShapeError(f"geqrf: wants matrices (..., m, n), got shape {tuple(input.shape)}")
    rest = input.detach() if hasattr(input, "detach") else input
    m, n = rest.shape[-2:]
    columns, taus = [], []
    for j in range(n):
        column = basic_index(rest, (..., slice(j, j + 1)))
        if j < m:
            v, tau = reflection(column, j)
            rest = rest - matmul(v * tau, matmul(turned(v), rest))
            above = OPS["where"](rows_to(j, column), basic_index(rest, (..., slice(j, j + 1))), 0.0)
            column = above + OPS["where"](rows_to(j, column), 0.0, v)
            taus.append(basic_index(tau, (..., 0)))
        columns.append(column)
    last = len(rest.shape)
    empty = OPS["filled"](rest, (*rest.shape[:-2], 0), 0)
    return given(geqrf_result(OPS["cat"](last - 1, *columns) if columns else rest,
                              OPS["cat"](last - 2, *taus) if taus else empty), out)


def rows_to(j: int, like):
    """True in the rows 0 .. j of a column of like's height."""
    return ops.constant(np.arange(like.shape[-2])[:, None] <= j, like=like)


def reflection(column, j: int):
    """(v, tau) of the reflection that makes zeros of a column (..., m, 1) below row j; v is 1 in row j."""
    tail = OPS["where"](rows_to(j, column), 0.0, column)
    first = basic_index(column, (..., slice(j, j + 1), slice(None)))
    below = OPS["sum"](tail * tail, (-2,), True, None)
    length = OPS["sqrt"](first * first + below)
    beta = OPS["where"](OPS["ge"](first, 0), -length, length)
    idle = OPS["eq"](below, 0)                                  # nothing below: no reflection
    tau = OPS["where"](idle, 0.0, (beta - first) / OPS["where"](idle, 1.0, beta))
    unit = ops.constant((np.arange(column.shape[-2]) == j).astype(column.dtype)[:, None], like=column)
    return tail / OPS["where"](idle, 1.0, first - beta) + unit, tau


orgqr = householder_product
FUNCTIONS = ("geqrf", "matrix_exp", "orgqr")
METHODS = ("geqrf", "matrix_exp", "orgqr")
NN_FUNCTIONS = ()
INPLACE = ()
LINALG_FUNCTIONS = {f.__name__: f for f in (householder_product, matrix_exp)}
