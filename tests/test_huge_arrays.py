"""Arrays of 2^31 elements and more: places in them are computed in 64 bits.

Memory is address space until it is touched, and of each grid only the first and the last programs run, so that an
array of 20 GB costs nothing: what the last programs write shows that they found their places. Integers of 32 bits wrap
in the interpreter as on a GPU.
"""
import builtins

import numpy as np
import pytest

import zoo
from zoo.ops import cuda
from zoo.ops.cuda import ledger, memory, mode
from zoo.ops.errors import KernelError
from zoo.ops.op import OPS

pytest.importorskip("triton")
pytestmark = [pytest.mark.interpret, pytest.mark.skipif(mode.sanitizing, reason="what nobody wrote is read here")]
MANY = 2**31 + 4099
ENDS = 2                # programs run at either end of each dimension of a grid
SPARSE = 1 << 28        # bytes from which on an array is only address space


class AddressSpace(memory.HostMemory):
    """Memory of zeros of which nothing exists until it is touched."""

    __slots__ = ()

    def __init__(self, nbytes: int, device: int):
        if nbytes < SPARSE:
            super().__init__(nbytes, device)
            self.block.fill(0)
            return
        raw = np.zeros(nbytes + memory.ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % memory.ALIGNMENT
        self.block, self.pointer = raw[start : start + nbytes], raw.ctypes.data + start
        self.nbytes, self.device = nbytes, device
        memory.HostMemory.live[self.pointer] = nbytes
        ledger.accounts[device].add(nbytes)


def ends(*bounds):
    """`range`, of which the middle is left out."""
    if len(bounds) > 1 or bounds[0] <= 2 * ENDS:
        return builtins.range(*bounds)
    return [*builtins.range(ENDS), *builtins.range(bounds[0] - ENDS, bounds[0])]


@pytest.fixture(autouse=True)
def sparse(monkeypatch):
    from zoo.ops.cuda import interpreter

    monkeypatch.setattr(memory, "real_memory", lambda: AddressSpace)
    monkeypatch.setattr(interpreter, "range", ends, raising=False)


def array(*shape, dtype=np.int8, last=0, columns=1):
    """Zeros, but the last `columns` elements of its last row, which are `last`."""
    x = cuda.empty(shape, np.dtype(dtype))
    if columns:
        cuda.host_view(x).reshape(-1, shape[-1])[-1, -columns:] = last
    return x


def tail(x, count=2):
    """The last elements."""
    return np.ravel(cuda.host_view(x)[(-1,) * (x.ndim - 1)][-count:]).tolist()


CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


@pytest.mark.parametrize("name", CASES)
def test_the_last_element_is_found(name):
    got, wanted = CASES[name]()
    np.testing.assert_allclose(got, wanted, rtol=2e-3, atol=1e-6)


half = np.float16


@case
def elementwise():
    return tail(OPS["neg"](array(MANY, last=3))), [0, -3]


@case
def elementwise_strided():
    x = array(2 * MANY - 1, last=3)
    return tail(OPS["neg"](x.view((MANY,), (2,)))), [0, -3]


@case
def elementwise_strided_just_below_32_bits():
    n = 2**31 - 3
    return tail(OPS["neg"](array(2 * n - 1, last=3).view((n,), (2,)))), [0, -3]


@case
def elementwise_rows():
    return tail(OPS["neg"](array(MANY, 3, last=3).view((MANY, 2), (3, 1), 1))), [0, -3]


@case
def elementwise_one_row_far_away():
    x = array(2, MANY, last=3)
    return tail(OPS["neg"](x.view((2, 3), (MANY, 1), MANY - 3))), [0, -3]


@case
def creation():
    return tail(zoo.arange(MANY, device="cuda").array), [MANY - 2, MANY - 1]


@case
def triangle():
    return tail(OPS["triu"](array(50000, 50000, last=3, columns=2), 0)), [0, 3]


@case
def sum_of_all():
    from zoo.ops.layout_gpu import layout
    from zoo.ops.pointwise_gpu import TYPES
    from zoo.ops.reduce_gpu import add, add_lanes, fold, itself

    n, part = 2 * MANY, 2**17
    x, parts = array(n, last=3, columns=5), -(-n // part)
    y = cuda.empty((parts, 1), np.dtype(np.int64))
    cuda.launch(fold, (1, parts), x, y, None, 0.0, *layout(x, (0,)).numbers, part, ACC=TYPES["int64"], START=0,
                PRE=itself, POST=itself, COMBINE=add, LANES=add_lanes, BK=1, BR=2048, FLAT_K=True, FLAT_R=True,
                WIDE=layout(x, (0,)).wide)
    return cuda.host_view(y)[-1], [15]


@case
def sum_of_rows():
    return tail(OPS["sum"](array(MANY, 2, last=3, columns=2), 1, False, np.dtype(np.int8))), [0, 6]


@case
def largest_of_columns():
    return tail(OPS["amax"](array(3, MANY, last=3), (0,), False)), [0, 3]


@case
def place_of_the_largest():
    return tail(OPS["max_dim"](array(5, MANY // 2, last=3), 0, False)[1]), [0, 4]


@case
def running_sum_of_rows():
    return tail(OPS["cumsum"](array(MANY, 2, last=3, columns=2), 1, np.dtype(np.int8))), [3, 6]


@case
def running_sum_of_columns():
    return tail(OPS["cumsum"](array(5, MANY // 4, last=3), 0, np.dtype(np.int8))), [0, 3]


@case
def shifted():
    x = array(4, MANY // 2)
    cuda.host_view(x)[0, -1] = 3
    return tail(OPS["shift"](x, 0, 3, 0.0)), [0, 3]


@case
def softmax_of_columns():
    y = OPS["softmax"](array(5, MANY // 2, dtype=half, last=3), 0, None)
    return tail(y), [1 / 5, np.exp(3) / (np.exp(3) + 4)]


@case
def softmax_of_rows():
    y = OPS["softmax"](array(MANY // 4, 5, dtype=half, last=3), 1, None)
    return tail(y), np.exp([0, 3]) / (np.exp(3) + 4)


@case
def sorted_rows():
    return tail(OPS["sort"](array(MANY // 4, 5, last=-3), 1, False, True)[1]), [2, 3]


@case
def gathered():
    return tail(OPS["gather"](array(70001, 40003, last=3), 1, array(70001, 40003, dtype=np.int32, last=-1))), [0, 3]


@case
def indexed_columns():
    return tail(OPS["index"](array(70001, 40003, last=3), (1,), cuda.from_numpy(np.arange(40003)))), [0, 3]


@case
def scattered():
    from zoo.ops.index_gpu import Sizes, _write

    y, index = array(70001, 40003), array(70001, 40003, dtype=np.int32, last=-1)
    _write(y, array(70001, 40003, last=3), index, Sizes(70001, 40003, 40003, 1, True))
    return tail(y), [0, 3]


@case
def added_at_an_index():
    from zoo.ops.index_gpu import Sizes, _combined

    y = _combined(array(70001, 40003), array(70001, 2, last=3), cuda.from_numpy(np.array([0, 40002])),
                  Sizes(70001, 40003, 2, 1, False), "sum")
    return tail(y), [0, 3]


@case
def embedding():
    return tail(OPS["embedding"](cuda.from_numpy(np.array([-1])), array(MANY // 256, 256, dtype=half, last=3), None,
                                 False)), [0, 3]


@case
def layer_norm():
    y = OPS["layer_norm"](array(MANY // 256, 256, dtype=half, last=3), (256,), None, None, 0.0)
    return tail(y), [-1 / 255**0.5, 255**0.5]


@case
def batch_norm():
    mean, var = cuda.from_numpy(np.zeros(70001, "f")), cuda.from_numpy(np.ones(70001, "f"))
    return tail(OPS["batch_norm_eval"](array(8, 70001, 4001, dtype=half, last=3), mean, var, None, None, 0.0)), [0, 3]


@case
def dropped_out():
    y = OPS["dropout_mask"](array(MANY, dtype=half, last=1, columns=4000), 0.5, 7, 3)
    return sorted(set(tail(y, 1000))), [0, 2]


@case
def scaled_in_a_list():
    from zoo.ops.multi_tensor_gpu import scale

    x = array(MANY, dtype=half, last=3)
    scale([x], 2.0)
    return tail(x), [0, 6]


@case
def columns_of_images():
    y = OPS["im2col"](array(MANY // 4096, 1, 64, 64, dtype=half, last=3), (2, 2), (1, 1), (0, 0), (1, 1))
    return tail(y), [0, 3]


@case
def pooled():
    return tail(OPS["max_pool"](array(MANY // 8192, 8, 64, 64, dtype=half, last=3), (1, 1), (1, 1), (0, 0), (1, 1),
                                False)[0]), [0, 3]


@case
def pooled_gradient():
    n = MANY // 8192
    y = OPS["avg_pool_grad"](array(n, 8, 32, 32, dtype=half, last=4), (64, 64), (2, 2), (2, 2), (0, 0), False, True,
                           None)
    return tail(y, 3), [0, 1, 1]


def product(m, k, n, turned=False):
    """The last element of a product of which only the last row and the last column are not zero."""
    from zoo.ops import gpu_configs

    a = array(k, m, dtype=half, last=2).view((m, k), (1, m)) if turned else array(m, k, dtype=half, last=2)
    b = array(k, n, dtype=half, last=3)
    with gpu_configs.using(config=gpu_configs.Config(128, 64, 32, split=1)):
        return tail(OPS["matmul"](a, b)), [0, 6]


@case
def product_of_many_rows():
    return product(MANY, 2, 3)


@case
def product_of_large_operands():
    return product(MANY // 256, 256, 8)


@case
def product_with_a_large_result():
    return product(50001, 64, 50007)


@case
def product_with_rows_that_are_far_apart():
    return product(128, 32, 17_000_008)


@case
def product_of_a_turned_operand():
    return product(90_000_008, 128, 16, True)


@case
def convolution():
    x = array(MANY // 16384, 16, 16, 64, dtype=half, last=3)
    w = array(16, 64, 3, 3, dtype=half, columns=0)
    cuda.host_view(w)[...] = 1
    y = OPS["conv2d"](x.view((len(x), 64, 16, 16), (16384, 1, 1024, 64)), w, None, (1, 1), (0, 0), (1, 1), 1)
    return tail(y), [0, 3]


@case
def attention():
    n = MANY // 65536
    q, k, v = (array(n, 16, 64, 64, dtype=half, last=last) for last in (0, 0, 64))
    return tail(OPS["attention"](q, k, v, None, False, 1.0, 0.0, 0, 0)[0]), [0, 1]


def test_a_group_norm_of_many_channels_takes_a_grid_that_gpus_have():
    """65,536 channels of all pictures together: the second dimension of a grid ends at 65,535."""
    y = OPS["group_norm"](array(1024, 64, 32, last=3, dtype=np.float32), 32, None, None, 1e-5)
    assert y.shape == (1024, 64, 32)


def test_a_softmax_along_more_than_32_bits_count_is_refused():
    with pytest.raises(KernelError, match=f"softmax: .* got {MANY}"):
        OPS["softmax"](array(MANY, dtype=half), 0, None)


def test_a_grid_that_no_gpu_takes_is_refused():
    from zoo.ops.random_gpu import advance_kernel

    state = cuda.from_numpy(np.zeros(2, np.int64))
    for grid in ((2**31,), (1, 65536), (1, 1, 65536)):
        with pytest.raises(ValueError, match="advance_kernel: a GPU takes no grid"):
            cuda.launch(advance_kernel, grid, state, 1)


def test_adaptive_windows_over_a_long_signal(monkeypatch):
    """The place of a window is a quotient of a product that needs 64 bits at sizes of every day."""
    from zoo.ops.cuda import interpreter

    monkeypatch.setattr(interpreter, "range", builtins.range, raising=False)
    x = np.arange(300_000, dtype=np.float32).reshape(1, 1, -1)
    y = OPS["adaptive_avg_pool"](cuda.from_numpy(x), (7_500,))
    np.testing.assert_allclose(cuda.to_numpy(y), OPS["adaptive_avg_pool"](x, (7_500,)), rtol=1e-6)
