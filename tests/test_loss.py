"""Losses: every form of cross entropy against torch, ignored rows, blocks, torch's old arguments, errors."""
import math

import numpy as np
import pytest

import zoo
from zoo.nn import functional as F  # noqa: N812
from zoo.ops.errors import ArgumentError, DimError, DtypeError, ShapeError
from zoo.ops.loss import cross_entropy_loss


def both(name, *arrays, **options):
    """Our loss and gradient, and torch's, of arrays in float64; integers stay."""
    import torch
    found = []
    for library, functional in ((zoo, F), (torch, torch.nn.functional)):
        xs = [library.tensor(x) for x in arrays]
        xs[0].requires_grad_(True)
        given = {k: library.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        y = getattr(functional, name)(*xs, **given)
        y.sum().backward()
        found += [y.detach().numpy(), xs[0].grad.numpy()]
    return found


SHAPES = [((7, 5), (7,)), ((5,), ()), ((3, 5, 4), (3, 4)), ((2, 5, 3, 2), (2, 3, 2))]


@pytest.mark.torch
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy_of_classes(shapes, reduction, weighted, smoothing, rng):
    x, t = rng.normal(size=shapes[0]), rng.integers(0, 5, shapes[1])
    if t.ndim:
        t.flat[0] = 3                                            # the ignored class, met at least once
    options = {"weight": rng.uniform(0.5, 2, 5)} if weighted else {}
    y, dx, wanted, dwanted = both("cross_entropy", x, t, reduction=reduction, label_smoothing=smoothing,
                                  ignore_index=3 if t.ndim else -100, **options)
    np.testing.assert_allclose(y, wanted, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dx, dwanted, rtol=1e-10, atol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(7, 5), (5,), (2, 5, 3)])
def test_cross_entropy_of_probabilities(shape, rng):
    x, p = rng.normal(size=shape), rng.uniform(size=shape)
    y, dx, wanted, dwanted = both("cross_entropy", x, p, weight=rng.uniform(0.5, 2, 5), label_smoothing=0.1)
    np.testing.assert_allclose(y, wanted, rtol=1e-10)
    np.testing.assert_allclose(dx, dwanted, rtol=1e-10, atol=1e-12)


def test_cross_entropy_in_blocks_equals_one_block(rng):
    """Large enough to be cut into blocks of rows."""
    x, t = rng.normal(size=(300, 1000)).astype(np.float32), rng.integers(0, 1000, 300)
    loss, lse = cross_entropy_loss(x, t, -100, "none")
    wide = x.astype(np.float64)
    wanted = np.log(np.exp(wide).sum(1))
    np.testing.assert_allclose(lse, wanted, rtol=1e-6)
    np.testing.assert_allclose(loss, wanted - wide[np.arange(300), t], rtol=1e-5, atol=1e-5)


def test_large_logits_do_not_overflow():
    x = zoo.tensor([[1000.0, 0.0], [-1000.0, 0.0]])
    assert F.cross_entropy(x, zoo.tensor([0, 1])).item() == 0
    assert F.cross_entropy(x, zoo.tensor([1, 0])).item() == 1000
    loss = F.binary_cross_entropy_with_logits(zoo.tensor([1000.0, -1000.0]), zoo.tensor([0.0, 1.0]), reduction="none")
    assert loss.tolist() == [1000.0, 1000.0]


def test_nothing_but_ignored_rows():
    """As in torch: the mean of nothing is nan, its gradient 0."""
    x = zoo.zeros(2, 3, requires_grad=True)
    loss = F.cross_entropy(x, zoo.tensor([-100, -100]))
    loss.backward()
    assert math.isnan(loss.item()) and not x.grad.any()


@pytest.mark.torch
@pytest.mark.parametrize("name, options", [
    ("mse_loss", {}), ("l1_loss", {}), ("smooth_l1_loss", {"beta": 0.3}), ("smooth_l1_loss", {"beta": 0.0}),
    ("huber_loss", {"delta": 0.3}), ("kl_div", {"reduction": "batchmean"}), ("kl_div", {"log_target": True}),
    ("binary_cross_entropy_with_logits", {"pos_weight": np.array([0.5, 2.0, 3.0])}), ("soft_margin_loss", {}),
    ("poisson_nll_loss", {"full": True}), ("poisson_nll_loss", {"log_input": False}),
    ("multilabel_soft_margin_loss", {}), ("mse_loss", {"size_average": False}), ("mse_loss", {"reduce": False})])
def test_elementwise_losses_equal_torch(name, options, rng):
    import warnings
    x, t = rng.uniform(0.1, 2, size=(4, 3)), rng.uniform(0, 1, size=(4, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")                        # torch warns of its old arguments and of kl_div's mean
        y, dx, wanted, dwanted = both(name, x, t, **options)
    np.testing.assert_allclose(y, wanted, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dx, dwanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("call, error, words", [
    (lambda x: F.cross_entropy(x, zoo.tensor([0, 4])), DimError, "classes in [0, 4), got 4"),
    (lambda x: F.cross_entropy(x, zoo.tensor([0, -1])), DimError, "got -1"),
    (lambda x: F.cross_entropy(x, zoo.tensor([0, 1, 2])), ShapeError, "(2, 4) and (3,)"),
    (lambda x: F.cross_entropy(x, zoo.tensor([0, 1]), label_smoothing=2.0), ArgumentError, "label_smoothing"),
    (lambda x: F.cross_entropy(x, zoo.tensor([0, 1]), reduction="average"), ArgumentError, "average"),
    (lambda x: F.cross_entropy(x, zoo.tensor([0, 1]), weight=zoo.ones(3)), ShapeError, "weight (4,)"),
    (lambda x: F.nll_loss(x, zoo.tensor([0.0, 1.0])), DtypeError, "integer classes"),
    (lambda x: F.mse_loss(x, x, reduction="total"), ArgumentError, "total"),
    (lambda x: F.binary_cross_entropy(x, x[0]), ArgumentError, "(4,) for (2, 4)"),
])
def test_errors_name_what_was_wrong(call, error, words):
    with pytest.raises(error) as caught:
        call(zoo.zeros(2, 4))
    assert words in str(caught.value)


@pytest.mark.cuda
def test_long_rows_in_several_steps(rng):
    """More classes than a step of the kernel holds."""
    from zoo.ops import cuda
    x, t = rng.normal(size=(3, 5000)).astype(np.float32), np.array([0, 4999, 7])
    loss, lse = cross_entropy_loss(cuda.from_numpy(x), cuda.from_numpy(t), 7, "mean", 0.1)
    wanted, wanted_lse = cross_entropy_loss(x, t, 7, "mean", 0.1)
    np.testing.assert_allclose(cuda.to_numpy(loss), wanted, rtol=1e-5)
    np.testing.assert_allclose(cuda.to_numpy(lse), wanted_lse, rtol=1e-5)


# -- the kernels of long rows

@pytest.mark.cuda
@pytest.mark.parametrize("classes", [5003, 4096])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_long_rows_begin_anywhere(classes, dtype, rng):
    """Rows cut into blocks where 16 bytes begin: loss and gradient, softmax and its gradient, against NumPy's path."""
    logits, classes_of, found = rng.normal(size=(5, classes)) * 4, np.array([0, classes - 1, 7, -100, 1025]), []
    logits[1, :classes // 2] = -np.inf
    for device in ("cpu", "cuda"):
        x = zoo.tensor(logits, dtype=getattr(zoo, dtype), device=device, requires_grad=True)
        loss = F.cross_entropy(x, zoo.tensor(classes_of, device=device), reduction="none")
        (loss * loss).sum().backward()
        z = x.detach().requires_grad_()
        y, log = F.softmax(z, 1), F.log_softmax(zoo.where(z > -100, z, -3.0), 1)
        (y * y + log * log * 1e-3).sum().backward()
        found.append([v.detach().cpu().double().numpy() for v in (loss, x.grad, y, log, z.grad)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, atol=(2e-2 if dtype == "bfloat16" else 1e-5) * abs(a).max(), rtol=0)


@pytest.mark.interpret
def test_cross_entropy_reads_the_logits_once_and_writes_their_gradient_once(tmp_path):
    """By its launches and their memory, for GPT-2's vocabulary: nothing as large as the logits but the gradient."""
    import json

    from zoo.ops import cuda
    from zoo.ops.cuda.record import dry_run
    from zoo.ops.loss import cross_entropy_loss_grad
    logits = cuda.empty((512, 50257), np.dtype("float16"))
    target, lse = cuda.empty((512,), np.dtype("int64")), cuda.empty((512,), np.dtype("float32"))
    dloss = cuda.empty((), np.dtype("float16"))

    def launched(call):
        with dry_run(tmp_path / "launches"):
            results = call()
        lines = [json.loads(line) for line in (tmp_path / "launches").read_text().splitlines()]
        (tmp_path / "launches").unlink()
        return results, [line["kernel"].partition(":")[2] for line in lines]
    (loss, lse), kernels = launched(lambda: cross_entropy_loss(logits, target, label_smoothing=0.1))
    assert kernels == ["cross_entropy_long", "reduce_rows"] and (loss.size, lse.size) == (1, 512)
    dx, kernels = launched(lambda: cross_entropy_loss_grad(dloss, logits, target, lse, -100, "mean", 0.1))
    assert kernels == ["reduce_rows", "cross_entropy_long_grad"] and dx.shape == logits.shape


@pytest.mark.torch
def test_triplets_with_any_distance():
    """Beside torch, which samples this one with a module of its own as the distance."""
    import torch
    rows = np.random.default_rng(5).normal(size=(3, 6, 4)).astype(np.float32)
    for swap in (False, True):
        losses = []
        for lib in (torch, zoo):
            xs = [lib.tensor(r).requires_grad_() for r in rows]
            y = lib.nn.functional.triplet_margin_with_distance_loss(
                *xs, distance_function=lambda a, b: (a - b).abs().sum(-1), margin=2.0, swap=swap)
            y.backward()
            losses.append([y.item(), *(x.grad.numpy() for x in xs)])
        for a, b in zip(*losses, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-6)
