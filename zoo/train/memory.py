"""When the memory is full: the largest tensors of a step by module and source line, and what would fit."""

import inspect
from pathlib import Path
from typing import Any, NamedTuple

import zoo
from zoo.nn.module import Module
from zoo.ops import cuda
from zoo.ops.cuda.ledger import size_text

LARGEST = 5
KEPT = 2            # a module's output is kept for the backward pass, and its gradient lives beside it


class Use(NamedTuple):
    """Bytes of one tensor or group of tensors, and what they are."""

    nbytes: int
    text: str


def explain(model: Module, optimizer: Any, images: Any, error: BaseException) -> str:
    """The largest tensors of a training step, and the batch size that would fit: estimated from one picture or two.

    Args:
        model, optimizer: of the step. images: (N, ...), the batch that was too large. error: what was raised.

    Returns:
        One line.
    """
    weights = weight_uses(model, optimizer)
    outputs, count = output_uses(model, images), len(images)
    live = sorted([*weights, *(Use(u.nbytes * count, f"{u.text} for {count} pictures") for u in outputs)], reverse=True)
    largest = "; ".join(f"{size_text(u.nbytes)} {u.text}" for u in live[:LARGEST])
    fits = batch_that_fits(total_memory(images), sum(u.nbytes for u in weights), sum(u.nbytes for u in outputs))
    advice = f"a batch of about {min(fits, count - 1)} would fit (--batch-size, with --accumulate for the same step)"
    return (f"out of memory with a batch of {count}: {error}. The largest: {largest}. "
            + (advice if fits and count > 1 else "no batch of this model would fit"))


def weight_uses(model: Module, optimizer: Any) -> list[Use]:
    """Each module's own parameters with their gradients and the optimizer's state."""
    uses = []
    for name, module in model.named_modules():
        own = list(module.parameters(recurse=False))
        nbytes = sum(p.nbytes * (2 if p.requires_grad else 1) + state_bytes(optimizer.state.get(p, {})) for p in own)
        if own:
            uses.append(Use(nbytes, f"parameters, gradients and optimizer state of {name} ({type(module).__name__})"))
    return uses


def state_bytes(state: dict[str, Any]) -> int:
    """Bytes of one parameter's optimizer state."""
    return sum(value.nbytes for value in state.values() if isinstance(value, zoo.Tensor))


def output_uses(model: Module, images: Any) -> list[Use]:
    """What each innermost module gives for one picture, with the line of its forward."""
    uses: list[Use] = []
    names = {module: name for name, module in model.named_modules() if not list(module.children())}
    sample = images[: min(2, len(images))]                 # batch norm in training mode wants two

    def note(module: Module, inputs: tuple, output: Any) -> None:
        if isinstance(output, zoo.Tensor):
            shape = (*output.shape[1:],)
            uses.append(Use(KEPT * output.nbytes // len(sample),
                            f"output {shape} of {names[module]} ({type(module).__name__}, {source_of(module)})"))

    hooks = [module.register_forward_hook(note) for module in names]
    try:
        with zoo.no_grad():
            model(sample)
    finally:
        for hook in hooks:
            hook.remove()
    return uses


def source_of(module: Module) -> str:
    """file:line of a module's forward."""
    code = inspect.unwrap(type(module).forward).__code__
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}"


def total_memory(images: Any) -> int:
    """Bytes that this process could have on the pictures' device: what is free and what it holds."""
    if images.is_cuda:
        return cuda.mem_get_info()[0] + cuda.memory_allocated()
    from os import sysconf

    return sysconf("SC_AVPHYS_PAGES") * sysconf("SC_PAGE_SIZE")


def batch_that_fits(total: int, fixed: int, each: int) -> int:
    """How many pictures fit beside what does not depend on their number; 0 if none.

    Example:
        >>> from zoo.train.memory import batch_that_fits
        >>> batch_that_fits(1000, 400, 50), batch_that_fits(1000, 2000, 50)
        (12, 0)
    """
    return max(0, (total - fixed) // max(1, each))
