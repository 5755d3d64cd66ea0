"""Ops and training on a libcuda that only writes down its calls: what is launched, where and from which memory."""
import pytest

from tests.test_cuda_stub import of, pytestmark, run, stub

__all__ = ["pytestmark", "stub"]

CALLS = {  # of one launch each: a formula's plan, and a launcher's text
    "mul": """
def call(a):
    return OPS["mul"](a, a)
""",
    "conv2d": """
weights = [cuda.from_numpy(np.ones((8, 8, 1, 1), np.float32), device=k) for k in (0, 1)]
def call(a):
    image = a.view((1, 8, 2, 2), (32, 1, 16, 8))
    return OPS["conv2d"](image, weights[a.device], None, (2, 2), (0, 0), (1, 1), 1)
""",
}
REMEMBERED = '''
x = cuda.from_numpy(np.ones(33, np.float32))
a, odd = x.view((32,), (1,)), x.view((32,), (1,), 1)
keep = [call(a)]
for name, given in (("again", a), ("odd address", odd), ("odd again", odd)):
    mark(name)
    keep.append(call(given))
side = cuda.Stream()
mark("side stream")
with cuda.stream(side):
    keep.append(call(a))
mark("device 1")
b = cuda.from_numpy(np.ones(32, np.float32), device=1)
keep += [call(b) for _ in range(3)]
assert keep[-1].device == 1
mark("device 0")
keep.append(call(a))
mark("freed on device 1")
del b
graph, pool = cuda.CUDAGraph(), cuda.graph_pool_handle()
cuda.forget()
keep.append(call(a))                  # so that the next one is written down, inside of the capture
mark("capture")
with cuda.graph(graph, pool):
    keep.append(call(a))
mark("end")
print(hex(a.pointer), hex(cuda.current_stream().handle), hex(side.handle))
'''


@pytest.mark.parametrize("call", CALLS)
def test_a_remembered_call_minds_addresses_streams_devices_and_captures(call, stub, tmp_path):
    printed, log = run(stub, tmp_path, f"from zoo.ops.op import OPS\n{CALLS[call]}{REMEMBERED}")
    a, here, side = (word.removeprefix("0x") for word in printed.split())
    marks = [k for k, line in enumerate(log) if line.startswith("--")]
    parts = {log[k][3:]: log[k:end] for k, end in zip(marks, [*marks[1:], None], strict=True)}
    assert not of(parts["again"], "function") and not of(parts["odd again"], "function")
    assert len(of(parts["odd address"], "function")) == 1, "16-byte accesses are for aligned addresses alone"
    odd = f"{int(a, 16) + 4:x}"
    for name, first, stream in (("again", a, here), ("odd again", odd, here), ("side stream", a, side)):
        (launch,), (alloc,) = of(parts[name], "launch"), of(parts[name], "alloc")
        assert alloc.endswith(f"stream={stream}") and f"stream={stream}" in launch and first in launch.split()
    assert of(parts["device 1"], "context 1") and of(parts["device 0"], "context 0")
    switches = [line.split()[0] for line in parts["freed on device 1"] if line.startswith(("context", "free"))]
    assert switches[:3] == ["context", "free", "context"], "the collector may free in the middle of a launch"
    (launch,) = of(parts["capture"], "launch")
    assert f"stream={of(parts['capture'], 'begin capture')[0].split()[-1]}" in launch
    assert f"alloc 512 stream={here}" in parts["capture"], "the pool's block, beside the capture"


def test_a_remembered_call_passes_what_the_launcher_passes(stub, tmp_path):
    """To Triton's C launcher, argument by argument; addresses by the order in which they come."""
    body = '''
from importlib import import_module
import zoo
from zoo.ops.cuda import triton_driver
from zoo.ops.op import OPS
seen, direct = [], triton_driver.direct

def noting(found):
    run, *rest = direct(found)
    def noted(*args):
        seen.append(args)
        return run(*args)
    return noted, *rest
triton_driver.direct = noting

def named(value, names):
    if isinstance(value, tuple):
        return tuple(named(v, names) for v in value)
    return names.setdefault(value, f"address {len(names)}") if type(value) is int and value >> 32 else value

def ones(*shape, dtype=np.float32):
    return cuda.from_numpy(np.ones(shape, dtype))

options = (1, 1), (1, 1), (1, 1), 1
x, w, v = ones(2, 64, 9, 9), ones(64, 64, 3, 3), ones(64)
wide = ones(8, 64, 64, 64, dtype=zoo.bfloat16), ones(256, 64, 1, 1, dtype=zoo.bfloat16)
cases = {
    "conv2d": [(x, w, v, *options), (*wide, None, (1, 1), (0, 0), (1, 1), 1)],      # the latter with descriptors
    "conv2d_norm_act": [(x, w, None, v, v, v, v, ones(2, 64, 9, 9), True, 1e-3, *options)],
    "dropout_mask": [(x, 0.5, 7, 3)],
}
for name, rows in cases.items():
    for args in rows:
        passed = []
        for call in (getattr(import_module(f"{OPS[name].module}_gpu"), name), OPS[name], OPS[name], OPS[name]):
            seen.clear()
            kept = call(*args)
            passed.append(named(tuple(seen), {}))
            del kept
        assert passed[0] and all(p == passed[0] for p in passed), (name, passed)
        print(name, len(seen))
'''
    printed, _ = run(stub, tmp_path, body, log=False)
    assert len(printed.splitlines()) == 4


def test_a_training_step_goes_through(stub, tmp_path):
    """Tensors, autograd, the kernels of several families, an optimiser: compiled, loaded and launched; no numbers."""
    body = '''
import zoo
x = zoo.ones(4, 8).cuda()
assert x[:, ::2].cpu().shape == (4, 4), "an array with gaps is made contiguous on the GPU first"
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
