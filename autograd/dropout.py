"""Dropout, and attention with its dropout: masks are draws of the default generator, made again when needed."""
from zoo.autograd.creation import ones
from zoo.autograd.random import default_generator
from zoo.autograd.tensor import Tensor
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.face.attention import attend
from zoo.ops.random import dropout_mask


def check(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:  # noqa: A002
    """Zeroes each element with probability p and scales the rest by 1 / (1 - p); any shape, floating dtypes.

    Raises:
        ArgumentError: p outside of [0, 1].

    Source: N. Srivastava et al., JMLR 15, 2014.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.dropout(zoo.ones(3), 0.0)
        tensor([1., 1., 1.])
    """
    check("dropout", p)
    if not training or p == 0:
        return input
    out = dropout_mask(input, p, *default_generator.draw())
    return input.copy_(out) if inplace else out


def whole_channels(name: str, input: Tensor, p: float, training: bool, inplace: bool, dims: tuple) -> Tensor:  # noqa: A002
    check(name, p)
    if input.ndim not in dims:
        raise ShapeError(f"{name}: wants {' or '.join(map(str, dims))} dimensions, got shape {input.shape}")
    if not training or p == 0:
        return input
    batched = input.ndim == dims[-1]
    keep = input.shape[:2] if batched else input.shape[:1]
    mask = dropout_mask(
        ones(*keep, *[1] * (input.ndim - len(keep)), dtype=input.dtype, device=input.device),
        p,
        *default_generator.draw(),
    )
    return input.mul_(mask) if inplace else input * mask


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:  # noqa: A002
    """Zeroes whole channels of (N, C, L) or (C, L) with probability p."""
    return whole_channels("dropout1d", input, p, training, inplace, (2, 3))


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:  # noqa: A002
    """Zeroes whole channels of (N, C, H, W) with probability p (3 dimensions are taken as (N, C, L), as in torch)."""
    check("dropout2d", p)
    return feature_dropout(input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:  # noqa: A002
    """Zeroes whole channels of (N, C, D, H, W) with probability p."""
    check("dropout3d", p)
    return feature_dropout(input, p, training, inplace)


def feature_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:  # noqa: A002
    if training and 0 < p < 1 and input.ndim < 2:
        raise ShapeError(f"feature_dropout: wants at least 2 dimensions, got shape {input.shape}")
    return whole_channels("feature_dropout", input, p, training, inplace, (input.ndim,))


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:  # noqa: A002
    """Dropout that keeps mean and variance of SELU activations: a (x m + (1 - m) alpha') + b.

    Source: G. Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """
    check("alpha_dropout", p)
    return alpha(input, p, training, inplace, input.shape)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:  # noqa: A002
    """alpha_dropout of whole channels."""
    check("feature_alpha_dropout", p)
    if training and 0 < p < 1 and input.ndim < 2:
        raise ShapeError(f"feature_alpha_dropout: wants at least 2 dimensions, got shape {input.shape}")
    return alpha(input, p, training, inplace, (*input.shape[:2], *[1] * (input.ndim - 2)))


def alpha(input: Tensor, p: float, training: bool, inplace: bool, shape: tuple) -> Tensor:  # noqa: A002
    if not training or p == 0:
        return input
    if p == 1:
        out = input * 0
    else:
        negative = -1.7580993408473766  # -scale * alpha of SELU
        keep = dropout_mask(ones(*shape, dtype=input.dtype, device=input.device), p, *default_generator.draw()) * (
            1 - p
        )
        a = ((1 - p) * (1 + p * negative ** 2)) ** -0.5
        out = (input * keep + (1 - keep) * negative) * a - a * p * negative
    return input.copy_(out) if inplace else out


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:
    """`softmax(scale * query @ key^T + mask) @ value`, without ever holding the whole matrix of weights.

    Args:
        query: (*, L, E), floating. key: (*, S, E). value: (*, S, V). Leading dimensions, heads last, broadcast.
        attn_mask: broadcasts to (*, L, S): True where a row may see a key; or of the query's dtype, added.
        dropout_p: probability with which a weight is dropped, in [0, 1]; it always applies, as in torch.
        is_causal: row i sees the keys up to i; not together with attn_mask.
        scale: default 1 / sqrt(E).
        enable_gqa: the query may have a multiple of the key's and value's heads (third dimension from the end).

    Returns:
        (*, L, V). A row that sees no key is 0.

    Raises:
        ShapeError (ValueError, RuntimeError), DtypeError (TypeError): shapes or dtypes that do not fit together.
        ArgumentError (ValueError, RuntimeError): dropout_p outside of [0, 1], or both masks.

    Example:
        >>> import zoo
        >>> x = zoo.ones(1, 2, 3, 4)
        >>> zoo.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True).shape
        (1, 2, 3, 4)

    Source: A. Vaswani et al., arXiv 1706.03762; T. Dao et al., arXiv 2205.14135.
    """
    check("scaled_dot_product_attention", dropout_p)
    draw = default_generator.draw() if dropout_p else (0, 0)
    return attend(query, key, value, attn_mask, is_causal, scale, enable_gqa, dropout_p, *draw)


NN_FUNCTIONS = {
    f.__name__: f
    for f in (dropout, dropout1d, dropout2d, dropout3d, alpha_dropout, feature_alpha_dropout,
              scaled_dot_product_attention)
}
