"""Adaptive softmax and fractional pooling beside torch, with torch's weights and torch's random numbers."""
import numpy as np
import pytest

import zoo
from zoo import nn
from zoo.nn import functional as F  # noqa: N812


def pair_of(torch, **options):
    """The same adaptive softmax in both libraries."""
    arguments = dict(in_features=9, n_classes=20, cutoffs=[4, 10], div_value=2.0, **options)
    ours, theirs = nn.AdaptiveLogSoftmaxWithLoss(**arguments), torch.nn.AdaptiveLogSoftmaxWithLoss(**arguments)
    ours.load_state_dict({name: zoo.from_numpy(w.numpy()) for name, w in theirs.state_dict().items()})
    return ours, theirs


@pytest.mark.torch
@pytest.mark.parametrize("classes", [[0, 3, 4, 9, 10, 19, 2], [1, 2, 3], [12, 19], [5]])
def test_the_adaptive_softmax_equals_torchs(classes, rng):
    torch = pytest.importorskip("torch")
    ours, theirs = pair_of(torch, head_bias=True)
    x = rng.normal(size=(len(classes), 9)).astype(np.float32)
    a, b = zoo.from_numpy(x.copy()).requires_grad_(), torch.from_numpy(x).requires_grad_()
    mine, wanted = ours(a, zoo.tensor(classes)), theirs(b, torch.tensor(classes))
    np.testing.assert_allclose(mine.output.detach().numpy(), wanted.output.detach().numpy(), rtol=1e-5, atol=1e-6)
    mine.loss.backward()
    wanted.loss.backward()
    for p, q in ((a, b), *zip(ours.parameters(), theirs.parameters(), strict=True)):
        wanted_gradient = np.zeros(p.shape) if q.grad is None else q.grad.numpy()
        found = np.zeros(p.shape) if p.grad is None else p.grad.numpy()
        np.testing.assert_allclose(found, wanted_gradient, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ours.log_prob(a).detach().numpy(), theirs.log_prob(b).detach().numpy(), rtol=1e-5,
                               atol=1e-6)
    assert ours.predict(a).tolist() == theirs.predict(b).tolist()


def test_log_probabilities_of_the_adaptive_softmax_add_up_to_one_and_single_rows_work():
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 30, [5, 12])
    x = zoo.randn(3, 8)
    full = layer.log_prob(x)
    assert zoo.allclose(full.exp().sum(1), zoo.ones(3), atol=1e-5)
    assert layer.predict(x).tolist() == full.argmax(1).tolist()
    output, loss = layer(x[0], zoo.tensor(20))
    assert output.ndim == 0 and output.item() == pytest.approx(full[0, 20].item(), rel=1e-5) == -loss.item()


@pytest.mark.parametrize("call, kind", [
    (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 30, []), ValueError),
    (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 30, [5, 5]), ValueError),
    (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 30, [30]), ValueError),
    (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 30, [5])(zoo.randn(2, 8), zoo.tensor([1, 30])), IndexError),
    (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 30, [5])(zoo.randn(2, 8), zoo.tensor([1])), RuntimeError)])
def test_what_the_adaptive_softmax_refuses(call, kind):
    with pytest.raises(kind, match="AdaptiveLogSoftmaxWithLoss: wants"):
        call()


@pytest.mark.torch
@pytest.mark.parametrize("shape, kernel, options", [
    ((2, 3, 9, 11), 2, {"output_size": (5, 6)}), ((3, 8, 8), (3, 2), {"output_ratio": (0.5, 0.7)}),
    ((2, 2, 7, 5), 3, {"output_size": 1}), ((1, 2, 6, 7, 8), 2, {"output_size": (3, 4, 5)}),
    ((2, 9, 9, 9), (2, 3, 2), {"output_ratio": 0.5}), ((0, 2, 6, 6, 6), 2, {"output_size": 3})])
def test_fractional_pooling_equals_torchs(shape, kernel, options, rng):
    torch = pytest.importorskip("torch")
    rank = 3 if len(shape) == 5 or shape == (2, 9, 9, 9) else 2
    x = rng.normal(size=shape)
    u = rng.uniform(size=(*((1,) * (rank + 2 - len(shape)) + shape)[:2], rank))
    results = []
    for lib in (zoo, torch):
        a = lib.from_numpy(x.copy()).requires_grad_()
        layer = getattr(lib.nn, f"FractionalMaxPool{rank}d")(kernel, return_indices=True, **options,
                                                             _random_samples=lib.from_numpy(u))
        y, indices = layer(a)
        (y * y).sum().backward()
        results.append([t.detach().numpy() for t in (y, indices, a.grad)])
    for mine, wanted in zip(*results, strict=True):
        np.testing.assert_array_equal(mine, wanted)


def test_fractional_windows_are_drawn_by_the_seed():
    x = zoo.rand(1, 2, 16, 16)
    zoo.manual_seed(3)
    first, second = (F.fractional_max_pool2d(x, 2, output_size=7) for _ in range(2))
    zoo.manual_seed(3)
    assert zoo.equal(F.fractional_max_pool2d(x, 2, output_size=7), first) and not zoo.equal(first, second)
    for wrong in (dict(), dict(output_size=3, output_ratio=0.5), dict(output_ratio=1.5), dict(output_size=16)):
        with pytest.raises(ValueError, match="fractional_max_pool2d: wants"):
            F.fractional_max_pool2d(x, 2, **wrong)


@pytest.mark.torch
def test_layers_have_torchs_paths_too():
    """torch.nn.modules: its public classes, and the bases that programs ask isinstance with."""
    torch = pytest.importorskip("torch")
    modules = nn.modules
    shared = {name for name in torch.nn.modules.__all__ if hasattr(nn, name)}
    assert not {name for name in shared if getattr(modules, name, None) is not getattr(nn, name)}
    for layer, base in ((nn.BatchNorm2d(3), modules.batchnorm._BatchNorm),
                        (nn.InstanceNorm1d(3), modules.instancenorm._InstanceNorm),
                        (nn.Conv2d(1, 1, 1), modules.conv._ConvNd),
                        (nn.ConvTranspose2d(1, 1, 1), modules.conv._ConvTransposeNd),
                        (nn.MSELoss(), modules.loss._Loss), (nn.Dropout(), modules.dropout._DropoutNd),
                        (nn.LSTM(2, 3), modules.rnn.RNNBase)):
        assert isinstance(layer, base) and not isinstance(nn.Linear(1, 1), base)
    assert modules.utils._pair(3) == (3, 3) and modules.utils._triple([1, 2, 3]) == (1, 2, 3)
    for name in ("activation", "batchnorm", "container", "conv", "dropout", "flatten", "instancenorm", "linear", "loss",
                 "normalization", "pooling", "rnn", "sparse", "transformer"):
        ours, theirs = getattr(modules, name), getattr(torch.nn.modules, name)
        assert {n for n in theirs.__all__ if n in shared and not hasattr(ours, n)} == set(), name


@pytest.mark.cuda
def test_on_the_gpu():
    x, u = zoo.rand(1, 2, 6, 6), zoo.rand(1, 2, 2)
    args = dict(kernel_size=2, output_size=3, return_indices=True)
    for a, b in zip(F.fractional_max_pool2d(x.cuda(), **args, _random_samples=u.cuda()),
                    F.fractional_max_pool2d(x, **args, _random_samples=u), strict=True):
        assert zoo.equal(a.cpu(), b)
    layer = nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3, 5])
    x, classes = zoo.randn(4, 4), zoo.tensor([0, 3, 8, 4])
    wanted = layer(x, classes).output
    assert zoo.allclose(layer.cuda()(x.cuda(), classes.cuda()).output.cpu(), wanted, atol=1e-5)
