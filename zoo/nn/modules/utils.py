"""torch.nn.modules.utils: one number for several dimensions."""
from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple]:
    """The function that makes a tuple of what it is given: n times a number, or the elements of a sequence."""
    def parse(x: Any) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single, _pair, _triple, _quadruple = (_ntuple(n, f"_{name}") for n, name in enumerate(
    ("single", "pair", "triple", "quadruple"), 1))
