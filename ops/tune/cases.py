"""What is measured of products and convolutions: those of real networks, the configs that are tried, how a result is
checked. Attention and time loops are in the files beside."""
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from zoo.ops import cuda
from zoo.ops.dtypes import bfloat16, float32
from zoo.ops.gpu_configs import Config, Family, Query

SAMPLED = 16                # rows of a product that are computed in float64 to check it
IMAGES = 8                  # of a large result that are compared: reading all would take longer than the timing
LARGE = 1 << 24             # elements of a result, from which on it is sampled
DRAWN = 1_000_003           # values that repeat, in rows of which no two of a tile are alike: drawing all takes seconds


class Started(NamedTuple):
    """What to time, a function with all its arrays as arguments; how far off its result is, an array or several; and
    calls for which the same row holds, which must not spill either."""
    run: partial
    error: Callable[[Any], float]
    also: tuple[partial, ...] = ()


class Case(NamedTuple):
    """One measurement; `start` makes its arrays.

    name: by which --begun tells it from others. candidates: of (query, family). op: what is measured, if `run` asks the
    table for other ops too. products: how many of the query's size it computes.
    """
    name: str
    kind: str
    start: Callable[[], Started]
    candidates: Callable[[Query, Family], Iterator[Config]]
    op: str = ""
    products: float = 1


class Group(NamedTuple):
    """Products (M, N, K) with their layout, and convolutions: x (N, C, H, W), weight (K, C, R, S), stride."""
    products: list
    convolutions: list


DTYPES = {"half": bfloat16, "tf32": float32, "tf32x3": float32, "ieee": float32}
TOLERANCE = {"half": 1e-2, "tf32": 2e-3, "tf32x3": 1e-5, "ieee": 1e-5}

# Layouts: n is row-major, t transposed in memory; a linear layer's weight is the second t. In the order of measuring:
# minutes on a GPU may end before all is done. ResNet-50 at batch 256, then VGG-16, cubes, few rows, long sums.
GROUPS = {
    "resnet50": Group(
        [(s, "nt") for s in ((802816, 64, 256), (802816, 256, 64), (200704, 512, 128), (200704, 128, 512),
                             (50176, 1024, 256), (50176, 256, 1024), (12544, 2048, 512), (12544, 512, 2048))],
        [*(((256, c, s, s), (c, c, 3, 3), 1) for c, s in ((64, 56), (128, 28), (256, 14), (512, 7))),
         *(((256, c, s, s), (c, c, 3, 3), 2) for c, s in ((128, 56), (256, 28), (512, 14))),
         *(((256, c, s, s), (2 * c, c, 1, 1), 2) for c, s in ((256, 56), (512, 28), (1024, 14)))]),
    "others": Group(
        [*(((n, n, n), layout) for n in (4096, 8192, 2048) for layout in ("nt", "nn", "tn")),
         *((s, "nt") for s in ((16, 4096, 4096), (64, 4096, 4096), (64, 1024, 16384), (256, 1000, 2048))),
         *((s, "tn") for s in ((512, 512, 65536), (64, 256, 802816), (1000, 2048, 256)))],
        [((64, 128, 112, 112), (128, 128, 3, 3), 1), ((64, 512, 28, 28), (512, 512, 3, 3), 1)]),
}
TINY = {"resnet50": Group([((64, 32, 48), "nt"), ((8, 48, 32), "tn")], [((2, 32, 6, 6), (32, 32, 3, 3), 1)]),
        "others": Group([], [])}

def normal(shape: tuple, dtype) -> np.ndarray:
    return np.resize(np.random.default_rng(0).standard_normal(DRAWN, np.float32).astype(dtype), shape)


def product(kind: str, m: int, n: int, k: int, layout: str) -> Case:
    """(M, K) @ (K, N); checked on rows computed in float64, which alone are read."""
    from zoo.ops.matmul_gpu import multiply

    def start():
        a, b = (normal(s, DTYPES[kind]) for s in ((m, k), (k, n)))
        x, y = (cuda.from_numpy(np.ascontiguousarray(v.T) if t == "t" else v)
                for v, t in zip((a, b), layout, strict=True))
        x, y = (v.view(v.shape[::-1], v.strides[::-1]) if t == "t" else v
                for v, t in zip((x, y), layout, strict=True))
        count = min(m, SAMPLED)
        step = (m - 1) // max(count - 1, 1)
        want = a[:step * (count - 1) + 1:max(step, 1)].astype(np.float64) @ b.astype(np.float64)

        def error(got):
            rows = got.view((count, n), (step * got.strides[0], 1))
            return np.abs(cuda.to_numpy(rows).astype(np.float64) - want).max() / np.abs(want).max()
        return Started(partial(multiply, x, y, (m, n)), error)
    return Case(f"{kind} product {m}x{n}x{k} {layout}", kind, start, candidates)


def convolution(kind: str, op: str, x_shape, w_shape, stride: int) -> Case:
    """Forward or a gradient, channels last; checked against the config that the table has now."""
    from zoo.ops import conv_gpu
    (n, _, h, _), (filters, _, r, _) = x_shape, w_shape
    out = (h + 2 * (r // 2) - r) // stride + 1
    options = (stride, stride), (r // 2, r // 2)

    def start():
        def last(shape):
            turned = cuda.from_numpy(normal([shape[d] for d in (0, 2, 3, 1)], DTYPES[kind]))
            order = 0, 3, 1, 2
            return turned.view(tuple(turned.shape[d] for d in order), tuple(turned.strides[d] for d in order))
        x, w, dy = last(x_shape), last(w_shape), last((n, filters, out, out))
        run = {"conv_forward": partial(conv_gpu.conv2d, x, w, None, *options),
               "conv_input_grad": partial(conv_gpu.conv2d_input_grad, dy, w, x_shape[2:], *options),
               "conv_weight_grad": partial(conv_gpu.conv2d_weight_grad, dy, x, w_shape[2:], *options)}[op]
        return Started(run, error_beside(run()))
    return Case(f"{kind} {op} {x_shape} {w_shape} stride {stride}", kind, start, candidates)


def error_beside(first) -> Callable[[Any], float]:
    """How far a later result, or the worst of several, is off the first one, by the largest of its numbers."""
    def sampled(y):
        if y.size >= LARGE:                 # the first and the last image, and some between
            count = min(IMAGES, y.shape[0])
            y = y.view((count, *y.shape[1:]), ((y.shape[0] - 1) // max(count - 1, 1) * y.strides[0], *y.strides[1:]))
        return cuda.to_numpy(y).astype(np.float64)

    def arrays(result):
        return [y for y in (result if isinstance(result, tuple) else (result,)) if y.size]
    wanted = [sampled(y) for y in arrays(first)]

    def error(got):
        return np.max([np.abs(sampled(y) - want).max() / np.abs(want).max()
                       for y, want in zip(arrays(got), wanted, strict=True)])
    return error


def cases(names: list[str], kind: str, group: str, tiny: bool) -> Iterator[Case]:
    """Of a kind and a group: products if "gemm" is among the names, convolutions if "conv" is."""
    found = (TINY if tiny else GROUPS).get(group, Group([], []))
    if "gemm" in names:
        yield from (product(kind, *shape, layout) for shape, layout in found.products)
    if "conv" in names:
        ops = "conv_forward", "conv_input_grad", "conv_weight_grad"
        yield from (convolution(kind, op, *row) for row in found.convolutions for op in ops)


def chosen(found: Iterator[Config], most: int) -> list[Config]:
    """At most so many of them, spread evenly over all."""
    configs = list(found)
    step = max(1.0, (len(configs) - 1) / max(most - 1, 1))
    return [configs[round(i * step)] for i in range(min(most, len(configs)))]


TILES = [(128, 256, 8), (256, 128, 8), (128, 128, 8), (128, 128, 4), (64, 256, 4), (128, 64, 4), (128, 64, 8),
         (64, 128, 4), (64, 64, 4), (128, 32, 4), (64, 32, 4), (128, 16, 4), (64, 16, 4)]


def candidates(query: Query, family: Family) -> Iterator[Config]:
    """Configs worth a try: tiles no wider than the result, whose stages fit shared memory; the widest first."""
    size = DTYPES[query.kind].itemsize
    tensor = query.kind != "ieee"
    for bm, bn, warps in TILES:
        if bm >= 2 * max(query.M, 64) or bn >= 2 * max(query.N, 16):
            continue
        for depth in ((128, 64) if tensor else (64, 32)):
            for stages in (5, 4, 3, 2):
                config = Config(bm, bn, depth // size, warps, stages)
                if (bm + bn) * depth * stages <= family.shared:
                    yield from variants(query, config, family)


def variants(query: Query, config: Config, family: Family) -> Iterator[Config]:
    """One tile as whole tiles or cut sums, in groups of tile rows, and on the tensor memory accelerator."""
    if query.op != "gemm":
        yield config
        return
    few = -(-query.M // config.BM) * -(-query.N // config.BN) < 4 * family.multiprocessors
    yield from (config._replace(split=split, group=group) for group in (8, 1)
                for split in ((1, 2, 4, 8, -1) if few else (1,)))
    if family.arch < 90 or query.kind not in ("half", "tf32") or "tma_loads" not in query.tags:
        return
    for sub in (0, 1, 2) if "tma" in query.tags else (0,):
        for per_sm in (1, 2):
            tma = config._replace(kernel="tma", sub=sub, per_sm=per_sm)
            yield from (tma, tma._replace(flatten=False))
            # as 4 warps that copy and two groups of 4 that multiply half a tile each; 3.6 compiles that without stripes
            if config.num_warps == 8 and sub < 2:
                yield tma._replace(num_warps=4, flatten=False, specialize=True)
