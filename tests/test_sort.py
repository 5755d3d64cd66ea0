"""Order beyond the samples: stability, nan, 64-bit keys, lines longer than a block, order statistics."""
import numpy as np
import pytest

import zoo
from zoo.ops import sort
from zoo.ops.errors import ArgumentError, DimError

interpreted = pytest.mark.cuda
NAN = float("nan")


def test_sort_is_stable_in_both_directions():
    x = zoo.tensor([2, 1, 2, 1])
    assert x.sort().indices.tolist() == [1, 3, 0, 2]
    assert x.sort(descending=True).indices.tolist() == [0, 2, 1, 3]


def test_nan_is_the_largest():
    x = zoo.tensor([1.0, NAN, 3.0])
    assert x.argsort().tolist() == [0, 2, 1] and x.argsort(descending=True).tolist() == [1, 2, 0]
    assert x.topk(2).indices.tolist() == [1, 2]
    assert np.isnan(x.median().item()) and x.nanmedian().item() == 1


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [1, 3, 40])
def test_topk_is_the_head_of_sort(rng, k, largest):
    """k = 1 and 3 of 50 are found one by one, but not where a line has too few other values, or nan."""
    x = zoo.tensor(rng.permutation(200).reshape(4, 50) // 2 * 1.0)
    x[1, 2:] = float("inf") * (1 - 2 * largest)
    x[2, 7] = NAN
    values, indices = x.topk(k, 1, largest)
    want = x.sort(1, descending=largest)
    assert indices.tolist() == want.indices[:, :k].tolist()
    np.testing.assert_array_equal(values.numpy(), want.values[:, :k].numpy())


def test_order_statistics():
    x = zoo.tensor([[3.0, 1.0, 2.0], [9.0, 7.0, 7.0]])
    assert x.kthvalue(2).values.tolist() == [2, 7]
    assert x.median(1).indices.tolist() == [2, 2] and x.median().item() == 3
    assert x.mode(1).values.tolist() == [1, 7]
    assert zoo.quantile(x, 0.5, dim=1).tolist() == [2, 7]
    assert zoo.nanquantile(zoo.tensor([1.0, NAN, 3.0]), 0.5).item() == 2


def test_gradient_goes_back_to_where_the_values_came_from():
    x = zoo.tensor([3.0, 1.0, 2.0], requires_grad=True)
    (x.sort().values * zoo.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100, 1, 10]


@pytest.mark.parametrize("call, error, words", [
    (lambda x: x.topk(5), ArgumentError, "topk.*0 to 3.*got 5"),
    (lambda x: x.kthvalue(0), ArgumentError, "kthvalue.*1 to 3"),
    (lambda x: x.sort(2), DimError, "sort"), (lambda x: zoo.quantile(x, 1.5), ArgumentError, "quantile.*1.5"),
    (lambda x: zoo.bucketize(x, x), ArgumentError, "bucketize")])
def test_wrong_calls(call, error, words):
    with pytest.raises(error, match=words):
        call(zoo.ones(2, 3))


@interpreted
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float64, np.uint8])
@pytest.mark.parametrize("descending", [False, True])
def test_lines_longer_than_a_block(rng, monkeypatch, dtype, descending):
    """Through the bitonic network (blocks of 32 here); 64-bit keys in two passes, and many equal elements."""
    from zoo.ops import cuda, sort_gpu
    monkeypatch.setattr(sort_gpu, "BLOCK", 32)
    x = rng.integers(-100, 100, (2, 150)).astype(dtype)
    x[:, ::3] = (x[:, ::3] * np.asarray(2.0**40 + 1)).astype(dtype) if dtype in (np.int64, np.float64) else x[:, ::3]
    want = sort.sort(x, 1, descending)
    for w, g in zip(want, sort.sort(cuda.from_numpy(x), 1, descending), strict=True):
        np.testing.assert_array_equal(cuda.to_numpy(g), w)


@interpreted
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_blocks_of_real_size(rng, dtype):
    """The launches of a GPU, which the compile gate compiles."""
    from zoo.ops import cuda
    x = rng.integers(-1000, 1000, (1, 3000)).astype(dtype)
    for w, g in zip(sort.sort(x, 1), sort.sort(cuda.from_numpy(x), 1), strict=True):
        np.testing.assert_array_equal(cuda.to_numpy(g), w)


@interpreted
def test_keys_of_all_bits():
    """Neighbours that differ in the last bit, both zeros, infinities and nan."""
    from zoo.ops import cuda
    for dtype in (np.float32, np.float64, np.int32, np.int64, np.uint32, np.uint64):
        if np.dtype(dtype).kind == "f":
            above = np.nextafter(dtype(1), dtype(2))
            x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, above, -1e-40, 1e-40], dtype)
        else:
            i = np.iinfo(dtype)
            x = np.array([i.max, i.min, 0, 1, i.max - 1, i.min + 1, i.max // 2], dtype)
        for descending in (False, True):
            want = sort.sort(x, 0, descending)[1]
            got = cuda.to_numpy(sort.sort(cuda.from_numpy(x), 0, descending)[1])
            np.testing.assert_array_equal(got, want, err_msg=str(dtype))
