"""README's table of overheads from scripts/bench/results/overhead.json.

    python scripts/bench/table.py [--write]

Prints the table; with --write puts it between the two comments in README.md that begin with `overhead`.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PLACE = re.compile(r"(<!-- overhead.*? -->\n).*?(<!-- overhead end -->)", re.DOTALL)


def table() -> str:
    found = json.loads((ROOT / "scripts/bench/results/overhead.json").read_text())
    lines = [
        "| case, one thread each | zoo | torch | zoo / torch (10th to 90th percentile) | wanted |",
        "|---|---|---|---|---|",
    ]
    for r in found["rows"]:
        ratio = f"{r['ratio']:.2f} ({r['ratio_p10']:.2f} to {r['ratio_p90']:.2f})"
        lines.append(f"| {r['case']} | {r['zoo_us']:.0f} us | {r['torch_us']:.0f} us | {ratio} | {r['wanted']:.2f} |")
    versions = f"Python {found['python']}, NumPy {found['numpy']}, torch {found['torch']}"
    lines.append(f"\n{versions}; {found['cores']} cores of {found['machine']}, load {found['load'][0]:.1f} at the end.")
    return "\n".join(lines) + "\n"


def main() -> int:
    if "--write" not in sys.argv[1:]:
        print(table())
        return 0
    readme = ROOT / "README.md"
    readme.write_text(PLACE.sub(lambda m: m[1] + table() + m[2], readme.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
