"""ops/cuda: arrays, launches, streams, graphs and DLPack, on a GPU or in the interpreter."""

import gc
import importlib.machinery
import os
import subprocess
import sys
import threading
import types
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from zoo.ops import cuda
from zoo.ops.cuda import dlpack
from zoo.ops.cuda.array import DeviceArray
from zoo.ops.errors import DeviceError, KernelError

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402

ROOT = Path(__file__).parent.parent
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
interpret = pytest.mark.interpret
on_device = pytest.mark.cuda


@triton.jit
def square(x):
    return x * x


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr, F: tl.constexpr = None):
    """x, y, out: (n,). Grid: (ceil(n / BLOCK),)."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    v = tl.load(x + i, mask) + tl.load(y + i, mask)
    if F is not None:
        v = F(v)
    tl.store(out + i, v, mask)


@triton.jit
def gather_kernel(x, out, shape, strides, n, BLOCK: tl.constexpr):
    """out (n,) = x of the given shape and strides, row by row. Grid: (ceil(n / BLOCK),)."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    rest, offset = i, tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, -1, -1):
        offset += (rest % shape[k]) * strides[k]
        rest = rest // shape[k]
    tl.store(out + i, tl.load(x + offset, mask), mask)


@triton.jit
def dot_kernel(a, b, out, N: tl.constexpr):
    """a, b, out: (N, N). Grid: (1,)."""
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    c = tl.dot(tl.load(a + at), tl.load(b + at))
    tl.store(out + at, c.to(out.dtype.element_ty))


@triton.jit
def sum_kernel(x, out, n, BLOCK: tl.constexpr):
    """x: (n,), out: (1,). Grid: (1,)."""
    i = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + i, i < n, 0.0), axis=0))


@triton.jit
def double_kernel(out, narrow, wide: "fp64"):  # noqa: F821
    """out: (2,) float64. Grid: (1,)."""
    tl.store(out, narrow.to(tl.float64))
    tl.store(out + 1, wide)


@triton.jit
def table_kernel(table, out, n, BLOCK: tl.constexpr):
    """table: (k,) addresses of float32 arrays of n; out: (k, n). Grid: (k,)."""
    k = tl.program_id(0)
    x = tl.load(table + k).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, BLOCK)
    tl.store(out + k * n + i, tl.load(x + i, i < n), i < n)


@triton.jit
def where_kernel(out):
    """out: (grid 0, grid 1, grid 2). Grid: any."""
    at = (tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(2) + tl.program_id(2)
    tl.store(out + at, at)


def add(a, b, block=256, **options):
    x, y = cuda.from_numpy(a), cuda.from_numpy(b)
    out = cuda.empty(a.shape, a.dtype)
    cuda.launch(add_kernel, (-(-a.size // block),), x, y, out, a.size, BLOCK=block, **options)
    return cuda.to_numpy(out)


@on_device
def test_views_share_memory_and_copies_do_not():
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = cuda.from_numpy(a)
    a[:] = 0
    assert (x.shape, x.strides, x.ndim, x.size, x.nbytes, len(x)) == ((2, 3, 4), (12, 4, 1), 3, 24, 96, 2)
    part = x.view((4, 2), (1, 4), offset=13)
    assert not part.is_contiguous and part.owner is x.owner and part.pointer == x.pointer + 52
    assert cuda.to_numpy(part).tolist() == [[13, 17], [14, 18], [15, 19], [16, 20]]
    cuda.copy_from_numpy(x, np.full((2, 3, 4), 7, np.float32))
    assert cuda.to_numpy(part).tolist() == [[7, 7]] * 4
    assert x.view((2, 1, 3, 4), (12, 99, 4, 1)).is_contiguous, "the stride of a dimension of size 1 means nothing"
    assert x.view((2, 4), (-4, 1), 4).owner is x.owner
    assert cuda.to_numpy(x.view((0, 3), (1, 1))).shape == (0, 3)
    with pytest.raises(ValueError, match="one element"):
        x.item()
    with pytest.raises(TypeError, match="not copied to the host silently"):
        np.asarray(x)


@on_device
def test_items_and_truth():
    x = cuda.from_numpy(np.array([[2.5]], np.float32))
    assert x.item() == 2.5 and float(x) == 2.5 and int(x) == 2 and bool(x) and {x: 1}[x] == 1
    assert cuda.from_numpy(np.array(True)).item() is True
    assert cuda.from_numpy(np.array(3, BFLOAT16)).item() == 3
    with pytest.raises(TypeError, match="0-d"):
        len(cuda.from_numpy(np.array(1)))


@interpret
def test_memory_is_counted_and_freed_by_reference():
    gc.collect()
    before = cuda.memory_allocated()
    cuda.reset_peak_memory_stats()
    x = cuda.empty((1000,), np.float32)
    view = x.view((10,), (1,), 5)
    assert cuda.memory_allocated() == before + 4000
    del x
    assert cuda.memory_allocated() == before + 4000, "the view keeps it alive"
    del view
    assert cuda.memory_allocated() == before and cuda.max_memory_allocated() >= before + 4000


@interpret
def test_new_memory_is_poisoned():
    assert np.isnan(cuda.host_view(cuda.empty((3,), np.float32))).all()
    x = cuda.empty((3,), np.int32)
    cuda.fill_bytes(x)
    assert cuda.to_numpy(x).tolist() == [0, 0, 0]
    y = cuda.empty((3,), np.int32)
    cuda.copy_device(y, x)
    assert cuda.to_numpy(y).tolist() == [0, 0, 0]


@on_device
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, BFLOAT16, np.int8, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("n", [1, 255, 256, 1003])
def test_launch_adds(dtype, n, rng):
    a, b = (rng.integers(0, 50, n).astype(dtype) for _ in range(2))
    assert np.array_equal(add(a, b), a + b)


@interpret
def test_bfloat16_rounds_to_nearest_even(rng):
    a, b = (rng.standard_normal(1000).astype(BFLOAT16) for _ in range(2))
    assert np.array_equal(add(a, b), (a.astype("f") + b.astype("f")).astype(BFLOAT16))
    a, b = (rng.standard_normal((16, 16)).astype(BFLOAT16) for _ in range(2))
    x, y, out = cuda.from_numpy(a), cuda.from_numpy(b), cuda.empty((16, 16), BFLOAT16)
    cuda.launch(dot_kernel, (1,), x, y, out, N=16)
    exact = a.astype("d") @ b.astype("d")
    # Half a unit in the last of 8 bits, and the sum's rounding in float32 before it.
    assert np.all(np.abs(cuda.to_numpy(out).astype("d") - exact) <= np.abs(exact) * 2**-8 + 1e-5)
    v = np.full(3, 1.0078125, BFLOAT16)  # one unit above 1: the bit patterns' sum is far off
    x, out = cuda.from_numpy(v), cuda.empty((1,), np.float32)
    cuda.launch(sum_kernel, (1,), x, out, 3, BLOCK=4)
    assert cuda.to_numpy(out)[0] == np.float32(3.03125), "1.0078125 * 3 = 3.0234375 rounds to 3.03125 in bfloat16"


@on_device
def test_functions_and_defaults_as_constexprs(rng):
    a = rng.standard_normal(100).astype("f")
    assert np.array_equal(add(a, a, F=square), (a + a) ** 2)
    with pytest.raises(TypeError, match="wants constexprs"):
        add(a, a, G=square)


@on_device
@pytest.mark.parametrize(
    "shape, strides", [((7, 3, 5), (1, 35, 7)), ((105,), (1,)), ((5, 1, 7), (7, 0, 1)), ((3, 4), (0, 1))]
)
def test_tuples_are_arguments(shape, strides, rng):
    x = cuda.from_numpy(rng.standard_normal(105).astype("f")).view(shape, strides)
    out = cuda.empty(shape, np.float32)
    cuda.launch(gather_kernel, (1,), x, out, shape, strides, x.size, BLOCK=128)
    assert np.array_equal(cuda.to_numpy(out), cuda.to_numpy(x))


@on_device
def test_floats_arrive_as_on_a_gpu():
    out = cuda.empty((2,), np.float64)
    cuda.launch(double_kernel, (1,), out, 0.1, np.float64(0.1))
    assert cuda.to_numpy(out).tolist() == [float(np.float32(0.1)), 0.1]


@on_device
def test_grids():
    out = cuda.empty((2, 3, 4), np.int32)
    cuda.launch(where_kernel, (2, 3, 4), out)
    assert cuda.to_numpy(out).ravel().tolist() == list(range(24))
    cuda.launch(where_kernel, (2, 0), None)


@on_device
def test_empty_arrays_launch():
    assert add(np.zeros(0, "f"), np.zeros(0, "f")).shape == (0,)


@interpret
def test_reading_out_of_bounds_is_an_error():
    x, out = (cuda.from_numpy(np.zeros(n, np.float32)) for n in (100, 101))
    with pytest.raises(IndexError, match="add_kernel: load of 4 bytes out of bounds: 1 of 101"):
        cuda.launch(add_kernel, (1,), x, out, out, 101, BLOCK=128)
    with pytest.raises(IndexError, match="add_kernel: store"):
        cuda.launch(add_kernel, (1,), out, out, x, 101, BLOCK=128)


@on_device
def test_tables_of_pointers(rng):
    arrays = [cuda.from_numpy(rng.standard_normal(5).astype("f")) for _ in range(3)]
    table = cuda.from_numpy(np.array([a.pointer for a in arrays], np.uint64))
    out = cuda.empty((3, 5), np.float32)
    cuda.launch(table_kernel, (3,), table, out, 5, BLOCK=8)
    assert np.array_equal(cuda.to_numpy(out), np.stack([cuda.to_numpy(a) for a in arrays]))


@on_device
def test_wrong_arguments_are_named():
    x = cuda.empty((4,), np.float32)
    with pytest.raises(TypeError, match="NumPy array of shape"):
        cuda.launch(add_kernel, (1,), x, np.zeros(4), x, 4, BLOCK=4)
    with pytest.raises(TypeError, match="got str"):
        cuda.launch(add_kernel, (1,), x, "x", x, 4, BLOCK=4)
    with pytest.raises(TypeError, match="got 3 arguments"):
        cuda.launch(add_kernel, (1,), x, x, x, BLOCK=4)
    with pytest.raises(TypeError, match="wants numbers or bools"):
        cuda.from_numpy(np.array(["a"]))
    with pytest.raises(ValueError, match="copy_from_numpy"):
        cuda.copy_from_numpy(x, np.zeros(4))


@on_device
def test_threads_launch_side_by_side(rng):
    a = rng.standard_normal(50).astype("f")
    results = [None] * 4

    def work(k):
        results[k] = add(a * k, a, block=16)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k, result in enumerate(results):
        assert np.array_equal(result, a * np.float32(k) + a)


@interpret
def test_dlpack_both_ways(rng):
    a = rng.standard_normal((3, 4)).astype("f")
    x = cuda.from_numpy(a)
    shared = np.from_dlpack(x.view((4, 3), (1, 4)))
    assert np.array_equal(shared, a.T)
    cuda.copy_from_numpy(x, a + 1)
    assert np.array_equal(shared, a.T + 1), "shares memory"
    del x
    gc.collect()
    assert np.array_equal(shared, a.T + 1), "the consumer keeps it alive"
    back = dlpack.from_dlpack(cuda.from_numpy(a))
    assert isinstance(back, DeviceArray) and np.array_equal(cuda.to_numpy(back), a)
    for _ in range(10):  # a capsule whose new name was freed gave the array back twice
        taken = dlpack.from_dlpack(a)
        a += 1
        assert np.array_equal(cuda.to_numpy(taken), a)


class Toy:
    """As much of an op as the dispatch reads."""

    formula = decompose = gpu = None

    def __init__(self, name, **fields):
        self.name, self.module, self.handlers = name, "toys", {}
        self.__dict__.update(fields)

    def handler(self, args):
        return next(type(a).run for a in args if hasattr(type(a), "run"))


@on_device
def test_dispatch_finds_the_function_once_and_guards_devices(monkeypatch):
    toys = types.ModuleType("toys_gpu")
    toys.__spec__ = importlib.machinery.ModuleSpec("toys_gpu", None)
    toys.scale = lambda x, factor: (x, factor)
    monkeypatch.setitem(sys.modules, "toys_gpu", toys)
    x = cuda.from_numpy(np.ones(3, np.float32))
    run = DeviceArray.__op__(Toy("scale"))
    assert run(x, 2.0) == (x, 2.0)
    moved = run(x, np.array(2.0))[1]
    assert isinstance(moved, DeviceArray) and moved.item() == 2 and moved.shape == ()
    with pytest.raises(DeviceError, match=r"scale: .* argument 2, of shape \(3,\), is on cpu, another on cuda:0"):
        run(x, np.ones(3))
    there = DeviceArray(x.pointer, x.shape, x.strides, x.dtype, x.owner, device=1)
    with pytest.raises(DeviceError, match="scale: .*cuda:0 and cuda:1"):
        run(x, there)
    with pytest.raises(KernelError, match="missing: no GPU kernel: toys_gpu has no function of that name"):
        DeviceArray.__op__(Toy("missing"))
    assert DeviceArray.__op__(Toy("composed", decompose=lambda x: "ops"))(x) == "ops"

    class Higher:
        run = staticmethod(lambda *args: "higher")

    assert run(x, Higher()) == "higher", "a Tensor or a tracer among the arguments takes the call"


@on_device
def test_operators_are_ops(rng):
    a, b = rng.standard_normal((2, 3, 4)).astype("f")
    x, y = cuda.from_numpy(a), cuda.from_numpy(b)
    for result, wanted in [
        (x + y, a + b), (x - 2.0, a - 2), (2.0 - x, 2 - a), (x * y, a * b), (1.0 / x, 1 / a), (-x, -a),
        (x == y, a == b), (x != x, a != a), (x < y, a < b), (x >= 0.0, a >= 0), (x + np.float32(1), a + 1),
    ]:  # fmt: skip
        assert isinstance(result, DeviceArray)
        np.testing.assert_allclose(cuda.to_numpy(result), wanted, rtol=1e-6)
    for mixed in (lambda: x + b, lambda: b + x):
        with pytest.raises(DeviceError, match="add: arrays of two devices"):
            mixed()


@interpret
def test_streams_and_events_have_the_same_face_without_a_gpu():
    s = cuda.Stream()
    first, last = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    with cuda.stream(s):
        assert cuda.current_stream() is s
        first.record()
        last.record(s)
    assert cuda.current_stream() == cuda.default_stream()
    last.synchronize()
    assert first.query() and s.query() and first.elapsed_time(last) >= 0
    s.wait_stream(cuda.current_stream())
    cuda.synchronize()
    with pytest.raises(ValueError, match="enable_timing"):
        cuda.Event().elapsed_time(last)
    with cuda.device(0):
        assert cuda.current_device() == 0
    with pytest.raises(RuntimeError, match="does not exist"):
        cuda.set_device(3)


@on_device
def test_graphs_replay_a_step(rng):
    a = rng.standard_normal(100).astype("f")
    x, out, copy = cuda.from_numpy(a), cuda.from_numpy(a * 0), cuda.from_numpy(a * 0)

    def step():
        middle = cuda.empty((100,), np.float32)
        cuda.launch(add_kernel, (1,), x, x, middle, 100, BLOCK=128)
        cuda.launch(add_kernel, (1,), middle, out, out, 100, BLOCK=128)
        cuda.copy_device(copy, out)

    step()
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        step()
        with pytest.raises(RuntimeError, match="another capture"):
            cuda.CUDAGraph().capture_begin()
    assert np.array_equal(cuda.to_numpy(out), a + a), "a capture runs nothing"
    g.replay()
    cuda.copy_from_numpy(x, a * 2)
    g.replay()
    expected = a + a + (a + a) + (a * 2 + a * 2)
    assert np.array_equal(cuda.to_numpy(out), expected) and np.array_equal(cuda.to_numpy(copy), expected)


def test_importing_loads_neither_triton_nor_cuda():
    code = "import zoo.ops.cuda, sys; assert not {'triton', 'cuda', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_no_gpu_is_one_clear_line():
    code = (
        "from zoo.ops import cuda\nassert not cuda.is_available() and cuda.device_count() == 0\n"
        "try: cuda.empty((3,), 'float32')\nexcept RuntimeError as e: print(e)"
    )
    env = {k: v for k, v in os.environ.items() if k != "ZOO_INTERPRET"} | {"LD_LIBRARY_PATH": ""}
    if cuda.is_available() and not cuda.is_interpreting():
        pytest.skip("there is a GPU")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("no CUDA GPU: ") and done.stdout.count("\n") == 1


@interpret
@pytest.mark.torch
def test_dlpack_with_torch(rng):
    import torch

    a = rng.standard_normal((3, 4)).astype(BFLOAT16)
    t = torch.from_dlpack(cuda.from_numpy(a))
    assert t.dtype is torch.bfloat16 and np.array_equal(t.float().numpy(), a.astype("f"))
    base = torch.arange(12, dtype=torch.int64).reshape(3, 4)
    x = dlpack.from_dlpack(base.T[1:])
    assert x.shape == (3, 3) and cuda.to_numpy(x).tolist() == base.T[1:].tolist()
    base += 1
    assert cuda.to_numpy(x).tolist() == base.T[1:].tolist(), "shares memory"
    del base
    gc.collect()
    assert cuda.to_numpy(x)[0, 0] == 2


@interpret
def test_memory_stats_count_what_lives_and_what_lived():
    gc.collect()
    cuda.reset_peak_memory_stats()
    cuda.reset_accumulated_memory_stats()
    before = cuda.memory_stats()
    x, y = cuda.empty((100,), np.float32), cuda.empty((3,), np.int64)
    del y
    after = cuda.memory_stats()
    grown = {key: after[key] - before[key] for key in after}
    for kind, current, most in (("allocation", 1, 2), ("allocated_bytes", 400, 424)):
        assert [grown[f"{kind}.all.{key}"] for key in ("current", "peak", "allocated", "freed")] == [
            current, most, most, most - current]  # fmt: skip
    assert after["allocated_bytes.all.current"] == cuda.memory_allocated() and "peak" in cuda.memory_summary()
    assert x.nbytes == 400


@interpret
def test_out_of_memory_names_the_largest_live_arrays_their_modules_and_lines():
    import zoo

    gc.collect()                                   # what other tests left, of which no line is known
    model = zoo.nn.Sequential(zoo.nn.Linear(64, 2048), zoo.nn.ReLU()).cuda()
    x = zoo.ones(1000, 64).cuda()
    cuda.record_memory_history()
    try:
        kept = model[0](x), model(x)
        by_module = cuda.memory_by_module()
        blocks = [segment["blocks"][0] for segment in cuda.memory_snapshot()]
        recorded = [block for block in blocks if block["frames"]]
        cuda.set_per_process_memory_fraction((cuda.memory_allocated() + 1000) / cuda.mem_get_info()[1])
        ooms = cuda.memory_stats()["num_ooms"]
        with pytest.raises(cuda.OutOfMemoryError) as caught:
            cuda.empty((1000,), np.float32)
    finally:
        cuda.set_per_process_memory_fraction(1.0)
        cuda.record_memory_history(None)
    assert by_module["1 (ReLU)"] == by_module["the model (Linear)"] == 4 * 2048 * 1000
    assert recorded[0]["frames"][0]["filename"] == __file__ and recorded[0]["size"] == kept[0].array.nbytes
    message = str(caught.value)
    assert "wanted 4,000 bytes" in message and cuda.memory_stats()["num_ooms"] == ooms + 1
    assert "7.8 MiB (1000, 2048) float32 by 1 (ReLU) at " in message and f"{__file__}:" in message
    cuda.empty((1000,), np.float32)
    with pytest.raises(ValueError, match="fraction"):
        cuda.set_per_process_memory_fraction(2.0)
