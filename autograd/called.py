"""The functions of ops/face as users call them."""
import functools
import inspect
from collections.abc import Callable
from typing import Any

from zoo.ops.op import signature

known: dict[tuple[Callable, str], Callable] = {}
NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}      # which torch takes as well


def called(name: str, function: Callable, place: str, inside: str = "") -> Callable:
    """The function that users call place.name: it takes NumPy's names too, and says which argument is no tensor.

    A plain function asks its arguments for their shape before any op sees them, and an AttributeError would name
    neither function nor argument. An Op does both by itself. `inside`: the class of a method.
    """
    if not inspect.isfunction(function):
        return function
    if (function, name) in known:
        return known[function, name]
    has_dim = "dim" in signature(function)[0]

    @functools.wraps(function)
    def call(*args, **options):
        if options and has_dim:
            options = torch_names(name, options)
        try:
            return function(*args, **options)
        except AttributeError as error:
            raise refused(name, function, args, options, error) from None
    call.__module__, call.__name__ = place, name
    call.__qualname__ = f"{inside}.{name}" if inside else name       # where pickle looks for it
    known[function, name] = call
    return call


def torch_names(name: str, options: dict) -> dict:
    """Keywords of a call with torch's names for NumPy's."""
    for alias in NUMPY_NAMES.keys() & options.keys():
        if NUMPY_NAMES[alias] in options:
            raise TypeError(f"{name}: got both {alias} and {NUMPY_NAMES[alias]}")
        options[NUMPY_NAMES[alias]] = options.pop(alias)
    return options


def refused(name: str, function: Callable, args: tuple, options: dict, error: AttributeError) -> Exception:
    """What is raised for an AttributeError: a TypeError that names the argument taken for a tensor, or the error."""
    if hasattr(error.obj, "shape"):
        return error
    given = inspect.signature(function).bind(*args, **options).arguments
    wrong = next((p for p, x in given.items() if holds(x, error.obj)), None)
    if wrong is None:
        return error
    wanted = "an integer" if error.name == "__index__" else "a tensor"
    return TypeError(f"{name}: wants {wanted} as {wrong}, got {type(error.obj).__name__}")


def holds(x: Any, wrong: Any) -> bool:
    """Is this the object, or is it in this list or tuple, or a letter of this text?"""
    if isinstance(x, str):
        return isinstance(wrong, str) and wrong in x
    return x is wrong or isinstance(x, (list, tuple)) and any(holds(v, wrong) for v in x)
