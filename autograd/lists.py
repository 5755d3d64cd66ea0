"""Lists of tensors worked on together, in place and unrecorded: for clipping, scaled gradients and averages of weights.

What is done to the arrays is in ops/multi_tensor.py: on a GPU a launch for all tensors of a dtype.
"""
from collections.abc import Iterable, Sequence
from typing import Any

from zoo.autograd.mode import tick
from zoo.autograd.tensor import Tensor, wrap
from zoo.ops.multi_tensor import lists_for


def by_device(tensors: Iterable[Tensor]) -> list[list[Tensor]]:
    """The tensors in their order, those of each device together.

    The array says it at once: to make a `device` of each tensor took more than half of the time of clipping.
    """
    groups: dict[Any, list[Tensor]] = {}
    for x in tensors:
        groups.setdefault(x.array.device, []).append(x)
    return list(groups.values())


def arrays_of(tensors: Sequence[Tensor]) -> tuple[Any, list[Any]]:
    """(the module that works on them, their arrays); at least one tensor, all on one device."""
    arrays = [x.array for x in tensors]
    return lists_for(type(arrays[0])), arrays


def written(tensors: Iterable[Tensor]) -> None:
    """Says to the version checks that the tensors have changed."""
    now = tick()
    for x in tensors:
        x.clock[0] = now


def norm(tensors: Sequence[Tensor], order: float) -> Tensor:
    """The norm of all elements of all tensors, at least one; on the first one's device."""
    found = []
    for group in by_device(tensors):
        lists, arrays = arrays_of(group)
        found.append(wrap(lists.norm(arrays, order)))
    return found[0] if len(found) == 1 else norm([x.to(found[0].device) for x in found], order)


def clip_to_norm(tensors: Sequence[Tensor], total: Tensor, most: float) -> None:
    """Scales all tensors by min(1, most / (total + 1e-6))."""
    for group in by_device(tensors):
        lists, arrays = arrays_of(group)
        lists.clip_to_norm(arrays, total.to(group[0].device).array, most)
    written(tensors)


def clip_to_value(tensors: Sequence[Tensor], most: float) -> None:
    """Holds all elements between -most and most."""
    for group in by_device(tensors):
        lists, arrays = arrays_of(group)
        lists.clip_to_value(arrays, most)
    written(tensors)


def unscale(tensors: Sequence[Tensor], inverse: Any) -> list[Tensor]:
    """Multiplies by the inverse, a number or a 0-d array; for each device a bool (1,): is a result not finite?"""
    found = []
    for group in by_device(tensors):
        lists, arrays = arrays_of(group)
        found.append(wrap(lists.unscale(arrays, inverse)))
    written(tensors)
    return found


def average(tensors: Sequence[Tensor], others: Sequence[Tensor], weight: Any) -> None:
    """x += weight (y - x) for each pair of tensors of one dtype and device; weight as for `unscale`."""
    other_of = dict(zip(map(id, tensors), others, strict=True))
    for group in by_device(tensors):
        lists, arrays = arrays_of(group)
        lists.average(arrays, [other_of[id(x)].array for x in group], weight)
    written(tensors)


def zero(tensors: Sequence[Tensor]) -> None:
    """Sets all elements to 0."""
    for group in by_device(tensors):
        lists, arrays = arrays_of(group)
        lists.zero(arrays)
    written(tensors)
