"""The commands of python -m zoo.hub: each takes its parsed options and returns a Report."""

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from zoo.checkpoint import convert as convert_file
from zoo.hub import cache as cached
from zoo.hub import listing
from zoo.hub.loading import load
from zoo.hub.plot import draw
from zoo.hub.predicting import predict as predict_pictures
from zoo.models import weights as weights_of
from zoo.models.preprocess import opened
from zoo.models.weights import Weights

MB = 1_000_000


class Report(NamedTuple):
    """What a command found: for --json, for people, and the exit status."""

    data: Any
    text: str
    status: int = 0


def table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows as aligned columns; numbers to the right.

    Example:
        >>> print(table(["name", "MB"], [["resnet18", 46.8], ["vgg16", 553.0]]))
        name         MB
        resnet18   46.8
        vgg16     553.0
    """
    cells = [["" if v is None else str(v) for v in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    right = [any(isinstance(row[k], (int, float)) for row in rows) for k in range(len(headers))]
    lines = ([cell.rjust(width) if number else cell.ljust(width)
              for cell, width, number in zip(line, widths, right, strict=True)] for line in [headers, *cells])
    return "\n".join("  ".join(line).rstrip() for line in lines)


def megabytes(size: int | None) -> float | None:
    """Bytes as MB (10^6), to a tenth."""
    return None if size is None else round(size / MB, 1)


def list_names(options: argparse.Namespace) -> Report:
    """the models, or the pretrained weights"""
    names = listing.list_names(options.pattern, pretrained=options.pretrained)
    if not names:
        known = listing.list_names(pretrained=options.pretrained)
        raise ValueError(f"no name fits {options.pattern!r}; there are {len(known)}, from {known[0]} to {known[-1]}")
    if not options.pretrained:
        return Report(names, "\n".join(names))
    rows = [weights_of.get(name) for name in names]
    columns = ["name", "top-1 %", "px", "parameters M", "size", "licence"]
    text = table(columns, [[row.name, *best(row), round(row.parameters / MB, 1), size_of(row), row.licence]
                           for row in rows])
    return Report([asdict(row) | {"name": row.name} for row in rows], text)


def best(row: Weights) -> tuple[float | None, int | None]:
    """The highest top-1 accuracy of a row, and the pictures' side it was measured at."""
    metric = max(row.metrics, key=lambda m: m.top1, default=None)
    return (None, None) if metric is None else (metric.top1, metric.resolution)


def size_of(row: Weights) -> str:
    """The size of a row's file, as exactly as it is known."""
    return f"{megabytes(row.size)} MB" if row.size else row.size_text


def info(options: argparse.Namespace) -> Report:
    """source, licence, accuracy and preprocessing of weights"""
    found = listing.info(options.model, options.weights)
    return Report(asdict(found.row) | {"name": found.row.name, "tags": found.tags}, str(found))


def access(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments that hub.load and hub.download share."""
    return {"weights": options.weights, "offline": options.offline, "cache_dir": options.cache_dir}


def download(options: argparse.Namespace) -> Report:
    """the file of a model's weights, into the cache"""
    start = time.perf_counter()
    path = listing.download(options.model, **access(options))
    seconds, size = time.perf_counter() - start, path.stat().st_size
    data = {"path": str(path), "size": size, "seconds": round(seconds, 3)}
    return Report(data, f"{path}\n{megabytes(size)} MB, hash checked, {seconds:.2f} s")


def verify(options: argparse.Namespace) -> Report:
    """hash every cached file anew; bad ones are deleted"""
    results = cached.verify(options.pattern, remove=not options.keep, cache_dir=options.cache_dir)
    bad = sum(problem is not None for _, problem in results)
    rows = [["bad" if problem else "ok", megabytes(entry.size), entry.source] for entry, problem in results]
    summary = f"{len(results)} files, {bad} bad" + (", deleted" if bad and not options.keep else "")
    data = [{"source": entry.source, "path": str(entry.path), "problem": problem} for entry, problem in results]
    return Report(data, (table(["state", "MB", "source"], rows) + "\n" if rows else "") + summary, int(bad > 0))


def predict(options: argparse.Namespace) -> Report:
    """what is in pictures, with probabilities"""
    if options.plot and len(options.picture) != 1:
        raise ValueError(f"--plot: wants one picture, got {len(options.picture)}")
    model = load(options.model, **access(options))
    found = predict_pictures(model, options.picture, options.topk)
    if options.plot:
        draw(opened(options.picture[0]), found[0], f"{options.model} on {Path(options.picture[0]).name}").save(
            options.plot)
    text = []
    for picture, predictions in zip(options.picture, found, strict=True):
        text += [picture] if len(found) > 1 else []
        text += [f"{p.probability:7.2%}  {p.label}" for p in predictions]
    data = [{"picture": picture, "predictions": [p._asdict() for p in predictions]}
            for picture, predictions in zip(options.picture, found, strict=True)]
    return Report(data, "\n".join(text))


def convert(options: argparse.Namespace) -> Report:
    """a checkpoint from one format to another, running none of its code"""
    state = convert_file(options.source, options.target, key=options.key, dtype=options.dtype)
    size = Path(options.target).stat().st_size
    data = {"target": options.target, "size": size, "tensors": len(state), "unwrapped": state.wrappers,
            "dropped": state.dropped}
    text = f"{options.target}: {len(state)} tensors, {megabytes(size)} MB"
    text += f"; taken out of {' / '.join(state.wrappers)}" if state.wrappers else ""
    return Report(data, text + (f"; left out: {', '.join(state.dropped)}" if state.dropped else ""))


def cache(options: argparse.Namespace) -> Report:
    """the files in the cache and their size; --prune removes some"""
    limits = {"max_size": options.max_size, "older_than": options.older_than}
    if not options.prune:
        if options.dry_run or any(v is not None for v in limits.values()):
            raise ValueError("--max-size, --older-than and --dry-run go with --prune")
        entries, done = cached.entries(options.pattern, options.cache_dir), "in the cache"
    else:
        if options.max_size is not None:
            limits["max_size"] = int(options.max_size * MB)
        entries = cached.prune(options.pattern, **limits, dry_run=options.dry_run, cache_dir=options.cache_dir)
        done = "would go" if options.dry_run else "removed"
    rows = [[megabytes(e.size), time.strftime("%Y-%m-%d", time.localtime(e.last_read)), e.source] for e in entries]
    summary = f"{len(entries)} files, {megabytes(sum(e.size for e in entries))} MB {done}"
    data = [asdict(e) | {"path": str(e.path)} for e in entries]
    return Report(data, (table(["MB", "last read", "source"], rows) + "\n" if rows else "") + summary)
