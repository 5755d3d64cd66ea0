"""Linear layers, embedding, and what only changes the shape."""

import math
from typing import Any

from zoo.autograd.creation import empty
from zoo.autograd.mode import no_grad
from zoo.nn import functional as F  # noqa: N812
from zoo.nn import init
from zoo.nn.module import Module
from zoo.nn.parameter import Parameter
from zoo.ops.errors import ArgumentError


class Identity(Module):
    """Hands its input on; takes and ignores any arguments."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def forward(self, input):  # noqa: A002
        return input


class Linear(Module):
    r"""`y = x @ weight.T + bias`.

    Shape: (*, in_features) -> (*, out_features). weight (out_features, in_features), bias (out_features), both
    from U(-1/sqrt(in_features), 1/sqrt(in_features)).

    Example:
        >>> import zoo
        >>> zoo.nn.Linear(20, 30)(zoo.ones(128, 20)).shape
        (128, 30)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(empty((out_features, in_features), device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = self.in_features
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input):  # noqa: A002
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    r"""`y_k = x1 @ weight_k @ x2.T + bias_k`.

    Shape: (*, in1_features), (*, in2_features) -> (*, out_features); weight (out, in1, in2).

    Example:
        >>> import zoo
        >>> zoo.nn.Bilinear(2, 3, 4)(zoo.ones(5, 2), zoo.ones(5, 3)).shape
        (5, 4)
    """

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device=None, dtype=None
    ):
        super().__init__()
        if in1_features <= 0:
            raise ArgumentError(f"Bilinear: wants in1_features > 0, got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1, input2):
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


def row_options(table) -> str:
    """How the rows of an Embedding or EmbeddingBag are used, where it is not the default, for its repr."""
    text = "" if table.max_norm is None else f", max_norm={table.max_norm}"
    text += "" if table.norm_type == 2 else f", norm_type={table.norm_type}"
    return text + ("" if not table.scale_grad_by_freq else f", scale_grad_by_freq={table.scale_grad_by_freq}")


class Embedding(Module):
    r"""Rows of a table by their numbers: `y = weight[input]`.

    Shape: (*) integers -> (*, embedding_dim); weight (num_embeddings, embedding_dim) from N(0, 1). The row
    `padding_idx` is zero at the start and gets no gradient.

    Example:
        >>> import zoo
        >>> zoo.nn.Embedding(10, 3)(zoo.tensor([[1, 2], [4, 5]])).shape
        (2, 2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight=None,
        _freeze: bool = False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(
                    f"Embedding: wants padding_idx in [{-num_embeddings}, {num_embeddings - 1}], got {padding_idx}"
                )
            padding_idx %= num_embeddings
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        if _weight is None:
            self.weight = Parameter(empty((num_embeddings, embedding_dim), device=device, dtype=dtype), not _freeze)
            self.reset_parameters()
        elif tuple(_weight.shape) != (num_embeddings, embedding_dim):
            raise ValueError(
                f"Embedding: wants a weight of shape {(num_embeddings, embedding_dim)}, got {tuple(_weight.shape)}"
            )
        else:
            self.weight = Parameter(_weight, not _freeze)

    def reset_parameters(self) -> None:
        """Draws new rows."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input):  # noqa: A002
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        text += "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return text + row_options(self) + (", sparse=True" if self.sparse else "")

    @classmethod
    def from_pretrained(
        cls,
        embeddings,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> "Embedding":
        """An Embedding on given rows, which do not train unless freeze=False."""
        if embeddings.ndim != 2:
            raise ValueError(f"from_pretrained: wants (num_embeddings, embedding_dim), got {tuple(embeddings.shape)}")
        rows, columns = embeddings.shape
        return cls(rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)


class EmbeddingBag(Module):
    r"""The sum, mean or maximum of the rows of a table that each bag of numbers names; see F.embedding_bag.

    Shape: (B, n) integers, or (N,) with offsets (B,) -> (B, embedding_dim); weight (num_embeddings, embedding_dim) from
    N(0, 1). The row `padding_idx` is zero at the start and does not count.

    Example:
        >>> import zoo
        >>> zoo.nn.EmbeddingBag(10, 3)(zoo.tensor([1, 2, 4, 5]), zoo.tensor([0, 3])).shape
        (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight=None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device=None,
        dtype=None,
    ):
        super().__init__()
        rows = Embedding(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                         _weight, device=device, dtype=dtype)
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, rows.padding_idx
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset
        self.weight = rows.weight

    def forward(self, input, offsets=None, per_sample_weights=None):  # noqa: A002
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}{row_options(self)}, mode={self.mode!r}"
        return text + ("" if self.padding_idx is None else f", padding_idx={self.padding_idx}")


class Flatten(Module):
    """Joins the dimensions from start_dim to end_dim.

    Example:
        >>> import zoo
        >>> zoo.nn.Flatten()(zoo.ones(2, 3, 4)).shape
        (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input):  # noqa: A002
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits the dimension `dim` into `unflattened_size`.

    Example:
        >>> import zoo
        >>> zoo.nn.Unflatten(1, (3, 4))(zoo.ones(2, 12)).shape
        (2, 3, 4)
    """

    def __init__(self, dim: int, unflattened_size: tuple[int, ...]):
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)) or not all(isinstance(n, int) for n in unflattened_size):
            raise TypeError(f"Unflatten: wants a tuple of ints as unflattened_size, got {unflattened_size!r}")
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input):  # noqa: A002
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
