"""Every op of the registry, on its own samples: contract, strides, derivatives of first and second order, kernels."""
import numpy as np
import pytest

import zoo
from tests.cases import (
    DTYPES,
    KINDS,
    NAMES,
    OPS,
    all_of,
    assert_close,
    cast,
    dtypes_of,
    is_float_array,
    samples,
    strided,
)
from zoo.autograd.mode import tick
from zoo.autograd.tensor import Tensor, grad, other, wrap
from zoo.ops.device import fetch
from zoo.ops.dtypes import FLOATS
from zoo.ops.errors import GradError

DIFFERENTIABLE = [n for n in NAMES if OPS[n].differentiable]
interpreted = pytest.mark.cuda


def rows(name, *kinds):
    found = samples(OPS[name])
    return [row for kind in kinds for row in (found[kind] if not isinstance(found[kind], str) else ())]


def widest(op):
    """float64 if the op takes floats, else its first dtype."""
    return np.dtype(np.float64) if "floats" in op.dtypes else dtypes_of(op)[0]


@pytest.mark.parametrize("name", NAMES)
def test_has_every_kind_of_sample(name):
    """ordinary, empty, 0-d, odd and extreme inputs, or a sentence that says why not."""
    found = samples(OPS[name])
    assert set(KINDS) <= set(found), f"lacks {set(KINDS) - set(found)}"
    assert not isinstance(found["ordinary"], str) and found["ordinary"]
    assert all(rows if not isinstance(rows, str) else len(rows) > 5 for rows in found.values())


@pytest.mark.parametrize("name", NAMES)
def test_check_promises_what_forward_gives(name):
    op = OPS[name]
    for row in rows(name, *KINDS):
        for dtype in dtypes_of(op):
            args = op.bind(cast(row, dtype), {})
            ys = all_of(op.forward(*args))
            assert all(type(y) is np.ndarray for y in ys)
            if op.check is not None:
                specs = op.check(*args)
                specs = specs if isinstance(specs[0], tuple) and hasattr(specs[0], "dtype") else (specs,)
                assert [(tuple(s.shape), s.dtype) for s in specs] == [(y.shape, y.dtype) for y in ys]


@pytest.mark.parametrize("name", NAMES)
def test_strides_do_not_matter(name):
    op = OPS[name]
    if name in ("as_strided", "write_through"):
        pytest.skip("says itself what lies where in memory")
    for row in rows(name, "ordinary", "odd"):
        args = op.bind(cast(row, widest(op)), {})
        for y, z in zip(all_of(op.forward(*args)), all_of(op.forward(*strided(args))), strict=True):
            assert_close(z, y, widest(op), length=16)               # BLAS sums in another order


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_left_alone(name):
    op = OPS[name]
    for row in rows(name, "ordinary"):
        args = op.bind(cast(row, widest(op)), {})
        before = [x.copy() if isinstance(x, np.ndarray) else None for x in args]
        op.forward(*args)
        for x, old in zip(args, before, strict=True):
            assert old is None or np.array_equal(x, old, equal_nan=old.dtype in FLOATS)


def leaves(op, args):
    """The sample with its differentiable inputs as leaves, and those leaves."""
    fixed = len(op.parameters) - 1
    made = [
        Tensor(x.astype(np.float64), requires_grad=True)
        if is_float_array(x) and op.parameters[min(i, fixed)] in op.differentiable
        else x
        for i, x in enumerate(args)
    ]
    for t in made:
        if isinstance(t, Tensor):
            t.array = t.array.astype(np.float64)
    return made, [t for t in made if isinstance(t, Tensor)]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_of_first_and_second_order(name):
    """One random direction of all inputs against central differences in float64, then the same for the gradient."""
    op = OPS[name]
    for row in rows(name, "ordinary", "odd"):
        args, wanted = leaves(op, op.bind(cast(row, np.dtype(np.float64)), {}))
        if not wanted:
            continue

        def function(*xs, args=args):
            given = iter(xs)
            ys = all_of(op(*[next(given) if isinstance(a, Tensor) else a for a in args]))
            ys = ys[:len(ys) - len(op.reserve)]                          # what is for the backward pass has no gradient
            return tuple(y for y in ys if y.dtype == np.float64)          # dtype=float32 is too coarse for differences

        assert zoo.autograd.gradcheck(function, tuple(wanted), rtol=1e-5, atol=1e-6)
        assert zoo.autograd.gradgradcheck(function, tuple(wanted), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_recorded_gradient_equals_the_raw_one(name):
    """create_graph=True goes through the ops as Tensors; it must give the numbers of the path on raw arrays."""
    op = OPS[name]
    for row in rows(name, "ordinary", "empty", "0-d"):
        args, wanted = leaves(op, op.bind(cast(row, np.dtype(np.float64)), {}))
        ys = [y for y in all_of(op(*args)) if y.dtype in FLOATS and y.requires_grad] if wanted else []
        if not ys:
            continue
        vs = [wrap(np.random.default_rng(5).normal(size=y.shape)) for y in ys]
        raw = grad(ys, wanted, vs, retain_graph=True, allow_unused=True)
        recorded = grad(ys, wanted, vs, create_graph=True, allow_unused=True)
        for a, b in zip(raw, recorded, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(a.array, b.array, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if not OPS[n].variadic])
def test_written_out_call_equals_the_plain_one(name):
    """record.py's text and `remember` do the same: output, saved values, edges."""
    op = OPS[name]
    row = rows(name, "ordinary")[0]
    args, wanted = leaves(op, op.bind(cast(row, np.dtype(np.float64)), {}))
    if not wanted:
        pytest.skip("no differentiable array in the first sample")
    fasts, slows = all_of(op(*args)), all_of(other(op, tuple(args)))
    for fast, slow in zip(fasts, slows, strict=True):
        np.testing.assert_array_equal(fast.array, slow.array)
        assert (fast.requires_grad, type(fast), type(fast.node)) == (slow.requires_grad, type(slow), type(slow.node))
    fast, slow = ([getattr(y.node, "source", y.node) for y in ys if y.requires_grad][0] for ys in (fasts, slows))
    assert fast.plan is slow.plan and len(fast.edges) == len(slow.edges)
    assert all(a is b for a, b in zip(fast.edges, slow.edges, strict=True))
    assert (fast.shape, fast.dtype, type(fast.clock)) == (slow.shape, slow.dtype, type(slow.clock))
    for a, b in zip(fast.saved, slow.saved, strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
        else:
            assert a is b or a == b


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_written_out_gradients_equal_the_plain_ones(name):
    """saved.py's text and `through_ops` do the same: numbers, and errors if an input or output was written to."""
    op = OPS[name]
    args, wanted = leaves(op, op.bind(cast(rows(name, "ordinary")[0], np.dtype(np.float64)), {}))
    if not wanted:
        pytest.skip("no differentiable array in the first sample")
    node = next(getattr(y.node, "source", y.node) for y in all_of(op(*args)) if y.requires_grad)
    one = type(node.clock) is list
    shapes, dtypes, clocks = [(x,) if one else x for x in (node.shape, node.dtype, node.clock)]
    gs = tuple(np.ones(s, d) for s, d in zip(shapes, dtypes, strict=True))

    def outcomes():
        for way in node.gradients, node.through_ops:
            try:
                yield way(gs, False, wrap, True)
            except GradError as error:
                yield str(error)

    for fast, slow in zip(*outcomes(), strict=True):
        np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-12)
    saved = [x for value in node.saved for x in (value if type(value) is tuple else (value,)) if isinstance(x, Tensor)]
    for clock in [x.clock for x in saved] + [clocks[which] for _, which in node.plan.outputs]:
        clock[0] = tick()
        fast, slow = outcomes()
        assert fast == slow and "changed in place" in fast
        clock[0] = 0


def on_device(args):
    from zoo.ops import cuda

    def one(x):
        if isinstance(x, tuple) and any(isinstance(v, np.ndarray) for v in x):
            return tuple(map(one, x))
        return cuda.from_numpy(x) if isinstance(x, np.ndarray) else x
    return tuple(map(one, args))


@interpreted
@pytest.mark.parametrize("name", NAMES)
def test_kernel_equals_numpy(name):
    """Each dtype, each kind of sample: the GPU's function (interpreted without a GPU) against the NumPy path."""
    op = OPS[name]
    found = samples(op)
    for kind in KINDS:
        for row in found[kind] if not isinstance(found[kind], str) else ():
            for dtype in dtypes_of(op):
                args = op.bind(cast(row, dtype), {})
                want, got = all_of(op.forward(*args)), all_of(op(*on_device(args)))
                length = (
                    max((x.size for x in args if isinstance(x, np.ndarray)), default=1) if op.formula is None else 1
                )
                for w, g in zip(want, got, strict=True):
                    assert_close(fetch(g), w, dtype, length, f"{name} {kind} {dtype}")


@interpreted
@pytest.mark.parametrize("name", NAMES)
def test_kernel_takes_strides(name):
    from zoo.ops import cuda
    op = OPS[name]
    if name in ("as_strided", "write_through"):
        pytest.skip("says itself what lies where in memory")
    row = rows(name, "ordinary")[0]
    args = op.bind(cast(row, dtypes_of(op)[0]), {})
    want = all_of(op.forward(*args))

    def gaps(x):
        if not isinstance(x, np.ndarray) or not x.ndim:
            return x
        big = cuda.from_numpy(np.repeat(x.transpose()[..., None], 2, axis=-1))     # (reversed dims, 2)
        return big.view(x.shape, big.strides[:-1][::-1])
    got = all_of(op(*[gaps(x) if isinstance(x, np.ndarray) and x.ndim else on_device((x,))[0] for x in args]))
    for w, g in zip(want, got, strict=True):
        assert_close(fetch(g), w, dtypes_of(op)[0], 16 if op.formula is None else 1)


@interpreted
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_on_the_device(name):
    op = OPS[name]
    for row in rows(name, "ordinary")[:2]:
        bound = op.bind(cast(row, np.dtype(np.float32)), {})
        args, wanted = leaves(op, bound)
        if not wanted:
            continue
        for t in wanted:
            t.array = t.array.astype(np.float32)
        moved = [t.detach().cuda().requires_grad_() if isinstance(t, Tensor) else on_device((t,))[0] for t in args]
        results = []
        for xs in (args, moved):
            ys = [y for y in all_of(op(*xs)) if y.dtype in FLOATS and y.requires_grad]
            vs = [wrap(np.random.default_rng(3).normal(size=y.shape).astype(y.dtype)).to(y.device) for y in ys]
            results.append(grad(ys, [x for x in xs if isinstance(x, Tensor)], vs, allow_unused=True))
        for a, b in zip(*results, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                assert_close(b.cpu().array, a.array, np.dtype(np.float32), 64)


def test_the_registry_is_not_empty():
    assert len(DIFFERENTIABLE) > 50 and len(DTYPES) == 3
