"""zoo's functions. Written by scripts/write_stubs.py: do not edit."""
# pyright: basic, reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false
# pyright: reportOverlappingOverload=false, reportMissingModuleSource=false
from builtins import bool as _bool, float as _float, int as _int, str as _str
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, TypeAlias, overload

import numpy as np

from zoo.autograd.attached import Device, DType, Number, ValuesAndIndices
from zoo.autograd.random import Generator as Generator
from zoo.autograd.size import Size as Size
from zoo.autograd.tensor import Tensor as Tensor
from zoo.ops.device import device as device
from zoo.ops.memory_format import memory_format as memory_format

from numpy import dtype as dtype
from zoo import autograd as autograd
from zoo.autograd.mode import enable_grad as enable_grad
from zoo.autograd.mode import inference_mode as inference_mode
from zoo.autograd.mode import no_grad as no_grad
from zoo.autograd.mode import set_grad_enabled as set_grad_enabled
from zoo.ops.limits import finfo as finfo
from zoo.ops.limits import iinfo as iinfo
from zoo.ops.memory_format import channels_last as channels_last
from zoo.ops.memory_format import channels_last_3d as channels_last_3d
from zoo.ops.memory_format import contiguous_format as contiguous_format
from zoo.ops.memory_format import memory_format as memory_format
from zoo.ops.memory_format import preserve_format as preserve_format
from zoo.version import __version__ as __version__
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
bfloat16: np.dtype[Any]
bool: np.dtype[Any]
complex128: np.dtype[Any]
complex64: np.dtype[Any]
double: np.dtype[Any]
float: np.dtype[Any]
float16: np.dtype[Any]
float32: np.dtype[Any]
float64: np.dtype[Any]
half: np.dtype[Any]
int: np.dtype[Any]
int16: np.dtype[Any]
int32: np.dtype[Any]
int64: np.dtype[Any]
int8: np.dtype[Any]
long: np.dtype[Any]
short: np.dtype[Any]
uint16: np.dtype[Any]
uint32: np.dtype[Any]
uint64: np.dtype[Any]
uint8: np.dtype[Any]
e: _float
inf: _float
nan: _float
pi: _float
newaxis: None
from zoo.autograd.autocast import autocast as autocast
class BFloat16Tensor(Tensor): ...
class BoolTensor(Tensor): ...
class ByteTensor(Tensor): ...
class CharTensor(Tensor): ...
class DoubleTensor(Tensor): ...
class FloatTensor(Tensor): ...
class HalfTensor(Tensor): ...
class IntTensor(Tensor): ...
class LongTensor(Tensor): ...
class ShortTensor(Tensor): ...

def abs(input: Tensor, *, out: Any = None) -> Tensor:
    """|x|, with slope 0 at 0."""
    ...
def abs_(input: Tensor) -> Tensor:
    """In place: `abs`, with the result in this tensor's memory."""
    ...
def absolute(input: Tensor, *, out: Any = None) -> Tensor:
    """|x|, with slope 0 at 0."""
    ...
def acos(input: Tensor, *, out: Any = None) -> Tensor:
    """The inverse of cos, in [0, pi]."""
    ...
def acos_(input: Tensor) -> Tensor:
    """In place: `acos`, with the result in this tensor's memory."""
    ...
def acosh(input: Tensor, *, out: Any = None) -> Tensor:
    """The inverse of cosh, of x >= 1."""
    ...
def acosh_(input: Tensor) -> Tensor:
    """In place: `acosh`, with the result in this tensor's memory."""
    ...
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Means of output_size windows that cover the last dimension: window i spans floor(i L / P) to ceil((i + 1) L / P)."""
    ...
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: _bool = False) -> Any:
    """The largest elements of output_size windows that cover the last dimension evenly (see adaptive_avg_pool1d)."""
    ...
def add(input: Tensor, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
    """input + alpha * other, broadcast and promoted."""
    ...
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None,
) -> Tensor:
    """beta * input + alpha * the sum over the batch of batch1 @ batch2: input broadcasts to (M, N)."""
    ...
def addcdiv(input: Tensor, tensor1: Any, tensor2: Any, value: Tensor | Number = 1, *, out: Any = None) -> Tensor:
    """x + value tensor1 / tensor2."""
    ...
def addcmul(input: Tensor, tensor1: Any, tensor2: Any, *, value: Tensor | Number = 1, out: Any = None) -> Tensor:
    """input + value * tensor1 * tensor2, broadcast and promoted; of integers, value counts without its fraction."""
    ...
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None,
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2): input broadcasts to (M, N), mat1 (M, K), mat2 (K, N)."""
    ...
def addmv(input: Tensor, mat: Any, vec: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None) -> Tensor:
    """beta * input + alpha * (mat @ vec): input broadcasts to (M,), mat (M, K), vec (K,)."""
    ...
def addmv_(input: Tensor, mat: Any, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """In place: `addmv`, with the result in this tensor's memory."""
    ...
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None,
) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2): input broadcasts to (M, N)."""
    ...
def alias_copy(input: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """A copy."""
    ...
def all(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, out: Any = None,
) -> Tensor:
    """Are all elements over `dim` not 0? True over nothing. An empty list of dims reduces none."""
    ...
def allclose(
    input: Tensor, other: Tensor | Number, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False,
) -> _bool:
    """Whether `isclose` holds everywhere, as a Python bool."""
    ...
def amax(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, out: Any = None,
) -> Tensor:
    """The largest value over `dim`, nan if there is one. The gradient is shared evenly between equal values."""
    ...
def amin(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, out: Any = None,
) -> Tensor:
    """The smallest value over `dim`; see `amax`."""
    ...
def aminmax(
    input: Tensor, *, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, out: Any = None,
) -> Any:
    """(min, max) along one dim, or of all elements; gradients are shared evenly between equals."""
    ...
def angle(input: Tensor, *, out: Any = None) -> Tensor:
    """The angle of a real number in the complex plane: 0, or pi below 0; nan stays."""
    ...
def angle_(input: Tensor) -> Tensor:
    """In place: `angle`, with the result in this tensor's memory."""
    ...
def any(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, out: Any = None,
) -> Tensor:
    """Is any element over `dim` not 0? False over nothing. An empty list of dims reduces none."""
    ...
def arange(
    start: Any, end: Any = None, step: Any = 1, *, dtype: DType | None = None, device: Device | None = None,
    requires_grad: _bool = False, out: Any = None,
) -> Tensor:
    """start, start + step, ... below `end`; int64 if all are integers, else the default dtype."""
    ...
def arccos(input: Tensor, *, out: Any = None) -> Tensor:
    """The inverse of cos, in [0, pi]."""
    ...
def arccos_(input: Tensor) -> Tensor:
    """In place: `arccos`, with the result in this tensor's memory."""
    ...
def arccosh(input: Tensor, *, out: Any = None) -> Tensor:
    """The inverse of cosh, of x >= 1."""
    ...
def arccosh_(input: Tensor) -> Tensor:
    """In place: `arccosh`, with the result in this tensor's memory."""
    ...
def arcsin(input: Tensor, *, out: Any = None) -> Tensor:
    """The inverse of sin, in [-pi / 2, pi / 2]."""
    ...
def arcsin_(input: Tensor) -> Tensor:
    """In place: `arcsin`, with the result in this tensor's memory."""
    ...
def arcsinh(input: Tensor, *, out: Any = None) -> Tensor:
    """The inverse of sinh."""
    ...
def arcsinh_(input: Tensor) -> Tensor:
    """In place: `arcsinh`, with the result in this tensor's memory."""
    ...
def arctan(input: Tensor, *, out: Any = None) -> Tensor:
    """The inverse of tan, in (-pi / 2, pi / 2)."""
    ...
def arctan2(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """The angle of the point (b, a) in (-pi, pi]."""
    ...
def arctan_(input: Tensor) -> Tensor:
    """In place: `arctan`, with the result in this tensor's memory."""
    ...
def arctanh(input: Tensor, *, out: Any = None) -> Tensor:
    """The inverse of tanh, of |x| < 1."""
    ...
def arctanh_(input: Tensor) -> Tensor:
    """In place: `arctanh`, with the result in this tensor's memory."""
    ...
def are_deterministic_algorithms_enabled() -> _bool:
    """True: see use_deterministic_algorithms."""
    ...
def argmax(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, out: Any = None,
) -> Tensor:
    """The index (int64) of the first largest value along `dim`, of the first nan if there is one; in all of x if None."""
    ...
def argmin(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, out: Any = None,
) -> Tensor:
    """The index (int64) of the first smallest value along `dim`; see `argmax`."""
    ...
def argsort(
    input: Tensor, dim: _int | Sequence[_int] = -1, descending: _bool = False, stable: _bool = False,
) -> Tensor:
    """The indices that put the elements in order along `dim`."""
    ...
def argwhere(input: Tensor) -> Tensor:
    """`nonzero(input)`."""
    ...
def as_strided(input: Tensor, size: Any, stride: _int | Sequence[_int], storage_offset: Any = None) -> Tensor:
    """A view of input's memory with any sizes and strides (in elements), which may overlap; input is contiguous."""
    ...
def as_strided_copy(*args: Any, **options: Any) -> Tensor:
    """`as_strided` as a copy."""
    ...
def as_tensor(data: Any, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """Like `tensor`, but shares memory and history where it can (Tensors, ndarrays, right dtype and device)."""
    ...
def asarray(
    obj: Any, *, dtype: DType | None = None, device: Device | None = None, copy: _bool | None = None,
    requires_grad: _bool = False,
) -> Tensor:
    """as_tensor with torch.asarray's options."""
    ...
def asin(input: Tensor, *, out: Any = None) -> Tensor:
    """The inverse of sin, in [-pi / 2, pi / 2]."""
    ...
def asin_(input: Tensor) -> Tensor:
    """In place: `asin`, with the result in this tensor's memory."""
    ...
def asinh(input: Tensor, *, out: Any = None) -> Tensor:
    """The inverse of sinh."""
    ...
def asinh_(input: Tensor) -> Tensor:
    """In place: `asinh`, with the result in this tensor's memory."""
    ...
def atan(input: Tensor, *, out: Any = None) -> Tensor:
    """The inverse of tan, in (-pi / 2, pi / 2)."""
    ...
def atan2(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """The angle of the point (b, a) in (-pi, pi]."""
    ...
def atan_(input: Tensor) -> Tensor:
    """In place: `atan`, with the result in this tensor's memory."""
    ...
def atanh(input: Tensor, *, out: Any = None) -> Tensor:
    """The inverse of tanh, of |x| < 1."""
    ...
def atanh_(input: Tensor) -> Tensor:
    """In place: `atanh`, with the result in this tensor's memory."""
    ...
def atleast_1d(*tensors: Tensor) -> Any:
    """Each tensor with at least 1 dim."""
    ...
def atleast_2d(*tensors: Tensor) -> Any:
    """Each tensor with at least 2 dims; new ones come first."""
    ...
def atleast_3d(*tensors: Tensor) -> Any:
    """Each tensor with at least 3 dims: (n,) -> (1, n, 1), (m, n) -> (m, n, 1)."""
    ...
def avg_pool1d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] | _str = 0, ceil_mode: _bool = False, count_include_pad: _bool = True,
) -> Tensor:
    """The mean of every window along the last dimension."""
    ...
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None,
) -> Tensor:
    """beta * input + alpha * (batch1 @ batch2): input broadcasts to (B, M, N)."""
    ...
def bartlett_window(
    window_length: _int, periodic: _bool = True, *, dtype: Any = None, device: Any = None,
    requires_grad: _bool = False,
) -> Tensor:
    """1 - |2 t - 1| for t from 0 to 1: a triangle; see hann_window."""
    ...
def batch_norm(
    input: Tensor, running_mean: Tensor, running_var: Tensor, weight: Tensor | None = None,
    bias: Tensor | None = None, training: _bool = False, momentum: _float | None = 0.1, eps: _float = 1e-05,
    num_batches_tracked: Any = None,
) -> Tensor:
    """(input - mean) / sqrt(var + eps) * weight + bias for each channel (Ioffe and Szegedy, 2015)."""
    ...
def bernoulli(
    input: Tensor, p: _float | None = None, *, generator: Generator | None = None, out: Any = None,
) -> Tensor:
    """1 with probability `input` (or p), else 0; input's shape and dtype."""
    ...
def bincount(input: Tensor, weights: Any = None, minlength: Any = 0) -> Tensor:
    """How often each of the integers 0, 1, ... occurs in a 1-d tensor, or the sums of their weights."""
    ...
def bitwise_and(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a & b of integers or bools."""
    ...
def bitwise_left_shift(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a * 2^b; 0 for shifts that are negative or as wide as the dtype."""
    ...
def bitwise_not(input: Tensor, *, out: Any = None) -> Tensor:
    """~x of integers or bools."""
    ...
def bitwise_not_(input: Tensor) -> Tensor:
    """In place: `bitwise_not`, with the result in this tensor's memory."""
    ...
def bitwise_or(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a | b of integers or bools."""
    ...
def bitwise_right_shift(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a / 2^b rounded down, so that the sign is kept."""
    ...
def bitwise_xor(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a ^ b of integers or bools."""
    ...
def blackman_window(
    window_length: _int, periodic: _bool = True, *, dtype: Any = None, device: Any = None,
    requires_grad: _bool = False,
) -> Tensor:
    """0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t) for t from 0 to 1; see hann_window."""
    ...
def block_diag(*tensors: Tensor) -> Tensor:
    """The matrix with these matrices along its diagonal, zero elsewhere; numbers and vectors count as rows."""
    ...
def bmm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor:
    """(B, M, K) @ (B, K, N) -> (B, M, N). Raises ShapeError for anything else; see `matmul`."""
    ...
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that all `shapes` broadcast to. Raises ShapeError."""
    ...
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All tensors expanded to their common shape."""
    ...
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """input broadcast to `size`, without a copy."""
    ...
def bucketize(
    input: Tensor, boundaries: Any, *, out_int32: _bool = False, right: _bool = False, out: Any = None,
) -> Tensor:
    """The number of the bucket between sorted boundaries (n,) that each value lies in: 0 ... n."""
    ...
def can_cast(from_: Any, to: Any) -> _bool:
    """Whether torch's rules let a result of dtype `from_` be written into `to`."""
    ...
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element of each 1-d tensor, one row each."""
    ...
def cat(tensors: Sequence[Tensor], dim: _int | Sequence[_int] = 0, *, out: Any = None) -> Tensor:
    """The tensors one after the other along `dim`; all other sizes agree. Empty ones of shape (0,) are left out."""
    ...
def cdist(
    x1: Tensor, x2: Tensor, p: _float = 2.0, compute_mode: _str = 'use_mm_for_euclid_dist_if_necessary',
) -> Tensor:
    """The p-norm of every difference of rows: x1 (..., P, M), x2 (..., R, M) -> (..., P, R)."""
    ...
def ceil(input: Tensor, *, out: Any = None) -> Tensor:
    """The next integer above; its gradient is 0."""
    ...
def ceil_(input: Tensor) -> Tensor:
    """In place: `ceil`, with the result in this tensor's memory."""
    ...
def celu(input: Tensor, alpha: Number = 1.0, inplace: _bool = False) -> Tensor:
    """max(x, 0) + min(0, alpha (exp(x / alpha) - 1)) (Barron 2017)."""
    ...
def celu_(input: Tensor, alpha: Number = 1.0, inplace: _bool = False) -> Tensor:
    """In place: `celu`, with the result in this tensor's memory."""
    ...
def chain_matmul(*matrices: Any, out: Any = None) -> Tensor:
    """The product of one or more matrices in the cheapest order."""
    ...
def channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """Takes channels in turn from each of `groups` runs of them: (N, g * c, ...) -> the same shape."""
    ...
def cholesky(A: Any, upper: _bool = False, out: Any = None) -> Tensor:
    """The lower triangular L with L L' = A, of symmetric positive definite (..., n, n); upper gives L'."""
    ...
def cholesky_inverse(L: Any, upper: _bool = False, *, out: Any = None) -> Tensor:
    """The inverse of A = L L' (upper: L' L), given by its Cholesky factor."""
    ...
def cholesky_solve(B: Any, L: Any, upper: _bool = False, *, out: Any = None) -> Tensor:
    """X with A X = B, A = L L' (upper: L' L) given by its Cholesky factor."""
    ...
def chunk(input: Tensor, chunks: Any, dim: _int | Sequence[_int] = 0) -> tuple[Tensor, ...]:
    """At most `chunks` views of equal size (the last may be shorter) along `dim`."""
    ...
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    """Elements below `min` become min, those above `max` become max; a nan stays. Either bound may be None."""
    ...
def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In place: `clamp`, with the result in this tensor's memory."""
    ...
def clamp_max(input: Tensor, max: Any, *, out: Any = None) -> Tensor:
    """Elements above max become max."""
    ...
def clamp_max_(input: Tensor, max: Any) -> Tensor:
    """In place: `clamp_max`, with the result in this tensor's memory."""
    ...
def clamp_min(input: Tensor, min: Any, *, out: Any = None) -> Tensor:
    """Elements below min become min."""
    ...
def clamp_min_(input: Tensor, min: Any) -> Tensor:
    """In place: `clamp_min`, with the result in this tensor's memory."""
    ...
def clip(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    """Elements below `min` become min, those above `max` become max; a nan stays. Either bound may be None."""
    ...
def clip_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In place: `clip`, with the result in this tensor's memory."""
    ...
def clone(input: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """A copy."""
    ...
def column_stack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """The tensors side by side, those of one dim as columns."""
    ...
def combinations(input: Tensor, r: Any = 2, with_replacement: _bool = False) -> Tensor:
    """All ways to choose r elements of a 1-d tensor, in order, one row each."""
    ...
def compile(model: Any = None, **options: Any) -> Any:
    """Gives the model or function back as it is; also a decorator. Taken from scripts that call torch.compile."""
    ...
def concat(tensors: Sequence[Tensor], dim: _int | Sequence[_int] = 0, *, out: Any = None) -> Tensor:
    """The tensors one after the other along `dim`; all other sizes agree. Empty ones of shape (0,) are left out."""
    ...
def concatenate(tensors: Sequence[Tensor], dim: _int | Sequence[_int] = 0, *, out: Any = None) -> Tensor:
    """The tensors one after the other along `dim`; all other sizes agree. Empty ones of shape (0,) are left out."""
    ...
def conj(input: Tensor) -> Tensor:
    """The complex conjugate; of a real tensor, itself."""
    ...
def conj_physical(input: Tensor, *, out: Any = None) -> Tensor:
    """The complex conjugate; of a real tensor, itself."""
    ...
def constant_pad_nd(input: Tensor, pad: Any, value: Tensor | Number = 0) -> Tensor:
    """`pad` with mode "constant"."""
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
def copysign(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """|a| with the sign of b."""
    ...
def corrcoef(input: Tensor) -> Tensor:
    """Pearson's correlations of variables (rows) over observations (columns), in [-1, 1]: (n, m) -> (n, n)."""
    ...
def cos(input: Tensor, *, out: Any = None) -> Tensor:
    """The cosine of x in radians."""
    ...
def cos_(input: Tensor) -> Tensor:
    """In place: `cos`, with the result in this tensor's memory."""
    ...
def cosh(input: Tensor, *, out: Any = None) -> Tensor:
    """(e^x + e^-x) / 2."""
    ...
def cosh_(input: Tensor) -> Tensor:
    """In place: `cosh`, with the result in this tensor's memory."""
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
def count_nonzero(input: Tensor, dim: _int | Sequence[_int] | None = None) -> Tensor:
    """How many elements over `dim` are not 0, as int64."""
    ...
def cov(input: Tensor, *, correction: Any = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """The covariances of variables (rows) over observations (columns): (n, m) -> (n, n), (m,) -> ()."""
    ...
def cross(input: Tensor, other: Tensor | Number, dim: Any = None, *, out: Any = None) -> Tensor:
    """The vector product along `dim`, by default the first dimension of size 3."""
    ...
def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: Any = 0,
    reduction: _str = 'mean', zero_infinity: _bool = False,
) -> Tensor:
    """Connectionist temporal classification: minus the log probability that a sequence of labels is read off."""
    ...
def cummax(input: Tensor, dim: _int | Sequence[_int], *, out: Any = None) -> ValuesAndIndices:
    """The largest value so far along `dim`, and the index of the last one equal to it: (values, indices)."""
    ...
def cummin(input: Tensor, dim: _int | Sequence[_int], *, out: Any = None) -> ValuesAndIndices:
    """The smallest value so far along `dim`, and the index of the last one equal to it: (values, indices)."""
    ...
def cumprod(input: Tensor, dim: _int | Sequence[_int], *, dtype: DType | None = None, out: Any = None) -> Tensor:
    """The running product along `dim`: y[i] = x[0] * ... * x[i]."""
    ...
def cumsum(input: Tensor, dim: _int | Sequence[_int], *, dtype: DType | None = None, out: Any = None) -> Tensor:
    """The running sum along `dim`: y[i] = x[0] + ... + x[i]."""
    ...
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: _int | Sequence[_int] = -1) -> Tensor:
    """The integral along `dim` up to each sample but the first; see `trapezoid`."""
    ...
def deg2rad(input: Tensor, *, out: Any = None) -> Tensor:
    """Degrees to radians: x pi / 180."""
    ...
def deg2rad_(input: Tensor) -> Tensor:
    """In place: `deg2rad`, with the result in this tensor's memory."""
    ...
def det(A: Any, *, out: Any = None) -> Tensor:
    """The determinants of square matrices (..., n, n) -> (...)."""
    ...
def detach(self: Tensor) -> Tensor:
    """The same memory without history. A write to either is seen by the other's version check."""
    ...
def detach_(self: Tensor) -> Tensor:
    """Forgets its own history."""
    ...
def diag(input: Tensor, diagonal: Any = 0, *, out: Any = None) -> Tensor:
    """The diagonal of a matrix, or the matrix with this diagonal."""
    ...
def diag_embed(input: Tensor, offset: Any = 0, dim1: Any = -2, dim2: Any = -1) -> Tensor:
    """The last dim of input as the diagonal of two new dims; zero elsewhere."""
    ...
def diagflat(input: Tensor, offset: Any = 0) -> Tensor:
    """The matrix whose diagonal are all elements of input."""
    ...
def diagonal(input: Tensor, offset: Any = 0, dim1: Any = 0, dim2: Any = 1) -> Tensor:
    """The diagonal of two dims as the last dim of a view; offset > 0 lies above the main diagonal."""
    ...
def diagonal_copy(*args: Any, **options: Any) -> Tensor:
    """`diagonal` as a copy."""
    ...
def diagonal_scatter(input: Tensor, src: Any, offset: Any = 0, dim1: Any = 0, dim2: Any = 1) -> Tensor:
    """input with src in place of its diagonal."""
    ...
def diff(
    input: Tensor, n: Any = 1, dim: _int | Sequence[_int] = -1, prepend: Any = None, append: Any = None, *,
    out: Any = None,
) -> Tensor:
    """The n-th differences of neighbours along `dim`, after joining prepend and append to it."""
    ...
def digamma(input: Tensor, *, out: Any = None) -> Tensor:
    """The derivative of lgamma."""
    ...
def digamma_(input: Tensor) -> Tensor:
    """In place: `digamma`, with the result in this tensor's memory."""
    ...
def dist(input: Tensor, other: Tensor | Number, p: _float = 2) -> Tensor:
    """The p-norm of input - other."""
    ...
def div(input: Tensor, other: Tensor | Number, *, rounding_mode: Any = None, out: Any = None) -> Tensor:
    """input / other; rounding_mode "trunc" rounds towards 0, "floor" down, and both keep integers integers."""
    ...
def divide(input: Tensor, other: Tensor | Number, *, rounding_mode: Any = None, out: Any = None) -> Tensor:
    """input / other; rounding_mode "trunc" rounds towards 0, "floor" down, and both keep integers integers."""
    ...
def dot(input: Tensor, tensor: Tensor, *, out: Any = None) -> Tensor:
    """(K,) @ (K,) -> (). Raises ShapeError for anything else."""
    ...
def dsplit(
    input: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None,
) -> tuple[Tensor, ...]:
    """tensor_split along dim 2; sections divide its size."""
    ...
def dstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """The tensors, with at least 3 dims, along dim 2."""
    ...
def einsum(*args: Any) -> Tensor:
    """Sums of products by Einstein's notation: einsum("bij,bjk->bik", a, b), or einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    ...
def empty(
    *size: Any, dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False,
    out: Any = None,
) -> Tensor:
    """A tensor of the given sizes, of undefined contents."""
    ...
def empty_like(
    input: Tensor, *, dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """A tensor of input's shape, dtype and device, of undefined contents."""
    ...
def empty_permuted(
    size: Any, physical_layout: Any, *, dtype: DType | None = None, device: Device | None = None,
    requires_grad: _bool = False,
) -> Tensor:
    """A tensor of `size` of undefined contents whose dims lie in memory in the order physical_layout."""
    ...
def eq(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a == b."""
    ...
def equal(input: Tensor, other: Tensor | Number) -> _bool:
    """Have both the same shape and elements? A Python bool."""
    ...
def erf(input: Tensor, *, out: Any = None) -> Tensor:
    """2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    ...
def erf_(input: Tensor) -> Tensor:
    """In place: `erf`, with the result in this tensor's memory."""
    ...
def erfc(input: Tensor, *, out: Any = None) -> Tensor:
    """1 - erf(x), accurate for large x."""
    ...
def erfc_(input: Tensor) -> Tensor:
    """In place: `erfc`, with the result in this tensor's memory."""
    ...
def erfinv(input: Tensor, *, out: Any = None) -> Tensor:
    """The x whose erf(x) is given."""
    ...
def erfinv_(input: Tensor) -> Tensor:
    """In place: `erfinv`, with the result in this tensor's memory."""
    ...
def exp(input: Tensor, *, out: Any = None) -> Tensor:
    """e^x."""
    ...
def exp2(input: Tensor, *, out: Any = None) -> Tensor:
    """2^x."""
    ...
def exp2_(input: Tensor) -> Tensor:
    """In place: `exp2`, with the result in this tensor's memory."""
    ...
def exp_(input: Tensor) -> Tensor:
    """In place: `exp`, with the result in this tensor's memory."""
    ...
def expand_copy(*args: Any, **options: Any) -> Tensor:
    """`expand` as a copy."""
    ...
def expm1(input: Tensor, *, out: Any = None) -> Tensor:
    """e^x - 1, accurate near 0."""
    ...
def expm1_(input: Tensor) -> Tensor:
    """In place: `expm1`, with the result in this tensor's memory."""
    ...
def eye(
    n: _int, m: _int | None = None, *, dtype: DType | None = None, device: Device | None = None,
    requires_grad: _bool = False, out: Any = None,
) -> Tensor:
    """An (n, m) tensor with ones on the diagonal."""
    ...
def fill(input: Tensor, value: Tensor | Number) -> Tensor:
    """A tensor like input with `value`, a number or a 0-d tensor, everywhere."""
    ...
def fill_(x: Tensor, value: Any) -> Tensor:
    """Sets every element to `value` (a number or a 0-d tensor)."""
    ...
def fix(input: Tensor, *, out: Any = None) -> Tensor:
    """Without what is behind the point; its gradient is 0."""
    ...
def fix_(input: Tensor) -> Tensor:
    """In place: `fix`, with the result in this tensor's memory."""
    ...
def flatten(input: Tensor, start_dim: Any = 0, end_dim: Any = -1) -> Tensor:
    """Dims start_dim to end_dim as one."""
    ...
def flip(input: Tensor, *dims_: Any, dims: Any = None) -> Tensor:
    """A copy with the elements along `dims` in reverse order."""
    ...
def fliplr(input: Tensor) -> Tensor:
    """The columns (dim 1) in reverse order."""
    ...
def flipud(input: Tensor) -> Tensor:
    """The rows (dim 0) in reverse order."""
    ...
def float_power(input: Tensor, exponent: Any, *, out: Any = None) -> Tensor:
    """input to the power of exponent, in float64."""
    ...
def floor(input: Tensor, *, out: Any = None) -> Tensor:
    """The next integer below; its gradient is 0."""
    ...
def floor_(input: Tensor) -> Tensor:
    """In place: `floor`, with the result in this tensor's memory."""
    ...
def floor_divide(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a / b rounded down; integers stay integers. Raises ArgumentError for an integer divided by 0."""
    ...
def fmax(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """The larger of a and b; a number rather than a nan. The gradient of a tie goes to a."""
    ...
def fmin(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """The smaller of a and b; a number rather than a nan. The gradient of a tie goes to a."""
    ...
def fmod(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a - b trunc(a / b), with the sign of a. Raises ArgumentError for an integer divided by 0."""
    ...
def frac(input: Tensor, *, out: Any = None) -> Tensor:
    """x - trunc(x)."""
    ...
def frac_(input: Tensor) -> Tensor:
    """In place: `frac`, with the result in this tensor's memory."""
    ...
def frexp(input: Tensor, *, out: Any = None) -> Any:
    """(mantissa, exponent) with input = mantissa * 2^exponent, 0.5 <= |mantissa| < 1, exponent int32; (0, 0) for 0."""
    ...
def from_dlpack(source: Any) -> Tensor:
    """A tensor on the memory of any object with `__dlpack__`, without a copy."""
    ...
def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor on the memory of `array`: a write to one is seen in the other."""
    ...
def frombuffer(
    buffer: Any, *, dtype: DType, count: _int = -1, offset: _int = 0, requires_grad: _bool = False,
) -> Tensor:
    """A 1-d tensor on the memory of a bytes-like object: `count` elements (all) from byte `offset` on."""
    ...
def full(
    size: Any, fill_value: Number, *, dtype: DType | None = None, device: Device | None = None,
    requires_grad: _bool = False, out: Any = None,
) -> Tensor:
    """A tensor of `size` filled with `fill_value`, whose kind gives the dtype."""
    ...
def full_like(
    input: Tensor, fill_value: Number, *, dtype: DType | None = None, device: Device | None = None,
    requires_grad: _bool = False, memory_format: memory_format | None = None,
) -> Tensor:
    """A tensor of input's shape, dtype and device filled with `fill_value`."""
    ...
def gather(
    input: Tensor, dim: _int | Sequence[_int], index: Any, *, sparse_grad: _bool = False, out: Any = None,
) -> Tensor:
    """y[i][j] = input[i][index[i][j]] for dim 1: one element along `dim` for each element of index."""
    ...
def gcd(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """The greatest common divisor of integers, elementwise; gcd(0, 0) = 0."""
    ...
def gcd_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In place: `gcd`, with the result in this tensor's memory."""
    ...
def ge(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a >= b."""
    ...
def geqrf(input: Tensor, *, out: Any = None) -> tuple[Tensor, ...]:
    """(a, tau) of matrices (..., m, n): R in a's upper triangle, below it the reflections for householder_product."""
    ...
def ger(input: Tensor, vec2: Tensor, *, out: Any = None) -> Tensor:
    """Another name of `outer`."""
    ...
def get_autocast_dtype(device_type: _str) -> np.dtype[Any]:
    """The dtype of matrix products inside `autocast`: the current one, or the default."""
    ...
def get_default_device() -> device:
    ...
def get_default_dtype() -> np.dtype[Any]:
    ...
def get_device(self: Tensor) -> _int:
    """The number of this tensor's GPU; -1 on the CPU."""
    ...
def get_float32_matmul_precision() -> _str:
    """What `set_float32_matmul_precision` chose last; "highest" at the start."""
    ...
def get_num_threads() -> _int:
    """The number of threads that an op may use; 1 where NumPy's BLAS is not OpenBLAS."""
    ...
def get_rng_state() -> Tensor:
    """The default generator's state."""
    ...
def gradient(
    input: Tensor, *, spacing: Any = None, dim: _int | Sequence[_int] | None = None, edge_order: Any = 1,
) -> list[Tensor]:
    """The derivative of samples along each of `dim` (default: all), by central differences, as a list of tensors."""
    ...
def greater(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a > b."""
    ...
def greater_equal(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a >= b."""
    ...
def group_norm(
    input: Tensor, num_groups: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05,
    *, out: Any = None,
) -> Tensor:
    """(input - mean) / sqrt(var + eps) * weight + bias over groups of channels of one sample (Wu and He, 2018)."""
    ...
def gru_cell(input: Tensor, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    """One step of a gated recurrent unit (Cho et al., 2014): h = (1 - z) n + z h."""
    ...
def gt(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a > b."""
    ...
def hamming_window(
    window_length: _int, periodic: _bool = True, alpha: _float = 0.54, beta: _float = 0.46, *, dtype: Any = None,
    device: Any = None, requires_grad: _bool = False,
) -> Tensor:
    """alpha - beta cos(2 pi t) for t from 0 to 1; see hann_window."""
    ...
def hann_window(
    window_length: _int, periodic: _bool = True, *, dtype: Any = None, device: Any = None,
    requires_grad: _bool = False,
) -> Tensor:
    """(1 - cos(2 pi t)) / 2 for t from 0 to 1: the window of short-time Fourier transforms."""
    ...
def hardshrink(input: Tensor, lambd: _float = 0.5) -> Tensor:
    """0 where |x| <= lambd, else x."""
    ...
def heaviside(input: Tensor, values: Any, *, out: Any = None) -> Tensor:
    """0 where input < 0, 1 where input > 0, and `values` at 0."""
    ...
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: _float = 1.0, size_average: _bool | None = None, reduce: Any = None,
    reduction: _str = 'mean',
) -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1."""
    ...
def histc(input: Tensor, bins: Any = 100, min: Any = 0, max: Any = 0, *, out: Any = None) -> Tensor:
    """How many elements fall into each of `bins` equal parts of [min, max]; both 0 stands for the range of the values."""
    ...
def histogram(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: _bool = False,
    out: Any = None,
) -> Any:
    """(hist, bin_edges): how many elements, or how much of `weight`, fall into each bin."""
    ...
def hsplit(
    input: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None,
) -> tuple[Tensor, ...]:
    """tensor_split along dim 0 or 1; sections divide its size."""
    ...
def hstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """The tensors side by side: along dim 1, or dim 0 if they have one."""
    ...
def hypot(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """sqrt(a^2 + b^2), without overflow."""
    ...
def index_add(
    input: Tensor, dim: _int | Sequence[_int], index: Any, source: Any, *, alpha: Number = 1, out: Any = None,
) -> Tensor:
    """input with alpha * source added to the slices along `dim` that index names; deterministic."""
    ...
def index_copy(input: Tensor, dim: _int | Sequence[_int], index: Any, source: Any, *, out: Any = None) -> Tensor:
    """input with source in place of the slices along `dim` that index names."""
    ...
def index_fill(input: Tensor, dim: _int | Sequence[_int], index: Any, value: Tensor | Number) -> Tensor:
    """input with value, a number or 0-d tensor, in the slices along `dim` that index names."""
    ...
def index_put(input: Tensor, indices: Any, values: Any, accumulate: _bool = False) -> Tensor:
    """input with values, broadcast, written to (or added at) input[indices]: a tuple of integer and bool tensors."""
    ...
def index_reduce(
    input: Tensor, dim: _int | Sequence[_int], index: Any, source: Any, reduce: Any, *, include_self: _bool = True,
    out: Any = None,
) -> Tensor:
    """input combined with source in the slices along `dim` that index names: reduce = prod, mean, amax or amin."""
    ...
def index_select(input: Tensor, dim: _int | Sequence[_int], index: Any, *, out: Any = None) -> Tensor:
    """The slices of input along `dim` that the 1-d integer index names."""
    ...
def initial_seed() -> _int:
    """The seed of the default generator."""
    ...
def inner(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """Sums of products over the last dimension of both: (*A, K), (*B, K) -> (*A, *B); a 0-d array multiplies."""
    ...
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
    weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: _bool = True,
    momentum: _float | None = 0.1, eps: _float = 1e-05,
) -> Tensor:
    """Each channel of each sample by its own mean and variance (Ulyanov, Vedaldi and Lempitsky, 2016)."""
    ...
def inverse(A: Any, *, out: Any = None) -> Tensor:
    """The inverse of square matrices (..., n, n)."""
    ...
def is_autocast_enabled(device_type: _str = 'cuda') -> _bool:
    """Whether this thread is inside `autocast` for the device type."""
    ...
def is_complex(input: Tensor) -> _bool:
    """Whether input's dtype is a complex one."""
    ...
def is_floating_point(input: Tensor) -> _bool:
    """Whether input's dtype is a floating one."""
    ...
def is_grad_enabled() -> _bool:
    """Whether operations are being recorded in this thread."""
    ...
def is_inference(self: Tensor) -> _bool:
    ...
def is_inference_mode_enabled() -> _bool:
    """Whether this thread is inside `inference_mode`."""
    ...
def is_nonzero(input: Tensor) -> _bool:
    """Is the one element of this tensor not 0? Raises for more elements."""
    ...
def is_same_size(self: Tensor, other: Tensor) -> _bool:
    """Have both the same shape?"""
    ...
def is_signed(input: Tensor) -> _bool:
    """Can this dtype hold negative numbers?"""
    ...
def is_tensor(obj: Any) -> _bool:
    """Whether obj is a Tensor."""
    ...
def isclose(
    input: Tensor, other: Tensor | Number, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False,
) -> Tensor:
    """|input - other| <= atol + rtol |other|, elementwise; infinities are close to themselves."""
    ...
def isfinite(input: Tensor, *, out: Any = None) -> Tensor:
    """Whether x is neither nan nor infinite."""
    ...
def isfinite_(input: Tensor) -> Tensor:
    """In place: `isfinite`, with the result in this tensor's memory."""
    ...
def isin(elements: Any, test_elements: Any, *, assume_unique: _bool = False, invert: _bool = False) -> Tensor:
    """Which elements are among test_elements: bool of the shape of elements."""
    ...
def isinf(input: Tensor, *, out: Any = None) -> Tensor:
    """Whether x is inf or -inf."""
    ...
def isinf_(input: Tensor) -> Tensor:
    """In place: `isinf`, with the result in this tensor's memory."""
    ...
def isnan(input: Tensor, *, out: Any = None) -> Tensor:
    """Whether x is nan."""
    ...
def isnan_(input: Tensor) -> Tensor:
    """In place: `isnan`, with the result in this tensor's memory."""
    ...
def isneginf(input: Tensor, *, out: Any = None) -> Tensor:
    """Is each element -inf?"""
    ...
def isposinf(input: Tensor, *, out: Any = None) -> Tensor:
    """Is each element +inf?"""
    ...
def isreal(input: Tensor) -> Tensor:
    """Is each element real? True for every dtype but complex ones."""
    ...
def kaiser_window(
    window_length: _int, periodic: _bool = True, beta: _float = 12.0, *, dtype: Any = None, device: Any = None,
    requires_grad: _bool = False,
) -> Tensor:
    """I0(beta sqrt(1 - (2 t - 1)^2)) / I0(beta) for t from 0 to 1, I0 Bessel's function; see hann_window."""
    ...
def kl_div(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean',
    log_target: _bool = False,
) -> Tensor:
    """target (log target - input) for log probabilities input; "batchmean" divides the sum by the batch size."""
    ...
def kron(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """Kronecker product: every element of input times the whole of other, side by side."""
    ...
def kthvalue(
    input: Tensor, k: Any, dim: _int | Sequence[_int] = -1, keepdim: _bool = False, *, out: Any = None,
) -> ValuesAndIndices:
    """The k-th smallest element along `dim` (from 1) and its index."""
    ...
def layer_norm(
    input: Tensor, normalized_shape: _int | Sequence[_int], weight: Tensor | None = None,
    bias: Tensor | None = None, eps: _float = 1e-05,
) -> Tensor:
    """(input - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions `normalized_shape`."""
    ...
def lcm(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """The least common multiple of integers, elementwise; 0 where one of them is 0."""
    ...
def lcm_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In place: `lcm`, with the result in this tensor's memory."""
    ...
def ldexp(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """input * 2^other."""
    ...
def ldexp_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In place: `ldexp`, with the result in this tensor's memory."""
    ...
def le(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a <= b."""
    ...
def lerp(input: Tensor, end: Any, weight: Tensor, *, out: Any = None) -> Tensor:
    """a + weight (end - a), exact at both ends."""
    ...
def less(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a < b."""
    ...
def less_equal(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a <= b."""
    ...
def lgamma(input: Tensor, *, out: Any = None) -> Tensor:
    """log |gamma(x)|."""
    ...
def lgamma_(input: Tensor) -> Tensor:
    """In place: `lgamma`, with the result in this tensor's memory."""
    ...
def linspace(
    start: Any, end: Any, steps: _int, *, dtype: DType | None = None, device: Device | None = None,
    requires_grad: _bool = False, out: Any = None,
) -> Tensor:
    """`steps` evenly spaced values from start to end, both included."""
    ...
def load(f: Any, map_location: Any = None, *, weights_only: _bool = True, mmap: _bool = False) -> Any:
    """Reads what zoo.save or torch.save wrote, any safetensors file, or an .npz file. Never runs code."""
    ...
def log(input: Tensor, *, out: Any = None) -> Tensor:
    """The natural logarithm."""
    ...
def log10(input: Tensor, *, out: Any = None) -> Tensor:
    """The logarithm to base 10."""
    ...
def log10_(input: Tensor) -> Tensor:
    """In place: `log10`, with the result in this tensor's memory."""
    ...
def log1p(input: Tensor, *, out: Any = None) -> Tensor:
    """log(1 + x), accurate near 0."""
    ...
def log1p_(input: Tensor) -> Tensor:
    """In place: `log1p`, with the result in this tensor's memory."""
    ...
def log2(input: Tensor, *, out: Any = None) -> Tensor:
    """The logarithm to base 2."""
    ...
def log2_(input: Tensor) -> Tensor:
    """In place: `log2`, with the result in this tensor's memory."""
    ...
def log_(input: Tensor) -> Tensor:
    """In place: `log`, with the result in this tensor's memory."""
    ...
def log_softmax(
    input: Tensor, dim: _int | Sequence[_int] | None = None, dtype: DType | None = None, *, out: Any = None,
) -> Tensor:
    """x - log(sum(exp(x))) along `dim`: the logarithm of `softmax`, without underflow."""
    ...
def logaddexp(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """log(exp(a) + exp(b)), without overflow."""
    ...
def logaddexp2(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """log2(2^a + 2^b), without overflow."""
    ...
def logcumsumexp(input: Tensor, dim: _int | Sequence[_int], *, out: Any = None) -> Tensor:
    """log(exp(x[0]) + ... + exp(x[i])) along `dim`, without overflow."""
    ...
def logdet(input: Tensor) -> Tensor:
    """The logarithms of the determinants of square matrices; nan where one is negative, -inf where it is 0."""
    ...
def logical_and(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a and b as truth values."""
    ...
def logical_not(input: Tensor, *, out: Any = None) -> Tensor:
    """Whether x is 0 or False."""
    ...
def logical_not_(input: Tensor) -> Tensor:
    """In place: `logical_not`, with the result in this tensor's memory."""
    ...
def logical_or(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a or b as truth values."""
    ...
def logical_xor(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """Whether one of a and b is true, but not both."""
    ...
def logit(input: Tensor, eps: Any = None, *, out: Any = None) -> Tensor:
    """log(x / (1 - x)), of x first moved into [eps, 1 - eps] where eps is given."""
    ...
def logit_(input: Tensor, eps: Any = None) -> Tensor:
    """In place: `logit`, with the result in this tensor's memory."""
    ...
def logspace(
    start: Any, end: Any, steps: _int, base: _float = 10.0, *, dtype: DType | None = None,
    device: Device | None = None, requires_grad: _bool = False,
) -> Tensor:
    """base ** linspace(start, end, steps)."""
    ...
def logsumexp(input: Tensor, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: Any = None) -> Tensor:
    """log(sum(exp(x))) over `dim` (int or list), without overflow."""
    ...
def lstm_cell(
    input: Tensor, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None,
) -> tuple[Tensor, ...]:
    """One step of an LSTM (Hochreiter and Schmidhuber, 1997): c = f c + i g, h = o tanh(c)."""
    ...
def lt(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a < b."""
    ...
def manual_seed(seed: _int) -> Generator:
    """Seeds the default generator: the same numbers follow, on the CPU and on every GPU."""
    ...
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0.0, size_average: _bool | None = None,
    reduce: Any = None, reduction: _str = 'mean',
) -> Tensor:
    """max(0, -target (input1 - input2) + margin), target 1 or -1."""
    ...
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    """input with value, a number or 0-d tensor, where mask is true."""
    ...
def masked_scatter(input: Tensor, mask: Tensor, source: Any) -> Tensor:
    """input with the elements of source, one after the other, where mask is true."""
    ...
def masked_select(input: Tensor, mask: Tensor, *, out: Any = None) -> Tensor:
    """The elements of input where mask is true, as 1-d; the two are broadcast."""
    ...
def matmul(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """Matrix product over the last two dimensions, broadcast over the others; 1-d: input is a row, other a column."""
    ...
def matrix_exp(A: Any, *, out: Any = None) -> Tensor:
    """The exponential 1 + A + A^2 / 2 + A^3 / 6 ... of square matrices (..., n, n)."""
    ...
def matrix_power(A: Any, n: Any, *, out: Any = None) -> Tensor:
    """The n-th power of square matrices by repeated squaring; the inverse's for n < 0."""
    ...
@overload
def max(input: Tensor, *, out: Any = None) -> Tensor:
    """The largest element; with `dim` the largest values along it and their (first) indices; of two tensors `maximum`."""
    ...
@overload
def max(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> ValuesAndIndices:
    """The largest element; with `dim` the largest values along it and their (first) indices; of two tensors `maximum`."""
    ...
@overload
def max(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The largest element; with `dim` the largest values along it and their (first) indices; of two tensors `maximum`."""
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
def max_pool3d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] | _str = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any:
    """The largest element of every window of a volume (N, C, D, H, W) or (C, D, H, W); otherwise as max_pool2d."""
    ...
def maximum(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """The larger of a and b; nan if one is. A tie halves the gradient."""
    ...
def mean(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, dtype: DType | None = None,
    out: Any = None,
) -> Tensor:
    """The mean over `dim` (int, list, or None for all): the sum divided by the number of elements."""
    ...
@overload
def median(input: Tensor) -> Tensor:
    """The (lower) median of all elements, or along `dim` with its index; nan if there is one."""
    ...
@overload
def median(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> ValuesAndIndices:
    """The (lower) median of all elements, or along `dim` with its index; nan if there is one."""
    ...
def meshgrid(*tensors: Tensor, indexing: _str = 'ij') -> tuple[Tensor, ...]:
    """Grids of the coordinates given by 1-d tensors: the k-th varies along dim k ("xy": dims 0 and 1 swapped)."""
    ...
@overload
def min(input: Tensor, *, out: Any = None) -> Tensor:
    """The smallest element; with `dim` the smallest values along it and their first indices; of two `minimum`."""
    ...
@overload
def min(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> ValuesAndIndices:
    """The smallest element; with `dim` the smallest values along it and their first indices; of two `minimum`."""
    ...
@overload
def min(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The smallest element; with `dim` the smallest values along it and their first indices; of two `minimum`."""
    ...
def minimum(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """The smaller of a and b; nan if one is. A tie halves the gradient."""
    ...
def mm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor:
    """(M, K) @ (K, N) -> (M, N). Raises ShapeError for anything else; see `matmul`."""
    ...
def mode(
    input: Tensor, dim: _int | Sequence[_int] = -1, keepdim: _bool = False, *, out: Any = None,
) -> ValuesAndIndices:
    """The most frequent value along `dim`, the smallest of equally frequent ones, and the index of its last occurrence."""
    ...
def moveaxis(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dims `source` moved to the places `destination`; the others keep their order."""
    ...
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dims `source` moved to the places `destination`; the others keep their order."""
    ...
def msort(input: Tensor, *, out: Any = None) -> Tensor:
    """The elements in order along the first dim."""
    ...
def mul(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a * b, broadcast and promoted."""
    ...
def multinomial(
    input: Tensor, num_samples: _int, replacement: _bool = False, *, generator: Generator | None = None,
    out: Any = None,
) -> Tensor:
    """num_samples indices per row of `input` (weights, (C,) or (N, C)), as int64."""
    ...
def multiply(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a * b, broadcast and promoted."""
    ...
def mv(input: Tensor, vec: Tensor, *, out: Any = None) -> Tensor:
    """(M, K) @ (K,) -> (M,). Raises ShapeError for anything else."""
    ...
def mvlgamma(input: Tensor, p: _float, *, out: Any = None) -> Tensor:
    """The logarithm of the multivariate gamma function: p (p - 1) / 4 log(pi) + sum over i < p of lgamma(x - i / 2)."""
    ...
def nan_to_num(
    input: Tensor, nan: _float = 0.0, posinf: Any = None, neginf: Any = None, *, out: Any = None,
) -> Tensor:
    """nan, inf and -inf replaced; by default by 0 and the largest and smallest number of the dtype."""
    ...
def nan_to_num_(input: Tensor, nan: _float = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    """In place: `nan_to_num`, with the result in this tensor's memory."""
    ...
def nanmean(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: DType | None = None,
    out: Any = None,
) -> Tensor:
    """The mean over `dim` of the elements that are not nan."""
    ...
@overload
def nanmedian(input: Tensor) -> Tensor:
    """The (lower) median of what is not nan."""
    ...
@overload
def nanmedian(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> ValuesAndIndices:
    """The (lower) median of what is not nan."""
    ...
def nanquantile(
    input: Tensor, q: Tensor | _float, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *,
    interpolation: _str = 'linear', out: Any = None,
) -> Tensor:
    """The q-th quantiles of what is not nan."""
    ...
def nansum(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: DType | None = None,
    out: Any = None,
) -> Tensor:
    """The sum over `dim` with nan taken as 0."""
    ...
def narrow(input: Tensor, dim: _int | Sequence[_int], start: Any, length: Any) -> Tensor:
    """`length` elements from `start` along `dim`."""
    ...
def narrow_copy(*args: Any, **options: Any) -> Tensor:
    """`narrow` as a copy."""
    ...
def native_batch_norm(
    input: Tensor, weight: Tensor, bias: Tensor, running_mean: Tensor, running_var: Tensor, training: _bool,
    momentum: _float | None, eps: _float,
) -> tuple[Tensor, ...]:
    """`batch_norm`, with the mean and the reciprocal standard deviation of the batch; nothing of them in evaluation."""
    ...
def native_group_norm(
    input: Tensor, weight: Tensor, bias: Tensor, N: Any, C: Any, HxW: Any, group: Any, eps: _float,
) -> tuple[Tensor, ...]:
    """`group_norm`, with the mean and the reciprocal standard deviation of each group."""
    ...
def native_layer_norm(
    input: Tensor, normalized_shape: _int | Sequence[_int], weight: Tensor, bias: Tensor, eps: _float,
) -> tuple[Tensor, ...]:
    """`layer_norm`, with the mean and the reciprocal standard deviation of each row."""
    ...
def ne(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a != b."""
    ...
def neg(input: Tensor, *, out: Any = None) -> Tensor:
    """-x."""
    ...
def neg_(input: Tensor) -> Tensor:
    """In place: `neg`, with the result in this tensor's memory."""
    ...
def negative(input: Tensor, *, out: Any = None) -> Tensor:
    """-x."""
    ...
def negative_(input: Tensor) -> Tensor:
    """In place: `negative`, with the result in this tensor's memory."""
    ...
def nextafter(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """The float next to a on the way to b."""
    ...
def nonzero(input: Tensor, *, as_tuple: _bool = False, out: Any = None) -> Any:
    """The indices of all elements that are not zero: (count, dims), or with as_tuple one tensor for each dim."""
    ...
def nonzero_static(input: Tensor, *, size: Any, fill_value: Number = -1, out: Any = None) -> Tensor:
    """`nonzero` cut or filled up with fill_value to `size` rows."""
    ...
def norm(
    input: Tensor, p: Any = 'fro', dim: _int | Sequence[_int] | None = None, keepdim: _bool = False,
    out: Any = None, dtype: DType | None = None,
) -> Tensor:
    """The norm over `dim` (None for all): p a number, "fro" (2), inf, or "nuc" over two dims; see `linalg.vector_norm`."""
    ...
def normal(
    mean: Any, std: _float = 1.0, size: Any = None, *, generator: Generator | None = None,
    dtype: DType | None = None, device: Device | None = None, out: Any = None,
) -> Tensor:
    """Normal with the given mean and standard deviation (tensors or numbers), or of a given `size`."""
    ...
def not_equal(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a != b."""
    ...
def numel(input: Tensor) -> _int:
    """The number of elements."""
    ...
def ones(
    *size: Any, dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False,
    out: Any = None,
) -> Tensor:
    """A tensor of the given sizes, filled with 1."""
    ...
def ones_like(
    input: Tensor, *, dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """A tensor of input's shape, dtype and device, filled with 1."""
    ...
def orgqr(A: Any, tau: Any, *, out: Any = None) -> Tensor:
    """The first n columns of H_1 H_2 ... H_k, with H_i = 1 - tau_i v_i v_i'."""
    ...
def outer(input: Tensor, vec2: Tensor, *, out: Any = None) -> Tensor:
    """(M,), (N,) -> (M, N): every product. Raises ShapeError unless both are 1-d."""
    ...
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False,
) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension."""
    ...
def permute(input: Tensor, *dims_: Any, dims: Any = None) -> Tensor:
    """The dims in another order: dim i of the result is dim dims[i] of input."""
    ...
def permute_copy(*args: Any, **options: Any) -> Tensor:
    """`permute` as a copy."""
    ...
def pinverse(input: Tensor, rcond: _float = 1e-15) -> Tensor:
    """torch's old name of linalg.pinv, with rtol = rcond."""
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
def polygamma(n: Any, input: Tensor, *, out: Any = None) -> Tensor:
    """The n-th derivative of digamma."""
    ...
def positive(input: Tensor, *, out: Any = None) -> Tensor:
    """x."""
    ...
def positive_(input: Tensor) -> Tensor:
    """In place: `positive`, with the result in this tensor's memory."""
    ...
def pow(input: Tensor, exponent: Any, *, out: Any = None) -> Tensor:
    """a to the power of exponent. Raises ArgumentError for an integer to a negative number."""
    ...
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where x > 0, else weight * x; one weight, or one for each channel, x being (N, C, ...)."""
    ...
def prod(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, dtype: DType | None = None,
    out: Any = None,
) -> Tensor:
    """The product over one dim, or of all elements; integers and bools are multiplied as int64."""
    ...
def promote_types(type1: Any, type2: Any) -> np.dtype[Any]:
    """The dtype of type1 and type2 together."""
    ...
def put(input: Tensor, index: Any, source: Any, accumulate: _bool = False) -> Tensor:
    """input with the elements of source written to (or added at) the flattened input's places index."""
    ...
def qr(input: Tensor, some: _bool = True, *, out: Any = None) -> tuple[Tensor, ...]:
    """torch's old name of linalg.qr: `some` is mode "reduced", otherwise "complete"."""
    ...
def quantile(
    input: Tensor, q: Tensor | _float, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *,
    interpolation: _str = 'linear', out: Any = None,
) -> Tensor:
    """The q-th quantiles along `dim` (None: of all elements), q a number or a tensor (n,), whose dim then comes first."""
    ...
def rad2deg(input: Tensor, *, out: Any = None) -> Tensor:
    """Radians to degrees: 180 x / pi."""
    ...
def rad2deg_(input: Tensor) -> Tensor:
    """In place: `rad2deg`, with the result in this tensor's memory."""
    ...
def rand(
    *size: Any, generator: Generator | None = None, dtype: DType | None = None, device: Device | None = None,
    requires_grad: _bool = False, out: Any = None,
) -> Tensor:
    """Uniform in [0, 1)."""
    ...
def rand_like(
    input: Tensor, *, dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False,
    generator: Generator | None = None, memory_format: memory_format | None = None,
) -> Tensor:
    """`rand` with input's shape, dtype and device."""
    ...
def randint(
    low: _int, high: Any = None, size: Any = None, *, generator: Generator | None = None,
    dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False, out: Any = None,
) -> Tensor:
    """Integers in [low, high); `randint(high, size)` begins at 0."""
    ...
def randint_like(
    input: Tensor, low: _int, high: Any = None, *, dtype: DType | None = None, device: Device | None = None,
    requires_grad: _bool = False, generator: Generator | None = None, memory_format: memory_format | None = None,
) -> Tensor:
    """`randint` with input's shape, dtype and device."""
    ...
def randn(
    *size: Any, generator: Generator | None = None, dtype: DType | None = None, device: Device | None = None,
    requires_grad: _bool = False, out: Any = None,
) -> Tensor:
    """Standard normal."""
    ...
def randn_like(
    input: Tensor, *, dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False,
    generator: Generator | None = None, memory_format: memory_format | None = None,
) -> Tensor:
    """`randn` with input's shape, dtype and device."""
    ...
def randperm(
    n: _int, *, generator: Generator | None = None, dtype: DType | None = None, device: Device | None = None,
    requires_grad: _bool = False,
) -> Tensor:
    """A random order of 0 ... n - 1: the sorting permutation of n random 62-bit integers."""
    ...
def range(start: _float, end: _float, step: _float = 1, **options: Any) -> Tensor:
    """start, start + step ... up to end, which is included; torch's old function, which warns: use arange."""
    ...
def ravel(input: Tensor) -> Tensor:
    """All elements in one dim; a view if input is contiguous, else a copy."""
    ...
def real(input: Tensor) -> Tensor:
    """The real part: of a real tensor, itself. Raises DtypeError for complex ones."""
    ...
def reciprocal(input: Tensor, *, out: Any = None) -> Tensor:
    """1 / x."""
    ...
def reciprocal_(input: Tensor) -> Tensor:
    """In place: `reciprocal`, with the result in this tensor's memory."""
    ...
def relu(input: Tensor, inplace: _bool = False) -> Tensor:
    """max(x, 0)."""
    ...
def relu_(input: Tensor, inplace: _bool = False) -> Tensor:
    """In place: `relu`, with the result in this tensor's memory."""
    ...
def remainder(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a - b floor(a / b), with the sign of b. Raises ArgumentError for an integer divided by 0."""
    ...
def renorm(input: Tensor, p: _float, dim: _int | Sequence[_int], maxnorm: Any, *, out: Any = None) -> Tensor:
    """Each slice along `dim` whose p-norm is above maxnorm, scaled down to it."""
    ...
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: _int | Sequence[_int] | None = None, *, output_size: Any = None,
) -> Tensor:
    """Each element (each slice along `dim`) `repeats` times in a row, or repeats[k] times the k-th."""
    ...
def reshape(input: Tensor, *shape_: Any, shape: Any = None) -> Tensor:
    """The elements in another shape; one size may be -1. A view if the strides allow it, else a copy."""
    ...
def resolve_conj(input: Tensor) -> Tensor:
    """input: conjugates are never left to be taken later."""
    ...
def resolve_neg(input: Tensor) -> Tensor:
    """input: negations are never left to be taken later."""
    ...
def result_type(tensor1: Any, tensor2: Any) -> np.dtype[Any]:
    """The dtype of an operation on two tensors or numbers."""
    ...
def rms_norm(
    input: Tensor, normalized_shape: _int | Sequence[_int], weight: Tensor | None = None, eps: Any = None,
) -> Tensor:
    """input / sqrt(mean(input^2) + eps) * weight over the trailing `normalized_shape` (Zhang and Sennrich, 2019)."""
    ...
def rnn_relu_cell(input: Tensor, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    """One step of an Elman network with relu: max(0, w_ih x + b_ih + w_hh h + b_hh); arguments as `rnn_tanh_cell`."""
    ...
def rnn_tanh_cell(input: Tensor, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    """One step of an Elman network: tanh(w_ih x + b_ih + w_hh h + b_hh)."""
    ...
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Elements moved by `shifts` places along `dims`; what leaves at the end comes in at the start."""
    ...
def rot90(input: Tensor, k: Any = 1, dims: Any = (0, 1)) -> Tensor:
    """Turned by k * 90 degrees in the plane of two dims, from the first towards the second."""
    ...
def round(input: Tensor, decimals: Any = 0, *, out: Any = None) -> Tensor:
    """To `decimals` places, halves to the even neighbour; its gradient is 0."""
    ...
def round_(input: Tensor, decimals: Any = 0) -> Tensor:
    """In place: `round`, with the result in this tensor's memory."""
    ...
def row_stack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """The tensors, as rows if they have one dim, along dim 0."""
    ...
def rsqrt(input: Tensor, *, out: Any = None) -> Tensor:
    """1 / sqrt(x)."""
    ...
def rsqrt_(input: Tensor) -> Tensor:
    """In place: `rsqrt`, with the result in this tensor's memory."""
    ...
def rsub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """other - alpha * input."""
    ...
def save(obj: Any, f: Any, format: _str | None = None) -> None:
    """Writes nested dicts, lists and tuples of tensors, numbers, strings, bools and None into one file."""
    ...
def scalar_tensor(
    s: Any, *, dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False,
) -> Tensor:
    """A 0-d tensor."""
    ...
def scatter(
    input: Tensor, dim: _int | Sequence[_int], index: Any, src: Any = None, value: Tensor | Number | None = None,
    *, reduce: Any = None, out: Any = None,
) -> Tensor:
    """input with src, an array or number, written to input[i][index[i][j]] (dim 1); reduce = add or multiply combines."""
    ...
def scatter_add(input: Tensor, dim: _int | Sequence[_int], index: Any, src: Any, *, out: Any = None) -> Tensor:
    """input with src added at input[i][index[i][j]] (dim 1); deterministic."""
    ...
def scatter_reduce(
    input: Tensor, dim: _int | Sequence[_int], index: Any, src: Any, reduce: Any, *, include_self: _bool = True,
    out: Any = None,
) -> Tensor:
    """input combined with src at input[i][index[i][j]] (dim 1): reduce = sum, prod, mean, amax or amin."""
    ...
def searchsorted(
    sorted_sequence: Any, input: Tensor, *, out_int32: _bool = False, right: _bool = False, side: Any = None,
    sorter: Any = None, out: Any = None,
) -> Tensor:
    """Where each value would be put into the sorted last dim: before its equals, or with right=True after them."""
    ...
def seed() -> _int:
    """Seeds the default generator from the operating system."""
    ...
def select(input: Tensor, dim: _int | Sequence[_int], index: Any) -> Tensor:
    """x[..., index, ...] at `dim`."""
    ...
def select_copy(*args: Any, **options: Any) -> Tensor:
    """`select` as a copy."""
    ...
def select_scatter(input: Tensor, src: Any, dim: _int | Sequence[_int], index: Any) -> Tensor:
    """input with src in place of input.select(dim, index)."""
    ...
def selu(input: Tensor, inplace: _bool = False) -> Tensor:
    """1.0507 elu(x, 1.6733) (Klambauer et al. 2017)."""
    ...
def selu_(input: Tensor, inplace: _bool = False) -> Tensor:
    """In place: `selu`, with the result in this tensor's memory."""
    ...
def set_default_device(value: Tensor | Number) -> None:
    """Sets where tensors are created when no device= is given; None is the CPU again."""
    ...
def set_default_dtype(dtype: DType) -> None:
    """Sets the dtype that Python floats become and that `zeros`, `rand` ... return."""
    ...
def set_default_tensor_type(t: Any) -> None:
    """The dtype of new floats, and for a name with "cuda" the device too, by torch's old names of types."""
    ...
def set_float32_matmul_precision(precision: _str) -> None:
    """Chooses how the GPU multiplies float32 matrices: "highest" (float32 throughout) or "high", "medium" (tf32)."""
    ...
def set_num_threads(n: _int) -> None:
    """Sets the number of threads: of NumPy's matrix products, and of the ops that cut their work themselves."""
    ...
def set_printoptions(
    precision: Any = None, threshold: Any = None, edgeitems: Any = None, linewidth: Any = None,
    profile: Any = None, sci_mode: Any = None,
) -> None:
    """Digits, and when and how long tensors are shortened; as torch.set_printoptions."""
    ...
def set_rng_state(new_state: Tensor) -> None:
    """Sets the default generator's state."""
    ...
def sgn(input: Tensor, *, out: Any = None) -> Tensor:
    """-1, 0 or 1; 0 for nan."""
    ...
def sigmoid(input: Tensor, *, out: Any = None) -> Tensor:
    """1 / (1 + exp(-x))."""
    ...
def sigmoid_(input: Tensor) -> Tensor:
    """In place: `sigmoid`, with the result in this tensor's memory."""
    ...
def sign(input: Tensor, *, out: Any = None) -> Tensor:
    """-1, 0 or 1; 0 for nan."""
    ...
def sign_(input: Tensor) -> Tensor:
    """In place: `sign`, with the result in this tensor's memory."""
    ...
def signbit(input: Tensor, *, out: Any = None) -> Tensor:
    """Whether the sign bit is set: also for -0.0."""
    ...
def signbit_(input: Tensor) -> Tensor:
    """In place: `signbit`, with the result in this tensor's memory."""
    ...
def sin(input: Tensor, *, out: Any = None) -> Tensor:
    """The sine of x in radians."""
    ...
def sin_(input: Tensor) -> Tensor:
    """In place: `sin`, with the result in this tensor's memory."""
    ...
def sinc(input: Tensor, *, out: Any = None) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0."""
    ...
def sinc_(input: Tensor) -> Tensor:
    """In place: `sinc`, with the result in this tensor's memory."""
    ...
def sinh(input: Tensor, *, out: Any = None) -> Tensor:
    """(e^x - e^-x) / 2."""
    ...
def sinh_(input: Tensor) -> Tensor:
    """In place: `sinh`, with the result in this tensor's memory."""
    ...
def slice_scatter(
    input: Tensor, src: Any, dim: _int | Sequence[_int] = 0, start: Any = None, end: Any = None, step: Any = 1,
) -> Tensor:
    """input with src in place of input[..., start:end:step, ...] at `dim`."""
    ...
def slogdet(A: Any, *, out: Any = None) -> Any:
    """(sign, logabsdet) of the determinants of square matrices (..., n, n); (0, -inf) for singular ones."""
    ...
def softmax(
    input: Tensor, dim: _int | Sequence[_int] | None = None, dtype: DType | None = None, *, out: Any = None,
) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`."""
    ...
def sort(
    input: Tensor, dim: _int | Sequence[_int] = -1, descending: _bool = False, stable: _bool = False, *,
    out: Any = None,
) -> ValuesAndIndices:
    """(values, indices) of the elements in order along `dim`. Always stable; nan is larger than everything."""
    ...
def split(
    self: Tensor, split_size_or_sections: Any = None, dim: _int | Sequence[_int] = 0, *, split_size: Any = None,
) -> tuple[Tensor, ...]:
    """Views of `split_size` elements each (the last may be shorter), or of the given sizes, along `dim`."""
    ...
def split_with_sizes(self: Tensor, split_sizes: Any, dim: _int | Sequence[_int] = 0) -> tuple[Tensor, ...]:
    """Views of the given sizes along `dim`, which add up to its size."""
    ...
def split_with_sizes_copy(self: Tensor, split_sizes: Any, dim: _int | Sequence[_int] = 0) -> tuple[Tensor, ...]:
    """`split_with_sizes` as copies."""
    ...
def sqrt(input: Tensor, *, out: Any = None) -> Tensor:
    """The square root; nan below 0."""
    ...
def sqrt_(input: Tensor) -> Tensor:
    """In place: `sqrt`, with the result in this tensor's memory."""
    ...
def square(input: Tensor, *, out: Any = None) -> Tensor:
    """input^2; bools become int64."""
    ...
def square_(input: Tensor) -> Tensor:
    """In place: `square`, with the result in this tensor's memory."""
    ...
def squeeze(input: Tensor, dim: _int | Sequence[_int] | None = None) -> Tensor:
    """Without dims of size 1: all of them, or those among `dim`."""
    ...
def squeeze_copy(*args: Any, **options: Any) -> Tensor:
    """`squeeze` as a copy."""
    ...
def stack(tensors: Sequence[Tensor], dim: _int | Sequence[_int] = 0, *, out: Any = None) -> Tensor:
    """The tensors, of one shape, along a new dim."""
    ...
def std(
    input: Tensor, dim: _int | Sequence[_int] | None = None, unbiased: Any = None, keepdim: _bool = False, *,
    correction: Any = None, out: Any = None,
) -> Tensor:
    """The standard deviation over `dim`: the root of `var`."""
    ...
def std_mean(
    input: Tensor, dim: _int | Sequence[_int] | None = None, unbiased: Any = None, keepdim: _bool = False, *,
    correction: Any = None, out: Any = None,
) -> tuple[Tensor, ...]:
    """(standard deviation, mean) over `dim`."""
    ...
def sub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
    """input - alpha * other, broadcast and promoted."""
    ...
def subtract(input: Tensor, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
    """input - alpha * other, broadcast and promoted."""
    ...
def sum(
    input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, dtype: DType | None = None,
    out: Any = None,
) -> Tensor:
    """The sum over `dim` (int, list, or None for all)."""
    ...
def svd(input: Tensor, some: _bool = True, compute_uv: _bool = True, *, out: Any = None) -> tuple[Tensor, ...]:
    """torch's old svd: (U, S, V) with V in place of its transpose; zeros for U and V without compute_uv."""
    ...
def swapaxes(input: Tensor, axis0: Any, axis1: Any) -> Tensor:
    """transpose under NumPy's name."""
    ...
def swapdims(input: Tensor, dim0: Any, dim1: Any) -> Tensor:
    """Two dims swapped."""
    ...
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; vectors and numbers stay."""
    ...
def t_copy(*args: Any, **options: Any) -> Tensor:
    """`t` as a copy."""
    ...
def take(input: Tensor, index: Any, *, out: Any = None) -> Tensor:
    """The elements of the flattened input at index, in the shape of index."""
    ...
def take_along_dim(
    input: Tensor, indices: Any, dim: _int | Sequence[_int] | None = None, *, out: Any = None,
) -> Tensor:
    """gather with all other dims broadcast; without dim, of the flattened input."""
    ...
def tan(input: Tensor, *, out: Any = None) -> Tensor:
    """The tangent of x in radians."""
    ...
def tan_(input: Tensor) -> Tensor:
    """In place: `tan`, with the result in this tensor's memory."""
    ...
def tanh(input: Tensor, *, out: Any = None) -> Tensor:
    """sinh(x) / cosh(x)."""
    ...
def tanh_(input: Tensor) -> Tensor:
    """In place: `tanh`, with the result in this tensor's memory."""
    ...
def tensor(
    data: Any, *, dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False,
    pin_memory: _bool = False,
) -> Tensor:
    """A new tensor that holds a copy of `data`: nested lists, numbers, an ndarray, a Tensor."""
    ...
def tensor_split(
    input: Tensor, indices_or_sections: Any = None, dim: _int | Sequence[_int] = 0, *, indices: Any = None,
    sections: Any = None,
) -> tuple[Tensor, ...]:
    """Views along `dim`: that many of nearly equal size, or cut before each of the given indices."""
    ...
def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Tensor:
    """Sums over the last `dims` dimensions of a and the first of b, or over two lists of dimensions."""
    ...
def threshold(input: Tensor, threshold: Any, value: Tensor | Number, inplace: _bool = False) -> Tensor:
    """x where x > threshold, else value."""
    ...
def threshold_(input: Tensor, threshold: Any, value: Tensor | Number, inplace: _bool = False) -> Tensor:
    """In place: `threshold`, with the result in this tensor's memory."""
    ...
def tile(input: Tensor, *dims_: Any, dims: Any = None) -> Tensor:
    """input repeated dims[k] times along dim k, counted from the last; missing counts are 1."""
    ...
def topk(
    input: Tensor, k: Any, dim: _int | Sequence[_int] = -1, largest: _bool = True, sorted: _bool = True, *,
    out: Any = None,
) -> ValuesAndIndices:
    """The k largest (or smallest) elements along `dim` with their indices, in order."""
    ...
def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal."""
    ...
def transpose(input: Tensor, dim0: Any, dim1: Any) -> Tensor:
    """Two dims swapped."""
    ...
def transpose_copy(*args: Any, **options: Any) -> Tensor:
    """`transpose` as a copy."""
    ...
def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: _int | Sequence[_int] = -1) -> Tensor:
    """The integral along `dim` by the trapezoid rule: sum of (y[i] + y[i + 1]) / 2 (x[i + 1] - x[i])."""
    ...
def trapz(y: Any, x: Any = None, *, dx: Any = None, dim: _int | Sequence[_int] = -1) -> Tensor:
    """`trapezoid` under its older name."""
    ...
def tril(input: Tensor, diagonal: Any = 0, *, out: Any = None) -> Tensor:
    """The lower triangle of the last two dims, zero above it; diagonal > 0 keeps that many more diagonals."""
    ...
def tril_indices(
    row: _int, col: _int, offset: _int = 0, *, dtype: DType | None = None, device: Device | None = None,
) -> Tensor:
    """Row and column numbers of a (row, col) matrix's lower triangle, row by row: (2, count), int64."""
    ...
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: _float = 1.0, p: _float = 2, eps: _float = 1e-06,
    swap: _bool = False, size_average: _bool | None = None, reduce: Any = None, reduction: _str = 'mean',
) -> Tensor:
    """max(0, |anchor - positive|_p - |anchor - negative|_p + margin) over the last dimension."""
    ...
def triu(input: Tensor, diagonal: Any = 0, *, out: Any = None) -> Tensor:
    """The upper triangle of the last two dims, zero below it; diagonal > 0 keeps that many less diagonals."""
    ...
def triu_indices(
    row: _int, col: _int, offset: _int = 0, *, dtype: DType | None = None, device: Device | None = None,
) -> Tensor:
    """Row and column numbers of a (row, col) matrix's upper triangle, row by row: (2, count), int64."""
    ...
def true_divide(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """input / other, never rounded."""
    ...
def trunc(input: Tensor, *, out: Any = None) -> Tensor:
    """Without what is behind the point; its gradient is 0."""
    ...
def trunc_(input: Tensor) -> Tensor:
    """In place: `trunc`, with the result in this tensor's memory."""
    ...
def typename(obj: Any) -> _str:
    """The name of an object's type: "zoo.FloatTensor" for a Tensor, else module and class."""
    ...
def unbind(input: Tensor, dim: _int | Sequence[_int] = 0) -> tuple[Tensor, ...]:
    """The slices along `dim`, without it."""
    ...
def unbind_copy(input: Tensor, dim: _int | Sequence[_int] = 0) -> tuple[Tensor, ...]:
    """`unbind` as copies."""
    ...
def unflatten(input: Tensor, dim: _int | Sequence[_int], sizes: Any) -> Tensor:
    """One dim as several, of `sizes`; one of them may be -1."""
    ...
def unfold_copy(*args: Any, **options: Any) -> Tensor:
    """`unfold` as a copy."""
    ...
def unique(
    input: Tensor, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False,
    dim: _int | Sequence[_int] | None = None,
) -> Any:
    """The distinct values in ascending order (of the flattened input), or the distinct slices along `dim`."""
    ...
def unique_consecutive(
    input: Tensor, return_inverse: _bool = False, return_counts: _bool = False,
    dim: _int | Sequence[_int] | None = None,
) -> Any:
    """The first of each run of equal values (of the flattened input), or of equal slices along `dim`; see `unique`."""
    ...
def unravel_index(indices: Any, shape: Any) -> tuple[Tensor, ...]:
    """The index in each dim of an array of `shape`, for places in the flattened array."""
    ...
def unsafe_chunk(input: Tensor, chunks: Any, dim: _int | Sequence[_int] = 0) -> tuple[Tensor, ...]:
    """At most `chunks` views of equal size (the last may be shorter) along `dim`."""
    ...
def unsafe_split(
    self: Tensor, split_size_or_sections: Any = None, dim: _int | Sequence[_int] = 0, *, split_size: Any = None,
) -> tuple[Tensor, ...]:
    """Views of `split_size` elements each (the last may be shorter), or of the given sizes, along `dim`."""
    ...
def unsafe_split_with_sizes(self: Tensor, split_sizes: Any, dim: _int | Sequence[_int] = 0) -> tuple[Tensor, ...]:
    """Views of the given sizes along `dim`, which add up to its size."""
    ...
def unsqueeze(input: Tensor, dim: _int | Sequence[_int]) -> Tensor:
    """With a new dim of size 1 at place `dim`."""
    ...
def unsqueeze_copy(*args: Any, **options: Any) -> Tensor:
    """`unsqueeze` as a copy."""
    ...
def use_deterministic_algorithms(mode: _bool, *, warn_only: _bool = False) -> None:
    """Taken from scripts written for torch: every kernel here gives the same bits in every run, whatever the mode."""
    ...
def vander(x: Any, N: Any = None, increasing: _bool = False) -> Tensor:
    """The powers of x (n,) as columns, falling from x^(N - 1) unless `increasing`: (n, N)."""
    ...
def var(
    input: Tensor, dim: _int | Sequence[_int] | None = None, unbiased: Any = None, keepdim: _bool = False, *,
    correction: Any = None, out: Any = None,
) -> Tensor:
    """The variance over `dim`: sum((x - mean)^2) / (n - correction), correction 1 unless unbiased=False."""
    ...
def var_mean(
    input: Tensor, dim: _int | Sequence[_int] | None = None, unbiased: Any = None, keepdim: _bool = False, *,
    correction: Any = None, out: Any = None,
) -> tuple[Tensor, ...]:
    """(variance, mean) over `dim`."""
    ...
def vdot(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """(K,) @ (K,) -> (), the same as `dot` for real numbers."""
    ...
def view_copy(*args: Any, **options: Any) -> Tensor:
    """`view` as a copy."""
    ...
def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: _str = 'error', *,
    chunk_size: _int | None = None,
) -> Callable:
    """A function that runs func on each sample of a batch, and stacks what it gives."""
    ...
def vsplit(
    input: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None,
) -> tuple[Tensor, ...]:
    """tensor_split along dim 0; sections divide its size."""
    ...
def vstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """The tensors, as rows if they have one dim, along dim 0."""
    ...
@overload
def where(condition: Tensor) -> tuple[Tensor, ...]:
    """input where condition is true, else other; with condition alone, `nonzero(condition, as_tuple=True)`."""
    ...
@overload
def where(condition: Tensor, input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """input where condition is true, else other; with condition alone, `nonzero(condition, as_tuple=True)`."""
    ...
def xlogy(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    """a log(b), and 0 where a is 0."""
    ...
def xlogy_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In place: `xlogy`, with the result in this tensor's memory."""
    ...
def zero_(x: Tensor) -> Tensor:
    """Sets every element to 0."""
    ...
def zeros(
    *size: Any, dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False,
    out: Any = None,
) -> Tensor:
    """A tensor of the given sizes, filled with 0."""
    ...
def zeros_like(
    input: Tensor, *, dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """A tensor of input's shape, dtype and device, filled with 0."""
    ...
