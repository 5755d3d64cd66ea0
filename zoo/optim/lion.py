"""Lion."""

from typing import Any

from zoo.optim.blocks import Block, Elementwise
from zoo.optim.optimizer import need_betas, need_range


class Lion(Elementwise):
    """Lion (Chen et al., 2023, "Symbolic discovery of optimization algorithms"): the sign of a momentum.

    p = (1 - lr weight_decay) p - lr sign(beta1 m + (1 - beta1) g); m = beta2 m + (1 - beta2) g.

    Args:
        params: parameters, (name, parameter) pairs, or dicts of groups.
        lr: learning rate, three to ten times smaller than AdamW's. betas: see the formula.
        weight_decay: decoupled, three to ten times larger than AdamW's. maximize: go up instead of down.

    Raises:
        ValueError: a negative lr or weight decay, a beta outside [0, 1).

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.ones(1))
        >>> optimizer = zoo.optim.Lion([p], lr=0.5)
        >>> (p * 2).sum().backward()
        >>> optimizer.step()
        >>> p.item()
        0.5
    """

    rule = "lion"
    decoupled = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ):
        need_range("Lion", "learning rate", lr)
        need_betas("Lion", betas)
        need_range("Lion", "weight_decay value", weight_decay)
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay, maximize=maximize))

    def state_names(self, group: dict) -> tuple[str, ...]:
        return ("exp_avg",)

    def arguments(self, block: Block, group: dict):
        beta1, beta2 = group["betas"]
        return (float(group["lr"]), 1 - beta1, 1 - beta2), ()
