"""Optimizer: the base class, and how its state lies in memory."""

from collections import defaultdict
from collections.abc import Callable
from itertools import chain
from operator import is_
from typing import Any

import numpy as np

from zoo.autograd.inplace import copy_raw
from zoo.autograd.mode import enable_grad, tick
from zoo.autograd.tensor import Tensor, wrap
from zoo.ops.device import put
from zoo.ops.dtypes import float32
from zoo.ops.errors import GradError
from zoo.ops.op import OPS

SMALL = 1 << 14  # parameters of at most so many elements are stepped together, through one flat copy


class Block:
    """Parameters that step together, and their state: one flat array per name, of which each parameter has a slice."""

    def __init__(self, params: list, step: int):
        self.params, self.step = params, step
        self.kind, self.dtype = type(params[0].array), params[0].dtype
        self.flat: dict[str, Any] = {}
        self.fresh = True  # no step was made with this state yet
        self.together = len(params) > 1 or self.kind is np.ndarray and not params[0].is_contiguous()
        ends = np.cumsum([p.array.size for p in params]).tolist()
        self.slices = [slice(end - p.array.size, end) for p, end in zip(params, ends, strict=True)]
        if self.together:
            self.param, self.grad = np.empty(ends[-1], self.dtype), np.empty(ends[-1], self.dtype)

    def gather(self) -> tuple[Any, Any]:
        """The flat (param, grad) that the update works on."""
        if self.together:
            np.concatenate([p.array.ravel() for p in self.params], out=self.param)
            np.concatenate([p.grad.array.ravel() for p in self.params], out=self.grad, casting="unsafe")
            return self.param, self.grad
        p = self.params[0]
        if self.kind is np.ndarray:
            g = p.grad.array.ravel()
            return p.array.reshape(-1), g if g.dtype == p.dtype else g.astype(p.dtype)
        from zoo.ops.pointwise_gpu import contiguous_copy

        contiguous = (x if x.is_contiguous else contiguous_copy(x) for x in (p.array, p.grad.array))
        return tuple(contiguous)  # type: ignore[return-value]

    def scatter(self, param: Any) -> None:
        """Puts the stepped values into the parameters' memory, and says so to their version checks."""
        if self.together:
            for p, place in zip(self.params, self.slices, strict=True):
                p.array[...] = param[place].reshape(p.array.shape)
        elif self.kind is not np.ndarray and param is not self.params[0].array:
            copy_raw(self.params[0].array, param)
        now = tick()
        for p in self.params:
            p.clock[0] = now

    def views(self, name: str) -> list[Tensor]:
        """The slices of flat[name], in the parameters' shapes."""
        flat = self.flat[name]
        if self.kind is np.ndarray:
            return [wrap(flat[place].reshape(p.array.shape)) for p, place in zip(self.params, self.slices, strict=True)]
        return [wrap(flat)]


class Optimizer:
    """Base class: groups of parameters with options, and a state for each parameter.

    `param_groups` is a list of dicts with "params" and the options; `state[p]` a dict of Tensors. Subclasses give
    `state_names(group)` and `update(block, group, param, grad)`.
    """

    def __init__(self, params: Any, defaults: dict[str, Any]):
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got Tensor"
            )
        self.defaults, self.param_groups = defaults, []
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.blocks: dict[int, tuple[list, list[Block]]] = {}
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(dict(group))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with options of their own.

        Raises:
            TypeError: something that is no Tensor. ValueError: not a leaf, or in another group already.
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
        known = set(chain.from_iterable(g["params"] for g in self.param_groups))
        if not known.isdisjoint(params) or len(set(params)) != len(params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append({**self.defaults, **param_group, "params": params})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients: to None, or to zeros in their own memory."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none or p.grad is None:
                    p.grad = None
                else:
                    p.grad = p.grad.detach().zero_()

    def step(self, closure: Callable | None = None) -> Any:
        """One step for every parameter that has a gradient.

        Args:
            closure: computes the loss again and calls backward; its value is returned.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for index, group in enumerate(self.param_groups):
            for block in self.blocks_of(index, group):
                param, grad = block.gather()
                self.update(block, group, param, grad)
                block.scatter(param)
        return loss

    def state_names(self, group: dict) -> tuple[str, ...]:
        """The names of a parameter's state in this group."""
        raise NotImplementedError

    def update(self, block: Block, group: dict, param: Any, grad: Any) -> None:
        """One step on the flat arrays param and block.flat[...], in place."""
        raise NotImplementedError

    # --- state in memory -------------------------------------------------------------------------------------
    def blocks_of(self, index: int, group: dict) -> list[Block]:
        """The blocks of a group: those of the last step, if the same parameters have a gradient and nothing moved."""
        live = [p for p in group["params"] if p.grad is not None]
        params, blocks = self.blocks.get(index, ((), []))
        if len(live) == len(params) and all(map(is_, live, params)):
            if all(type(p.array) is b.kind and p.array.dtype is b.dtype for b in blocks for p in b.params):
                return blocks
        blocks = self.divide(live)
        for block in blocks:
            self.lay_out(block, self.state_names(group))
        self.blocks[index] = live, blocks
        return blocks

    def divide(self, live: list) -> list[Block]:
        """Small CPU parameters of one dtype and step count together, every other one by itself."""
        together: dict[Any, list] = {}
        for p in live:
            state = self.state.get(p, {})
            steps = int(state["step"].item()) if "step" in state else 0
            alone = type(p.array) is not np.ndarray or p.array.size > SMALL
            together.setdefault((id(p) if alone else None, p.dtype, steps, bool(state)), []).append(p)
        return [Block(params, steps) for (_, _, steps, _), params in together.items()]

    def lay_out(self, block: Block, names: tuple[str, ...]) -> None:
        """Moves the parameters' state into flat arrays of the block; state[p] becomes Tensors on their slices."""
        shape = (block.slices[-1].stop,) if block.kind is np.ndarray else block.params[0].shape
        for name in names:
            old = [self.state.get(p, {}).get(name) for p in block.params]
            where = block.params[0].device
            flat = put(np.zeros(shape, block.dtype), where)
            if any(x is not None for x in old):
                block.fresh = False
                if block.kind is np.ndarray:
                    for place, x in zip(block.slices, old, strict=True):
                        if x is not None:
                            flat[place] = x.cpu().array.ravel()
                else:
                    flat = old[0].to(where).to(block.dtype).clone().array
            block.flat[name] = flat
        step = wrap(np.array(float(block.step), float32))
        for k, p in enumerate(block.params):
            self.state[p].update(
                {name: block.views(name)[k] for name in names}, **({"step": step} if self.counts else {})
            )
        block.counter = step.array

    counts = False  # does state[p] have a "step"?

    # --- saving ----------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """{"state": {number of parameter: its state}, "param_groups": [...]}, as torch's."""
        numbers = {p: k for k, p in enumerate(chain.from_iterable(g["params"] for g in self.param_groups))}
        groups = [
            {**{k: v for k, v in g.items() if k != "params"}, "params": [numbers[p] for p in g["params"]]}
            for g in self.param_groups
        ]
        return {"state": {numbers[p]: dict(s) for p, s in self.state.items() if s}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over groups' options and the state (copied, and brought to the parameters' dtype and device).

        Raises:
            ValueError: another number of groups, or of parameters in a group.
        """
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
        self.state, self.blocks = defaultdict(dict), {}
        for key, values in state_dict["state"].items():
            p = params.get(key)
            if p is not None:
                self.state[p] = {name: own(name, value, p) for name, value in values.items() if value is not None}
        for new, group in zip(given, self.param_groups, strict=True):
            group.update({k: v for k, v in new.items() if k != "params"})

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for k, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {k}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def own(name: str, value: Any, p: Tensor) -> Any:
    """A copy of a loaded state; all but the step count in the parameter's dtype and on its device."""
    if not isinstance(value, Tensor):
        return wrap(np.array(float(value), float32)) if name == "step" else value
    value = wrap(OPS["clone"](value.array)) if "clone" in OPS else value.detach().clone()
    return value if name == "step" else value.to(p.dtype).to(p.device)


def need_range(name: str, what: str, value: Any, low: float = 0.0, high: float = float("inf")) -> None:
    """Raises ValueError unless low <= value < high."""
    if not low <= float(value) < high:
        wanted = f"at least {low:g}" + (f" and below {high:g}" if high != float("inf") else "")
        raise ValueError(f"{name}: Invalid {what}: wants {wanted}, got {value}")


def need_plain(name: str, differentiable: bool) -> None:
    """A step is not recorded."""
    if differentiable:
        raise GradError(f"{name}: differentiable=True is not built: a step is not recorded")
