"""torch.nn.functional: every function that the op families export as one, and those that draw random numbers."""

from importlib import import_module as _import_module
from pkgutil import iter_modules as _iter_modules

from zoo.autograd.called import called as _called
from zoo.autograd.dropout import NN_FUNCTIONS as _DROPOUT
from zoo.autograd.fractional_pool import NN_FUNCTIONS as _FRACTIONAL
from zoo.autograd.multi_head import NN_FUNCTIONS as _MULTI_HEAD
from zoo.autograd.random_activations import NN_FUNCTIONS as _RANDOM
from zoo.ops import face as _face


def _collect() -> dict:
    """The functions that each module of zoo.ops.face names in NN_FUNCTIONS, and those that need a Tensor."""
    found = {**_DROPOUT, **_FRACTIONAL, **_MULTI_HEAD, **_RANDOM}
    for info in _iter_modules(_face.__path__):
        module = _import_module(f"zoo.ops.face.{info.name}")
        found.update({name: getattr(module, name) for name in getattr(module, "NN_FUNCTIONS", ())})
    return {name: _called(name, function, __name__) for name, function in found.items()}


def _in_place(function):
    def call(input, *args, **options):  # noqa: A002
        return function(input, *args, inplace=True, **options)

    call.__name__, call.__doc__ = f"{function.__name__}_", f"`{function.__name__}`, in place."
    return call


globals().update(_collect())
for _name in ("relu", "leaky_relu", "elu", "celu", "selu", "hardtanh", "threshold", "rrelu"):
    globals()[f"{_name}_"] = _in_place(globals()[_name])


def __getattr__(name: str):
    raise AttributeError(f"zoo.nn.functional has no function {name!r}")
