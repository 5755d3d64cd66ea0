"""Parameters that are computed from others whenever they are read: torch.nn.utils.parametrize.

A parametrized module is of a class of its own, in which the tensor's name is no attribute: reading it runs the
parametrizations on what stands in `module.parametrizations.<name>.original`, and writing it runs their right inverses.
"""
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from zoo.autograd.mode import no_grad
from zoo.autograd.tensor import Tensor
from zoo.nn.containers import ModuleDict, ModuleList
from zoo.nn.module import Module
from zoo.nn.parameter import Parameter
from zoo.ops.errors import ArgumentError

CACHE: dict[tuple[int, str], Tensor] = {}       # (id of the module, name) -> what reading gave, inside `cached`
INSIDE = [0]                                    # how many `cached` blocks are open


@contextmanager
def cached() -> Iterator[None]:
    """Inside, each parametrized tensor is computed once, at its first reading: for modules that read it often.

    Example:
        >>> import zoo
        >>> from zoo.nn.utils import parametrize
        >>> layer = zoo.nn.utils.parametrizations.weight_norm(zoo.nn.Linear(2, 2))
        >>> with parametrize.cached():
        ...     layer.weight is layer.weight
        True
    """
    INSIDE[0] += 1
    try:
        yield
    finally:
        INSIDE[0] -= 1
        if not INSIDE[0]:
            CACHE.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order, with the tensor they start from: `original`.

    Where the right inverse of the last one gives several tensors, these are original0, original1 ...
    register_parametrization makes it.
    """

    def __init__(self, modules: Any, original: Tensor, unsafe: bool = False):
        super().__init__(modules)
        if not len(self):
            raise ArgumentError("ParametrizationList: wants at least one module")
        self.unsafe = unsafe
        with no_grad():
            new = self.inverted(original, lenient=True)
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            if new.dtype != original.dtype or new.device != original.device:
                raise ArgumentError(f"right_inverse: wants {original.dtype} on {original.device} back, got {new.dtype} "
                                    f"on {new.device}")
            original.data = new             # the same object, which an optimizer may hold
            hold(self, "original", original)
        else:
            for k, part in enumerate(new):
                part = part.detach()
                hold(self, f"original{k}", Parameter(part, original.requires_grad)
                     if isinstance(original, Parameter) else part.requires_grad_(original.requires_grad))

    def inverted(self, value: Tensor, lenient: bool = False) -> Any:
        """The tensor or tensors that give `value`; lenient: a module without a right inverse counts as the identity."""
        new: Any = value
        for module in reversed(list(self)):
            inverse = getattr(module, "right_inverse", None)
            if inverse is not None:
                try:
                    new = inverse(new)
                except NotImplementedError:
                    if not lenient:
                        raise
            elif not lenient:
                raise ArgumentError(f"parametrize: {type(module).__name__} has no right_inverse, so that its tensor "
                                    "cannot be assigned to")
        parts = [new] if isinstance(new, Tensor) else new
        if not isinstance(parts, (list, tuple)) or not all(isinstance(x, Tensor) for x in parts):
            raise ArgumentError(f"right_inverse: wants a Tensor or a sequence of them back, got {type(new).__name__}")
        return new

    def right_inverse(self, value: Tensor) -> None:
        """Makes the original such that the parametrizations give `value`."""
        with no_grad():
            new = self.inverted(value)
            parts = [new] if isinstance(new, Tensor) else list(new)
            if isinstance(new, Tensor) is not self.is_tensor or len(parts) != self.ntensors:
                raise ArgumentError(f"right_inverse: wants {self.ntensors} tensors back, as when the parametrization "
                                    f"was registered, got {len(parts)}")
            for target, part in zip(self.originals(), parts, strict=True):
                if part.dtype != target.dtype:
                    raise ArgumentError(f"right_inverse: wants {target.dtype} back, got {part.dtype}")
                target.data = part.detach().clone()

    def originals(self) -> list[Tensor]:
        """The tensors it starts from."""
        return [self.original] if self.is_tensor else [getattr(self, f"original{k}") for k in range(self.ntensors)]

    def forward(self) -> Tensor:
        first, *rest = self
        value = first(*self.originals())
        for module in rest:
            value = module(value)
        return value


def hold(module: Module, name: str, tensor: Tensor) -> None:
    """Registers a tensor as what it is: a parameter or a buffer."""
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


class Parametrized:
    """What is put before a module's class: names in `parametrizations` are computed instead of kept."""

    __dict__: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        lists = self.__dict__.get("parametrizations", ())
        if name not in lists:
            return super().__getattribute__(name)            # raises the ordinary AttributeError
        if not INSIDE[0]:
            return lists[name]()
        key = (id(self), name)
        if key not in CACHE:
            CACHE[key] = lists[name]()
        return CACHE[key]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("parametrizations", ()):
            self.parametrizations[name].right_inverse(value)
        else:
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple:
        return revived, (type_before_parametrizations(self), dict(self.__dict__))


@functools.cache
def parametrized_class(kind: type) -> type:
    """The class of a module of class `kind` with parametrizations."""
    return type(f"Parametrized{kind.__name__}", (Parametrized, kind), {"__module__": __name__})


def revived(kind: type, attributes: dict) -> Any:
    """A parametrized module again, from a pickle or a copy."""
    module = object.__new__(parametrized_class(kind))
    module.__dict__.update(attributes)
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrizations, of the named tensor or of any."""
    lists = module.__dict__.get("parametrizations")
    if not isinstance(lists, ModuleDict) or not len(lists):
        return False
    return tensor_name is None or tensor_name in lists


def type_before_parametrizations(module: Any) -> type:
    """The module's class without what its parametrizations changed in it."""
    return type(module).__bases__[1] if isinstance(module, Parametrized) else type(module)


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *,
                             unsafe: bool = False) -> Module:
    """From now on `module.<tensor_name>` is parametrization(original), computed anew at every reading.

    Args:
        module: it is changed and given back. tensor_name: of one of its parameters or buffers; for one that is
            parametrized already, the new parametrization comes after those.
        parametrization: a module whose forward gives a tensor of the same shape and dtype. With a method
            `right_inverse(value)` the start value is kept, if it is one that forward can give, and the tensor can be
            assigned to; the first parametrization's may give several tensors, which its forward then takes.
        unsafe: no check that shape and dtype stay.

    Raises:
        ArgumentError (ValueError, RuntimeError): no such tensor, or one of another shape or dtype comes out.

    Example:
        >>> import zoo
        >>> class Symmetric(zoo.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = zoo.nn.utils.parametrize.register_parametrization(zoo.nn.Linear(3, 3), "weight", Symmetric())
        >>> bool((layer.weight == layer.weight.T).all()), list(layer.state_dict())
        (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        lists = module.parametrizations[tensor_name]
        if not unsafe:
            check_next(tensor_name, getattr(module, tensor_name), parametrization)
        lists.append(parametrization)
        lists.unsafe |= unsafe
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ArgumentError(f"register_parametrization: {type(module).__name__} has no parameter or buffer "
                            f"{tensor_name!r}")
    before = getattr(module, tensor_name)
    shape, dtype = before.shape, before.dtype
    lists = ParametrizationList([parametrization], before, unsafe)
    if not unsafe:
        check_alike(tensor_name, lists(), shape, dtype)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
        module.__class__ = parametrized_class(type(module))
    module.parametrizations[tensor_name] = lists
    return module


def check_alike(name: str, value: Any, shape: tuple, dtype: Any) -> None:
    """Raises unless a parametrization gave a tensor of this shape and dtype."""
    if not isinstance(value, Tensor):
        raise ArgumentError(f"register_parametrization: a parametrization of {name!r} must give a tensor, got "
                            f"{type(value).__name__}")
    if value.shape != shape or value.dtype != dtype:
        raise ArgumentError(f"register_parametrization: wants {dtype} of shape {shape} for {name!r}, got {value.dtype} "
                            f"of shape {value.shape}; with unsafe=True it may change")


def check_next(name: str, value: Tensor, parametrization: Module) -> None:
    """Raises unless forward and right inverse of one more parametrization keep shape and dtype."""
    new = parametrization(value)
    check_alike(name, new, value.shape, value.dtype)
    if hasattr(parametrization, "right_inverse"):
        try:
            check_alike(name, parametrization.right_inverse(new), value.shape, value.dtype)
        except NotImplementedError:
            return


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Makes the tensor an ordinary parameter or buffer again.

    Args:
        leave_parametrized: with the value that it has now; otherwise that of `original`.

    Raises:
        ArgumentError (ValueError, RuntimeError): not parametrized; or several originals and not leave_parametrized.

    Example:
        >>> import zoo
        >>> layer = zoo.nn.utils.parametrizations.spectral_norm(zoo.nn.Linear(3, 3))
        >>> zoo.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        Linear(in_features=3, out_features=3, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ArgumentError(f"remove_parametrizations: {type(module).__name__} has no parametrization of "
                            f"{tensor_name!r}")
    lists = module.parametrizations[tensor_name]
    if not lists.is_tensor and not leave_parametrized:
        raise ArgumentError(f"remove_parametrizations: {tensor_name!r} is made of {lists.ntensors} tensors, of which "
                            "none can be left alone")
    tensor = lists.originals()[0]
    if leave_parametrized:
        value = getattr(module, tensor_name)
        if lists.is_tensor:
            tensor.data = value.detach()        # the same object, which an optimizer may hold
        else:
            tensor = Parameter(value.detach()) if value.requires_grad else value
    del module.parametrizations[tensor_name]
    if not is_parametrized(module):
        module.__class__ = type_before_parametrizations(module)
        del module.parametrizations
    hold(module, tensor_name, tensor)
    return module
