"""torch.nn.functional's activation functions. `inplace=True` writes the result into the input's memory."""
from zoo.ops import activation as ops
from zoo.ops.errors import ArgumentError, DimError, ShapeError
from zoo.ops.face.split import chunk
from zoo.ops.pointwise import mul
from zoo.ops.shape import reshape
from zoo.ops.transcendental import sigmoid


def applied(op, input, inplace, *options):
    """op(input, *options), in place if wanted."""
    return getattr(input, f"{op.name}_")(*options) if inplace else op(input, *options)


def relu(input, inplace=False):
    """max(x, 0).

    Example:
        >>> import zoo
        >>> zoo.relu(zoo.tensor([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """
    return input.relu_() if inplace else ops.relu(input)


def relu6(input, inplace=False):
    """min(max(x, 0), 6).

    Example:
        >>> import zoo
        >>> zoo.nn.functional.relu6(zoo.tensor([-1.0, 8.0])).tolist()
        [0.0, 6.0]
    """
    return applied(ops.hardtanh, input, inplace, 0.0, 6.0)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x where x > 0, else negative_slope * x.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.leaky_relu(zoo.tensor([-1.0, 2.0]), 0.5).tolist()
        [-0.5, 2.0]
    """
    return applied(ops.leaky_relu, input, inplace, negative_slope)


def elu(input, alpha=1.0, inplace=False):
    """x where x > 0, else alpha (exp(x) - 1) (Clevert et al. 2015).

    Example:
        >>> import zoo
        >>> zoo.nn.functional.elu(zoo.tensor([0.0, 2.0])).tolist()
        [0.0, 2.0]
    """
    return applied(ops.elu, input, inplace, alpha)


def selu(input, inplace=False):
    """1.0507 elu(x, 1.6733) (Klambauer et al. 2017).

    Example:
        >>> import zoo
        >>> round(zoo.selu(zoo.tensor([1.0])).item(), 4)
        1.0507
    """
    return applied(ops.selu, input, inplace)


def celu(input, alpha=1.0, inplace=False):
    """max(x, 0) + min(0, alpha (exp(x / alpha) - 1)) (Barron 2017).

    Raises:
        ArgumentError: alpha is 0.

    Example:
        >>> import zoo
        >>> zoo.celu(zoo.tensor([0.0, 2.0])).tolist()
        [0.0, 2.0]
    """
    if alpha == 0:
        raise ArgumentError("celu: wants alpha != 0, got ZeroDivisionError with 0")
    return applied(ops.celu, input, inplace, alpha)


def gelu(input, approximate="none"):
    """x Phi(x), Phi the normal distribution's cdf; approximate="tanh" computes it by tanh (Hendrycks and Gimpel 2016).

    Raises:
        ArgumentError: another approximation.

    Example:
        >>> import zoo
        >>> round(zoo.nn.functional.gelu(zoo.tensor([1.0])).item(), 4)
        0.8413
    """
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"gelu: approximate argument must be either none or tanh, got {approximate!r}")
    return ops.gelu(input) if approximate == "none" else ops.gelu_tanh(input)


def silu(input, inplace=False):
    """x sigmoid(x).

    Example:
        >>> import zoo
        >>> zoo.nn.functional.silu(zoo.tensor([0.0])).item()
        0.0
    """
    return applied(ops.silu, input, inplace)


def mish(input, inplace=False):
    """x tanh(softplus(x)) (Misra 2019).

    Example:
        >>> import zoo
        >>> zoo.nn.functional.mish(zoo.tensor([0.0])).item()
        0.0
    """
    return applied(ops.mish, input, inplace)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """min(max(x, min_val), max_val).

    Raises:
        ArgumentError: min_val > max_val, or a negative bound for unsigned integers.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.hardtanh(zoo.tensor([-3.0, 0.5])).tolist()
        [-1.0, 0.5]
    """
    if min_val > max_val:
        raise ArgumentError(f"hardtanh: wants min_val <= max_val, got {min_val} and {max_val}")
    if input.dtype.kind == "u" and min_val < 0:
        raise ArgumentError(f"hardtanh: wants bounds >= 0 for {input.dtype}, got {min_val}")
    return applied(ops.hardtanh, input, inplace, min_val, max_val)


def hardswish(input, inplace=False):
    """x min(max(x + 3, 0), 6) / 6 (Howard et al. 2019).

    Example:
        >>> import zoo
        >>> zoo.nn.functional.hardswish(zoo.tensor([-4.0, 3.0])).tolist()
        [-0.0, 3.0]
    """
    return applied(ops.hardswish, input, inplace)


def hardsigmoid(input, inplace=False):
    """min(max(x + 3, 0), 6) / 6.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.hardsigmoid(zoo.tensor([-4.0, 0.0])).tolist()
        [0.0, 0.5]
    """
    return applied(ops.hardsigmoid, input, inplace)


def softplus(input, beta=1.0, threshold=20.0):
    """log(1 + exp(beta x)) / beta; x itself where beta x > threshold.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.softplus(zoo.tensor([30.0])).item()
        30.0
    """
    return ops.softplus(input, beta, threshold)


def softsign(input):
    """x / (1 + |x|).

    Example:
        >>> import zoo
        >>> zoo.nn.functional.softsign(zoo.tensor([-1.0])).item()
        -0.5
    """
    return ops.softsign(input if input.dtype.kind not in "iub" else mul(input, 1.0))


def softshrink(input, lambd=0.5):
    """x moved towards 0 by lambd, and 0 within.

    Raises:
        ArgumentError: lambd is negative.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.softshrink(zoo.tensor([-1.0, 0.2])).tolist()
        [-0.5, 0.0]
    """
    if lambd < 0:
        raise ArgumentError(f"softshrink: lambda must be greater or equal to 0, but found to be {lambd}")
    return ops.softshrink(input, lambd)


def hardshrink(input, lambd=0.5):
    """0 where |x| <= lambd, else x.

    Example:
        >>> import zoo
        >>> zoo.hardshrink(zoo.tensor([-1.0, 0.2])).tolist()
        [-1.0, 0.0]
    """
    return ops.hardshrink(input, lambd)


def tanhshrink(input):
    """x - tanh(x).

    Example:
        >>> import zoo
        >>> zoo.nn.functional.tanhshrink(zoo.tensor([0.0])).item()
        0.0
    """
    return ops.tanhshrink(input if input.dtype.kind not in "iub" else mul(input, 1.0))


def threshold(input, threshold, value, inplace=False):
    """x where x > threshold, else value.

    Example:
        >>> import zoo
        >>> zoo.threshold(zoo.tensor([0.0, 2.0]), 1.0, 7.0).tolist()
        [7.0, 2.0]
    """
    return applied(ops.threshold, input, inplace, threshold, value)


def logsigmoid(input):
    """log(sigmoid(x)), without overflow.

    Example:
        >>> import zoo
        >>> round(zoo.nn.functional.logsigmoid(zoo.tensor([0.0])).item(), 4)
        -0.6931
    """
    return ops.logsigmoid(input)


def prelu(input, weight):
    """x where x > 0, else weight * x; one weight, or one for each channel, x being (N, C, ...).

    Raises:
        ShapeError: another number of weights.

    Example:
        >>> import zoo
        >>> zoo.prelu(zoo.tensor([[-1.0, -1.0]]), zoo.tensor([0.5, 2.0])).tolist()
        [[-0.5, -2.0]]
    """
    if input.dtype != weight.dtype:
        raise ArgumentError(f"prelu: wants one dtype, got {input.dtype} and {weight.dtype}")
    if len(weight.shape) > 1:
        raise ShapeError(f"prelu: wants weight as 0-d or (C,), got {tuple(weight.shape)}")
    count = weight.shape[0] if len(weight.shape) else 1
    channels = input.shape[1] if len(input.shape) > 1 else 1
    if count == 1:
        return ops.prelu(input, reshape(weight, (1,) * len(input.shape)))
    if not len(input.shape):
        raise ShapeError(f"prelu: not allow zero-dim input tensor for {count} weights")
    if count != channels:
        raise ShapeError(f"prelu: Mismatch of parameter numbers and input channel size: wants 1 or {channels} weights "
                         f"for input {tuple(input.shape)}, got {count}")
    return ops.prelu(input, reshape(weight, (1, count) + (1,) * (len(input.shape) - 2)))


def glu(input, dim=-1):
    """a sigmoid(b), where a and b are the halves of x along dim (Dauphin et al. 2016).

    Raises:
        ShapeError: an odd size, or a 0-d input.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.glu(zoo.tensor([2.0, 0.0])).tolist()
        [1.0]
    """
    rank = len(input.shape)
    if not rank:
        raise ShapeError("glu: glu does not support 0-dimensional tensors")
    if not -rank <= dim < rank:
        raise DimError(f"glu: wants dim in [{-rank}, {rank - 1}], got {dim}")
    if input.shape[dim] % 2:
        raise ShapeError(f"glu: wants an even size along dim {dim}, got {tuple(input.shape)}")
    a, b = chunk(input, 2, dim)
    return mul(a, sigmoid(b))


FUNCTIONS = ("relu", "selu", "celu", "hardshrink", "threshold", "prelu")
METHODS = ("relu", "hardshrink", "prelu")
NN_FUNCTIONS = ("relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "hardtanh", "hardswish",
                "hardsigmoid", "softplus", "softsign", "softshrink", "hardshrink", "tanhshrink", "threshold",
                "logsigmoid", "prelu", "glu")
INPLACE = ("relu", "leaky_relu", "elu", "selu", "celu", "silu", "mish", "hardtanh", "hardswish", "hardsigmoid",
           "threshold")
