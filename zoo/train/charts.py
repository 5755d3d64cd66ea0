"""Drawings of a report: curves as SVG; confusion matrix, sheets of pictures and heat maps with Pillow."""

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

COLOURS = ("#2f6fdf", "#d9622b", "#2f9e6e", "#8a4fbf")
INK, GREY, LINE = "#1f2328", "#59636e", "#d0d7de"
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 460, 240, 56, 34, 30          # pixels of a chart and of its margins
SIDE = 112                                                       # of a picture on a sheet


def curves(title: str, series: dict[str, Sequence[float]], percent: bool = False) -> str:
    """Lines over epochs 1, 2 ... as an SVG element.

    Args:
        title: above the chart. series: name -> a value for each epoch. percent: the values are shares.

    Example:
        >>> from zoo.train.charts import curves
        >>> curves("loss", {"train": [2.0, 1.0]}).startswith("<svg")
        True
    """
    values = [v for line in series.values() for v in line if np.isfinite(v)]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    high = high if high > low else low + 1
    count = max(2, max(map(len, series.values()), default=2))

    def place(k: int, value: float) -> str:
        x = LEFT + (WIDTH - LEFT - 12) * k / (count - 1)
        return f"{x:.1f},{TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low):.1f}"

    parts = [text(LEFT, 18, title, INK, weight="600"), *grid(low, high, percent)]
    parts += [text(LEFT, HEIGHT - 10, "epoch 1", GREY), text(WIDTH - 12, HEIGHT - 10, str(count), GREY, "end")]
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(place(k, v) for k, v in enumerate(line) if np.isfinite(v))
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>')
        dots = [place(k, v).split(",") for k, v in enumerate(line) if np.isfinite(v)] if len(line) < 30 else []
        parts += [f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>' for x, y in dots]
        parts.append(text(WIDTH - 12 - 90 * (len(series) - 1 - number), 18, name, colour, "end"))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
            f'height="{HEIGHT}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>')


def grid(low: float, high: float, percent: bool) -> list[str]:
    """Five horizontal lines with their values."""
    parts = []
    for k in range(5):
        value, y = low + (high - low) * k / 4, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * k / 4
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 12}" y1="{y:.1f}" y2="{y:.1f}" stroke="{LINE}"/>')
        parts.append(text(LEFT - 6, y + 4, f"{value:.1%}" if percent else f"{value:.3g}", GREY, "end"))
    return parts


def text(x: float, y: float, words: str, colour: str, anchor: str = "start", weight: str = "400") -> str:
    """An SVG text element."""
    return (f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}" '
            f'font-size="12" font-family="sans-serif">{escape(words)}</text>')


def confusion_picture(confusion: np.ndarray, classes: Sequence[str]) -> Any:
    """The confusion matrix as a PIL image: darker for a larger share of the row; numbers where there is room.

    Example:
        >>> import numpy as np
        >>> from zoo.train.charts import confusion_picture
        >>> confusion_picture(np.eye(2, dtype=int), ["cat", "dog"]).mode
        'RGB'
    """
    from PIL import Image, ImageDraw

    count = len(classes)
    cell = max(4, min(36, 720 // count))
    named = cell >= 14
    margin = 16 + 7 * min(16, max(map(len, classes))) if named else 8
    image = Image.new("RGB", (margin + count * cell + 8,) * 2, "#ffffff")
    shares = confusion / np.maximum(1, confusion.sum(1, keepdims=True))
    image.paste(Image.fromarray(cells(shares, cell)), (margin, margin))
    pen = ImageDraw.Draw(image)
    for row, column in zip(*np.nonzero(confusion), strict=True) if cell >= 20 else ():
        ink = "#ffffff" if shares[row, column] > 0.5 else INK
        place = margin + (column + 0.5) * cell, margin + (row + 0.5) * cell
        pen.text(place, str(confusion[row, column]), ink, font(11), anchor="mm")
    for row in range(count) if named else ():
        pen.text((margin - 8, margin + (row + 0.5) * cell), classes[row][:16], INK, font(12), anchor="rm")
        sideways(image, classes[row][:16], margin + row * cell, margin, cell)
    return image


def cells(shares: np.ndarray, side: int) -> np.ndarray:
    """Squares, bytes (H, W, 3): from nearly white to blue for hits, to orange for errors, lines between large ones."""
    full = np.where(np.eye(len(shares), dtype=bool)[..., None], (47, 111, 223), (217, 98, 43))
    colours = np.rint(246 + (full - 246) * shares[..., None] ** 0.6).astype(np.uint8)
    made = colours.repeat(side, 0).repeat(side, 1)
    if side >= 8:
        made[side - 1 :: side], made[:, side - 1 :: side] = 255, 255
    return made


def sideways(image: Any, words: str, left: int, bottom: int, width: int) -> None:
    """Words from the bottom to the top, above a column."""
    from PIL import Image, ImageDraw

    label = Image.new("RGB", (bottom - 8, width), "#ffffff")
    ImageDraw.Draw(label).text((0, width / 2), words, INK, font(12), anchor="lm")
    image.paste(label.rotate(90, expand=True), (left, 0))


def sheet(pictures: Sequence[tuple[Any, str]], columns: int = 6) -> Any:
    """PIL images with a line under each, in rows, as one PIL image."""
    from PIL import Image, ImageDraw

    rows = -(-len(pictures) // columns)
    image = Image.new("RGB", (columns * (SIDE + 8), rows * (SIDE + 24)), "#ffffff")
    pen = ImageDraw.Draw(image)
    for number, (picture, words) in enumerate(pictures):
        left, top = number % columns * (SIDE + 8), number // columns * (SIDE + 24)
        image.paste(enlarged(picture), (left, top))
        pen.text((left, top + SIDE + 4), words[:20], INK, font(11))
    return image


def heated(picture: Any, heat: np.ndarray) -> Any:
    """A PIL image under a heat map (H, W) from 0 (dark blue) to 1 (red)."""
    from PIL import Image

    h = np.clip(np.asarray(heat, np.float32), 0, 1)[..., None]
    colour = np.concatenate([np.clip(2 * h - 0.5, 0, 1), 1 - np.abs(2 * h - 1), np.clip(1 - 2 * h, 0, 1)], -1) * 255
    over = Image.fromarray(colour.astype(np.uint8)).resize(picture.size, Image.Resampling.BICUBIC)
    return Image.blend(picture.convert("RGB"), over, 0.45)


def enlarged(picture: Any) -> Any:
    """A picture at the side of the sheet; pixels of a small one stay visible."""
    from PIL import Image

    small = max(picture.size) < SIDE // 2
    return picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.NEAREST if small else Image.Resampling.BICUBIC)


def embedded(picture: Any, alt: str = "") -> str:
    """A PIL image as an HTML element that carries its own PNG."""
    file = io.BytesIO()
    picture.save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    size = f'width="{picture.width}" height="{picture.height}"'
    return f'<img src="data:image/png;base64,{data}" {size} alt="{escape(alt)}">'


def font(size: int) -> Any:
    """The typeface that comes with Pillow."""
    from PIL import ImageFont

    return ImageFont.load_default(size)
