"""Containers: modules and parameters in a row, in a list, in a dict."""

from collections.abc import Iterable, Mapping
from itertools import groupby, islice, pairwise
from typing import Any, Self

from zoo.autograd.mode import MODE
from zoo.autograd.tensor import Tensor
from zoo.nn.fusion import run_fused
from zoo.nn.module import Module
from zoo.nn.parameter import Parameter
from zoo.ops.errors import DimError


def at(container: Module, kind: str, index: int) -> str:
    """The name at a position, counted from the end if negative."""
    names, n = container.__dict__[kind], len(container.__dict__[kind])
    if not -n <= index < n:
        raise DimError(f"{type(container).__name__}: wants an index in [{-n}, {n - 1}], got {index}")
    return next(islice(names, index % n, None))


class Sequential(Module):
    """Modules that run one after the other: `Sequential(a, b)` or `Sequential(OrderedDict(first=a, second=b))`.

    Example:
        >>> import zoo
        >>> zoo.nn.Sequential(zoo.nn.Linear(3, 2), zoo.nn.ReLU())(zoo.ones(4, 3)).shape
        (4, 2)
    """

    def __init__(self, *args: Any):
        super().__init__()
        pairs = args[0].items() if len(args) == 1 and isinstance(args[0], Mapping) else enumerate(args)
        for name, module in pairs:
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Any:  # noqa: A002
        modules = self.__dict__
        if not MODE.grad:
            return run_fused([modules[name] for name in modules["_module_names"]], input)
        for name in modules["_module_names"]:
            input = modules[name](input)  # noqa: A001
        return input

    @property
    def conv_norms(self) -> list[tuple[str, str]]:
        """Names of neighbours, as `nn.utils.fuse` asks for them."""
        return list(pairwise(self._module_names))

    def __len__(self):
        return len(self._module_names)

    def __iter__(self):
        return (self.__dict__[name] for name in tuple(self._module_names))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(dict(islice(self._modules.items(), *index.indices(len(self)))))
        return self.__dict__[at(self, "_module_names", index)]

    def __setitem__(self, index: int, module: Module):
        setattr(self, at(self, "_module_names", index), module)

    def __delitem__(self, index):
        for name in list(self._module_names)[index] if isinstance(index, slice) else [at(self, "_module_names", index)]:
            delattr(self, name)
        renumber(self, list(self))

    def append(self, module: Module) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Puts a module before position `index`."""
        modules = list(self)
        modules.insert(index, module)
        renumber(self, modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Adds modules at the end."""
        for module in sequential:
            self.append(module)
        return self

    def pop(self, key: int) -> Module:
        """Takes a module out."""
        module = self[key]
        del self[key]
        return module

    def __add__(self, other: "Sequential") -> "Sequential":
        return Sequential(*self, *other)


def renumber(container: Module, modules: list) -> None:
    """The container with these modules and no others, named 0, 1 ..."""
    for name in list(container._module_names):
        delattr(container, name)
    for k, module in enumerate(modules):
        container.add_module(str(k), module)


class ModuleList(Module):
    """A list of modules whose parameters are found.

    Example:
        >>> import zoo
        >>> len(list(zoo.nn.ModuleList([zoo.nn.Linear(2, 2)]).parameters()))
        2
    """

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        self.extend(modules or ())

    def _repr_of_children(self) -> list[str]:
        """Neighbours that read alike as one line: `(0-2): 3 x Linear(...)`."""
        lines, first = [], 0
        for text, alike in groupby(map(repr, self)):
            count = len(list(alike))
            name = f"({first}): " if count == 1 else f"({first}-{first + count - 1}): {count} x "
            lines.append(name + text.replace("\n", "\n  "))
            first += count
        return lines

    __len__, __iter__, __setitem__, __delitem__ = (
        Sequential.__len__,
        Sequential.__iter__,
        Sequential.__setitem__,
        Sequential.__delitem__,
    )
    append, insert, extend, pop = Sequential.append, Sequential.insert, Sequential.extend, Sequential.pop

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self.__dict__[at(self, "_module_names", index)]

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        self.extend(modules)
        return self

    def __add__(self, other: Iterable[Module]) -> "ModuleList":
        return ModuleList([*self, *other])


class ModuleDict(Module):
    """A dict of modules whose parameters are found.

    Example:
        >>> import zoo
        >>> list(zoo.nn.ModuleDict({"a": zoo.nn.ReLU()}))
        ['a']
    """

    def __init__(self, modules: Any = None):
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module):
        if key in self._module_names:
            setattr(self, key, module)
        else:
            self.add_module(key, module)

    def __delitem__(self, key: str):
        del self._modules[key]

    def __len__(self):
        return len(self._module_names)

    def __iter__(self):
        return iter(self._module_names)

    def __contains__(self, key: str):
        return key in self._module_names

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def items(self) -> Any:
        """(name, module) pairs."""
        return self._modules.items()

    def pop(self, key: str) -> Module:
        """Takes a module out."""
        module = self[key]
        del self[key]
        return module

    def clear(self) -> None:
        """Takes all modules out."""
        for key in list(self):
            del self[key]

    def update(self, modules: Any) -> None:
        """Adds modules from a dict or from pairs."""
        for key, module in modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules:
            self[key] = module


def shown(name: str, value: Any) -> str:
    """One line of the repr of a list or dict of parameters."""
    if not isinstance(value, Tensor):
        return f"  ({name}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(map(str, value.shape))
    where = f" ({value.device})" if value.is_cuda else ""
    return f"  ({name}): {kind} containing: [{value.dtype} of size {size}{where}]"


class ParameterList(Module):
    """A list of parameters; plain tensors become parameters.

    Example:
        >>> import zoo
        >>> len(zoo.nn.ParameterList([zoo.ones(2), zoo.ones(3)]))
        2
    """

    def __init__(self, values: Iterable[Any] | None = None):
        super().__init__()
        self._size = 0
        self.extend(values or ())

    def __len__(self):
        return self._size

    def __iter__(self):
        return (self[i] for i in range(self._size))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        if not -self._size <= index < self._size:
            raise DimError(f"ParameterList: wants an index in [{-self._size}, {self._size - 1}], got {index}")
        return getattr(self, str(index % self._size))

    def __setitem__(self, index: int, value: Any):
        self[index]
        setattr(self, str(index % self._size), parameter(value))

    def append(self, value: Any) -> Self:
        """Adds a parameter at the end."""
        self._size += 1
        setattr(self, str(self._size - 1), parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds parameters at the end."""
        for value in values:
            self.append(value)
        return self

    __iadd__ = extend

    def __repr__(self):
        return f"{type(self).__name__}(\n" + "\n".join(shown(str(i), v) for i, v in enumerate(self)) + "\n)"


def parameter(value: Any) -> Any:
    """A plain tensor as a Parameter; anything else as it is."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


class ParameterDict(Module):
    """A dict of parameters; plain tensors become parameters.

    Example:
        >>> import zoo
        >>> list(zoo.nn.ParameterDict({"scale": zoo.ones(2)}).keys())
        ['scale']
    """

    def __init__(self, parameters: Any = None):
        super().__init__()
        self._keys: dict[str, None] = {}
        self.update(parameters or {})

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any):
        self._keys[key] = None
        setattr(self, key, parameter(value))

    def __delitem__(self, key: str):
        del self._keys[key]
        delattr(self, key)

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __contains__(self, key: str):
        return key in self._keys

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def values(self) -> Any:
        """The parameters."""
        return (self[k] for k in self._keys)

    def items(self) -> Any:
        """(name, parameter) pairs."""
        return ((k, self[k]) for k in self._keys)

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter, or `default`."""
        return self[key] if key in self._keys else default

    def pop(self, key: str) -> Any:
        """Takes a parameter out."""
        value = self[key]
        del self[key]
        return value

    def update(self, parameters: Any) -> None:
        """Adds parameters from a dict or from pairs."""
        for key, value in parameters.items() if isinstance(parameters, (Mapping, ParameterDict)) else parameters:
            self[key] = value

    def __repr__(self):
        return f"{type(self).__name__}(\n" + "\n".join(shown(k, v) for k, v in self.items()) + "\n)"
