"""autograd.graph: hooks on saved tensors, beside torch where that says something, and what they keep alive."""
import gc
import weakref

import numpy as np
import pytest

import zoo
from zoo.autograd import graph

X = np.random.RandomState(0).uniform(0.5, 1.5, (3, 4))


class Cube(zoo.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x ** 3
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return 3 * g * y / x


PROGRAMS = {
    "input": lambda x: (x * x).sum(),
    "output": lambda x: x.exp().sum(),
    "several": lambda x: zoo.cat([x, x * 2, x.sin()], 1).prod(1).sum(),
    "outputs": lambda x: (x.sort(1).values ** 2 * zoo.arange(4.0)).sum() + x.max(1).values.exp().sum(),
    "norm": lambda x: (zoo.nn.functional.layer_norm(x, (4,)) ** 3).sum(),
    "batch norm": lambda x: (zoo.nn.functional.batch_norm(x, None, None, training=True) ** 3).sum(),
    "conv": lambda x: zoo.nn.functional.conv1d(x[None], zoo.ones(2, 3, 2, dtype=zoo.float64) * x[0, 0]).pow(2).sum(),
    "index": lambda x: (x[zoo.tensor([0, 2, 0])] ** 2).sum() + zoo.where(x > 1, x * x, x).sum(),
    "softmax": lambda x: zoo.nn.functional.cross_entropy(x, zoo.tensor([0, 3, 1])),
    "matmul": lambda x: (x @ x.T @ x).sum(),
    "function": lambda x: (Cube.apply(x) * x).sum(),
    "in place": lambda x: (x * 1).mul_(x).exp_().sum(),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_are_the_same_under_hooks(program):
    """First and second derivatives; what is packed is a copy, and what was packed is unpacked."""
    results, counts = [], [0, 0]

    def pack(x):
        counts[0] += 1
        return x.detach().numpy().copy()

    def unpack(a):
        counts[1] += 1
        return zoo.from_numpy(a)

    for hooks in ((), (graph.saved_tensors_hooks(pack, unpack),)):
        x = zoo.tensor(X, requires_grad=True)
        for hook in hooks:
            hook.__enter__()
        y = PROGRAMS[program](x)
        for hook in hooks:
            hook.__exit__()
        once, = zoo.autograd.grad(y, x, retain_graph=True)
        again, = zoo.autograd.grad(y, x, create_graph=True)
        twice, = zoo.autograd.grad((again ** 2).sum(), x, allow_unused=True)
        results.append([once, again.detach(), twice])
    assert counts[0] and counts[1]
    for plain, hooked in zip(*results, strict=True):
        np.testing.assert_array_equal(plain.numpy(), hooked.numpy())


def program_of_both(library, log):
    """What the hooks see, and gradients of values that the hooks change."""
    def pack(x):
        log.append((tuple(x.shape), x.requires_grad, x.is_leaf))
        return x.detach() * 2

    a = library.tensor(X, requires_grad=True)
    b = library.tensor(X + 1)
    with library.autograd.graph.saved_tensors_hooks(pack, lambda x: x + 1):
        y = (a * b).exp()
        with library.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            z = y * y
    z.sum().backward()
    return a.grad.numpy()


def test_values_are_those_that_unpack_gives():
    torch = pytest.importorskip("torch")
    logs = [], []
    mine, theirs = program_of_both(zoo, logs[0]), program_of_both(torch, logs[1])
    np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    assert {shape for shape, *_ in logs[0]} == {shape for shape, *_ in logs[1]}
    assert (3, 4) in {shape for shape, *_ in logs[0]}


def test_a_write_in_place_does_no_harm_to_what_was_packed():
    x = zoo.tensor(X, requires_grad=True)
    h = x * 1
    with graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y, z = h.exp(), h.sin()
    y.add_(1)
    h.zero_()
    (y + z).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(X) + np.cos(X))
    with pytest.raises(RuntimeError, match="freed"):
        z.sum().backward()


def test_what_is_packed_elsewhere_frees_the_tensor():
    kept = []
    with graph.saved_tensors_hooks(lambda t: kept.append(t.detach().numpy().copy()) or len(kept) - 1,
                                   lambda k: zoo.from_numpy(kept[k])):
        h = zoo.tensor(X, requires_grad=True) * 2
        alive = weakref.ref(h)
        y = (h * h).sum()
    del h
    gc.collect()
    assert alive() is None
    y.backward()


def test_hooks_end_with_their_block_and_can_be_forbidden():
    seen = []
    hooks = graph.saved_tensors_hooks(lambda x: seen.append(1) or x, lambda x: x)
    x = zoo.ones(2, requires_grad=True)
    with hooks:
        x.exp()
    count = len(seen)
    x.exp()
    with hooks, zoo.no_grad():
        x.exp()
    assert count and len(seen) == count and not zoo.autograd.mode.WATCHED
    with graph.disable_saved_tensors_hooks("not in here"), pytest.raises(RuntimeError, match="not in here"), hooks:
        pass
    with hooks:
        pass
    with zoo.autograd.detect_anomaly(), graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        y = zoo.zeros(1, requires_grad=True).sqrt() * 0
        with pytest.raises(RuntimeError, match="returned nan.*test_saved_hooks"):
            y.backward()


@pytest.mark.parametrize("unpack, kind", [(lambda x: x.numpy(), TypeError), (lambda x: x[:1], ValueError),
                                          (lambda x: x.float(), ValueError)])
def test_unpack_must_give_the_tensor_back(unpack, kind):
    with graph.saved_tensors_hooks(lambda x: x.detach(), unpack):
        y = (zoo.tensor(X, requires_grad=True) ** 2).sum()
    with pytest.raises(kind, match="unpack_hook must give"):
        y.backward()


@pytest.mark.parametrize("pin", [False, True])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_save_on_cpu(device, pin):
    net = zoo.nn.Sequential(zoo.nn.Linear(4, 5), zoo.nn.GELU(), zoo.nn.LayerNorm(5), zoo.nn.Linear(5, 2)).to(device)
    x = zoo.tensor(X, dtype=zoo.float32, device=device)
    grads = []
    for where in (graph.save_on_cpu(pin_memory=pin), zoo.enable_grad()):
        with where:
            y = net(x)
        net.zero_grad()
        y.pow(2).sum().backward()
        grads.append([p.grad.cpu().numpy() for p in net.parameters()])
    for a, b in zip(*grads, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_backward_that_raises_leaves_what_it_saved_packed():
    class Fails(zoo.autograd.Function):
        ready = False

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            if not Fails.ready:
                raise KeyError("not yet")
            return g * x

    x, unpacked = zoo.tensor([3.0], requires_grad=True), []

    def unpack(kept):
        unpacked.append(kept)
        return zoo.tensor(kept)
    with graph.saved_tensors_hooks(lambda t: t.tolist(), unpack):
        y = Fails.apply(x)
    for Fails.ready in (False, True):
        if Fails.ready:
            y.backward()
        else:
            with pytest.raises(KeyError, match="not yet"):
                y.backward()
    assert x.grad.tolist() == [3.0] and unpacked == [[3.0], [3.0]]
