"""Common mistakes of training loops, seen on the first steps: for `python -m zoo.train` and for loops of your own."""

import warnings
from collections.abc import Callable
from typing import Any

import zoo
from zoo.nn.module import Module
from zoo.optim.optimizer import Optimizer


class Lint:
    """Watches the first steps of a training loop, and says each mistake once.

    It looks for: a model in eval mode; inputs that are all one number; outputs that are probabilities already, where
    cross_entropy wants logits; a missing zero_grad; frozen parameters in the optimizer; a learning rate of 0.

    As a context manager it takes itself off at the end of the block.

    Args:
        model, optimizer: of the loop.
        tell: called with each finding; default `warnings.warn`.
        steps: after so many steps of the optimizer it takes itself off.

    Example:
        >>> import zoo
        >>> from zoo.train.lint import Lint
        >>> model = zoo.nn.Linear(2, 2).eval()
        >>> optimizer = zoo.optim.SGD(model.parameters(), lr=0.0)
        >>> lint = Lint(model, optimizer, print)
        >>> model(zoo.randn(3, 2)).sum().backward()
        lint: the model is in eval mode: dropout is off, batch norms do not learn; model.train() ends that
        >>> optimizer.step()
        lint: the learning rate is 0: nothing is learned
    """

    def __init__(self, model: Module, optimizer: Optimizer, tell: Callable[[str], Any] = warnings.warn, steps: int = 3):
        self.model, self.optimizer, self.tell, self.left = model, optimizer, tell, steps
        self.said: set[str] = set()
        self.cleared = True
        self.own_zero_grad = [(owner, owner.zero_grad) for owner in (model, optimizer)]
        for owner, zero_grad in self.own_zero_grad:
            owner.zero_grad = self.clearing(zero_grad)
        self.hooks = [
            model.register_forward_pre_hook(self.before_forward),
            model.register_forward_hook(self.after_forward),
            optimizer.register_step_pre_hook(self.before_step),
            optimizer.register_step_post_hook(self.after_step),
        ]

    def say(self, text: str) -> None:
        """One finding, once."""
        if text not in self.said:
            self.said.add(text)
            self.tell(f"lint: {text}")

    def clearing(self, zero_grad: Callable[..., None]) -> Callable[..., None]:
        """zero_grad, that is noticed."""

        def noticed(*args: Any, **options: Any) -> None:
            self.cleared = True
            zero_grad(*args, **options)

        return noticed

    def before_forward(self, model: Module, inputs: tuple) -> None:
        """Mode and inputs; a forward pass without gradients is an evaluation."""
        if not zoo.is_grad_enabled():
            return
        if not model.training:
            self.say("the model is in eval mode: dropout is off, batch norms do not learn; model.train() ends that")
        for x in inputs:
            if isinstance(x, zoo.Tensor) and x.numel() > 1 and bool((x == x.reshape(-1)[0]).all()):
                self.say(f"the input is constant: all {x.numel():,} numbers are {x.reshape(-1)[0].item():.4g}")

    def after_forward(self, model: Module, inputs: tuple, output: Any) -> None:
        """Rows that are probabilities."""
        if not (zoo.is_grad_enabled() and isinstance(output, zoo.Tensor) and output.ndim == 2 and output.shape[1] > 1):
            return
        y = output.detach().float()
        if bool((y >= 0).all()) and bool(((y.sum(1) - 1).abs() < 1e-3).all()):
            self.say("the model ends with a softmax: cross_entropy wants logits and applies its own")

    def before_step(self, optimizer: Optimizer, args: tuple, options: dict) -> None:
        """Gradients, groups and learning rates."""
        params = [p for group in optimizer.param_groups for p in group["params"]]
        if not self.cleared and any(p.grad is not None for p in params):
            self.say("zero_grad was not called since the last step: gradients add up")
        if frozen := sum(not p.requires_grad for p in params):
            self.say(f"{frozen} of the optimizer's {len(params)} parameters are frozen (requires_grad is False)")
        if all(group.get("lr", 1) == 0 for group in optimizer.param_groups):
            self.say("the learning rate is 0: nothing is learned")

    def after_step(self, optimizer: Optimizer, args: tuple, options: dict) -> None:
        """Counts."""
        self.cleared = False
        self.left -= 1
        if not self.left:
            self.close()

    def __enter__(self) -> "Lint":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """Takes the hooks off."""
        for hook in self.hooks:
            hook.remove()
        for owner, _ in self.own_zero_grad:
            vars(owner).pop("zero_grad", None)
        self.hooks, self.own_zero_grad = [], []
