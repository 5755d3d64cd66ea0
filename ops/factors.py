"""Factors of matrices beside linalg.py's: QR, eigenvectors of symmetric matrices, and the pseudoinverse.

Sources of the derivatives: Seeger et al. 2017, Auto-differentiating linear algebra, arXiv:1710.08717; Golub and Pereyra
1973, The differentiation of pseudo-inverses, for pinv.
"""
import numpy as np

from zoo.ops.device import constant
from zoo.ops.errors import GradError, ShapeError
from zoo.ops.join import cat
from zoo.ops.linalg import attempted, lower_half, oriented, solve, square, svd, turned, well_conditioned, wide
from zoo.ops.matmul import matmul
from zoo.ops.op import OPS, Spec, need_float, structured
from zoo.ops.shape import basic_index, reshape


def columns(a, start, stop):
    """a[..., start:stop]."""
    return basic_index(a, (..., slice(start, stop)))


@structured
class qr:
    """(q, r) with a = q r, q' q = 1 and r upper triangular, by Householder's reflections as in LAPACK.

    a (..., m, n) -> q (..., m, k), r (..., k, n) with k = min(m, n), or with complete k = m. A reflection makes an
    element of r's diagonal negative where it was positive, and there is none where nothing is to be reflected.
    """
    outputs = ("q", "r")

    def check(a, complete=False):
        need_float("linalg.qr", a)
        if a.ndim < 2:
            raise ShapeError(f"linalg.qr: wants matrices (..., m, n), got shape {tuple(a.shape)}")
        *batch, m, n = a.shape
        k = m if complete else min(m, n)
        return Spec((*batch, m, k), a.dtype), Spec((*batch, k, n), a.dtype)

    def forward(a, complete=False):
        specs = qr.check(a, complete)
        if not a.size:
            q, r = (np.zeros(spec.shape, spec.dtype) for spec in specs)
            q[...] = np.eye(*q.shape[-2:])
            return q, r
        found = attempted("linalg.qr", lambda x: np.linalg.qr(x, "complete" if complete else "reduced"), wide(a))
        return tuple(y.astype(a.dtype, copy=False) for y in found)

    def da(dq, dr, q, r, complete):
        m, k, n = q.shape[-2], q.shape[-1], r.shape[-1]
        if k > n:
            raise GradError("linalg.qr: mode 'complete' has no derivative where a matrix has more rows than columns")
        rest = columns(dr, m, None) if n > m else None
        if rest is not None:                                   # a = q [r1 | q' a2]: the columns behind the square
            dq = dq + matmul(matmul(q, columns(r, m, None)), turned(rest))
            first, dr = columns(r, 0, m), columns(dr, 0, m)
        else:
            first = r
        inner = matmul(first, turned(dr)) - matmul(turned(dq), q)
        low = inner * constant(lower_half(k, inner.dtype), like=inner)
        g = turned(solve(first, turned(dq + matmul(q, low + turned(low)))))
        return g if rest is None else cat(len(g.shape) - 1, g, matmul(q, rest))

    def samples(rng):
        return {"ordinary": [(well_conditioned(rng, 2, 3, 3), False), (rng.normal(size=(4, 2)), False)],
                "empty": [(np.zeros((0, 3, 2)), False)], "0-d": "a matrix has two dims",
                "odd": [(rng.normal(size=(3, 7)), False)],
                "extreme": [(np.array([[1e3, 1.0], [0.0, 1e-2]]), False), (np.array([[0.0, 1.0], [2.0, 3.0]]), True)]}


@structured
class eigh:
    """(w, v) with s v = v diag(w), w ascending and v' v = 1, of s = (a + a') / 2, which is a for a symmetric matrix.

    a (..., n, n) -> (..., n), (..., n, n). The largest element of each column of v is positive. Vectors of equal
    eigenvalues have no derivative.
    """
    outputs = ("w", "v")

    def check(a):
        n = square("linalg.eigh", a)
        return Spec((*a.shape[:-2], n), a.dtype), Spec(tuple(a.shape), a.dtype)

    def forward(a):
        specs = eigh.check(a)
        if not a.size:
            return tuple(np.zeros(spec.shape, spec.dtype) for spec in specs)
        x = wide(a)
        w, v = attempted("linalg.eigh", np.linalg.eigh, (x + np.swapaxes(x, -1, -2)) / 2)
        return w.astype(a.dtype, copy=False), oriented(v, np.swapaxes(v, -1, -2))[0].astype(a.dtype, copy=False)

    def da(dw, dv, w, v):
        row, column = reshape(w, (*w.shape, 1)), reshape(w, (*w.shape[:-1], 1, w.shape[-1]))
        apart = OPS["where"](OPS["eq"](column - row, 0.0), 1.0, column - row)
        one = constant(np.eye(w.shape[-1], dtype=w.dtype), like=w)
        turn = matmul(turned(v), dv)
        inner = (turn - turned(turn)) * 0.5 / apart
        g = matmul(matmul(v, inner + reshape(dw, (*dw.shape, 1)) * one), turned(v))
        return (g + turned(g)) * 0.5

    def samples(rng):
        return {"ordinary": [(well_conditioned(rng, 2, 3, 3),), (rng.normal(size=(4, 4)),)],
                "empty": [(np.zeros((0, 3, 3)),)], "0-d": "a matrix has two dims", "odd": [(rng.normal(size=(5, 5)),)],
                "extreme": [(np.array([[1e3, 1.0], [1.0, 1e-2]]),)]}


def above(s, atol, rtol):
    """Which of the singular values s (..., k) lie above max(atol, rtol * the largest); k > 0."""
    largest = OPS["amax"](s, (-1,), True)
    return OPS["gt"](s, OPS["maximum"](largest * rtol, largest * 0.0 + atol))


def inverted(u, s, vh, atol: float, rtol: float):
    """vh' diag(1 / s) u', where what lies below the tolerance counts as 0."""
    keep = above(s, atol, rtol)
    inverse = OPS["where"](keep, 1.0 / OPS["where"](keep, s, 1.0), 0.0)
    return matmul(turned(vh) * reshape(inverse, (*s.shape[:-1], 1, s.shape[-1])), turned(u))


@structured
class pinv:
    """The pseudoinverse (..., n, m) of a (..., m, n): singular values up to max(atol, rtol * the largest) count as 0.

    And these values, (..., min(m, n)), since they come out beside it.

    The derivative holds where the rank does not change (Golub and Pereyra 1973).
    """
    outputs, reserve = ("y", "s"), ("s",)

    def check(a, atol=0.0, rtol=0.0):
        need_float("linalg.pinv", a)
        if a.ndim < 2:
            raise ShapeError(f"linalg.pinv: wants matrices (..., m, n), got shape {tuple(a.shape)}")
        (*batch, m, n) = a.shape
        return Spec((*batch, n, m), a.dtype), Spec((*batch, min(m, n)), a.dtype)

    def forward(a, atol=0.0, rtol=0.0):
        specs = pinv.check(a, atol, rtol)
        if not a.size:
            return tuple(np.zeros(spec.shape, spec.dtype) for spec in specs)
        u, s, vh = svd.forward(wide(a))
        y = np.ascontiguousarray(inverted(u, s, vh, atol, rtol))
        return y.astype(a.dtype, copy=False), s.astype(a.dtype, copy=False)

    def da(dy, y, a):
        g, t = turned(dy), turned(y)
        if a.shape[-2] <= a.shape[-1]:
            k = matmul(g, y)
            kt = matmul(k, t)
            return (kt - turned(matmul(y, k)) - matmul(matmul(a, y), kt)
                    + matmul(matmul(t, y), g - matmul(k, a)))
        k = matmul(y, g)
        tk = matmul(t, k)
        return (tk - turned(matmul(k, y)) + matmul(matmul(g - matmul(a, k), y), t)
                - matmul(matmul(tk, y), a))

    def samples(rng):
        return {"ordinary": [(well_conditioned(rng, 2, 3, 3), 0.0, 1e-9), (rng.normal(size=(4, 2)), 0.0, 0.0)],
                "empty": [(np.zeros((0, 3, 2)), 0.0, 0.0)], "0-d": "a matrix has two dims",
                "odd": [(rng.normal(size=(3, 7)), 0.0, 0.0)],
                "extreme": [(np.array([[1e3, 1.0], [0.0, 1e-2]]), 0.0, 0.0)]}
