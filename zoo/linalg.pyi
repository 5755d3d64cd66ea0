"""zoo.linalg's functions. Written by scripts/write_stubs.py: do not edit."""
# pyright: basic, reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false
# pyright: reportOverlappingOverload=false, reportMissingModuleSource=false
from builtins import bool as _bool, float as _float, int as _int, str as _str
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, TypeAlias, overload

import numpy as np

from zoo.autograd.attached import Device, DType, Number, ValuesAndIndices
from zoo.autograd.random import Generator
from zoo.autograd.size import Size
from zoo.autograd.tensor import Tensor
from zoo.ops.device import device
from zoo.ops.memory_format import memory_format

def cholesky(A: Any, upper: _bool = False, out: Any = None) -> Tensor:
    """The lower triangular L with L L' = A, of symmetric positive definite (..., n, n); upper gives L'."""
    ...
def cholesky_ex(A: Any, *, upper: _bool = False, check_errors: _bool = False, out: Any = None) -> Any:
    """(L, info), info 0: a matrix that is not positive definite raises here, unlike in torch."""
    ...
def cond(A: Any, p: _float | None = None, *, out: Any = None) -> Tensor:
    """The condition number |A| |A^-1| in the norm p of `matrix_norm`; None and 2: the ratio of the singular values."""
    ...
def cross(input: Tensor, other: Tensor | Number, *, dim: Any = -1, out: Any = None) -> Tensor:
    """The vector product along `dim`, which has size 3; the other dimensions broadcast."""
    ...
def det(A: Any, *, out: Any = None) -> Tensor:
    """The determinants of square matrices (..., n, n) -> (...)."""
    ...
def diagonal(A: Any, *, offset: Any = 0, dim1: Any = -2, dim2: Any = -1) -> Tensor:
    """`diagonal` of the last two dims."""
    ...
def eigh(A: Any, UPLO: _str = 'L', *, out: Any = None) -> tuple[Tensor, ...]:
    """(eigenvalues ascending, eigenvectors as columns) of symmetric matrices (..., n, n): one triangle is read."""
    ...
def eigvalsh(A: Any, UPLO: _str = 'L', *, out: Any = None) -> Tensor:
    """The eigenvalues of symmetric matrices, ascending: see `eigh`."""
    ...
def householder_product(A: Any, tau: Any, *, out: Any = None) -> Tensor:
    """The first n columns of H_1 H_2 ... H_k, with H_i = 1 - tau_i v_i v_i'."""
    ...
def inv(A: Any, *, out: Any = None) -> Tensor:
    """The inverse of square matrices (..., n, n)."""
    ...
def inv_ex(A: Any, *, check_errors: _bool = False, out: Any = None) -> Any:
    """(inverse, info), info 0: a singular matrix raises here, unlike in torch."""
    ...
def lstsq(A: Any, B: Any, rcond: Any = None, *, driver: Any = None) -> tuple[Tensor, ...]:
    """X that makes |A X - B| least, and of these the smallest: A (..., m, n), B (..., m, k) or (..., m)."""
    ...
def matmul(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """Matrix product over the last two dimensions, broadcast over the others; 1-d: input is a row, other a column."""
    ...
def matrix_exp(A: Any, *, out: Any = None) -> Tensor:
    """The exponential 1 + A + A^2 / 2 + A^3 / 6 ... of square matrices (..., n, n)."""
    ...
def matrix_norm(
    A: Any, ord: _str = 'fro', dim: Any = (-2, -1), keepdim: _bool = False, *, dtype: DType | None = None,
    out: Any = None,
) -> Tensor:
    """A norm of matrices over two dims: "fro" (the root of the sum of squares), "nuc" (the sum of singular values), 2 and -2 (the largest and smallest of them), 1 and -1 (the largest and smallest sum |.| of a column), inf and -inf (of a row)."""
    ...
def matrix_power(A: Any, n: Any, *, out: Any = None) -> Tensor:
    """The n-th power of square matrices by repeated squaring; the inverse's for n < 0."""
    ...
def matrix_rank(
    A: Any, tol: Any = None, *, atol: Any = None, rtol: Any = None, hermitian: _bool = False, out: Any = None,
) -> Tensor:
    """How many singular values lie above the tolerance of `pinv`: int64 (...)."""
    ...
def multi_dot(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """The product of two or more matrices in the cheapest order; the first may be a row, the last a column (1-d)."""
    ...
def norm(
    A: Any, ord: Any = None, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *,
    dtype: DType | None = None, out: Any = None,
) -> Tensor:
    """The vector norm over one dim (or of all elements, without ord), the matrix norm over two."""
    ...
def pinv(A: Any, *, atol: Any = None, rtol: Any = None, hermitian: _bool = False, out: Any = None) -> Tensor:
    """The pseudoinverse (..., n, m) of matrices (..., m, n): 1 / singular value where it is above the tolerance."""
    ...
def qr(A: Any, mode: _str = 'reduced', *, out: Any = None) -> tuple[Tensor, ...]:
    """(Q, R) with A = Q R, Q' Q = 1 and R upper triangular, of matrices (..., m, n), by Householder's reflections."""
    ...
def slogdet(A: Any, *, out: Any = None) -> Any:
    """(sign, logabsdet) of the determinants of square matrices (..., n, n); (0, -inf) for singular ones."""
    ...
def solve(A: Any, B: Any, *, left: _bool = True, out: Any = None) -> Tensor:
    """X with A X = B, or with left=False X A = B. A (..., n, n); B (..., n, m), or vectors (..., n) or (n,)."""
    ...
def solve_ex(
    A: Any, B: Any, *, left: _bool = True, check_errors: _bool = False, out: Any = None,
) -> tuple[Tensor, ...]:
    """(result, info), info 0: a singular matrix raises here, unlike in torch."""
    ...
def solve_triangular(
    A: Any, B: Any, *, upper: Any, left: _bool = True, unitriangular: _bool = False, out: Any = None,
) -> Tensor:
    """X with A X = B, or with left=False X A = B, of which only A's upper or lower triangle is read."""
    ...
def svd(A: Any, full_matrices: _bool = True, *, driver: Any = None, out: Any = None) -> tuple[Tensor, ...]:
    """(U, S, Vh) with A = U diag(S) Vh, S descending, of matrices (..., m, n)."""
    ...
def svdvals(A: Any, *, out: Any = None) -> Tensor:
    """The singular values of matrices (..., m, n), descending: (..., min(m, n))."""
    ...
def tensorinv(A: Any, ind: Any = 2, *, out: Any = None) -> Tensor:
    """The tensor inverse: A's first `ind` dims as rows, the rest as columns; the result has them exchanged."""
    ...
def tensorsolve(A: Any, B: Any, dims: Any = None, *, out: Any = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B: A's first dims are B's, the rest X's; `dims` are first moved to the end."""
    ...
def vander(x: Any, N: Any = None, *, out: Any = None) -> Tensor:
    """The powers x^0 ... x^(N - 1) (N: as many as elements) of x (..., n) as columns: (..., n, N)."""
    ...
def vecdot(x: Any, y: Any, *, dim: _int | Sequence[_int] = -1, out: Any = None) -> Tensor:
    """Sums of products along `dim`; the other dimensions broadcast."""
    ...
def vector_norm(
    x: Any, ord: Any = 2, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *,
    dtype: DType | None = None, out: Any = None,
) -> Tensor:
    """(sum |x|^ord)^(1 / ord) over `dim`, None for all: torch.linalg.vector_norm."""
    ...
