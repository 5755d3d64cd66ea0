"""Matrix products in torch's signatures."""
import numpy as np

from zoo.ops.device import constant
from zoo.ops.dims import wrap
from zoo.ops.dtypes import FLOATS, INEXACT
from zoo.ops.einsum import einsum
from zoo.ops.einsum import tensordot as contracted
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.face.reduce import vector_norm
from zoo.ops.join import cat
from zoo.ops.matmul import get_float32_matmul_precision as get_float32_matmul_precision
from zoo.ops.matmul import linear as linear
from zoo.ops.matmul import matmul, multiply_add
from zoo.ops.matmul import set_float32_matmul_precision as set_float32_matmul_precision
from zoo.ops.op import OPS, into
from zoo.ops.shape import basic_index, expand, permute, reshape


def product(op: str, a, b, da: int, db: int):
    """a @ b, wanting exactly da and db dimensions."""
    need_dims(op, a, b, da, db)
    return matmul(a, b)


def need_dims(op: str, a, b, da: int, db: int):
    """Raises ShapeError unless a and b have da and db dimensions, and batches are as long."""
    if a.ndim != da or b.ndim != db:
        raise ShapeError(f"{op}: wants a {da}-d and a {db}-d array, got {tuple(a.shape)} and {tuple(b.shape)}")
    if da == 3 and a.shape[0] != b.shape[0]:
        raise ShapeError(f"{op}: wants equal batch sizes, got {tuple(a.shape)} and {tuple(b.shape)}")


def mm(input, mat2, *, out=None):
    """(M, K) @ (K, N) -> (M, N). Raises ShapeError for anything else; see `matmul`.

    Example:
        >>> import zoo
        >>> zoo.mm(zoo.ones(2, 3), zoo.ones(3, 4)).shape
        (2, 4)
    """
    result = product("mm", input, mat2, 2, 2)
    return result if out is None else into(result, out)


def bmm(input, mat2, *, out=None):
    """(B, M, K) @ (B, K, N) -> (B, M, N). Raises ShapeError for anything else; see `matmul`."""
    result = product("bmm", input, mat2, 3, 3)
    return result if out is None else into(result, out)


def mv(input, vec, *, out=None):
    """(M, K) @ (K,) -> (M,). Raises ShapeError for anything else."""
    result = product("mv", input, vec, 2, 1)
    return result if out is None else into(result, out)


def dot(input, tensor, *, out=None):
    """(K,) @ (K,) -> (). Raises ShapeError for anything else."""
    result = product("dot", input, tensor, 1, 1)
    return result if out is None else into(result, out)


def vdot(input, other, *, out=None):
    """(K,) @ (K,) -> (), the same as `dot` for real numbers."""
    return dot(input, other, out=out)


def outer(input, vec2, *, out=None):
    """(M,), (N,) -> (M, N): every product. Raises ShapeError unless both are 1-d."""
    if input.ndim != 1 or vec2.ndim != 1:
        raise ShapeError(f"outer: wants two 1-d arrays, got {tuple(input.shape)} and {tuple(vec2.shape)}")
    result = reshape(input, (input.shape[0], 1)) * vec2
    return result if out is None else into(result, out)


def ger(input, vec2, *, out=None):
    """Another name of `outer`."""
    return outer(input, vec2, out=out)


def inner(input, other, *, out=None):
    """Sums of products over the last dimension of both: (*A, K), (*B, K) -> (*A, *B); a 0-d array multiplies."""
    result = contracted(input, other, ([-1], [-1])) if input.ndim and other.ndim else input * other
    return result if out is None else into(result, out)


def tensordot(a, b, dims=2, out=None):
    """Sums over the last `dims` dimensions of a and the first of b, or over two lists of dimensions.

    Raises:
        ShapeError (ValueError, RuntimeError): the sizes differ.

    Example:
        >>> import zoo
        >>> zoo.tensordot(zoo.ones(2, 3, 4), zoo.ones(3, 4, 5)).shape
        (2, 5)
    """
    result = contracted(a, b, dims)
    return result if out is None else into(result, out)


def need_fit(op: str, input, shape: tuple):
    """Raises ShapeError unless input broadcasts to a shape."""
    try:
        fits = np.broadcast_shapes(tuple(input.shape), shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"{op}: wants input to broadcast to {shape}, got {tuple(input.shape)}")


def product_plus(op: str, input, a, b, dims: int, beta, alpha, out):
    """beta * input + alpha * (a @ b) of that many dimensions: floats of one dtype as one op, one kernel on the GPU."""
    need_dims(op, a, b, dims, dims)
    if beta == 0 or a.dtype not in FLOATS or not input.dtype == a.dtype == b.dtype or a.shape[-1] != b.shape[-2]:
        return plus(op, input, matmul(a, b), beta, alpha, out)
    need_fit(op, input, (*a.shape[:-1], b.shape[-1]))
    result = multiply_add(input, a, b, float(beta), float(alpha))
    return result if out is None else into(result, out)


def plus(op: str, input, result, beta, alpha, out):
    """beta * input + alpha * result; a beta of 0 leaves input out, nan and all."""
    if result.dtype not in INEXACT and (isinstance(beta, float) or isinstance(alpha, float)):
        raise ArgumentError(f"{op}: wants integers beta and alpha for {result.dtype}, got {beta} and {alpha}")
    need_fit(op, input, tuple(result.shape))
    if alpha != 1:
        result = result * alpha
    if beta != 0:
        result = result + (input if beta == 1 else input * beta)
    return result if out is None else into(result, out)


def addmm(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * (mat1 @ mat2): input broadcasts to (M, N), mat1 (M, K), mat2 (K, N).

    Example:
        >>> import zoo
        >>> zoo.addmm(zoo.ones(3), zoo.ones(2, 4), zoo.ones(4, 3)).tolist()
        [[5.0, 5.0, 5.0], [5.0, 5.0, 5.0]]
    """
    return product_plus("addmm", input, mat1, mat2, 2, beta, alpha, out)


def addmv(input, mat, vec, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * (mat @ vec): input broadcasts to (M,), mat (M, K), vec (K,)."""
    return plus("addmv", input, product("addmv", mat, vec, 2, 1), beta, alpha, out)


def baddbmm(input, batch1, batch2, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * (batch1 @ batch2): input broadcasts to (B, M, N)."""
    return product_plus("baddbmm", input, batch1, batch2, 3, beta, alpha, out)


def addbmm(input, batch1, batch2, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * the sum over the batch of batch1 @ batch2: input broadcasts to (M, N)."""
    if batch1.ndim != 3 or batch2.ndim != 3 or batch1.shape[0] != batch2.shape[0]:
        raise ShapeError(f"addbmm: wants (B, M, K) and (B, K, N), got {tuple(batch1.shape)} and {tuple(batch2.shape)}")
    return plus("addbmm", input, contracted(batch1, batch2, ([0, 2], [0, 1])), beta, alpha, out)


def addr(input, vec1, vec2, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * outer(vec1, vec2): input broadcasts to (M, N)."""
    return plus("addr", input, outer(vec1, vec2), beta, alpha, out)


def kron(input, other, *, out=None):
    """Kronecker product: every element of input times the whole of other, side by side."""
    n = max(input.ndim, other.ndim)
    a, b = ((1,) * (n - x.ndim) + tuple(x.shape) for x in (input, other))
    result = reshape(input, tuple(m for s in a for m in (s, 1))) * reshape(other, tuple(m for s in b for m in (1, s)))
    result = reshape(result, tuple(p * q for p, q in zip(a, b, strict=True)))
    return result if out is None else into(result, out)


def best_order(sizes: list[int]) -> dict:
    """Where to split each chain i..j of matrices sizes[i] x sizes[i+1] ... for the fewest multiplications."""
    n = len(sizes) - 1
    cost, split = {(i, i): 0 for i in range(n)}, {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))
    return split


def multi_dot(tensors, *, out=None):
    """The product of two or more matrices in the cheapest order; the first may be a row, the last a column (1-d).

    Raises:
        ShapeError (ValueError, RuntimeError): fewer than two, or sizes that do not fit.
    """
    xs = list(tensors)
    inner_ok = all(x.ndim == 2 for x in xs[1:-1]) and all(x.ndim in (1, 2) for x in xs[:1] + xs[-1:])
    if len(xs) < 2 or not inner_ok:
        shapes = [tuple(x.shape) for x in xs]
        raise ShapeError(f"multi_dot: wants two or more matrices, or vectors at the ends, got {shapes}")
    shape = (*xs[0].shape[:-1], *(xs[-1].shape[1:]))
    if xs[0].ndim == 1:
        xs[0] = reshape(xs[0], (1, xs[0].shape[0]))
    if xs[-1].ndim == 1:
        xs[-1] = reshape(xs[-1], (xs[-1].shape[0], 1))
    split = best_order([xs[0].shape[0], *(x.shape[1] for x in xs)])

    def chain(i, j):
        return xs[i] if i == j else matmul(chain(i, split[i, j]), chain(split[i, j] + 1, j))
    result = reshape(chain(0, len(xs) - 1), shape)
    return result if out is None else into(result, out)


def chain_matmul(*matrices, out=None):
    """The product of one or more matrices in the cheapest order."""
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices, out=out)


def vecdot(x, y, *, dim=-1, out=None):
    """Sums of products along `dim`; the other dimensions broadcast."""
    shape = np.broadcast_shapes(tuple(x.shape), tuple(y.shape))
    d = wrap("vecdot", dim, len(shape))
    if not x.ndim or not y.ndim or x.shape[d - len(shape)] != y.shape[d - len(shape)]:
        raise ShapeError(f"vecdot: wants equal sizes along dim {dim}, got {tuple(x.shape)} and {tuple(y.shape)}")
    order = (*(i for i in range(len(shape)) if i != d), d)
    a, b = (permute(expand(v, shape), order) for v in (x, y))
    lead = tuple(shape[i] for i in order[:-1])
    result = reshape(matmul(reshape(a, (*lead, 1, shape[d])), reshape(b, (*lead, shape[d], 1))), lead)
    return result if out is None else into(result, out)


def crossed(input, other, dim: int):
    """The vector product along a dimension of size 3."""
    shape = np.broadcast_shapes(tuple(input.shape), tuple(other.shape))
    d = wrap("cross", dim, len(shape))
    if shape[d] != 3 or input.shape[d - len(shape)] != 3 or other.shape[d - len(shape)] != 3:
        raise ShapeError(f"cross: wants size 3 along dim {dim}, got {tuple(input.shape)} and {tuple(other.shape)}")
    a, b = expand(input, shape), expand(other, shape)

    def turned(x, k):
        index = (slice(None),) * d
        return cat(d, basic_index(x, (*index, slice(k, 3))), basic_index(x, (*index, slice(0, k))))
    return turned(a, 1) * turned(b, 2) - turned(a, 2) * turned(b, 1)


def linalg_cross(input, other, *, dim=-1, out=None):
    """The vector product along `dim`, which has size 3; the other dimensions broadcast."""
    if input.ndim != other.ndim:
        raise ShapeError(f"cross: wants equally many dimensions, got {tuple(input.shape)} and {tuple(other.shape)}")
    result = crossed(input, other, dim)
    return result if out is None else into(result, out)


def cross(input, other, dim=None, *, out=None):
    """The vector product along `dim`, by default the first dimension of size 3."""
    if dim is None:
        shape = np.broadcast_shapes(tuple(input.shape), tuple(other.shape))
        if 3 not in shape:
            raise ShapeError(f"cross: wants a dimension of size 3, got {tuple(input.shape)} and {tuple(other.shape)}")
        dim = shape.index(3)
    return linalg_cross(input, other, dim=dim, out=out)


def bilinear(input1, input2, weight, bias=None):
    """input1 (..., I), weight (O, I, J), input2 (..., J), bias (O,) -> (..., O): sums over i and j of x_i w_oij z_j.

    Raises:
        ShapeError (ValueError, RuntimeError): sizes that do not fit.
    """
    if input1.shape[:-1] != input2.shape[:-1] or tuple(weight.shape[1:]) != (input1.shape[-1], input2.shape[-1]):
        shapes = [tuple(x.shape) for x in (input1, input2, weight)]
        raise ShapeError(f"bilinear: wants (..., I), (..., J) and (O, I, J), got {shapes}")
    result = einsum("...i,oij,...j->...o", input1, weight, input2)
    return result if bias is None else result + bias


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The p-norm of every difference of rows: x1 (..., P, M), x2 (..., R, M) -> (..., P, R)."""
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(f"cdist: wants (..., P, M) and (..., R, M), got {tuple(x1.shape)} and {tuple(x2.shape)}")
    if p < 0:
        raise ArgumentError(f"cdist: wants p >= 0, got {p}")
    a = reshape(x1, (*x1.shape[:-1], 1, x1.shape[-1]))
    b = reshape(x2, (*x2.shape[:-2], 1, *x2.shape[-2:]))
    return OPS["vector_norm"](a - b, p, -1, False)


def take_rows(x, index):
    """Rows of x (N, M) by number."""
    wide = expand(reshape(index, (index.shape[0], 1)), (index.shape[0], x.shape[1]))
    return OPS["gather"](x, 0, wide)


def pdist(input, p=2.0):
    """The p-norm of the difference of every two rows i < j of input (N, M), row by row: (N (N - 1) / 2,)."""
    if input.ndim != 2:
        raise ShapeError(f"pdist: wants (N, M), got {tuple(input.shape)}")
    first, second = np.triu_indices(input.shape[0], 1)
    rows = [take_rows(input, constant(i, input)) for i in (first, second)]
    return OPS["vector_norm"](rows[0] - rows[1], p, -1, False)


LINALG_FUNCTIONS = {"vector_norm": vector_norm, "matmul": matmul, "cross": linalg_cross, "vecdot": vecdot,
                    "multi_dot": multi_dot}
FUNCTIONS = ("matmul", "mm", "bmm", "mv", "dot", "vdot", "outer", "ger", "inner", "tensordot", "einsum", "addmm",
             "addmv", "baddbmm", "addbmm", "addr", "kron", "chain_matmul", "cross", "cdist",
             "set_float32_matmul_precision", "get_float32_matmul_precision")
METHODS = ("matmul", "mm", "bmm", "mv", "dot", "vdot", "outer", "ger", "inner", "addmm", "addmv", "baddbmm", "addbmm",
           "addr", "kron", "cross")
NN_FUNCTIONS = ("linear", "bilinear", "pdist")
INPLACE = ("addmm", "addmv", "baddbmm", "addbmm", "addr")
