"""What is measured of attention: its three kernels at the sizes of real networks, each by itself."""
import math
from collections.abc import Iterator
from functools import partial
from itertools import chain, product
from typing import NamedTuple

import numpy as np

from zoo.ops import attention, cuda
from zoo.ops.attention_gpu import (
    Call,
    attend,
    call_of,
    config_of,
    grad_key_value,
    grad_query,
    launch_tiles,
    products_of_rows,
    sizes_of,
)
from zoo.ops.cuda import DeviceArray
from zoo.ops.gpu_configs import Config, Family, Query
from zoo.ops.tune.cases import DTYPES, Case, Started, error_beside, normal

KERNELS = {"attend": attend, "grad_query": grad_query, "grad_key_value": grad_key_value}
PRODUCTS = {"attend": 2, "grad_query": 3, "grad_key_value": 4}
KINDS = "half", "tf32", "ieee"                # float32 in three products of tf32 is computed as ieee
SEED = 1, 0                                   # and offset, of dropout


class Layer(NamedTuple):
    """Self-attention over `batch` sequences of `length`; `shared` heads of the query read each head of the keys."""
    batch: int
    heads: int
    length: int
    width: int
    causal: bool = False
    masked: bool = False                      # the keys of each sequence, as padding is
    p: float = 0.0
    shared: int = 1


# The order is that of measuring. GPT-2 small: a step of training without and with its dropout. ViT-B/16 at 224 pixels.
# BERT-base in training, then at inference. Heads of 128 that share keys by fours, as in Llama 3 8B.
LAYERS = [Layer(8, 12, 1024, 64, causal=True), Layer(64, 12, 197, 64), Layer(8, 12, 1024, 64, causal=True, p=0.1),
          Layer(32, 12, 512, 64, masked=True, p=0.1), Layer(2, 32, 2048, 128, causal=True, shared=4),
          Layer(64, 12, 128, 64, masked=True)]
TINY = [Layer(1, 2, 33, 16, causal=True), Layer(2, 4, 24, 16, masked=True, p=0.1, shared=2)]


def case(kind: str, op: str, layer: Layer) -> Case:
    """One kernel of one layer; it is checked against the config that the table has now."""
    def start():
        arrays = arrays_of(layer, DTYPES[kind])
        call = call_with(layer, arrays)
        y, lse = attention.attention(*arrays, layer.causal, scale_of(layer), layer.p, *SEED)
        means = products_of_rows(call, y, y, lse)         # y stands in for its own gradient
        given = () if op == "attend" else (lse, y, means)
        outs = (y, lse) if op == "attend" else gradients(op, y)
        lasts = ((None,), (lse,)) if op == "grad_query" else ((),)      # without the gradients of scores, and with
        run, *also = [partial(launched, op, layer, each, given, outs, last)
                      for each in (call, *fullest(layer, arrays)) for last in lasts]
        error = error_beside(run())

        def erasing(got):
            off = error(got)
            for x in outs:                                  # no numbers, until the next candidate writes some
                cuda.fill_bytes(x, 255)
            return off
        erasing(outs)
        return Started(run, erasing, tuple(also))
    work = PRODUCTS[op] / (2 if layer.causal else 1)
    return Case(f"{kind} {op} {layer}", kind, start, candidates, op, work)


def launched(op: str, layer: Layer, call: Call, *arrays: tuple) -> tuple[DeviceArray, ...]:
    """Launches a kernel on what it is given, what it writes and what comes last; gives what it writes."""
    query, _, _, bias = call.arrays
    config = config_of(op, query, bias, call.sizes, layer.causal, layer.p)
    launch_tiles(KERNELS[op], call, config, *chain(*arrays))
    return arrays[1]


def arrays_of(layer: Layer, dtype) -> tuple[DeviceArray, DeviceArray, DeviceArray, DeviceArray | None]:
    """query, key, value and the mask."""
    shape = layer.batch, layer.heads, layer.length, layer.width
    few = (layer.batch, layer.heads // layer.shared, *shape[2:])
    query, key, value = (cuda.from_numpy(normal(s, dtype)) for s in (shape, few, few))
    mask = np.zeros((layer.batch, 1, 1, layer.length), dtype)
    mask[:, :, :, layer.length * 7 // 8:] = -np.inf
    return query, key, value, cuda.from_numpy(mask) if layer.masked else None


def scale_of(layer: Layer) -> float:
    return 1 / math.sqrt(layer.width)


def call_with(layer: Layer, arrays: tuple, drawn: tuple = (None, *SEED)) -> Call:
    query, _, value, _ = arrays
    return call_of(*arrays, sizes_of(query, value), layer.causal, scale_of(layer), layer.p,
                   drawn if layer.p else (None, 0, 0))


def gradients(op: str, y: DeviceArray) -> tuple[DeviceArray, ...]:
    """New arrays for what a kernel of the backward pass writes: of shared keys one for each head of the query."""
    return tuple(cuda.empty(y.shape, y.dtype) for _ in range(1 if op == "grad_query" else 2))


def fullest(layer: Layer, arrays: tuple) -> list[Call]:
    """Of a layer with a mask or dropout, the call of most registers: with both, the mask whole, in a captured step."""
    if not layer.masked and not layer.p:
        return []
    query, key, value, _ = arrays
    mask = cuda.empty((1, 1, layer.length, layer.length), query.dtype)
    state = cuda.empty((2,), np.int64)
    return [call_with(layer._replace(p=0.1), (query, key, value, mask), (state, 0, 0))]


def cases(names: list[str], kind: str, group: str, tiny: bool) -> Iterator[Case]:
    """The kernels of every layer, if "attention" is among the names."""
    if "attention" in names and group == "sequences" and kind in KINDS:
        yield from (case(kind, op, layer) for layer in (TINY if tiny else LAYERS) for op in KERNELS)


SIDES = 128, 64, 32, 16
MOST_NUMBERS = 160          # of a thread in the tiles that it keeps: of the 255 registers the others are for operands


def candidates(query: Query, family: Family) -> Iterator[Config]:
    """Tiles no longer than the sequences whose sums fit the registers, and their operands shared memory."""
    size, width = DTYPES[query.kind].itemsize, query.K
    for bm, bn, warps in product(SIDES, SIDES, (8, 4)):
        if bm >= 2 * max(query.M, 16) or bn >= 2 * max(query.N, 16):
            continue
        numbers = numbers_of(query.op, bm, bn, width) / (32 * warps)
        for stages in (2, 3) if width <= 128 and query.kind != "ieee" else (2, 1):
            if numbers <= MOST_NUMBERS and shared_of(query.op, bm, bn, width, stages) * size <= family.shared:
                yield Config(bm, bn, width, warps, stages)


def numbers_of(op: str, bm: int, bn: int, width: int) -> int:
    """Of all threads: the tiles of scores and the sums."""
    return {"attend": bm * (bn + width), "grad_query": bm * (2 * bn + width),
            "grad_key_value": bn * (2 * bm + 2 * width)}[op]


def shared_of(op: str, bm: int, bn: int, width: int, stages: int) -> int:
    """Numbers in shared memory: the stages of what a program walks along. What it keeps may lie in registers."""
    return 2 * width * stages * (bm if op == "grad_key_value" else bn)
