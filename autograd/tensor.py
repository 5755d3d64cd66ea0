"""Tensor: an array that remembers how it was made."""
import functools
import itertools
import weakref
from operator import attrgetter
from typing import Any

import numpy as np

from zoo.autograd.autocast import autocasting
from zoo.autograd.engine import ForeignNode, Node, Variable, pick, run
from zoo.autograd.leaf_hooks import run_after, set_grad, view_requires_grad
from zoo.autograd.mode import MODE, WATCHED, tick
from zoo.autograd.record import shares
from zoo.autograd.record import write as write_text
from zoo.autograd.watch import mark
from zoo.ops import create
from zoo.ops.cuda.driver import state as cuda
from zoo.ops.device import device_of
from zoo.ops.dtypes import COMPLEX, FLOATS, INEXACT, default_dtype
from zoo.ops.errors import ArgumentError, DimError, DtypeError, GradError, ShapeError
from zoo.ops.op import PLAIN, Op
from zoo.ops.views import joined, replay

new_tensor = object.__new__
TENSORS: set[type] = set()      # Tensor and its subclasses, all with the same written-out calls
hook_ids = itertools.count()


class Tensor(Variable):
    """A multi-dimensional array with a gradient: torch.Tensor on an ndarray (CPU) or a DeviceArray (GPU).

    `array` is the raw array; `data` a Tensor on the same memory without history. Make one with `zoo.tensor`,
    `zoo.zeros`, `zoo.from_numpy` ...; `Tensor(values)` gives the default float dtype, and `Tensor(2, 3)` that
    shape with elements that mean nothing, as in torch.

    Example:
        >>> import zoo
        >>> x = zoo.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """
    __slots__ = ()
    __op_level__ = 1
    __array_priority__ = 1000
    __hash__ = object.__hash__

    def __init__(self, *data: Any, requires_grad: bool = False):
        if data and all(type(n) is int for n in data):
            data = np.empty(data, default_dtype())
        elif len(data) > 1:
            raise TypeError(f"Tensor: wants values or the sizes of a shape, got {data}")
        else:
            data = data[0] if data else ()
        if isinstance(data, Tensor):
            data = data.array
        elif not hasattr(type(data), "__op__"):
            data = np.asarray(data)
            data = data if data.dtype in INEXACT else data.astype(default_dtype())
            data = data.astype(default_dtype(), copy=False) if data.dtype in FLOATS else data
        self.array, self.node, self._grad, self.clock, self.hooks = data, None, None, [0], None
        self.requires_grad = False
        if requires_grad:
            self.requires_grad_()

    def __init_subclass__(cls):
        TENSORS.add(cls)

    @classmethod
    def __op__(cls, op: Op):
        """What `ops` asks for, once per op: the function that runs it on Tensors."""
        if op.decompose and not op.differentiable:
            return op.decompose
        if op.variadic or len(op.differentiable) > 4 or set(op.outputs) & set(op.parameters):
            return autocasting(op, lambda *args: other(op, args))
        return autocasting(op, written_out(op))

    # --- the graph -------------------------------------------------------------------------------------------
    grad = property(attrgetter("_grad"), set_grad, lambda self: set_grad(self, None))
    is_leaf = property(lambda self: self.node is None)
    grad_fn = property(lambda self: self.node)
    _version = property(lambda self: self.clock[0])

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None) -> None:
        """Adds d(self)/d(leaf) to `.grad` of every leaf that self was made from.

        Args:
            gradient: dL/dself, of self's shape; may be left out if self has one element.
            retain_graph: keep saved values for a second pass (default: create_graph).
            create_graph: record the pass itself, for higher derivatives.
            inputs: only these leaves get a gradient.

        Raises:
            GradError (RuntimeError): no gradient to compute, several elements without `gradient`, a graph that was
                freed, or a saved value that was written to.
        """
        backward([self], [gradient], retain_graph, create_graph, inputs)

    def requires_grad_(self, requires_grad: bool = True) -> "Tensor":
        """Says whether operations on this leaf are recorded; only floating tensors can be."""
        if requires_grad and self.array.dtype not in INEXACT:
            raise DtypeError(f"requires_grad_: only floating tensors have gradients, got {self.dtype}")
        if not requires_grad and self.node is not None:
            raise GradError("requires_grad_: only leaves can stop recording; use detach()")
        self.requires_grad = bool(requires_grad)
        return self

    def detach(self) -> "Tensor":
        """The same memory without history. A write to either is seen by the other's version check."""
        out = wrap(self.array)
        out.clock = self.clock
        return out

    def detach_(self) -> "Tensor":
        """Forgets its own history."""
        if isinstance(self, View):
            raise GradError("detach_: a view cannot forget its base; use detach()")
        self.node, self.requires_grad = None, False
        return self

    @property
    def data(self) -> "Tensor":
        """A Tensor on the same memory, without history."""
        return wrap(self.array)

    @data.setter
    def data(self, value: "Tensor") -> None:
        self.array = value.array if isinstance(value, Tensor) else value
        self.clock[0] = tick()

    def register_hook(self, hook) -> "Handle":
        """`hook(grad)` runs when this tensor's gradient is ready; what it returns (if not None) takes its place."""
        if not self.requires_grad:
            raise GradError("register_hook: this tensor does not require a gradient")
        holder = self.node or self
        if holder.hooks is None:
            holder.hooks = {}
        return Handle(holder.hooks, hook)

    def retain_grad(self) -> None:
        """Keeps the gradient of a tensor that is no leaf in `.grad`."""
        if not self.requires_grad:
            raise GradError("retain_grad: this tensor does not require a gradient")
        if self.node is None or self.retains_grad:
            return
        me = weakref.ref(self)

        def keep(g):
            if (tensor := me()) is not None:
                tensor.grad = g if tensor.grad is None else tensor.grad + g
        if self.node.hooks is None:
            self.node.hooks = {}
        self.node.hooks["retain"] = keep

    retains_grad = property(lambda self: bool(self.node and self.node.hooks and "retain" in self.node.hooks))

    # --- what it is ------------------------------------------------------------------------------------------
    ndim = property(lambda self: self.array.ndim)
    itemsize = property(lambda self: self.array.itemsize)
    nbytes = property(lambda self: self.array.nbytes)
    device = property(lambda self: device_of(self.array))
    is_cuda = property(lambda self: not isinstance(self.array, np.ndarray))
    is_sparse = is_quantized = is_meta = False

    def size(self, dim: int | None = None):
        """The shape, or its extent at `dim`."""
        if dim is None:
            return self.shape
        n = self.array.ndim
        if not -n <= dim < n:
            raise DimError(f"size: wants a dim in [{-n}, {n - 1}], got {dim}")
        return self.array.shape[dim]

    def dim(self) -> int:
        return self.array.ndim

    def numel(self) -> int:
        return self.array.size

    nelement = numel

    def element_size(self) -> int:
        return self.array.itemsize

    def stride(self, dim: int | None = None):
        """Steps between neighbours along each dimension, in elements."""
        a = self.array
        strides = tuple(s // a.itemsize for s in a.strides) if isinstance(a, np.ndarray) else tuple(a.strides)
        return strides if dim is None else strides[dim]

    def is_contiguous(self) -> bool:
        a = self.array
        return a.flags.c_contiguous if isinstance(a, np.ndarray) else a.is_contiguous

    def data_ptr(self) -> int:
        a = self.array
        return a.__array_interface__["data"][0] if isinstance(a, np.ndarray) else a.data_ptr()

    def is_floating_point(self) -> bool:
        return self.array.dtype in FLOATS

    def is_complex(self) -> bool:
        return self.array.dtype in COMPLEX

    def is_inference(self) -> bool:
        return False

    def __len__(self):
        if not self.array.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.array.shape[0]

    def __iter__(self):
        if not self.array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return (self[i] for i in range(self.array.shape[0]))


TENSORS.add(Tensor)


class View(Tensor):
    """A Tensor on another one's memory. After a write to either, its history is its base's, seen through the trail."""

    __slots__ = ("base", "trail", "seen", "_node", "_requires_grad", "made_without_grad")

    def refresh(self):
        if self.clock[0] != self.seen:
            before, self.seen = self.seen, self.clock[0]
            for when, back in getattr(self.base, "turned", ()):      # the base has another shape since (x.t_())
                if when > before:
                    self.trail = joined(back, self.trail)
            if self.base.requires_grad:
                outer, MODE.grad = MODE.grad, True
                try:
                    again = replay(self.base, self.trail)
                finally:
                    MODE.grad = outer
                self._node, self._requires_grad = again.node, again.requires_grad
        return self

    node = property(lambda self: self.refresh()._node, lambda self, value: setattr(self, "_node", value))
    requires_grad = property(lambda self: self.refresh()._requires_grad, view_requires_grad)


class Handle:
    """Of a registered hook; `remove()` takes it off again. Also a context manager."""

    def __init__(self, hooks: dict, hook):
        self.hooks, self.key = hooks, next(hook_ids)
        hooks[self.key] = hook

    def remove(self) -> None:
        self.hooks.pop(self.key, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def wrap(array, node=None) -> Tensor:
    """A Tensor around a raw array; no checks, no copy."""
    out = new_tensor(Tensor)
    out.array, out.node, out.requires_grad = array, node, node is not None
    out._grad = out.hooks = None
    out.clock = [0]
    return out


def view_of(source: Tensor, y, op: Op, args: tuple) -> View:
    out = new_tensor(View)
    out.array, out._grad, out.hooks, out.clock, out._node, out._requires_grad = y, None, None, source.clock, None, False
    if type(source) is View:
        out.base, out.trail = source.base, (source.trail, op, args)
    else:
        out.base, out.trail = source, (None, op, args)
    out.seen, out.made_without_grad = source.clock[0], not MODE.grad
    return out


# --- running an op ---------------------------------------------------------------------------------------------------
def written_out(op: Op):
    """The function that runs `op` on Tensors: the text of record.py with this op's names filled in."""
    names = dict(Tensor=Tensor, TENSORS=TENSORS, view_of=view_of, wrap=wrap, new_tensor=new_tensor, shares=shares)
    return write_text(op, {**names, "mark": mark, "other": lambda *args: other(op, args)})


def other(op: Op, args: tuple):
    """The road for what the written-out call does not know: several outputs, another citizen in or above a Tensor."""
    raw, plain = [], True
    for x in args:
        kind = type(x)
        if kind in TENSORS:
            x = x.array
            plain = plain and type(x) is np.ndarray
        elif kind not in PLAIN:
            if getattr(kind, "__op_level__", 0) > Tensor.__op_level__:
                return op.handler(args)(*args)
            plain = False
        raw.append(x)
    return remember(op, args, op.forward(*raw) if plain else op(*raw))


def remember(op: Op, args: tuple, y):
    """What the written-out call does, for any number of inputs and outputs."""
    outs = tuple(map(wrap, y)) if isinstance(y, tuple) else wrap(y)
    if op.view and isinstance(args[0], Tensor) and shares(args[0].array, y):
        outs = view_of(args[0], y, op, args[1:])
    if not MODE.grad:
        return outs
    fixed, wanted = len(op.parameters) - 1, 0
    for i, x in enumerate(args):
        if isinstance(x, Tensor) and x.requires_grad and op.parameters[min(i, fixed)] in op.differentiable:
            wanted |= 1 << i
    if wanted:
        node = node_for(op, args, wanted, outs)
        for k, out in enumerate((outs if isinstance(outs, tuple) else (outs,))[:len(op.tracked)]):
            if out.array.dtype in INEXACT:
                out.node, out.requires_grad = node if len(op.tracked) == 1 else pick(node, k), True
    return outs


def node_for(op: Op, args: tuple, wanted: int, outs) -> Node:
    plan = op.plan(wanted, len(args))
    ys = outs if isinstance(outs, tuple) else (outs,)
    raws = tuple(out.array for out in ys)
    extra = [raw for raw, name in zip(raws, op.outputs, strict=True) if name not in op.parameters]
    node = object.__new__(Node if type(raws[0]) is np.ndarray else ForeignNode)
    node.plan, node.hooks, node.seq = plan, None, tick()
    node.saved, node.edges = plan.save(*args, *extra)
    node.shape, node.dtype, node.clock = raws[0].shape, raws[0].dtype, ys[0].clock
    if (count := len(op.tracked)) > 1:
        node.shape, node.dtype = tuple(r.shape for r in raws[:count]), tuple(r.dtype for r in raws[:count])
        node.clock = tuple(out.clock for out in ys[:count])
    if WATCHED:
        mark(node)
    return node


# --- backward --------------------------------------------------------------------------------------------------------
@functools.cache
def unit(dtype) -> np.ndarray:
    """The gradient that a scalar's backward pass begins with, made once."""
    one = np.ones((), dtype)
    one.flags.writeable = False
    return one


def listed(x) -> list:
    """A Tensor alone, or some, as a list."""
    return [x] if isinstance(x, Tensor) else list(x)


def roots_of(name: str, outputs: list, grads: list, create_graph: bool) -> tuple[list, list]:
    """Where a backward pass begins, and the gradients it begins with."""
    roots, begin = [], []
    for out, g in zip(outputs, grads, strict=True):
        if not isinstance(out, Tensor) or not out.requires_grad:
            raise GradError(f"{name}: an output does not require a gradient and has no grad_fn")
        if not isinstance(g, Tensor):
            g = first_gradient(name, out.array) if g is None else np.asarray(g, out.dtype)
            g = wrap(g) if create_graph else g
        elif not create_graph:
            g = g.array
        if g.shape != out.array.shape:
            raise ShapeError(f"{name}: wants a gradient of the output's shape {out.shape}, got {g.shape}")
        roots.append(out.node or out)
        begin.append(g)
    return roots, begin


def first_gradient(name: str, y):
    """What a pass begins with at an output of one element if no gradient is given: 1."""
    if y.size != 1:
        raise GradError(f"{name}: a gradient can be left out only for a scalar, got an output of shape {y.shape}")
    if type(y) is np.ndarray and not y.ndim:
        return unit(y.dtype)
    return create.full(y.shape, 1, y.dtype, device_of(y))


def owned(g, given: set, leaf):
    """An array of our own to put into .grad: derivatives may hand out one array twice, or a view. On the GPU it may lie
    densely in the leaf's own order, as channels-last weights' gradients do."""
    if type(g) is np.ndarray:
        if g.base is not None or id(g) in given or not g.flags.writeable:
            return g.copy()
    elif id(g.owner) in given or not g.is_contiguous:
        from zoo.ops.pointwise_gpu import contiguous_copy, is_dense
        if id(g.owner) in given or g.strides != leaf.strides or not is_dense(g):
            g = contiguous_copy(g)
    given.add(id(g) if type(g) is np.ndarray else id(g.owner))
    return g


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None) -> None:
    """Adds the gradients of the sum of `tensors` to the leaves they were made from; see Tensor.backward."""
    tensors = listed(tensors)
    grads = [None] * len(tensors) if grad_tensors is None else listed(grad_tensors)
    if len(grads) != len(tensors):
        raise GradError(f"backward: wants a gradient per tensor, got {len(tensors)} tensors and {len(grads)} gradients")
    wanted, holders = None, {}
    if inputs is not None:
        if not listed(inputs) or not all(x.requires_grad for x in listed(inputs)):
            raise GradError("backward: inputs wants at least one tensor, all of which require a gradient")
        wanted = {x.node or x for x in listed(inputs)}
        holders = {x.node: x for x in listed(inputs) if x.node}
    roots, begin = roots_of("backward", tensors, grads, create_graph)
    given = {id(g) if type(g) is np.ndarray else id(getattr(g, "owner", g)) for g in begin}
    retain = create_graph if retain_graph is None else retain_graph
    found = run(roots, begin, retain_graph=retain, create_graph=create_graph, tensor=wrap, wanted=wanted)
    for edge, g in found.items():
        leaf = edge if isinstance(edge, Tensor) else holders[edge]
        if cuda.graph is not None:
            cuda.graph.leaves.setdefault(leaf, leaf.grad)
        if create_graph:
            leaf.grad = g if leaf.grad is None else leaf.grad + g
        elif leaf.grad is None:
            leaf.grad = wrap(owned(g, given, leaf.array))
        else:
            accumulate(leaf.grad, g)
        if leaf.hooks:
            run_after(leaf)


def accumulate(grad: Tensor, g) -> None:
    """grad += g in grad's own memory, as torch does: who holds .grad sees it."""
    if type(g) is np.ndarray and type(grad.array) is np.ndarray and grad.node is None and grad.array.dtype in FLOATS:
        np.add(grad.array, g, out=grad.array)
        grad.clock[0] = tick()
        return
    from zoo.autograd.inplace import write
    outer, MODE.grad = MODE.grad, False
    try:
        write(grad, grad + wrap(g))
    finally:
        MODE.grad = outer


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None,
         is_grads_batched=False, materialize_grads=False) -> tuple:
    """Gradients of the sum of `outputs` at `inputs`, as a tuple; `.grad` stays as it is.

    Args:
        outputs, inputs: a Tensor or a sequence of them.
        grad_outputs: one gradient per output; None where an output has one element.
        retain_graph: keep saved values (default: create_graph). create_graph: record the pass itself.
        only_inputs: has no effect, as in torch.
        allow_unused: give None for an input that the outputs do not depend on, instead of raising.
        materialize_grads: give zeros there.

    Raises:
        GradError (RuntimeError): an input that is not part of the graph, or one that does not require a gradient.

    Example:
        >>> import zoo
        >>> x = zoo.tensor(3.0, requires_grad=True)
        >>> zoo.autograd.grad(x * x, x)
        (tensor(6.),)
    """
    outputs, inputs = listed(outputs), listed(inputs)
    grads = [None] * len(outputs) if grad_outputs is None else listed(grad_outputs)
    if materialize_grads and allow_unused is False:
        raise ArgumentError("grad: materialize_grads wants allow_unused True or left out")
    if is_grads_batched:
        raise NotImplementedError("grad: is_grads_batched is not built; call grad once per vector")
    if len(grads) != len(outputs):
        raise GradError(
            f"grad: wants one of grad_outputs per output, got {len(outputs)} outputs and {len(grads)} gradients"
        )
    for x in inputs:
        if not isinstance(x, Tensor) or not x.requires_grad:
            raise GradError("grad: one of the inputs does not require a gradient")
    edges = [x.node or x for x in inputs]
    roots, begin = roots_of("grad", outputs, grads, create_graph)
    retain = create_graph if retain_graph is None else retain_graph
    found = run(roots, begin, retain_graph=retain, create_graph=create_graph, tensor=wrap, wanted=set(edges))
    result = []
    for x, edge in zip(inputs, edges, strict=True):
        if edge in found:
            result.append(found[edge] if create_graph else wrap(found[edge]))
        elif materialize_grads:
            result.append(wrap(create.full(x.shape, 0, x.dtype, x.device)))
        elif allow_unused:
            result.append(None)
        else:
            raise GradError("grad: one of the inputs was not used in the graph; allow_unused=True gives None for it")
    return tuple(result)


