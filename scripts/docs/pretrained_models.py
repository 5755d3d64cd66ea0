"""Writes docs/pretrained-models.md from the rows of pretrained weights.

    python scripts/docs/pretrained_models.py            # writes the page
    python scripts/docs/pretrained_models.py --check    # fails if the page is not what would be written
"""

import argparse
import sys
from pathlib import Path

from zoo.models import weights
from zoo.models.weights import Weights

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pretrained-models.md"
BYTES = {"float32": 4, "float16": 2}
INTRODUCTION = """\
# Pretrained models

<!-- Written by scripts/docs/pretrained_models.py from zoo.models.weights: do not edit. -->

```python
from zoo import hub

model = hub.load("resnet50")                     # the default weights, here {default}
model = hub.load("resnet50", weights="tv")       # torchvision's first weights
model = hub.load("resnet50.tv2_in1k")            # by name
probabilities = model(model.preprocess("photo.jpg")[None]).softmax(1)
```

{count} weights for {models} models. **Bold** tags are the defaults. Accuracies are those that the source publishes,
measured with pictures of the given side. *Picture* is what `model.preprocess` does: resize the shorter side, crop the
centre. Nothing here was measured by us, except for weights that come with the package.

*Hash* says what a download is checked against: `sha256` is known in full, `prefix` are its first digits, and `hub` is
what the Hub announces. *Version* is a full commit of the repository, or `main`, which the first load pins.
"""
HEAD = ("tag", "top-1", "top-5", "side", "picture", "size", "licence", "hash", "version", "notes")


def cells(row: Weights) -> tuple[str, ...]:
    """One line of a model's table."""
    tag = f"[`{row.tag}`]({link(row)})"
    picture = ""
    if row.preprocessing:
        picture = f"{row.preprocessing.resize} / {row.preprocessing.crop} {row.preprocessing.interpolation}"
    return (
        f"**{tag}**" if weights.get("default", row.model) is row else tag,
        "<br>".join(f"{m.top1:.3f}" for m in row.metrics),
        "<br>".join("" if m.top5 is None else f"{m.top5:.3f}" for m in row.metrics),
        "<br>".join(str(m.resolution) for m in row.metrics),
        picture,
        size(row),
        row.licence,
        "sha256" if row.sha256 else f"prefix `{row.sha256_prefix}`" if row.sha256_prefix else "hub",
        "" if row.revision is None else f"`{row.revision[:7]}`" if row.revision_seen else "main",
        row.note if row.bits_per_character is None else f"{row.bits_per_character} bits per character; {row.note}",
    )


def size(row: Weights) -> str:
    """The file's size: exact, as its source prints it, or that of its numbers alone."""
    if row.size:
        return f"{row.size / 1e6:.2f} MB"
    return row.size_text or f"~{row.parameters * BYTES[row.dtype] / 1e6:.0f} MB"


def link(row: Weights) -> str:
    """Where a reader finds the weights."""
    scheme, _, rest = row.source.partition("://")
    if scheme == "hf":
        return f"https://huggingface.co/{'/'.join(rest.split('/')[:2])}"
    return row.source if scheme == "https" else f"../{rest.removeprefix('zoo.')}"


def page() -> str:
    """The whole page."""
    rows = weights.rows()
    models = list(dict.fromkeys(row.model for row in rows))
    parts = [INTRODUCTION.format(count=len(rows), models=len(models), default=weights.get("resnet50").name)]
    for model in models:
        mine = weights.rows(f"{model}.*")
        parts.append(f"\n## {model}\n\n{mine[0].parameters:,} parameters.\n\n")
        lines = [HEAD, ("---",) * len(HEAD), *map(cells, mine)]
        parts += ["| " + " | ".join(line) + " |\n" for line in lines]
    return "".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes docs/pretrained-models.md.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    if not parser.parse_args().check:
        PAGE.write_text(page())
        return 0
    if PAGE.read_text() == page():
        return 0
    print(f"{PAGE} is not what zoo.models.weights says: run python scripts/docs/pretrained_models.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
