"""Tensor's methods and operators, from the tables of ops/face: torch's functions with the tensor as first argument."""
from importlib import import_module
from inspect import isfunction

from zoo.autograd import convert, creation, inplace, leaf_hooks, legacy, size
from zoo.autograd import random as random_methods
from zoo.autograd.called import called
from zoo.autograd.printing import tensor_repr
from zoo.autograd.tensor import Tensor
from zoo.ops.face.getitem import getitem
from zoo.ops.face.pointwise import UNARY as UNARY_OPS
from zoo.ops.op import OPS, Op, signature

FACES = ("pointwise", "activation", "reduce", "sort", "matmul", "norm", "loss", "conv", "pool", "shape", "split",
         "join", "index", "sets", "rnn", "attention", "parts", "calculus", "statistics", "special", "linalg",
         "factors", "matrix_functions")
OPERATORS = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "floordiv": "floor_divide",
             "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
             "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift", "matmul": "matmul"}
COMPARISONS = {"lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "eq": "eq", "ne": "ne"}
NO_TENSORS = {"shape", "dims", "dim0", "dim1", "start_dim", "end_dim", "memory_format"}      # parameters of views
UNARY = {"neg": "neg", "abs": "abs", "invert": "bitwise_not"}


def faces() -> list:
    """The modules with torch's signatures, one per family of ops."""
    return [import_module(f"zoo.ops.face.{name}") for name in FACES]


def method_of(name: str, function, inside: str):
    """A function as a method: an Op's written-out call on Tensors, if it has no options to fill in.

    inside: the class where pickle finds it; none if it is zoo.name too: both are one object then."""
    if isinstance(function, Op):
        op = function

        def method(self, *args, **options):
            return op(self, *args, **options)
        method.__name__, method.__doc__, method.__wrapped__ = name, op.__doc__, op
        return method
    if isfunction(function) and set(signature(function)[0][1:]) <= NO_TENSORS:
        return function                                     # quicker by 0.1 us, of 1.7
    return called(name, function, "zoo", inside)


def number_over(divide):
    """`number / x`, which is number * (1 / x) as in torch: x and the quotient may be changed in place before backward,
    for what the derivative reads is the reciprocal, which nobody else holds."""
    def over(self, other):
        return OPS["mul"](OPS["reciprocal"](self), other) if type(other) in (int, float) else divide(other, self)
    return over


def comparison(call):
    def compare(self, other):
        return NotImplemented if other is None or isinstance(other, str) else call(self, other)
    return compare


def bind_operators() -> None:
    """`a + b` and the like call what runs the op on Tensors directly."""
    for special, name in {**OPERATORS, **UNARY, **COMPARISONS}.items():
        call = OPS[name].handler((Tensor(0.0),))
        setattr(Tensor, f"__{special}__", comparison(call) if special in COMPARISONS else call)
        if special in OPERATORS:
            right = number_over(call) if special == "truediv" else lambda a, b, call=call: call(b, a)
            setattr(Tensor, f"__r{special}__", right)
            setattr(Tensor, f"__i{special}__", inplace.in_place(name, OPS[name]))


def in_place_functions() -> dict:
    """`relu_(x)` and the like: those of Tensor's methods in place that torch has as functions too."""
    names = (*UNARY_OPS, "addmv", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "celu", "clamp",
             "clamp_max", "clamp_min", "clip", "detach", "fill", "fix", "gcd", "lcm", "ldexp", "logit", "nan_to_num",
             "negative", "relu", "selu", "square", "threshold", "xlogy", "zero")
    return {f"{name}_": getattr(Tensor, f"{name}_") for name in names if hasattr(Tensor, f"{name}_")}


def attach() -> None:
    """Puts everything onto Tensor; once, when autograd is imported."""
    for face in faces():
        for name in face.METHODS:
            own = getattr(face, f"{name}_method", None)                  # where(c, a, b), a.where(c, b)
            inside = "" if name in face.FUNCTIONS and not own else "Tensor"
            setattr(Tensor, name, method_of(name, own or getattr(face, name), inside))
        for name in getattr(face, "INPLACE", ()):
            setattr(Tensor, f"{name}_", inplace.in_place(name, getattr(face, name)))
    for name, method in {**convert.METHODS, **creation.METHODS, **random_methods.METHODS, **legacy.METHODS}.items():
        setattr(Tensor, name, method)
    bind_operators()
    for name in ("t", "transpose", "swapaxes", "swapdims", "squeeze", "unsqueeze"):
        setattr(Tensor, f"{name}_", inplace.reshaped_in_place(name, getattr(Tensor, name)))
    Tensor.view, Tensor.view_as = inplace.viewable(Tensor.view), inplace.viewable(Tensor.view_as)
    Tensor.__getitem__, Tensor.__setitem__ = getitem, inplace.set_item
    Tensor.__repr__ = tensor_repr
    Tensor.copy_, Tensor.__out__, Tensor.__written__ = inplace.copy_, inplace.out_, inplace.written
    Tensor.fill_, Tensor.zero_ = inplace.fill_, inplace.zero_
    Tensor.set_ = inplace.set_
    Tensor.fill_diagonal_, Tensor.apply_ = inplace.fill_diagonal_, inplace.apply_
    Tensor.register_post_accumulate_grad_hook = leaf_hooks.register_post_accumulate_grad_hook
    Tensor.shape = size.shape


attach()
