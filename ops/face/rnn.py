"""Single steps of recurrent layers, and the CTC loss, in torch's signatures."""
import numpy as np

from zoo.ops.ctc import ctc
from zoo.ops.device import constant, fetch
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.index import embedding
from zoo.ops.op import OPS
from zoo.ops.rnn import gru, lstm, rnn_relu, rnn_tanh
from zoo.ops.shape import reshape


def check_step(op: str, input, hx) -> tuple[int]:
    """batch_sizes of one step; raises unless input is (B, I) and hx (B, H)."""
    if input.ndim != 2 or hx.ndim != 2 or input.shape[0] != hx.shape[0]:
        raise ShapeError(f"{op}: wants input (B, I) and hx (B, H), got {tuple(input.shape)} and {tuple(hx.shape)}")
    return (input.shape[0],)


def summed(b_ih, b_hh):
    """Both biases as one, or None."""
    return b_hh if b_ih is None else b_ih if b_hh is None else b_ih + b_hh


def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of an Elman network: tanh(w_ih x + b_ih + w_hh h + b_hh).

    Args:
        input: (B, I), floating.
        hx: the state (B, H).
        w_ih, w_hh, b_ih, b_hh: (H, I), (H, H), (H,) or None.

    Returns:
        The next state (B, H).

    Raises:
        ShapeError (ValueError, RuntimeError): shapes that do not fit together.

    Example:
        >>> import zoo
        >>> zoo.rnn_tanh_cell(zoo.ones(1, 2), zoo.zeros(1, 1), zoo.ones(1, 2), zoo.ones(1, 1))
        tensor([[0.9640]])
    """
    return rnn_tanh(input, hx, w_ih, w_hh, summed(b_ih, b_hh), check_step("rnn_tanh_cell", input, hx), False)[1]


def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of an Elman network with relu: max(0, w_ih x + b_ih + w_hh h + b_hh); arguments as `rnn_tanh_cell`."""
    return rnn_relu(input, hx, w_ih, w_hh, summed(b_ih, b_hh), check_step("rnn_relu_cell", input, hx), False)[1]


def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of an LSTM (Hochreiter and Schmidhuber, 1997): c = f c + i g, h = o tanh(c).

    Args:
        input: (B, I), floating.
        hx: the states (h (B, H), c (B, H)).
        w_ih, w_hh, b_ih, b_hh: (4H, I), (4H, H), (4H,) or None; gates i, f, g, o.

    Returns:
        The next (h, c).

    Raises:
        ShapeError (ValueError, RuntimeError): shapes that do not fit together.

    Example:
        >>> import zoo
        >>> h, c = zoo.lstm_cell(zoo.ones(1, 2), [zoo.zeros(1, 3)] * 2, zoo.ones(12, 2), zoo.ones(12, 3))
        >>> h.shape
        (1, 3)
    """
    h, c = hx
    sizes = check_step("lstm_cell", input, h)
    return lstm(input, h, c, w_ih, w_hh, summed(b_ih, b_hh), None, sizes, False)[1:3]


def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a gated recurrent unit (Cho et al., 2014): h = (1 - z) n + z h.

    Args:
        input: (B, I), floating.
        hx: the state (B, H).
        w_ih, w_hh, b_ih, b_hh: (3H, I), (3H, H), (3H,) or None; gates r, z, n.

    Returns:
        The next state (B, H).

    Raises:
        ShapeError (ValueError, RuntimeError): shapes that do not fit together.

    Example:
        >>> import zoo
        >>> zoo.gru_cell(zoo.ones(1, 2), zoo.zeros(1, 3), zoo.ones(9, 2), zoo.ones(9, 3)).shape
        (1, 3)
    """
    return gru(input, hx, w_ih, w_hh, b_ih, b_hh, check_step("gru_cell", input, hx), False)[1]


def numbers(lengths) -> tuple[int, ...]:
    """Lengths as a tuple: of a tensor, of a list, or one number."""
    raw = fetch(getattr(lengths, "array", lengths)) if hasattr(lengths, "shape") else lengths
    return tuple(int(n) for n in np.atleast_1d(np.asarray(raw)))


def rows_of_targets(targets, lengths: tuple[int, ...]):
    """Targets (sum of the lengths,), one after the other, as (N, S); what is beyond a length is any of them."""
    if sum(lengths) != targets.shape[0]:
        raise ArgumentError(f"ctc_loss: wants {sum(lengths)} targets, the sum of target_lengths, got {targets.shape}")
    longest, starts = max(lengths, default=0), np.cumsum([0, *lengths])[:-1, None]
    index = np.minimum(starts + np.arange(longest), max(targets.shape[0] - 1, 0)).astype(np.int64)
    if not index.size:
        return reshape(targets, index.shape)
    return reshape(embedding(constant(index.ravel(), targets), reshape(targets, (targets.shape[0], 1))), index.shape)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """Connectionist temporal classification: minus the log probability that a sequence of labels is read off.

    Its gradient is torch's: that of the formula for log_probs that stay normalised, as log_softmax makes them; so
    exp(log_probs) - (the probability of each label at each step, given the targets).

    Args:
        log_probs: (T, N, C) or (T, C), logarithms of probabilities, from log_softmax.
        targets: labels (N, S), (S,) for (T, C), or all labels one after the other (sum of target_lengths,); integers
            in [0, C), no blanks.
        input_lengths, target_lengths: (N,) integers up to T and S, tensors or tuples; or one number for (T, C).
        blank: the label that stands for none, in [0, C).
        reduction: "none", "sum", or "mean": of the losses divided by their target lengths.
        zero_infinity: a loss is 0, and has no gradient, where the target does not fit into the input.

    Returns:
        (), or with reduction "none" (N,).

    Raises:
        ShapeError (ValueError, RuntimeError): shapes that do not fit together.
        ArgumentError (ValueError, RuntimeError): a length, the blank or the reduction is out of range.

    Example:
        >>> import zoo
        >>> log_probs = zoo.zeros(4, 2).log_softmax(1)             # 10 of 16 paths read as one 1
        >>> zoo.nn.functional.ctc_loss(log_probs, zoo.tensor([1]), 4, 1).exp()
        tensor(1.6000)

    Source: A. Graves et al., "Connectionist temporal classification", ICML 2006.
    """
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentError(f"ctc_loss: wants reduction none, mean or sum, got {reduction!r}")
    inputs, lengths, single = numbers(input_lengths), numbers(target_lengths), log_probs.ndim == 2
    if single:
        log_probs = reshape(log_probs, (log_probs.shape[0], 1, log_probs.shape[1]))
    if targets.ndim == 1:
        targets = rows_of_targets(targets, lengths)
    loss = ctc(kept_normal(log_probs), targets, inputs, lengths, blank, bool(zero_infinity))[0]
    if reduction == "mean":
        counts = np.maximum(np.asarray(lengths), 1).astype(loss.dtype)
        return OPS["mean"](loss / constant(counts, loss))
    if reduction == "sum":
        return OPS["sum"](loss)
    return reshape(loss, ()) if single else loss


def kept_normal(log_probs):
    """log_probs as they are, with the derivative of log_softmax: what is subtracted is 0, its derivative is not."""
    total = OPS["logsumexp"](log_probs, -1, True)
    return log_probs - (total - getattr(total, "detach", lambda: total)())


NN_FUNCTIONS = ("ctc_loss",)
FUNCTIONS = ("ctc_loss", "rnn_tanh_cell", "rnn_relu_cell", "lstm_cell", "gru_cell")
METHODS = ()
