"""Remembered calls: what they tell apart, that they do on other arrays what the launcher does, and what they free."""
import threading
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

import zoo
from tests.cases import OPS, all_of, cast, samples
from zoo.ops import conv, cuda, gpu_configs
from zoo.ops.cuda import remember
from zoo.ops.cuda.array import DeviceArray
from zoo.ops.errors import ShapeError
from zoo.ops.gpu_configs import Config

pytest.importorskip("triton")
pytestmark = pytest.mark.cuda

ONCE = (1, 1), (0, 0), (1, 1), 1                       # stride, padding, dilation, groups of a convolution


def launcher_of(op):
    """The marked launcher of an op, or None."""
    module = f"{op.module}_gpu"
    found = op.gpu or (getattr(import_module(module), op.name, None) if op.module and find_spec(module) else None)
    return found if found in remember.marked else None


def marked_ops():
    return [name for name in sorted(OPS) if launcher_of(OPS[name])] if zoo.cuda.is_available() else []


@pytest.fixture
def traces(monkeypatch):
    """The launchers that were traced, in order; what other tests called is forgotten."""
    cuda.forget()
    names, traced = [], remember.traced

    def noted(launcher, *rest):
        names.append(launcher.__name__)
        return traced(launcher, *rest)
    monkeypatch.setattr(remember, "traced", noted)
    return names


def ramp(shape, dtype=np.float32, skip=0, order=None):
    """0, 1, 2 ... from `skip` elements behind an aligned address on, dense in any order of dimensions."""
    x = cuda.from_numpy(np.arange(np.prod(shape) + skip).astype(dtype))
    order = order or range(len(shape))
    strides = dict(zip(order, cuda.contiguous_strides(tuple(shape[d] for d in order)), strict=True))
    return x.view(shape, [strides[d] for d in range(len(shape))], skip)


def values(x):
    return tuple(map(values, x)) if isinstance(x, tuple) else cuda.to_numpy(x) if type(x) is DeviceArray else x


@pytest.mark.parametrize("name", marked_ops())
def test_a_repeated_call_does_what_the_launcher_does(name, traces):
    """Bit for bit on other values, and nothing is worked out again."""
    op, launcher = OPS[name], launcher_of(OPS[name])
    assert launcher is not None
    for kind in ("ordinary", "odd", "empty"):
        found = samples(op)[kind]
        if isinstance(found, str):
            continue
        args = op.bind(cast(found[0], np.dtype(np.float32)), {})
        others = [np.roll(a, 1).copy() if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in args]
        if not any(isinstance(a, np.ndarray) and a.ndim for a in args):
            continue

        def there(some):
            return [cuda.from_numpy(a) if isinstance(a, np.ndarray) else a for a in some]
        op(*there(args))
        op(*there(args))
        traces.clear()
        got = op(*there(others))
        assert not traces
        want = launcher(*there(others))
        for y, z in zip(all_of(values(got)), all_of(values(want)), strict=True):
            assert type(y) is type(z)
            np.testing.assert_array_equal(y, z)


def test_what_calls_are_told_apart_by(traces):
    """Everything that a launcher may look at; each combination is traced once, when it comes again."""
    shape, kernel = (2, 8, 6, 5), (16, 8, 3, 3)
    x, w, b = ramp(shape), ramp(kernel), ramp((16,))
    calls = {
        "plain": (x, w, b, *ONCE), "shape": (ramp((3, *shape[1:])), w, b, *ONCE),
        "strides": (ramp(shape, order=(0, 2, 3, 1)), w, b, *ONCE),
        "strides of the weight": (x, ramp(kernel, order=(0, 2, 3, 1)), b, *ONCE),
        "dtype": (*(ramp(s, np.float64) for s in (shape, kernel, (16,))), *ONCE),
        "address": (ramp(shape, skip=1), w, b, *ONCE), "another address": (ramp(shape, skip=2), w, b, *ONCE),
        "no bias": (x, w, None, *ONCE), "stride": (x, w, b, (2, 1), *ONCE[1:]),
        "padding": (x, w, b, (1, 1), (1, 2), *ONCE[2:]),
        "groups": (ramp((2, 16, 6, 5)), w, b, *ONCE[:3], 2),
    }
    for _ in range(3):
        for args in calls.values():
            got = cuda.to_numpy(conv.conv2d(*args))
            want = conv.conv2d(*values(args))
            np.testing.assert_allclose(got, want, rtol=1e-5)
    assert traces == ["conv2d"] * len(calls)


def test_settings_are_told_apart(traces):
    x, w = ramp((1, 8, 6, 5)), ramp((16, 8, 3, 3))
    zoo.set_float32_matmul_precision("highest")
    try:
        for _ in range(3):
            conv.conv2d(x, w, None, *ONCE)
            zoo.set_float32_matmul_precision("high")
            conv.conv2d(x, w, None, *ONCE)
            zoo.set_float32_matmul_precision("highest")
            for family in ("sm80", "sm100"):
                with gpu_configs.using(family):
                    conv.conv2d(x, w, None, *ONCE)
            with gpu_configs.using(config=Config(16, 16, 16)):
                conv.conv2d(x, w, None, *ONCE)
    finally:
        zoo.set_float32_matmul_precision("highest")
    assert traces == ["conv2d"] * 5


def test_one_array_twice_is_two_arguments():
    """A call is traced with x for both, and repeated with two arrays."""
    x, w = ramp((3, 4, 3, 3)), cuda.from_numpy(np.ones((3, 4, 3, 3), np.float32))
    for pair in ((x, x), (x, x), (x, w), (w, x), (w, w)):
        want = conv.conv2d(*values(pair), None, *ONCE)
        np.testing.assert_allclose(cuda.to_numpy(conv.conv2d(*pair, None, *ONCE)), want, rtol=1e-6)


def test_an_error_is_raised_each_time(traces):
    x, w = ramp((1, 8, 6, 5)), ramp((16, 7, 3, 3))
    for _ in range(3):
        with pytest.raises(ShapeError, match="weight expects 7 input channels"):
            conv.conv2d(x, w, None, *ONCE)
    assert not traces


def test_memory_is_freed_as_the_launcher_frees_it():
    """The most that lives during a call, and nothing after it."""
    x, w = ramp((2, 32, 9, 9)), ramp((16, 32, 3, 3))
    from zoo.ops import conv_gpu

    def peak_of(call):
        cuda.reset_peak_memory_stats()
        before = cuda.memory_allocated()
        y = call(x, w, None, *ONCE)
        del y
        assert cuda.memory_allocated() == before
        return cuda.max_memory_allocated() - before
    for _ in range(2):
        conv.conv2d(x, w, None, *ONCE)
    assert peak_of(conv.conv2d) == peak_of(conv_gpu.conv2d) > 0


def run_as_op(launcher, arity):
    """The launcher as that of an op."""
    op = SimpleNamespace(arity=arity, name=launcher.__name__)
    return remember.remembering(op, launcher, lambda op, function: function)


def test_results_of_every_kind(traces):
    """An argument itself, views of it and of new arrays, numbers, None, and arrays inside of an argument."""
    def launcher(x, pair):
        a, b = pair
        y = OPS["mul"](x, 2.0)
        z = cuda.empty((4,), np.float32, x.device)
        cuda.fill_bytes(z, 0)
        head = cuda.empty((3,), np.float32, x.device)
        cuda.copy_device(head, y.view((3,), (1,), 1))
        return x, x.view((2,), (2,), 1), y.view((2,), (1,), 2), z, head, OPS["add"](a, b), None, 7, ()
    call = run_as_op(launcher, 2)
    for begin in (0, 5, 10):
        x, a, b = (cuda.from_numpy(np.arange(4, dtype=np.float32) + begin + k) for k in range(3))
        got = call(x, (a, b))
        assert got[0] is x and got[1].pointer == x.pointer + 4 and got[6:] == (None, 7, ())
        for y, want in zip(values(got[1:6]), ([begin + 1, begin + 3], [2 * begin + 4, 2 * begin + 6], [0] * 4,
                                              [2 * begin + k for k in (2, 4, 6)], cuda.to_numpy(a) + cuda.to_numpy(b)),
                           strict=True):
            np.testing.assert_array_equal(y, want)
    assert traces == ["launcher"]


def test_what_depends_on_values_is_worked_out_each_time():
    def launcher(x):
        return OPS["mul"](x, float(x.view((), ()).item()))
    call = run_as_op(launcher, 1)
    for first in (2.0, 3.0, 4.0):
        x = cuda.from_numpy(np.array([first, 1], np.float32))
        np.testing.assert_array_equal(cuda.to_numpy(call(x)), [first * first, first])


def test_a_table_that_the_library_keeps_is_a_constant():
    table = cuda.from_numpy(np.array([1, 2, 3], np.float32))

    def launcher(x):
        return OPS["add"](x, table.view((2,), (1,), 1))
    call = run_as_op(launcher, 1)
    for k in range(3):
        x = cuda.from_numpy(np.full(2, k, np.float32))
        np.testing.assert_array_equal(cuda.to_numpy(call(x)), [k + 2, k + 3])


def test_calls_are_forgotten_when_there_are_many(monkeypatch, traces):
    monkeypatch.setattr(remember, "MOST", 2)

    def launcher(x):
        return OPS["neg"](x)
    call = run_as_op(launcher, 1)
    for n in (1, 1, 1, 2, 3, 1, 1):
        np.testing.assert_array_equal(cuda.to_numpy(call(ramp((n,)))), -np.arange(n))
    assert traces == ["launcher"] * 2


def test_equal_numbers_that_are_not_alike_are_remembered_apart(traces):
    """0.0 and -0.0; 1, 1.0 and True; a nan is equal to nothing."""
    def launcher(x, number):
        return x, repr(number)
    call = run_as_op(launcher, 2)
    x, seen = ramp((2,)), [0.0, -0.0, 0, False, None, 1, 1.0, True, 2.0, float("nan")]
    for _ in range(4):
        assert [call(x, number)[1] for number in seen] == [repr(number) for number in seen]
    assert len(traces) == len(seen)
    pair = run_as_op(lambda x, parts: (x, repr(parts[1])), 2)
    for _ in range(4):
        assert [pair(x, (x, number))[1] for number in (0.0, -0.0)] == ["0.0", "-0.0"]


def test_a_draw_is_traced_once_and_differs_each_time(traces):
    """Seed and offset are no part of what is remembered; what computes with them is worked out each time."""
    x = zoo.ones(64, device="cuda")
    masks = {zoo.nn.functional.dropout(x, 0.5).cpu().numpy().tobytes() for _ in range(4)}
    assert len(masks) == 4 and traces == ["dropout_mask"]

    def launcher(x, seed, offset):
        return OPS["dropout_mask"](x, 0.5, seed, offset + 1)
    call = run_as_op(launcher, 3)
    for offset in (0, 8, 16):
        got, want = call(x.array, 7, offset), OPS["dropout_mask"](x.array, 0.5, 7, offset + 1)
        np.testing.assert_array_equal(cuda.to_numpy(got), cuda.to_numpy(want))

    with pytest.raises(remember.Untraceable):
        int(remember.Live(7))


def test_two_threads_write_down_at_the_same_time():
    both = threading.Barrier(2, timeout=60)

    def launcher(x):
        copies = [cuda.empty(x.shape, x.dtype, x.device) for _ in range(2)]
        both.wait()                                     # each thread has allocated
        cuda.copy_device(copies[0], x)
        y = OPS["neg"](copies.pop(0))
        both.wait()                                     # and freed
        return y
    call, found = run_as_op(launcher, 1), {}

    def work(n):
        found[n] = [cuda.to_numpy(call(ramp((n,)))) for _ in range(3)]
    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 300)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for n, results in found.items():
        for y in results:
            np.testing.assert_array_equal(y, -np.arange(n))
    assert len(found) == 2
