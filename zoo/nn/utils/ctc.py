"""Reading labels off the outputs of a network trained with nn.CTCLoss: the best path, and a search over prefixes."""

import math
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from zoo.autograd.tensor import Tensor
from zoo.ops.device import fetch
from zoo.ops.errors import ArgumentError, ShapeError

IMPOSSIBLE = -math.inf


class Reading(NamedTuple):
    """Labels of one sequence, without blanks, and the logarithm of their probability."""

    labels: list[int]
    score: float


def rows_of(name: str, log_probs: Tensor, lengths: Any, blank: int) -> list[np.ndarray]:
    """The steps (T_n, C) of each sequence of log_probs (T, N, C), in NumPy."""
    if log_probs.ndim != 3:
        raise ShapeError(f"{name}: wants log_probs (T, N, C), got {tuple(log_probs.shape)}")
    steps, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise ArgumentError(f"{name}: wants blank in [0, {classes - 1}], got {blank}")
    found = [steps] * batch if lengths is None else [int(n) for n in lengths]
    if len(found) != batch or any(not 0 <= n <= steps for n in found):
        raise ArgumentError(f"{name}: wants {batch} lengths in [0, {steps}], got {found}")
    values = np.asarray(fetch(log_probs.detach().array), np.float64)
    return [values[:n, k] for k, n in enumerate(found)]


def greedy_decode(log_probs: Tensor, lengths: Any = None, blank: int = 0) -> list[Reading]:
    """The most probable label of each step, repeats merged and blanks left out.

    Args:
        log_probs: (T, N, C), logarithms of probabilities.
        lengths: (N,) integers in [0, T]; T for all if left out.
        blank: the label that stands for none.

    Returns:
        For each sequence its labels and the path's log probability.

    Raises:
        ShapeError, ArgumentError (ValueError, RuntimeError): a shape, a length or the blank does not fit.

    Example:
        >>> import zoo
        >>> log_probs = zoo.tensor([[[0.1, 0.9]], [[0.2, 0.8]], [[0.7, 0.3]], [[0.4, 0.6]]]).log()
        >>> zoo.nn.utils.ctc.greedy_decode(log_probs)[0].labels
        [1, 1]

    Source: A. Graves et al., "Connectionist temporal classification", ICML 2006, section 3.2.
    """
    found = []
    for rows in rows_of("greedy_decode", log_probs, lengths, blank):
        path = rows.argmax(1)
        starts = np.flatnonzero(np.diff(path, prepend=-1))
        found.append(Reading([int(c) for c in path[starts] if c != blank], float(rows.max(1).sum())))
    return found


def beam_decode(
    log_probs: Tensor, lengths: Any = None, blank: int = 0, beam_width: int = 10, top: int = 1
) -> list[list[Reading]]:
    """The most probable label sequences, each with the probability of all its paths that the beam has kept.

    Args:
        log_probs, lengths, blank: as in `greedy_decode`.
        beam_width: how many prefixes are kept after each step, at least 1.
        top: how many sequences are given back, at most beam_width.

    Returns:
        For each sequence the best `top` readings, best first.

    Raises:
        ShapeError, ArgumentError (ValueError, RuntimeError): a shape, length, blank, or width does not fit.

    Example:
        >>> import zoo
        >>> log_probs = zoo.tensor([[[0.6, 0.4]], [[0.6, 0.4]]]).log()
        >>> zoo.nn.utils.ctc.greedy_decode(log_probs)[0].labels          # the path: two blanks, 0.36
        []
        >>> reading = zoo.nn.utils.ctc.beam_decode(log_probs)[0][0]      # 1: three paths, 0.64 together
        >>> reading.labels, round(reading.score, 4)
        ([1], -0.4463)

    Source: A. Y. Hannun et al., "First-pass large vocabulary continuous speech recognition", arXiv 1408.2873.
    """
    if not 1 <= top <= beam_width:
        raise ArgumentError(f"beam_decode: wants 1 <= top <= beam_width, got {top} and {beam_width}")
    return [search(rows, blank, beam_width)[:top] for rows in rows_of("beam_decode", log_probs, lengths, blank)]


def search(rows: np.ndarray, blank: int, beam_width: int) -> list[Reading]:
    """Prefixes of labels, each with the log probabilities of its paths that end in a blank, and that do not."""
    beams: dict[tuple[int, ...], tuple[float, float]] = {(): (0.0, IMPOSSIBLE)}
    for row in rows.tolist():
        grown: dict[tuple[int, ...], tuple[float, float]] = defaultdict(lambda: (IMPOSSIBLE, IMPOSSIBLE))
        for prefix, (paused, spoken) in beams.items():
            either = logsum(paused, spoken)
            grown[prefix] = logsum(grown[prefix][0], either + row[blank]), grown[prefix][1]
            for label in range(len(row)):
                if label == blank:
                    continue
                if prefix and prefix[-1] == label:                       # again: the same label goes on, or a new one
                    grown[prefix] = grown[prefix][0], logsum(grown[prefix][1], spoken + row[label])
                    add(grown, (*prefix, label), paused + row[label])
                else:
                    add(grown, (*prefix, label), either + row[label])
        best = sorted(grown.items(), key=lambda item: -logsum(*item[1]))
        beams = dict(best[:beam_width])
    return [Reading(list(prefix), logsum(*scores)) for prefix, scores in beams.items()]


def add(grown: dict, prefix: tuple[int, ...], score: float) -> None:
    """One more way to a prefix, that ends in its last label."""
    paused, spoken = grown[prefix]
    grown[prefix] = paused, logsum(spoken, score)


def logsum(a: float, b: float) -> float:
    """log(e^a + e^b)."""
    high, low = (a, b) if a > b else (b, a)
    return high if low == IMPOSSIBLE else high + math.log1p(math.exp(low - high))
