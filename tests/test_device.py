"""Tensors on the device (a GPU, or the interpreter): the CPU's programs, and nothing falls back silently."""

import numpy as np
import pytest

import zoo
from tests.test_autograd import PROGRAMS, V, X
from zoo.ops.op import OPS, structured

pytestmark = pytest.mark.skipif(not zoo.cuda.is_available(), reason="no GPU, and not ZOO_INTERPRET=1")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_in_place_and_views(program):
    results = []
    for device in ("cpu", "cuda"):
        leaves = [zoo.from_numpy(a.astype(np.float32)).to(device).requires_grad_() for a in (X, V)]
        y = program(*leaves)
        y.sum().backward()
        assert y.device.type == device
        results.append([y.detach()] + [zoo.zeros(1) if t.grad is None else t.grad for t in leaves])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(b.cpu().numpy(), a.numpy(), rtol=2e-5, atol=1e-5)


def test_views_share_memory():
    x = zoo.zeros(3, 4, device="cuda")
    x.t()[1].fill_(5)
    x[2:, ::2] = 7
    assert x.cpu().tolist() == [[0, 5, 0, 0], [0, 5, 0, 0], [7, 5, 7, 0]]


def test_model_trains_as_on_the_cpu():
    """Conv, batch norm, pooling, linear, cross entropy, Adam: three steps, the same losses."""
    losses = {}
    for device in ("cpu", "cuda"):
        zoo.manual_seed(3)
        model = zoo.nn.Sequential(
            zoo.nn.Conv2d(1, 4, 3, padding=1),
            zoo.nn.BatchNorm2d(4),
            zoo.nn.ReLU(),
            zoo.nn.MaxPool2d(2),
            zoo.nn.Flatten(),
            zoo.nn.Dropout(0.25),
            zoo.nn.Linear(4 * 4 * 4, 10),
        ).to(device)
        x = zoo.randn(6, 1, 8, 8).to(device)
        labels = zoo.tensor([0, 3, 9, 1, 1, 7]).to(device)
        optimizer = zoo.optim.Adam(model.parameters(), lr=0.01)
        losses[device] = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = zoo.nn.functional.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()
            losses[device].append(loss.item())
    np.testing.assert_allclose(losses["cuda"], losses["cpu"], rtol=1e-4)
    assert losses["cpu"][-1] < losses["cpu"][0]


def test_devices_do_not_mix():
    with pytest.raises((TypeError, RuntimeError), match="add.*cpu.*cuda|add.*cuda.*cpu"):
        zoo.ones(3) + zoo.ones(3, device="cuda")
    assert (zoo.ones(3, device="cuda") * zoo.tensor(2.0)).cpu().tolist() == [2, 2, 2]  # a 0-d CPU tensor is a number
    with pytest.raises(TypeError, match="cpu"):
        zoo.ones(3, device="cuda").numpy()


def test_an_op_without_a_kernel_names_itself():
    @structured
    class nameless:
        def forward(x): return x
    try:
        with pytest.raises(NotImplementedError, match="nameless"):
            OPS["nameless"](zoo.ones(2, device="cuda"))
    finally:
        del OPS["nameless"]


def test_to_and_back_is_differentiable():
    x = zoo.ones(3, requires_grad=True)
    (x.cuda() * 2).cpu().sum().backward()
    assert x.grad.device.type == "cpu" and x.grad.tolist() == [2, 2, 2]


def test_default_device():
    with zoo.device("cuda"):
        assert zoo.zeros(2).is_cuda and zoo.rand(2).is_cuda
    assert not zoo.zeros(2).is_cuda
    zoo.set_default_device("cuda")
    try:
        assert zoo.zeros(2).is_cuda
        with zoo.device("cpu"):
            assert not zoo.zeros(2).is_cuda
        assert zoo.zeros(2).is_cuda
    finally:
        zoo.set_default_device(None)
    assert not zoo.zeros(2).is_cuda


def test_copies_between_devices_keep_the_order_in_memory():
    """As torch's: dense arrays keep their strides, others become contiguous."""
    x = zoo.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)
    for given, strides in (
        (x.contiguous(memory_format=zoo.channels_last), (60, 1, 15, 3)),
        (x.permute(3, 1, 0, 2), (1, 20, 60, 5)),
        (x[:, :, ::2], (30, 10, 5, 1)),
        (x.expand(2, 2, 3, 4, 5), (120, 60, 20, 5, 1)),
        (x.to(memory_format=zoo.channels_last)[:, :, :, :0], (0, 0, 0, 1)),
    ):
        there = given.to("cuda")
        back = there.cpu()
        if given.numel():
            assert there.stride() == strides == back.stride()
        assert back.tolist() == given.tolist() and zoo.equal(there * 2, (given * 2).to("cuda"))
    w = x.contiguous(memory_format=zoo.channels_last).requires_grad_()
    (w.to("cuda") * zoo.tensor(3.0, device="cuda")).sum().backward()
    assert (w.grad == 3).all()
