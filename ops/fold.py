"""im2col, windows of images as columns, and col2im, their sum back into images: each the other's derivative."""
import numpy as np

from zoo.ops.conv import window_of
from zoo.ops.dtypes import FLOATS, HALVES, float32
from zoo.ops.errors import DtypeError, ShapeError
from zoo.ops.op import Spec, structured
from zoo.ops.window import Window


def fold_window(op: str, x, image, kernel_size, dilation, padding, stride) -> Window:
    if x.dtype not in FLOATS:
        raise DtypeError(f"{op}: wants a floating dtype, got {x.dtype}")
    return window_of(op, tuple(image), kernel_size, stride, padding, dilation, 1)


def im2col_window(input, kernel_size, dilation, padding, stride) -> Window:
    if len(input.shape) != 4 or 0 in input.shape[1:]:
        raise ShapeError(f"im2col: wants (N, C, H, W), only N may be 0, got {input.shape}")
    return fold_window("im2col", input, input.shape[2:], kernel_size, dilation, padding, stride)


def col2im_window(input, output_size, kernel_size, dilation, padding, stride) -> Window:
    window = fold_window("col2im", input, output_size, kernel_size, dilation, padding, stride)
    (r, s), (p, q) = window.kernel, window.out
    if len(input.shape) != 3 or input.shape[1] % (r * s) or input.shape[2] != p * q:
        raise ShapeError(f"col2im: wants (N, C * {r * s}, {p * q}) for an image {output_size}, got {input.shape}")
    return window


def samples_of(rng, back: bool):
    def draw(n, c, h, w, kernel, dilation=(1, 1), padding=(0, 0), stride=(1, 1)):
        x = rng.normal(size=(n, c, h, w))
        if not back:
            return x, kernel, dilation, padding, stride
        columns = im2col.check(x, kernel, dilation, padding, stride).shape
        return rng.normal(size=columns), (h, w), kernel, dilation, padding, stride
    extreme = draw(1, 1, 3, 3, (2, 2))
    extreme[0].reshape(-1)[:3] = np.inf, np.nan, -1e4
    return {"ordinary": [draw(2, 3, 6, 5, (3, 2)), draw(2, 2, 7, 6, (2, 3), (2, 1), (1, 2), (2, 3))],
            "odd": [draw(1, 1, 13, 7, (5, 3), padding=(4, 0)), draw(3, 2, 1, 1, (1, 1))],
            "empty": [draw(0, 3, 6, 5, (3, 2))], "0-d": "wants images", "extreme": [extreme]}


@structured
class im2col:
    """The windows of images as columns: input (N, C, H, W) -> (N, C * R * S, P * Q)."""
    def check(input, kernel_size, dilation, padding, stride):
        (r, s), (p, q) = kernel_size, im2col_window(input, kernel_size, dilation, padding, stride).out
        return Spec((input.shape[0], input.shape[1] * r * s, p * q), input.dtype)

    def forward(input, kernel_size, dilation, padding, stride):
        window = im2col_window(input, kernel_size, dilation, padding, stride)
        (r, s), (p, q), (n, c, h, w), (top, left) = kernel_size, window.out, input.shape, padding
        area = np.zeros((n, c, h + 2 * top, w + 2 * left), input.dtype)
        area[:, :, top:top + h, left:left + w] = input
        columns = np.empty((n, c, r, s, p, q), input.dtype)
        for i in range(r):
            for j in range(s):
                columns[:, :, i, j] = area[:, :, *window.tap(i, j)]
        return columns.reshape(n, c * r * s, p * q)

    def dinput(dy, input_shape, kernel_size, dilation, padding, stride):
        return col2im(dy, tuple(input_shape[2:]), kernel_size, dilation, padding, stride)

    def samples(rng): return samples_of(rng, False)


@structured
class col2im:
    """Columns summed into the images whose windows they are: input (N, C * R * S, P * Q) -> (N, C, *output_size)."""
    def check(input, output_size, kernel_size, dilation, padding, stride):
        (r, s) = col2im_window(input, output_size, kernel_size, dilation, padding, stride).kernel
        return Spec((input.shape[0], input.shape[1] // (r * s), *output_size), input.dtype)

    def forward(input, output_size, kernel_size, dilation, padding, stride):
        window = col2im_window(input, output_size, kernel_size, dilation, padding, stride)
        (r, s), (p, q), (h, w), (top, left) = kernel_size, window.out, output_size, padding
        n, c = len(input), input.shape[1] // (r * s)
        columns = input.reshape(n, c, r, s, p, q)
        area = np.zeros((n, c, h + 2 * top, w + 2 * left), float32 if input.dtype in HALVES else input.dtype)
        for i in range(r):
            for j in range(s):
                area[:, :, *window.tap(i, j)] += columns[:, :, i, j]
        return area[:, :, top:top + h, left:left + w].astype(input.dtype, copy=False)

    def dinput(dy, kernel_size, dilation, padding, stride):
        return im2col(dy, kernel_size, dilation, padding, stride)

    def samples(rng): return samples_of(rng, True)
