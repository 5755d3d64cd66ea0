"""Convolution, batch norm, residual and relu as one pass over memory, for inference.

A batch norm with fixed statistics is a factor and a shift of each channel. On the CPU it goes into the weights:

    w' = w * gamma / sqrt(var + eps)        b' = (b - mean) * gamma / sqrt(var + eps) + beta

and the shift, the residual and the relu are done on each block of the result while it is in cache.
"""

import copy
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from zoo.autograd.autocast import converted
from zoo.autograd.mode import MODE
from zoo.autograd.tensor import Tensor, wrap
from zoo.nn.activation import GELU, ReLU, Sigmoid, SiLU, Tanh
from zoo.nn.conv import Conv2d
from zoo.nn.linear import Identity, Linear
from zoo.nn.module import Module
from zoo.nn.norm import BatchNorm2d
from zoo.nn.parameter import Parameter
from zoo.ops import conv_cpu
from zoo.ops.conv import conv2d, conv2d_norm_act, conv2d_window
from zoo.ops.dtypes import float32
from zoo.ops.matmul import linear_act

SAMPLES = 64  # numbers of each array that are compared, beside its clock


class Folded(NamedTuple):
    """A convolution with its batch norm in it, what it was made of, and its weight as the algorithms read it."""

    weight: np.ndarray
    bias: np.ndarray | None
    sources: list
    kernels: dict


FOLDED: WeakKeyDictionary[Module, Folded] = WeakKeyDictionary()


def folded(weight, bias, norm: BatchNorm2d) -> tuple[np.ndarray, np.ndarray]:
    """Weight (K, C, R, S) and bias (K,) of a convolution with a batch norm in eval mode in it, from float64."""
    mean, var = (t.array.astype(np.float64) for t in (norm.running_mean, norm.running_var))
    factor = 1 / np.sqrt(var + norm.eps)
    if norm.weight is not None:
        factor = factor * norm.weight.array
    shift = (0.0 if bias is None else bias) - mean
    shift = shift * factor
    if norm.bias is not None:
        shift = shift + norm.bias.array
    return (weight * factor[:, None, None, None]).astype(weight.dtype), shift.astype(weight.dtype)


def sources_of(conv: Conv2d, norm: BatchNorm2d | None) -> list:
    """What a folded convolution depends on: each array, when it was written last, and some of its numbers.

    The numbers are for writes that no clock sees: through `.data`, or a NumPy array on the same memory.
    """
    tensors = [conv.weight, conv.bias]
    if norm is not None:
        tensors += [norm.weight, norm.bias, norm.running_mean, norm.running_var]
    sources: list = [norm and norm.eps]
    for t in tensors:
        if t is not None:
            flat = t.array.reshape(-1)
            sources += [id(t.array), t.clock[0], flat[:: max(1, flat.size // SAMPLES)].tobytes()]
    return sources


def folded_of(conv: Conv2d, norm: BatchNorm2d | None) -> Folded:
    """The folded convolution, kept until one of its arrays changes."""
    sources, kept = sources_of(conv, norm), FOLDED.get(conv)
    if kept is None or kept.sources != sources:
        weight, bias = conv.weight.array, None if conv.bias is None else conv.bias.array
        pair = (weight, bias) if norm is None else folded(weight, bias, norm)
        kept = FOLDED[conv] = Folded(*pair, sources, {})
    return kept


def is_plain(x: Any, conv: Module, norm: Module | None, act: Module | None) -> bool:
    """Whether the modules are of the kinds that are fused, in eval mode and without hooks, on images in batches."""
    if type(conv) is not Conv2d or type(act) not in (ReLU, type(None)):
        return False
    if any(m is not None and m._hooks for m in (conv, norm, act)):
        return False
    if norm is not None and (type(norm) is not BatchNorm2d or norm.training or norm.running_mean is None):
        return False
    return conv.padding_mode == "zeros" and not isinstance(conv.padding, str) and x.ndim == 4


def is_fusable(x: Any, conv: Module, norm: Module | None, act: Module | None, residual: Any) -> bool:
    """Whether the modules do on x what conv_cpu does: float32 arrays on the CPU, plain modules."""
    if not MODE.inference or MODE.autocast or not is_plain(x, conv, norm, act):
        return False
    arrays = [t.array for t in (x, conv.weight, conv.bias, residual) if t is not None]
    if norm is not None:
        arrays += [t.array for t in (norm.running_mean, norm.running_var)]
    return all(type(a) is np.ndarray and a.dtype == float32 for a in arrays)


def one_op(x: Any, conv: Module, norm: Module | None, act: Module | None, residual: Any) -> Tensor | None:
    """The modules on x by one op, which reads the batch norm's vectors anew: nothing is kept, nothing ages.

    None where they cannot be: a gradient is wanted, the arrays are not all on one device and of one dtype (autocast's),
    or the residual has another shape than the convolution.
    """
    if MODE.grad or not is_plain(x, conv, norm, act):
        return None
    tensors = x, conv.weight, conv.bias
    if MODE.autocast:
        tensors = tuple(t if t is None else converted(t, True) for t in tensors)
    input, weight, bias, rest = (None if t is None else t.array for t in (*tensors, residual))  # noqa: A001
    if any(a is not None and (type(a) is not type(input) or a.dtype != input.dtype) for a in (weight, bias, rest)):
        return None
    vectors: list = [None] * 4
    if norm is not None:
        vectors = [norm.running_mean, norm.running_var, norm.weight, norm.bias]
    arrays = [None if t is None else t.array for t in vectors]
    options = conv.stride, conv.padding, conv.dilation, conv.groups
    eps = 0.0 if norm is None else norm.eps
    if rest is not None and tuple(rest.shape) != conv2d.check(input, weight, bias, *options).shape:
        return None
    return wrap(conv2d_norm_act(input, weight, bias, *arrays, rest, act is not None, eps, *options))


def is_one_op(x: Tensor, norm: Module | None, act: Module | None, residual: Tensor | None) -> bool:
    """Whether `BatchNorm2d.with_relu` does what norm, residual and act do: plain modules without hooks."""
    if type(norm) is not BatchNorm2d or type(act) is not ReLU or norm._hooks or act._hooks:
        return False
    return residual is None or residual.shape == x.shape and residual.dtype == x.dtype


def conv_norm_act(
    x: Tensor, conv: Module, norm: Module | None = None, act: Module | None = None, residual: Tensor | None = None
) -> Tensor:
    """act(norm(conv(x)) + residual) in one pass where no gradient is wanted.

    On the CPU the norm is folded into the weights, which are kept from call to call under inference_mode; the GPU's
    kernel applies it to the sums. Elsewhere the convolution is an op of its own, and norm, residual and relu another.

    Args:
        x: (N, C, H, W). conv: Conv2d. norm: BatchNorm2d or None. act: ReLU or None; other modules run one by one.
        residual: of the convolution's shape, or None.

    Example:
        >>> import zoo
        >>> from zoo.nn.fusion import conv_norm_act
        >>> conv, norm = zoo.nn.Conv2d(3, 8, 3), zoo.nn.BatchNorm2d(8).eval()
        >>> with zoo.inference_mode():
        ...     conv_norm_act(zoo.ones(1, 3, 5, 5), conv, norm, zoo.nn.ReLU()).shape
        (1, 8, 3, 3)
    """
    if is_fusable(x, conv, norm, act, residual):
        it = folded_of(conv, norm)
        options = conv.stride, conv.padding, conv.dilation, conv.groups
        window = conv2d_window("conv2d", x.array, it.weight, it.bias, *options)
        shape = x.shape[0], len(it.weight), *window.out
        if residual is None or tuple(residual.shape) == shape:
            rest = None if residual is None else residual.array
            return wrap(conv_cpu.forward(x.array, it.weight, it.bias, window, rest, act is not None, it.kernels))
    y = one_op(x, conv, norm, act, residual)
    if y is not None:
        return y
    x = conv(x)
    if is_one_op(x, norm, act, residual):
        return norm.with_relu(x, residual)
    if norm is not None:
        x = norm(x)
    if residual is not None:
        x = x + residual
    return x if act is None else act(x)


ACTIVATIONS: dict[type, str] = {ReLU: "relu", SiLU: "silu", Sigmoid: "sigmoid", Tanh: "tanh"}


def linear_and_act(x: Any, layer: Module, act: Module) -> Tensor | None:
    """act(layer(x)) by one kernel of the GPU; None where it cannot be: another layer, hooks, a gradient, the CPU."""
    if type(layer) is not Linear or MODE.grad or type(x.array) is np.ndarray or layer._hooks or act._hooks:
        return None
    if type(act) is GELU:
        name = {"none": "gelu", "tanh": "gelu_tanh"}.get(act.approximate)
    else:
        name = ACTIVATIONS.get(type(act))
    return None if name is None else linear_act(x, layer.weight, layer.bias, name)


def run_fused(modules: list[Module], x: Any) -> Any:
    """The modules in a row: each convolution with its batch norm and relu, each linear layer with its activation."""
    k = 0
    while k < len(modules):
        module, k = modules[k], k + 1
        if k < len(modules) and (y := linear_and_act(x, module, modules[k])) is not None:
            x, k = y, k + 1
            continue
        if type(module) is not Conv2d:
            x = module(x)
            continue
        norm = modules[k] if k < len(modules) and type(modules[k]) is BatchNorm2d else None
        k += norm is not None
        act = modules[k] if k < len(modules) and type(modules[k]) is ReLU else None
        k += act is not None
        x = conv_norm_act(x, module, norm, act)
    return x


def fuse_conv_bn_eval(conv: Conv2d, bn: BatchNorm2d) -> Conv2d:
    """A new convolution that does what conv and then bn do; both in eval mode.

    Raises:
        ValueError: one of them is in training mode, bn has no statistics, or the channels differ.

    Example:
        >>> import zoo
        >>> conv, bn = zoo.nn.Conv2d(3, 8, 3).eval(), zoo.nn.BatchNorm2d(8).eval()
        >>> zoo.nn.utils.fuse_conv_bn_eval(conv, bn).bias.shape
        (8,)
    """
    if conv.training or bn.training:
        raise ValueError("fuse_conv_bn_eval: wants both modules in eval mode, got one in training mode")
    if bn.running_mean is None or bn.num_features != conv.out_channels:
        raise ValueError(
            f"fuse_conv_bn_eval: wants a batch norm of {conv.out_channels} channels with statistics, got {bn}"
        )
    fused = copy.deepcopy(conv)
    weight, bias = folded(conv.weight.array, None if conv.bias is None else conv.bias.array, bn)
    fused.weight = Parameter(wrap(weight), conv.weight.requires_grad)
    fused.register_parameter("bias", Parameter(wrap(bias), conv.weight.requires_grad))
    return fused


def fuse(model: Module) -> Module:
    """A copy of the model in eval mode, every batch norm that follows a convolution folded into it.

    Looks at the rows of Sequential, and at what a block names in `conv_norms` (the ResNets' blocks do).

    Example:
        >>> import zoo
        >>> model = zoo.nn.Sequential(zoo.nn.Conv2d(3, 8, 3), zoo.nn.BatchNorm2d(8), zoo.nn.ReLU())
        >>> [type(m).__name__ for m in zoo.nn.utils.fuse(model)]
        ['Conv2d', 'Identity', 'ReLU']
    """
    model = copy.deepcopy(model).eval()
    for module in list(model.modules()):
        for conv, norm in getattr(module, "conv_norms", ()):
            pair = getattr(module, conv, None), getattr(module, norm, None)
            if type(pair[0]) is Conv2d and type(pair[1]) is BatchNorm2d and pair[1].running_mean is not None:
                setattr(module, conv, fuse_conv_bn_eval(*pair))
                setattr(module, norm, Identity())
    return model
