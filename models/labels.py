"""The names of a classifier's classes, as data of the package: one line per class."""

from functools import cache
from importlib.resources import files


@cache
def class_names(name: str) -> tuple[str, ...]:
    """The classes of a data set, in the order of the classifier's outputs.

    Args:
        name: "imagenet" (ImageNet-1k) or "digits".

    Raises:
        ValueError: no such list.

    Example:
        >>> class_names("imagenet")[:3], len(class_names("imagenet"))
        (('tench', 'goldfish', 'great white shark'), 1000)
    """
    if name == "digits":
        return tuple(map(str, range(10)))
    if name != "imagenet":
        raise ValueError(f"class_names: wants 'imagenet' or 'digits', got {name!r}")
    return tuple((files("zoo.models") / "imagenet_labels.txt").read_text(encoding="utf-8").splitlines())
