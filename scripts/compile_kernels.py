"""Compiles for GPUs that are not here every kernel launch that the interpreter recorded; exits with 1 if one fails.

    ZOO_INTERPRET=1 ZOO_RECORD=launches.jsonl python -m pytest -m interpret
    python scripts/compile_kernels.py --arch 80,90,100 launches.jsonl --report report.json

Of each kernel and formula it compiles three of the recorded variants, spread over the dtypes; all with `--most 0`.

Prints, per kernel and architecture: how many specialisations, the most registers, stack bytes (spills lie there) and
shared memory among them, the fewest programs that fit a multiprocessor, and which tensor core instruction they use.
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from occupancy import RESERVED, occupancy

MMA = "wgmma.mma_async", "tcgen05.mma", "mma.sync"


def rows_of(paths: list[str]) -> list[str]:
    """The distinct lines of all files."""
    lines: dict[str, None] = {}
    for path in paths:
        with open(path) as file:
            lines.update(dict.fromkeys(line.strip() for line in file if line.strip()))
    return sorted(lines)


def variant(line: str) -> tuple[str, str]:
    """(kernel with the functions it is given, everything else) of a line."""
    row = json.loads(line)
    values = [v for v in row["constexprs"].values() if isinstance(v, list)]
    values += [part for v in values if v[0] == "tuple" for part in v[1:] if isinstance(part, list)]  # of an epilogue
    functions = [v[1] for v in values if v[0] in ("op", "jit")]
    return " ".join([row["kernel"], *functions]), json.dumps([row["args"], row["constexprs"], row["options"]])


def sampled(lines: list[str], most: int) -> list[str]:
    """At most `most` lines of each kernel and formula, spread evenly over the sorted list; all of them if 0."""
    groups: dict[str, list[str]] = {}
    for line in sorted(lines, key=variant):
        groups.setdefault(variant(line)[0], []).append(line)
    if not most:
        return lines
    kept = []
    for group in groups.values():
        step = max(1.0, (len(group) - 1) / max(most - 1, 1))
        kept += [group[round(i * step)] for i in range(min(most, len(group)))]
    return kept


def built_from(row: dict, arch: int, index: int = 0):
    """Triton's CompiledKernel of a recorded launch for an architecture; jit functions remember the target by index."""
    import triton
    from triton.backends.compiler import GPUTarget

    from zoo.ops.cuda import record
    from zoo.ops.cuda.launcher import Kernel
    from zoo.ops.cuda.triton_driver import CompileOnlyDriver, prepare

    prepare()
    triton.runtime.driver.set_active(CompileOnlyDriver(GPUTarget("cuda", arch, 32), index))
    constexprs = {k: record.read(v) for k, v in row["constexprs"].items()}
    kernel = Kernel(record.find(row["kernel"]), *row["options"], **constexprs)
    return kernel.warm(dict(zip(kernel.names, map(record.sample, row["args"]), strict=True)))


def compile_one(job: tuple[str, int, int]) -> dict:
    """Compiles one line for one architecture; the worker of the process pool."""
    line, arch, index = job
    row = json.loads(line)
    report = {"kernel": variant(line)[0], "arch": arch, "args": row["args"], "options": row["options"]}
    started = time.perf_counter()
    try:
        from zoo.ops.cuda.cubin import usage

        built = built_from(row, arch, index)
        registers, stack, static = usage(built.asm["cubin"])
        ptx = built.asm["ptx"]
        report |= {
            "registers": registers,
            "stack": stack,
            "shared": built.metadata.shared + (max(0, static - RESERVED) if arch >= 90 else static),  # 3.9 counts it
            "warps": built.metadata.num_warps,
            "mma": next((name for name in MMA if name in ptx), ""),
        }
        report["programs"] = occupancy(arch, registers, report["shared"], report["warps"])
    except Exception as e:
        report["error"] = f"{type(e).__name__}: {e}"
        report["constexprs"] = row["constexprs"]
    return report | {"seconds": round(time.perf_counter() - started, 3)}


def table(reports: list[dict]) -> str:
    """One line per kernel and architecture."""
    groups: dict[tuple, list[dict]] = {}
    for r in reports:
        if "error" not in r:
            groups.setdefault((r["kernel"].partition(" ")[0], r["arch"]), []).append(r)
    lines = [f"{'kernel':60} {'sm':>4} {'count':>6} {'regs':>5} {'stack':>6} {'shared':>7} "
             f"{'programs':>8}  tensor cores"]
    for (kernel, arch), rs in sorted(groups.items()):
        most = [max(r[k] for r in rs) for k in ("registers", "stack", "shared")]
        mma = ", ".join(sorted({r["mma"] for r in rs} - {""}))
        programs = min(r["programs"] for r in rs)
        lines.append(f"{kernel:60} {arch:>4} {len(rs):>6} {most[0]:>5} {most[1]:>6} {most[2]:>7} {programs:>8}  {mma}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", help="files that ZOO_RECORD wrote")
    parser.add_argument("--arch", default="80,90,100", help="compute capabilities, as in 80,90,100")
    parser.add_argument("--most", type=int, default=3, help="variants of a kernel and formula; 0 for all")
    parser.add_argument("--in-turn", action="store_true", help="all for the first --arch, the others take turns")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--report", help="write every row as JSON here")
    options = parser.parse_args()
    started = time.perf_counter()
    found = rows_of(options.records)
    lines = sampled(found, options.most)
    archs = [int(a) for a in options.arch.split(",")]
    jobs = [(line, arch, i) for k, line in enumerate(lines) for i, arch in enumerate(archs)
            if i == 0 or not options.in_turn or k % (len(archs) - 1) == i - 1]
    os.environ.pop("ZOO_INTERPRET", None)  # the workers compile
    os.environ.pop("ZOO_RECORD", None)
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        reports = []
        for r in pool.map(compile_one, jobs, chunksize=max(1, min(16, len(jobs) // (4 * options.workers)))):
            reports.append(r)
            if "error" in r:
                print(f"FAILED {r['kernel']} for sm_{r['arch']}: {r['args']} {r['constexprs']} {r['options']}")
                print(f"  {r['error']}", flush=True)
            if len(reports) % 200 == 0:
                print(f"{len(reports)} of {len(jobs)} in {time.perf_counter() - started:.0f} s", flush=True)
    if options.report:
        with open(options.report, "w") as file:
            json.dump(reports, file, indent=1)
    print(table(reports))
    failed = sum("error" in r for r in reports)
    print(
        f"{len(reports) - failed} of {len(reports)} compiled ({len(lines)} of {len(found)} recorded launches, "
        f"{len(archs)} architectures) in {time.perf_counter() - started:.0f} s"
    )
    return 1 if failed or not reports else 0


if __name__ == "__main__":
    sys.exit(main())
