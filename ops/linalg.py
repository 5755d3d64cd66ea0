"""Systems of equations, determinants and Cholesky factors of batches of matrices, by elimination with pivots."""
from math import prod

import numpy as np

from zoo.ops.device import constant
from zoo.ops.dtypes import HALVES, float32
from zoo.ops.errors import LinAlgError, ShapeError
from zoo.ops.matmul import matmul
from zoo.ops.op import OPS, Spec, need_float, structured
from zoo.ops.shape import permute, reshape


def square(name: str, a) -> int:
    """The size n of matrices (..., n, n)."""
    need_float(name, a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name}: wants square matrices (..., n, n), got shape {tuple(a.shape)}")
    return a.shape[-1]


def turned(a):
    """The matrices transposed."""
    n = len(a.shape)
    return permute(a, (*range(n - 2), n - 1, n - 2))


def wide(a: np.ndarray) -> np.ndarray:
    """a in a dtype that LAPACK computes in."""
    return a.astype(float32) if a.dtype in HALVES else a


def attempted(name: str, function, *arrays):
    """function(*arrays) with its answer to a singular or indefinite matrix as a LinAlgError of ours."""
    try:
        return function(*arrays)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"{name}: {error}, got shape {arrays[0].shape}") from None


def well_conditioned(rng, *shape) -> np.ndarray:
    """Random matrices whose diagonal outweighs the rest."""
    return rng.normal(size=shape) * 0.3 + (shape[-1] * 0.5 + 1) * np.eye(shape[-1])


@structured
class solve:
    """x with a x = b: a (..., n, n), b (..., n, m) -> (..., n, m).

    Raises: LinAlgError for a singular matrix, ShapeError for shapes that do not fit.
    """
    def check(a, b):
        n = square("linalg.solve", a)
        if b.shape[:-2] != a.shape[:-2] or b.ndim < 2 or b.shape[-2] != n or a.dtype != b.dtype:
            raise ShapeError(f"linalg.solve: wants (..., n, n) and (..., n, m) of one dtype, got {tuple(a.shape)} "
                             f"and {tuple(b.shape)}, {a.dtype} and {b.dtype}")
        return Spec(tuple(b.shape), b.dtype)

    def forward(a, b):
        solve.check(a, b)
        return attempted("linalg.solve", np.linalg.solve, wide(a), wide(b)).astype(b.dtype, copy=False)

    def da(dy, y, a): return -matmul(solve(turned(a), dy), turned(y))
    def db(dy, a): return solve(turned(a), dy)

    def samples(rng):
        return {"ordinary": [(well_conditioned(rng, 2, 3, 3), rng.normal(size=(2, 3, 4)))],
                "empty": [(np.zeros((0, 3, 3)), np.zeros((0, 3, 2))), (np.zeros((2, 0, 0)), np.zeros((2, 0, 3)))],
                "0-d": "a matrix has two dims",
                "odd": [(well_conditioned(rng, 7, 7), rng.normal(size=(7, 13)))],
                "extreme": [(np.array([[0.0, 1e3], [1e-3, 1.0]]), np.array([[1.0], [2.0]]))]}


def cofactors(a):
    """The derivative of det(a), by Faddeev and LeVerrier: products only, so it holds for singular matrices too."""
    n = a.shape[-1]
    one = constant(np.eye(n, dtype=a.dtype), like=a)
    m = one + a * 0.0
    for k in range(1, n):
        am = matmul(a, m)
        trace = OPS["sum"](OPS["diagonal"](am, 0, -2, -1), -1, False, None)
        m = am - reshape(trace / k, (*trace.shape, 1, 1)) * one
    return turned(m if n % 2 else -m)


@structured
class slogdet:
    """(sign, log|det a|) of a (..., n, n), both (...); (0, -inf) for a singular matrix."""
    outputs = ("sign", "logabsdet")

    def check(a):
        square("linalg.slogdet", a)
        return (Spec(tuple(a.shape[:-2]), a.dtype),) * 2

    def forward(a):
        slogdet.check(a)
        return tuple(np.asarray(y).astype(a.dtype, copy=False) for y in np.linalg.slogdet(wide(a)))

    def da(dsign, dlogabsdet, a):
        d = reshape(dlogabsdet, (*dlogabsdet.shape, 1, 1))
        n = a.shape[-1]
        one = constant(np.broadcast_to(np.eye(n, dtype=a.dtype), (*a.shape[:-2], n, n)), like=a)
        return solve(turned(a), d * one)

    def samples(rng):
        return {"ordinary": [(well_conditioned(rng, 2, 3, 3),), (-well_conditioned(rng, 3, 3),)],
                "empty": [(np.zeros((0, 3, 3)),)], "0-d": "a matrix has two dims",
                "odd": [(well_conditioned(rng, 7, 7),)], "extreme": [(np.array([[0.0, 1e3], [1e-1, 1.0]]),)]}


@structured
class det:
    """The determinants (...) of a (..., n, n)."""
    def check(a):
        square("linalg.det", a)
        return Spec(tuple(a.shape[:-2]), a.dtype)

    def forward(a):
        det.check(a)
        return np.asarray(np.linalg.det(wide(a))).astype(a.dtype, copy=False)

    def da(dy, a): return reshape(dy, (*dy.shape, 1, 1)) * cofactors(a)

    def samples(rng):
        return {"ordinary": [(well_conditioned(rng, 2, 3, 3),), (rng.normal(size=(3, 3)),)],
                "empty": [(np.zeros((0, 3, 3)),)], "0-d": "a matrix has two dims",
                "odd": [(well_conditioned(rng, 5, 5) * 0.5,)],
                "extreme": [(np.array([[1.0, 2.0], [2.0, 4.0]]),), (np.array([[0.0, 1e3], [1e-3, 1.0]]),)]}


def lower_half(n: int, dtype) -> np.ndarray:
    """(n, n): 1 below the diagonal, 1/2 on it."""
    return (np.tril(np.ones((n, n))) - 0.5 * np.eye(n)).astype(dtype)


@structured
class cholesky:
    """l (..., n, n), lower triangular, with l l' = (a + a') / 2, which is a for a symmetric matrix.

    Raises: LinAlgError for a matrix that is not positive definite.
    """
    def check(a):
        square("linalg.cholesky", a)
        return Spec(tuple(a.shape), a.dtype)

    def forward(a):
        cholesky.check(a)
        if not prod(a.shape):
            return np.array(a)
        x = wide(a)
        x = (x + np.swapaxes(x, -1, -2)) / 2
        return attempted("linalg.cholesky", np.linalg.cholesky, x).astype(a.dtype, copy=False)

    def da(dy, y):
        t = turned(y)
        half = matmul(t, dy) * constant(lower_half(y.shape[-1], y.dtype), like=y)
        g = solve(t, turned(solve(t, half)))
        return (g + turned(g)) * 0.5

    def samples(rng):
        def definite(*shape):
            x = well_conditioned(rng, *shape)
            return x + np.swapaxes(x, -1, -2)
        return {"ordinary": [(definite(2, 3, 3),)], "empty": [(np.zeros((0, 3, 3)),)],
                "0-d": "a matrix has two dims", "odd": [(definite(7, 7),)],
                "extreme": [(np.array([[1e4, 1.0], [1.0, 1e-2]]),)]}


def oriented(u, vh) -> tuple:
    """Singular vectors with signs that make the largest element of each column of u positive."""
    at = OPS["argmax"](OPS["abs"](u), -2, True)
    sign = OPS["where"](OPS["lt"](OPS["gather"](u, -2, at), 0), -1.0, 1.0)
    return u * sign, vh * turned(sign)


@structured
class svd:
    """(u, s, vh) with a = u diag(s) vh: a (..., m, n), k = min(m, n) -> (..., m, k), (..., k) descending, (..., k, n).

    The largest element of each column of u is positive. Vectors of equal singular values have no derivative.
    """
    outputs = ("u", "s", "vh")

    def check(a):
        need_float("linalg.svd", a)
        if a.ndim < 2:
            raise ShapeError(f"linalg.svd: wants matrices (..., m, n), got shape {tuple(a.shape)}")
        *batch, m, n = a.shape
        shapes = (*batch, m, min(m, n)), (*batch, min(m, n)), (*batch, min(m, n), n)
        return tuple(Spec(shape, a.dtype) for shape in shapes)

    def forward(a):
        specs = svd.check(a)
        if not a.size:
            return tuple(np.zeros(spec.shape, spec.dtype) for spec in specs)
        u, s, vh = attempted("linalg.svd", lambda x: np.linalg.svd(x, full_matrices=False), wide(a))
        u, vh = oriented(u, vh)
        return tuple(y.astype(a.dtype, copy=False) for y in (u, s, vh))

    def da(du, ds, dvh, u, s, vh):
        row, column = reshape(s, (*s.shape, 1)), reshape(s, (*s.shape[:-1], 1, s.shape[-1]))
        apart = column * column - row * row
        apart = OPS["where"](OPS["eq"](apart, 0.0), 1.0, apart)             # the diagonal, where `skew` is 0
        one = constant(np.eye(s.shape[-1], dtype=s.dtype), like=s)
        inverse = OPS["where"](OPS["gt"](column, 0.0), 1.0 / OPS["where"](OPS["gt"](column, 0.0), column, 1.0), 0.0)
        pu, pv = matmul(turned(u), du), matmul(vh, turned(dvh))
        inner = ((pu - turned(pu)) / apart) * column + row * ((pv - turned(pv)) / apart)
        inner = inner + reshape(ds, (*ds.shape, 1)) * one
        g = matmul(matmul(u, inner), vh)
        if u.shape[-2] > u.shape[-1]:
            g = g + matmul((du - matmul(u, pu)) * inverse, vh)
        if vh.shape[-1] > vh.shape[-2]:
            g = g + matmul(u * inverse, dvh - matmul(turned(pv), vh))
        return g

    def samples(rng):
        return {"ordinary": [(rng.normal(size=(2, 3, 3)),), (rng.normal(size=(4, 3)),)],
                "empty": [(np.zeros((0, 3, 2)),)], "0-d": "a matrix has two dims",
                "odd": [(rng.normal(size=(3, 7)),)], "extreme": [(np.array([[1e3, 1.0], [0.0, 1e-2]]),)]}
