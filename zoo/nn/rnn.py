"""Recurrent layers: RNN, LSTM and GRU over whole sequences, and their single steps."""

import math
import numbers
import warnings
from typing import Any

from zoo.autograd.creation import empty, zeros
from zoo.autograd.tensor import Tensor
from zoo.nn import functional as F  # noqa: N812
from zoo.nn import init
from zoo.nn.module import Module
from zoo.nn.parameter import Parameter
from zoo.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    unpack_sequence,
)
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.face.join import cat, stack
from zoo.ops.face.rnn import gru_cell, lstm_cell, rnn_relu_cell, rnn_tanh_cell, summed
from zoo.ops.rnn import gru, lstm, rnn_relu, rnn_tanh

GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


def check_sizes(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size) -> None:
    """Raises what torch raises for arguments that a recurrent layer cannot take."""
    if not isinstance(dropout, numbers.Real) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
        raise ValueError(f"RNNBase: dropout should be a number in range [0, 1], got {dropout!r}")
    for name, value in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(value, bool):
            raise TypeError(f"RNNBase: {name} should be of type bool, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if not isinstance(value, int):
            raise TypeError(f"RNNBase: {name} should be of type int, got: {type(value).__name__}")
        if value <= 0:
            raise ValueError(f"RNNBase: {name} must be greater than zero, got {value}")
    if not 0 <= proj_size < hidden_size:
        raise ValueError(
            f"RNNBase: proj_size should be a positive integer smaller than hidden_size ({hidden_size}), or zero to "
            f"disable projections, got {proj_size}"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )


class RNNBase(Module):
    """What RNN, LSTM and GRU share: the weights of all layers and directions, and the four kinds of input.

    Layer k has weight_ih_l{k} (gates*H, I), weight_hh_l{k} (gates*H, H), bias_ih_l{k} and bias_hh_l{k} (gates*H,),
    with proj_size weight_hr_l{k} (P, H), and the same with _reverse for the other direction; all from
    U(-1/sqrt(H), 1/sqrt(H)).
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if mode not in GATES:
            raise ValueError(f"RNNBase: wants a mode of {sorted(GATES)}, got {mode!r}")
        check_sizes(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bool(bidirectional), proj_size
        self.suffixes = [f"_l{k}{d}" for k in range(num_layers) for d in ("", "_reverse")[: 1 + self.bidirectional]]
        rows, width = GATES[mode] * hidden_size, proj_size or hidden_size
        for suffix in self.suffixes:
            inputs = input_size if suffix.startswith("_l0") else width * (1 + self.bidirectional)
            shapes = {"weight_ih": (rows, inputs), "weight_hh": (rows, width)}
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
            shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
            for name, shape in shapes.items():
                setattr(self, name + suffix, Parameter(empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing: for scripts written for torch, where cuDNN wants all weights in one piece of memory."""

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters of each layer and direction."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        return [[getattr(self, n + s) for n in names if hasattr(self, n + s)] for s in self.suffixes]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False),
                            ("dropout", 0), ("bidirectional", False)):
            value = getattr(self, name)
            text += "" if value == usual else f", {name}={value}"
        return text

    # -- what a subclass says

    def widths(self) -> tuple[int, ...]:
        """The width of each of its states."""
        return (self.hidden_size,)

    def sequence(self, data, states: list, weights: list, batch_sizes: tuple, reverse: bool) -> tuple:
        """One layer in one direction: packed rows (N, I) -> rows (N, H), and then its last states (B, H)."""
        raise NotImplementedError

    # -- from the kinds of input to packed rows, and back

    def forward(self, input, hx=None, lengths=None):  # noqa: A002
        if lengths is not None and not (isinstance(input, Tensor) and input.ndim == 3):
            raise ArgumentError(f"{type(self).__name__}: lengths belong to a padded 3-D input, got "
                                f"{type(input).__name__}")
        if isinstance(input, PackedSequence):
            return self.packed(input, hx)
        if isinstance(input, (list, tuple)):
            output, states = self.packed(pack_sequence(input, enforce_sorted=False), hx)
            return unpack_sequence(output), states
        if lengths is not None:
            output, states = self.packed(pack_padded_sequence(input, lengths, self.batch_first, False), hx)
            steps = input.shape[1 if self.batch_first else 0]
            return pad_packed_sequence(output, self.batch_first, total_length=steps)[0], states
        return self.plain(input, hx)

    def plain(self, input, hx):  # noqa: A002
        """Sequences of one length: (T, B, I), (B, T, I) with batch_first, or (T, I)."""
        name = type(self).__name__
        if input.ndim not in (2, 3):
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.ndim}D instead")
        batched = input.ndim == 3
        for h in self.listed(hx):
            if h.ndim != input.ndim:
                kind = "batched 3-D" if batched else "unbatched 2-D"
                raise ShapeError(f"{name}: For {kind} input, hx should also be {input.ndim}-D but got {h.ndim}-D")
        if not batched:
            input = input.unsqueeze(1)  # noqa: A001
            hx = self.like(hx, [h.unsqueeze(1) for h in self.listed(hx)])
        elif self.batch_first:
            input = input.transpose(0, 1)  # noqa: A001
        steps, batch = input.shape[:2]
        if not steps:
            raise ArgumentError(f"{name}: Expected sequence length to be larger than 0 in RNN, got {input.shape}")
        rows, states = self.layers(input.reshape(steps * batch, input.shape[2]), hx, (batch,) * steps)
        output = rows.reshape(steps, batch, rows.shape[1])
        if not batched:
            return output.squeeze(1), self.like(states, [s.squeeze(1) for s in self.listed(states)])
        return output.transpose(0, 1) if self.batch_first else output, states

    def packed(self, input: PackedSequence, hx):  # noqa: A002
        """A PackedSequence; states come and go in the order of the sequences before they were packed."""
        data, sizes, order, back = input
        hx = self.permuted(hx, order)
        rows, states = self.layers(data, hx, tuple(sizes.tolist()))
        return PackedSequence(rows, sizes, order, back), self.permuted(states, back)

    def permuted(self, hx, order):
        return hx if order is None else self.like(hx, [h.index_select(1, order) for h in self.listed(hx)])

    @staticmethod
    def listed(hx) -> list[Tensor]:
        """The states as a list: none, h, or h and c."""
        return [] if hx is None else [hx] if isinstance(hx, Tensor) else list(hx)

    @staticmethod
    def like(hx, states: list):
        """The list as what `listed` made it from."""
        return None if hx is None else states[0] if isinstance(hx, Tensor) else tuple(states)

    # -- the layers

    def layers(self, rows, hx, batch_sizes: tuple):
        """Packed rows (N, I) through all layers -> rows (N, D * width), states (layers * D, B, width)."""
        states, weights = self.initial_states(rows, hx, batch_sizes[0]), self.all_weights
        directions, last = 1 + self.bidirectional, []
        for layer in range(self.num_layers):
            outputs = []
            for k in range(layer * directions, (layer + 1) * directions):
                y, *ends = self.sequence(rows, [s[k] for s in states], weights[k], batch_sizes, k % directions == 1)
                outputs.append(y)
                last.append(ends)
            rows = outputs[0] if directions == 1 else cat(outputs, 1)
            if self.dropout and layer + 1 < self.num_layers:
                rows = F.dropout(rows, self.dropout, self.training)
        found = tuple(stack(list(ends)) for ends in zip(*last, strict=True))
        return rows, found if len(found) > 1 else found[0]

    def initial_states(self, rows, hx, batch: int) -> list[Tensor]:
        """The given states, or zeros; raises unless everything has the shape and dtype that it should."""
        name, weight = type(self).__name__, self.all_weights[0][0]
        if rows.dtype != weight.dtype:
            raise ValueError(f"{name}: input dtype ({rows.dtype}) does not match weight dtype ({weight.dtype})")
        if rows.ndim != 2 or rows.shape[1] != self.input_size:
            raise ShapeError(
                f"{name}: input.size(-1) must be equal to input_size. Expected {self.input_size}, got {rows.shape[-1]}"
            )
        shapes = [(len(self.suffixes), batch, width) for width in self.widths()]
        if hx is None:
            return [zeros(shape, dtype=rows.dtype, device=rows.device) for shape in shapes]
        given = self.listed(hx)
        if [tuple(h.shape) for h in given] != shapes:
            raise ShapeError(f"{name}: Expected hidden size {shapes}, got {[tuple(h.shape) for h in given]}")
        return given


class RNN(RNNBase):
    r"""Elman network: `h = tanh(W_ih x + b_ih + W_hh h + b_hh)`, or relu in place of tanh.

    Args:
        input_size, hidden_size: I and H.
        num_layers: layers one above the other.
        nonlinearity: "tanh" or "relu".
        bias: whether there are b_ih and b_hh.
        batch_first: input and output are (B, T, *), not (T, B, *); states are (layers * D, B, H) in any case.
        dropout: probability between layers, in [0, 1].
        bidirectional: D = 2 directions, their outputs side by side.

    Shape: input (T, B, I), (T, I), a PackedSequence, or a list of tensors (T_i, I); hx (layers * D, B, H) or None for
    zeros; lengths (B,) in any order, of a padded input -> output of the same kind, (T, B, D * H), zero beyond the
    lengths, and the last states (layers * D, B, H).

    Raises:
        ValueError: sizes or kinds that do not fit together; a length of 0.

    Example:
        >>> import zoo
        >>> output, h = zoo.nn.RNN(10, 20, 2)(zoo.ones(5, 3, 10))
        >>> output.shape, h.shape
        ((5, 3, 20), (2, 3, 20))

    Source: J. L. Elman, "Finding structure in time", 1990.
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
                 bias: bool = True, batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 device=None, dtype=None, **unknown: Any):
        if "proj_size" in unknown:
            raise ValueError("RNN: proj_size is only supported for LSTM, not RNN or GRU")
        if unknown:
            raise TypeError(f"RNN: takes no arguments {sorted(unknown)}")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN: wants nonlinearity tanh or relu, got {nonlinearity!r}")
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first,
                         dropout, bidirectional, 0, device, dtype)
        self.nonlinearity = nonlinearity

    def sequence(self, data, states, weights, batch_sizes, reverse):
        op = rnn_tanh if self.nonlinearity == "tanh" else rnn_relu
        w_ih, w_hh, *biases = weights
        return op(data, *states, w_ih, w_hh, summed(*biases or (None, None)), batch_sizes, reverse)


class LSTM(RNNBase):
    r"""Long short-term memory: `i, f, g, o = W_ih x + b_ih + W_hh h + b_hh` through sigmoid, g through tanh;
    `c = f c + i g`, `h = o tanh(c)`, with proj_size `h = W_hr (o tanh(c))`.

    Arguments and shapes as RNN, without nonlinearity. proj_size: the width P of h, less than H; with 0, P = H.
    hx is (h (layers * D, B, P), c (layers * D, B, H)), and so are the last states.

    Raises:
        ValueError: sizes or kinds that do not fit together; a length of 0.

    Example:
        >>> import zoo
        >>> lstm = zoo.nn.LSTM(10, 20, bidirectional=True)
        >>> outputs, (h, c) = lstm([zoo.ones(3, 10), zoo.ones(5, 10)])
        >>> [y.shape for y in outputs], h.shape
        ([(3, 40), (5, 40)], (2, 2, 20))

    Source: S. Hochreiter and J. Schmidhuber, 1997; projections: H. Sak et al., arXiv 1402.1128.
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
                 device=None, dtype=None):
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         proj_size, device, dtype)

    def widths(self) -> tuple[int, ...]:
        return self.proj_size or self.hidden_size, self.hidden_size

    def sequence(self, data, states, weights, batch_sizes, reverse):
        w_ih, w_hh, *rest = weights
        w_hr = rest.pop() if self.proj_size else None
        bias = summed(*rest or (None, None))
        return lstm(data, *states, w_ih, w_hh, bias, w_hr, batch_sizes, reverse)[:3]


class GRU(RNNBase):
    r"""Gated recurrent unit: `r, z = sigmoid(W_ih x + b_ih + W_hh h + b_hh)`,
    `n = tanh(W_in x + b_in + r (W_hn h + b_hn))`, `h = (1 - z) n + z h`.

    Arguments and shapes as RNN, without nonlinearity.

    Raises:
        ValueError: sizes or kinds that do not fit together; a length of 0.

    Example:
        >>> import zoo
        >>> output, h = zoo.nn.GRU(10, 20, batch_first=True)(zoo.ones(3, 5, 10), lengths=[2, 5, 1])
        >>> output.shape, h.shape
        ((3, 5, 20), (1, 3, 20))

    Source: K. Cho et al., arXiv 1406.1078; r outside of the product as in cuDNN.
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, device=None, dtype=None,
                 **unknown: Any):
        if "proj_size" in unknown:
            raise ValueError("GRU: proj_size is only supported for LSTM, not RNN or GRU")
        if unknown:
            raise TypeError(f"GRU: takes no arguments {sorted(unknown)}")
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0,
                         device, dtype)

    def sequence(self, data, states, weights, batch_sizes, reverse):
        w_ih, w_hh, *biases = weights
        return gru(data, *states, w_ih, w_hh, *biases or (None, None), batch_sizes, reverse)[:2]


class RNNCellBase(Module):
    """What the cells share: weight_ih (gates*H, I), weight_hh (gates*H, H), bias_ih, bias_hh (gates*H,) or None.

    All from U(-1/sqrt(H), 1/sqrt(H)).
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else f", bias={self.bias}")

    def step(self, function, input, states: list):  # noqa: A002
        """function on a batch, be input (B, I) or (I,); missing states are zeros."""
        name = type(self).__name__
        for what, x in (("input", input), *(("hidden", s) for s in states if s is not None)):
            if x.ndim not in (1, 2):
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {x.ndim}D instead")
        batched = input.ndim == 2
        input = input if batched else input.unsqueeze(0)  # noqa: A001
        zero = zeros((input.shape[0], self.hidden_size), dtype=input.dtype, device=input.device)
        states = [zero if s is None else s if batched else s.unsqueeze(0) for s in states]
        weights = self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        out = function(input, states[0] if len(states) == 1 else states, *weights)
        if batched:
            return out
        return tuple(s.squeeze(0) for s in out) if isinstance(out, tuple) else out.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of an Elman network: h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu.

    Shape: input (B, I) or (I,), hx (B, H), (H,) or None for zeros -> as hx.

    Example:
        >>> import zoo
        >>> zoo.nn.RNNCell(10, 20)(zoo.ones(3, 10)).shape
        (3, 20)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device=None,
                 dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"RNNCell: wants nonlinearity tanh or relu, got {nonlinearity!r}")
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):  # noqa: A002
        return self.step(rnn_tanh_cell if self.nonlinearity == "tanh" else rnn_relu_cell, input, [hx])

    def extra_repr(self) -> str:
        return super().extra_repr() + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")


class LSTMCell(RNNCellBase):
    """One step of an LSTM; formulas as nn.LSTM.

    Shape: input (B, I) or (I,), hx ((B, H), (B, H)) or None for zeros -> (h, c), as hx.

    Example:
        >>> import zoo
        >>> h, c = zoo.nn.LSTMCell(10, 20)(zoo.ones(3, 10))
        >>> h.shape
        (3, 20)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):  # noqa: A002
        return self.step(lstm_cell, input, [None, None] if hx is None else list(hx))


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit; formulas as nn.GRU.

    Shape: input (B, I) or (I,), hx (B, H), (H,) or None for zeros -> as hx.

    Example:
        >>> import zoo
        >>> zoo.nn.GRUCell(10, 20)(zoo.ones(3, 10)).shape
        (3, 20)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):  # noqa: A002
        return self.step(gru_cell, input, [hx])
