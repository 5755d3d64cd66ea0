"""Matrix kernels: every schedule, layout, dtype and epilogue against float64; what is chosen; the table of configs."""
import itertools
import json
from importlib.resources import files

import ml_dtypes
import numpy as np
import pytest

import zoo
from tests.cases import TOLERANCE
from zoo.ops import cuda, gpu_configs, matmul
from zoo.ops.gpu_configs import Config
from zoo.ops.matmul import linear

pytest.importorskip("triton")

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
TILE = dict(num_warps=4, num_stages=2)
SCHEDULES = {                                   # name -> (config, sizes with ragged ends)
    "tiles": (Config(32, 32, 32, **TILE), (38, 60, 50)),
    "whole tiles": (Config(32, 16, 16, **TILE), (64, 32, 32)),
    "split": (Config(32, 32, 16, split=3, **TILE), (38, 60, 50)),
    "stream": (Config(32, 32, 16, split=-1, **TILE), (38, 60, 50)),
    "few rows": (Config(32, 16, 16, **TILE), (7, 40, 50)),
    "few rows, split": (Config(32, 16, 16, split=2, **TILE), (7, 40, 50)),
    "tma": (Config(32, 32, 16, kernel="tma", **TILE), (40, 56, 56)),
    "tma in stripes": (Config(32, 32, 16, kernel="tma", sub=2, **TILE), (40, 56, 56)),
    "tma, stored by threads": (Config(32, 32, 16, kernel="tma", sub=0, **TILE), (40, 56, 56)),
}


def operand(shape, dtype, turned, rng):
    """A matrix and its copy on the device, there dense along the first dimension if turned."""
    x = rng.normal(size=shape).astype(dtype)
    there = cuda.from_numpy(np.ascontiguousarray(x.T) if turned else x)
    return x, there.view(shape, there.strides[::-1]) if turned else there


def stages(rng, m, n, dtype):
    """name -> (pairs for `epilogue`, the same in float64, does it read a matrix?)."""
    from zoo.ops import epilogue_gpu as e
    from zoo.ops.activation import gelu, gelu_tanh, relu, silu
    from zoo.ops.pointwise_gpu import jitted
    row, other, full = (rng.normal(size=s).astype(dtype) for s in (n, n, (m, n)))
    norm = [rng.normal(size=n).astype(dtype) for _ in range(4)]
    norm[1] = abs(norm[1])
    b, c, r = (cuda.from_numpy(v) for v in (row, other, full))
    row, other, full, mean, var, gamma, beta = (v.astype(np.float64) for v in (row, other, full, *norm))
    parts = *map(cuda.from_numpy, norm), e.bits_of(1e-3)
    rows = {
        "nothing": ([], lambda x: x, False),
        "bias": ([(e.add_row, b)], lambda x: x + row, False),
        "scale": ([(e.scale_by, e.bits_of(0.0)), (e.scale_row, c)], lambda x: x * 0.0 * other, False),
        "residual": ([(e.scale_row, c), (e.add_row, b), (e.add_matrix, r), (jitted(relu), None)],
                     lambda x: np.maximum(x * other + row + full, 0), True),
        "addmm": ([(e.scale_by, e.bits_of(-0.3)), (e.add_multiple, (r, e.bits_of(1.7)))],
                  lambda x: -0.3 * x + 1.7 * full, True),
        "norm": ([(e.add_row, b), (e.normalize, parts), (e.add_matrix, r), (jitted(relu), None)],
                 lambda x: np.maximum((x + row - mean) / np.sqrt(var + 1e-3) * gamma + beta + full, 0), True),
    }
    for act in (gelu, gelu_tanh, silu):
        rows[act.name] = [(e.add_row, b), (jitted(act), None)], lambda x, act=act: act.forward(x + row), False
    return rows


def compare(schedule, dtype, turned, name, rng):
    from zoo.ops.epilogue_gpu import epilogue
    from zoo.ops.matmul_gpu import multiply
    config, (m, k, n) = SCHEDULES[schedule]
    (a, x), (b, y) = operand((m, k), dtype, turned[0], rng), operand((k, n), dtype, turned[1], rng)
    pairs, formula, has_matrix = stages(rng, m, n, dtype)[name]
    with gpu_configs.using(config=config):
        got = cuda.to_numpy(multiply(x, y, (m, n), epilogue(*pairs), has_matrix=has_matrix))
    want = formula(a.astype(np.float64) @ b.astype(np.float64))
    assert got.dtype == dtype
    error = np.abs(got.astype(np.float64) - want).max() / np.abs(want).max(initial=1e-30)
    assert error <= TOLERANCE[dtype.name], (schedule, turned, name, error)


@pytest.mark.cuda
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", [BFLOAT16, np.dtype("float32"), np.dtype("float64")], ids=str)
def test_every_schedule_and_layout(schedule, dtype, rng):
    if "tma" in schedule and dtype.itemsize == 8:
        pytest.skip("tensor cores of float64 take no descriptors; the table has no such row")
    for turned in itertools.product((False, True), repeat=2):
        compare(schedule, dtype, turned, "bias", rng)


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["nothing", "bias", "scale", "residual", "addmm", "norm", "gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_epilogue(schedule, name, rng):
    compare(schedule, np.dtype("float32"), (False, True), name, rng)


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["scale", "addmm", "norm"])
def test_numbers_of_an_epilogue_are_exact_in_float64(name, rng):
    compare("tiles", np.dtype("float64"), (False, False), name, rng)


@pytest.mark.cuda
@pytest.mark.parametrize("kind, dtype", [("tf32", np.float32), ("tf32x3", np.float32), ("integer", np.int32)])
def test_other_kinds_of_arithmetic(kind, dtype, rng, monkeypatch):
    """Also batches, broadcast and stepping unevenly."""
    monkeypatch.setattr(matmul.Precision, "float32", {"tf32": "high"}.get(kind, kind))
    a, b = (rng.integers(-9, 9, s).astype(dtype) for s in ((3, 1, 20, 40), (2, 40, 24)))
    got = cuda.to_numpy(matmul.matmul(cuda.from_numpy(a), cuda.from_numpy(b)))
    np.testing.assert_array_equal(got, a @ b)                # small integers are exact in every arithmetic


@pytest.mark.cuda
def test_halves_may_be_summed_into_float32(rng):
    from zoo.ops.matmul_gpu import multiply
    (a, x), (b, y) = (operand(s, BFLOAT16, False, rng) for s in ((40, 33), (33, 20)))
    got = cuda.to_numpy(multiply(x, y, (40, 20), dtype=np.dtype("float32")))
    np.testing.assert_allclose(got, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5)


@pytest.mark.cuda
@pytest.mark.parametrize("cut", [5, -1])
def test_cut_sums_are_repeatable(cut, rng):
    """The same bits every time, and on a GPU of any size: the cut depends on the family alone."""
    x, w, b = (rng.normal(size=s).astype(np.float32) for s in ((40, 131), (36, 131), (36,)))
    device = [cuda.from_numpy(v) for v in (x, w, b)]
    with gpu_configs.using(config=Config(32, 32, 16, split=cut, **TILE)):
        first = cuda.to_numpy(linear(*device))
        np.testing.assert_array_equal(first, cuda.to_numpy(linear(*device)))
    np.testing.assert_allclose(first, linear(x, w, b), rtol=1e-4, atol=1e-4)


@pytest.mark.cuda
@pytest.mark.parametrize("turned", list(itertools.product((False, True), repeat=2)), ids=str)
@pytest.mark.parametrize("schedule", ["tiles", "split", "stream", "tma, stored by threads"])
def test_odd_halves_are_read_from_aligned_copies(schedule, turned, rng, monkeypatch):
    """One operand or both have odd rows, K is odd or not; the copy's zeros meet nothing of the other operand."""
    from zoo.ops import matmul_gpu
    monkeypatch.setattr(matmul_gpu, "ALIGNED", (32, 64))
    config, _ = SCHEDULES[schedule]
    for m, k, n in ((65, 67, 71), (64, 67, 72), (65, 64, 71)):
        rows = [(m if turned[0] else k), (k if turned[1] else n)]
        if "tma" in schedule and any(size % 2 == 0 and size % 8 for size in rows):
            continue
        monkeypatch.setitem(SCHEDULES, schedule, (config, (m, k, n)))
        compare(schedule, BFLOAT16, turned, "residual", rng)


@pytest.mark.interpret
def test_a_vocabulary_of_odd_length_is_not_loaded_element_by_element(tmp_path):
    """GPT-2's head forward and both gradients: the gradient of the logits is copied once for each, nothing else."""
    from zoo.ops.cuda.record import dry_run
    from zoo.ops.matmul import linear_input_grad, linear_weight_grad
    x, w, dy = (cuda.empty(s, BFLOAT16) for s in ((1024, 768), (50257, 768), (1024, 50257)))
    for call, copies in ((lambda: linear(x, w), 0), (lambda: linear_input_grad(dy, w), 1),
                         (lambda: linear_weight_grad(dy, x), 1)):
        with dry_run(tmp_path / "launches"), gpu_configs.using("sm90"), gpu_configs.listening() as queries:
            call()
        lines = (tmp_path / "launches").read_text().splitlines()
        (tmp_path / "launches").unlink()
        assert sum("along_k" in line for line in lines) == copies
        assert all("narrow" not in q.tags and "tma_loads" in q.tags for q in queries)


@pytest.mark.interpret
@pytest.mark.parametrize("programs", [1, 2, 3, 7, 16])
def test_stream_k_for_any_number_of_programs(programs, rng, monkeypatch):
    """4 tiles of 4 steps: every tile is added up once, however the stretches fall."""
    from zoo.ops.matmul_gpu import _plan_of
    small = gpu_configs.FAMILIES["sm90"]._replace(multiprocessors=programs)
    monkeypatch.setitem(gpu_configs.FAMILIES, "sm90", small)
    _plan_of.cache_clear()
    compare("stream", np.dtype("float32"), (False, True), "residual", rng)
    _plan_of.cache_clear()


# -- what is chosen

def test_cuts_fill_the_gpu():
    from zoo.ops.matmul_gpu import STREAM_GAIN, _cut_of
    tile = Config(128, 128, 64)
    assert _cut_of(tile, 64, 64, 264) == 4                   # 256 programs of 16 steps
    assert _cut_of(tile, 1, 3, 264) == 1                     # too short to cut
    assert _cut_of(tile, 528, 64, 264) == 1                  # two full rounds
    assert _cut_of(tile, 270, 64, 264) == -1                 # 6 tiles would take a round for themselves
    assert _cut_of(tile, 270, STREAM_GAIN // 2, 264) == 1    # but short ones are not worth a second launch
    assert _cut_of(tile._replace(split=2), 270, 64, 264) == 2


@pytest.mark.cuda
def test_what_the_tensor_memory_accelerator_cannot_read_is_not_given_to_it():
    from zoo.ops.epilogue_gpu import NOTHING
    from zoo.ops.matmul_gpu import Problem, _layout, _sides, _tags

    def tags(m, k, n, lda, aligned=True):
        p = Problem(m, n, k, _layout((m, k), (lda, 1)), _layout((k, n), (n, 1)), BFLOAT16, BFLOAT16, "half", aligned,
                    (0, 0), id(NOTHING.stages), False)
        return _tags(p, _sides(p, False), 1, False)
    assert tags(512, 512, 512, 512) == {"nn", "tma", "tma_loads"}
    assert tags(512, 500, 512, 504) == {"nn", "tma", "tma_loads"}        # an odd K within aligned rows
    assert tags(512, 500, 512, 500) == {"nn"}
    assert tags(512, 512, 500, 512) == {"nn"}
    assert tags(512, 512, 512, 512, aligned=False) == {"nn"}
    assert tags(512, 511, 512, 511) == {"nn", "narrow"}
    assert tags(512, 512, 511, 512) == {"nn", "narrow", "odd"}


@pytest.mark.interpret
def test_equal_layouts_are_planned_once(rng):
    from zoo.ops.matmul_gpu import _plan_of, multiply
    x, w = (cuda.from_numpy(rng.normal(size=s).astype(np.float32)) for s in ((33, 20), (20, 9)))
    multiply(x, w, (33, 9))
    before = _plan_of.cache_info()
    multiply(x, w, (33, 9))
    after = _plan_of.cache_info()
    assert (after.misses, after.hits) == (before.misses, before.hits + 1)


# -- the table

def test_families_of_gpus():
    names = {c: gpu_configs.family_of(c) for c in ((8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0), (7, 5), (14, 0))}
    assert list(names.values()) == ["sm80", "sm86", "sm86", "sm90", "sm100", "sm86", "sm86", "sm86"]


@pytest.mark.parametrize("family", gpu_configs.FAMILIES)
def test_table_is_well_formed(family):
    """Every row says where it comes from; no product is without a config; the file's name is in it."""
    text = files(gpu_configs).joinpath(f"{family}.json").read_text()
    assert json.loads(text)["family"] == family
    rows = gpu_configs.rows_of(family)
    for row in rows:
        measured = isinstance(row.basis, dict) and {"us", "gpu", "triton", "date", "commit"} <= row.basis.keys()
        assert measured or row.basis.startswith("predicted: "), row
        sides = row.config[:3]
        assert all(n & (n - 1) == 0 for n in (*sides, row.config.num_warps)), row
        assert row.kind != "integer" and min(sides) >= 16 or row.kind == "integer", row
    for op in {row.op for row in rows}:
        for kind in {row.kind for row in rows if row.op == op}:
            last = [row for row in rows if row.op == op and row.kind == kind][-1]
            assert last == gpu_configs.Row(op, kind, last.config, last.basis), "the last row must hold for all"
    for kind in ("half", "tf32", "tf32x3", "ieee", "double", "integer"):
        assert gpu_configs.chosen(family, "gemm", kind, 1, 1, 1, 1, frozenset())


def test_rows_hold_where_they_say():
    row = gpu_configs.Row("gemm", "half", Config(128, 128, 64), "", frozenset({"tma"}), M=(256, None), N=(None, 512),
                          tiles=4)
    assert row.holds(256, 256, 1, 1, frozenset({"tma", "nt"}))
    assert not row.holds(256, 256, 1, 1, frozenset({"nt"}))
    assert not row.holds(255, 512, 1, 1, frozenset({"tma"}))
    assert not row.holds(512, 513, 1, 1, frozenset({"tma"}))
    assert not row.holds(256, 255, 1, 1, frozenset({"tma"}))              # 2 whole tiles
    assert row.holds(256, 255, 1, 2, frozenset({"tma"}))                  # in each of 2 batch elements


# -- what uses them

def launches_of(call, folder):
    """Names of the kernels that a call launches."""
    from zoo.ops.cuda import record
    record.start(folder / "launches.jsonl")
    try:
        result = call()
    finally:
        record.stop()
    lines = (folder / "launches.jsonl").read_text().splitlines()
    return result, [json.loads(line)["kernel"].split(":")[1] for line in lines]


@pytest.mark.interpret
@pytest.mark.parametrize("act", ["ReLU", "SiLU", "Tanh", "Sigmoid", "GELU"])
def test_linear_and_its_activation_are_one_launch(act, rng, tmp_path):
    model = zoo.nn.Sequential(zoo.nn.Linear(20, 33), getattr(zoo.nn, act)())
    x = zoo.tensor(rng.normal(size=(17, 20)), dtype=zoo.float32)
    want = model(x).detach().numpy()
    model, x = model.cuda(), x.cuda()
    with zoo.no_grad():
        got, kernels = launches_of(lambda: model(x), tmp_path)
    assert kernels == ["gemm"]
    np.testing.assert_allclose(got.cpu().numpy(), want, rtol=1e-5, atol=1e-5)
    assert model(x).requires_grad
    model[1].register_forward_hook(lambda module, args, output: output * 0)
    with zoo.no_grad():
        assert not model(x).cpu().numpy().any()             # a hook is not jumped over


@pytest.mark.interpret
@pytest.mark.parametrize("shape, beta, kernels", [((17, 24), 0.5, ["gemm"]), ((24,), 1, ["gemm"]),
                                                  ((17, 1), 2, ["tile", "gemm"])])
def test_addmm_is_one_launch(shape, beta, kernels, rng, tmp_path):
    """But for an input that has to be spread out first."""
    arrays = [rng.normal(size=s).astype(np.float32) for s in (shape, (17, 20), (20, 24))]
    want = beta * arrays[0] - 0.1 * (arrays[1] @ arrays[2])
    tensors = [zoo.tensor(a).cuda() for a in arrays]
    got, seen = launches_of(lambda: zoo.addmm(*tensors, beta=beta, alpha=-0.1), tmp_path)
    assert seen == kernels
    np.testing.assert_allclose(got.cpu().numpy(), want, rtol=1e-5, atol=1e-5)
