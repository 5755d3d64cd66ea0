"""When a request that failed is made again, and when not."""
import time
from collections.abc import Callable

from zoo.hub.errors import from_network, transient

TRIES = 6                       # in a row without PROGRESS
PROGRESS = 1 << 20              # bytes after which a broken connection counts as a first failure again
FIRST_WAIT = 0.5                # seconds before the second try; doubles each time
LONGEST_WAIT = 10.0             # seconds
ANSWER_SECONDS = 6.0            # a source that has not sent a byte by then gets no further try


def repeated(request: Callable, source: str):
    """The result of request(), which is made again while it fails for reasons that may pass.

    Raises:
        HubError: the last failure.
    """
    backoff = Backoff(source)
    while True:
        try:
            return request()
        except Exception as error:      # httpx, httpx2 and huggingface_hub have no other common base
            backoff.failed(error)


class Backoff:
    """Waits between tries, longer each time; gives up after TRIES failures, or ANSWER_SECONDS without any byte."""

    def __init__(self, source: str):
        self.source = source
        self.failures = 0
        self.deadline = time.monotonic() + ANSWER_SECONDS

    def failed(self, error: Exception) -> None:
        """Returns when it is time to try again, or raises HubError."""
        self.failures += 1
        wait = min(FIRST_WAIT * 2 ** (self.failures - 1), LONGEST_WAIT)
        if not transient(error) or self.failures >= TRIES or time.monotonic() + wait > self.deadline:
            raise from_network(error, self.source) from error
        time.sleep(wait)

    def received(self, count: int) -> None:
        """`count` bytes came: the source lives, and after PROGRESS bytes the failures so far do not count any more."""
        if count > 0:
            self.deadline = float("inf")
        if count >= PROGRESS:
            self.failures = 0
