"""What the tests of python -m zoo.train share: small folders of pictures, runs, and what is left of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.house import ROOT
from zoo.data import digits
from zoo.train.__main__ import main

TIMES = ("images_per_second", "seconds")         # they differ from run to run


def write_pictures(root: Path, train: int = 48, others: int = 16, classes: int = 3, side: int = 12) -> Path:
    """Digits as PNG files in train/, val/ and test/."""
    from PIL import Image

    images, labels = (t.numpy() for t in digits(train=True).tensors)
    chosen = np.flatnonzero(labels < classes)[: train + 2 * others]
    parts = ["train"] * train + ["val"] * others + ["test"] * others
    for part, k in zip(parts, chosen, strict=True):
        folder = root / part / f"digit{labels[k]}"
        folder.mkdir(parents=True, exist_ok=True)
        picture = Image.fromarray((images[k, 0] * 255).astype(np.uint8)).resize((side, side))
        picture.convert("RGB").save(folder / f"{k}.png")
    return root


def train(out: Path, *options: str) -> Path:
    """Runs the command here; the folder of its run."""
    before = set(out.iterdir()) if out.exists() else set()
    assert main([*options, "--out", str(out)]) == 0
    (folder,) = set(out.iterdir()) - before
    return folder


def command(*options: str, **streams) -> subprocess.Popen:
    """Starts the command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-m", "zoo.train", *options], text=True, env=environment, **streams)


def rows(folder: Path) -> list[dict]:
    """The lines of metrics.jsonl."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def outcome(folder: Path) -> tuple[list[dict], dict[str, bytes]]:
    """What has to be equal, bit for bit: metrics but for times, weights, errors of the report."""
    metrics = [{k: v for k, v in row.items() if k not in TIMES} for row in rows(folder)]
    return metrics, {p.name: p.read_bytes() for p in (*folder.glob("*.safetensors"), *folder.glob("model/*"))}
