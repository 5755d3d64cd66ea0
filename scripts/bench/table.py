"""README's tables of speed on the CPU from scripts/bench/results/cpu.json, which run.py writes.

    python scripts/bench/table.py [--write]

Prints the tables; with --write puts them between the two comments in README.md that begin with `speed`.
"""
import json
import re
import sys

from rows import RESULTS, ROOT, others, shown

PLACE = re.compile(r"(<!-- speed.*? -->\n).*?(<!-- speed end -->)", re.DOTALL)
WAYS = ", forward", ", forward+backward"


def ratio(r: dict) -> str:
    return f"{r['ratio']:.2f} ({r['p10']:.2f} to {r['p90']:.2f})"


def with_numba(r: dict) -> str:
    return f"{r['numba']['ratio']:.2f}" if "numba" in r else ""


def large(rows: list[dict]) -> list[str]:
    """One line for each row of layers, steps, models and memory, and for each layout of torch's."""
    lines = ["| case | zoo | torch | zoo / torch (10th to 90th percentile) | with Numba | wanted |",
             "|---|---|---|---|---|---|"]
    for row in rows:
        for other in others(row):
            r = row[other]
            if other != "torch" and r["wanted"] is None:
                continue
            name = row["case"] + (", one thread" if row["threads"] == 1 else "") + (
                "" if other == "torch" else f"; torch {other}")
            wanted = "" if r["wanted"] is None else f"{r['wanted']:.2f}"
            values = f"{shown(row, row['zoo'])} | {shown(row, r['value'])}"
            lines.append(f"| {name} | {values} | {ratio(r)} | {with_numba(r)} | {wanted} |")
    return lines


def ops(rows: list[dict]) -> list[str]:
    """One line for each op."""
    found: dict[str, dict] = {}
    for row in rows:
        name, way = next((row["case"].removesuffix(way), way) for way in WAYS if row["case"].endswith(way))
        found.setdefault(name, {})[way] = f"{ratio(row['torch'])} | {with_numba(row['torch'])}"
    lines = ["| op, zoo / torch | forward | with Numba | forward + backward | with Numba |", "|---|---|---|---|---|"]
    return lines + [f"| {name} | {' | '.join(r.get(way, ' | ') for way in WAYS)} |" for name, r in found.items()]


def table() -> str:
    found = json.loads((RESULTS / "cpu.json").read_text())
    rows = found["rows"]
    of_ops = [row for row in rows if row["section"] == "ops"]
    loads = sorted(row["load"] for row in rows)
    machine = (f"Python {found['python']}, NumPy {found['numpy']}, torch {found['torch']}; {found['cores']} cores of "
               f"{found['machine']}; {found['rounds']} rounds; load of the machine {loads[0]:.1f} to {loads[-1]:.1f}.")
    return "\n".join([*large([row for row in rows if row not in of_ops]), "", *ops(of_ops), "", machine]) + "\n"


def main() -> int:
    if "--write" not in sys.argv[1:]:
        print(table())
        return 0
    readme = ROOT / "README.md"
    readme.write_text(PLACE.sub(lambda m: m[1] + table() + m[2], readme.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
