"""A plugin of pytest that writes each test's outcome when it is known: what a run that is ended half-way had found.

    LIVE_REPORT=tests.jsonl python -m pytest -p scripts.live_report

A line of JSON for each test that passed or failed: name, outcome, seconds, and the text of a failure.
"""
import json
import os
from collections import Counter
from pathlib import Path


def pytest_runtest_logreport(report):
    """Called for each phase of a test; with pytest-xdist by the process that starts the others."""
    path = os.environ.get("LIVE_REPORT")
    if path and "PYTEST_XDIST_WORKER" not in os.environ and (report.when == "call" or report.failed):
        row = {"test": report.nodeid, "outcome": report.outcome, "seconds": round(report.duration, 3)}
        with open(path, "a") as file:
            file.write(json.dumps(row | {"text": report.longreprtext[-4000:]} if report.failed else row) + "\n")


def counted(path: Path) -> str:
    """What there is of a report, in the words of pytest's own last line."""
    if not path.exists():
        return ""
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    outcomes = Counter(row["outcome"] for row in rows)
    return ", ".join(f"{outcomes[word]} {word}" for word in ("failed", "passed", "skipped") if outcomes[word])
