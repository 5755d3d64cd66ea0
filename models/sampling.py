"""Choosing the next token of a generated text."""

from collections.abc import Sequence

import numpy as np


def check(temperature: float, top_k: int | None, top_p: float | None) -> None:
    """Raises ValueError for options of sampling that make no sense."""
    if not 0 <= temperature < float("inf"):
        raise ValueError(f"generate: wants a temperature of at least 0, got {temperature!r}")
    if top_k is not None and (isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1):
        raise ValueError(f"generate: wants top_k of at least 1, got {top_k!r}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"generate: wants top_p in (0, 1], got {top_p!r}")


def pick(
    logits: np.ndarray, u: float, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None,
    never: Sequence[int] = (),
) -> int:
    """The token that a uniform number chooses from softmax(logits / temperature).

    Args:
        logits: (V,), floating.
        u: a uniform number in [0, 1).
        temperature: 0 takes the greatest logit.
        top_k: only the k most probable tokens. top_p: of those, the fewest that together have at least the
            probability p (Holtzman et al., arXiv 1904.09751).
        never: tokens that are not to be chosen.

    Returns:
        The index of the token.

    Example:
        >>> import numpy as np
        >>> from zoo.models.sampling import pick
        >>> logits = np.log([0.5, 0.3, 0.2])
        >>> pick(logits, 0.7), pick(logits, 0.7, top_p=0.5), pick(logits, 0.7, top_k=2), pick(logits, 0.9, 0)
        (1, 0, 1, 0)
    """
    logits = np.array(logits, np.float64)
    logits[list(never)] = -np.inf
    order = np.argsort(-logits, kind="stable")[:top_k]
    if not temperature:
        return int(order[0])
    powers = np.exp((logits[order] - logits[order[0]]) / temperature)
    total = np.cumsum(powers)
    if top_p is not None:
        total = total[: np.searchsorted(total, top_p * total[-1]) + 1]
    return int(order[np.searchsorted(total, u * total[-1], side="right")])
