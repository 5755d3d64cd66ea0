"""Runs a command for at most so many seconds; what it started ends with it."""
import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

GRACE = 5.0                              # seconds between asking a process to end and killing it


class Ended(NamedTuple):
    """status: of the command; 124 where the time was over. seconds: that it took."""

    status: int
    seconds: float


def limited(args: list[str], seconds: float, log: Path, folder: Path | None = None, **environ: str) -> Ended:
    """Runs a command in a process group of its own and writes what it prints to a file.

    A command that ends with os.EX_TEMPFAIL is run again within the same seconds: its process can use the GPU no more
    (an illegal access, a kernel that does not end), and another one goes on behind what it has done.

    Args:
        args: the command. seconds: after which its group is ended: a worker of pytest-xdist that hangs in a kernel
            would outlive it, and keep the pipe open that the caller reads. log: the file, written as output comes.
        folder: to run in. environ: variables beside this process's own.
    """
    began, status = time.perf_counter(), os.EX_TEMPFAIL
    with log.open("wb") as output:
        while status == os.EX_TEMPFAIL:
            process = subprocess.Popen(args, cwd=folder, env={**os.environ, **environ}, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = process.wait(max(began + seconds - time.perf_counter(), 0.1))
            except subprocess.TimeoutExpired:
                status = 124
            finally:
                end(process)
            if status == os.EX_TEMPFAIL and time.perf_counter() - began >= seconds:
                status = 124
    return Ended(status, round(time.perf_counter() - began, 1))


def end(process: subprocess.Popen) -> None:
    """Ends what is left of the command's group: asked first, then killed. What hangs in a kernel is not waited for."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
