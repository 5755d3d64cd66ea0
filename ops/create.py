"""Raw arrays from nothing: full, arange, linspace, eye on a device."""
import numpy as np

from zoo.ops.device import device
from zoo.ops.dtypes import float64, number_in


def full(shape: tuple, value, dtype: np.dtype, where: device):
    """A new array of `shape` filled with `value`."""
    if where.type == "cpu":
        if type(value) in (int, float) and value == 0:
            return np.zeros(shape, dtype)
        return np.full(shape, number_in("full", value, dtype), dtype)
    value = number_in("full", value, dtype)
    from zoo.ops import create_gpu
    return create_gpu.full(shape, value, dtype, where)


def empty(shape: tuple, dtype: np.dtype, where: device):
    """A new array of undefined contents."""
    if where.type == "cpu":
        return np.empty(shape, dtype)
    from zoo.ops import cuda
    return cuda.empty(shape, dtype, where.index or 0)


def arange(start, end, step, dtype: np.dtype, where: device):
    """start, start + step, ... below end: start + i * step, computed in float64 or int64 and rounded once."""
    if where.type != "cpu":
        from zoo.ops import create_gpu
        return create_gpu.arange(start, end, step, dtype, where)
    count = max(0, int(np.ceil((end - start) / step)))
    if dtype.kind in "iub":
        return (int(start) + int(step) * np.arange(count)).astype(dtype)
    return (start + step * np.arange(count, dtype=float64)).astype(dtype)


def linspace(start, end, steps: int, dtype: np.dtype, where: device):
    """`steps` values from start to end, both included."""
    if where.type != "cpu":
        from zoo.ops import create_gpu
        return create_gpu.linspace(start, end, steps, dtype, where)
    if dtype.kind in "iu":
        step = (end - start) / (steps - 1) if steps > 1 else 0.0
        values = np.where(
            np.arange(steps) < steps // 2, start + step * np.arange(steps), end - step * (steps - 1 - np.arange(steps))
        )
        return np.trunc(values).astype(dtype)
    return np.linspace(start, end, steps, dtype=float64).astype(dtype)


def eye(n: int, m: int, dtype: np.dtype, where: device):
    """Ones on the diagonal."""
    if where.type != "cpu":
        from zoo.ops import create_gpu
        return create_gpu.eye(n, m, dtype, where)
    return np.eye(n, m).astype(dtype)
