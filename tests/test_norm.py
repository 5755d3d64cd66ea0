"""Normalisation: torch's numbers, running statistics, channels last, means far above the deviation, errors."""
import numpy as np
import pytest

import zoo
from zoo.nn import functional as F  # noqa: N812
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.norm import batch_norm_eval, batch_norm_train, batch_norm_train_grad
from zoo.ops.norm_rows import group_norm, layer_norm
from zoo.ops.threads import get_num_threads, set_num_threads

FAR = 1000.0             # mean / standard deviation: what one pass in float32 gets wrong in the third digit


def reference(x, dims, eps=1e-5):
    x = x.astype(np.float64)
    return (x - x.mean(dims, keepdims=True)) / np.sqrt(x.var(dims, keepdims=True) + eps)


@pytest.mark.parametrize("shape", [(64, 3), (16, 3, 5, 5), (8, 2, 40, 40), (700, 16, 12), (2, 3, 600, 600)])
def test_batch_norm_of_far_means(shape, rng):
    """Every layout of the NumPy path, one block and many. The mean itself has 6e-5 of rounding in float32."""
    x = (rng.normal(size=shape) + FAR).astype(np.float32)
    dims = (0, *range(2, len(shape)))
    y, mean, var = batch_norm_train(x, None, None, 1e-5)
    np.testing.assert_allclose(y, reference(x, dims), atol=2e-4)
    np.testing.assert_allclose(mean, x.astype(np.float64).mean(dims), rtol=1e-7)
    np.testing.assert_allclose(var, x.astype(np.float64).var(dims), rtol=1e-5)


@pytest.mark.parametrize("shape", [(64, 3), (16, 3, 5, 5), (8, 2, 40, 40), (48, 16, 8, 8)])
def test_batch_norm_gradient_against_float64(shape, rng):
    """The blocks of the fast path against one expression in float64."""
    x, dy = rng.normal(size=(2, *shape)).astype(np.float32)
    weight, (dmean, dvar) = rng.uniform(0.5, 2, shape[1]).astype(np.float32), np.zeros((2, shape[1]), np.float32)
    dims = (0, *range(2, len(shape)))
    mean, var = x.mean(dims), x.var(dims)
    dx, dweight, dbias = batch_norm_train_grad(dy, dmean, dvar, x, weight, mean, var, 1e-5)
    h, g = reference(x, dims), dy.astype(np.float64)
    n = x.size // shape[1]
    factor = (weight / np.sqrt(var + 1e-5)).reshape(-1, *(1,) * (len(shape) - 2))
    wanted = factor * (g - g.mean(dims, keepdims=True) - h * (g * h).mean(dims, keepdims=True))
    np.testing.assert_allclose(dx, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(dweight, (g * h).sum(dims), rtol=1e-4, atol=1e-5 * n ** 0.5)
    np.testing.assert_allclose(dbias, g.sum(dims), rtol=1e-4, atol=1e-5 * n ** 0.5)


def test_channels_last_stay_last(rng):
    """What a convolution hands over is not turned around, and gives the same numbers."""
    x = rng.normal(size=(4, 6, 5, 7)).astype(np.float32)
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    for op, args in ((batch_norm_train, ()), (batch_norm_eval, (np.ones(6, np.float32), np.full(6, 2, np.float32)))):
        a, b = op(x, *args), op(last, *args)
        a, b = (a[0], b[0]) if isinstance(a, tuple) else (a, b)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        assert a.flags.c_contiguous and np.moveaxis(b, 1, -1).flags.c_contiguous


@pytest.mark.parametrize("call", [lambda x: layer_norm(x, (1000,)), lambda x: group_norm(x.reshape(1, 20, 1000), 20)])
def test_rows_of_far_means(call, rng):
    x = (rng.normal(size=(20, 1000)) + FAR).astype(np.float32)
    np.testing.assert_allclose(call(x).reshape(20, 1000), reference(x, 1), atol=2e-4)


def test_running_statistics_move_by_momentum(rng):
    x = zoo.tensor(rng.normal(size=(10, 3)).astype(np.float32))
    mean, var = zoo.zeros(3), zoo.ones(3)
    F.batch_norm(x, mean, var, training=True, momentum=0.25)
    np.testing.assert_allclose(mean.numpy(), 0.25 * x.numpy().mean(0), rtol=1e-5)
    np.testing.assert_allclose(var.numpy(), 0.75 + 0.25 * x.numpy().var(0, ddof=1), rtol=1e-5)
    before = mean.clone()
    F.batch_norm(x, mean, var)
    assert (mean == before).all()


def test_running_statistics_do_not_record(rng):
    x = zoo.tensor(rng.normal(size=(10, 3)), requires_grad=True)
    mean = zoo.zeros(3, dtype=zoo.float64)
    F.batch_norm(x, mean, None, training=True).sum().backward()
    assert not mean.requires_grad and x.grad is not None


def test_gradients_of_some_outputs(rng):
    """Of the mean alone, of the variance alone, of both: what nobody used adds nothing, and is no array of zeros."""
    x = zoo.tensor(rng.normal(size=(6, 3, 4)), requires_grad=True)
    _, mean, var = batch_norm_train(x, None, None, 1e-5)
    centred = x.detach().numpy() - x.detach().numpy().mean((0, 2), keepdims=True)
    for wanted, used in ((np.full(x.shape, 1 / 24), (mean,)), (centred / 12, (var,)),
                         (1 / 24 + centred / 12, (mean, var))):
        g, = zoo.autograd.grad([v.sum() for v in used], [x], retain_graph=True)
        np.testing.assert_allclose(g.numpy(), np.broadcast_to(wanted, x.shape), atol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("name, args, options", [
    ("instance_norm", (), {}), ("local_response_norm", (3,), {"alpha": 0.5}), ("group_norm", (2,), {}),
    ("rms_norm", ((5,),), {}), ("normalize", (), {"p": 3.0, "dim": -1})])
def test_equals_torch(name, args, options, rng):
    import torch
    x = rng.normal(size=(2, 4, 3, 5))
    wanted = getattr(torch.nn.functional, name)(torch.tensor(x), *args, **options).numpy()
    got = getattr(F, name)(zoo.tensor(x), *args, **options).numpy()
    np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("call, error, words", [
    (lambda x: F.batch_norm(x, None, None), ArgumentError, "running_mean"),
    (lambda x: F.batch_norm(x[:1, :, 0], None, None, training=True), ArgumentError, "more than 1 value"),
    (lambda x: F.batch_norm(x, zoo.zeros(4), zoo.ones(4)), ShapeError, "running_mean (3,), got (4,)"),
    (lambda x: F.batch_norm(x, None, None, zoo.ones(2), training=True), ShapeError, "weight (3,), got (2,)"),
    (lambda x: F.layer_norm(x, (3,)), ShapeError, "layer_norm"),
    (lambda x: F.group_norm(x, 2), ShapeError, "num_groups=2"),
])
def test_errors_name_what_was_wrong(call, error, words):
    with pytest.raises(error) as caught:
        call(zoo.ones(2, 3, 4))
    assert words in str(caught.value)


def unfused(x, weight, bias, residual, running):
    y = F.batch_norm(x, *running, weight, bias, running[0] is None, 0.1, 1e-5)
    return (y if residual is None else y + residual).relu()


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("shape", [(64, 3), (16, 3, 5, 5), (8, 2, 40, 40), (96, 16, 16, 16)])
def test_batch_norm_act_is_the_three_ops(shape, running, rng):
    """Values and all gradients of float32, one block and many, against the ops one by one in float64."""
    arrays = [rng.normal(size=s) for s in (shape, shape[1], shape[1], shape, shape)]
    stats = (rng.normal(size=shape[1]), rng.uniform(0.5, 2, shape[1])) if running else (None, None)
    found = []
    for dtype, call in ((np.float32, lambda x, w, b, r, s: F.batch_norm_act(x, *s, w, b, not running, 0.1, 1e-5, r)),
                        (np.float64, lambda x, w, b, r, s: unfused(x, w, b, r, s))):
        *inputs, dy = (zoo.tensor(a.astype(dtype)) for a in arrays)
        leaves = [t.requires_grad_() for t in inputs]
        y = call(*leaves, [s if s is None else zoo.tensor(s.astype(dtype)) for s in stats])
        y.backward(dy)
        found.append([y.detach(), *(t.grad for t in leaves)])
    n = arrays[0].size // shape[1]
    # where |y| is within rounding of 0 the two may stand on either side of the kink
    clear = np.abs(found[1][0].numpy()) > 1e-5
    for a, b, much in zip(*found, (1, 1, n ** 0.5, n ** 0.5, 1), strict=True):
        a, b = a.numpy(), b.numpy()
        same = clear | (found[1][0].numpy() == 0) if a.shape == clear.shape else np.ones(a.shape, bool)
        np.testing.assert_allclose(a[same], b[same], rtol=2e-4, atol=3e-5 * much)


def test_batch_norm_act_moves_the_running_statistics_as_batch_norm(rng):
    x = zoo.tensor(rng.normal(1, 2, size=(8, 3, 4, 4)).astype(np.float32))
    pairs = [(zoo.zeros(3), zoo.ones(3)) for _ in range(2)]
    F.batch_norm(x, *pairs[0], training=True, momentum=0.3)
    F.batch_norm_act(x, *pairs[1], training=True, momentum=0.3)
    for a, b in zip(*pairs, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    for wrong in (lambda: F.batch_norm_act(x, None, None), lambda: F.batch_norm_act(x[:1, :, :1, :1], None, None,
                                                                                      training=True)):
        with pytest.raises(ArgumentError, match="batch_norm_act"):
            wrong()
    with pytest.raises(ShapeError, match="residual"):
        F.batch_norm_act(x, None, None, training=True, residual=x[:1])


@pytest.mark.parametrize("shape", [(64, 16, 32, 32), (5, 3, 200, 211), (7, 5, 13, 13)])
def test_batch_norm_has_the_bits_of_one_thread(shape, rng):
    """Blocks are summed up in their order, whoever did them."""
    last = np.ascontiguousarray(np.moveaxis(rng.normal(0.3, 1, size=shape).astype(np.float32), 1, -1))
    before, found = get_num_threads(), []
    for threads in (1, 2, 2):
        set_num_threads(threads)
        x = zoo.tensor(np.moveaxis(last, -1, 1)).requires_grad_()
        y = F.batch_norm_act(x, None, None, training=True, residual=x)
        y.backward(y.detach() * 0.5)
        found.append((y.detach().numpy().copy(), x.grad.numpy().copy()))
    set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
