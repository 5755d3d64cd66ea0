"""Rprop."""

from typing import Any

from zoo.optim.blocks import Block, Elementwise
from zoo.optim.optimizer import need_plain, need_range


class Rprop(Elementwise):
    """Resilient backpropagation (Riedmiller and Braun, 1993): each element has a step size; of g only the sign counts.

    Where g and the previous g agree in sign, the size grows by etas[1]; where they do not, it shrinks by etas[0] and
    the element rests for this step. p -= sign(g) * size.

    Args:
        params: parameters, (name, parameter) pairs, or dicts of groups.
        lr: the first step size. etas: factors below and above 1. step_sizes: the smallest and the largest step size.
        maximize: go up instead of down.
        foreach, capturable: taken for torch's sake, without a meaning here. differentiable: only False.

    Raises:
        ValueError: a negative lr, or etas that are not in (0, 1) and above 1.

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.ones(1))
        >>> optimizer = zoo.optim.Rprop([p], lr=0.1)
        >>> (p * 2).sum().backward()
        >>> optimizer.step()
        >>> round(p.item(), 4)
        0.9
    """

    rule = "rprop"
    scalars = ("step",)

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        need_range("Rprop", "learning rate", lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Rprop: Invalid eta values: wants 0 < etas[0] < 1 < etas[1], got {etas[0]}, {etas[1]}")
        need_plain("Rprop", differentiable)
        defaults = dict(
            lr=lr,
            etas=etas,
            step_sizes=step_sizes,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            capturable=capturable,
        )
        super().__init__(params, defaults)

    def state_names(self, group: dict) -> tuple[str, ...]:
        return "prev", "step_size"

    def initial(self, name: str, group: dict) -> float:
        return float(group["lr"]) if name == "step_size" else 0.0

    def arguments(self, block: Block, group: dict):
        block.count()
        return (*group["etas"], *group["step_sizes"]), ()
