"""How weights are changed: parameter groups, frozen layers, optimizers and schedules by name."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from zoo import optim
from zoo.nn.containers import Sequential
from zoo.nn.module import Module
from zoo.nn.parameter import Parameter
from zoo.optim import lr_scheduler
from zoo.optim.optimizer import Optimizer
from zoo.optim.scheduler import LRScheduler
from zoo.utils.command_line import UsageError, nearest

OPTIMIZERS: dict[str, Any] = {
    name.lower(): kind
    for name, kind in sorted(vars(optim).items())
    if isinstance(kind, type) and issubclass(kind, Optimizer) and kind is not Optimizer
}
WITH_CLOSURE = ("lbfgs", "sam")                    # they compute the loss again within a step
DEFAULTS: dict[str, dict[str, Any]] = {
    "sgd": {"momentum": 0.9, "nesterov": True},
    "sam": {"base_optimizer": optim.SGD, "momentum": 0.9},
}
IN_EPOCHS = ("step_size", "milestones", "T_0", "T_max", "total_iters", "step_size_up", "step_size_down")


class Span(NamedTuple):
    """What a schedule is made for: the peak learning rates of the groups, its steps in all and in an epoch."""

    peaks: list[float]
    steps: int
    epoch: int


class Schedule(NamedTuple):
    """A scheduler's class, and its arguments for a span where the user gives none."""

    kind: Callable[..., Any]
    defaults: Callable[[Span], dict[str, Any]]


SCHEDULES = {
    "constant": Schedule(lr_scheduler.ConstantLR, lambda s: {"factor": 1.0, "total_iters": s.steps}),
    "step": Schedule(lr_scheduler.StepLR, lambda s: {"step_size": max(1, s.steps // 3)}),
    "multi_step": Schedule(lr_scheduler.MultiStepLR, lambda s: {"milestones": [s.steps // 2, s.steps * 3 // 4]}),
    "exponential": Schedule(lr_scheduler.ExponentialLR, lambda s: {"gamma": 0.01 ** (1 / s.steps)}),
    "linear": Schedule(lr_scheduler.LinearLR,
                       lambda s: {"start_factor": 1.0, "end_factor": 0.01, "total_iters": s.steps}),
    "polynomial": Schedule(lr_scheduler.PolynomialLR, lambda s: {"total_iters": s.steps, "power": 2.0}),
    "cosine": Schedule(lr_scheduler.CosineAnnealingLR, lambda s: {"T_max": s.steps}),
    "cosine_warm_restarts": Schedule(lr_scheduler.CosineAnnealingWarmRestarts, lambda s: {"T_0": s.epoch}),
    "one_cycle": Schedule(lr_scheduler.OneCycleLR, lambda s: {"max_lr": s.peaks, "total_steps": s.steps,
                                                              "pct_start": 0.2, "cycle_momentum": False}),
    "cyclic": Schedule(lr_scheduler.CyclicLR, lambda s: {"base_lr": [lr / 10 for lr in s.peaks], "max_lr": s.peaks,
                                                         "step_size_up": s.epoch, "cycle_momentum": False}),
    "plateau": Schedule(lr_scheduler.ReduceLROnPlateau, lambda s: {"patience": 3}),
}


def layers(model: Module) -> Iterator[tuple[str, Module]]:
    """The model's layers that have parameters, from input to output; blocks of a Sequential count one by one.

    Example:
        >>> from zoo import models
        >>> from zoo.train.recipe import layers
        >>> [name for name, _ in layers(models.resnet14(width=2))][:5]
        ['conv1', 'bn1', 'layer1.0', 'layer1.1', 'layer2.0']
    """
    for name, child in model.named_children():
        inside = child.named_children() if isinstance(child, Sequential) else [("", child)]
        for part, layer in inside:
            if next(iter(layer.parameters()), None) is not None:
                yield f"{name}.{part}".rstrip("."), layer


def freeze(model: Any, what: str) -> list[Module]:
    """Takes the first layers out of the training.

    Args:
        model: an ImageModel.
        what: "none"; "backbone", all but the classifier; or the number of layers.

    Returns:
        The frozen layers; they belong in eval mode, or their batch norms go on counting.

    Raises:
        UsageError: more layers than there are.
    """
    found = list(layers(model))
    count = int(what) if what.isdecimal() else 0
    if count >= len(found):
        raise UsageError(f"--freeze: wants less than the model's {len(found)} layers, got {count}")
    if what == "backbone":
        found = [(name, layer) for name, layer in found if name != model.classifier_name]
        count = len(found)
    frozen = [layer for _, layer in found[:count]]
    for layer in frozen:
        layer.requires_grad_(False)
    return frozen


def parameter_groups(model: Module, lr: float, decay: float) -> list[Any]:
    """The trainable parameters; with a layer-wise decay a group for each layer, at lr * decay^(layers above it).

    Example:
        >>> import zoo
        >>> from zoo.train.recipe import parameter_groups
        >>> model = zoo.nn.Sequential(zoo.nn.Linear(2, 2), zoo.nn.Linear(2, 2))
        >>> [group["lr"] for group in parameter_groups(model, 1.0, 0.5)]
        [0.5, 1.0]
    """
    wanted: list[Parameter] = [p for p in model.parameters() if p.requires_grad]
    if decay == 1:
        return wanted
    rates = {p: k for k, (_, layer) in enumerate(layers(model)) for p in layer.parameters()}
    top = max(rates.values())
    depths = sorted({rates[p] for p in wanted})
    return [{"params": [p for p in wanted if rates[p] == k], "lr": lr * decay ** (top - k)} for k in depths]


def make_optimizer(model: Module, config: Any) -> Optimizer:
    """The config's optimizer, on all parameters that are not frozen.

    Raises:
        UsageError: an argument that the optimizer does not take, or a value that it refuses.
    """
    kind = OPTIMIZERS[config.optimizer]
    takes = set(inspect.signature(kind).parameters)
    if config.optimizer == "sam":
        takes |= set(inspect.signature(optim.SGD).parameters)
    own = {"lr": config.lr, "weight_decay": config.weight_decay} | DEFAULTS.get(config.optimizer, {})
    options = {name: value for name, value in own.items() if name in takes}
    options |= wanted_options("optimizer", config.optimizer_options, takes)
    try:
        return kind(parameter_groups(model, config.lr, config.layer_decay), **options)
    except (TypeError, ValueError) as error:
        raise UsageError(f"--optimizer {config.optimizer}: {error}") from None


def make_schedule(optimizer: Optimizer, config: Any, steps_per_epoch: int) -> LRScheduler:
    """The config's schedule of the learning rate; it moves with every step, "plateau" with every epoch.

    Raises:
        UsageError: an argument that the schedule does not take, or a value that it refuses.
    """
    kind, defaults = SCHEDULES[config.schedule]
    steps, warm = config.epochs * steps_per_epoch, round(config.warmup * steps_per_epoch)
    if warm >= steps:
        raise UsageError(f"--warmup: wants fewer epochs than --epochs {config.epochs}, got {config.warmup}")
    span = Span([group["lr"] for group in optimizer.param_groups], steps - warm, steps_per_epoch)
    given = wanted_options("schedule", config.schedule_options, set(inspect.signature(kind).parameters))
    if config.schedule != "plateau":
        given = {name: in_steps(value, steps_per_epoch) if name in IN_EPOCHS else value
                 for name, value in given.items()}
    try:
        schedule = kind(optimizer, **defaults(span) | given)
    except (TypeError, ValueError) as error:
        raise UsageError(f"--schedule {config.schedule}: {error}") from None
    return lr_scheduler.warm_up(schedule, warm) if warm else schedule


def wanted_options(what: str, given: dict[str, Any], takes: set[str]) -> dict[str, Any]:
    """The given options, if they are arguments of it."""
    for name in given:
        if name not in takes:
            raise UsageError(f"--{what}-options: no argument {name!r}{nearest(name, takes)}")
    return given


def in_steps(value: Any, steps_per_epoch: int) -> Any:
    """A time in epochs, or a list of them, in steps."""
    if isinstance(value, list):
        return [in_steps(v, steps_per_epoch) for v in value]
    return max(1, round(value * steps_per_epoch))
