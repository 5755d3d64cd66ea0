"""SIGINT and SIGTERM as wishes: the step is finished first."""

import signal
import threading
from typing import Any

WISHES = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """While it is entered, the first SIGINT or SIGTERM is only remembered; a second one ends the process as usual.

    Example:
        >>> import os, signal
        >>> from zoo.train.stopping import StopSignals
        >>> with StopSignals() as stop:
        ...     os.kill(os.getpid(), signal.SIGTERM)
        ...     stop.caught == signal.SIGTERM
        True
    """

    def __init__(self):
        self.caught: int | None = None
        self.before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():  # Python lets no other thread handle signals
            self.before = {number: signal.signal(number, self.remember) for number in WISHES}
        return self

    def remember(self, number: int, frame: Any) -> None:
        self.caught = number
        self.restore()

    def restore(self) -> None:
        """The handlers that were there before."""
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before = {}

    def __exit__(self, *error: Any) -> None:
        self.restore()
