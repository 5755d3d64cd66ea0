"""Events for TensorBoard, through tensorboardX, which needs neither TensorFlow nor torch."""

import dataclasses
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from zoo.ops.device import fetch
from zoo.train.charts import confusion_picture, sheet
from zoo.train.config import Config
from zoo.train.evaluation import Result
from zoo.utils.command_line import UsageError


def need_tensorboard() -> None:
    """Raises UsageError where tensorboardX is missing."""
    if find_spec("tensorboardX") is None:
        raise UsageError("--tensorboard: wants tensorboardX; pip install 'triton-zoo[tensorboard]'")


class Board:
    """Scalars, histograms of the weights, errors, confusion matrix, hyperparameters; without --tensorboard nothing.

    Args:
        folder: of the run; the events go into its folder "tensorboard".
        config: of the run.
        epoch: the first one that is written; what the files have of it and later ones is void.

    Raises:
        UsageError: tensorboardX is not installed.
    """

    def __init__(self, folder: Path, config: Config, epoch: int):
        self.config, self.writer = config, None
        if config.tensorboard:
            need_tensorboard()
            from tensorboardX import SummaryWriter  # pyright: ignore[reportMissingImports]

            suffix = f".epoch-{epoch}"                       # the name itself has only the second
            self.writer: Any = SummaryWriter(str(folder / "tensorboard"), purge_step=epoch, filename_suffix=suffix)

    def __enter__(self) -> "Board":
        return self

    def __exit__(self, *error: Any) -> None:
        if self.writer:
            self.writer.close()

    def epoch(self, row: dict[str, Any], run: Any) -> None:
        """The numbers of an epoch, and the distribution of each parameter."""
        if not self.writer:
            return
        step = row["epoch"]
        for name, value in row.items():
            if name != "epoch":
                part, _, rest = name.partition("_")
                self.writer.add_scalar(f"val/{rest}" if part == "val" else f"train/{name}", value, step)
        self.writer.add_scalar("train/lr", run.optimizer.param_groups[-1]["lr"], step)
        for name, p in run.model.named_parameters():
            self.writer.add_histogram(name, fetch(p.detach().array).astype(np.float32), step)
        self.writer.flush()

    def errors(self, task: Any, result: Result, epoch: int) -> None:
        """The surest errors and the confusion matrix as pictures."""
        if not self.writer:
            return
        matrix = np.asarray(confusion_picture(result.confusion, task.classes))
        self.writer.add_image(f"{result.part}/confusion", matrix, epoch, dataformats="HWC")
        if result.misses:
            shown = [(task.picture(result.part, m.number)[1], f"{task.classes[m.label]} as {task.classes[m.predicted]}")
                     for m in result.misses]
            self.writer.add_image(f"{result.part}/errors", np.asarray(sheet(shown)), epoch, dataformats="HWC")

    def end(self, row: dict[str, Any]) -> None:
        """The options of the run with what came of them."""
        if not self.writer:
            return
        options = {k: v if isinstance(v, (bool, int, float, str)) else str(v)
                   for k, v in dataclasses.asdict(self.config).items()}
        self.writer.add_hparams(options, {"test/accuracy": row["test_accuracy"]}, name="hparams")
