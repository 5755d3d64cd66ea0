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


@pytest.mark.parametrize("device", DEVICES)
def test_the_condition_of_a_singular_matrix_is_inf_and_others_of_its_batch_keep_theirs(device):
    x = on(device, np.array([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]]]))
    for p, wanted in ((1, 2.0), (-1, 0.5), (float("inf"), 2.0), ("fro", 2.5), ("nuc", 4.5)):
        np.testing.assert_allclose(zoo.linalg.cond(x, p).tolist(), [np.inf, wanted, np.inf], rtol=1e-6)
    assert zoo.linalg.cond(x[0], 1).item() == np.inf


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


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5), (2, 0, 3)])
def test_singular_vectors_equal_torch_up_to_signs(shape, rng):
    """Signs are free, and of full_matrices so is the rest of a basis: products, sizes and gradients of what is not."""
    torch = pytest.importorskip("torch")
    a = rng.normal(size=shape)
    x, y = zoo.from_numpy(a.copy()).requires_grad_(), torch.from_numpy(a).requires_grad_()
    for full in (False, True):
        (u, s, vh), (tu, ts, tvh) = zoo.linalg.svd(x, full), torch.linalg.svd(y, full)
        assert [tuple(z.shape) for z in (u, s, vh)] == [tuple(z.shape) for z in (tu, ts, tvh)]
        k = s.shape[-1]
        np.testing.assert_allclose(s.detach().numpy(), ts.detach().numpy(), atol=1e-12)
        np.testing.assert_allclose(abs(u.detach().numpy()[..., :k]), abs(tu.detach().numpy()[..., :k]), atol=1e-10)
        for q in (u, vh.mT):
            q = q.detach().numpy()
            np.testing.assert_allclose(q.swapaxes(-1, -2) @ q, np.broadcast_to(np.eye(q.shape[-1]), (
                *q.shape[:-2], q.shape[-1], q.shape[-1])), atol=1e-12)
    if not a.size:
        return
    (u, s, vh), (tu, ts, tvh) = zoo.linalg.svd(x, False), torch.linalg.svd(y, False)
    weights = rng.normal(size=s.shape[-1])
    mine = ((u**2) @ zoo.from_numpy(weights)).sum() + (s**3).sum() + (vh.mT**2 @ zoo.from_numpy(weights)).sum()
    theirs = ((tu**2) @ torch.from_numpy(weights)).sum() + (ts**3).sum() + (tvh.mT**2 @ torch.from_numpy(weights)).sum()
    (g,), (w,) = zoo.autograd.grad(mine, x), torch.autograd.grad(theirs, y)
    np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-7, atol=1e-9)


@pytest.mark.torch
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigenvectors_equal_torch_up_to_signs(uplo, rng):
    torch = pytest.importorskip("torch")
    a = rng.normal(size=(2, 5, 5))
    x, y = zoo.from_numpy(a.copy()).requires_grad_(), torch.from_numpy(a).requires_grad_()
    (w, v), (tw, tv) = zoo.linalg.eigh(x, uplo), torch.linalg.eigh(y, uplo)
    np.testing.assert_allclose(w.detach().numpy(), tw.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(abs(v.detach().numpy()), abs(tv.detach().numpy()), atol=1e-10)
    np.testing.assert_allclose(zoo.linalg.eigvalsh(x, uplo).detach().numpy(), tw.detach().numpy(), atol=1e-12)
    weights = rng.normal(size=5)
    mine, theirs = (v**2 @ zoo.from_numpy(weights)).sum(), (tv**2 @ torch.from_numpy(weights)).sum()
    (g,), (t,) = (lib.autograd.grad(z + (e**3).sum(), leaf)
                  for lib, z, e, leaf in ((zoo, mine, w, x), (torch, theirs, tw, y)))
    np.testing.assert_allclose(g.numpy(), (t + t.mT).numpy() / 2, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
def test_factors_multiply_to_the_matrix(device, matrix):
    """Tall, wide, with equal and with zero singular values, and of one column; on both devices alike."""
    for a in (matrix, matrix[:, :3], matrix[:, :, :2], np.ones((3, 3)), np.zeros((2, 3)), np.eye(4)[:, :1]):
        x = on(device, a)
        for mode in ("reduced", "complete"):
            q, r = zoo.linalg.qr(x, mode)
            np.testing.assert_allclose((q @ r).cpu().numpy(), a, atol=1e-12)
            np.testing.assert_allclose((q.mT @ q).cpu().numpy(), np.broadcast_to(
                np.eye(q.shape[-1]), (*a.shape[:-2], q.shape[-1], q.shape[-1])), atol=1e-12)
            np.testing.assert_allclose(r.cpu().numpy(), np.linalg.qr(a, mode)[1], atol=1e-12)
        s = a @ a.swapaxes(-1, -2)
        w, v = zoo.linalg.eigh(on(device, s))
        np.testing.assert_allclose((v * w.unsqueeze(-2) @ v.mT).cpu().numpy(), s, atol=1e-9)
        np.testing.assert_allclose(zoo.linalg.pinv(x).cpu().numpy(), np.linalg.pinv(a), atol=1e-9)
        np.testing.assert_array_equal(zoo.linalg.matrix_rank(x).cpu().numpy(), np.linalg.matrix_rank(a))


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 2), (2, 5)])
@pytest.mark.parametrize("hermitian", [False, True])
def test_the_pseudoinverse_equals_torch(shape, hermitian, rng):
    """With hermitian the gradient agrees where the matrix stays symmetric: torch's is not symmetric, ours is."""
    torch = pytest.importorskip("torch")
    a = rng.normal(size=shape)
    a = a @ a.swapaxes(-1, -2) + np.eye(shape[-2]) if hermitian else a
    x, y = zoo.from_numpy(a.copy()).requires_grad_(), torch.from_numpy(a).requires_grad_()
    p, q = zoo.linalg.pinv(x, hermitian=hermitian, rtol=1e-9), torch.linalg.pinv(y, hermitian=hermitian, rtol=1e-9)
    np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-7, atol=1e-7)
    (g,), (w,) = zoo.autograd.grad(p.sum(), x), torch.autograd.grad(q.sum(), y)
    g, w = g.numpy(), w.numpy()
    w = (w + w.swapaxes(-1, -2)) / 2 if hermitian else w
    np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6 * abs(w).max())


@pytest.mark.parametrize("dtype, rtol", [("float32", 3e-6), ("float64", 1e-13)])
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 5, 5), (1, 1), (0, 0), (2, 0, 3, 3)], ids=str)
def test_matrix_exp_equals_torch(shape, dtype, rtol, rng):
    """torch's in float64, since its float32 results are off by more; norms differ much in one batch."""
    torch = pytest.importorskip("torch")
    a = rng.normal(size=shape) * 4.0 ** rng.integers(-2, 2, size=(*shape[:-2], 1, 1))
    mine = zoo.linalg.matrix_exp(zoo.tensor(a.astype(dtype))).numpy()
    theirs = torch.linalg.matrix_exp(torch.tensor(a.astype(dtype).astype(np.float64))).numpy()
    assert mine.shape == theirs.shape and mine.dtype == dtype
    scale = np.abs(theirs).max((-2, -1), initial=0, keepdims=True)
    assert (np.abs(mine - theirs) <= rtol * np.maximum(scale, 1)).all()


@pytest.mark.parametrize("shape", [(4, 4), (2, 6, 3), (1, 1), (3, 0), (5, 1), (2, 3, 5)], ids=str)
def test_reflections_equal_torch(shape, rng):
    torch = pytest.importorskip("torch")
    a = rng.normal(size=shape)
    a[..., 1:, :1] = 0                                         # a column that needs no reflection
    mine, theirs = zoo.geqrf(zoo.tensor(a)), torch.geqrf(torch.tensor(a))
    for x, y in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-12, atol=1e-13)
    if shape[-2] >= shape[-1]:
        np.testing.assert_allclose(zoo.linalg.householder_product(*mine).numpy(),
                                   torch.linalg.householder_product(*theirs).numpy(), rtol=1e-12, atol=1e-13)


def test_matrix_functions_have_gradients_of_any_order(rng):
    a, tau = zoo.tensor(rng.normal(size=(4, 3)), requires_grad=True), zoo.tensor(rng.random(3), requires_grad=True)
    assert zoo.autograd.gradgradcheck(zoo.linalg.householder_product, (a, tau))
    assert zoo.autograd.gradgradcheck(zoo.matrix_exp, (zoo.tensor(3 * rng.normal(size=(3, 3)), requires_grad=True),))
    with pytest.raises(RuntimeError, match=r"householder_product: wants .*\(3, 4\)"):
        zoo.linalg.householder_product(zoo.ones(3, 4), zoo.ones(2))
