"""What whole steps of real sizes cost the host, and whether an H200 takes their launches: on a libcuda that answers.

    python scripts/bench/gpu_host.py [--only resnet50 lstm] [--out FILE.json]

Kernels are compiled for sm_90 and loaded by the stub (tests/libcuda_stub.c), which runs none of them, but refuses a
launch whose grid, registers or shared memory an H200 would refuse, and what a stream capture forbids. So Python plans,
compiles and launches a step of the true size; only the numbers in it mean nothing. Of each model: launches and CPU
microseconds of the thread (median of STEPS) for the forward pass, the whole step, and the replay of the step as a CUDA
graph. A real driver adds 2 to 3 us a launch. Spilling kernels are named, with what they use.

Needs gcc, Triton and cuda-bindings; compiles some 300 kernels at first.
"""
import argparse
import ctypes
import datetime
import functools
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from launch import stub_environment
from rows import RESULTS, ROOT, quantile

sys.path.append(str(ROOT / "scripts"))
from occupancy import RESERVED, occupancy  # noqa: E402  # pyright: ignore[reportMissingImports]

STEPS = 7
COPIED = 1 << 16                # bytes that the stub really copies or fills of an array


class Model(NamedTuple):
    """forward: of a training step, or of inference; step: all of it, None where there is no more."""

    forward: Callable[[], Any]
    step: Callable[[], Any] | None = None


def trained(model: Any, loss: Callable[[], Any], rule: str = "SGD", **options: Any) -> Model:
    """Forward under autocast in bfloat16, backward and optimizer."""
    import zoo

    optimizer = getattr(zoo.optim, rule)(model.parameters(), lr=1e-3, **options)

    def forward():
        with zoo.autocast("cuda", dtype=zoo.bfloat16):
            return loss()

    def step():
        optimizer.zero_grad()
        found = forward()
        found.backward()
        optimizer.step()
        return found
    return Model(forward, step)


def network(name: str) -> Any:
    import zoo

    with zoo.nn.init.skip_init():
        return getattr(zoo.models, name)().to("cuda").to(memory_format=zoo.channels_last)


def pictures(count: int, dtype: str = "float32") -> Any:
    import zoo

    x = zoo.empty((count, 3, 224, 224), dtype=getattr(zoo, dtype), device="cuda")
    return x.to(memory_format=zoo.channels_last)


def classifier(name: str, batch: int) -> Model:
    """A training step of a network of pictures."""
    import zoo

    model, x = network(name), pictures(batch)
    labels = zoo.zeros((batch,), dtype=zoo.int64, device="cuda")
    return trained(model, lambda: zoo.nn.functional.cross_entropy(model(x), labels), momentum=0.9)


def inference(name: str, batch: int) -> Model:
    import zoo

    model, x = network(name).to(zoo.bfloat16).eval(), pictures(batch, "bfloat16")

    def forward():
        with zoo.no_grad():
            return model(x)
    return Model(forward)


def recurrent(kind: str) -> Model:
    """A layer of 1024 states, 128 steps of 64 sequences."""
    import zoo

    layer = getattr(zoo.nn, kind)(1024, 1024).to("cuda")
    x = zoo.empty((128, 64, 1024), device="cuda")
    return trained(layer, lambda: layer(x)[0].sum(), momentum=0.9)


def transformer() -> Model:
    """12 causal layers of 768 with 12 heads over 8 sequences of 1024 words of 50,304: GPT-2's sizes."""
    import zoo
    from zoo import nn

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(50304, 768)
            self.layers = nn.ModuleList([
                nn.TransformerEncoderLayer(768, 12, 3072, 0.1, "gelu", batch_first=True, norm_first=True)
                for _ in range(12)])
            self.norm, self.head = nn.LayerNorm(768), nn.Linear(768, 50304, bias=False)

        def forward(self, words, mask):
            x = self.embedding(words)
            for layer in self.layers:
                x = layer(x, mask, is_causal=True)
            return self.head(self.norm(x))

    with nn.init.skip_init():
        model = Decoder().to("cuda")
    words = zoo.zeros((8, 1024), dtype=zoo.int64, device="cuda")
    mask = nn.Transformer.generate_square_subsequent_mask(1024, device="cuda")
    entropy = nn.functional.cross_entropy
    return trained(model, lambda: entropy(model(words, mask).flatten(0, 1), words.flatten()), "AdamW")


MODELS: dict[str, Callable[[], Model]] = {
    "resnet50 training, batch 256": functools.partial(classifier, "resnet50", 256),
    "vgg16 training, batch 64": functools.partial(classifier, "vgg16", 64),
    "resnext50_32x4d training, batch 128": functools.partial(classifier, "resnext50_32x4d", 128),
    "resnet18 training, batch 256": functools.partial(classifier, "resnet18", 256),
    "LSTM training, H=1024 T=128 B=64": functools.partial(recurrent, "LSTM"),
    "GRU training, H=1024 T=128 B=64": functools.partial(recurrent, "GRU"),
    "transformer training, GPT-2 small, batch 8": transformer,
    "resnet50 inference, batch 256": functools.partial(inference, "resnet50", 256),
    "resnet50 inference, batch 1": functools.partial(inference, "resnet50", 1),
    "vgg16 inference, batch 256": functools.partial(inference, "vgg16", 256),
}


def timed(call: Callable, driver: ctypes.CDLL) -> dict:
    """Launches and microseconds of a call, which has run before."""
    launches, times = ctypes.c_ulong.in_dll(driver, "stub_launches"), []
    before = launches.value
    for _ in range(STEPS):
        began = time.thread_time()
        call()
        times.append((time.thread_time() - began) * 1e6)
    low, middle, high = (round(quantile(times, q)) for q in (0.1, 0.5, 0.9))
    return {"launches": (launches.value - before) // STEPS, "us": middle, "p10": low, "p90": high}


def row_of(name: str, driver: ctypes.CDLL) -> dict:
    """A model's row; what went wrong is a result too."""
    import zoo

    row: dict[str, Any] = {}
    try:
        model = MODELS[name]()
        whole = model.step or model.forward
        began = time.perf_counter()
        for _ in range(2):                                # the first gradients and momenta come into being in these
            whole()
            zoo.cuda.synchronize()
        row["first steps, s"] = round(time.perf_counter() - began, 1)
        row["forward"] = timed(model.forward, driver)
        if model.step:
            row["step"] = timed(model.step, driver)
        graphed = zoo.cuda.graph(whole)
        for _ in range(3):                                # two as ever, one that is recorded
            graphed()
        row["replay"] = timed(graphed, driver)
        row["peak, GB"] = round(zoo.cuda.max_memory_allocated() / 1e9, 2)
    except Exception as error:                            # the other models are still to come
        row["error"] = f"{type(error).__name__}: {error}"
        traceback.print_exc()
    return row


def loaded_kernels() -> list[dict]:
    """Grows by what is loaded from now on: name, files, warps."""
    import triton

    from zoo.ops.cuda.cubin import usage

    found: list[dict] = []

    def loaded(module, function, name, files, hashed):
        meta = json.loads(Path(next(p for f, p in files.items() if f.endswith(".json"))).read_text())
        cubin = Path(next(p for f, p in files.items() if f.endswith(".cubin"))).read_bytes()
        registers, stack, static = usage(cubin)
        shared = meta["shared"] + max(0, static - RESERVED)
        found.append({"kernel": name, "registers": registers, "stack": stack, "shared": shared,
                      "warps": meta["num_warps"], "programs": occupancy(90, registers, shared, meta["num_warps"])})
    triton.knobs.runtime.kernel_load_end_hook.add(loaded)
    return found


def line_of(name: str, row: dict) -> str:
    cells = [f"{part} {row[part]['launches']:4d} launches {row[part]['us'] / 1e3:7.2f} ms"
             for part in ("forward", "step") if part in row]
    cells += [f"replay {row['replay']['us']:4d} us"] if "replay" in row else []
    cells += [row["error"]] if "error" in row else [f"peak {row['peak, GB']:.1f} GB"]
    return f"{name:44s} | {' | '.join(cells)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="models with one of these in their names")
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu_host.json")
    args = parser.parse_args()
    if "STUB" not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            env = stub_environment(folder) | {"STUB_COPY": str(COPIED)}
            command = [sys.executable, __file__, "--out", str(args.out.resolve()), "--only", *args.only]
            return subprocess.run(command[:None if args.only else -1], env=env).returncode
    import triton

    import zoo

    driver, kernels, rows = ctypes.CDLL("libcuda.so.1"), loaded_kernels(), {}
    for name in MODELS:
        if not args.only or any(part in name for part in args.only):
            gc.collect()                                  # models are cycles
            zoo.cuda.reset_peak_memory_stats()
            rows[name] = row_of(name, driver)
            print(line_of(name, rows[name]), flush=True)
    spilled = [k for k in kernels if k["stack"]]
    print(f"{len(kernels)} kernels loaded, {len(spilled)} with a stack", *spilled, sep="\n")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    args.out.write_text(json.dumps({
        "device": "stub, no GPU; compiled for sm_90", "triton": triton.__version__, "python": sys.version.split()[0],
        "commit": commit, "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "rows": rows,
        "kernels": len(kernels), "with a stack": spilled}, indent=1) + "\n")
    return int(any("error" in row for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
