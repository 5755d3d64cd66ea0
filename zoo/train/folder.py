"""The folder of a run: config.json, metrics.jsonl, checkpoints, weights."""

import dataclasses
import itertools
import json
import time
from pathlib import Path
from typing import Any

from zoo.checkpoint.atomic import replacing
from zoo.serialization import FileError, load, save
from zoo.train.config import Config
from zoo.train.console import warn
from zoo.train.errors import TrainingError
from zoo.train.run import Run


class RunFolder:
    """Where a run is written: a new folder, or the one that `--resume` names.

    Checkpoints are written beside their place and moved there, so that there is always a whole one.

    Args:
        config: of the run, resolved.
    """

    def __init__(self, config: Config):
        self.config = config
        self.path = Path(config.resume) if config.resume else new_folder(config)
        self.checkpoints = self.path / "checkpoints"
        self.last_saved = time.monotonic()
        if config.resume:
            for leftover in self.path.rglob(".*.tmp"):  # of a write that was killed
                leftover.unlink()
        else:
            write(self.path / "config.json", json.dumps(dataclasses.asdict(config), indent=1) + "\n")

    def due(self, step: int) -> bool:
        """Whether it is time for a checkpoint."""
        by_step, minutes = self.config.save_steps, self.config.save_minutes
        return bool(by_step) and step % by_step == 0 or 0 < minutes * 60 <= time.monotonic() - self.last_saved

    def save(self, run: Run) -> None:
        """Writes a checkpoint, and then drops the oldest above `--keep`."""
        self.checkpoints.mkdir(exist_ok=True)
        save(run.state_dict(), self.checkpoints / f"step-{run.counts.step:09d}.safetensors")
        self.last_saved = time.monotonic()
        for old in self.saved()[self.config.keep :]:
            old.unlink()

    def saved(self) -> list[Path]:
        """The checkpoints, the newest first."""
        return sorted(self.checkpoints.glob("step-*.safetensors"), reverse=True)

    def restore(self, run: Run) -> bool:
        """Takes the newest checkpoint that can be read; False if there is none, and the run begins anew.

        Raises:
            TrainingError: there are some, but none can be read.
        """
        if not self.config.resume:
            return False
        found = self.saved()
        restored = any(read(path, run) for path in found)
        if found and not restored:
            raise TrainingError(f"none of the checkpoints in {self.checkpoints} can be read")
        with replacing(self.path / "metrics.jsonl") as file:  # lines of steps that will be done again go
            file.write("".join(map(line, run.counts.rows)).encode())
        return restored

    def add_row(self, row: dict[str, Any]) -> None:
        """One more line of metrics.jsonl."""
        write(self.path / "metrics.jsonl", line(row))


def read(path: Path, run: Run) -> bool:
    """Puts a checkpoint into the run; False, with a warning, if the file is damaged."""
    try:
        run.load_state_dict(load(path, map_location="cpu"))
    except FileError as error:
        warn(f"{path}: {error}; trying the one before")
        return False
    return True


def line(row: dict[str, Any]) -> str:
    """A row of metrics as a line of JSON."""
    return json.dumps(row) + "\n"


def new_folder(config: Config) -> Path:
    """A new folder for this run: <out>/<time>-<model>-<seed>, with a number behind it if that is taken."""
    base = Path(config.out)
    base.mkdir(parents=True, exist_ok=True)
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{Path(config.model).name}-{config.seed}"
    for number in itertools.count(2):
        try:
            (base / name).mkdir()
            break
        except FileExistsError:
            name = f"{name.rsplit('+', 1)[0]}+{number}"
    return base / name


def write(path: Path, text: str) -> None:
    """Adds text to a file."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)
