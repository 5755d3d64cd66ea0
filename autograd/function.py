"""Custom functions with torch's signature: static forward(ctx, ...) and backward(ctx, *grads)."""
from typing import Any

from zoo.autograd.engine import Node, Variable, pick
from zoo.autograd.graph import packed, unpacked
from zoo.autograd.inplace import base_of, may_write, through
from zoo.autograd.mode import MODE, tick
from zoo.autograd.tensor import Tensor, View, wrap
from zoo.ops.errors import GradError, ShapeError


class Context:
    """What forward hands to backward: `save_for_backward`, attributes, `needs_input_grad`."""

    def __init__(self, needs_input_grad: tuple):
        self.needs_input_grad = needs_input_grad
        self.tensors: tuple = ()
        self.fixed: set[int] = set()
        self.dirty: set[int] = set()
        self.materialize = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors; a later write to one in place is noticed. Anything else but None is a TypeError."""
        for x in tensors:
            if x is not None and not isinstance(x, Tensor):
                raise TypeError(f"save_for_backward: wants tensors or None, got {type(x).__name__}")
        self.tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """These outputs have no gradient."""
        self.fixed |= {id(t) for t in tensors}

    def mark_dirty(self, *tensors: Tensor) -> None:
        """These inputs were changed in place and are returned."""
        self.dirty |= {id(t) for t in tensors}

    def set_materialize_grads(self, value: bool) -> None:
        """False: a missing gradient arrives as None instead of zeros."""
        self.materialize = value

    @property
    def saved_tensors(self) -> tuple:
        """What save_for_backward kept; raises if it was freed or written to since."""
        if self.node is not None:
            self.node.intact()
        return tuple(unpacked(x, False) for x in self.tensors)


class FunctionNode(Node):
    """The node of one call of a Function; always with a tuple of outputs."""
    __slots__ = ("function", "context", "positions", "returned")

    name = property(lambda self: self.function.__name__)
    materialize = property(lambda self: self.context.materialize)

    def intact(self) -> None:
        if self.saved is None:
            raise GradError(
                f"backward: the saved tensors of {self.name} were freed by an earlier backward; use retain_graph=True"
            )
        for x in self.saved:
            if isinstance(x, Variable) and x.clock[0] > self.seq:
                raise GradError(
                    f"backward: {self.name} saved a tensor of shape {x.shape}, which was changed in place since"
                )

    def gradients(self, gs: tuple, create_graph: bool, tensor, retain: bool) -> list:
        self.intact()
        ctx, held = self.context, self.context.tensors
        ctx.tensors = tuple(unpacked(x, create_graph) for x in held)
        if create_graph:                                # a saved output is this node's own result: give it its history
            kept = list(ctx.tensors)
            for k, place in self.returned:
                kept[k] = tensor(kept[k].array, pick(self, place))
            ctx.tensors = tuple(kept)
        try:
            grads = self.function.backward(ctx, *(g if isinstance(g, Tensor) or g is None else tensor(g) for g in gs))
        finally:
            ctx.tensors = held                          # as they were packed: a pass that raised can be run again
        grads = grads if isinstance(grads, tuple) else (grads,)
        count = len(ctx.needs_input_grad)
        if len(grads) < count or any(g is not None for g in grads[count:]):
            raise GradError(
                f"{self.name}.backward: wants {count} gradients, one per input, got {len(grads)}"
            )
        if not retain:
            ctx.tensors, self.saved = (), None
        chosen = [grads[i] for i in self.positions]
        for g, edge in zip(chosen, self.edges, strict=True):
            if g is not None and g.ndim < len(edge.shape):
                raise ShapeError(f"{self.name}.backward: wants a gradient of shape {edge.shape}, got {g.shape}")
        return [g if create_graph or g is None else g.array for g in chosen]


class Function:
    """A function with a derivative of its own: subclass it, write forward and backward, call `apply`.

    forward(ctx, *args) computes on tensors that are not recorded (or forward(*args) with setup_context(ctx, inputs,
    output)); backward(ctx, *grads) returns one gradient (or None) per argument of forward. If backward is written in
    differentiable operations, higher derivatives work.

    Example:
        >>> import zoo
        >>> class Double(zoo.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return g * 2
        >>> x = zoo.ones(1, requires_grad=True)
        >>> Double.apply(x).backward()
        >>> x.grad
        tensor([2.])
    """

    @staticmethod
    def forward(ctx: Any, *args: Any, **options: Any) -> Any:
        """Computes the output; ctx keeps what backward needs."""
        raise NotImplementedError("Function: forward is not written")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients of forward's arguments from those of its outputs."""
        raise NotImplementedError("Function: backward is not written")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Runs forward and records backward."""
        needs = tuple(isinstance(x, Tensor) and x.requires_grad for x in args)
        ctx = Context(needs)
        ctx.node = None
        outer, MODE.grad = MODE.grad, False
        try:
            if hasattr(cls, "setup_context"):
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args)
        finally:
            MODE.grad = outer
        if not (any(needs) and MODE.grad):
            return result
        for x in args:
            if id(x) in ctx.dirty:
                may_write(x, cls.__name__)
        single = not isinstance(result, tuple)
        results = (result,) if single else result
        outs = tuple(wrap(r.array) if isinstance(r, Tensor) and id(r) not in ctx.dirty else r for r in results)
        record(cls, ctx, args, needs, results, outs)
        return outs[0] if single else outs


def record(cls: type, ctx: Context, args: tuple, needs: tuple, results: tuple, outs: tuple) -> None:
    """Makes the node of one call and hangs the outputs onto it."""
    node = FunctionNode.__new__(FunctionNode)
    node.function, node.context, node.plan, node.hooks = cls, ctx, None, None
    node.positions = [i for i, need in enumerate(needs) if need]
    node.edges = tuple(args[i].node or args[i] for i in node.positions)
    node.clock = ()
    tensors = [(k, out) for k, out in enumerate(outs) if isinstance(out, Tensor)]
    node.shape = tuple(out.shape for _, out in tensors)
    node.dtype = tuple(out.dtype for _, out in tensors)
    node.seq = tick()
    for place, (k, out) in enumerate(tensors):
        if id(results[k]) not in ctx.fixed:
            hang(out, pick(node, place))
            if id(results[k]) in ctx.dirty:
                out.clock[0] = node.seq
    node.saved = tuple(ctx.tensors)
    # a saved output stays a detached alias of the recorded tensor: no cycle, the same version cell
    places = {id(results[k]): place for place, (k, _) in enumerate(tensors)}
    node.returned = [(i, places[id(t)]) for i, t in enumerate(ctx.tensors) if id(t) in places]
    for i, place in node.returned:
        ctx.tensors[i].clock = tensors[place][1].clock
    if MODE.packing:
        node.saved, ctx.tensors = (), tuple(packed(x, MODE.packing[-1]) for x in ctx.tensors)
    ctx.node = Weak(node)


def hang(out: Tensor, node: Any) -> None:
    """The history of an output. A view is one only if forward wrote to it: then it is its base that changed."""
    if isinstance(out, View):
        base = base_of(out)
        base.node, base.requires_grad = through(base, wrap(out.array, node), out), True
    else:
        out.node, out.requires_grad = node, True


class Weak:
    """Context -> node without a cycle."""

    def __init__(self, node: FunctionNode):
        import weakref
        self.node = weakref.ref(node)

    def intact(self) -> None:
        node = self.node()
        if node is not None:
            node.intact()


def once_differentiable(function):
    """Decorator for a backward that is not differentiable itself."""
    def backward(ctx, *grads):
        outer, MODE.grad = MODE.grad, False
        try:
            return function(ctx, *grads)
        finally:
            MODE.grad = outer
    return backward
