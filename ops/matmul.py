"""Matrix products: matmul with all its broadcasting, and linear with its gradients, each a product of its own shape."""
import math

import numpy as np

from zoo.ops.dtypes import HALVES, bool_, float32, float64
from zoo.ops.errors import ArgumentError, DtypeError, ShapeError
from zoo.ops.op import OPS, Spec, parameters_of, structured
from zoo.ops.reduce_cpu import COLUMN, add_up, ones
from zoo.ops.shape import permute, reshape, sum_to
from zoo.ops.threads import SINGLE, product

BLAS = frozenset({float32, float64})
LARGE = 1 << 18                          # numbers of a weight from which the product is cut for our own threads
MUCH = 1 << 24                           # multiplications of a gradient from which it is cut likewise


class Precision:
    """How the GPU multiplies float32: "highest" = ieee; "high", "medium" = tf32 on tensor cores (10-bit mantissa);
    "tf32x3" = three products of tf32 parts (21 bits or more), zoo's own word."""
    float32 = "highest"


def set_float32_matmul_precision(precision: str) -> None:
    """Chooses how the GPU multiplies float32 matrices: "highest" (float32 throughout) or "high", "medium" (tf32).

    The CPU always computes in float32. Beside torch's words there is "tf32x3": each product as three of tf32 parts, on
    tensor cores, about as exact as float32.

    Raises:
        ArgumentError (ValueError, RuntimeError): another word.

    Example:
        >>> import zoo
        >>> zoo.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium", "tf32x3"):
        raise ArgumentError("set_float32_matmul_precision: wants highest, high or medium, or tf32x3, "
                            f"got {precision!r}")
    Precision.float32 = precision


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` chose last; "highest" at the start."""
    return Precision.float32


def widen(*xs):
    """Halves as float32: NumPy's own half products are slow and round at every step."""
    return [x.astype(float32) if x.dtype in HALVES else x for x in xs]


def need_one_dtype(op: str, *xs) -> None:
    """Raises DtypeError unless all arrays have one dtype, and not bool."""
    dtypes = [x.dtype for x in xs if x is not None]
    if any(d != dtypes[0] for d in dtypes) or dtypes[0] == bool_:
        raise DtypeError(f"{op}: wants one dtype, not bool, got {', '.join(map(str, dtypes))}")


def transposed(x):
    """The last two dimensions swapped."""
    n = x.ndim
    return permute(x, (*range(n - 2), n - 1, n - 2))


def rows(x):
    """(..., K) -> (product of the others, K)."""
    return x if x.ndim == 2 else reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


@structured
class matmul:
    """Matrix product over the last two dimensions, broadcast over the others; 1-d: input is a row, other a column.

    (..., M, K) @ (..., K, N) -> (..., M, N); (K,) @ (K,) -> (). Floats accumulate in float32 or wider; ints wrap.

    Raises:
        ShapeError (ValueError, RuntimeError): 0-d input, K differs, or the batch dimensions do not broadcast.
        DtypeError (TypeError, RuntimeError): two dtypes, or bool.

    Example:
        >>> import zoo
        >>> zoo.matmul(zoo.ones(2, 3), zoo.ones(3, 4)).shape
        (2, 4)
    """
    dtypes = "floats ints"

    def check(input, other):
        a, b = input.shape, other.shape
        if not a or not b:
            raise ShapeError(f"matmul: wants arrays of at least 1 dimension, got {a} and {b}")
        if a[-1] != b[-2 if len(b) > 1 else 0]:
            raise ShapeError(f"matmul: wants (..., M, K) and (..., K, N), got {a} and {b}")
        need_one_dtype("matmul", input, other)
        try:
            batch = np.broadcast_shapes(a[:-2], b[:-2])
        except ValueError:
            raise ShapeError(f"matmul: batch dimensions do not broadcast: {a} and {b}") from None
        return Spec((*batch, *a[-2:-1], *(b[-1:] if len(b) > 1 else ())), input.dtype)

    def forward(input, other):
        dtype = input.dtype
        if dtype not in BLAS or other.dtype is not dtype:
            matmul.check(input, other)
            input, other = widen(input, other)
        try:
            if input.ndim == 2 == other.ndim:
                y = input.dot(other)                                # the same product, half a microsecond sooner
            elif other.ndim == 2 and input.ndim > 2 and input.size:   # one product, not one for each batch element
                y = (input.reshape(-1, input.shape[-1]) @ other).reshape(*input.shape[:-1], other.shape[1])
            else:
                y = input @ other
        except ValueError:
            matmul.check(input, other)
            raise
        return np.asarray(y).astype(dtype, copy=False)

    def dinput(dy, other, input_shape):
        if other.ndim == 1:
            return reshape(dy, (*dy.shape, 1)) * other
        if len(input_shape) == 1:
            return reshape(matmul(other, reshape(dy, (*dy.shape, 1))), other.shape[:-1])
        return matmul(dy, transposed(other))

    def dother(dy, input, other_shape):
        if input.ndim == 1:
            if len(other_shape) == 1:
                return input * dy
            return reshape(input, (*input.shape, 1)) * reshape(dy, (*dy.shape[:-1], 1, dy.shape[-1]))
        if len(other_shape) == 1:
            products = matmul(reshape(dy, (*dy.shape[:-1], 1, dy.shape[-1])), input)
            return reshape(products, (*dy.shape[:-1], input.shape[-1]))
        if len(other_shape) == 2:                                   # never the batch of products, to be summed later
            return matmul(transposed(rows(input)), rows(dy))
        return matmul(transposed(input), dy)

    def samples(rng):
        def draw(*shapes):
            return tuple(rng.normal(size=s) for s in shapes)
        big = np.array([[np.inf, 1.0, -2.0], [np.nan, 0.0, 3.0], [3e4, 1.0, 2.0], [1.0, 2.0, 3.0]])
        return {"ordinary": [draw((3, 4), (4, 5)), draw((2, 3, 4), (4, 5)), draw((3, 4), (2, 4, 5)), draw((4,), (4,)),
                             draw((2, 1, 3, 4), (5, 4, 2)), draw((4,), (2, 4, 3)), draw((2, 3, 4), (4,)),
                             draw((4,), (4, 3))],
                "empty": [draw((0, 4), (4, 5)), draw((3, 0), (0, 5)), draw((0, 3, 4), (4, 5)),
                          draw((2, 3, 0), (2, 0, 5))],
                "0-d": "a matrix product needs a dimension to sum over",
                "odd": [draw((7, 13), (13, 17)), draw((1, 67), (67, 3)), draw((3, 31, 33), (3, 33, 5))],
                "extreme": [(big, np.eye(3)), (big, np.zeros((3, 2)))]}


@structured
class multiply_add:
    """beta * input + alpha * (a @ b): a (..., M, K), b (..., K, N), input broadcasts to the product (..., M, N).

    Raises:
        ShapeError (ValueError, RuntimeError): a or b has fewer than 2 dimensions, K differs, or input does not fit.
        DtypeError (TypeError, RuntimeError): more than one dtype, or bool.

    Example:
        >>> import numpy as np
        >>> multiply_add(np.ones(3), np.ones((2, 4)), np.ones((4, 3)), 2.0, 0.5).tolist()
        [[4.0, 4.0, 4.0], [4.0, 4.0, 4.0]]
    """
    def check(input, a, b, beta, alpha):
        if min(a.ndim, b.ndim) < 2:
            raise ShapeError(f"multiply_add: wants matrices, got {a.shape} and {b.shape}")
        spec = matmul.check(a, b)
        need_one_dtype("multiply_add", input, a, b)
        try:
            fits = np.broadcast_shapes(input.shape, spec.shape) == spec.shape
        except ValueError:
            fits = False
        if not fits:
            raise ShapeError(f"multiply_add: wants input to broadcast to {spec.shape}, got {input.shape}")
        return spec

    def forward(input, a, b, beta, alpha):
        dtype = multiply_add.check(input, a, b, beta, alpha).dtype
        input, a, b = widen(input, a, b)
        y = matmul.forward(a, b)
        if alpha != 1:
            y *= alpha
        y += input if beta == 1 else input * beta
        return y.astype(dtype, copy=False)

    def dinput(dy, beta): return dy if beta == 1 else dy * beta

    def da(dy, b, alpha): return matmul(dy if alpha == 1 else dy * alpha, transposed(b))

    def db(dy, a, alpha): return matmul(transposed(a), dy if alpha == 1 else dy * alpha)

    def samples(rng):
        def draw(*shapes, beta=0.5, alpha=-2.0):
            return *(rng.normal(size=s) for s in shapes), beta, alpha
        return {"ordinary": [draw((3, 5), (3, 4), (4, 5)), draw((5,), (3, 4), (4, 5)), draw((3, 1), (3, 4), (4, 5)),
                             draw((2, 3, 5), (2, 3, 4), (2, 4, 5)), draw((3, 5), (2, 3, 4), (2, 4, 5)),
                             draw((3, 5), (3, 4), (4, 5), beta=1, alpha=1)],
                "empty": [draw((0, 5), (0, 4), (4, 5)), draw((3, 5), (3, 0), (0, 5))],
                "0-d": [draw((), (3, 4), (4, 5))],
                "odd": [draw((7, 17), (7, 13), (13, 17)), draw((3,), (1, 67), (67, 3))],
                "extreme": "as matmul"}


def by_input(dy, weight):
    """`linear_input_grad` in ops."""
    return matmul(dy, weight) if weight.ndim == 2 else reshape(dy, (*dy.shape, 1)) * weight


def by_weight(dy, input):
    """`linear_weight_grad` in ops."""
    if dy.ndim < input.ndim:                                    # the weight is 1-d
        return matmul(reshape(dy, (math.prod(dy.shape),)), rows(input))
    return matmul(transposed(rows(dy)), rows(input))


@structured
class linear_input_grad:
    """dy (..., N), weight (N, K) or (K,) -> dy @ weight (..., K)."""
    def check(dy, weight):
        if weight.ndim == 1:
            return Spec((*dy.shape, *weight.shape), dy.dtype)
        return Spec((*dy.shape[:-1], weight.shape[1]), dy.dtype)

    def forward(dy, weight):
        if dy.ndim == 2 == weight.ndim and dy.dtype in BLAS:
            return dy.dot(weight) if dy.size * weight.shape[1] < MUCH else product(dy, weight)
        return by_input(dy, weight)

    decompose = by_input

    def samples(rng):
        return {"ordinary": [(rng.normal(size=(3, 4)), rng.normal(size=(4, 5))),
                             (rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 5))),
                             (rng.normal(size=(2, 3)), rng.normal(size=5))],
                "empty": [(rng.normal(size=(0, 4)), rng.normal(size=(4, 5))),
                          (rng.normal(size=(3, 0)), rng.normal(size=(0, 5)))],
                "0-d": [(rng.normal(size=()), rng.normal(size=5))],
                "odd": [(rng.normal(size=(7, 13)), rng.normal(size=(13, 17)))],
                "extreme": "as matmul"}


@structured
class linear_weight_grad:
    """dy (..., N), input (..., K) -> the sum of their outer products (N, K); dy (...) -> (K,)."""
    def check(dy, input):
        return Spec((*(dy.shape[-1:] if dy.ndim == input.ndim else ()), input.shape[-1]), dy.dtype)

    def forward(dy, input):
        if dy.ndim == 2 == input.ndim and dy.dtype in BLAS:
            return dy.T.dot(input) if dy.size * input.shape[1] < MUCH else product(dy.T, input)
        return by_weight(dy, input)

    decompose = by_weight

    def samples(rng):
        return {"ordinary": [(rng.normal(size=(3, 4)), rng.normal(size=(3, 5))),
                             (rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 5))),
                             (rng.normal(size=4), rng.normal(size=5)),
                             (rng.normal(size=(2, 3)), rng.normal(size=(2, 3, 5)))],
                "empty": [(rng.normal(size=(0, 4)), rng.normal(size=(0, 5))),
                          (rng.normal(size=(3, 0)), rng.normal(size=(3, 5)))],
                "0-d": [(rng.normal(size=()), rng.normal(size=5))],
                "odd": [(rng.normal(size=(67, 7)), rng.normal(size=(67, 3)))],
                "extreme": "as matmul"}


@structured
class linear_bias_grad:
    """dy (..., N) -> its sum over all other dimensions (N,)."""
    def check(dy): return Spec(dy.shape[-1:], dy.dtype)

    def forward(dy):
        if dy.ndim == 2 and dy.dtype in BLAS:                   # a matrix-vector product sums faster than add.reduce
            if len(dy) <= COLUMN:
                return ones(len(dy), dy.dtype).dot(dy)
            with SINGLE:                                        # as fast, and no thread of BLAS spins after it
                return add_up(dy, (0,))
        return sum_to(dy, dy.shape[-1:])

    def decompose(dy): return sum_to(dy, dy.shape[-1:])

    def samples(rng):
        return {"ordinary": [(rng.normal(size=(3, 4)),), (rng.normal(size=(2, 3, 4)),), (rng.normal(size=4),)],
                "empty": [(rng.normal(size=(0, 4)),)], "0-d": [(rng.normal(size=()),)],
                "odd": [(rng.normal(size=(67, 7)),)], "extreme": "as sum"}


@structured
class linear:
    """input @ weight.T + bias: input (..., K), weight (N, K) or (K,), bias (N,) or None -> (..., N) or (...).

    Raises:
        ShapeError (ValueError, RuntimeError): the widths K or N differ.
        DtypeError (TypeError, RuntimeError): more than one dtype, or bool.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.linear(zoo.ones(2, 3), zoo.ones(4, 3), zoo.zeros(4)).shape
        (2, 4)
    """
    dtypes = "floats ints"

    def check(input, weight, bias=None):
        shapes = f"{input.shape}, weight: {weight.shape}, bias: {None if bias is None else bias.shape}"
        if not input.ndim or weight.ndim not in (1, 2) or input.shape[-1] != weight.shape[-1]:
            raise ShapeError(f"linear: wants input (..., K) and weight (N, K) or (K,), got input: {shapes}")
        need_one_dtype("linear", input, weight, bias)
        shape = (*input.shape[:-1], *weight.shape[:-1])
        if bias is not None:
            try:
                fits = np.broadcast_shapes(bias.shape, shape) == shape
            except ValueError:
                fits = False
            if not fits:
                raise ShapeError(f"linear: wants bias {weight.shape[:-1]}, got input: {shapes}")
        return Spec(shape, input.dtype)

    def forward(input, weight, bias=None):
        dtype = input.dtype
        if dtype not in BLAS or weight.dtype is not dtype or weight.ndim != 2 \
                or bias is not None and bias.dtype is not dtype:
            linear.check(input, weight, bias)
            input, weight, *rest = widen(input, weight, *(() if bias is None else (bias,)))
            bias = rest[0] if rest else None
        try:
            if input.ndim == 2:
                y = input.dot(weight.T) if weight.size < LARGE or weight.ndim != 2 else product(input, weight.T)
            elif input.ndim > 2 and input.size:
                y = (input.reshape(-1, input.shape[-1]) @ weight.T).reshape(*input.shape[:-1], *weight.shape[:-1])
            else:
                y = input @ weight.T
            if bias is not None:
                y += bias
        except ValueError:
            linear.check(input, weight, bias)
            raise
        return y if type(y) is np.ndarray and y.dtype is dtype else np.asarray(y, dtype)

    dinput = linear_input_grad
    dweight = linear_weight_grad
    dbias = linear_bias_grad

    def samples(rng):
        def draw(*shapes):
            return tuple(s and rng.normal(size=s) for s in shapes)
        big = np.array([[np.inf, 1.0, -2.0], [np.nan, 0.0, 3.0], [3e4, 1.0, 2.0], [1.0, 2.0, 3.0]])
        return {"ordinary": [draw((2, 3), (4, 3), (4,)), draw((2, 5, 3), (4, 3), (4,)), draw((3,), (4, 3), None),
                             draw((2, 3), (3,), (1,)), draw((2, 3), (4, 3), (1,))],
                "empty": [draw((0, 3), (4, 3), (4,)), draw((2, 0), (4, 0), (4,)), draw((2, 3), (0, 3), (0,))],
                "0-d": "a matrix product needs a dimension to sum over",
                "odd": [draw((7, 67), (13, 67), (13,)), draw((1, 33), (17, 33), None)],
                "extreme": [(big, np.eye(3), np.zeros(3))]}


@structured
class linear_act:
    """act(linear(input, weight, bias)), act the name of an elementwise op of one array, such as "relu".

    What `zoo.nn` runs on a GPU under no_grad: one kernel. Raises what `linear` raises.

    Example:
        >>> import numpy as np
        >>> linear_act(np.ones((2, 3)), -np.ones((4, 3)), None, "relu").sum()
        np.float64(0.0)
    """
    differentiable = "input", "weight", "bias"

    def check(input, weight, bias, act): return linear.check(input, weight, bias)

    def forward(input, weight, bias, act): return OPS[act].forward(linear.forward(input, weight, bias))

    def backward(dy, input, weight, bias, act, wanted):
        x = linear(input, weight, bias)
        slope = OPS[act].derivatives["x"]
        known = {"dy": dy, "x": x, "y": OPS[act](x) if "y" in parameters_of(slope) else None}
        dx = slope(*(known[name] for name in parameters_of(slope)))
        return (linear_input_grad(dx, weight) if wanted[0] else None,
                linear_weight_grad(dx, input) if wanted[1] else None, linear_bias_grad(dx) if wanted[2] else None)

    def samples(rng):
        def draw(act, *shapes):
            return *(s and rng.normal(size=s) for s in shapes), act
        return {"ordinary": [draw("tanh", (2, 3), (4, 3), (4,)), draw("gelu", (2, 5, 3), (4, 3), (4,)),
                             draw("silu", (3,), (4, 3), None), draw("sigmoid", (2, 3), (4, 3), (4,))],
                "empty": [draw("tanh", (0, 3), (4, 3), (4,)), draw("gelu", (2, 0), (4, 0), (4,))],
                "0-d": "a matrix product needs a dimension to sum over",
                "odd": [draw("gelu_tanh", (7, 67), (13, 67), (13,))],
                "extreme": "as linear"}
