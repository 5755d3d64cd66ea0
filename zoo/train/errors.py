"""How a training run ends before its time."""

import signal


class TrainingError(RuntimeError):
    """The run cannot go on; the message says why, and what to do."""


class Stopped(Exception):
    """A signal ended the run after a checkpoint.

    Args:
        number: of the signal.
        message: where the run stands, and how it goes on.
    """

    def __init__(self, number: int, message: str):
        super().__init__(f"stopped by {signal.Signals(number).name} {message}")
        self.status = 128 + number
