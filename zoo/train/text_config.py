"""What can be chosen for `python -m zoo.train text`."""

import argparse
from dataclasses import dataclass, fields
from typing import Any

from zoo.train.config import flag, one_of, option
from zoo.train.flags import add_flags, given_to, stored_options
from zoo.utils.command_line import Parser, UsageError

KJV = "kjv"
DTYPES = ("float32", "float16")
LEAST = {"embedding": 1, "hidden": 1, "layers": 1, "epochs": 1, "batch_size": 1, "length": 1, "threads": 1,
         "keep": 1, "weight_decay": 0, "clip": 0, "save_minutes": 0, "save_steps": 0, "sample": 0, "limit": 0}
# What a run may go on with that its numbers do not depend on.
RESUMABLE = {"resume", "device", "graph", "threads", "sample", "save_minutes", "save_steps", "keep"}
DESCRIPTION = (
    "Trains a character model (an LSTM) on a text, nine tenths of it, and tests it on the last tenth. Without options: "
    "on three books of the King James Bible that come with zoo."
)


@dataclass(frozen=True)
class TextConfig:
    """The options of one run.

    Raises:
        UsageError: a value that does not fit.
    """

    embedding: int = option("model", 64, "width of a character's embedding")
    hidden: int = option("model", 256, "width of the LSTM")
    layers: int = option("model", 1, "layers of the LSTM")
    dropout: float = option("model", 0.1, "probability, of embeddings, between layers and of outputs")

    data: str = option("data", KJV, "kjv, a UTF-8 text file, or a folder of *.txt")
    limit: int = option("data", 0, "use only so many characters; 0: all")

    epochs: int = option("training", 10, "passes over the text")
    batch_size: int = option("training", 32, "streams that the text is cut into")
    length: int = option("training", 64, "characters that gradients reach back")
    lr: float = option("training", 4e-3, "learning rate at its peak, of AdamW")
    weight_decay: float = option("training", 0.01, "weight decay")
    clip: float = option("training", 1.0, "longest gradient; 0: any")

    seed: int = option("run", 0, "of the weights, dropout and samples")
    device: str = option("run", "cpu", "cpu, cuda or cuda:<number>")
    graph: str = option("run", "auto", "steps as CUDA graphs: auto (on a GPU, if they can be captured), on or off")
    threads: int = option("run", 1, "threads of NumPy's matrix products; more do not pay for thin ones")
    sample: int = option("run", 200, "characters that are written after each epoch")
    out: str = option("run", "runs", "folder that gets a folder for this run")
    save_minutes: float = option("run", 5.0, "minutes between checkpoints; 0: none by time")
    save_steps: int = option("run", 0, "steps between checkpoints; 0: none by steps")
    keep: int = option("run", 2, "checkpoints that are kept")
    save_dtype: str = option("run", "float32", f"of the stored weights, one of {', '.join(DTYPES)}")
    resume: str = option("run", "", "folder of a run: go on where it stopped")

    def __post_init__(self):
        one_of("save_dtype", self.save_dtype, DTYPES)
        one_of("graph", self.graph, ("auto", "on", "off"))
        if self.graph == "on" and not self.device.startswith("cuda"):
            raise UsageError("--graph on: wants --device cuda")
        for name, least in LEAST.items():
            if not least <= getattr(self, name) < float("inf"):
                raise UsageError(f"{flag(name)}: wants at least {least}, got {getattr(self, name)}")
        if not 0 <= self.dropout < 1:
            raise UsageError(f"--dropout: wants a number of at least 0 and below 1, got {self.dropout}")
        if not 0 < self.lr < float("inf"):
            raise UsageError(f"--lr: wants a number above 0, got {self.lr}")

    @property
    def model(self) -> str:
        """The model's name in the registry."""
        return "charlm"


def parse(arguments: list[str]) -> TextConfig:
    """The TextConfig that a command line asks for.

    Raises:
        UsageError: an unknown option, a value that does not fit, or with --resume one that would change the numbers.

    Example:
        >>> from zoo.train.text_config import parse
        >>> parse(["--batch-size", "8"]).batch_size
        8
    """
    given = options_of(arguments)
    if "resume" not in given:
        return TextConfig(**given)
    file, stored = stored_options(given, RESUMABLE)
    if stored.keys() != {f.name for f in fields(TextConfig)}:
        raise UsageError(f"--resume: {file} is no config of a text model, or one of another version")
    return TextConfig(**{**stored, **given})


def options_of(arguments: list[str]) -> dict[str, Any]:
    """The options that are on a command line, by name."""
    parser = Parser(prog="python -m zoo.train text", allow_abbrev=False, description=DESCRIPTION,
                    argument_default=argparse.SUPPRESS)
    add_flags(parser, fields(TextConfig))
    return given_to(parser, arguments, [f.name for f in fields(TextConfig)])
