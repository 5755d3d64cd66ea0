"""Overhead beside torch, through the public API only, one thread each.

    python scripts/bench/overhead.py [--rounds 15] [--budget 0.05]

Cases: `x * y + z` on 10 elements with requires_grad, 50 times in a row, forward, and forward + backward; a train step
of an MLP 32-64-10 with batch 16. The same rows stand in run.py's table.
"""
import argparse
import sys
from functools import partial

import numpy as np
from protocol import Case, both, measured
from rows import line_of, missed

LINKS = 50                                   # x * y + z, this many times in a row: 100 ops
WANTED = {"chain forward": 0.75, "chain forward+backward": 0.60, "MLP train step": 0.33}     # issue 5


def chain(x, y, z):
    for _ in range(LINKS):
        x = x * y + z
    return x


def chain_call(lib, backward):
    """The chain; the result's own gradient is all ones, made outside the clock."""
    rng = np.random.default_rng(0)
    x, y, z = (lib.tensor(rng.random(10, dtype=np.float32)).requires_grad_() for _ in range(3))
    ones = lib.ones(10)

    def forward_and_backward():
        x.grad = y.grad = z.grad = None
        chain(x, y, z).backward(ones)
        return x.grad, y.grad, z.grad

    return forward_and_backward if backward else partial(chain, x, y, z)


def train_call(lib):
    """One step of training: the same model, numbers and optimiser in both libraries."""
    rng = np.random.default_rng(0)
    x = lib.tensor(rng.standard_normal((16, 32), dtype=np.float32))
    labels = lib.tensor(rng.integers(0, 10, 16))
    nn = lib.nn
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    shapes = {"0.weight": (64, 32), "0.bias": (64,), "2.weight": (10, 64), "2.bias": (10,)}
    model.load_state_dict({name: lib.tensor(rng.standard_normal(shape, dtype=np.float32) * np.float32(0.1))
                           for name, shape in shapes.items()})
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        loss = criterion(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


CALLS = {"chain forward": partial(chain_call, backward=False),
         "chain forward+backward": partial(chain_call, backward=True), "MLP train step": train_call}


def cases() -> list[Case]:
    return [Case("overhead", name, both(call), {"torch": WANTED[name]}, threads=1) for name, call in CALLS.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--budget", type=float, default=0.05, help="seconds of calls in a round")
    args = parser.parse_args()
    rows = [measured(case, args.rounds, 1, args.budget) for case in cases()]
    print("\n".join(map(line_of, rows)))
    return 1 if any(map(missed, rows)) else 0


if __name__ == "__main__":
    sys.exit(main())
