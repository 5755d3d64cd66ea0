"""Norm kernels for channels that lie side by side: several tiles and parts, odd channel counts, far means."""
import math

import numpy as np
import pytest

import zoo
from tests.cases import TOLERANCE
from zoo.models.resnet import BasicBlock
from zoo.ops import cuda, norm_running
from zoo.ops.cuda import record
from zoo.ops.dtypes import bfloat16, float16, float32, float64
from zoo.ops.norm import batch_norm_eval, batch_norm_train, batch_norm_train_grad, statistics_dtype
from zoo.ops.norm_act import batch_norm_act, batch_norm_act_grad, batch_norm_relu_grad
from zoo.ops.norm_rms import rms_norm, rms_norm_grad
from zoo.ops.norm_rows import group_norm, group_norm_grad

pytestmark = pytest.mark.cuda
SHAPES = [(3, 8, 5, 5), (5, 70, 3, 4), (9, 5, 4), (130, 12)]    # rows and channels: within a tile, beyond one, odd


def last(x):
    """x (N, C, ...) with its channels side by side in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)


def on_device(x):
    """The same values, laid out alike."""
    if not isinstance(x, np.ndarray):
        return x
    order = sorted(range(x.ndim), key=lambda d: -x.strides[d])
    flat = cuda.from_numpy(np.ascontiguousarray(x.transpose(order)))
    back = np.argsort(order)
    return flat.view(tuple(flat.shape[d] for d in back), tuple(flat.strides[d] for d in back))


def compare(op, args, dtype, terms):
    """CPU against kernels, of each result's largest value; sums of `terms` numbers."""
    for want, got in zip(as_tuple(op(*args)), as_tuple(op(*map(on_device, args))), strict=True):
        got = cuda.to_numpy(got)
        assert got.shape == want.shape and got.dtype == want.dtype
        scale = max(np.abs(want.astype(np.float64)).max(initial=0), 1)
        error = np.abs(got.astype(np.float64) - want).max(initial=0)
        assert error <= 4 * TOLERANCE[dtype.name] * terms ** 0.5 * scale


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("dtype", [float16, float32, float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_equal_numpy(shape, dtype, rng):
    x, dy, rest = (last(rng.normal(size=shape).astype(dtype)) for _ in range(3))
    c, terms = shape[1], len(x) * x[0, 0].size
    weight, bias = rng.uniform(0.5, 2, c).astype(dtype), rng.normal(size=c).astype(dtype)
    y, mean, var = batch_norm_train(x, weight, bias, 1e-5)
    dmean, dvar = rng.normal(size=(2, c)).astype(mean.dtype)
    compare(batch_norm_train, (x, weight, bias, 1e-5), dtype, 1)
    compare(batch_norm_eval, (x, mean, var, weight, None, 1e-5), dtype, 1)
    compare(batch_norm_train_grad, (dy, dmean, dvar, x, weight, mean, var, 1e-5), dtype, terms)
    for residual in (None, rest):
        for running in ((None, None), (mean, var)):
            args = x, weight, bias, residual, *running, 1e-5
            compare(batch_norm_act, args, dtype, 1)
            y = last(batch_norm_act(*args)[0])
            compare(batch_norm_act_grad, (dy, x, weight, y, mean, var, 1e-5, running[0] is None), dtype, terms)


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=str)
@pytest.mark.parametrize("affine", [False, True])
def test_relu_worked_out_again_is_the_one_of_forward(affine, dtype, rng):
    """Bit for bit: values that round to 0 or stand beside it are masked by the kernel as by its own result."""
    x, dy = (on_device(last(rng.normal(size=(5, 24, 4, 3)).astype(dtype))) for _ in range(2))
    weight, bias = (cuda.from_numpy(rng.normal(size=24).astype(dtype)) for _ in "wb") if affine else (None, None)
    y, mean, var = batch_norm_act(x, weight, bias, None, None, None, 1e-5)
    again = batch_norm_relu_grad(dy, x, weight, bias, y, mean, var, 1e-5, True)
    for a, b in zip(again, batch_norm_act_grad(dy, x, weight, y, mean, var, 1e-5, True), strict=False):
        np.testing.assert_array_equal(cuda.to_numpy(a), cuda.to_numpy(b))


@pytest.mark.parametrize("momentum", [0.3, None])
@pytest.mark.parametrize("dtype", [float16, float32, float64], ids=str)
def test_running_statistics_move_in_one_launch(dtype, momentum, rng):
    mean, var = rng.normal(size=1500), rng.uniform(0.5, 2, 1500)
    new = [v.astype(statistics_dtype(dtype)) for v in (mean, var)]
    mine = [v.astype(dtype) for v in (var, mean)] + [np.array(3)]
    theirs = [cuda.from_numpy(v) for v in mine]
    norm_running.move(*mine, *new, momentum, 1.25)
    launches = []
    with record.listening(lambda kernel, grid, arguments: launches.append(kernel)):
        norm_running.mover_for(type(theirs[0])).move(*theirs, *map(cuda.from_numpy, new), momentum, 1.25)
    assert len(launches) == 1 and int(cuda.to_numpy(theirs[2])) == int(mine[2]) == 4
    share = 0.25 if momentum is None else momentum
    np.testing.assert_allclose(mine[0], var * (1 - share) + mean * share, rtol=0, atol=4 * TOLERANCE[dtype.name])
    for a, b in zip(theirs[:2], mine, strict=False):
        np.testing.assert_allclose(cuda.to_numpy(a), b, rtol=0, atol=4 * TOLERANCE[dtype.name])


def test_two_gradients_of_a_residual_are_added_by_the_derivative(rng):
    """What flows past the next block and what comes through it: no kernel of their own, the bits of a sum before."""
    block = zoo.nn.Sequential(*(BasicBlock(8, 8) for _ in range(3))).to("cuda", memory_format=zoo.channels_last)
    x, dy = (zoo.from_numpy(last(rng.normal(size=(2, 8, 5, 6)).astype(np.float32))).to("cuda") for _ in range(2))
    found = []
    for hooked in (False, True):
        block.zero_grad()
        leaf = x.detach().requires_grad_()
        middle = leaf
        for part in block:
            middle = part(middle)
            if hooked:
                middle.register_hook(lambda g: None)                  # a hook wants to see the sum
        launches = []
        with record.listening(lambda kernel, grid, arguments, to=launches: to.append(kernel)):
            middle.backward(dy)
        found.append([leaf.grad.cpu().numpy(), *(p.grad.cpu().numpy() for p in block.parameters())])
        adds = sum(getattr(k.constants.get("F"), "op_name", "") == "add" for k in launches)
        assert adds == (3 if hooked else 1)
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_many_parts_of_far_means(monkeypatch, rng):
    """Parts are merged about their common mean: variances keep their digits where |mean| is 1,000 deviations."""
    from zoo.ops import norm_columns_gpu
    monkeypatch.setattr(norm_columns_gpu, "PROGRAMS", 200)
    x = (rng.normal(size=(3000, 16)) + 1000).astype(np.float32)
    rows = norm_columns_gpu.Rows(1, *x.shape, cuda.from_numpy(x))
    assert rows.parts > 20
    mean, var = (cuda.to_numpy(v) for v in rows.moments(cuda.from_numpy(x)))
    np.testing.assert_allclose(mean, x.astype(np.float64).mean(0), rtol=1e-7)
    np.testing.assert_allclose(var, x.astype(np.float64).var(0), rtol=1e-5)


def test_channels_stay_side_by_side(rng):
    """A network of channels-last layers makes no copies: results lie as the input does."""
    x = on_device(last(rng.normal(size=(2, 16, 3, 3)).astype(np.float32)))
    y, mean, var = batch_norm_act(x, None, None, None, None, None, 1e-5)
    assert y.strides == x.strides
    dx, _, _, dz = batch_norm_act_grad(x, x, None, y, mean, var, 1e-5, True)
    assert dx.strides == dz.strides == x.strides


@pytest.mark.parametrize("rows, width", [(37, 24), (5, 1000), (3, 9001)])
def test_rms_norm_is_one_launch_forward_and_two_backward(rows, width, rng):
    """Rows in registers, odd ones, and rows too long for that, whose gradient is made of ops."""
    x, dy = (rng.normal(size=(rows, width)).astype(np.float32) for _ in range(2))
    weight = rng.uniform(0.5, 2, width).astype(np.float32)
    compare(rms_norm, (x, (width,), weight, 1e-6), float32, 1)
    compare(rms_norm_grad, (dy, x, (width,), weight, 1e-6), float32, width)
    launches = []
    with record.listening(lambda kernel, grid, arguments: launches.append(kernel)):
        leaf = zoo.from_numpy(x).to("cuda").requires_grad_()
        y = zoo.nn.functional.rms_norm(leaf, (width,), zoo.from_numpy(weight).to("cuda"))
        assert len(launches) == 1
        if width <= 8192:
            y.backward(zoo.from_numpy(dy).to("cuda"))
            assert len(launches) == 3


def group_case(rng, dtype, groups, *shape):
    """Arguments of group_norm and of its gradients, channels side by side."""
    x, dy = (last(rng.normal(0.5, 1, size=shape).astype(dtype)) for _ in range(2))
    weight, bias = rng.uniform(0.5, 2, shape[1]).astype(dtype), rng.normal(size=shape[1]).astype(dtype)
    return (x, groups, weight, bias, 1e-5), (dy, x, groups, weight, 1e-5)


GROUPS = [(1, (2, 8, 3, 5)), (8, (2, 8, 3, 5)), (2, (3, 70, 4, 4)), (35, (3, 70, 4, 4)), (5, (2, 5, 11)),
          (1, (1, 40, 7)), (3, (2, 66, 2, 3, 2)), (4, (3, 16, 1, 1)), (2, (1, 160, 3, 3))]


@pytest.mark.parametrize("groups, shape, dtype", [(*case, float32) for case in GROUPS] + [
    (*case, dtype) for case in GROUPS[2:4] for dtype in (float16, bfloat16, float64)], ids=str)
def test_group_norm_of_channels_side_by_side(groups, shape, dtype, rng):
    """Against NumPy: groups of one channel, of all, no powers of two, one pixel; laid out as given."""
    forward, backward = group_case(rng, dtype, groups, *shape)
    compare(group_norm, forward, dtype, 1)
    compare(group_norm_grad, backward, dtype, math.prod(shape) // shape[1])
    compare(group_norm, (*forward[:2], None, None, 1e-5), dtype, 1)
    compare(group_norm_grad, (*backward[:3], None, 1e-5), dtype, math.prod(shape) // shape[1])
    y, dx = group_norm(*map(on_device, forward)), group_norm_grad(*map(on_device, backward))[0]
    assert y.strides == dx.strides == on_device(forward[0]).strides


def test_group_norm_of_many_parts_and_far_means(monkeypatch, rng):
    """Samples of several parts each, |mean| 1,000 deviations: the digits of a group's variance stay."""
    from zoo.ops import norm_columns_gpu
    monkeypatch.setattr(norm_columns_gpu, "PROGRAMS", 60)
    x = last((rng.normal(size=(2, 24, 50, 20)) + 1000).astype(np.float32))
    rows = norm_columns_gpu.Rows(2, 1000, 24, cuda.from_numpy(x))
    assert rows.parts > 10
    got = cuda.to_numpy(group_norm(on_device(x), 4, None, None, 1e-5))
    wide = x.astype(np.float64).reshape(2, 4, -1)
    want = (wide - wide.mean(2, keepdims=True)) / wide.std(2, keepdims=True)
    np.testing.assert_allclose(got.reshape(2, 4, -1), want, atol=2e-4)
    dy = last(rng.normal(size=x.shape).astype(np.float32))
    compare(group_norm_grad, (dy, x - np.float32(1000), 4, None, 1e-5), float32, 2000)


def test_group_and_instance_norm_copy_no_image(rng):
    """Channels side by side: three launches forward, and none of them lays an image out anew."""
    x = zoo.from_numpy(rng.normal(size=(2, 16, 5, 4)).astype(np.float32)).to("cuda", memory_format=zoo.channels_last)
    x.requires_grad_()
    for call in (lambda: zoo.nn.functional.group_norm(x, 4), lambda: zoo.nn.functional.instance_norm(x)):
        launches = []
        with record.listening(lambda kernel, grid, arguments, to=launches: to.append(kernel.function.__name__)):
            y = call()
            assert launches == ["moments_of_rows", "merge_rows", "normalize_rows"]
            y.backward(y.detach())
        assert not {"flat", "tile"} & set(launches[3:])
        assert x.grad.stride() == y.stride() == x.stride()
        x.grad = None


@pytest.mark.parametrize("training, backward", [
    (True, ["gradient_of_rows", "coefficients_of_parts", "combine_rows"]),
    (False, ["normalize_rows", "gradient_of_rows", "coefficients_of_parts", "fold"])])
def test_launches_of_batch_norm_are_few(training, backward, rng):
    """Three backward, and in evaluation what input, weight and bias need each; no zeros for statistics nobody used."""
    x = zoo.from_numpy(rng.normal(size=(2, 16, 5, 4)).astype(np.float32)).to("cuda", memory_format=zoo.channels_last)
    weight, bias, mean, var = (zoo.ones(16, device="cuda") for _ in range(4))
    for leaf in (x, weight, bias):
        leaf.requires_grad_()
    launches = []
    with record.listening(lambda kernel, grid, arguments: launches.append(kernel.function.__name__)):
        y = zoo.nn.functional.batch_norm(x, *((None, None) if training else (mean, var)), weight, bias, training)
        ahead = len(launches)
        y.backward(y.detach())
    assert launches[:ahead] == ["moments_of_rows", "merge_rows", "normalize_rows"][2 * (not training):]
    assert launches[ahead:] == backward
