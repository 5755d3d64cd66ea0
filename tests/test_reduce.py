"""Reductions, scans, softmax beyond their samples: torch's overloads, accuracy, ties, zeros, long lines."""
import numpy as np
import pytest

import zoo
from zoo.ops import compiled, reduce, scan, softmax
from zoo.ops.errors import ArgumentError, DimError, DtypeError

interpreted = pytest.mark.cuda


def gradient(f, *xs):
    leaves = [zoo.tensor(np.asarray(x, np.float64), dtype=zoo.float64, requires_grad=True) for x in xs]
    return [g.tolist() for g in zoo.autograd.grad(f(*leaves), leaves)]


@pytest.mark.parametrize("shape, dims", [((1_000_000, 3), (0,)), ((3, 1_000_000), (1,)), ((64, 30, 28, 28), (0, 2, 3)),
                                         ((33, 5000, 3), (1,)), ((100_003,), None), ((4096, 7), (0, 1))])
def test_long_sums_are_accurate(rng, shape, dims):
    """Of float32, within 2e-7 of the sum of magnitudes: NumPy's own sum along a first dimension is 4e-6 off."""
    x = rng.normal(size=shape).astype(np.float32) + np.float32(0.3)
    exact, scale = x.astype(np.float64).sum(dims), np.abs(x.astype(np.float64)).sum(dims)
    assert np.max(np.abs(reduce.sum(x, dims) - exact) / scale) < 2e-7


def test_sums_of_integers_are_int64_and_do_not_overflow():
    assert zoo.sum(zoo.full((300,), 127, dtype=zoo.int8)).item() == 38100
    assert zoo.sum(zoo.ones(3, dtype=zoo.bool)).dtype == zoo.int64
    assert zoo.prod(zoo.full((3,), 100, dtype=zoo.uint8)).item() == 1_000_000
    assert zoo.sum(zoo.ones(2, dtype=zoo.int32), dtype=zoo.float32).dtype == zoo.float32


def test_empty_reductions():
    none = zoo.zeros(0, 3)
    assert zoo.sum(none).item() == 0 and zoo.prod(none).item() == 1
    assert zoo.sum(none, 0).tolist() == [0, 0, 0] and np.isnan(zoo.mean(none).item())
    assert not zoo.any(none).item() and zoo.all(none).item()
    assert zoo.logsumexp(none, 0).tolist() == [-np.inf] * 3
    assert np.isnan(zoo.var(zoo.ones(1)).item())
    assert zoo.amax(none, 1).shape == (0,)


@pytest.mark.parametrize("call, error, words", [
    (lambda x: zoo.max(x[:0], 0), DimError, "max.*at least one element"),
    (lambda x: zoo.max(x[:0]), ArgumentError, "max"),
    (lambda x: zoo.argmin(x[:0]), ArgumentError, "argmin"),
    (lambda x: zoo.sum(x, 5), DimError, "sum.*-2 to 1.*got 5"),
    (lambda x: zoo.sum(x, (0, -2)), ArgumentError, "sum.*once"),
    (lambda x: zoo.sum(x, 1.5), TypeError, "sum.*integer dim"),
    (lambda x: zoo.mean(x.long()), DtypeError, "mean.*int64"),
    (lambda x: zoo.std(x.long()), DtypeError, "std.*int64"),
    (lambda x: zoo.softmax(x.long(), 0), DtypeError, "softmax.*int64"),
    (lambda x: zoo.var(x, unbiased=True, correction=1), ArgumentError, "unbiased"),
    (lambda x: zoo.cumsum(x, 2), DimError, "cumsum"),
])
def test_wrong_calls(call, error, words):
    with pytest.raises(error, match=words):
        call(zoo.ones(3, 4))


def test_extremes_pass_nan_on_and_find_the_first():
    x = zoo.tensor([1.0, float("nan"), 7.0, float("nan")])
    assert np.isnan(zoo.max(x).item()) and np.isnan(zoo.amin(x, 0).item())
    assert zoo.max(x, 0).indices.item() == 1 and zoo.argmin(x).item() == 1
    assert zoo.argmax(zoo.tensor([3, 5, 5])).item() == 1
    assert zoo.max(zoo.tensor([1, 5]), zoo.tensor([4, 2])).tolist() == [4, 5]
    assert zoo.argmax(zoo.tensor([[1, 2], [9, 3]])).item() == 2


def test_gradients_at_ties():
    """Shared evenly by amax and max of all, to the index by max along a dim."""
    tied = [3.0, 1.0, 3.0]
    assert gradient(zoo.max, tied) == [[0.5, 0, 0.5]] and gradient(lambda x: zoo.amax(x, 0), tied) == [[0.5, 0, 0.5]]
    assert gradient(lambda x: zoo.max(x, 0).values, tied) == [[1, 0, 0]]


def test_gradients_of_products_with_zeros():
    assert gradient(zoo.prod, [2.0, 0.0, 3.0]) == [[0, 6, 0]]
    assert gradient(zoo.prod, [0.0, 0.0, 3.0]) == [[0, 0, 0]]
    assert gradient(lambda x: zoo.cumprod(x, 0).sum(), [2.0, 0.0, 3.0]) == [[1, 2 + 6, 0]]
    x = zoo.tensor([2.0, 0.0, 3.0, 0.0], dtype=zoo.float64, requires_grad=True)
    assert zoo.autograd.gradgradcheck(lambda x: zoo.cumprod(x, 0), (x,))
    assert zoo.autograd.gradgradcheck(lambda x: zoo.prod(x), (x,))


def test_gradients_where_a_norm_or_deviation_is_zero():
    assert gradient(lambda x: zoo.norm(x), [0.0, 0.0]) == [[0, 0]]
    assert gradient(lambda x: zoo.std(x), [2.0, 2.0]) == [[0, 0]]
    assert gradient(lambda x: zoo.logsumexp(x, 0), [-np.inf, -np.inf]) == [[0, 0]]


def test_softmax_of_extremes():
    x = zoo.tensor([[1e4, -1e4], [float("-inf"), 0.0]])
    assert zoo.softmax(x, 1).tolist() == [[1, 0], [0, 1]]
    assert zoo.log_softmax(x, 1)[0].tolist() == [0, -2e4]
    assert np.isnan(zoo.softmax(zoo.tensor([float("-inf")] * 2), 0).numpy()).all()


def test_running_sums_do_not_drift():
    x = np.full(100_000, 0.1, np.float32)
    assert abs(scan.cumsum(x, 0)[-1] - 100_000 * np.float64(np.float32(0.1))) < 1e-2


LONG = [(reduce.sum, (2003,), ()), (reduce.mean, (1001, 3), (0,)), (reduce.var, (2003,), ()),
        (reduce.logsumexp, (2003,), ()), (reduce.argmax, (2003,), ()),
        (reduce.min_dim, (1001, 3), (0,)), (reduce.amax, (2, 3, 5, 7, 11), ((0, 2, 4),)),
        (reduce.all, (2003,), ()), (scan.cumsum, (1001,), (0,)), (scan.reverse_cumsum, (2, 700), (1,)),
        (scan.cumprod, (300, 3), (0,)),
        (scan.cummax, (301,), (0,)), (scan.linear_scan, (301,), (0, True)), (scan.logcumsumexp, (301,), (0,)),
        (softmax.softmax, (2, 9000), (1,)), (softmax.log_softmax, (2, 3000, 5), (1,)),
        (softmax.softmax_grad, (2, 5000), (1,))]
ARRAYS = {"input", "x", "a", "b", "dy", "y"}


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of 64 elements: what happens to lines of 10,000 elements happens to lines of 200, much faster."""
    from zoo.ops import reduce_gpu, scan_gpu
    monkeypatch.setattr(reduce_gpu, "LEAST", 64)
    monkeypatch.setattr(reduce_gpu, "TILE", 64)
    monkeypatch.setattr(scan_gpu, "PART", 64)
    monkeypatch.setattr(scan_gpu, "STEP", 64)


@interpreted
@pytest.mark.parametrize("op, shape, options", LONG, ids=[op.name for op, *_ in LONG])
def test_kernels_on_long_lines(rng, small_parts, op, shape, options):
    """Long enough for several parts, whose results are put together by a second launch."""
    from zoo.ops import cuda
    arrays = [rng.uniform(-1, 1, shape).astype(np.float32) for p in op.parameters if p in ARRAYS]
    want, got = op(*arrays, *options), op(*map(cuda.from_numpy, arrays), *options)
    for w, g in zip(*(v if isinstance(v, tuple) else (v,) for v in (want, got)), strict=True):
        np.testing.assert_allclose(cuda.to_numpy(g), w, rtol=3e-5, atol=3e-6 * max(1, np.abs(w).max()))


REAL = [(reduce.sum, (40_003,), ()), (reduce.sum, (20_001, 3), (0,)), (reduce.min_dim, (40_003,), (0,)),
        (scan.cumsum, (33_001,), (0,)),
        (scan.cummax, (1030,), (0,)), (scan.linear_scan, (1030,), (0, True)), (softmax.softmax, (1, 20_000), (1,))]


@interpreted
@pytest.mark.parametrize("op, shape, options", REAL, ids=[op.name for op, *_ in REAL])
def test_kernels_on_tiles_of_real_size(rng, op, shape, options):
    """With the blocks that a GPU uses: the compile gate compiles what is launched here."""
    test_kernels_on_long_lines(rng, None, op, shape, options)


@interpreted
@pytest.mark.parametrize("place", [5, 1998])
def test_kernels_find_the_first_of_equals_and_nan_across_parts(small_parts, place):
    from zoo.ops import cuda
    x = np.zeros(2000, np.float32)
    x[[place, -1]] = 9
    assert reduce.argmax(cuda.from_numpy(x)).item() == place
    x[place] = np.nan
    values, index = reduce.min_dim(cuda.from_numpy(x), 0)
    assert np.isnan(values.item()) and index.item() == place


@pytest.mark.parametrize("shape, dim", [((300, 1003), 1), ((1, 100_003), 1), ((20, 30, 500), None)])
def test_products_of_long_rows(rng, monkeypatch, shape, dim):
    """Of NumPy, folded: within six deviations of as many roundings as factors; zeros, infinities, nan as in one pass.
    """
    monkeypatch.setattr(compiled, "ENABLED", [False])
    x = (1 + 0.01 * rng.normal(size=shape)).astype(np.float32)
    tolerance = 6 * 3.5e-8 * np.sqrt(x.size if dim is None else shape[dim])
    np.testing.assert_allclose(reduce.prod(x, dim), x.astype(np.float64).prod(dim), rtol=tolerance)
    for row, value in zip(x.reshape(-1, shape[-1]), (0, np.inf, -np.inf, np.nan), strict=False):
        row[rng.integers(shape[-1])] = value
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(reduce.prod(x, dim), x.astype(np.float64).prod(dim), rtol=tolerance)


@pytest.mark.torch
@pytest.mark.parametrize("name, call", [
    ("sum", lambda t, x: t.sum(x, (0, 2), keepdim=True)), ("mean", lambda t, x: t.mean(x, -1)),
    ("prod", lambda t, x: t.prod(x, 1)),
    ("std", lambda t, x: t.std(x, (0, 1), correction=0)), ("var", lambda t, x: t.var(x, 1, unbiased=False)),
    ("var_mean", lambda t, x: t.var_mean(x, dim=2, correction=2)), ("max", lambda t, x: t.max(x, 1, True)),
    ("min", lambda t, x: t.min(x)), ("aminmax", lambda t, x: t.aminmax(x, dim=0)),
    ("median", lambda t, x: t.median(x, 1)),
    ("norm", lambda t, x: t.norm(x, 3, (0, 1))), ("logcumsumexp", lambda t, x: t.logcumsumexp(x, 1)),
    ("cummin", lambda t, x: t.cummin(x, 2)), ("nanmean", lambda t, x: t.nanmean(x, 0)),
    ("count_nonzero", lambda t, x: t.count_nonzero(x, 1)),
    ("dist", lambda t, x: t.dist(x, x * 2)), ("log_softmax", lambda t, x: t.log_softmax(x, 1, dtype=t.float64))])
def test_calls_as_in_torch(rng, name, call):
    import torch
    x = rng.normal(size=(3, 4, 5)).astype(np.float32)
    ours, theirs = call(zoo, zoo.tensor(x)), call(torch, torch.tensor(x))
    pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
    for a, b in pairs:
        assert str(a.dtype) == str(b.dtype).removeprefix("torch.") and tuple(a.shape) == tuple(b.shape)
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-5, atol=1e-6)
