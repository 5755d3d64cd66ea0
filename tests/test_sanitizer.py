"""ops/cuda/sanitizer.py: kernels with one fault each are errors, and without it none; a grid's programs take turns."""
import contextlib

import numpy as np
import pytest

from zoo.ops import cuda

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402

from zoo.ops.cuda.dlpack import from_dlpack  # noqa: E402
from zoo.ops.cuda.sanitizer import sanitizing  # noqa: E402
from zoo.ops.cuda.shadow import SanitizerError  # noqa: E402
from zoo.ops.rnn_forward_gpu import grid_barrier  # noqa: E402

pytestmark = pytest.mark.interpret
B = 128


@triton.jit
def shift(x, y, by, PER: tl.constexpr, B: tl.constexpr):
    """x (n,), y (n,) = x + the program's number, PER further for each, x read `by` further. Grid: any."""
    i = tl.program_id(0) * PER + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i + by) + tl.program_id(0))


@triton.jit
def rotate(x, BARRIER: tl.constexpr, B: tl.constexpr):
    """x (B,): each element to the next place. Grid: (1,)."""
    i = tl.arange(0, B)
    v = tl.load(x + i)
    if BARRIER:
        tl.debug_barrier()
    tl.store(x + (i + 1) % B, v)


@triton.jit
def write_and_read(x, y, by, BARRIER: tl.constexpr, B: tl.constexpr):
    """x, y (2 B,): y = what is written to x, `by` further. Grid: (1,)."""
    i = tl.arange(0, B)
    tl.store(x + i, i.to(tl.float32))
    if BARRIER:
        tl.debug_barrier()
    tl.store(y + i, tl.load(x + (i + by) % B))


@triton.jit
def count_up(x, BARRIER: tl.constexpr):
    """x (1,) grows by 1. Grid: (1,)."""
    v = tl.load(x)
    if BARRIER:
        tl.debug_barrier()
    tl.store(x, v + 1)


@triton.jit
def fold(x, VALUE: tl.constexpr, B: tl.constexpr):
    """x (2,): two lanes' writes to one place, different ones without VALUE. Grid: (1,)."""
    i = tl.arange(0, B)
    tl.store(x + i % 2, (i % 2 if VALUE else i).to(tl.float32))


@triton.jit
def add_up(x, y, PLAIN: tl.constexpr):
    """x (1,) grows by 1 in each program, y (n,) is what it was. Grid: any."""
    before = tl.load(x) if PLAIN else 0
    tl.store(y + tl.program_id(0), tl.atomic_add(x, 1) + before)


@triton.jit
def misaligned(x, y, by):
    """x (2,), y (1,): what lies `by` bytes behind x. Grid: (1,)."""
    tl.store(y, tl.load((x.to(tl.uint64) + by).to(tl.pointer_type(tl.float32))))


@triton.jit
def hinted(x, y, n, MULTIPLE: tl.constexpr, CONTIGUOUS: tl.constexpr, STEP: tl.constexpr, B: tl.constexpr):
    """x, y (n,). Grid: (1,)."""
    start = tl.multiple_of(n, MULTIPLE) - n
    i = start + tl.max_contiguous(tl.arange(0, B) * STEP, CONTIGUOUS)
    tl.store(y + i, tl.load(x + tl.multiple_of(i, [STEP])))


@triton.jit
def by_table(table, factor, B: tl.constexpr):
    """table (k,): addresses of float32 arrays (B,), which become factor * their program's number. Grid: (k,)."""
    x = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(x + tl.arange(0, B), tl.zeros((B,), tl.float32) + factor * tl.program_id(0))


@triton.jit
def unfenced(bar, target):
    """The writes of one thread only are released."""
    tl.atomic_add(bar, 1, sem="release", scope="gpu")
    while tl.atomic_add(bar, 0, sem="acquire", scope="gpu") < target:
        pass
    tl.debug_barrier()


@triton.jit
def not_awaited(bar, target):
    """One thread only has waited."""
    tl.debug_barrier()
    tl.atomic_add(bar, 1, sem="release", scope="gpu")
    while tl.atomic_add(bar, 0, sem="acquire", scope="gpu") < target:
        pass


@triton.jit
def relaxed(bar, target):
    """Counts, and releases nothing."""
    tl.debug_barrier()
    tl.atomic_add(bar, 1, sem="relaxed", scope="gpu")
    while tl.atomic_add(bar, 0, sem="acquire", scope="gpu") < target:
        pass
    tl.debug_barrier()


@triton.jit
def endless(bar, target):
    """Nobody arrives."""
    while tl.atomic_add(bar, 0, sem="acquire", scope="gpu") < target:
        pass


@triton.jit
def exchange(x, y, bar, BARRIER: tl.constexpr, B: tl.constexpr):
    """x, y (n, B), bar (1,): each of n programs writes a row, and reads the next one's. Grid: (n,)."""
    p, n = tl.program_id(0), tl.num_programs(0)
    i = tl.arange(0, B)
    tl.store(x + p * B + i, i + p)
    BARRIER(bar, n)
    tl.store(y + p * B + i, tl.load(x + (p + 1) % n * B + i))


def floats(*shape):
    return cuda.from_numpy(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


def fault(words, is_one=True):
    """Raises if the launch inside is no error with these words, or not is_one and it is."""
    return pytest.raises(SanitizerError, match=words) if is_one else contextlib.nullcontext()


@pytest.fixture(autouse=True)
def watched():
    with sanitizing():
        yield


@pytest.mark.parametrize("per, grid", [(B, 1), (B, 4), (B - 1, 2)])
def test_programs_that_write_to_one_place(per, grid):
    words = r"shift, program \(1, 0, 0\), test_sanitizer.py:\d+: writes 1 elements that program \(0, 0, 0\) wrote at"
    with fault(words, per < B):
        cuda.launch(shift, (grid,), floats(512), cuda.empty((512,), np.float32), 0, PER=per, B=B)


def test_equal_values_of_programs_are_no_fault():
    x = floats(B)
    table = cuda.from_numpy(np.array([x.pointer] * 2, np.uint64))
    cuda.launch(by_table, (2,), table, 0.0, B=B)
    with fault(r"program \(1, 0, 0\).*: writes 128"):
        cuda.launch(by_table, (2,), table, 1.0, B=B)


def test_programs_that_read_what_another_writes():
    x = floats(512)
    with fault("reads 128 elements that program .* wrote at"):
        cuda.launch(shift, (2,), x, x.view((384,), (1,), B), 0, PER=B, B=B)
    with fault("writes 128 elements that program .* read at"):
        cuda.launch(shift, (2,), x.view((384,), (1,), B), x, 0, PER=B, B=B)


@pytest.mark.parametrize("barrier", [False, True])
def test_threads_need_a_barrier(barrier):
    with fault("rotate.*: writes 128 elements that it read at .* since its last barrier", not barrier):
        cuda.launch(rotate, (1,), floats(B), BARRIER=barrier, B=B)
    x, y = cuda.empty((B,), np.float32), cuda.empty((B,), np.float32)
    cuda.launch(write_and_read, (1,), x, y, 0, BARRIER=False, B=B)                # each thread its own
    with fault("reads 128 elements that it wrote", not barrier):
        cuda.launch(write_and_read, (1,), x, y, 1, BARRIER=barrier, B=B)
    with fault("reads 128 elements that it wrote", not barrier):                  # two threads have each
        cuda.launch(write_and_read, (1,), x, y, 0, BARRIER=barrier, B=B, num_warps=8)
    with fault("count_up.*: writes 1 elements that it read", not barrier):
        cuda.launch(count_up, (1,), floats(1), BARRIER=barrier)


@pytest.mark.parametrize("value", [False, True])
def test_lanes_that_write_to_one_place(value):
    with fault("writes several values to one place, 126 times", not value):
        cuda.launch(fold, (1,), floats(2), VALUE=value, B=B)


@pytest.mark.parametrize("plain", [False, True])
def test_atomics_do_not_race_with_each_other(plain):
    x, y = cuda.from_numpy(np.zeros(1, np.int32)), cuda.empty((3,), np.int32)
    with fault("updates 1 elements that it read", plain):
        cuda.launch(add_up, (3,), x, y, PLAIN=plain)
    assert plain or cuda.to_numpy(y).tolist() == [0, 1, 2]


def test_what_nobody_wrote_is_not_read():
    x, y = cuda.empty((2 * B,), np.float32), cuda.empty((2 * B,), np.float32)
    cuda.copy_from_numpy(x.view((B,), (1,)), np.ones(B, np.float32))
    cuda.launch(shift, (1,), x, y, 0, PER=B, B=B)
    with fault("reads 3 elements that nobody wrote; the first lies 512 bytes into a block of 1024"):
        cuda.launch(shift, (1,), x, y, 3, PER=B, B=B)
    with fault("to_numpy: 128 of 256 elements"):
        cuda.to_numpy(y)
    cuda.copy_device(y.view((B,), (1,), B), x.view((B,), (1,)))
    assert cuda.to_numpy(y).size == 2 * B
    cuda.copy_device(y.view((B,), (1,)), cuda.empty((B // 2,), np.float64))
    with fault("to_numpy: 128 of 256"):
        cuda.to_numpy(y)
    cuda.fill_bytes(y)
    cuda.host_view(x)[:] = 1
    assert cuda.to_numpy(x.view((B,), (2,), 1)).sum() == B and not cuda.to_numpy(y).any()


def test_elements_of_several_sizes():
    wide = cuda.empty((4 * B,), np.float64)
    parts = cuda.DeviceArray(wide.pointer, (8 * B,), (1,), np.dtype(np.float32), wide.owner)
    cuda.launch(shift, (4,), floats(512), parts, 0, PER=B, B=B)
    assert cuda.to_numpy(wide.view((256,), (1,))).size == 256
    with fault("to_numpy: 256 of 257"):
        cuda.to_numpy(wide.view((2, 257), (0, 1), 255).view((257,), (1,)))


@pytest.mark.parametrize("by", [0, 2, 4])
def test_addresses_are_multiples_of_the_size(by):
    with fault("1 addresses are no multiple of 4", by == 2):
        cuda.launch(misaligned, (1,), floats(2), cuda.empty((1,), np.float32), by)


@pytest.mark.parametrize("multiple, contiguous, step, wrong", [
    (16, B, 1, ""), (32, B, 1, r"multiple_of\(32\)"), (16, 1, 2, ""), (16, 2, 2, r"max_contiguous\(2\)"),
])
def test_hints_are_true(multiple, contiguous, step, wrong):
    with fault(wrong, bool(wrong)):
        cuda.launch(hinted, (1,), floats(512), cuda.empty((512,), np.float32), 16, MULTIPLE=multiple,
                    CONTIGUOUS=contiguous, STEP=step, B=B)


def test_tables_of_addresses_and_memory_of_others():
    borrowed = from_dlpack(np.zeros(B, np.float32))
    cuda.launch(shift, (1,), borrowed, borrowed, 0, PER=B, B=B)
    with fault("writes 128 elements that program"):
        cuda.launch(shift, (2,), floats(B), borrowed, 0, PER=0, B=B, num_warps=1)
    x, y = floats(B), floats(B)
    cuda.launch(by_table, (2,), cuda.from_numpy(np.array([x.pointer, y.pointer], np.uint64)), 1.0, B=B)


def test_streams_wait_for_each_other():
    here, side = cuda.current_stream(), cuda.Stream()
    x, y = floats(B), cuda.empty((B,), np.float32)
    with cuda.stream(side):
        with fault("shift, test_sanitizer.py.*: another stream is at work"):
            cuda.launch(shift, (1,), x, y, 0, PER=B, B=B)
        side.wait_stream(here)
        cuda.launch(shift, (1,), x, y, 0, PER=B, B=B)
    for early in (lambda: cuda.to_numpy(y), lambda: cuda.fill_bytes(x), lambda: cuda.copy_device(x, y)):
        with fault("another stream is at work"):
            early()
    done = side.record_event()
    with cuda.stream(side):
        cuda.fill_bytes(y)
    here.wait_event(done)
    cuda.fill_bytes(x)
    with fault("to_numpy: another stream is at work"):
        cuda.to_numpy(y)
    cuda.synchronize()
    assert not cuda.to_numpy(y).any()


@pytest.mark.parametrize("barrier", [grid_barrier, unfenced, not_awaited, relaxed])
def test_programs_that_wait_for_each_other(barrier):
    x, y, bar = cuda.empty((4, B), np.int32), cuda.empty((4, B), np.int32), cuda.from_numpy(np.zeros(1, np.int32))
    with fault(r"reads 128 elements that program \(1, 0, 0\) wrote", barrier is not grid_barrier):
        cuda.launch(exchange, (4,), x, y, bar, BARRIER=barrier, B=B, cooperative=True)
        assert cuda.to_numpy(y)[:, 0].tolist() == [1, 2, 3, 0]


def test_programs_that_wait_for_ever():
    x, bar = cuda.empty((4, B), np.int32), cuda.from_numpy(np.zeros(1, np.int32))
    with pytest.raises(RuntimeError, match="4 programs wait for ever"):
        cuda.launch(exchange, (4,), x, x, bar, BARRIER=endless, B=B, cooperative=True)


def test_counters_of_the_library():
    """Each read its counter in all threads and wrote it in one, without a barrier."""
    from zoo.ops.norm_running_gpu import move
    from zoo.ops.random_gpu import advance
    batches, state = cuda.from_numpy(np.array(3)), cuda.from_numpy(np.array([7, 5]))
    mean, value = floats(4), floats(4)
    move(mean, None, batches, value, value, None, 1.0)
    advance(state, 4)
    assert batches.item() == 4 and cuda.to_numpy(state).tolist() == [7, 9]
