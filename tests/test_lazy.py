"""nn.Lazy*: layers that learn their number of inputs from the first input, beside torch's; what they refuse before."""
import copy
import inspect
import pickle

import numpy as np
import pytest

import zoo
from zoo import nn

CASES = {
    "LazyLinear": [((3,), (4, 5)), ((3, False), (2, 4, 5))],
    "LazyConv1d": [((4, 3), (2, 6, 7)), ((4, 3, 2, 1), (6, 7))],
    "LazyConv2d": [((4, 3), (2, 6, 5, 5)), ((4, (3, 1), 1, 0, 1, 2, False), (2, 6, 5, 5))],
    "LazyConv3d": [((2, 2), (1, 3, 3, 3, 3))],
    "LazyConvTranspose1d": [((4, 3), (2, 6, 7))],
    "LazyConvTranspose2d": [((4, 3, 2, 1, 1, 2), (2, 6, 5, 5))],
    "LazyConvTranspose3d": [((2, 2), (1, 3, 3, 3, 3))],
    "LazyBatchNorm1d": [((), (4, 3)), ((1e-3, None), (4, 3, 5))],
    "LazyBatchNorm2d": [((1e-5, 0.1, False), (4, 3, 5, 5))],
    "LazyBatchNorm3d": [((1e-5, 0.1, True, False), (2, 3, 2, 2, 2))],
    "LazyInstanceNorm1d": [((), (4, 3, 5))],
    "LazyInstanceNorm2d": [((1e-5, 0.1, True, True), (2, 3, 5, 5))],
    "LazyInstanceNorm3d": [((), (2, 3, 2, 2, 2))],
}
ROWS = [(name, *row) for name, rows in CASES.items() for row in rows]


@pytest.mark.parametrize("name, args, shape", ROWS)
def test_becomes_what_torch_becomes(name, args, shape):
    """repr before and after, names and shapes of the state, and with torch's weights torch's output."""
    torch = pytest.importorskip("torch")
    mine, theirs = getattr(nn, name)(*args), getattr(torch.nn, name)(*args)
    assert repr(mine) == repr(theirs) and list(mine.state_dict()) == list(theirs.state_dict())
    assert [*inspect.signature(type(mine)).parameters][:4] == [*inspect.signature(type(theirs)).parameters][:4]
    held = dict(mine.named_parameters()) | dict(mine.named_buffers())
    x = np.random.RandomState(0).uniform(-1, 1, shape).astype(np.float32)
    mine(zoo.tensor(x))
    theirs(torch.tensor(x))
    assert repr(mine) == repr(theirs) and type(mine).__name__ == name[4:] and not mine._hooks
    now = dict(mine.named_parameters()) | dict(mine.named_buffers())
    assert now.keys() == held.keys() and all(now[k] is x and type(x).__name__[:5] != "Unini" for k, x in held.items())
    state = {k: zoo.tensor(v.numpy()) for k, v in theirs.state_dict().items()}
    fresh = getattr(nn, name)(*args)
    fresh.load_state_dict(state)
    mine.load_state_dict(state)
    with torch.no_grad():
        wanted = theirs(torch.tensor(x)).numpy()
    np.testing.assert_allclose(mine(zoo.tensor(x)).detach().numpy(), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(fresh(zoo.tensor(x)).detach().numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_training_with_an_optimizer_made_before():
    net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))
    copies = [copy.deepcopy(net), pickle.loads(pickle.dumps(net)), copy.deepcopy(net).to(zoo.float64)]
    optimizer = zoo.optim.SGD(net.parameters(), lr=0.1)
    x = zoo.rand(5, 3, 6, 6)
    net(x).sum().backward()
    before = [p.detach().clone() for p in net.parameters()]
    optimizer.step()
    assert sum(not zoo.equal(p, q) for p, q in zip(net.parameters(), before, strict=True)) >= 4
    for other in copies[:2]:
        other.load_state_dict(net.state_dict())
        assert zoo.equal(other.eval()(x), net.eval()(x)) and type(other[0]) is nn.Conv2d
    assert copies[2](x.double()).dtype == zoo.float64 and copies[2][0].weight.dtype == zoo.float64


def test_frozen_stays_frozen():
    layer = nn.LazyLinear(2).requires_grad_(False)
    layer(zoo.ones(1, 3))
    assert not layer.weight.requires_grad and not layer.bias.requires_grad


@pytest.mark.parametrize("use", [lambda p: p.shape, lambda p: p + 1, lambda p: p.numel(), lambda p: p.sum(),
                                 lambda p: p.clone(), lambda p: len(p)])
def test_what_has_no_shape_raises(use):
    for x in (nn.LazyLinear(2).weight, nn.LazyBatchNorm1d().running_mean):
        with pytest.raises(RuntimeError, match="no shape and no values yet"):
            use(x)
        assert repr(x) == f"<{type(x).__name__}>" and x.dtype == zoo.float32 and x.device.type == "cpu"


@pytest.mark.parametrize("layer, shape, message", [
    (lambda: nn.LazyConv2d(3, 3), (2, 3), r"LazyConv2d: wants 3 dims .* got shape \(2, 3\)"),
    (lambda: nn.LazyConv2d(3, 3, groups=3), (1, 4, 5, 5), "groups that divide the input's 4 channels"),
    (lambda: nn.LazyBatchNorm2d(), (2, 3), "wants .N, C, H, W."),
])
def test_a_wrong_first_input_says_so(layer, shape, message):
    module = layer()
    with pytest.raises(ValueError, match=message):
        module(zoo.ones(*shape))
    assert module.has_uninitialized_params()


def test_sync_batch_norm_says_why_not():
    for make in (lambda: nn.SyncBatchNorm(3), lambda: nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(3))):
        with pytest.raises(NotImplementedError, match="one process"):
            make()
