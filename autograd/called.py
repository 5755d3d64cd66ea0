"""The functions of ops/face as users call them."""
import functools
import inspect
from collections.abc import Callable
from typing import Any

from zoo.autograd.numpy_names import numpy_names

known: dict[Callable, Callable] = {}


def called(name: str, function: Callable, place: str) -> Callable:
    """The function that users call place.name: it takes NumPy's names too, and says which argument is no tensor.

    A plain function asks its arguments for their shape before any op sees them, and an AttributeError would name
    neither function nor argument. An Op refuses them by itself.
    """
    if not inspect.isfunction(function):
        return function
    if function in known:
        return known[function]
    inner = numpy_names(function)

    @functools.wraps(function)
    def call(*args, **options):
        try:
            return inner(*args, **options)
        except AttributeError as error:
            wrong = argument_of(function, args, options, error)
            if wrong is None:
                raise
            raise TypeError(f"{name}: wants a tensor as {wrong}, got {type(error.obj).__name__}") from None
    call.__module__, call.__qualname__ = place, name                 # where pickle looks for it
    known[function] = call
    return call


def argument_of(function: Callable, args: tuple, options: dict, error: AttributeError) -> str | None:
    """The parameter whose argument, or an element of it, was taken for a tensor; None if the error is another one."""
    if hasattr(error.obj, "shape"):
        return None
    given = inspect.signature(function).bind(*args, **options).arguments
    return next((name for name, x in given.items() if holds(x, error.obj)), None)


def holds(x: Any, wrong: Any) -> bool:
    """Is this the object, or is it in this list or tuple, or a letter of this text?"""
    if isinstance(x, str):
        return isinstance(wrong, str) and wrong in x
    return x is wrong or isinstance(x, (list, tuple)) and any(holds(v, wrong) for v in x)
