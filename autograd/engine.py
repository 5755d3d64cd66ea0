"""The backward pass. It knows nodes, edges and one clock; it knows no formula."""
from collections.abc import Callable
from heapq import heappop, heappush, heappushpop
from typing import Any

import numpy as np
from numpy import ndarray

from zoo.autograd.late import Late
from zoo.autograd.leaf_hooks import need_like
from zoo.autograd.mode import ANOMALY, MODE, tick
from zoo.autograd.saved import Variable, freed, overwritten, read, write_gpu_gradients, write_gradients
from zoo.ops.create import full
from zoo.ops.cuda.array import DeviceArray
from zoo.ops.device import device_of
from zoo.ops.errors import GradError
from zoo.ops.op import Both
from zoo.ops.pointwise import add
from zoo.ops.shape import cast, sum_to


class Node:
    """One recorded call. An edge leads to another Node, or to the leaf Tensor itself (so a leaf is in no cycle).

    seq: when it was made. clock: the cell with the time of the last write to its output (a tuple of cells for
    several outputs). shape, dtype: of its output, which an arriving gradient is brought to.
    """
    __slots__ = ("seq", "plan", "saved", "clock", "edges", "shape", "dtype", "hooks", "line", "__weakref__")
    materialize = True              # are gradients that did not arrive zeros? A custom Function may want None

    @property
    def name(self) -> str:
        return self.plan.op.name

    next_functions = property(lambda self: tuple((edge, 0) for edge in self.edges))

    def gradients(self, gs: tuple, create_graph: bool, tensor: Callable, retain: bool) -> Any:
        """One gradient per edge, from those of the outputs and the saved values, if nobody wrote to these since.

        Unless `retain`, the saved values are let go."""
        if create_graph or type(gs[0]) is not np.ndarray:
            return self.through_ops(gs, create_graph, tensor, retain)
        plan = self.plan
        return (plan.written or write_gradients(plan))(self, retain, *gs)

    def through_ops(self, gs: tuple, create_graph: bool, tensor: Callable, retain: bool) -> Any:
        """The gradients of any citizens, by ops; with create_graph these are recorded."""
        if self.saved is None:
            raise freed(self)
        plan = self.plan
        values = [read(self, x, create_graph) for x in self.saved]
        for place, which in plan.outputs:
            clock = self.clock if type(self.clock) is list else self.clock[which]
            if clock[0] > self.seq:
                raise overwritten(self, f"its output of shape {self.shape}")
            if create_graph:
                values[place] = tensor(values[place], self if clock is self.clock else pick(self, which))
        if plan.holds and not retain:
            self.saved = None
        return plan.backward(*gs, *values)


class ForeignNode(Node):
    """A call on another citizen than ndarray: its derivatives go through the ops, unless all is on the GPU."""

    __slots__ = ()

    def gradients(self, gs: tuple, create_graph: bool, tensor: Callable, retain: bool) -> Any:
        if type(gs[0]) is not DeviceArray and type(gs[0]) is not Both:
            return self.through_ops(gs, create_graph, tensor, retain)
        plan = self.plan
        return (plan.on_gpu or write_gpu_gradients(plan))(self, retain, *gs)


class Pick:
    """One output of a Node with several: it hands its gradient to the Node, as the one of that output."""
    __slots__ = ("seq", "source", "which", "shape", "dtype", "hooks", "__weakref__")

    name = property(lambda self: self.source.name)
    edges = property(lambda self: (self.source,))
    next_functions = property(lambda self: ((self.source, self.which),))


def pick(node: Node, which: int) -> Pick:
    out = Pick()
    out.seq, out.source, out.which, out.hooks = tick(), node, which, None
    out.shape, out.dtype = node.shape[which], node.dtype[which]
    return out


def run(roots, grads, *, retain_graph=False, create_graph=False, tensor, wanted=None, beyond=True) -> dict:
    """Gradients of `roots` at the leaves, or at the `wanted` nodes and leaves alone; the latest node goes first.

    `tensor(array, node)` makes a Tensor. With create_graph every value is a Tensor, and so is recorded again.
    beyond False: the walk ends at the wanted ones, also where one leads to another, and their hooks are not asked.
    """
    found: dict[Any, Any] = {}
    outer = MODE.recording
    if outer is not create_graph:
        MODE.grad = create_graph
    try:
        pending = walk(roots, grads, found, retain_graph, create_graph, tensor, wanted, beyond)
        for leaf, g in pending.items():
            found[leaf] = with_hooks(leaf.hooks, g, tensor, create_graph) if leaf.hooks and beyond else g
    finally:
        if outer is not create_graph:
            MODE.grad = outer
    return found


def walk(roots, grads, found: dict, retain_graph, create_graph, tensor, wanted, beyond) -> dict:
    """Through all nodes that matter; puts what arrives at wanted nodes into `found`, gives what arrives at leaves."""
    pending: dict[Any, Any] = {}
    late = Late(pending)
    heap: list = []
    alone = None                        # a node that waits outside the heap: most often it is the only one
    waiting: Any = zip(roots, grads, strict=True)
    useful = None if wanted is None else leading_to(wanted, roots)
    while True:
        for edge, g in waiting:
            if g is None or (useful is not None and edge not in useful):
                continue
            target = edge if type(edge) is Node else edge.array if isinstance(edge, Variable) else edge
            if g.shape != target.shape:
                g = sum_to(g, target.shape)
            if g.dtype is not target.dtype and g.dtype != target.dtype:
                g = late.bring(edge, g, target.dtype)
            if edge in pending:
                if type(g) is ndarray and g.ndim:
                    pending[edge] = pending[edge] + g
                else:
                    pending[edge] = summed(edge, pending[edge], g, wanted)
            else:
                pending[edge] = g
                if target is edge:
                    if alone is None:
                        alone = edge
                    else:
                        heappush(heap, (-edge.seq, edge))
        if heap:
            node = heappop(heap)[1] if alone is None else heappushpop(heap, (-alone.seq, alone))[1]
        elif alone is None:
            break
        else:
            node = alone
        alone, g = None, pending.pop(node)
        asked = wanted is not None and node in wanted
        if asked and not beyond:
            found[node], waiting = g, ()
            continue
        if node.hooks:
            g = with_hooks(node.hooks, g, tensor, create_graph)
        if asked:
            found[node] = g
        if type(node) is Pick:
            collect(node, g, pending, heap)
            waiting = ()
            continue
        if type(g) is ndarray and type(node) is Node:    # what node.gradients does with it, one call sooner
            written = node.plan.written or write_gradients(node.plan)
            waiting = zip(node.edges, written(node, retain_graph, g))  # noqa: B905  (strict costs 0.1 us)
        elif type(g) is DeviceArray and type(node) is ForeignNode:
            written = node.plan.on_gpu or write_gpu_gradients(node.plan)
            waiting = zip(node.edges, written(node, retain_graph, g))  # noqa: B905
        else:
            gs = tuple(filled(g, node, tensor, create_graph)) if type(g) is list else (g,)
            waiting = zip(node.edges, node.gradients(gs, create_graph, tensor, retain_graph))  # noqa: B905
        if ANOMALY:
            waiting = tuple(checked(node, waiting))
    return late.settle()


def summed(edge: Any, before: Any, g: Any, wanted: set | None) -> Any:
    """What has arrived at an edge and what arrives now: the sum, or both, where nobody but the derivative reads it."""
    if type(before) is Both:
        before = add(*before)
    if before.dtype != g.dtype:         # it came first to a leaf, and waits to be cast
        before = cast(before, g.dtype)
    own = type(edge) is ForeignNode and edge.plan.op.adds and not edge.hooks and (wanted is None or edge not in wanted)
    return Both(before, g) if own and type(before) is type(g) is DeviceArray else add(before, g)


def leading_to(wanted: set, roots: list) -> set:
    """The nodes between `roots` and `wanted`: only these need to be walked."""
    parents: dict[Any, list] = {}
    stack, seen = list(roots), set(roots)
    while stack:
        node = stack.pop()
        for edge in () if isinstance(node, Variable) else node.edges:
            parents.setdefault(edge, []).append(node)
            if edge not in seen:
                seen.add(edge)
                stack.append(edge)
    useful = {e for e in wanted if e in seen}
    stack = list(useful)
    while stack:
        for parent in parents.get(stack.pop(), ()):
            if parent not in useful:
                useful.add(parent)
                stack.append(parent)
    return useful


def collect(node: Pick, g: Any, pending: dict, heap: list) -> None:
    """Put the gradient of one output into its Node's list."""
    source = node.source
    if source not in pending:
        pending[source] = [None] * len(source.shape)
        heappush(heap, (-source.seq, source))
    slots = pending[source]
    slots[node.which] = g if slots[node.which] is None else add(slots[node.which], g)


def filled(gs: list, node: Node, tensor: Callable, create_graph: bool):
    """An output that nobody used has a gradient of zeros; the first alone, if the op's derivative takes None."""
    like = next(g for g in gs if g is not None)
    where = device_of(getattr(like, "array", like))
    idle = node.plan is not None and node.plan.op.idle
    for k, (g, shape, dtype) in enumerate(zip(gs, node.shape, node.dtype, strict=True)):
        if g is None and node.materialize and not (idle and k):
            g = full(shape, 0, dtype, where)
            g = tensor(g) if create_graph else g
        yield g


def with_hooks(hooks, g, tensor, create_graph):
    for hook in sorted(hooks.values(), key=lambda h: h is hooks.get("retain")):      # retain_grad sees the last word
        new = hook(g if create_graph or type(g) is list else tensor(g))
        if new is not None:
            if not isinstance(g, list):
                need_like("register_hook: what a hook gives", new, g)
            g = new if create_graph or isinstance(g, list) else new.array
    return g


def checked(node: Node, waiting):
    """Anomaly mode: the first NaN names the op whose derivative made it, and the line that called the op."""
    for edge, g in waiting:
        raw = getattr(g, "array", g)
        if isinstance(raw, np.ndarray) and raw.dtype.kind in "fcV" and np.isnan(raw).any():
            raise GradError(f"backward: the derivative of {node.name} returned nan; {node.name} was called at "
                            f"{getattr(node, 'line', None) or 'a line outside detect_anomaly'}")
        yield edge, g
