"""Root mean square normalisation: rows, each divided by the root of the mean of its squares."""
import numpy as np

from zoo.ops.norm import check_affine, statistics_dtype, wide
from zoo.ops.norm_rows import flat, layer_norm_grad, rows_of
from zoo.ops.norm_rows_cpu import row_blocks
from zoo.ops.op import OPS, Spec, structured
from zoo.ops.pieces import each
from zoo.ops.shape import cast, reshape


def reciprocal_root(x, eps: float):
    """1 / sqrt(mean of x^2 + eps) of each row of x (R, N), as (R, 1)."""
    return 1 / np.sqrt(np.vecdot(x, x)[:, None] / np.asarray(x.shape[1], x.dtype) + np.asarray(eps, x.dtype))


@structured
class rms_norm:
    """input / sqrt(mean(input^2) + eps) * weight over the trailing dimensions `normalized_shape`.

    weight has that shape or is None (Zhang and Sennrich, 2019).
    """
    differentiable = ("input", "weight")

    def check(input, normalized_shape, weight=None, eps=1e-6):
        rows_of("rms_norm", input, normalized_shape)
        check_affine("rms_norm", input, tuple(normalized_shape), weight)
        return Spec(tuple(input.shape), input.dtype)

    def forward(input, normalized_shape, weight=None, eps=1e-6):
        rms_norm.check(input, normalized_shape, weight, eps)
        rows, _, width = rows_of("rms_norm", input, normalized_shape)
        x = np.ascontiguousarray(wide(input)).reshape(rows, width)
        y, w = np.empty_like(x), flat(weight, (width,), x.dtype)

        def normalize(part: slice) -> None:
            out = np.multiply(x[part], reciprocal_root(x[part], eps), out=y[part])
            if w is not None:
                out *= w
        each(normalize, row_blocks(x), x.size)
        return y.reshape(input.shape).astype(input.dtype, copy=False)

    def backward(dy, input, normalized_shape, weight, eps, wanted):
        return rms_norm_grad(dy, input, normalized_shape, weight, eps)

    def samples(rng):
        def case(shape, k):
            return rng.normal(size=shape), shape[-k:], rng.uniform(0.5, 2, shape[-k:]), 1e-5
        return {"ordinary": [case((4, 5), 1), case((2, 3, 4), 2), (rng.normal(size=(3, 6)), (6,), None, 1e-3)],
                "empty": [case((0, 5), 1), (np.zeros((3, 0)), (0,), None, 1e-5)],
                "0-d": "wants a dimension to normalise over", "odd": [case((7, 67), 1), case((3, 1031), 1)],
                "extreme": [(1e3 * rng.normal(size=(3, 37)), (37,), None, 1e-5), (np.zeros((2, 5)), (5,), None, 1e-5)]}


@structured
class rms_norm_grad:
    """Gradients of rms_norm by input and weight."""
    outputs = ("dinput", "dweight")

    def check(dy, input, normalized_shape, weight, eps):
        dtype = statistics_dtype(input.dtype)
        return Spec(tuple(input.shape), input.dtype), Spec(tuple(normalized_shape), dtype)

    def forward(dy, input, normalized_shape, weight, eps):
        rows, _, width = rows_of("rms_norm", input, normalized_shape)
        x, g = (np.ascontiguousarray(wide(v)).reshape(rows, width) for v in (input, dy))
        dx, w = np.empty_like(x), flat(weight, (width,), x.dtype)
        sums: dict[int, np.ndarray] = {}

        def differentiate(part: slice) -> None:
            rstd = reciprocal_root(x[part], eps)
            h = x[part] * rstd
            sums[part.start] = np.vecdot(g[part], h, axis=0)
            out = np.multiply(g[part], rstd, out=dx[part])
            if w is not None:
                out *= w
            h *= np.vecdot(h, out)[:, None] / np.asarray(max(width, 1), x.dtype)
            out -= h
        each(differentiate, row_blocks(x), x.size)
        dweight = sum((sums[start] for start in sorted(sums)), np.zeros(width, x.dtype))
        return dx.reshape(input.shape).astype(input.dtype, copy=False), dweight.reshape(tuple(normalized_shape))

    def decompose(dy, input, normalized_shape, weight, eps):
        rows, _, width = rows_of("rms_norm", input, normalized_shape)
        dtype, average = statistics_dtype(input.dtype), OPS["mean"]
        x, g = (reshape(cast(v, dtype), (rows, width)) for v in (input, dy))
        rstd = OPS["rsqrt"](average(x * x, 1, True) + eps)
        h = x * rstd
        dweight = reshape(OPS["sum"](g * h, 0), tuple(normalized_shape))
        g = g if weight is None else g * reshape(cast(weight, dtype), (width,))
        dx = rstd * (g - h * average(g * h, 1, True))
        return cast(reshape(dx, tuple(input.shape)), input.dtype), dweight

    def samples(rng):
        return layer_norm_grad.samples(rng)
