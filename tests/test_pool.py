"""Pooling: torch's numbers for random shapes, ties and NaN, memory order, and what wrong calls raise."""
import random

import numpy as np
import pytest

import zoo
import zoo.nn.functional as F
from zoo.ops.errors import ArgumentError, ShapeError


def last(x):
    """The same array, channels last in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)


def both(name, x, dy_of, *args, lay=lambda x: x, **options):
    """(results, input gradient) of zoo's function and of torch's."""
    import torch
    theirs, mine = torch.from_numpy(x).requires_grad_(), zoo.from_numpy(lay(x)).requires_grad_()
    y, z = getattr(torch.nn.functional, name)(theirs, *args, **options), getattr(F, name)(mine, *args, **options)
    y, z = (r if isinstance(r, tuple) else (r,) for r in (y, z))
    dy = dy_of(tuple(y[0].shape))
    y[0].backward(torch.from_numpy(dy))
    z[0].backward(zoo.from_numpy(lay(dy)))
    return ([r.detach().numpy() for r in z], mine.grad.numpy()), ([r.detach().numpy() for r in y], theirs.grad.numpy())


@pytest.mark.torch
@pytest.mark.parametrize("seed", range(30))
def test_equals_torch(seed):
    """Values, indices and gradients: 1 to 3 dimensions, every option, both memory orders, ties half of the time."""
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    rank = choose.choice([1, 2, 2, 3])
    kernel, stride = ([choose.randint(1, 4) for _ in range(rank)] for _ in range(2))
    padding, size = [choose.randint(0, k // 2) for k in kernel], [choose.randint(4, 9) for _ in range(rank)]
    x = rng.permutation(np.linspace(-3, 3, 6 * int(np.prod(size)))).reshape(2, 3, *size)
    x = np.round(x) if choose.random() < 0.5 else x
    lay, ceil = choose.choice([last, lambda x: x]), choose.random() < 0.5
    out = [choose.randint(1, 6) for _ in range(rank)]
    shared = dict(stride=stride, padding=padding, ceil_mode=ceil)
    for name, args, options in ((f"max_pool{rank}d", (kernel,), {**shared, "return_indices": True}),
                                (f"avg_pool{rank}d", (kernel,), {**shared, "count_include_pad": choose.random() < 0.5}),
                                (f"adaptive_max_pool{rank}d", (out,), {"return_indices": True}),
                                (f"adaptive_avg_pool{rank}d", (out,), {})):
        (mine, dx), (theirs, want) = both(name, x, lambda shape: rng.normal(size=shape), *args, lay=lay, **options)
        for a, b in zip(mine, theirs, strict=True):
            assert a.dtype == b.dtype and np.allclose(a, b, rtol=0, atol=1e-13), name
        assert np.allclose(dx, want, rtol=0, atol=1e-13), name


@pytest.mark.torch
@pytest.mark.parametrize("value", [np.nan, -np.inf, np.inf])
def test_extreme_values_and_their_indices(value):
    """NaN wins and its last one counts; a window of -inf points at its first element."""
    x = np.zeros((1, 1, 4, 4))
    x[0, 0, :2, :3] = value
    (mine, _), (theirs, _) = both("max_pool2d", x, np.ones, 2, return_indices=True)
    assert np.array_equal(mine[0], theirs[0], equal_nan=True) and np.array_equal(mine[1], theirs[1])


def test_a_window_of_more_elements_than_a_byte_counts(rng):
    """Taps of a 17 x 17 window are int32; indices and gradients are those of torch's definition all the same."""
    x = zoo.from_numpy(rng.permutation(2 * 20 * 20.0 * np.arange(1, 801) / 800).reshape(1, 2, 20, 20)).requires_grad_()
    y, where = F.max_pool2d(x, 17, 1, return_indices=True)
    lines = x.detach().numpy().reshape(2, 400)
    assert np.array_equal(np.take_along_axis(lines, where.numpy().reshape(2, 16), 1), y.detach().numpy().reshape(2, 16))
    y.sum().backward()
    counts = np.stack([np.bincount(w, minlength=400) for w in where.numpy().reshape(2, 16)])
    assert np.array_equal(x.grad.numpy().reshape(2, 400), counts)


def test_a_window_that_sees_nothing():
    """Dilation may step over the whole image: -inf, index 0, no gradient."""
    x = zoo.ones(1, 1, 3, requires_grad=True)
    y, where = F.max_pool1d(x, 2, 1, 3, 5, return_indices=True)
    assert y.tolist() == [[[1, -np.inf, -np.inf, 1]]] and where.tolist() == [[[2, 0, 0, 0]]]
    y.backward(zoo.tensor([[[1.0, 10.0, 100.0, 1000.0]]]))
    assert x.grad.tolist() == [[[1000, 0, 1]]]


def test_gradients_that_are_infinite_stay_in_place():
    x = zoo.tensor([[[1.0, 2.0, 3.0, 0.0]]], requires_grad=True)
    F.max_pool1d(x, 2).backward(zoo.tensor([[[np.inf, np.nan]]]))
    assert np.array_equal(x.grad.numpy(), [[[0, np.inf, np.nan, 0]]], equal_nan=True)


@pytest.mark.parametrize(("name", "options"), [("max_pool2d", (2,)), ("avg_pool2d", (3, 2, 1)),
                                               ("adaptive_avg_pool2d", (3,)), ("adaptive_max_pool2d", (3,))])
def test_memory_order_is_kept(name, options, rng):
    x, pool = rng.normal(size=(2, 4, 8, 8)), getattr(F, name)
    assert pool(zoo.from_numpy(x), *options).numpy().flags.c_contiguous
    assert pool(zoo.from_numpy(last(x)), *options).numpy().transpose(0, 2, 3, 1).flags.c_contiguous


def test_unpool_puts_maxima_back(rng):
    x = zoo.from_numpy(rng.permutation(72.0 * np.arange(1, 73)).reshape(1, 2, 6, 6))
    y, where = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(y, where, 2).numpy()
    kept = back != 0
    assert kept.sum() == 18 and np.array_equal(back[kept], x.numpy()[kept])


WRONG = [
    ("padding over half", ArgumentError, lambda x: F.max_pool2d(x, 2, padding=2), "(2, 2)"),
    ("negative padding", ArgumentError, lambda x: F.avg_pool2d(x, 2, padding=-1), "(-1, -1)"),
    ("stride 0", ArgumentError, lambda x: F.max_pool2d(x, 2, stride=0), "(0, 0)"),
    ("no window fits", ShapeError, lambda x: F.max_pool2d(x, 9), "(9, 9)"),
    ("rank", ShapeError, lambda x: F.max_pool2d(x[0, 0], 2), "(4, 5)"),
    ("divisor", ArgumentError, lambda x: F.avg_pool2d(x, 2, divisor_override=0), "divisor_override"),
    ("output_size", ArgumentError, lambda x: F.adaptive_avg_pool2d(x, (-1, 2)), "(-1, 2)"),
    ("indices", ShapeError, lambda x: F.max_unpool2d(x, zoo.zeros(1, 3, 4, 4).long(), 2), "(1, 3, 4, 5)"),
]


@pytest.mark.parametrize(("error", "call", "part"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_wrong_calls_say_what_was_wanted_and_got(error, call, part):
    with pytest.raises(error, match="pool") as caught:
        call(zoo.zeros(1, 3, 4, 5))
    assert part in str(caught.value)
