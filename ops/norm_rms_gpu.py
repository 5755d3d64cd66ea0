"""RMS norm on the kernels of layer norm, which leave the mean out."""
import math

from zoo.ops import cuda
from zoo.ops import norm_rms as contract
from zoo.ops.norm_rows_gpu import launch_normalize, launch_normalize_grad, longest, no_gradients


@cuda.remembered
def rms_norm(input, normalized_shape, weight=None, eps=1e-6):
    contract.rms_norm.check(input, normalized_shape, weight, eps)
    return launch_normalize(input, math.prod(normalized_shape), weight, None, eps, False)


@cuda.remembered
def rms_norm_grad(dy, input, normalized_shape, weight, eps):
    width, shape = math.prod(normalized_shape), tuple(normalized_shape)
    if not input.size:
        return no_gradients(input, shape)
    if width > longest(input.dtype):
        return contract.rms_norm_grad.decompose(dy, input, normalized_shape, weight, eps)
    return tuple(launch_normalize_grad(dy, input, shape, width, weight, eps, False))
