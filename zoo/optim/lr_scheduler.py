"""Learning rates that change from step to step: torch.optim.lr_scheduler."""

import math
from typing import Any

from zoo.optim.optimizer import Optimizer


class LRScheduler:
    """Base class: `step()` after each epoch or batch sets every group's "lr" to what `get_lr()` gives.

    last_epoch: how many steps were made, -1 before the first; the constructor makes that one.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}: wants an Optimizer, got {type(optimizer).__name__}")
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group["initial_lr"] = group.get("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}: resuming at last_epoch {last_epoch} wants 'initial_lr' in each group"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.step()

    def get_lr(self) -> list[float]:
        """The learning rates at `last_epoch`, one per group."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The learning rates that are set now."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Goes to the next step, or to step `epoch`."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        # groups added after the scheduler was made keep their learning rate
        for group, lr in zip(self.optimizer.param_groups, self.get_lr(), strict=False):
            group["lr"] = lr
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {k: v for k, v in vars(self).items() if k != "optimizer" and not callable(v)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what state_dict gave."""
        vars(self).update(state_dict)


class LambdaLR(LRScheduler):
    """initial lr * lr_lambda(step); one function, or a list with one per group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1):
        groups = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"LambdaLR: wants {groups} functions, got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        return {k: v for k, v in super().state_dict().items() if k != "lr_lambdas"}


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
        return [group["lr"] * (self.gamma if turn else 1) for group in self.optimizer.param_groups]


class CosineAnnealingLR(LRScheduler):
    """eta_min + (initial lr - eta_min) * (1 + cos(pi * step / T_max)) / 2 (Loshchilov and Hutter, 2016)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):  # noqa: N803
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class OneCycleLR(LRScheduler):
    """Up from max_lr / div_factor to max_lr, then down to max_lr / div_factor / final_div_factor (Smith, Topin, 2017).

    Args:
        max_lr: the peak, one or one per group. total_steps, or epochs * steps_per_epoch: how many steps there are.
        pct_start: share of the steps that go up. anneal_strategy: "cos" or "linear".
        cycle_momentum: momentum (or beta1) goes the other way, from max_momentum to base_momentum and back.

    Raises:
        ValueError: no number of steps, a share outside [0, 1], or a step beyond the last.
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
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        last_epoch: int = -1,
    ):
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
        self.total_steps, self.anneal, self.cycle_momentum = total_steps, anneal_strategy, cycle_momentum
        self.turn, self.last = float(pct_start * total_steps) - 1, total_steps - 1
        self.momenta = (base_momentum, max_momentum)
        peaks = list(max_lr) if isinstance(max_lr, (list, tuple)) else [max_lr] * len(optimizer.param_groups)
        for group, peak in zip(optimizer.param_groups, peaks, strict=True):
            if last_epoch == -1:
                group["initial_lr"], group["max_lr"] = peak / div_factor, peak
                group["min_lr"] = group["initial_lr"] / final_div_factor
        super().__init__(optimizer, last_epoch)

    def between(self, start: float, end: float, share: float) -> float:
        """The value at a share of the way."""
        if self.anneal == "linear":
            return start + (end - start) * share
        return end + (start - end) / 2 * (1 + math.cos(math.pi * share))

    def at(self, first: float, peak: float, end: float) -> float:
        """The value at `last_epoch` of what goes from first to peak to end."""
        if self.last_epoch <= self.turn:
            return self.between(first, peak, self.last_epoch / self.turn)
        return self.between(peak, end, (self.last_epoch - self.turn) / (self.last - self.turn))

    def get_lr(self) -> list[float]:
        if self.last_epoch > self.total_steps:
            raise ValueError(f"OneCycleLR: wants at most {self.total_steps} steps, got step {self.last_epoch}")
        low, high = self.momenta
        for group in self.optimizer.param_groups if self.cycle_momentum else ():
            momentum = self.at(high, low, high)
            if "betas" in group:
                group["betas"] = (momentum, *group["betas"][1:])
            else:
                group["momentum"] = momentum
        return [self.at(g["initial_lr"], g["max_lr"], g["min_lr"]) for g in self.optimizer.param_groups]
