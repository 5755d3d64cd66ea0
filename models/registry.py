"""The models by name: `@register` puts a builder on the list, `create` builds one."""

import difflib
import functools
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from types import ModuleType
from typing import Any, NamedTuple

from zoo.models.base import FeaturePyramid
from zoo.nn.module import Module


class Entry(NamedTuple):
    """One model: its name, the function that builds it, and its family, the module it is written in ("resnet")."""

    name: str
    builder: Callable[..., Module]
    family: str


ENTRIES: dict[str, Entry] = {}


def register(builder: Callable[..., Module]) -> Callable[..., Module]:
    """Puts a builder on the list under its own name, and gives it the options that all builders have.

    Args:
        builder: a function that takes the options of its family's class and returns a model.

    Returns:
        The builder, with the further options `features_only` (return a FeaturePyramid of the model), `out_indices`
        (of which stages; default all) and `weights`, torchvision's option, which must be None here.

    Raises:
        ValueError: another builder has the name.

    Example:
        >>> from zoo import models
        >>> @models.register
        ... def resnet18(**options):
        ...     return models.CifarResNet(3, **options)
        Traceback (most recent call last):
        ValueError: register: wants a new name, got 'resnet18', which zoo.models.resnet has
    """
    name = builder.__name__
    if name in ENTRIES:
        raise ValueError(f"register: wants a new name, got {name!r}, which {ENTRIES[name].builder.__module__} has")

    @functools.wraps(builder)
    def build(*args: Any, weights: None = None, features_only: bool = False, out_indices: Any = None, **options: Any):
        if weights is not None:
            raise ValueError(
                f"{name}: wants weights=None, got {weights!r}: a builder does not load weights; "
                f'use zoo.hub.load("{name}", weights=...)'
            )
        if out_indices is not None and not features_only:
            raise ValueError(f"{name}: wants features_only=True with out_indices, got out_indices={out_indices!r}")
        model = builder(*args, **options)
        return FeaturePyramid(model, out_indices) if features_only else model

    ENTRIES[name] = Entry(name, build, builder.__module__.rpartition(".")[2])
    return build


def entry(name: str) -> Entry:
    """The entry of a name.

    Raises:
        ValueError: an unknown name; the message has the nearest ones.
    """
    if not isinstance(name, str):
        raise TypeError(f"models: wants a name as str, got {type(name).__name__}")
    if name in ENTRIES:
        return ENTRIES[name]
    near = difflib.get_close_matches(name.lower(), ENTRIES, 5, 0.5)
    hint = f"nearest: {', '.join(near)}" if near else f"known: {', '.join(names())}"
    raise ValueError(f"models: no model is called {name!r}; {hint}")


def create(name: str, **options: Any) -> Module:
    """A new model with random weights.

    Args:
        name: one of `names()`.
        options: of the builder: num_classes, in_chans, features_only, out_indices, and what its family's class takes.

    Raises:
        ValueError: an unknown name; the message has the nearest ones.

    Example:
        >>> from zoo import models
        >>> models.create("resnet20", num_classes=7, in_chans=1).fc
        Linear(in_features=64, out_features=7, bias=True)
    """
    return entry(name).builder(**options)


def names(pattern: str = "*") -> list[str]:
    """The names that a shell pattern matches, sorted.

    Example:
        >>> from zoo import models
        >>> models.names("vgg1?")
        ['vgg11', 'vgg13', 'vgg16', 'vgg19']
    """
    return sorted(n for n in ENTRIES if fnmatchcase(n, pattern))


def patterns(given: str | Iterable[str]) -> tuple[str, ...]:
    """One pattern or several, as several."""
    return (given,) if isinstance(given, str) else tuple(given)


def list_models(
    module: ModuleType | None = None, include: str | Iterable[str] = "*", exclude: str | Iterable[str] = ()
) -> list[str]:
    """torchvision's list_models: the names that match a pattern of `include` and none of `exclude`, sorted.

    Args:
        module: only models written in this module, such as zoo.models.vgg.
        include, exclude: shell patterns.

    Example:
        >>> from zoo import models
        >>> models.list_models(models.vgg, exclude="*_bn")
        ['vgg11', 'vgg13', 'vgg16', 'vgg19']
    """
    chosen = {n for pattern in patterns(include) for n in names(pattern)}
    dropped = {n for pattern in patterns(exclude) for n in names(pattern)}
    mine = (n for n in chosen - dropped if module is None or ENTRIES[n].builder.__module__ == module.__name__)
    return sorted(mine)


def get_model_builder(name: str) -> Callable[..., Module]:
    """torchvision's get_model_builder: the function that builds the model of this name.

    Example:
        >>> from zoo import models
        >>> models.get_model_builder("vgg11") is models.vgg11
        True
    """
    return entry(name).builder


get_model = create
