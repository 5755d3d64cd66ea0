"""The whole library on a GPU, in parts that each end within a limit and leave a JSON file, a log and a verdict.

    python scripts/gpu_check.py [--only compile,ops,graphs] [--out DIR] [--jobs N] [--limit SECONDS]

compile   records the kernel launches of the interpreter run and compiles them in parallel into Triton's cache
ops       every op of the registry on the GPU against NumPy: values, strides, gradients (tests/test_ops.py)
kernels   products, convolutions and their epilogues, norms, pools, recurrent loops, attention, optimizers and others
suite     all other tests that want a device: arrays, launches, streams, tensors, data, training
graphs    captured training steps give the bits of plain ones; what cannot be captured says so
digits    python -m zoo.train --device cuda, with and without graphs: accuracy and seconds, beside the CPU
bench-*   the sections of scripts/bench/gpu.py beside torch where torch is installed: one part each

Needs a GPU, triton, cuda-bindings and pytest (pytest-xdist for --jobs). With ZOO_INTERPRET=1 the same parts run on the
interpreter, which checks this script itself; times then mean nothing and are marked so. scripts/gpu_session.py runs the
parts, and the tuning, within the minutes of a lent GPU.
"""
import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import traceback
from functools import partial
from importlib import metadata
from pathlib import Path

from limited import limited
from live_report import counted

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ("matmul gemm_kernels conv conv_kernels norm norm_kernels pool rnn rnn_kernels attention ctc linalg "
           "pointwise reduce sort index loss optim optim_programs").split()
ELSEWHERE = ["ops", "cuda_graphs", "gpu_check"]      # tests that are parts of their own, or of this script
SECTIONS = "gemm", "conv", "layers", "optimizers", "recurrent", "inference", "training"  # of scripts/bench/gpu.py
HANGS = 60                               # seconds after which a test waits for a kernel that does not end
STUB = "STUB" in os.environ              # a driver that executes nothing (tests/libcuda_stub.c): values say nothing
BLIND = "--assert=plain -W ignore::pytest.PytestConfigWarning -W ignore::RuntimeWarning -p scripts.blind".split()
INTERPRETING = os.environ.get("ZOO_INTERPRET", "") not in ("", "0")


def environment() -> dict:
    """GPU, versions, commit and date: what a number is worth nothing without."""
    import numpy
    import triton

    from zoo.ops import cuda
    return {
        "gpu": "interpreter" if cuda.is_interpreting() else cuda.get_device_name(0),
        "triton": triton.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
        "torch": installed("torch"),
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def commit() -> str:
    """The commit of this tree; of a copy without git what ZOO_COMMIT says, or ""."""
    if known := os.environ.get("ZOO_COMMIT"):
        return known
    try:
        return subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def installed(package: str) -> str | None:
    """Its version, without importing it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


class Part:
    """Runs the commands of one part, each with a share of the part's seconds.

    Args:
        name: of the part, and of its log. jobs, limit, out: of the command line.
    """

    def __init__(self, name: str, jobs: int, limit: float, out: Path):
        self.name, self.jobs, self.limit, self.out = name, jobs, limit, out

    def command(self, args: list[str], log: str = "", share: float = 1.0, **environ: str) -> dict:
        """Runs a command; its exit status, seconds and the end of its output."""
        path = self.out / f"{log or self.name}.log"
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        ended = limited(args, share * self.limit, path, ROOT, PYTHONPATH=paths, **environ)
        return {**ended._asdict(), "output": path.read_text(errors="replace")[-6000:]}

    def pytest(self, *args: str, share: float = 1.0, **environ: str) -> dict:
        """Runs tests, side by side where pytest-xdist is installed; the outcomes up to an early end are written too."""
        options = ["-n", str(self.jobs)] if installed("pytest-xdist") and self.jobs > 1 else []
        if options and not (INTERPRETING or STUB) and installed("pytest-timeout"):
            options += ["--timeout", str(HANGS), "--timeout-method", "thread"]      # ends the worker, names the test
        if STUB:
            options += BLIND
            environ["PYTHONOPTIMIZE"] = "1"
        live = self.out / f"{self.name}-tests.jsonl"
        live.unlink(missing_ok=True)
        found = self.command([sys.executable, "-m", "pytest", "-q", "-p", "scripts.live_report", "--maxfail=100",
                              *options, *args], share=share, LIVE_REPORT=str(live), **environ)
        if found["status"] and not verdict_of(found["output"]):
            found["output"] += f"\nuntil it was ended: {counted(live)}"
        return found


def part_compile(part: Part) -> dict:
    """Record what the interpreter launches, then compile all of it for this GPU, in parallel."""
    record = part.out / "launches.jsonl"
    record.unlink(missing_ok=True)
    recorded = part.pytest("tests/test_ops.py", "-k", "kernel or device", share=0.4, ZOO_INTERPRET="1",
                           ZOO_RECORD=str(record))
    from zoo.ops import cuda
    major, minor = (9, 0) if cuda.is_interpreting() else cuda.get_device_capability(0)
    compiled = part.command(
        [sys.executable, "scripts/compile_kernels.py", "--arch", f"{major}{minor}", "--workers", str(part.jobs),
         *["--most", "1"] * INTERPRETING, str(record)], "compiled", share=0.6)
    return {"status": recorded["status"] or compiled["status"], "recorded": recorded, "compiled": compiled,
            "output": recorded["output"] + compiled["output"]}


def part_ops(part: Part) -> dict:
    return part.pytest("tests/test_ops.py")


def on_device(part: Part, names: list[str]) -> dict:
    """The tests of these files that want a device."""
    paths = [f"tests/test_{name}.py" for name in names]
    return part.pytest(*paths, "-m", "cuda or interpret" if INTERPRETING else "cuda")


def part_kernels(part: Part) -> dict:
    return on_device(part, KERNELS)


def part_suite(part: Part) -> dict:
    names = [path.stem.removeprefix("test_") for path in sorted((ROOT / "tests").glob("test_*.py"))]
    return on_device(part, [name for name in names if name not in (*KERNELS, *ELSEWHERE)])


def part_graphs(part: Part) -> dict:
    return part.pytest("tests/test_cuda_graphs.py")


def part_digits(part: Part) -> dict:
    """The main job as graphs, without them, and on the CPU: the last line of each, and the metrics it wrote."""
    found = {}
    for name, options in (("cuda", ["--graph", "on"]), ("cuda-plain", ["--graph", "off"]), ("cpu", [])):
        folder = part.out / f"digits-{name}"
        short = ["--epochs", "1", "--limit", "2", "--batch-size", "4"] if INTERPRETING else []
        command_line = ["-m", "zoo.train", "--device", name.partition("-")[0], "--out", str(folder), *options, *short]
        run = part.command([sys.executable, *command_line], f"digits-{name}", share=1 / 3)
        metrics = sorted(folder.rglob("metrics.jsonl"))
        last = json.loads(metrics[-1].read_text().splitlines()[-1]) if metrics else None
        found[name] = {**run, "last": last}
    return {"status": max(r["status"] for r in found.values()), **found,
            "output": "".join(r["output"] for r in found.values() if r["status"])}


def part_bench(section: str, part: Part) -> dict:
    """A section of the benchmark; its rows are in gpu.json of the folder, beside those of the other sections."""
    tiny = ["--tiny"] if INTERPRETING else []
    script = [sys.executable, "scripts/bench/run.py", "--device", "cuda", "--against", "torch"]
    return part.command([*script, "--only", section, "--keep", "--limit", str(part.limit - 10), "--out", str(part.out),
                         *tiny])


PARTS = {"compile": part_compile, "ops": part_ops, "kernels": part_kernels, "suite": part_suite, "graphs": part_graphs,
         "digits": part_digits, **{f"bench-{name}": partial(part_bench, name) for name in SECTIONS}}


def result_of(part: Part) -> dict:
    """What a part found; an error of the part itself is a result too."""
    try:
        return PARTS[part.name](part)
    except Exception:                    # the other parts are still to come
        return {"status": 1, "output": traceback.format_exc()}


def verdict_of(output: str) -> str:
    """The line in which pytest counts."""
    lines = [line for line in output.splitlines() if " passed" in line or " failed" in line]
    return lines[-1].strip("= ") if lines else ""


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between")
    parser.add_argument("--out", type=Path, default=ROOT / "scripts" / "bench" / "results" / "gpu")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=480, help="seconds of a part")
    args = parser.parse_args()
    if unknown := set(args.only.split(",")) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return args


def main() -> int:
    args = parsed()
    sys.path.insert(0, str(ROOT))
    import zoo
    if not zoo.cuda.is_available():
        print("gpu_check: no CUDA GPU was found (ZOO_INTERPRET=1 runs the parts on the interpreter)", file=sys.stderr)
        return 1
    args.out.mkdir(parents=True, exist_ok=True)
    machine, worst = environment(), 0
    print(f"{machine['gpu']}, triton {machine['triton']}, commit {machine['commit'][:9]}", flush=True)
    for name in args.only.split(","):
        result = {"part": name, **machine, **result_of(Part(name, args.jobs, args.limit, args.out.resolve()))}
        worst = max(worst, abs(result["status"]))
        result["verdict"] = verdict_of(result["output"])
        (args.out / f"{name}.json").write_text(json.dumps(result, indent=1))
        word = {0: "ok", 124: "TOO LONG"}.get(result["status"], "FAILED")
        print(f"{name:17s} {word:6s} {result['verdict']}  -> {args.out / name}.json", flush=True)
        if result["status"]:
            print(result["output"][-3000:], flush=True)
    return min(worst, 1)


if __name__ == "__main__":
    sys.exit(main())
