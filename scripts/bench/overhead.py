"""Overhead beside torch, in one process, through the public API only, one thread each.

    python scripts/bench/overhead.py [--rounds 15] [--budget 0.05] [--out scripts/bench/results/overhead.json]

Cases: `x * y + z` on 10 elements with requires_grad, 50 times in a row, forward, and forward + backward; a train step
of an MLP 32-64-10 with batch 16. In each round both libraries run one after the other, in turn the first. A round's
time is the lower quartile of its calls' CPU time (of the whole process), and the ratio is taken round by round: a
machine that slows down slows both.
"""
import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402

LINKS = 50                                   # x * y + z, this many times in a row: 100 ops
WANTED = {"chain forward": 0.90, "chain forward+backward": 0.75, "MLP train step": 0.40}


def chain(x, y, z):
    for _ in range(LINKS):
        x = x * y + z
    return x


def chain_cases(lib, arrays):
    """The two chains: the result's own gradient is all ones, made outside the clock."""
    x, y, z = (lib.tensor(a).requires_grad_() for a in arrays)
    ones = lib.ones(len(arrays[0]))

    def both():
        x.grad = y.grad = z.grad = None
        chain(x, y, z).backward(ones)

    return {"chain forward": lambda: chain(x, y, z), "chain forward+backward": both}


def train_case(lib, inputs, labels, weights):
    """One step of training: the same model, numbers and optimiser in both libraries."""
    nn = lib.nn
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    model.load_state_dict({name: lib.tensor(w) for name, w in weights.items()})
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    x, y = lib.tensor(inputs), lib.tensor(labels)

    def step():
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return {"MLP train step": step}


def cases(lib):
    rng = np.random.default_rng(0)
    arrays = [rng.random(10, dtype=np.float32) for _ in range(3)]
    inputs = rng.standard_normal((16, 32), dtype=np.float32)
    labels = rng.integers(0, 10, 16)
    weights = {name: rng.standard_normal(shape, dtype=np.float32) * np.float32(0.1) for name, shape in
               {"0.weight": (64, 32), "0.bias": (64,), "2.weight": (10, 64), "2.bias": (10,)}.items()}
    return chain_cases(lib, arrays) | train_case(lib, inputs, labels, weights)


def agree(zoo, torch):
    """A benchmark of two programs that compute different things says nothing: the losses of 20 steps must be equal."""
    step, reference = (cases(lib)["MLP train step"] for lib in (zoo, torch))
    losses = np.array([(step().item(), reference().item()) for _ in range(20)])
    np.testing.assert_allclose(losses[:, 0], losses[:, 1], rtol=1e-4)


def lower_quartile(call, budget):
    """Seconds of CPU time of one call: the lower quartile over as many calls as the budget holds."""
    clock = time.process_time            # of all threads: a library that starts more gains nothing by it
    start = clock()
    call()
    count = max(5, int(budget / max(clock() - start, 1e-7)))
    times = np.empty(count)
    for k in range(count):
        start = clock()
        call()
        times[k] = clock() - start
    return float(np.quantile(times, 0.25))


def measure(ours, theirs, rounds, budget):
    """Times of both in every round, in turn the first."""
    for call in (ours, theirs):
        for _ in range(20):
            call()
    times = {ours: [], theirs: []}
    for k in range(rounds):
        for call in (ours, theirs) if k % 2 else (theirs, ours):
            times[call].append(lower_quartile(call, budget))
    return np.array(times[ours]), np.array(times[theirs])


def row(name, ours, theirs):
    ratios = ours / theirs
    low, high = np.quantile(ratios, [0.1, 0.9])
    return {"case": name, "zoo_us": float(np.median(ours) * 1e6), "torch_us": float(np.median(theirs) * 1e6),
            "ratio": float(np.median(ratios)), "ratio_p10": float(low), "ratio_p90": float(high),
            "wanted": WANTED[name], "missed": bool(np.median(ratios) > WANTED[name])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--budget", type=float, default=0.05, help="seconds of calls in a round")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "overhead.json")
    args = parser.parse_args()
    import torch  # pyright: ignore[reportMissingImports]

    import zoo
    torch.set_num_threads(1)
    agree(zoo, torch)
    theirs = cases(torch)
    rows = [row(name, *measure(ours, theirs[name], args.rounds, args.budget)) for name, ours in cases(zoo).items()]
    for r in rows:
        print(f"{r['case']:24s} zoo {r['zoo_us']:7.1f} us   torch {r['torch_us']:7.1f} us  ratio {r['ratio']:.3f} "
              f"({r['ratio_p10']:.3f} to {r['ratio_p90']:.3f}), {r['wanted']}: {'MISSED' if r['missed'] else 'ok'}")
    machine = {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__,
               "machine": platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({"rows": rows, "rounds": args.rounds, "budget": args.budget, **machine}, indent=1))
    return 0 if not any(r["missed"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
