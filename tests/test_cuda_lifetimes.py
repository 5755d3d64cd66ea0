"""When GPU memory goes back, and what waits for what before: on a libcuda that only writes down its calls."""
from tests.test_cuda_stub import of, pytestmark, run, stub

__all__ = ["pytestmark", "stub"]


def handles(printed):
    return [word.removeprefix("0x") for word in printed.split()]


def test_memory_of_one_stream_that_another_has_read_last_waits_for_it(stub, tmp_path):
    """As in a backward pass on another stream than the forward pass."""
    body = '''
side = cuda.Stream()
with cuda.stream(side):
    x, y = cuda.empty((100,), np.float32), cuda.empty((200,), np.float32)
    del y
print(hex(cuda.current_stream().handle), hex(side.handle))
mark("elsewhere")
del x
'''
    printed, log = run(stub, tmp_path, body)
    first, side = handles(printed)
    assert f"free 800 stream={side}" in log[: log.index("-- elsewhere")]
    freed = of(log[log.index("-- elsewhere") :], "record", "wait", "free")
    assert freed == [f"record {first}", f"wait {side}", f"free 400 stream={side}"]


def test_what_a_graph_used_is_freed_behind_its_replays(stub, tmp_path):
    """Memory that was let go in the capture, and the graph's own: each on its stream, which waits for the replay's."""
    body = '''
before, other = cuda.Stream(), cuda.Stream()
with cuda.stream(before):
    old = cuda.empty((50,), np.float32)
g = cuda.CUDAGraph()
with cuda.graph(g):
    y = cuda.empty((8,), np.float32)
    cuda.launch(scale, (1,), y, y, 4, 2.0, BLOCK=16)
    del old
with cuda.stream(other):
    g.replay()
print(hex(cuda.current_stream().handle), hex(before.handle), hex(other.handle))
gone = before
del before, y
mark("reset")
g.reset()
mark("end")
'''
    printed, log = run(stub, tmp_path, body)
    first, before, other = handles(printed)
    last = log[log.index("-- reset") : log.index("-- end")]
    assert of(last, "graph destroy", "record", "wait", "free") == [
        "graph destroy", f"record {other}", f"wait {before}", f"free 200 stream={before}",
        f"record {other}", f"wait {first}", f"free 512 stream={first}"]


def test_a_copy_to_another_device_runs_on_that_ones_stream(stub, tmp_path):
    body = '''
from zoo.ops.cuda.driver import cuda as driver
x, there = cuda.from_numpy(np.arange(6)), cuda.empty((6,), np.int64, device=1)
upload, seen = driver().cuMemcpyHtoDAsync, []
driver().cuMemcpyHtoDAsync = lambda *args: seen.append(args[-1]) or upload(*args)
cuda.copy_device(there, x)
assert seen == [cuda.current_stream(1).handle]
'''
    run(stub, tmp_path, body)


def test_memory_that_another_library_has_locked_is_waited_for(stub, tmp_path):
    """The driver knows what is page-locked: of such memory a copy may still read when the call returns."""
    body = '''
a = np.arange(6)
x = cuda.empty((6,), np.int64)
mark("copy")
cuda.copy_from_numpy(x, a)
'''
    for env, waits in (({}, False), ({"STUB_LOCKED": "1"}, True)):
        _, log = run(stub, tmp_path, body, **env)
        assert bool(of(log[log.index("-- copy") :], "synchronize")) == waits
        (tmp_path / "log").unlink()


def test_a_kernel_is_loaded_though_the_pool_has_all_memory(stub, tmp_path):
    body = '''
x = cuda.from_numpy(np.ones(4, np.float32))
cuda.launch(scale, (1,), x, x, 4, 2.0, BLOCK=16)
'''
    _, log = run(stub, tmp_path, body, STUB_FULL="1")
    order = [line.split()[0] for line in of(log, "device synchronize", "trim", "module", "launch")]
    assert order == ["device", "trim", "module", "launch"]


def test_the_child_of_a_fork_leaves_the_gpu_alone(stub, tmp_path):
    """It frees nothing that is its parent's, and says why it cannot use the GPU."""
    body = '''
import os
x, stream, event = cuda.from_numpy(np.ones(4, np.float32)), cuda.Stream(), cuda.Event()
event.record()
child = os.fork()
if child == 0:
    mark("child")
    del x, stream, event
    assert not cuda.is_available()
    try:
        cuda.empty((1,), np.int8)
    except RuntimeError as e:
        print(e, flush=True)
    mark("end of the child")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
x = cuda.to_numpy(x)
'''
    printed, log = run(stub, tmp_path, body)
    assert "forked; start processes by spawn" in printed
    begin, end = log.index("-- child"), log.index("-- end of the child")
    assert end == begin + 1, log[begin:end]


def test_memory_that_was_lent_waits_for_the_borrower(stub, tmp_path):
    """The other library has let go of it, but its stream, here the legacy one, may still be at work."""
    body = '''
from zoo.ops.cuda.dlpack import from_dlpack
x = cuda.from_numpy(np.ones(100, np.float32))
class Other:
    """Plays another library on the default stream."""
    def __dlpack_device__(self):
        return 2, 0
    def __dlpack__(self, stream=None, max_version=None):
        return x.__dlpack__(stream=1, max_version=max_version)
there = from_dlpack(Other())
side = cuda.Stream()
there.owner.record_stream(side)
print(hex(cuda.current_stream().handle), hex(side.handle))
mark("given back")
del there
mark("freed")
del x
'''
    printed, log = run(stub, tmp_path, body)
    here, side = handles(printed)
    back = log[log.index("-- given back") : log.index("-- freed")]
    assert set(of(back, "synchronize")) == {f"synchronize {here}", f"synchronize {side}"}
    freed = of(log[log.index("-- freed") :], "record", "wait", "free")
    assert freed == ["record 1", f"wait {here}", f"free 400 stream={here}"]


def test_descriptors_lie_on_the_device_of_the_operands(stub, tmp_path):
    body = '''
import ml_dtypes
from zoo.ops import gpu_configs
from zoo.ops.gpu_configs import Config
from zoo.ops.matmul_gpu import multiply
from zoo.ops.cuda import ledger
a, b = (cuda.empty(s, ml_dtypes.bfloat16, device=1) for s in ((256, 64), (64, 128)))
mark("product")
with gpu_configs.using(config=Config(64, 64, 32, kernel="tma")):
    multiply(a, b, (256, 128))
assert ledger.accounts[0].total == 0, "nothing on device 0"
'''
    run(stub, tmp_path, body)


def test_a_process_ends_in_silence_whatever_lives_then(stub, tmp_path):
    """Names of modules are gone before the objects that their methods belong to."""
    body = '''
import os
os.dup2(1, 2)                                   # what Python says of exceptions that it ignores
import zoo
from zoo.ops.cuda.dlpack import from_dlpack
x, pinned = zoo.ones(4, 4).cuda(), zoo.ones(6).pin_memory()
on_its_way, stream, event, graph = pinned.to("cuda", non_blocking=True), cuda.Stream(), cuda.Event(), cuda.CUDAGraph()
event.record(stream)
class Other:
    def __dlpack_device__(self):
        return 2, 0
    def __dlpack__(self, stream=None, max_version=None):
        return x.array.__dlpack__(stream=1, max_version=max_version)
borrowed, unused = from_dlpack(Other()), x.array.__dlpack__(stream=1)
with cuda.graph(graph):
    y = x + 1
graph.replay()
cycle = [x, borrowed, graph, stream]
cycle.append(cycle)
'''
    printed, _ = run(stub, tmp_path, body)
    assert not printed


def test_pinned_memory_may_go_while_a_capture_is_under_way(stub, tmp_path):
    body = '''
from zoo.ops.cuda import pool
pinned = pool.pinned_empty((4,), np.float32)
x = cuda.from_numpy(np.ones(4, np.float32))
graph = cuda.CUDAGraph()
with cuda.graph(graph):
    cuda.launch(scale, (1,), x, x, 4, 2.0, BLOCK=16)
    del pinned
graph.replay()
'''
    _, log = run(stub, tmp_path, body)
    assert log.index("unpinned") < log.index("end capture")


def test_a_launch_that_fails_names_its_kernel(stub, tmp_path):
    """Launched by itself and as part of a remembered call."""
    body = '''
from zoo.ops.cuda import remember
x = cuda.from_numpy(np.ones(4, np.float32))
def refused(call):
    try:
        call()
    except cuda.CudaError as e:
        return str(e)
    return "nothing"
def launcher(x):
    cuda.launch(scale, (1, 70000), x, x, 4, 2.0, BLOCK=16)
written_down = remember.traced(launcher, (x,))
assert written_down is not launcher
print(refused(lambda: launcher(x)), refused(lambda: written_down(x)), sep="\\n")
'''
    printed, _ = run(stub, tmp_path, body)
    first, second = printed.splitlines()
    assert first.startswith("scale, grid (1, 70000, 1): Triton Error [CUDA]: error 1 of the stub") and first == second
