"""Adam and AdamW."""

import math
from typing import Any

from zoo.optim.blocks import Block, Elementwise
from zoo.optim.optimizer import need_adam


class Adam(Elementwise):
    """Adam (Kingma and Ba, 2014): steps scaled by running means of the gradient and of its square.

    m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; p -= lr * m' / (sqrt(v') + eps), m' and v' without bias.

    Args:
        params: parameters, (name, parameter) pairs, or dicts of groups.
        lr: learning rate. betas: decay of the two means. eps: added to the root.
        weight_decay: adds weight_decay * p to g; with decoupled_weight_decay p shrinks by lr * weight_decay instead.
        amsgrad: divide by the greatest v so far. maximize: go up instead of down.
        foreach, capturable, fused: taken for torch's sake, without a meaning here. differentiable: only False.

    Raises:
        ValueError: a negative lr, eps or weight decay, a beta outside [0, 1).

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.ones(1))
        >>> optimizer = zoo.optim.Adam([p], lr=0.1)
        >>> (p * 2).sum().backward()
        >>> optimizer.step()
        >>> p
        Parameter containing:
        tensor([0.9000], requires_grad=True)
    """

    rule = "adam"
    scalars = ("step",)

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):
        name = type(self).__name__
        need_adam(name, lr, eps, betas, weight_decay, differentiable)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=decoupled_weight_decay,
        )
        super().__init__(params, defaults)

    def state_names(self, group: dict) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")

    def arguments(self, block: Block, group: dict):
        step, (beta1, beta2) = block.count(), group["betas"]
        # lr / c1 * m / (sqrt(v) / c2 + eps) = (lr c2 / c1) * m / (sqrt(v) + eps c2)
        c1, c2 = 1 - beta1**step, math.sqrt(1 - beta2**step)
        rate = float(group["lr"]) * c2 / c1
        return (rate, beta2, 1 - beta1, 1 - beta2, group["eps"] * c2), (group["amsgrad"],)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017): p first shrinks by lr * weight_decay.

    Args: as Adam.

    Example:
        >>> import zoo
        >>> zoo.optim.AdamW([zoo.nn.Parameter(zoo.ones(1))]).param_groups[0]["weight_decay"]
        0.01
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
