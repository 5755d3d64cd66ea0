"""python -m zoo.train: trains, or says in one line why not."""

import sys

from zoo.checkpoint.errors import FileError
from zoo.hub.errors import HubError
from zoo.ops.errors import DeviceError
from zoo.train.config import Config
from zoo.train.errors import Stopped, TrainingError
from zoo.train.flags import parse
from zoo.train.text_config import TextConfig
from zoo.train.text_config import parse as parse_text
from zoo.utils.command_line import fail, run

TASKS = ("image", "text")                # the first is meant where none is named


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0; 2 for a wrong option, 1 for what the machine refuses, 128 + its number for a signal."""
    return run("zoo.train", lambda: start(arguments), (DeviceError, FileError, HubError, TrainingError))


def start(arguments: list[str] | None) -> int:
    """Does what the command line says."""
    given = sys.argv[1:] if arguments is None else arguments
    task = given[0] if given and given[0] in TASKS else None
    rest = given[1:] if task else given
    config = parse_text(rest) if task == "text" else parse(rest)
    check_device(config.device)
    try:
        do(config)
    except Stopped as stopped:
        return fail("zoo.train", str(stopped), stopped.status)
    return 0


def do(config: Config | TextConfig) -> None:
    """Trains, evaluates or predicts."""
    import zoo
    from zoo.ops.threads import set_num_threads

    set_num_threads(config.threads)
    zoo.manual_seed(config.seed)
    if isinstance(config, TextConfig):
        from zoo.train.text import train as train_text

        train_text(config)
        return
    if config.predict:
        from zoo.train.without_training import predict

        predict(config)
        return
    from zoo.train.image import ImageTask

    task = ImageTask(config)
    if config.eval_only:
        from zoo.train.without_training import evaluate_only

        evaluate_only(task)
        return
    from zoo.train.loop import train

    train(task)


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
