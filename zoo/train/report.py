"""report.html: what came of a run, in one file that needs no other."""

import dataclasses
import html
from pathlib import Path
from typing import Any

import zoo
from zoo.checkpoint.atomic import replacing
from zoo.train.charts import confusion_picture, curves, embedded, enlarged, heated
from zoo.train.evaluation import Miss, Result
from zoo.train.run import Counts
from zoo.utils.grad_cam import grad_cam

STYLE = """
body { font: 15px/1.5 sans-serif; color: #1f2328; max-width: 980px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
figure { display: inline-block; margin: 0 12px 16px 0; }
figcaption { font-size: 12px; color: #59636e; max-width: 236px; }
img { margin-right: 6px; } td { padding: 1px 14px 1px 0; }
table { border-collapse: collapse; font-size: 13px; } td:first-child { color: #59636e; }
"""


def write_report(path: Path, task: Any, model: Any, counts: Counts, result: Result) -> None:
    """Writes report.html: curves, confusion matrix, the worst errors with where the model looked, the config.

    Args:
        path: of the file. task: an ImageTask. model: the one that was tested, in eval mode.
        counts: of the run; its rows give the curves. result: of the test.

    Raises:
        OSError: the file cannot be written.
    """
    title = f"{task.config.model} on {task.config.data}: {result.accuracy:.2%} on {result.part}"
    epochs = [row for row in counts.rows if "epoch" in row]
    sections = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p>{result.hits:,} of {result.count:,} pictures right, mean loss {result.loss:.4f}; {counts.step:,} steps, "
        f"{counts.rows[-1]['seconds']:,.1f} s." + broken_text(counts) + "</p>",
        "<h2>Curves</h2>",
        curves("loss", named_series(epochs, "loss")),
        curves("accuracy", named_series(epochs, "accuracy"), percent=True),
        f"<h2>Confusion matrix</h2><p>Rows: the class. Columns: what the model took it for ({result.part}).</p>",
        embedded(confusion_picture(result.confusion, task.classes), "confusion matrix"),
        "<h2>The surest errors</h2>",
        *errors(task, model, result),
        "<h2>Config</h2>",
        table(dataclasses.asdict(task.config)),
    ]
    page = (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
            f"<style>{STYLE}</style></head><body>{''.join(sections)}</body></html>\n")
    with replacing(path) as file:
        file.write(page.encode())


def named_series(epochs: list[dict[str, Any]], name: str) -> dict[str, list[float]]:
    """A column of the metrics, of training and, where there is one, of validation."""
    found = {"training": [row[name] for row in epochs]}
    if epochs and f"val_{name}" in epochs[0]:
        found["validation"] = [row[f"val_{name}"] for row in epochs]
    return found


def broken_text(counts: Counts) -> str:
    """A sentence on pictures that could not be read, if there were some."""
    return f" {len(counts.broken)} broken pictures were skipped." if counts.broken else ""


def errors(task: Any, model: Any, result: Result) -> list[str]:
    """The worst errors: each picture, and beside it where Grad-CAM says that the wrong class was seen."""
    if not result.misses:
        return ["<p>There are none.</p>"]
    layer = model.feature_info.module_name()[-1]
    found = [(miss, *task.picture(result.part, miss.number)) for miss in result.misses]
    images = zoo.stack([x for _, x, _ in found]).to(task.config.device)
    classes = zoo.tensor([miss.predicted for miss, _, _ in found], device=task.config.device)
    heats = grad_cam(model, layer, images, classes).cpu().numpy()
    return [figure(task.classes, miss, shown, heat) for (miss, _, shown), heat in zip(found, heats, strict=True)]


def figure(classes: list[str], miss: Miss, shown: Any, heat: Any) -> str:
    """One error: picture, heat map and words."""
    words = f"{classes[miss.label]} taken for {classes[miss.predicted]} ({miss.probability:.1%})"
    pictures = embedded(enlarged(shown), words) + embedded(enlarged(heated(shown, heat)), "Grad-CAM")
    return f"<figure>{pictures}<figcaption>{html.escape(words)}</figcaption></figure>"


def table(rows: dict[str, Any]) -> str:
    """Names and values in two columns."""
    cells = (f"<tr><td>{html.escape(str(k))}</td><td>{html.escape(str(v))}</td></tr>" for k, v in rows.items())
    return f"<table>{''.join(cells)}</table>"
