"""Views of GPU memory, which cost nothing, and the moves that copy."""
from math import prod

import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops import shape as contract
from zoo.ops.dims import wrap
from zoo.ops.dtypes import HALVES
from zoo.ops.errors import ShapeError
from zoo.ops.op import OPS
from zoo.ops.pointwise_gpu import contiguous_copy, copy_into, is_dense
from zoo.ops.views import replay

BLOCK = 1024


def _fresh(spec, x):
    """An uninitialised array of this shape and dtype beside x."""
    return cuda.empty(spec.shape, spec.dtype, x.device)


# -- views

@cuda.remembered
def expand(x, shape):
    shape = contract.expand.check(x, shape).shape
    lead = len(shape) - len(x.shape)
    strides = (0 if n == 1 else s for n, s in zip(x.shape, x.strides, strict=True))
    return x.view(shape, ((0,) * lead + tuple(strides)))


@cuda.remembered
def sum_to(x, shape):
    contract.sum_to.check(x, shape)
    dims = contract.summed_dims(x.shape, shape)
    return reshape(OPS["sum"](x, dims, False, x.dtype), shape) if dims else x


def _view_strides(shape, strides, new) -> tuple | None:
    """The strides that show an array in the shape `new` of as many elements, or None if it would need a copy."""
    if 0 in shape:
        return cuda.contiguous_strides(tuple(new))
    runs: list[list[int]] = []                  # [elements, innermost stride] of the dims that lie evenly in memory
    for n, s in zip(shape, strides, strict=True):
        if n == 1:
            continue
        if runs and runs[-1][1] == n * s:
            runs[-1] = [runs[-1][0] * n, s]
        else:
            runs.append([n, s])
    out, d = [1] * len(new), len(new) - 1
    for elements, step in reversed(runs):
        count = 1
        while d >= 0 and (count < elements or new[d] == 1):
            out[d] = count * step
            count *= new[d]
            d -= 1
        if count != elements:
            return None
    return tuple(out)


@cuda.remembered
def reshape(x, shape):
    shape = contract.reshape.check(x, shape).shape
    strides = _view_strides(x.shape, x.strides, shape)
    if strides is None:
        x = contiguous_copy(x)
        strides = cuda.contiguous_strides(shape)
    return x.view(shape, strides)


def view(x, shape):
    shape = contract.view.check(x, shape).shape
    strides = _view_strides(x.shape, x.strides, shape)
    if strides is None:
        raise ShapeError(f"view: shape {shape} needs a copy of x of shape {x.shape}, strides {x.strides}; use reshape")
    return x.view(shape, strides)


@cuda.remembered
def permute(x, dims):
    shape = contract.permute.check(x, dims).shape
    return x.view(shape, tuple(x.strides[d] for d in dims))


def basic_index(x, index):
    return x.view(*contract.window_of(x.shape, x.strides, index))


def as_strided(x, size, stride, offset=0):
    contract.as_strided.check(x, size, stride, offset)
    if not x.is_contiguous:
        raise ShapeError(f"as_strided: wants a contiguous array, got strides {x.strides} for shape {x.shape}")
    return x.view(size, stride, offset)


def diagonal(x, offset=0, dim1=0, dim2=1):
    return x.view(*contract.diagonal_window(x.shape, x.strides, offset, dim1, dim2))


def unfold(x, dimension, size, step):
    shape = contract.unfold.check(x, dimension, size, step).shape
    if not x.shape:
        return x.view(shape, (1,))
    d = wrap("unfold", dimension, len(x.shape))
    return x.view(shape, (*x.strides[:d], x.strides[d] * step, *x.strides[d + 1:], x.strides[d]))


# -- copies

def filled(x, shape, value):
    """A new array of `shape` with x's dtype and device."""
    y = cuda.empty(shape, x.dtype, x.device)
    if value:
        return copy_into(y, value)
    cuda.fill_bytes(y, 0)
    return y


@cuda.remembered
def cast(x, dtype):
    y = _fresh(contract.cast.check(x, dtype), x)
    return copy_into(y.view(x.shape, x.strides) if is_dense(x) else y, x)        # channels-last stays channels-last


@cuda.remembered
def contiguous(x):
    return x if x.is_contiguous else contiguous_copy(x)


@cuda.remembered
def clone(x):
    return contiguous_copy(x)


def view_backward(v, shape, trail):
    y = filled(v, shape, 0)
    copy_into(replay(y, trail), v)
    return y


@cuda.remembered
def flip(x, dims):
    spec = contract.flip.check(x, dims)
    turned = contract.wrap_dims("flip", dims, len(x.shape)) if x.shape else ()
    strides = tuple(-s if d in turned else s for d, s in enumerate(x.strides))
    offset = sum((x.shape[d] - 1) * x.strides[d] for d in turned) if x.size else 0
    return copy_into(_fresh(spec, x), x.view(x.shape, strides, offset))


def constant_pad_nd(input, pad, value=0):
    shape, source, target = contract.pad_windows(input.shape, pad)
    y = filled(input, shape, value)
    copy_into(basic_index(y, target), basic_index(input, source))
    return y


@triton.jit(do_not_specialize=["n", "rows", "columns", "k"])
def triangle_kernel(x_ptr, y_ptr, n, rows, columns, k, UPPER: tl.constexpr, BLOCK: tl.constexpr):
    """x, y: (..., rows, columns), n elements. Keeps column - row >= k (UPPER) or <= k. Grid: (ceil(n / BLOCK),)."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    distance = i % columns - i // columns % rows
    if UPPER:
        keep = distance >= k
    else:
        keep = distance <= k
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=(i < n) & keep, other=0), mask=i < n)


def _triangle(spec, x, k, upper):
    y, x = _fresh(spec, x), contiguous(x)
    rows, columns = x.shape[-2:]
    cuda.launch(triangle_kernel, (triton.cdiv(x.size, BLOCK),), x, y, x.size, rows, columns, k, UPPER=upper,
                BLOCK=BLOCK)
    return y


@cuda.remembered
def tril(x, diagonal=0):
    return _triangle(contract.tril.check(x, diagonal), x, diagonal, False)


@cuda.remembered
def triu(x, diagonal=0):
    return _triangle(contract.triu.check(x, diagonal), x, diagonal, True)


@triton.jit(do_not_specialize=["n", "length", "inner", "windows", "size", "step"])
def unfold_backward_kernel(dy_ptr, y_ptr, n, length, inner, windows, size, step, WIDE: tl.constexpr,
                           BLOCK: tl.constexpr):
    """dy: (outer, windows, inner, size); y: (outer, length, inner), n elements. Grid: (ceil(n / BLOCK),).

    A program adds up, in order, the windows that its elements were part of.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    place = i // inner % length
    first = i // inner // length * windows
    total = tl.zeros([BLOCK], WIDE)
    for k in range(size):
        window = (place - k) // step
        there = (i < n) & (place >= k) & ((place - k) % step == 0) & (window < windows)
        total += tl.load(dy_ptr + ((first + window) * inner + i % inner) * size + k, mask=there, other=0).to(WIDE)
    tl.store(y_ptr + i, total.to(y_ptr.dtype.element_ty), mask=i < n)


def _wide_type(dtype) -> tl.dtype:
    """What sums of this dtype are added up in: float32 for halves, else the dtype itself."""
    return tl.float32 if dtype in HALVES else getattr(tl, dtype.name)


@cuda.remembered
def unfold_backward(dy, shape, dimension, size, step):
    y, dy = cuda.empty(shape, dy.dtype, dy.device), contiguous(dy)
    d = wrap("unfold_backward", dimension, len(shape))
    length, windows = (shape[d], dy.shape[d]) if shape else (1, 1)
    inner = prod(shape[d + 1:])
    cuda.launch(unfold_backward_kernel, (triton.cdiv(y.size, BLOCK),), dy, y, y.size, length, inner, windows, size,
                step,
                WIDE=_wide_type(y.dtype), BLOCK=BLOCK)
    return y
