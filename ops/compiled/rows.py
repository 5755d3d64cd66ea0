"""Functions of rows (R, C): softmax, layer norm, products, scans, sums by number; a row stays in the first-level cache.

A sum in float32 is sixteen sums side by side; `rows_for` gives this module for C that leave none with more than 256
terms. The steps of a pass are functions of (..., place, n), called with n = 16 and once for the rest: Zen 5 does not
prefetch what masked loads read. See softmax_cpu.py, norm_rows_cpu.py, loss.py, scan_cpu.py, reduce_cpu.py and index.py.
"""
import numpy as np
from numba import types  # pyright: ignore[reportMissingImports]

from zoo.ops.compiled.build import boolean, inline, kernel, number, reads, writes
from zoo.ops.compiled.functions import exp, first, largest_of, product_of, sum_of
from zoo.ops.compiled.vector import LANES, chosen, fma, load, splat, store


@inline
def top_of(x, at, columns):
    """The largest of a row; a NaN may be passed over: it reaches the sum by itself."""
    top = load(x, at + columns - LANES, LANES)
    again = top
    for c in range(0, columns - 2 * LANES, 2 * LANES):
        v, w = load(x, at + c, LANES), load(x, at + c + LANES, LANES)
        top, again = chosen(top, v, v, top), chosen(again, w, w, again)
    v = load(x, at + (columns - LANES) // (2 * LANES) * 2 * LANES, LANES)
    return largest_of(chosen(top, again, again, chosen(top, v, v, top)))


# -- softmax

@inline
def exp_into(y, x, top, i, n):
    e = exp(load(x, i, n) - top)
    store(y, i, e, n)
    return first(e, n)


@inline
def scale(y, factor, i, n):
    store(y, i, load(y, i, n) * factor, n)


@kernel(writes(2), reads(2))
def softmax(y, x):
    """y = exp(x - its row's largest) / their sum."""
    rows, columns = x.shape
    rest = columns % LANES
    for at in range(0, rows * columns, columns):
        tail = at + columns - rest
        top, total = splat(top_of(x, at, columns)), splat(0.0)
        for i in range(at, tail, LANES):
            total = total + exp_into(y, x, top, i, LANES)
        factor = splat(np.float32(1) / sum_of(total + exp_into(y, x, top, tail, rest)))
        for i in range(at, tail, LANES):
            scale(y, factor, i, LANES)
        scale(y, factor, tail, rest)


@inline
def softmax_slope(dx, dy, y, s, i, n):
    store(dx, i, (load(dy, i, n) - s) * load(y, i, n), n)


@kernel(writes(2), reads(2), reads(2))
def softmax_grad(dx, dy, y):
    """dx = (dy - sum(dy y)) y."""
    rows, columns = y.shape
    rest = columns % LANES
    for at in range(0, rows * columns, columns):
        tail = at + columns - rest
        total = load(dy, tail, rest) * load(y, tail, rest)
        for i in range(at, tail, LANES):
            total = fma(load(dy, i, LANES), load(y, i, LANES), total)
        s = splat(sum_of(total))
        for i in range(at, tail, LANES):
            softmax_slope(dx, dy, y, s, i, LANES)
        softmax_slope(dx, dy, y, s, tail, rest)


@inline
def log_sum(x, at, columns):
    """(a row's largest element, the logarithm of the sum of exp(x) less that)."""
    rest = columns % LANES
    tail = at + columns - rest
    largest = top_of(x, at, columns)
    top = splat(largest)
    total = first(exp(load(x, tail, rest) - top), rest)
    for i in range(at, tail, LANES):
        total = total + exp(load(x, i, LANES) - top)
    return largest, np.log(sum_of(total))


@kernel(writes(1), writes(1), reads(2))
def top_and_rest(top, rest, x):
    """The logarithm of each row's sum of exp(x) is top (R,), its largest element, + rest (R,)."""
    rows, columns = x.shape
    for r in range(rows):
        top[r], rest[r] = log_sum(x, r * columns, columns)


@inline
def less_two(y, x, a, b, i, n):
    store(y, i, load(x, i, n) - a - b, n)


@kernel(writes(2), reads(2))
def log_softmax(y, x):
    """y = x - its row's largest - the logarithm of the sum of exp of that."""
    rows, columns = x.shape
    rest = columns % LANES
    for at in range(0, rows * columns, columns):
        tail = at + columns - rest
        top, left = log_sum(x, at, columns)
        a, b = splat(top), splat(left)
        for i in range(at, tail, LANES):
            less_two(y, x, a, b, i, LANES)
        less_two(y, x, a, b, tail, rest)


@inline
def log_softmax_slope(dx, dy, y, s, i, n):
    store(dx, i, load(dy, i, n) - exp(load(y, i, n)) * s, n)


@kernel(writes(2), reads(2), reads(2))
def log_softmax_grad(dx, dy, y):
    """dx = dy - exp(y) sum(dy)."""
    rows, columns = y.shape
    rest = columns % LANES
    for at in range(0, rows * columns, columns):
        tail = at + columns - rest
        total = load(dy, tail, rest)
        for i in range(at, tail, LANES):
            total = total + load(dy, i, LANES)
        s = splat(sum_of(total))
        for i in range(at, tail, LANES):
            log_softmax_slope(dx, dy, y, s, i, LANES)
        log_softmax_slope(dx, dy, y, s, tail, rest)


@inline
def scaled_exp(y, x, lse, scale, i, n):
    store(y, i, exp(load(x, i, n) - lse) * scale, n)


@kernel(writes(2), reads(2), reads(1), reads(1))
def scaled_softmax(y, x, lse, scale):
    """y = exp(x - lse) * scale, lse and scale (R,)."""
    rows, columns = x.shape
    rest = columns % LANES
    for r in range(rows):
        at, tail = r * columns, (r + 1) * columns - rest
        a, b = splat(lse[r]), splat(scale[r])
        for i in range(at, tail, LANES):
            scaled_exp(y, x, a, b, i, LANES)
        scaled_exp(y, x, a, b, tail, rest)


# -- layer norm

@inline
def moments(x, at, columns, eps):
    """(mean, what rounding left of it, 1 / standard deviation) of a row."""
    rest = columns % LANES
    tail, count = at + columns - rest, np.float32(columns)
    s = load(x, tail, rest)
    for i in range(at, tail, LANES):
        s = s + load(x, i, LANES)
    mean = splat(sum_of(s) / count)
    s = first(load(x, tail, rest) - mean, rest)
    t = s * s
    for i in range(at, tail, LANES):
        d = load(x, i, LANES) - mean
        s, t = s + d, fma(d, d, t)
    left = sum_of(s) / count
    return mean, splat(left), splat(np.float32(1) / np.sqrt(sum_of(t) / count - left * left + eps))


@inline
def norm_into(y, x, weight, bias, mean, left, rstd, at, c, n):
    h = (load(x, at + c, n) - mean - left) * rstd
    store(y, at + c, fma(h, load(weight, c, n), load(bias, c, n)), n)


@kernel(writes(2), reads(2), reads(1), reads(1), number)
def layer_norm(y, x, weight, bias, eps):
    """y = (x - mean) / standard deviation * weight (C,) + bias (C,)."""
    rows, columns = x.shape
    full = columns - columns % LANES
    for at in range(0, rows * columns, columns):
        mean, left, rstd = moments(x, at, columns, eps)
        for c in range(0, full, LANES):
            norm_into(y, x, weight, bias, mean, left, rstd, at, c, LANES)
        norm_into(y, x, weight, bias, mean, left, rstd, at, full, columns - full)


@inline
def affine_slopes(dweight, dbias, dy, x, weight, mean, left, rstd, at, c, n):
    """Adds this row's part to dweight and dbias; gives dy weight, and that times the normalised x."""
    g, h = load(dy, at + c, n), (load(x, at + c, n) - mean - left) * rstd
    store(dweight, c, fma(g, h, load(dweight, c, n)), n)
    store(dbias, c, load(dbias, c, n) + g, n)
    g = g * load(weight, c, n)
    return g, g * h


@inline
def norm_slope(dx, dy, x, weight, mean, left, rstd, plain, along, at, c, n):
    g, h = load(dy, at + c, n) * load(weight, c, n), (load(x, at + c, n) - mean - left) * rstd
    store(dx, at + c, (g - plain - h * along) * rstd, n)


@kernel(writes(2), writes(1), writes(1), reads(2), reads(2), reads(1), number)
def layer_norm_grad(dx, dweight, dbias, dy, x, weight, eps):
    """layer_norm's gradients; dweight and dbias (C,) are sums over these rows."""
    rows, columns = x.shape
    rest, count = columns % LANES, np.float32(columns)
    full = columns - rest
    dweight[:], dbias[:] = 0, 0
    for at in range(0, rows * columns, columns):
        mean, left, rstd = moments(x, at, columns, eps)
        plain, along = affine_slopes(dweight, dbias, dy, x, weight, mean, left, rstd, at, full, rest)
        for c in range(0, full, LANES):
            g, t = affine_slopes(dweight, dbias, dy, x, weight, mean, left, rstd, at, c, LANES)
            plain, along = plain + g, along + t
        plain, along = splat(sum_of(plain) / count), splat(sum_of(along) / count)
        for c in range(0, full, LANES):
            norm_slope(dx, dy, x, weight, mean, left, rstd, plain, along, at, c, LANES)
        norm_slope(dx, dy, x, weight, mean, left, rstd, plain, along, at, full, rest)


# -- products, running sums and products

@kernel(writes(1), reads(2))
def prod(y, x):
    """y (R,): the product of each row."""
    rows, columns = x.shape
    full = columns - columns % (2 * LANES)
    for r in range(rows):
        at = r * columns
        p, q = load(x, at, LANES), load(x, at + LANES, LANES)
        for i in range(at + 2 * LANES, at + full, 2 * LANES):
            p, q = p * load(x, i, LANES), q * load(x, i + LANES, LANES)
        product = product_of(p * q)
        for c in range(full, columns):
            product *= x[r, c]
        y[r] = product


@kernel(writes(2), reads(2), boolean, boolean)
def scan(y, x, product, reverse):
    """Running sums or products along rows, in float64; four rows at a time, as each number waits for the one before."""
    rows, columns = x.shape
    first_column, step = (columns - 1, -1) if reverse else (0, 1)
    together = rows - rows % 4
    for r in range(0, together, 4):
        c = first_column
        p = q = s = t = 1.0 if product else 0.0
        for _ in range(columns):
            if product:
                p, q, s, t = p * x[r, c], q * x[r + 1, c], s * x[r + 2, c], t * x[r + 3, c]
            else:
                p, q, s, t = p + x[r, c], q + x[r + 1, c], s + x[r + 2, c], t + x[r + 3, c]
            y[r, c], y[r + 1, c], y[r + 2, c], y[r + 3, c] = p, q, s, t
            c += step
    for r in range(together, rows):
        c = first_column
        p = 1.0 if product else 0.0
        for _ in range(columns):
            p = p * x[r, c] if product else p + x[r, c]
            y[r, c] = p
            c += step


# -- rows by their numbers

@kernel(writes(2), reads(1, types.int64), reads(2))
def add_rows(total, places, rows):
    """total[places[i]] += rows[i], one after the other."""
    columns = rows.shape[1]
    full = columns - columns % LANES
    for i in range(len(places)):
        to, at = places[i] * columns, i * columns
        for c in range(0, full, LANES):
            store(total, to + c, load(total, to + c, LANES) + load(rows, at + c, LANES), LANES)
        for c in range(full, columns):
            total[places[i], c] += rows[i, c]
