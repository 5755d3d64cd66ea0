"""What a launch costs the host: microseconds of Python and driver calls, on a libcuda without a GPU behind it.

    python scripts/bench/launch.py [--out FILE.json]

The stub (tests/libcuda_stub.c) runs no kernel and answers at once, so a figure is this library's own part and that of
Triton's launcher; a real driver adds some microseconds. CPU time of the thread, the median of rounds with the tenth and
ninetieth percentile. Needs gcc, Triton and cuda-bindings.
"""
import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ROUNDS, CALLS = 40, 500
WANTED = {"launch, 5 arguments": 4.0, "launch, 16 arguments": 4.0, "autograd's part of x * y": 6.0}


def stub_environment(folder: str) -> dict[str, str]:
    """The environment of a process that finds the stub instead of a driver."""
    import triton

    library = Path(folder) / "libcuda.so.1"
    include = Path(triton.__file__).parent / "backends/nvidia/include"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", f"-I{include}", ROOT / "tests/libcuda_stub.c", "-o", library],
                   check=True)
    shutil.copy(library, Path(folder) / "libcuda.so")
    names = {k: v for k, v in os.environ.items() if k not in ("ZOO_INTERPRET", "ZOO_RECORD", "STUB_LOG")}
    return names | {"LD_LIBRARY_PATH": folder, "TRITON_LIBCUDA_PATH": folder, "PYTHONPATH": str(ROOT), "STUB": folder}


def cases():
    """name -> a call."""
    import numpy as np
    from launch_kernels import few, many  # beside this file: a kernel's source has to lie in a file

    import zoo
    from zoo.ops import cuda

    x, y, out = (cuda.from_numpy(np.ones(1024, np.float32)) for _ in range(3))
    a, b = (zoo.ones(1024, device="cuda") for _ in range(2))
    w = zoo.ones(1024, device="cuda", requires_grad=True)
    kept = cuda.prepare(few, BLOCK=1024)
    grad = zoo.ones(1024, device="cuda")
    numbers = (1024, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0.5, 0.25, 2.0)

    def without_grad():
        with zoo.no_grad():
            return w * b

    def nothing():
        with zoo.no_grad():
            pass

    return {
        "launch, 5 arguments": lambda: cuda.launch(few, (1,), x, y, out, 1024, 2.0, BLOCK=1024),
        "launch, 5 arguments, prepared": lambda: kept((1,), x, y, out, 1024, 2.0),
        "launch, 16 arguments": lambda: cuda.launch(many, (1,), x, y, out, *numbers, BLOCK=1024),
        "empty and free": lambda: cuda.empty((1024,), np.float32),
        "x + y, nothing to record": lambda: a + b,
        "x * y under no_grad": without_grad,
        "no_grad alone": nothing,
        "x * y, recorded": lambda: w * b,
        "x * y and its gradient": lambda: zoo.autograd.grad(w * b, w, grad),
    }


def measure() -> dict:
    """name -> microseconds of a call."""
    table = {}
    for name, call in cases().items():
        for _ in range(50):
            call()
        times = []
        for _ in range(ROUNDS):
            begin = time.thread_time()
            for _ in range(CALLS):
                call()
            times.append((time.thread_time() - begin) / CALLS * 1e6)
        times.sort()
        table[name] = {"us": round(times[ROUNDS // 2], 2), "p10": round(times[ROUNDS // 10], 2),
                       "p90": round(times[-ROUNDS // 10], 2)}
    node = table["x * y, recorded"]["us"] - table["x * y under no_grad"]["us"] + table["no_grad alone"]["us"]
    table["autograd's part of x * y"] = {"us": round(node, 2)}
    for name, most in WANTED.items():
        table[name] |= {"wanted": most, "missed": table[name]["us"] > most}
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "launch.json")
    args = parser.parse_args()
    if "STUB" not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--out", str(args.out.resolve())]
            return subprocess.run(command, env=stub_environment(folder)).returncode
    import triton

    table = measure()
    for name, row in table.items():
        spread = f" ({row['p10']:.2f} to {row['p90']:.2f})" if "p10" in row else ""
        wanted = f", wanted {row['wanted']}{' MISSED' if row['missed'] else ''}" if "wanted" in row else ""
        print(f"{name:32s} {row['us']:7.2f} us{spread}{wanted}")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({
        "device": "stub, no GPU", "triton": triton.__version__, "python": sys.version.split()[0], "commit": commit,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "rows": table}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
