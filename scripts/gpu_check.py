"""The whole library on a GPU, in parts that each end within 8 minutes and leave a JSON file and a verdict.

    python scripts/gpu_check.py [--only compile,ops,graphs] [--out DIR] [--jobs N]

compile   records the kernel launches of the interpreter run and compiles them in parallel into Triton's cache
ops       every op of the registry on the GPU against NumPy: values, strides, gradients (tests/test_ops.py)
kernels   products, convolutions and their epilogues, norms, pools, recurrent loops, attention, CTC, linear algebra
suite     arrays, launches, streams, autograd, nn, optimizers, mixed precision
graphs    captured training steps give the bits of plain ones; what cannot be captured says so
digits    python -m zoo.train --device cuda, with and without graphs: accuracy and seconds, beside the CPU
bench-*   the sections of scripts/bench/gpu.py beside torch where torch is installed: one part each

Needs a GPU, triton, cuda-bindings and pytest (pytest-xdist for --jobs). With ZOO_INTERPRET=1 the same parts run on the
interpreter, which checks this script itself; times then mean nothing and are marked so.
"""
import argparse
import datetime
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 8 * 60
KERNELS = "matmul gemm_kernels conv conv_kernels norm pool rnn rnn_kernels attention ctc linalg reduce sort index loss"
SUITE = "creation autograd nn optim amp device cuda"
SECTIONS = "gemm", "conv", "layers", "optimizers", "recurrent", "inference", "training"  # of scripts/bench/gpu.py
INTERPRETING = os.environ.get("ZOO_INTERPRET", "") not in ("", "0")


def environment() -> dict:
    """GPU, versions, commit and date: what a number is worth nothing without."""
    import numpy
    import triton

    from zoo.ops import cuda
    interpreting = cuda.is_interpreting()
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip() or os.environ.get("ZOO_COMMIT", "")
    return {
        "gpu": "interpreter" if interpreting else cuda.get_device_name(0),
        "triton": triton.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
        "torch": torch_version(),
        "commit": commit,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def torch_version() -> str | None:
    if importlib.util.find_spec("torch") is None:
        return None
    code = "import torch; print(torch.__version__)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()


def command(args: list[str], **environ) -> dict:
    """Runs a command within the limit; its exit status, seconds and the end of its output."""
    began = time.perf_counter()
    try:
        done = subprocess.run(
            args, cwd=ROOT, env={**os.environ, **environ}, capture_output=True, text=True, timeout=LIMIT
        )
        status, output = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as late:
        status, output = 124, str(late.stdout or "")
    return {"status": status, "seconds": round(time.perf_counter() - began, 1), "output": output[-6000:]}


def pytest(jobs: int, *args: str, **environ) -> dict:
    parallel = ["-n", str(jobs)] if importlib.util.find_spec("xdist") and jobs > 1 else []
    return command(
        [sys.executable, "-m", "pytest", "-q", "-x" if not parallel else "--maxfail=30", *parallel, *args], **environ
    )


def part_compile(jobs: int, out: Path) -> dict:
    """Record what the interpreter launches, then compile all of it for this GPU, in parallel."""
    record = out / "launches.jsonl"
    recorded = pytest(jobs, "tests/test_ops.py", "-k", "kernel or device", ZOO_INTERPRET="1", ZOO_RECORD=str(record))
    from zoo.ops import cuda
    major, minor = (9, 0) if cuda.is_interpreting() else cuda.get_device_capability(0)
    compiled = command(
        [sys.executable, "scripts/compile_kernels.py", "--arch", f"{major}{minor}", "--workers", str(jobs), str(record)]
    )
    return {"status": recorded["status"] or compiled["status"], "recorded": recorded, "compiled": compiled}


def part_ops(jobs: int, out: Path) -> dict:
    return pytest(jobs, "tests/test_ops.py")


def files(names: str) -> list[str]:
    """The tests of these names that there are."""
    return [f"tests/test_{n}.py" for n in names.split() if (ROOT / f"tests/test_{n}.py").exists()]


def part_kernels(jobs: int, out: Path) -> dict:
    return pytest(jobs, *files(KERNELS), "-m", "cuda or interpret" if INTERPRETING else "cuda")


def part_suite(jobs: int, out: Path) -> dict:
    return pytest(jobs, *files(SUITE), "-m", "cuda or interpret" if INTERPRETING else "cuda")


def part_graphs(jobs: int, out: Path) -> dict:
    return pytest(jobs, "tests/test_cuda_graphs.py")


def part_digits(jobs: int, out: Path) -> dict:
    """The main job as graphs, without them, and on the CPU: the last line of each, and the metrics it wrote."""
    found = {}
    for name, options in (("cuda", ["--graph", "on"]), ("cuda-plain", ["--graph", "off"]), ("cpu", [])):
        folder = out / f"digits-{name}"
        short = ["--epochs", "1", "--limit", "2", "--batch-size", "4"] if INTERPRETING else []
        command_line = ["-m", "zoo.train", "--device", name.partition("-")[0], "--out", str(folder), *options, *short]
        run = command([sys.executable, *command_line])
        metrics = sorted(folder.rglob("metrics.jsonl"))
        last = json.loads(metrics[-1].read_text().splitlines()[-1]) if metrics else None
        found[name] = {**run, "last": last}
    return {"status": max(r["status"] for r in found.values()), **found}


def part_bench(section: str, jobs: int, out: Path) -> dict:
    """A section of the benchmark; its rows are in gpu.json of the folder, beside those of the other sections."""
    tiny = ["--tiny"] if INTERPRETING else []
    script = [sys.executable, "scripts/bench/run.py", "--device", "cuda", "--against", "torch"]
    return command([*script, "--only", section, "--keep", "--limit", str(LIMIT // 4 - 10), "--out", str(out), *tiny])


PARTS = {"compile": part_compile, "ops": part_ops, "kernels": part_kernels, "suite": part_suite, "graphs": part_graphs,
         "digits": part_digits, **{f"bench-{name}": partial(part_bench, name) for name in SECTIONS}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between")
    parser.add_argument("--out", type=Path, default=ROOT / "scripts" / "bench" / "results" / "gpu")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    names = args.only.split(",")
    if unknown := set(names) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    sys.path.insert(0, str(ROOT))
    import zoo
    if not zoo.cuda.is_available():
        print("gpu_check: no CUDA GPU was found (ZOO_INTERPRET=1 runs the parts on the interpreter)", file=sys.stderr)
        return 1
    args.out.mkdir(parents=True, exist_ok=True)
    machine, worst = environment(), 0
    print(f"{machine['gpu']}, triton {machine['triton']}, commit {machine['commit'][:9]}", flush=True)
    for name in names:
        result = {"part": name, **machine, **PARTS[name](args.jobs, args.out)}
        worst = max(worst, result["status"])
        counted = [line for line in result.get("output", "").splitlines() if " passed" in line or " failed" in line]
        result["verdict"] = counted[-1].strip("= ") if counted else ""
        (args.out / f"{name}.json").write_text(json.dumps(result, indent=1))
        word = "ok" if result["status"] == 0 else "FAILED"
        print(f"{name:17s} {word:6s} {result['verdict']}  -> {args.out / name}.json", flush=True)
        if result["status"]:
            print(result.get("output", "")[-3000:])
    return min(worst, 1)


if __name__ == "__main__":
    sys.exit(main())
