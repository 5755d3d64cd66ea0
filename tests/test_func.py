"""zoo.func and zoo.vmap: every program below runs with zoo and with torch, and gives the same values and gradients."""
import numpy as np
import pytest

import zoo

VALUES = np.random.RandomState(0).uniform(0.3, 1.7, (4, 3))


def tree(library, x):
    """Arrays as tensors of a library."""
    if isinstance(x, dict):
        return {k: tree(library, v) for k, v in x.items()}
    return tuple(tree(library, v) for v in x) if isinstance(x, tuple) else library.tensor(x, dtype=library.float64)


def net(library):
    """A small network with fixed weights and a batch norm in eval mode, so that there is a buffer."""
    nn = library.nn
    model = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 2)).eval().to(library.float64)
    with library.no_grad():
        for k, p in enumerate([*model.parameters(), model[1].running_mean]):
            p.copy_(library.tensor(np.random.RandomState(k).uniform(-0.5, 0.5, tuple(p.shape))))
    return model


def loss_of(library, model):
    def loss(params, buffers, x, t):
        y = library.func.functional_call(model, (params, buffers), (x.unsqueeze(0),))
        return library.nn.functional.cross_entropy(y, t.unsqueeze(0))
    return loss


def state(model):
    return ({k: v.detach() for k, v in model.named_parameters()}, {k: v.detach() for k, v in model.named_buffers()})


def per_sample(library, x):
    """The per-sample gradients of a network."""
    model = net(library)
    targets = library.tensor([0, 1, 1, 0])
    gradient = library.func.grad(loss_of(library, model))
    return library.vmap(gradient, in_dims=(None, None, 0, 0))(*state(model), x, targets)


def ensemble(library, x):
    """Three networks at once: their stacked parameters, one batch."""
    models = [net(library) for _ in range(3)]
    with library.no_grad():
        for k, model in enumerate(models):
            model[0].weight.add_(k)
    params, buffers = library.func.stack_module_state(models)
    assert params["0.weight"].requires_grad and params["0.weight"].is_leaf
    base = models[0]
    out = library.vmap(lambda p, b, x: library.func.functional_call(base, (p, b), (x,)), in_dims=(0, 0, None))(
        params, buffers, x)
    out.sum().backward()
    return out, params["0.weight"].grad


def outside(library, x):
    """What grad gives is recorded for a parameter outside of it, and for an argument that asks for a gradient."""
    w, x = library.ones(3, dtype=library.float64).requires_grad_(), x.requires_grad_()
    g = library.func.grad(lambda x: ((x * w) ** 3).sum())(x)
    (g * g).sum().backward()
    return g, w.grad, x.grad


def vjp_twice(library, x):
    y, back = library.func.vjp(lambda a, b: {"s": (a * b).sum(), "p": a * a}, x, x.sin())
    return y, back({"s": library.tensor(2.0).double(), "p": x}), back({"s": library.tensor(1.0).double(), "p": x.cos()})


def second(library, f):
    """Derivatives of a scalar function of a vector by two roads."""
    func = library.func
    return lambda x: (func.hessian(f)(x), func.jacfwd(func.jacrev(f))(x), func.jacrev(func.jacfwd(f))(x))


PROGRAMS = {
    "grad": lambda m, x: m.func.grad(lambda x: (x ** 3).sum())(x),
    "grad thrice": lambda m, x: m.vmap(m.vmap(m.func.grad(m.func.grad(m.func.grad(m.sin)))))(x),
    "grad of a closure": lambda m, x: m.func.grad(lambda y: (y * x).sum())(x),
    "two arguments": lambda m, x: m.func.grad(lambda a, b: (a * b * b).sum(), argnums=(1, 0))(x, x + 1),
    "the last argument": lambda m, x: m.func.grad(lambda a, b: (a * b * b).sum(), argnums=-1)(x, x + 1),
    "an unused argument": lambda m, x: m.func.grad(lambda a, b: a.sum(), argnums=(0, 1))(x, x),
    "a constant": lambda m, x: m.func.grad(lambda a: m.ones(()).double())(x),
    "a dict": lambda m, x: m.func.grad(lambda d: (d["a"] * d["b"][0]).sum())({"a": x, "b": (x.cos(),)}),
    "aux": lambda m, x: m.func.grad(lambda a: ((a * a).sum(), {"y": a * 2}), has_aux=True)(x),
    "value": lambda m, x: m.func.grad_and_value(lambda a: (a * a).sum())(x),
    "value and aux": lambda m, x: m.func.grad_and_value(lambda a: ((a * a).sum(), a + 1), has_aux=True)(x),
    "perturbations apart": lambda m, x: m.func.grad(
        lambda a: (a * m.func.grad(lambda b: (a + b).sum())(m.ones(4, 3).double())).sum())(x),
    "inside no_grad": lambda m, x: m.no_grad()(m.func.grad(lambda a: (a * a).sum()))(x.requires_grad_()),
    "no_grad inside": lambda m, x: m.func.grad(lambda a: (a * m.no_grad()(m.exp)(a)).sum())(x),
    "outside": outside,
    "vjp": vjp_twice,
    "vjp aux": lambda m, x: m.func.vjp(lambda a: (a * a, a.sin()), x, has_aux=True)[::2],
    "jvp": lambda m, x: m.func.jvp(lambda a, b: (a * b.exp(), a.sum(), b * 0 + 1), (x, x.cos()), (x, x + 1)),
    "jvp aux": lambda m, x: m.func.jvp(lambda a: (a * a, a.sin()), (x,), (x,), has_aux=True),
    "jvp of grad": lambda m, x: m.func.jvp(m.func.grad(lambda a: (a ** 3).sum()), (x,), (x.cos(),)),
    "grad of jvp": lambda m, x: m.func.grad(lambda a: m.func.jvp(lambda b: (b ** 3).sum(), (a,), (a,))[1])(x),
    "jacrev": lambda m, x: m.func.jacrev(lambda a, b: {"y": a.sum(0) * b[0], "z": b}, argnums=(0, 1))(x, x),
    "jacrev of a dict": lambda m, x: m.func.jacrev(lambda d: d["a"].sum(1))({"a": x}),
    "jacfwd": lambda m, x: m.func.jacfwd(lambda a, b: (a.sum(0) * b[0], b.exp()), argnums=(0, 1))(x, x),
    "jacrev aux": lambda m, x: m.func.jacrev(lambda a: (a[0] * a[1], a.sum()), has_aux=True)(x),
    "hessian": lambda m, x: second(m, lambda v: (v.exp() * v.roll(1, 0)).sum())(x[0]),
    "hessian of many": lambda m, x: m.func.hessian(lambda v: v ** 3)(x[0]),
    "hessian of two": lambda m, x: m.func.hessian(lambda a, b: (a * b * b).sum(), argnums=(0, 1))(x[0], x[1]),
    "per-sample gradients": per_sample,
    "ensemble": ensemble,
    "batched hessian": lambda m, x: m.vmap(m.func.hessian(lambda v: v.prod()))(x),
    "vmap dims": lambda m, x: m.vmap(lambda a, b: (a * b, b.sum()), in_dims=(1, None), out_dims=(1, 0))(x, x[:, 0]),
    "vmap of a tree": lambda m, x: m.vmap(lambda d, y: {"z": d["a"] + d["b"] * y}, in_dims=({"a": 0, "b": None}, 0))(
        {"a": x, "b": x[0]}, x),
    "vmap keywords": lambda m, x: m.vmap(lambda a, scale: a * scale, chunk_size=2)(x, scale=3),
    "vmap of nothing": lambda m, x: m.vmap(lambda a: (a * 2, a.sum()))(x[:0]),
    "batch norm of samples": lambda m, x: m.vmap(m.func.replace_all_batch_norm_modules_(m.nn.Sequential(
        m.nn.BatchNorm1d(2))).double())(m.stack([x[:, :2], x[:, 1:] * 2])),
    "nested vmap": lambda m, x: m.vmap(m.vmap(m.mul, in_dims=(None, 0)), in_dims=(0, None))(x[0], x[:, 1]),
    "gradient through vmap": lambda m, x: m.func.grad(lambda a: (m.vmap(m.dot)(a, a.cos()) ** 2).sum())(x),
}


def arrays(x):
    """The same with (requires_grad, NumPy array) in place of tensors, so that both libraries' results compare."""
    if isinstance(x, dict):
        return {k: arrays(v) for k, v in x.items()}
    if isinstance(x, (tuple, list)):
        return [arrays(v) for v in x]
    return x.requires_grad, np.asarray(x.detach())


def same(a, b):
    if isinstance(a, dict):
        assert list(a) == list(b)
        a, b = list(a.values()), list(b.values())
    if isinstance(a, list):
        assert len(a) == len(b)
        for mine, theirs in zip(a, b, strict=True):
            same(mine, theirs)
    else:
        assert a[0] == b[0] and a[1].shape == b[1].shape and a[1].dtype == b[1].dtype
        np.testing.assert_allclose(a[1], b[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_gives_what_torch_gives(name):
    torch = pytest.importorskip("torch")
    same(arrays(PROGRAMS[name](zoo, tree(zoo, VALUES))), arrays(PROGRAMS[name](torch, tree(torch, VALUES))))


ONES, WHOLE = zoo.ones(2), zoo.ones(2, dtype=zoo.int64)
LINEAR = zoo.nn.Linear(2, 2)
WEIGHTS = dict(LINEAR.named_parameters())


@pytest.mark.parametrize("wrong, kind, message", [
    (lambda: zoo.func.grad(lambda x: x)(ONES), RuntimeError, "scalar"),
    (lambda: zoo.func.grad(lambda x: 3)(ONES), RuntimeError, "wants|must give a tensor"),
    (lambda: zoo.func.grad(lambda x: x)(3), ValueError, "wants tensors"),
    (lambda: zoo.func.grad(lambda x: x.sum())(WHOLE), RuntimeError, "floating"),
    (lambda: zoo.func.grad(lambda x: x.sum(), argnums=1)(ONES), RuntimeError, "argnums"),
    (lambda: zoo.func.grad(lambda x, y: x.sum(), argnums=(0, -2))(ONES, ONES), RuntimeError, "twice"),
    (lambda: zoo.func.grad(lambda x: x.sum(), has_aux=True)(ONES), RuntimeError, "aux"),
    (lambda: zoo.func.jvp(lambda x: x, (ONES,), (zoo.ones(3),)), RuntimeError, "shape"),
    (lambda: zoo.func.jvp(lambda x: x, ONES, ONES), RuntimeError, "tuples"),
    (lambda: zoo.func.vjp(lambda x: x, ONES)[1](zoo.ones(3)), RuntimeError, "shape"),
    (lambda: zoo.func.vjp(lambda x: (x, x), ONES)[1](ONES), RuntimeError, "2 tensors"),
    (lambda: zoo.vmap(lambda x: x)(3), ValueError, "in_dim"),
    (lambda: zoo.vmap(lambda x: x)(zoo.tensor(1.0)), ValueError, "in_dim"),
    (lambda: zoo.vmap(lambda x: x, in_dims=2)(ONES), ValueError, "in_dim"),
    (lambda: zoo.vmap(lambda x: x, in_dims=None)(ONES), ValueError, "in_dims"),
    (lambda: zoo.vmap(lambda x: x, in_dims=(None,))(ONES), ValueError, "at least one"),
    (lambda: zoo.vmap(lambda x: x, in_dims=(0, 0))(ONES), ValueError, "compatible"),
    (lambda: zoo.vmap(lambda x, y: x)(ONES, zoo.ones(3)), ValueError, "one size"),
    (lambda: zoo.vmap(lambda x: x)(), ValueError, "no inputs"),
    (lambda: zoo.vmap(lambda x: 3)(ONES), ValueError, "must give tensors"),
    (lambda: zoo.vmap(lambda x: x, out_dims=2)(ONES), IndexError, "out_dims"),
    (lambda: zoo.vmap(lambda x: x, out_dims=(0, 0))(ONES), ValueError, "out_dims"),
    (lambda: zoo.vmap(lambda x: x, randomness="some"), RuntimeError, "randomness"),
    (lambda: zoo.vmap(lambda x: x, chunk_size=0), ValueError, "chunk_size"),
    (lambda: zoo.vmap(lambda x: x + zoo.rand(()))(ONES), RuntimeError, "random"),
    (lambda: zoo.func.functional_call(LINEAR, {"sub.a": ONES}, ONES), AttributeError, "sub"),
    (lambda: zoo.func.functional_call(LINEAR, {"weight": 3}, ONES), TypeError, "Tensor"),
    (lambda: zoo.func.functional_call(LINEAR, 3, ONES), ValueError, "dict"),
    (lambda: zoo.func.functional_call(LINEAR, [WEIGHTS, WEIGHTS], ONES), ValueError, "several"),
    (lambda: zoo.func.functional_call(LINEAR, {"weight": ONES}, ONES, strict=True), RuntimeError, "bias"),
    (lambda: zoo.func.functional_call(LINEAR, {**WEIGHTS, "a": ONES}, ONES, strict=True), RuntimeError, "unexpected"),
    (lambda: zoo.func.stack_module_state([]), RuntimeError, "one model"),
    (lambda: zoo.func.stack_module_state([LINEAR, zoo.nn.Tanh()]), RuntimeError, "one class"),
])
def test_wrong_use_says_so(wrong, kind, message):
    with pytest.raises(kind, match=message):
        wrong()


def test_randomness():
    ones = zoo.ones(5)
    same_draws = zoo.vmap(lambda x: x * zoo.rand(()), randomness="same")(ones)
    different = zoo.vmap(lambda x: x * zoo.rand(()), randomness="different")(ones)
    assert len(set(same_draws.tolist())) == 1 and len(set(different.tolist())) == 5


def test_functional_call_leaves_the_module_as_it_was():
    """Also when forward raises; tied weights change together; what forward assigns is seen in the dict, not in it."""
    class Tied(zoo.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = zoo.nn.Linear(2, 2, bias=False), zoo.nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight
            self.register_buffer("calls", zoo.zeros(()))

        def forward(self, x):
            self.calls = self.calls + 1
            return self.b(self.a(x))

    module = Tied()
    before = dict(module.named_parameters(remove_duplicate=False))
    given = {"a.weight": 2 * zoo.eye(2), "calls": zoo.tensor(1.0)}
    assert zoo.func.functional_call(module, given, zoo.ones(1, 2)).tolist() == [[4.0, 4.0]]
    assert given["calls"] == 2 and module.calls == 0 and set(given) == {"a.weight", "calls"}
    with pytest.raises(ValueError, match="tied"):
        zoo.func.functional_call(module, {"a.weight": zoo.eye(2), "b.weight": zoo.ones(2, 2)}, zoo.ones(1, 2))
    untied = zoo.func.functional_call(module, {"a.weight": zoo.eye(2), "b.weight": 3 * zoo.eye(2)}, zoo.ones(1, 2),
                                      tie_weights=False)
    assert untied.tolist() == [[3.0, 3.0]]
    with pytest.raises(RuntimeError):
        zoo.func.functional_call(module, {"a.weight": zoo.ones(3, 3)}, zoo.ones(1, 2))
    after = dict(module.named_parameters(remove_duplicate=False))
    assert after.keys() == before.keys() and all(after[name] is tensor for name, tensor in before.items())


def test_functional_takes_outputs_that_do_not_depend_on_the_inputs():
    """zoo.autograd.functional shares its parts with zoo.func: zeros, as torch's without strict."""
    x, v = zoo.ones(2), zoo.ones(3)
    functional = zoo.autograd.functional
    assert functional.vjp(lambda x: zoo.ones(3), x, v)[1].tolist() == [0, 0]
    assert functional.jvp(lambda x: zoo.ones(3), x, x)[1].tolist() == [0, 0, 0]
    assert functional.jvp(lambda x: (x * x, zoo.ones(3)), x, x)[1][0].tolist() == [2, 2]
    assert functional.hvp(lambda x: x.sum(), x, x)[1].tolist() == [0, 0]
