"""Modules as functions of their parameters: functional_call, stack_module_state, replace_all_batch_norm_modules_."""
from collections.abc import Mapping, Sequence
from typing import Any

from zoo.autograd.tensor import Tensor
from zoo.nn.module import Module
from zoo.nn.norm import BatchNorm
from zoo.ops.errors import ArgumentError
from zoo.ops.face.join import stack


def functional_call(module: Module, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: dict | None = None, *,
                    tie_weights: bool = True, strict: bool = False) -> Any:
    """module(*args, **kwargs) with other tensors in place of its parameters and buffers, which stay as they are.

    Args:
        parameter_and_buffer_dicts: path -> Tensor, as in `dict(module.named_parameters())`, or several such dicts.
        args: a tuple of arguments, or a single one that is no tuple. kwargs: its keyword arguments.
        tie_weights: what is given for one of several names of a tensor is used for all of them.
        strict: every parameter and buffer must be given, and nothing else.

    Raises:
        ValueError: a key in several dicts, or different values for tied names.
        ArgumentError (ValueError, RuntimeError): strict, and a key is missing or unexpected.
        AttributeError: no such submodule. TypeError: a value is no Tensor.

    Example:
        >>> import zoo
        >>> net = zoo.nn.Linear(2, 1)
        >>> zoo.func.functional_call(net, {"weight": zoo.ones(1, 2), "bias": zoo.zeros(1)}, zoo.ones(3, 2)).shape
        (3, 1)
    """
    given = joined(parameter_and_buffer_dicts)
    if strict:
        check_keys(module, given)
    values = with_ties(module, given) if tie_weights else given
    args = args if isinstance(args, tuple) else () if args is None else (args,)
    places = {name: place_of(module, name, value) for name, value in values.items()}
    before = {name: attributes.get(key) for name, (attributes, key) in places.items()}
    try:
        for name, (attributes, key) in places.items():
            attributes[key] = values[name]
        return module(*args, **(kwargs or {}))
    finally:
        for name, (attributes, key) in places.items():
            if name in given and isinstance(parameter_and_buffer_dicts, dict):
                parameter_and_buffer_dicts[name] = attributes[key]       # forward may have assigned another tensor
            if before[name] is None:
                del attributes[key]
            else:
                attributes[key] = before[name]


def joined(dicts: Any) -> dict:
    """One dict of all."""
    if isinstance(dicts, Mapping):
        return dict(dicts)
    if not isinstance(dicts, Sequence) or not all(isinstance(d, Mapping) for d in dicts):
        raise ValueError(f"functional_call: wants a dict of tensors or a sequence of them, got {type(dicts).__name__}")
    found: dict = {}
    for d in dicts:
        if both := sorted(found.keys() & d.keys()):
            raise ValueError(f"functional_call: {both} appear in several dicts")
        found.update(d)
    return found


def names_of(module: Module) -> dict[str, Tensor]:
    """All parameters and buffers by every path that leads to them."""
    return {**dict(module.named_parameters(remove_duplicate=False)),
            **dict(module.named_buffers(remove_duplicate=False))}


def check_keys(module: Module, given: dict) -> None:
    """Raises unless the names are those of all parameters and buffers; one of several tied names is enough."""
    names = names_of(module)
    held = {id(names[name]) for name in given.keys() & names.keys()}
    missing = sorted(name for name, tensor in names.items() if id(tensor) not in held)
    unexpected = sorted(given.keys() - names.keys())
    if missing or unexpected:
        raise ArgumentError(f"functional_call: keys for {type(module).__name__} do not fit: "
                            f"missing {missing}, unexpected {unexpected}")


def with_ties(module: Module, given: dict) -> dict:
    """What is given, and the same tensors for the other names of what it stands for."""
    names = names_of(module)
    groups: dict[int, list[str]] = {}
    for name, tensor in names.items():
        groups.setdefault(id(tensor), []).append(name)
    values = dict(given)
    for group in groups.values():
        mine = [name for name in group if name in given]
        if len({id(given[name]) for name in mine}) > 1:
            raise ValueError(f"functional_call: several values for tied names {mine}; use tie_weights=False")
        values.update(dict.fromkeys(group, given[mine[0]]) if mine else {})
    return values


def place_of(module: Module, path: str, value: Any) -> tuple[dict, str]:
    """(attributes of the owner, name) of a path."""
    if not isinstance(value, Tensor):
        raise TypeError(f"functional_call: wants a Tensor for {path!r}, got {type(value).__name__}")
    owner, _, name = path.rpartition(".")
    return module.get_submodule(owner).__dict__, name


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(parameters, buffers) of models of one class, each by its path, stacked along a new first dimension.

    The stacked parameters are new leaves, which ask for gradients where the models' do.

    Raises:
        ArgumentError (ValueError, RuntimeError): no models, of several classes, or in different modes.

    Example:
        >>> import zoo
        >>> params, buffers = zoo.func.stack_module_state([zoo.nn.Linear(2, 3) for _ in range(5)])
        >>> params["weight"].shape
        (5, 3, 2)
    """
    if not models:
        raise ArgumentError("stack_module_state: wants at least one model")
    if len({(type(m), m.training) for m in models}) > 1:
        raise ArgumentError("stack_module_state: wants models of one class, all in training or all in eval mode")

    def stacked(kind: str) -> dict:
        rows = [dict(getattr(m, kind)()) for m in models]
        return {name: stack([row[name] for row in rows]).detach().requires_grad_(first.requires_grad)
                for name, first in rows[0].items()}
    return stacked("named_parameters"), stacked("named_buffers")


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Takes the running statistics out of all batch norms of a module, in place: each then uses its batch's own.

    A function of one sample cannot update statistics that all samples share.

    Example:
        >>> import zoo
        >>> net = zoo.func.replace_all_batch_norm_modules_(zoo.nn.Sequential(zoo.nn.BatchNorm1d(3)))
        >>> net[0].running_mean is None
        True
    """
    for module in root.modules():
        if isinstance(module, BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
