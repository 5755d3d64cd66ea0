"""Losses in torch's signatures.

reduction is "mean", "sum" or "none"; size_average and reduce are torch's old spelling of it.
"""
import math
import warnings

import numpy as np

from zoo.ops.device import constant
from zoo.ops.dtypes import INTS
from zoo.ops.errors import ArgumentError, DimError, DtypeError, ShapeError
from zoo.ops.loss import cross_entropy_loss
from zoo.ops.op import OPS
from zoo.ops.pointwise_loss import (
    absolute_error,
    binary_entropy,
    binary_entropy_with_logits,
    relative_entropy,
    smooth_absolute_error,
    squared_error,
)
from zoo.ops.pointwise_loss import huber as huber_error
from zoo.ops.shape import cast, expand, permute, reshape


def shapes(*xs) -> str:
    return " and ".join(str(tuple(x.shape)) for x in xs)


def reduced(loss, reduction: str, size_average=None, reduce=None):
    """The mean, the sum, or the loss as it is."""
    reduction = legacy(reduction, size_average, reduce)
    return loss if reduction == "none" else OPS[reduction](loss)


def weighed(loss, weight):
    """loss * weight, where the weight broadcasts to the loss; None is 1."""
    if weight is None:
        return loss
    if np.broadcast_shapes(tuple(weight.shape), tuple(loss.shape)) != tuple(loss.shape):
        raise ShapeError(f"loss: wants a weight that broadcasts to {tuple(loss.shape)}, got {tuple(weight.shape)}")
    return loss * weight


def positive_part(x):
    """max(x, 0); at 0 it hands its gradient on, so that two equal scores part without a margin too."""
    return OPS["clamp_min"](x, 0.0)


def legacy(reduction: str, size_average=None, reduce=None) -> str:
    """The reduction that torch's two old arguments mean, if one of them is given."""
    if size_average is None and reduce is None:
        if reduction not in ("mean", "sum", "none"):
            raise ArgumentError(f"loss: wants reduction mean, sum or none, got {reduction!r}")
        return reduction
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def class_rows(op: str, input, target):
    """(N, C, d1 ...) or (C,) as rows (M, C), and the targets as (M,)."""
    if input.ndim == 0 or input.ndim > 1 and (input.shape[0], *input.shape[2:]) != tuple(target.shape) \
            or input.ndim == 1 and target.ndim > 0:
        raise ShapeError(f"{op}: wants (N, C, d1 ...) and (N, d1 ...), got {shapes(input, target)}")
    if input.ndim == 2:
        return input, target
    if input.ndim == 1:
        return reshape(input, (1, input.shape[0])), reshape(target, (1,))
    n = input.ndim
    rows = reshape(permute(input, (0, *range(2, n), 1)), (math.prod(target.shape), input.shape[1]))
    return rows, reshape(target, (math.prod(target.shape),))


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                  label_smoothing=0.0):
    """Logits against classes or class probabilities: -sum over c of weight_c p_c log softmax(input)_c.

    Args:
        input: logits (N, C), (C,) or (N, C, d1 ...), floating.
        target: classes (N,), (), (N, d1 ...), integers, where ignore_index does not count; or probabilities as input.
        weight: a factor for each class (C,); the mean is divided by the sum of those that were met.
        label_smoothing: how much of the target goes to all classes alike, in [0, 1].

    Raises:
        ShapeError (ValueError, RuntimeError): shapes that do not fit together.
        DimError (ValueError, IndexError): a class outside [0, C).
        ArgumentError (ValueError, RuntimeError): an ignore_index beside probabilities.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.cross_entropy(zoo.zeros(2, 4), zoo.tensor([0, 3])).item()
        1.3862943649291992
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(reduction, size_average, reduce)
    if weight is None and target.dtype in INTS and input.shape != target.shape:
        rows, classes = (input, target) if input.ndim == 2 else class_rows("cross_entropy", input, target)
        loss = cross_entropy_loss(rows, classes, ignore_index, reduction, label_smoothing)[0]
        return loss if reduction != "none" or target.ndim == 1 else reshape(loss, tuple(target.shape))
    if target.dtype in INTS and input.shape != target.shape:
        return class_losses(input, target, weight, ignore_index, reduction, label_smoothing)
    if ignore_index >= 0:
        raise ArgumentError(f"cross_entropy: wants no ignore_index with probabilities, got {ignore_index}")
    return probability_losses(input, target, weight, reduction, label_smoothing)


def class_losses(input, target, weight, ignore_index: int, reduction: str, smoothing: float):
    """Cross entropy of classes, each with its own weight."""
    rows, classes = class_rows("cross_entropy", input, target)
    check_weight("cross_entropy", rows, weight)
    log = OPS["log_softmax"](rows, 1)
    weights, loss = picked(log, classes, weight, ignore_index)
    if smoothing:
        even = where_number(OPS["eq"](classes, ignore_index), 0.0, OPS["sum"](log * weight, 1))
        loss = loss * (1 - smoothing) - even * (smoothing / rows.shape[1])
    return averaged(loss, weights, reduction, target.shape)


def check_weight(op: str, rows, weight) -> None:
    if weight is not None and tuple(weight.shape) != (rows.shape[1],):
        raise ShapeError(f"{op}: wants a weight ({rows.shape[1]},), one for each class, got {tuple(weight.shape)}")


def picked(log, target, weight, ignore_index: int):
    """(weight of each row's class, -weight * log[row, class]), both 0 where the class is ignore_index."""
    ignored = OPS["eq"](target, ignore_index)
    safe = where_number(ignored, 0, target)
    if isinstance(safe, np.ndarray) and safe.size and not 0 <= safe.min() <= safe.max() < log.shape[1]:
        raise DimError(f"nll_loss: wants classes in [0, {log.shape[1]}), got {int(safe.min())} to {int(safe.max())}")
    live = 1.0 - cast(ignored, log.dtype)
    weights = live if weight is None else OPS["gather"](weight, 0, safe) * live
    chosen = reshape(OPS["gather"](log, 1, reshape(safe, (safe.shape[0], 1))), (safe.shape[0],))
    return weights, -where_number(ignored, 0.0, chosen) * weights


def where_number(condition, number, x):
    """x with a number where the condition holds."""
    return OPS["where"](condition, number, x)


def averaged(loss, weights, reduction: str, shape):
    """Reduced losses of classes: the mean divides by the sum of the weights."""
    if reduction == "none":
        return loss if len(shape) == 1 else reshape(loss, tuple(shape))
    loss = OPS["sum"](loss)
    return loss / OPS["sum"](weights) if reduction == "mean" else loss


def probability_losses(input, target, weight, reduction: str, smoothing: float):
    """Cross entropy of class probabilities, of input's shape."""
    if tuple(input.shape) != tuple(target.shape):
        raise ShapeError(f"cross_entropy: wants probabilities like input, got {shapes(input, target)}")
    dim = 0 if input.ndim == 1 else 1
    classes = input.shape[dim]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / classes
    log = OPS["log_softmax"](input, dim)
    if weight is not None:
        if tuple(weight.shape) != (classes,):
            raise ShapeError(f"cross_entropy: wants a weight ({classes},), one for each class, got {shapes(weight)}")
        log = log * reshape(weight, (*(1,) * dim, classes, *(1,) * (input.ndim - dim - 1)))
    loss = -OPS["sum"](log * target, dim)
    if reduction == "mean":
        return OPS["sum"](loss) / math.prod(loss.shape)
    return reduced(loss, reduction)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """-weight[target] * input[target] of log probabilities input (N, C, d1 ...) or (C,) and classes (N, d1 ...) or ().

    The mean divides by the sum of the weights that were met. Raises as `cross_entropy`.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.nll_loss(zoo.tensor([[-1.0, -2.0]]), zoo.tensor([1])).item()
        2.0
    """
    reduction = legacy(reduction, size_average, reduce)
    if target.dtype not in INTS:
        raise DtypeError(f"nll_loss: wants integer classes, got {target.dtype}")
    rows, classes = class_rows("nll_loss", input, target)
    check_weight("nll_loss", rows, weight)
    weights, loss = picked(rows, classes, weight, ignore_index)
    return averaged(loss, weights, reduction, target.shape)


def same_shape(op: str, input, target) -> None:
    if tuple(input.shape) != tuple(target.shape):
        raise ArgumentError(f"{op}: wants a target like input, got {tuple(target.shape)} for {tuple(input.shape)}")


def need_to_broadcast(op: str, input, target) -> None:
    """Raises in the name of the loss, not of the op inside it."""
    try:
        np.broadcast_shapes(tuple(input.shape), tuple(target.shape))
    except ValueError:
        raise ShapeError(f"{op}: wants shapes that broadcast, got input {tuple(input.shape)} and target "
                         f"{tuple(target.shape)}") from None


def compared(op: str, error, input, target, *options):
    """error(input, target), an elementwise Op; warns where shapes differ: (N, 1) against (N,) is hardly ever meant."""
    need_to_broadcast(op, input, target)
    result = error(input, target, *options)
    if tuple(input.shape) != tuple(target.shape):
        warnings.warn(f"{op}: the target's shape {tuple(target.shape)} differs from the input's {tuple(input.shape)}; "
                      "they broadcast, which will likely lead to incorrect results", stacklevel=3)
    return result


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """(input - target)^2, averaged, summed or as it is; shapes broadcast.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.mse_loss(zoo.tensor([1.0, 2.0]), zoo.tensor([1.0, 4.0])).item()
        2.0
    """
    return weighted_mean(compared("mse_loss", squared_error, input, target), weight, reduction, size_average, reduce)


def weighted_mean(loss, weight, reduction: str, size_average, reduce):
    """torch's weighted losses: the mean is sum(weight * loss) / sum(weight)."""
    if weight is None:
        return reduced(loss, reduction, size_average, reduce)
    same_shape("a weighted loss", loss, weight)
    loss, reduction = loss * weight, legacy(reduction, size_average, reduce)
    return OPS["sum"](loss) / OPS["sum"](weight) if reduction == "mean" else reduced(loss, reduction)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """|input - target|, averaged, summed or as it is; shapes broadcast."""
    return weighted_mean(compared("l1_loss", absolute_error, input, target), weight, reduction, size_average, reduce)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """0.5 (input - target)^2 / beta where |input - target| < beta, else |input - target| - beta / 2."""
    if beta < 0:
        raise ArgumentError(f"smooth_l1_loss: wants beta >= 0, got {beta}")
    error, options = (smooth_absolute_error, (float(beta),)) if beta else (absolute_error, ())
    loss = compared("smooth_l1_loss", error, input, target, *options)
    return reduced(loss, reduction, size_average, reduce)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """0.5 (input - target)^2 where |input - target| < delta, else delta (|input - target| - delta / 2).

    weight: a factor of each element; the mean is over their number (mse_loss and l1_loss divide by the weights' sum).
    """
    if delta <= 0:
        raise ArgumentError(f"huber_loss: wants delta > 0, got {delta}")
    loss = compared("huber_loss", huber_error, input, target, float(delta))
    if weight is not None:
        same_shape("huber_loss", input, weight)
        loss = loss * weight
    return reduced(loss, reduction)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """-(target log input + (1 - target) log(1 - input)), each logarithm at least -100; input in [0, 1].

    Raises:
        ArgumentError (ValueError, RuntimeError): target has another shape than input, or (seen on the CPU) input is not
            in [0, 1].
    """
    same_shape("binary_cross_entropy", input, target)
    raw = getattr(input, "array", input)
    if isinstance(raw, np.ndarray) and raw.size and not (raw.min() >= 0 and raw.max() <= 1):
        raise ArgumentError(f"binary_cross_entropy: wants input in [0, 1], got {raw.min()} to {raw.max()}; logits go "
                            "to binary_cross_entropy_with_logits")
    return reduced(weighed(binary_entropy(input, target), weight), reduction, size_average, reduce)


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean",
                                     pos_weight=None):
    """Binary cross entropy of sigmoid(input), right for any input; pos_weight multiplies the part of target.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.binary_cross_entropy_with_logits(zoo.zeros(2), zoo.ones(2)).item()
        0.6931471824645996
    """
    same_shape("binary_cross_entropy_with_logits", input, target)
    loss = binary_entropy_with_logits(input, target)
    if pos_weight is not None:
        loss = loss + (pos_weight - 1.0) * target * binary_entropy_with_logits(input, 1.0)
    return reduced(weighed(loss, weight), reduction, size_average, reduce)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target (log target - input) for log probabilities input; "batchmean" divides the sum by the batch size."""
    need_to_broadcast("kl_div", input, target)
    loss = OPS["exp"](target) * (target - input) if log_target else relative_entropy(input, target)
    if reduction == "batchmean":
        return OPS["sum"](loss) / (loss.shape[0] if loss.ndim else 1)
    return reduced(loss, reduction, size_average, reduce)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target * input)), target 1 or -1."""
    need_to_broadcast("soft_margin_loss", input, target)
    return reduced(-OPS["logsigmoid"](input * target), reduction, size_average, reduce)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """input where target is 1, max(0, margin - input) where it is -1."""
    need_to_broadcast("hinge_embedding_loss", input, target)
    far = OPS["where"](OPS["eq"](target, 1), 0.0, positive_part(margin - input))
    return reduced(far + OPS["where"](OPS["eq"](target, -1), 0.0, input), reduction, size_average, reduce)


def margin_ranking_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None, reduction="mean"):
    """max(0, -target (input1 - input2) + margin), target 1 or -1."""
    if not input1.ndim == input2.ndim == target.ndim:
        raise ShapeError(f"margin_ranking_loss: wants three arrays of equally many dimensions, got "
                         f"{tuple(input1.shape)}, {tuple(input2.shape)} and {tuple(target.shape)}")
    return reduced(positive_part(-target * (input1 - input2) + margin), reduction, size_average, reduce)


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None,
                     reduction="mean"):
    """exp(input) - target * input, or without log_input: input - target log(input + eps); full adds Stirling's term."""
    need_to_broadcast("poisson_nll_loss", input, target)
    loss = OPS["exp"](input) - target * input if log_input else input - target * OPS["log"](input + eps)
    if full:
        safe = OPS["where"](OPS["gt"](target, 1), target, 1.0)
        stirling = safe * OPS["log"](safe) - safe + OPS["log"](safe * (2 * math.pi)) * 0.5
        loss = loss + OPS["where"](OPS["gt"](target, 1), stirling, 0.0)
    return reduced(loss, reduction, size_average, reduce)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """(log var + (input - target)^2 / var) / 2 with var at least eps; full adds log(2 pi) / 2.

    var has the shape of input, or 1 in its last dimension, or lacks it, or is one number.
    """
    need_to_broadcast("gaussian_nll_loss", input, target)
    if isinstance(var, (int, float)):
        if var < 0:
            raise ArgumentError(f"gaussian_nll_loss: wants var >= 0, got {var}")
        var = expand(constant(np.asarray(var, input.dtype), input), tuple(input.shape))
    elif tuple(var.shape) != tuple(input.shape):
        if tuple(input.shape[:-1]) == tuple(var.shape):
            var = reshape(var, (*var.shape, 1))
        elif tuple(input.shape[:-1]) != tuple(var.shape[:-1]) or var.shape[-1] != 1:
            raise ArgumentError(f"gaussian_nll_loss: wants var like input, got {shapes(input, var)}")
    if bool(OPS["any"](OPS["lt"](var, 0))):
        raise ArgumentError("gaussian_nll_loss: wants var >= 0, got a negative one")
    held = var.detach() if hasattr(var, "detach") else var
    var = var + (OPS["maximum"](held, eps) - held)              # torch: the bound has no part in the gradient
    error = input - target
    loss = (OPS["log"](var) + error * error / var) * 0.5
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along dim; the other dimensions broadcast.

    Example:
        >>> import zoo
        >>> zoo.nn.functional.cosine_similarity(zoo.ones(1, 2), zoo.ones(1, 2)).round(decimals=5).tolist()
        [1.0]
    """
    need_to_broadcast("cosine_similarity", x1, x2)
    shape = np.broadcast_shapes(tuple(x1.shape), tuple(x2.shape))
    x1, x2 = (expand(x, shape) for x in (x1, x2))
    unit = [x / OPS["maximum"](OPS["vector_norm"](x, 2, dim, True), eps) for x in (x1, x2)]
    return OPS["sum"](unit[0] * unit[1], dim)


def cosine_embedding_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1; inputs (N, D) or (D,)."""
    if input1.ndim != target.ndim + 1 or input2.ndim != input1.ndim or target.ndim > 1:
        raise ShapeError(f"cosine_embedding_loss: wants (N, D), (N, D) and (N,), or (D,), (D,) and (), got "
                         f"{tuple(input1.shape)}, {tuple(input2.shape)} and {tuple(target.shape)}")
    d = target.ndim
    one, two = OPS["sum"](input1 * input1, d) + 1e-12, OPS["sum"](input2 * input2, d) + 1e-12
    cos = OPS["sum"](input1 * input2, d) / OPS["sqrt"](one * two)
    eq, pick = OPS["eq"], OPS["where"]
    loss = pick(eq(target, 1), 1.0 - cos, 0.0) + pick(eq(target, -1), positive_part(cos - margin), 0.0)
    return reduced(loss, reduction, size_average, reduce)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of x1 - x2 + eps along the last dimension."""
    return OPS["vector_norm"](x1 - x2 + eps, p, -1, keepdim)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False,
                                      reduction="mean"):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin); swap: d(positive, negative) if that is less.

    distance_function: d, of two tensors; by default `pairwise_distance`.
    """
    if margin <= 0:
        raise ArgumentError(f"triplet_margin_loss: wants margin > 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError(f"triplet_margin_loss: wants three arrays of equally many dimensions, got "
                         f"{tuple(anchor.shape)}, {tuple(positive.shape)} and {tuple(negative.shape)}")
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = OPS["minimum"](far, distance(positive, negative))
    return reduced(positive_part(near - far + margin), reduction)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None,
                        reduce=None, reduction="mean"):
    """max(0, |anchor - positive|_p - |anchor - negative|_p + margin) over the last dimension."""
    def distance(a, b):
        return pairwise_distance(a, b, p, eps)
    return triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=distance, margin=margin,
                                             swap=swap, reduction=legacy(reduction, size_average, reduce))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean over the classes (last dimension) of the binary cross entropy of sigmoid(input)."""
    same_shape("multilabel_soft_margin_loss", input, target)
    loss = weighed(binary_entropy_with_logits(input, target), weight)
    return reduced(OPS["mean"](loss, -1), reduction, size_average, reduce)


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The sum over the wrong classes of max(0, margin - input[target] + input)^p, over C; input (N, C) or (C,)."""
    if p not in (1, 2):
        raise ArgumentError(f"multi_margin_loss: wants p 1 or 2, got {p}")
    rows = input if input.ndim == 2 else reshape(input, (1, math.prod(input.shape)))
    if input.ndim > 2 or target.ndim > 1 or math.prod(target.shape) != rows.shape[0]:
        raise ShapeError(f"multi_margin_loss: wants (N, C) and (N,), got {shapes(input, target)}")
    column = reshape(target, (rows.shape[0], 1))
    check_weight("multi_margin_loss", rows, weight)
    apart = OPS["relu"](rows - OPS["gather"](rows, 1, column) + margin)
    apart = apart if p == 1 else apart * apart
    if weight is not None:
        apart = apart * reshape(OPS["gather"](weight, 0, reshape(target, (rows.shape[0],))), (rows.shape[0], 1))
    own = OPS["eq"](column, constant(np.arange(rows.shape[1]), input))
    loss = OPS["mean"](where_number(own, 0.0, apart), 1)
    return reduced(loss if input.ndim == 2 else reshape(loss, ()), reduction, size_average, reduce)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """The sum over right classes j and wrong ones i of max(0, 1 - input[j] + input[i]), over C; input (N, C) or (C,).

    Row by row, the classes of target (like input) up to the first -1 are the right ones.
    """
    if tuple(input.shape) != tuple(target.shape) or input.ndim > 2:
        raise ShapeError(f"multilabel_margin_loss: wants (N, C) twice, got {shapes(input, target)}")
    if input.ndim and not input.shape[-1]:
        raise ShapeError(f"multilabel_margin_loss: wants at least one class, got {shapes(input, target)}")
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(f"multilabel_margin_loss: wants reduction mean, sum or none, got {reduction!r}")
    n, classes = (input.shape if input.ndim == 2 else (1, math.prod(input.shape)))
    x, t = reshape(input, (n, classes)), reshape(target, (n, classes))
    right = OPS["cumprod"](cast(OPS["ge"](t, 0), x.dtype), 1)
    safe = where_number(OPS["lt"](t, 0), 0, t)
    hit = cast(OPS["eq"](reshape(safe, (n, classes, 1)), constant(np.arange(classes), input)), x.dtype)
    wrong = 1.0 - OPS["amax"](hit * reshape(right, (n, classes, 1)), 1, True)
    chosen = reshape(OPS["gather"](x, 1, safe), (n, classes, 1))
    margins = OPS["relu"](1.0 - chosen + reshape(x, (n, 1, classes))) * reshape(right, (n, classes, 1)) * wrong
    loss = OPS["sum"](margins, (1, 2)) / classes
    return reduced(loss if input.ndim == 2 else reshape(loss, ()), reduction, size_average, reduce)


FUNCTIONS = ("cosine_similarity", "pairwise_distance", "hinge_embedding_loss", "margin_ranking_loss",
             "poisson_nll_loss", "cosine_embedding_loss", "triplet_margin_loss", "kl_div")
METHODS = ()
NN_FUNCTIONS = ("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
                "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "soft_margin_loss",
                "hinge_embedding_loss",
                "margin_ranking_loss", "poisson_nll_loss", "gaussian_nll_loss", "cosine_similarity",
                "cosine_embedding_loss", "pairwise_distance", "triplet_margin_loss",
                "triplet_margin_with_distance_loss", "multilabel_soft_margin_loss", "multi_margin_loss",
                "multilabel_margin_loss")
INPLACE = ()
