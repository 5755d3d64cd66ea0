"""The weights that a block of `autocast` casts: each once, however often it is used, on a GPU many by one launch."""
import weakref
from typing import Any

from zoo.autograd.mode import MODE
from zoo.autograd.tensor import Tensor, remember
from zoo.ops.cuda.array import DeviceArray
from zoo.ops.dtypes import HALVES, float32
from zoo.ops.multi_tensor import lists_for
from zoo.ops.shape import cast

# By the id of the weight that a block on a GPU cast first: this weight, and those that the block used after it.
LAST: dict[int, tuple[weakref.ref, list[weakref.ref]]] = {}


class Casts:
    """Of one block. It expects to go on as the last block did that began with the same weight, and casts all that this
    one used when it is asked for the first: a step of ResNet-50 has one launch in the place of 55.
    """

    def __init__(self):
        # By (id of a weight, dtype, recorded?): the weight, when it was written to last, and what it was cast to.
        self.known: dict[tuple, tuple] = {}
        self.used: dict[tuple, Tensor] = {}     # the weights that were asked for, in this order

    def of(self, x: Tensor, dtype: Any) -> Tensor:
        """A weight in half precision: cast anew if somebody wrote to it."""
        key = id(x), dtype, MODE.grad
        held = self.known.get(key)
        if held is None or held[1] != x.clock[0]:
            self.add([x] if self.used else [x, *followers(x, dtype)], dtype)
        self.used.setdefault(key, x)
        return self.known[key][2]

    def add(self, weights: list[Tensor], dtype: Any) -> None:
        """Casts them all; each is a node of its own."""
        if len(weights) == 1:
            made = [cast(weights[0], dtype)]
        else:
            arrays = [x.array for x in weights]
            made = [remember(cast, (x, dtype), y)
                    for x, y in zip(weights, lists_for(DeviceArray).cast_all(arrays, dtype), strict=True)]
        for x, y in zip(weights, made, strict=True):
            self.known[id(x), dtype, MODE.grad] = x, x.clock[0], y

    def close(self) -> None:
        """The block ends: the next one that begins as it did will expect the same weights."""
        if not self.used:
            return
        key, first = next(iter(self.used.items()))
        if type(first.array) is DeviceArray:
            others = [weakref.ref(x) for other, x in self.used.items() if other[1:] == key[1:] and x is not first]
            LAST[key[0]] = weakref.ref(first, lambda _: LAST.pop(key[0], None)), others


def followers(first: Tensor, dtype: Any) -> list[Tensor]:
    """The weights that were used behind this one in the last block that it began, as far as they are what they were."""
    known = LAST.get(id(first))
    if known is None or known[0]() is not first:
        return []
    alive = [x for ref in known[1] if (x := ref()) is not None and type(x.array) is DeviceArray]
    return [x for x in alive if x.array.device == first.array.device and x.requires_grad and x.is_leaf
            and x.dtype != dtype and (x.dtype == float32 or x.dtype in HALVES)]
