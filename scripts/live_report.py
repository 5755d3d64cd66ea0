"""A plugin of pytest for a machine that may be gone, and a GPU that may break, before a run is over.

    LIVE_REPORT=tests.jsonl python -m pytest -n 16 -p scripts.live_report

Each test's outcome is written when it is known: a line of JSON with name, outcome, seconds, and the text of a failure.
After an illegal access every call of the driver fails in that process; so a worker of pytest-xdist whose test did that
ends, and pytest-xdist starts another one for the tests that are left.
"""
import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

WORKING = "PYTEST_XDIST_WORKER" in os.environ
failed: list[str] = []                   # the tests that failed in this process


def pytest_runtest_logreport(report):
    """Called for each phase of a test; with pytest-xdist by the process that starts the others too."""
    if report.failed:
        failed.append(report.nodeid)
    path = os.environ.get("LIVE_REPORT")
    if path and not WORKING and (report.when == "call" or report.failed):
        row = {"test": report.nodeid, "outcome": report.outcome, "seconds": round(report.duration, 3)}
        with open(path, "a") as file:
            file.write(json.dumps(row | {"text": report.longreprtext[-4000:]} if report.failed else row) + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """After a test, whose failure the other process knows by now."""
    done = yield
    if WORKING and item.nodeid in failed and is_lost():
        os._exit(3)
    return done


def is_lost() -> bool:
    """Does the GPU fail in this process from now on?"""
    zoo = sys.modules.get("zoo")
    if zoo is None or not zoo.cuda.is_available():
        return False
    try:
        zoo.cuda.synchronize()
    except Exception:                    # of the driver, or of a capture that nobody ended
        return True
    return False


def counted(path: Path) -> str:
    """What there is of a report, in the words of pytest's own last line."""
    if not path.exists():
        return ""
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    outcomes = Counter(row["outcome"] for row in rows)
    return ", ".join(f"{outcomes[word]} {word}" for word in ("failed", "passed", "skipped") if outcomes[word])
