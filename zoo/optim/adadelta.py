"""Adadelta."""

import math
from typing import Any

from zoo.optim.blocks import Block, Elementwise
from zoo.optim.optimizer import need_plain, need_range


class Adadelta(Elementwise):
    """Adadelta (Zeiler, 2012): steps in the units of the parameter, by running means of squared gradients and steps.

    v = rho v + (1 - rho) g^2; d = sqrt(u + eps) / sqrt(v + eps) * g; u = rho u + (1 - rho) d^2; p -= lr * d.

    Args:
        params: parameters, (name, parameter) pairs, or dicts of groups.
        lr: learning rate. rho: decay of the means, in [0, 1]. eps: added under both roots.
        weight_decay: adds weight_decay * p to g. maximize: go up instead of down.
        foreach, capturable: taken for torch's sake, without a meaning here. differentiable: only False.

    Raises:
        ValueError: a negative number, or rho above 1.

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.ones(1))
        >>> optimizer = zoo.optim.Adadelta([p], lr=1.0)
        >>> (p * 2).sum().backward()
        >>> optimizer.step()
        >>> round(p.item(), 4)
        0.9968
    """

    rule = "adadelta"
    scalars = ("step",)

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        need_range("Adadelta", "learning rate", lr)
        need_range("Adadelta", "rho value", rho, high=math.nextafter(1, 2))
        need_range("Adadelta", "epsilon value", eps)
        need_range("Adadelta", "weight_decay value", weight_decay)
        need_plain("Adadelta", differentiable)
        defaults = dict(
            lr=lr,
            rho=rho,
            eps=eps,
            weight_decay=weight_decay,
            maximize=maximize,
            capturable=capturable,
            foreach=foreach,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def state_names(self, group: dict) -> tuple[str, ...]:
        return "square_avg", "acc_delta"

    def arguments(self, block: Block, group: dict):
        block.count()
        return (float(group["lr"]), group["rho"], 1 - group["rho"], group["eps"]), ()
