"""NAdam: Adam with Nesterov's momentum."""

import math
from typing import Any

from zoo.optim.blocks import Block, Elementwise
from zoo.optim.optimizer import need_adam, need_range


class NAdam(Elementwise):
    """Adam with Nesterov's momentum (Dozat, 2016).

    mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2); with m and v as in Adam
    p -= lr * ((1 - mu_t) g / (1 - mu_1...mu_t) + mu_t+1 m / (1 - mu_1...mu_t+1)) / (sqrt(v') + eps).

    Args:
        params: parameters, (name, parameter) pairs, or dicts of groups.
        lr: learning rate. betas: decay of the two means. eps: added to the root. momentum_decay: see the formula.
        weight_decay: adds weight_decay * p to g; with decoupled_weight_decay p shrinks by lr * weight_decay instead.
        maximize: go up instead of down.
        foreach, capturable: taken for torch's sake, without a meaning here. differentiable: only False.

    Raises:
        ValueError: a negative number, or a beta outside [0, 1).

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.ones(1))
        >>> optimizer = zoo.optim.NAdam([p], lr=0.1)
        >>> (p * 2).sum().backward()
        >>> optimizer.step()
        >>> round(p.item(), 4)
        0.8944
    """

    rule = "nadam"
    scalars = ("step", "mu_product")

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        need_adam("NAdam", lr, eps, betas, weight_decay, differentiable)
        need_range("NAdam", "momentum_decay value", momentum_decay)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def state_names(self, group: dict) -> tuple[str, ...]:
        return "exp_avg", "exp_avg_sq"

    def initial(self, name: str, group: dict) -> float:
        return 1.0 if name == "mu_product" else 0.0

    def arguments(self, block: Block, group: dict):
        step, lr, (beta1, beta2) = block.count(), float(group["lr"]), group["betas"]
        mu, following = (beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
        product = block.scalars["mu_product"]
        product *= mu
        so_far = float(product)
        c2 = math.sqrt(1 - beta2**step)  # as in Adam, it moves from v into the rates and eps
        of_g, of_m = lr * c2 * (1 - mu) / (1 - so_far), lr * c2 * following / (1 - so_far * following)
        return (of_g, of_m, beta2, 1 - beta1, 1 - beta2, group["eps"] * c2), ()
