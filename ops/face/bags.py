"""Sums and means over bags of table rows: torch's embedding_bag."""
import numpy as np

from zoo.ops.device import constant, fetch
from zoo.ops.dtypes import INTS
from zoo.ops.errors import ArgumentError, DtypeError, ShapeError
from zoo.ops.face.index import embedding
from zoo.ops.op import OPS
from zoo.ops.shape import cast, expand, filled, reshape

FUNCTIONS = ()
METHODS = ()
NN_FUNCTIONS = ("embedding_bag",)
INPLACE = ()


def bag_numbers(offsets, count: int, include_last: bool) -> tuple[np.ndarray, int]:
    """(the bag that each of `count` rows falls into, how many bags) from the places where the bags begin."""
    starts = fetch(getattr(offsets, "array", offsets)).astype(np.int64)
    starts = starts[:-1] if include_last else starts
    if len(starts) and (starts[0] != 0 or starts[-1] > count or (np.diff(starts) < 0).any()):
        raise ArgumentError(f"embedding_bag: wants offsets that ascend from 0, at most {count}, got {starts.tolist()}")
    return np.searchsorted(starts, np.arange(count), "right") - 1, len(starts)


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean",
                  sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """The sum, mean or maximum of the rows of weight (rows, size) that each bag of integers names.

    input (B, n): every row is a bag. input (N,) with offsets (B,): bag b begins at offsets[b]. -> (B, size). An empty
    bag gives 0. per_sample_weights, like input, scale the rows (mode sum). padding_idx: rows that do not count.

    Raises:
        DtypeError: no integers. ShapeError: other ranks. ArgumentError: offsets that do not ascend, an unknown mode.

    Example:
        >>> import zoo
        >>> table = zoo.tensor([[1.0], [2.0], [4.0]])
        >>> zoo.nn.functional.embedding_bag(zoo.tensor([0, 1, 2]), table, zoo.tensor([0, 2]), mode="sum").tolist()
        [[3.0], [4.0]]
    """
    if input.dtype not in INTS:
        raise DtypeError(f"embedding_bag: wants integer indices, got {input.dtype}")
    if mode not in ("sum", "mean", "max"):
        raise ArgumentError(f"embedding_bag: wants mode sum, mean or max, got {mode!r}")
    if per_sample_weights is not None and (mode != "sum" or tuple(per_sample_weights.shape) != tuple(input.shape)):
        raise ArgumentError("embedding_bag: wants per_sample_weights like input, with mode sum, "
                            f"got {tuple(per_sample_weights.shape)} for {tuple(input.shape)} with mode {mode}")
    if len(input.shape) not in (1, 2) or (len(input.shape) == 1) == (offsets is None):
        raise ShapeError("embedding_bag: wants input (B, n), or (N,) with offsets, "
                         f"got {tuple(input.shape)} and offsets {None if offsets is None else tuple(offsets.shape)}")
    if len(input.shape) == 2:
        bags, numbers = input.shape[0], np.repeat(np.arange(input.shape[0]), input.shape[1])
        input = reshape(input, (len(numbers),))
    else:
        numbers, bags = bag_numbers(offsets, input.shape[0], include_last_offset)
    rows = embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)
    if per_sample_weights is not None:
        rows = OPS["mul"](rows, reshape(per_sample_weights, (rows.shape[0], 1)))
    if padding_idx is not None:
        counted = OPS["ne"](input, padding_idx % weight.shape[0])
        empty = 0.0 if mode != "max" else float("-inf")
        rows = OPS["where"](reshape(counted, (rows.shape[0], 1)), rows, empty)
    else:
        counted = OPS["ge"](input, 0)
    return collected(rows, counted, constant(numbers, like=rows), bags, mode)


def collected(rows, counted, numbers, bags: int, mode: str):
    """rows (N, size) brought together by their bag's number; `counted` (N,) says which of them there are."""
    size = rows.shape[1]
    place = expand(reshape(numbers, (rows.shape[0], 1)), (rows.shape[0], size))
    zeros = filled(rows, (bags, size), 0.0)
    if mode == "max":
        highest = OPS["scatter_reduce"](zeros, 0, place, rows, "amax", False)
        return OPS["where"](OPS["eq"](highest, float("-inf")), 0.0, highest)
    total = OPS["scatter_add"](zeros, 0, place, rows)
    if mode == "sum":
        return total
    count = OPS["scatter_add"](filled(rows, (bags,), 0.0), 0, numbers, cast(counted, rows.dtype))
    return OPS["div"](total, reshape(OPS["maximum"](count, 1.0), (bags, 1)))
