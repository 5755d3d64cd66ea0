"""torch.amp's names: autocast and GradScaler, for training in mixed precision."""
import weakref
from typing import Any

import numpy as np

from zoo.autograd import lists
from zoo.autograd.autocast import autocast as autocast
from zoo.autograd.tensor import Tensor, wrap
from zoo.ops.cuda import CUDAGraph, driver, is_capturing
from zoo.ops.cuda.capture import refuse


class GradScaler:
    """Scales the loss so that small gradients survive float16, and skips steps whose gradients overflowed.

    The scale grows by growth_factor after growth_interval good steps in a row, and shrinks by backoff_factor after a
    bad one (Micikevicius et al., 2018, section 3.2).

    Args:
        device: taken for torch's sake; gradients are looked at where they lie.
        init_scale, growth_factor (above 1), backoff_factor (below 1), growth_interval (steps).
        enabled: False makes every method do nothing but the step itself.

    Raises:
        ValueError: factors on the wrong side of 1. RuntimeError: methods called out of order.

    Example:
        >>> import zoo
        >>> w = zoo.nn.Parameter(zoo.ones(1))
        >>> optimizer, scaler = zoo.optim.SGD([w], lr=0.5), zoo.amp.GradScaler(init_scale=4.0)
        >>> scaler.scale(w.sum()).backward()
        >>> w.grad
        tensor([4.])
        >>> scaler.step(optimizer); scaler.update(); w.detach()
        tensor([0.5000])
    """

    def __init__(self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True):
        if not growth_factor > 1.0:
            raise ValueError(f"GradScaler: wants a growth_factor above 1, got {growth_factor}")
        if not 0.0 < backoff_factor < 1.0:
            raise ValueError(f"GradScaler: wants a backoff_factor in (0, 1), got {backoff_factor}")
        self.device, self.enabled = device, enabled
        self._scale, self._growth_tracker = float(init_scale), 0
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._overflow: dict[int, Any] = {}               # id of an optimizer, unscaled -> overflowed? or the flags
        self._stepped: set[int] = set()
        self._captured: CapturedScaler | None = None      # in a CUDA graph, and after its replays

    def scale(self, outputs: Any) -> Any:
        """outputs (a Tensor, or nested lists and tuples of them) times the scale."""
        if not self.enabled:
            return outputs
        self.settle()
        if isinstance(outputs, Tensor):
            return outputs * (self.captured().scale(outputs) if is_capturing() else self._scale)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(x) for x in outputs)
        raise ValueError(f"GradScaler.scale: wants Tensors or lists of them, got {type(outputs).__name__}")

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of the optimizer's parameters by the scale, in place: before clipping, say."""
        if not self.enabled:
            return
        if id(optimizer) in self._stepped:
            raise RuntimeError("unscale_() is being called after step().")
        if id(optimizer) in self._overflow:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(g.dtype == np.float16 for g in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        inverse = self.captured().numbers.view((), (), 1) if is_capturing() else 1.0 / self._scale
        self._overflow[id(optimizer)] = lists.unscale(grads, inverse)

    def step(self, optimizer: Any, *args: Any, **options: Any) -> Any:
        """optimizer.step(...) on unscaled gradients, unless one of them is infinite or nan; gives what step gives."""
        if not self.enabled:
            return optimizer.step(*args, **options)
        if "closure" in options:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        if id(optimizer) in self._stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if id(optimizer) not in self._overflow:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        if is_capturing():
            self.captured().step(optimizer, self._overflow[id(optimizer)], args, options)
            return None
        return None if self.overflowed(id(optimizer)) else optimizer.step(*args, **options)

    def overflowed(self, key: int) -> bool:
        """Has this optimizer a gradient that is not finite? Waits for the GPU, the first time."""
        found = self._overflow[key]
        if not isinstance(found, bool):
            found = self._overflow[key] = any(f.item() for f in found)
        return found

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapts the scale to what the steps since the last update met; or sets it to new_scale."""
        if not self.enabled:
            return
        if is_capturing():
            self.captured().update(new_scale)
        elif new_scale is not None:
            self._scale = float(new_scale)
        elif not self._overflow:
            raise RuntimeError("No inf checks were recorded prior to update.")
        elif any([self.overflowed(key) for key in self._overflow]):
            self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale, self._growth_tracker = self._scale * self._growth_factor, 0
        self._overflow, self._stepped = {}, set()

    def captured(self) -> "CapturedScaler":
        """What takes this scaler's place in the graph that is captured."""
        graph = driver.state.graph
        if self._captured is None or self._captured.graph() is not graph:
            self._captured = CapturedScaler(self, graph)
        return self._captured

    def settle(self) -> None:
        """Takes in what the last replay of a captured step found in its gradients; waits for it."""
        if self._captured is not None and not is_capturing():
            self._captured.settle()

    def get_scale(self) -> float:
        """The scale now; 1 when not enabled."""
        self.settle()
        return self._scale if self.enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether it scales at all."""
        return self.enabled

    def state_dict(self) -> dict[str, Any]:
        """Everything that is needed to go on; empty when not enabled."""
        if not self.enabled:
            return {}
        self.settle()
        return {"scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on where `state_dict` was taken.

        Raises:
            RuntimeError: an empty dict, from a scaler that was not enabled.
        """
        if not self.enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled scaler.")
        self._scale, self._growth_tracker = float(state_dict["scale"]), int(state_dict["_growth_tracker"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]


class CapturedScaler:
    """A GradScaler inside of a CUDA graph.

    The scale is read from device memory. A step whose gradients overflowed is skipped by the optimizer's kernel; the
    host learns of it before the next replay, when it adapts the scale and takes back the step that it had counted.

    Args:
        scaler: whose numbers these are. graph: that is captured.
    """

    def __init__(self, scaler: GradScaler, graph: CUDAGraph):
        self.scaler, self.graph = scaler, weakref.ref(graph)
        self.pending = self.updates = False
        self.steps: list[tuple[int, Tensor, list[Any]]] = []      # optimizer, are gradients bad, its numbers
        self.numbers = graph.numbers_of(self.values(), self.again, lambda: None)
        graph.after.append(self.ran)

    def values(self) -> tuple[float, float]:
        """The scale and its inverse."""
        return self.scaler._scale, 1.0 / self.scaler._scale

    def again(self) -> tuple[float, float]:
        """The same for the next replay."""
        self.scaler.settle()                              # of whichever graph was replayed last
        return self.values()

    def scale(self, like: Tensor) -> Tensor:
        """The scale as a 0-d tensor of a dtype."""
        return wrap(self.numbers.view((), (), 0)).to(like.dtype)

    def ran(self) -> None:
        """A replay was launched."""
        self.pending, self.scaler._captured = True, self

    def step(self, optimizer: Any, found: list[Tensor], args: tuple, options: dict) -> None:
        """optimizer.step(...), which changes nothing where a gradient is not finite.

        Args:
            found: a flag for each device of the gradients; a graph has one.
        """
        graph = self.graph()
        assert graph is not None
        count = len(graph.numbers)
        if found:
            optimizer.found_inf = found[0].array
        try:
            optimizer.step(*args, **options)
        finally:
            optimizer.found_inf = None
        if found:
            self.steps.append((id(optimizer), found[0], graph.numbers[count:]))

    def update(self, new_scale: Any) -> None:
        """The scale is adapted when the host knows what the replay found."""
        if new_scale is not None:
            refuse("GradScaler.update sets a scale on the host")
        self.updates = True

    def settle(self) -> None:
        """Reads what the last replay found, takes back skipped steps, adapts the scale."""
        if not self.pending:
            return
        self.pending = False
        for key, found, numbers in self.steps:
            bad = self.scaler._overflow[key] = bool(found.item())
            if bad:
                for n in numbers:
                    n.undo()
        if self.updates:
            self.scaler.update()
