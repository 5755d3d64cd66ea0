"""The benchmark beside torch runs, compares results, and writes what README's table is made of."""
import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.house import ROOT


def bench(*options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "scripts/bench/run.py", "--rounds", "1", "--budget", "0.001", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_rows_are_measured_and_kept(tmp_path):
    pytest.importorskip("torch")
    out = tmp_path / "cpu.json"
    first = bench("--only", "ops: add", "chain forward+b", "--shape", "10x100", "--out", str(out))
    assert "Traceback" not in first.stderr, first.stderr
    rows = json.loads(out.read_text())["rows"]
    assert [r["case"] for r in rows] == ["add, forward", "add, forward+backward", "chain forward+backward"]
    assert all(r["error"] <= 1e-6 and r["zoo"] > 0 and r["torch"]["ratio"] > 0 for r in rows)
    assert all(("numba" in r["torch"]) == bool(find_spec("numba")) for r in rows)
    second = bench("--only", "relu, forward+", "ops: add, forward+", "--shape", "10x100", "--keep", "--out", str(out))
    assert "Traceback" not in second.stderr, second.stderr
    again = json.loads(out.read_text())["rows"]
    assert [r["case"] for r in again] == [*(r["case"] for r in rows), "relu, forward+backward"]
    assert [a == b for a, b in zip(again, rows, strict=False)] == [True, False, True]


def test_different_results_are_an_error():
    code = ("import sys; sys.path.insert(0, 'scripts/bench'); from protocol import Case, error_of; import zoo\n"
            "case = Case('ops', 'wrong', lambda: None)\n"
            "error_of(case, {'zoo': lambda: zoo.ones(3), 'torch': lambda: zoo.ones(3) * 1.001})")
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert "differ by" in found.stderr
