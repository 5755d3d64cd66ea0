"""torch.linalg, grids, bags, histograms, normalised weights: against NumPy and torch, and what they refuse."""
import numpy as np
import pytest

import zoo
from zoo import nn
from zoo.nn import functional as F  # noqa: N812
from zoo.nn.utils import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm


@pytest.fixture
def matrix(rng):
    """Four matrices whose rows have to be exchanged on the way."""
    return rng.normal(size=(4, 5, 5)) - 2 * np.fliplr(np.eye(5))


def on(device: str, array):
    return zoo.from_numpy(np.ascontiguousarray(array)).to(device)


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


@pytest.mark.parametrize("device", DEVICES)
def test_elimination_equals_numpy(device, matrix):
    a = on(device, matrix)
    b = matrix[:, :, :2] + 1
    np.testing.assert_allclose(zoo.linalg.inv(a).cpu().numpy(), np.linalg.inv(matrix), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(zoo.linalg.solve(a, on(device, b)).cpu().numpy(), np.linalg.solve(matrix, b), rtol=1e-9)
    np.testing.assert_allclose(zoo.linalg.det(a).cpu().numpy(), np.linalg.det(matrix), rtol=1e-10)
    sign, size = (x.cpu().numpy() for x in zoo.linalg.slogdet(a))
    np.testing.assert_allclose(sign * np.exp(size), np.linalg.det(matrix), rtol=1e-10)


@pytest.mark.parametrize("device", DEVICES)
def test_cholesky_and_singular_values(device, matrix):
    definite = matrix @ np.swapaxes(matrix, 1, 2) + 0.1 * np.eye(5)
    lower = zoo.linalg.cholesky(on(device, definite)).cpu().numpy()
    np.testing.assert_allclose(lower, np.linalg.cholesky(definite), rtol=1e-9, atol=1e-12)
    for a in (matrix, matrix[:, :3], matrix[:, :, :2]):
        np.testing.assert_allclose(zoo.linalg.svdvals(on(device, a)).cpu().numpy(),
                                   np.linalg.svd(a, compute_uv=False), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("device", DEVICES)
def test_what_has_no_answer_raises(device):
    singular = on(device, np.array([[1.0, 2.0], [2.0, 4.0]]))
    with pytest.raises(zoo.linalg.LinAlgError, match=r"Singular matrix.*\(2, 2\)"):
        zoo.linalg.inv(singular)
    with pytest.raises(RuntimeError, match="positive definite"):
        zoo.linalg.cholesky(-singular)
    assert zoo.linalg.slogdet(singular).sign.item() == 0 and zoo.linalg.det(singular).item() == 0


def test_the_determinant_of_a_singular_matrix_has_a_gradient():
    a = zoo.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=zoo.float64, requires_grad=True)
    zoo.linalg.det(a).backward()
    assert a.grad.tolist() == [[4, -2], [-2, 1]]


@pytest.mark.parametrize("call, message", [
    (lambda: zoo.linalg.inv(zoo.ones(2, 3)), "wants square matrices"),
    (lambda: zoo.linalg.solve(zoo.eye(3), zoo.ones(2)), "wants B with 3 rows"),
    (lambda: zoo.linalg.det(zoo.ones(2, 2, dtype=zoo.int64)), "wants floating dtypes"),
    (lambda: zoo.linalg.matrix_norm(zoo.ones(2, 2), ord=3), "wants ord"),
    (lambda: F.grid_sample(zoo.ones(1, 1, 2, 2), zoo.ones(1, 2, 2, 3)), "wants input"),
    (lambda: F.grid_sample(zoo.ones(1, 1, 2, 2), zoo.ones(1, 2, 2, 2), mode="cubic"), "wants mode"),
    (lambda: F.embedding_bag(zoo.tensor([0, 1]), zoo.ones(3, 2), zoo.tensor([1])), "wants offsets"),
    (lambda: zoo.histc(zoo.ones(3), bins=0), "wants bins > 0"),
    (lambda: zoo.cov(zoo.ones(2, 2, 2)), "wants at most 2 dims"),
    (lambda: zoo.gcd(zoo.ones(2), zoo.ones(2)), "wants integers"),
    (lambda: zoo.trapezoid(zoo.ones(3), zoo.ones(4)), "wants x of 3 elements"),
    (lambda: nn.DataParallel(nn.Identity(), device_ids=[0, 1]), "one device"),
    (lambda: zoo.jit.script(nn.Identity()), "no TorchScript"),
    (lambda: weight_norm(nn.Linear(2, 2), "weights"), "weights"),
])
def test_refused(call, message):
    with pytest.raises((ValueError, TypeError, NotImplementedError, AttributeError), match=message):
        call()


def test_normalised_weights_can_be_taken_back(rng):
    x = on("cpu", rng.normal(size=(3, 6))).float()
    for normalise, take_back, parts in ((weight_norm, remove_weight_norm, {"weight_g", "weight_v"}),
                                        (spectral_norm, remove_spectral_norm,
                                         {"weight_orig", "weight_u", "weight_v"})):
        layer = normalise(nn.Linear(6, 4))
        assert set(layer.state_dict()) == parts | {"bias"}
        layer.eval()
        y = layer(x)
        y.sum().backward()
        assert layer.get_parameter(sorted(parts)[0]).grad is not None
        take_back(layer)
        assert set(layer.state_dict()) == {"weight", "bias"} and not layer._hooks
        np.testing.assert_allclose(layer(x).detach().numpy(), y.detach().numpy(), rtol=1e-6, atol=1e-6)


def test_random_activations():
    x = zoo.full((2000,), -1.0, requires_grad=True)
    y = F.rrelu(x, 0.2, 0.6, training=True)
    assert -0.6 <= y.min().item() < -0.55 and -0.25 < y.max().item() <= -0.2 and abs(y.mean().item() + 0.4) < 0.02
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), -y.detach().numpy())
    logits = zoo.log(zoo.tensor([[0.2, 0.8]])).expand(4000, 2)
    share = F.gumbel_softmax(logits, hard=True).mean(0)
    assert abs(share[1].item() - 0.8) < 0.03                 # 0.8 within 4.7 standard deviations of 4,000 draws


def test_assert_close_says_what_differs():
    zoo.testing.assert_close({"a": [1.0, zoo.ones(2)]}, {"a": [1.0, zoo.ones(2)]})
    for actual, expected, text in ((zoo.ones(2), zoo.ones(3), "shape"), (zoo.ones(1), zoo.ones(1).double(), "dtype"),
                                   (zoo.tensor([1, 2]), zoo.tensor([1, 3]), r"1 / 2"),
                                   ({"a": 1}, {"b": 1}, "keys"), ([1.0], [1.1], "not close at 0")):
        with pytest.raises(AssertionError, match=text):
            zoo.testing.assert_close(actual, expected)


def test_a_hook_after_the_gradient():
    w = zoo.ones(2, requires_grad=True)
    seen = []
    handle = w.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.tolist()))
    (w * 2).sum().backward()
    (w * 2).sum().backward()
    handle.remove()
    (w * 2).sum().backward()
    assert seen == [[2, 2], [4, 4]] and w.grad.tolist() == [6, 6]
    with pytest.raises(RuntimeError, match="leaf"):
        (w * 2).register_post_accumulate_grad_hook(print)
