"""Measures candidate tile configs on the GPU at hand and writes the best into the committed table.

    python -m zoo.ops.tune gemm conv
    python -m zoo.ops.tune gemm --kinds half --seconds 600
    ZOO_INTERPRET=1 python -m zoo.ops.tune gemm conv --most 24 --record launches.jsonl

Each candidate is compiled, its result checked, and timed by events with the L2 cache flushed; what does not compile, or
is wrong, is left out. A measured row holds for sizes within a factor of the square root of 2. With ZOO_INTERPRET=1 and
--tiny everything runs on the host, to test the tool itself; such times mean nothing, so name a file with --out.

One process compiles for longer than it measures. --record, which needs no GPU, writes down the candidates' launches:
scripts/compile_kernels.py compiles them in many processes into Triton's cache.
"""
import argparse
import datetime
import json
import math
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from statistics import median, quantiles

from zoo.ops import cuda, gpu_configs
from zoo.ops.cuda import record
from zoo.ops.dtypes import int8
from zoo.ops.errors import KernelError
from zoo.ops.gpu_configs import Config, Query
from zoo.ops.tune.cases import GROUPS, TOLERANCE, Case, cases, chosen

FLUSHED = 256 << 20             # bytes that are written before each measurement: more than any L2 cache holds


def milliseconds(run, scratch, repeats: int) -> list[float]:
    """Times of `run` on the GPU, each after the cache was filled with something else."""
    run()
    marks = []
    for _ in range(repeats):
        cuda.fill_bytes(scratch, 0)
        begin, end = (cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        marks.append((begin, end))
    cuda.synchronize()
    return [begin.elapsed_time(end) for begin, end in marks]


PLAIN = Config(64, 64, 32, 4, 2)


def query_of(run) -> Query:
    """What the table is asked by `run`, whose shapes nobody has planned with this config before."""
    with gpu_configs.using(config=PLAIN), gpu_configs.listening() as queries:
        run()
    return queries[-1]


def measured(kind: str, config: Config, started, scratch, repeats: int) -> tuple[float, list[float]]:
    """(median, [first and third quartile]) in microseconds. Raises ValueError if the result is wrong."""
    run, error = started
    with gpu_configs.using(config=config):
        off = error(run())
        if not off <= TOLERANCE[kind]:
            raise ValueError(f"wrong by {off:.1e}")
        times = [1e3 * t for t in milliseconds(run, scratch, repeats)]
    low, _, high = quantiles(times, n=4)
    return median(times), [low, high]


def tuned(case: Case, options, scratch) -> dict | None:
    """The best candidate as a row of the table; None if none of them runs."""
    started, results, left_out = case.start(), [], 0
    query, deadline = query_of(started[0]), time.monotonic() + options.seconds
    family = gpu_configs.FAMILIES[gpu_configs.current().family]
    for config in chosen(query, family, options.most):
        if time.monotonic() > deadline:
            break
        try:
            results.append((*measured(case.kind, config, started, scratch, options.repeats), config))
        except Exception as e:                  # a compiler's own errors derive from many classes
            left_out += 1
            if options.verbose:
                print(f"    {config}: {type(e).__name__}: {str(e).splitlines()[:1]}")
    tags = sorted(query.tags)
    name = f"{query.op} {query.kind} {query.M}x{query.N}x{query.K} {' '.join(tags)}"
    if not results:
        print(f"{name}: no candidate runs; {left_out} left out", flush=True)
        return None
    results.sort(key=lambda r: r[0])
    us, spread, best = results[0]
    tflops = 2e-6 * query.M * query.N * query.K * query.batch / us
    print(f"{name}: {us:.1f} us, {tflops:.0f} TF/s, {shortened(best)}, best of {len(results)}; {left_out} left out",
          flush=True)
    basis = dict(us=round(us, 2), spread_us=[round(t, 2) for t in spread], shape=[query.M, query.N, query.K],
                 candidates=len(results), **provenance())
    if len(results) > 1:
        basis["second"] = dict(us=round(results[1][0], 2), config=shortened(results[1][2]))
    return dict(op=query.op, kind=query.kind, tags=tags, **ranges(query), config=shortened(best), basis=basis)


def recorded(case: Case, most: int, path: Path) -> None:
    """Adds the launches of the candidates that can be tried to a file; nothing is computed or allocated."""
    with record.dry_run(str(path)):
        run, _ = case.start()
        query = query_of(run)
        for config in chosen(query, gpu_configs.FAMILIES[gpu_configs.current().family], most):
            with gpu_configs.using(config=config), suppress(KernelError):
                run()


def ranges(query: Query) -> dict:
    """Sizes for which a measurement stands: within a factor of the square root of 2."""
    around = math.sqrt(2)
    return {side: [math.ceil(size / around), math.floor(size * around)]
            for side, size in zip("MNK", (query.M, query.N, query.K), strict=True)}


def shortened(config: Config) -> dict:
    """The fields that differ from their defaults, and the first five."""
    return {k: v for i, (k, v) in enumerate(config._asdict().items()) if i < 5 or v != Config._field_defaults[k]}


def provenance() -> dict:
    """Where a number comes from: GPU, versions, date, commit (of a copy without git in ZOO_COMMIT)."""
    commit = os.environ.get("ZOO_COMMIT", "")
    if not commit:
        with suppress(OSError):
            commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True,
                                    text=True).stdout
    return dict(gpu=cuda.get_device_name(), triton=version("triton"),
                date=datetime.date.today().isoformat(), commit=commit[:9].strip() or "unknown")


def merged(table: dict, rows: list[dict]) -> dict:
    """The table with new rows on top, instead of older measurements of the same."""
    def name(row):
        return row["op"], row["kind"], row["tags"], row["basis"]["shape"]
    new = [name(row) for row in rows]
    kept = [row for row in table["rows"] if not isinstance(row["basis"], dict) or name(row) not in new]
    return table | {"rows": rows + kept}


def asked_for(options) -> Iterator[Case]:
    """The cases of the command line, the most valuable first, each under the precision of its kind."""
    from zoo.ops.matmul import Precision

    for kind in options.kinds:
        Precision.float32 = {"ieee": "highest", "tf32x3": "tf32x3"}.get(kind, "high")
        for group in options.of:
            yield from cases(options.names, kind, group, options.tiny)


def main():
    parser = argparse.ArgumentParser(prog="python -m zoo.ops.tune", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=["gemm", "conv"])
    parser.add_argument("--kinds", nargs="+", default=["half", "tf32"], choices=sorted(TOLERANCE))
    parser.add_argument("--of", nargs="+", default=list(GROUPS), choices=list(GROUPS), help="groups of cases")
    parser.add_argument("--seconds", type=float, default=60, help="at most for one case")
    parser.add_argument("--most", type=int, default=1000, help="candidates for one case, spread over all of them")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--tiny", action="store_true", help="two small cases of each, as a test of this tool")
    parser.add_argument("--verbose", action="store_true", help="why candidates were left out")
    parser.add_argument("--record", type=Path, help="only add the candidates' launches to this file (ZOO_INTERPRET=1)")
    parser.add_argument("--out", type=Path, help="instead of the table of this GPU's family; one that is there goes on")
    options = parser.parse_args()
    if options.record:
        for case in asked_for(options):
            recorded(case, options.most, options.record)
        return
    if cuda.is_interpreting() and not options.out:
        parser.error("the interpreter's times mean nothing: name a file with --out")
    source = files(gpu_configs).joinpath(f"{gpu_configs.current().family}.json")
    path = options.out or Path(str(source))
    table = json.loads((path if path.exists() else source).read_text())
    scratch = cuda.empty((1024 if options.tiny else FLUSHED,), int8)
    rows = []
    for case in asked_for(options):
        row = tuned(case, options, scratch)
        if row is not None:
            rows.append(row)
            path.write_text(gpu_configs.dumped(merged(table, rows)))       # what is measured is kept, come what may
    print(f"{len(rows)} rows measured: {path}")


if __name__ == "__main__":
    main()
