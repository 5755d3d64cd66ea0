"""Activations that draw random numbers: randomized leaky ReLU and the Gumbel softmax."""
from zoo.autograd.random import default_generator
from zoo.autograd.tensor import Tensor, wrap
from zoo.ops.errors import ArgumentError
from zoo.ops.op import OPS


def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False  # noqa: A002
) -> Tensor:
    """x where x >= 0, else a x: a from U(lower, upper) for each element in training, else (lower + upper) / 2.

    Raises:
        ArgumentError (ValueError, RuntimeError): lower > upper.

    Source: B. Xu et al., arXiv 1505.00853.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.rrelu(zoo.tensor([-1.0, 2.0]), 0.5, 0.5)
        tensor([-0.5000,  2.0000])
    """
    if lower > upper:
        raise ArgumentError(f"rrelu: Lower bound should be less than or equal to the upper bound, got {lower}, {upper}")
    if training:
        slope = wrap(input.array).clone().uniform_(lower, upper)
        out = OPS["where"](OPS["gt"](input, 0), input, input * slope)
    else:
        out = OPS["leaky_relu"](input, (lower + upper) / 2)
    return input.copy_(out) if inplace else out


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """softmax((logits + g) / tau) along dim with g from the Gumbel distribution; `hard` gives a one-hot sample of it.

    A hard sample's gradient is that of the soft one (straight through). eps has no effect, as in torch.

    Source: E. Jang, S. Gu and B. Poole, arXiv 1611.01144.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.gumbel_softmax(zoo.tensor([[0.0, 100.0]]), hard=True)
        tensor([[0., 1.]])
    """
    noise = wrap(logits.array).clone().exponential_(generator=default_generator).log().neg()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    one_hot = OPS["scatter"](soft.detach() * 0, dim, soft.detach().argmax(dim, keepdim=True), 1.0)
    return one_hot - soft.detach() + soft


NN_FUNCTIONS = {f.__name__: f for f in (rrelu, gumbel_softmax)}
