"""Optimisers: torch's numbers over many steps, torch's state_dict layout, and the kernels against NumPy."""

import numpy as np
import pytest

import zoo
from zoo.autograd.tensor import wrap
from zoo.nn import Parameter
from zoo.ops import cuda
from zoo.ops import optim as updates
from zoo.optim import SGD, Adam, AdamW, lr_scheduler

SHAPES = ((3, 4), (5,), (), (130, 130))  # the last is too large to be stepped together with the others
STEPS = 50
CASES = {
    "sgd": (SGD, {"lr": 0.1}),
    "sgd momentum": (SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    "sgd nesterov": (SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "sgd maximize": (SGD, {"lr": 0.1, "momentum": 0.5, "maximize": True, "weight_decay": 0.1}),
    "adam": (Adam, {"lr": 0.01}),
    "adam decay": (Adam, {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1, "maximize": True}),
    "adam amsgrad": (Adam, {"lr": 0.05, "amsgrad": True}),
    "adamw": (AdamW, {"lr": 0.01, "weight_decay": 0.1}),
    "adamw amsgrad": (AdamW, {"lr": 0.05, "amsgrad": True, "maximize": True}),
}


def gradients(steps=STEPS, seed=0):
    """The same random gradients for both libraries; the third parameter has none in every other step."""
    rng = np.random.default_rng(seed)
    for k in range(steps):
        yield [None if i == 2 and k % 2 else rng.normal(size=s) for i, s in enumerate(SHAPES)]


def start(seed=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s) for s in SHAPES]


def run(optimizer, params, make, grads):
    for row in grads:
        for p, g in zip(params, row, strict=True):
            p.grad = None if g is None else make(g)
        optimizer.step()


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_numbers_are_torchs(name):
    torch = pytest.importorskip("torch")
    kind, options = CASES[name]
    ours, theirs = [Parameter(zoo.tensor(a)) for a in start()], [torch.nn.Parameter(torch.tensor(a)) for a in start()]
    run(kind(ours, **options), ours, zoo.tensor, gradients())
    run(getattr(torch.optim, kind.__name__)(theirs, **options), theirs, torch.tensor, gradients())
    for p, q in zip(ours, theirs, strict=True):
        assert p.dtype == np.float64
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=0, atol=1e-9)


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_state_fits_both_ways(name):
    """A state_dict of torch's, taken over after 7 steps, goes on to the same numbers; and ours has the same layout."""
    torch = pytest.importorskip("torch")
    kind, options = CASES[name]
    ours, theirs = [Parameter(zoo.tensor(a)) for a in start()], [torch.nn.Parameter(torch.tensor(a)) for a in start()]
    reference = getattr(torch.optim, kind.__name__)(theirs, **options)
    run(reference, theirs, torch.tensor, gradients(7))
    state = reference.state_dict()
    converted = {
        k: {n: zoo.tensor(v.numpy()) if torch.is_tensor(v) else v for n, v in s.items()}
        for k, s in state["state"].items()
    }
    with zoo.no_grad():
        for p, q in zip(ours, theirs, strict=True):
            p.copy_(zoo.tensor(q.detach().numpy()))
    optimizer = kind(ours, **options)
    optimizer.load_state_dict({"state": converted, "param_groups": state["param_groups"]})
    run(optimizer, ours, zoo.tensor, gradients(20, seed=3))
    run(reference, theirs, torch.tensor, gradients(20, seed=3))
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=0, atol=1e-9)
    mine, wanted = optimizer.state_dict(), reference.state_dict()
    assert mine["state"].keys() == wanted["state"].keys()
    for key, row in wanted["state"].items():
        tensors = {n: v for n, v in row.items() if v is not None}
        assert mine["state"][key].keys() == tensors.keys()
        for n, v in tensors.items():
            np.testing.assert_allclose(mine["state"][key][n].numpy(), v.numpy(), rtol=1e-9, atol=1e-12)
    assert [set(g) for g in mine["param_groups"]] == [set(g) for g in wanted["param_groups"]]


@pytest.mark.torch
def test_groups_have_their_own_options():
    torch = pytest.importorskip("torch")

    def groups(params):
        return [{"params": params[:2], "lr": 0.5}, {"params": params[2:], "weight_decay": 0.1}]

    ours, theirs = [Parameter(zoo.tensor(a)) for a in start()], [torch.nn.Parameter(torch.tensor(a)) for a in start()]
    run(SGD(groups(ours), lr=0.01, momentum=0.9), ours, zoo.tensor, gradients(5))
    run(torch.optim.SGD(groups(theirs), lr=0.01, momentum=0.9), theirs, torch.tensor, gradients(5))
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [zoo.float16, zoo.bfloat16])
def test_half_types_are_computed_in_float32(dtype):
    """One Adam step on halves is the float32 step of the same values, rounded once."""
    rng = np.random.default_rng(0)
    p, g = (rng.normal(size=40).astype(dtype) for _ in range(2))
    state = [np.zeros(40, dtype) for _ in range(2)]
    wide = [p.astype(np.float32), g.astype(np.float32), np.zeros(40, np.float32), np.zeros(40, np.float32)]
    options = (1, 0.1, 0.9, 0.999, 1e-8, 0.01, False, False)
    updates.adam_update(*wide, None, *options)
    updates.adam_update(p, g, *state, None, *options)
    for ours, wanted in zip((p, *state), (wide[0], *wide[2:]), strict=True):
        np.testing.assert_array_equal(ours, wanted.astype(dtype))


def test_gradients_and_versions():
    """The gradient stays as it was, zero_grad drops it, and a step is seen by the version check of a saved value."""
    p = Parameter(zoo.tensor([1.0, 2.0]))
    loss = (p * p).sum()
    optimizer = Adam([p], lr=0.1)
    p.grad = zoo.tensor([1.0, -1.0])
    optimizer.step()
    np.testing.assert_array_equal(p.grad.numpy(), np.float32([1, -1]))
    with pytest.raises(RuntimeError, match="mul.*in place"):
        loss.backward()
    optimizer.zero_grad()
    assert p.grad is None
    assert optimizer.step(lambda: 3) == 3


def test_non_contiguous_parameter():
    values = np.asfortranarray(np.ones((3, 4)))
    p = Parameter(zoo.from_numpy(values))
    p.grad = zoo.ones(3, 4, dtype=zoo.float64)
    SGD([p], lr=0.5).step()
    np.testing.assert_array_equal(values, np.full((3, 4), 0.5))


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: SGD([], lr=0.1), ValueError, "empty parameter list"),
        (lambda: SGD(zoo.ones(2), lr=0.1), TypeError, "iterable of Tensors"),
        (lambda: SGD([1.0], lr=0.1), TypeError, "can only optimize Tensors.*float"),
        (lambda: SGD([Parameter(zoo.ones(2)) * 2], lr=0.1), ValueError, "non-leaf"),
        (lambda: SGD([Parameter(zoo.ones(2))], lr=-1), ValueError, "Invalid learning rate.*-1"),
        (lambda: SGD([Parameter(zoo.ones(2))], lr=1, nesterov=True), ValueError, "Nesterov"),
        (lambda: Adam([Parameter(zoo.ones(2))], betas=(1.0, 0.9)), ValueError, "index 0.*1.0"),
        (lambda: Adam([Parameter(zoo.ones(2))], eps=-1.0), ValueError, "epsilon"),
        (lambda: AdamW([Parameter(zoo.ones(2))], weight_decay=-1.0), ValueError, "weight_decay"),
        (
            lambda: Adam([{"params": (q := [Parameter(zoo.ones(2))])}, {"params": q}]),
            ValueError,
            "more than one parameter group",
        ),
        (
            lambda: Adam([Parameter(zoo.ones(2))]).load_state_dict({"state": {}, "param_groups": []}),
            ValueError,
            "0 parameter groups",
        ),
    ],
)
def test_wrong_arguments(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.torch
@pytest.mark.parametrize(
    "name, options, steps",
    [
        ("StepLR", {"step_size": 3, "gamma": 0.5}, 10),
        ("CosineAnnealingLR", {"T_max": 8, "eta_min": 0.01}, 8),
        ("OneCycleLR", {"max_lr": 0.5, "total_steps": 20}, 19),
        ("OneCycleLR", {"max_lr": 0.5, "epochs": 2, "steps_per_epoch": 6, "anneal_strategy": "linear"}, 11),
    ],
)
def test_schedules_are_torchs(name, options, steps):
    torch = pytest.importorskip("torch")
    ours = SGD([Parameter(zoo.ones(1))], lr=0.1, momentum=0.9)
    theirs = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1, momentum=0.9)
    mine, reference = (
        getattr(lr_scheduler, name)(ours, **options),
        getattr(torch.optim.lr_scheduler, name)(theirs, **options),
    )
    for _ in range(steps):
        assert mine.get_last_lr() == pytest.approx(reference.get_last_lr(), rel=1e-10, abs=1e-15)
        assert ours.param_groups[0]["momentum"] == pytest.approx(theirs.param_groups[0]["momentum"], rel=1e-10)
        theirs.step()
        mine.step()
        reference.step()


@pytest.mark.interpret
def test_kernels_against_numpy():
    """Three steps of every case in every floating dtype, NumPy beside the kernel; the size is odd and over a block."""
    rng = np.random.default_rng(0)
    tolerance = {"float64": 1e-12, "float32": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}
    for dtype in (zoo.float64, zoo.float32, zoo.float16, zoo.bfloat16):
        for kind, options in CASES.values():
            values = rng.normal(size=(3, 347)).astype(dtype)
            host, device = Parameter(zoo.tensor(values)), Parameter(wrap(cuda.from_numpy(values)))
            optimizers = [kind([p], **options) for p in (host, device)]
            for _ in range(3):
                g = rng.normal(size=values.shape).astype(dtype)
                host.grad, device.grad = zoo.tensor(g), wrap(cuda.from_numpy(g))
                for optimizer in optimizers:
                    optimizer.step()
            pairs = [
                (device, host),
                *((optimizers[1].state[device][n], optimizers[0].state[host][n]) for n in optimizers[0].state[host]),
            ]
            for ours, wanted in pairs:
                a, b = (np.asarray(x.detach().cpu().numpy(), np.float64) for x in (ours, wanted))
                np.testing.assert_allclose(a, b, rtol=tolerance[dtype.name], atol=tolerance[dtype.name])
