"""Multi-head attention; torch.nn.attention's choice of a kernel, of which there is one."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

from zoo.autograd.creation import empty
from zoo.autograd.tensor import Tensor
from zoo.nn import functional as F  # noqa: N812
from zoo.nn import init
from zoo.nn.linear import Linear
from zoo.nn.module import Module
from zoo.nn.parameter import Parameter
from zoo.ops.errors import ArgumentError


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
        if self.batch_first and query.ndim == 3:
            key_first = key.transpose(0, 1)
            value, query = (key_first if x is key else x.transpose(0, 1) for x in (value, query))
            key = key_first
        separate = None if self.same_widths else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        y, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training,
            key_padding_mask, need_weights, attn_mask, separate is not None, *(separate or (None,) * 3),
            average_attn_weights=average_attn_weights, is_causal=is_causal)
        return y.transpose(0, 1) if self.batch_first and y.ndim == 3 else y, weights


class SDPBackend(IntEnum):
    """torch's names of ways to compute attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Taken from scripts written for torch: attention has one kernel on each device, whatever is asked for.

    Raises:
        TypeError: no SDPBackend, nor a list of them.

    Example:
        >>> import zoo
        >>> from zoo.nn.attention import SDPBackend, sdpa_kernel
        >>> with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        ...     zoo.nn.functional.scaled_dot_product_attention(*[zoo.ones(1, 2, 3, 4)] * 3).shape
        (1, 2, 3, 4)
    """
    asked = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(asked, (list, tuple)) or not all(isinstance(b, SDPBackend) for b in asked):
        raise TypeError(f"sdpa_kernel: wants an SDPBackend or a list of them, got {backends!r}")
    yield
