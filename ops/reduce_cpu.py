"""The NumPy side of reductions: sums that are accurate in float32 and as fast as the BLAS makes them."""
import math
from functools import lru_cache

import numpy as np

from zoo.ops.compiled import rows_for
from zoo.ops.dims import wrap
from zoo.ops.dtypes import HALVES, float32, float64
from zoo.ops.pieces import LONG, each, slices

CHUNK = 4096            # a BLAS sum adds at most so many neighbours in one go; what is longer becomes a sum of sums
COLUMN = 512            # the same along other dimensions, where the BLAS adds one after the other
SMALL = 8192            # arrays of fewer elements are not worth more than one call of NumPy


@lru_cache(64)
def ones(n: int, dtype: np.dtype) -> np.ndarray:
    """A read-only vector of ones."""
    vector = np.ones(n, dtype)
    vector.flags.writeable = False
    return vector


def add_up(x: np.ndarray, dims: tuple[int, ...] | None = None, keepdim: bool = False) -> np.ndarray:
    """The sum over `dims` in the dtype of x.

    NumPy adds pairwise along the last dimension only; along the others the error grows with the length, and both are
    slow. A product with a vector of ones takes a quarter of the time along the last dimension and half along others.
    """
    if x.size < SMALL or x.dtype not in (float32, float64) or not x.flags.c_contiguous:
        if x.size < SMALL or dims is None or not x.size or x.dtype != float32:
            return np.add.reduce(x, axis=dims, keepdims=keepdim)
        x = np.ascontiguousarray(x)
    dims = tuple(range(x.ndim)) if dims is None else dims
    shape = tuple(1 if i in dims else n for i, n in enumerate(x.shape))
    y = x
    for first, last in reversed(runs(dims)):
        before, n, after = (math.prod(s) for s in (x.shape[:first], x.shape[first:last + 1], y.shape[last + 1:]))
        y = add_middle(y.reshape(before, n, after))
        y = y.reshape(*x.shape[:first], *(1,) * (last + 1 - first), *shape[last + 1:])
    return y.reshape(shape if keepdim else tuple(n for i, n in enumerate(x.shape) if i not in dims))


def add_up_squares(x: np.ndarray, dims: tuple[int, ...], keepdim: bool) -> np.ndarray:
    """The sum of x * x over `dims`, without the array of squares where all of a large x is summed."""
    if len(dims) < x.ndim or x.size < SMALL or x.dtype not in (float32, float64) or not x.flags.c_contiguous:
        return add_up(np.asarray(x * x), dims, keepdim)
    flat, full = x.reshape(-1), x.size // CHUNK * CHUNK
    blocks = flat[:full].reshape(-1, CHUNK)
    y = add_up(np.vecdot(blocks, blocks)) + np.vecdot(flat[full:], flat[full:])
    return np.asarray(y).reshape((1,) * x.ndim if keepdim else ())


def runs(dims: tuple[int, ...]) -> list[tuple[int, int]]:
    """Neighbouring dimensions as (first, last): (0, 2, 3) -> [(0, 0), (2, 3)]."""
    found: list[tuple[int, int]] = []
    for d in dims:
        if found and found[-1][1] == d - 1:
            found[-1] = found[-1][0], d
        else:
            found.append((d, d))
    return found


def add_middle(x: np.ndarray) -> np.ndarray:
    """(K, R, N) -> (K, N), contiguous."""
    k, r, n = x.shape
    chunk = CHUNK if n == 1 else COLUMN
    if r > chunk:
        full = r // chunk * chunk
        if k == 1 or full == r:
            parts = add_middle(x[:, :full].reshape(-1, chunk, n))
        else:
            parts = np.concatenate([add_middle(row[None, :full].reshape(-1, chunk, n)) for row in x])
        y = add_middle(parts.reshape(k, full // chunk, n))
        return y if full == r else y + add_middle(x[:, full:])
    if n == 1:
        return (x.reshape(k, r) @ ones(r, x.dtype)).reshape(k, 1)
    if k == 1:
        return (ones(r, x.dtype) @ x[0])[None]
    return np.add.reduce(x, axis=1) if n * r < 256 else (ones(r, x.dtype)[None] @ x).reshape(k, n)


def multiply_up(x: np.ndarray, dims: tuple[int, ...], keepdim: bool) -> np.ndarray:
    """The product over `dims`. NumPy multiplies along a row one by one: long rows are folded until they are short."""
    if x.size < SMALL or len(dims) not in (1, x.ndim) or x.dtype not in (float32, float64) or dims[-1] != x.ndim - 1:
        return np.multiply.reduce(x, axis=dims, keepdims=keepdim)
    y = np.ascontiguousarray(x).reshape(-1, math.prod(x.shape[d] for d in dims))
    out = np.empty(len(y), x.dtype)
    if y.shape[1] >= 32 and (fast := rows_for(y)):
        fast.prod(out, y)
    else:
        def fold(part: slice) -> None:
            out[part] = folded(y[part])
        each(fold, slices(len(y), max(1, LONG // y.shape[1])), y.size)
    return out.reshape(left(x, dims, keepdim))


def folded(y: np.ndarray) -> np.ndarray:
    """The product of each row: its four quarters with each other, side by side, and so on; at last row beside row."""
    left_over = []
    while (quarter := y.shape[1] // 4) >= 16:
        left_over.append(y[:, 4 * quarter:])
        first, *others = (y[:, k * quarter:(k + 1) * quarter] for k in range(4))
        y = np.multiply(first, others[0])
        y *= others[1]
        y *= others[2]
    return np.multiply.reduce(np.concatenate([y, *left_over], axis=1).T.copy(), axis=0)


def left(x: np.ndarray, dims: tuple[int, ...], keepdim: bool) -> list[int]:
    """The shape of what a reduction over `dims` leaves."""
    return [1 if d in dims else n for d, n in enumerate(x.shape) if keepdim or d not in dims]


def extreme(greatest: bool, x: np.ndarray, dims: tuple[int, ...], keepdim: bool) -> np.ndarray:
    """The largest (or smallest) over `dims`. Of long rows by its place, which NumPy finds in half the time."""
    if x.size < SMALL or dims != (x.ndim - 1,) or x.shape[-1] < 64 or x.dtype not in (float32, float64) \
            or not x.flags.c_contiguous:
        return (np.maximum if greatest else np.minimum).reduce(x, axis=dims, keepdims=keepdim)
    lines = x.reshape(-1, x.shape[-1])
    places = lines.argmax(1) if greatest else lines.argmin(1)
    return x.reshape(-1)[places + np.arange(len(lines)) * x.shape[-1]].reshape(left(x, dims, keepdim))


def widened(x: np.ndarray) -> np.ndarray:
    """float16 and bfloat16 as float32: NumPy is slow on the one and wrong on the other."""
    return x.astype(float32) if x.dtype in HALVES else x


def rows(op: str, x: np.ndarray, dim: int | None) -> tuple[np.ndarray, int]:
    """x and a dimension to work along: all of x as one row if dim is None, and one element if x has no dimensions."""
    if dim is None:
        return x.reshape(-1), 0
    return (x, wrap(op, dim, x.ndim)) if x.ndim else (x.reshape(1), 0)


def sum_of_exp(x: np.ndarray, dims: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(the sum of exp(x - m) over `dims`, m), m the largest value if that is finite and else 0; dims are kept."""
    if not x.size:
        y = np.add.reduce(x, axis=dims, keepdims=True)
        return np.zeros_like(y), np.zeros_like(y)
    m = np.maximum.reduce(x, axis=dims, keepdims=True)
    m = np.where(np.isfinite(m), m, np.asarray(0, x.dtype))
    e = np.asarray(x - m)
    return add_up(np.exp(e, out=e), dims, True), m
