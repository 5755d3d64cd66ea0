"""Depthwise convolution of images with their channels side by side; see ops/conv_cpu_depthwise.py.

An area (N, height, width, C) is the image with all that its windows reach over; y and dy are (N, P, Q, C). The steps
of a pass are functions of (..., c, n), called with n = 16 and once for the rest, as in rows.py. Four places are done
side by side: a sum waits for the one before it.
"""
from zoo.ops.compiled.build import inline, kernel, pair, reads, writes
from zoo.ops.compiled.vector import LANES, fma, load, splat, store, stride


@inline
def place(area, corner, taps, down, right, y, to, c, n):
    """One place's sum over its taps."""
    total, tap = splat(0.0), c
    for r in range(taps.shape[0]):
        at = corner + r * down + c
        for _ in range(taps.shape[1]):
            total = fma(load(area, at, n), load(taps, tap, n), total)
            at += right
            tap += taps.shape[2]
    store(y, to + c, total, n)


@inline
def four_places(area, corner, step, taps, down, right, y, to, c, n):
    """Those of four places beside each other, `step` apart in the area."""
    a = b = d = e = splat(0.0)
    tap = c
    for r in range(taps.shape[0]):
        at = corner + r * down + c
        for _ in range(taps.shape[1]):
            t = load(taps, tap, n)
            a, b = fma(load(area, at, n), t, a), fma(load(area, at + step, n), t, b)
            d, e = fma(load(area, at + 2 * step, n), t, d), fma(load(area, at + 3 * step, n), t, e)
            at += right
            tap += taps.shape[2]
    to, next_place = to + c, stride(y, 2)
    store(y, to, a, n)
    store(y, to + next_place, b, n)
    store(y, to + 2 * next_place, d, n)
    store(y, to + 3 * next_place, e, n)


@kernel(reads(4), reads(3), pair, pair, writes(4))
def forward(area, taps, steps, dilation, y):
    """y = the sum over taps (R, S, C) of tap * what it sees of the area."""
    images, height, width, channels = y.shape
    full, rest = channels - channels % LANES, channels % LANES
    step, down, right = steps[1] * stride(area, 2), dilation[0] * stride(area, 1), dilation[1] * stride(area, 2)
    for line in range(images * height):
        i, p = line // height, line % height
        start, to = i * stride(area, 0) + p * steps[0] * stride(area, 1), i * stride(y, 0) + p * stride(y, 1)
        for q in range(0, width - width % 4, 4):
            at, out = start + q * step, to + q * stride(y, 2)
            for c in range(0, full, LANES):
                four_places(area, at, step, taps, down, right, y, out, c, LANES)
            if rest:
                four_places(area, at, step, taps, down, right, y, out, full, rest)
        for q in range(width - width % 4, width):
            at, out = start + q * step, to + q * stride(y, 2)
            for c in range(0, full, LANES):
                place(area, at, taps, down, right, y, out, c, LANES)
            if rest:
                place(area, at, taps, down, right, y, out, full, rest)


@inline
def add_line(area, at, step, dy, line, width, dw, to, c, n):
    """Adds to a tap's gradient the sum over a line of places."""
    a = b = d = e = splat(0.0)
    at, line, along = at + c, line + c, stride(dy, 2)
    for _ in range(width // 4):
        a = fma(load(area, at, n), load(dy, line, n), a)
        b = fma(load(area, at + step, n), load(dy, line + along, n), b)
        d = fma(load(area, at + 2 * step, n), load(dy, line + 2 * along, n), d)
        e = fma(load(area, at + 3 * step, n), load(dy, line + 3 * along, n), e)
        at, line = at + 4 * step, line + 4 * along
    for _ in range(width % 4):
        a = fma(load(area, at, n), load(dy, line, n), a)
        at, line = at + step, line + along
    store(dw, to + c, load(dw, to + c, n) + ((a + b) + (d + e)), n)


@kernel(reads(4), reads(4), pair, pair, writes(3))
def add_weight_grad(area, dy, steps, dilation, dw):
    """dw (R, S, C) += the sum over places of dy * what the tap sees of the area; each line of places by itself."""
    images, height, width, channels = dy.shape
    full, rest, step = channels - channels % LANES, channels % LANES, steps[1] * stride(area, 2)
    for row in range(images * height):
        i, p = row // height, row % height
        line = i * stride(dy, 0) + p * stride(dy, 1)
        for r in range(dw.shape[0]):
            at = i * stride(area, 0) + (p * steps[0] + r * dilation[0]) * stride(area, 1)
            for s in range(dw.shape[1]):
                to = (r * dw.shape[1] + s) * channels
                for c in range(0, full, LANES):
                    add_line(area, at, step, dy, line, width, dw, to, c, LANES)
                if rest:
                    add_line(area, at, step, dy, line, width, dw, to, full, rest)
                at += dilation[1] * stride(area, 2)


@inline
def add_tap(area, at, step, tap, dy, line, width, c, n):
    """Adds a line of places, each times the tap, to what the tap sees of the area."""
    t, at, line = load(tap, c, n), at + c, line + c
    for _ in range(width):
        store(area, at, fma(load(dy, line, n), t, load(area, at, n)), n)
        at, line = at + step, line + stride(dy, 2)


@kernel(reads(4), reads(3), pair, pair, writes(4))
def input_grad(dy, taps, steps, dilation, area):
    """area = 0, then for each tap (R, S, C): what it sees += dy * tap."""
    images, height, width, channels = dy.shape
    full, rest, step = channels - channels % LANES, channels % LANES, steps[1] * stride(area, 2)
    area[:] = 0
    for row in range(images * height):
        i, p = row // height, row % height
        line = i * stride(dy, 0) + p * stride(dy, 1)
        for r in range(taps.shape[0]):
            at = i * stride(area, 0) + (p * steps[0] + r * dilation[0]) * stride(area, 1)
            for s in range(taps.shape[1]):
                for c in range(0, full, LANES):
                    add_tap(area, at, step, taps[r, s], dy, line, width, c, LANES)
                if rest:
                    add_tap(area, at, step, taps[r, s], dy, line, width, full, rest)
                at += dilation[1] * stride(area, 2)
