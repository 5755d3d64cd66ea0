"""The handwritten digits as PNG files, a folder for each class: real data for the other scripts and for --data.

    python scripts/digit_pictures.py FOLDER [--size 8] [--per-class 0] [--ink black]

Writes FOLDER/train/0/*.png ... and FOLDER/val/0/*.png ...: zoo.data's 1,437 digits to train with and 360 to test with.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from zoo.data import digits

INKS = {
    "black": lambda pixels: 255 - pixels,              # on white, as people write
    "white": lambda pixels: pixels,                    # on black, as zoo.data has them
    "chalk": lambda pixels: 64 + pixels // 2,          # light grey on a dark grey board
}


def write_digits(folder: Path, size: int = 8, per_class: int = 0, ink: str = "black") -> None:
    """Writes both parts.

    Args:
        folder: gets the folders train and val.
        size: pixels of a picture's sides; more than 8 are interpolated.
        per_class: so many training pictures of each class; 0: all.
        ink: a key of INKS.
    """
    for part, train in (("train", True), ("val", False)):
        images, labels = digits(train).tensors
        pixels = np.round(255 * images[:, 0].numpy()).astype(np.uint8)
        counts = [0] * 10
        for number, (picture, label) in enumerate(zip(pixels, labels.tolist(), strict=True)):
            counts[label] += 1
            if train and 0 < per_class < counts[label]:
                continue
            image = Image.fromarray(INKS[ink](picture))
            path = folder / part / str(label) / f"{number:04}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            image.resize((size, size), Image.Resampling.BICUBIC).save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, default=8, help="pixels of a picture's sides (8)")
    parser.add_argument("--per-class", type=int, default=0, help="so many training pictures of each class; 0: all")
    parser.add_argument("--ink", choices=INKS, default="black", help="on a background that fits (black)")
    args = parser.parse_args()
    write_digits(args.folder, args.size, args.per_class, args.ink)
    print(f"wrote {sum(1 for _ in args.folder.rglob('*.png')):,} pictures to {args.folder}")


if __name__ == "__main__":
    main()
