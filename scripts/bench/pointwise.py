"""Memory-bound ops beside torch on the CPU, in one process, through the public API only.

    python scripts/bench/pointwise.py [--rounds 5] [--budget 0.02] [--threads 1 2] [--only softmax,gelu] [--out FILE]

float32, sizes 10x100, 100x1000 and 4000x1000, forward and forward + backward; the draws without a backward pass; steps
of SGD and Adam on 10 M parameters. In each round both libraries run one after the other, in turn the first. With one
thread a call's time is the CPU time of the process, with more the wall's; a round's time is the lower quartile of its
calls, and the ratio is taken round by round: a machine that slows down slows both.
"""
import argparse
import json
import os
import platform
import time
from pathlib import Path

import numpy as np

SHAPES = (10, 100), (100, 1000), (4000, 1000)
RESULTS = Path(__file__).parent / "results" / "pointwise.json"


def functions(lib) -> dict:
    """Case -> function of (x, its columns' weight and bias, an index of rows)."""
    f = lib.nn.functional
    named = ("sigmoid", "tanh", "erf", "exp", "softmax", "log_softmax", "cumsum", "cumprod", "relu")
    of_one = {name: getattr(lib, name) for name in named if name not in ("softmax", "log_softmax", "cumsum", "cumprod")}
    along = {name: getattr(lib, name) for name in named if name not in of_one}
    return {
        **{name: lambda x, w, b, i, g=g: g(x) for name, g in of_one.items()},
        **{name: lambda x, w, b, i, g=g: g(x, 1) for name, g in along.items()},
        "gelu": lambda x, w, b, i: f.gelu(x),
        "gelu tanh": lambda x, w, b, i: f.gelu(x, approximate="tanh"),
        "silu": lambda x, w, b, i: f.silu(x),
        "softplus": lambda x, w, b, i: f.softplus(x),
        "elu": lambda x, w, b, i: f.elu(x),
        "add": lambda x, w, b, i: x + x,
        "mul": lambda x, w, b, i: x * x,
        "layer_norm": lambda x, w, b, i: f.layer_norm(x, w.shape, w, b),
        "group_norm": lambda x, w, b, i: f.group_norm(x, 10, w, b),
        "sum": lambda x, w, b, i: x.sum(),
        "sum 0": lambda x, w, b, i: x.sum(0),
        "mean 1": lambda x, w, b, i: x.mean(1),
        "var 1": lambda x, w, b, i: x.var(1),
        "prod 1": lambda x, w, b, i: x.prod(1),
        "amax 1": lambda x, w, b, i: x.amax(1),
        "cat": lambda x, w, b, i: lib.cat([x, x], 1),
        "stack": lambda x, w, b, i: lib.stack([x, x]),
        "embedding": lambda x, w, b, i: f.embedding(i, x),
    }


def draws(lib) -> dict:
    return {"rand": lambda shape: lib.rand(*shape), "randn": lambda shape: lib.randn(*shape)}


def tensors(lib, shape, gradients: bool) -> list:
    """x, weight, bias, rows; and a gradient for whatever the op gives is made by `both`."""
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s, dtype=np.float32) for s in (shape, shape[1:], shape[1:]))
    rows = lib.tensor(rng.integers(0, shape[0], shape[0]))
    floats = [lib.tensor(a) for a in (1 + 0.01 * x, w, b)]
    return [*(t.requires_grad_() if gradients else t for t in floats), rows]


def both(lib, call, inputs):
    """Forward and backward, from a gradient that is made outside the clock."""
    dy = lib.ones(call(*inputs).shape)

    def step():
        for t in inputs[:3]:
            t.grad = None
        call(*inputs).backward(dy)
    return step


def steps(lib) -> dict:
    """Optimizer steps on 10 M parameters in 13 tensors, as in a ResNet."""
    rng = np.random.default_rng(0)
    sizes = [2359296] * 3 + [589824] * 4 + [65536] * 6

    def step(make):
        parameters = [lib.nn.Parameter(lib.tensor(rng.standard_normal(n, dtype=np.float32))) for n in sizes]
        for p in parameters:
            p.grad = lib.tensor(rng.standard_normal(len(p), dtype=np.float32))
        return make(parameters).step
    optim = lib.optim
    return {"SGD step 10 M": lambda: step(lambda p: optim.SGD(p, lr=1e-4)),
            "SGD momentum step 10 M": lambda: step(lambda p: optim.SGD(p, lr=1e-4, momentum=0.9)),
            "Adam step 10 M": lambda: step(lambda p: optim.Adam(p, lr=1e-4)),
            "AdamW step 10 M": lambda: step(lambda p: optim.AdamW(p, lr=1e-4))}


def cases(lib) -> dict:
    """Name -> a function that makes the call, so that the inputs of one case live at a time."""
    made = {}
    for shape in SHAPES:
        size = "x".join(map(str, shape))
        for name, call in functions(lib).items():
            def forward(call=call, shape=shape):
                inputs = tensors(lib, shape, False)
                return lambda: call(*inputs)

            def train(call=call, shape=shape):
                return both(lib, call, tensors(lib, shape, True))
            made[f"{name} {size} forward"] = forward
            made[f"{name} {size} forward+backward"] = train
        for name, draw in draws(lib).items():
            made[f"{name} {size} forward"] = lambda draw=draw, shape=shape: lambda: draw(shape)
    return made | steps(lib)


def lower_quartile(call, budget: float, clock) -> float:
    """Seconds of one call: the lower quartile over as many calls as the budget holds."""
    start = clock()
    call()
    count = min(2000, max(3, int(budget / max(clock() - start, 1e-6))))
    times = np.empty(count)
    for k in range(count):
        start = clock()
        call()
        times[k] = clock() - start
    return float(np.quantile(times, 0.25))


def measure(ours, theirs, rounds: int, budget: float, clock) -> dict:
    """Times of both in every round, in turn the first."""
    for call in (ours, theirs):
        for _ in range(3):
            call()
    times = {ours: [], theirs: []}
    for k in range(rounds):
        for call in (ours, theirs) if k % 2 else (theirs, ours):
            times[call].append(lower_quartile(call, budget, clock))
    ratios = np.array(times[ours]) / np.array(times[theirs])
    low, high = np.quantile(ratios, [0.1, 0.9])
    return {"zoo_us": float(np.median(times[ours]) * 1e6), "torch_us": float(np.median(times[theirs]) * 1e6),
            "ratio": float(np.median(ratios)), "ratio_p10": float(low), "ratio_p90": float(high)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=0.02, help="seconds of calls in a round")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", default="", help="cases that contain one of these words, separated by commas")
    parser.add_argument("--out", type=Path, help=f"where the JSON goes: nowhere with --only, else {RESULTS.name}")
    args = parser.parse_args()
    import torch  # pyright: ignore[reportMissingImports]

    import zoo
    rows, ours, theirs = [], cases(zoo), cases(torch)
    chosen = [name for name in ours if any(word in name for word in args.only.split(","))]
    for threads in args.threads:
        zoo.set_num_threads(threads)
        torch.set_num_threads(threads)
        clock = time.process_time if threads == 1 else time.perf_counter
        for name in chosen:
            found = measure(ours[name](), theirs[name](), args.rounds, args.budget, clock)
            rows.append({"case": name, "threads": threads, **found})
            print(f"{threads} {name:38s} zoo {found['zoo_us']:9.1f} us   torch {found['torch_us']:9.1f} us  "
                  f"ratio {found['ratio']:6.2f} ({found['ratio_p10']:.2f} to {found['ratio_p90']:.2f})", flush=True)
    machine = {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__,
               "machine": platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()}
    if out := args.out or (None if args.only else RESULTS):
        out.parent.mkdir(parents=True, exist_ok=True)
        found = {"rows": rows, "rounds": args.rounds, "budget": args.budget, **machine}
        out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
