"""Single steps of recurrent layers in torch's signatures."""
from zoo.ops.errors import ShapeError
from zoo.ops.rnn import gru, lstm, rnn_relu, rnn_tanh


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


FUNCTIONS = ("rnn_tanh_cell", "rnn_relu_cell", "lstm_cell", "gru_cell")
METHODS = ()
