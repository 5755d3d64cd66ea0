"""--eval-only and --predict: what a model can do already."""

from pathlib import Path
from typing import Any

from zoo.data.datasets.folder import IMG_EXTENSIONS
from zoo.hub import load
from zoo.hub import predict as most_probable
from zoo.train.config import Config, resolved
from zoo.train.console import say, warn
from zoo.train.errors import TrainingError
from zoo.train.evaluation import Result, evaluate
from zoo.train.loop import result_text
from zoo.train.run import autocast_of
from zoo.utils.command_line import UsageError


def evaluate_only(task: Any) -> Result:
    """Evaluates the task's model on its test pictures, else on those for validation, and prints the result.

    Raises:
        UsageError: there are no such pictures. TrainingError: too many broken ones.
    """
    part = next((part for part in ("test", "val") if part in task.datasets), None)
    if part is None:
        raise UsageError("--eval-only: wants pictures in test/ or val/")
    broken: list[str] = []

    def check(names: list[str]) -> None:
        for name in names:
            warn(f"broken picture skipped: {name}")
        broken.extend(names)
        if len(broken) > task.config.max_broken:
            raise TrainingError(f"{len(broken)} broken pictures, --max-broken {task.config.max_broken} are allowed")

    result = evaluate(task, task.model, part, lambda: autocast_of(task.config), check)
    say(f"{result_text(result)}, loss {result.loss:.4f}")
    return result


def predict(config: Config) -> None:
    """Prints the three most probable classes of a picture, or of every picture in a folder; broken ones are named.

    Raises:
        UsageError: no such file, or no pictures in the folder.
    """
    config, path = resolved(config), Path(config.predict)
    files = sorted(p for p in path.rglob("*") if p.suffix.lower() in IMG_EXTENSIONS) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise UsageError(f"--predict: no pictures at {config.predict}")
    model = load(config.model, None if config.weights == "none" else config.weights, device=config.device)
    if model.preprocess is None:
        raise UsageError(f"--predict: {config.model} does not say what pictures it wants; a folder runs/.../model does")
    for file in files:
        try:
            found = most_probable(model, file, topk=min(3, model.num_classes))
        except (OSError, ValueError) as error:
            warn(f"broken picture skipped: {file}: {error}")
            continue
        say(f"{file}: " + ", ".join(f"{p.label} {p.probability:.1%}" for p in found))
