"""torch.jit's and torch.compile's names, for scripts written with them: there is no compiler of Python here."""
from collections.abc import Callable
from typing import Any

from zoo.ops.errors import KernelError


def refused(name: str) -> Callable:
    """A function that says what to do instead of `name`."""
    def call(*args: Any, **options: Any):
        raise KernelError(f"jit.{name}: there is no TorchScript in zoo; use the module or function as it is")

    call.__name__, call.__doc__ = name, f"Raises KernelError (NotImplementedError): {name} is not built."
    return call


script, trace, load, save, freeze, fork = map(refused, ("script", "trace", "load", "save", "freeze", "fork"))


def compile(model: Any = None, **options: Any) -> Any:
    """Gives the model or function back as it is; also a decorator. Taken from scripts that call torch.compile.

    Example:
        >>> import zoo
        >>> @zoo.compile
        ... def double(x):
        ...     return 2 * x
        >>> double(zoo.ones(1))
        tensor([2.])
    """
    return (lambda function: function) if model is None else model


def ignore(drop: Any = False, **options: Any) -> Any:
    """Gives the function back: nothing is compiled, so nothing is left out of it."""
    return drop if callable(drop) else lambda function: function


def unused(fn: Any) -> Any:
    """Gives the function back, as `ignore`."""
    return fn


def export(fn: Any) -> Any:
    """Gives the function back, as `ignore`."""
    return fn


def is_scripting() -> bool:
    """False."""
    return False


def is_tracing() -> bool:
    """False."""
    return False
