"""RAdam: Adam that waits until its variance is known."""

import math
from typing import Any

from zoo.optim.blocks import Block, Elementwise
from zoo.optim.optimizer import need_adam


class RAdam(Elementwise):
    """Rectified Adam (Liu et al., 2019): plain momentum until the variance of v is tractable, then Adam times r_t.

    rho = 2 / (1 - beta2) - 1; rho_t = rho - 2 t beta2^t / (1 - beta2^t); with rho_t > 5
    p -= lr * r_t m' / (sqrt(v) + eps) * sqrt(1 - beta2^t), before p -= lr * m';
    r_t^2 = (rho_t - 4)(rho_t - 2) rho / ((rho - 4)(rho - 2) rho_t).

    Args:
        params: parameters, (name, parameter) pairs, or dicts of groups.
        lr: learning rate. betas: decay of the two means. eps: added to the root.
        weight_decay: adds weight_decay * p to g; with decoupled_weight_decay p shrinks by lr * weight_decay instead.
        maximize: go up instead of down.
        foreach, capturable: taken for torch's sake, without a meaning here. differentiable: only False.

    Raises:
        ValueError: a negative number, or a beta outside [0, 1).

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.ones(1))
        >>> optimizer = zoo.optim.RAdam([p], lr=0.1)
        >>> (p * 2).sum().backward()
        >>> optimizer.step()
        >>> round(p.item(), 4)
        0.8
    """

    rule = "radam"
    scalars = ("step",)

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        need_adam("RAdam", lr, eps, betas, weight_decay, differentiable)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            decoupled_weight_decay=decoupled_weight_decay,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def state_names(self, group: dict) -> tuple[str, ...]:
        return "exp_avg", "exp_avg_sq"

    def arguments(self, block: Block, group: dict):
        step, (beta1, beta2) = block.count(), group["betas"]
        rate, c2 = float(group["lr"]) / (1 - beta1**step), 1 - beta2**step
        most = 2 / (1 - beta2) - 1
        rho = most - 2 * step * beta2**step / c2
        tractable = rho > 5
        if tractable:
            rate *= math.sqrt(c2 * (rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho))
        return (rate, beta2, 1 - beta1, 1 - beta2, group["eps"]), (tractable,)
