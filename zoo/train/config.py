"""What can be chosen on the command line: a dataclass, each field of which is a flag."""

import argparse
from dataclasses import dataclass, field, fields

from zoo.models.resnet_cifar import MODELS
from zoo.utils.command_line import Parser, UsageError, nearest

OPTIMIZERS = ("sgd", "adam", "adamw")


def option(default, text: str):
    """A field with a default and a line for --help."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Config:
    """The options of one training run.

    The defaults were chosen on a fifth of the training images that was held out (99.2% there on average, over 4 seeds).
    """

    model: str = option("resnet8", f"one of {', '.join(MODELS)}")
    width: int = option(16, "channels of the model's first stage")
    epochs: int = option(15, "passes over the training images")
    batch_size: int = option(64, "images in a step")
    lr: float = option(0.1, "learning rate at its peak")
    optimizer: str = option("sgd", f"one of {', '.join(OPTIMIZERS)}")
    weight_decay: float = option(5e-4, "weight decay")
    shift: int = option(1, "training images are moved at random by up to so many pixels")
    seed: int = option(0, "of the weights, the order and the shifts")
    device: str = option("cpu", "cpu, cuda or cuda:<number>")
    threads: int = option(1, "threads of NumPy's matrix products; more do not pay for a model this small")
    limit: int = option(0, "use only so many images of each part; 0: all")
    out: str = option("runs", "folder that gets a folder for this run")

    def __post_init__(self):
        one_of("model", self.model, tuple(MODELS))
        one_of("optimizer", self.optimizer, OPTIMIZERS)
        for name, least in (
            ("width", 1),
            ("epochs", 1),
            ("batch_size", 1),
            ("threads", 1),
            ("shift", 0),
            ("limit", 0),
            ("weight_decay", 0),
        ):
            if getattr(self, name) < least:
                raise UsageError(f"{flag(name)}: wants at least {least}, got {getattr(self, name)}")
        if not 0 < self.lr < float("inf"):
            raise UsageError(f"--lr: wants a number above 0, got {self.lr}")


def flag(name: str) -> str:
    """batch_size -> --batch-size."""
    return "--" + name.replace("_", "-")


def one_of(name: str, value: str, names: tuple[str, ...]) -> None:
    """Raises UsageError unless value is one of names."""
    if value not in names:
        raise UsageError(f"{flag(name)}: no {name} {value!r}{nearest(value, names)}; there are {', '.join(names)}")


def parse(arguments: list[str] | None = None) -> Config:
    """The Config that a command line asks for.

    Raises:
        UsageError: an unknown option, or a value that does not fit.
    """
    parser = Parser(
        prog="python -m zoo.train",
        allow_abbrev=False,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        description="Trains a small ResNet on 1,437 handwritten digits and tests it on 360 others.",
    )
    for f in fields(Config):
        parser.add_argument(flag(f.name), type=type(f.default), default=f.default, help=f.metadata["help"])
    known, rest = parser.parse_known_args(arguments)
    if rest:
        flags = [flag(f.name) for f in fields(Config)]
        raise UsageError(f"no option {rest[0]!r}{nearest(rest[0].split('=')[0], flags)}; --help lists them")
    return Config(**vars(known))
