"""What the commands of zoo share: errors of one line, nearest names, exit statuses."""

import argparse
import difflib
import os
import sys
from collections.abc import Callable, Iterable

USAGE, FAILED, INTERRUPTED = 2, 1, 130


class UsageError(ValueError):
    """A wrong option; its message is one line."""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises UsageError instead of printing its usage and ending the process."""

    def error(self, message: str):
        raise UsageError(message)


def nearest(value: str, names: Iterable[str]) -> str:
    """The question whether the most alike name was meant, or nothing.

    Example:
        >>> from zoo.utils.command_line import nearest
        >>> nearest("dowload", ["info", "download"])
        ", did you mean 'download'?"
    """
    found = difflib.get_close_matches(value, list(names), 1)
    return f", did you mean {found[0]!r}?" if found else ""


def run(program: str, action: Callable[[], int], known: tuple[type[Exception], ...] = ()) -> int:
    """action()'s exit status; an error is one line on the standard error and a status of its own.

    Args:
        program: what the line begins with, such as "zoo.hub".
        action: does the work.
        known: exceptions whose message tells the user all, beside UsageError and OSError.

    Returns:
        0 or what action returns; 2 for a wrong option, 1 for what the machine or the network refuses, 130 for Ctrl-C.
    """
    try:
        return action()
    except UsageError as error:
        return fail(program, str(error), USAGE)
    except KeyboardInterrupt:
        return fail(program, "interrupted", INTERRUPTED)
    except BrokenPipeError:
        return fail(program, "the reader of the output went away", FAILED)
    except known as error:
        return fail(program, str(error), FAILED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return fail(program, f"{where}{error.strerror or error}", FAILED)


def fail(program: str, message: str, status: int) -> int:
    """One line on the standard error. What is left in the output's buffer cannot be written: it is dropped silently."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    print(f"{program}: " + " ".join(message.split()), file=sys.stderr)
    return status
