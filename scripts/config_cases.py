"""The products, convolutions and recurrent layers that scripts/compile_configs.py compiles, only to be recorded."""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

PRODUCTS = [  # (M, N, K): whole tiles, odd ones, narrow results, few rows, long sums, one tile
    (8192, 8192, 8192), (8192, 4096, 128), (8191, 4099, 1000), (8191, 4099, 1004), (8191, 4099, 1001),
    (802816, 64, 256), (4096, 8, 512), (4096, 24, 512), (16, 4096, 4096), (24, 4096, 4096), (2304, 2176, 1024),
    (1152, 1152, 512), (512, 512, 65536), (100, 100, 100),
]
WIDTHS = 32, 64, 80, 256, 512  # of heads of attention
KINDS = ("half", "tf32", "tf32x3", "ieee", "double", "integer")


class Layer(NamedTuple):
    """A convolution: channels in and out, rows of its square image, side of its window; padding None keeps the size."""

    c: int
    k: int
    size: int
    window: int = 3
    stride: int = 1
    dilation: int = 1
    groups: int = 1
    padding: int | None = None

    @property
    def options(self) -> tuple:
        """stride, padding, dilation, groups."""
        padding = self.dilation * (self.window // 2) if self.padding is None else self.padding
        return (self.stride,) * 2, (padding,) * 2, (self.dilation,) * 2, self.groups


RESNET50 = [  # its 53 layers are these 23
    Layer(3, 64, 224, 7, 2), Layer(64, 64, 56), Layer(128, 128, 56, stride=2), Layer(128, 128, 28),
    Layer(256, 256, 28, stride=2), Layer(256, 256, 14), Layer(512, 512, 14, stride=2), Layer(512, 512, 7),
    Layer(256, 512, 56, 1, 2), Layer(512, 1024, 28, 1, 2), Layer(1024, 2048, 14, 1, 2),
    *(Layer(c, k, size, 1) for c, k, size in (
        (64, 64, 56), (64, 256, 56), (256, 64, 56), (256, 128, 56), (128, 512, 28), (512, 128, 28), (512, 256, 28),
        (256, 1024, 14), (1024, 256, 14), (1024, 512, 14), (512, 2048, 7), (2048, 512, 7))),
]
VGG16 = [
    Layer(3, 64, 224), Layer(64, 64, 224), Layer(64, 128, 112), Layer(128, 128, 112), Layer(128, 256, 56),
    Layer(256, 256, 56), Layer(256, 512, 28), Layer(512, 512, 28), Layer(512, 512, 14),
]
GROUPED = [  # ResNeXt-50 32x4d; 32x8d begins with 8 channels a group; ResNeXt-101 64x4d; RegNetY's 24 a group
    Layer(128, 128, 56, groups=32), Layer(256, 256, 56, stride=2, groups=32), Layer(256, 256, 28, groups=32),
    Layer(512, 512, 28, stride=2, groups=32), Layer(512, 512, 14, groups=32),
    Layer(1024, 1024, 14, stride=2, groups=32), Layer(1024, 1024, 7, groups=32),
    Layer(256, 256, 56, groups=64), Layer(232, 232, 28, groups=29),
    Layer(48, 96, 28, groups=3),
]
DEPTHWISE = [Layer(c, c, size, window, stride, groups=c) for c, size, window, stride in (
    (32, 112, 3, 1), (96, 112, 3, 2), (144, 56, 5, 2), (960, 7, 3, 1), (672, 14, 5, 1), (96, 56, 7, 1), (33, 28, 3, 1))]
OTHERS = [  # dilated (DeepLab), odd channels, few of them, windows without padding, a stride over the window
    Layer(2048, 256, 28, dilation=12), Layer(33, 35, 28), Layer(40, 24, 28, 5), Layer(35, 70, 28, stride=2),
    Layer(3, 96, 224, 4, 4, padding=0), Layer(96, 192, 56, 2, 2, padding=0), Layer(64, 128, 56, 3, 3, padding=0),
    Layer(12, 48, 28), Layer(1, 8, 28, dilation=2), Layer(66, 70, 28, groups=2),
]
# what layers of a network ask for in training, of VGG, of ResNet at inference; letters as in `RARE`
COMMON = ("", "ba", "mwva", "mwvra")
# which of bias, moments, weight and bias of the norm, residual, relu: the other kinds, for a layer of each kernel, tile
RARE = ("b", "mwv", "bra", "m", "bmw")
SAMPLED = [Layer(64, 64, 56), Layer(128, 128, 28), RESNET50[0], Layer(128, 128, 56, groups=32), Layer(33, 35, 28),
           DEPTHWISE[2], Layer(512, 512, 7), Layer(64, 256, 56, 1), Layer(512, 2048, 7, 1), Layer(256, 512, 56, 1, 2)]
BATCHES = (64, 1)


@contextlib.contextmanager
def arithmetic(kind: str) -> Iterator[np.dtype]:
    """Inside, products of the dtype it gives are of that kind."""
    from zoo.ops import matmul
    from zoo.ops.dtypes import bfloat16, float16

    dtypes = {"half": bfloat16, "float16": float16, "double": np.dtype("float64"), "integer": np.dtype("int32")}
    before = matmul.Precision.float32
    matmul.Precision.float32 = {"tf32": "high", "tf32x3": "tf32x3"}.get(kind, "highest")
    try:
        yield dtypes.get(kind, np.dtype("float32"))
    finally:
        matmul.Precision.float32 = before


@contextlib.contextmanager
def captured() -> Iterator[int]:
    """Inside, a step is captured; gives the seed of the generator that the graph knows."""
    from zoo.ops import cuda

    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        yield graph.random[0].key


def products(kind: str) -> Iterator[None]:
    """Every size, layout and kind of epilogue; yields after each launch."""
    from zoo.ops import cuda
    from zoo.ops import epilogue_gpu as e
    from zoo.ops.activation import gelu
    from zoo.ops.matmul_gpu import multiply
    from zoo.ops.pointwise_gpu import jitted

    with arithmetic(kind) as dtype:
        for m, n, k in PRODUCTS:
            bias, matrix = (cuda.empty(s, dtype) for s in ((n,), (m, n)))
            ends = [e.NOTHING]
            if kind != "integer":
                ends.append(e.epilogue((e.add_row, bias), (jitted(gelu), None)))
                ends.append(e.epilogue((e.add_row, bias), (e.add_matrix, matrix)))
            for layout in ("nt", "nn", "tn") if kind in ("half", "tf32") else ("nt", "tn"):
                a, b = (cuda.empty(s[::-1] if t == "t" else s, dtype)
                        for s, t in zip(((m, k), (k, n)), layout, strict=True))
                a, b = (x.view(x.shape[::-1], x.strides[::-1]) if t == "t" else x
                        for x, t in zip((a, b), layout, strict=True))
                for after in ends:
                    multiply(a, b, (m, n), after, has_matrix=e.add_matrix in after.stages)
                    yield


def attentions(kind: str) -> Iterator[None]:
    """Forward and gradients for heads of every width: plain, causal, with a mask and dropout; yields after each.

    Dropout once as ever and once in a captured step, where the kernels read the place in the stream of random numbers
    from memory: that takes registers too.
    """
    from zoo.ops import cuda
    from zoo.ops.attention_gpu import attention, attention_grad

    with arithmetic(kind) as dtype:
        for width in WIDTHS if kind not in ("integer", "tf32x3") else ():
            x, mask = cuda.empty((2, 4, 1024, width), dtype), cuda.empty((1, 4, 1024, 1024), dtype)
            lse = cuda.empty((2, 4, 1024), np.dtype("float64" if kind == "double" else "float32"))
            for bias, causal, p, capture in ((None, False, 0.0, False), (None, True, 0.0, False),
                                             (mask, True, 0.1, False), (mask, False, 0.1, True)):
                with captured() if capture else contextlib.nullcontext(1) as seed:
                    attention(x, x, x, bias, causal, 0.1, p, seed, 2)
                    yield
                    attention_grad(x, x, x, x, bias, x, lse, causal, 0.1, p, seed, 2, bias is not None)
                    yield


def convolutions(kind: str) -> Iterator[None]:
    """Every layer at every batch size, forward with kinds of epilogue and both gradients; yields after each launch.

    Of the rarer arithmetic only a layer for each kernel and tile.
    """
    from zoo.ops import conv, cuda

    if kind == "integer":
        return

    def last(n, c, h, w, dtype):
        return cuda.empty((n, h, w, c), dtype).view((n, c, h, w), (h * w * c, 1, w * c, c))

    everywhere = [*RESNET50, *VGG16, *GROUPED, *DEPTHWISE, *OTHERS] if kind in ("half", "tf32") else SAMPLED
    cases = [(layer, n, COMMON) for layer in everywhere for n in BATCHES]
    cases += [(layer, n, RARE) for layer in SAMPLED for n in BATCHES]
    with arithmetic(kind) as dtype:
        for layer, n, epilogues in cases:
            x = last(n, layer.c, layer.size, layer.size, dtype)
            w = last(layer.k, layer.c // layer.groups, layer.window, layer.window, dtype)
            out = conv.conv2d_window("conv2d", x, w, None, *layer.options).out
            y, row = last(n, layer.k, *out, dtype), cuda.empty((layer.k,), dtype)
            for parts in epilogues:
                b, m, g, v = (row if part in parts else None for part in "bmwv")
                residual = y if "r" in parts else None
                conv.conv2d_norm_act(x, w, b, m, m, g, v, residual, "a" in parts, 1e-5, *layer.options)
                yield
            conv.conv2d_input_grad(y, w, (layer.size,) * 2, *layer.options)
            yield
            conv.conv2d_weight_grad(y, x, (layer.window,) * 2, *layer.options)
            yield


def recurrences(kind: str) -> Iterator[None]:
    """The time loops of recurrent layers, forward and backward, in both directions: weights held and streamed."""
    import zoo

    if kind == "integer":
        return
    with arithmetic(kind) as dtype:
        for hidden in (64, 256, 512, 1024):
            for make in (zoo.nn.LSTM, zoo.nn.GRU, zoo.nn.RNN):
                with zoo.nn.init.skip_init():
                    layer = make(hidden, hidden, bidirectional=hidden == 256, device="cuda", dtype=dtype)
                x = zoo.empty((4, 32, hidden), dtype=dtype, device="cuda", requires_grad=True)
                y = layer(x)[0]
                y.backward(zoo.empty_like(y))
                yield
