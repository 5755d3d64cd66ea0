"""Adam and AdamW."""

from typing import Any

from zoo.ops.optim import updates_for
from zoo.optim.optimizer import Block, Optimizer, need_plain, need_range


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2014): steps scaled by running means of the gradient and of its square.

    m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; p -= lr * m' / (sqrt(v') + eps), m' and v' without bias.

    Args:
        params: parameters, (name, parameter) pairs, or dicts of groups.
        lr: learning rate. betas: decay of the two means. eps: added to the root.
        weight_decay: adds weight_decay * p to g; with decoupled_weight_decay p shrinks by lr * weight_decay instead.
        amsgrad: divide by the greatest v so far. maximize: go up instead of down.
        foreach, capturable, fused: taken for torch's sake, without a meaning here.

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

    counts = True

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
        need_range(name, "learning rate", lr)
        need_range(name, "epsilon value", eps)
        need_range(name, "beta parameter at index 0", betas[0], high=1.0)
        need_range(name, "beta parameter at index 1", betas[1], high=1.0)
        need_range(name, "weight_decay value", weight_decay)
        need_plain(name, differentiable)
        super().__init__(
            params,
            dict(
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
            ),
        )

    def state_names(self, group: dict) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if group["amsgrad"] else ()))

    def update(self, block: Block, group: dict, param: Any, grad: Any) -> None:
        block.step += 1
        block.counter[...] = block.step
        flat = block.flat
        updates_for(param).adam_update(
            param,
            grad,
            flat["exp_avg"],
            flat["exp_avg_sq"],
            flat.get("max_exp_avg_sq"),
            block.step,
            float(group["lr"]),
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["decoupled_weight_decay"],
            group["maximize"],
        )


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017): p first shrinks by lr * weight_decay.

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
