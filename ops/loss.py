"""Cross entropy of logits with class indices, whole in one op: the other losses are composed in face/loss.py."""
import functools

import numpy as np

from zoo.ops.compiled import SMALL, rows_for
from zoo.ops.device import constant
from zoo.ops.dtypes import FLOATS, HALVES, INTS, float32, int64, uint64
from zoo.ops.errors import ArgumentError, DimError, DtypeError, ShapeError
from zoo.ops.op import OPS, Spec, structured
from zoo.ops.pieces import each, slices
from zoo.ops.reduce_cpu import CHUNK as LONGEST
from zoo.ops.reduce_cpu import ones
from zoo.ops.shape import cast, reshape, sum_to

CHUNK = 1 << 16           # elements of a block of rows: stays in the second-level cache between the passes over it


def widened(dtype):
    """The dtype a loss is computed in."""
    return float32 if dtype in HALVES else dtype


def need_classes(input, target, reduction: str, label_smoothing: float) -> None:
    """Raises what `cross_entropy_loss` says, unless its arguments fit."""
    if input.ndim != 2 or target.shape != input.shape[:1]:
        shapes = f"{tuple(input.shape)} and {tuple(target.shape)}"
        raise ShapeError(f"cross_entropy: wants logits (N, C) and classes (N,), got {shapes}")
    if input.dtype not in FLOATS or target.dtype not in INTS:
        got = f"{input.dtype} and {target.dtype}"
        raise DtypeError(f"cross_entropy: wants floating logits and integer classes, got {got}")
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(f"cross_entropy: wants reduction mean, sum or none, got {reduction!r}")
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(f"cross_entropy: wants label_smoothing in [0, 1], got {label_smoothing}")


def live_rows(target, classes: int, ignore_index: int):
    """Which rows count: None for all of them. Raises DimError for a class that is not there; target is int64."""
    if not target.size:
        return None
    huge = target.view(uint64)                                           # what negative classes are
    if huge.item(huge.argmax()) < classes and not 0 <= ignore_index < classes:
        return None
    live = target != ignore_index
    wrong = live & ((target < 0) | (target >= classes))
    if wrong.any():
        raise DimError(f"cross_entropy: wants classes in [0, {classes}), got {int(target[wrong][0])}")
    return live


@functools.lru_cache(64)
def row_starts(n: int, classes: int):
    """Where each row begins in the flat (n, classes)."""
    return np.arange(n) * classes


def blocks_of(input) -> list[slice]:
    return slices(len(input), max(1, CHUNK // max(input.shape[1], 1)))


def block_of(input, target, label_smoothing):
    """Loss and logsumexp of each row of one block. One flat index is read in a fifth of the time of two."""
    starts = row_starts(*input.shape)
    if not label_smoothing and (fast := rows_for(input)):
        top, rest = np.empty((2, len(input)), input.dtype)
        fast.top_and_rest(top, rest, input)
        return rest - (input.ravel()[starts + target] - top), top + rest
    top = input.ravel()[starts + input.argmax(1)]            # in half the time of maximum.reduce
    z = input - top[:, None]
    picked = z.ravel()[starts + target]
    if label_smoothing:
        picked = (1 - label_smoothing) * picked + label_smoothing / z.shape[1] * np.add.reduce(z, axis=1)
    np.exp(z, out=z)
    lse = z.dot(ones(z.shape[1], z.dtype))                   # a matrix-vector product sums faster than add.reduce
    np.log(lse, out=lse)
    loss = lse - picked
    lse += top
    return loss, lse


def scaled_block(z, input, lse, scale) -> None:
    """z = exp(input - lse) * scale, both of each row, or scale of all."""
    if scale.ndim and (fast := rows_for(z, input)):
        fast.scaled_softmax(z, input, lse, scale)
        return
    np.subtract(input, lse[:, None], out=z)
    np.exp(z, out=z)
    z *= scale[:, None] if scale.ndim else scale


def scaled_softmax(input, lse, scale):
    """`scaled_block` of all rows, as an array of its own in C order."""
    z = np.empty(input.shape, lse.dtype)
    if z.size < SMALL:
        scaled_block(z, input, lse, scale)
    else:
        scales = np.broadcast_to(scale, lse.shape)
        each(lambda s: scaled_block(z[s], input[s], lse[s], scales[s]), blocks_of(z), z.size)
    return z


@structured
class cross_entropy_loss_grad:
    """Gradient by the logits (N, C): (softmax - smoothed one-hot) * dloss / count; lse is the logsumexp of input."""
    def check(dloss, input, target, lse, ignore_index, reduction, label_smoothing):
        return Spec(input.shape, input.dtype)

    def forward(dloss, input, target, lse, ignore_index, reduction, label_smoothing):
        n, classes = input.shape
        if target.dtype is not int64:
            target = target.astype(int64)
        live = live_rows(target, classes, ignore_index)
        scale = dloss if dloss.dtype is lse.dtype else dloss.astype(lse.dtype)
        if reduction == "mean":
            scale = scale / max(n if live is None else np.count_nonzero(live), 1)
        if live is not None:
            scale = np.where(live, scale, lse.dtype.type(0))
            target = np.where(live, target, 0)
        z = scaled_softmax(input, lse, scale)
        if label_smoothing:
            z -= np.reshape(scale * (label_smoothing / classes), (-1, 1))
            scale = scale * (1 - label_smoothing)
        if z.size:
            z.reshape(-1)[row_starts(n, classes) + target] -= scale
        return z if z.dtype is input.dtype else z.astype(input.dtype)

    def decompose(dloss, input, target, lse, ignore_index, reduction, label_smoothing):
        (n, classes), dtype, eq = input.shape, lse.dtype, OPS["eq"]
        live = 1.0 - cast(eq(target, ignore_index), dtype)
        scale = cast(dloss, dtype) * live
        if reduction == "mean":
            scale = scale / OPS["maximum"](sum_to(live, ()), 1.0)
        hit = cast(eq(reshape(target, (n, 1)), constant(np.arange(classes), input)), dtype)
        expected = hit * (1 - label_smoothing) + label_smoothing / max(classes, 1)
        softmax = OPS["softmax"](cast(input, dtype), 1)          # not by lse, which has no gradient
        return cast((softmax - expected) * reshape(scale, (n, 1)), input.dtype)

    def samples(rng):
        def case(n, c, reduction, *options):
            x = rng.normal(size=(n, c))
            return (rng.normal(size=(n,) if reduction == "none" else ()), x, rng.integers(0, c, n),
                    np.log(np.exp(x).sum(1)), *options)
        return {"ordinary": [case(4, 5, "mean", -100, "mean", 0.0), case(4, 5, "none", 1, "none", 0.1)],
                "empty": [case(0, 5, "mean", -100, "mean", 0.0)], "0-d": "the op takes (N, C)",
                "odd": [case(7, 13, "sum", 2, "sum", 0.0), case(3, 1031, "mean", -100, "mean", 0.2)],
                "extreme": "as the forward op"}


@structured
class cross_entropy_loss:
    """Of logits input (N, C) and classes target (N,): logsumexp(input) - input[target], averaged, summed or as it is.

    With label_smoothing s the target's weight is 1 - s + s/C and that of every other class s/C. Rows whose target is
    ignore_index give 0 and do not count in the mean. Second output: logsumexp (N,), for the backward pass.

    Raises:
        ShapeError (ValueError, RuntimeError): not (N, C) and (N,).
        DimError (ValueError, IndexError): a class outside [0, C).

    Example:
        >>> import zoo
        >>> zoo.nn.functional.cross_entropy(zoo.zeros(2, 4), zoo.tensor([0, 3])).item()
        1.3862943649291992
    """
    outputs = ("loss", "lse")
    reserve = ("lse",)

    def check(input, target, ignore_index=-100, reduction="mean", label_smoothing=0.0):
        need_classes(input, target, reduction, label_smoothing)
        shape = tuple(target.shape)
        return Spec(shape if reduction == "none" else (), input.dtype), Spec(shape, widened(input.dtype))

    def forward(input, target, ignore_index=-100, reduction="mean", label_smoothing=0.0):
        need_classes(input, target, reduction, label_smoothing)
        dtype, (n, classes) = input.dtype, input.shape
        if dtype in HALVES:
            input = input.astype(float32)
        if target.dtype is not int64:
            target = target.astype(int64)
        live = live_rows(target, classes, ignore_index)
        safe = target if live is None else np.where(live, target, 0)
        if not classes:
            loss = lse = np.full(n, -np.inf, input.dtype)
        elif input.size <= 2 * CHUNK:
            loss, lse = block_of(input, safe, label_smoothing)
        else:
            loss, lse = np.empty((2, n), input.dtype)

            def work(s: slice) -> None:
                loss[s], lse[s] = block_of(input[s], safe[s], label_smoothing)
            each(work, blocks_of(input), input.size)
        if live is not None:
            loss = np.where(live, loss, loss.dtype.type(0))
        if reduction != "none":
            loss = loss.dot(ones(n, loss.dtype)) if n <= LONGEST else np.add.reduce(loss)
            if reduction == "mean":
                loss = loss / (n if live is None else np.count_nonzero(live))
        return np.asarray(loss, dtype), lse

    dinput = cross_entropy_loss_grad

    def samples(rng):
        def case(n, c, *options):
            return rng.normal(size=(n, c)), rng.integers(0, c, n), *options
        ignored = np.array([1, -100, 2, 0])
        inf, nan = np.inf, np.nan
        wild = np.array([[inf, 0.0, 1.0], [-inf, 0.0, 1.0], [3e4, 0.0, -3e4], [nan, 0.0, 1.0], [2.0, 2.0, 2.0]])
        return {"ordinary": [case(4, 5), case(4, 5, -100, "sum"), case(4, 5, -100, "none"), case(4, 5, 1, "mean", 0.1),
                             (rng.normal(size=(4, 3)), ignored, -100, "mean"),
                             (rng.normal(size=(4, 3)), ignored, -100, "none", 0.3)],
                "empty": [case(0, 5), case(0, 5, -100, "none"), (rng.normal(size=(4, 3)), np.full(4, -100))],
                "0-d": "the op takes (N, C); face/loss.py reshapes",
                "odd": [case(7, 13), case(3, 1031, -100, "none"), case(67, 1)],
                "extreme": [(wild, np.array([1, 1, 0, 1, 2]), -100, "none")]}
