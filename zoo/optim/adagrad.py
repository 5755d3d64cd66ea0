"""Adagrad."""

from typing import Any

from zoo.autograd.creation import full_like
from zoo.optim.blocks import Block, Elementwise
from zoo.optim.optimizer import need_plain, need_range, scalar


class Adagrad(Elementwise):
    """Adagrad (Duchi et al., 2011): steps scaled by the root of the sum of all squared gradients.

    s += g^2; p -= lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps).

    Args:
        params: parameters, (name, parameter) pairs, or dicts of groups.
        lr, lr_decay: see the formula. initial_accumulator_value: s before the first step. eps: added to the root.
        weight_decay: adds weight_decay * p to g. maximize: go up instead of down.
        foreach, fused: taken for torch's sake, without a meaning here. differentiable: only False.

    Raises:
        ValueError: a negative number.

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.ones(1))
        >>> optimizer = zoo.optim.Adagrad([p], lr=0.1)
        >>> (p * 2).sum().backward()
        >>> optimizer.step()
        >>> round(p.item(), 4)
        0.9
    """

    rule = "adagrad"
    scalars = ("step",)

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        need_range("Adagrad", "learning rate", lr)
        need_range("Adagrad", "lr_decay value", lr_decay)
        need_range("Adagrad", "weight_decay value", weight_decay)
        need_range("Adagrad", "initial_accumulator_value value", initial_accumulator_value)
        need_range("Adagrad", "epsilon value", eps)
        need_plain("Adagrad", differentiable)
        defaults = dict(
            lr=lr,
            lr_decay=lr_decay,
            eps=eps,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            fused=fused,
        )
        super().__init__(params, defaults)
        for group in self.param_groups:  # state_dict has them before the first step, as torch's
            for p in group["params"]:
                total = full_like(p, group["initial_accumulator_value"])
                self.state[p] = {"step": scalar(0.0), "sum": total}

    def state_names(self, group: dict) -> tuple[str, ...]:
        return ("sum",)

    def initial(self, name: str, group: dict) -> float:
        return group["initial_accumulator_value"] if name == "sum" else 0.0

    def arguments(self, block: Block, group: dict):
        return (float(group["lr"]) / (1 + (block.count() - 1) * group["lr_decay"]), group["eps"]), ()
