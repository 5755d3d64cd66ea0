"""LAMB."""

from typing import Any

from zoo.autograd.creation import ones_like, zeros_like
from zoo.autograd.tensor import Tensor
from zoo.ops.pointwise import where
from zoo.optim.optimizer import Optimizer, need_betas, need_range, scalar


class LAMB(Optimizer):
    """LAMB (You et al., 2019, "Large batch optimization for deep learning"): Adam with a step scaled per parameter.

    r = m' / (sqrt(v') + eps) + weight_decay * p with m' and v' as in Adam; p -= lr * |p| / |r| * r.
    The ratio is 1 where |p| or |r| is 0.

    Args:
        params: parameters, (name, parameter) pairs, or dicts of groups.
        lr: learning rate. betas: decay of the two means. eps: added to the root. weight_decay: see the formula.
        maximize: go up instead of down.

    Raises:
        ValueError: a negative lr, eps or weight decay, a beta outside [0, 1).

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.full((2,), 2.0))
        >>> optimizer = zoo.optim.LAMB([p], lr=0.25)
        >>> p.sum().backward()
        >>> optimizer.step()
        >>> [round(x, 4) for x in p.tolist()]
        [1.5, 1.5]
    """

    scalars = ("step",)

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ):
        need_range("LAMB", "learning rate", lr)
        need_betas("LAMB", betas)
        need_range("LAMB", "epsilon value", eps)
        need_range("LAMB", "weight_decay value", weight_decay)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize))

    def step_group(self, index: int, group: dict) -> None:
        for p in group["params"]:
            if p.grad is not None:
                r = self.adam_direction(p, -p.grad if group["maximize"] else p.grad, group)
                r.add_(p, alpha=group["weight_decay"])
                length, norm = p.norm(), r.norm()
                ratio = where((length > 0).logical_and(norm > 0), length / norm, ones_like(norm))
                p.sub_(r * ratio, alpha=float(group["lr"]))

    def adam_direction(self, p: Tensor, grad: Tensor, group: dict) -> Tensor:
        """m' / (sqrt(v') + eps), after both means have taken in the gradient."""
        state, (beta1, beta2) = self.state[p], group["betas"]
        if not state:
            state.update(step=scalar(0.0), exp_avg=zeros_like(p), exp_avg_sq=zeros_like(p))
        state["step"] += 1
        step, m, v = int(state["step"].item()), state["exp_avg"], state["exp_avg_sq"]
        m.mul_(beta1).add_(grad, alpha=1 - beta1)
        v.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        return m / (1 - beta1**step) / ((v / (1 - beta2**step)).sqrt() + group["eps"])
