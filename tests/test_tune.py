"""The tuner, end to end on small shapes in the interpreter; the occupancy of kernels."""
import json
import os
import runpy
import sys

import pytest

from tests.house import ROOT
from zoo.ops import gpu_configs
from zoo.ops.gpu_configs import Config


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
def test_a_wrong_result_is_no_candidate(monkeypatch):
    from zoo.ops.tune.__main__ import measured
    with pytest.raises(ValueError, match="wrong by"):
        measured("half", Config(16, 16, 16), (lambda: None, lambda got: 0.5), None, 1)


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
    assert [row["candidates"] for row in found()] == [2, 1] and len(calls) == 4
    tune.main()
    assert len(calls) == 4, "nothing is left to measure"


@pytest.mark.interpret
@pytest.mark.parametrize("op", ["conv_forward", "conv_input_grad", "conv_weight_grad"])
def test_convolutions_ask_the_table(op):
    from zoo.ops.tune.__main__ import query_of
    from zoo.ops.tune.cases import TINY, convolution
    run, error = convolution("tf32", op, *TINY["resnet50"].convolutions[0]).start()
    assert query_of(run).op == op
    assert error(run()) == 0


def test_occupancy():
    occupancy = runpy.run_path(str(ROOT / "scripts" / "occupancy.py"))["occupancy"]
    assert occupancy(90, 255, 0, 8) == 1 and occupancy(90, 128, 0, 8) == 2          # registers
    assert occupancy(90, 32, 113 * 1024, 4) == 2 and occupancy(90, 32, 114 * 1024, 4) == 1   # shared memory
    assert occupancy(90, 16, 0, 1) == 32 and occupancy(86, 16, 0, 1) == 16          # programs
    assert occupancy(80, 32, 0, 32) == 2                                            # warps
    assert occupancy(80, 32, 168 * 1024, 4) == 0
