"""Optimizer: groups of parameters with options, state, hooks and state_dict."""

import functools
from collections import defaultdict
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

from zoo.autograd import lists
from zoo.autograd.mode import MODE, enable_grad
from zoo.autograd.tensor import Handle, Tensor, wrap
from zoo.ops import dtypes
from zoo.ops.cuda.capture import refuse
from zoo.ops.errors import GradError

STEP_HOOKS: dict[str, dict] = {"before": {}, "after": {}}  # of all optimizers


def register_optimizer_step_pre_hook(hook: Callable) -> Handle:
    """`hook(optimizer, args, kwargs)` runs before every step of every optimizer; see Optimizer.register_step_pre_hook.

    Example:
        >>> import zoo
        >>> from zoo.optim.optimizer import register_optimizer_step_pre_hook
        >>> with register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: print("step")):
        ...     zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))]).step()
        step
    """
    return Handle(STEP_HOOKS["before"], hook)


def register_optimizer_step_post_hook(hook: Callable) -> Handle:
    """`hook(optimizer, args, kwargs)` runs after every step of every optimizer.

    Example:
        >>> import zoo
        >>> from zoo.optim.optimizer import register_optimizer_step_post_hook
        >>> with register_optimizer_step_post_hook(lambda optimizer, args, kwargs: print("stepped")):
        ...     zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))]).step()
        stepped
    """
    return Handle(STEP_HOOKS["after"], hook)


def hooked(step: Callable) -> Callable:
    """A class's `step` that runs the hooks of all optimizers and of this one; once, if it calls that of its base."""

    @functools.wraps(step)
    def with_hooks(self, *args, **kwargs):
        if not self.capturable:
            refuse(f"{type(self).__name__} computes on the host in each step")
        if self.stepping or not (self.hooks or STEP_HOOKS["before"] or STEP_HOOKS["after"]):
            return step(self, *args, **kwargs)
        for hook in (*STEP_HOOKS["before"].values(), *self.hooks_of("step_before")):
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise TypeError(f"{type(self).__name__}.step: a hook must return None or (args, kwargs)")
                args, kwargs = changed
        self.stepping = True
        try:
            out = step(self, *args, **kwargs)
        finally:
            self.stepping = False
        for hook in (*self.hooks_of("step_after"), *STEP_HOOKS["after"].values()):
            hook(self, args, kwargs)
        return out

    return with_hooks


class Optimizer:
    """Base class: groups of parameters with options, and a state for each parameter.

    `param_groups` is a list of dicts with "params" and the options; `state[p]` a dict of Tensors and numbers. A
    subclass gives `step`, or `step_group(index, group)`, which the `step` here calls for each group.

    Args:
        params: parameters, (name, parameter) pairs, or dicts of groups.
        defaults: the options of groups that do not give their own.

    Raises:
        TypeError: something that is no Tensor. ValueError: no parameters, one that is no leaf or comes twice.

    Example:
        >>> import zoo
        >>> class Sign(zoo.optim.Optimizer):
        ...     def step_group(self, index, group):
        ...         for p in group["params"]:
        ...             p.sub_(p.grad.sign(), alpha=group["lr"])
        >>> p = zoo.nn.Parameter(zoo.tensor([1.0, -1.0]))
        >>> (p * p).sum().backward()
        >>> Sign([p], {"lr": 0.5}).step()
        >>> p.tolist()
        [0.5, -0.5]
    """

    stepping = False  # inside a step whose hooks have run
    capturable = False  # can a CUDA graph repeat its step?
    scalars: tuple[str, ...] = ()  # names of 0-d states, which keep their dtype and stay on the CPU

    def __init__(self, params: Any, defaults: dict[str, Any]):
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got Tensor"
            )
        self.defaults, self.param_groups = defaults, []
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.hooks: dict[str, dict[int, Callable]] = {}
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(dict(group))

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "step" in vars(cls):
            cls.step = hooked(cls.step)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "hooks": {}}  # hooks stay with the original, as in torch

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with options of their own.

        Raises:
            TypeError: something that is no Tensor, a set, or complex values. ValueError: not a leaf, or known already.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group).__name__}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections; a set is not ordered")
        params = [params] if isinstance(params, Tensor) else list(params)
        if params and isinstance(params[0], tuple):
            param_group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
            if p.dtype in dtypes.COMPLEX:
                raise TypeError(f"{type(self).__name__}: complex parameters are not supported, got {p.dtype}")
        known = set(chain.from_iterable(g["params"] for g in self.param_groups))
        if not known.isdisjoint(params) or len(set(params)) != len(params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append({**self.defaults, **param_group, "params": params})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients: to None, or to zeros in their own memory."""
        kept = []
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = None if set_to_none or p.grad is None else p.grad.detach()
                if p.grad is not None:
                    kept.append(p.grad)
        lists.zero(kept)

    @hooked
    def step(self, closure: Callable | None = None) -> Any:
        """One step for every parameter that has a gradient.

        Args:
            closure: computes the loss again and calls backward; its value is returned.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        outer, MODE.grad = MODE.grad, False
        try:
            for index, group in enumerate(self.param_groups):
                self.step_group(index, group)
        finally:
            MODE.grad = outer
        return loss

    def step_group(self, index: int, group: dict) -> None:
        """One step for the parameters of param_groups[index]; nothing is recorded."""
        raise NotImplementedError

    # --- hooks -----------------------------------------------------------------------------------------------
    def hooks_of(self, kind: str) -> list[Callable]:
        """The hooks of one kind, in the order in which they run."""
        return list(self.hooks.get(kind, {}).values())

    def add_hook(self, kind: str, hook: Callable, prepend: bool = False) -> Handle:
        """Registers a hook behind the others of its kind, or before them."""
        hooks = self.hooks.setdefault(kind, {})
        others = dict(hooks)
        handle = Handle(hooks, hook)
        if prepend:
            for key in others:
                hooks[key] = hooks.pop(key)
        return handle

    def register_step_pre_hook(self, hook: Callable) -> Handle:
        """`hook(optimizer, args, kwargs)` runs before each step; if it returns (args, kwargs), step gets those."""
        return self.add_hook("step_before", hook)

    def register_step_post_hook(self, hook: Callable) -> Handle:
        """`hook(optimizer, args, kwargs)` runs after each step."""
        return self.add_hook("step_after", hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """`hook(optimizer)` runs before state_dict."""
        return self.add_hook("save_before", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """`hook(optimizer, state_dict)` runs after state_dict, and may return another one."""
        return self.add_hook("save_after", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """`hook(optimizer, state_dict)` runs before load_state_dict, and may return another state_dict."""
        return self.add_hook("load_before", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """`hook(optimizer)` runs after load_state_dict."""
        return self.add_hook("load_after", hook, prepend)

    # --- saving ----------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """{"state": {number of parameter: its state}, "param_groups": [...]}, as torch's."""
        for hook in self.hooks_of("save_before"):
            hook(self)
        numbers = {p: k for k, p in enumerate(chain.from_iterable(g["params"] for g in self.param_groups))}
        groups = [
            {**{k: v for k, v in g.items() if k != "params"}, "params": [numbers[p] for p in g["params"]]}
            for g in self.param_groups
        ]
        out = {"state": {numbers[p]: dict(s) for p, s in self.state.items() if s}, "param_groups": groups}
        for hook in self.hooks_of("save_after"):
            changed = hook(self, out)
            out = out if changed is None else changed
        return out

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over groups' options and the state (copied, and brought to the parameters' dtype and device).

        Raises:
            ValueError: another number of groups, or of parameters in a group.
        """
        for hook in self.hooks_of("load_before"):
            changed = hook(self, dict(state_dict))
            state_dict = state_dict if changed is None else changed
        given = state_dict["param_groups"]
        if len(given) != len(self.param_groups):
            raise ValueError(
                f"loaded state dict has {len(given)} parameter groups, the optimizer has {len(self.param_groups)}"
            )
        for k, (new, group) in enumerate(zip(given, self.param_groups, strict=True)):
            if len(new["params"]) != len(group["params"]):
                raise ValueError(
                    f"loaded state dict has {len(new['params'])} parameters in group {k}, "
                    f"the optimizer has {len(group['params'])}"
                )
        numbers = chain.from_iterable(g["params"] for g in given)
        params = dict(zip(numbers, chain.from_iterable(g["params"] for g in self.param_groups), strict=True))
        self.state = defaultdict(dict)
        for key, values in state_dict["state"].items():
            p = params.get(key)
            if p is not None:
                self.state[p] = {name: self.own(name, v, p) for name, v in values.items() if v is not None}
        for new, group in zip(given, self.param_groups, strict=True):
            group.update({k: v for k, v in new.items() if k != "params"})
        for hook in self.hooks_of("load_after"):
            hook(self)

    def own(self, name: str, value: Any, p: Tensor) -> Any:
        """A copy of a loaded state: tensors but for the scalars in the parameter's dtype and on its device."""
        if isinstance(value, (list, tuple)):
            return type(value)(self.own(name, v, p) for v in value)
        if name in self.scalars:
            return value.detach().cpu().clone() if isinstance(value, Tensor) else scalar(value)
        return value.detach().clone().to(p.dtype).to(p.device) if isinstance(value, Tensor) else value

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for k, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {k}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def scalar(value: float) -> Tensor:
    """A 0-d state such as "step": float32, which is exact up to 16 million; float64 where that is the default."""
    wide = dtypes.default_dtype() == dtypes.float64
    return wrap(np.array(float(value), dtypes.float64 if wide else dtypes.float32))


def need_range(name: str, what: str, value: Any, low: float = 0.0, high: float = float("inf")) -> None:
    """Raises ValueError unless low <= value < high."""
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(f"{name}: Tensor {what} must have 1 element, got shape {tuple(value.shape)}")
    if not low <= float(value) < high:
        wanted = f"at least {low:g}" + (f" and below {high:g}" if high != float("inf") else "")
        raise ValueError(f"{name}: Invalid {what}: wants {wanted}, got {value}")


def need_betas(name: str, betas: tuple[float, float]) -> None:
    """Raises ValueError unless both are in [0, 1)."""
    for k, beta in enumerate(betas):
        need_range(name, f"beta parameter at index {k}", beta, high=1.0)


def need_plain(name: str, differentiable: bool) -> None:
    """A step is not recorded."""
    if differentiable:
        raise GradError(f"{name}: differentiable=True is not built: a step is not recorded")


def need_adam(name: str, lr: Any, eps: Any, betas: tuple, weight_decay: Any, differentiable: bool) -> None:
    """Raises unless the options that Adam and its relatives share are in their ranges."""
    need_range(name, "learning rate", lr)
    need_range(name, "epsilon value", eps)
    need_betas(name, betas)
    need_range(name, "weight_decay value", weight_decay)
    need_plain(name, differentiable)
