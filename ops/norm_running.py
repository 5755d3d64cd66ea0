"""The running statistics of batch norm, moved towards those of a batch, in place.

Not a record in the registry: it writes into its arguments, and has no derivative. The kernel is in norm_running_gpu.py.
"""
import sys
from typing import Any

import numpy as np

from zoo.ops.norm import statistics_dtype


def mover_for(kind: type) -> Any:
    """The module whose `move` takes arrays of this type: this one, or that of the kernel."""
    if kind is np.ndarray:
        return sys.modules[__name__]
    from zoo.ops import norm_running_gpu
    return norm_running_gpu


def move(running_mean, running_var, batches, mean, var, momentum: float | None, unbiased: float) -> None:
    """running := (1 - momentum) * running + momentum * new, for mean and for unbiased * var; batches := batches + 1.

    Args:
        running_mean, running_var: (C,) floating, or None. batches: (), int64, or None.
        mean, var: (C,), of a batch. unbiased: n / (n - 1) for n values of a channel.
        momentum: None for 1 / batches, the plain average; then batches is not None.
    """
    if batches is not None:
        batches += 1
    if momentum is None:
        momentum = 1 / int(batches)
    for running, new in ((running_mean, mean), (running_var, var * unbiased)):
        if running is not None:
            old = running.astype(statistics_dtype(running.dtype), copy=False)
            running[...] = old * (1 - momentum) + new.astype(old.dtype, copy=False) * momentum
