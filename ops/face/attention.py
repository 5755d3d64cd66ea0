"""Scaled dot-product attention in torch's terms: masks of True and False, any leading dimensions, grouped queries."""
import math

import numpy as np

from zoo.ops.attention import attention, divides, repeated_heads
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
        key, value = grouped(query, key, value)
    shapes = [tuple(x.shape) for x in (query, key, value)]
    leads = [s[:-2] for s in shapes]
    if enable_gqa:                                                 # each head of a key stands for several
        leads[1:] = [(*lead[:-1], leads[0][-1]) for lead in leads[1:]]
    try:
        lead = leads[0] if leads[0] == leads[1] == leads[2] else np.broadcast_shapes(*leads)
    except ValueError:
        raise ShapeError(f"{NAME}: wants leading dimensions that broadcast, got "
                         f"{', '.join(map(str, shapes))}") from None
    heads, batch = (lead or (1,))[-1], math.prod(lead[:-1])
    q, k, v = (of_heads(x, (*lead[:-1], s[-3] if enable_gqa else heads), batch)
               for x, s in zip((query, key, value), shapes, strict=True))
    bias = None if attn_mask is None else bias_of(attn_mask, query, lead, shapes[1][-2])
    factor = 1 / math.sqrt(max(shapes[0][-1], 1)) if scale is None else scale
    y = attention(q, k, v, bias, bool(is_causal), float(factor), float(p), seed, offset)[0]
    return y if len(lead) == 2 else reshape(y, (*lead, *y.shape[-2:]))


def of_heads(x, lead: tuple[int, ...], batch: int):
    """x (*, L, E) with these leading dimensions as (batch, heads, L, E)."""
    whole = (batch, lead[-1], *x.shape[-2:])
    return x if x.shape == whole else reshape(expand(x, (*lead, *x.shape[-2:])), whole)


def grouped(query, key, value):
    """Key and value, whose heads (*, K, S, E) several of the query (*, n K, L, E) share; repeated if these differ."""
    for x in (key, value):
        if x.ndim < 3 or query.ndim < 3 or not x.shape[-3] or not divides(x.shape[-3], query.shape[-3]):
            raise ShapeError(f"{NAME}: enable_gqa wants a multiple of the key's and value's heads, got query "
                             f"{tuple(query.shape)} and {tuple(x.shape)}")
    if key.shape[-3] == value.shape[-3]:
        return key, value
    return [repeated_heads(x, query.shape[-3]) for x in (key, value)]


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
