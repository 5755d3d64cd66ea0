"""Rows of a benchmark's results: what zoo is compared with, and how that is shown. Imports no library."""
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = Path(__file__).parent / "results"


def quantile(values, q: float) -> float:
    """Linear between neighbours, as numpy.quantile."""
    ordered = sorted(float(v) for v in values)
    place = q * (len(ordered) - 1)
    low = int(place)
    return ordered[low] + (place - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


def against(value: float, ratios, wanted: float | None) -> dict:
    """What a row has for each library that zoo is compared with."""
    low, ratio, high = (quantile(ratios, q) for q in (0.1, 0.5, 0.9))
    return {"value": value, "ratio": ratio, "p10": low, "p90": high, "wanted": wanted,
            "missed": bool(wanted is not None and ratio > wanted)}


def missed(row: dict) -> bool:
    return any(row[other]["missed"] for other in others(row))


def others(row: dict) -> list[str]:
    return [name for name in ("torch", "channels_last") if name in row]


def shown(row: dict, value: float) -> str:
    """A row's value with its unit: seconds, or bytes of the section memory."""
    if row["section"] == "memory":
        return f"{value / 1e6:.0f} MB"
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} us"


def line_of(row: dict) -> str:
    cells = [f"{row['section'] + ': ' + row['case']:72s} zoo {shown(row, row['zoo']):>9s}"]
    for other in others(row):
        r = row[other]
        wanted = "" if r["wanted"] is None else f", wanted {r['wanted']:.2f}{' MISSED' if r['missed'] else ''}"
        numba = f", with Numba {r['numba']['ratio']:.2f}" if "numba" in r else ""
        cells.append(f"{other} {shown(row, r['value']):>9s}: {r['ratio']:.2f} "
                     f"({r['p10']:.2f} to {r['p90']:.2f}){numba}{wanted}")
    return " | ".join(cells)
