"""Module: the base class of all layers and models."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, Self

from zoo.autograd.creation import empty_like
from zoo.autograd.tensor import Handle, Tensor
from zoo.nn.hooks import Hook, call_with_hooks, functions_of
from zoo.nn.parameter import Buffer, Parameter
from zoo.nn.state import load_state_dict, state_dict
from zoo.ops.dtypes import INEXACT, bfloat16, float16, float32, float64
from zoo.ops.memory_format import RANK

KINDS = ("_parameter_names", "_buffer_names", "_module_names")


class Registered(MutableMapping):
    """A Module's `_parameters`, `_buffers` or `_modules`: a live view of those of its attributes."""

    def __init__(self, module: "Module", kind: str):
        self.names, self.values_of = module.__dict__[kind], module.__dict__

    def __getitem__(self, name):
        if name not in self.names:
            raise KeyError(name)
        return self.values_of[name]

    def __setitem__(self, name, value):
        self.names[name] = True
        self.values_of[name] = value

    def __delitem__(self, name):
        del self.names[name], self.values_of[name]

    def __iter__(self):
        return iter(self.names)

    def __len__(self):
        return len(self.names)

    def __repr__(self):
        return repr(dict(self))


class Module:
    """Base class of layers and models: write `__init__` (call `super().__init__()` first) and `forward`.

    Parameters, buffers and child modules are plain attributes; the module only keeps their names, in order. So
    reading one costs what any attribute costs.

    Example:
        >>> import zoo
        >>> class Double(zoo.nn.Module):
        ...     def forward(self, x):
        ...         return 2 * x
        >>> Double()(zoo.ones(2))
        tensor([2., 2.])
    """

    dump_patches = False
    _version = 1
    training: bool
    _hooks: dict | None = None

    def __init__(self):
        self.__dict__.update({kind: {} for kind in KINDS}, training=True)

    def forward(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args, **options):
        if self._hooks:
            return call_with_hooks(self, args, options)
        return self.forward(*args, **options) if options else self.forward(*args)

    # --- attributes ------------------------------------------------------------------------------------------
    _parameters = property(lambda self: Registered(self, KINDS[0]))
    _buffers = property(lambda self: Registered(self, KINDS[1]))
    _modules = property(lambda self: Registered(self, KINDS[2]))
    _forward_pre_hooks = property(lambda self: functions_of(self, "before"))
    _forward_hooks = property(lambda self: functions_of(self, "after"))

    def __setattr__(self, name, value):
        known = self.__dict__.get("_parameter_names")
        if isinstance(value, (Parameter, Module, Buffer)):
            if known is None:
                raise AttributeError(f"{type(self).__name__}: call super().__init__() before assigning to {name!r}")
            if isinstance(value, Buffer):
                self.register_buffer(name, value, value.persistent)
            else:
                self._register(KINDS[0] if isinstance(value, Parameter) else KINDS[2], name, value)
        elif known is None:
            object.__setattr__(self, name, value)
        elif name in known and value is not None:
            raise TypeError(f"{type(self).__name__}.{name}: wants a Parameter or None, got {type(value).__name__}")
        elif name in self._module_names and value is not None:
            raise TypeError(f"{type(self).__name__}.{name}: wants a Module or None, got {type(value).__name__}")
        elif name in self._buffer_names and value is not None and not isinstance(value, Tensor):
            raise TypeError(f"{type(self).__name__}.{name}: wants a Tensor or None, got {type(value).__name__}")
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name):
        object.__delattr__(self, name)
        for kind in KINDS:
            self.__dict__[kind].pop(name, None)

    def _register(self, kind: str, name: str, value: Any, flag: bool = True) -> None:
        if kind not in self.__dict__:
            raise AttributeError(f"{type(self).__name__}: call super().__init__() before registering {name!r}")
        if not isinstance(name, str):
            raise TypeError(f"{type(self).__name__}: wants a str as a name, got {type(name).__name__}")
        if "." in name or not name:
            raise KeyError(f'{type(self).__name__}: a name must not be "" or contain ".", got {name!r}')
        for other in KINDS:
            self.__dict__[other].pop(name, None) if other != kind else None
        self.__dict__[kind][name] = flag
        self.__dict__[name] = value

    def _new_name(self, kind: str, name: str) -> None:
        if isinstance(name, str) and hasattr(self, name) and name not in self.__dict__.get(kind, ()):
            raise KeyError(f"{type(self).__name__}: attribute {name!r} already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter; None keeps the name free of one."""
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"register_parameter: wants a Parameter or None for {name!r}, got {type(param).__name__}")
        self._new_name(KINDS[0], name)
        self._register(KINDS[0], name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a Tensor that is state but not trained; only a persistent one is part of the state_dict."""
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"register_buffer: wants a Tensor or None for {name!r}, got {type(tensor).__name__}")
        self._new_name(KINDS[1], name)
        self._register(KINDS[1], name, tensor, persistent)

    def register_module(self, name: str, module: "Module | None") -> None:
        """Adds a child module under a name; the same as add_module."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"register_module: wants a Module or None for {name!r}, got {type(module).__name__}")
        self._new_name(KINDS[2], name)
        self._register(KINDS[2], name, module)

    add_module = register_module

    # --- walking ---------------------------------------------------------------------------------------------
    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """(name, module) of the direct children, each module once."""
        seen = set()
        for name in self._module_names:
            module = self.__dict__[name]
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator["Module"]:
        """The direct child modules."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, "Module"]]:
        """(path, module) of this module ("") and of all below it, depth first, each once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name in self._module_names:
            if self.__dict__[name] is not None:
                yield from self.__dict__[name].named_modules(
                    memo, f"{prefix}.{name}" if prefix else name, remove_duplicate
                )

    def modules(self) -> Iterator["Module"]:
        """This module and all below it."""
        return (module for _, module in self.named_modules())

    def _named(self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen = set()
        owners = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in owners:
            for name in module.__dict__[kind]:
                value = module.__dict__[name]
                if value is not None and value not in seen:
                    if remove_duplicate:
                        seen.add(value)
                    yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(path, parameter), each parameter once."""
        return self._named(KINDS[0], prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each once: what an optimizer takes."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """(path, buffer), each buffer once."""
        return self._named(KINDS[1], prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each once."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> "Module":
        """The module at a path such as "layer1.0.conv1"; "" is this one.

        Raises:
            AttributeError: no such module.
        """
        module = self
        for name in target.split(".") if target else ():
            child = getattr(module, name, None)
            if not isinstance(child, Module):
                raise AttributeError(
                    f"get_submodule: {type(module).__name__} has no module {name!r} (asked for {target!r})"
                )
            module = child
        return module

    def set_submodule(self, target: str, module: "Module", strict: bool = False) -> None:
        """Puts a module at a path such as "layer1.0.conv1", in place of the one there or, unless strict, as a new one.

        Raises:
            ValueError: an empty path, or no Module. AttributeError: no such place, or something else lies there.
        """
        path, _, name = target.rpartition(".")
        if not name or not isinstance(module, Module):
            raise ValueError(f"set_submodule: wants a path and a Module, got {target!r} and {type(module).__name__}")
        owner = self.get_submodule(path)
        if not isinstance(getattr(owner, name, None), Module) and (strict or hasattr(owner, name)):
            raise AttributeError(f"set_submodule: {type(owner).__name__} has no module {name!r} (asked for {target!r})")
        setattr(owner, name, module)

    def _get(self, kind: str, what: str, target: str) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if name not in owner.__dict__[kind]:
            raise AttributeError(f"get_{what}: {type(owner).__name__} has no {what} {name!r} (asked for {target!r})")
        return owner.__dict__[name]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path such as "layer1.0.conv1.weight"."""
        return self._get(KINDS[0], "parameter", target)

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path such as "bn1.running_mean"."""
        return self._get(KINDS[1], "buffer", target)

    # --- changing --------------------------------------------------------------------------------------------
    def apply(self, fn: Callable[["Module"], Any]) -> Self:
        """Calls fn on every module below this one, then on this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Self:
        """Replaces the memory of every parameter, gradient and buffer by fn of it; the objects stay."""
        for tensor in [*self.parameters(), *self.buffers()]:
            tensor.data = fn(tensor.data)
            if tensor.grad is not None:
                tensor.grad.data = fn(tensor.grad.data)
        return self

    def to(self, *args, memory_format=None, **options) -> Self:
        """Moves all parameters and buffers: `to(device)`, `to(dtype)` (floating ones only), `to(device, dtype)` ...

        memory_format: of those with as many dimensions as it is for, as in `to(memory_format=zoo.channels_last)`.
        """

        def move(t: Tensor) -> Tensor:
            form = memory_format if RANK.get(memory_format, t.ndim) == t.ndim else None
            moved = t.to(*args, memory_format=form, **options)
            if t.dtype in INEXACT and moved.dtype not in INEXACT:
                raise TypeError(f"{type(self).__name__}.to: only accepts floating dtypes, got {moved.dtype}")
            return moved if moved.dtype == t.dtype or t.dtype in INEXACT else t.to(moved.device)

        return self._apply(move)

    def type(self, dst_type: Any) -> Self:
        """Casts all parameters and buffers."""
        return self._apply(lambda t: t.to(dst_type))

    def float(self) -> Self:
        """Casts floating parameters and buffers to float32."""
        return self.to(float32)

    def double(self) -> Self:
        """Casts floating parameters and buffers to float64."""
        return self.to(float64)

    def half(self) -> Self:
        """Casts floating parameters and buffers to float16."""
        return self.to(float16)

    def bfloat16(self) -> Self:
        """Casts floating parameters and buffers to bfloat16."""
        return self.to(bfloat16)

    def cuda(self, device: Any = None) -> Self:
        """Moves all parameters and buffers to the GPU."""
        return self._apply(lambda t: t.cuda(device))

    def cpu(self) -> Self:
        """Moves all parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Moves parameters and buffers to a device without their values, which then mean nothing.

        recurse: those of the modules below too.
        """
        for tensor in [*self.parameters(recurse), *self.buffers(recurse)]:
            tensor.data = empty_like(tensor.data, device=device)
        return self

    def train(self, mode: bool = True) -> Self:
        """Sets training mode, which batch norm and dropout look at, here and below."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: wants a bool, got {mode!r}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Leaves training mode: batch norm uses its running statistics, dropout does nothing."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Says whether gradients of all parameters are recorded."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters."""
        for p in self.parameters():
            if set_to_none or p.grad is None:
                p.grad = None
            else:
                p.grad = p.grad.detach().zero_()

    # --- state -----------------------------------------------------------------------------------------------
    def state_dict(self, *, destination: dict | None = None, prefix: str = "", keep_vars: bool = False) -> OrderedDict:
        """All parameters and persistent buffers by path; they share memory with the module's."""
        return state_dict(self, OrderedDict() if destination is None else destination, prefix, keep_vars)

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Copies parameters and buffers from a dict as `state_dict()` gives it.

        Args:
            state_dict: path -> Tensor.
            strict: raise if a key is missing or unexpected (a wrong shape always raises).
            assign: take the given tensors themselves instead of copying their values.

        Returns:
            namedtuple (missing_keys, unexpected_keys).

        Raises:
            StateDictError (ValueError, RuntimeError): a table of missing, unexpected and mismatched keys.
        """
        return load_state_dict(self, state_dict, strict, assign)

    def get_extra_state(self) -> Any:
        raise NotImplementedError("get_extra_state: overwrite it to put more than tensors into the state_dict")

    def set_extra_state(self, state: Any) -> None:
        raise NotImplementedError("set_extra_state: overwrite it to read what get_extra_state gave")

    # --- hooks -----------------------------------------------------------------------------------------------
    def _add_hook(self, kind: str, hook: Callable, prepend: bool = False, **flags) -> Handle:
        if self._hooks is None:
            self.__dict__["_hooks"] = {}
        handle = Handle(self._hooks, Hook(kind, hook, **flags))
        if prepend:
            rest = {k: h for k, h in self._hooks.items() if k != handle.key}
            new = self._hooks[handle.key]
            self._hooks.clear()
            self._hooks.update({handle.key: new, **rest})
        return handle

    def register_forward_pre_hook(self, hook, *, prepend: bool = False, with_kwargs: bool = False) -> Handle:
        """`hook(module, args)` runs before forward; what it returns (if not None) takes the arguments' place."""
        return self._add_hook("before", hook, prepend, with_kwargs=with_kwargs)

    def register_forward_hook(
        self, hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """`hook(module, args, output)` runs after forward; what it returns (if not None) takes the output's place."""
        return self._add_hook("after", hook, prepend, with_kwargs=with_kwargs, always=always_call)

    def register_full_backward_pre_hook(self, hook, prepend: bool = False) -> Handle:
        """`hook(module, grad_output)` runs before the gradient goes through the module, and may replace it."""
        return self._add_hook("backward_before", hook, prepend)

    def register_full_backward_hook(self, hook, prepend: bool = False) -> Handle:
        """`hook(module, grad_input, grad_output)` runs when both are known; it may return another grad_input."""
        return self._add_hook("backward", hook, prepend)

    register_backward_hook = register_full_backward_hook

    def register_load_state_dict_pre_hook(self, hook) -> Handle:
        """`hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`."""
        return self._add_hook("load_before", hook)

    def register_load_state_dict_post_hook(self, hook) -> Handle:
        """`hook(module, incompatible_keys)` runs after load_state_dict and may change the two lists."""
        return self._add_hook("load_after", hook)

    def register_state_dict_pre_hook(self, hook) -> Handle:
        """`hook(module, prefix, keep_vars)` runs before this module writes its state."""
        return self._add_hook("save_before", hook)

    def register_state_dict_post_hook(self, hook) -> Handle:
        """`hook(module, state_dict, prefix, local_metadata)` runs after this module wrote its state."""
        return self._add_hook("save_after", hook)

    # --- repr ------------------------------------------------------------------------------------------------
    def extra_repr(self) -> str:
        """What stands inside the parentheses of the repr; overwrite it."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def _repr_of_children(self) -> list[str]:
        return [f"({name}): " + repr(self.__dict__[name]).replace("\n", "\n  ") for name in self._module_names]

    def __repr__(self):
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        lines = self._repr_of_children()
        if len(extra) == 1 and not lines:
            return f"{self._get_name()}({extra[0]})"
        if not extra and not lines:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(extra + lines) + "\n)"
