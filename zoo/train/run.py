"""The state of a training run: all that changes from step to step, and that a checkpoint has to hold."""

import dataclasses
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import zoo
from zoo.amp import GradScaler, autocast
from zoo.nn.utils import clip_grad_norm_
from zoo.optim.swa_utils import EMA
from zoo.train.ahead import Ahead
from zoo.train.config import Config
from zoo.train.graphed import graphed
from zoo.train.recipe import WITH_CLOSURE, freeze, make_optimizer, make_schedule

HALF = {"bf16": zoo.bfloat16, "fp16": zoo.float16}


@dataclass
class Counts:
    """The numbers of a run.

    Args:
        epoch, batch: the epoch from 1, and the batches that it has used. step: of the optimizer, in all.
        seen, total, correct: pictures of this epoch, the sum of their losses, hits.
        best, best_epoch: the best validation accuracy, and when that was.
        seconds: spent before the last start. finished: nothing is left to do.
        rows: of metrics.jsonl. broken: pictures that could not be read.
    """

    epoch: int = 1
    batch: int = 0
    step: int = 0
    seen: int = 0
    total: float = 0.0
    correct: int = 0
    best: float = -1.0
    best_epoch: int = 0
    seconds: float = 0.0
    finished: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


class Run:
    """Model, optimizer, schedule, scaler, average, loader and numbers of a run.

    Args:
        task: has the config, the model and the data.
    """

    def __init__(self, task: Any):
        self.config = config = task.config
        self.model = task.model
        self.frozen = freeze(self.model, config.freeze)
        self.optimizer = make_optimizer(self.model, config)
        self.batches = task.batches("train")
        self.schedule = make_schedule(self.optimizer, config, math.ceil(len(self.batches) / config.accumulate))
        self.scaler = GradScaler(enabled=config.amp == "fp16")
        self.ema = EMA(self.model, config.ema) if config.ema else None
        self.graphed = graphed(task, self)
        self.ahead: Ahead | None = None
        self.counts = Counts()
        self.begin = time.perf_counter()

    @property
    def weights(self) -> Any:
        """The model that is evaluated: the average, if there is one."""
        return self.ema.module if self.ema else self.model

    def autocast(self) -> Any:
        """The context of every forward pass."""
        return autocast_of(self.config)

    def train_mode(self) -> None:
        """Training mode; what is frozen keeps its statistics."""
        self.model.train()
        for layer in self.frozen:
            layer.eval()

    # --- batches of one step ---------------------------------------------------------------------------------
    @property
    def first_of_step(self) -> bool:
        """Whether the next batch is the first whose gradients go into a step."""
        return self.counts.batch % self.config.accumulate == 0

    @property
    def last_of_step(self) -> bool:
        """Whether the next batch is the last one of a step."""
        done = self.counts.batch + 1
        return done % self.config.accumulate == 0 or done == len(self.batches)

    @property
    def share(self) -> float:
        """1 / the number of batches in the step."""
        start = self.counts.batch // self.config.accumulate * self.config.accumulate
        return 1 / min(self.config.accumulate, len(self.batches) - start)

    def step(self, compute: Callable[[], Any]) -> None:
        """Gradients of a batch, and where it is the last one of a step, the optimizer's step.

        Args:
            compute: clears the gradients before the first batch of a step, adds those of this batch, gives the loss.
        """
        if self.config.optimizer in WITH_CLOSURE:
            self.optimizer.step(compute)
        else:
            compute()
            if not self.last_of_step:
                return
            self.update()
        self.end_step()

    def update(self) -> None:
        """The optimizer's step, with its gradients unscaled and clipped."""
        if self.config.clip:
            self.scaler.unscale_(self.optimizer)
            clip_grad_norm_([p for p in self.model.parameters() if p.requires_grad], self.config.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def end_step(self) -> None:
        """What the host does after a step: schedule, average, count."""
        if self.config.schedule != "plateau":
            self.schedule.step()
        if self.ema:
            self.ema.update_parameters(self.model)
        self.counts.step += 1

    # --- epochs ----------------------------------------------------------------------------------------------
    def improved(self, accuracy: float) -> bool:
        """Whether this epoch's validation is the best so far; remembers it."""
        if accuracy <= self.counts.best:
            return False
        self.counts.best, self.counts.best_epoch = accuracy, self.counts.epoch
        return True

    def next_epoch(self, row: dict[str, Any]) -> None:
        """Ends an epoch."""
        c = self.counts
        c.rows.append(row)
        c.epoch, c.batch, c.seen, c.total, c.correct = c.epoch + 1, 0, 0, 0.0, 0

    @property
    def over(self) -> bool:
        """Whether all epochs are done, or patience is at its end."""
        c, patience = self.counts, self.config.patience
        return c.epoch > self.config.epochs or bool(patience) and c.epoch - 1 - c.best_epoch >= patience

    @property
    def seconds(self) -> float:
        """Time spent on the run, without pauses."""
        return self.counts.seconds + time.perf_counter() - self.begin

    # --- saving ----------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """All that the rest of the run depends on."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "scaler": self.scaler.state_dict(),
            "ema": self.ema.state_dict() if self.ema else None,
            "generator": zoo.get_rng_state(),
            "loader": {**self.batches.state_dict(), "batches": self.counts.batch},  # the next one may be here already
            "counts": {**dataclasses.asdict(self.counts), "seconds": self.seconds},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where `state_dict` was taken: the rest is the same, bit for bit."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.scaler.load_state_dict(state["scaler"])
        if self.ema:
            self.ema.load_state_dict(state["ema"])
        self.counts = Counts(**state["counts"])
        if self.counts.batch < len(self.batches):  # else the pass is over, and the loader's next one is a new one
            self.batches.load_state_dict(state["loader"])
        zoo.set_rng_state(state["generator"])


def autocast_of(config: Config) -> Any:
    """The context of a forward pass in the config's precision."""
    return nullcontext() if config.amp == "off" else autocast(config.device.partition(":")[0], HALF[config.amp])
