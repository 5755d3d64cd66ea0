"""python -m zoo.train: trains, or says in one line why not."""

import os
import sys

from zoo.ops.errors import DeviceError
from zoo.train.config import UsageError, parse


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0, or 2 for a wrong option, 1 for what the machine refuses, 130 for Ctrl-C."""
    try:
        config = parse(arguments)
        check_device(config.device)
        from zoo.train.loop import train

        train(config)
        return 0
    except UsageError as error:
        return fail(str(error), 2)
    except DeviceError as error:
        return fail(f"--device: {error}", 1)
    except KeyboardInterrupt:
        return fail("interrupted", 130)
    except BrokenPipeError:
        return fail("the reader of the output went away", 1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return fail(f"{where}{error.strerror or error}", 1)


def check_device(name: str) -> None:
    """Raises before anything is made if the device is not there."""
    from zoo.ops import cuda
    from zoo.ops.device import device

    if device(name).type == "cuda" and not cuda.is_available():
        raise DeviceError(f"{name} was asked for, but there is no usable NVIDIA GPU; --device cpu works everywhere")


def fail(message: str, status: int) -> int:
    """One line on the standard error. What is left in the output's buffer cannot be written: it is dropped silently."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    print("zoo.train: " + " ".join(message.split()), file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
