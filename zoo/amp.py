"""torch.amp's names: autocast and GradScaler, for training in mixed precision."""
from typing import Any

import numpy as np

from zoo.autograd.autocast import autocast as autocast
from zoo.autograd.mode import no_grad
from zoo.autograd.tensor import Tensor
from zoo.ops.op import OPS


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
        self._overflow: dict[int, bool] = {}              # id of an optimizer whose gradients are unscaled -> bad ones?
        self._stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """outputs (a Tensor, or nested lists and tuples of them) times the scale."""
        if not self.enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
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
        with no_grad():
            for g in grads:
                g.mul_(1.0 / self._scale)
        finite = [g.isfinite().all() for g in grads]
        self._overflow[id(optimizer)] = bool(finite) and not OPS["cat"](0, *(f.reshape(1) for f in finite)).all().item()

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
        return None if self._overflow[id(optimizer)] else optimizer.step(*args, **options)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapts the scale to what the steps since the last update met; or sets it to new_scale."""
        if not self.enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._overflow:
            raise RuntimeError("No inf checks were recorded prior to update.")
        elif any(self._overflow.values()):
            self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale, self._growth_tracker = self._scale * self._growth_factor, 0
        self._overflow, self._stepped = {}, set()

    def get_scale(self) -> float:
        """The scale now; 1 when not enabled."""
        return self._scale if self.enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether it scales at all."""
        return self.enabled

    def state_dict(self) -> dict[str, Any]:
        """Everything that is needed to go on; empty when not enabled."""
        if not self.enabled:
            return {}
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
