"""Multi-head attention."""

from typing import Any

from zoo.autograd.creation import empty, zeros
from zoo.autograd.tensor import Tensor
from zoo.nn import functional as F  # noqa: N812
from zoo.nn import init
from zoo.nn.linear import Linear
from zoo.nn.module import Module
from zoo.nn.parameter import Parameter
from zoo.ops.errors import ArgumentError, DtypeError, ShapeError
from zoo.ops.face.join import cat


def added(mask: Tensor | None, query: Tensor, name: str) -> Tensor | None:
    """A mask as what is added to the scores: True hides, a floating one is added as it is."""
    if mask is None or mask.dtype == query.dtype:
        return mask
    if mask.is_floating_point():
        return mask.to(query.dtype)
    if str(mask.dtype) != "bool":
        raise DtypeError(f"MultiheadAttention: wants {name} bool or floating, got {mask.dtype}")
    return zeros(mask.shape, dtype=query.dtype, device=query.device).masked_fill(mask, float("-inf"))


class MultiheadAttention(Module):
    r"""Attention in `num_heads` subspaces: `concat(head_1 ... head_h) W_o`, `head_i = attention(q W_q, k W_k, v W_v)`.

    Args:
        embed_dim: width E of query and output, a multiple of num_heads.
        num_heads: heads, each of width E / num_heads.
        dropout: probability with which a weight is dropped in training, in [0, 1].
        bias: whether the projections have one.
        add_bias_kv: one more key and value, learned, after the others. add_zero_attn: one more of zeros.
        kdim, vdim: widths of key and value; default embed_dim.
        batch_first: tensors are (N, L, E), not (L, N, E).

    Shape: query (L, N, E), key (S, N, kdim), value (S, N, vdim), or all without N -> output as query, and if
    need_weights the weights (N, L, S), averaged over the heads, or (N, num_heads, L, S).

    Call: key_padding_mask (N, S): True hides a key; attn_mask (L, S) or (N * num_heads, L, S): True hides a pair;
    floating masks are added. is_causal says that attn_mask is the causal one, which has to be there.

    Raises:
        ValueError: sizes that do not fit together. TypeError: a mask that is neither bool nor floating.

    Example:
        >>> import zoo
        >>> attention = zoo.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> x = zoo.ones(3, 5, 8)
        >>> y, weights = attention(x, x, x)
        >>> y.shape, weights.shape
        ((3, 5, 8), (3, 5, 5))

    Source: A. Vaswani et al., "Attention is all you need", arXiv 1706.03762, section 3.2.2.
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device=None, dtype=None,
    ):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ArgumentError(f"MultiheadAttention: wants embed_dim divisible by num_heads, both above 0, got "
                                f"{embed_dim} and {num_heads}")
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        shapes = {"in_proj_weight": (3 * embed_dim, embed_dim)}
        if not self.same_widths:
            shapes = {"q_proj_weight": (embed_dim, embed_dim), "k_proj_weight": (embed_dim, self.kdim),
                      "v_proj_weight": (embed_dim, self.vdim)}
        for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_weight"):
            self.register_parameter(name, Parameter(empty(shapes[name], **place)) if name in shapes else None)
        self.register_parameter("in_proj_bias", Parameter(empty(3 * embed_dim, **place)) if bias else None)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, Parameter(empty((1, 1, embed_dim), **place)) if add_bias_kv else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, **place)
        self.reset_parameters()

    @property
    def same_widths(self) -> bool:
        """Whether the three projections lie in one weight."""
        return self.kdim == self.vdim == self.embed_dim

    def reset_parameters(self) -> None:
        """Draws new weights for the projections of query, key and value; their biases and the output's are 0."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for weight in (self.bias_k, self.bias_v):
            if weight is not None:
                init.xavier_normal_(weight)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        if is_causal and attn_mask is None:
            raise ArgumentError("MultiheadAttention: wants attn_mask with is_causal, which only says what it is")
        batched = self.check(query, key, value)
        order = (lambda x: x) if self.batch_first else (lambda x: x.transpose(0, 1))
        query, key, value = (order(x) if batched else x.unsqueeze(0) for x in (query, key, value))
        if key_padding_mask is not None and not batched:
            key_padding_mask = key_padding_mask.unsqueeze(0)
        bias = self.bias_of(query, key.shape[1], key_padding_mask, attn_mask)
        q, k, v = (self.heads(x) for x in self.with_extra(*self.projected(query, key, value)))
        p = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            weights = (q * self.head_dim**-0.5) @ k.transpose(2, 3)
            weights = F.dropout((weights if bias is None else weights + bias).softmax(3), p)
            y = weights @ v
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            y = F.scaled_dot_product_attention(q, k, v, bias, p)
        y = self.out_proj(y.transpose(1, 2).flatten(2))
        if batched:
            return order(y), weights
        return y.squeeze(0), weights if weights is None else weights.squeeze(0)

    def check(self, query: Tensor, key: Tensor, value: Tensor) -> bool:
        """Whether there is a batch; raises unless the inputs fit together."""
        shapes = [tuple(x.shape) for x in (query, key, value)]
        batched = query.ndim == 3
        ok = query.ndim in (2, 3) and key.ndim == value.ndim == query.ndim and shapes[1][:-1] == shapes[2][:-1]
        if batched and ok:
            ok = shapes[0][1 - self.batch_first] == shapes[1][1 - self.batch_first]
        if not ok or [s[-1] for s in shapes] != [self.embed_dim, self.kdim, self.vdim]:
            raise ShapeError(f"MultiheadAttention: wants query (L, N, {self.embed_dim}), key (S, N, {self.kdim}) and "
                             f"value (S, N, {self.vdim}), got {', '.join(map(str, shapes))}")
        return batched

    def projected(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        """Query, key and value in the subspaces of all heads, (N, L, E)."""
        if self.same_widths and query is key is value:
            return F.linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, 2)
        weights = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        if self.same_widths:
            weights = self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return tuple(F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))

    def with_extra(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Keys and values with the learned one and the zeros after them."""
        batch = q.shape[0]
        if self.bias_k is not None:
            k, v = (cat([x, b.expand(batch, 1, self.embed_dim)], 1) for x, b in ((k, self.bias_k), (v, self.bias_v)))
        if self.add_zero_attn:
            k, v = (F.pad(x, (0, 0, 0, 1)) for x in (k, v))
        return q, k, v

    def heads(self, x: Tensor) -> Tensor:
        """(N, L, E) as (N, num_heads, L, head_dim)."""
        return x.reshape(*x.shape[:2], self.num_heads, self.head_dim).transpose(1, 2)

    def bias_of(self, query: Tensor, steps: int, padding: Tensor | None, attn_mask: Tensor | None) -> Tensor | None:
        """What is added to the scores: both masks, and 0 for the keys that are added here; None without masks."""
        batch, length = query.shape[:2]
        padding, attn_mask = added(padding, query, "key_padding_mask"), added(attn_mask, query, "attn_mask")
        if attn_mask is not None:
            wanted = (length, steps) if attn_mask.ndim == 2 else (batch * self.num_heads, length, steps)
            if tuple(attn_mask.shape) != wanted:
                raise ShapeError(f"MultiheadAttention: wants attn_mask {wanted}, got {tuple(attn_mask.shape)}")
            attn_mask = attn_mask.reshape(-1, 1 if attn_mask.ndim == 2 else self.num_heads, length, steps)
        if padding is not None:
            if tuple(padding.shape) != (batch, steps):
                raise ShapeError(f"MultiheadAttention: wants key_padding_mask {(batch, steps)}, got "
                                 f"{tuple(padding.shape)}")
            padding = padding.reshape(batch, 1, 1, steps)
        bias = attn_mask if padding is None else padding if attn_mask is None else attn_mask + padding
        extra = (self.bias_k is not None) + self.add_zero_attn
        return F.pad(bias, (0, extra)) if bias is not None and extra else bias
