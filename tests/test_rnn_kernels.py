"""Recurrent kernels beside NumPy: by steps in many programs and as one loop; how work is cut for a real GPU."""
import numpy as np
import pytest

from tests.cases import TOLERANCE
from zoo.ops import cuda, gpu_configs, rnn
from zoo.ops.dtypes import float16, float32, float64
from zoo.ops.gpu_configs import Config

SIZES = (20, 20, 17, 17, 3, 1)                 # rows of the steps: more than one block of 16
FOUR_PROGRAMS = Config(16, 16, 16)             # of 20 sequences and 20 units


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
def test_steps_in_many_programs_equal_numpy(op, reverse, dtype):
    """One launch a step, four programs: what a GPU runs if a loop would not fit."""
    args, tail = arguments(op, dtype)
    ys = rnn.OPS[op].forward(*args, *tail, SIZES, reverse)
    with gpu_configs.using(config=FOUR_PROGRAMS._replace(kernel="steps")):
        compare(rnn.OPS[op], (*args, *tail, SIZES, reverse), dtype)
        compare(*gradients(op, args, ys, reverse), dtype)


@pytest.mark.cuda
@pytest.mark.parametrize("kernel", ["streaming", "resident"])
@pytest.mark.parametrize("op", ["rnn_tanh", "lstm", "gru"])
def test_one_loop_equals_numpy(op, kernel):
    """The whole loop in one launch, the weights held or read in blocks; four programs that wait for each other."""
    from zoo.ops.cuda.sanitizer import sanitizing
    args, tail = arguments(op, float32)
    ys = rnn.OPS[op].forward(*args, *tail, SIZES, False)
    with gpu_configs.using(config=FOUR_PROGRAMS._replace(kernel=kernel)), sanitizing():
        # in the interpreter: the barrier orders what the programs read and write
        compare(rnn.OPS[op], (*args, *tail, SIZES, False), float32)
        compare(*gradients(op, args, ys, False), float32)


@pytest.mark.cuda
def test_a_captured_step_keeps_the_tables_of_a_remembered_loop():
    """Its replays read them, whatever is forgotten in between."""
    from zoo.ops import rnn_gpu
    args, tail = arguments("lstm", float32)
    lengths = (20,) * 3
    case = on_device((args[0][:60], *args[1:], *tail, lengths, False))
    for _ in range(3):
        want = [cuda.to_numpy(y) for y in rnn.lstm(*case)]
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        ys = rnn.lstm(*case)
    assert [kept for kept in graph.kept if isinstance(kept, rnn_gpu.Index)]
    cuda.forget()
    rnn_gpu._cached_index.cache_clear()
    for y in ys:
        cuda.fill_bytes(y, 0)
    graph.replay()
    for y, expected in zip(ys, want, strict=True):
        np.testing.assert_array_equal(cuda.to_numpy(y), expected)


@pytest.mark.cuda
def test_loops_are_remembered_if_all_sequences_are_of_one_length(monkeypatch):
    """The others' tables would be kept for good, though such a batch seldom comes again."""
    from zoo.ops.cuda import remember
    remembered, real = {}, remember.traced

    def traced(launcher, *rest):
        run = real(launcher, *rest)
        remembered[launcher.__name__] = run is not launcher
        return run
    monkeypatch.setattr(remember, "traced", traced)
    cuda.forget()
    args, tail = arguments("gru", float32)
    for lengths, expected in (((20,) * 3, True), (SIZES[:4], False)):
        case = args[0][:sum(lengths)], *args[1:], *tail, lengths, False
        for _ in range(3):
            compare(rnn.gru, case, float32)
        assert remembered["gru"] == expected


@pytest.fixture
def plan_of(monkeypatch):
    """The plan of an LSTM's loop on a real GPU of the family in force."""
    from zoo.ops import rnn_gpu
    from zoo.ops.cuda import mode
    monkeypatch.setattr(mode, "dry", True)

    def plan_of(batch, size, dtype, kernel=rnn_gpu.lstm_steps):
        loop = rnn_gpu.Loop(kernel, 4, batch, size, 128, np.dtype(dtype), 0)
        plan = rnn_gpu._plan_of(loop)
        assert not plan.PERSIST or plan.programs(batch, size) <= rnn_gpu.chip_of(0).multiprocessors
        return plan
    return plan_of


@pytest.mark.interpret
@pytest.mark.parametrize("family", ["sm80", "sm90"])
def test_plans_for_a_real_gpu(plan_of, family):
    """Weights stay on the chip where they fit; every persistent loop has at most one program a multiprocessor."""
    def planned(*loop):
        plan = plan_of(*loop)
        return plan.PERSIST, plan.RESIDENT
    with gpu_configs.using(family):
        assert planned(32, 256, float16) == planned(32, 512, float16) == (True, True)
        assert planned(32, 512, float32) == planned(32, 256, float64) == (True, False)
        assert planned(64, 1024, float16) == (True, family == "sm90")
        assert planned(4096, 4096, float16) == (False, False)


@pytest.mark.interpret
def test_a_row_of_the_table_goes_before_the_rule(plan_of, monkeypatch):
    """For the sizes of its step's product, if it fits the GPU that is there."""
    from zoo.ops import rnn_gpu
    row = {"op": "lstm_steps", "kind": "half", "M": [32, 64], "N": [4096, 4096], "K": [1024, 1024],
           "config": {"BM": 32, "BN": 32, "BK": 64, "num_warps": 8, "num_stages": 2, "kernel": "streaming",
                      "registers": 128}, "basis": "a test"}
    back = row | {"op": "lstm_steps_back", "N": [1024, 1024], "K": [4096, 4096],
                  "config": {"BM": 64, "BN": 16, "BK": 64, "kernel": "steps"}}
    rows = gpu_configs.parse({"rows": [row, back]})
    ruled = plan_of(128, 1024, float16)
    monkeypatch.setattr(gpu_configs, "rows_of", lambda name: rows)
    gpu_configs.chosen.cache_clear()
    try:
        assert plan_of(64, 1024, float16) == (True, False, "ieee", 32, 32, 64, 8, 2, 128)
        assert plan_of(64, 1024, float16, rnn_gpu.lstm_steps_back) == (False, False, "ieee", 64, 16, 64, 4, 3, None)
        assert plan_of(128, 1024, float16) == ruled
        rows[0] = rows[0]._replace(config=rows[0].config._replace(BM=16, BN=16, kernel="resident"))
        gpu_configs.chosen.cache_clear()
        assert plan_of(64, 1024, float16) != (True, True, "ieee", 16, 16, 1024, 8, 2, 128), "256 programs wait for 132"
    finally:
        gpu_configs.chosen.cache_clear()


@pytest.mark.interpret
def test_three_products_of_tf32_are_by_fma(plan_of, monkeypatch):
    from zoo.ops.matmul import Precision
    for word, precision in (("high", "tf32"), ("tf32x3", "ieee"), ("highest", "ieee")):
        monkeypatch.setattr(Precision, "float32", word)
        plan = plan_of(32, 256, float32)
        assert plan.PRECISION == precision and plan.RESIDENT == (word == "high")
