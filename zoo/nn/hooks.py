"""Calling a Module that has hooks: the slow road of Module.__call__."""

from collections.abc import Callable
from typing import Any, NamedTuple

from zoo.autograd.function import Function
from zoo.autograd.tensor import Tensor


class Hook(NamedTuple):
    """One registered hook: its kind says when it runs (see Module.register_...)."""

    kind: str
    function: Callable
    with_kwargs: bool = False
    always: bool = False


def hooks_of(module, kind: str) -> list[Hook]:
    """The module's hooks of one kind, in order."""
    return [h for h in (module._hooks or {}).values() if h.kind == kind]


def functions_of(module, kind: str) -> dict[int, Callable]:
    """The functions of the module's hooks of one kind by their handles' ids: a copy."""
    return {key: h.function for key, h in (module._hooks or {}).items() if h.kind == kind}


def call_with_hooks(module, args: tuple, options: dict) -> Any:
    """forward with the hooks around it, in the order of torch: pre, forward, post; gradients pass two boundaries."""
    called = set()
    try:
        args, options = before(module, args, options)
        crossing = Crossing(module) if hooks_of(module, "backward") or hooks_of(module, "backward_before") else None
        if crossing:
            args = crossing.enter(args)
        out = module.forward(*args, **options)
        for hook in hooks_of(module, "after"):
            called.add(hook)
            new = hook.function(module, args, options, out) if hook.with_kwargs else hook.function(module, args, out)
            out = out if new is None else new
        return crossing.leave(out) if crossing else out
    except Exception:
        for hook in hooks_of(module, "after"):
            if hook.always and hook not in called:
                hook.function(module, args, options, None) if hook.with_kwargs else hook.function(module, args, None)
        raise


def before(module, args: tuple, options: dict) -> tuple[tuple, dict]:
    """The arguments after the forward pre-hooks."""
    for hook in hooks_of(module, "before"):
        if hook.with_kwargs:
            new = hook.function(module, args, options)
            if new is not None:
                if not (isinstance(new, tuple) and len(new) == 2):
                    raise ValueError(
                        f"forward pre-hook with kwargs: wants None or (args, kwargs) back, got {type(new).__name__}"
                    )
                args, options = new
        else:
            new = hook.function(module, args)
            args = args if new is None else new if isinstance(new, tuple) else (new,)
    return args, options


class Crossing:
    """One call of a module with backward hooks: it sees the gradients at both ends."""

    def __init__(self, module):
        self.module, self.outgoing, self.inputs = module, None, 0

    def enter(self, args: tuple) -> tuple:
        where = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        self.inputs = len(args)
        if not any(args[i].requires_grad for i in where):
            self.where = None
            return args
        self.where = where
        new = list(args)
        for i, x in zip(where, pass_through(self.at_inputs, [args[i] for i in where]), strict=True):
            new[i] = x
        return tuple(new)

    def leave(self, out: Any) -> Any:
        outs = out if isinstance(out, (tuple, list)) else (out,)
        where = [i for i, x in enumerate(outs) if isinstance(x, Tensor)]
        if not any(outs[i].requires_grad for i in where):
            return out
        new = list(outs)
        for i, x in zip(where, pass_through(self.at_outputs, [outs[i] for i in where]), strict=True):
            new[i] = x
        self.count, self.out_where = len(outs), where
        return tuple(new) if isinstance(out, tuple) else new if isinstance(out, list) else new[0]

    def at_outputs(self, gradients: tuple) -> tuple:
        full = spread(gradients, self.out_where, self.count)
        for hook in hooks_of(self.module, "backward_before"):
            new = hook.function(self.module, full)
            if new is not None:
                full = new if isinstance(new, tuple) else (new,)
        self.outgoing = full
        if self.where is None:  # no input wants a gradient: torch runs the hooks here
            self.run((None,) * self.inputs)
        return tuple(full[i] for i in self.out_where)

    def at_inputs(self, gradients: tuple) -> tuple:
        full = self.run(spread(gradients, self.where, self.inputs))
        return tuple(full[i] for i in self.where or ())

    def run(self, full: tuple) -> tuple:
        for hook in hooks_of(self.module, "backward"):
            new = hook.function(self.module, full, self.outgoing)
            if new is not None:
                full = new if isinstance(new, tuple) else (new,)
        return full


def spread(gradients: tuple, where, count: int) -> tuple:
    """Gradients at their places among `count`, None elsewhere."""
    full: list = [None] * count
    for i, g in zip(where, gradients, strict=True):
        full[i] = g
    return tuple(full)


class Boundary(Function):
    """Hands its inputs on, and their gradients through a function."""

    @staticmethod
    def forward(ctx, function, *xs):
        ctx.function = function
        return tuple(x.view_as(x) for x in xs)

    @staticmethod
    def backward(ctx, *gradients):
        return None, *ctx.function(gradients)


def pass_through(function: Callable, xs: list) -> tuple:
    """xs, whose gradients go through `function`."""
    return Boundary.apply(function, *xs)
