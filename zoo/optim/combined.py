"""Schedulers made of others, warm-up, and the one that waits for a metric."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from zoo.optim.optimizer import Optimizer
from zoo.optim.scheduler import LinearLR, LRScheduler, need_optimizer, per_group


class Combined(LRScheduler):
    """Base class of schedulers that hold others, whose state is theirs."""

    unsaved = ("optimizer", "_schedulers")

    def hold(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        """Takes schedulers of one optimizer."""
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name}: wants at least one scheduler, got none")
        for k, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name}: wants schedulers, got {type(scheduler).__name__} at index {k}")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(f"{name}: ReduceLROnPlateau, at index {k}, wants a metric at each step")
            if scheduler.optimizer is not (optimizer or schedulers[0].optimizer):
                raise ValueError(f"{name}: the scheduler at index {k} belongs to another optimizer")
        self.optimizer, self._schedulers = schedulers[0].optimizer, list(schedulers)

    def state_dict(self) -> dict[str, Any]:
        """With the state of each scheduler."""
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(Combined):
    """One scheduler after another: at each of the steps `milestones` the next begins, at its own step 0.

    Raises:
        ValueError: no schedulers, not one milestone fewer than schedulers, several optimizers. TypeError: no scheduler.

    Example:
        >>> import zoo
        >>> from zoo.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> parts = [ConstantLR(optimizer, 0.5), ExponentialLR(optimizer, 0.5)]
        >>> scheduler = SequentialLR(optimizer, parts, milestones=[1])
        >>> scheduler.step(); scheduler.step(); scheduler.get_last_lr()
        [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: list[int], last_epoch: int = -1
    ):
        self.hold(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: wants {len(schedulers) - 1} milestones for {len(schedulers)} schedulers, "
                f"got {len(milestones)}"
            )
        self._milestones, self.last_epoch = list(milestones), last_epoch + 1
        self.set_lrs([group["initial_lr"] for group in optimizer.param_groups])
        self.undo(self)
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first.initial_step()
        self._last_lr = first.get_last_lr()

    def undo(self, scheduler: LRScheduler) -> None:
        """Takes back the step that every constructor below has made."""
        for inner in getattr(scheduler, "_schedulers", ()):
            self.undo(inner)
        if not isinstance(scheduler, Combined):
            scheduler.last_epoch -= 1

    def step(self, epoch: int | None = None) -> None:
        """Goes to the next step."""
        self.last_epoch += 1
        k = bisect_right(self._milestones, self.last_epoch)
        if k and self._milestones[k - 1] == self.last_epoch:
            self._schedulers[k].go_to(0)
        else:
            self._schedulers[k].step()
        self._last_lr = self._schedulers[k].get_last_lr()


class ChainedScheduler(Combined):
    """Several schedulers at once: each multiplies what the one before has set.

    Raises:
        ValueError: no schedulers, or several optimizers. TypeError: something that is no scheduler.

    Example:
        >>> import zoo
        >>> from zoo.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> scheduler = ChainedScheduler([ConstantLR(optimizer, 0.5), ExponentialLR(optimizer, 0.5)])
        >>> scheduler.step(); scheduler.get_last_lr()
        [0.25]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        self.hold(schedulers, optimizer)
        self._last_lr = self.lrs()

    def step(self, epoch: int | None = None) -> None:
        """Goes to the next step."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self.lrs()


def warm_up(scheduler: LRScheduler, steps: int, start_factor: float = 0.01) -> SequentialLR:
    """A linear warm-up from start_factor * lr in so many steps, and then the scheduler from its step 0.

    Source: Goyal et al., 2017, "Accurate, large minibatch SGD".

    Args:
        scheduler: what comes after, just made. steps: 1 or more. start_factor: above 0, at most 1.

    Returns:
        A scheduler to be stepped in place of the one given.

    Raises:
        ValueError: steps below 1, or a start_factor outside (0, 1].

    Example:
        >>> import zoo
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> cosine = zoo.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
        >>> scheduler = zoo.optim.lr_scheduler.warm_up(cosine, steps=2, start_factor=0.5)
        >>> for _ in range(3):
        ...     print(scheduler.get_last_lr())
        ...     scheduler.step()
        [0.5]
        [0.75]
        [1.0]
    """
    if steps < 1:
        raise ValueError(f"warm_up: wants 1 step or more, got {steps}")
    optimizer = scheduler.optimizer
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"]
    return SequentialLR(optimizer, [LinearLR(optimizer, start_factor, total_iters=steps), scheduler], [steps])


class ReduceLROnPlateau(LRScheduler):
    """lr * factor when a metric has not become better for more than `patience` steps.

    Args:
        mode: "min" or "max", what is better. factor: below 1. threshold: how much better counts, a share of the best
            (threshold_mode "rel") or a difference ("abs"). cooldown: steps after a reduction in which none is counted.
        min_lr: lower bound, one or one per group. eps: smaller reductions are not made.

    Raises:
        ValueError: a factor of 1 or more, an unknown mode, a list of another length than the groups.

    Example:
        >>> import zoo
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> scheduler = zoo.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        >>> for loss in (3.0, 2.0, 2.0, 2.0):
        ...     scheduler.step(loss)
        >>> scheduler.get_last_lr()
        [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ):
        if factor >= 1:
            raise ValueError(f"ReduceLROnPlateau: wants a factor below 1, got {factor}")
        if mode not in ("min", "max"):
            raise ValueError(f"ReduceLROnPlateau: mode wants 'min' or 'max', got {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau: threshold_mode wants 'rel' or 'abs', got {threshold_mode!r}")
        self.optimizer, self.last_epoch = need_optimizer(self, optimizer), 0
        self.mode, self.factor, self.patience, self.eps = mode, factor, patience, eps
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self.min_lrs = per_group("ReduceLROnPlateau: min_lr", optimizer, min_lr)
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.best = float("inf") if mode == "min" else -float("inf")
        self.cooldown_counter = self.num_bad_epochs = 0
        self._last_lr = self.lrs()

    def is_better(self, value: float) -> bool:
        """Is it better than the best by more than the threshold?"""
        sign = 1 if self.mode == "max" else -1
        relative = self.threshold_mode == "rel"
        bound = self.best * (1 + sign * self.threshold) if relative else self.best + sign * self.threshold
        return sign * value > sign * bound

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Takes the metric of one more epoch, a number or a tensor of one element."""
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            old = self.lrs()
            if len(old) != len(self.min_lrs):                    # groups came since
                self.min_lrs = per_group(
                    "ReduceLROnPlateau: min_lr", self.optimizer,
                    self.min_lrs if self.default_min_lr is None else self.default_min_lr,
                )
            new = [max(lr * self.factor, least) for lr, least in zip(old, self.min_lrs, strict=True)]
            self.set_lrs([b if a - b > self.eps else a for a, b in zip(old, new, strict=True)])
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self.lrs()
