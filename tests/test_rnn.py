"""Recurrent layers against torch: outputs, states and all gradients in every combination; errors; what zoo adds."""
import itertools

import numpy as np
import pytest

import zoo
from zoo import nn
from zoo.nn.utils.rnn import (
    PackedSequence,
    detach_states,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)

LENGTHS = [3, 5, 1, 4]                                       # in no order
KINDS = {"tanh": ("RNN", {}), "relu": ("RNN", {"nonlinearity": "relu"}), "lstm": ("LSTM", {}), "gru": ("GRU", {}),
         "projected": ("LSTM", {"proj_size": 2})}
FORMS = ("plain", "packed", "lengths", "list")
TOLERANCE = {"float32": 1e-5, "float64": 1e-11}              # of the largest absolute value, as issue 6 wants


def close(got, want, dtype):
    """Both of one shape, and apart by at most the tolerance times the largest value."""
    got, want = (np.asarray(x.detach().numpy()) for x in (got, want))
    assert got.shape == want.shape and got.dtype == want.dtype
    assert np.abs(got - want).max(initial=0) <= TOLERANCE[dtype] * max(np.abs(want).max(initial=0), 1e-30)


def pair(torch, kind, dtype, **options):
    """The layer in both libraries, with torch's weights in zoo's."""
    name, more = KINDS[kind]
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(3, 4, dtype=getattr(torch, dtype), **more, **options)
    ours = getattr(nn, name)(3, 4, dtype=getattr(zoo, dtype), **more, **options)
    ours.load_state_dict({k: zoo.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    return ours, theirs


def states_of(layer, batch, kind, dtype):
    """Initial states of a layer, in NumPy."""
    rng, count = np.random.default_rng(1), layer.num_layers * (1 + layer.bidirectional)
    widths = {"lstm": (4, 4), "projected": (2, 4)}.get(kind, (4,))
    return [rng.normal(size=(count, batch, w)).astype(dtype) for w in widths]


def given(lib, arrays):
    made = [lib.tensor(a).requires_grad_() for a in arrays]
    return made, tuple(made) if len(made) > 1 else made[0]


def run_zoo(layer, form, x, first):
    """(padded output, last states) of zoo's layer, the input in one of its four forms."""
    if form == "plain":
        return layer(*((x, first) if first is not None else (x,)))
    if form == "lengths":
        return layer(x, first, lengths=LENGTHS)
    if form == "list":
        rows = x if layer.batch_first else x.transpose(0, 1)
        outputs, states = layer([rows[k, :n] for k, n in enumerate(LENGTHS)], first)
        assert isinstance(outputs, list)
        return pad_sequence(outputs, layer.batch_first), states
    packed = pack_padded_sequence(x, zoo.tensor(LENGTHS), layer.batch_first, enforce_sorted=False)
    output, states = layer(packed, first)
    assert isinstance(output, PackedSequence)
    return pad_packed_sequence(output, layer.batch_first)[0], states


def run_torch(torch, layer, form, x, first):
    if form == "plain":
        return layer(x, first)
    tools = torch.nn.utils.rnn
    packed = tools.pack_padded_sequence(x, torch.tensor(LENGTHS), layer.batch_first, enforce_sorted=False)
    output, states = layer(packed, first)
    return tools.pad_packed_sequence(output, layer.batch_first)[0], states


def backward(lib, output, states):
    """A scalar that reads everything, and its gradient."""
    rng = np.random.default_rng(2)
    total = 0.0
    for y in (output, *(states if isinstance(states, tuple) else (states,))):
        total = total + (y * lib.tensor(rng.normal(size=tuple(y.shape)), dtype=y.dtype)).sum()
    total.backward()


@pytest.mark.torch
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_equals_torch(kind, form, dtype):
    """Layers 1 to 3, both directions, batch_first, with and without initial states and biases."""
    import torch
    x = np.random.default_rng(0).normal(size=(5, 4, 3)).astype(dtype)
    for layers, both, batch_first, more in itertools.product((1, 2, 3), (False, True), (False, True), (False, True)):
        options = dict(num_layers=layers, bidirectional=both, batch_first=batch_first, bias=more)
        ours, theirs = pair(torch, kind, dtype, **options)
        a, b = (lib.tensor(x.transpose(1, 0, 2).copy() if batch_first else x).requires_grad_() for lib in (zoo, torch))
        firsts, first = given(zoo, states_of(ours, 4, kind, dtype)) if more else ([], None)
        wanted, want_first = given(torch, states_of(theirs, 4, kind, dtype)) if more else ([], None)
        y, states = run_zoo(ours, form, a, first)
        want, want_states = run_torch(torch, theirs, form, b, want_first)
        close(y, want, dtype)
        for s, t in zip(*((v if isinstance(v, tuple) else (v,)) for v in (states, want_states)), strict=True):
            close(s, t, dtype)
        backward(zoo, y, states)
        backward(torch, want, want_states)
        named = dict(theirs.named_parameters())
        for p, q in [(a, b), *zip(firsts, wanted, strict=True),
                     *((v, named[k]) for k, v in ours.named_parameters())]:
            close(p.grad, q.grad, dtype)


@pytest.mark.torch
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps, batch", [(1, 3), (4, 1), (1, 1), (3, 0)])
def test_small_and_empty_batches(kind, steps, batch):
    import torch
    ours, theirs = pair(torch, kind, "float64", num_layers=2, bidirectional=True)
    x = np.random.default_rng(0).normal(size=(steps, batch, 3))
    a, b = zoo.tensor(x).requires_grad_(), torch.tensor(x).requires_grad_()
    (y, states), (want, want_states) = ours(a), theirs(b)
    close(y, want, "float64")
    backward(zoo, y, states)
    backward(torch, want, want_states)
    close(a.grad, b.grad, "float64")


@pytest.mark.torch
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(33,) * 10, tuple(range(35, 14, -1)) + (14,) * 9 + (1,)])
def test_batches_in_parts_equal_torch(kind, sizes):
    """Enough rows for two threads, steps for several blocks, and weights for several strips; both directions."""
    import torch
    name, more = KINDS[kind]
    more = more and {k: 24 if k == "proj_size" else v for k, v in more.items()}
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(5, 72, bidirectional=True, dtype=torch.float64, **more)
    ours = getattr(nn, name)(5, 72, bidirectional=True, dtype=zoo.float64, **more)
    ours.load_state_dict({k: zoo.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    data = np.random.default_rng(0).normal(size=(sum(sizes), 5))
    a, b = zoo.tensor(data).requires_grad_(), torch.tensor(data).requires_grad_()
    threads = zoo.get_num_threads()
    zoo.set_num_threads(2)
    try:
        y, states = ours(PackedSequence(a, zoo.tensor(sizes)))
        backward(zoo, y.data, states)
    finally:
        zoo.set_num_threads(threads)
    want, want_states = theirs(torch.nn.utils.rnn.PackedSequence(b, torch.tensor(sizes)))
    backward(torch, want.data, want_states)
    named = dict(theirs.named_parameters())
    for p, q in [(y.data, want.data), (a.grad, b.grad), *((p.grad, named[k].grad) for k, p in ours.named_parameters())]:
        close(p, q, "float64")


@pytest.mark.torch
@pytest.mark.parametrize("kind", KINDS)
def test_unbatched_input(kind):
    import torch
    ours, theirs = pair(torch, kind, "float64", num_layers=2, batch_first=True)
    x = np.random.default_rng(0).normal(size=(5, 3))
    first = [s[:, 0] for s in states_of(ours, 1, kind, "float64")]
    (y, states), (want, want_states) = (layer(lib.tensor(x), given(lib, first)[1])
                                        for lib, layer in ((zoo, ours), (torch, theirs)))
    close(y, want, "float64")
    for s, t in zip(*((v if isinstance(v, tuple) else (v,)) for v in (states, want_states)), strict=True):
        close(s, t, "float64")


@pytest.mark.torch
@pytest.mark.parametrize("kind", KINDS)
def test_state_dict_repr_and_initial_weights(kind):
    """torch's names in torch's order, both ways; torch's repr; weights from the same range."""
    import torch
    name, more = KINDS[kind]
    for options in ({}, dict(num_layers=2, bidirectional=True, dropout=0.5, bias=False, batch_first=True)):
        ours, theirs = getattr(nn, name)(30, 40, **more, **options), getattr(torch.nn, name)(30, 40, **more, **options)
        state = ours.state_dict()
        assert {k: tuple(v.shape) for k, v in state.items()} == {k: tuple(v.shape) for k, v in
                                                                  theirs.state_dict().items()}
        assert list(state) == list(theirs.state_dict())
        theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in state.items()})
        assert repr(ours) == repr(theirs)
        values = np.concatenate([v.numpy().ravel() for v in state.values()])
        assert np.abs(values).max() <= 40 ** -0.5 and abs(values.mean()) < 0.005 and np.abs(values).max() > 0.157


@pytest.mark.torch
@pytest.mark.parametrize("name, options", [("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"}), ("LSTMCell", {}),
                                           ("GRUCell", {}), ("GRUCell", {"bias": False})])
def test_cells_equal_torch(name, options):
    import torch
    theirs = getattr(torch.nn, name)(3, 4, dtype=torch.float64, **options)
    ours = getattr(nn, name)(3, 4, dtype=zoo.float64, **options)
    ours.load_state_dict({k: zoo.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    assert repr(ours) == repr(theirs)
    rng = np.random.default_rng(0)
    for batch, some in itertools.product(((5,), ()), (True, False)):
        x = rng.normal(size=(*batch, 3))
        states = [rng.normal(size=(*batch, 4)) for _ in range(1 + (name == "LSTMCell"))]
        got, want = (layer(lib.tensor(x), *([given(lib, states)[1]] if some else []))
                     for lib, layer in ((zoo, ours), (torch, theirs)))
        for a, b in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, want)), strict=True):
            close(a, b, "float64")
        sum(v.sum() for v in (got if isinstance(got, tuple) else (got,))).backward()
        sum(v.sum() for v in (want if isinstance(want, tuple) else (want,))).backward()
    for k, p in theirs.named_parameters():
        close(dict(ours.named_parameters())[k].grad, p.grad, "float64")


@pytest.mark.torch
@pytest.mark.parametrize("call", [
    lambda lib: lib.nn.LSTM(3, 4, proj_size=4),
    lambda lib: lib.nn.LSTM(3, 4, num_layers=0),
    lambda lib: lib.nn.LSTM(0, 4),
    lambda lib: lib.nn.LSTM(3.0, 4),
    lambda lib: lib.nn.GRU(3, 4, proj_size=2),
    lambda lib: lib.nn.GRU(3, 4, dropout=1.5),
    lambda lib: lib.nn.RNN(3, 4, bias=1),
    lambda lib: lib.nn.RNN(3, 4, nonlinearity="sigmoid"),
    lambda lib: lib.nn.LSTM(3, 4)(lib.ones(2)),
    lambda lib: lib.nn.LSTM(3, 4)(lib.ones(5, 2, 4)),
    lambda lib: lib.nn.LSTM(3, 4)(lib.ones(0, 2, 3)),
    lambda lib: lib.nn.LSTM(3, 4)(lib.ones(5, 2, 3, dtype=lib.float64)),
    lambda lib: lib.nn.LSTM(3, 4)(lib.ones(5, 2, 3), (lib.ones(1, 3, 4), lib.ones(1, 3, 4))),
    lambda lib: lib.nn.GRU(3, 4)(lib.ones(5, 2, 3), lib.ones(2, 4)),
    lambda lib: lib.nn.GRU(3, 4)(lib.ones(5, 3), lib.ones(1, 1, 4)),
    lambda lib: lib.nn.GRUCell(3, 4)(lib.ones(5, 2, 3)),
    lambda lib: lib.nn.LSTMCell(3, 4)(lib.ones(5, 2)),
    lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(5, 2, 3), [3, 5]),
    lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(5, 2, 3), [5, 0]),
    lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(5, 2, 3), [5]),
    lambda lib: lib.nn.utils.rnn.pad_packed_sequence(lib.nn.utils.rnn.pack_sequence([lib.ones(3)]), total_length=2),
    lambda lib: lib.nn.utils.rnn.pad_sequence([lib.ones(3), lib.ones(3, 2)]),
])
def test_wrong_calls_raise_what_torch_raises(call):
    import torch
    with pytest.raises((ValueError, TypeError, RuntimeError)) as theirs:
        call(torch)
    with pytest.raises(theirs.type) as ours:
        call(zoo)
    assert isinstance(ours.value, (ValueError, TypeError)) and ":" in str(ours.value)


def test_a_length_of_zero_is_refused_clearly():
    layer, x = nn.LSTM(3, 4), zoo.ones(5, 2, 3)
    with pytest.raises(ValueError, match=r"lengths in \[1, 5\], got \[5, 0\]"):
        layer(x, lengths=[5, 0])
    with pytest.raises(ValueError, match=r"lengths in \[1, 5\], got \[6, 2\]"):              # torch reads past the end
        layer(x, lengths=[6, 2])
    with pytest.raises(ValueError, match=r"lengths of at least 1, got \[2, 0\]"):
        layer([zoo.ones(2, 3), zoo.ones(0, 3)])
    with pytest.raises(ValueError, match="lengths belong to a padded"):
        layer([zoo.ones(2, 3)], lengths=[2])


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_say_what_each_sequence_alone_gives(kind):
    """No torch needed: a padded batch, a list and single runs agree, and padding is zero."""
    name, more = KINDS[kind]
    layer = getattr(nn, name)(3, 4, 2, bidirectional=True, batch_first=True, dtype=zoo.float64, **more)
    x = zoo.tensor(np.random.default_rng(0).normal(size=(4, 6, 3)))
    y, states = layer(x, lengths=LENGTHS)
    assert y.shape[1] == 6
    for k, n in enumerate(LENGTHS):
        alone, last = layer(x[k:k + 1, :n])
        np.testing.assert_allclose(y[k, :n].detach().numpy(), alone[0].detach().numpy(), atol=1e-14)
        assert not y[k, n:].detach().numpy().any()
        for s, t in zip(RNNStates(states), RNNStates(last), strict=True):
            np.testing.assert_allclose(s[:, k].detach().numpy(), t[:, 0].detach().numpy(), atol=1e-14)


def RNNStates(states):  # noqa: N802
    return states if isinstance(states, tuple) else (states,)


def test_dropout_between_layers_draws_from_the_generator():
    layer, x = nn.LSTM(3, 4, 2, dropout=0.5), zoo.ones(5, 2, 3)
    results = []
    for _ in range(2):
        zoo.manual_seed(3)
        results.append(layer(x)[0].detach().numpy())
    assert np.array_equal(*results) and not np.array_equal(results[0], layer(x)[0].detach().numpy())
    layer.eval()
    assert np.array_equal(layer(x)[0].detach().numpy(), layer(x)[0].detach().numpy())
    with pytest.warns(UserWarning, match="num_layers"):
        nn.GRU(3, 4, dropout=0.5)


@pytest.mark.torch
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("enforce_sorted", [False, True])
def test_packing_equals_torch(batch_first, enforce_sorted):
    import torch
    lengths = sorted(LENGTHS, reverse=True) if enforce_sorted else LENGTHS
    x = np.random.default_rng(0).normal(size=(4, 5, 2) if batch_first else (5, 4, 2))
    packs = [lib.nn.utils.rnn.pack_padded_sequence(lib.tensor(x), lengths, batch_first, enforce_sorted)
             for lib in (zoo, torch)]
    for a, b in zip(*packs, strict=True):
        assert (a is None) == (b is None)
        assert a is None or np.array_equal(a.numpy(), b.numpy()) and a.numpy().dtype == b.numpy().dtype
    for options in ({}, dict(batch_first=True, padding_value=-1.0), dict(total_length=7)):
        pads = [lib.nn.utils.rnn.pad_packed_sequence(p, **options)
                for lib, p in zip((zoo, torch), packs, strict=True)]
        for a, b in zip(*pads, strict=True):
            assert np.array_equal(a.numpy(), b.numpy())
    for a, b in zip(unpack_sequence(packs[0]), torch.nn.utils.rnn.unpack_sequence(packs[1]), strict=True):
        assert np.array_equal(a.numpy(), b.numpy())


@pytest.mark.torch
def test_padding_equals_torch(rng):
    import torch
    rows = [rng.normal(size=(n, 2)) for n in LENGTHS]
    for batch_first, side in itertools.product((False, True), ("left", "right")):
        a, b = (lib.nn.utils.rnn.pad_sequence([lib.tensor(r) for r in rows], batch_first, 7.0, side)
                for lib in (zoo, torch))
        assert np.array_equal(a.numpy(), b.numpy())
    back = unpad_sequence(pad_sequence([zoo.tensor(r) for r in rows]), LENGTHS)
    assert all(np.array_equal(a.numpy(), r) for a, r in zip(back, rows, strict=True))


def test_packed_sequences_move_between_dtypes():
    packed = pack_sequence([zoo.ones(2, 3), zoo.ones(4, 3)], enforce_sorted=False)
    assert packed.double().data.dtype == zoo.float64 and packed.float() is packed and packed.cpu() is packed
    assert packed.double().unsorted_indices.tolist() == [1, 0]


def test_detached_states_cut_the_history():
    layer = nn.LSTM(2, 3, 2)
    _, states = layer(zoo.ones(4, 1, 2))
    cut = detach_states([states, None])
    assert isinstance(cut[0], tuple) and cut[1] is None
    assert all(not s.requires_grad and np.array_equal(s.numpy(), t.detach().numpy())
               for s, t in zip(cut[0], states, strict=True))


def test_weight_drop_draws_once_for_a_call():
    """Dropped weights are zero or doubled; gradients reach the raw ones; in eval mode it is the layer itself."""
    plain = nn.LSTM(3, 4, dtype=zoo.float64)
    layer = nn.LSTM(3, 4, dtype=zoo.float64)
    layer.load_state_dict(plain.state_dict())
    dropped, x = nn.WeightDrop(layer), zoo.ones(5, 2, 3, dtype=zoo.float64)
    zoo.manual_seed(0)
    dropped(x)[0].sum().backward()
    used, raw = layer.weight_hh_l0.detach().numpy(), dropped.weight_hh_l0_raw.detach().numpy()
    gone = used == 0
    assert 0.2 < gone.mean() < 0.8 and np.allclose(used[~gone], 2 * raw[~gone])
    grad = dropped.weight_hh_l0_raw.grad.numpy()
    assert not grad[gone].any() and grad[~gone].all()
    dropped.eval()
    np.testing.assert_allclose(dropped(x)[0].detach().numpy(), plain(x)[0].detach().numpy(), atol=1e-15)
    with pytest.raises(ValueError, match="weight_xx"):
        nn.WeightDrop(nn.GRU(3, 4), ["weight_xx"])


def test_embedding_dropout_forgets_whole_words():
    words = nn.EmbeddingDropout(nn.Embedding(50, 3), 0.5)
    input = zoo.arange(50).repeat(2)  # noqa: A001
    zoo.manual_seed(0)
    y = words(input).detach().numpy()
    assert np.array_equal(y[:50], y[50:])
    gone = ~y[:50].any(1)
    assert 10 < gone.sum() < 40 and np.allclose(y[:50][~gone], 2 * words.embedding.weight.detach().numpy()[~gone])
    words.eval()
    assert np.array_equal(words(input).detach().numpy()[:50], words.embedding.weight.detach().numpy())
    with pytest.raises(ValueError, match="probability"):
        nn.EmbeddingDropout(nn.Embedding(5, 3), 1.5)
