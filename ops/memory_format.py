"""How the elements of an image batch lie in memory: torch's memory formats, for scripts that name them."""

from zoo.ops.errors import ShapeError
from zoo.ops.shape import contiguous, permute


class memory_format:  # noqa: N801  (torch's name)
    """One of `preserve_format`, `contiguous_format`, `channels_last`, `channels_last_3d`."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self):
        return f"zoo.{self.name}"


preserve_format, contiguous_format = memory_format("preserve_format"), memory_format("contiguous_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")
RANK = {channels_last: 4, channels_last_3d: 5}


def laid_out(x, form):
    """x with its elements in that order in memory; x itself for preserve_format and None.

    Raises:
        ShapeError: channels_last of other than 4 dimensions, channels_last_3d of other than 5.
    """
    if form is None or form is preserve_format:
        return x
    if form is contiguous_format:
        return contiguous(x)
    if x.ndim != RANK[form]:
        raise ShapeError(f"{form.name}: required rank {RANK[form]} tensor, got shape {x.shape}")
    last = (0, *range(2, x.ndim), 1)
    return permute(contiguous(permute(x, last)), (0, x.ndim - 1, *range(1, x.ndim - 1)))
