"""The roofline picture: what each case reaches, beside what memory and arithmetic allow."""
import math
from html import escape

from gpu_floors import peak_of

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 460, 70, 40, 50
COLOURS = {"zoo": "#2f6fdf", "zoo graph": "#2f9e6e", "torch": "#d9622b", "torch.compile": "#8a4fbf"}
INTENSITY, SPEED = (-1.0, 4.0), (-3.0, 3.0)      # powers of ten of FLOP a byte, and of TFLOP/s


def place(intensity: float, speed: float) -> tuple[float, float]:
    """Where a point lies in the picture; what is outside lies on its edge."""
    x = (min(max(math.log10(intensity), INTENSITY[0]), INTENSITY[1]) - INTENSITY[0]) / (INTENSITY[1] - INTENSITY[0])
    y = (min(max(math.log10(speed), SPEED[0]), SPEED[1]) - SPEED[0]) / (SPEED[1] - SPEED[0])
    return LEFT + (WIDTH - LEFT - 20) * x, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y


def text(x: float, y: float, words: str, colour: str = "#59636e", anchor: str = "start") -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="12" font-family="sans-serif" fill="{colour}" '
            f'text-anchor="{anchor}">{words}</text>')


def roof(gpu: str) -> list[str]:
    """The two limits of the GPU, if they are known."""
    peak = peak_of(gpu)
    if peak is None:
        return []
    most = peak.flops["bfloat16"]
    ends = [10 ** INTENSITY[0], most / peak.copy, 10 ** INTENSITY[1]]
    points = " ".join("{:.1f},{:.1f}".format(*place(i, min(i * peak.copy, most) / 1e12)) for i in ends)
    return [f'<polyline fill="none" stroke="#1f2328" points="{points}"/>']


def roofline(rows: list[dict], gpu: str) -> str:
    """The rows that count operations as an SVG picture: FLOP a byte against TFLOP/s, both logarithmic."""
    parts = [text(LEFT, 20, f"TFLOP/s on {gpu}", "#1f2328")]
    for k in range(int(INTENSITY[0]), int(INTENSITY[1]) + 1):
        parts.append(text(place(10.0**k, 1)[0], HEIGHT - BOTTOM + 18, f"{10.0**k:g}", anchor="middle"))
    for k in range(int(SPEED[0]), int(SPEED[1]) + 1):
        parts.append(text(LEFT - 8, place(1, 10.0**k)[1] + 4, f"{10.0**k:g}", anchor="end"))
    parts += [text(WIDTH - 20, HEIGHT - 12, "FLOP a byte", anchor="end"), *roof(gpu)]
    for number, (column, colour) in enumerate(COLOURS.items()):
        parts.append(text(LEFT + 230 + 110 * number, 20, column, colour))
        for row in rows:
            if row.get("flops") and row.get(column, {}).get("ms"):
                x, y = place(row["flops"] / row["bytes"], row["flops"] / row[column]["ms"] / 1e9)
                title = escape(f"{row['case']}: {row[column]['ms']:.3f} ms")
                circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}">'
                parts.append(f"{circle}<title>{title}</title></circle>")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
            f'height="{HEIGHT}">{"".join(parts)}</svg>')
