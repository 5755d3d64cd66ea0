"""Adafactor."""

import math
from typing import Any

from zoo.autograd.creation import zeros_like
from zoo.autograd.tensor import Tensor
from zoo.ops.limits import finfo
from zoo.optim.optimizer import Optimizer, need_range, scalar


class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern, 2018): second moments of a matrix as a row times a column, so no state of its size.

    With t the number of the step and w = t^beta2_decay: r = (1 - w) r + w mean of g^2 along each row, c likewise of
    each column; v = r c / mean(r); of vectors and numbers v = (1 - w) v + w g^2. u = g / sqrt(v);
    p = (1 - lr weight_decay) p - max(eps2, rms(p)) min(lr, 1 / sqrt(t)) u / max(1, rms(u) / d).

    Args:
        params: of any shape; the last two dimensions are factored.
        lr: the largest step relative to the parameter's size. beta2_decay: below 0, see the formula.
        eps: (eps1, eps2); v is at least eps1^2, by default that of the dtype.
        d: the largest root mean square of u. weight_decay: see the formula. maximize: goes up instead of down.
        foreach: has no effect.

    Raises:
        ValueError: a negative number, beta2_decay above 0, d below 1.

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.ones(2, 3))
        >>> optimizer = zoo.optim.Adafactor([p], lr=0.1)
        >>> (p * p).sum().backward()
        >>> optimizer.step()
        >>> round(p[0, 0].item(), 4)
        0.9
    """

    scalars = ("step",)

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ):
        need_range("Adafactor", "learning rate", lr)
        need_range("Adafactor", "-beta2_decay", -beta2_decay)
        need_range("Adafactor", "eps1", eps[0] or 0.0)
        need_range("Adafactor", "eps2", eps[1])
        need_range("Adafactor", "clipping threshold d", d, low=1.0)
        need_range("Adafactor", "weight_decay value", weight_decay)
        defaults = dict(lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay, foreach=foreach,
                        maximize=maximize)
        super().__init__(params, defaults)

    def step_group(self, index: int, group: dict) -> None:
        for p in group["params"]:
            if p.grad is not None:
                self.update(p, -p.grad if group["maximize"] else p.grad, group)

    def update(self, p: Tensor, g: Tensor, group: dict) -> None:
        """One step of one parameter."""
        state, lr, (eps1, eps2) = self.state[p], float(group["lr"]), group["eps"]
        state["step"] = state.get("step", scalar(0)) + 1
        t = state["step"].item()
        v = second_moment(state, g, t ** group["beta2_decay"], finfo(p.dtype).eps if eps1 is None else eps1)
        u = v.rsqrt() * g
        size = max(eps2, rms(p)) * min(lr, 1 / math.sqrt(t)) / max(1.0, rms(u) / group["d"])
        if group["weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        p.sub_(u, alpha=size)


def rms(x: Tensor) -> float:
    """The root of the mean square; 0 of nothing."""
    return x.norm().item() / math.sqrt(max(1, x.numel()))


def second_moment(state: dict, g: Tensor, weight: float, eps: float) -> Tensor:
    """v of the formula, from the averages kept in the state, which take g in; at least eps^2."""
    if g.ndim < 2:
        if "variance" not in state:
            state["variance"] = zeros_like(g)
        return state["variance"].lerp_(g * g, weight).clamp(min=eps * eps)
    squares = g * g
    for name, dim in (("row_var", -1), ("col_var", -2)):
        mean = squares.mean(dim, keepdim=True)
        if name not in state:
            state[name] = zeros_like(mean)
        state[name].lerp_(mean, weight)
    row, column = state["row_var"], state["col_var"]
    return (row @ column / row.mean(-2, keepdim=True).clamp(min=eps)).clamp(min=eps * eps)
