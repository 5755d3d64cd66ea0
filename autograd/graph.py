"""torch.autograd.graph: hooks on what nodes save for the backward pass, and saving it in the host's memory."""
from collections.abc import Callable
from typing import Any

import numpy as np

from zoo.autograd.engine import ForeignNode, Node
from zoo.autograd.engine import Pick as Pick
from zoo.autograd.mode import MODE, no_grad, watch
from zoo.autograd.saved import Variable, freed
from zoo.autograd.tensor import Tensor, wrap
from zoo.ops.cuda.array import DeviceArray
from zoo.ops.errors import ArgumentError, GradError
from zoo.ops.pointwise import add


class saved_tensors_hooks:  # noqa: N801
    """Inside, `pack_hook(tensor)` is called for each tensor that a node saves, and the node keeps what it gives.

    unpack_hook gets that when the backward pass needs the tensor, once for each pass, and must give a tensor with the
    same numbers: from a file, a compressed copy, the host's memory. Of nested blocks the innermost one counts. A tensor
    saved inside is not checked for writes in place afterwards: that is up to the hooks.

    Args:
        pack_hook: takes a Tensor, which it must not change; gives anything.
        unpack_hook: takes what pack_hook gave; gives a Tensor of the same shape and dtype.

    Raises:
        GradError (RuntimeError): inside disable_saved_tensors_hooks. TypeError, in the backward pass: no Tensor came.

    Example:
        >>> import zoo
        >>> x = zoo.ones(3, requires_grad=True)
        >>> with zoo.autograd.graph.saved_tensors_hooks(lambda x: x.detach().half(), lambda x: x.float()):
        ...     y = x.exp()
        >>> y.sum().backward()
        >>> x.grad
        tensor([2.7188, 2.7188, 2.7188])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        self.hooks = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if DISABLED:
            raise GradError(DISABLED[-1])
        MODE.packing = (*MODE.packing, self.hooks)
        watch(1)

    def __exit__(self, *_: Any) -> None:
        MODE.packing = MODE.packing[:-1]
        watch(-1)


class save_on_cpu(saved_tensors_hooks):  # noqa: N801
    """Inside, what nodes on the GPU save waits in the host's memory, and comes back in the backward pass.

    Args:
        pin_memory: into page-locked memory, from which copies do not wait. device_type: has no effect but "cuda".

    Example:
        >>> import zoo
        >>> x = zoo.ones(3, requires_grad=True)
        >>> with zoo.autograd.graph.save_on_cpu():
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 2., 2.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        def pack(x: Tensor) -> tuple:
            kept = x.cpu()
            return x.device, kept.pin_memory() if pin_memory and x.is_cuda else kept

        def unpack(packed: tuple) -> Tensor:
            device, kept = packed
            return kept.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks:  # noqa: N801
    """Inside, saved_tensors_hooks raises GradError with this message.

    Example:
        >>> import zoo
        >>> with zoo.autograd.graph.disable_saved_tensors_hooks("not here"):
        ...     zoo.ones(2, requires_grad=True).exp().sum().backward()
    """

    def __init__(self, error_message: str):
        self.message = error_message

    def __enter__(self) -> None:
        if MODE.packing:
            raise GradError(self.message)
        DISABLED.append(self.message)

    def __exit__(self, *_: Any) -> None:
        DISABLED.pop()


DISABLED: list[str] = []


class Packed:
    """One saved value: what the pack hook gave, and the history of the tensor it stands for."""
    __slots__ = ("what", "unpack_hook", "like", "history", "raw")

    def __init__(self, x: Any, pack_hook: Callable, unpack_hook: Callable):
        self.raw = not isinstance(x, Variable)
        tensor = wrap(x) if self.raw else x
        with no_grad():
            self.what = pack_hook(tensor if tensor.node is None else tensor.detach())
        self.unpack_hook, self.like = unpack_hook, (tensor.shape, tensor.dtype)
        self.history = tensor.node or tensor if tensor.requires_grad else None

    def value(self, create_graph: bool) -> Any:
        """The tensor or array again; with create_graph a tensor has the history it had."""
        with no_grad():
            found = self.unpack_hook(self.what)
        if not isinstance(found, Tensor):
            raise TypeError(f"saved_tensors_hooks: unpack_hook must give a Tensor, got {type(found).__name__}")
        if (found.shape, found.dtype) != self.like:
            raise ArgumentError(f"saved_tensors_hooks: unpack_hook must give {self.like[1]} of shape {self.like[0]}, "
                                f"got {found.dtype} of shape {found.shape}")
        if self.raw:
            return found.array
        node = self.history if create_graph else None
        if isinstance(node, Variable):                  # a leaf's gradient comes through a node
            node = add(node, 0).node
        return wrap(found.array, node)


def packed(x: Any, hooks: tuple) -> Any:
    """A saved value as hooks pack it: a tensor, an array that an op gave, or a tuple of tensors."""
    if isinstance(x, (Variable, np.ndarray, DeviceArray)):
        return Packed(x, *hooks)
    return tuple(packed(v, hooks) for v in x) if type(x) is tuple and x and isinstance(x[0], Variable) else x


def unpacked(x: Any, create_graph: bool) -> Any:
    """The value again, of what `packed` gave."""
    if type(x) is tuple and x and isinstance(x[0], Packed):
        return tuple(unpacked(v, create_graph) for v in x)
    return x.value(create_graph) if isinstance(x, Packed) else x


class PackedNode(Node):
    """A node whose saved values were packed: they are unpacked for the length of one backward pass through it.

    It is made of a Node by giving that this class, so that recording an op knows nothing of it.
    """
    __slots__ = ()

    def gradients(self, gs: tuple, create_graph: bool, tensor: Callable, retain: bool) -> Any:
        kept = self.saved
        if kept is None:
            raise freed(self)
        self.saved = tuple(unpacked(x, create_graph) for x in kept)
        kind = ForeignNode if type(gs[0]) is DeviceArray else Node
        try:
            return kind.gradients(self, gs, create_graph, tensor, retain)
        finally:
            self.saved = kept if retain or not self.plan.holds else None


def pack_saved(node: Node, pack_hook: Callable, unpack_hook: Callable) -> None:
    """Packs what a new node has saved. Its outputs are packed too, so that later writes to them do no harm."""
    node.saved = tuple(packed(x, (pack_hook, unpack_hook)) for x in node.saved)
    node.clock = [0] if type(node.clock) is list else tuple([0] for _ in node.clock)
    node.__class__ = PackedNode
