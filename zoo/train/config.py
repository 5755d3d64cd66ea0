"""What can be chosen for a training run: a dataclass, each field of which is a flag and a key of --config."""

import os
from dataclasses import dataclass, field, replace
from typing import Any

from zoo.models import registry
from zoo.models.resnet_cifar import MODELS
from zoo.train.recipe import OPTIMIZERS, SCHEDULES, WITH_CLOSURE
from zoo.utils.command_line import UsageError, nearest

DIGITS = "digits"
AUGMENTS = ("none", "crop", "ra", "ta_wide")
LEAST = {
    "width": 1, "epochs": 1, "batch_size": 1, "threads": 1, "accumulate": 1, "keep": 1, "shift": 0, "limit": 0,
    "weight_decay": 0, "workers": 0, "max_broken": 0, "warmup": 0, "clip": 0, "patience": 0, "save_steps": 0,
    "save_minutes": 0, "mixup": 0, "cutmix": 0,
}
OF_DIGITS: dict[str, tuple] = {"size": (8,), "augment": ("none",)}
SHARES = ("val_fraction", "erase", "label_smoothing", "ema")           # at least 0, below 1


def option(group: str, default: Any, text: str, kind: type | None = None) -> Any:
    """A field with its group in --help, a default (None: chosen by `resolved`), a line of help and its type."""
    metadata = {"group": group, "help": text, "kind": kind or type(default)}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Config:
    """The options of one training run.

    The defaults for the digits were chosen on a fifth of the training images that was held out (99.2% there on
    average, over 4 seeds).

    Raises:
        UsageError: a value that does not fit.
    """

    model: str = option("model", "resnet8", "a model's name, a repository of the Hub, or a folder hub.load takes")
    width: int | None = option("model", None, "channels of the first stage of a CIFAR ResNet (16)", int)
    weights: str | None = option("model", None, "none, default, a tag, a path or an address (none for a name)", str)
    freeze: str = option("model", "none", "none, backbone, or a number: so many layers from the input stay")
    ema: float = option("model", 0.0, "share that an average of the weights keeps at each step; 0: no average")

    data: str = option("data", DIGITS, "digits, or a folder: train/ val/ test/, or a folder for each class")
    val_fraction: float | None = option("data", None, "held out where there is no val/ (0.1; digits: 0)", float)
    size: int | None = option("data", None, "pixels of a picture's sides (what the weights expect, else 224)", int)
    augment: str | None = option("data", None, f"of training pictures, one of {', '.join(AUGMENTS)} (crop)", str)
    shift: int = option("data", 1, "training digits are moved at random by up to so many pixels")
    erase: float = option("data", 0.0, "probability that a random rectangle is erased")
    tta: bool = option("data", False, "evaluate on each picture and its mirror image")
    mixup: float = option("data", 0.0, "alpha of mixup; 0: none")
    cutmix: float = option("data", 0.0, "alpha of cutmix; 0: none")
    limit: int = option("data", 0, "use only so many images of each part; 0: all")
    workers: int = option("data", 0, "processes that load pictures")
    max_broken: int = option("data", 100, "broken pictures are named and skipped, up to so many")

    epochs: int = option("training", 15, "passes over the training images")
    batch_size: int = option("training", 64, "images in a batch")
    accumulate: int = option("training", 1, "batches whose gradients make one step")
    lr: float | None = option("training", None, "learning rate at its peak (0.1; from pretrained weights 0.01)", float)
    optimizer: str = option("training", "sgd", f"one of {', '.join(OPTIMIZERS)}")
    optimizer_options: dict = option("training", {}, "more arguments of the optimizer")
    weight_decay: float = option("training", 5e-4, "weight decay")
    layer_decay: float = option("training", 1.0, "each layer learns by this factor slower than the one above it")
    schedule: str = option("training", "one_cycle", f"one of {', '.join(SCHEDULES)}")
    schedule_options: dict = option("training", {}, "more arguments of the schedule; times count epochs")
    warmup: float = option("training", 0.0, "epochs of linear warm-up")
    clip: float = option("training", 0.0, "longest gradient; 0: any")
    label_smoothing: float = option("training", 0.0, "share of the target that goes to all classes alike")
    class_weights: str = option("training", "none", "none, or balanced: rare classes count more")
    patience: int = option("training", 0, "stop after so many epochs without a better validation; 0: never")
    amp: str = option("training", "off", "mixed precision: off, bf16 or fp16")

    seed: int = option("run", 0, "of the weights, the order and all that is random")
    device: str = option("run", "cpu", "cpu, cuda or cuda:<number>")
    graph: str = option("run", "auto", "steps as CUDA graphs: auto (on a GPU, if they can be captured), on or off")
    threads: int = option("run", 1, "threads of NumPy's matrix products; more do not pay for small models")
    out: str = option("run", "runs", "folder that gets a folder for this run")
    save_minutes: float = option("run", 5.0, "minutes between checkpoints; 0: none by time")
    save_steps: int = option("run", 0, "steps between checkpoints; 0: none by steps")
    keep: int = option("run", 2, "checkpoints that are kept")
    tensorboard: bool = option("run", False, "write events for TensorBoard (needs tensorboardX)")
    report: bool = option("run", True, "write report.html at the end")
    resume: str = option("run", "", "folder of a run: go on where it stopped")

    eval_only: bool = option("instead of training", False, "evaluate on test/, else val/")
    predict: str = option("instead of training", "", "a picture or a folder of them: print the most probable classes")

    def __post_init__(self):
        check_model(self.model)
        one_of("optimizer", self.optimizer, tuple(OPTIMIZERS))
        one_of("schedule", self.schedule, tuple(SCHEDULES))
        one_of("amp", self.amp, ("off", "bf16", "fp16"))
        one_of("graph", self.graph, ("auto", "on", "off"))
        one_of("class_weights", self.class_weights, ("none", "balanced"))
        if self.augment is not None:
            one_of("augment", self.augment, AUGMENTS)
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is not None and not least <= value < float("inf"):
                raise UsageError(f"{flag(name)}: wants at least {least}, got {value}")
        for name in SHARES:
            if not 0 <= (getattr(self, name) or 0) < 1:
                raise UsageError(f"{flag(name)}: wants a number of at least 0 and below 1, got {getattr(self, name)}")
        for name in ("lr", "layer_decay"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise UsageError(f"{flag(name)}: wants a number above 0, got {value}")
        if self.freeze not in ("none", "backbone") and not self.freeze.isdecimal():
            raise UsageError(f"--freeze: wants none, backbone or a number of layers, got {self.freeze!r}")
        check_together(self)


def check_model(name: str) -> None:
    """Raises UsageError for a name that is neither a model's, nor a folder, nor a repository."""
    if not os.path.isdir(name) and "/" not in name:
        one_of("model", name, tuple(registry.names()), name.partition(".")[0])


def check_together(config: Config) -> None:
    """Raises UsageError for options that exclude each other."""
    if config.optimizer in WITH_CLOSURE and (config.accumulate > 1 or config.clip or config.amp == "fp16"):
        raise UsageError(f"--optimizer {config.optimizer}: computes its gradients itself; it goes with no "
                         "--accumulate, --clip or --amp fp16")
    if config.graph == "on" and (config.optimizer in WITH_CLOSURE or not config.device.startswith("cuda")):
        raise UsageError(f"--graph on: wants --device cuda and an optimizer other than {', '.join(WITH_CLOSURE)}")
    if config.width is not None and config.model.partition(".")[0] not in MODELS:
        raise UsageError(f"--width: wants one of {', '.join(MODELS)} as --model, got {config.model}")
    if config.schedule == "plateau" and config.warmup:
        raise UsageError("--schedule plateau: goes with no --warmup")
    for name in ("size", "augment", "erase", "tta") if config.data == DIGITS else ():
        if getattr(config, name) not in (None, 0.0, False, *OF_DIGITS.get(name, ())):
            raise UsageError(f"{flag(name)}: wants a folder as --data; the digits are as they are")
    if config.erase and config.augment == "none":
        raise UsageError("--erase: wants another --augment than none")
    validated = config.data != DIGITS or config.val_fraction
    if not validated and (config.patience or config.schedule == "plateau"):
        raise UsageError("--patience and --schedule plateau: want --val-fraction above 0")


def resolved(config: Config) -> Config:
    """The config with every default that depends on other options; `size` waits for the weights."""
    digits, name = config.data == DIGITS, config.model.partition(".")[0]
    weights = config.weights or ("none" if config.model in registry.names() else "default")
    choices = {
        "weights": weights,
        "width": 16 if name in MODELS and weights == "none" else None,
        "lr": 0.1 if weights == "none" else 0.01,
        "val_fraction": 0.0 if digits else 0.1,
        "augment": "none" if digits else "crop",
        "size": 8 if digits else None,
    }
    return replace(config, **{name: value for name, value in choices.items() if getattr(config, name) is None})


def flag(name: str) -> str:
    """batch_size -> --batch-size."""
    return "--" + name.replace("_", "-")


def one_of(name: str, value: str, names: tuple[str, ...], part: str | None = None) -> None:
    """Raises UsageError unless value (or the part of it that counts) is one of names."""
    if (part or value) not in names:
        raise UsageError(f"{flag(name)}: no {name} {value!r}{nearest(value, names)}; there are {', '.join(names)}")
