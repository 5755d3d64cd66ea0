"""Random programs beside torch: views, writes in place, arithmetic and indexing on a few small tensors, then gradients.

A program is a list of steps (name, x, y, k), made from its seed alone; a failure prints it. What torch refuses zoo may
do (it keeps its own copy of more results), what torch does zoo has to do with the same numbers, but for REFUSED.
`-m long` runs more.
"""
import random

import numpy as np
import pytest

import zoo
from zoo.ops.errors import ShapeError

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:.*on expanded tensors is deprecated")]    # torch's

REFUSED = ("clone() it first",              # a write to a part of an expanded view
           "does not share memory with its base")      # or through a flat view of what was transposed in place since
SHAPES = [(), (3,), (1, 3), (2, 2), (2, 3), (3, 2, 2)]


def like(y, x):
    """y if it has x's shape, else a number made of it."""
    return y if y.shape == x.shape else y.mean()


def first(x):
    return x[0] if x.ndim and len(x) else x


# name: what is made of two tensors x and y, and a small number k, with the functions of a library
ARITHMETIC = {
    "add": lambda lib, x, y, k: x + like(y, x) * k,
    "mul": lambda lib, x, y, k: x * like(y, x),
    "div": lambda lib, x, y, k: x / (like(y, x).abs() + 1),
    "power": lambda lib, x, y, k: x ** k,
    "root": lambda lib, x, y, k: (x.abs() + 0.5) ** (k - 1.5),
    "exp": lambda lib, x, y, k: (x * 0.3).exp(),
    "tanh": lambda lib, x, y, k: x.tanh(),
    "relu": lambda lib, x, y, k: x.relu(),
    "softmax": lambda lib, x, y, k: x.softmax(-1),
    "cumsum": lambda lib, x, y, k: x.cumsum(0),
    "max": lambda lib, x, y, k: x.max(-1)[0],
    "median": lambda lib, x, y, k: x.median(-1)[0],
    "sort": lambda lib, x, y, k: x.sort(-1)[0],
    "norm": lambda lib, x, y, k: x.norm(dim=-1, keepdim=True),
    "where": lambda lib, x, y, k: lib.where(x > 0, x, like(y, x)),
    "lerp": lambda lib, x, y, k: x.lerp(like(y, x).expand(x.shape), 0.3),
    "cat": lambda lib, x, y, k: lib.cat([x.reshape(-1), y.reshape(-1)[:2]]),
    "stack": lambda lib, x, y, k: lib.stack([x, x * k]),
    "outer": lambda lib, x, y, k: lib.outer(x.reshape(-1)[:3], y.reshape(-1)[:2]),
    "matmul": lambda lib, x, y, k: x @ x.mT if x.ndim > 1 else x * 2,
    "repeat": lambda lib, x, y, k: x.repeat(2, *[1] * x.ndim),
    "index": lambda lib, x, y, k: x[[0, -1]] if x.ndim else x + 1,
    "mask": lambda lib, x, y, k: x[x.detach() > 0],
    "gather": lambda lib, x, y, k: x.gather(0, lib.zeros((1,) * x.ndim, dtype=lib.int64)),
    "pad": lambda lib, x, y, k: lib.nn.functional.pad(x, (1, k)) if x.ndim else x * 3,
    "clone": lambda lib, x, y, k: x.clone(),
}
VIEWS = {
    "transpose": lambda lib, x, y, k: x.transpose(0, -1),
    "first": lambda lib, x, y, k: first(x),
    "last": lambda lib, x, y, k: x[..., -1:] if x.ndim else x,
    "steps": lambda lib, x, y, k: x[::2] if x.ndim else x,
    "flat": lambda lib, x, y, k: x.reshape(-1),
    "more dims": lambda lib, x, y, k: x.unsqueeze(-1),
    "expand": lambda lib, x, y, k: x.expand(2, *x.shape),
    "diagonal": lambda lib, x, y, k: x.diagonal(0, -2, -1) if x.ndim > 1 else x,
    "window": lambda lib, x, y, k: x.unfold(0, 1, 1) if x.ndim else x,
    "narrow": lambda lib, x, y, k: x.narrow(0, 0, 1) if x.ndim else x,
    "detach": lambda lib, x, y, k: x.detach(),
}
WRITES = {
    "add_": lambda lib, x, y, k: x.add_(like(y, x), alpha=k),
    "*=": lambda lib, x, y, k: x.mul_(like(y, x)),
    "square_": lambda lib, x, y, k: x.square_(),
    "sigmoid_": lambda lib, x, y, k: x.sigmoid_(),
    "clamp_": lambda lib, x, y, k: x.clamp_(-0.5, 0.8),
    "zero_": lambda lib, x, y, k: x.zero_(),
    "copy_": lambda lib, x, y, k: x.copy_(like(y, x)),
    "masked_fill_": lambda lib, x, y, k: x.masked_fill_(x.detach() > 0.5, k),
    "transpose_": lambda lib, x, y, k: x.transpose_(0, -1),
    "squeeze_": lambda lib, x, y, k: x.squeeze_(),
    "x[0] =": lambda lib, x, y, k: written(x, 0, y.mean()) if x.ndim else x,
    "x[...] =": lambda lib, x, y, k: written(x, ..., like(y, x)),
    "x[mask] =": lambda lib, x, y, k: written(x, x.detach() > 0, k),
    "x[list] =": lambda lib, x, y, k: written(x, [0, -1], y.mean()) if x.ndim else x,
    "x[::2] *=": lambda lib, x, y, k: first(x[::2]).mul_(k) if x.ndim else x,
    "index_add_": lambda lib, x, y, k: x.index_add_(0, lib.tensor([0]), x[:1] * k) if x.ndim else x,
    "no_grad": lambda lib, x, y, k: unrecorded(lib, x),
}
STEPS = {**ARITHMETIC, **VIEWS, **WRITES}


def written(x, index, value):
    x[index] = value
    return x


def unrecorded(lib, x):
    with lib.no_grad():
        return x.mul_(1.5)


def program(seed: int):
    """(two arrays, the steps)."""
    draw = random.Random(seed)
    arrays = [np.random.default_rng(seed + k).uniform(-1.5, 1.5, draw.choice(SHAPES)) for k in range(2)]
    steps = [(draw.choice(list(draw.choice([ARITHMETIC, VIEWS, WRITES]))), draw.randrange(8), draw.randrange(8),
              draw.randint(1, 3)) for _ in range(draw.randint(2, 8))]
    return arrays, steps


def run(lib, arrays, steps):
    """(the values of all tensors, the gradients of the two first by a weighted sum of all)."""
    leaves = [lib.tensor(a, requires_grad=True) for a in arrays]
    tensors = [leaf * 1 for leaf in leaves]
    for name, i, j, k in steps:
        tensors.append(STEPS[name](lib, tensors[i % len(tensors)], tensors[j % len(tensors)], k))
    total = sum((t * (0.5 + 0.1 * n)).sum() for n, t in enumerate(tensors) if t.numel() < 100)
    if total.requires_grad:
        total.backward()
    values = [t.detach().numpy().copy() for t in tensors]
    return values, [np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy() for leaf in leaves]


def compare(seed: int) -> None:
    arrays, steps = program(seed)
    try:
        expected = run(torch, arrays, steps)
    except (RuntimeError, IndexError, ValueError):
        return
    try:
        got = run(zoo, arrays, steps)
    except ShapeError as error:
        assert any(words in str(error) for words in REFUSED), f"program {seed}: {steps}"
        return
    for kind, ours, theirs in zip(("tensor", "gradient"), got, expected, strict=True):
        for n, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert a.shape == b.shape, f"{kind} {n} of program {seed}: {steps}"
            scale = 1e-9 * max(1.0, np.abs(b, where=np.isfinite(b), out=np.zeros(b.shape)).max(initial=0))
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=scale, err_msg=f"{kind} {n} of program {seed}: {steps}")


@pytest.mark.parametrize("part", range(4))
def test_programs(part):
    for seed in range(part * 250, (part + 1) * 250):
        compare(seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_many_programs(part):
    for seed in range(10_000 + part * 1000, 10_000 + (part + 1) * 1000):
        compare(seed)


@pytest.mark.parametrize("name", [*ARITHMETIC, *VIEWS])
def test_what_shares_memory(name):
    """A result follows a write to its input in zoo where it does in torch, and is written to where torch's is."""
    for shape in SHAPES:
        seen = []
        for lib in (zoo, torch):
            x = lib.tensor(np.arange(1.0, 1 + np.prod(shape, dtype=int)).reshape(shape))
            try:
                y = STEPS[name](lib, x, x, 1)
            except (RuntimeError, IndexError):
                continue
            before = y.clone()
            x.add_(1)
            follows = not bool((y == before).all())
            try:
                y.add_(1)
                seen.append((follows, "written"))
            except RuntimeError:
                seen.append((follows, "refused"))
        assert len(set(seen)) <= 1, (name, shape, seen)
