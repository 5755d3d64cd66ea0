"""Optimizers that are programs of tensor ops, and those that torch lacks: these by their papers, LBFGS by torch."""

import numpy as np
import pytest

import zoo
from tests.test_optim import SHAPES, STEPS, gradients, start, translate
from zoo import optim
from zoo.nn import Parameter
from zoo.optim import SGD


def valley(p, q):
    """Rosenbrock's, and some."""
    return 100 * (p[1] - p[0] ** 2) ** 2 + (1 - p[0]) ** 2 + ((p[2:] - 1) ** 4).sum() + (q * q).sum() * p[0] ** 2


def bowl(p, q):
    return ((p - 1) ** 2).sum() + 3 * (p[0] - p[1]) ** 2 + ((p[2:] - 1) ** 4).sum() + (q * q).sum() * (p[0] ** 2 + 1)


LBFGS = [
    {"lr": 0.001, "max_iter": 7},
    {"lr": 1e-3, "max_iter": 4, "max_eval": 3, "history_size": 2},
    {"line_search_fn": "strong_wolfe", "max_iter": 5},
    {"line_search_fn": "strong_wolfe", "history_size": 3, "lr": 0.3},
    {"line_search_fn": "strong_wolfe", "max_iter": 50, "max_eval": 9, "lr": 3.0},
    {"line_search_fn": "strong_wolfe", "tolerance_grad": 1.0, "tolerance_change": 1e-3},
]


@pytest.mark.torch
@pytest.mark.parametrize("options", LBFGS, ids=lambda o: "-".join(f"{k}={v}" for k, v in o.items()))
@pytest.mark.parametrize("function, most", [(bowl, 50), (valley, 30)])
def test_lbfgs_is_torchs(function, most, options):
    """Losses, parameters and numbers of evaluations; the state crosses after the second step.

    In the valley the two runs part as all trajectories do that differ in the last bit (1e-16 after 20 evaluations,
    1e-10 after 45): it ends after the step that passes 30.
    """
    torch = pytest.importorskip("torch")

    def problem(lib, parameter):
        p, q = parameter(lib.tensor(np.array([-1.2, 1.0, 0.3, 2.0]))), parameter(lib.tensor(np.ones((2, 1))))
        optimizer = lib.optim.LBFGS([p, q], **options)

        def closure():
            optimizer.zero_grad()
            loss = function(p, q)
            loss.backward()
            return loss

        return p, optimizer, closure

    p, ours, closure = problem(zoo, Parameter)
    q, theirs, reference = problem(torch, torch.nn.Parameter)
    evaluations, steps = 0, 0
    while evaluations <= most and steps < 15:
        np.testing.assert_allclose(ours.step(closure).item(), theirs.step(reference).item(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=0, atol=1e-9)
        mine, wanted = ours.state_dict(), theirs.state_dict()
        evaluations, steps = wanted["state"][0]["func_evals"], steps + 1
        assert mine["state"][0]["func_evals"] == evaluations
        assert mine["state"][0]["n_iter"] == wanted["state"][0]["n_iter"]
        if steps == 2:
            ours.load_state_dict(translate(wanted, torch.is_tensor, zoo.tensor))
            theirs.load_state_dict(translate(mine, zoo.is_tensor, torch.tensor))


@pytest.mark.parametrize("options", [{}, {"betas": (0.8, 0.5), "weight_decay": 0.3}, {"maximize": True}])
def test_lion_is_the_papers(options):
    """Chen et al., 2023, algorithm 2."""
    x, m = start()[0], np.zeros(SHAPES[0])
    p = Parameter(zoo.tensor(x))
    optimizer = optim.Lion([p], lr=0.01, **options)
    (beta1, beta2), decay = options.get("betas", (0.9, 0.99)), options.get("weight_decay", 0.0)
    for row in gradients():
        p.grad = zoo.tensor(row[0])
        optimizer.step()
        g = -row[0] if options.get("maximize") else row[0]
        update = np.sign(beta1 * m + (1 - beta1) * g)
        m = beta2 * m + (1 - beta2) * g
        x = x - 0.01 * (update + decay * x)
    np.testing.assert_allclose(p.detach().numpy(), x, rtol=0, atol=1e-9)
    np.testing.assert_allclose(optimizer.state[p]["exp_avg"].numpy(), m, rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"betas": (0.8, 0.5), "weight_decay": 0.3, "eps": 1e-3}, {"maximize": True}])
def test_lamb_is_the_papers(options):
    """You et al., 2019, algorithm 2, with phi(z) = z; a parameter that starts at 0 takes the ratio 1."""
    (beta1, beta2), decay = options.get("betas", (0.9, 0.999)), options.get("weight_decay", 0.0)
    values = [start()[0], np.zeros(SHAPES[1])]
    params = [Parameter(zoo.tensor(x)) for x in values]
    means = [[np.zeros_like(x), np.zeros_like(x)] for x in values]
    optimizer = optim.LAMB(params, lr=0.01, **options)
    for t, row in enumerate(gradients(), 1):
        for k, p in enumerate(params):
            p.grad = zoo.tensor(row[k])
            g = -row[k] if options.get("maximize") else row[k]
            means[k][0] = beta1 * means[k][0] + (1 - beta1) * g
            means[k][1] = beta2 * means[k][1] + (1 - beta2) * g * g
            m, v = means[k][0] / (1 - beta1**t), means[k][1] / (1 - beta2**t)
            r = m / (np.sqrt(v) + options.get("eps", 1e-6)) + decay * values[k]
            x = np.linalg.norm(values[k])
            values[k] = values[k] - 0.01 * (x / np.linalg.norm(r) if x else 1.0) * r
        optimizer.step()
    for p, x in zip(params, values, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), x, rtol=0, atol=1e-9)


@pytest.mark.parametrize("adaptive", [False, True])
def test_sam_is_the_papers(adaptive):
    """Foret et al., 2020, algorithm 1 (adaptive: Kwon et al., 2021, eq. 4 with p = 2) over SGD with momentum."""
    a, b = np.array([1.0, -2.0, 0.5]), np.array([[0.3, 0.7]])
    params = [Parameter(zoo.tensor(a)), Parameter(zoo.tensor(b))]
    optimizer = optim.SAM(params, SGD, rho=0.1, adaptive=adaptive, lr=0.01, momentum=0.9)

    def closure():
        optimizer.zero_grad()
        loss = (params[0] ** 4).sum() + (params[0].sum() ** 2 * params[1] ** 2).sum()
        loss.backward()
        return loss

    def slopes(x, y):
        return [4 * x**3 + 2 * x.sum() * (y**2).sum(), 2 * x.sum() ** 2 * y]

    values, momenta = [a, b], [0.0, 0.0]
    for _ in range(STEPS):
        loss = (values[0] ** 4).sum() + (values[0].sum() ** 2 * values[1] ** 2).sum()
        g = slopes(*values)
        scales = [np.abs(x) if adaptive else np.ones_like(x) for x in values]
        norm = np.sqrt(sum(((s * d) ** 2).sum() for s, d in zip(scales, g, strict=True))) + 1e-12
        worst = slopes(*(x + 0.1 * s**2 * d / norm for x, s, d in zip(values, scales, g, strict=True)))
        momenta = [0.9 * m + d for m, d in zip(momenta, worst, strict=True)]
        values = [x - 0.01 * m for x, m in zip(values, momenta, strict=True)]
        np.testing.assert_allclose(optimizer.step(closure).item(), loss, rtol=1e-9)
    for p, x in zip(params, values, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), x, rtol=0, atol=1e-9)
    again = optim.SAM(params, SGD, lr=1.0)
    again.load_state_dict(optimizer.state_dict())
    assert again.param_groups[0]["rho"] == 0.1 and again.base_optimizer.param_groups[0]["lr"] == 0.01
    assert again.state[params[0]]["momentum_buffer"].shape == (3,)


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["LAMB", "Muon", "LBFGS"])
def test_tensor_programs_run_on_the_device(name):
    """Those that are no rule of the kernel take the same steps on both devices; Muon's iteration is bfloat16 there."""
    results = []
    for where in ("cpu", "cuda"):
        p = Parameter(zoo.tensor(start()[0].astype("f")).to(where))
        optimizer = getattr(optim, name)([p], lr=0.1, **({"max_iter": 3} if name == "LBFGS" else {}))

        def closure(p=p, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((p - 1) ** 2).sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        results.append(p.detach().cpu().numpy())
    np.testing.assert_allclose(results[1], results[0], rtol=0, atol=2e-2 if name == "Muon" else 1e-5)
