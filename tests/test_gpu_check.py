"""scripts/gpu_check.py on the interpreter: its parts run, end with status 0 and leave their JSON."""

import json
import subprocess
import sys

import pytest

from tests.house import ROOT

SCRIPT = str(ROOT / "scripts" / "gpu_check.py")


@pytest.mark.interpret
def test_parts_run_and_write_json(tmp_path):
    done = subprocess.run(
        [sys.executable, SCRIPT, "--only", "digits,bench-gemm", "--jobs", "1", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    bench = json.loads((tmp_path / "gpu.json").read_text())
    assert bench["gpu"] == "interpreter" and bench["tiny"] and bench["commit"]
    assert [r["section"] for r in bench["rows"]] == ["gemm"] * 2
    assert all(r["zoo"]["ms"] > 0 and r["bytes"] for r in bench["rows"])
    assert (tmp_path / "roofline.svg").read_text().count("<circle") == 2
    digits = json.loads((tmp_path / "digits.json").read_text())
    assert digits["cuda"]["last"]["test_accuracy"] is not None


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "bench"))
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))


def test_sections_and_files_exist(bench):
    import gpu_cases
    import gpu_check

    assert tuple(gpu_cases.SECTIONS) == gpu_check.SECTIONS
    assert len(gpu_check.files(gpu_check.KERNELS)) == len(gpu_check.KERNELS.split())
    assert len(gpu_check.files(gpu_check.SUITE)) == len(gpu_check.SUITE.split())
    layers = gpu_cases.resnet50_layers(False)
    assert len(layers) == 23 and (64, 64, 3, 1, 56) in layers and (1024, 2048, 1, 2, 14) in layers


def test_floors(bench):
    from gpu_floors import conv, floor_ms, gemm, moved, peak_of

    peak = peak_of("NVIDIA H200")
    assert peak_of("NVIDIA T4") is None
    assert floor_ms(gemm(4096, 4096, 4096), peak) == pytest.approx(0.174, rel=0.01), "arithmetic"
    assert floor_ms(moved(2**28, 3), peak) == pytest.approx(0.375, rel=0.01), "memory"
    assert conv(256, 64, 64, 3, 1, 56).flops == 2 * 256 * 56 * 56 * 64 * 64 * 9


def test_a_section_that_hangs_or_fails_costs_only_itself(bench, tmp_path, monkeypatch):
    import argparse

    import gpu

    (tmp_path / "gpu_section.py").write_text(
        "import sys, time\nif 'conv' in sys.argv: time.sleep(60)\n"
        "open(sys.argv[sys.argv.index('--out') + 1], 'w').write('{\"matmul 16^3 bfloat16\": {\"ms\": 2.0}}')")
    monkeypatch.setattr(gpu, "__file__", str(tmp_path / "gpu.py"))
    args = argparse.Namespace(torch=False, limit=2, tiny=True)
    assert gpu.measured("conv", args, tmp_path) == {"zoo": {}}
    rows = gpu.rows_of("gemm", gpu.measured("gemm", args, tmp_path), "NVIDIA H200", True)
    assert rows[0]["zoo"] == {"ms": 2.0} and rows[0]["share of the floor"] > 0 and rows[1]["zoo"] == {}
    assert "zoo failed" in gpu.line_of(rows[1])


def test_an_unknown_part_is_refused():
    done = subprocess.run([sys.executable, SCRIPT, "--only", "everything"], capture_output=True, text=True)
    assert done.returncode == 2 and "no part everything" in done.stderr and "Traceback" not in done.stderr
