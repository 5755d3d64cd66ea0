"""Transformer layers: encoder, decoder and both together."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from zoo.autograd.creation import full
from zoo.autograd.tensor import Tensor
from zoo.nn import functional as F  # noqa: N812
from zoo.nn import init
from zoo.nn.attention import MultiheadAttention
from zoo.nn.containers import ModuleList
from zoo.nn.dropout import Dropout
from zoo.nn.linear import Linear
from zoo.nn.module import Module
from zoo.nn.norm import LayerNorm
from zoo.ops.errors import ArgumentError, ShapeError

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


def is_causal_mask(mask: Tensor | None) -> bool:
    """Whether a mask (L, L) hides exactly what comes later."""
    if mask is None or mask.ndim != 2 or mask.shape[0] != mask.shape[1]:
        return False
    causal = Transformer.generate_square_subsequent_mask(mask.shape[0], device=mask.device, dtype=mask.dtype)
    return bool((mask == causal).all())


class TransformerLayer(Module):
    """What encoder and decoder layers share: self-attention, a network of two linear layers, norms and dropouts.

    Args:
        norms: how many pairs of norm and dropout; the last pair belongs to the two linear layers.
        others: the arguments of TransformerEncoderLayer.
    """

    def __init__(
        self, norms: int, d_model: int, nhead: int, dim_feedforward: int, dropout: float,
        activation: str | Callable[[Tensor], Tensor], layer_norm_eps: float, batch_first: bool, norm_first: bool,
        bias: bool, device: Any, dtype: Any,
    ):
        super().__init__()
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        if isinstance(activation, str) and activation not in ACTIVATIONS:
            raise ArgumentError(f"{type(self).__name__}: wants activation relu, gelu or a function, got {activation!r}")
        attention = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **place}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        if norms == 3:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **place)
        self.norm_first = norm_first
        for kind, make in (("norm", lambda: LayerNorm(d_model, layer_norm_eps, bias=bias, **place)),
                           ("dropout", lambda: Dropout(dropout))):
            for k in range(1, norms + 1):
                setattr(self, f"{kind}{k}", make())
        self.activation = ACTIVATIONS[activation] if isinstance(activation, str) else activation

    def around(self, x: Tensor, k: int, block: Callable[[Tensor], Tensor]) -> Tensor:
        """x + block(x), with norm and dropout number k: the norm before the block, or after the sum."""
        norm, dropout = getattr(self, f"norm{k}"), getattr(self, f"dropout{k}")
        if self.norm_first:
            return x + dropout(block(norm(x)))
        return norm(x + dropout(block(x)))

    def feed_forward(self, x: Tensor) -> Tensor:
        """The two linear layers."""
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    @staticmethod
    def attend(attention: MultiheadAttention, query: Tensor, key: Tensor, mask: Any, padding: Any, causal: bool) -> Any:
        """Attention of query to key, without the weights."""
        return attention(query, key, key, padding, False, mask, is_causal=causal)[0]


class TransformerEncoderLayer(TransformerLayer):
    r"""Self-attention, then two linear layers, each with a residual connection and layer norm.

    Args:
        d_model: width E. nhead: heads. dim_feedforward: width between the linear layers.
        dropout: probability, of weights and of every block's output, in [0, 1].
        activation: between the linear layers: "relu", "gelu" or a function.
        layer_norm_eps: of the norms. batch_first: tensors are (N, L, E), not (L, N, E).
        norm_first: norms before the blocks, not after. bias: whether linear layers and norms have one.

    Shape: src (L, N, E) or (L, E), src_mask (L, L), src_key_padding_mask (N, L) -> as src.

    Raises:
        ValueError: sizes that do not fit together, or an unknown activation.

    Example:
        >>> import zoo
        >>> layer = zoo.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16)
        >>> layer(zoo.ones(5, 3, 8)).shape
        (5, 3, 8)

    Source: A. Vaswani et al., arXiv 1706.03762; norm_first: R. Xiong et al., arXiv 2002.04745.
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device=None, dtype=None,
    ):
        super().__init__(2, d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
                         norm_first, bias, device, dtype)

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        x = self.around(src, 1, lambda x: self.attend(self.self_attn, x, x, src_mask, src_key_padding_mask, is_causal))
        return self.around(x, 2, self.feed_forward)


class TransformerDecoderLayer(TransformerLayer):
    r"""Self-attention, attention to the encoder's output, then two linear layers; arguments as TransformerEncoderLayer.

    Shape: tgt (T, N, E), memory (S, N, E), tgt_mask (T, T), memory_mask (T, S), padding masks (N, T) and (N, S)
    -> as tgt.

    Example:
        >>> import zoo
        >>> layer = zoo.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16)
        >>> layer(zoo.ones(4, 3, 8), zoo.ones(5, 3, 8)).shape
        (4, 3, 8)

    Source: A. Vaswani et al., arXiv 1706.03762.
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device=None, dtype=None,
    ):
        super().__init__(3, d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
                         norm_first, bias, device, dtype)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Tensor:
        own = lambda x: self.attend(self.self_attn, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)  # noqa: E731
        cross = lambda x: self.attend(  # noqa: E731
            self.multihead_attn, x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        return self.around(self.around(self.around(tgt, 1, own), 2, cross), 3, self.feed_forward)


class TransformerEncoder(Module):
    """`num_layers` copies of a layer, one after the other, and a norm behind them.

    Args:
        encoder_layer: what is copied. num_layers: how often. norm: a module, or None.
        enable_nested_tensor, mask_check: taken for torch's sake; there are no nested tensors.

    Shape: as the layer; is_causal None: found out from the mask.

    Example:
        >>> import zoo
        >>> layer = zoo.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16)
        >>> zoo.nn.TransformerEncoder(layer, 2)(zoo.ones(5, 3, 8)).shape
        (5, 3, 8)
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None,
                 enable_nested_tensor: bool = True, mask_check: bool = True):
        super().__init__()
        self.layers = ModuleList([deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        causal = is_causal_mask(mask) if is_causal is None else is_causal
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """`num_layers` copies of a decoder layer, one after the other, and a norm behind them; as TransformerEncoder.

    Example:
        >>> import zoo
        >>> layer = zoo.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16)
        >>> zoo.nn.TransformerDecoder(layer, 2)(zoo.ones(4, 3, 8), zoo.ones(5, 3, 8)).shape
        (4, 3, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = ModuleList([deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:
        causal = is_causal_mask(tgt_mask) if tgt_is_causal is None else tgt_is_causal
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, causal,
                        memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder of the paper; all weights of two dimensions and more by xavier_uniform_.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: of the
            layers.
        num_encoder_layers, num_decoder_layers: how many.
        custom_encoder, custom_decoder: modules in their places.

    Shape: src (S, N, E), tgt (T, N, E), masks as the layers -> as tgt.

    Raises:
        ShapeError (ValueError, RuntimeError): src and tgt are of different batches or widths.

    Example:
        >>> import zoo
        >>> model = zoo.nn.Transformer(8, 2, 1, 1, 16)
        >>> mask = model.generate_square_subsequent_mask(4)
        >>> model(zoo.ones(5, 3, 8), zoo.ones(4, 3, 8), tgt_mask=mask).shape
        (4, 3, 8)

    Source: A. Vaswani et al., arXiv 1706.03762.
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Any = None, custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device=None, dtype=None,
    ):
        super().__init__()
        options = (dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)
        norm = lambda: LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)  # noqa: E731
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(d_model, nhead, *options), num_encoder_layers, norm())
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(d_model, nhead, *options), num_decoder_layers, norm())
        for weight in self.parameters():
            if weight.ndim > 1:
                init.xavier_uniform_(weight)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.ndim != tgt.ndim or src.ndim == 3 and src.shape[batch] != tgt.shape[batch] or any(
                x.shape[-1] != self.d_model for x in (src, tgt)):
            raise ShapeError(f"Transformer: wants src and tgt of one batch and of width {self.d_model}, got "
                             f"{tuple(src.shape)} and {tuple(tgt.shape)}")
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                            tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device=None, dtype=None) -> Tensor:
        """(sz, sz): -inf above the diagonal, else 0; of a bool dtype: True above the diagonal."""
        if str(dtype) == "bool":
            return full((sz, sz), True, dtype=dtype, device=device).triu(1)
        return full((sz, sz), float("-inf"), dtype=dtype, device=device).triu(1)
