"""README's table of speed on a GPU from scripts/bench/results/gpu/gpu.json, which gpu.py writes.

    python scripts/bench/gpu_table.py

One line for each case: milliseconds with their tenth and ninetieth percentile, zoo's time by that of torch's eager
mode, the part of the floor that memory and arithmetic set, and the most memory that arrays held in either's eager mode.
"""
import json
import sys
from pathlib import Path

from gpu import COLUMNS
from rows import RESULTS


def cell(times: dict) -> str:
    """The times of one library and mode."""
    if "ms" in times:
        return f"{times['ms']:.3g} ms ({times['p10']:.3g} to {times['p90']:.3g})"
    return "failed" if "error" in times else ""


def table(found: dict) -> str:
    """The lines, and what they were measured with."""
    lines = [f"| case | {' | '.join(COLUMNS)} | zoo / torch | of the floor | GB, zoo / torch |",
             "|---" * (len(COLUMNS) + 4) + "|"]
    for row in found["rows"]:
        times = " | ".join(cell(row.get(column, {})) for column in COLUMNS)
        ratio = f"{row['zoo / torch']:.2f}" if "zoo / torch" in row else ""
        share = f"{row['share of the floor']:.0%}" if "share of the floor" in row else ""
        peaks = [row.get(column, {}).get("peak GB") for column in ("zoo", "torch")]
        memory = " / ".join("" if peak is None else f"{peak:.2f}" for peak in peaks)
        lines.append(f"| {row['case']} | {times} | {ratio} | {share} | {memory.strip(' /')} |")
    machine = (f"{found['gpu']}, Triton {found['triton']}, Python {found['python']}, torch {found['torch']}, commit "
               f"{found['commit'][:9]}, {found['date'][:10]}.")
    return "\n".join([*lines, "", machine])


if __name__ == "__main__":
    path = RESULTS / "gpu" / "gpu.json"
    if not path.exists():
        sys.exit(f"gpu_table: {Path(path).name} is not there: scripts/gpu_session.py says how it is measured")
    print(table(json.loads(path.read_text())))
