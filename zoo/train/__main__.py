"""python -m zoo.train: trains, or says in one line why not."""

import sys

from zoo.ops.errors import DeviceError
from zoo.train.config import parse
from zoo.utils.command_line import run


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0, or 2 for a wrong option, 1 for what the machine refuses, 130 for Ctrl-C."""
    return run("zoo.train", lambda: start(arguments), (DeviceError,))


def start(arguments: list[str] | None) -> int:
    """Trains as the command line says."""
    config = parse(arguments)
    check_device(config.device)
    from zoo.train.loop import train

    train(config)
    return 0


def check_device(name: str) -> None:
    """Raises before anything is made if the device is not there."""
    from zoo.ops import cuda
    from zoo.ops.device import device

    try:
        there = device(name).type != "cuda" or cuda.is_available()
    except DeviceError as error:
        raise DeviceError(f"--device: {error}") from None
    if not there:
        raise DeviceError(f"--device: {name} was asked for, but there is no usable NVIDIA GPU; "
                          "--device cpu works everywhere")


if __name__ == "__main__":
    sys.exit(main())
