"""Calls on the GPU: what autograd writes out against its plain roads, and what an elementwise op remembers."""
import numpy as np
import pytest

import zoo
from tests.cases import OPS, all_of, cast, samples
from zoo.autograd.engine import ForeignNode
from zoo.autograd.tensor import grad, other, wrap
from zoo.ops import cuda
from zoo.ops.device import fetch
from zoo.ops.errors import DeviceError, GradError

pytestmark = pytest.mark.cuda
KINDS = ["mul", "relu", "where", "reshape", "permute", "matmul", "linear", "softmax", "max_dim", "batch_norm_train",
         "layer_norm", "cross_entropy_loss", "max_pool"]  # elementwise, views, one output and several, saved outputs


def leaves(op):
    """The first sample on the GPU: its arguments, of which the differentiable ones are leaves, and these."""
    row = op.bind(cast(samples(op)["ordinary"][0], np.dtype(np.float32)), {})
    args = [cuda.from_numpy(x) if isinstance(x, np.ndarray) else x for x in row]
    args = [wrap(x).requires_grad_() if name in op.differentiable and isinstance(x, cuda.DeviceArray) else x
            for name, x in zip(op.parameters, args, strict=True)]
    return args, [x for x in args if isinstance(x, zoo.Tensor)]


@pytest.mark.parametrize("name", KINDS)
def test_written_out_call_equals_the_plain_one(name):
    """record.py's text for DeviceArrays and `remember` make the same node."""
    op = OPS[name]
    args, _ = leaves(op)
    fasts, slows = all_of(op(*args)), all_of(other(op, tuple(args)))
    for fast, slow in zip(fasts, slows, strict=True):
        np.testing.assert_array_equal(fetch(fast.array), fetch(slow.array))
        assert (fast.requires_grad, type(fast), type(fast.node)) == (slow.requires_grad, type(slow), type(slow.node))
    fast, slow = ([getattr(y.node, "source", y.node) for y in ys if y.requires_grad][0] for ys in (fasts, slows))
    assert type(fast) is ForeignNode and fast.plan is slow.plan
    assert all(a is b for a, b in zip(fast.edges, slow.edges, strict=True))
    assert (fast.shape, fast.dtype, type(fast.clock)) == (slow.shape, slow.dtype, type(slow.clock))
    assert len(fast.saved) == len(slow.saved)


@pytest.mark.parametrize("name", KINDS)
def test_written_out_gradients_equal_the_plain_ones(name):
    """saved.py's text for DeviceArrays and `through_ops` give the same numbers, and notice a write."""
    op = OPS[name]
    args, wanted = leaves(op)
    y = next(y for y in all_of(op(*args)) if y.requires_grad)
    node = getattr(y.node, "source", y.node)
    one = type(node.clock) is list
    gs = tuple(cuda.from_numpy(np.ones(s, d)) for s, d in ([(node.shape, node.dtype)] if one else
                                                           zip(node.shape, node.dtype, strict=True)))
    pairs = zip(node.gradients(gs, False, wrap, True), node.through_ops(gs, False, wrap, True), strict=True)
    for fast, slow in pairs:
        np.testing.assert_allclose(fetch(fast), fetch(slow), rtol=1e-6, atol=1e-7)
    saved = [x for x in node.saved if isinstance(x, zoo.Tensor)]
    if saved:
        saved[0].clock[0] = node.seq + 1
        with pytest.raises(GradError, match="changed in place"):
            node.gradients(gs, False, wrap, True)
        saved[0].clock[0] = 0
    node.gradients(gs, False, wrap, False)
    if node.plan.holds:
        with pytest.raises(GradError, match="freed"):
            node.gradients(gs, False, wrap, False)


def test_the_derivative_of_a_sum_launches_nothing():
    x, y = (wrap(cuda.from_numpy(np.ones(4, np.float32))).requires_grad_() for _ in range(2))
    g = wrap(cuda.from_numpy(np.full(4, 3, np.float32)))
    dx, dy = grad(x + y, (x, y), g)
    assert dx.array is dy.array is g.array
    (x + y).backward(g)
    assert x.grad.array.owner is not y.grad.array.owner is not g.array.owner, ".grad is memory of its own"
    assert fetch(x.grad.array).tolist() == fetch(y.grad.array).tolist() == [3] * 4


def test_a_remembered_call_is_taken_for_equal_layouts_alone():
    """Same op, again and again, with all that a plan depends on changed in turn."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(6, 8)).astype(np.float32) for _ in range(2))
    arrays = [(a, b), (a.T, b.T), (a[:3], b[3:]), (a, b[:, :1]), (a, b[0]), (a[1:, 1:], b[:5, 1:]), (a[:0], b[:0]),
              (a, b.astype(np.float64)), (a.astype(np.int32), b)]
    for x, y in [*arrays, (a, 2.5), (2.5, b), (a, 3), (a, True), (a, -0.0), (a, 0.0)]:
        on_gpu = [v if isinstance(v, (int, float)) else strided(v) for v in (x, y)]
        for _ in range(2):
            got = OPS["mul"](*on_gpu)
            want = OPS["mul"](*(v if isinstance(v, (int, float)) else np.asarray(v) for v in (x, y)))
            np.testing.assert_array_equal(fetch(got), want)
            assert np.array_equal(np.signbit(fetch(got)), np.signbit(want)) and got.dtype == want.dtype


def strided(x):
    """A view on the GPU with the strides of x."""
    base = x
    while isinstance(base.base, np.ndarray):
        base = base.base
    step = x.itemsize
    offset = (x.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // step
    return cuda.from_numpy(base).view(x.shape, [s // step for s in x.strides], offset)


def test_remembered_calls_know_the_default_dtype_and_are_bounded(monkeypatch):
    from zoo.ops import pointwise_gpu

    x = cuda.from_numpy(np.arange(1, 4))
    assert OPS["div"](x, x).dtype == np.float32
    zoo.set_default_dtype(zoo.float64)
    try:
        assert OPS["div"](x, x).dtype == np.float64
    finally:
        zoo.set_default_dtype(zoo.float32)
    monkeypatch.setattr(pointwise_gpu, "MOST_PLANS", 3)
    plans: dict = {}
    for n in range(10):
        pointwise_gpu._remember(plans, (n,), print)
    assert 0 < len(plans) <= 3 and (9,) in plans


def test_casts_to_every_dtype_are_written_out(monkeypatch):
    """ml_dtypes' bfloat16 has a class of dtype of its own, which sent each cast of autocast the slow way."""
    from zoo.autograd import tensor
    from zoo.ops.dtypes import FLOATS, INTS

    x = zoo.ones(3, device="cuda").requires_grad_()
    x.double()
    monkeypatch.setattr(tensor, "remember", None)               # what the slow way calls
    for dtype in FLOATS | INTS:
        assert OPS["cast"](x, dtype).dtype == dtype


def test_what_is_no_plan_is_refused_each_time():
    x = cuda.from_numpy(np.ones((2, 3), np.float32))
    for _ in range(2):
        with pytest.raises(DeviceError, match="arrays of two devices"):
            OPS["mul"](x, np.ones(3, np.float32))
        assert fetch(OPS["mul"](x, np.float32(2)[()] * np.ones((), np.float32))).tolist() == [[2] * 3] * 2
        elsewhere = cuda.DeviceArray(x.pointer, x.shape, x.strides, x.dtype, x.owner, 1)
        with pytest.raises(DeviceError, match="cuda:0 and cuda:1"):
            OPS["mul"](x, elsewhere)
