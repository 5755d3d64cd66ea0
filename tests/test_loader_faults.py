"""DataLoader when something goes wrong: exceptions, killed workers, a killed parent, Control-C; nothing is left."""

import gc
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import pytest

from tests.house import ROOT
from tests.loader_data import Awkward, Broken, Deadly, Noisy, Sleepy, broken_init
from zoo.data import DataLoader


def gone(pid: int, seconds: float = 5) -> bool:
    """Whether the process ends within some seconds."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def pids(batches) -> list[int]:
    return [w.process.pid for w in batches.pool.workers]


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No open file more than before, and no shared-memory file of ours."""
    list(DataLoader(range(1), num_workers=1))  # the fork server and its pipes stay for the life of this process
    gc.collect()  # what earlier tests left to the collector closes its files now, not during this test
    before = open_files(), shared_files()
    yield
    gc.collect()  # an exception that a test has caught holds the test's frame, and that the exception
    assert open_files() <= before[0] and shared_files() == before[1]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def shared_files() -> set[str]:
    """Names in /dev/shm that a loader could have made: zoo's, and those of multiprocessing.shared_memory."""
    return {p.name for p in Path("/dev/shm").glob("*") if "zoo" in p.name or p.name.startswith("psm_")}


# -- exceptions


@pytest.mark.parametrize("workers", [0, 2])
def test_an_exception_names_the_sample(workers):
    loader = DataLoader(Broken(), 2, num_workers=workers)
    with pytest.raises(KeyError, match="no picture") as caught:
        list(loader)
    text = "".join(traceback.format_exception(caught.value))
    assert "while loading sample 5" in text and text.count('raise KeyError("no picture")') == 1
    assert bool(re.search(r"in worker [01] \(pid \d+\):\nTraceback", text)) == bool(workers)
    assert loader.state_dict()["batches"] == 3


def test_the_loop_can_go_on_after_an_exception():
    batches = iter(DataLoader(Broken(), 2, num_workers=2))
    seen = []
    for _ in range(4):
        try:
            seen.append(next(batches).tolist())
        except KeyError:
            seen.append("broken")
    assert seen == [[0, 1], [2, 3], "broken", [6, 7]]
    with pytest.raises(StopIteration):
        next(batches)


@pytest.mark.parametrize("kind", ["unpicklable", "stop"])
@pytest.mark.parametrize("workers", [0, 1])
def test_exceptions_that_would_get_lost(kind, workers):
    """One that does not survive pickle, and a StopIteration, which would end the loop without a word."""
    with pytest.raises(Exception) as caught:
        list(DataLoader(Awkward(kind), num_workers=workers))
    assert not isinstance(caught.value, StopIteration)
    assert ("two words" if kind == "unpicklable" else "sample 0 raised StopIteration") in str(caught.value)


def test_exceptions_of_worker_init_fn_and_of_a_batch_that_cannot_be_pickled():
    with pytest.raises(ZeroDivisionError):
        list(DataLoader(Noisy(), num_workers=2, worker_init_fn=broken_init))
    with pytest.raises(Exception, match="pickle"):
        list(DataLoader(Awkward("value"), None, num_workers=1))


# -- killed workers


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGTERM"])
@pytest.mark.parametrize("keep", [False, True])
def test_a_worker_killed_by_a_signal(name, keep):
    """A clear error within 5 seconds; the other worker ends too; kept workers are started anew in the next pass."""
    loader = DataLoader(Deadly(name), 2, num_workers=2, persistent_workers=keep)
    batches = iter(loader)
    workers = pids(batches)
    start = time.monotonic()
    how = "exit status 0" if name == "SIGTERM" else name
    with pytest.raises(RuntimeError, match=rf"worker [01] \(pid \d+\) .*{how}.*while loading the samples \[4, 5\]"):
        for _ in batches:
            pass
    assert time.monotonic() - start < 5
    assert all(gone(pid, 0.1) for pid in workers)
    with pytest.raises(RuntimeError, match="workers of this pass have ended"):
        next(batches)
    if keep:
        again = pids(iter(loader))
        assert len(again) == 2 and not set(again) & set(workers)


def test_a_worker_killed_from_outside_while_it_is_idle_or_busy():
    for dataset in (Noisy(100), Sleepy()):
        batches = iter(DataLoader(dataset, num_workers=2))
        os.kill(pids(batches)[1], signal.SIGKILL)
        start = time.monotonic()
        with pytest.raises(RuntimeError, match="worker 1 .*SIGKILL"):
            list(batches)
        assert time.monotonic() - start < 5


def test_timeout():
    batches = iter(DataLoader(Sleepy(), num_workers=1, timeout=0.3))
    workers = pids(batches)
    with pytest.raises(RuntimeError, match="timeout of 0.3 s"):
        next(batches)
    del batches
    assert all(gone(pid, 0.1) for pid in workers)


# -- nobody stays behind


@pytest.mark.parametrize("keep", [False, True])
def test_leaving_the_loop_early_ends_the_workers(keep):
    loader = DataLoader(Noisy(100), 2, num_workers=2, persistent_workers=keep)
    batches = iter(loader)
    next(batches)
    workers = pids(batches)
    start = time.monotonic()
    del batches, loader
    assert all(gone(pid, 0.1) for pid in workers) and time.monotonic() - start < 3


SCRIPT = """
import os, sys, time
import zoo
from zoo.data import DataLoader
from tests.loader_data import Sleepy, Noisy

if __name__ == "__main__":
    mode, method = sys.argv[1:]
    loader = DataLoader(Sleepy() if mode == "busy" else Noisy(10**6), num_workers=2, multiprocessing_context=method)
    batches = iter(loader)
    if mode != "busy":
        next(batches)
    print(*[w.process.pid for w in batches.pool.workers], flush=True)
    if mode == "leave":
        sys.exit(3)
    for batch in batches:
        pass
"""


def start_script(tmp_path, *arguments):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen([sys.executable, str(path), *arguments], env=env, cwd=tmp_path, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    assert process.stdout
    return process, [int(pid) for pid in process.stdout.readline().split()]


@pytest.mark.parametrize("method", ["forkserver", "fork"])
@pytest.mark.parametrize("mode", ["loop", "busy"])
def test_workers_end_when_their_parent_is_killed(tmp_path, mode, method):
    process, workers = start_script(tmp_path, mode, method)
    assert len(workers) == 2
    process.kill()
    process.communicate(timeout=20)
    assert all(gone(pid) for pid in workers)


@pytest.mark.parametrize("mode", ["loop", "busy"])
def test_control_c(tmp_path, mode):
    """The signal goes to all processes of the terminal: one traceback, the training process's, and all end."""
    process, workers = start_script(tmp_path, mode, "forkserver")
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT and err.count("Traceback") == 1 and "KeyboardInterrupt" in err
    assert all(gone(pid) for pid in workers)


def test_a_script_that_ends_in_the_middle(tmp_path):
    process, workers = start_script(tmp_path, "leave", "forkserver")
    _, err = process.communicate(timeout=20)
    assert process.returncode == 3 and not err
    assert all(gone(pid) for pid in workers)
