"""torch.Size: what a tensor's shape is."""
from math import prod
from typing import Any

from zoo.ops.op import PLAIN


class Size(tuple[int, ...]):
    """A tuple of sizes, printed as one, that also counts elements; its slices and sums with tuples are Sizes too.

    Example:
        >>> import zoo
        >>> shape = zoo.ones(2, 3, 4).shape
        >>> shape, shape[1:].numel()
        ((2, 3, 4), 12)
    """
    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return prod(self)

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if type(found) is tuple else found

    def __add__(self, other: Any) -> "Size":
        return Size(tuple.__add__(self, other))


# A Size is as good as a tuple for every op. Set in place: op.py's written-out calls hold this very set.
PLAIN.add(Size)
shape = property(lambda self: Size(self.array.shape), doc="The sizes of all dims.")
