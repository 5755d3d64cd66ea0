"""A text as batches that go on where the last ones ended, so that a recurrent model keeps its states between them."""

from collections.abc import Iterator

import numpy as np

import zoo


class TextBatches:
    """Cuts a text into `batch_size` streams of equal length, and these into steps of `length` tokens.

    Step k has the inputs (batch_size, length) that follow those of step k - 1, and as targets the tokens one further
    on. Tokens at the end that fill no stream, or no step, are left out.

    Args:
        tokens: (N,) int64.
        batch_size, length: streams, and tokens of each in a step: how far gradients reach back.
        device: of the batches.

    Raises:
        ValueError: too few tokens for one step.

    Example:
        >>> import numpy as np
        >>> from zoo.train.text_batches import TextBatches
        >>> batches = TextBatches(np.arange(12), 2, 2)
        >>> [(x.tolist(), y.tolist()) for x, y in batches.since(0)]
        [([[0, 1], [6, 7]], [[1, 2], [7, 8]]), ([[2, 3], [8, 9]], [[3, 4], [9, 10]])]
    """

    def __init__(self, tokens: np.ndarray, batch_size: int, length: int, device: str = "cpu"):
        self.stream = len(tokens) // batch_size
        if self.stream < length + 1:
            raise ValueError(f"TextBatches: {batch_size} streams of {length} + 1 tokens want "
                             f"{batch_size * (length + 1)} tokens, got {len(tokens)}")
        rows = np.ascontiguousarray(tokens[: batch_size * self.stream]).reshape(batch_size, self.stream)
        self.rows, self.length = zoo.tensor(rows).to(device), length

    def __len__(self) -> int:
        return (self.stream - 1) // self.length

    def since(self, step: int) -> Iterator[tuple[zoo.Tensor, zoo.Tensor]]:
        """Inputs and targets of the steps from this one on."""
        for k in range(step, len(self)):
            begin, end = k * self.length, (k + 1) * self.length
            yield self.rows[:, begin:end], self.rows[:, begin + 1 : end + 1]
