"""LSTM and GRU beside torch on the CPU, forward and forward + backward, measured as protocol.py says.

    python scripts/bench/rnn.py [--rounds 7] [--threads 2] [--sizes 256 512] [--keep-blas] [--out FILE]

One layer, T=128, B=32, input size = hidden size. OpenBLAS takes the kernels that it has for the processor: those of
AVX2, which OPENBLAS_CORETYPE=Haswell binds it to and --keep-blas leaves so, have half the rate of AVX-512's.
"""
import argparse
import json
import sys
from functools import partial
from pathlib import Path

from protocol import Case, both, machine, measured
from rows import RESULTS, line_of, missed

import numpy as np  # isort: skip  # after protocol, which unbinds its BLAS

STEPS, BATCH = 128, 32
WANTED = {"LSTM": 1.10, "GRU": 0.85}                 # issue 6: of forward + backward


def cases(lib, kind, size):
    """(forward, forward + backward) of one layer on the same numbers in either library."""
    rng = np.random.default_rng(0)
    x, dy = (lib.tensor(rng.standard_normal((STEPS, BATCH, size), dtype=np.float32) * np.float32(scale))
             for scale in (1, 0.1))
    rows = (4 if kind == "LSTM" else 3) * size
    layer = getattr(lib.nn, kind)(size, size)
    layer.load_state_dict({
        f"{name}_l0": lib.tensor(rng.uniform(-1, 1, shape).astype(np.float32) * np.float32(size ** -0.5))
        for name, shape in {"weight_ih": (rows, size), "weight_hh": (rows, size), "bias_ih": rows,
                            "bias_hh": rows}.items()})
    x.requires_grad_()

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


def one_case(lib, kind, size, which):
    return cases(lib, kind, size)[which]


def rows_of(args):
    for size in args.sizes:
        for kind, wanted in WANTED.items():
            for which, what in enumerate(("forward", "forward+backward")):
                make = both(partial(one_case, kind=kind, size=size, which=which))
                yield measured(Case("rnn", f"{kind} {what} H={size}", make, {"torch": wanted} if which else {},
                                    budget=0.3, tolerance=1e-5), args.rounds, args.threads)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 512])
    parser.add_argument("--keep-blas", action="store_true", help="leave OPENBLAS_CORETYPE as it is")
    parser.add_argument("--out", type=Path, default=RESULTS / "rnn.json")
    args = parser.parse_args()
    rows = []
    for row in rows_of(args):
        rows.append(row)
        print(line_of(row), flush=True)
    args.out.write_text(json.dumps({"rows": rows, "rounds": args.rounds, **machine()}, indent=1) + "\n")
    return 1 if any(map(missed, rows)) else 0


if __name__ == "__main__":
    sys.exit(main())
