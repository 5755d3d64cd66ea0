"""Times one section on the GPU with one library, in a process of its own: started by gpu.py.

A call is timed by CUDA events around it, 15 times after five warm-ups, in which torch.compile records its graphs; 256
MB are written before each, which empties the L2 cache and keeps the GPU busy while the host launches. Beside the times
stands the most memory that arrays held until then. The file is written after every case, and cases that are in it are
not measured again: after one that hangs, or breaks the GPU for this process, the status os.EX_TEMPFAIL asks for another
process.
"""
import argparse
import functools
import gc
import importlib
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from gpu_cases import SECTIONS
from rows import quantile

TINY = os.environ.get("ZOO_INTERPRET", "") not in ("", "0")
WRITTEN = 1 << 28                        # bytes that empty the L2 cache
ROUNDS, WARMUPS, FLUSHED = (2, 1, 0) if TINY else (15, 5, WRITTEN)
HANGS = {"eager": 60, "recorded": 180}   # seconds of a case; torch.compile takes most of the latter


def times(lib: Any, call: Any) -> list[float]:
    """Milliseconds of each call; the host's clock in the interpreter."""
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
    """The call as it is, or recorded: all of it by a CUDA graph here, its network by torch.compile there."""
    if mode == "eager":
        return case.make(lib)
    if lib.__name__ == "zoo":
        return lib.cuda.graph(case.make(lib))
    return case.make(lib, functools.partial(lib.compile, mode=compile_mode))


def measured(lib: Any, case: Any, mode: str, compile_mode: str) -> dict:
    """The row of a case."""
    gc.collect()                               # of the case before: its networks are cycles
    lib.cuda.reset_peak_memory_stats()
    call = variants(lib, case, mode, compile_mode)
    for _ in range(WARMUPS + 2):               # a graph is captured by the third call
        call()
    lib.cuda.synchronize()
    most = lib.cuda.max_memory_allocated()
    ms = times(lib, call)
    return {"ms": quantile(ms, 0.5), "p10": quantile(ms, 0.1), "p90": quantile(ms, 0.9), "peak GB": most / 1e9}


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


def is_lost(lib: Any) -> bool:
    """Does the GPU fail in this process from now on, as after an illegal access?"""
    try:
        lib.cuda.synchronize()
    except Exception:                          # of zoo or of torch
        return True
    return False


def written(table: dict, path: Path) -> None:
    new = path.with_suffix(".new")
    new.write_text(json.dumps(table, indent=1))
    os.replace(new, path)                      # this process may be ended at any moment


def hung(table: dict, name: str, seconds: float, path: Path) -> None:
    """Called in a thread beside a case that takes too long."""
    written({**table, name: {"error": f"not done after {seconds} s"}}, path)
    os._exit(os.EX_TEMPFAIL)                   # the other thread waits for the GPU, and would not end


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
    lib, seconds = library(args.library), HANGS[args.mode]
    table = json.loads(args.out.read_text()) if args.out.exists() else {}
    for case in SECTIONS[args.section](args.tiny):
        if case.name in table or (args.mode == "recorded" and not case.whole):
            continue
        watch = threading.Timer(seconds, hung, (table, case.name, seconds, args.out))
        watch.daemon = True
        if not TINY:
            watch.start()
        try:
            table[case.name] = measured(lib, case, args.mode, args.compile)
        except Exception as error:             # one case must not cost the others their numbers
            table[case.name] = {"error": f"{type(error).__name__}: {error}"[:300]}
        watch.cancel()
        written(table, args.out)
        print(f"{args.library:5s} {args.mode:8s} {case.name:50s} {table[case.name]}", flush=True)
        if "error" in table[case.name] and is_lost(lib):
            os._exit(os.EX_TEMPFAIL)           # an orderly end would ask the driver, which may not answer


if __name__ == "__main__":
    main()
