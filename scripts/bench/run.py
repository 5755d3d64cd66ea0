"""Layers, models and train steps beside torch on the CPU, in one process with the same threads and numbers.

    python scripts/bench/run.py --device cpu --against torch [--threads 2] [--only resnet18] [--out FILE]

In each round zoo, torch and torch with channels_last run one after the other, in turn the first. A round's time is the
median of its calls, the ratio is taken round by round, and the table has its median and its tenth and ninetieth
percentile. With --threads 1 a time is the CPU time of the calling thread: what else the machine does hardly counts.

OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are taken out of the environment unless --keep-blas: they bind NumPy's BLAS to
other kernels than those it has for the processor, and do not bind torch.
"""
import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
BOUND = {name: os.environ.get(name) for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
if "--keep-blas" not in sys.argv:
    for variable in BOUND:
        os.environ.pop(variable, None)

import numpy as np  # noqa: E402

# issue 5: (name, model, batch, image size, train, at most times torch, at most times torch's channels_last)
MODELS = (
    ("ResNet-18 inference, batch 1", "resnet18", 1, 224, False, 0.90, None),
    ("ResNet-18 inference, batch 16", "resnet18", 16, 224, False, 0.60, 0.75),
    ("ResNet-50 inference, batch 16", "resnet50", 16, 224, False, 0.80, None),
    ("VGG-16 inference, batch 4", "vgg16", 4, 224, False, 0.65, None),
    ("CIFAR ResNet-20 train step, batch 64", "resnet20", 64, 32, True, 1.10, None),
    ("ResNet-18 train step, batch 16", "resnet18", 16, 224, True, 0.90, None),
)
TOLERANCE = 1e-4                         # of the largest output, or of the loss


def cifar_resnet20(nn):
    """He et al. 2015, section 4.2, with 1x1 shortcuts; the same modules, in the same order, of either library."""
    def block(c, k, stride):
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv1, self.bn1 = nn.Conv2d(c, k, 3, stride, 1, bias=False), nn.BatchNorm2d(k)
                self.conv2, self.bn2 = nn.Conv2d(k, k, 3, 1, 1, bias=False), nn.BatchNorm2d(k)
                self.relu = nn.ReLU()
                shortcut = nn.Sequential(nn.Conv2d(c, k, 1, stride, bias=False), nn.BatchNorm2d(k))
                self.shortcut = nn.Identity() if stride == 1 else shortcut

            def forward(self, x):
                y = self.relu(self.bn1(self.conv1(x)))
                return self.relu(self.bn2(self.conv2(y)) + self.shortcut(x))
        return Block()

    blocks = [block(c, k, s) for c, k, s in ((16, 16, 1), (16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1),
                                             (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 64, 1))]
    return nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def pair(name):
    """(zoo's model, torch's model) of the same weights."""
    import torch  # pyright: ignore[reportMissingImports]

    import zoo
    import zoo.models
    if name == "resnet20":
        ours, theirs = cifar_resnet20(zoo.nn), cifar_resnet20(torch.nn)
    else:
        __import__("tests.yardsticks.torchvision_shim")
        import torchvision  # pyright: ignore[reportMissingImports]
        theirs = getattr(torchvision.models, name)()
        with zoo.nn.init.skip_init():
            ours = getattr(zoo.models, name)()
    ours.load_state_dict({k: zoo.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    return ours, theirs


def inference(lib, model, x):
    model.eval()

    def call():
        with lib.inference_mode():
            return model(x)
    return call


def train_step(lib, model, x, labels):
    """SGD with momentum and a learning rate of 0: every call has the same work and the same loss."""
    model.train()
    optimizer = lib.optim.SGD(model.parameters(), lr=0.0, momentum=0.9)

    def call():
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return call


def calls_of(name, batch, size, train):
    """{library: call}, which have been seen to give the same numbers."""
    import copy

    import torch  # pyright: ignore[reportMissingImports]

    import zoo
    rng = np.random.default_rng(0)
    images, labels = rng.standard_normal((batch, 3, size, size), dtype=np.float32), rng.integers(0, 10, batch)
    ours, theirs = pair(name)
    last = copy.deepcopy(theirs).to(memory_format=torch.channels_last)
    make = train_step if train else inference
    rest = ([zoo.tensor(labels)], [torch.tensor(labels)]) if train else ([], [])
    x = torch.tensor(images)
    calls = {"zoo": make(zoo, ours, zoo.tensor(images), *rest[0]), "torch": make(torch, theirs, x, *rest[1]),
             "channels_last": make(torch, last, x.contiguous(memory_format=torch.channels_last), *rest[1])}
    a, b = (np.asarray(calls[k]().numpy()) for k in ("zoo", "torch"))
    error = float(np.abs(a - b).max() / np.abs(b).max())
    if not error <= TOLERANCE:
        raise AssertionError(f"{name}: the two libraries differ by {error:.1e} of the largest output")
    return calls, error


def measured(calls, rounds, budget, clock):
    """{library: the median seconds of a call in each round}."""
    times = {name: [] for name in calls}
    for k in range(rounds):
        names = list(calls)
        for name in names[k % len(names):] + names[:k % len(names)]:
            calls[name]()
            seconds, end = [], time.perf_counter() + budget
            while len(seconds) < 2 or time.perf_counter() < end:
                start = clock()
                calls[name]()
                seconds.append(clock() - start)
            times[name].append(np.median(seconds))
    return {name: np.array(t) for name, t in times.items()}


def row_of(case, times, error):
    name, _, _, _, _, wanted, wanted_last = case
    row = {"case": name, "zoo_ms": float(np.median(times["zoo"]) * 1e3), "error": error}
    for other, most in (("torch", wanted), ("channels_last", wanted_last)):
        ratios = times["zoo"] / times[other]
        row[other] = {"ms": float(np.median(times[other]) * 1e3), "ratio": float(np.median(ratios)), "wanted": most,
                      "p10": float(np.quantile(ratios, 0.1)), "p90": float(np.quantile(ratios, 0.9)),
                      "missed": bool(most is not None and np.median(ratios) > most)}
    return row


def line_of(row):
    cells = [f"{row['case']:38s} zoo {row['zoo_ms']:8.1f} ms"]
    for other in ("torch", "channels_last"):
        r = row[other]
        wanted = "" if r["wanted"] is None else f", wanted {r['wanted']:.2f}{' MISSED' if r['missed'] else ''}"
        cells.append(f"{other} {r['ms']:8.1f} ms: {r['ratio']:.2f} ({r['p10']:.2f} to {r['p90']:.2f}){wanted}")
    return " | ".join(cells)


def machine_of(args):
    import torch  # pyright: ignore[reportMissingImports]
    config = np.show_config(mode="dicts")
    return {"threads": args.threads, "rounds": args.rounds, "python": platform.python_version(),
            "numpy": np.__version__, "torch": torch.__version__, "cores": os.cpu_count(),
            "machine": platform.machine(), "load": os.getloadavg(),
            "blas": config["Build Dependencies"]["blas"]["openblas configuration"],
            "blas_bound_by": BOUND if args.keep_blas else {}, "blas_bound_before": BOUND}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu"], default="cpu")
    parser.add_argument("--against", choices=["torch"], default="torch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--budget", type=float, default=0.5, help="seconds of calls in a round")
    parser.add_argument("--only", default="", help="the cases whose names have this in them")
    parser.add_argument("--keep-blas", action="store_true", help="leave OPENBLAS_CORETYPE as it is")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "cpu.json")
    args = parser.parse_args()
    import torch  # pyright: ignore[reportMissingImports]

    import zoo
    torch.set_num_threads(args.threads)
    zoo.set_num_threads(args.threads)
    clock = time.thread_time if args.threads == 1 else time.perf_counter
    rows = []
    for case in MODELS:
        if args.only.lower() in case[0].lower():
            calls, error = calls_of(*case[1:5])
            rows.append(row_of(case, measured(calls, args.rounds, args.budget, clock), error))
            print(line_of(rows[-1]), flush=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({"rows": rows, **machine_of(args)}, indent=1))
    return 1 if any(r[k]["missed"] for r in rows for k in ("torch", "channels_last")) else 0


if __name__ == "__main__":
    sys.exit(main())
