"""Stochastic gradient descent."""

from typing import Any

from zoo.optim.blocks import Block, Elementwise
from zoo.optim.optimizer import need_plain, need_range


class SGD(Elementwise):
    """Stochastic gradient descent with momentum (Sutskever et al., 2013).

    b = momentum * b + (1 - dampening) * g, or g in the first step; p -= lr * b, with nesterov lr * (g + momentum * b).

    Args:
        params: parameters, (name, parameter) pairs, or dicts of groups.
        lr: learning rate. momentum, dampening, nesterov: see the formula. weight_decay: adds weight_decay * p to g.
        maximize: go up instead of down. foreach, fused: taken for torch's sake, without a meaning here.

    Raises:
        ValueError: a negative lr, momentum or weight decay; nesterov without momentum or with dampening.

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.ones(1))
        >>> optimizer = zoo.optim.SGD([p], lr=0.1)
        >>> (p * 2).sum().backward()
        >>> optimizer.step()
        >>> p.item()
        0.800000011920929
    """

    rule = "sgd"

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        need_range("SGD", "learning rate", lr)
        need_range("SGD", "momentum value", momentum)
        need_range("SGD", "weight_decay value", weight_decay)
        need_plain("SGD", differentiable)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                "SGD: Nesterov momentum requires a momentum and zero dampening, "
                f"got momentum {momentum} and dampening {dampening}"
            )
        defaults = dict(
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
            foreach=foreach,
            differentiable=differentiable,
            fused=fused,
        )
        super().__init__(params, defaults)

    def state_names(self, group: dict) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()

    def arguments(self, block: Block, group: dict):
        numbers = float(group["lr"]), group["momentum"], 1 - group["dampening"]
        return numbers, (bool(group["momentum"]), block.fresh, group["nesterov"])
