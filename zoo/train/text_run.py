"""The state of the training of a character model: all that changes from step to step, and that a checkpoint holds."""

import dataclasses
import math
import time
from dataclasses import dataclass, field
from typing import Any

import zoo
from zoo.data.text import kjv, read_text
from zoo.models.charlm import START, CharLM
from zoo.models.vocabulary import Vocabulary
from zoo.nn import functional as F  # noqa: N812
from zoo.nn.utils import clip_grad_norm_
from zoo.nn.utils.rnn import detach_states
from zoo.ops.cuda import CaptureError, is_current_stream_capturing
from zoo.optim import AdamW
from zoo.optim.lr_scheduler import OneCycleLR
from zoo.train.console import warn
from zoo.train.errors import TrainingError
from zoo.train.text_batches import TextBatches
from zoo.train.text_config import KJV, TextConfig
from zoo.utils.command_line import UsageError

BIT = math.log(2)


@dataclass
class Counts:
    """The numbers of a run.

    Args:
        epoch, batch: the epoch from 1, and the batches that it has used. step: of the optimizer, in all.
        total: sum of this epoch's losses. seconds: spent before the last start. finished: nothing is left to do.
        rows: of metrics.jsonl.
    """

    epoch: int = 1
    batch: int = 0
    step: int = 0
    total: float = 0.0
    seconds: float = 0.0
    finished: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)


class TextRun:
    """Text, model, optimizer, schedule, the model's states and numbers of a run.

    Args:
        config: of the run.

    Raises:
        UsageError: a text that is too short, or not UTF-8.
    """

    def __init__(self, config: TextConfig):
        self.config = config
        try:
            text = (kjv() if config.data == KJV else read_text(config.data))[: config.limit or None]
            self.vocabulary = Vocabulary.of(START + text)
            cut = len(text) * 9 // 10
            self.held_out = text[cut:]
            self.batches, self.tests = (
                TextBatches(self.vocabulary.encode(part), config.batch_size, config.length, config.device)
                for part in (text[:cut], self.held_out)
            )
        except ValueError as error:
            raise UsageError(f"--data: {error}") from None
        self.characters = cut
        self.model = CharLM(
            self.vocabulary, config.embedding, config.hidden, config.layers, config.dropout
        ).to(config.device)
        self.optimizer = AdamW(self.model.parameters(), lr=config.lr, weight_decay=config.weight_decay)
        self.schedule = OneCycleLR(self.optimizer, config.lr, config.epochs * len(self.batches), pct_start=0.1,
                                   cycle_momentum=False)
        self.states: Any = None
        on_gpu = config.device.startswith("cuda") and config.graph != "off"
        self.graphed = zoo.cuda.graph(self.compute) if on_gpu else None
        self.counts = Counts()
        self.begin = time.perf_counter()

    def step(self, inputs: zoo.Tensor, targets: zoo.Tensor) -> float:
        """One step of truncated backpropagation through time; the loss in nats.

        Raises:
            TrainingError: the loss is not finite.
        """
        loss, self.states = self.computed(inputs, targets)
        value = self.finite(loss)
        self.schedule.step()
        self.counts.step += 1
        self.counts.batch += 1
        self.counts.total += value
        return value

    def computed(self, inputs: zoo.Tensor, targets: zoo.Tensor) -> tuple[zoo.Tensor, Any]:
        """`compute`, as a CUDA graph where it can be one; an epoch's first step, with the learned states, is none."""
        if self.graphed is not None and self.states is not None:
            try:
                return self.graphed(inputs, targets, self.states)
            except CaptureError as error:
                if self.config.graph == "on":
                    raise TrainingError(f"--graph on: {error}") from None
                warn(f"goes on without a CUDA graph: {error}")
                self.graphed = None
        return self.compute(inputs, targets, self.states)

    def compute(self, inputs: zoo.Tensor, targets: zoo.Tensor, states: Any) -> tuple[zoo.Tensor, Any]:
        """The loss, and the states after the step. A loss that is no number leaves the weights as they are."""
        logits, states = self.model(inputs, states)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        if is_current_stream_capturing():
            self.optimizer.found_inf = loss.detach().isfinite().logical_not().array
        else:
            self.finite(loss)
        self.optimizer.zero_grad()
        loss.backward()
        if self.config.clip:
            clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.optimizer.step()
        self.optimizer.found_inf = None
        return loss, detach_states(states)

    def finite(self, loss: zoo.Tensor) -> float:
        """The loss as a number. Raises TrainingError if it is none."""
        value = loss.item()
        if not math.isfinite(value):
            raise TrainingError(f"the loss of step {self.counts.step + 1} is {value}; a lower --lr or --clip may help")
        return value

    @zoo.no_grad()
    def test(self) -> float:
        """Bits per character on the held-out text, cut into streams as the other one is."""
        self.model.eval()
        states, total = None, 0.0
        for inputs, targets in self.tests.since(0):
            logits, states = self.model(inputs, states)
            total += F.cross_entropy(logits.flatten(0, 1), targets.flatten()).item()
        self.model.train()
        return total / len(self.tests) / BIT

    @property
    def bits(self) -> float:
        """Bits per character of this epoch's batches so far."""
        return self.counts.total / max(1, self.counts.batch) / BIT

    def next_epoch(self, row: dict[str, Any]) -> None:
        """Ends an epoch; the next one begins at the text's beginning."""
        c = self.counts
        c.rows.append(row)
        c.epoch, c.batch, c.total, self.states = c.epoch + 1, 0, 0.0, None

    @property
    def over(self) -> bool:
        """Whether all epochs are done."""
        return self.counts.epoch > self.config.epochs

    @property
    def seconds(self) -> float:
        """Time spent on the run, without pauses."""
        return self.counts.seconds + time.perf_counter() - self.begin

    def state_dict(self) -> dict[str, Any]:
        """All that the rest of the run depends on."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "states": self.states,
            "generator": zoo.get_rng_state(),
            "counts": {**dataclasses.asdict(self.counts), "seconds": self.seconds},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where `state_dict` was taken: the rest is the same, bit for bit."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        states = state["states"]
        self.states = states and tuple(s.to(self.config.device) for s in states)
        self.counts = Counts(**state["counts"])
        zoo.set_rng_state(state["generator"])
