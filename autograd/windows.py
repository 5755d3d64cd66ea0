"""Windows of signals, which fall to their ends: 1-d tensors, made on the host."""
from collections.abc import Callable
from typing import Any

import numpy as np

from zoo.autograd.creation import dtype_of, leaf, place
from zoo.autograd.tensor import Tensor
from zoo.ops.device import put
from zoo.ops.dtypes import FLOATS, default_dtype
from zoo.ops.errors import ArgumentError, DtypeError


def window(name: str, length: int, periodic: bool, formula: Callable[[np.ndarray], np.ndarray], dtype: Any,
           device: Any, requires_grad: bool) -> Tensor:
    """formula(t) for t from 0 to 1, in float64; of a periodic window the last is left out. One element alone is 1."""
    if length < 0:
        raise ArgumentError(f"{name}: wants a window_length that is not negative, got {length}")
    dtype = default_dtype() if dtype is None else dtype_of(name, dtype)
    if dtype not in FLOATS:
        raise DtypeError(f"{name}: wants a floating dtype, got {dtype}")
    steps = length if periodic else length - 1
    values = np.ones(length) if length < 2 else formula(np.arange(length) / steps)
    return leaf(put(values.astype(dtype), place(device)), requires_grad)


def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None,
                requires_grad: bool = False) -> Tensor:
    """(1 - cos(2 pi t)) / 2 for t from 0 to 1: the window of short-time Fourier transforms.

    Args:
        window_length: how many elements. periodic: the next element would be the first again, else the last is.

    Raises:
        ArgumentError (ValueError, RuntimeError): a negative length. DtypeError: no floating dtype.

    Example:
        >>> import zoo
        >>> zoo.hann_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return hamming_window(window_length, periodic, 0.5, 0.5, dtype=dtype, device=device, requires_grad=requires_grad)


def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
                   dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """alpha - beta cos(2 pi t) for t from 0 to 1; see hann_window.

    Example:
        >>> import zoo
        >>> zoo.hamming_window(3, periodic=False)
        tensor([0.0800, 1.0000, 0.0800])
    """
    return window("hamming_window", window_length, periodic, lambda t: alpha - beta * np.cos(2 * np.pi * t), dtype,
                  device, requires_grad)


def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None,
                    requires_grad: bool = False) -> Tensor:
    """0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t) for t from 0 to 1; see hann_window.

    Example:
        >>> import zoo
        >>> zoo.blackman_window(3, periodic=False)[1]
        tensor(1.)
    """
    def formula(t):
        return 0.42 - 0.5 * np.cos(2 * np.pi * t) + 0.08 * np.cos(4 * np.pi * t)

    return window("blackman_window", window_length, periodic, formula, dtype, device, requires_grad)


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None,
                    requires_grad: bool = False) -> Tensor:
    """1 - |2 t - 1| for t from 0 to 1: a triangle; see hann_window.

    Example:
        >>> import zoo
        >>> zoo.bartlett_window(5, periodic=False)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return window("bartlett_window", window_length, periodic, lambda t: 1 - np.abs(2 * t - 1), dtype, device,
                  requires_grad)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None,
                  device: Any = None, requires_grad: bool = False) -> Tensor:
    """I0(beta sqrt(1 - (2 t - 1)^2)) / I0(beta) for t from 0 to 1, I0 Bessel's function; see hann_window.

    Example:
        >>> import zoo
        >>> zoo.kaiser_window(3, periodic=False)[1]
        tensor(1.)
    """
    return window("kaiser_window", window_length, periodic,
                  lambda t: np.i0(beta * np.sqrt(np.maximum(1 - (2 * t - 1) ** 2, 0))) / np.i0(beta), dtype, device,
                  requires_grad)


FUNCTIONS = {f.__name__: f for f in (hann_window, hamming_window, blackman_window, bartlett_window, kaiser_window)}
