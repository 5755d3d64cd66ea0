"""Learning rates that go up and down again, some with the momentum going the other way."""

import math
from collections.abc import Callable
from typing import Any

from zoo.optim.optimizer import Optimizer
from zoo.optim.scheduler import LRScheduler, attributes_of, need_optimizer, per_group


class CosineAnnealingWarmRestarts(LRScheduler):
    """eta_min + (initial lr - eta_min) * (1 + cos(pi * T_cur / T_i)) / 2, from the top again every T_i steps.

    Args:
        T_0: the first T_i. T_mult: each T_i is so many times the one before. eta_min: the lowest learning rate.

    Source: Loshchilov and Hutter, 2016, "SGDR".

    Raises:
        ValueError: T_0 or T_mult that is no positive integer, a negative epoch.

    Example:
        >>> import zoo
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> scheduler = zoo.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> scheduler.step(); scheduler.step(); scheduler.get_last_lr()
        [1.0]
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1):  # noqa: N803
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"CosineAnnealingWarmRestarts: {name} wants a positive integer, got {value!r}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes to the next step, or to `epoch`, which may have a fraction: epoch + batch / batches."""
        if epoch is not None and epoch < 0:
            raise ValueError(f"CosineAnnealingWarmRestarts: wants an epoch of 0 or more, got {epoch}")
        self._step_count += 1
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        elif epoch < self.T_0 or self.T_mult == 1:
            self.T_cur, self.T_i = epoch % self.T_0, self.T_0
        else:
            restarts = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**restarts - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**restarts
        self.last_epoch = math.floor(epoch)
        self.set_lrs(self.get_lr())


class MomentumScheduler(LRScheduler):
    """Base class of schedules that also set the momentum, or beta1 where the optimizer has betas."""

    cycle_momentum: bool

    def start_momentum(self, optimizer: Optimizer, base: Any, top: Any, last_epoch: int) -> None:
        """Sets the groups' momentum to the top of its range, which they remember."""
        name = type(self).__name__
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(f"{name}: cycle_momentum wants an optimizer with momentum or betas")
        self.use_beta1 = "betas" in optimizer.defaults
        self.base_momentums = per_group(f"{name}: base_momentum", optimizer, base)
        self.max_momentums = per_group(f"{name}: max_momentum", optimizer, top)
        if last_epoch == -1:
            ranges = zip(optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, base_momentum, max_momentum in ranges:
                group["base_momentum"], group["max_momentum"] = base_momentum, max_momentum
                self.set_momentum(group, max_momentum)

    def set_momentum(self, group: dict, momentum: float) -> None:
        """Sets what stands for momentum in a group."""
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(MomentumScheduler):
    """Up in a line from base_lr to max_lr and down again, over and over (Smith, 2015).

    Args:
        base_lr, max_lr: the range, one or one per group. step_size_up, step_size_down: steps of a half cycle.
        mode: "triangular"; "triangular2": the height is halved each cycle; "exp_range": it is gamma^step.
        scale_fn: takes the place of mode: the height's factor by the number of the cycle or, with scale_mode
            "iterations", of the step. cycle_momentum: the momentum goes from max_momentum to base_momentum and back.

    Raises:
        ValueError: an unknown mode, a list of another length than the groups, no momentum to cycle.

    Example:
        >>> import zoo
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> scheduler = zoo.optim.lr_scheduler.CyclicLR(optimizer, 0.0, 1.0, step_size_up=4)
        >>> scheduler.step(); scheduler.get_last_lr()
        [0.25]
    """

    unsaved = ("optimizer", "_scale_fn_custom")

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ):
        base_lrs = per_group("CyclicLR: base_lr", need_optimizer(self, optimizer), base_lr)
        self.max_lrs = per_group("CyclicLR: max_lr", optimizer, max_lr)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"CyclicLR: mode wants 'triangular', 'triangular2' or 'exp_range', got {mode!r}")
        self.optimizer, self.mode, self.gamma, self._scale_fn_custom = optimizer, mode, gamma, scale_fn
        self.total_size = float(step_size_up + (step_size_up if step_size_down is None else step_size_down))
        self.step_ratio = step_size_up / self.total_size
        self.scale_mode = scale_mode if scale_fn else "iterations" if mode == "exp_range" else "cycle"
        if last_epoch == -1:
            self.set_lrs(base_lrs)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.start_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The height's factor in cycle x, or at step x."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {"triangular": 1.0, "triangular2": 0.5 ** (x - 1), "exp_range": self.gamma**x}[self.mode]

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            ranges = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=False)
            for group, base, top in ranges:
                self.set_momentum(group, top - (top - base) * height)
        return [base + (top - base) * height for base, top in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """A scale_fn that is a function is not saved, the attributes of a callable object are."""
        return {**super().state_dict(), "_scale_fn_custom": attributes_of(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        if state_dict["_scale_fn_custom"] is not None:
            vars(self._scale_fn_custom).update(state_dict["_scale_fn_custom"])


class OneCycleLR(MomentumScheduler):
    """Up from max_lr / div_factor to max_lr, then down to max_lr / div_factor / final_div_factor (Smith, Topin, 2017).

    Args:
        max_lr: the peak, one or one per group. total_steps, or epochs * steps_per_epoch: how many steps there are.
        pct_start: share of the steps that go up. anneal_strategy: "cos" or "linear".
        cycle_momentum: momentum (or beta1) goes the other way, from max_momentum to base_momentum and back.
        three_phase: as far down as it went up, in as many steps, and then the rest.

    Raises:
        ValueError: no number of steps, a share outside [0, 1], or a step beyond the last.

    Example:
        >>> import zoo
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> scheduler = zoo.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10, div_factor=4)
        >>> scheduler.get_last_lr()
        [0.25]
        >>> scheduler.step(); scheduler.step(); scheduler.get_last_lr()
        [1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        need_optimizer(self, optimizer)
        if total_steps is None and epochs is not None and steps_per_epoch is not None:
            total_steps = epochs * steps_per_epoch
        if not isinstance(total_steps, int) or total_steps <= 0:
            raise ValueError(
                f"OneCycleLR: wants total_steps, or epochs and steps_per_epoch, above 0, got {total_steps}"
            )
        if not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR: wants pct_start between 0 and 1, got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR: wants anneal_strategy 'cos' or 'linear', got {anneal_strategy!r}")
        self.total_steps, self.anneal_strategy, self.cycle_momentum = total_steps, anneal_strategy, cycle_momentum
        self._schedule_phases = phases(total_steps, float(pct_start * total_steps), three_phase)
        peaks = per_group("OneCycleLR: max_lr", optimizer, max_lr)
        for group, peak in zip(optimizer.param_groups, peaks, strict=True):
            if last_epoch == -1:
                group["initial_lr"], group["max_lr"] = peak / div_factor, peak
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            self.start_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def between(self, start: float, end: float, share: float) -> float:
        """The value at a share of the way."""
        if self.anneal_strategy == "linear":
            return start + (end - start) * share
        return end + (start - end) / 2 * (1 + math.cos(math.pi * share))

    def get_lr(self) -> list[float]:
        if self.last_epoch > self.total_steps:
            raise ValueError(f"OneCycleLR: wants at most {self.total_steps} steps, got step {self.last_epoch}")
        ends = [phase["end_step"] for phase in self._schedule_phases]
        k = next((k for k, end in enumerate(ends) if self.last_epoch <= end), len(ends) - 1)
        phase, begin = self._schedule_phases[k], ends[k - 1] if k else 0.0
        share = (self.last_epoch - begin) / (ends[k] - begin)
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                momentum = self.between(group[phase["start_momentum"]], group[phase["end_momentum"]], share)
                self.set_momentum(group, momentum)
        return [self.between(g[phase["start_lr"]], g[phase["end_lr"]], share) for g in self.optimizer.param_groups]


def phases(total: int, rise: float, three: bool) -> list[dict[str, Any]]:
    """The parts of one cycle: the step at which each ends, and the groups' keys of what it goes from and to."""
    keys = "end_step", "start_lr", "end_lr", "start_momentum", "end_momentum"
    up = rise - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum"
    if three:
        down = 2 * rise - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"
        rows = up, down, (total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")
    else:
        rows = up, (total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")
    return [dict(zip(keys, row, strict=True)) for row in rows]
