"""Measures candidate tile configs on the GPU at hand and writes the best into the committed table.

    python -m zoo.ops.tune gemm conv attention recurrent
    python -m zoo.ops.tune gemm --kinds half --seconds 600
    ZOO_INTERPRET=1 python -m zoo.ops.tune gemm conv --most 24 --record launches.jsonl

Each candidate is compiled, its result checked, and timed by events with the L2 cache flushed; what does not compile,
spills registers or is wrong is left out. A measured row holds for sizes within a factor of the square root of 2. With
ZOO_INTERPRET=1 and --tiny everything runs on the host, to test the tool itself; such times mean nothing, so name a file
with --out.

A candidate that hangs, or breaks the GPU for this process by an illegal access, ends it with the status os.EX_TEMPFAIL,
after the best row so far was written; the same command with --begun goes on behind that case.

One process compiles for longer than it measures. --record, which needs no GPU, writes down the candidates' launches:
scripts/compile_kernels.py compiles them in many processes into Triton's cache.
"""
import argparse
import datetime
import json
import math
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from statistics import median, quantiles

from zoo.ops import cuda, gpu_configs
from zoo.ops.cuda import record
from zoo.ops.cuda.resources import stack_of
from zoo.ops.dtypes import int8
from zoo.ops.errors import KernelError
from zoo.ops.gpu_configs import Config, Query
from zoo.ops.tune import cases
from zoo.ops.tune.cases import TOLERANCE, Case, Started, chosen

GROUPS = [*cases.GROUPS, "sequences"]
HANGS = 60                      # seconds after which a candidate waits for a kernel that does not end
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


def query_of(run, op: str = "") -> Query:
    """What the table is asked by `run`, whose shapes nobody has planned with this config before; or what of an op."""
    with gpu_configs.using(config=None if op else PLAIN), gpu_configs.listening() as queries:
        run()
    return next(query for query in reversed(queries) if op in ("", query.op))


def measured(case: Case, config: Config, started: Started, scratch, repeats: int,
             unchecked: bool = False) -> tuple[float, list[float]]:
    """(median, [first and third quartile]) in microseconds. Raises ValueError if the result is wrong, or it spills."""
    run, error, also = started
    with gpu_configs.using(config=config, op=case.op):
        off = error(run())
        if not (off <= TOLERANCE[case.kind] or unchecked):
            raise ValueError(f"wrong by {off:.1e}")
        if stack := max(map(stack_of, (run, *also))):
            raise ValueError(f"spills {stack} bytes")
        times = [1e3 * t for t in milliseconds(run, scratch, repeats)]
    low, _, high = quantiles(times, n=4)
    return median(times), [low, high]


def tuned(case: Case, options, scratch, keep: Callable[[dict], None]):
    """Measures a case's candidates, and hands the best as a row of the table to `keep` if one of them runs."""
    query, results, left_out = None, [], 0

    def end(missing: int = 0):
        if query is not None and (row := row_of(query, results, left_out + missing, case.products)):
            keep(row)

    def give_up():
        """In a thread beside what hangs, and after what broke the GPU."""
        end(1)
        os._exit(os.EX_TEMPFAIL)                # an orderly end would ask the driver, which may not answer
    with watched(give_up):
        started = case.start()
        query = query_of(started.run, case.op)
    deadline = time.monotonic() + options.seconds
    for config in chosen(case.candidates(query, gpu_configs.FAMILIES[gpu_configs.current().family]), options.most):
        if time.monotonic() > deadline:
            break
        try:
            with watched(give_up):
                found = measured(case, config, started, scratch, options.repeats, options.unchecked)
            results.append((*found, config))
        except Exception as e:                  # a compiler's own errors derive from many classes
            left_out += 1
            lost = is_lost()
            if options.verbose or lost:
                print(f"    {config}: {type(e).__name__}: {str(e).splitlines()[:1]}", flush=True)
            if lost:
                give_up()
    end()


@contextmanager
def watched(give_up: Callable[[], None]) -> Iterator[None]:
    """Inside, what takes longer than HANGS on a GPU is given up."""
    watch = threading.Timer(HANGS, give_up)
    watch.daemon = True
    if not cuda.is_interpreting():
        watch.start()
    try:
        yield
    finally:
        watch.cancel()


def is_lost() -> bool:
    """Does the GPU fail in this process from now on?"""
    try:
        cuda.synchronize()
    except cuda.CudaError:
        return True
    return False


def row_of(query: Query, results: list[tuple[float, list[float], Config]], left_out: int,
           products: float) -> dict | None:
    """The best of what was measured as a row of the table; None if there is none."""
    tags = sorted(query.tags)
    name = f"{query.op} {query.kind} {query.M}x{query.N}x{query.K} {' '.join(tags)}"
    if not results:
        print(f"{name}: no candidate runs; {left_out} left out", flush=True)
        return None
    results = sorted(results, key=lambda r: r[0])
    us, spread, best = results[0]
    tflops = 2e-6 * query.M * query.N * query.K * query.batch * products / us
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
        run, _, also = case.start()
        query = query_of(run, case.op)
        for config in chosen(case.candidates(query, gpu_configs.FAMILIES[gpu_configs.current().family]), most):
            for call in (run, *also):
                with gpu_configs.using(config=config, op=case.op), suppress(KernelError):
                    call()


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
    """The table with new rows on top, instead of older measurements of the same; those of special calls first."""
    def name(row):
        return row["op"], row["kind"], row["tags"], row["basis"]["shape"]
    new = [name(row) for row in rows]
    rows = rows + [row for row in table["rows"] if not isinstance(row["basis"], dict) or name(row) not in new]
    special = sorted((row for row in rows if isinstance(row["basis"], dict)), key=lambda row: -len(row["tags"]))
    return table | {"rows": special + [row for row in rows if not isinstance(row["basis"], dict)]}


def asked_for(options) -> Iterator[Case]:
    """The cases of the command line, the most valuable first, each under the precision of its kind."""
    from zoo.ops.matmul import Precision
    from zoo.ops.tune import attention_gpu, recurrent_gpu

    for kind in options.kinds:
        Precision.float32 = {"ieee": "highest", "tf32x3": "tf32x3"}.get(kind, "high")
        for group in options.of:
            for family in (cases, attention_gpu, recurrent_gpu):
                yield from family.cases(options.names, kind, group, options.tiny)


def main():
    parser = argparse.ArgumentParser(prog="python -m zoo.ops.tune", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=["gemm", "conv", "attention", "recurrent"])
    parser.add_argument("--kinds", nargs="+", default=["half", "tf32"], choices=sorted(TOLERANCE))
    parser.add_argument("--of", nargs="+", default=GROUPS, choices=GROUPS, help="groups of cases")
    parser.add_argument("--seconds", type=float, default=60, help="at most for one case")
    parser.add_argument("--most", type=int, default=1000, help="candidates for one case, spread over all of them")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--tiny", action="store_true", help="two small cases of each, as a test of this tool")
    parser.add_argument("--unchecked", action="store_true", help="for the driver stub, which computes nothing")
    parser.add_argument("--begun", type=Path, help="cases are named in this file, and those that are there left out")
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

    def keep(row):
        rows.append(row)
        path.write_text(gpu_configs.dumped(merged(table, rows)))           # what is measured is kept, come what may
    for case in unbegun(asked_for(options), options.begun):
        try:
            tuned(case, options, scratch, keep)
        except Exception as e:                  # one case must not cost the others their measurements
            print(f"{case.name}: {type(e).__name__}: {e}", flush=True)
            if is_lost():
                os._exit(os.EX_TEMPFAIL)
    print(f"{len(rows)} rows measured: {path}")


def unbegun(found: Iterator[Case], path: Path | None) -> Iterator[Case]:
    """The cases that are not named in a file, each of which is added to it first; all without a file."""
    begun = path.read_text().splitlines() if path and path.exists() else []
    for case in found:
        if path and case.name not in begun:
            with path.open("a") as file:
                file.write(case.name + "\n")
        if case.name not in begun:
            yield case


if __name__ == "__main__":
    main()
