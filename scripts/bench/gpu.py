"""Ops, layers, models and steps on a GPU beside torch: eager, as a CUDA graph, and with torch.compile.

    python scripts/bench/run.py --device cuda --against torch [--only gemm conv] [--limit 480] [--out DIR]

Each section runs in a process of its own for each library and mode (gpu_section.py). A section has --limit seconds:
each of its processes gets an equal share of what is left, and what it had measured when it was ended counts. DIR gets
gpu.json, with the GPU, versions, commit and date, and roofline.svg; --keep leaves the sections of an earlier gpu.json
that are not measured now. Without torch there are zoo's numbers alone. torch.compile runs as --compile says, by default
with CUDA graphs; max-autotune compiles for minutes. `--tiny` with ZOO_INTERPRET=1 checks the scripts; its times mean
nothing and are marked.
"""
import argparse
import json
import os
import sys
import time
from pathlib import Path

from gpu_cases import SECTIONS
from gpu_floors import floor_ms, peak_of
from gpu_roofline import roofline
from rows import RESULTS, ROOT

sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]
from limited import limited  # noqa: E402

COLUMNS = {"zoo": ("zoo", "eager"), "zoo graph": ("zoo", "recorded"), "torch": ("torch", "eager"),
           "torch.compile": ("torch", "recorded")}
WHOLE = ("inference", "training")        # the sections that are also recorded


def measured(section: str, args: argparse.Namespace, folder: Path) -> dict[str, dict]:
    """{column: {case: times}} of a section."""
    found, end = {}, time.monotonic() + args.limit
    columns = {name: (library, mode) for name, (library, mode) in COLUMNS.items()
               if (library == "zoo" or args.torch) and (mode == "eager" or section in WHOLE)}
    for k, (column, (library, mode)) in enumerate(columns.items()):
        path = folder / f"{section}-{library}-{mode}.json"
        path.unlink(missing_ok=True)
        script = str(Path(__file__).with_name("gpu_section.py"))
        command = [sys.executable, script, "--library", library, "--mode", mode, "--section", section,
                   "--compile", args.compile, "--out", str(path), *["--tiny"] * args.tiny]
        log = path.with_suffix(".log")
        paths = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        status, _ = limited(command, (end - time.monotonic()) / (len(columns) - k), log, PYTHONPATH=paths)
        if status:
            print(f"{section}, {column}: ended with status {status}; the cases before that count. {log}:\n"
                  f"{log.read_text(errors='replace')[-600:]}", file=sys.stderr)
        found[column] = json.loads(path.read_text()) if path.exists() else {}
    return found


def rows_of(section: str, columns: dict[str, dict], gpu: str, tiny: bool) -> list[dict]:
    """The rows of a section: each column's times, how they relate, and the share of the floor."""
    rows, peak = [], peak_of(gpu)
    for case in SECTIONS[section](tiny):
        row = {"section": section, "case": case.name, **{c: t.get(case.name, {}) for c, t in columns.items()}}
        ours, theirs = (row.get(c, {}).get("ms") for c in ("zoo", "torch"))
        if ours and theirs:
            row["zoo / torch"] = ours / theirs
        if case.cost is not None:
            row |= {"flops": case.cost.flops, "bytes": case.cost.nbytes, "dtype": case.cost.dtype}
            if peak is not None and ours:
                row["share of the floor"] = floor_ms(case.cost, peak) / ours
        if case.images and ours:
            row["images/s"] = {c: case.images / row[c]["ms"] * 1e3 for c in columns if row[c].get("ms")}
        rows.append(row)
    return rows


def line_of(row: dict) -> str:
    cells = [f"{row['section'] + ': ' + row['case']:62s}"]
    for column in COLUMNS:
        if column in row:
            cells.append(f"{column} {row[column]['ms']:.3f} ms" if "ms" in row[column] else f"{column} failed")
    for name, form in (("zoo / torch", ".2f"), ("share of the floor", ".0%")):
        cells += [f"{name} {row[name]:{form}}"] if name in row else []
    return " | ".join(cells)


def main() -> int:
    import gpu_check

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda"], default="cuda")
    parser.add_argument("--against", choices=["torch"])
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), default=list(SECTIONS))
    parser.add_argument("--limit", type=float, default=480, help="seconds of a section")
    parser.add_argument("--compile", default="reduce-overhead", help="the mode of torch.compile")
    parser.add_argument("--tiny", action="store_true", help="small shapes, to check the scripts")
    parser.add_argument("--keep", action="store_true", help="other sections of the file stay")
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu")
    args = parser.parse_args()
    import zoo
    if not zoo.cuda.is_available():
        print("gpu: no CUDA GPU was found (ZOO_INTERPRET=1 with --tiny checks the scripts)", file=sys.stderr)
        return 1
    machine = gpu_check.environment()
    args.torch = args.against and machine["torch"] is not None and not zoo.cuda.is_interpreting()
    args.out.mkdir(parents=True, exist_ok=True)
    path, rows = args.out / "gpu.json", []
    if args.keep and path.exists():
        rows = [r for r in json.loads(path.read_text())["rows"] if r["section"] not in args.only]
    for section in args.only:
        new = rows_of(section, measured(section, args, args.out), machine["gpu"], args.tiny)
        rows += [row | {"commit": machine["commit"], "date": machine["date"]} for row in new]
        path.write_text(json.dumps({**machine, "tiny": args.tiny, "rows": rows}, indent=1))
        (args.out / "roofline.svg").write_text(roofline(rows, machine["gpu"]))
    for row in rows:
        print(line_of(row))
    return int(any("ms" not in row.get("zoo", {}) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
