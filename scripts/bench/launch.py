"""What a launch and an op on the GPU cost the host: microseconds of Python and driver calls, on a libcuda that answers.

    python scripts/bench/launch.py [--out FILE.json]

The stub (tests/libcuda_stub.c) runs no kernel and answers at once, so a figure is this library's own part and that of
Triton's launcher; a real driver adds some microseconds. CPU time of the thread: the best of rounds, beside it the
median. Needs gcc, Triton and cuda-bindings.

Of an op: `arrays` is a call on DeviceArrays, `no_grad` the same on Tensors of which none wants a gradient, `recorded`
where all do, `node` the difference of these two; `pass` is autograd.grad of that one call, `derivatives` its part on
arrays, `backward` the difference, most of which a whole pass pays once: `chain` has it per node. Beside the time stands
how many kernels the call launches; wanted are 4 us for each of them and 4 us for the op, 8 us for its derivatives.
"""
import argparse
import ctypes
import datetime
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ROUNDS, CALLS = 30, 300
CHAIN = 20                      # nodes of a chain, whose backward pass is timed
WANTED = {"launch, 5 arguments": 4.0, "launch, 16 arguments": 4.0, "x * y: no_grad": 6.0, "x * y: node": 6.0,
          "chain: backward per node": 6.0}
OF_AN_OP = {"arrays": 4.0, "derivatives": 8.0}      # wanted beside 4 us a launch


def stub_environment(folder: str) -> dict[str, str]:
    """The environment of a process that finds the stub instead of a driver."""
    import triton

    library = Path(folder) / "libcuda.so.1"
    include = Path(triton.__file__).parent / "backends/nvidia/include"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", f"-I{include}", ROOT / "tests/libcuda_stub.c", "-o", library],
                   check=True)
    shutil.copy(library, Path(folder) / "libcuda.so")
    names = {k: v for k, v in os.environ.items() if k not in ("ZOO_INTERPRET", "ZOO_RECORD", "STUB_LOG")}
    return names | {"LD_LIBRARY_PATH": folder, "TRITON_LIBCUDA_PATH": folder, "PYTHONPATH": str(ROOT), "STUB": folder}


def launches() -> dict:
    """name -> a call, of what every op is made of."""
    import numpy as np
    from launch_kernels import few, many  # beside this file: a kernel's source has to lie in a file

    from zoo.ops import cuda

    x, y, out = (cuda.from_numpy(np.ones(1024, np.float32)) for _ in range(3))
    kept = cuda.prepare(few, BLOCK=1024)
    numbers = (1024, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0.5, 0.25, 2.0)
    return {
        "launch, 5 arguments": lambda: cuda.launch(few, (1,), x, y, out, 1024, 2.0, BLOCK=1024),
        "launch, 5 arguments, prepared": lambda: kept((1,), x, y, out, 1024, 2.0),
        "launch, 16 arguments": lambda: cuda.launch(many, (1,), x, y, out, *numbers, BLOCK=1024),
        "empty and free": lambda: cuda.empty((1024,), np.float32),
    }


def ops() -> dict:
    """name -> (op, its arguments as arrays and options): one of each kind that a network is made of."""
    import numpy as np

    import zoo  # noqa: F401  (the ops register themselves)
    from zoo.ops.dtypes import bfloat16
    from zoo.ops.op import OPS

    def ones(*shape):
        return np.ones(shape, np.float32)

    def last(*shape):
        """Channels-last: (N, C, H, W) in the memory of (N, H, W, C)."""
        n, c, h, w = shape
        return ones(n, h, w, c).transpose(0, 3, 1, 2)

    def convolution(*kernel, stride=1, groups=1, size=28):
        arrays, pad = [last(*shape).astype(bfloat16) for shape in ((8, 64, size, size), kernel)], kernel[2] // 2
        return "conv2d", *arrays, None, (stride, stride), (pad, pad), (1, 1), groups

    labels = np.zeros(32, np.int64)
    found = {"x * y": ("mul", ones(32, 64), ones(32, 64)), "relu": ("relu", ones(32, 64)),
             "linear": ("linear", ones(32, 64), ones(64, 64), ones(64)),
             "matmul": ("matmul", ones(32, 64), ones(64, 64)),
             "conv2d NCHW": ("conv2d", ones(4, 16, 8, 8), ones(16, 16, 3, 3), None, (1, 1), (1, 1), (1, 1), 1),
             "conv2d 3x3": convolution(64, 64, 3, 3), "conv2d 1x1": convolution(256, 64, 1, 1),
             "conv2d 1x1, TMA": convolution(256, 64, 1, 1, size=64),
             "conv2d 3x3 stride 2": convolution(128, 64, 3, 3, stride=2),
             "conv2d depthwise": convolution(64, 1, 3, 3, groups=64),
             "batch_norm NCHW": ("batch_norm_train", ones(4, 16, 8, 8), ones(16), ones(16)),
             "batch_norm": ("batch_norm_train", last(8, 64, 28, 28), ones(64), ones(64)),
             "max_pool2d": ("max_pool", last(8, 64, 28, 28), (3, 3), (2, 2), (1, 1), (1, 1), False),
             "softmax": ("softmax", ones(32, 64), 1),
             "cross_entropy": ("cross_entropy_loss", ones(32, 10), labels)}
    return {name: (OPS[op], OPS[op].bind(args, {})) for name, (op, *args) in found.items()}


def on_gpu(array):
    """A copy on the GPU that lies as the array does: dense, in any order of dimensions."""
    import numpy as np

    from zoo.ops import cuda

    order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
    x = cuda.from_numpy(np.ascontiguousarray(array.transpose(order)))
    places = [order.index(d) for d in range(array.ndim)]
    return x.view([x.shape[p] for p in places], [x.strides[p] for p in places])


def ones_like(x):
    """On the GPU, with the strides of x."""
    import numpy as np

    from zoo.ops import cuda

    return cuda.from_numpy(np.ones(x.size, x.dtype)).view(x.shape, x.strides)


def stages(name: str, op, args: tuple) -> dict:
    """name of a stage -> a call."""
    import numpy as np

    import zoo
    from zoo.autograd.saved import write_gpu_gradients
    from zoo.autograd.tensor import grad, wrap
    from zoo.ops import cuda

    raw = [on_gpu(a) if isinstance(a, np.ndarray) else a for a in args]
    tensors = [wrap(a) if isinstance(a, cuda.DeviceArray) else a for a in raw]
    wanted = [wrap(t.array).requires_grad_() if p in op.differentiable and isinstance(t, zoo.Tensor) else t
              for p, t in zip(op.parameters, tensors, strict=True)]
    leaves = [t for t in wanted if isinstance(t, zoo.Tensor) and t.requires_grad]
    y = op(*wanted)
    y = y[0] if isinstance(y, tuple) else y
    node, dy = getattr(y.node, "source", y.node), wrap(ones_like(y.array))
    derivatives = (node.plan.on_gpu or write_gpu_gradients(node.plan))
    gs = (dy.array,) if node is y.node else (dy.array, *[cuda.from_numpy(np.ones(s, d)) for s, d in
                                                         zip(node.shape[1:], node.dtype[1:], strict=True)])
    found = {"arrays": lambda: op(*raw), "no_grad": lambda: op(*tensors), "recorded": lambda: op(*wanted),
             "derivatives": lambda: derivatives(node, True, *gs),
             "pass": lambda: grad(y, leaves, dy, retain_graph=True)}
    return {f"{name}: {stage}": call for stage, call in found.items()}


def chain():
    """One backward pass through a chain of products, and the launches of its derivatives."""
    import numpy as np

    from zoo.autograd.tensor import grad, wrap
    from zoo.ops import cuda
    from zoo.ops.op import OPS

    x, dy = (wrap(cuda.from_numpy(np.ones((32, 64), np.float32))) for _ in range(2))
    y = leaf = wrap(x.array).requires_grad_()
    for _ in range(CHAIN):
        y = y * x
    derivative = OPS["mul.da"].handler_of(cuda.DeviceArray)

    def launches():
        for _ in range(CHAIN):
            derivative(dy.array, x.array)
    return {"chain: pass": lambda: grad(y, leaf, dy, retain_graph=True), "chain: launches": launches}


def launched(call) -> int:
    """How many kernels a call launches, as the driver counts them."""
    count = ctypes.c_ulong.in_dll(ctypes.CDLL("libcuda.so.1"), "stub_launches")
    before = count.value
    call()
    return count.value - before


def best_of(call) -> dict:
    """Microseconds of a call, and its launches."""
    for _ in range(30):
        call()
    times = []
    for _ in range(ROUNDS):
        begin = time.thread_time()
        for _ in range(CALLS):
            call()
        times.append((time.thread_time() - begin) / CALLS * 1e6)
    times.sort()
    return {"us": round(times[0], 2), "median": round(times[ROUNDS // 2], 2), "launches": launched(call)}


def measure() -> dict:
    """name -> microseconds."""
    calls, kinds = launches(), ops()
    for name, (op, args) in kinds.items():
        calls |= stages(name, op, args)
    calls |= chain()
    gc.disable()                                    # as timeit does
    table = {name: best_of(call) for name, call in calls.items()}
    for name in kinds:
        of = {stage: table[f"{name}: {stage}"]["us"] for stage in ("no_grad", "recorded", "derivatives", "pass")}
        table[f"{name}: node"] = {"us": round(of["recorded"] - of["no_grad"], 2)}
        table[f"{name}: backward"] = {"us": round(of["pass"] - of["derivatives"], 2)}
    per_node = (table["chain: pass"]["us"] - table["chain: launches"]["us"]) / CHAIN
    table["chain: backward per node"] = {"us": round(per_node, 2)}
    of_ops = {f"{name}: {stage}": most + 4.0 * table[f"{name}: {stage}"]["launches"]
              for name in kinds for stage, most in OF_AN_OP.items()}
    for name, most in (WANTED | of_ops).items():
        table[name] |= {"wanted": most, "missed": table[name]["us"] > most}
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "launch.json")
    args = parser.parse_args()
    if "STUB" not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--out", str(args.out.resolve())]
            return subprocess.run(command, env=stub_environment(folder)).returncode
    import triton

    table = measure()
    for name, row in table.items():
        spread = f" (median {row['median']:.2f})" if "median" in row else ""
        wanted = f", wanted {row['wanted']}{' MISSED' if row['missed'] else ''}" if "wanted" in row else ""
        count = f", {row['launches']} launches" if "launches" in row else ""
        print(f"{name:32s} {row['us']:7.2f} us{spread}{count}{wanted}")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({
        "device": "stub, no GPU", "triton": triton.__version__, "python": sys.version.split()[0], "commit": commit,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "rows": table}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
