"""Counts what a training step of a ResNet launches on a GPU, without one: launches, bytes they name, memory that lives.

    python scripts/bench/gpu_bytes.py [--model resnet50] [--batch 256] [--out FILE.json]

Nothing is measured: the step runs through the interpreter's launcher with neither kernels nor memory
(ops/cuda/record.py), and every launch tells its arguments. Bytes are those of the arrays named, each once a launch:
what a kernel moves if second reads of a tile hit the cache. Arrays behind a table of addresses (the optimizer's, and
weights and gradients that are cast together) are not seen. Beside them stand the least bytes of such a step, and the
memory that torch's eager step keeps at the end of its forward pass (autocast, channels_last): a bound from below for
its peak.
"""
import argparse
import datetime
import gc
import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ["ZOO_INTERPRET"] = "1"

import zoo  # noqa: E402
from zoo.nn import Conv2d  # noqa: E402
from zoo.nn import functional as F  # noqa: E402, N812
from zoo.ops.cuda import DeviceArray, record  # noqa: E402

RESULTS = Path(__file__).parent / "results"
HALF, FLOAT = 2, 4          # bytes
COPY = 4.3e12               # bytes per second, measured on one H200 (gpu_floors.PEAKS)


class Launch(NamedTuple):
    """One launch: in which part of the step, which kernel with which formula, bytes of the arrays it names."""

    phase: str
    kernel: str
    nbytes: int


class Layer(NamedTuple):
    """A convolution: its name, elements of its input and result, bytes of its weight, whether a residual is added."""

    name: str
    read: int
    written: int
    weight: int
    joins: bool


def arrays_of(value: Any) -> Iterator[DeviceArray]:
    """The arrays in an argument."""
    if type(value) is DeviceArray:
        yield value
    elif type(value) is tuple:
        for part in value:
            yield from arrays_of(part)


def launches_of(call: Callable, phase: str = "") -> list[Launch]:
    """What a call launches."""
    found: list[Launch] = []

    def hear(kernel, grid, arguments):
        named = {(id(a.owner), a.pointer, a.shape): a.nbytes for v in arguments.values() for a in arrays_of(v)}
        formula = kernel.constants.get("F")
        name = getattr(formula, "op_name", getattr(formula, "__name__", ""))
        found.append(Launch(phase, f"{kernel.function.__name__} {name}".strip(), sum(named.values())))

    with record.listening(hear):
        call()
    return found


def counted_step(name: str, batch: int, side: int) -> tuple[list[Launch], dict[str, int], list[Layer]]:
    """Of the second step, which has its gradients and momenta: launches, memory, and the convolutions."""
    gc.collect()                                          # models are cycles
    others = zoo.cuda.memory_allocated()
    with record.dry_run(os.devnull), zoo.nn.init.skip_init():
        model = getattr(zoo.models, name)().to("cuda", memory_format=zoo.channels_last)
        images = zoo.empty((batch, 3, side, side), device="cuda").to(memory_format=zoo.channels_last)
        labels = zoo.empty((batch,), dtype=zoo.int64, device="cuda")
        optimizer = zoo.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
        loss: list[Any] = [None]

        def forward():
            with zoo.autocast("cuda", dtype=zoo.bfloat16):
                loss[0] = F.cross_entropy(model(images), labels)

        def backward():
            root, loss[0] = loss[0], None
            root.backward()

        def step() -> tuple[list[Launch], dict[str, int]]:
            zoo.cuda.reset_peak_memory_stats()
            found, memory = launches_of(optimizer.zero_grad, "zero_grad"), {}
            memory["before the step"] = zoo.cuda.memory_allocated() - others
            found += launches_of(forward, "forward")
            memory["after forward"] = zoo.cuda.memory_allocated() - others
            found += launches_of(backward, "backward") + launches_of(optimizer.step, "optimizer")
            memory["peak"] = zoo.cuda.max_memory_allocated() - others
            return found, memory

        step()
        found, memory = step()
        memory["parameters"] = sum(p.nbytes for p in model.parameters())
        memory["images"] = images.nbytes
        return found, memory, layers_of(model, images)


def layers_of(model: Any, images: Any) -> list[Layer]:
    """The convolutions of a ResNet, in the order in which they run."""
    found, hooks = [], []
    last = {"BasicBlock": "conv2", "Bottleneck": "conv3"}
    joins = {id(getattr(b, last[type(b).__name__])) for b in model.modules() if type(b).__name__ in last}
    for name, module in model.named_modules():
        if type(module) is Conv2d:
            def heard(m, args, y, name=name):
                found.append(Layer(name, args[0].numel(), y.numel(), m.weight.numel() * HALF, id(m) in joins))
            hooks.append(module.register_forward_hook(heard))
    model(images)
    for hook in hooks:
        hook.remove()
    return found


def least_bytes(layers: list[Layer]) -> dict[str, int]:
    """Of a step in half precision whose statistics come with the convolution and whose relu is part of the norm.

    Forward each convolution reads and writes once, each norm too, and what is added is read. Backward the norm sums
    over dy and x, then reads both and writes dx; behind an addition it reads y for the mask, and writes what flows
    past, which somebody reads to add it.
    """
    first = layers[0]
    convs = sum(HALF * (e.read + e.written) + e.weight for e in layers)
    forward = convs + sum(HALF * e.written * (3 if e.joins else 2) for e in layers)
    norms = sum(HALF * e.written * (8 if e.joins else 5) for e in layers)
    return {"forward": forward, "backward": norms + 2 * convs - HALF * (first.read + first.written)}


def kept_by_torch(layers: list[Layer], memory: dict[str, int]) -> int:
    """Bytes that live after torch's forward pass: each distinct array that a derivative reads, and the parameters.

    A norm keeps its input, which is the convolution's result; relu (in place) its result, which is the next
    convolution's input; a norm without relu (a downsample's) keeps nothing more. The max pool keeps its result as the
    next input, and int64 indices, a quarter of the stem's elements each. Weights live in float32, with momentum
    (gradients were set to None) and once more in half precision; the picture too.
    """
    stem = layers[0]
    inner = [e for e in layers if "downsample" not in e.name]
    kept = sum(HALF * e.written for e in layers) + sum(HALF * e.written for e in inner)
    pool = stem.written // 4 * (HALF + 8)
    weights = memory["parameters"] * 2 + sum(e.weight for e in layers)
    return kept + pool + weights + memory["images"] + stem.read * HALF


def report_of(model: str, batch: int, side: int) -> dict[str, Any]:
    """Everything that is counted, the kernels with the most bytes first."""
    launches, memory, layers = counted_step(model, batch, side)
    counts, sums = Counter(e[:2] for e in launches), Counter[tuple[str, str]]()
    for e in launches:
        sums[e.phase, e.kernel] += e.nbytes
    memory["kept by torch after forward"] = kept_by_torch(layers, memory)
    rows = [{"phase": p, "kernel": k, "launches": counts[p, k], "bytes": n} for (p, k), n in sums.most_common()]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=RESULTS).stdout.strip()
    return {"what": "counted, not measured", "model": model, "batch": batch, "side": side,
            "precision": "autocast bfloat16, channels_last", "commit": commit,
            "date": datetime.date.today().isoformat(), "launches": len(launches), "bytes": sums.total(),
            "least bytes": least_bytes(layers), "memory": memory, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu_bytes.json")
    args = parser.parse_args()
    report = report_of(args.model, args.batch, args.side)
    for row in report["rows"]:
        print(f"{row['phase']:10s} {row['kernel']:32s} {row['launches']:4d} {row['bytes'] / 1e9:9.3f} GB")
    for name, nbytes in (("all", report["bytes"]), ("the least", sum(report["least bytes"].values()))):
        print(f"{name}: {nbytes / 1e9:.1f} GB, {nbytes / COPY * 1e3:.1f} ms at a copy's speed")
    print(f"{report['launches']} launches;", ", ".join(f"{k} {n / 1e9:.3f} GB" for k, n in report["memory"].items()))
    args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
