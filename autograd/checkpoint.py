"""Checkpointing: the inside of a part of the network is computed again in the backward pass instead of being kept.

Chen et al., *Training Deep Nets with Sublinear Memory Cost*, 2016 (https://arxiv.org/abs/1604.06174).
"""
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from zoo.autograd.engine import Node, Variable, pick, run
from zoo.autograd.mode import MODE, enable_grad, tick
from zoo.autograd.random import default_generator
from zoo.autograd.tensor import Tensor, wrap
from zoo.ops.errors import GradError


class CheckpointNode(Node):
    """One call of `checkpoint`. Its edges lead to whatever the call's inside read from outside: inputs, parameters,
    other tensors that the function took from its surroundings."""

    __slots__ = ("call", "state", "autocast", "tensors", "which")

    name = "checkpoint"

    def gradients(self, gs: tuple, create_graph: bool, tensor: Callable, retain: bool) -> list:
        """Runs the call again, recorded, and its backward pass down to the edges."""
        if self.saved is None:
            raise GradError("backward: the inputs of checkpoint were freed by an earlier backward; call that with "
                            "retain_graph=True to go through the graph again")
        if any(t.clock[0] > self.seq for t in self.tensors):
            raise GradError("backward: checkpoint needs its inputs as they were, and one was changed in place since")
        now, precision = default_generator.get_state(), (MODE.autocast, MODE.casts)
        default_generator.set_state(now if self.state is None else self.state)
        MODE.autocast, MODE.casts = self.autocast, None
        try:
            with enable_grad():
                outs = tensors_in(self.call())
        finally:
            MODE.autocast, MODE.casts = precision
            if self.state is not None:
                default_generator.set_state(now)
        roots = [outs[k] for k in self.which]
        if [r.shape for r in roots] != list(self.shape):
            raise GradError(f"checkpoint: wants a function that does the same each time, got outputs of shapes "
                            f"{list(self.shape)} first and {[r.shape for r in roots]} then")
        found = run([r.node or r for r in roots], gs, retain_graph=create_graph, create_graph=create_graph,
                    tensor=tensor, wanted=set(self.edges), beyond=False)
        if not retain:
            self.saved = None
            del self.call                       # and with it the inputs
        return [found.get(edge) for edge in self.edges]


def checkpoint(function: Callable, *args: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True,
               **options: Any) -> Any:
    """function(*args, **options), whose inside is not kept for the backward pass but computed again there.

    Args:
        function: does the same each time; what it reads may come in as arguments or from its surroundings.
        use_reentrant: taken for torch's sake; there is one way, which works with `grad`, nests, and records higher
            derivatives.
        preserve_rng_state: the second time draws the same random numbers (dropout) as the first.

    Raises:
        GradError: an input was changed in place before the backward pass, or the second run gave other shapes.

    Example:
        >>> import zoo
        >>> from zoo.utils.checkpoint import checkpoint
        >>> x = zoo.ones(2, requires_grad=True)
        >>> checkpoint(lambda x: x.exp().log() * 3, x).sum().backward()
        >>> x.grad
        tensor([3., 3.])
    """
    state, start = default_generator.get_state() if preserve_rng_state else None, tick()
    result = function(*args, **options)
    outs = tensors_in(result)
    which = [k for k, out in enumerate(outs) if out.node is not None and out.node.seq > start]
    if not (MODE.grad and which):
        return result
    node = CheckpointNode.__new__(CheckpointNode)
    node.call, node.state, node.which = functools.partial(function, *args, **options), state, which
    node.autocast, node.tensors = MODE.autocast, tensors_in([args, options])
    node.edges = tuple(outside([outs[k].node for k in which], start))
    node.plan, node.saved, node.hooks, node.clock = None, (), None, ()
    node.shape, node.dtype = tuple(outs[k].shape for k in which), tuple(outs[k].dtype for k in which)
    node.seq = tick()
    return hung_onto(node, result, {id(outs[k]): place for place, k in enumerate(which)})


def tensors_in(result: Any) -> list[Tensor]:
    """The Tensors of nested tuples, lists and dicts, in order."""
    if isinstance(result, (tuple, list)):
        return [t for part in result for t in tensors_in(part)]
    if isinstance(result, dict):
        return tensors_in(list(result.values()))
    return [result] if isinstance(result, Tensor) else []


def outside(nodes: list, start: int) -> dict:
    """Where the graph behind `nodes` leaves what was made since `start`: older nodes, and leaves (the dict's keys)."""
    stack, seen, edges = list(nodes), set(nodes), {}
    while stack:
        for edge in stack.pop().edges:
            if isinstance(edge, Variable) or edge.seq < start:
                edges[edge] = None
            elif edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return edges


def hung_onto(node: CheckpointNode, result: Any, places: dict[int, int]) -> Any:
    """The result with the call's own graph dropped: its tensors come from `node` now."""
    if isinstance(result, dict):
        return type(result)((key, hung_onto(node, part, places)) for key, part in result.items())
    if isinstance(result, (tuple, list)):
        parts = [hung_onto(node, part, places) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    if not isinstance(result, Tensor) or id(result) not in places:
        return result
    out = wrap(result.array, pick(node, places[id(result)]))
    out.clock = result.clock
    return out


def checkpoint_sequential(functions: Iterable[Callable], segments: int, input: Any, **options: Any) -> Any:  # noqa: A002
    """The functions one after the other, cut into `segments` parts of which all but the last are checkpointed.

    Raises:
        ValueError: not between 1 and len(functions) segments.

    Example:
        >>> import zoo
        >>> from zoo.utils.checkpoint import checkpoint_sequential
        >>> net = zoo.nn.Sequential(zoo.nn.Linear(3, 4), zoo.nn.ReLU(), zoo.nn.Linear(4, 2))
        >>> checkpoint_sequential(net, 2, zoo.ones(5, 3)).shape
        (5, 2)
    """
    layers = list(functions)
    if not 1 <= segments <= len(layers):
        raise ValueError(f"checkpoint_sequential: wants segments in [1, {len(layers)}], got {segments}")
    size = len(layers) // segments
    for k in range(segments - 1):
        input = checkpoint(chain(layers[k * size:(k + 1) * size]), input, **options)
    return chain(layers[(segments - 1) * size:])(input)


def chain(functions: Sequence[Callable]) -> Callable:
    """x -> the last of functions(... the first of them(x))."""
    return lambda x: functools.reduce(lambda y, f: f(y), functions, x)
