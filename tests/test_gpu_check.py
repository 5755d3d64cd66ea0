"""scripts/gpu_check.py on the interpreter: its parts run, end with status 0 and leave their JSON."""

import json
import subprocess
import sys
import tarfile
import time

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
    assert all((ROOT / f"tests/test_{name}.py").exists() for name in (*gpu_check.KERNELS, *gpu_check.ELSEWHERE))
    layers = gpu_cases.resnet50_layers(False)
    assert len(layers) == 23 and (64, 64, 3, 1, 56) in layers and (1024, 2048, 1, 2, 14) in layers


def test_floors(bench):
    from gpu_floors import conv, floor_ms, gemm, moved, peak_of

    peak = peak_of("NVIDIA H200")
    assert peak_of("NVIDIA T4") is None and peak_of("NVIDIA H200 MIG 1g.18gb") is None
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
    args = argparse.Namespace(torch=False, limit=2, tiny=True, compile="default")
    assert gpu.measured("conv", args, tmp_path) == {"zoo": {}}
    rows = gpu.rows_of("gemm", gpu.measured("gemm", args, tmp_path), "NVIDIA H200", True)
    assert rows[0]["zoo"] == {"ms": 2.0} and rows[0]["share of the floor"] > 0 and rows[1]["zoo"] == {}
    assert "zoo failed" in gpu.line_of(rows[1])


def test_a_session_keeps_what_its_steps_left(bench, tmp_path, monkeypatch, capsys):
    """A step that hangs with a process of its own, one that fails, one without time; all of it in an archive."""
    import gpu_session

    hang = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    steps = [("long", 1, hang), ("wrong", 9, "raise SystemExit('no GPU')"), ("good", 9, "print('3 passed')")]
    monkeypatch.setitem(gpu_session.SESSIONS, "check", [
        gpu_session.Step(name, limit, ["-c", code]) for name, limit, code in steps])
    monkeypatch.setattr(gpu_session, "MINIMUM", 0.5)
    monkeypatch.setattr(gpu_session, "SLOWER", 1)
    assert gpu_session.session("check", [], 40, tmp_path) == 1
    found = {r["name"]: (r["status"], r["verdict"]) for r in json.loads((tmp_path / "check.json").read_text())}
    assert found == {"long": (124, ""), "wrong": (1, "no GPU"), "good": (0, "3 passed")}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["check.json", "check.tar.gz"]
    with tarfile.open(tmp_path / "check.tar.gz") as tar:
        assert {"check/good.step.log", "check/wrong.step.log", "check/check.json"} < set(tar.getnames())
    assert gpu_session.session("check", ["good"], gpu_session.RESERVE, tmp_path) == 1
    assert "LEFT OUT" in capsys.readouterr().out


def test_tests_that_are_ended_half_way_have_told_what_they_found(bench, tmp_path, monkeypatch):
    import gpu_check

    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)         # the run within is no part of this one
    (tmp_path / "test_slow.py").write_text(
        "import os\ndef test_a(): pass\ndef test_b(): assert 1 == 2\ndef test_c(): os.kill(os.getpid(), 9)")
    part = gpu_check.Part("slow", 1, 60, tmp_path)
    found = part.pytest(str(tmp_path / "test_slow.py"), "-p", "no:cacheprovider", f"--rootdir={tmp_path}")
    assert found["status"] == -9
    assert gpu_check.verdict_of(found["output"]) == "until it was ended: 1 failed, 1 passed"
    rows = [json.loads(line) for line in (tmp_path / "slow-tests.jsonl").read_text().splitlines()]
    assert [row["outcome"] for row in rows] == ["passed", "failed"] and "assert 1 == 2" in rows[1]["text"]


def test_a_worker_that_lost_the_gpu_is_replaced(bench, tmp_path, monkeypatch):
    """The test that broke it fails with its own error, and those behind it run in another process."""
    import gpu_check

    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)         # the run within is no part of this one
    (tmp_path / "test_gpu.py").write_text(
        "import os\nimport scripts.live_report as plugin\nbegun = os.getpid()\n"
        "def test_a():\n    plugin.is_lost = lambda: True\n    raise RuntimeError('illegal address')\n"
        "def test_b(): assert not plugin.failed")
    part = gpu_check.Part("gpu", 1, 60, tmp_path)
    found = part.pytest(str(tmp_path / "test_gpu.py"), "-n", "1", "-p", "no:cacheprovider", f"--rootdir={tmp_path}")
    assert found["status"] == 1 and "1 passed" in gpu_check.verdict_of(found["output"])
    rows = [json.loads(line) for line in (tmp_path / "gpu-tests.jsonl").read_text().splitlines()]
    assert [row["outcome"] for row in rows if row["test"].endswith("test_b")] == ["passed"]
    assert any("illegal address" in row.get("text", "") for row in rows)


def test_what_lost_the_gpu_goes_on_in_another_process(tmp_path):
    sys.path.insert(0, str(ROOT / "scripts"))
    from limited import limited

    body = ("import os, pathlib\np = pathlib.Path('begun')\nn = len(p.read_text()) if p.exists() else 0\n"
            "p.write_text('x' * (n + 1))\nprint(n)\nos._exit(os.EX_TEMPFAIL if n < 2 else 0)")
    ended = limited([sys.executable, "-c", body], 30, tmp_path / "log", tmp_path, PYTHONUNBUFFERED="1")
    assert ended.status == 0 and (tmp_path / "log").read_text().split() == ["0", "1", "2"]
    always = [sys.executable, "-c", "import os; os._exit(os.EX_TEMPFAIL)"]
    assert limited(always, 0.5, tmp_path / "log").status == 124


def test_compiled_kernels_are_packed_and_found_elsewhere(bench, tmp_path, monkeypatch):
    """Only what a launch needs, and the group's paths are those of the cache that it is unpacked in."""
    import gpu_kernels

    here, there = tmp_path / "here", tmp_path / "there"
    (here / "KEY").mkdir(parents=True)
    names = ["f.json", "f.ttir", "f.cubin"]
    for name in names:
        (here / "KEY" / name).write_text(name)
    group = {"child_paths": {name: str(here / "KEY" / name) for name in names}}
    (here / "KEY" / "__grp__f.json").write_text(json.dumps(group))
    monkeypatch.setattr(gpu_kernels, "cache_folder", lambda: here)
    assert gpu_kernels.pack(tmp_path / "kernels.tar.xz") == 3
    monkeypatch.setattr(gpu_kernels, "cache_folder", lambda: there)
    assert gpu_kernels.unpack(tmp_path / "kernels.tar.xz") == 1
    found = json.loads((there / "KEY" / "__grp__f.json").read_text())["child_paths"]
    assert found == {name: str(there / "KEY" / name) for name in ("f.json", "f.cubin")}
    assert (there / "KEY" / "f.cubin").read_text() == "f.cubin" and not (there / "KEY" / "f.ttir").exists()


def test_a_running_step_is_kept(bench, tmp_path, monkeypatch):
    """A machine may be gone before a step ends: what it wrote is in the archive by then."""
    import gpu_session

    monkeypatch.setattr(gpu_session, "PERIOD", 0.05)
    out, folder = tmp_path / "out", tmp_path / "made"
    out.mkdir()
    folder.mkdir()
    with gpu_session.keeping("tune", folder, out):
        (folder / "table.json").write_text("half")
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            time.sleep(0.1)
            if (out / "tune.tar.gz").exists():
                with tarfile.open(out / "tune.tar.gz") as tar:
                    if "tune/table.json" in tar.getnames():
                        break
        else:
            raise AssertionError("nothing was kept")


def test_results_of_sessions_join_the_tree(bench, tmp_path, capsys):
    """Sections measured later replace theirs; the table goes to its family; the interpreter's times are refused."""
    import gpu_session

    def archived(gpu, rows, steps=()):
        inside = tmp_path / "bench"
        inside.mkdir(exist_ok=True)
        row = {"case": "a", "zoo": {"ms": 2.0}, "flops": 1e9, "bytes": 1e6}
        for name, content in {"machine": {"gpu": gpu}, "bench": steps, "table": {"family": "sm90", "rows": []},
                              "gpu": {"gpu": gpu, "rows": [{**row, "section": s, "n": n} for s, n in rows]}}.items():
            (inside / f"{name}.json").write_text(json.dumps(content))
        with tarfile.open(tmp_path / "bench.tar.gz", "w:gz") as tar:
            tar.add(inside, "bench")
    root = tmp_path / "tree"
    for gpu in ("interpreter", "STUB GPU 0"):
        archived(gpu, [("gemm", 0)])
        assert gpu_session.take(tmp_path, root) == 2 and not root.exists()
    for n, rows in enumerate(([("gemm", 1), ("conv", 1)], [("conv", 2)]), 1):
        archived("NVIDIA H200", rows, [{"name": name, "n": n} for name in ("gemm", "conv")[n - 1:]])
        assert gpu_session.take(tmp_path, root) == 0
    results = root / "scripts/bench/results/gpu"
    rows = json.loads((results / "gpu.json").read_text())["rows"]
    assert [(r["section"], r["n"]) for r in rows] == [("gemm", 1), ("conv", 2)]
    assert (results / "roofline.svg").read_text().count("<circle") == 2
    assert [step["n"] for step in json.loads((results / "bench.json").read_text())] == [1, 2]
    assert json.loads((root / "ops/gpu_configs/sm90.json").read_text())["family"] == "sm90"
    assert "bench.tar.gz: ops/gpu_configs/sm90.json" in capsys.readouterr().out


@pytest.mark.interpret
@pytest.mark.parametrize("name", ["LSTM training, H=1024 T=128 B=64", "resnet50 inference, batch 1"])
def test_whole_steps_of_real_sizes_are_planned(bench, tmp_path, name):
    """What gpu_host.py runs on the driver stub, here without compiling: forward, and the whole step."""
    import gpu_host

    from zoo.ops.cuda import record

    with record.dry_run(str(tmp_path / "launches")):
        model = gpu_host.MODELS[name]()
        (model.step or model.forward)()
    assert len((tmp_path / "launches").read_text().splitlines()) > 15
    row = {"forward": {"launches": 92, "us": 4321}, "replay": {"us": 11}, "peak, GB": 2.25}
    assert gpu_host.line_of(name, row).endswith("| forward   92 launches    4.32 ms | replay   11 us | peak 2.2 GB")


def test_the_table_of_a_gpu(bench):
    from gpu_table import table

    rows = [{"case": "matmul", "zoo": {"ms": 2.0, "p10": 1.9, "p90": 2.1, "peak GB": 1.5}, "torch": {"error": "no"},
             "zoo / torch": 0.5, "share of the floor": 0.8}]
    machine = {"gpu": "NVIDIA H200", "triton": "3.6.0", "python": "3.12.3", "torch": "2.11.0", "commit": "0" * 40,
               "date": "2026-11-22T00:00:00"}
    lines = table({"rows": rows, **machine}).splitlines()
    assert lines[2] == "| matmul | 2 ms (1.9 to 2.1) |  | failed |  | 0.50 | 80% | 1.50 |"
    assert lines[-1].startswith("NVIDIA H200, Triton 3.6.0, ")


def test_an_unknown_part_is_refused():
    done = subprocess.run([sys.executable, SCRIPT, "--only", "everything"], capture_output=True, text=True)
    assert done.returncode == 2 and "no part everything" in done.stderr and "Traceback" not in done.stderr
