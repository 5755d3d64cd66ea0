"""Activations as modules."""

from zoo.autograd.creation import full
from zoo.nn import functional as F  # noqa: N812
from zoo.nn.module import Module
from zoo.nn.parameter import Parameter
from zoo.ops.errors import ArgumentError, ShapeError


class InPlace(Module):
    """What those activations share that have nothing but `inplace`."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(InPlace):
    """max(0, x).

    Example:
        >>> import zoo
        >>> zoo.nn.ReLU()(zoo.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def forward(self, input):  # noqa: A002
        return input.relu_() if self.inplace else F.relu(input)


class ReLU6(InPlace):
    """min(max(0, x), 6)."""

    def forward(self, input):  # noqa: A002
        return F.relu6(input, self.inplace)


class RReLU(InPlace):
    """x where x >= 0, else a x: a from U(lower, upper) for each element in training, else their mean.

    Raises:
        ArgumentError (ValueError, RuntimeError): lower > upper.

    Source: B. Xu et al., arXiv 1505.00853.

    Example:
        >>> import zoo
        >>> zoo.nn.RReLU(0.25, 0.75).eval()(zoo.tensor([-1.0, 2.0]))
        tensor([-0.5000,  2.0000])
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False):
        super().__init__(inplace)
        if lower > upper:
            raise ArgumentError(f"RReLU: wants lower <= upper, got {lower} and {upper}")
        self.lower, self.upper = lower, upper

    def forward(self, input):  # noqa: A002
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class SELU(InPlace):
    """scale * (max(0, x) + min(0, alpha * (exp(x) - 1))) with the constants of Klambauer et al., 2017."""

    def forward(self, input):  # noqa: A002
        return F.selu(input, self.inplace)


class SiLU(InPlace):
    """x * sigmoid(x)."""

    def forward(self, input):  # noqa: A002
        return F.silu(input, self.inplace)


class Mish(InPlace):
    """x * tanh(softplus(x))."""

    def forward(self, input):  # noqa: A002
        return F.mish(input, self.inplace)


class Hardswish(InPlace):
    """x * relu6(x + 3) / 6."""

    def forward(self, input):  # noqa: A002
        return F.hardswish(input, self.inplace)


class Hardsigmoid(InPlace):
    """relu6(x + 3) / 6."""

    def forward(self, input):  # noqa: A002
        return F.hardsigmoid(input, self.inplace)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input):  # noqa: A002
        return F.sigmoid(input)


class Tanh(Module):
    """tanh(x)."""

    def forward(self, input):  # noqa: A002
        return F.tanh(input)


class LogSigmoid(Module):
    """log(sigmoid(x))."""

    def forward(self, input):  # noqa: A002
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input):  # noqa: A002
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input):  # noqa: A002
        return F.tanhshrink(input)


class GELU(Module):
    """x * Phi(x), the normal distribution function; approximate="tanh" for the tanh form (Hendrycks, Gimpel, 2016)."""

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input):  # noqa: A002
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class LeakyReLU(Module):
    """x where x > 0, else negative_slope * x."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input):  # noqa: A002
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """x where x > 0, else weight * x; weight (num_parameters,) is learned: one, or one per channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(full((num_parameters,), float(init), device=device, dtype=dtype))

    def forward(self, input):  # noqa: A002
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class ELU(Module):
    """x where x > 0, else alpha * (exp(x) - 1)."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input):  # noqa: A002
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(ELU):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""

    def forward(self, input):  # noqa: A002
        return F.celu(input, self.alpha, self.inplace)


class Hardtanh(Module):
    """x, held between min_val and max_val."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
        super().__init__()
        if min_val > max_val:
            raise ValueError(f"Hardtanh: wants min_val <= max_val, got {min_val} and {max_val}")
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input):  # noqa: A002
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class Threshold(Module):
    """x where x > threshold, else value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input):  # noqa: A002
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input):  # noqa: A002
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Hardshrink(Module):
    """x where |x| > lambd, else 0."""

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):  # noqa: A002
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(Hardshrink):
    """x moved towards 0 by lambd."""

    def forward(self, input):  # noqa: A002
        return F.softshrink(input, self.lambd)


class GLU(Module):
    """a * sigmoid(b), where a and b are the halves of x along `dim`."""

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input):  # noqa: A002
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(Module):
    """exp(x) / sum(exp(x)) along `dim`.

    Example:
        >>> import zoo
        >>> zoo.nn.Softmax(dim=1)(zoo.zeros(1, 2))
        tensor([[0.5000, 0.5000]])
    """

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def forward(self, input):  # noqa: A002
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """log(softmax(x)) along `dim`."""

    def forward(self, input):  # noqa: A002
        return F.log_softmax(input, self.dim)


class Softmin(Softmax):
    """softmax(-x) along `dim`."""

    def forward(self, input):  # noqa: A002
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input):  # noqa: A002
        if input.ndim not in (3, 4):
            raise ShapeError(f"Softmax2d: wants (N, C, H, W) or (C, H, W), got {tuple(input.shape)}")
        return F.softmax(input, -3)
