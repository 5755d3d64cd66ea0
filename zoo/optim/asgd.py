"""Averaged stochastic gradient descent."""

from typing import Any

from zoo.optim.blocks import Block, Elementwise
from zoo.optim.optimizer import need_plain, need_range


class ASGD(Elementwise):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992): the state `ax` holds the mean of the parameter.

    p = (1 - lambd eta) p - eta g; ax += mu (p - ax); eta = lr / (1 + lambd lr t)^alpha; mu = 1 / max(1, t - t0).

    Args:
        params: parameters, (name, parameter) pairs, or dicts of groups.
        lr, lambd, alpha: see the formula. t0: the step at which averaging begins.
        weight_decay: adds weight_decay * p to g. maximize: go up instead of down.
        foreach, capturable: taken for torch's sake, without a meaning here. differentiable: only False.

    Raises:
        ValueError: a negative lr or weight decay.

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.ones(1))
        >>> optimizer = zoo.optim.ASGD([p], lr=0.1)
        >>> (p * 2).sum().backward()
        >>> optimizer.step()
        >>> round(p.item(), 4)
        0.8
    """

    rule = "asgd"
    scalars = ("step", "eta", "mu")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        need_range("ASGD", "learning rate", lr)
        need_range("ASGD", "weight_decay value", weight_decay)
        need_plain("ASGD", differentiable)
        defaults = dict(
            lr=lr,
            lambd=lambd,
            alpha=alpha,
            t0=t0,
            weight_decay=weight_decay,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            capturable=capturable,
        )
        super().__init__(params, defaults)

    def state_names(self, group: dict) -> tuple[str, ...]:
        return ("ax",)

    def initial(self, name: str, group: dict) -> float:
        return {"eta": float(group["lr"]), "mu": 1.0}.get(name, 0.0)

    def shrink(self, block: Block, group: dict) -> float:
        return 1 - group["lambd"] * float(block.scalars["eta"])

    def arguments(self, block: Block, group: dict):
        step, lr = block.count(), float(group["lr"])
        eta, mu = block.scalars["eta"], block.scalars["mu"]
        numbers, flags = (float(eta), float(mu)), (float(mu) != 1,)
        eta[...] = lr / (1 + group["lambd"] * lr * step) ** group["alpha"]
        mu[...] = 1 / max(1, step - group["t0"])
        return numbers, flags
