"""LSTM and GRU beside torch on the CPU, forward and forward + backward, in one process with the same threads.

    python scripts/bench/rnn.py [--rounds 9] [--threads 2] [--out scripts/bench/results/rnn.json]
    OPENBLAS_CORETYPE=SkylakeX python scripts/bench/rnn.py --out scripts/bench/results/rnn_avx512.json

One layer, T=128, B=32, input size = hidden size. In each round both libraries run one after the other, in turn the
first; a round's time is the best of its calls, and the ratio is taken round by round. On a machine that others use,
`--threads 1 --clock process` counts the processor's time instead: waiting for a core is nobody's merit.

NumPy's OpenBLAS chooses its kernels by the processor's name and takes AVX2 for one that it does not know, where
torch's oneDNN looks for AVX-512 itself: what it chose is part of the result.
"""
import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np

STEPS, BATCH = 128, 32
WANTED = {"LSTM forward+backward": 1.10, "GRU forward+backward": 0.85}        # issue 6


def case(lib, kind, size, arrays, weights):
    """(forward, forward + backward) of one layer on the same numbers in either library."""
    layer = getattr(lib.nn, kind)(size, size)
    layer.load_state_dict({name: lib.tensor(w) for name, w in weights.items()})
    x, dy = lib.tensor(arrays[0]).requires_grad_(), lib.tensor(arrays[1])

    def forward():
        with lib.no_grad():
            return layer(x)[0]

    def both():
        x.grad = None
        for p in layer.parameters():
            p.grad = None
        y = layer(x)[0]
        y.backward(dy)
        return y, x.grad, [p.grad for p in layer.parameters()]

    return forward, both


def cases(lib, kind, size):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((STEPS, BATCH, size), dtype=np.float32) * scale for scale in (1, np.float32(0.1))]
    rows = (4 if kind == "LSTM" else 3) * size
    weights = {f"{name}_l0": rng.uniform(-1, 1, shape).astype(np.float32) * np.float32(size ** -0.5) for name, shape in
               {"weight_ih": (rows, size), "weight_hh": (rows, size), "bias_ih": rows, "bias_hh": rows}.items()}
    return case(lib, kind, size, arrays, weights)


def agree(ours, theirs):
    """A benchmark of two programs that compute different things says nothing."""
    (y, dx, grads), (want, want_dx, wanted) = ours(), theirs()
    for a, b in [(y, want), (dx, want_dx), *zip(grads, wanted, strict=True)]:
        a, b = a.detach().numpy(), b.detach().numpy()
        assert np.abs(a - b).max() <= 1e-5 * np.abs(b).max()


def best_of(call, budget, clock):
    """Seconds of the quickest of as many calls as the budget holds, at least two."""
    times, end = [], time.perf_counter() + budget
    while len(times) < 2 or time.perf_counter() < end:
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)


def measure(ours, theirs, rounds, budget, clock):
    times = {ours: [], theirs: []}
    for k in range(rounds):
        for call in (ours, theirs) if k % 2 else (theirs, ours):
            times[call].append(best_of(call, budget, clock))
    return np.array(times[ours]), np.array(times[theirs])


def row(name, size, ours, theirs):
    ratios, wanted = ours / theirs, WANTED.get(name)
    return {"case": f"{name} H={size}", "zoo_ms": float(ours.min() * 1e3), "torch_ms": float(theirs.min() * 1e3),
            "ratio": float(np.median(ratios)), "ratio_of_best": float(ours.min() / theirs.min()),
            "ratio_p10": float(np.quantile(ratios, 0.1)), "ratio_p90": float(np.quantile(ratios, 0.9)),
            "wanted": wanted, "missed": bool(wanted and np.median(ratios) > wanted)}


def blas_core():
    """The processor that NumPy's BLAS has kernels for, as threadpoolctl reads it; "" where that is not installed."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return ""
    return ", ".join(i.get("architecture", "?") for i in threadpool_info() if "numpy" in i["filepath"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budget", type=float, default=0.5, help="seconds of calls in a round")
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 512])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "rnn.json")
    parser.add_argument("--clock", choices=("wall", "process"), default="wall")
    args = parser.parse_args()
    clock = time.perf_counter if args.clock == "wall" else time.process_time
    import torch  # pyright: ignore[reportMissingImports]

    import zoo
    torch.set_num_threads(args.threads)
    zoo.set_num_threads(args.threads)
    rows = []
    for size in args.sizes:
        for kind in ("LSTM", "GRU"):
            ours, theirs = cases(zoo, kind, size), cases(torch, kind, size)
            agree(ours[1], theirs[1])
            for what, a, b in zip(("forward", "forward+backward"), ours, theirs, strict=True):
                r = row(f"{kind} {what}", size, *measure(a, b, args.rounds, args.budget, clock))
                rows.append(r)
                print(f"{r['case']:28s} zoo {r['zoo_ms']:7.1f} ms  torch {r['torch_ms']:7.1f} ms  ratio "
                      f"{r['ratio']:.3f} ({r['ratio_p10']:.3f} to {r['ratio_p90']:.3f}), wanted {r['wanted']}"
                      f"{'  MISSED' if r['missed'] else ''}", flush=True)
    machine = {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__,
               "machine": platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    run = {"rows": rows, "rounds": args.rounds, "threads": args.threads, "clock": args.clock, "blas": blas_core()}
    args.out.write_text(json.dumps(run | machine, indent=1))
    return 0 if not any(r["missed"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
