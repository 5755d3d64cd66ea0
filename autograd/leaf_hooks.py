"""Hooks that run after a leaf's gradient was added to its `.grad`."""
from collections.abc import Callable
from typing import Any

from zoo.ops.device import device_of
from zoo.ops.errors import DtypeError, GradError, ShapeError


class AfterGrad:
    """A hook among a leaf's hooks that waits until `.grad` is written: called with a gradient it changes nothing."""

    def __init__(self, function: Callable):
        self.function = function

    def __call__(self, gradient: Any) -> None:
        return None


def run_after(leaf: Any) -> None:
    """Runs the leaf's AfterGrad hooks; backward calls this when leaf.grad is complete."""
    for hook in tuple(leaf.hooks.values()):
        if isinstance(hook, AfterGrad):
            hook.function(leaf)


def register_post_accumulate_grad_hook(self, hook: Callable):
    """`hook(leaf)` runs after a backward pass has added this leaf's gradient to its `.grad`.

    Returns a handle whose `remove()` takes the hook off again.

    Raises:
        GradError (RuntimeError): not a leaf, or one that does not require a gradient.

    Example:
        >>> import zoo
        >>> w = zoo.ones(2, requires_grad=True)
        >>> handle = w.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
        >>> (3 * w).sum().backward()
        tensor([3., 3.])
    """
    from zoo.autograd.tensor import Handle
    if not self.requires_grad or self.node is not None:
        raise GradError("register_post_accumulate_grad_hook: wants a leaf that requires a gradient")
    if self.hooks is None:
        self.hooks = {}
    return Handle(self.hooks, AfterGrad(hook))


def view_requires_grad(view: Any, value: bool) -> None:
    """`view.requires_grad = value`. A view of what needs no gradient becomes a leaf by it, and so its own base: a write
    to it, or to a view of it, is a write to a leaf. (It is in a cycle then, which the collector frees.)"""
    view._requires_grad = value
    if value and view._node is None and not view.base.requires_grad:
        view.base, view.trail = view, None


def set_grad(tensor: Any, grad: Any) -> None:
    """`tensor.grad = grad`: None, or another tensor of the same shape, dtype and device."""
    if grad is not None:
        need_like("grad", grad, tensor)
        if grad is tensor:
            raise GradError("grad: a tensor cannot be its own gradient")
        if device_of(grad.array) != device_of(tensor.array):
            raise GradError(f"grad: wants a tensor on {device_of(tensor.array)}, got one on {device_of(grad.array)}")
    tensor._grad = grad


def need_like(what: str, grad: Any, like: Any) -> None:
    """Raises if `grad` is no tensor of the shape and dtype of `like`."""
    if not hasattr(grad, "requires_grad"):
        raise TypeError(f"{what}: wants a Tensor or None, got {type(grad).__name__}")
    if grad.shape != like.shape:
        raise ShapeError(f"{what}: wants a gradient of shape {like.shape}, got {grad.shape}")
    if grad.dtype != like.dtype:
        raise DtypeError(f"{what}: wants a gradient of dtype {like.dtype}, got {grad.dtype}")
