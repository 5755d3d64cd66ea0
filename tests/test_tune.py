"""The tuner, end to end on small shapes in the interpreter; the occupancy of kernels."""
import json
import os
import runpy
import sys
from functools import partial

import numpy as np
import pytest

from tests.house import ROOT
from tests.test_cuda_stub import run, stub
from zoo.ops import cuda, gpu_configs, matmul
from zoo.ops.gpu_configs import Config

__all__ = ["stub"]


@pytest.fixture(autouse=True)
def _precision(monkeypatch):
    """That of each kind is set by the tuner."""
    monkeypatch.setattr(matmul.Precision, "float32", "highest")


@pytest.mark.interpret
def test_tuner_writes_rows_that_hold_for_what_it_measured(tmp_path, monkeypatch, capsys):
    """Wrong candidates and those that fail are left out; a second run replaces the rows of the first."""
    from zoo.ops.tune import __main__ as tune
    from zoo.ops.tune import cases
    real, seen = cases.candidates, []

    def with_bad_ones(query, family):
        yield Config(48, 64, 32)                                # no power of two: does not compile
        for i, config in enumerate(real(query, family)):
            if i < 2:
                seen.append((query, config))
                yield config
    monkeypatch.setattr(cases, "candidates", with_bad_ones)
    out = tmp_path / "table.json"
    for _ in range(2):
        from zoo.ops.matmul_gpu import _plan_of
        _plan_of.cache_clear()
        monkeypatch.setattr(sys, "argv", ["tune", "gemm", "--kinds", "half", "--tiny", "--repeats", "2", "--out",
                                          str(out)])
        tune.main()
    assert "1 left out" in capsys.readouterr().out
    table = json.loads(out.read_text())
    assert gpu_configs.dumped(table) == out.read_text()
    rows = gpu_configs.parse(table)
    mine = [row for row in rows if isinstance(row.basis, dict)]
    assert len(mine) == 2 and rows[:2] == mine                  # on top, and not twice
    for query, row in zip((seen[0][0], seen[2][0]), mine, strict=True):
        assert row.holds(query.M, query.N, query.K, query.batch, query.tags)
        assert row.config in [config for q, config in seen if q == query]
        assert {"us", "spread_us", "gpu", "triton", "date", "commit"} <= row.basis.keys()
    assert len(rows) == 2 + len(gpu_configs.rows_of("sm90"))


@pytest.mark.interpret
def test_candidates_are_recorded_for_the_compiler(tmp_path, monkeypatch):
    """Real sizes, without their memory; spread over all candidates, the widest tile and the narrowest among them."""
    from zoo.ops.tune import __main__ as tune
    from zoo.ops.tune import cases
    path = tmp_path / "launches.jsonl"
    monkeypatch.setitem(cases.GROUPS, "resnet50", cases.Group([((4096, 4096, 4096), "nt")], []))
    monkeypatch.setattr(sys, "argv", ["tune", "gemm", "--kinds", "half", "--of", "resnet50", "--most", "5",
                                      "--record", str(path)])
    tune.main()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    tiles = {(row["constexprs"]["BM"], row["constexprs"]["BN"]) for row in rows if "BM" in row["constexprs"]}
    assert {(128, 256), (64, 16)} < tiles and 5 <= len(rows) <= 7


@pytest.mark.interpret
def test_attention_and_time_loops_are_tuned(tmp_path, monkeypatch, capsys):
    """A row for each kernel, which is then taken for what was measured and tells causal calls from others."""
    from zoo.ops.tune import __main__ as tune
    from zoo.ops.tune import attention_gpu, recurrent_gpu
    monkeypatch.setattr(attention_gpu, "TINY", attention_gpu.TINY[:1])
    out = tmp_path / "table.json"
    monkeypatch.setattr(sys, "argv", ["tune", "attention", "recurrent", "--kinds", "half", "--tiny", "--repeats", "2",
                                      "--most", "1", "--out", str(out)])
    tune.main()
    assert "0 left out" in capsys.readouterr().out
    rows = [row for row in gpu_configs.parse(json.loads(out.read_text())) if isinstance(row.basis, dict)]
    assert {row.op for row in rows} == {*attention_gpu.KERNELS, *recurrent_gpu.LOOPS}
    for row in rows:
        assert row.holds(*row.basis["shape"], 1, row.tags)
        assert row.tags == ({"causal", "plain"} if row.op in attention_gpu.KERNELS else set())
        assert row.config.kernel == ("tiled" if row.tags else "resident")


@pytest.mark.interpret
@pytest.mark.parametrize("family", list(gpu_configs.FAMILIES))
def test_candidates_fit_the_gpu(family, monkeypatch):
    """And are a few dozen, the kernels that hold their weights among them, and what the table has for attention."""
    from zoo.ops.cuda import mode
    from zoo.ops.tune import attention_gpu, recurrent_gpu
    monkeypatch.setattr(mode, "dry", True)
    it = gpu_configs.FAMILIES[family]

    def found(module, op, kind, *sizes):
        with gpu_configs.using(family):
            return list(module.candidates(gpu_configs.Query(op, kind, *sizes, 128, frozenset()), it))
    for op in attention_gpu.KERNELS:
        for kind in attention_gpu.KINDS:
            configs = found(attention_gpu, op, kind, 1024, 1024, 64)
            with gpu_configs.using(family):
                now = gpu_configs.choose(op, kind, 1024, 1024, 64)
            assert now._replace(BK=64, registers=0) in configs and len(set(configs)) == len(configs) < 120
            assert all(c.BM <= 32 and c.BN <= 32 for c in found(attention_gpu, op, kind, 20, 20, 64))
    for op in recurrent_gpu.LOOPS:
        gates = 4 if op.startswith("lstm") else 3
        sizes = (512, gates * 512) if op.endswith("back") else (gates * 512, 512)
        kernels = [c.kernel for c in found(recurrent_gpu, op, "half", 32, *sizes)]
        assert set(kernels) == {"resident", "streaming", "steps"} and len(kernels) < 120
        assert "resident" not in {c.kernel for c in found(recurrent_gpu, op, "ieee", 32, *sizes)}


@pytest.mark.interpret
def test_a_wrong_result_is_no_candidate(monkeypatch):
    """A number off, one that is none, and of several results the worst."""
    from zoo.ops.tune.__main__ import measured
    from zoo.ops.tune.cases import Case, Started, error_beside
    case = Case("a test", "half", lambda: None, lambda query, family: iter(()))
    with pytest.raises(ValueError, match="wrong by"):
        measured(case, Config(16, 16, 16), Started(partial(int), lambda got: 0.5), None, 1)
    error = error_beside(tuple(cuda.from_numpy(np.ones(4, np.float32)) for _ in range(2)))
    for last, off in ((1.0, 0.0), (1.5, 0.5), (np.nan, np.nan)):
        got = [np.ones(4, np.float32), np.array([1, 1, 1, last], np.float32)]
        assert np.array_equal(error(tuple(map(cuda.from_numpy, got))), off, equal_nan=True)


def test_a_candidate_that_spills_is_left_out(stub, tmp_path):
    """Whichever kernel of a call it is, or of another call that takes the same row."""
    printed, _ = run(stub, tmp_path, '''
from functools import partial
from zoo.ops.cuda.resources import stack_of
from zoo.ops.gpu_configs import Config
from zoo.ops.tune.__main__ import measured
from zoo.ops.tune.cases import Case, Started

@triton.jit
def keep(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    values = tl.load(x + i)
    tl.store(x + i, values * tl.sum(values))

def two(x, kept):
    cuda.launch(scale, (1,), x, x, 32, 2.0, BLOCK=32)
    cuda.launch(keep, (1,), x, BLOCK=kept, num_warps=1)

x = cuda.from_numpy(np.ones(8192, np.float32))
good, poor = (partial(two, x, kept) for kept in (1024, 8192))           # 32 registers of a thread, and 256
before = len(open(LOG).readlines())
assert stack_of(good) == 0 and stack_of(poor) > 0
assert not [line for line in open(LOG).readlines()[before:] if line.startswith("launch")], "only compiled"
case = Case("a test", "half", None, None)
measured(case, Config(16, 16, 16), Started(good, lambda got: 0.0), cuda.empty((4,), np.int8), 2)
for started in (Started(poor, lambda got: 0.0), Started(good, lambda got: 0.0, (poor,))):
    try:
        measured(case, Config(16, 16, 16), started, None, 2)
    except ValueError as e:
        print(e)
''')
    assert [line.split()[0] for line in printed.splitlines()] == ["spills", "spills"]


def test_rows_of_special_calls_go_first():
    """Whatever was measured last, and before what is predicted."""
    from zoo.ops.tune.__main__ import merged

    def row(*tags, shape=(8, 8, 8), basis=None):
        return {"op": "attend", "kind": "half", "tags": list(tags), "basis": basis or {"shape": shape}}
    table = {"family": "sm90", "rows": [row("plain"), row(basis="predicted"), row("causal", "plain")]}
    rows = merged(table, [row(), row("plain")])["rows"]
    assert [row["tags"] for row in rows] == [["causal", "plain"], ["plain"], [], []]
    assert rows[-1]["basis"] == "predicted"


@pytest.mark.interpret
def test_a_candidate_that_breaks_the_gpu_costs_only_its_case(tmp_path, monkeypatch):
    """What was measured before it stays, this process ends, and the next one goes on behind that case."""
    from zoo.ops.matmul_gpu import _plan_of
    from zoo.ops.tune import __main__ as tune

    _plan_of.cache_clear()
    measured, calls = tune.measured, []

    def breaks(*args):
        calls.append(args)
        if len(calls) == 2:
            raise RuntimeError("illegal address")
        return measured(*args)

    def leave(status):
        raise SystemExit(status)
    monkeypatch.setattr(tune, "measured", breaks)
    monkeypatch.setattr(tune, "is_lost", lambda: True)
    monkeypatch.setattr(tune.os, "_exit", leave)
    out, begun = tmp_path / "table.json", tmp_path / "begun"
    monkeypatch.setattr(sys, "argv", ["tune", "gemm", "--kinds", "half", "--tiny", "--repeats", "2", "--most", "2",
                                      "--out", str(out), "--begun", str(begun)])

    def found():
        return [row["basis"] for row in json.loads(out.read_text())["rows"] if isinstance(row["basis"], dict)]
    with pytest.raises(SystemExit) as error:
        tune.main()
    assert error.value.code == os.EX_TEMPFAIL and [row["candidates"] for row in found()] == [1]
    tune.main()
    assert len(begun.read_text().splitlines()) == 2
    assert sorted(row["candidates"] for row in found()) == [1, 2] and len(calls) == 4
    tune.main()
    assert len(calls) == 4, "nothing is left to measure"


@pytest.mark.interpret
@pytest.mark.parametrize("op", ["conv_forward", "conv_input_grad", "conv_weight_grad"])
def test_convolutions_ask_the_table(op):
    from zoo.ops.tune.__main__ import query_of
    from zoo.ops.tune.cases import TINY, convolution
    run, error, _ = convolution("tf32", op, *TINY["resnet50"].convolutions[0]).start()
    assert query_of(run).op == op
    assert error(run()) == 0


def test_occupancy():
    occupancy = runpy.run_path(str(ROOT / "scripts" / "occupancy.py"))["occupancy"]
    assert occupancy(90, 255, 0, 8) == 1 and occupancy(90, 128, 0, 8) == 2          # registers
    assert occupancy(90, 32, 113 * 1024, 4) == 2 and occupancy(90, 32, 114 * 1024, 4) == 1   # shared memory
    assert occupancy(90, 16, 0, 1) == 32 and occupancy(86, 16, 0, 1) == 16          # programs
    assert occupancy(80, 32, 0, 32) == 2                                            # warps
    assert occupancy(80, 32, 168 * 1024, 4) == 0
