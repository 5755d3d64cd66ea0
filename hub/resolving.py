"""What hub.load's two arguments mean: which model is built, and which file fills it."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from zoo.hub import config
from zoo.hub.client import fetch
from zoo.hub.errors import NotFoundError
from zoo.models import registry
from zoo.models import weights as weights_of
from zoo.models.labels import class_names
from zoo.models.weights import Preprocessing, Weights

REPOSITORY = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[^@\s]+))?")
# torchvision's files carry the first digits of their sha256: resnet50-0676ba61.pth. Elsewhere they may be a date.
HASH_IN_NAME = re.compile(r"https://download\.pytorch\.org/.*-([0-9a-f]{8,64})\.\w+")
WEIGHTS_FILES = ("model.safetensors", "pytorch_model.bin")


@dataclass(frozen=True)
class Plan:
    """What to build and what to fill it with.

    Args:
        model: a name of the model registry. sources: of the file, the first that there is; none for fresh weights.
        expected: what is known of the file beforehand, as arguments of `fetch`: sha256, sha256_prefix, size.
        key_map: the function of zoo.models.key_maps that turns the file's keys into the model's; None: by its keys.
        options: arguments of the builder.
        row: the row of zoo.models.weights, if there is one.
        preprocessing, labels: what the model will carry.
    """

    model: str
    sources: tuple[str, ...] = ()
    expected: dict[str, Any] = field(default_factory=dict)
    key_map: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    row: Weights | None = None
    preprocessing: Preprocessing | None = None
    labels: tuple[str, ...] | None = None


def resolve(name: Any, weights: Any, access: dict[str, Any]) -> Plan:
    """The Plan for hub.load(name, weights).

    Args:
        name, weights: as hub.load takes them.
        access: hub.load's progress, offline, cache_dir and token, for a configuration that has to be fetched.

    Raises:
        ValueError: no such model or weights; the message has the nearest names.
        HubError: a folder or repository that does not describe a model.
    """
    if not isinstance(name, (str, os.PathLike)):
        raise TypeError(f"load: wants a model's name as a str, got {type(name).__name__}")
    if isinstance(name, str) and (name in registry.names() or name in weights_of.REGISTRY):
        return of_model(name, weights)
    if os.path.isdir(name):
        plan = of_folder(Path(name))
    elif isinstance(name, str) and (match := REPOSITORY.fullmatch(name)):
        plan = of_repository(match["repo"], match["revision"], access)
    else:
        raise ValueError(f"load: no model {os.fspath(name)!r}; {nearest(os.fspath(name))}")
    if weights is None:
        return replace(plan, sources=())
    if weights != "default":
        raise ValueError(f"load: {name} has one file of weights; wants weights 'default' or None, got {weights!r}")
    return plan


def of_model(name: str, weights: Any) -> Plan:
    """The Plan for a name of the registries, "resnet50" or "resnet50.a1_in1k"."""
    row = weights_of.REGISTRY.get(name)
    model = row.model if row else name
    if weights is None:
        return Plan(model)
    if isinstance(weights, Weights):
        if weights.model != model:
            raise ValueError(f"load: {weights.name} are weights of {weights.model}, not of {model}")
        return of_row(weights)
    if row is not None and weights == "default":
        return of_row(row)
    if not isinstance(weights, (str, os.PathLike)):
        raise TypeError(f"load: wants weights as a tag, path, address or None, got {type(weights).__name__}")
    text = os.path.expanduser(os.fspath(weights))
    if "://" in text or os.path.isfile(text):
        return of_source(model, text)
    if isinstance(weights, os.PathLike) or os.sep in text:
        raise FileNotFoundError(f"load: there is no file {text}")
    if not weights_of.rows(model):
        raise ValueError(f"load: {model} has no pretrained weights; weights=None builds it with fresh ones")
    return of_row(weights_of.get(text, model))


def of_row(row: Weights) -> Plan:
    """The Plan for a row of the weights' registry."""
    names = class_names(row.labels) if row.labels else None
    expected = {"sha256": row.sha256, "sha256_prefix": row.sha256_prefix, "md5": row.md5,
                "size": row.size}
    return Plan(row.model, (row.source,), expected, row.key_map, row=row, preprocessing=row.preprocessing, labels=names)


def of_source(model: str, source: str) -> Plan:
    """The Plan for weights at a path or an address; one that a row has is that row."""
    for row in weights_of.rows(model):
        if row.source == source:
            return of_row(row)
    named = HASH_IN_NAME.fullmatch(source)
    expected = {"sha256_prefix": named[1]} if named else {}
    return Plan(model, (source,), expected, preprocessing=Preprocessing())


def of_folder(folder: Path) -> Plan:
    """The Plan for a folder with config.json and weights, as hub.save_pretrained writes it.

    Raises:
        HubError: it lacks one of them.
    """
    about, files = folder / "config.json", [folder / f for f in WEIGHTS_FILES if (folder / f).is_file()]
    if not about.is_file() or not files:
        raise NotFoundError(f"load: the folder {folder} wants config.json and one of {', '.join(WEIGHTS_FILES)}")
    return of_config(config.parse(about.read_bytes(), str(about)), map(str, files))


def of_repository(repo: str, revision: str | None, access: dict[str, Any]) -> Plan:
    """The Plan for a repository of the Hub; one that a row has is that row, unless a revision is asked for.

    The weights are asked for at the commit that the configuration came from, so that the two belong together.
    """
    for row in weights_of.rows():
        if revision is None and row.source.startswith(f"hf://{repo}/"):
            return of_row(row)
    with fetch(f"hf://{repo}/config.json@{revision or 'main'}", **(access | {"progress": False})) as found:
        about = config.parse(found.file.read(), f"{repo}/config.json")
        commit = found.commit
    return of_config(about, (f"hf://{repo}/{name}@{commit}" for name in WEIGHTS_FILES))


def of_config(about: config.Config, sources: Iterable[str]) -> Plan:
    """The Plan for weights with a config.json beside them."""
    if about.architecture not in registry.names():
        raise ValueError(f"load: config.json names the model {about.architecture!r}; {nearest(about.architecture)}")
    options = about.model_args
    if about.in_chans:
        options = options | {"num_classes": about.num_classes, "in_chans": about.in_chans}
    return Plan(about.architecture, tuple(sources), options=options, preprocessing=about.preprocessing,
                labels=about.labels)


def default_labels(num_classes: int) -> tuple[str, ...] | None:
    """ImageNet's names where the number of classes is ImageNet's, as timm takes it."""
    return class_names("imagenet") if num_classes == 1000 else None


def nearest(name: str) -> str:
    """The most alike names of models, for a message."""
    known = registry.names()
    near = get_close_matches(name.lower(), [*known, *weights_of.REGISTRY], 5, 0.5)
    return f"nearest: {', '.join(near)}" if near else f"there are {', '.join(known)}"
