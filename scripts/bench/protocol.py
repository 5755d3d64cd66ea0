"""How zoo and torch are timed beside each other: one protocol for every number of a benchmark on the CPU.

Both run in one process, with the same threads and inputs, and are first seen to give the same results. In each round
the libraries run one after the other, in turn the first. A round's time is the median of its calls, the ratio is taken
round by round (a machine that slows down slows both), and a row has the ratios' median, tenth and ninetieth percentile.
With one thread a time is the CPU time of the process, with more the wall's.

To import this module takes OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE out of the environment, unless the command has
--keep-blas: they bind NumPy's BLAS to other kernels than those it has for the processor, and do not bind torch.
"""
import gc
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rows import ROOT, against

BOUND = {name: os.environ.get(name) for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
if "--keep-blas" not in sys.argv:
    for variable in BOUND:
        os.environ.pop(variable, None)
sys.path.insert(0, str(ROOT))                        # tests.yardsticks, for torchvision's models

import numpy as np  # noqa: E402

REST = 0.1                               # seconds until the threads of OpenBLAS and OpenMP no longer spin for work

@dataclass(frozen=True)
class Case:
    """One row. make() gives {library: a call}, zoo and torch at least; what the calls need lives as long as they do.

    wanted: {library: at most so many times its time}. threads: None as the command says. budget: seconds of calls in a
    round. tolerance: of the results, as a part of the largest; None where they are random.
    """

    section: str
    name: str
    make: Callable[[], dict[str, Callable]]
    wanted: dict[str, float] = field(default_factory=dict)
    threads: int | None = None
    budget: float = 0.05
    tolerance: float | None = 1e-4

    @property
    def label(self) -> str:
        return f"{self.section}: {self.name}"


def both(make: Callable[[Any], Callable]) -> Callable[[], dict[str, Callable]]:
    """The `make` of a case whose calls are made by the same function of the library."""
    def made():
        import torch  # pyright: ignore[reportMissingImports]

        import zoo
        return {"zoo": make(zoo), "torch": make(torch)}
    return made


def tensors_of(result) -> list:
    """The tensors of nested results as arrays."""
    if isinstance(result, list | tuple):
        return [a for r in result for a in tensors_of(r)]
    return [] if result is None else [np.asarray(result.detach().numpy(), np.float64)]


def error_of(case: Case, calls: dict) -> float:
    """The largest difference of the two libraries, as a part of the largest element of its tensor.

    A benchmark of two programs that compute different things says nothing.
    """
    error, pairs = 0.0, zip(tensors_of(calls["zoo"]()), tensors_of(calls["torch"]()), strict=True)
    for a, b in pairs:
        if a.shape != b.shape:
            raise AssertionError(f"{case.label}: zoo gives a result of shape {a.shape}, torch {b.shape}")
        error = max(error, float(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30)))
    if not error <= case.tolerance:
        raise AssertionError(f"{case.label}: the two libraries differ by {error:.1e} of the largest element")
    return error


def use_threads(count: int) -> None:
    import torch  # pyright: ignore[reportMissingImports]

    import zoo
    torch.set_num_threads(count)
    zoo.set_num_threads(count)


def use_numba(on: bool) -> None:
    import zoo
    zoo.backends.cpu.numba = on


def timed(calls: dict, rounds: int, budget: float, clock: Callable[[], float]) -> dict[str, np.ndarray]:
    """{library: the median seconds of a call in each round}."""
    times: dict[str, list] = {name: [] for name in calls}
    for k in range(rounds):
        names = list(calls)
        for name in names[k % len(names):] + names[:k % len(names)]:
            call, seconds = calls[name], []
            use_numba(name == "numba")
            time.sleep(REST)
            call()
            end = time.perf_counter() + budget
            while len(seconds) < 2 or time.perf_counter() < end:
                start = clock()
                call()
                seconds.append(clock() - start)
            times[name].append(np.median(seconds))
    return {name: np.array(t) for name, t in times.items()}


def measured(case: Case, rounds: int, threads: int, budget: float | None = None, numba: bool = False) -> dict:
    """The case's row; with `numba` zoo's calls are timed with its compiled loops too."""
    threads = case.threads or threads
    use_threads(threads)
    calls = case.make()
    use_numba(False)
    error = None if case.tolerance is None else error_of(case, calls)
    if numba:
        calls["numba"] = calls["zoo"]
    clock = time.process_time if threads == 1 else time.perf_counter
    times = timed(calls, rounds, budget or case.budget, clock)
    del calls
    gc.collect()
    row = {"section": case.section, "case": case.name, "threads": threads, "error": error,
           "zoo": float(np.median(times["zoo"])), "load": os.getloadavg()[0]}
    for other in [name for name in times if name not in ("zoo", "numba")]:
        row[other] = against(float(np.median(times[other])), times["zoo"] / times[other], case.wanted.get(other))
        if numba:
            row[other]["numba"] = against(row[other]["value"], times["numba"] / times[other], None)
    return row


def machine() -> dict:
    import torch  # pyright: ignore[reportMissingImports]
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__,
            "cores": os.cpu_count(), "machine": platform.machine(), "blas": blas["openblas configuration"],
            "blas_bound_before": BOUND}
