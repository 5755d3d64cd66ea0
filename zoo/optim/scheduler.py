"""Learning rates that change from step to step: the base class, and the schedules that go one way."""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from zoo.autograd.tensor import Tensor
from zoo.ops.cuda.capture import refuse
from zoo.optim.optimizer import Optimizer


class LRScheduler:
    """Base class: `step()` after each epoch or batch sets every group's "lr" to what `get_lr()` gives.

    `get_lr` goes from the groups' present lr to the next where it can, so that several schedulers act together.

    Args:
        optimizer: whose groups' "lr" is set. last_epoch: how many steps were made, -1 before the first, which the
            constructor makes; to resume, the groups have an "initial_lr".

    Raises:
        TypeError: no Optimizer. KeyError: resuming without an "initial_lr".

    Example:
        >>> import zoo
        >>> class HalfLR(zoo.optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [base * 0.5**self.last_epoch for base in self.base_lrs]
        >>> scheduler = HalfLR(zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0))
        >>> scheduler.step(); scheduler.step(); scheduler.get_last_lr()
        [0.25]
    """

    unsaved: tuple[str, ...] = ("optimizer",)
    _is_initial = False  # the constructor's step leaves relative schedules where they are

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        self.optimizer, self.last_epoch = need_optimizer(self, optimizer), last_epoch
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}: resuming at last_epoch {last_epoch} wants 'initial_lr' in each group"
                )
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self.initial_step()

    def initial_step(self) -> None:
        """The step that the constructor makes."""
        self._step_count, self._is_initial = 0, True
        self.step()
        self._is_initial = False

    def lrs(self) -> list[float]:
        """The groups' learning rates as they are now."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def get_lr(self) -> list[float]:
        """The learning rates at `last_epoch`, one per group."""
        raise NotImplementedError

    def closed_form(self) -> list[float]:
        """The learning rates at `last_epoch` from nothing but the initial ones: what `step(epoch)` sets."""
        return self.get_lr()

    def get_last_lr(self) -> list[float]:
        """The learning rates that are set now."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Goes to the next step, or to step `epoch`."""
        self._step_count += 1
        if epoch is None:
            self.last_epoch += 1
            self.set_lrs(self.get_lr())
        else:
            self.go_to(epoch)

    def go_to(self, epoch: int) -> None:
        """Sets the learning rates of step `epoch`; not counted as a step."""
        self.last_epoch = epoch
        self.set_lrs(self.closed_form())

    def set_lrs(self, values: list[float]) -> None:
        """Sets the groups' learning rates; groups that were added after the scheduler was made keep theirs."""
        refuse(f"{type(self).__name__} sets learning rates on the host (a replay reads them: step it outside)")
        for group, lr in zip(self.optimizer.param_groups, values, strict=False):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr
        self._last_lr = self.lrs()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions."""
        return {k: v for k, v in vars(self).items() if k not in self.unsaved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what state_dict gave; the optimizer has a state_dict of its own."""
        vars(self).update({k: v for k, v in state_dict.items() if k not in self.unsaved})


def need_optimizer(scheduler: Any, optimizer: Any) -> Optimizer:
    """The optimizer, or TypeError."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(scheduler).__name__}: wants an Optimizer, got {type(optimizer).__name__}")
    return optimizer


def per_group(name: str, optimizer: Optimizer, value: Any) -> list:
    """A value for each group: that of a list or tuple, or the same for all."""
    groups = len(optimizer.param_groups)
    values = list(value) if isinstance(value, (list, tuple)) else [value] * groups
    if len(values) != groups:
        raise ValueError(f"{name}: wants one value or {groups}, one per group, got {len(values)}")
    return values


class LambdaLR(LRScheduler):
    """initial lr * lr_lambda(step); one function, or a list with one per group.

    Example:
        >>> import zoo
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> scheduler = zoo.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
        >>> scheduler.step(); scheduler.get_last_lr()
        [0.5]
    """

    unsaved = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1):
        name = f"{type(self).__name__}: lr_lambda"
        self.lr_lambdas = per_group(name, need_optimizer(self, optimizer), lr_lambda)
        for f in self.lr_lambdas:
            if not callable(f):
                raise TypeError(f"{name} wants functions, got {type(f).__name__}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Functions are not saved, the attributes of callable objects are."""
        return {**super().state_dict(), "lr_lambdas": [attributes_of(f) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        for f, values in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if values is not None:
                vars(f).update(values)


def attributes_of(f: Callable | None) -> dict[str, Any] | None:
    """What a callable object would need to be restored; None for a function."""
    return None if f is None or not hasattr(f, "__dict__") or hasattr(f, "__code__") else dict(vars(f))


class MultiplicativeLR(LambdaLR):
    """lr * lr_lambda(step) at each step; one function, or a list with one per group.

    Example:
        >>> import zoo
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> scheduler = zoo.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda step: 0.5)
        >>> scheduler.step(); scheduler.step(); scheduler.get_last_lr()
        [0.25]
    """

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self.lrs()
        return [lr * f(self.last_epoch) for lr, f in zip(self.lrs(), self.lr_lambdas, strict=False)]


class StepLR(LRScheduler):
    """lr * gamma every `step_size` steps.

    Example:
        >>> import zoo
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> scheduler = zoo.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> scheduler.step(); scheduler.step(); scheduler.get_last_lr()
        [0.1]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        turn = self.last_epoch and self.last_epoch % self.step_size == 0
        return [lr * self.gamma if turn else lr for lr in self.lrs()]

    def closed_form(self) -> list[float]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """lr * gamma at each of the steps `milestones`.

    Example:
        >>> import zoo
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> scheduler = zoo.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3])
        >>> scheduler.step(); scheduler.step(); scheduler.get_last_lr()
        [0.1]
    """

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1):
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        times = self.milestones.get(self.last_epoch, 0)
        return [lr * self.gamma**times if times else lr for lr in self.lrs()]

    def closed_form(self) -> list[float]:
        times = sum(count for step, count in self.milestones.items() if step <= self.last_epoch)
        return [base * self.gamma**times for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """initial lr * factor until step total_iters, the initial lr from there on.

    Raises:
        ValueError: a factor outside [0, 1].

    Example:
        >>> import zoo
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> zoo.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5).get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1):
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: wants a factor between 0 and 1, got {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self.lrs()]
        return [lr * (1 / self.factor) for lr in self.lrs()] if self.last_epoch == self.total_iters else self.lrs()

    def closed_form(self) -> list[float]:
        factor = 1.0 if self.last_epoch >= self.total_iters else self.factor
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """initial lr * a factor that goes from start_factor to end_factor in total_iters steps, in a line.

    Raises:
        ValueError: a start_factor outside (0, 1], an end_factor outside [0, 1].

    Example:
        >>> import zoo
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> scheduler = zoo.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
        >>> scheduler.step(); scheduler.get_last_lr()
        [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if not 0 < start_factor <= 1:
            raise ValueError(f"LinearLR: wants a start_factor above 0 and at most 1, got {start_factor}")
        if not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: wants an end_factor between 0 and 1, got {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in self.lrs()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self.lrs()
        rise = self.end_factor - self.start_factor
        factor = 1 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)
        return [lr * factor for lr in self.lrs()]

    def closed_form(self) -> list[float]:
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        factor = self.start_factor + (self.end_factor - self.start_factor) * share
        return [base * factor for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """lr * gamma at each step.

    Example:
        >>> import zoo
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> scheduler = zoo.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> scheduler.step(); scheduler.step(); scheduler.get_last_lr()
        [0.25]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self.lrs() if self._is_initial else [lr * self.gamma for lr in self.lrs()]

    def closed_form(self) -> list[float]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """initial lr * (1 - step / total_iters)^power, 0 from step total_iters on.

    Example:
        >>> import zoo
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> scheduler = zoo.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
        >>> scheduler.step(); scheduler.get_last_lr()
        [0.75]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self.lrs()
        now, before = (1 - step / self.total_iters for step in (self.last_epoch, self.last_epoch - 1))
        return [lr * (now / before) ** self.power for lr in self.lrs()]

    def closed_form(self) -> list[float]:
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (1 - share) ** self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """eta_min + (initial lr - eta_min) * (1 + cos(pi * step / T_max)) / 2 (Loshchilov and Hutter, 2016).

    Example:
        >>> import zoo
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> scheduler = zoo.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
        >>> scheduler.step(); round(scheduler.get_last_lr()[0], 4)
        0.75
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):  # noqa: N803
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self.lrs()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # from the bottom, where the ratio is 0 / 0
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (base - self.eta_min) * rise for lr, base in zip(self.lrs(), self.base_lrs, strict=False)]
        now, before = (1 + math.cos(math.pi * k / self.T_max) for k in (self.last_epoch, self.last_epoch - 1))
        return [now / before * (lr - self.eta_min) + self.eta_min for lr in self.lrs()]

    def closed_form(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]
