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
        [sys.executable, SCRIPT, "--only", "digits,bench", "--jobs", "1", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    bench = json.loads((tmp_path / "bench.json").read_text())
    assert bench["gpu"] == "interpreter" and len(bench["tables"]["zoo"]) >= 10
    assert json.loads((tmp_path / "digits.json").read_text())["cuda"]["last"]["test_accuracy"] is not None


def test_an_unknown_part_is_refused():
    done = subprocess.run([sys.executable, SCRIPT, "--only", "everything"], capture_output=True, text=True)
    assert done.returncode == 2 and "no part everything" in done.stderr and "Traceback" not in done.stderr
