"""Rows of single ops: forward, and forward + backward from a gradient that is made outside the clock."""
from functools import partial

import numpy as np
from protocol import Case, both


def pointwise(lib) -> dict:
    """Name -> function of (x (R, C), weight (C), bias (C), R rows of x)."""
    f = lib.nn.functional
    return {
        "add": lambda x, w, b, i: x + x,
        "mul": lambda x, w, b, i: x * x,
        "relu": lambda x, w, b, i: lib.relu(x),
        "exp": lambda x, w, b, i: lib.exp(x),
        "tanh": lambda x, w, b, i: lib.tanh(x),
        "sigmoid": lambda x, w, b, i: lib.sigmoid(x),
        "erf": lambda x, w, b, i: lib.erf(x),
        "gelu": lambda x, w, b, i: f.gelu(x),
        "gelu tanh": lambda x, w, b, i: f.gelu(x, approximate="tanh"),
        "silu": lambda x, w, b, i: f.silu(x),
        "softplus": lambda x, w, b, i: f.softplus(x),
        "elu": lambda x, w, b, i: f.elu(x),
        "sum": lambda x, w, b, i: x.sum(),
        "sum of columns": lambda x, w, b, i: x.sum(0),
        "mean of rows": lambda x, w, b, i: x.mean(1),
        "var of rows": lambda x, w, b, i: x.var(1),
        "prod of rows": lambda x, w, b, i: x.prod(1),
        "amax of rows": lambda x, w, b, i: x.amax(1),
        "softmax": lambda x, w, b, i: lib.softmax(x, 1),
        "log_softmax": lambda x, w, b, i: lib.log_softmax(x, 1),
        "cumsum": lambda x, w, b, i: x.cumsum(1),
        "cumprod": lambda x, w, b, i: x.cumprod(1),
        "cross_entropy": lambda x, w, b, i: f.cross_entropy(x, i % x.shape[1]),
        "layer_norm": lambda x, w, b, i: f.layer_norm(x, w.shape, w, b),
        "group_norm": lambda x, w, b, i: f.group_norm(x, 10, w, b),
        "cat": lambda x, w, b, i: lib.cat([x, x], 1),
        "stack": lambda x, w, b, i: lib.stack([x, x]),
        "transposed copy": lambda x, w, b, i: x.t().contiguous(),
        "embedding": lambda x, w, b, i: f.embedding(i, x),
    }


def random(lib) -> dict:
    """Name -> function of x, whose result is random."""
    return {"rand": lambda x: lib.rand(x.shape), "randn": lambda x: lib.randn(x.shape),
            "dropout": lambda x: lib.nn.functional.dropout(x, 0.5)}


def images(lib) -> dict:
    """Name -> function of (x (16, 64, 56, 56), weight (64), bias (64))."""
    f = lib.nn.functional
    mean, var = lib.zeros(64), lib.ones(64)
    return {
        "batch_norm, training": lambda x, w, b: f.batch_norm(x, None, None, w, b, True),
        "batch_norm, evaluation": lambda x, w, b: f.batch_norm(x, mean, var, w, b),
        "max_pool2d 3x3, stride 2": lambda x, w, b: f.max_pool2d(x, 3, 2, 1),
        "avg_pool2d 2x2": lambda x, w, b: f.avg_pool2d(x, 2),
        "adaptive_avg_pool2d 1x1": lambda x, w, b: f.adaptive_avg_pool2d(x, 1),
    }


MATMULS = ((64, 64), (64, 64)), ((512, 512), (512, 512)), ((1024, 1024), (1024, 1024)), \
    ((1, 1024), (1024, 1024)), ((32, 128, 64), (32, 64, 128))
# (name, x, weight, stride, groups)
CONVS = (("3x3, 64 channels, 56x56", (16, 64, 56, 56), (64, 64, 3, 3), 1, 1),
         ("3x3, 16 channels, 32x32", (64, 16, 32, 32), (16, 16, 3, 3), 1, 1),
         ("3x3 stride 2, 128 channels, 56x56", (4, 128, 56, 56), (128, 128, 3, 3), 2, 1),
         ("1x1, 256 to 64 channels, 56x56", (16, 256, 56, 56), (64, 256, 1, 1), 1, 1),
         ("7x7 stride 2, 3 to 64 channels, 224x224", (4, 3, 224, 224), (64, 3, 7, 7), 2, 1),
         ("depthwise 3x3, 128 channels, 28x28", (16, 128, 28, 28), (128, 1, 3, 3), 1, 128))


def conv2d(lib, stride, groups):
    def call(x, w):
        return lib.nn.functional.conv2d(x, w, stride=stride, padding=w.shape[2] // 2, groups=groups)
    return call


def arrays(shapes) -> list:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]


def forward(call, inputs, rest):
    return lambda: call(*inputs, *rest)


def train(lib, call, inputs, rest):
    """Forward and backward; gives the gradients."""
    inputs = [t.requires_grad_() for t in inputs]
    y = call(*inputs, *rest)
    dy = lib.tensor(np.asarray(np.random.default_rng(1).standard_normal(tuple(y.shape), dtype=np.float32)))

    def step():
        for t in inputs:
            t.grad = None
        call(*inputs, *rest).backward(dy)
        return [t.grad for t in inputs]
    return step


def pairs(name, find, shapes, rows=None, tolerance: float | None = 1e-4, gradient=True) -> list[Case]:
    """The case of an op forward, and that with its gradient. find(lib): the op, as a function of the inputs."""
    def make(lib, way):
        x, *others = arrays(shapes)
        if "prod" in name:                     # numbers near 1, whose products stay finite
            x = 1 + np.float32(0.01) * x
        inputs = [lib.tensor(a) for a in (x, *others)]
        rest = [] if rows is None else [lib.tensor(np.random.default_rng(2).integers(0, rows, rows))]
        return forward(find(lib), inputs, rest) if way == "forward" else train(lib, find(lib), inputs, rest)
    ways = ("forward", "forward+backward") if gradient else ("forward",)
    return [Case("ops", f"{name}, {way}", both(partial(make, way=way)), tolerance=tolerance) for way in ways]


def cases(shape=(1000, 1000)) -> list[Case]:
    """shape: of the memory-bound ops."""
    import zoo
    found, columns = [], shape[1:]
    for name in pointwise(zoo):
        found += pairs(name, lambda lib, n=name: pointwise(lib)[n], (shape, columns, columns), shape[0])
    for name in random(zoo):
        found += pairs(name, lambda lib, n=name: random(lib)[n], (shape,), tolerance=None, gradient=name == "dropout")
    for name in images(zoo):
        found += pairs(name, lambda lib, n=name: images(lib)[n], ((16, 64, 56, 56), (64,), (64,)))
    for a, b in MATMULS:
        found += pairs(f"matmul {'x'.join(map(str, a))} @ {'x'.join(map(str, b))}", lambda lib: lib.matmul, (a, b))
    for name, x, w, stride, groups in CONVS:
        found += pairs(f"conv2d {name}", partial(conv2d, stride=stride, groups=groups), (x, w))
    return found
