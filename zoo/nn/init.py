"""Initialisation of parameters: torch.nn.init. Each function fills its tensor in place, unrecorded, and returns it."""

import functools
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from zoo.autograd.mode import no_grad
from zoo.autograd.random import normal_ as draw_normal
from zoo.autograd.random import uniform_ as draw_uniform
from zoo.autograd.tensor import Tensor, wrap
from zoo.ops.device import fetch, put
from zoo.ops.errors import ShapeError

SKIPPING: ContextVar[bool] = ContextVar("skip_init", default=False)


@contextmanager
def skip_init() -> Iterator[None]:
    """Inside it the functions of this module leave their tensors as they are: layers are built without initial values.

    For a model whose weights are loaded right after: no random numbers are drawn, and the generator keeps its state.
    Buffers (running statistics) get their values as ever. Holds for the current thread or task only.

    Example:
        >>> import zoo
        >>> state = zoo.get_rng_state()
        >>> with zoo.nn.init.skip_init():
        ...     layer = zoo.nn.Linear(2, 3)
        >>> bool((zoo.get_rng_state() == state).all()), layer.weight.shape
        (True, (3, 2))
    """
    before = SKIPPING.set(True)
    try:
        yield
    finally:
        SKIPPING.reset(before)


def fills(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Marks a function that writes a tensor's values: it records nothing, and does nothing inside `skip_init`."""
    unrecorded = no_grad()(function)

    @functools.wraps(function)
    def fill(tensor: Tensor, *args: Any, **options: Any) -> Tensor:
        return tensor if SKIPPING.get() else unrecorded(tensor, *args, **options)

    return fill


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The factor that keeps the variance through a nonlinearity: 1, 5/3 for tanh, sqrt 2 for relu, ...

    Raises:
        ValueError: an unknown nonlinearity.

    Example:
        >>> import zoo
        >>> zoo.nn.init.calculate_gain("leaky_relu", 0.2)
        1.3867504905630728
    """
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"calculate_gain: wants a number as negative slope, got {param!r}")
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75}
    ones = ("linear", "sigmoid", *(f"conv{t}{d}d" for t in ("", "_transpose") for d in "123"))
    if nonlinearity not in gains and nonlinearity not in ones:
        raise ValueError(f"calculate_gain: wants one of {(*ones, *gains, 'leaky_relu')}, got {nonlinearity!r}")
    return gains.get(nonlinearity, 1.0)


@fills
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Values from U(a, b)."""
    return draw_uniform(tensor, a, b, generator=generator)


@fills
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Values from N(mean, std^2)."""
    return draw_normal(tensor, mean, std, generator=generator)


@fills
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Values from N(mean, std^2) on condition that they lie in [a, b], by the inverse distribution function."""
    from statistics import NormalDist

    low, high = (0.5 * (1 + math.erf((x - mean) / std / math.sqrt(2))) for x in (a, b))
    draw_uniform(tensor, low, high, generator=generator)
    shares = fetch(tensor.array).astype(np.float64)
    inverse = NormalDist(mean, std).inv_cdf
    tiny = np.finfo(np.float64).tiny
    values = np.array([inverse(min(max(u, tiny), 1 - 2.0**-53)) for u in shares.ravel()]).reshape(shares.shape)
    return assign(tensor, np.clip(values, a, b))


def assign(tensor: Tensor, values: np.ndarray) -> Tensor:
    """Copies values into the tensor, in its dtype and on its device."""
    return tensor.copy_(wrap(put(values.astype(tensor.dtype), tensor.device)))


@fills
def constant_(tensor: Tensor, val: float) -> Tensor:
    """The value `val` everywhere."""
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """1 everywhere."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """0 everywhere."""
    return constant_(tensor, 0.0)


@fills
def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix.

    Raises:
        ValueError: not 2-dimensional.
    """
    if tensor.ndim != 2:
        raise ValueError(f"eye_: wants a 2-d tensor, got {tensor.shape}")
    return assign(tensor, np.eye(*tensor.shape))


@fills
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Convolution weights that hand as many channels on as they can, in each group.

    Raises:
        ValueError: not 3- to 5-dimensional, or groups do not divide the first dimension.
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError(f"dirac_: wants a 3-, 4- or 5-d tensor, got {tensor.shape}")
    if tensor.shape[0] % groups:
        raise ValueError(f"dirac_: wants groups that divide {tensor.shape[0]}, got {groups}")
    values = np.zeros(tensor.shape)
    each = tensor.shape[0] // groups
    middle = tuple(n // 2 for n in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(each, tensor.shape[1])):
            values[(group * each + channel, channel, *middle)] = 1
    return assign(tensor, values)


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError(f"fan in and fan out: wants at least 2 dimensions, got {tensor.shape}")
    area = math.prod(tensor.shape[2:])
    return tensor.shape[1] * area, tensor.shape[0] * area


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"kaiming: wants mode 'fan_in' or 'fan_out', got {mode!r}")
    return _calculate_fan_in_and_fan_out(tensor)[mode.lower() == "fan_out"]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """U(-a, a) with a = gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """N(0, s^2) with s = gain * sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


def kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    """gain / sqrt(fan)."""
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """U(-b, b) with b = gain * sqrt(3 / fan) (He et al., 2015); a: negative slope of the leaky relu that follows.

    Example:
        >>> import zoo
        >>> w = zoo.nn.init.kaiming_uniform_(zoo.empty(3, 600))
        >>> bool(w.abs().max() <= 0.1)
        True
    """
    if 0 in tensor.shape:
        return tensor
    bound = math.sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """N(0, gain^2 / fan) (He et al., 2015); a: negative slope of the leaky relu that follows."""
    if 0 in tensor.shape:
        return tensor
    return normal_(tensor, 0.0, kaiming_std(tensor, a, mode, nonlinearity), generator)


@fills
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Orthonormal rows (or columns, the shorter ones) times gain (Saxe et al., 2013).

    Raises:
        ValueError: fewer than 2 dimensions.
    """
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_: wants at least 2 dimensions, got {tensor.shape}")
    if not tensor.numel():
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    draw_normal(tensor, 0.0, 1.0, generator=generator)
    flat = fetch(tensor.array).astype(np.float64).reshape(rows, columns)
    q, r = np.linalg.qr(flat.T if rows < columns else flat)
    q = q * np.sign(np.diag(r))
    return assign(tensor, gain * (q.T if rows < columns else q).reshape(tensor.shape))


@fills
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """N(0, std^2) with a share of `sparsity` of every column set to 0 (Martens, 2010).

    Raises:
        ShapeError: not 2-dimensional.
    """
    if tensor.ndim != 2:
        raise ShapeError(f"sparse_: wants a 2-d tensor, got {tensor.shape}")
    draw_uniform(tensor, 0.0, 1.0, generator=generator)
    rank = np.argsort(np.argsort(fetch(tensor.array).astype(np.float64), axis=0), axis=0)
    draw_normal(tensor, 0.0, std, generator=generator)
    keep = rank >= math.ceil(sparsity * tensor.shape[0])
    return assign(tensor, fetch(tensor.array) * keep)


def deprecated(function: Callable[..., Tensor], place: str = "nn.init") -> Callable[..., Tensor]:
    """torch's old name of place.function, without the underscore: it warns as torch's does."""
    name = function.__name__

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Tensor:
        warnings.warn(f"{place}.{name[:-1]} is now deprecated in favor of {place}.{name}", FutureWarning, stacklevel=2)
        return function(*args, **options)

    call.__name__ = call.__qualname__ = name[:-1]
    return call


uniform, normal, constant, eye, dirac = map(deprecated, (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal = deprecated(xavier_uniform_), deprecated(xavier_normal_)
kaiming_uniform, kaiming_normal = deprecated(kaiming_uniform_), deprecated(kaiming_normal_)
orthogonal, sparse = deprecated(orthogonal_), deprecated(sparse_)
