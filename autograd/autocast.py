"""Mixed precision: inside `autocast`, matrix products and convolutions run in float16 or bfloat16, and what needs the
range of float32 (exponentials, sums, losses, norms) runs in float32.

Micikevicius et al., *Mixed Precision Training*, 2018 (https://arxiv.org/abs/1710.03740). The lists are torch's for
CUDA, on every device. On the CPU, half-precision arrays are stored as such and computed in float32.
"""
import functools
from typing import Any

import numpy as np

from zoo.autograd.mode import MODE
from zoo.ops.device import device as device_class
from zoo.ops.dtypes import HALVES, bfloat16, float16, float32
from zoo.ops.op import OPS, Op
from zoo.ops.shape import cast

LOWER = {"matmul", "multiply_add", "linear", "linear_act", "conv2d", "conv_transpose2d", "rnn_tanh", "rnn_relu", "lstm",
         "gru", "attention"}
UPPER = {"acos", "asin", "cosh", "cumprod", "cumsum", "erfinv", "exp", "expm1", "group_norm", "layer_norm", "log",
         "log10", "log1p", "log2", "log_softmax", "logsumexp", "pow", "prod", "reciprocal", "rsqrt", "sinh", "softmax",
         "softplus", "sum", "tan", "vector_norm", "cross_entropy_loss", "binary_entropy", "binary_entropy_with_logits",
         "relative_entropy", "squared_error", "absolute_error", "smooth_absolute_error", "huber"}
DEFAULT = {"cpu": bfloat16, "cuda": float16}
USED: list[bool] = []               # not empty once autocast was entered: until then no op is asked about it


def autocasting(op: Op, call):
    """What runs `op` on Tensors, minding autocast; `call` itself for an op that autocast leaves alone."""
    if not USED or op.name not in LOWER | UPPER:
        return call
    lower = op.name in LOWER

    @functools.wraps(call)
    def run(*args):
        if not MODE.autocast:
            return call(*args)
        return call(*(converted(x, lower) if hasattr(x, "requires_grad") else x for x in args))
    return run


def converted(x: Any, lower: bool) -> Any:
    """A Tensor in the precision that the op wants; float64 and integers stay."""
    dtype = MODE.autocast.get("cuda" if x.is_cuda else "cpu")
    if dtype is None or not (x.dtype in HALVES or x.dtype == float32):
        return x
    target = dtype if lower else float32
    if x.dtype == target:
        return x
    if not (lower and x.requires_grad and x.is_leaf and MODE.casts is not None):
        return cast(x, target)
    return MODE.casts.of(x, target)


class autocast:  # noqa: N801
    """Runs the operations inside in mixed precision: `with autocast("cuda"):` or `@autocast("cpu")`.

    Args:
        device_type: "cpu" or "cuda"; tensors on the other are left alone.
        dtype: float16 or bfloat16; by default float16 on cuda and bfloat16 on the CPU.
        enabled: False switches it off inside.
        cache_enabled: cast a weight once, not at each use.

    Raises:
        ValueError: an unknown device type, or a dtype that is not half precision.

    Example:
        >>> import zoo
        >>> with zoo.autocast("cpu"):
        ...     y = zoo.nn.Linear(3, 2)(zoo.ones(1, 3))
        >>> y.dtype
        dtype(bfloat16)
    """

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None):
        self.device = device_class(device_type).type
        self.dtype = DEFAULT[self.device] if dtype is None else np.dtype(dtype)
        if self.dtype not in HALVES:
            raise ValueError(f"autocast: wants float16 or bfloat16, got {self.dtype}")
        self.enabled, self.cache = enabled, cache_enabled is not False

    def __enter__(self) -> "autocast":
        from zoo.autograd.casts import Casts
        if not USED:
            USED.append(True)
            again()
        self.outer = MODE.autocast, MODE.casts
        MODE.autocast = {**(MODE.autocast or {}), self.device: self.dtype if self.enabled else None}
        MODE.casts = (MODE.casts or Casts()) if self.cache else None
        return self

    def __exit__(self, *_):
        if MODE.casts is not None and MODE.casts is not self.outer[1]:
            MODE.casts.close()
        MODE.autocast, MODE.casts = self.outer

    def __call__(self, function):
        @functools.wraps(function)
        def inside(*args, **options):
            with autocast(self.device, self.dtype, self.enabled, self.cache):
                return function(*args, **options)
        return inside


def again() -> None:
    """The ops concerned ask anew who runs them: with autocast in use, what `autocasting` gives."""
    from zoo.autograd.methods import bind_operators
    from zoo.autograd.tensor import TENSORS
    for name in (LOWER | UPPER) & OPS.keys():
        for kind in TENSORS:
            OPS[name].handlers.pop(kind, None)
    bind_operators()


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether this thread is inside `autocast` for the device type."""
    return bool(MODE.autocast and MODE.autocast.get(device_class(device_type).type))


def get_autocast_dtype(device_type: str) -> np.dtype:
    """The dtype of matrix products inside `autocast`: the current one, or the default."""
    kind = device_class(device_type).type
    return (MODE.autocast or {}).get(kind) or DEFAULT[kind]


FUNCTIONS = {f.__name__: f for f in (autocast, is_autocast_enabled, get_autocast_dtype)}
