"""Memory that is kept for the next large result: who holds it, how much of it, after a fork, with several threads."""
import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import zoo
import zoo.backends.cpu
from zoo.ops import buffers
from zoo.ops.dtypes import bfloat16

SIZE = buffers.LARGE // 4 + 1000                  # of float32


@pytest.fixture(autouse=True)
def kept():
    """Nothing is idle at the start, and the bound is what it was at the end."""
    limit = buffers.KEPT.limit
    zoo.backends.cpu.kept_memory = 0
    zoo.backends.cpu.kept_memory = limit
    yield buffers.KEPT
    zoo.backends.cpu.kept_memory = 0
    zoo.backends.cpu.kept_memory = limit


def idle() -> int:
    return sum(m.nbytes for m in buffers.KEPT.idle.values())


def new(size=SIZE, dtype=np.float32) -> np.ndarray:
    return buffers.empty((size,), np.dtype(dtype))


def test_memory_comes_back_with_the_last_view():
    x = new()
    assert type(x) is np.ndarray and x.flags.writeable and x.flags.aligned and x.flags.c_contiguous
    place, part, view = x.ctypes.data, x[10:20].reshape(2, 5).T, memoryview(x[:4])
    del x
    assert not idle()
    del part
    assert not idle()
    del view
    assert idle() >= 4 * SIZE
    assert new().ctypes.data == place and not idle()


def test_two_arrays_at_once_lie_apart():
    x, y = new(), new()
    x[:], y[:] = 1, 2
    assert (x == 1).all() and not np.shares_memory(x, y)


def test_other_sizes_and_dtypes():
    del_me = new()
    place = del_me.ctypes.data
    del del_me
    assert new(SIZE // 2, np.float64).ctypes.data == place            # as many bytes
    assert new(2 * SIZE).ctypes.data != place
    small, half = new(10), buffers.empty((buffers.LARGE,), bfloat16)
    assert small.flags.owndata and half.dtype == bfloat16
    assert buffers.empty_like(small).shape == (10,)


def test_bound():
    nbytes = new().base.memory.nbytes
    zoo.backends.cpu.kept_memory = 2 * nbytes
    xs = [new() for _ in range(3)]
    places = [x.ctypes.data for x in xs]
    while xs:
        del xs[0]
    assert idle() == 2 * nbytes
    assert [new().ctypes.data for _ in range(1)][0] == places[2]      # the oldest went, the latest is given out first
    zoo.backends.cpu.kept_memory = 0
    assert not idle() and new().flags.owndata
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match="kept_memory"):
            zoo.backends.cpu.kept_memory = wrong


FAULTS = """
import resource, sys
import numpy as np
import zoo
from zoo.ops import buffers
zoo.backends.cpu.kept_memory = int(sys.argv[1])
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def step():
    x = buffers.empty((1 << 20,), np.dtype(np.float32))
    y = np.add(x, x)                                        # not by `empty`, but malloc is the same
    y += np.add(y, x)
for _ in range(3):
    step()
before = faults()
for _ in range(10):
    step()
print(faults() - before)
"""


@pytest.mark.skipif(buffers.glibc_mallopt() is None, reason="glibc")
def test_malloc_keeps_smaller_blocks():
    """12 MB a step in blocks of 4 MB: page by page anew, or not at all."""
    found = [int(subprocess.run([sys.executable, "-c", FAULTS, str(limit)], capture_output=True, text=True, check=True,
                                env={**os.environ, "NUMPY_MADVISE_HUGEPAGE": "0"}).stdout)
             for limit in (64 << 20, 0)]
    assert found[0] < 100 < found[1]


def test_threads():
    wrong = []

    def work(number):
        for _ in range(20):
            x = new()
            x[::4096] = number
            wrong.extend(x[::4096][x[::4096] != number])
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong and idle() <= buffers.KEPT.limit


def fill(x, place, queue):
    y = new()
    y[:] = 5
    queue.put((bool((x == 3).all()), y.ctypes.data == place))


@pytest.mark.skipif(sys.platform == "win32", reason="fork")
def test_after_a_fork():
    """The child has what was idle for itself: its writes are not seen here."""
    x, y = new(), new()
    x[:], y[:] = 3, 4
    place = y.ctypes.data
    del y
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=fill, args=(x, place, queue))
    child.start()
    assert queue.get(timeout=60) == (True, True)
    child.join()
    y = new()
    assert y.ctypes.data == place and (x == 3).all() and not (y == 5).any()


def test_saved_arrays_are_not_given_out():
    """What the backward pass needs stays alive; the gradients are those of the formula."""
    x = zoo.ones(SIZE, requires_grad=True)
    y = zoo.relu(x * 2)
    for _ in range(3):
        zoo.relu(x.detach() * 5)
    (y * y).sum().backward()
    assert float(x.grad.min()) == float(x.grad.max()) == 8
