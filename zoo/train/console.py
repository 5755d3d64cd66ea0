"""What a run says: lines on the standard output, a bar and warnings on the standard error."""

import sys
from collections.abc import Iterable
from typing import Any


def say(text: str) -> None:
    """A line on the standard output, at once, not through the progress bar."""
    print(text, flush=True)


def warn(text: str) -> None:
    """A line on the standard error that a bar does not tear."""
    from tqdm import tqdm

    tqdm.write(f"zoo.train: {text}", file=sys.stderr)


def progress(batches: Iterable, title: str, done: int, total: int) -> Any:
    """A bar on the standard error, if that is a terminal.

    Args:
        batches: the rest of the pass. title: in front of the bar. done, total: batches before these, and in all.
    """
    from tqdm import tqdm

    return tqdm(batches, title, total=total, initial=done, leave=False, unit="batch", dynamic_ncols=True,
                disable=not sys.stderr.isatty())
