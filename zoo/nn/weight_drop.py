"""Dropout for recurrent networks as in AWD-LSTM: of whole words, and of the weights between steps."""

from typing import Any

from zoo.nn import functional as F  # noqa: N812
from zoo.nn.linear import Embedding
from zoo.nn.module import Module
from zoo.nn.parameter import Parameter
from zoo.ops.errors import ArgumentError


def check_probability(name: str, p: float) -> None:
    """Raises unless p is a probability."""
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: wants a probability in [0, 1], got {p}")


class EmbeddingDropout(Module):
    """An embedding that forgets whole words: each row of the table is zero with probability p, else times 1 / (1 - p).

    One draw for a call: a word that is gone is gone wherever it occurs. In eval mode nothing is dropped.

    Args:
        embedding: an nn.Embedding.
        p: probability, in [0, 1].

    Shape: (*) integers -> (*, embedding_dim).

    Raises:
        ArgumentError (ValueError, RuntimeError): p outside of [0, 1].

    Example:
        >>> import zoo
        >>> words = zoo.nn.EmbeddingDropout(zoo.nn.Embedding(10, 3), p=0.1)
        >>> words(zoo.tensor([[1, 2, 1]])).shape
        (1, 3, 3)

    Source: Y. Gal and Z. Ghahramani, arXiv 1512.05287; S. Merity et al., arXiv 1708.02182.
    """

    def __init__(self, embedding: Embedding, p: float = 0.1):
        super().__init__()
        check_probability("EmbeddingDropout", p)
        self.embedding, self.p = embedding, p

    def forward(self, input):  # noqa: A002
        words, weight = self.embedding, self.embedding.weight
        if self.training and self.p:
            weight = weight * F.dropout(weight.new_ones(weight.shape[0], 1), self.p)
        return F.embedding(input, weight, words.padding_idx, words.max_norm, words.norm_type, words.scale_grad_by_freq)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class WeightDrop(Module):
    """A module of which some weights lose elements, once for a call: DropConnect, for LSTM's hidden-to-hidden weights.

    The parameters live on as weight_hh_l0_raw ...; the module inside sees the dropped ones.

    Args:
        module: any module, such as nn.LSTM.
        weights: names of its parameters; all weight_hh if left out.
        p: probability, in [0, 1].

    Raises:
        ArgumentError (ValueError, RuntimeError): p outside of [0, 1], or a name that is no parameter.

    Example:
        >>> import zoo
        >>> lstm = zoo.nn.WeightDrop(zoo.nn.LSTM(3, 4), p=0.5)
        >>> y, states = lstm(zoo.ones(5, 1, 3))
        >>> [name for name, _ in lstm.named_parameters() if "hh" in name]
        ['weight_hh_l0_raw', 'module.bias_hh_l0']

    Source: S. Merity, N. S. Keskar and R. Socher, arXiv 1708.02182.
    """

    def __init__(self, module: Module, weights: list[str] | None = None, p: float = 0.5):
        super().__init__()
        check_probability("WeightDrop", p)
        names = [n for n, _ in module.named_parameters(recurse=False)]
        self.weights = [n for n in names if n.startswith("weight_hh")] if weights is None else list(weights)
        missing = sorted(set(self.weights) - set(names))
        if missing or not self.weights:
            raise ArgumentError(f"WeightDrop: wants names of parameters {names}, got {missing or self.weights}")
        self.p, self.module = p, module
        for name in self.weights:
            self.register_parameter(f"{name}_raw", Parameter(getattr(module, name).detach()))
            delattr(module, name)

    def forward(self, *args: Any, **kwargs: Any):
        for name in self.weights:
            object.__setattr__(self.module, name, F.dropout(getattr(self, f"{name}_raw"), self.p, self.training))
        return self.module(*args, **kwargs)

    def extra_repr(self) -> str:
        return f"weights={self.weights}, p={self.p}"
