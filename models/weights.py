"""The registry of pretrained weights: every row, by name, by pattern, or by a model and a tag."""

from difflib import get_close_matches
from fnmatch import fnmatchcase

from zoo.models import weights_rnn, weights_timm, weights_torchvision, weights_zoo
from zoo.models.weights_row import IMAGENET_MEAN as IMAGENET_MEAN
from zoo.models.weights_row import IMAGENET_STD as IMAGENET_STD
from zoo.models.weights_row import Metric as Metric
from zoo.models.weights_row import Preprocessing as Preprocessing
from zoo.models.weights_row import Weights as Weights

REGISTRY: dict[str, Weights] = {}
# The tag that "default" means, by model; a model of one row needs none.
DEFAULTS: dict[str, str] = {**weights_torchvision.DEFAULTS, **weights_timm.DEFAULTS, **weights_rnn.DEFAULTS}
# Short names of tags; the first that the model has is meant.
SHORTCUTS = {"tv": ("tv_in1k", "IMAGENET1K_V1"), "tv2": ("tv2_in1k", "IMAGENET1K_V2")}


def register(row: Weights) -> Weights:
    """Adds a row, and returns it.

    Raises:
        ValueError: its name is taken.

    Example:
        >>> register(get("resnet50.a1_in1k"))
        Traceback (most recent call last):
        ValueError: register: the weights resnet50.a1_in1k are registered already
    """
    if row.name in REGISTRY:
        raise ValueError(f"register: the weights {row.name} are registered already")
    REGISTRY[row.name] = row
    return row


def rows(pattern: str = "*") -> list[Weights]:
    """The rows whose name or model fits a shell pattern, in the order of registration.

    Example:
        >>> [row.name for row in rows("alexnet*")]
        ['alexnet.IMAGENET1K_V1']
    """
    return [row for row in REGISTRY.values() if fnmatchcase(row.name, pattern) or fnmatchcase(row.model, pattern)]


def get(name: str, model: str | None = None) -> Weights:
    """The row of a name.

    Args:
        name: "resnet50.a1_in1k", "resnet50" (its default); with `model` also a tag: "a1_in1k", "default", "tv"
            (torchvision's first weights), "tv2" (its second ones).
        model: the model whose tag `name` is.

    Raises:
        ValueError: no such row; the message has the nearest names.

    Example:
        >>> get("resnet50").name, get("tv2", "resnet50").name
        ('resnet50.a1_in1k', 'resnet50.tv2_in1k')
    """
    if name in REGISTRY and model in (None, REGISTRY[name].model):
        return REGISTRY[name]
    model, tag = (name, "default") if model is None else (model, name)
    mine = {row.tag: row for row in REGISTRY.values() if row.model == model}
    for candidate in candidates(tag, model, list(mine)):
        if candidate in mine:
            return mine[candidate]
    if mine:
        raise ValueError(f"get: {model} has no weights {tag!r}; it has {', '.join(mine)}, and default")
    known = [*REGISTRY, *dict.fromkeys(row.model for row in REGISTRY.values())]
    near = ", ".join(get_close_matches(model, known, 5, 0.4)) or "zoo.models.weights.rows() has all names"
    raise ValueError(f"get: no pretrained weights for {model!r}; nearest: {near}")


def candidates(tag: str, model: str, tags: list[str]) -> tuple[str, ...]:
    """The tags that `tag` may mean for a model with these tags."""
    if tag.lower() == "default":
        return (DEFAULTS.get(model, tags[0] if tags else ""),)
    return SHORTCUTS.get(tag, (tag,))


for _row in (*weights_timm.ROWS, *weights_torchvision.ROWS, *weights_rnn.ROWS, *weights_zoo.ROWS):
    register(_row)
