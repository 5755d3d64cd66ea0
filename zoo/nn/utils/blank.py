"""Modules without initial values."""
from typing import Any

from zoo.nn import init
from zoo.nn.module import Module


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """module_cls(*args, **kwargs), whose parameters mean nothing yet: for weights that are loaded right after.

    See nn.init.skip_init, which does that for whole models.

    Raises:
        TypeError: no subclass of Module.

    Example:
        >>> import zoo
        >>> zoo.nn.utils.skip_init(zoo.nn.Linear, 5, 1).weight.shape
        (1, 5)
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise TypeError(f"skip_init: wants a subclass of Module, got {module_cls!r}")
    with init.skip_init():
        return module_cls(*args, **kwargs)
