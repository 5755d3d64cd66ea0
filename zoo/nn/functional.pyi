"""zoo.nn.functional's functions. Written by scripts/write_stubs.py: do not edit."""
# pyright: basic, reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false
# pyright: reportOverlappingOverload=false, reportMissingModuleSource=false
from builtins import bool as _bool, float as _float, int as _int, str as _str
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, TypeAlias, overload

import numpy as np

from zoo.autograd.attached import Device, DType, Number, ValuesAndIndices
from zoo.autograd.random import Generator
from zoo.autograd.size import Size
from zoo.autograd.tensor import Tensor
from zoo.ops.device import device
from zoo.ops.memory_format import memory_format

def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Means of output_size windows that cover the last dimension: window i spans floor(i L / P) to ceil((i + 1) L / P)."""
    ...
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means of windows that cover an image evenly, output_size of them; None keeps a size."""
    ...
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means of windows that cover a volume (N, C, D, H, W) or (C, D, H, W) evenly."""
    ...
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: _bool = False) -> Any:
    """The largest elements of output_size windows that cover the last dimension evenly (see adaptive_avg_pool1d)."""
    ...
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: _bool = False,
) -> tuple[Tensor, ...]:
    """adaptive_max_pool1d that always gives (values, indices)."""
    ...
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: _bool = False) -> Any:
    """The largest elements of windows that cover an image (N, C, H, W) or (C, H, W) evenly."""
    ...
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: _bool = False,
) -> tuple[Tensor, ...]:
    """adaptive_max_pool2d that always gives (values, indices)."""
    ...
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: _bool = False) -> Any:
    """The largest elements of windows that cover a volume (N, C, D, H, W) or (C, D, H, W) evenly."""
    ...
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: _bool = False,
) -> tuple[Tensor, ...]:
    """adaptive_max_pool3d that always gives (values, indices)."""
    ...
def affine_grid(theta: Any, size: Any, align_corners: Any = None) -> Tensor:
    """Where an affine map sends each pixel: theta (N, 2, 3) and size (N, C, H, W) -> (N, H, W, 2), in [-1, 1] inside."""
    ...
def alpha_dropout(input: Tensor, p: _float = 0.5, training: _bool = False, inplace: _bool = False) -> Tensor:
    """Dropout that keeps mean and variance of SELU activations: a (x m + (1 - m) alpha') + b."""
    ...
def avg_pool1d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] | _str = 0, ceil_mode: _bool = False, count_include_pad: _bool = True,
) -> Tensor:
    """The mean of every window along the last dimension."""
    ...
def avg_pool2d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] | _str = 0, ceil_mode: _bool = False, count_include_pad: _bool = True,
    divisor_override: Any = None,
) -> Tensor:
    """The mean of every window of an image: its sum over the number of elements, or over divisor_override."""
    ...
def avg_pool3d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] | _str = 0, ceil_mode: _bool = False, count_include_pad: _bool = True,
    divisor_override: Any = None,
) -> Tensor:
    """The mean of every window of a volume (N, C, D, H, W) or (C, D, H, W); otherwise as avg_pool2d."""
    ...
def batch_norm(
    input: Tensor, running_mean: Tensor, running_var: Tensor, weight: Tensor | None = None,
    bias: Tensor | None = None, training: _bool = False, momentum: _float | None = 0.1, eps: _float = 1e-05,
    num_batches_tracked: Any = None,
) -> Tensor:
    """(input - mean) / sqrt(var + eps) * weight + bias for each channel (Ioffe and Szegedy, 2015)."""
    ...
def batch_norm_act(
    input: Tensor, running_mean: Tensor, running_var: Tensor, weight: Tensor | None = None,
    bias: Tensor | None = None, training: _bool = False, momentum: _float | None = 0.1, eps: _float = 1e-05,
    residual: Any = None, num_batches_tracked: Any = None,
) -> Tensor:
    """relu(batch_norm(input, ...) + residual) as one op: the result is written once."""
    ...
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1 (..., I), weight (O, I, J), input2 (..., J), bias (O,) -> (..., O): sums over i and j of x_i w_oij z_j."""
    ...
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None,
    reduce: Any = None, reduction: _str = 'mean',
) -> Tensor:
    """-(target log input + (1 - target) log(1 - input)), each logarithm at least -100; input in [0, 1]."""
    ...
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None,
    reduce: Any = None, reduction: _str = 'mean', pos_weight: Any = None,
) -> Tensor:
    """Binary cross entropy of sigmoid(input), right for any input; pos_weight multiplies the part of target."""
    ...
def celu(input: Tensor, alpha: Number = 1.0, inplace: _bool = False) -> Tensor:
    """max(x, 0) + min(0, alpha (exp(x / alpha) - 1)) (Barron 2017)."""
    ...
def celu_(input: Tensor, *args: Any, **options: Any) -> Tensor:
    """`celu`, in place."""
    ...
def channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """Takes channels in turn from each of `groups` runs of them: (N, g * c, ...) -> the same shape."""
    ...
def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] | _str = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1,
) -> Tensor:
    """Convolution along one dimension."""
    ...
def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] | _str = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1,
) -> Tensor:
    """Convolution over images."""
    ...
def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] | _str = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1,
) -> Tensor:
    """Convolution over volumes, as a sum of conv2d along depth."""
    ...
def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] | _str = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
) -> Tensor:
    """Transposed convolution along one dimension: the input gradient of conv1d as a layer."""
    ...
def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] | _str = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
) -> Tensor:
    """Transposed convolution over images: the input gradient of conv2d as a layer."""
    ...
def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] | _str = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
) -> Tensor:
    """Transposed convolution over volumes: the input gradient of conv3d as a layer."""
    ...
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0.0, size_average: _bool | None = None,
    reduce: Any = None, reduction: _str = 'mean',
) -> Tensor:
    """1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1; inputs (N, D) or (D,)."""
    ...
def cosine_similarity(x1: Tensor, x2: Tensor, dim: Any = 1, eps: _float = 1e-08) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along dim; the other dimensions broadcast."""
    ...
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None,
    ignore_index: Any = -100, reduce: Any = None, reduction: _str = 'mean', label_smoothing: _float = 0.0,
) -> Tensor:
    """Logits against classes or class probabilities: -sum over c of weight_c p_c log softmax(input)_c."""
    ...
def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: Any = 0,
    reduction: _str = 'mean', zero_infinity: _bool = False,
) -> Tensor:
    """Connectionist temporal classification: minus the log probability that a sequence of labels is read off."""
    ...
def dropout(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Zeroes each element with probability p and scales the rest by 1 / (1 - p); any shape, floating dtypes."""
    ...
def dropout1d(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Zeroes whole channels of (N, C, L) or (C, L) with probability p."""
    ...
def dropout2d(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Zeroes whole channels of (N, C, H, W) with probability p (3 dimensions are taken as (N, C, L), as in torch)."""
    ...
def dropout3d(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Zeroes whole channels of (N, C, D, H, W) with probability p."""
    ...
def elu(input: Tensor, alpha: Number = 1.0, inplace: _bool = False) -> Tensor:
    """x where x > 0, else alpha (exp(x) - 1) (Clevert et al. 2015)."""
    ...
def elu_(input: Tensor, *args: Any, **options: Any) -> Tensor:
    """`elu`, in place."""
    ...
def embedding(
    input: Tensor, weight: Tensor, padding_idx: Any = None, max_norm: Any = None, norm_type: _float = 2.0,
    scale_grad_by_freq: _bool = False, sparse: _bool = False,
) -> Tensor:
    """The rows of weight (rows, size) that the integers `input` name: y[..., :] = weight[input[...]]."""
    ...
def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Any = None, max_norm: Any = None, norm_type: Any = 2,
    scale_grad_by_freq: _bool = False, mode: _str = 'mean', sparse: _bool = False, per_sample_weights: Any = None,
    include_last_offset: _bool = False, padding_idx: Any = None,
) -> Tensor:
    """The sum, mean or maximum of the rows of weight (rows, size) that each bag of integers names."""
    ...
def feature_alpha_dropout(
    input: Tensor, p: _float = 0.5, training: _bool = False, inplace: _bool = False,
) -> Tensor:
    """alpha_dropout of whole channels."""
    ...
def fold(
    input: Tensor, output_size: Any, kernel_size: _int | Sequence[_int], dilation: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] | _str = 0, stride: _int | Sequence[_int] = 1,
) -> Tensor:
    """Columns summed into the images whose windows they are: (N, C * R * S, places), or without N, -> (N, C, *size)."""
    ...
def fractional_max_pool2d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: _bool = False,
) -> Any:
    """The largest value of windows whose steps are drawn, one draw per image, channel and dimension (Graham 2014)."""
    ...
def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: _bool = False,
) -> tuple[Tensor, Tensor]:
    """(fractional_max_pool2d, int64 indices of the largest elements in the flat image)."""
    ...
def fractional_max_pool3d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: _bool = False,
) -> Any:
    """fractional_max_pool2d of volumes (N, C, D, H, W) or (C, D, H, W)."""
    ...
def fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: _bool = False,
) -> tuple[Tensor, Tensor]:
    """(fractional_max_pool3d, int64 indices of the largest elements in the flat volume)."""
    ...
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: _bool = False, eps: _float = 1e-06, reduction: _str = 'mean',
) -> Tensor:
    """(log var + (input - target)^2 / var) / 2 with var at least eps; full adds log(2 pi) / 2."""
    ...
def gelu(input: Tensor, approximate: _str = 'none') -> Tensor:
    """x Phi(x), Phi the normal distribution's cdf; approximate="tanh" computes it by tanh (Hendrycks and Gimpel 2016)."""
    ...
def glu(input: Tensor, dim: _int | Sequence[_int] = -1) -> Tensor:
    """a sigmoid(b), where a and b are the halves of x along dim (Dauphin et al. 2016)."""
    ...
def grid_sample(
    input: Tensor, grid: Any, mode: _str = 'bilinear', padding_mode: _str = 'zeros', align_corners: Any = None,
) -> Tensor:
    """input (N, C, H, W) read at the places of grid (N, P, Q, 2), whose last dim is (x, y) in [-1, 1] -> (N, C, P, Q)."""
    ...
def group_norm(
    input: Tensor, num_groups: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05,
    *, out: Any = None,
) -> Tensor:
    """(input - mean) / sqrt(var + eps) * weight + bias over groups of channels of one sample (Wu and He, 2018)."""
    ...
def gumbel_softmax(
    logits: Tensor, tau: _float = 1, hard: _bool = False, eps: _float = 1e-10, dim: _int = -1,
) -> Tensor:
    """softmax((logits + g) / tau) along dim with g from the Gumbel distribution; `hard` gives a one-hot sample of it."""
    ...
def hardshrink(input: Tensor, lambd: _float = 0.5) -> Tensor:
    """0 where |x| <= lambd, else x."""
    ...
def hardsigmoid(input: Tensor, inplace: _bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6."""
    ...
def hardswish(input: Tensor, inplace: _bool = False) -> Tensor:
    """x min(max(x + 3, 0), 6) / 6 (Howard et al. 2019)."""
    ...
def hardtanh(input: Tensor, min_val: _float = -1.0, max_val: _float = 1.0, inplace: _bool = False) -> Tensor:
    """min(max(x, min_val), max_val)."""
    ...
def hardtanh_(input: Tensor, *args: Any, **options: Any) -> Tensor:
    """`hardtanh`, in place."""
    ...
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: _float = 1.0, size_average: _bool | None = None, reduce: Any = None,
    reduction: _str = 'mean',
) -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1."""
    ...
def huber_loss(
    input: Tensor, target: Tensor, reduction: _str = 'mean', delta: _float = 1.0, weight: Tensor | None = None,
) -> Tensor:
    """0.5 (input - target)^2 where |input - target| < delta, else delta (|input - target| - delta / 2)."""
    ...
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
    weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: _bool = True,
    momentum: _float | None = 0.1, eps: _float = 1e-05,
) -> Tensor:
    """Each channel of each sample by its own mean and variance (Ulyanov, Vedaldi and Lempitsky, 2016)."""
    ...
def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: _str = 'nearest', align_corners: Any = None,
    recompute_scale_factor: Any = None, antialias: _bool = False,
) -> Tensor:
    """input (N, C, *spatial) resized to `size`, or by scale_factor (sizes are rounded down)."""
    ...
def kl_div(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean',
    log_target: _bool = False,
) -> Tensor:
    """target (log target - input) for log probabilities input; "batchmean" divides the sum by the batch size."""
    ...
def l1_loss(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean',
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|, averaged, summed or as it is; shapes broadcast."""
    ...
def layer_norm(
    input: Tensor, normalized_shape: _int | Sequence[_int], weight: Tensor | None = None,
    bias: Tensor | None = None, eps: _float = 1e-05,
) -> Tensor:
    """(input - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions `normalized_shape`."""
    ...
def leaky_relu(input: Tensor, negative_slope: _float = 0.01, inplace: _bool = False) -> Tensor:
    """x where x > 0, else negative_slope * x."""
    ...
def leaky_relu_(input: Tensor, *args: Any, **options: Any) -> Tensor:
    """`leaky_relu`, in place."""
    ...
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Any = None) -> Tensor:
    """input @ weight.T + bias: input (..., K), weight (N, K) or (K,), bias (N,) or None -> (..., N) or (...)."""
    ...
def local_response_norm(
    input: Tensor, size: Any, alpha: Number = 0.0001, beta: Number = 0.75, k: _float = 1.0,
) -> Tensor:
    """input / (k + alpha * the mean of input^2 over `size` neighbouring channels) ** beta (Krizhevsky et al., 2012)."""
    ...
def log_softmax(
    input: Tensor, dim: _int | Sequence[_int] | None = None, dtype: DType | None = None, *, out: Any = None,
) -> Tensor:
    """x - log(sum(exp(x))) along `dim`: the logarithm of `softmax`, without underflow."""
    ...
def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), without overflow."""
    ...
def lp_pool1d(
    input: Tensor, norm_type: Any, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    ceil_mode: _bool = False,
) -> Tensor:
    """The p-norm of every window: (sum of x ** p) ** (1 / p). input (N, C, L) or (C, L) floating."""
    ...
def lp_pool2d(
    input: Tensor, norm_type: Any, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    ceil_mode: _bool = False,
) -> Tensor:
    """The p-norm of every window of an image (N, C, H, W) or (C, H, W): (sum of x ** p) ** (1 / p)."""
    ...
def lp_pool3d(
    input: Tensor, norm_type: Any, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    ceil_mode: _bool = False,
) -> Tensor:
    """The p-norm of every window of a volume (N, C, D, H, W) or (C, D, H, W): (sum of x ** p) ** (1 / p)."""
    ...
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0.0, size_average: _bool | None = None,
    reduce: Any = None, reduction: _str = 'mean',
) -> Tensor:
    """max(0, -target (input1 - input2) + margin), target 1 or -1."""
    ...
def max_pool1d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] | _str = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any:
    """The largest element of every window along the last dimension; with return_indices also where it stands."""
    ...
def max_pool1d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] | _str = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> tuple[Tensor, ...]:
    """max_pool1d that always gives (values, indices)."""
    ...
def max_pool2d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] | _str = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any:
    """The largest element of every window of an image; with return_indices also where it stands (flat in the image)."""
    ...
def max_pool2d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] | _str = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> tuple[Tensor, ...]:
    """max_pool2d that always gives (values, indices)."""
    ...
def max_pool3d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] | _str = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any:
    """The largest element of every window of a volume (N, C, D, H, W) or (C, D, H, W); otherwise as max_pool2d."""
    ...
def max_pool3d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] | _str = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> tuple[Tensor, ...]:
    """max_pool3d that always gives (values, indices)."""
    ...
def max_unpool1d(
    input: Tensor, indices: Any, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] | _str = 0, output_size: Any = None,
) -> Tensor:
    """Puts the values of max_pool1d back where its indices say, zeros elsewhere."""
    ...
def max_unpool2d(
    input: Tensor, indices: Any, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] | _str = 0, output_size: Any = None,
) -> Tensor:
    """Puts the values of max_pool2d, (N, C, P, Q) or (C, P, Q), back where its indices say; else as max_unpool1d."""
    ...
def max_unpool3d(
    input: Tensor, indices: Any, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] | _str = 0, output_size: Any = None,
) -> Tensor:
    """Puts the values of max_pool3d back where its indices say; otherwise as max_unpool1d."""
    ...
def mish(input: Tensor, inplace: _bool = False) -> Tensor:
    """x tanh(softplus(x)) (Misra 2019)."""
    ...
def mse_loss(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean',
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target)^2, averaged, summed or as it is; shapes broadcast."""
    ...
def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: _int, num_heads: _int,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None,
    add_zero_attn: _bool, dropout_p: _float, out_proj_weight: Tensor, out_proj_bias: Tensor | None,
    training: _bool = True, key_padding_mask: Tensor | None = None, need_weights: _bool = True,
    attn_mask: Tensor | None = None, use_separate_proj_weight: _bool = False, q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None, static_k: Tensor | None = None,
    static_v: Tensor | None = None, average_attn_weights: _bool = True, is_causal: _bool = False,
) -> Any:
    """Attention in `num_heads` subspaces: `concat(head_1 ... head_h) W_o`, `head_i = attention(q W_q, k W_k, v W_v)`."""
    ...
def multi_margin_loss(
    input: Tensor, target: Tensor, p: _float = 1, margin: _float = 1.0, weight: Tensor | None = None,
    size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean',
) -> Tensor:
    """The sum over the wrong classes of max(0, margin - input[target] + input)^p, over C; input (N, C) or (C,)."""
    ...
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean',
) -> Tensor:
    """The sum over right classes j and wrong ones i of max(0, 1 - input[j] + input[i]), over C; input (N, C) or (C,)."""
    ...
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None,
    reduce: Any = None, reduction: _str = 'mean',
) -> Tensor:
    """The mean over the classes (last dimension) of the binary cross entropy of sigmoid(input)."""
    ...
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None,
    ignore_index: Any = -100, reduce: Any = None, reduction: _str = 'mean',
) -> Tensor:
    """-weight[target] * input[target] of log probabilities input (N, C, d1 ...) or (C,) and classes (N, d1 ...) or ()."""
    ...
def normalize(
    input: Tensor, p: _float = 2.0, dim: _int | Sequence[_int] = 1, eps: _float = 1e-12, out: Any = None,
) -> Tensor:
    """input / max(its p-norm along dim, eps)."""
    ...
def one_hot(tensor: Tensor, num_classes: Any = -1) -> Tensor:
    """int64 of shape (*tensor.shape, num_classes): 1 at each class number, else 0; -1 means largest class + 1."""
    ...
def pad(input: Tensor, pad: Any, mode: _str = 'constant', value: Any = None) -> Tensor:
    """input with more elements around it: pad = (left, right) of the last dim, then of the one before it, and so on."""
    ...
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False,
) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension."""
    ...
def pdist(input: Tensor, p: _float = 2.0) -> Tensor:
    """The p-norm of the difference of every two rows i < j of input (N, M), row by row: (N (N - 1) / 2,)."""
    ...
def pixel_shuffle(input: Tensor, upscale_factor: Any) -> Tensor:
    """Channels become pixels: (..., C * r * r, H, W) -> (..., C, H * r, W * r) with r = upscale_factor."""
    ...
def pixel_unshuffle(input: Tensor, downscale_factor: Any) -> Tensor:
    """Pixels become channels: (..., C, H * r, W * r) -> (..., C * r * r, H, W) with r = downscale_factor."""
    ...
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: _bool = True, full: _bool = False, size_average: _bool | None = None,
    eps: _float = 1e-08, reduce: Any = None, reduction: _str = 'mean',
) -> Tensor:
    """exp(input) - target * input, or without log_input: input - target log(input + eps); full adds Stirling's term."""
    ...
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where x > 0, else weight * x; one weight, or one for each channel, x being (N, C, ...)."""
    ...
def relu(input: Tensor, inplace: _bool = False) -> Tensor:
    """max(x, 0)."""
    ...
def relu6(input: Tensor, inplace: _bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    ...
def relu_(input: Tensor, *args: Any, **options: Any) -> Tensor:
    """`relu`, in place."""
    ...
def rms_norm(
    input: Tensor, normalized_shape: _int | Sequence[_int], weight: Tensor | None = None, eps: Any = None,
) -> Tensor:
    """input / sqrt(mean(input^2) + eps) * weight over the trailing `normalized_shape` (Zhang and Sennrich, 2019)."""
    ...
def rrelu(
    input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False,
    inplace: _bool = False,
) -> Tensor:
    """x where x >= 0, else a x: a from U(lower, upper) for each element in training, else (lower + upper) / 2."""
    ...
def rrelu_(input: Tensor, *args: Any, **options: Any) -> Tensor:
    """`rrelu`, in place."""
    ...
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: _float = 0.0,
    is_causal: _bool = False, scale: _float | None = None, enable_gqa: _bool = False,
) -> Tensor:
    """`softmax(scale * query @ key^T + mask) @ value`, without ever holding the whole matrix of weights."""
    ...
def selu(input: Tensor, inplace: _bool = False) -> Tensor:
    """1.0507 elu(x, 1.6733) (Klambauer et al. 2017)."""
    ...
def selu_(input: Tensor, *args: Any, **options: Any) -> Tensor:
    """`selu`, in place."""
    ...
def sigmoid(input: Tensor, *, out: Any = None) -> Tensor:
    """1 / (1 + exp(-x))."""
    ...
def silu(input: Tensor, inplace: _bool = False) -> Tensor:
    """x sigmoid(x)."""
    ...
def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean',
    beta: Number = 1.0,
) -> Tensor:
    """0.5 (input - target)^2 / beta where |input - target| < beta, else |input - target| - beta / 2."""
    ...
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean',
) -> Tensor:
    """log(1 + exp(-target * input)), target 1 or -1."""
    ...
def softmax(
    input: Tensor, dim: _int | Sequence[_int] | None = None, dtype: DType | None = None, *, out: Any = None,
) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`."""
    ...
def softmin(input: Tensor, dim: _int | Sequence[_int] | None = None, dtype: DType | None = None) -> Tensor:
    """softmax of -x."""
    ...
def softplus(input: Tensor, beta: Number = 1.0, threshold: _float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta; x itself where beta x > threshold."""
    ...
def softshrink(input: Tensor, lambd: _float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, and 0 within."""
    ...
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    ...
def tanh(input: Tensor, *, out: Any = None) -> Tensor:
    """sinh(x) / cosh(x)."""
    ...
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    ...
def threshold(input: Tensor, threshold: Any, value: Tensor | Number, inplace: _bool = False) -> Tensor:
    """x where x > threshold, else value."""
    ...
def threshold_(input: Tensor, *args: Any, **options: Any) -> Tensor:
    """`threshold`, in place."""
    ...
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: _float = 1.0, p: _float = 2, eps: _float = 1e-06,
    swap: _bool = False, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean',
) -> Tensor:
    """max(0, |anchor - positive|_p - |anchor - negative|_p + margin) over the last dimension."""
    ...
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Any = None, margin: _float = 1.0,
    swap: _bool = False, reduction: _str = 'mean',
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin); swap: d(positive, negative) if that is less."""
    ...
def unfold(
    input: Tensor, kernel_size: _int | Sequence[_int], dilation: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] | _str = 0, stride: _int | Sequence[_int] = 1,
) -> Tensor:
    """The windows of images as columns: (N, C, H, W) or (C, H, W) -> (N, C * R * S, number of places)."""
    ...
def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: _str = 'nearest', align_corners: Any = None,
) -> Tensor:
    """interpolate under its older name."""
    ...
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate with mode bilinear and align_corners."""
    ...
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate with mode nearest."""
    ...
