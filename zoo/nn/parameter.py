"""Parameter: a Tensor that a Module finds by itself."""

from typing import Any

from zoo.autograd.creation import empty
from zoo.autograd.engine import Variable
from zoo.autograd.tensor import Tensor, wrap
from zoo.ops.errors import ArgumentError


class Parameter(Tensor):
    """A Tensor that becomes a parameter of the Module it is assigned to; it shares the memory of `data`.

    Args:
        data: a Tensor, any shape; floating unless requires_grad is False.
        requires_grad: whether gradients are recorded.

    Example:
        >>> import zoo
        >>> zoo.nn.Parameter(zoo.ones(2))
        Parameter containing:
        tensor([1., 1.], requires_grad=True)
    """

    __hash__ = object.__hash__

    def __init__(self, data: Any = None, requires_grad: bool = True):
        super().__init__(() if data is None else data)
        if isinstance(data, Tensor):
            self.clock = data.clock
        self.requires_grad_(requires_grad)


class Buffer(Tensor):
    """A Tensor that becomes a buffer of the Module it is assigned to: state that is not trained.

    Args:
        data: a Tensor, any shape and dtype.
        persistent: whether it is part of the module's state_dict.
    """

    __hash__ = object.__hash__

    def __init__(self, data: Any = None, *, persistent: bool = True):
        super().__init__(() if data is None else data)
        self.persistent = persistent


class Uninitialized:
    """What UninitializedParameter and UninitializedBuffer share: no numbers and no shape, but a dtype and a device.

    Whatever needs the array raises. `materialize(shape)` makes this very object an ordinary parameter or buffer, so
    that an optimizer that holds it goes on. It has the memory layout of these: it must not descend from Tensor itself.
    """

    __slots__ = ()
    becomes: type = Tensor

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None):
        Variable.array.__set__(self, empty(0, device=device, dtype=dtype).array)
        self.node, self.grad, self.clock, self.hooks, self.requires_grad = None, None, [0], None, requires_grad

    held = property(lambda self: wrap(Variable.array.__get__(self)))
    data = property(lambda self: self.held, lambda self, value: Variable.array.__set__(self, value.array))
    dtype = property(lambda self: self.held.dtype)
    device = property(lambda self: self.held.device)

    @property
    def array(self) -> Any:
        """Raises: there is none yet."""
        raise ArgumentError(f"{type(self).__name__}: has no shape and no values yet; run the module once on an input, "
                            "or load a state_dict, before they are used")

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Gives it memory of that shape, with values that mean nothing, on its device and of its dtype by default."""
        memory = empty(shape, device=device or self.device, dtype=dtype or self.dtype)
        self.__class__ = self.becomes
        self.data = memory

    def detach(self) -> Any:
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        self.requires_grad = requires_grad
        return self

    def __deepcopy__(self, memo: dict) -> Any:
        return memo.setdefault(id(self), type(self)(self.requires_grad, self.device, self.dtype))

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return type(self), (self.requires_grad, str(self.device), self.dtype)

    def __repr__(self):
        return f"<{type(self).__name__}>"


class UninitializedParameter(Uninitialized, Parameter):
    """A Parameter whose shape is not known yet: see the Lazy layers of zoo.nn.

    Example:
        >>> import zoo
        >>> p = zoo.nn.parameter.UninitializedParameter()
        >>> p.materialize((2, 3))
        >>> type(p).__name__, p.shape
        ('Parameter', (2, 3))
    """

    __hash__ = object.__hash__
    becomes = Parameter


class UninitializedBuffer(Uninitialized, Buffer):
    """A Buffer whose shape is not known yet: see the Lazy layers of zoo.nn."""

    __hash__ = object.__hash__
    becomes = Buffer
    persistent = True

    def __init__(self, requires_grad: bool = False, device: Any = None, dtype: Any = None):
        super().__init__(requires_grad, device, dtype)
