"""Optimizers that treat every element alike: their parameters step together, in few passes over memory."""

from collections.abc import Sequence
from operator import is_
from typing import Any

import numpy as np

from zoo.autograd.inplace import copy_raw
from zoo.autograd.lists import written
from zoo.autograd.tensor import Tensor, wrap
from zoo.ops.cuda import DeviceArray, StaleGraph, contiguous_strides, driver, empty, is_capturing
from zoo.ops.optim import updates_for, words_of
from zoo.optim.optimizer import Optimizer, scalar

SMALL = 1 << 14  # parameters of at most so many elements are stepped together, through one flat copy
Rows = Sequence[tuple]  # (param, grad, *states), the arrays of one parameter or of several in one


class Block:
    """Parameters of one dtype, device and step count, whose 0-d states are one array for all of them."""

    def __init__(self, params: list[Tensor], names: tuple[str, ...]):
        self.params, self.names = params, names
        self.kind, self.dtype = type(params[0].array), params[0].dtype
        self.fresh = True  # no step was made with this state yet
        self.scalars: dict[str, np.ndarray] = {}

    def count(self) -> int:
        """The number of the step that now begins, the first being 1."""
        step = self.scalars["step"]
        count = int(step.item()) + 1
        step.fill(count)
        return count

    def allocate(self, name: str, old: list[Tensor | None], fill: float) -> list[Tensor]:
        """Memory for one state of all parameters: their old values, or `fill`."""
        raise NotImplementedError

    def rows(self) -> Rows:
        """The arrays that the update works on."""
        raise NotImplementedError

    def fits(self) -> bool:
        """Are the parameters still of the block's dtype, on its device, laid out as its states are?"""
        return all(type(p.array) is self.kind and p.array.dtype is self.dtype for p in self.params)

    def finish(self) -> None:
        """Puts the stepped values where they belong, and says so to the parameters' version checks."""
        written(self.params)


class HostBlock(Block):
    """On the CPU: one flat array per state; small parameters are gathered into one before a step."""

    def __init__(self, params: list[Tensor], names: tuple[str, ...]):
        super().__init__(params, names)
        self.together = len(params) > 1 or not params[0].is_contiguous()
        ends = np.cumsum([p.array.size for p in params]).tolist()
        self.slices = [slice(end - p.array.size, end) for p, end in zip(params, ends, strict=True)]
        self.size, self.states = ends[-1], []
        if self.together:
            self.param, self.grad = np.empty(self.size, self.dtype), np.empty(self.size, self.dtype)
            self.stepped, self.grads = self.split(self.param), self.split(self.grad)

    def split(self, flat: np.ndarray) -> list[np.ndarray]:
        """The parts of a flat array, in the parameters' shapes."""
        return [flat[place].reshape(p.array.shape) for p, place in zip(self.params, self.slices, strict=True)]

    def allocate(self, name: str, old: list[Tensor | None], fill: float) -> list[Tensor]:
        flat = np.full(self.size, fill, self.dtype)
        for place, x in zip(self.slices, old, strict=True):
            if x is not None:
                flat[place] = x.cpu().array.ravel()
        self.states.append(flat)
        return [wrap(part) for part in self.split(flat)]

    def rows(self) -> Rows:
        if self.together:
            for param, grad, p in zip(self.stepped, self.grads, self.params, strict=True):
                param[...], grad[...] = p.array, p.grad.array  # sooner done than np.concatenate
            return [(self.param, self.grad, *self.states)]
        p = self.params[0]
        return [(p.array.reshape(-1), p.grad.array.ravel().astype(p.dtype, copy=False), *self.states)]

    def finish(self) -> None:
        if self.together:
            for p, values in zip(self.params, self.stepped, strict=True):
                p.array[...] = values
        super().finish()


class DeviceBlock(Block):
    """On the GPU: arrays of their own, which one kernel reaches through a table of addresses.

    A parameter is stepped in the order in which its elements lie in memory, and its state lies alike; one with gaps, or
    an expanded one, is stepped as a copy.
    """

    def __init__(self, params: list[Tensor], names: tuple[str, ...]):
        super().__init__(params, names)
        self.models = [self.model_of(p) for p in params]
        self.states: list[tuple] = [()] * len(params)
        self.copies: list[tuple] = []

    @staticmethod
    def model_of(p: Tensor) -> DeviceArray:
        """An array without memory that is laid out as the parameter's state is."""
        from zoo.ops.pointwise_gpu import is_dense

        x = p.array
        strides = x.strides if is_dense(x) else contiguous_strides(x.shape)
        return DeviceArray(0, x.shape, strides, x.dtype, None, x.device)

    def fits(self) -> bool:
        from zoo.ops.multi_tensor_gpu import alike
        from zoo.ops.pointwise_gpu import is_dense

        return super().fits() and all(
            alike(p.array, model) or not is_dense(p.array) for p, model in zip(self.params, self.models, strict=True))

    def allocate(self, name: str, old: list[Tensor | None], fill: float) -> list[Tensor]:
        made = []
        for k, (model, x) in enumerate(zip(self.models, old, strict=True)):
            array = empty((model.size,), self.dtype, model.device).view(model.shape, model.strides)
            copy_raw(array, fill if x is None else x.to(self.params[k].device).array)
            self.states[k] = (*self.states[k], array)
            made.append(wrap(array))
        return made

    def rows(self) -> Rows:
        from zoo.ops.multi_tensor_gpu import alike, laid_like

        rows, self.copies = [], []
        for p, model, states in zip(self.params, self.models, self.states, strict=True):
            param = p.array
            if not alike(param, model):
                param = laid_like(param, model)
                self.copies.append((p.array, param))
            grad = p.grad if p.grad.dtype == self.dtype else p.grad.to(self.dtype)
            rows.append((param, laid_like(grad.array, model), *states))
        return rows

    def finish(self) -> None:
        for array, param in self.copies:
            copy_raw(array, param)
        self.copies = []
        super().finish()


class Elementwise(Optimizer):
    """Base class of optimizers whose step is one formula for every element (ops/optim_rules.py).

    A subclass names its `rule` and `scalars`, and gives `state_names(group)` and `arguments(block, group)`.
    """

    rule = ""
    decoupled = False  # weight decay shrinks the parameter, where the group does not say
    capturable = True
    found_inf: Any = None  # a bool array on the device: where it is True, the kernel changes nothing

    def __init__(self, params: Any, defaults: dict[str, Any]):
        self.blocks: dict[int, tuple[list, list, list[Block]]] = {}
        super().__init__(params, defaults)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "blocks": {}}  # a copy's state is no longer a view of the blocks' memory

    def state_names(self, group: dict) -> tuple[str, ...]:
        """The names of a parameter's state in this group, in the order of the rule; the scalars are not among them."""
        raise NotImplementedError

    def initial(self, name: str, group: dict) -> float:
        """What a state or scalar holds before the first step."""
        return 0.0

    def arguments(self, block: Block, group: dict) -> tuple[tuple[float, ...], tuple[bool, ...]]:
        """(numbers, flags) of the rule for the step that now begins."""
        raise NotImplementedError

    def shrink(self, block: Block, group: dict) -> float:
        """What the parameter is multiplied by: 1 - lr * weight_decay where that is decoupled."""
        if group.get("decoupled_weight_decay", self.decoupled):
            return 1 - float(group["lr"]) * group["weight_decay"]
        return 1.0

    def choices(self, block: Block, group: dict) -> tuple[Any, tuple[bool, ...], bool, float, float]:
        """(numbers, flags, maximize, decay, shrink) of the step that now begins, as ops/optim.py takes them."""
        shrink = self.shrink(block, group)
        numbers, flags = self.arguments(block, group)
        coupled = not group.get("decoupled_weight_decay", self.decoupled)
        decay = group.get("weight_decay", 0.0) if coupled else 0.0
        return numbers, flags, group.get("maximize", False), decay, shrink

    def step_group(self, index: int, group: dict) -> None:
        for block in self.blocks_of(index, group):
            chosen = self.captured(index, block, group) if is_capturing() else self.choices(block, group)
            updates_for(block.kind).update(self.rule, block.rows(), *chosen, self.found_inf)
            block.fresh = False
            block.finish()

    def captured(self, index: int, block: Block, group: dict) -> tuple:
        """`choices` in a captured step: the numbers lie in device memory, and are chosen anew at each replay."""
        before: dict[str, np.ndarray] = {}

        def choose() -> tuple[list[float], tuple]:
            before.update({name: array.copy() for name, array in block.scalars.items()})
            numbers, flags, maximize, decay, shrink = self.choices(block, group)
            return words_of(numbers, decay, shrink), (flags, maximize, bool(decay))

        def undo() -> None:
            for name, value in before.items():
                block.scalars[name][...] = value

        def again() -> list[float]:
            _, states, blocks = self.blocks[index]
            if block not in blocks or not all(map(is_, map(self.state.get, self.blocks[index][0]), states)):
                raise StaleGraph(f"{type(self).__name__}: its state was replaced after the step was captured")
            words, flags = choose()
            if flags != fixed or not block.fits():
                undo()
                raise StaleGraph(f"{type(self).__name__}: {fixed} was captured as flags, the step has {flags}")
            Block.finish(block)
            return words

        words, fixed = choose()
        flags, maximize, decays = fixed
        return driver.state.graph.numbers_of(words, again, undo), flags, maximize, float(decays), 1.0

    # --- state in memory -------------------------------------------------------------------------------------
    def blocks_of(self, index: int, group: dict) -> list[Block]:
        """The blocks of a group: those of the last step, if the same parameters have a gradient and nothing moved."""
        live = [p for p in group["params"] if p.grad is not None]
        names = self.state_names(group)
        params, states, blocks = self.blocks.get(index, ((), (), []))
        same = len(live) == len(params) and all(map(is_, live, params))
        if same and all(map(is_, map(self.state.get, live), states)):
            if all(b.names == names and b.fits() for b in blocks):
                return blocks
        blocks = self.divide(live, names)
        for block in blocks:
            self.lay_out(block, group)
        self.blocks[index] = live, [self.state[p] for p in live], blocks
        return blocks

    def divide(self, live: list[Tensor], names: tuple[str, ...]) -> list[Block]:
        """Parameters of one dtype, device and age together; on the CPU only small ones."""
        together: dict[Any, list[Tensor]] = {}
        for p in live:
            state = self.state.get(p, {})
            age = tuple(float(state[name]) if name in state else None for name in self.scalars)
            alone = type(p.array) is np.ndarray and p.array.size > SMALL
            begun = all(name in state for name in names)
            together.setdefault((id(p) if alone else None, p.device, p.dtype, age, begun), []).append(p)
        return [(HostBlock if type(ps[0].array) is np.ndarray else DeviceBlock)(ps, names) for ps in together.values()]

    def lay_out(self, block: Block, group: dict) -> None:
        """Moves the parameters' state into the block's memory; state[p] becomes Tensors on it."""
        states = [self.state[p] for p in block.params]
        for name in self.scalars:
            old = states[0].get(name)
            shared = scalar(self.initial(name, group)) if old is None else old.cpu().clone()
            block.scalars[name] = shared.array
            for state in states:
                state[name] = shared
        for name in block.names:
            old = [state.get(name) for state in states]
            block.fresh = block.fresh and old[0] is None
            for state, made in zip(states, block.allocate(name, old, self.initial(name, group)), strict=True):
                state[name] = made
