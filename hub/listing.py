"""hub.list, hub.info, hub.path and hub.download: what there is, what is said of it, and where its file lies."""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from zoo.hub.loading import fetch_first
from zoo.hub.resolving import resolve
from zoo.models import registry
from zoo.models import weights as weights_of
from zoo.models.weights import Weights


def list_names(pattern: str = "*", *, pretrained: bool = False) -> list[str]:
    """hub.list: the names that hub.load takes.

    Args:
        pattern: with * and ?, of a model or of its weights: "resnet*", "*.tv_in1k".
        pretrained: list the weights ("resnet50.a1_in1k") instead of the models ("resnet50").

    Returns:
        The names, numbers in them in their order.

    Example:
        >>> from zoo import hub
        >>> hub.list("resnet1*")
        ['resnet14', 'resnet18', 'resnet101', 'resnet110', 'resnet152']
        >>> hub.list("alexnet", pretrained=True)
        ['alexnet.IMAGENET1K_V1']
    """
    if pretrained:
        return sorted((row.name for row in weights_of.rows(pattern)), key=natural)
    return sorted((name for name in registry.names() if fnmatchcase(name, pattern)), key=natural)


def natural(name: str) -> tuple:
    """Sorts resnet18 before resnet101.

    Example:
        >>> sorted(["a10", "a9", "a"], key=natural)
        ['a', 'a9', 'a10']
    """
    return tuple((int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name))


@dataclass(frozen=True)
class Info:
    """What is known of weights: the row that is meant, whether it is the default, the tags there are.

    Printed, it is a table.
    """

    row: Weights
    default: bool
    tags: tuple[str, ...]

    def rows(self) -> list[tuple[str, str]]:
        """(name, value) of each line of the table."""
        row = self.row
        size = f"{row.size:,} bytes" if row.size else row.size_text
        sha256 = row.sha256 or (f"{row.sha256_prefix}... (as far as published)" if row.sha256_prefix else "")
        lines = [("name", row.name + (" (default)" if self.default else "")), ("source", row.source),
                 ("licence", row.licence), ("parameters", f"{row.parameters:,}"), ("size", size),
                 ("dtype", row.dtype), ("sha256", sha256 or "not known before the first load")]
        lines += [("accuracy", accuracy(metric)) for metric in row.metrics]
        if row.bits_per_character is not None:
            lines.append(("bits/char", f"{row.bits_per_character:g}"))
        if row.preprocessing:
            p = row.preprocessing
            lines.append(("pictures", f"shorter side to {p.resize} ({p.interpolation}), centre {p.crop}x{p.crop}, "
                                      f"{p.channels} channels, mean {p.mean}, std {p.std}"))
        kind = "classes" if row.preprocessing else "outputs"
        lines += [(kind, f"{row.num_classes}" + (f" ({row.labels})" if row.labels else "")), ("note", row.note),
                  ("all tags", ", ".join(self.tags))]
        return [(name, value) for name, value in lines if value]

    def __str__(self) -> str:
        return "\n".join(f"{name:10}  {value}" for name, value in self.rows())


def accuracy(metric: Any) -> str:
    """One line for a Metric."""
    top5 = f", top-5 {metric.top5:g} %" if metric.top5 is not None else ""
    crop = f", crop {metric.crop_pct:g}" if metric.crop_pct is not None else ""
    return f"top-1 {metric.top1:g} %{top5} at {metric.resolution} px{crop} ({metric.dataset})"


def info(name: str, weights: str = "default") -> Info:
    """What is known of a model's weights, without a request.

    Args:
        name: a model ("resnet50"), or a model and its weights ("resnet50.tv_in1k").
        weights: a tag, or "default".

    Returns:
        Info; `info.row` is the row of zoo.models.weights, `print(info)` a table.

    Raises:
        ValueError: no such model or weights; the message has the nearest names.

    Example:
        >>> from zoo import hub
        >>> hub.info("resnet50").row.licence
        'apache-2.0'
    """
    row = resolve(name, weights, {}).row
    if row is None:
        raise ValueError(f"info: {name} has no row; hub.list(pretrained=True) has those that do")
    tags = tuple(r.tag for r in weights_of.rows() if r.model == row.model)
    return Info(row, weights_of.get(row.model) == row, tags)


def download(
    name: str, weights: Any = "default", *, progress: bool = True, offline: bool | None = None, cache_dir: Any = None,
    token: str | bool | None = None,
) -> Path:
    """Puts the file of a model's weights into the cache, and returns its path; its hash is checked in any case.

    Args:
        name, weights, progress, offline, cache_dir, token: as hub.load takes them.

    Returns:
        The file's path; treat it as read-only.

    Raises:
        ValueError: no such model or weights. HubError: the file is not to be had, or not what it should be.

    Example:
        >>> from zoo import hub
        >>> hub.download("resnet20_digits").name
        'resnet20_digits.safetensors'
    """
    access = {"progress": progress, "offline": offline, "cache_dir": cache_dir, "token": token}
    plan = resolve(name, weights, access)
    if not plan.sources:
        raise ValueError("download: wants weights that have a file, got weights=None")
    with fetch_first(plan, access) as found:
        return found.path


def path(name: str, weights: Any = "default", *, cache_dir: Any = None) -> Path:
    """Where the file of a model's weights lies in the cache, without a request.

    Raises:
        HubError: it is not in the cache; hub.download puts it there.

    Example:
        >>> from zoo import hub
        >>> hub.path("resnet20_digits") == hub.download("resnet20_digits")
        True
    """
    return download(name, weights, progress=False, offline=True, cache_dir=cache_dir)
