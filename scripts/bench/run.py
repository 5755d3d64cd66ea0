"""Ops, layers, steps of optimizers, overhead, models and peak memory beside torch: one table of ratios.

    python scripts/bench/run.py --device cpu --against torch [--threads 2] [--only resnet-18 ops:] [--out FILE]

How it is measured says protocol.py. A row's label is `section: case`; --only takes parts of labels. The whole table
takes about 8 minutes and goes to scripts/bench/results/cpu.json, from which table.py writes README's; with --only
nothing is written unless --out says where. With --keep the rows of that file which this run does not measure stay in
it: each row has the machine's load of its minute.
"""
import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path

if "cuda" in sys.argv:                   # the device's side has arguments, protocol and results of its own
    import gpu  # pyright: ignore[reportMissingImports]

    sys.exit(gpu.main())

import protocol  # noqa: F401  first: it sets BLAS's environment, which NumPy reads when it is loaded

# isort: split
import cases_layers
import cases_models
import cases_ops
import memory
import overhead
from protocol import Case, machine, measured
from rows import RESULTS, line_of, missed


def cases(shape) -> list[Case]:
    return [*cases_ops.cases(shape), *cases_layers.cases(), *overhead.cases(), *cases_models.cases()]


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--against", choices=["torch"], default="torch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, help="seconds of calls in a round, instead of the case's own")
    parser.add_argument("--shape", default="1000x1000", help="of the memory-bound ops")
    parser.add_argument("--only", nargs="+", default=[], help="the rows whose labels have one of these in them")
    parser.add_argument("--numba", choices=["on", "off"], default="on" if find_spec("numba") else "off",
                        help="on (where it is installed): zoo is timed without and with its compiled loops")
    parser.add_argument("--keep-blas", action="store_true", help="leave OPENBLAS_CORETYPE as it is")
    parser.add_argument("--keep", action="store_true", help="other rows of the file stay")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def rows_of(args):
    """The chosen rows, one by one."""
    def chosen(label):
        return not args.only or any(part.lower() in label.lower() for part in args.only)

    for case in cases(tuple(map(int, args.shape.split("x")))):
        if chosen(case.label):
            yield measured(case, args.rounds, args.threads, args.budget, args.numba == "on")
    if chosen(f"memory: {memory.NAME}"):
        yield memory.row(args.threads)


def kept(path: Path, rows: list) -> list:
    """The file's rows, with the new ones in their places."""
    new = {(r["section"], r["case"]): r for r in rows}
    old = [(r["section"], r["case"], r) for r in json.loads(path.read_text())["rows"]]
    known = {(section, case) for section, case, _ in old}
    return [new.get((section, case), r) for section, case, r in old] + [r for k, r in new.items() if k not in known]


def main() -> int:
    args = parsed()
    rows = []
    for row in rows_of(args):
        rows.append(row)
        print(line_of(row), flush=True)
    if out := args.out or (None if args.only else RESULTS / "cpu.json"):
        out.parent.mkdir(parents=True, exist_ok=True)
        everything = kept(out, rows) if args.keep and out.exists() else rows
        out.write_text(json.dumps({"rows": everything, "rounds": args.rounds, **machine()}, indent=1) + "\n")
    return 1 if any(map(missed, rows)) else 0


if __name__ == "__main__":
    sys.exit(main())
