"""Recurrent kernels beside NumPy: by steps in many programs and as one loop; how work is cut for a real GPU."""
import numpy as np
import pytest

from tests.cases import TOLERANCE
from zoo.ops import cuda, gpu_configs, rnn
from zoo.ops.dtypes import float16, float32, float64

SIZES = (20, 20, 17, 17, 3, 1)                 # rows of the steps: more than one block of 16


def arguments(op, dtype):
    """Of an op with hidden size 20: more than one block of units."""
    rng = np.random.default_rng(0)
    gates = {"lstm": 4, "gru": 3}.get(op, 1)
    x, h0, *rest = rnn.sequence_case(rng, gates, 5, 20, SIZES, cells=op == "lstm")
    biases = [rng.normal(size=gates * 20) for _ in range(2 if op == "gru" else 1)]
    return [a.astype(dtype) for a in (x, h0, *rest, *biases)], [None] if op == "lstm" else []


def gradients(op, args, ys, reverse):
    """Arguments of the op's backward loop."""
    rng = np.random.default_rng(1)
    y, hn = ys[:2]
    dy, dhn = (rng.normal(size=a.shape).astype(a.dtype) for a in (y, hn))
    before = rnn.states_before(args[1], y, SIZES, reverse)
    if op == "lstm":
        x, _, c0, w_ih, w_hh, bias = args
        dcn = dhn[::-1].copy()
        return rnn.lstm_grad, (dy, dhn, dcn, x, before, c0, w_ih, w_hh, bias, None, *ys[3:], SIZES, reverse)
    if op == "gru":
        x, _, w_ih, w_hh, b_ih, b_hh = args
        return rnn.gru_grad, (dy, dhn, x, before, w_ih, w_hh, b_ih, b_hh, *ys[2:], SIZES, reverse)
    slope = 1 - y * y if op == "rnn_tanh" else (y > 0).astype(y.dtype)
    return rnn.rnn_grad, (dy, dhn, args[3], slope, SIZES, reverse)


def on_device(args):
    return [cuda.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]


def compare(op, args, dtype):
    for want, got in zip(op(*args), op(*on_device(args)), strict=True):
        got = cuda.to_numpy(got)
        assert got.shape == want.shape and got.dtype == want.dtype
        scale = np.abs(want.astype(np.float64)).max(initial=1e-30)
        # 20 products to a sum and 6 steps; in float16 each step rounds the state, which NumPy's path keeps in float32
        assert np.abs(got.astype(np.float64) - want).max(initial=0) <= 10 * TOLERANCE[dtype.name] * scale


@pytest.mark.cuda
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("op", ["rnn_tanh", "rnn_relu", "lstm", "gru"])
@pytest.mark.parametrize("dtype", [float16, float32, float64], ids=str)
def test_steps_in_many_programs_equal_numpy(op, reverse, dtype, monkeypatch):
    """One launch a step, four programs: what a GPU runs if a loop would not fit."""
    from zoo.ops import rnn_gpu
    plan = rnn_gpu.Plan(False, False, "ieee", 16, 16, 16)
    assert plan.programs(20, 20) == 4
    monkeypatch.setattr(rnn_gpu, "_plan", lambda *_: plan)
    args, tail = arguments(op, dtype)
    compare(rnn.OPS[op], (*args, *tail, SIZES, reverse), dtype)
    ys = rnn.OPS[op].forward(*args, *tail, SIZES, reverse)
    compare(*gradients(op, args, ys, reverse), dtype)


@pytest.mark.cuda
@pytest.mark.parametrize("resident", [False, True])
@pytest.mark.parametrize("op", ["rnn_tanh", "lstm", "gru"])
def test_one_loop_equals_numpy(op, resident, monkeypatch):
    """The whole loop in one launch, the weights held or read in blocks; four programs that wait for each other."""
    from zoo.ops import rnn_gpu
    from zoo.ops.cuda.sanitizer import sanitizing
    plan = rnn_gpu.Plan(True, resident, "ieee", 16, 16, 32 if resident else 16)
    assert plan.programs(20, 20) == 4
    monkeypatch.setattr(rnn_gpu, "_plan", lambda *_: plan)
    args, tail = arguments(op, float32)
    ys = rnn.OPS[op].forward(*args, *tail, SIZES, False)
    with sanitizing():                         # in the interpreter: the barrier orders what the programs read and write
        compare(rnn.OPS[op], (*args, *tail, SIZES, False), float32)
        compare(*gradients(op, args, ys, False), float32)


@pytest.mark.interpret
def test_plans_for_a_real_gpu(monkeypatch):
    """Weights stay on the chip where they fit; every persistent loop has at most one program a multiprocessor."""
    from zoo.ops import rnn_gpu
    from zoo.ops.cuda import mode
    monkeypatch.setattr(mode, "dry", True)
    def planned(batch, size, dtype):
        plan = rnn_gpu._plan(batch, size, 4, cuda.DeviceArray(0, (1,), (1,), np.dtype(dtype), None, 0))
        assert not plan.PERSIST or plan.programs(batch, size) <= rnn_gpu._chip(0).multiprocessors
        return plan.PERSIST, plan.RESIDENT
    for family in ("sm80", "sm90"):
        with gpu_configs.using(family):
            assert planned(32, 256, float16) == planned(32, 512, float16) == (True, True)
            assert planned(32, 512, float32) == planned(32, 256, float64) == (True, False)
            assert planned(64, 1024, float16) == (True, family == "sm90")
            assert planned(4096, 4096, float16) == (False, False)
