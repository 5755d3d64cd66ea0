"""state_dict and load_state_dict of a Module."""

import difflib
from collections import OrderedDict
from typing import Any, NamedTuple

from zoo.autograd.inplace import copy_
from zoo.autograd.mode import no_grad
from zoo.autograd.tensor import Tensor
from zoo.ops.errors import ArgumentError


class StateDictError(ArgumentError):
    """A state_dict that does not fit a module; torch raises RuntimeError."""


class IncompatibleKeys(NamedTuple):
    """What load_state_dict returns."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self):
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"
            if any(self)
            else "<All keys matched successfully>"
        )

    __str__ = __repr__


def hooks_of(module, kind: str) -> list:
    """The functions of the module's hooks of one kind, in order."""
    return [h.function for h in (module._hooks or {}).values() if h.kind == kind]


def persistent(module) -> list[tuple[str, Any]]:
    """(name, tensor) of the module's own parameters and persistent buffers."""
    names = [*module._parameter_names, *(n for n, keep in module._buffer_names.items() if keep)]
    return [(n, module.__dict__[n]) for n in names if module.__dict__[n] is not None]


def has_extra_state(module) -> bool:
    """Does the module's class put more than tensors into the state_dict?"""
    from zoo.nn.module import Module

    return type(module).get_extra_state is not Module.get_extra_state


def state_dict(module, found: dict, prefix: str, keep_vars: bool) -> Any:
    """Writes the module's state into `found`; see Module.state_dict."""
    for hook in hooks_of(module, "save_before"):
        hook(module, prefix, keep_vars)
    if not hasattr(found, "_metadata") and isinstance(found, OrderedDict):
        found._metadata = OrderedDict()
    metadata = {"version": module._version}
    if hasattr(found, "_metadata"):
        found._metadata[prefix[:-1]] = metadata
    for name, tensor in persistent(module):
        found[prefix + name] = tensor if keep_vars else tensor.detach()
    if has_extra_state(module):
        found[prefix + "_extra_state"] = module.get_extra_state()
    for name in module._module_names:
        if module.__dict__[name] is not None:
            module.__dict__[name].state_dict(destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in hooks_of(module, "save_after"):
        hook(module, found, prefix, metadata)
    return found


def load_state_dict(module, state: Any, strict: bool, assign: bool) -> IncompatibleKeys:
    """Everything is checked before the first value is written: a failed load leaves the module as it was."""
    if not hasattr(state, "items"):
        raise TypeError(f"load_state_dict: wants a dict of tensors, got {type(state).__name__}")
    metadata = getattr(state, "_metadata", None)
    state = OrderedDict(state)
    missing, unexpected, mismatched, writes = [], [], [], []
    for path, part in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        local = (metadata or {}).get(path, {})
        errors: list[str] = []
        for hook in hooks_of(part, "load_before"):
            hook(part, state, prefix, local, strict, missing, unexpected, errors)
        mismatched += [(e, "", "") for e in errors]
        optional = part.optional_keys(local) if hasattr(part, "optional_keys") else ()
        for name, target in persistent(part):
            value = state.get(prefix + name)
            if value is None:
                missing.extend([prefix + name] if name not in optional else [])
            elif not isinstance(value, Tensor):
                mismatched.append((prefix + name, target.shape, type(value).__name__))
            elif value.shape != target.shape and not (target.ndim == 0 and value.shape == (1,)):
                mismatched.append((prefix + name, target.shape, value.shape))
            else:
                writes.append((part, name, target, value))
        if has_extra_state(part) and prefix + "_extra_state" not in state:
            missing.append(prefix + "_extra_state")
    known = expected_keys(module)
    unexpected += [k for k in state if k not in known]
    result = IncompatibleKeys(missing, unexpected)
    if mismatched or strict and any(result):
        post = bool(hooks_of(module, "load_after")) and not mismatched
        if not post:
            raise StateDictError(table(module, result if strict else IncompatibleKeys([], []), mismatched, known))
    write(writes, assign)
    for path, part in module.named_modules(remove_duplicate=False):
        extra = f"{path}._extra_state" if path else "_extra_state"
        if extra in known and extra in state:
            part.set_extra_state(state[extra])
        for hook in hooks_of(part, "load_after"):
            hook(part, result)
    if strict and any(result):
        raise StateDictError(table(module, result, mismatched, known))
    return result


def expected_keys(module) -> set[str]:
    """All keys that the module's state_dict has."""
    known = set()
    for path, part in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        known.update(prefix + name for name, _ in persistent(part))
        if has_extra_state(part):
            known.add(prefix + "_extra_state")
    return known


def write(writes: list, assign: bool) -> None:
    """Puts the checked values into the module."""
    from zoo.nn.parameter import Parameter

    with no_grad():
        for part, name, target, value in writes:
            if not assign:
                copy_(target, value.detach() if value.shape == target.shape else value.detach().reshape(target.shape))
            elif isinstance(target, Parameter):
                new = value if isinstance(value, Parameter) else Parameter(value.detach(), target.requires_grad)
                part.__dict__[name] = new.requires_grad_(target.requires_grad)
            else:
                part.__dict__[name] = value


def nearest(key: str, others: list[str]) -> str:
    """The most alike of the other names, compared from the end too: "module.fc.weight" is near "fc.weight"."""
    inside = [o for o in others if o.endswith("." + key) or key.endswith("." + o)]
    return (inside or difflib.get_close_matches(key, others, 1, 0.6) or [""])[0]


def table(module, keys: IncompatibleKeys, mismatched: list, known: set[str]) -> str:
    """The message: one row per key that does not fit."""
    rows = [
        (k, "missing", f"nearest in the state_dict: {near}" if (near := nearest(k, keys.unexpected_keys)) else "")
        for k in keys.missing_keys
    ]
    rows += [
        (
            k,
            "unexpected",
            f"nearest in the module: {near}" if (near := nearest(k, keys.missing_keys or sorted(known))) else "",
        )
        for k in keys.unexpected_keys
    ]
    rows += [(k, "mismatched", f"wants {wants}, got {got}" if wants != "" else "") for k, wants, got in mismatched]
    width = max(len(k) for k, _, _ in rows)
    shown = [f"  {k:{width}}  {what:10}  {note}".rstrip() for k, what, note in rows[:40]]
    if len(rows) > 40:
        shown.append(f"  ... and {len(rows) - 40} more")
    counts = (
        f"{len(keys.missing_keys)} missing, {len(keys.unexpected_keys)} unexpected, {len(mismatched)} mismatched keys"
    )
    return f"load_state_dict: Error(s) in loading state_dict for {type(module).__name__}: {counts}\n" + "\n".join(shown)
