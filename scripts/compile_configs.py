"""Compiles what the table of configs chooses, for each family of GPUs; exits with 1 if a launch is poor.

    python scripts/compile_configs.py --families sm90 --sample 5                         # what CI can afford
    python scripts/compile_configs.py --report report.json                               # all: an hour on two cores

Products and convolutions of every dtype, layout and kind of epilogue, and attention (config_cases.py), are planned with
each family's table, as on such a GPU, and compiled for it; also the time loops of recurrent layers. Poor is: a spilled
register, more shared memory than there is, a half or tf32 product without the family's tensor core instruction, fewer
programs on a multiprocessor than the table says, or a row of the table that nothing here takes.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import config_cases
from compile_kernels import compile_one

MMA = {"sm80": "mma.sync", "sm86": "mma.sync", "sm90": "wgmma.mma_async", "sm100": "tcgen05.mma"}
CONVOLUTIONS = "conv_forward", "conv_rows", "conv_input_grad", "conv_weight_grad"
ATTENTIONS = "attend", "grad_query", "grad_key_value"


class Cases(NamedTuple):
    """What launches, the ops whose rows in the table must all be taken, and what a kernel's name must have to count."""

    run: Callable[[str], Iterator[None]]
    ops: tuple[str, ...] = ()
    kernels: str = ""


CASES = {
    "products": Cases(config_cases.products, ("gemm",)),
    "convolutions": Cases(config_cases.convolutions, CONVOLUTIONS),
    "attentions": Cases(config_cases.attentions, ATTENTIONS, "zoo.ops.attention_gpu"),
    "recurrences": Cases(config_cases.recurrences, kernels="zoo.ops.rnn_"),
}
# kernels that a row of the table describes; stream-K's programs hold two ends of a tile and are half as many
KERNELS = {"gemm": "gemm", "gemm_tma": "gemm", **{name: name for name in ATTENTIONS},
           **dict(zip(("fprop", "fprop_rows", "dgrad", "wgrad"), CONVOLUTIONS, strict=True))}
ON_TENSOR_CORES = {*KERNELS, "gemm_stream"}


class Launch(NamedTuple):
    """A recorded line, and how many programs of it a multiprocessor holds by the table."""

    line: str
    per_sm: int

    @property
    def row(self) -> dict:
        return json.loads(self.line)


def launches(family: str, names: list[str], kinds: list[str]) -> tuple[list[Launch], list[str]]:
    """What the cases launch with a family's table, each once, and the rows of the table that none of them took."""
    from zoo.ops import gpu_configs
    from zoo.ops.cuda.record import dry_run

    rows, taken, found = gpu_configs.rows_of(family), set(), []
    with tempfile.NamedTemporaryFile("r") as file, dry_run(file.name), gpu_configs.using(family):
        for name in names:
            for kind in kinds:
                with gpu_configs.listening() as queries:
                    for _ in CASES[name].run(kind):
                        places = [next((i for i, row in enumerate(rows) if row[:2] == q[:2] and row.holds(*q[2:])), -1)
                                  for q in queries]
                        places = [i for i in places if i >= 0]          # a time loop without a row goes by a rule
                        queries.clear()
                        taken.update(places)
                        found += [Launch(line, promised(line, [rows[i] for i in places])) for line in file
                                  if CASES[name].kernels in line]
    missing = [f"no {name} take {row}" for name in names for i, row in enumerate(rows)
               if row.op in CASES[name].ops and row.kind in kinds and i not in taken]
    return found, missing


def promised(line: str, rows: list) -> int:
    """Programs a multiprocessor by the row that was chosen for a launch; 1 for kernels that no row describes."""
    row = json.loads(line)
    if ["jit", "zoo.ops.epilogue_gpu:add_matrix"] in row["constexprs"].get("STAGES", ()) and "gemm" in row["kernel"]:
        return 1                                          # a residual's registers are another row's, if there is one
    op = KERNELS.get(row["kernel"].partition(":")[2])
    return min((r.config.per_sm for r in rows if r.op == op), default=1)


def faults(launch: Launch, report: dict, family) -> list[str]:
    """What is wrong with one compiled launch."""
    if "error" in report:
        return [report["error"]]
    row, found = launch.row, []
    if report["stack"]:
        found.append(f"{report['stack']} bytes of stack")
    if report["shared"] > family.shared:
        found.append(f"{report['shared']} bytes of shared memory of {family.shared}")
    if report["programs"] < launch.per_sm:
        found.append(f"{report['programs']} programs a multiprocessor of {launch.per_sm}")
    constants, array = row["constexprs"], row["args"][0]
    quick = array.startswith(("*bfloat16", "*float16")) or constants.get("PRECISION") == "tf32"
    product = row["kernel"].partition(":")[2] in ON_TENSOR_CORES and constants.get("DOT", True)
    if product and quick and constants["BM"] >= 64 and report["mma"] != MMA[family.name]:
        found.append(f"no {MMA[family.name]}")            # of fewer than 64 rows, Hopper has the instructions of Ampere
    return found


def described(launch: Launch, report: dict) -> dict:
    """A report with the tile of its launch."""
    return report | {k: launch.row["constexprs"].get(k) for k in ("BM", "BN", "BK", "BC", "PRECISION", "SUB")}


def summary(reports: list[dict]) -> str:
    """Per kernel, arithmetic and tile: the most registers, stack and shared memory, the fewest programs."""
    groups: dict[tuple, list[dict]] = {}
    for r in reports:
        if "error" not in r:
            depth = r["BK"] or r["BC"]
            key = r["kernel"].split()[0].split(":")[1], r["args"][0], r["PRECISION"], r["BM"], r["BN"], depth
            groups.setdefault(tuple(map(str, (*key, *r["options"][:2]))), []).append(r)
    lines = ["kernel, array, precision, BM, BN, BK, warps, stages: launches, registers, stack, shared, "
             "programs a multiprocessor, tensor cores"]
    for key, rs in sorted(groups.items()):
        registers, stack, shared = (max(r[k] for r in rs) for k in ("registers", "stack", "shared"))
        mma = ", ".join(sorted({r["mma"] for r in rs} - {""}))
        programs = min(r["programs"] for r in rs)
        lines.append(f"   {' '.join(key)}: {len(rs)} {registers} {stack} {shared} {programs} {mma}")
    return "\n".join(lines)


def compiled(found: list[Launch], family, workers: int) -> list[dict]:
    """The reports of all launches."""
    os.environ.pop("ZOO_INTERPRET", None)                 # the workers compile
    try:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            jobs = [(launch.line, family.arch, 0) for launch in found]
            return [described(*pair) for pair in zip(found, pool.map(compile_one, jobs, chunksize=4), strict=True)]
    finally:
        os.environ["ZOO_INTERPRET"] = "1"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", default="sm80,sm86,sm90,sm100")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--kinds", default=",".join(config_cases.KINDS))
    parser.add_argument("--sample", type=int, default=1, help="compile only every so many-th launch")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--report", help="write every launch as JSON here")
    return parser.parse_args()


def main() -> int:
    options, started, everything, poor = arguments(), time.perf_counter(), [], 0
    os.environ["ZOO_INTERPRET"] = "1"
    from zoo.ops import gpu_configs

    for name in options.families.split(","):
        family = gpu_configs.FAMILIES[name]
        found, missing = launches(name, options.cases.split(","), options.kinds.split(","))
        found = found[::options.sample]
        reports = compiled(found, family, options.workers)
        bad = [f"{report['kernel']} {launch.row['args'][0]} {launch.row['constexprs']} {launch.row['options']}: {wrong}"
               for launch, report in zip(found, reports, strict=True) if (wrong := faults(launch, report, family))]
        print(*(f"FAILED {name}: {line}" for line in (*missing, *bad)), f"{name}: {summary(reports)}", sep="\n")
        everything += [report | {"family": name} for report in reports]
        poor += len(missing) + len(bad)
    if options.report:
        with open(options.report, "w") as file:
            json.dump(everything, file, indent=1)
    print(f"{len(everything)} launches compiled in {time.perf_counter() - started:.0f} s, {poor} poor")
    return 1 if poor else 0


if __name__ == "__main__":
    sys.exit(main())
