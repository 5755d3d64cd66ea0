"""Why a loss is not a number: which module went bad first, and whether it did it itself."""

from collections.abc import Callable
from typing import Any

import zoo
from zoo.nn.module import Module


def first_bad_module(model: Module, images: Any, autocast: Callable[[], Any]) -> str:
    """Runs the batch again, and names the first module whose output is infinite or nan.

    Args:
        model: as it was in the step. images: its input. autocast: makes the context of the forward pass.

    Returns:
        A sentence: a module is the producer if its inputs are finite, else the victim of what lies before it.

    Example:
        >>> import zoo
        >>> from contextlib import nullcontext
        >>> from zoo.train.diagnosis import first_bad_module
        >>> model = zoo.nn.Sequential(zoo.nn.Linear(1, 1), zoo.nn.ReLU())
        >>> _ = zoo.nn.init.constant_(model[0].bias, float("inf"))
        >>> first_bad_module(model, zoo.ones(1, 1), nullcontext)
        'the parameter bias of 0 (Linear) is not finite, an earlier step has spoilt it; a smaller --lr may help'
    """
    if not finite(images):
        return "the pictures of the batch are not finite"
    found: list[str] = []
    names = {module: name for name, module in model.named_modules() if not list(module.children())}

    def look(module: Module, inputs: tuple, output: Any) -> None:
        if not found and not finite(output):
            found.append(verdict(f"{names[module]} ({type(module).__name__})", module, inputs))

    hooks = [module.register_forward_hook(look) for module in names]
    try:
        with zoo.no_grad(), autocast():
            output = model(images)
    finally:
        for hook in hooks:
            hook.remove()
    if found:
        return found[0]
    if finite(output):
        return "all modules' outputs are finite, the loss itself is not"
    return "every module's output is finite, an operation between the modules made what is not"


def verdict(name: str, module: Module, inputs: tuple) -> str:
    """Producer or victim."""
    for key, p in module.named_parameters():
        if not finite(p):
            spoilt = f"the parameter {key} of {name} is not finite"
            return f"{spoilt}, an earlier step has spoilt it; a smaller --lr may help"
    bad = [x for x in inputs if not finite(x)]
    if bad:
        return f"{name} is the victim: its input is not finite, made by an operation between it and the module before"
    most = max((float(x.detach().abs().max().item()) for x in inputs if is_float(x) and x.numel()), default=0.0)
    return f"{name} is the producer: its inputs are finite (up to {most:.3g}), its output is not"


def is_float(x: Any) -> bool:
    """Whether x is a tensor that could be infinite."""
    return isinstance(x, zoo.Tensor) and x.is_floating_point()


def finite(x: Any) -> bool:
    """Whether all numbers in a tensor, or in a tuple of them, are finite."""
    if isinstance(x, (tuple, list)):
        return all(map(finite, x))
    return not is_float(x) or bool(x.detach().isfinite().all().item())
