"""Ops and training on a libcuda that only writes down its calls: what is launched, where and from which memory."""
from tests.test_cuda_stub import of, pytestmark, run, stub

__all__ = ["pytestmark", "stub"]

REMEMBERED = '''
from zoo.ops.op import OPS
mul = OPS["mul"]
x = cuda.from_numpy(np.ones(33, np.float32))
a, odd = x.view((32,), (1,)), x.view((32,), (1,), 1)
keep = [mul(a, a)]
for name, pair in (("again", (a, a)), ("odd address", (odd, a)), ("odd again", (odd, a))):
    mark(name)
    keep.append(mul(*pair))
side = cuda.Stream()
mark("side stream")
with cuda.stream(side):
    keep.append(mul(a, a))
mark("device 1")
b = cuda.from_numpy(np.ones(32, np.float32), device=1)
keep.append(mul(b, b))
assert keep[-1].device == 1
mark("device 0")
keep.append(mul(a, a))
graph, pool = cuda.CUDAGraph(), cuda.graph_pool_handle()
mark("capture")
with cuda.graph(graph, pool):
    keep.append(mul(a, a))
mark("end")
print(hex(a.pointer), hex(cuda.current_stream().handle), hex(side.handle))
'''


def test_a_remembered_call_minds_addresses_streams_devices_and_captures(stub, tmp_path):
    printed, log = run(stub, tmp_path, REMEMBERED)
    a, here, side = (word.removeprefix("0x") for word in printed.split())
    marks = [k for k, line in enumerate(log) if line.startswith("--")]
    parts = {log[k][3:]: log[k:end] for k, end in zip(marks, [*marks[1:], None], strict=True)}
    assert not of(parts["again"], "function") and not of(parts["odd again"], "function")
    assert len(of(parts["odd address"], "function")) == 1, "16-byte accesses are for aligned addresses alone"
    odd = f"{int(a, 16) + 4:x}"
    for name, first, stream in (("again", a, here), ("odd again", odd, here), ("side stream", a, side)):
        (launch,), (alloc,) = of(parts[name], "launch"), of(parts[name], "alloc")
        assert alloc.endswith(f"stream={stream}") and f"stream={stream}" in launch and launch.endswith(first)
    assert of(parts["device 1"], "context 1") and of(parts["device 0"], "context 0")
    (launch,) = of(parts["capture"], "launch")
    assert f"stream={of(parts['capture'], 'begin capture')[0].split()[-1]}" in launch
    assert f"alloc 512 stream={here}" in parts["capture"], "the pool's block, beside the capture"


def test_a_training_step_goes_through(stub, tmp_path):
    """Tensors, autograd, the kernels of several families, an optimiser: compiled, loaded and launched; no numbers."""
    body = '''
import zoo
x = zoo.ones(4, 8).cuda()
assert x.t().cpu().shape == (8, 4), "a strided array is made contiguous on the GPU first"
mark("step")
layer = zoo.nn.Linear(8, 3).cuda()
optimizer = zoo.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
zoo.nn.functional.relu(layer(x)).sum().backward()
assert layer.weight.grad.shape == (3, 8) and layer.weight.grad.device.type == "cuda"
optimizer.step()
'''
    _, log = run(stub, tmp_path, body)
    step = log[log.index("-- step") :]
    names = {line.split()[1] for line in of(log, "function")}
    assert {"gemm", "tile", "flat", "step_kernel"} <= names, names
    assert len(of(step, "launch")) >= 6 and not of(step, "synchronize", "device synchronize", "download")


def test_a_backward_pass_copies_nothing_from_the_host(stub, tmp_path):
    """What an output that nobody used gives to its node, here mean and variance, is zeros made on the GPU."""
    body = '''
import zoo
x = zoo.ones(4, 3, 2, 2).cuda().requires_grad_()
norm = zoo.nn.BatchNorm2d(3).cuda()
y, g = norm(x), zoo.ones(4, 3, 2, 2).cuda()
mark("backward")
y.backward(g)
'''
    _, log = run(stub, tmp_path, body)
    backward = log[log.index("-- backward") :]
    assert of(backward, "launch") and not of(backward, "upload", "synchronize")
