"""How good a model is on a part of the data, and where it errs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import zoo
from zoo.ops.device import fetch
from zoo.train.ahead import Ahead


class Miss(NamedTuple):
    """A picture taken for another class: its number, its class, the class it was given, and with what probability."""

    number: int
    label: int
    predicted: int
    probability: float


class Result(NamedTuple):
    """An evaluation.

    Args:
        part: of the data. loss: mean cross entropy. accuracy: share of hits.
        confusion: (classes, classes), pictures of the row's class that were given the column's.
        misses: the surest errors, the worst first.
    """

    part: str
    loss: float
    accuracy: float
    confusion: np.ndarray
    misses: list[Miss]

    @property
    def count(self) -> int:
        """How many pictures there were."""
        return int(self.confusion.sum())

    @property
    def hits(self) -> int:
        """How many were right."""
        return int(self.confusion.trace())


def evaluate(task: Any, model: Any, part: str, autocast: Any, check: Callable[[list[str]], None],
             most: int = 12) -> Result:
    """Evaluates a model on a part of the task's data, in eval mode.

    Args:
        task: an ImageTask. model: to be evaluated.
        part: "val" or "test".
        autocast: makes the context of a forward pass.
        check: called after each batch with its broken pictures; may raise.
        most: how many errors are kept.
    """
    classes = len(task.classes)
    confusion, total, misses = np.zeros((classes, classes), np.int64), 0.0, []
    model.eval()
    ahead = Ahead(task.batches(part), task.batch, task.config.device.startswith("cuda"))
    with zoo.no_grad():
        for batch in ahead:
            if batch.images is not None:
                with autocast():
                    logits = task.evaluated(model, batch.images)
                ahead.prepare()                            # while the GPU computes
                scores = log_softmax(fetch(logits.array).astype(np.float64))
                labels, numbers = batch.labels.cpu().numpy(), batch.numbers.cpu().numpy()
                predicted = scores.argmax(1)
                np.add.at(confusion, (labels, predicted), 1)
                total -= float(scores[np.arange(len(labels)), labels].sum())
                misses = worst(misses + missed(scores, labels, predicted, numbers), most)
            check(batch.broken)
    count = max(1, int(confusion.sum()))
    return Result(part, total / count, int(confusion.trace()) / count, confusion, misses)


def missed(scores: np.ndarray, labels: np.ndarray, predicted: np.ndarray, numbers: np.ndarray) -> list[Miss]:
    """The errors of a batch."""
    return [
        Miss(int(numbers[k]), int(labels[k]), int(predicted[k]), float(np.exp(scores[k, predicted[k]])))
        for k in np.flatnonzero(predicted != labels)
    ]


def worst(misses: list[Miss], most: int) -> list[Miss]:
    """The errors with the greatest probability."""
    return sorted(misses, key=lambda miss: -miss.probability)[:most]


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """x - log sum exp x of each row."""
    x = logits - logits.max(1, keepdims=True)
    return x - np.log(np.exp(x).sum(1, keepdims=True))
