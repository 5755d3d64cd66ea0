"""hub.load from a warm cache beside torch: build resnet50, load its weights, one forward of 1x3x64x64.

    python scripts/bench/hub_load.py [--rounds 15] [--out scripts/bench/results/hub_load.json]

Both load the same seeded numbers: zoo from a cache in huggingface_hub's layout, with the file's sha256 pinned and so
computed, torch by `m = resnet50(); m.load_state_dict(torch.load(path, weights_only=True))` from a file that torch.save
wrote. Every measurement is a fresh process that has imported its libraries before the clock starts and has two threads;
zoo and torch take turns, in each round the other one first. The files are in the page cache, as after a first use.
"""

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import numpy as np

WANTED, THREADS = 0.7, 2
COMMIT, REPO = "0" * 40, "models--timm--resnet50.seeded"
ROOT = Path(__file__).resolve().parent.parent.parent

ZOO = """
import time, numpy as np, zoo
from dataclasses import replace
from zoo import hub
from zoo.models.weights import get
zoo.set_num_threads({threads})
row = replace(get("resnet50.a1_in1k"), source="hf://timm/resnet50.seeded/model.safetensors@{commit}", sha256="{sha256}")
x = zoo.from_numpy(np.load("x.npy"))
start = time.perf_counter()
model = hub.load("resnet50", row, cache_dir="cache", progress=False)
loaded = time.perf_counter()
with zoo.no_grad():
    y = model(x).numpy()
end = time.perf_counter()
"""
TORCH = """
import time, numpy as np, torch
import tests.yardsticks.torchvision_shim
from torchvision.models import resnet50
torch.set_num_threads({threads})
x = torch.from_numpy(np.load("x.npy"))
start = time.perf_counter()
model = resnet50()
model.load_state_dict(torch.load("resnet50.pth", weights_only=True))
loaded = time.perf_counter()
with torch.no_grad():
    y = model.eval()(x).numpy()
end = time.perf_counter()
"""
REPORT = "np.save('{name}.npy', y); print(loaded - start, end - start)"


def prepare(folder: Path) -> str:
    """The seeded weights as torch's file and as a file in the Hub's cache; the latter's sha256."""
    import torch  # pyright: ignore[reportMissingImports]

    import tests.yardsticks.torchvision_shim  # noqa: F401  (before torchvision)
    from zoo import checkpoint
    torch.manual_seed(0)
    state = import_module("torchvision.models").resnet50().state_dict()
    torch.save(state, folder / "resnet50.pth")
    checkpoint.write(folder / "model.safetensors", {key: value.numpy() for key, value in state.items()})
    sha256 = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    blob = folder / "cache" / "hub" / REPO / "blobs" / sha256
    link = folder / "cache" / "hub" / REPO / "snapshots" / COMMIT / "model.safetensors"
    for path in (blob, link):
        path.parent.mkdir(parents=True)
    (folder / "model.safetensors").rename(blob)
    link.symlink_to(Path("../../blobs") / sha256)
    np.save(folder / "x.npy", np.random.default_rng(0).standard_normal((1, 3, 64, 64), dtype=np.float32))
    return sha256


def measure(name: str, code: str, folder: Path) -> tuple[float, float]:
    """(seconds of loading, of loading and the forward) of one fresh process."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[variable] = str(THREADS)
    child = subprocess.run([sys.executable, "-c", code + REPORT.format(name=name)], cwd=folder, env=environment,
                           capture_output=True, text=True, check=True)
    loaded, end = map(float, child.stdout.split())
    return loaded, end


def rounds(folder: Path, count: int, sha256: str) -> dict[str, np.ndarray]:
    """name -> (count, 2) seconds; the two programs are checked to compute the same."""
    values = {"threads": THREADS, "commit": COMMIT, "sha256": sha256}
    programs = {"zoo": ZOO.format(**values), "torch": TORCH.format(**values)}
    for name, code in programs.items():
        measure(name, code, folder)
    ours, theirs = (np.load(folder / f"{name}.npy") for name in programs)
    np.testing.assert_allclose(ours, theirs, atol=1e-4 * np.abs(theirs).max())
    times: dict[str, list] = {name: [] for name in programs}
    for k in range(count):
        for name in sorted(programs, reverse=bool(k % 2)):
            times[name].append(measure(name, programs[name], folder))
    return {name: np.array(rows) for name, rows in times.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "hub_load.json")
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        times = rounds(Path(folder), args.rounds, prepare(Path(folder)))
    ratios = times["zoo"][:, 1] / times["torch"][:, 1]
    low, high = np.quantile(ratios, [0.1, 0.9])
    row = {"case": "resnet50 from a warm cache, hash checked, and a forward of 1x3x64x64",
           "ratio": float(np.median(ratios)), "ratio_p10": float(low), "ratio_p90": float(high), "wanted": WANTED,
           "missed": bool(np.median(ratios) > WANTED)}
    for name, values in times.items():
        loading, whole = np.median(values, axis=0)
        row |= {f"{name}_ms": float(whole * 1e3), f"{name}_load_ms": float(loading * 1e3)}
    print(json.dumps(row, indent=1))
    machine = {"rounds": args.rounds, "threads": THREADS, "python": platform.python_version(), "numpy": np.__version__,
               "machine": platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(row | machine, indent=1) + "\n")
    return int(row["missed"])


if __name__ == "__main__":
    sys.exit(main())
