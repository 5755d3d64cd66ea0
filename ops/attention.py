"""Scaled dot-product attention: one op, in blocks of rows, so that the matrix of weights is never whole in memory.

Source: A. Vaswani et al., arXiv 1706.03762; blocks and the kept logarithms: T. Dao et al., arXiv 2205.14135.
"""
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from zoo.ops.dtypes import FLOATS, HALVES, float32
from zoo.ops.errors import ArgumentError, DtypeError, ShapeError
from zoo.ops.norm import wide
from zoo.ops.op import OPS, Spec, structured
from zoo.ops.random import dropout_mask, philox, scale_of, threshold
from zoo.ops.rnn import lifted
from zoo.ops.shape import cast, expand, filled, permute, reshape, sum_to, tril

CELLS = 1 << 17         # weights of one block: they and their copies stay in cache


def check_attention(query, key, value, bias, p: float) -> None:
    """Raises unless query (B, H, L, E), key (B, K, S, E), value (B, K, S, V) and bias fit together; K divides H."""
    arrays = [a for a in (query, key, value, bias) if a is not None]
    if query.dtype not in FLOATS or any(a.dtype != query.dtype for a in arrays):
        raise DtypeError(f"attention: wants one floating dtype, got {', '.join(str(a.dtype) for a in arrays)}")
    if any(a.ndim != 4 for a in arrays) or tuple(key.shape[:3]) != tuple(value.shape[:3]) \
            or (key.shape[0], key.shape[3]) != (query.shape[0], query.shape[3]) \
            or not divides(key.shape[1], query.shape[1]):
        raise ShapeError("attention: wants query (B, H, L, E), key (B, H, S, E) and value (B, H, S, V), or fewer heads "
                         f"that divide H, got {', '.join(str(tuple(a.shape)) for a in (query, key, value))}")
    full = (*query.shape[:3], key.shape[2])
    if bias is not None and any(n not in (1, m) for n, m in zip(bias.shape, full, strict=True)):
        raise ShapeError(f"attention: wants a mask that broadcasts to {full}, got {tuple(bias.shape)}")
    if not 0 <= p <= 1:
        raise ArgumentError(f"attention: wants a dropout probability in [0, 1], got {p}")


def repeated(x: np.ndarray, heads: int) -> np.ndarray:
    """x (B, K, S, E) with each head for all query heads that share it, (B, heads, S, E)."""
    return x if x.shape[1] == heads else np.repeat(x, heads // x.shape[1], 1)


def repeated_heads(x, heads: int):
    """The same in ops, of x (*, K, S, E)."""
    *lead, given, steps, width = x.shape
    if given == heads:
        return x
    spread = expand(reshape(x, (*lead, given, 1, steps, width)), (*lead, given, heads // given, steps, width))
    return reshape(spread, (*lead, heads, steps, width))


def sum_of_shared(dx, heads: int):
    """Of gradients (B, H, S, E) of repeated heads those of the `heads` heads themselves; arrays or in ops."""
    b, every, steps, width = dx.shape
    if every == heads:
        return dx
    return OPS["sum"](reshape(dx, (b, heads, every // heads, steps, width)), (2,))


def divides(shared: int, heads: int) -> bool:
    """Can so many heads of keys and values be shared by the `heads` of the query?"""
    return shared == heads or shared > 0 and heads % shared == 0


class Block(NamedTuple):
    """Heads (of B * H) and their rows that are worked on together, and the columns [0, columns) that they may see."""
    heads: slice
    rows: slice
    columns: int


def blocks(heads: int, length: int, columns: int, causal: bool) -> Iterator[Block]:
    """All rows of all heads, in blocks of about CELLS weights."""
    rows = max(1, min(length, CELLS // max(columns, 1)))
    together = max(1, CELLS // max(rows * columns, 1)) if rows == length else 1
    for h in range(0, heads, together):
        for i in range(0, length, rows):
            stop = min(i + rows, length)
            yield Block(slice(h, min(h + together, heads)), slice(i, stop), min(stop, columns) if causal else columns)


class Weights:
    """The blocks of scores and of dropout's mask, for the arguments of one call; arrays (B * H, rows, ...)."""

    def __init__(self, query, key, bias, causal, scale, p, seed, offset):
        self.shape = (*query.shape[:3], key.shape[2])
        self.q, self.k = flat(query), flat(repeated(key, query.shape[1]))
        self.bias = None if bias is None else np.broadcast_to(bias, self.shape)
        self.causal, self.scale, self.p, self.seed, self.offset = causal, query.dtype.type(scale), p, seed, offset

    def blocks(self) -> Iterator[Block]:
        return blocks(len(self.q), self.shape[2], self.shape[3], self.causal)

    def scores(self, block: Block) -> np.ndarray:
        """scale * q k^T + bias; -inf where causal hides."""
        s = (self.q[block.heads, block.rows] * self.scale) @ self.k[block.heads, :block.columns].transpose(0, 2, 1)
        if self.bias is not None:
            b, h = np.divmod(np.arange(block.heads.start, block.heads.stop), self.shape[1])
            s += self.bias[b, h][:, block.rows, :block.columns]
        if self.causal:
            rows = np.arange(block.rows.start, block.rows.stop)
            np.copyto(s, -np.inf, where=np.arange(block.columns) > rows[:, None])
        return s

    def dropped(self, weights: np.ndarray, block: Block) -> np.ndarray:
        """Weights times dropout's mask: that of dropout_mask for the whole (B, H, L, S)."""
        if not self.p:
            return weights
        _, _, length, columns = self.shape
        heads = np.arange(block.heads.start, block.heads.stop)[:, None, None]
        rows = np.arange(block.rows.start, block.rows.stop)[:, None]
        first = ((heads * length + rows) * columns).astype(np.uint64)
        at = first + np.arange(block.columns, dtype=np.uint64)
        begin, end = int(at[0, 0, 0]) // 4, int(at[-1, -1, -1]) // 4 + 1
        words = philox(self.seed, self.offset, np.arange(begin, end, dtype=np.uint64)).reshape(-1)
        keep = words[(at - np.uint64(4 * begin)).astype(np.int64)] >> np.uint32(8) >= np.uint32(threshold(self.p))
        return np.where(keep, weights * weights.dtype.type(scale_of(self.p)), weights.dtype.type(0))


def flat(x: np.ndarray) -> np.ndarray:
    """(B, H, ...) as (B * H, ...)."""
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def samples(rng) -> dict:
    """Arguments of attention."""
    def case(b, h, length, s, e, v, bias=None, causal=False, p=0.0, share=1):
        shapes = (b, h, length, e), (b, h // share, s, e), (b, h // share, s, v)
        mask = None if bias is None else rng.normal(size=bias)
        return *(rng.normal(size=shape) for shape in shapes), mask, causal, 1 / math.sqrt(e), p, 7, (1 << 33) + 5
    hidden = list(case(1, 2, 3, 4, 2, 2, (1, 1, 3, 4)))
    hidden[3] = np.array([[0.0, -np.inf, 0.0, 1.0], [-np.inf] * 4, [1e4, 0.0, -1e4, 0.0]])[None, None]
    far = case(1, 1, 4, 5, 3, 2, causal=True)
    return {"ordinary": [case(2, 2, 3, 4, 5, 3), case(1, 2, 4, 4, 2, 2, (1, 2, 4, 4), True),
                         case(2, 1, 3, 5, 2, 3, (2, 1, 1, 5), p=0.4), case(1, 2, 2, 3, 2, 2, (1, 1, 1, 3)),
                         case(2, 6, 3, 4, 2, 3, (1, 6, 3, 4), True, 0.3, share=3)],
            "empty": [case(0, 2, 3, 4, 5, 3), case(1, 2, 0, 4, 2, 2), case(1, 1, 2, 0, 2, 2)],
            "0-d": "wants (B, H, L, E)",
            "odd": [case(1, 1, 17, 19, 3, 5, causal=True, p=0.1), case(1, 3, 5, 33, 7, 1, (1, 3, 5, 33))],
            "extreme": [tuple(hidden), (far[0] * 1e3, far[1] * 1e2, *far[2:])]}


@structured
class attention:
    """softmax(scale * query key^T + bias) value: each row of the query takes its weighted mean of the values.

    query (B, H, L, E), key (B, K, S, E), value (B, K, S, V), where K divides H: head h of the query reads head
    h // (H / K) of these; bias of 4 dimensions that broadcasts to (B, H, L, S), or None; -inf hides a key. causal: row
    i sees the keys up to i. p: dropout of the weights, drawn as dropout_mask does for (B, H, L, S) from (seed, offset).
    A row that sees no key is 0.
    -> y (B, H, L, V), and for the backward pass lse (B, H, L), float32 or wider: log sum exp of the scores.
    """
    outputs = ("y", "lse")
    reserve = ("lse",)
    differentiable = ("query", "key", "value", "bias")

    def check(query, key, value, bias, causal, scale, p, seed, offset):
        check_attention(query, key, value, bias, p)
        inner = float32 if query.dtype in HALVES else query.dtype
        return Spec((*query.shape[:3], value.shape[3]), query.dtype), Spec(tuple(query.shape[:3]), inner)

    def forward(query, key, value, bias, causal, scale, p, seed, offset):
        out, kept = attention.check(query, key, value, bias, causal, scale, p, seed, offset)
        query, key, value, bias = map(wide, (query, key, value, bias))
        weights = Weights(query, key, bias, causal, scale, p, seed, offset)
        v = flat(repeated(value, query.shape[1]))
        y = np.zeros((len(v), *out.shape[2:]), query.dtype)
        lse = np.full((len(v), out.shape[2]), -np.inf, query.dtype)
        for block in weights.blocks() if y.size and v.size else ():
            e = weights.scores(block)
            top = e.max(2, keepdims=True)
            top[top == -np.inf] = 0                      # a row that sees nothing: exp(-inf - 0) is 0
            np.exp(np.subtract(e, top, out=e), out=e)
            total = e.sum(2, keepdims=True)
            lse[block.heads, block.rows] = (np.log(total) + top)[..., 0]
            total[total == 0] = 1
            np.divide(weights.dropped(e, block) @ v[block.heads, :block.columns], total, y[block.heads, block.rows])
        return y.reshape(out.shape).astype(out.dtype, copy=False), lse.reshape(kept.shape)

    def backward(dy, query, key, value, bias, causal, scale, p, seed, offset, y, lse, wanted):
        *grads, dbias = attention_grad(dy, query, key, value, bias, y, lse, causal, scale, p, seed, offset, wanted[3])
        return *grads, dbias if wanted[3] else None

    def decompose(query, key, value, bias, causal, scale, p, seed, offset):
        dtype = query.dtype
        query, key, value, bias = lifted(query, key, value, bias)
        key, value = (repeated_heads(x, query.shape[1]) for x in (key, value))
        weights, lse = weights_of(query, key, bias, causal, scale)
        return cast(dropout_mask(weights, p, seed, offset) @ value, dtype), reshape(lse, tuple(lse.shape[:3]))

    samples = samples


def turned(x):
    """In ops: the last two of 4 dimensions exchanged."""
    return permute(x, (0, 1, 3, 2))


def weights_of(query, key, bias, causal: bool, scale: float):
    """In ops: the weights (B, H, L, S), 0 in rows that see nothing, and lse (B, H, L, 1)."""
    scores = (query @ turned(key)) * scale
    if bias is not None:
        scores = scores + bias
    if causal:
        ones = filled(scores, tuple(scores.shape[2:]), 1)
        scores = OPS["where"](OPS["gt"](tril(ones, 0), 0.0), scores, -math.inf)
    lse = OPS["logsumexp"](scores, (3,), True)
    return OPS["exp"](scores - OPS["where"](OPS["gt"](lse, -math.inf), lse, 0.0)), lse


@structured
class attention_grad:
    """Gradients of attention by query, key, value and bias, given dy (B, H, L, V), y and lse; weights are made anew.

    Without want_bias, dbias is (0,).
    """
    outputs = ("dquery", "dkey", "dvalue", "dbias")

    def check(dy, query, key, value, bias, y, lse, causal, scale, p, seed, offset, want_bias):
        last = tuple(bias.shape) if want_bias else (0,)
        return *(Spec(tuple(x.shape), query.dtype) for x in (query, key, value)), Spec(last, query.dtype)

    def forward(dy, query, key, value, bias, y, lse, causal, scale, p, seed, offset, want_bias):
        specs = attention_grad.check(dy, query, key, value, bias, y, lse, causal, scale, p, seed, offset, want_bias)
        dy, query, key, value, bias, y = map(wide, (dy, query, key, value, bias, y))
        weights = Weights(query, key, bias, causal, scale, p, seed, offset)
        v, g, most = flat(repeated(value, query.shape[1])), flat(dy), flat(np.where(lse == -np.inf, 0, lse))[..., None]
        mean = flat((dy * y).sum(3, keepdims=True))
        dq, dk, dv = (np.zeros_like(x) for x in (weights.q, weights.k, v))
        dbias = np.zeros(specs[3].shape, query.dtype)
        for block in weights.blocks() if g.size and v.size else ():
            heads, rows, columns = block.heads, block.rows, slice(0, block.columns)
            w = weights.scores(block)
            np.exp(np.subtract(w, most[heads, rows], out=w), out=w)
            dv[heads, columns] += weights.dropped(w, block).transpose(0, 2, 1) @ g[heads, rows]
            ds = weights.dropped(g[heads, rows] @ v[heads, columns].transpose(0, 2, 1), block)
            ds = np.multiply(np.subtract(ds, mean[heads, rows]), w, out=w)
            if want_bias:
                add_to_bias(dbias, ds, block, query.shape[1])
            ds *= weights.scale
            dq[heads, rows] += ds @ weights.k[heads, columns]
            dk[heads, columns] += ds.transpose(0, 2, 1) @ weights.q[heads, rows]
        dk, dv = (sum_of_shared(d.reshape(*query.shape[:2], *d.shape[1:]), key.shape[1]) for d in (dk, dv))
        return tuple(d.reshape(s.shape).astype(s.dtype, copy=False) for d, s in zip((dq, dk, dv, dbias), specs,
                                                                                    strict=True))

    def decompose(dy, query, key, value, bias, y, lse, causal, scale, p, seed, offset, want_bias):
        dtype = query.dtype
        dy, query, key, value, bias = lifted(dy, query, key, value, bias)
        shared, (key, value) = key.shape[1], (repeated_heads(x, query.shape[1]) for x in (key, value))
        weights, _ = weights_of(query, key, bias, causal, scale)
        dvalue = turned(dropout_mask(weights, p, seed, offset)) @ dy
        dweights = dropout_mask(dy @ turned(value), p, seed, offset)
        ds = weights * (dweights - OPS["sum"](weights * dweights, (3,), True))
        dbias = sum_to(ds, tuple(bias.shape)) if want_bias else filled(ds, (0,), 0)
        grads = ((ds @ key) * scale, sum_of_shared((turned(ds) @ query) * scale, shared),
                 sum_of_shared(dvalue, shared), dbias)
        return tuple(cast(d, dtype) for d in grads)

    def samples(rng):
        def case(row):
            query, key, value, bias, causal, scale, p, seed, offset = row
            y, lse = attention.forward(*row)
            return (rng.normal(size=y.shape), query, key, value, bias, y, lse, causal, scale, p, seed, offset,
                    bias is not None)
        found = {kind: rows if isinstance(rows, str) else [case(row) for row in rows]
                 for kind, rows in samples(rng).items()}
        return found | {"extreme": "as the forward op; scores of 1e5 leave no digits to gradients of exp(s - lse)"}


def add_to_bias(dbias: np.ndarray, ds: np.ndarray, block: Block, heads: int) -> None:
    """Adds the block's gradients of scores (heads, rows, columns) where the bias was broadcast from."""
    if dbias.shape[3] == 1:
        ds = ds.sum(2, keepdims=True)
    if dbias.shape[2] == 1:
        ds = ds.sum(1, keepdims=True)
    rows = block.rows if dbias.shape[2] > 1 else slice(0, 1)
    for d, n in zip(ds, range(block.heads.start, block.heads.stop), strict=True):
        b, h = divmod(n, heads)
        dbias[b % dbias.shape[0], h % dbias.shape[1], rows, :d.shape[1]] += d
