"""config.json beside a model's weights, in timm's layout: architecture, classes, preprocessing, labels.

Read from the Hub and from folders, written by hub.save_pretrained. Layout: timm's models/_hub.py, seen in
https://huggingface.co/timm/resnet50.tv_in1k/blob/main/config.json.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from zoo.hub.errors import HubError
from zoo.models.weights import Preprocessing

SEQUENCES = "sequences"                  # `input` in the config.json of a model that takes no pictures
INTERPOLATIONS = ("nearest", "bilinear", "bicubic")


@dataclass(frozen=True)
class Config:
    """What a config.json says of the weights beside it.

    Args:
        architecture: a name of the model registry. num_classes: rows of the classifier.
        in_chans: of the pictures; 0 and num_classes 0 for a model of sequences, which model_args describe alone.
        model_args: further arguments of the architecture's builder.
        preprocessing: what pictures go through; None if the file does not say.
        labels: the names of the classes, or None. licence: SPDX name, or None. tag: of the weights.
    """

    architecture: str
    num_classes: int
    in_chans: int = 3
    model_args: dict[str, Any] = field(default_factory=dict)
    preprocessing: Preprocessing | None = None
    labels: tuple[str, ...] | None = None
    licence: str | None = None
    tag: str = ""


def parse(text: str | bytes, where: str) -> Config:
    """The Config of a file's text.

    Args:
        text: JSON; its values are checked, as they come from anybody.
        where: the file's name, for messages.

    Raises:
        HubError: not JSON, or not a description of a model.

    Example:
        >>> parse('{"architecture": "resnet18", "num_classes": 10}', "config.json").num_classes
        10
    """
    try:
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError(f"wants an object, got {type(found).__name__}")
        if not isinstance(found.get("architecture"), str):
            raise ValueError("it names no architecture of timm's or zoo's")
        return config_of(found)
    except (ValueError, TypeError, ArithmeticError, LookupError, RecursionError) as error:
        raise HubError(f"load: {where} does not describe a model: {error}") from None


def config_of(found: dict[str, Any]) -> Config:
    """The Config of parsed JSON; old files have the keys of `pretrained_cfg` at the top."""
    if found.get("input") == SEQUENCES:
        return of_sequences(found)
    nested = found.get("pretrained_cfg")
    cfg = nested if isinstance(nested, dict) else found
    num_classes = found.get("num_classes", cfg.get("num_classes", 1000))
    model_args = found.get("model_args", {})
    labels = found.get("label_names", cfg.get("label_names"))
    if type(num_classes) is not int or num_classes < 1:
        raise ValueError(f"num_classes: wants a positive number, got {num_classes!r}")
    if not isinstance(model_args, dict):
        raise ValueError(f"model_args: wants an object, got {model_args!r}")
    if labels is not None and (not isinstance(labels, list) or len(labels) != num_classes):
        raise ValueError(f"label_names: wants a list of {num_classes} names")
    size = cfg.get("input_size", [3, 224, 224])
    return Config(
        found["architecture"],
        num_classes,
        int(size[0]),
        model_args,
        preprocessing_of(cfg),
        tuple(map(str, labels)) if labels else None,
        cfg.get("license"),
        str(cfg.get("tag", "")),
    )


def of_sequences(found: dict[str, Any]) -> Config:
    """The Config of a model of sequences, as `render_sequences` writes it."""
    model_args, labels = found.get("model_args", {}), found.get("label_names")
    if not isinstance(model_args, dict) or not isinstance(labels, list | None):
        raise ValueError(f"wants model_args as an object and label_names as a list, got {model_args!r} and {labels!r}")
    return Config(found["architecture"], 0, 0, model_args, None, tuple(map(str, labels)) if labels else None,
                  found.get("license"), str(found.get("tag", "")))


def preprocessing_of(cfg: dict[str, Any]) -> Preprocessing | None:
    """timm's eval transform: the shorter side to floor(size / crop_pct), then the centre; None if cfg lacks it."""
    if not {"input_size", "mean", "std"} <= cfg.keys() or cfg.get("interpolation", "bilinear") not in INTERPOLATIONS:
        return None
    channels, _, crop = cfg["input_size"]
    resize = int(crop / cfg.get("crop_pct", 0.875))
    mean, std = (tuple(map(float, cfg[key])) for key in ("mean", "std"))
    return Preprocessing(resize, crop, cfg.get("interpolation", "bilinear"), mean, std, channels)


def crop_pct(preprocessing: Preprocessing) -> float:
    """The share of the resized side that is kept, such that floor(crop / crop_pct) gives exactly that side again.

    Example:
        >>> crop_pct(Preprocessing(resize=256, crop=224))
        0.875
    """
    share = preprocessing.crop / preprocessing.resize
    exact = int(preprocessing.crop / share) == preprocessing.resize
    return share if exact else preprocessing.crop / (preprocessing.resize + 0.5)


def render(config: Config, first_conv: str, classifier: str) -> str:
    """The text of a config.json: what `parse` reads, and timm too.

    Raises:
        TypeError: model_args that are not JSON.
    """
    cfg: dict[str, Any] = {"tag": config.tag, "input_size": [config.in_chans, 224, 224]}
    if config.preprocessing is not None:
        p = config.preprocessing
        cfg |= {
            "input_size": [config.in_chans, p.crop, p.crop],
            "interpolation": p.interpolation,
            "crop_pct": crop_pct(p),
            "crop_mode": "center",
            "mean": list(p.mean),
            "std": list(p.std),
        }
    cfg |= {"num_classes": config.num_classes, "first_conv": first_conv, "classifier": classifier}
    if config.licence is not None:
        cfg["license"] = config.licence
    found: dict[str, Any] = {"architecture": config.architecture, "num_classes": config.num_classes}
    found |= {"model_args": config.model_args} if config.model_args else {}
    found |= {"label_names": list(config.labels)} if config.labels else {}
    try:
        return json.dumps(found | {"pretrained_cfg": cfg}, indent=2, ensure_ascii=False) + "\n"
    except TypeError as error:
        raise TypeError(f"save_pretrained: wants model_args that are JSON, got {config.model_args}: {error}") from None


def render_sequences(config: Config) -> str:
    """The text of a config.json for a model of sequences: what `parse` reads."""
    found: dict[str, Any] = {"architecture": config.architecture, "input": SEQUENCES, "model_args": config.model_args}
    found |= {"label_names": list(config.labels)} if config.labels else {}
    found |= {"license": config.licence} if config.licence is not None else {}
    return json.dumps(found | {"tag": config.tag}, indent=2, ensure_ascii=False) + "\n"
