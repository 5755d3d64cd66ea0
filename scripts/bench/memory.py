"""Peak memory of the ResNet-18 train step (batch 16, 224x224), each library in a process of its own.

    python scripts/bench/memory.py --library zoo|torch [--threads 2]

Prints, in bytes, what the process held after its imports, and the most that it held in three steps. Linux only.
"""
import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import cases_models
from rows import against

NAME, MODEL, BATCH, SIZE = "peak of the ResNet-18 train step, batch 16, beyond the imports", "resnet18", 16, 224
WANTED = 1.2                     # issue 5


def held(which: str) -> int:
    """VmRSS: now. VmHWM: at most, so far."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{which}:\s+(\d+) kB", status)[1]) * 1024


def steps(library: str, threads: int) -> dict:
    if library == "zoo":
        import zoo as lib
        make = cases_models.zoos
        import zoo.models  # noqa: F401
        lib.backends.cpu.numba = False                 # Numba's own 100 MB are no part of a step
    else:
        import torch as lib  # pyright: ignore[reportMissingImports]
        make = cases_models.torchs
        __import__("tests.yardsticks.torchvision_shim")
        import torchvision  # noqa: F401  # pyright: ignore[reportMissingImports]
    lib.set_num_threads(threads)
    before = held("VmRSS")
    images, labels = cases_models.data(BATCH, SIZE)
    step = cases_models.train_step(lib, make(MODEL), lib.tensor(images), lib.tensor(labels))
    for _ in range(3):
        step()
    return {"before": before, "peak": held("VmHWM")}


def row(threads: int) -> dict:
    """The row of the table."""
    found = {}
    for library in ("zoo", "torch"):
        command = [sys.executable, __file__, "--library", library, "--threads", str(threads)]
        found[library] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    beyond = {library: f["peak"] - f["before"] for library, f in found.items()}
    return {"section": "memory", "case": NAME, "threads": threads, "load": os.getloadavg()[0], "processes": found,
            "zoo": beyond["zoo"],
            "torch": against(beyond["torch"], [beyond["zoo"] / beyond["torch"]], WANTED)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", choices=["zoo", "torch"], required=True)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    print(json.dumps(steps(args.library, args.threads)))


if __name__ == "__main__":
    main()
