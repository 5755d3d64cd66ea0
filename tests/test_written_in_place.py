"""What a write in place between forward and backward does: beside torch, for every op that torch has.

A node saves its inputs, its output or neither, and which of them may be written to afterwards is what users see of it.
"""
import numpy as np
import pytest

torch = pytest.importorskip("torch")

import zoo  # noqa: E402
from zoo.ops.op import OPS  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]      # of torch

# zoo raises and torch does not: tanhshrink is one op with one kernel, of which x is saved; torch's is x - tanh(x).
STRICTER = {("tanhshrink", 0)}
# Torch raises and zoo does not, since its derivative reads less, or what it keeps is its own: (op, input or "y").
FREER = {("nextafter", 0), ("nextafter", 1), ("gather", 0), ("angle", 0), ("cumprod", "y"), ("cummax", 0),
         ("cummin", 0), ("layer_norm", 3), ("slogdet", "y"), ("det", "y")}
ROW = [np.array([[0.3, 0.5, 0.7], [0.2, 0.9, 0.4]])]
OPERATORS = {
    "x + 2": lambda x: x + 2, "2 - x": lambda x: 2 - x, "x * 2": lambda x: x * 2, "x / 2": lambda x: x / 2,
    "1 / x": lambda x: 1 / x, "3 / x": lambda x: 3 / x, "x ** 2": lambda x: x**2, "2 ** x": lambda x: 2**x,
    "x % 2": lambda x: x % 2, "2 % x": lambda x: 2 % x, "-x": lambda x: -x, "x @ x.T": lambda x: x @ x.T,
    "x.var()": lambda x: x.var(), "x.std()": lambda x: x.std(), "x.amax(1)": lambda x: x.amax(1),
    "x.max(1)": lambda x: x.max(1), "x[1:]": lambda x: x[1:] * 1, "x.sort()": lambda x: x.sort(),
    "x.softmax(1)": lambda x: x.softmax(1), "x.clamp(0.3, 0.6)": lambda x: x.clamp(0.3, 0.6)}


def function_of(lib, name):
    """What users call by the op's name, or None."""
    places = (lib, lib.nn.functional, lib.linalg, lib.special)
    return next((f for f in (getattr(place, name, None) for place in places) if f is not None), None)


def calls():
    """(name, function of torch, of zoo, arguments): ops with the first of their ordinary samples, then operators."""
    rng = np.random.default_rng(0)
    for name, op in OPS.items():
        pair = function_of(torch, name), function_of(zoo, name)
        rows = op.samples(rng).get("ordinary", ()) if op.differentiable and "." not in name and all(pair) else ()
        for args in rows[:1]:
            yield name, *pair, args
    for name, f in OPERATORS.items():
        yield name, f, f, ROW


def outcome(lib, function, args, which):
    """(what came of a write to an input or to the output before backward, the gradients); None without a gradient."""
    given = [lib.tensor(a.copy()) if isinstance(a, np.ndarray) else a for a in args]
    floats = [isinstance(x, lib.Tensor) and x.is_floating_point() for x in given]
    leaves = [x.requires_grad_() if f else x for x, f in zip(given, floats, strict=True)]
    inputs = [x * 1 if f else x for x, f in zip(leaves, floats, strict=True)]
    y = function(*inputs)
    y = y if isinstance(y, lib.Tensor) else y[0]
    target = y if which == "y" else inputs[which] if which is not None else None
    if not y.requires_grad or which is not None and not target.is_floating_point():
        return None
    with lib.no_grad():
        if target is not None:
            target.detach().fill_(0.25)
    try:
        (y * 1).sum().backward()
    except RuntimeError as error:
        assert "inplace" in str(error), error
        return "raises", None
    return "goes on", [x.grad if x.grad is None else x.grad.numpy() for x, f in zip(leaves, floats, strict=True) if f]


def cases():
    for name, ours, theirs, args in calls():
        for which in ("y", *(k for k, a in enumerate(args) if isinstance(a, np.ndarray))):
            yield name, which, ours, theirs, args


def test_a_write_before_backward_raises_where_torch_raises():
    compared, wrong = set(), []
    for name, which, theirs, ours, args in cases():
        try:
            expected = outcome(torch, theirs, args, which)
        except (TypeError, RuntimeError, IndexError, AssertionError):       # another signature, or no derivative
            continue
        if expected is None:
            continue
        found = outcome(zoo, ours, args, which)
        compared.add(name)
        wanted = expected[0]
        if (name, which) in STRICTER | FREER:
            wanted = "raises" if (name, which) in STRICTER else "goes on"
            assert wanted != expected[0], name
        if found[0] != wanted:
            wrong.append(f"{name}, written to {which}: torch {expected[0]}, zoo {found[0]}")
    assert not wrong
    assert len(compared) > 140


def test_a_gradient_that_comes_in_spite_of_a_write_is_that_without_it():
    for name, which, _, ours, args in cases():
        try:
            found, plain = outcome(zoo, ours, args, which), outcome(zoo, ours, args, None)
        except (TypeError, ValueError, IndexError):
            continue
        if found and found[1]:
            for a, b in zip(found[1], plain[1], strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"{name}, written to {which}")
