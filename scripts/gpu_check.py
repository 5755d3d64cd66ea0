"""The whole library on a GPU, in parts that each end within 8 minutes and leave a JSON file.

    python scripts/gpu_check.py [--only compile,ops,suite,digits,bench] [--out DIR] [--jobs N]

compile  records the kernel launches of the interpreter run and compiles them in parallel into Triton's cache
ops      every op of the registry on the GPU against NumPy: values, strides, gradients (tests/test_ops.py)
suite    the other tests that take a GPU (creation, autograd, nn, optim)
digits   python -m zoo.train --device cuda: accuracy and seconds, beside the CPU
bench    the main ops, GB/s and TFLOP/s, beside torch where torch is installed

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
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 8 * 60
SUITE = [
    "tests/test_creation.py",
    "tests/test_autograd.py",
    "tests/test_nn.py",
    "tests/test_optim.py",
    "tests/test_cuda.py",
]


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
        [sys.executable, "scripts/compile_kernels.py", "--arch", f"{major}{minor}", "--jobs", str(jobs), str(record)]
    )
    return {"status": recorded["status"] or compiled["status"], "recorded": recorded, "compiled": compiled}


def part_ops(jobs: int, out: Path) -> dict:
    return pytest(jobs, "tests/test_ops.py")


def part_suite(jobs: int, out: Path) -> dict:
    return pytest(jobs, *[f for f in SUITE if (ROOT / f).exists()])


def part_digits(jobs: int, out: Path) -> dict:
    """The main job on both devices: the last line of each, and the metrics it wrote."""
    found = {}
    for device in ("cuda", "cpu"):
        folder = out / f"digits-{device}"
        short = ["--epochs", "1", "--limit", "2", "--batch-size", "4"] if os.environ.get("ZOO_INTERPRET") else []
        run = command([sys.executable, "-m", "zoo.train", "--device", device, "--out", str(folder), *short])
        metrics = sorted(folder.rglob("metrics.jsonl"))
        last = json.loads(metrics[-1].read_text().splitlines()[-1]) if metrics else None
        found[device] = {**run, "last": last}
    return {"status": max(r["status"] for r in found.values()), **found}


def part_bench(jobs: int, out: Path) -> dict:
    """Main ops, ours in this process and torch's in another, the same shapes and the same way of timing."""
    ours = command(
        [sys.executable, "scripts/bench/gpu_ops.py", "--library", "zoo", "--out", str(out / "bench-zoo.json")]
    )
    theirs = {"status": 0, "output": "torch is not installed, or zoo runs on the interpreter"}
    if torch_version() and os.environ.get("ZOO_INTERPRET", "") in ("", "0"):
        theirs = command(
            [sys.executable, "scripts/bench/gpu_ops.py", "--library", "torch", "--out", str(out / "bench-torch.json")]
        )
    tables = {
        name: json.loads(path.read_text()) for name in ("zoo", "torch") if (path := out / f"bench-{name}.json").exists()
    }
    ratios = {case: tables["torch"][case]["ms"] / row["ms"] for case, row in tables.get("zoo", {}).items()
              if case in tables.get("torch", {}) and row.get("ms") and tables["torch"][case].get("ms")}
    return {"status": ours["status"] or theirs["status"], "tables": tables, "torch time / zoo time": ratios,
            "zoo": ours["output"][-2000:], "torch": theirs["output"][-2000:]}


PARTS = {"compile": part_compile, "ops": part_ops, "suite": part_suite, "digits": part_digits, "bench": part_bench}


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
    for name in names:
        result = {"part": name, **machine, **PARTS[name](args.jobs, args.out)}
        (args.out / f"{name}.json").write_text(json.dumps(result, indent=1))
        worst = max(worst, result["status"])
        print(f"{name:8s} {'ok' if result['status'] == 0 else 'FAILED'}  -> {args.out / name}.json", flush=True)
        if result["status"]:
            print(result.get("output", "")[-3000:])
    return min(worst, 1)


if __name__ == "__main__":
    sys.exit(main())
