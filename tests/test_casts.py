"""Weights and gradients between float32 and half precision, many by one launch: the same bits as one by one."""
import functools
import gc

import numpy as np
import pytest

import zoo
from tests.test_multi_tensor import launches, pairs
from zoo import nn
from zoo.autograd import casts, late
from zoo.nn import functional as F  # noqa: N812
from zoo.ops import cuda
from zoo.ops.multi_tensor import lists_for
from zoo.ops.shape import cast

FLOATS = ["float64", "float32", "float16", "bfloat16"]
pytestmark = pytest.mark.cuda


@pytest.fixture
def one_by_one(monkeypatch):
    """A switch after which nothing is cast together."""
    def switch():
        monkeypatch.setattr(casts, "followers", lambda first, dtype: [])
        monkeypatch.setattr(late.Late, "bring", lambda self, edge, g, dtype: cast(g, dtype))
    return switch


@pytest.mark.parametrize("target", FLOATS)
def test_lists_are_cast_as_one_array_is(target):
    """Every layout, empty and unaligned ones too, of several dtypes at once; more than one chunk, and a whole one."""
    host, device = pairs([name for name in FLOATS if name != target])
    host, device = ([*xs, zoo.linspace(-3, 5, 2048, device=xs[0].device),
                     zoo.tensor([float("inf"), float("-inf"), 1e30, 1e-30], device=xs[0].device)]
                    for xs in (host, device))
    dtype = getattr(zoo, target)
    for xs in (host, device):
        arrays = [x.array for x in xs]
        found = lists_for(type(arrays[0])).cast_all(arrays, dtype)
        for x, y in zip(xs, found, strict=True):
            wanted = x.to(dtype).array
            assert (y.dtype, y.shape) == (dtype, wanted.shape) and (y.size < 2 or y.strides == wanted.strides)
            if type(y) is not np.ndarray:
                y, wanted = cuda.to_numpy(y), cuda.to_numpy(wanted)
            assert y.tobytes() == wanted.tobytes()


def network() -> nn.Module:
    """With weights of several layouts and a bias; the batch norm's stay float32."""
    zoo.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 1), nn.Flatten(),
                          nn.Linear(16, 5))
    return model.to("cuda", memory_format=zoo.channels_last)


def forward(model, x, dtype=zoo.bfloat16):
    with zoo.autocast("cuda", dtype):
        return model(x).float().square().mean()


def trained(captured: bool = False) -> list:
    """Losses and weights of a small network."""
    model = network()
    optimizer = zoo.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = zoo.linspace(-1, 1, 2 * 3 * 16, device="cuda").reshape(2, 3, 4, 4)

    def step():
        optimizer.zero_grad()
        loss = forward(model, x)
        loss.backward()
        optimizer.step()
        return loss.detach()
    step = zoo.cuda.graph(step, warmup=1) if captured else step
    losses = [step().item() for _ in range(4)]
    return [losses, *(p.tolist() for p in model.parameters())]


def test_training_has_the_bits_of_casts_one_by_one(one_by_one):
    together = trained()
    assert together == trained(captured=True)
    one_by_one()
    assert together == trained()


@pytest.mark.interpret
def test_a_step_casts_all_weights_by_one_launch_and_all_gradients_by_another():
    model, x = network(), zoo.ones(2, 3, 4, 4, dtype=zoo.bfloat16, device="cuda")
    losses = []
    first = launches(lambda: losses.append(forward(model, x)))
    second = launches(lambda: losses.append(forward(model, x)))
    assert first.count("cast_kernel") == 0 and second.count("cast_kernel") == 1
    assert len(second) == len(first) - 6 + 1                       # three weights, three biases
    assert launches(losses[1].backward).count("cast_kernel") == 1
    assert all(p.grad.dtype == zoo.float32 for p in model.parameters())
    model[3].weight.requires_grad_(False)                          # is cast where it is used, as ever
    assert launches(lambda: forward(model, x)).count("cast_kernel") == 1
    with zoo.no_grad():
        assert launches(lambda: forward(model, x)).count("cast_kernel") == 1


def test_what_a_block_expects_may_change():
    """Weights written to after they were cast, moved, of another dtype, gone, used no more, or newly used."""
    a, b, c, d = (nn.Parameter(zoo.full((3, 3), float(k + 1), device="cuda")) for k in range(4))
    x = zoo.ones(1, 3, dtype=zoo.bfloat16, device="cuda")

    def sums(*weights, before_last=None):
        with zoo.autocast("cuda", zoo.bfloat16):
            found = [F.linear(x, w).sum() for w in weights[:-1]]
            if before_last is not None:
                before_last()
            return [y.item() for y in (*found, F.linear(x, weights[-1]).sum())]

    assert sums(a, b, c) == sums(a, b, c) == [9.0, 18.0, 27.0]

    def double(w):
        with zoo.no_grad():
            w.mul_(2)
    assert sums(a, b, c, before_last=functools.partial(double, c)) == [9.0, 18.0, 54.0]
    assert sums(a, d, b) == [9.0, 36.0, 18.0] and sums(a, d, b) == [9.0, 36.0, 18.0]
    with zoo.no_grad():                                            # what is recorded in part is expected in part
        assert sums(a, b, c) == [9.0, 18.0, 54.0]
    b.data = b.data.half()
    d.data = d.data.cpu()
    assert sums(a, c, b) == [9.0, 54.0, 18.0]
    key = id(a)
    assert casts.LAST[key][0]() is a
    del c
    gc.collect()
    assert sums(a, b) == [9.0, 18.0]
    del a
    gc.collect()
    assert key not in casts.LAST


@pytest.mark.parametrize("most", [late.MOST, 0])
def test_gradients_of_two_dtypes_at_one_leaf(most, one_by_one, monkeypatch):
    """From autocast and from a term in float32, in both orders, whatever the number that may wait."""
    monkeypatch.setattr(late, "MOST", most)

    def gradients():
        found = []
        for k in range(3):
            weights = [zoo.linspace(-1, 1, 6, device="cuda").reshape(2, 3).requires_grad_() for _ in range(3)]
            x, heard = zoo.linspace(0, 1, 3, device="cuda"), []
            weights[1].register_hook(lambda g, heard=heard: heard.append(g.dtype.name))
            with zoo.autocast("cuda", zoo.bfloat16):
                terms = [sum(F.linear(x, w).float().square().sum() for w in weights)]
                terms += [(weights[0] ** 2).sum(), F.linear(x * 2, weights[0]).float().sum()]
            terms = terms[k:] + terms[:k]
            sum(terms).backward()
            assert heard == ["float32"]
            found.append([w.grad.tolist() for w in weights])
        return found
    together = gradients()
    one_by_one()
    assert together == gradients()


def test_gradients_asked_for_and_of_higher_order():
    model, x = network(), zoo.linspace(-1, 1, 2 * 3 * 16, device="cuda").reshape(2, 3, 4, 4)
    forward(model, x).backward()
    some = [model[0].weight, model[5].bias]
    for p, g in zip(some, zoo.autograd.grad(forward(model, x), some), strict=True):
        assert g.dtype == zoo.float32 and (g == p.grad).all().item()
    for p, g in zip(some, zoo.autograd.grad(forward(model, x), some, create_graph=True), strict=True):
        assert g.requires_grad and g.dtype == zoo.float32 and (g.detach() - p.grad).abs().max().item() < 1e-2
