"""Gradient clipping, and parameters as one vector."""

from collections.abc import Iterable

from zoo.autograd import lists
from zoo.autograd.creation import tensor
from zoo.autograd.inplace import copy_
from zoo.autograd.mode import no_grad
from zoo.autograd.tensor import Tensor
from zoo.nn.init import deprecated
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.op import OPS


def listed(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    """One tensor or many as a list."""
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    """Those that there are."""
    return [p.grad for p in listed(parameters) if p.grad is not None]


@no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements of all tensors together.

    Raises:
        ArgumentError (ValueError, RuntimeError): a norm_type that is not above 0; error_if_nonfinite, which waits for
            the GPU, and the norm is nan or infinite.
    """
    tensors = listed(tensors)
    if not norm_type > 0:
        raise ArgumentError(f"clip_grad_norm_: wants a norm_type above 0, got {norm_type}")
    total = lists.norm(tensors, float(norm_type)) if tensors else tensor(0.0)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise ArgumentError(
            f"clip_grad_norm_: the total norm of order {norm_type} is {total.item()}, wants a finite one; "
            "error_if_nonfinite=False goes on"
        )
    return total


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales the gradients in place by max_norm / total_norm, where that is below 1."""
    lists.clip_to_norm(gradients(parameters), total_norm, float(max_norm))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients together, in place, so that their norm is at most max_norm; returns the norm they had.

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.zeros(2))
        >>> p.grad = zoo.tensor([3.0, 4.0])
        >>> zoo.nn.utils.clip_grad_norm_([p], 1.0)
        tensor(5.)
        >>> p.grad
        tensor([0.6000, 0.8000])
    """
    parameters = listed(parameters)
    total = get_total_norm(gradients(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


clip_grad_norm = deprecated(clip_grad_norm_, "nn.utils")


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Holds every element of the gradients between -clip_value and clip_value, in place."""
    lists.clip_to_value(gradients(parameters), float(clip_value))


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters in one vector, recorded."""
    return OPS["cat"](0, *(p.reshape(-1) for p in parameters))


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copies pieces of a vector into parameters.

    Raises:
        ShapeError: the vector has not as many elements as the parameters.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: wants a Tensor, got {type(vec).__name__}")
    parameters = list(parameters)
    if vec.numel() < sum(p.numel() for p in parameters):
        raise ShapeError(
            f"vector_to_parameters: wants {sum(p.numel() for p in parameters)} elements, got {tuple(vec.shape)}"
        )
    start = 0
    with no_grad():
        for p in parameters:
            copy_(p, vec.detach()[start : start + p.numel()].reshape(p.shape))
            start += p.numel()
