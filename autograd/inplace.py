"""In place: compute under the old history, then move the result into the tensor's memory and take its history."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from zoo.autograd.called import refused
from zoo.autograd.engine import Node
from zoo.autograd.mode import MODE, tick
from zoo.autograd.tensor import Tensor, View, node_for, wrap
from zoo.ops.device import constant, put
from zoo.ops.dtypes import COMPLEX, FLOATS, INTS, NUMBERS, number_in
from zoo.ops.errors import DtypeError, GradError, ShapeError
from zoo.ops.face.index import index_fill
from zoo.ops.pointwise import where
from zoo.ops.shape import cast, clone, expand, permute, reshape
from zoo.ops.views import joined, steps, write_through


def fits(result: np.dtype, into: np.dtype) -> bool:
    """torch.can_cast: a float does not go into an integer, nor an integer into a bool."""
    def level(d):
        return 3 if d in COMPLEX else 2 if d in FLOATS else 1 if d in INTS else 0
    return level(result) <= level(into)


def copy_raw(target, value) -> None:
    """Writes an array into another's memory, cast to its dtype."""
    if isinstance(target, np.ndarray):
        np.copyto(target, value, casting="unsafe")
    else:
        from zoo.ops.pointwise_gpu import copy_into
        copy_into(target, value)


def overlapping(array) -> bool:
    """Does one memory location stand for several elements (an expanded view; NumPy writes to no part of one either)?"""
    if type(array) is np.ndarray and not array.flags.writeable:
        return True
    return 0 not in array.shape and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True))


def base_of(x: Tensor) -> Tensor:
    return x.base if isinstance(x, View) else x


def may_write(x: Tensor, name: str) -> Tensor:
    """The tensor whose history a write to x changes (x, or the base of the view x); raises where torch does."""
    base = base_of(x)
    if MODE.grad and base.requires_grad and base.node is None:
        what = "a view of a leaf" if base is not x else "a leaf"
        raise GradError(
            f"{name}: {what} Variable that requires grad is being used in an in-place operation; do it under no_grad()"
        )
    if MODE.grad and base is not x and x.made_without_grad and base.requires_grad:
        raise GradError(
            f"{name}: a view made under no_grad() is written to with grad mode enabled; make the view again"
        )
    if overlapping(x.array):
        raise ShapeError(
            f"{name}: more than one element of the written-to tensor of shape {x.shape} refers to a single "
            "memory location; clone() it first"
        )
    return base


def write(x: Tensor, result: Any, name: str = "copy_", fresh: bool = True) -> Tensor:
    """Puts `result` (a Tensor, computed from x as it was) into x's memory, and its history into x's.

    fresh: nobody else holds `result`. What others hold keeps its node, and with it its hooks, to itself.
    """
    base = may_write(x, name)
    if result.shape != x.shape:
        raise ShapeError(f"{name}: output with shape {x.shape} doesn't match the broadcast shape {result.shape}")
    if not fits(result.dtype, x.dtype):
        raise DtypeError(f"{name}: result type {result.dtype} can't be cast to the desired output type {x.dtype}")
    history = None
    tracked = MODE.grad and (result.requires_grad or base.requires_grad)
    if tracked:
        if base is not x:
            history = through(base, result, x)
        elif not result.requires_grad:
            old, everywhere = wrap(x.array, x.node), wrap(put(np.ones((), bool), x.device))
            history = where(everywhere, result, old).node        # nothing of x is left, yet it goes on to require grad
        else:
            history = result.node if fresh and result.node else node_for(clone, (result,), 1, x)
    retaining = [t for t in {x, base} if t.retains_grad and t.node.hooks.pop("retain")] if tracked else ()
    copy_raw(x.array, result.array)
    x.clock[0] = tick()
    if tracked:
        base.node, base.requires_grad = history, history is not None
    for tensor in retaining:
        tensor.retain_grad()                             # of what it is now
    return x


def through(base: Tensor, result: Tensor, view: View) -> Node | None:
    """The history of `base` after `result` was written through `view`: write_through, without running it."""
    args = (base, result, view.refresh().trail)
    wanted = base.requires_grad + 2 * result.requires_grad
    return node_for(write_through, args, wanted, base)


def before(x: Tensor) -> Tensor:
    """x as it is now, under the same history, on a copy of its memory if the graph may keep it."""
    out = wrap(x.array, x.node)
    out.requires_grad = x.requires_grad
    if MODE.grad:
        if type(x.array) is np.ndarray:
            out.array = x.array.copy()
        else:
            from zoo.ops.pointwise_gpu import contiguous_copy
            out.array = contiguous_copy(x.array)
    return out


def in_place(name: str, function):
    """`x.name_(...)` of a function `name(x, ...)`: its result, moved into x."""
    def method(self, *args, **options):
        may_write(self, f"{name}_")
        try:
            result = function(before(self), *args, **options)
        except AttributeError as error:
            raise refused(f"{name}_", function, (self, *args), options, error) from None
        return write(self, result, f"{name}_")
    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"In place: `{name}`, with the result in this tensor's memory."
    method.__wrapped__ = function                        # inspect.signature and IDEs show its parameters
    return method


def copy_(x: Tensor, source: Any, non_blocking: bool = False) -> Tensor:
    """Copies `source` (Tensor, array or number; broadcast, cast, from any device) into x's memory."""
    source = source if isinstance(source, Tensor) else wrap(np.asarray(source))
    if source.device != x.device:
        from zoo.ops.device import to_device
        source = to_device(source, x.device)
    if source.shape != x.shape:
        try:
            source = expand(source, x.shape)
        except ValueError:
            raise ShapeError(f"copy_: a source of shape {source.shape} does not broadcast to {x.shape}") from None
    if source.dtype != x.dtype:
        source = cast(source, x.dtype)
    return write(x, source, "copy_", fresh=False)


def out_(x: Tensor, result: Any) -> Tensor:
    """out=: the result of an op moved into x (Op calls this as `__out__`); records nothing."""
    result = result if isinstance(result, Tensor) else wrap(np.asarray(result))
    if MODE.grad and (x.requires_grad or result.requires_grad):
        raise GradError("out=: functions with out= do not record; an argument requires grad (use no_grad())")
    if not fits(result.dtype, x.dtype):
        raise DtypeError(f"out=: result type {result.dtype} can't be cast to the desired output type {x.dtype}")
    if result.shape != x.shape:
        if x.array.size:
            raise ShapeError(f"out=: wants an output of shape {result.shape}, got {x.shape}")
        x.array = cast(result.detach(), x.dtype).array          # an empty out is resized, as in torch
        x.clock[0] = tick()
        return x
    copy_raw(x.array, result.array)
    x.clock[0] = tick()
    return x


def written(x: Tensor):
    """The array of x, which ops write into without a record (they call this as `__written__`)."""
    if MODE.grad and x.requires_grad:
        raise GradError("a tensor that requires grad is written to by an op that does not record it (use no_grad())")
    x.clock[0] = tick()
    return x.array


def set_item(x: Tensor, index: Any, value: Any) -> None:
    """`x[index] = value`: through a view for basic indices, functionally for index arrays and masks."""
    from zoo.ops.face.getitem import fitted
    from zoo.ops.face.index import getitem, setitem_functional
    window = None
    if is_basic(index):
        if type(x.array) is np.ndarray and type(value) in NUMBERS and not (MODE.grad and base_of(x).requires_grad):
            target = getitem(x.array, index)               # nothing to record: straight into the memory
            if not overlapping(target):
                target[...] = value if target.dtype.kind == "f" else number_in("setitem", value, target.dtype)
                x.clock[0] = tick()
                return
        window = getitem(x, index)
    if window is not None and (isinstance(window, View) or window is x):
        copy_(window, fitted(as_value(value, x), window.shape))
        return
    may_write(x, "setitem")
    write(x, setitem_functional(before(x), index, as_value(value, x)), "setitem")


def as_value(value: Any, x: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value
    array = np.asarray(value)
    return wrap(
        put(
            array.astype(x.dtype)
            if array.dtype != x.dtype and fits(array.dtype, x.dtype) or array.ndim == 0
            else array,
            x.device,
        )
    )


def is_basic(index: Any) -> bool:
    """Only ints, slices, None and Ellipsis: a view."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        p is None or p is Ellipsis or isinstance(p, (slice, int, np.integer)) and not isinstance(p, (bool, np.bool_))
        for p in parts
    )


def fill_(x: Tensor, value: Any) -> Tensor:
    """Sets every element to `value` (a number or a 0-d tensor)."""
    if isinstance(value, Tensor) and value.ndim:
        raise ShapeError(f"fill_: wants a number or a 0-d tensor, got shape {value.shape}")
    return copy_(x, as_value(number_in("fill_", value, x.dtype), x))


def zero_(x: Tensor) -> Tensor:
    """Sets every element to 0."""
    return fill_(x, 0)


def fill_diagonal_(x: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Writes `fill_value` on the main diagonal; `wrap` goes on after each n rows of a tall (m, n) matrix, m > n.

    Raises:
        ShapeError (ValueError, RuntimeError): fewer than 2 dims, or more with sizes that differ.

    Example:
        >>> import zoo
        >>> zoo.zeros(2, 2).fill_diagonal_(5)
        tensor([[5., 0.],
                [0., 5.]])
    """
    shape = tuple(x.shape)
    if len(shape) < 2 or len(shape) > 2 and len(set(shape)) > 1:
        raise ShapeError(f"fill_diagonal_: wants a matrix, or more dims of equal size, got shape {shape}")
    if 0 in shape:
        return x
    end = x.numel() if wrap or shape[0] <= shape[1] else shape[1] * shape[1]
    step = sum(prod(shape[d + 1:]) for d in range(len(shape)))
    places = constant(np.arange(0, end, step), x)
    return write(x, index_fill(before(x).reshape(-1), 0, places, fill_value).reshape(shape), "fill_diagonal_")


def apply_(x: Tensor, function: Callable) -> Tensor:
    """Puts function(value) in place of every element; on the CPU, in a Python loop, without a gradient.

    Raises:
        TypeError: the tensor lies on a GPU.

    Example:
        >>> import zoo
        >>> zoo.tensor([1.0, 2.0]).apply_(lambda v: v + 1)
        tensor([2., 3.])
    """
    if x.is_cuda:
        raise TypeError(f"apply_: is only implemented on CPU tensors, got one on {x.device}")
    values = [function(v) for v in x.array.reshape(-1).tolist()]
    return write(x, wrap(np.array(values, x.dtype).reshape(x.shape)), "apply_")


def set_(x: Tensor, source: Tensor) -> Tensor:
    """Makes x share the memory of `source`."""
    x.data = source
    return x


def viewable(method):
    """`view` as a method of Tensor: convolutions and gradients lie in memory as they like (NHWC, broadcast), where
    torch's lie in row-major order. Such a tensor is laid out anew, once, so that `conv(x).view(n, -1)` is a view of it.
    A view of it is copied. What became uncontiguous by the user's own transpose is an error, as in torch.
    """
    def view(self, *shape, **options):
        try:
            return method(self, *shape, **options)
        except ShapeError:
            made_by_user = self.base.is_contiguous() if type(self) is View else type(self) is not Tensor
            if self.is_contiguous() or made_by_user:
                raise
        if type(self) is View:
            return method(self.contiguous(), *shape, **options)
        self.array = self.detach().contiguous().array
        return method(self, *shape, **options)
    view.__name__, view.__doc__ = method.__name__, method.__doc__
    return view


def way_back(shape: tuple, trail: tuple) -> tuple:
    """The trail that undoes this one of a tensor of that shape: dims in another order, or some of size 1 more or less.

    Views that were made before their base changed its shape begin with it.
    """
    ((op, args),) = steps(trail)
    if op is permute:
        return None, permute, (tuple(np.argsort([d % len(shape) for d in args[0]]).tolist()),)
    return None, reshape, (tuple(shape),)


def reshaped_in_place(name: str, function):
    """`x.t_()`, `x.squeeze_()` ...: x becomes that view of itself."""
    def method(self, *args, **options):
        if MODE.grad and self.requires_grad and self.node is None:
            raise GradError(f"{name}_: a leaf Variable that requires grad is being used in an in-place operation")
        alias = wrap(self.array, self.node)
        alias.clock = self.clock
        out = function(alias, *args, **options)
        self.array = out.array
        self.clock[0] = tick()                           # what was saved of self has another shape now
        if self.node is not None:
            self.node = out.node
        if not isinstance(out, View):
            return self                                  # nothing to move, or no memory in common
        if base_of(self) is self:
            self.turned = (*getattr(self, "turned", ()), (self.clock[0], way_back(alias.shape, out.trail)))
        else:
            self.trail = joined(self.trail, out.trail)
        return self
    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"In place: `{name}`, of the same memory."
    method.__wrapped__ = function
    return method
