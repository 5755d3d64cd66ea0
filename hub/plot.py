"""A picture beside the bars of what a model sees in it, drawn with Pillow."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zoo.hub.predicting import Prediction

if TYPE_CHECKING:
    from PIL.Image import Image

MARGIN, SIDE, PANEL, ROW = 24, 448, 448, 60          # pixels: border, the picture's box, width of the bars, one bar
WHITE, INK, GREY, TRACK, BLUE = "#ffffff", "#1f2328", "#59636e", "#eaeef2", "#2f6fdf"


def draw(picture: "Image", predictions: Sequence[Prediction], title: str = "") -> "Image":
    """The picture on the left, one bar per prediction on the right.

    Args:
        picture: of any mode and size.
        predictions: as hub.predict gives them, the most probable first.
        title: a line above the bars.

    Returns:
        An RGB image of 968 pixels' width.

    Example:
        >>> from PIL import Image
        >>> draw(Image.new("RGB", (40, 30)), [Prediction("cat", 0.9, 0), Prediction("dog", 0.1, 1)]).size
        (968, 496)
    """
    from PIL import Image, ImageDraw, ImageOps

    height = max(SIDE, ROW * (len(predictions) + bool(title)))
    canvas = Image.new("RGB", (3 * MARGIN + SIDE + PANEL, height + 2 * MARGIN), WHITE)
    shown = ImageOps.contain(picture.convert("RGB"), (SIDE, SIDE), Image.Resampling.BICUBIC)
    canvas.paste(shown, (MARGIN + (SIDE - shown.width) // 2, MARGIN + (height - shown.height) // 2))
    pen = ImageDraw.Draw(canvas)
    left, top = 2 * MARGIN + SIDE, MARGIN + (height - ROW * (len(predictions) + bool(title))) // 2
    if title:
        write(pen, (left, top + 8), title, PANEL, GREY)
        top += ROW
    for number, prediction in enumerate(predictions):
        bar(pen, left, top + ROW * number, prediction)
    return canvas


def bar(pen, left: int, top: int, prediction: Prediction) -> None:
    """The label and its percentage, and under them a bar as long as the probability."""
    percent = f"{prediction.probability:.1%}"
    room = pen.textlength(percent, font=font())
    pen.text((left + PANEL - room, top + 4), percent, INK, font())
    write(pen, (left, top + 4), prediction.label, PANEL - room - MARGIN, INK)
    for width, colour in ((PANEL, TRACK), (round(PANEL * prediction.probability), BLUE)):
        if width:
            pen.rounded_rectangle((left, top + 30, left + width - 1, top + 44), min(4, width // 2), colour)


def write(pen, place: tuple[float, float], text: str, width: float, colour: str) -> None:
    """The text in one line, cut to the width."""
    if pen.textlength(text, font=font()) > width:
        while text and pen.textlength(text + "…", font=font()) > width:
            text = text[:-1]
        text = text.rstrip() + "…"
    pen.text(place, text, colour, font())


def font():
    """The typeface that comes with Pillow."""
    from PIL import ImageFont

    return ImageFont.load_default(18)
