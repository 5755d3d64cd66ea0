"""Compiles the matrix products that the table of configs chooses, for each family of GPUs; exits with 1 if one is poor.

    python scripts/compile_configs.py --families sm90 --report report.json

Large, small, narrow and odd products of every dtype, layout and kind of epilogue are planned with each family's table,
as on such a GPU, and compiled for it. Poor is: a spilled register, more shared memory than there is, a half or tf32
product without the family's tensor core instruction, fewer programs on a multiprocessor than the table says, or a row
of the table that no product here takes.
"""

import argparse
import json
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from compile_kernels import compile_one, rows_of

MMA = {"sm80": "mma.sync", "sm86": "mma.sync", "sm90": "wgmma.mma_async", "sm100": "tcgen05.mma"}
SIZES = [  # (M, N, K): whole tiles, odd ones, narrow results, few rows, long sums, one tile
    (8192, 8192, 8192), (8192, 4096, 128), (8191, 4099, 1000), (802816, 64, 256), (4096, 8, 512), (4096, 24, 512),
    (16, 4096, 4096), (24, 4096, 4096), (2304, 2176, 1024), (1152, 1152, 512),
    (512, 512, 65536), (100, 100, 100),
]
KINDS = ("half", "tf32", "tf32x3", "ieee", "double", "integer")


def launches(family: str, path: str) -> set[int]:
    """Records what the products launch with a family's table; gives the places of the rows that were taken."""
    from zoo.ops import cuda, gpu_configs, matmul
    from zoo.ops import epilogue_gpu as e
    from zoo.ops.activation import gelu
    from zoo.ops.cuda.record import dry_run
    from zoo.ops.matmul_gpu import multiply
    from zoo.ops.pointwise_gpu import jitted

    dtypes = {"half": "bfloat16", "double": "float64", "integer": "int32"}
    rows, taken = gpu_configs.rows_of(family), set()
    with dry_run(path), gpu_configs.using(family), gpu_configs.listening() as queries:
        for kind in KINDS:
            matmul.Precision.float32 = {"tf32": "high", "tf32x3": "tf32x3"}.get(kind, "highest")
            dtype = np.dtype(dtypes.get(kind, "float32"))
            for m, n, k in SIZES:
                bias, matrix = (cuda.empty(s, dtype) for s in ((n,), (m, n)))
                ends = [e.NOTHING]
                if kind != "integer":
                    ends.append(e.epilogue((e.add_row, bias), (jitted(gelu), None)))
                    ends.append(e.epilogue((e.add_row, bias), (e.add_matrix, matrix)))
                for layout in ("nt", "nn", "tn") if kind in ("half", "tf32") else ("nt", "tn"):
                    a, b = (cuda.empty(s[::-1] if t == "t" else s, dtype)
                            for s, t in zip(((m, k), (k, n)), layout, strict=True))
                    a, b = (x.view(x.shape[::-1], x.strides[::-1]) if t == "t" else x
                            for x, t in zip((a, b), layout, strict=True))
                    for after in ends:
                        multiply(a, b, (m, n), after, has_matrix=e.add_matrix in after.stages)
    for query in queries:
        taken.add(next(i for i, row in enumerate(rows) if row[:2] == query[:2] and row.holds(*query[2:])))
    return taken


def faults(report: dict, family, per_sm: int) -> list[str]:
    """What is wrong with one compiled launch."""
    if "error" in report:
        return [report["error"]]
    found = []
    if report["stack"]:
        found.append(f"{report['stack']} bytes of stack")
    if report["shared"] > family.shared:
        found.append(f"{report['shared']} bytes of shared memory of {family.shared}")
    if report["programs"] < per_sm:
        found.append(f"{report['programs']} programs a multiprocessor of {per_sm}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", default="sm80,sm86,sm90,sm100")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--report", help="write every row as JSON here")
    options = parser.parse_args()
    os.environ["ZOO_INTERPRET"] = "1"
    from zoo.ops import gpu_configs

    poor, reports = 0, []
    families = [gpu_configs.FAMILIES[name] for name in options.families.split(",")]
    for i, family in enumerate(families):
        with tempfile.TemporaryDirectory() as folder:
            taken = launches(family.name, path := f"{folder}/launches.jsonl")
            lines = rows_of([path])
        for k, row in enumerate(gpu_configs.rows_of(family.name)):
            if row.op == "gemm" and k not in taken:
                print(f"FAILED {family.name}: no product takes {row}")
                poor += 1
        os.environ.pop("ZOO_INTERPRET", None)  # the workers compile
        with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
            built = list(pool.map(compile_one, [(line, family.arch, i) for line in lines], chunksize=8))
        os.environ["ZOO_INTERPRET"] = "1"
        for line, report in zip(lines, built, strict=True):
            reports.append(report | {"family": family.name})
            poor += judge(json.loads(line), reports[-1], family)
        summary(family, reports)
    if options.report:
        with open(options.report, "w") as file:
            json.dump(reports, file, indent=1)
    print(f"{len(reports)} launches compiled, {poor} poor")
    return 1 if poor else 0


def promised(row: dict, family) -> int:
    """How many programs of this tile a multiprocessor holds by the table; 1 for kernels that it does not describe."""
    from zoo.ops import gpu_configs

    name = row["kernel"].split(":")[1]
    wanted = (*(row["constexprs"].get(k) for k in ("BM", "BN", "BK")), *row["options"][:2])
    kernels = {"gemm": "tiled", "gemm_tma": "tma"}
    found = [r.config.per_sm for r in gpu_configs.rows_of(family.name)
             if r.op == "gemm" and r.config[:5] == wanted and r.config.kernel == kernels.get(name)]
    return min(found, default=1)


def judge(row: dict, report: dict, family) -> int:
    """1 and a line of print if a launch is poor."""
    constants = row["constexprs"]
    report |= {k: constants.get(k) for k in ("BM", "BN", "BK", "TA", "TB", "PRECISION", "SUB")}
    report["matrix"] = ["jit", "zoo.ops.epilogue_gpu:add_matrix"] in constants["STAGES"]
    found = faults(report, family, promised(row, family) if not report["matrix"] else 1)
    halves = row["args"][0].startswith("*bfloat16") or constants.get("PRECISION") == "tf32"
    product = constants.get("DOT", True) and "gemm" in report["kernel"]
    if product and halves and "error" not in report and report["mma"] != MMA[family.name]:
        found.append(f"no {MMA[family.name]}")
    if found:
        print(f"FAILED {family.name} {report['kernel']} {row['args'][0]} {constants} {row['options']}: {found}")
    return bool(found)


def summary(family, reports: list[dict]):
    """Per kernel, arithmetic and tile: the most registers, stack and shared memory, the fewest programs."""
    groups: dict[tuple, list[dict]] = {}
    for r in reports:
        if r["family"] == family.name and "error" not in r:
            name = r["kernel"].split()[0].split(":")[1]
            key = name, r["args"][0], r["PRECISION"], r["BM"], r["BN"], r["BK"], *r["options"][:2]
            groups.setdefault(tuple(map(str, key)), []).append(r)
    print(f"{family.name}: kernel, array, precision, BM, BN, BK, warps, stages: launches, registers, stack, shared, "
          "programs a multiprocessor, tensor cores")
    for key, rs in sorted(groups.items()):
        registers, stack, shared = (max(r[k] for r in rs) for k in ("registers", "stack", "shared"))
        mma = ", ".join(sorted({r["mma"] for r in rs} - {""}))
        print("  ", *key, ":", len(rs), registers, stack, shared, min(r["programs"] for r in rs), mma)


if __name__ == "__main__":
    sys.exit(main())
