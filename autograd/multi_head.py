"""torch.nn.functional.multi_head_attention_forward, which nn.MultiheadAttention calls with its weights."""
from zoo.autograd.creation import zeros
from zoo.autograd.dropout import dropout, scaled_dot_product_attention
from zoo.autograd.tensor import Tensor
from zoo.ops.errors import ArgumentError, DtypeError, ShapeError
from zoo.ops.face.join import cat, pad
from zoo.ops.matmul import linear

NAME = "multi_head_attention_forward"


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True,
    key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    r"""Attention in `num_heads` subspaces: `concat(head_1 ... head_h) W_o`, `head_i = attention(q W_q, k W_k, v W_v)`.

    Args:
        query, key, value: (L, N, E), (S, N, kdim) and (S, N, vdim), or all without N; one floating dtype.
        embed_dim_to_check, num_heads: E, and the number of heads, which divides it.
        in_proj_weight: the three projections (3E, E); with use_separate_proj_weight they are q_proj_weight (E, E),
            k_proj_weight (E, kdim) and v_proj_weight (E, vdim) instead.
        in_proj_bias: (3E,) or None.
        bias_k, bias_v: one more key and value (1, 1, E), after the others, or None.
        add_zero_attn: one more of zeros.
        dropout_p, training: the probability with which a weight is dropped, in [0, 1], if training.
        out_proj_weight, out_proj_bias: (E, E), and (E,) or None.
        key_padding_mask: (N, S), bool, True hides a key; or floating, added. attn_mask: the same for pairs, (L, S) or
            (N * num_heads, L, S); is_causal says that it is the causal one.
        need_weights, average_attn_weights: whether to give the weights, and their mean over the heads.
        static_k, static_v: keys and values of the heads (N * num_heads, S, E / num_heads) in place of the projected.

    Returns:
        Output as query, and the weights (N, L, S) or (N, num_heads, L, S), or None.

    Raises:
        ArgumentError (ValueError), ShapeError (ValueError): sizes that do not fit together; is_causal without a mask.
        DtypeError (TypeError): a mask that is neither bool nor floating.

    Example:
        >>> import zoo
        >>> x, eye = zoo.ones(5, 3, 2), zoo.eye(2)
        >>> y, weights = zoo.nn.functional.multi_head_attention_forward(
        ...     x, x, x, 2, 1, zoo.cat([eye] * 3), None, None, None, False, 0.0, eye, None)
        >>> y.shape, weights.shape
        ((5, 3, 2), (3, 5, 5))

    Source: A. Vaswani et al., "Attention is all you need", arXiv 1706.03762, section 3.2.2.
    """
    if is_causal and attn_mask is None:
        raise ArgumentError(f"{NAME}: wants attn_mask with is_causal, which only says what it is")
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight
    batched = check(query, key, value, embed_dim_to_check, num_heads, weights)
    q, k, v = (heads(x, num_heads) for x in with_extra(
        *projected(*batch_first(query, key, value, batched), weights, in_proj_bias), bias_k, bias_v, add_zero_attn))
    k, v = (x if static is None else given(static, x) for x, static in ((k, static_k), (v, static_v)))
    if key_padding_mask is not None and not batched:
        key_padding_mask = key_padding_mask.unsqueeze(0)
    steps = key.shape[0] if static_k is None else static_k.shape[1]
    bias = bias_of(q, steps, k.shape[2], key_padding_mask, attn_mask)
    y, scores = attended(q, k, v, bias, dropout_p if training else 0.0, need_weights, average_attn_weights)
    y = linear(y.transpose(1, 2).flatten(2), out_proj_weight, out_proj_bias)
    if batched:
        return y.transpose(0, 1), scores
    return y.squeeze(0), None if scores is None else scores.squeeze(0)


def check(query: Tensor, key: Tensor, value: Tensor, width: int, num_heads: int, weights) -> bool:
    """Whether there is a batch; raises unless the inputs fit together."""
    if width <= 0 or num_heads <= 0 or width % num_heads:
        raise ArgumentError(f"{NAME}: wants embed_dim divisible by num_heads, both above 0, got {width} and "
                            f"{num_heads}")
    shapes = [tuple(x.shape) for x in (query, key, value)]
    widths = [w.shape[1] for w in weights] if isinstance(weights, tuple) else [width] * 3
    batched = query.ndim == 3
    ok = query.ndim in (2, 3) and key.ndim == value.ndim == query.ndim and shapes[1][:-1] == shapes[2][:-1]
    if batched and ok:
        ok = shapes[0][1] == shapes[1][1]
    if not ok or [s[-1] for s in shapes] != widths:
        raise ShapeError(f"{NAME}: wants query (L, N, {widths[0]}), key (S, N, {widths[1]}) and value "
                         f"(S, N, {widths[2]}), got {', '.join(map(str, shapes))}")
    return batched


def batch_first(query: Tensor, key: Tensor, value: Tensor, batched: bool) -> tuple[Tensor, Tensor, Tensor]:
    """(N, L, E) of each; what is one tensor stays one, so that one product projects it."""
    q = query.transpose(0, 1) if batched else query.unsqueeze(0)
    k = q if key is query else key.transpose(0, 1) if batched else key.unsqueeze(0)
    v = k if value is key else value.transpose(0, 1) if batched else value.unsqueeze(0)
    return q, k, v


def projected(query: Tensor, key: Tensor, value: Tensor, weights, bias: Tensor | None) -> tuple[Tensor, ...]:
    """Query, key and value in the subspaces of all heads, (N, L, E)."""
    if not isinstance(weights, tuple):
        if query is key is value:
            return linear(query, weights, bias).chunk(3, 2)
        weights = weights.chunk(3)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple(linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))


def with_extra(q: Tensor, k: Tensor, v: Tensor, bias_k, bias_v, zero: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Keys and values with the learned one and the zeros after them."""
    if bias_k is not None:
        k, v = (cat([x, b.expand(x.shape[0], 1, x.shape[2])], 1) for x, b in ((k, bias_k), (v, bias_v)))
    if zero:
        k, v = (pad(x, (0, 0, 0, 1)) for x in (k, v))
    return q, k, v


def heads(x: Tensor, count: int) -> Tensor:
    """(N, L, E) as (N, count, L, E / count)."""
    return x.reshape(*x.shape[:2], count, x.shape[2] // count).transpose(1, 2)


def given(static: Tensor, like: Tensor) -> Tensor:
    """Keys or values of all heads (N * heads, S, D) as (N, heads, S, D), where `like` would be."""
    batch, count, _, width = like.shape
    if static.ndim != 3 or static.shape[0] != batch * count or static.shape[2] != width:
        raise ShapeError(f"{NAME}: wants static_k and static_v ({batch * count}, S, {width}), got "
                         f"{tuple(static.shape)}")
    return static.reshape(batch, count, static.shape[1], width)


def attended(q, k, v, bias: Tensor | None, p: float, need_weights: bool, average: bool) -> tuple[Tensor, Tensor | None]:
    """What the heads read (N, heads, L, D), and the weights they read with, if those are needed."""
    if not need_weights:
        return scaled_dot_product_attention(q, k, v, bias, p), None
    scores = (q * q.shape[3] ** -0.5) @ k.transpose(2, 3)
    weights = dropout((scores if bias is None else scores + bias).softmax(3), p)
    return weights @ v, weights.mean(1) if average else weights


def added(mask: Tensor | None, like: Tensor, name: str) -> Tensor | None:
    """A mask as what is added to the scores: True hides, a floating one is added as it is."""
    if mask is None or mask.dtype == like.dtype:
        return mask
    if mask.is_floating_point():
        return mask.to(like.dtype)
    if str(mask.dtype) != "bool":
        raise DtypeError(f"{NAME}: wants {name} bool or floating, got {mask.dtype}")
    return zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill(mask, float("-inf"))


def bias_of(q: Tensor, steps: int, keys: int, padding: Tensor | None, attn_mask: Tensor | None) -> Tensor | None:
    """What is added to the scores (N, heads, L, keys): both masks of the `steps` keys that were given, and 0 for those
    that are added here; None without masks."""
    batch, count, length = q.shape[:3]
    padding, attn_mask = added(padding, q, "key_padding_mask"), added(attn_mask, q, "attn_mask")
    if attn_mask is not None:
        wanted = (length, steps) if attn_mask.ndim == 2 else (batch * count, length, steps)
        if tuple(attn_mask.shape) != wanted:
            raise ShapeError(f"{NAME}: wants attn_mask {wanted}, got {tuple(attn_mask.shape)}")
        attn_mask = attn_mask.reshape(-1, 1 if attn_mask.ndim == 2 else count, length, steps)
    if padding is not None:
        if tuple(padding.shape) != (batch, steps):
            raise ShapeError(f"{NAME}: wants key_padding_mask {(batch, steps)}, got {tuple(padding.shape)}")
        padding = padding.reshape(batch, 1, 1, steps)
    bias = attn_mask if padding is None else padding if attn_mask is None else attn_mask + padding
    return pad(bias, (0, keys - steps)) if bias is not None and keys > steps else bias


NN_FUNCTIONS = {NAME: multi_head_attention_forward}
