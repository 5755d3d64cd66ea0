"""Times one section on the GPU with one library, in a process of its own: started by gpu.py.

A call is timed by CUDA events around it, 15 times after five warm-ups, in which torch.compile records its graphs; 256
MB are written before each, which empties the L2 cache and keeps the GPU busy while the host launches. The file is
written after every case.
"""
import argparse
import importlib
import json
import os
import time
from pathlib import Path
from typing import Any

from gpu_cases import SECTIONS
from rows import quantile

TINY = os.environ.get("ZOO_INTERPRET", "") not in ("", "0")
WRITTEN = 1 << 28                        # bytes that empty the L2 cache
ROUNDS, WARMUPS, FLUSHED = (2, 1, 0) if TINY else (15, 5, WRITTEN)


def times(lib: Any, call: Any) -> list[float]:
    """Milliseconds of each call; the host's clock in the interpreter."""
    for _ in range(WARMUPS):
        call()
    lib.cuda.synchronize()
    flush = lib.empty(FLUSHED, dtype=lib.uint8, device="cuda") if FLUSHED else None
    found = []
    for _ in range(ROUNDS):
        begin, end = (lib.cuda.Event(enable_timing=True) for _ in range(2))
        if flush is not None:
            flush.zero_()
        begin.record()
        began = time.perf_counter()
        call()
        end.record()
        end.synchronize()
        found.append((time.perf_counter() - began) * 1e3 if TINY else begin.elapsed_time(end))
    return found


def variants(lib: Any, case: Any, mode: str, compile_mode: str) -> Any:
    """The call as it is, or recorded: by a CUDA graph here, by torch.compile there."""
    call = case.make(lib)
    if mode == "eager":
        return call
    if lib.__name__ == "zoo":
        graphed = lib.cuda.graph(call)
        for _ in range(3):
            graphed()
        return graphed
    return lib.compile(call, mode=compile_mode)


def library(name: str) -> Any:
    """zoo or torch, both with tf32 in products of float32."""
    lib = importlib.import_module(name)
    lib.set_float32_matmul_precision("high")
    if name == "torch":
        lib.backends.cudnn.benchmark = True
    return lib


def recorded(section: str, path: Path) -> None:
    """Adds the launches of zoo's cases to a file, for scripts/compile_kernels.py: nothing is computed or allocated."""
    from zoo.ops.cuda import record

    lib = library("zoo")
    with record.dry_run(str(path)):
        lib.empty(WRITTEN, dtype=lib.uint8, device="cuda").zero_()
        for case in SECTIONS[section](False):
            call = case.make(lib)
            graphed = lib.cuda.graph(call) if case.whole else call
            for _ in range(3):           # the second step finds gradients, the third is captured
                call()
                graphed()


def row_of(ms: list[float]) -> dict:
    return {"ms": quantile(ms, 0.5), "p10": quantile(ms, 0.1), "p90": quantile(ms, 0.9)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", choices=["zoo", "torch"], required=True)
    parser.add_argument("--section", choices=list(SECTIONS), required=True)
    parser.add_argument("--mode", choices=["eager", "recorded"], default="eager")
    parser.add_argument("--compile", default="reduce-overhead", help="the mode of torch.compile")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--record", action="store_true", help="only write down zoo's launches (ZOO_INTERPRET=1)")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if args.record:
        return recorded(args.section, args.out)
    lib, table = library(args.library), {}
    for case in SECTIONS[args.section](args.tiny):
        if args.mode == "recorded" and not case.whole:
            continue
        try:
            table[case.name] = row_of(times(lib, variants(lib, case, args.mode, args.compile)))
        except Exception as error:             # one case must not cost the others their numbers
            table[case.name] = {"error": f"{type(error).__name__}: {error}"[:300]}
        new = args.out.with_suffix(".new")
        new.write_text(json.dumps(table, indent=1))
        os.replace(new, args.out)              # this process may be ended at any moment
        print(f"{args.library:5s} {args.mode:8s} {case.name:50s} {table[case.name]}", flush=True)


if __name__ == "__main__":
    main()
