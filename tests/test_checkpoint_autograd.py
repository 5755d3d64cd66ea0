"""Checkpointing: the same gradients as without, from less memory."""
import tracemalloc

import numpy as np
import pytest

import zoo
from zoo import nn
from zoo.utils.checkpoint import checkpoint, checkpoint_sequential


def net(layers: int = 4, dropout: float = 0.0) -> nn.Sequential:
    zoo.manual_seed(3)
    parts = [[nn.Linear(8, 8), nn.Tanh(), nn.Dropout(dropout)] for _ in range(layers)]
    return nn.Sequential(*(layer for part in parts for layer in part)).double()


def gradients(run, model, x):
    model.zero_grad()
    zoo.manual_seed(1)
    (gx,) = zoo.autograd.grad(run(x).square().sum(), x)
    zoo.manual_seed(1)
    run(x).square().sum().backward()
    return [gx.numpy(), *(p.grad.numpy() for p in model.parameters())]


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_gradients_are_those_of_the_plain_call(dropout):
    model, x = net(dropout=dropout), zoo.randn(5, 8, dtype=zoo.float64, requires_grad=True)
    plain = gradients(model, model, x)
    again = zoo.rand(1)
    for run in (lambda x: checkpoint(model, x), lambda x: checkpoint_sequential(model, 3, x),
                lambda x: checkpoint(lambda x: checkpoint(model[6:], model[:6](x)), x)):
        for a, b in zip(plain, gradients(run, model, x), strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(zoo.rand(1).numpy(), again.numpy())     # the generator stands where it stood


def test_what_the_function_takes_from_outside():
    """A tensor that is no leaf, a leaf behind it, several outputs of which one is not used, and a hook called once."""
    x = zoo.tensor([2.0, 3.0], requires_grad=True)
    w = zoo.tensor([5.0, 7.0], requires_grad=True)

    def both(use):
        h, calls = w * x, []
        h.register_hook(lambda g: calls.append(1))
        w.register_hook(lambda g: calls.append(2))
        out = use(lambda x: {"a": (x * h * w, [h + 1]), "n": 3}, x)
        gx, gw = zoo.autograd.grad(out["a"][0].sum(), (x, w))
        return [gx.tolist(), gw.tolist()], out["n"], sorted(calls)
    assert both(checkpoint) == both(lambda f, *args: f(*args))


def test_higher_derivatives_and_gradcheck():
    w = zoo.rand(4, 4, dtype=zoo.float64, requires_grad=True)
    x = zoo.rand(3, 4, dtype=zoo.float64, requires_grad=True)
    assert zoo.autograd.gradcheck(lambda x, w: checkpoint(lambda x: (x @ w).tanh(), x), (x, w))
    assert zoo.autograd.gradgradcheck(lambda x, w: checkpoint(lambda x: (x @ w).tanh(), x), (x, w))


def test_errors():
    x = zoo.ones(3, requires_grad=True)
    y = checkpoint(lambda x: x.exp(), x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="freed"):
        y.backward()
    h = x * 1
    y = checkpoint(lambda h: h.exp(), h)
    h.add_(1)
    with pytest.raises(RuntimeError, match="checkpoint.*changed in place"):
        y.sum().backward()
    sizes = iter((3, 2))
    with pytest.raises(RuntimeError, match="the same each time"):
        checkpoint(lambda x: x[:next(sizes)].exp(), x).sum().backward()
    with pytest.raises(ValueError, match="segments"):
        checkpoint_sequential([nn.ReLU()], 2, x)
    with zoo.no_grad():
        assert not checkpoint(lambda x: x.exp(), x).requires_grad
    assert checkpoint(lambda x: x, x) is x


def test_memory():
    """Eight parts of 20 elementwise steps: what is kept is one array per part, not one per step."""
    def part(x):
        for _ in range(20):
            x = x.tanh()
        return x

    def peak(use):
        x = y = zoo.ones(100_000, requires_grad=True)
        tracemalloc.start()
        for _ in range(8):
            y = use(part, y)
        y.sum().backward()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most / x.nbytes
    assert peak(lambda f, x: f(x)) > 150
    assert peak(checkpoint) < 45


def test_the_second_run_has_the_precision_of_the_first():
    """The backward pass usually runs outside of autocast."""
    w, x = zoo.rand(8, 8, requires_grad=True), zoo.rand(5, 8)
    seen = []

    def part(x):
        y = x @ w
        seen.append(y.dtype)
        return y.float().square()

    def gradient(use):
        with zoo.autocast("cpu"):
            y = use(part, x)
        (g,) = zoo.autograd.grad(y.sum(), w)
        return g.numpy()

    np.testing.assert_array_equal(gradient(checkpoint), gradient(lambda f, x: f(x)))
    assert seen == [zoo.bfloat16] * 3 and not zoo.is_autocast_enabled("cpu")
