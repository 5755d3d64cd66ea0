"""zoo: PyTorch's programming model on NumPy and Triton, in code that one person can read."""
import builtins as _builtins
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from numpy import dtype as dtype

from zoo import autograd as autograd
from zoo.autograd import autocast as _autocast
from zoo.autograd import creation as _creation
from zoo.autograd import legacy as _legacy
from zoo.autograd import methods as _methods
from zoo.autograd import random as _random
from zoo.autograd import windows as _windows
from zoo.autograd.called import called as _called
from zoo.autograd.inplace import fits as _fits
from zoo.autograd.mode import enable_grad as enable_grad
from zoo.autograd.mode import inference_mode as inference_mode
from zoo.autograd.mode import is_grad_enabled as is_grad_enabled
from zoo.autograd.mode import is_inference_mode_enabled as is_inference_mode_enabled
from zoo.autograd.mode import no_grad as no_grad
from zoo.autograd.mode import set_grad_enabled as set_grad_enabled
from zoo.autograd.printing import set_printoptions as set_printoptions
from zoo.autograd.size import Size as Size
from zoo.autograd.tensor import Tensor as Tensor
from zoo.ops import dtypes as _dtypes
from zoo.ops.device import default_device as get_default_device
from zoo.ops.device import device as device
from zoo.ops.device import set_default_device as set_default_device
from zoo.ops.dtypes import bfloat16 as bfloat16
from zoo.ops.dtypes import complex64 as complex64
from zoo.ops.dtypes import complex128 as complex128
from zoo.ops.dtypes import default_dtype as get_default_dtype
from zoo.ops.dtypes import float16 as float16
from zoo.ops.dtypes import float32 as float32
from zoo.ops.dtypes import float64 as float64
from zoo.ops.dtypes import int8 as int8
from zoo.ops.dtypes import int16 as int16
from zoo.ops.dtypes import int32 as int32
from zoo.ops.dtypes import int64 as int64
from zoo.ops.dtypes import set_default_dtype as set_default_dtype
from zoo.ops.dtypes import uint8 as uint8
from zoo.ops.dtypes import uint16 as uint16
from zoo.ops.dtypes import uint32 as uint32
from zoo.ops.dtypes import uint64 as uint64
from zoo.ops.limits import finfo as finfo
from zoo.ops.limits import iinfo as iinfo
from zoo.ops.memory_format import channels_last as channels_last
from zoo.ops.memory_format import channels_last_3d as channels_last_3d
from zoo.ops.memory_format import contiguous_format as contiguous_format
from zoo.ops.memory_format import memory_format as memory_format
from zoo.ops.memory_format import preserve_format as preserve_format
from zoo.ops.threads import get_num_threads as get_num_threads
from zoo.ops.threads import set_num_threads as set_num_threads
from zoo.version import __version__ as __version__

if _TYPE_CHECKING:
    from zoo import accelerator as accelerator
    from zoo import amp as amp
    from zoo import backends as backends
    from zoo import checkpoint as checkpoint
    from zoo import cuda as cuda
    from zoo import data as data
    from zoo import distributions as distributions
    from zoo import func as func
    from zoo import hub as hub
    from zoo import jit as jit
    from zoo import linalg as linalg
    from zoo import models as models
    from zoo import nn as nn
    from zoo import optim as optim
    from zoo import random as random
    from zoo import serialization as serialization
    from zoo import special as special
    from zoo import testing as testing
    from zoo import utils as utils
    from zoo import version as version
    from zoo.func.batch import vmap as vmap
    from zoo.jit import compile as compile
    from zoo.serialization import load as load
    from zoo.serialization import save as save

# What is loaded when it is first asked for: `import zoo` alone stays quick.
_MODULES = ("accelerator", "amp", "backends", "checkpoint", "cuda", "data", "distributions", "func", "hub", "jit",
            "linalg", "models", "nn", "optim", "random", "serialization", "special", "testing", "utils",
            "version")
_LATE = {"compile": "zoo.jit", "load": "zoo.serialization", "save": "zoo.serialization", "vmap": "zoo.func"}

for _face in _methods.faces():
    globals().update({_name: _called(_name, getattr(_face, _name), "zoo") for _name in _face.FUNCTIONS})
for _functions in (_creation.FUNCTIONS, _random.FUNCTIONS, _legacy.FUNCTIONS, _windows.FUNCTIONS,
                   _methods.in_place_functions()):
    globals().update({_name: _called(_name, _function, "zoo") for _name, _function in _functions.items()})
globals().update(_legacy.TYPES)
globals().update(_autocast.FUNCTIONS)

inf, nan, pi, e = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045
newaxis = None
bool = _dtypes.bool_
float, double, half = float32, float64, float16
int, long, short = int32, int64, int16


def __getattr__(name: str):
    if name in _MODULES:
        return _import_module(f"zoo.{name}")
    if name in _LATE:
        return globals().setdefault(name, getattr(_import_module(_LATE[name]), name))
    raise AttributeError(f"module 'zoo' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_MODULES, *_LATE})


def is_tensor(obj) -> _builtins.bool:
    """Whether obj is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> _builtins.bool:  # noqa: A002
    """Whether input's dtype is a floating one."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> _builtins.bool:  # noqa: A002
    """Whether input's dtype is a complex one."""
    return input.is_complex()


def numel(input: Tensor) -> _builtins.int:  # noqa: A002
    """The number of elements."""
    return input.numel()


def use_deterministic_algorithms(mode: _builtins.bool, *, warn_only: _builtins.bool = False) -> None:
    """Taken from scripts written for torch: every kernel here gives the same bits in every run, whatever the mode."""


def are_deterministic_algorithms_enabled() -> _builtins.bool:
    """True: see use_deterministic_algorithms."""
    return True


def can_cast(from_, to) -> _builtins.bool:
    """Whether torch's rules let a result of dtype `from_` be written into `to`."""
    return _fits(from_, to)


def promote_types(type1, type2):
    """The dtype of type1 and type2 together.

    >>> import zoo
    >>> zoo.promote_types(zoo.int64, zoo.float16)
    dtype('float16')
    """
    return _dtypes.join(type1, type2)


def result_type(tensor1, tensor2):
    """The dtype of an operation on two tensors or numbers."""
    return _dtypes.result_type(*(getattr(x, "array", x) for x in (tensor1, tensor2)))


for _function in (is_floating_point, is_complex, numel, result_type):
    globals()[_function.__name__] = _called(_function.__name__, _function, "zoo")
