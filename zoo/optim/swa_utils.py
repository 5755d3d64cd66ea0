"""Averages of weights over training: stochastic weight averaging (SWA) and exponential moving averages (EMA)."""

import copy
import math
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from zoo.autograd import lists
from zoo.autograd.creation import tensor
from zoo.autograd.mode import no_grad
from zoo.autograd.tensor import Tensor, wrap
from zoo.nn.module import Module
from zoo.nn.norm import BatchNorm
from zoo.ops.cuda import driver, is_capturing
from zoo.ops.cuda.capture import refuse
from zoo.ops.dtypes import int64
from zoo.ops.multi_tensor import DTYPES
from zoo.optim.optimizer import Optimizer
from zoo.optim.scheduler import LRScheduler, per_group


def need_decay(name: str, decay: float) -> None:
    """Raises ValueError unless 0 <= decay <= 1."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"{name}: Invalid decay value: wants one in [0, 1], got {decay}")


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    """f(average, value, n) -> decay * average + (1 - decay) * value, for AveragedModel's avg_fn.

    Raises:
        ValueError: a decay outside [0, 1].

    Example:
        >>> from zoo.optim.swa_utils import get_ema_avg_fn
        >>> get_ema_avg_fn(0.75)(4.0, 8.0, 1)
        5.0
    """
    need_decay("get_ema_avg_fn", decay)

    def ema_update(averaged, current, num_averaged):
        with no_grad():
            return decay * averaged + (1 - decay) * current

    return ema_update


def get_swa_avg_fn() -> Callable:
    """f(average, value, n) -> the mean of n + 1 values, of which average is that of the first n.

    Example:
        >>> from zoo.optim.swa_utils import get_swa_avg_fn
        >>> get_swa_avg_fn()(4.0, 8.0, 3)
        5.0
    """

    def swa_update(averaged, current, num_averaged):
        with no_grad():
            return averaged + (current - averaged) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """f(averages, values, n): average = decay * average + (1 - decay) * value for each, in place.

    Raises:
        ValueError: a decay outside [0, 1].

    Example:
        >>> import zoo
        >>> average = zoo.tensor([4.0])
        >>> zoo.optim.swa_utils.get_ema_multi_avg_fn(0.75)([average], [zoo.tensor([8.0])], 1)
        >>> average.item()
        5.0
    """
    need_decay("get_ema_multi_avg_fn", decay)
    return Weighted(lambda n: 1 - decay)


def get_swa_multi_avg_fn() -> Callable:
    """f(averages, values, n): each average becomes the mean of n + 1 values, in place.

    Example:
        >>> import zoo
        >>> average = zoo.tensor([4.0])
        >>> zoo.optim.swa_utils.get_swa_multi_avg_fn()([average], [zoo.tensor([8.0])], 3)
        >>> average.item()
        5.0
    """
    return Weighted(lambda n: 1 / (n + 1))


class Weighted:
    """f(averages, values, n): average += weight(n) * (value - average) for each, in place; what a graph can repeat.

    Args:
        weight: of the value that comes after n others.
    """

    def __init__(self, weight: Callable[[int], float]):
        self.weight = weight

    def __call__(self, averaged: list, current: list, num_averaged: Any) -> None:
        average_in_place(averaged, current, self.weight(int(num_averaged)))


def average_in_place(averaged: list[Tensor], current: list[Tensor], weight: Any) -> None:
    """average += weight * (value - average) for each pair; integers are rounded towards 0.

    Args:
        weight: a number, or in a captured step a 0-d array on the device.
    """
    plain = [a.dtype in DTYPES and a.dtype == c.dtype for a, c in zip(averaged, current, strict=True)]
    lists.average([a for a, p in zip(averaged, plain, strict=True) if p],
                  [c for c, p in zip(current, plain, strict=True) if p], weight)
    with no_grad():
        for a, c, p in zip(averaged, current, plain, strict=True):
            if not p:
                w = weight if isinstance(weight, float) else wrap(weight)
                a.copy_(c if isinstance(w, float) and w == 1 else a * (1 - w) + c * w)


class AveragedModel(Module):
    """A copy of a model whose parameters are an average of the model's over training.

    `update_parameters(model)` takes the model's present values in: the first time as they are, then by the function.
    SWA: Izmailov et al., 2018, "Averaging weights leads to wider optima"; EMA: Polyak and Juditsky, 1992.

    Args:
        model: what is copied. device: where the copy lies.
        avg_fn: f(average, value, n) -> new average, of one tensor, n the number of models in it so far.
        multi_avg_fn: f(averages, values, n), of lists, in place. Neither: the mean of all (SWA).
        use_buffers: averages the buffers as well; else they are copied, and batch norm may need `update_bn`.

    Raises:
        ValueError: both functions.

    Example:
        >>> import zoo
        >>> from zoo.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
        >>> model = zoo.nn.Linear(1, 1)
        >>> average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.75))
        >>> for value in (4.0, 8.0):
        ...     _ = zoo.nn.init.constant_(model.bias, value)
        ...     average.update_parameters(model)
        >>> average.module.bias.item()
        5.0
    """

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable | None = None,
        multi_avg_fn: Callable | None = None,
        use_buffers: bool = False,
    ):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("AveragedModel: wants avg_fn or multi_avg_fn, got both")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Takes the model's values of now into the average: in a CUDA graph at each replay, for functions of ours."""
        averaged, current = [p.detach() for p in self.values(self.module)], [p.detach() for p in self.values(model)]
        current = [c.to(a.device) for a, c in zip(averaged, current, strict=True)]
        function = self.multi_avg_fn or get_swa_multi_avg_fn()
        if self.avg_fn is None and isinstance(function, Weighted):
            average_in_place(averaged, current, self.captured(function) if is_capturing() else self.counted(function))
        else:
            refuse("AveragedModel gives its count to a function of the user's")
            self.by_function(averaged, current)
        if not self.use_buffers:
            average_in_place([b.detach() for b in self.module.buffers()],
                             [b.detach().to(a.device) for a, b in zip(self.module.buffers(), model.buffers(),
                                                                      strict=True)], 1.0)

    def values(self, module: Module) -> list[Tensor]:
        """What is averaged of a module."""
        return list(chain(module.parameters(), module.buffers() if self.use_buffers else ()))

    def counted(self, function: "Weighted") -> float:
        """The weight of the model that now comes, and one more is counted; the first is taken as it is."""
        n = int(self.n_averaged)
        with no_grad():
            self.n_averaged += 1
        return float(function.weight(n)) if n else 1.0

    def captured(self, function: "Weighted") -> Any:
        """`counted` for a captured step: its weight lies on the device, and is chosen anew at each replay."""
        def undo() -> None:
            with no_grad():
                self.n_averaged -= 1

        held = driver.state.graph.numbers_of([self.counted(function)], lambda: [self.counted(function)], undo)
        return held.view((), ())

    def by_function(self, averaged: list[Tensor], current: list[Tensor]) -> None:
        """One update by avg_fn or a multi_avg_fn that is not of this file."""
        with no_grad():
            if self.n_averaged == 0:
                average_in_place(averaged, current, 1.0)
            elif self.avg_fn is not None:
                for a, c in zip(averaged, current, strict=True):
                    a.copy_(self.avg_fn(a, c, self.n_averaged.to(a.device)))
            elif self.multi_avg_fn is not None:
                self.multi_avg_fn(averaged, current, self.n_averaged)
            self.n_averaged += 1


class EMA(AveragedModel):
    """The exponential moving average of a model's parameters, and of its buffers unless use_buffers is False.

    Args:
        model, device, use_buffers: see AveragedModel. decay: share of the average that stays at each update.
        warm_up: the first updates decay less, min(decay, (1 + n) / (10 + n)), so that the average leaves the random
            start soon (TensorFlow's num_updates).

    Raises:
        ValueError: a decay outside [0, 1].

    Example:
        >>> import zoo
        >>> model = zoo.nn.Linear(1, 1)
        >>> average = zoo.optim.swa_utils.EMA(model, decay=0.75)
        >>> for value in (4.0, 8.0):
        ...     _ = zoo.nn.init.constant_(model.bias, value)
        ...     average.update_parameters(model)
        >>> average.module.bias.item()
        5.0
    """

    def __init__(
        self, model: Module, decay: float = 0.999, device: Any = None, use_buffers: bool = True, warm_up: bool = False
    ):
        need_decay("EMA", decay)
        super().__init__(model, device, multi_avg_fn=Weighted(self.weight), use_buffers=use_buffers)
        self.decay, self.warm_up = decay, warm_up

    def weight(self, n: int) -> float:
        """The share of the value that comes after n others."""
        return 1 - (min(self.decay, (1 + n) / (10 + n)) if self.warm_up else self.decay)


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of the model's batch norms anew, as means over one pass over the data.

    Args:
        loader: batches, tensors or tuples and lists of which the first is the input. device: where inputs go.

    Example:
        >>> import zoo
        >>> model = zoo.nn.Sequential(zoo.nn.BatchNorm1d(1))
        >>> zoo.optim.swa_utils.update_bn([zoo.tensor([[0.0], [2.0]]), zoo.tensor([[4.0], [6.0]])], model)
        >>> model[0].running_mean.item()
        3.0
    """
    momenta = {module: module.momentum for module in model.modules() if isinstance(module, BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None  # a mean over all batches
    with no_grad():
        for batch in loader:
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(x if device is None else x.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the present learning rate to swa_lr in anneal_epochs steps, and on with that (Izmailov et al., 2018).

    Args:
        swa_lr: one or one per group. anneal_epochs: 0 or more. anneal_strategy: "cos" or "linear".

    Raises:
        ValueError: an unknown strategy, negative epochs.

    Example:
        >>> import zoo
        >>> optimizer = zoo.optim.SGD([zoo.nn.Parameter(zoo.ones(1))], lr=1.0)
        >>> scheduler = zoo.optim.swa_utils.SWALR(optimizer, 0.5, anneal_epochs=2, anneal_strategy="linear")
        >>> scheduler.step(); scheduler.get_last_lr()
        [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ):
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"SWALR: anneal_strategy wants 'cos' or 'linear', got {anneal_strategy!r}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"SWALR: anneal_epochs wants an integer of 0 or more, got {anneal_epochs!r}")
        for group, lr in zip(optimizer.param_groups, per_group("SWALR: swa_lr", optimizer, swa_lr), strict=True):
            group["swa_lr"] = lr
        self.anneal_epochs, self._anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def share(self, step: int) -> float:
        """How much of swa_lr is in the learning rate after so many steps."""
        way = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return way if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * way)) / 2

    def get_lr(self) -> list[float]:
        step = self._step_count - 1 if self.anneal_epochs else max(1, self._step_count - 1)
        now, before = self.share(step), self.share(step - 1)
        lrs = []
        for group, lr in zip(self.optimizer.param_groups, self.lrs(), strict=True):
            swa_lr = group["swa_lr"]
            start = swa_lr if before == 1 else (lr - before * swa_lr) / (1 - before)
            lrs.append(swa_lr * now + start * (1 - now))
        return lrs
