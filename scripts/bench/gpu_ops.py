"""Times the main ops on the GPU with one library: zoo or torch, the same cases, the same clock.

    python scripts/bench/gpu_ops.py --library zoo|torch --out FILE.json

A case is timed by CUDA events around each call after three warm-ups, median of 15; 256 MB are written before each call,
which empties the L2 cache and keeps the GPU busy while the host launches. Needs a GPU (with ZOO_INTERPRET=1: tiny
shapes, host clock, to check the script).
"""
import argparse
import importlib
import json
import math
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
TINY = os.environ.get("ZOO_INTERPRET", "") not in ("", "0")


def size(n: int) -> int:
    return max(1, n // 128) if TINY else n


def cases(lib) -> dict:
    """name -> (function to time, bytes moved, floating point operations)."""
    F = lib.nn.functional

    def rand(*shape, dtype="bfloat16"):
        return lib.randn(*shape, device="cuda").to(getattr(lib, dtype))
    n = size(1 << 15)
    a, b = rand(n, size(8192)), rand(n, size(8192))
    w = rand(size(4096), size(4096))
    f = rand(size(4096), size(4096), dtype="float32")
    logits = rand(size(8192), size(32000))
    labels = lib.randint(0, size(32000), (size(8192),), device="cuda")
    x = rand(size(256) or 1, 64, size(56 * 128) // 128 or 8, size(56 * 128) // 128 or 8)
    k = rand(64, 64, 3, 3)
    gamma, beta = rand(64, dtype="float32").to(x.dtype), rand(64, dtype="float32").to(x.dtype)
    cube = 2 * w.shape[0] ** 3
    spatial = x.shape[2] * x.shape[3]
    return {
        "add bf16": (lambda: a + b, 3 * 2 * math.prod(a.shape), 0),
        "gelu bf16": (lambda: F.gelu(a), 2 * 2 * math.prod(a.shape), 0),
        "sum last dim bf16": (lambda: a.sum(-1), 2 * math.prod(a.shape), 0),
        "softmax bf16": (lambda: lib.softmax(a, -1), 4 * math.prod(a.shape), 0),
        "layer_norm bf16": (lambda: F.layer_norm(a, a.shape[-1:]), 4 * math.prod(a.shape), 0),
        "matmul bf16": (lambda: w @ w, 0, cube),
        "matmul fp32": (lambda: f @ f, 0, cube),
        "cross_entropy bf16": (lambda: F.cross_entropy(logits, labels), 2 * math.prod(logits.shape), 0),
        "conv2d 3x3 bf16": (lambda: F.conv2d(x, k, padding=1), 0, 2 * x.shape[0] * spatial * 64 * 64 * 9),
        "batch_norm train bf16": (lambda: F.batch_norm(x, None, None, gamma, beta, True), 6 * math.prod(x.shape), 0),
        "max_pool2d bf16": (lambda: F.max_pool2d(x, 3, 2, 1), int(2.5 * math.prod(x.shape)), 0),
        "sort fp32": (lambda: lib.sort(f.reshape(-1)[:size(1 << 20)]), 0, 0),
    }


def times(lib, function, rounds: int = 15) -> list[float]:
    """Milliseconds of each call."""
    for _ in range(1 if TINY else 3):
        function()
    lib.cuda.synchronize()
    flush = None if TINY else lib.empty(1 << 26, dtype=lib.float32, device="cuda")
    found = []
    for _ in range(3 if TINY else rounds):
        if TINY:
            began = time.perf_counter()
            function()
            found.append((time.perf_counter() - began) * 1e3)
            continue
        flush.zero_()
        begin, end = lib.cuda.Event(enable_timing=True), lib.cuda.Event(enable_timing=True)
        begin.record()
        function()
        end.record()
        end.synchronize()
        found.append(begin.elapsed_time(end))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", choices=["zoo", "torch"], required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    lib = importlib.import_module(args.library)
    table, failed = {}, 0
    with lib.no_grad():
        for name, (function, moved, flops) in cases(lib).items():
            try:
                ms = times(lib, function)
            except Exception as error:             # one case must not cost the others their numbers
                table[name], failed = {"error": f"{type(error).__name__}: {error}"[:300]}, 1
                print(f"{name:24s} {table[name]['error']}", flush=True)
                continue
            middle = statistics.median(ms)
            table[name] = {
                "ms": middle,
                "min": min(ms),
                "max": max(ms),
                "GB/s": moved / middle / 1e6,
                "TFLOP/s": flops / middle / 1e9,
                "interpreted": TINY,
            }
            print(
                f"{name:24s} {middle:9.3f} ms  {table[name]['GB/s']:8.0f} GB/s  {table[name]['TFLOP/s']:7.1f} TFLOP/s",
                flush=True,
            )
    args.out.write_text(json.dumps(table, indent=1))
    return failed


if __name__ == "__main__":
    sys.exit(main())
