"""Scaled dot-product attention in torch's terms: masks of True and False, any leading dimensions, grouped queries."""
import math

import numpy as np

from zoo.ops.attention import attention
from zoo.ops.dtypes import bool_
from zoo.ops.errors import ArgumentError, DtypeError, ShapeError
from zoo.ops.op import OPS
from zoo.ops.shape import expand, filled, reshape

NAME = "scaled_dot_product_attention"


def attend(query, key, value, attn_mask, is_causal: bool, scale, enable_gqa: bool, p: float, seed: int, offset: int):
    """scaled_dot_product_attention with the draw of its dropout: (*, L, V)."""
    arrays = {"query": query, "key": key, "value": value}
    if any(x.ndim < 2 for x in arrays.values()):
        raise ShapeError(f"{NAME}: wants query (*, L, E), key (*, S, E) and value (*, S, V), got "
                         f"{', '.join(str(tuple(x.shape)) for x in arrays.values())}")
    if attn_mask is not None and is_causal:
        raise ArgumentError(f"{NAME}: wants attn_mask or is_causal, got both")
    if enable_gqa:
        key, value = (repeated_heads(query, x) for x in (key, value))
    shapes = [tuple(x.shape) for x in (query, key, value)]
    try:
        lead = shapes[0][:-2] if len({s[:-2] for s in shapes}) == 1 else np.broadcast_shapes(*(s[:-2] for s in shapes))
    except ValueError:
        raise ShapeError(f"{NAME}: wants leading dimensions that broadcast, got "
                         f"{', '.join(map(str, shapes))}") from None
    heads, batch = (lead or (1,))[-1], math.prod(lead[:-1])
    q, k, v = (x if s[:-2] == lead == (batch, heads) else reshape(expand(x, (*lead, *s[-2:])), (batch, heads, *s[-2:]))
               for x, s in zip((query, key, value), shapes, strict=True))
    bias = None if attn_mask is None else bias_of(attn_mask, query, lead, shapes[1][-2])
    factor = 1 / math.sqrt(max(shapes[0][-1], 1)) if scale is None else scale
    y = attention(q, k, v, bias, bool(is_causal), float(factor), float(p), seed, offset)[0]
    return y if len(lead) == 2 else reshape(y, (*lead, *y.shape[-2:]))


def repeated_heads(query, x):
    """x (*, H, S, E) with each head repeated, for the heads of the query (*, n H, L, E)."""
    if x.ndim < 3 or query.ndim < 3 or not x.shape[-3] or query.shape[-3] % x.shape[-3]:
        raise ShapeError(f"{NAME}: enable_gqa wants a multiple of the key's and value's heads, got query "
                         f"{tuple(query.shape)} and {tuple(x.shape)}")
    *lead, heads, steps, width = x.shape
    times = query.shape[-3] // heads
    spread = expand(reshape(x, (*lead, heads, 1, steps, width)), (*lead, heads, times, steps, width))
    return reshape(spread, (*lead, heads * times, steps, width))


def bias_of(mask, query, lead: tuple[int, ...], steps: int):
    """The mask as what is added to the scores, (B or 1, H or 1, L or 1, S or 1)."""
    if mask.dtype == bool_:
        mask = OPS["where"](mask, filled(query, (), 0), filled(query, (), -math.inf))
    elif mask.dtype != query.dtype:
        raise DtypeError(f"{NAME}: wants attn_mask bool or {query.dtype}, got {mask.dtype}")
    full = (*(lead or (1,)), query.shape[-2], steps)
    shape = (1,) * (len(full) - mask.ndim) + tuple(mask.shape)
    if len(shape) > len(full) or any(n not in (1, m) for n, m in zip(shape, full, strict=True)):
        raise ShapeError(f"{NAME}: wants attn_mask that broadcasts to {full}, got {tuple(mask.shape)}")
    mask = reshape(mask, shape)
    if any(n != 1 for n in shape[:-3]):
        mask = expand(mask, (*full[:-3], *shape[-3:]))
    return reshape(mask, (math.prod(mask.shape[:-3]), *shape[-3:]))


FUNCTIONS = METHODS = NN_FUNCTIONS = ()           # the public function draws its dropout: autograd/dropout.py
