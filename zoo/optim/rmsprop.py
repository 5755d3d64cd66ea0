"""RMSprop."""

from typing import Any

from zoo.optim.blocks import Block, Elementwise
from zoo.optim.optimizer import need_plain, need_range


class RMSprop(Elementwise):
    """RMSprop (Hinton, 2012, lecture 6e): steps scaled by a running mean of the squared gradient.

    v = alpha v + (1 - alpha) g^2; d = g / (sqrt(v) + eps); p -= lr * d, with momentum b = momentum b + d; p -= lr * b.
    Centered (Graves, 2013): v less the square of the running mean of g stands under the root.

    Args:
        params: parameters, (name, parameter) pairs, or dicts of groups.
        lr: learning rate. alpha: decay of the means. eps: added to the root. momentum, centered: see the formula.
        weight_decay: adds weight_decay * p to g. maximize: go up instead of down.
        foreach, capturable: taken for torch's sake, without a meaning here. differentiable: only False.

    Raises:
        ValueError: a negative number.

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.ones(1))
        >>> optimizer = zoo.optim.RMSprop([p], lr=0.1)
        >>> (p * 2).sum().backward()
        >>> optimizer.step()
        >>> round(p.item(), 4)
        0.0
    """

    rule = "rmsprop"
    scalars = ("step",)

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        need_range("RMSprop", "learning rate", lr)
        need_range("RMSprop", "epsilon value", eps)
        need_range("RMSprop", "momentum value", momentum)
        need_range("RMSprop", "weight_decay value", weight_decay)
        need_range("RMSprop", "alpha value", alpha)
        need_plain("RMSprop", differentiable)
        defaults = dict(
            lr=lr,
            momentum=momentum,
            alpha=alpha,
            eps=eps,
            centered=centered,
            weight_decay=weight_decay,
            capturable=capturable,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def state_names(self, group: dict) -> tuple[str, ...]:
        centered = ("grad_avg",) if group["centered"] else ()
        return "square_avg", *centered, *(("momentum_buffer",) if group["momentum"] > 0 else ())

    def arguments(self, block: Block, group: dict):
        block.count()
        alpha, momentum = group["alpha"], group["momentum"]
        return (float(group["lr"]), alpha, 1 - alpha, group["eps"], momentum), (group["centered"], momentum > 0)
