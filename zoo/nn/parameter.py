"""Parameter: a Tensor that a Module finds by itself."""

from typing import Any

from zoo.autograd.tensor import Tensor


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
