"""Sharpness-aware minimization."""

from collections.abc import Callable
from typing import Any

from zoo.autograd.mode import enable_grad, no_grad
from zoo.autograd.tensor import Tensor
from zoo.ops.face.join import stack
from zoo.optim.optimizer import Optimizer, need_range


class SAM(Optimizer):
    """Sharpness-aware minimization (Foret et al., 2020): descends by the gradient at the worst point nearby.

    e = rho g / |g|, |g| over all parameters; the base optimizer steps from p by the gradient at p + e.
    Adaptive (Kwon et al., 2021): e = rho p^2 g / | |p| g |.

    Args:
        params: parameters, (name, parameter) pairs, or dicts of groups.
        base_optimizer: class of the optimizer that steps, such as SGD. rho: radius. adaptive: see the formula.
        options: of the base optimizer.

    Raises:
        ValueError: a negative rho. TypeError: `step` without a closure.

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.ones(1))
        >>> optimizer = zoo.optim.SAM([p], zoo.optim.SGD, rho=0.5, lr=0.1)
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = (p * p).sum()
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure).item()
        1.0
        >>> round(p.item(), 4)
        0.7
    """

    def __init__(
        self,
        params: Any,
        base_optimizer: type[Optimizer],
        rho: float = 0.05,
        adaptive: bool = False,
        **options: Any,
    ):
        need_range("SAM", "rho", rho)
        super().__init__(params, dict(rho=rho, adaptive=adaptive))
        self.base_optimizer = base_optimizer(self.param_groups, **options)
        self.param_groups = self.base_optimizer.param_groups  # schedulers that set lr here reach the base optimizer
        self.state = self.base_optimizer.state
        self.defaults = {**self.base_optimizer.defaults, **self.defaults}
        self.origin: list[tuple[Tensor, Tensor]] = []

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        base = vars(self).get("base_optimizer")
        if base is None:
            super().add_param_group(param_group)
        else:
            base.add_param_group({"rho": self.defaults["rho"], "adaptive": self.defaults["adaptive"], **param_group})

    def first_step(self, zero_grad: bool = False) -> None:
        """Goes to p + e, and remembers p."""
        groups = [(g, [p for p in g["params"] if p.grad is not None]) for g in self.param_groups]
        with no_grad():
            parts = [(p.abs() * p.grad if g["adaptive"] else p.grad).norm() for g, ps in groups for p in ps]
            length = stack([x.to(parts[0].device) for x in parts]).norm().item() if parts else 0.0
            self.origin = [(p, p.clone()) for _, ps in groups for p in ps]
            for g, ps in groups:
                for p in ps:
                    e = p * p * p.grad if g["adaptive"] else p.grad
                    p.add_(e, alpha=g["rho"] / (length + 1e-12))
        if zero_grad:
            self.zero_grad()

    def second_step(self, zero_grad: bool = False) -> None:
        """Goes back to p, and lets the base optimizer step by the gradients of now."""
        with no_grad():
            for p, value in self.origin:
                p.copy_(value)
        self.origin = []
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()

    def step(self, closure: Callable | None = None) -> Any:
        """Both steps; returns the loss at p.

        Args:
            closure: clears the gradients, computes the loss, calls backward and returns the loss; called twice.
        """
        if closure is None:
            raise TypeError("SAM.step: wants a closure; without one call first_step and second_step")
        with enable_grad():
            loss = closure()
            self.first_step()
            closure()
        self.second_step()
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.base_optimizer.load_state_dict(state_dict)
        self.state = self.base_optimizer.state
