"""Gradients that reach leaves in another dtype, as weights' do under autocast: on a GPU many are cast by one launch."""
from typing import Any

from zoo.autograd.saved import Variable
from zoo.ops.cuda.array import DeviceArray
from zoo.ops.multi_tensor import lists_for
from zoo.ops.shape import cast

MOST = 64 << 20         # bytes that wait at a time: those of all of ResNet-50, and little beside a large model


class Late:
    """What waits of the gradients `pending`: those that came first to a leaf, in the dtype in which they came."""
    __slots__ = ("leaves", "nbytes", "pending")

    def __init__(self, pending: dict):
        self.pending, self.leaves, self.nbytes = pending, [], 0

    def bring(self, edge: Any, g: Any, dtype: Any) -> Any:
        """What is put down for an edge of this dtype: g cast to it, or g itself, if it waits from now on."""
        if type(g) is not DeviceArray or not isinstance(edge, Variable) or edge in self.pending:
            return cast(g, dtype)
        if self.nbytes > MOST:
            self.settle()
        self.leaves.append(edge)
        self.nbytes += g.nbytes
        return g

    def settle(self) -> dict:
        """Casts what waits; gives all gradients that are pending."""
        groups: dict[Any, list] = {}
        for leaf in self.leaves:
            g = self.pending[leaf]
            if g.dtype != leaf.dtype:                   # else another was added to it meanwhile
                groups.setdefault((g.device, leaf.dtype), []).append(leaf)
        for (_, dtype), leaves in groups.items():
            arrays = [self.pending[leaf] for leaf in leaves]
            self.pending.update(zip(leaves, lists_for(type(arrays[0])).cast_all(arrays, dtype), strict=True))
        self.leaves, self.nbytes = [], 0
        return self.pending
