"""The GPU path without a GPU: memory, streams and the launch cache on a libcuda that only writes down its calls."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

triton = pytest.importorskip("triton")
pytest.importorskip("cuda.bindings.driver")

HERE = Path(__file__).parent
INCLUDE = Path(triton.__file__).parent / "backends/nvidia/include"
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="the stub is compiled with gcc")

PRELUDE = '''
import sys
import numpy as np
from zoo.ops import cuda
assert not {"triton", "cuda"} & set(sys.modules), "nothing is loaded before it is needed"
import triton
import triton.language as tl

@triton.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) * factor, i < n)

@triton.jit
def mixed(x, BLOCK: tl.constexpr, n, shape, wide: "fp64"):
    i = tl.arange(0, BLOCK)
    tl.store(x + i * shape[0], wide, i < n)

def mark(text):
    with open(LOG, "a") as file:
        file.write(f"-- {text}\\n")
'''


@pytest.fixture(scope="session")
def stub(tmp_path_factory):
    """The library's folder, one for all workers of a run: what one has compiled the others load from its cache."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "stub"
    folder.mkdir(exist_ok=True)
    library, link = folder / "libcuda.so.1", folder / "libcuda.so"    # the latter: gcc links Triton's launcher with it
    with FileLock(folder / "lock"):
        if not link.exists():
            command = ["gcc", "-shared", "-fPIC", "-O1", f"-I{INCLUDE}", HERE / "libcuda_stub.c", "-o", library]
            subprocess.run(command, check=True)
            shutil.copy(library, link)
    return folder


def run(stub, tmp_path, body, log=True, **env):
    """The body in a process of its own: what it printed, and the lines that the driver wrote down."""
    path = tmp_path / "log"
    script = tmp_path / "body.py"
    # The kernels are in a module of their own: Triton keeps a copy of a kernel's globals, and with it the arrays there.
    (tmp_path / "prelude.py").write_text(f"LOG = {str(path)!r}\n{PRELUDE}")
    script.write_text(f"from prelude import *\n{body}\nassert 'torch' not in sys.modules")
    base = {k: v for k, v in os.environ.items() if k not in ("ZOO_INTERPRET", "ZOO_RECORD")}
    base |= {"LD_LIBRARY_PATH": str(stub), "TRITON_LIBCUDA_PATH": str(stub), "PYTHONPATH": str(HERE.parent)}
    base |= {"TRITON_CACHE_DIR": str(stub / "cache")} | ({"STUB_LOG": str(path)} if log else {}) | env
    done = subprocess.run([sys.executable, script], env=base, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, path.read_text().splitlines() if path.exists() else []


def of(log, *words):
    return [line for line in log if line.startswith(words)]


LAUNCHES = '''
a = np.arange(1000, dtype=np.float32)
x = cuda.from_numpy(a)
assert np.array_equal(cuda.to_numpy(x), a)
out = cuda.empty((1000,), np.float32)
for n, factor in ((1000, 2.0), (999, 3.5), (997, np.float64(4.0)), (16, 1.0)):
    cuda.launch(scale, (4,), x, out, n, factor, BLOCK=256)
cuda.launch(scale, (0, 3), x, out, 8, 2.0, BLOCK=256)
cuda.launch(scale, (4,), x.view((10,), (1,), 1), out, 999, 2.0, BLOCK=256)
cuda.launch(scale, (4,), x, out, 999, 2.0, BLOCK=256, cooperative=True)
cuda.launch(scale, (4,), x, out, 1, 2.0, BLOCK=256, num_warps=8)
cuda.launch(scale, (1,), x, out, 999, 2.0, BLOCK=256)
cuda.launch(mixed, (1, 2, 3), x, 7, (3, 5), 0.1, BLOCK=16)
print(hex(x.pointer), hex(out.pointer), hex(cuda.current_stream().handle))
'''


@pytest.mark.parametrize("compiler", ["gcc", "/bin/false"])
def test_launches(stub, tmp_path, compiler):
    """Once through Triton's C launcher, once through ours, for machines without a C compiler."""
    cache = {} if compiler == "gcc" else {"TRITON_CACHE_DIR": str(tmp_path / "cache")}
    printed, log = run(stub, tmp_path, LAUNCHES, CC=compiler, **cache)
    x, out, stream = (word.removeprefix("0x") for word in printed.split())
    launches = of(log, "launch", "cooperative")
    both = f"stream={stream} words: {x} {out}"
    assert launches[:4] == [f"launch grid=4,1,1 block=128 {both}"] * 4
    assert launches[4] == f"launch grid=4,1,1 block=128 stream={stream} words: {int(x, 16) + 4:x} {out}"
    assert launches[5] == f"cooperative launch grid=4,1,1 block=128 {both}"
    assert launches[6] == f"launch grid=4,1,1 block=256 {both}"
    assert launches[7] == f"launch grid=1,1,1 block=128 {both}"
    assert launches[8].startswith(f"launch grid=1,2,3 block=128 stream={stream} words: {x}")
    assert len(launches) == 9
    # n: 1000 and 999 share a class, as do all floats; 16 does not; then alignment, cooperative, warps and n == 1.
    assert len(of(log, "function scale")) == 5 and len(of(log, "function mixed")) == 1
    assert not of(log, "pointer attribute"), "addresses go to the launcher as plain ints"
    assert stream != "0", "nothing runs on the legacy stream"


PRODUCTS = '''
import ml_dtypes
from zoo.ops import gpu_configs
from zoo.ops.epilogue_gpu import add_multiple, add_row, bits_of, epilogue
from zoo.ops.gpu_configs import Config
from zoo.ops.matmul_gpu import multiply
from zoo.ops.op import OPS
from zoo.ops.pointwise_gpu import jitted
half = np.dtype(ml_dtypes.bfloat16)
a, b, full, row = (cuda.empty(s, half) for s in ((256, 64), (64, 128), (256, 128), (128,)))
after = epilogue((add_row, row), (jitted(OPS["relu"]), None), (add_multiple, (full, bits_of(0.1))))
for config in (Config(64, 64, 32), Config(64, 64, 32, split=2), Config(64, 64, 32, kernel="tma")):
    mark(config.kernel)
    with gpu_configs.using(config=config):
        multiply(a, b, (256, 128), after, has_matrix=True)
'''


@pytest.mark.parametrize("compiler", ["gcc", "/bin/false"])
def test_products_with_an_epilogue(stub, tmp_path, compiler):
    """Arrays, numbers and None in tuples reach both launchers; tensor descriptors get their scratch memory."""
    cache = {} if compiler == "gcc" else {"TRITON_CACHE_DIR": str(tmp_path / "cache")}
    _, log = run(stub, tmp_path, PRODUCTS, CC=compiler, **cache)
    launches = [line.partition(" block")[0] for line in of(log, "launch")]
    assert launches == ["launch grid=8,1,1", "launch grid=16,1,1", "launch grid=16,1,1", "launch grid=8,1,1"]
    scratch = log.index("-- tma")
    sizes = [int(line.split()[1]) for line in of(log[scratch:], "alloc")]
    assert sizes[0] == 256 * 128 * 2 and sizes[1] % (8 * 128) == 0, "the result, and descriptors for 8 programs"


def test_memory_goes_back_to_its_stream(stub, tmp_path):
    body = '''
first = cuda.current_stream()
side = cuda.Stream()
x = cuda.empty((100,), np.float32)
with cuda.stream(side):
    y = cuda.empty((200,), np.float32)
    x.owner.record_stream(side)
assert cuda.memory_allocated() == 1200 and cuda.max_memory_allocated() == 1200
print(hex(first.handle), hex(side.handle))
del y
view = x.view((3,), (1,))
del x
mark("view is left")
del view
assert cuda.memory_allocated() == 0
cuda.reset_peak_memory_stats()
assert cuda.max_memory_allocated() == 0
cuda.empty_cache()
print(cuda.mem_get_info())
'''
    printed, log = run(stub, tmp_path, body)
    first, side = (word.removeprefix("0x") for word in printed.split()[:2])
    mine = of(log, "alloc", "free", "--", "record", "wait", "trim")
    assert mine == [
        f"alloc 400 stream={first}",
        f"alloc 800 stream={side}",
        f"record {first}",
        f"wait {side}",
        f"free 800 stream={side}",
        "-- view is left",
        f"record {side}",
        f"wait {first}",
        f"free 400 stream={first}",
        "trim 0",
    ]
    assert of(log, "pool attribute 4") == ["pool attribute 4 = ffffffffffffffff"], "freed memory stays in the pool"
    assert "(12345, 67890)" in printed


def test_out_of_memory_names_the_bytes(stub, tmp_path):
    body = '''
x = cuda.empty((100,), np.float32)
try:
    cuda.empty((1000,), np.float32)
except cuda.OutOfMemoryError as e:
    print(e)
y = cuda.empty((50,), np.float32)
'''
    printed, log = run(stub, tmp_path, body, STUB_LIMIT="1000")
    assert printed.startswith("CUDA out of memory on cuda:0: wanted 4,000 bytes, free 12,345 of 67,890; the largest")
    assert "400 bytes (100,) float32 (zoo.cuda.record_memory_history() shows their lines)" in printed
    assert of(log, "trim"), "what the pool kept is given back before giving up"


def test_copies(stub, tmp_path):
    body = '''
from zoo.ops.cuda import pool
a = np.arange(6, dtype=np.int64).reshape(2, 3)
x = cuda.from_numpy(a)
pinned = pool.pinned_empty((2, 3), np.int64)
pinned[:] = 7
assert pool.is_pinned(pinned[1:]) and not pool.is_pinned(a)
mark("pinned")
cuda.copy_from_numpy(x, pinned)
y = cuda.empty((2, 3), np.int64)
cuda.copy_device(y, x)
assert cuda.to_numpy(y).tolist() == [[7, 7, 7]] * 2
cuda.fill_bytes(y, 0)
assert not cuda.to_numpy(y).any() and cuda.from_numpy(np.float32(2.5)).item() == 2.5
del pinned
there = cuda.from_numpy(a, device=1)
cuda.copy_device(y, there)
assert np.array_equal(cuda.to_numpy(y), a) and there.device == 1
'''
    _, log = run(stub, tmp_path, body)
    at = log.index("-- pinned")
    assert log[at + 1] == "upload 48" and log[at + 2].startswith("synchronize"), "pinned memory is still being read"
    assert of(log, "pinned", "unpinned") == ["pinned 48", "unpinned"]
    assert of(log, "copy") == ["copy 48"], "between two devices: by way of the host"


def test_streams_and_events(stub, tmp_path):
    body = '''
s = cuda.Stream(priority=-1)
assert not s.query()
e, f = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True, blocking=True)
plain = cuda.Event()
with cuda.stream(s):
    e.record(); f.record(); plain.record()
    x = cuda.empty((4,), np.float32)
    cuda.launch(scale, (1,), x, x, 4, 2.0, BLOCK=16)
assert 0 <= e.elapsed_time(f) < 1e4 and e.query()
cuda.current_stream().wait_stream(s)
cuda.synchronize()
print(hex(s.handle))
del x, s
with cuda.device(1):
    assert cuda.current_device() == 1 and cuda.empty((1,), np.int8).device == 1
    y = cuda.from_numpy(np.ones(4, np.float32), device=0)
    cuda.launch(scale, (1,), y, y, 4, 2.0, BLOCK=16)
assert cuda.device_count() == 2 and cuda.get_device_name(1) == "STUB GPU 1" and cuda.multiprocessors() == 132
try:
    cuda.empty((1,), np.int8, device=5)
except RuntimeError as e:
    assert "device 5 does not exist" in str(e)
else:
    raise AssertionError
'''
    printed, log = run(stub, tmp_path, body)
    s = printed.strip().removeprefix("0x")
    assert f"stream {s} flags=1" in log, "non-blocking"
    assert of(log, "event") == ["event flags=0", "event flags=1", "event flags=2"] + ["event flags=2"] * 2
    first, second = of(log, "launch")
    assert f"stream={s}" in first and f"stream={s}" not in second
    assert len(of(log, "module")) == 1, "device 0 again: nothing is compiled or loaded anew"
    assert f"destroy stream {s}" in log and "device synchronize" in log


def test_graphs(stub, tmp_path):
    body = '''
x, old = cuda.from_numpy(np.ones(4, np.float32)), cuda.empty((50,), np.float32)
cuda.launch(scale, (1,), x, x, 4, 2.0, BLOCK=16)
pool = cuda.graph_pool_handle()
with cuda.memory_of(pool):
    y, z = cuda.empty((8,), np.float32), cuda.empty((9,), np.float32)
    del y, z
print(hex(cuda.current_stream().handle))
g = cuda.CUDAGraph()
mark("capture")
with cuda.graph(g, pool):
    y = cuda.empty((8,), np.float32)
    z = cuda.empty((9,), np.float32)
    cuda.launch(scale, (1,), x, y, 4, 2.0, BLOCK=16)
    del z, old
    z = cuda.empty((10,), np.float32)
    cuda.launch(scale, (1,), y, z, 4, 2.0, BLOCK=16)
mark("replay")
g.replay(); g.replay()
mark("over")
del g, y, z, pool
'''
    printed, log = run(stub, tmp_path, body)
    here = printed.strip().removeprefix("0x")
    inside = log[log.index("-- capture") : log.index("-- replay")]
    side = of(inside, "begin capture")[0].split()[-1]
    assert side != here and len(of(inside, "launch")) == 2
    assert all(f"stream={side}" in line for line in of(inside, "launch"))
    captured = inside[inside.index(f"begin capture {side}") + 1 : inside.index("end capture")]
    assert all(line.startswith("launch") for line in captured), "no memory is asked for, freed or waited for"
    assert of(inside, "instantiate") == ["instantiate flags=0"] and f"wait {here}" in inside
    assert of(log, "graph launch") == [f"graph launch {here}"] * 2
    over = of(log[log.index("-- over") :], "free", "graph destroy")
    assert [line.partition(" stream")[0] for line in over] == ["graph destroy", "free 200", "free 512", "free 512"]


def test_what_a_capture_needs_beside_its_pool_is_done_at_once_on_another_stream(stub, tmp_path):
    body = '''
x = cuda.from_numpy(np.ones(4, np.float32))
print(hex(cuda.current_stream().handle))
g = cuda.CUDAGraph()
with cuda.graph(g):
    y = cuda.from_numpy(np.arange(3.0))
    cuda.launch(scale, (1,), x, x, 4, 2.0, BLOCK=16)
g.replay()
'''
    printed, log = run(stub, tmp_path, body)
    here = printed.strip().removeprefix("0x")
    inside = log[log.index(of(log, "begin capture")[0]) + 1 : log.index("end capture")]
    assert of(inside, "alloc") == [f"alloc 512 stream={here}", f"alloc 24 stream={here}"]
    uploaded = inside.index("upload 24")
    assert "mode 2" in inside[:uploaded], "relaxed: this thread may allocate although a capture goes on"
    assert inside.index("copy 24") > uploaded, "the constant's copy is part of the graph"
    assert of(inside, "module") and f"synchronize {here}" in inside, "a kernel is loaded outside of the capture too"


GRAPHED = '''
import zoo
model = zoo.nn.Sequential(zoo.nn.Linear(8, 8), zoo.nn.ReLU(), zoo.nn.Dropout(0.5), zoo.nn.Linear(8, 3)).cuda()
optimizer = zoo.optim.AdamW(model.parameters(), lr=0.1)
def step(x):
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    return loss
step = zoo.cuda.graph(step)
x = zoo.ones(4, 8).cuda()
for i in range(5):
    mark(f"call {i}")
    step(x)
    optimizer.param_groups[0]["lr"] *= 0.5
mark("end")
assert optimizer.state[model[0].weight]["step"].item() == 5
'''


def test_a_captured_training_step(stub, tmp_path):
    """Two calls as ever, one that is recorded, and then one graph launch and the optimizer's numbers per call."""
    _, log = run(stub, tmp_path, GRAPHED)
    marks = [log.index(f"-- {word}") for word in (*(f"call {i}" for i in range(5)), "end")]
    calls = [log[a + 1 : b] for a, b in zip(marks, marks[1:], strict=False)]
    recorded = calls[2][calls[2].index(of(calls[2], "begin capture")[0]) + 1 : calls[2].index("end capture")]
    launches = len(of(calls[1], "launch"))
    assert launches > 10 and len(of(recorded, "launch")) == launches + 1, "and one that advances the random numbers"
    relaxed, beside = False, []
    for line in recorded:
        relaxed = line == "mode 2" or relaxed and line != "mode 0"
        beside += [line] * relaxed
    others = [line for line in recorded if line not in beside]
    assert not of(others, "alloc", "free", "upload", "synchronize", "device synchronize", "download", "module")
    assert len(of(beside, "alloc")) <= 5, "constants, the optimizer's numbers, a block for what the caller holds"
    assert not of(calls[2][calls[2].index("end capture") :], "launch")
    for call in calls[3:]:
        assert [line.split()[0] for line in call] == ["copy", "upload", "graph"], call
        assert "upload 64" in call, "the eight numbers of AdamW: learning rate, bias corrections ..."


def test_threads_have_their_own_current_stream_and_context(stub, tmp_path):
    body = '''
import threading
x = cuda.from_numpy(np.ones(4, np.float32))
s = cuda.Stream()
cuda.set_stream(s)
seen = []
def work():
    seen.append(cuda.current_stream())
    cuda.launch(scale, (1,), x, x, 4, 2.0, BLOCK=16)
t = threading.Thread(target=work)
t.start(); t.join()
assert seen[0] == cuda.default_stream() != s
'''
    _, log = run(stub, tmp_path, body)
    assert len(of(log, "launch")) == 1 and len(of(log, "context 0")) == 2, "each thread makes the context current"


def test_shared_memory_that_no_gpu_has_is_a_runtime_error(stub, tmp_path):
    body = '''
@triton.jit
def big(a, out, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(a + at)))
a, out = cuda.empty((64, 64), np.float32), cuda.empty((64, 64), np.float32)
try:
    cuda.launch(big, (1,), a, out, N=64)
except RuntimeError as e:
    print(e)
'''
    printed, _ = run(stub, tmp_path, body, STUB_SHARED="1024")
    assert printed.startswith("big: out of resource: shared memory")


RECORDED = '''
import json
import sys
sys.path.insert(0, SCRIPTS)
from compile_kernels import built_from
from zoo.ops.cuda import launcher, record
from zoo.ops.matmul_gpu import multiply
from zoo.ops.shape import cast

record.path = LOG + ".jsonl"
compile = launcher.Kernel.compile
launcher.Kernel.compile = lambda kernel, args: (record.add(kernel, kernel.named(args)), compile(kernel, args))[1]
a, b = cuda.empty((1, 32, 48), np.float32), cuda.empty((1, 48, 40), np.float32)
multiply(a, b, (1, 32, 40))
cast(a.view((1, 16, 24), (2000, 48, 2)), np.dtype(np.float16))
launched = {p for p in CACHE.glob("*/*.cubin")}
assert len(launched) >= 2
for line in open(record.path):
    built_from(json.loads(line), 90)
assert len(list(CACHE.glob("*/*.cubin"))) == len(launched), "compiled ahead is what is launched"
'''


def test_what_is_recorded_compiles_to_what_is_launched(stub, tmp_path):
    """Triton specialises numbers inside tuples, whatever it is told of the parameter."""
    places = f"from pathlib import Path\nSCRIPTS, CACHE = {str(HERE.parent / 'scripts')!r}, Path({str(tmp_path)!r})\n"
    run(stub, tmp_path, places + RECORDED, TRITON_CACHE_DIR=str(tmp_path))


def test_what_an_h200_refuses_is_refused(stub, tmp_path):
    body = '''
from zoo.ops.cuda.triton_driver import PythonUtils
from zoo.ops.cuda.driver import check, cuda as driver
x = cuda.empty((4,), np.float32)

def refused(call):
    try:
        call()
    except RuntimeError as e:
        print("refused:", e)

refused(lambda: cuda.launch(scale, (1, 70000), x, x, 4, 2.0, BLOCK=16))
cuda.launch(scale, (1000,), x, x, 4, 2.0, BLOCK=16, cooperative=True)
refused(lambda: cuda.launch(scale, (132 * 32 + 1,), x, x, 4, 2.0, BLOCK=16, cooperative=True, num_warps=1))
cubin = cuda.prepare(scale, BLOCK=1024).warm({"x": x, "out": x, "n": 4, "factor": 2.0}).asm["cubin"]
print("registers", PythonUtils().load_binary("scale", cubin, 0, 0)[2])
with open(LOG + ".cubin", "wb") as file:
    file.write(cubin)
stream = cuda.current_stream()
check(driver().cuStreamBeginCapture(stream.handle, driver().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
refused(lambda: check(driver().cuStreamSynchronize(stream.handle)))
refused(lambda: check(driver().cuStreamEndCapture(stream.handle)))
'''
    printed, _ = run(stub, tmp_path, body)
    lines = printed.splitlines()
    codes = "error 1 of", "error 720 of", "registers", "CAPTURE_UNSUPPORTED", "CAPTURE_INVALIDATED"
    assert all(code in line for code, line in zip(codes, lines, strict=True)), printed
    usage = subprocess.run([triton.knobs.nvidia.cuobjdump.path, "-res-usage", str(tmp_path / "log.cubin")],
                           capture_output=True, text=True, check=True).stdout
    assert f"REG:{lines[2].split()[1]} " in usage


def test_pinned_tensors_are_copied_beside_the_host(stub, tmp_path):
    body = '''
import gc
import zoo
from zoo.ops.cuda import pool
from zoo.train.ahead import Ahead
x = zoo.ones(6).pin_memory()
assert x.is_pinned() and x.pin_memory() is x and not zoo.ones(6).is_pinned()
mark("asynchronous")
y = x.to("cuda", non_blocking=True)
mark("kept")
del x
assert len(pool.on_their_way) == 1, "the copy reads it"
z = zoo.ones(3).pin_memory().cuda(non_blocking=True)
assert len(pool.on_their_way) == 1, "the first one is done"
mark("blocking")
zoo.ones(6).pin_memory().to("cuda")
mark("ahead")
loader = zoo.data.DataLoader(zoo.data.TensorDataset(zoo.ones(4, 2)), batch_size=2, pin_memory=True)
ahead = Ahead(loader, lambda batch: (batch[0].to("cuda", non_blocking=True),), True)
print(hex(cuda.current_stream().handle), hex(ahead.stream.handle))
for batch in ahead:
    mark("step")
    cuda.launch(scale, (1,), batch[0].array, batch[0].array, 4, 2.0, BLOCK=16)
    ahead.prepare()
    del batch
'''
    printed, log = run(stub, tmp_path, body)
    here, side = (word.removeprefix("0x") for word in printed.split())
    first = log[log.index("-- asynchronous") : log.index("-- kept")]
    assert of(first, "upload") and of(first, "record") and not of(first, "synchronize")
    assert of(log[log.index("-- blocking") : log.index("-- ahead")], "synchronize")
    steps = log[log.index("-- step") :]
    one = steps[: steps.index("-- step", 1)]
    order = [line.partition(" grid")[0] for line in of(one, "launch", "upload", "wait", "alloc", "synchronize")]
    assert order[:3] == ["launch", f"alloc 16 stream={side}", "upload 16"], "the next batch is on its way"
    assert f"wait {here}" in order and "synchronize" not in " ".join(order)
    freed = one.index(of(one, "free 16")[0])
    assert one[freed - 1] == f"wait {side}", "memory of the side stream waits for the step that used it"
