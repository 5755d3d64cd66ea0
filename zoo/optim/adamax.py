"""Adamax: Adam by the infinity norm."""

from typing import Any

from zoo.optim.blocks import Block, Elementwise
from zoo.optim.optimizer import need_adam


class Adamax(Elementwise):
    """Adam by the infinity norm (Kingma and Ba, 2014, section 7.1).

    m = beta1 m + (1 - beta1) g; u = max(beta2 u, |g| + eps); p -= lr / (1 - beta1^t) * m / u.

    Args:
        params: parameters, (name, parameter) pairs, or dicts of groups.
        lr: learning rate. betas: decay of m and of u. eps: added to |g|.
        weight_decay: adds weight_decay * p to g. maximize: go up instead of down.
        foreach, capturable: taken for torch's sake, without a meaning here. differentiable: only False.

    Raises:
        ValueError: a negative number, or a beta outside [0, 1).

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.ones(1))
        >>> optimizer = zoo.optim.Adamax([p], lr=0.1)
        >>> (p * 2).sum().backward()
        >>> optimizer.step()
        >>> round(p.item(), 4)
        0.9
    """

    rule = "adamax"
    scalars = ("step",)

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        need_adam("Adamax", lr, eps, betas, weight_decay, differentiable)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            capturable=capturable,
        )
        super().__init__(params, defaults)

    def state_names(self, group: dict) -> tuple[str, ...]:
        return "exp_avg", "exp_inf"

    def arguments(self, block: Block, group: dict):
        step, (beta1, beta2) = block.count(), group["betas"]
        return (float(group["lr"]) / (1 - beta1**step), beta2, 1 - beta1, group["eps"]), ()
