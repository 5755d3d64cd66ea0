"""nn.init: distributions and exact values; nn.utils: clipping, parameters as one vector."""

import numpy as np
import pytest

import zoo
from zoo import nn


def close(ours, theirs, tolerance=1e-9):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


# -- init


@pytest.mark.parametrize(
    "function, options, low, high, std",
    [
        ("uniform_", {"a": -2.0, "b": 3.0}, -2, 3, 5 / 12**0.5),
        ("normal_", {"mean": 0.0, "std": 2.0}, None, None, 2),
        ("trunc_normal_", {"std": 1.0, "a": -1.0, "b": 1.0}, -1, 1, 0.5397),
        ("xavier_uniform_", {"gain": 2.0}, -2 * (6 / 500) ** 0.5, 2 * (6 / 500) ** 0.5, 2 * (2 / 500) ** 0.5),
        ("xavier_normal_", {}, None, None, (2 / 500) ** 0.5),
        (
            "kaiming_uniform_",
            {"mode": "fan_out", "nonlinearity": "relu"},
            -((6 / 200) ** 0.5),
            (6 / 200) ** 0.5,
            (2 / 200) ** 0.5,
        ),
        ("kaiming_normal_", {"a": 1.0}, None, None, (1 / 300) ** 0.5),
    ],
)
def test_random_init(function, options, low, high, std):
    """60,000 draws: the standard deviation within 2%, the mean within 5 of its errors, the bounds kept and reached."""
    zoo.manual_seed(0)
    w = getattr(nn.init, function)(zoo.empty(200, 300), **options).numpy()
    assert abs(w.std() / std - 1) < 0.02
    centre = 0 if low is None else (low + high) / 2
    assert abs(w.mean() - centre) < 5 * std / w.size**0.5
    if low is not None:
        slack = (high - low) * 1e-3
        assert low <= w.min() < low + slack and high - slack < w.max() <= high


def test_exact_init():
    init = nn.init
    assert init.constant_(zoo.empty(2), 3.0).tolist() == [3, 3] and init.ones_(zoo.empty(1)).item() == 1
    assert init.eye_(zoo.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert init.dirac_(zoo.empty(2, 2, 3)).tolist() == [[[0, 1, 0], [0, 0, 0]], [[0, 0, 0], [0, 1, 0]]]
    for shape in ((4, 7), (7, 4), (5, 2, 2)):
        w = init.orthogonal_(zoo.empty(*shape, dtype=zoo.float64), gain=2.0).numpy().reshape(shape[0], -1)
        gram = w @ w.T if w.shape[0] < w.shape[1] else w.T @ w
        np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=1e-12)
    assert ((init.sparse_(zoo.empty(10, 5), 0.3).numpy() == 0).sum(0) == 3).all()
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        init.xavier_normal_(zoo.empty(3))
    with pytest.raises(ValueError, match="'relo'"):
        init.calculate_gain("relo")


@pytest.mark.torch
def test_default_initialisation_has_torchs_spread():
    """Not the same numbers, but the same distribution: bounds and standard deviation of weights and biases."""
    torch = pytest.importorskip("torch")
    zoo.manual_seed(0)
    torch.manual_seed(0)
    for name, args in (
        ("Linear", (100, 300)),
        ("Conv2d", (16, 64, 5)),
        ("ConvTranspose2d", (32, 64, 5)),
        ("Embedding", (100, 300)),
        ("Bilinear", (20, 30, 40)),
    ):
        ours, theirs = getattr(nn, name)(*args), getattr(torch.nn, name)(*args)
        a, b = ours.weight.detach().numpy(), theirs.weight.detach().numpy()
        assert abs(a.std() / b.std() - 1) < 0.03 and a.shape == b.shape
        if name != "Embedding":
            assert abs(a.max() / b.max() - 1) < 0.02
            assert abs(abs(ours.bias.detach().numpy()).max() / abs(theirs.bias.detach().numpy()).max() - 1) < 0.2


# -- utils


@pytest.mark.torch
@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf")])
def test_clip_grad_norm(norm_type, rng):
    torch = pytest.importorskip("torch")
    grads = [rng.normal(size=s) for s in ((3, 4), (5,))]
    ours, theirs = [], []
    for g in grads:
        ours.append(nn.Parameter(zoo.zeros(*g.shape, dtype=zoo.float64)))
        theirs.append(torch.nn.Parameter(torch.zeros(*g.shape, dtype=torch.float64)))
        ours[-1].grad, theirs[-1].grad = zoo.tensor(g), torch.tensor(g)
    close(nn.utils.clip_grad_norm_(ours, 0.7, norm_type), torch.nn.utils.clip_grad_norm_(theirs, 0.7, norm_type))
    for p, q in zip(ours, theirs, strict=True):
        close(p.grad, q.grad)
    nn.utils.clip_grad_value_(ours, 0.05)
    torch.nn.utils.clip_grad_value_(theirs, 0.05)
    for p, q in zip(ours, theirs, strict=True):
        close(p.grad, q.grad)
    ours[0].grad = zoo.full((3, 4), float("nan"), dtype=zoo.float64)
    with pytest.raises(RuntimeError, match="clip_grad_norm_.*nan"):
        nn.utils.clip_grad_norm_(ours, 1.0, error_if_nonfinite=True)


def test_parameters_as_a_vector():
    layer = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (9,) and vector.requires_grad
    nn.utils.vector_to_parameters(zoo.arange(9.0), layer.parameters())
    assert layer.weight.tolist() == [[0, 1], [2, 3], [4, 5]] and layer.bias.tolist() == [6, 7, 8]
    with pytest.raises(ValueError, match="9 elements"):
        nn.utils.vector_to_parameters(zoo.ones(3), layer.parameters())


@pytest.mark.parametrize("name", ["uniform", "normal", "xavier_uniform", "xavier_normal", "kaiming_uniform",
                                  "kaiming_normal", "orthogonal"])
def test_torchs_old_names_warn_and_do_the_same(name):
    zoo.manual_seed(0)
    with pytest.warns(FutureWarning, match=rf"nn\.init\.{name} is now deprecated in favor of nn\.init\.{name}_"):
        w = getattr(nn.init, name)(zoo.empty(4, 3))
    zoo.manual_seed(0)
    assert zoo.equal(w, getattr(nn.init, f"{name}_")(zoo.empty(4, 3)))


def test_clip_grad_norm_by_its_old_name():
    p = nn.Parameter(zoo.zeros(2))
    p.grad = zoo.tensor([3.0, 4.0])
    with pytest.warns(FutureWarning, match="clip_grad_norm_"):
        assert nn.utils.clip_grad_norm([p], 1.0).item() == 5
    assert zoo.allclose(p.grad, zoo.tensor([0.6, 0.8]))


def test_skip_init_draws_nothing():
    state = zoo.get_rng_state()
    layer = nn.utils.skip_init(nn.Linear, 5, out_features=2)
    assert layer.weight.shape == (2, 5) and zoo.equal(zoo.get_rng_state(), state)
    with pytest.raises(TypeError, match="skip_init: wants a subclass of Module"):
        nn.utils.skip_init(zoo.ones, 5)
