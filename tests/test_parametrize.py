"""nn.utils.parametrize, parametrizations and prune beside torch: values, gradients, names, what stays, what raises."""
import copy
import pickle

import numpy as np
import pytest

import zoo
from zoo.nn.utils import parametrizations, parametrize, prune

LAYERS = {
    "linear": lambda nn: nn.Linear(4, 3), "square": lambda nn: nn.Linear(3, 3), "wide": lambda nn: nn.Linear(5, 2),
    "conv": lambda nn: nn.Conv2d(2, 4, 3), "transposed": lambda nn: nn.ConvTranspose1d(2, 3, 2),
}
INPUTS = {"linear": (2, 4), "square": (2, 3), "wide": (2, 5), "conv": (2, 2, 5, 5), "transposed": (2, 2, 4)}
NORMS = {
    "weight_norm": lambda p, m: p.weight_norm(m),
    "weight_norm dim 1": lambda p, m: p.weight_norm(m, "weight", dim=1),
    "weight_norm of all": lambda p, m: p.weight_norm(m, dim=None),
    "weight_norm of a bias": lambda p, m: p.weight_norm(m, "bias"),
    "spectral_norm": lambda p, m: p.spectral_norm(m, n_power_iterations=2),
    "orthogonal": lambda p, m: p.orthogonal(m),
    "matrix_exp": lambda p, m: p.orthogonal(m, orthogonal_map="matrix_exp"),
    "cayley": lambda p, m: p.orthogonal(m, orthogonal_map="cayley"),
    "householder": lambda p, m: p.orthogonal(m, orthogonal_map="householder"),
    "cayley alone": lambda p, m: p.orthogonal(m, orthogonal_map="cayley", use_trivialization=False),
    "householder alone": lambda p, m: p.orthogonal(m, orthogonal_map="householder", use_trivialization=False),
}


def fill(library, module, seed=0):
    """The same values for all parameters and buffers, in float64."""
    module.to(library.float64)
    with library.no_grad():
        for name, x in sorted(module.state_dict().items()):
            draw = np.random.RandomState(seed + sum(map(ord, name))).uniform(-1, 1, tuple(x.shape))
            x.copy_(library.tensor(draw))
    return module


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("norm", NORMS)
def test_norms_equal_torch(norm, layer):
    """Same names, and from one state the same output and gradients, in two calls in training and one in eval mode."""
    torch = pytest.importorskip("torch")
    mine = NORMS[norm](parametrizations, fill(zoo, LAYERS[layer](zoo.nn)))
    theirs = NORMS[norm](torch.nn.utils.parametrizations, fill(torch, LAYERS[layer](torch.nn)))
    state = theirs.state_dict()
    assert list(mine.state_dict()) == list(state)
    if not any(name.endswith((".base", "_u")) for name in state):           # these are drawn at random
        np.testing.assert_allclose(mine.weight.detach().numpy(), theirs.weight.detach().numpy(), rtol=1e-11, atol=1e-12)
    mine.load_state_dict({k: zoo.tensor(v.numpy()) for k, v in state.items()})
    x = np.random.RandomState(1).uniform(-1, 1, INPUTS[layer])
    for mode in (True, True, False):
        a, b = mine.train(mode)(zoo.tensor(x)), theirs.train(mode)(torch.tensor(x))
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-10, atol=1e-11)
        a.sum().backward()
        b.sum().backward()
        for (name, p), (other, q) in zip(mine.named_parameters(), theirs.named_parameters(), strict=True):
            assert name == other
            np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-9, atol=1e-10, err_msg=name)
    weight = mine.weight.detach().clone()
    parametrize.remove_parametrizations(mine, "bias" if norm.endswith("bias") else "weight")
    assert type(mine) is type(LAYERS[layer](zoo.nn)) and set(mine.state_dict()) == {"weight", "bias"}
    assert isinstance(mine.weight, zoo.nn.Parameter) and (mine.weight == weight).all()


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 3)], ids=str)
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
def test_orthogonal_is_orthogonal(kind, shape):
    """From any start and after a step; an orthogonal start is kept, and one can be assigned."""
    module = zoo.nn.Module()
    module.weight = zoo.nn.Parameter(zoo.randn(*shape, dtype=zoo.float64))
    parametrizations.orthogonal(module, orthogonal_map=kind)

    def check():
        w = module.weight if shape[-2] >= shape[-1] else module.weight.mT
        eye = zoo.eye(w.shape[-1], dtype=zoo.float64).expand(w.mT.shape[:-1] + w.shape[-1:])
        assert zoo.allclose(w.mT @ w, eye, atol=1e-12)

    check()
    zoo.manual_seed(0)
    (module.weight * zoo.randn(*shape, dtype=zoo.float64)).sum().backward()
    zoo.optim.SGD(module.parameters(), lr=0.5).step()
    check()
    wanted = module.weight.detach().clone()
    module.parametrizations.weight.original.data = zoo.zeros(*shape, dtype=zoo.float64)
    module.weight = wanted
    assert zoo.allclose(module.weight, wanted, atol=1e-12)


class Symmetric(zoo.nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, x):
        return x.triu()


class Doubled(zoo.nn.Module):
    def forward(self, x):
        return 2 * x


class Product(zoo.nn.Module):
    def forward(self, a, b):
        return a * b

    def right_inverse(self, x):
        return x, zoo.ones_like(x)


def test_parametrizations_in_a_row():
    layer = zoo.nn.Linear(3, 3)
    before, optimizer = layer.weight, zoo.optim.SGD(layer.parameters(), lr=0.1)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert layer.parametrizations.weight.original is before and (layer.weight == layer.weight.T).all()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert repr(layer).splitlines()[0] == "ParametrizedLinear(" and len(layer.parametrizations.weight) == 2
    assert parametrize.is_parametrized(layer) and not parametrize.is_parametrized(layer, "bias")
    assert parametrize.type_before_parametrizations(layer) is zoo.nn.Linear and isinstance(layer, zoo.nn.Linear)
    with pytest.raises(RuntimeError, match="Doubled has no right_inverse"):
        layer.weight = zoo.ones(3, 3)
    value = layer.weight.detach()
    layer(zoo.ones(1, 3)).sum().backward()
    optimizer.step()
    assert not zoo.equal(layer.weight, value)
    kept = layer.weight.detach()
    parametrize.remove_parametrizations(layer, "weight")
    assert layer.weight is before and zoo.equal(layer.weight, kept) and type(layer) is zoo.nn.Linear


def test_several_originals_buffers_and_assignment():
    layer = zoo.nn.BatchNorm1d(3)
    parametrize.register_parametrization(layer, "running_mean", Product())
    parametrize.register_parametrization(layer, "weight", Product())
    names = {"parametrizations.running_mean.original0", "parametrizations.running_mean.original1"}
    assert names <= {name for name, _ in layer.named_buffers()} and "running_mean" not in layer.state_dict()
    layer.weight = zoo.full((3,), 5.0)
    assert layer.parametrizations.weight.original0.tolist() == [5, 5, 5] and layer.weight.requires_grad
    layer.eval()(zoo.ones(2, 3)).sum().backward()
    assert layer.parametrizations.weight.original1.grad is not None
    with pytest.raises(RuntimeError, match="2 tensors"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(layer, "weight")
    assert isinstance(layer.weight, zoo.nn.Parameter) and parametrize.is_parametrized(layer, "running_mean")
    parametrize.remove_parametrizations(layer, "running_mean")
    assert type(layer) is zoo.nn.BatchNorm1d and set(layer.state_dict()) == set(zoo.nn.BatchNorm1d(3).state_dict())


def test_copies_pickles_casts_and_functional_calls():
    layer = parametrize.register_parametrization(zoo.nn.Linear(3, 3), "weight", Symmetric())
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert zoo.equal(other.weight, layer.weight) and type(other) is type(layer)
        with zoo.no_grad():
            other.parametrizations.weight.original.zero_()
        assert other.weight.sum() == 0 and layer.weight.abs().sum() > 0
    assert copy.deepcopy(layer).to(zoo.float64).weight.dtype == zoo.float64
    zeros = {"parametrizations.weight.original": zoo.zeros(3, 3)}
    assert zoo.equal(zoo.func.functional_call(layer, zeros, zoo.ones(1, 3)), layer.bias.reshape(1, 3))


def test_cached_computes_once():
    calls = []

    class Counted(zoo.nn.Module):
        def forward(self, x):
            calls.append(1)
            return x + 1

    layer = parametrize.register_parametrization(zoo.nn.RNN(2, 2), "weight_hh_l0", Counted())
    calls.clear()
    with parametrize.cached():
        with parametrize.cached():
            layer(zoo.ones(3, 1, 2))[0].sum().backward()
        layer(zoo.ones(3, 1, 2))
        assert len(calls) == 1
    layer(zoo.ones(3, 1, 2))
    assert len(calls) > 1 and layer.parametrizations.weight_hh_l0.original.grad is not None


def test_old_weight_norm_state_loads():
    old = zoo.nn.utils.weight_norm(zoo.nn.Linear(3, 2))
    new = parametrizations.weight_norm(zoo.nn.Linear(3, 2))
    new.load_state_dict(old.state_dict())
    assert zoo.allclose(new.weight, old(zoo.eye(3)).T - old.bias[:, None], atol=1e-6)


class Half(zoo.nn.Module):
    def forward(self, x):
        return x[:1]


@pytest.mark.parametrize("wrong, kind, message", [
    (lambda m: parametrize.register_parametrization(m, "height", Doubled()), ValueError, "height"),
    (lambda m: parametrize.register_parametrization(m, "weight", Half()), ValueError, "shape"),
    (lambda m: parametrize.remove_parametrizations(m, "weight"), ValueError, "no parametrization"),
    (lambda m: parametrizations.weight_norm(m, "height"), ValueError, "height"),
    (lambda m: parametrizations.spectral_norm(m, n_power_iterations=0), ValueError, "n_power_iterations"),
    (lambda m: parametrizations.spectral_norm(m, dim=2), IndexError, "dim"),
    (lambda m: parametrizations.orthogonal(m, "bias"), ValueError, "matrix"),
    (lambda m: parametrizations.orthogonal(m, orthogonal_map="qr"), ValueError, "cayley"),
    (lambda m: prune.l1_unstructured(m, "weight", -1), ValueError, "amount"),
    (lambda m: prune.l1_unstructured(m, "weight", 1.5), ValueError, "amount"),
    (lambda m: prune.l1_unstructured(m, "weight", 100), ValueError, "at most 9"),
    (lambda m: prune.l1_unstructured(m, "weight", "all"), TypeError, "number"),
    (lambda m: prune.l1_unstructured(m, "weight", 1, zoo.ones(2)), ValueError, "shape"),
    (lambda m: prune.ln_structured(m, "bias", 1, 2, 0), ValueError, "two dimensions"),
    (lambda m: prune.ln_structured(m, "weight", 1, 2, 2), IndexError, "dim"),
    (lambda m: prune.remove(m, "weight"), ValueError, "not pruned"),
    (lambda m: prune.global_unstructured([(m, "weight")], prune.LnStructured, amount=1, n=2), TypeError, "wants an un"),
    (lambda m: prune.custom_from_mask(m, "weight", zoo.ones(2)), ValueError, "mask"),
])
def test_wrong_use_says_so_and_changes_nothing(wrong, kind, message):
    layer = zoo.nn.Linear(3, 3)
    with pytest.raises(kind, match=message):
        wrong(layer)
    assert type(layer) is zoo.nn.Linear and list(layer.state_dict()) == ["weight", "bias"] and not layer._hooks


PRUNINGS = {
    "l1": lambda prune, m, t: prune.l1_unstructured(m, "weight", 0.4),
    "l1 twice": lambda prune, m, t: (prune.l1_unstructured(m, "weight", 0.4), prune.l1_unstructured(m, "weight", 3)),
    "scores": lambda prune, m, t: prune.l1_unstructured(m, "bias", 2, importance_scores=t.tensor([3.0, 1.0, 2.0, 5.0])),
    "slices": lambda prune, m, t: prune.ln_structured(m, "weight", amount=0.5, n=2, dim=0),
    "slices then elements": lambda prune, m, t: (prune.ln_structured(m, "weight", 1, n=1, dim=1),
                                                 prune.l1_unstructured(m, "weight", 0.5)),
    "elements then slices": lambda prune, m, t: (prune.l1_unstructured(m, "weight", 0.3),
                                                 prune.ln_structured(m, "weight", 2, n=float("inf"), dim=0)),
    "slices twice": lambda prune, m, t: (prune.ln_structured(m, "weight", 1, n=2, dim=0),
                                         prune.ln_structured(m, "weight", 0.5, n=2, dim=-3)),
    "mask": lambda prune, m, t: prune.custom_from_mask(m, "bias", t.tensor([0, 1, 1, 0])),
    "nothing": lambda prune, m, t: prune.identity(m, "weight"),
    "none of it": lambda prune, m, t: prune.l1_unstructured(m, "weight", 0),
}


@pytest.mark.parametrize("pruning", PRUNINGS)
def test_pruning_equals_torch(pruning):
    """Names, masks, values and the gradient of what is left; after remove an ordinary parameter with zeros in it."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.nn.utils.prune")                 # which `import torch` leaves out
    found = []
    for library in (zoo, torch):
        module = fill(library, library.nn.Conv2d(3, 4, 2))
        PRUNINGS[pruning](library.nn.utils.prune, module, library)
        module(library.ones(1, 3, 4, 4, dtype=library.float64)).pow(2).sum().backward()
        results = {name: x.detach().numpy().copy() for name, x in module.state_dict().items()}
        results |= {f"{name}.grad": p.grad.numpy() for name, p in module.named_parameters()}
        assert library.nn.utils.prune.is_pruned(library.nn.Sequential(module))
        for name in ("weight", "bias"):
            if name + "_orig" in results:
                orig = getattr(module, f"{name}_orig")
                library.nn.utils.prune.remove(module, name)
                assert getattr(module, name) is orig
        assert not library.nn.utils.prune.is_pruned(module) and not module._forward_pre_hooks
        found.append(results | {f"{name} left": x.detach().numpy() for name, x in module.state_dict().items()})
    assert list(found[0]) == list(found[1])
    for name, mine in found[0].items():
        np.testing.assert_allclose(mine, found[1][name], rtol=1e-12, err_msg=name)


def test_global_pruning_equals_torch():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.nn.utils.prune")                 # which `import torch` leaves out
    found = []
    for library in (zoo, torch):
        model = fill(library, library.nn.Sequential(library.nn.Linear(4, 3), library.nn.Linear(3, 2)))
        tools, pairs = library.nn.utils.prune, [(model[0], "weight"), (model[1], "weight")]
        tools.global_unstructured(pairs, pruning_method=tools.L1Unstructured, amount=0.3)
        tools.global_unstructured(pairs, tools.L1Unstructured, amount=5, importance_scores={
            pairs[0]: library.arange(12).double().reshape(3, 4).flip(0)})
        found.append({name: x.numpy() for name, x in model.state_dict().items()})
    assert all((mine == found[1][name]).all() for name, mine in found[0].items()) and found[0].keys() == found[1].keys()


def test_random_pruning_counts_of_what_is_left():
    layer = zoo.nn.Linear(10, 10)
    prune.random_unstructured(layer, "weight", 0.5)
    prune.random_unstructured(layer, "weight", 10)
    assert (layer.weight_mask == 0).sum() == 60 and len(next(iter(layer._forward_pre_hooks.values()))) == 2
    other = zoo.nn.Linear(10, 10)
    prune.random_structured(other, "weight", 3, dim=1)
    assert ((other.weight != 0).sum(0) == 0).sum() == 3
    handle = other.register_forward_hook(lambda *_: None)
    prune.remove(other, "weight")
    handle.remove()
    assert not other._hooks


def test_modules_are_replaced_by_their_path():
    for library in (zoo, pytest.importorskip("torch")):
        nn = library.nn
        net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 3)))
        net.set_submodule("1.0", nn.Tanh())
        net.set_submodule("1.2", nn.Linear(3, 1), strict=False)
        assert isinstance(net[1][0], nn.Tanh) and net(library.ones(1, 2)).shape == (1, 1)
        for wrong, kind in (("", ValueError), ("1.7", AttributeError), ("5.0", AttributeError),
                            ("0.weight", AttributeError)):
            with pytest.raises(kind):
                net.set_submodule(wrong, nn.Tanh(), strict=True)
        with pytest.raises(ValueError):
            net.set_submodule("0", 3)


def test_hooks_before_the_state_and_memory_without_values():
    for library in (zoo, pytest.importorskip("torch")):
        net, seen = library.nn.Sequential(library.nn.BatchNorm1d(2)), []
        net[0].register_state_dict_pre_hook(lambda module, *given, seen=seen: seen.append(given))
        net.state_dict()
        assert seen == [("0.", False)]
        weight = net[0].weight
        assert net.to_empty(device="cpu") is net and net[0].weight is weight and weight.requires_grad
        assert net[0].running_var.shape == (2,) and net[0].num_batches_tracked.dtype == library.int64
