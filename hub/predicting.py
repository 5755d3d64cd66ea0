"""hub.predict: what is in a picture, in one line."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zoo.autograd.mode import no_grad
from zoo.hub.loading import load
from zoo.nn.module import Module
from zoo.ops.device import fetch


class Prediction(NamedTuple):
    """One class: its name, the softmax probability from 0 to 1, its index in the model's output."""

    label: str
    probability: float
    index: int


def predict(model: str | Module, picture: Any, topk: int = 5, **options: Any) -> list[Any]:
    """The most probable classes of a picture.

    Args:
        model: a name as hub.load takes it, or a model that hub.load made.
        picture: what the model's `preprocess` takes (a path, bytes, PIL image or array), or a list of those.
        topk: how many classes, the most probable first; at most as many as the model has.
        options: hub.load's, where model is a name.

    Returns:
        A list of Prediction; for a list of pictures, one such list for each.

    Raises:
        ValueError: topk below 1; a model in training mode, one without preprocess, or one whose output is not finite.

    Example:
        >>> import numpy as np
        >>> from zoo import hub
        >>> one = np.zeros((8, 8, 1), np.uint8)
        >>> one[1:7, 3:5] = 255
        >>> hub.predict("resnet20_digits", one, topk=1)[0].label
        '1'
    """
    if type(topk) is not int or topk < 1:
        raise ValueError(f"predict: wants topk of at least 1, got {topk!r}")
    net = load(model, **options) if isinstance(model, str) else model
    preprocess = getattr(net, "preprocess", None)
    if preprocess is None:
        raise ValueError(f"predict: {type(net).__name__} has no preprocess; hub.load gives a model one")
    if net.training:
        raise ValueError("predict: the model is in training mode; model.eval() ends that")
    several = isinstance(picture, (list, tuple))
    batch = preprocess(list(picture) if several else [picture])
    weight = next(net.parameters())
    with no_grad():
        logits = fetch(net(batch.to(weight.device, weight.dtype)).array).astype(np.float64)
    if not np.isfinite(logits).all():
        note = f" ({net.weights.note})" if net.weights and net.weights.note else ""
        raise ValueError(f"predict: the model's output is not finite{note}")
    found = [top(row, topk, net.labels) for row in softmax(logits)]
    return found if several else found[0]


def softmax(logits: np.ndarray) -> np.ndarray:
    """exp(x) / sum exp(x) of each row."""
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def top(probabilities: np.ndarray, topk: int, labels: Sequence[str] | None) -> list[Prediction]:
    """The topk greatest of one row; a class without a name has its index as one."""
    order = np.argsort(-probabilities, kind="stable")[:topk]
    return [Prediction(labels[k] if labels else str(k), float(probabilities[k]), int(k)) for k in order]
