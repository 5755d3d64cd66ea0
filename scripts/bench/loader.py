"""Throughput of the DataLoader beside torch's: 2,000 JPEGs in folders, the same transforms, the same workers.

    python scripts/bench/loader.py [--pictures 2000] [--rounds 5] [--workers 0,2] [--out FILE.json]

The pictures (400 x 300, smooth shapes with noise, about 25 kB each) are made in a temporary folder. Both libraries read
them with ImageFolder, RandomResizedCrop(224), RandomHorizontalFlip, ToTensor and Normalize in batches of 64, and every
byte of each batch is read. In each round both make one pass, in turn the first, starting and ending of workers
included; the ratio of the pictures per second is taken round by round, so what slows the machine slows both. Seconds
are those of the wall clock; without workers those of the process's CPU time, as other programs do not count there.
Needs torch and torchvision.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
WANTED = 1.0


def make_pictures(folder, count):
    """Pictures with the statistics of photographs: large smooth areas, edges, a little noise."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for k in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3), np.uint8)).resize((400, 300), Image.Resampling.BICUBIC)
        pixels = np.asarray(coarse).astype(np.float32)
        top, left = rng.integers(0, 200), rng.integers(0, 300)
        pixels[top : top + 90, left : left + 90] = rng.integers(0, 256, 3)
        pixels += rng.normal(0, 6, pixels.shape)
        place = folder / f"class{k % 10}"
        place.mkdir(exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(place / f"{k:05d}.jpg", quality=88)


def zoo_loader(folder, workers):
    from zoo.data import DataLoader
    from zoo.data import transforms as T  # noqa: N812
    from zoo.data.datasets import ImageFolder

    return DataLoader(ImageFolder(folder, pipeline(T)), 64, shuffle=True, num_workers=workers)


def torch_loader(folder, workers):
    import torch  # pyright: ignore[reportMissingImports]
    from torchvision import transforms as T  # noqa: N812  # pyright: ignore[reportMissingImports]
    from torchvision.datasets import ImageFolder  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    return torch.utils.data.DataLoader(ImageFolder(folder, pipeline(T)), 64, shuffle=True, num_workers=workers)


def pipeline(T):  # noqa: N803
    steps = [T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]
    return T.Compose(steps)


def one_pass(loader):
    """Pictures per second of a pass; its batches are read, as a training step would."""
    clock = time.perf_counter if loader.num_workers else time.process_time
    start, count = clock(), 0
    for images, labels in loader:
        assert images.shape[1:] == (3, 224, 224) and np.isfinite(images.numpy().sum())
        count += len(labels)
    assert count == len(loader.dataset)
    return count / (clock() - start)


def measure(folder, workers, rounds):
    loaders = {"zoo": zoo_loader(folder, workers), "torch": torch_loader(folder, workers)}
    rates = {name: [] for name in loaders}
    for loader in loaders.values():
        one_pass(loader)                                # the files are in the system's cache from here on
    for k in range(rounds):
        for name in ("zoo", "torch") if k % 2 else ("torch", "zoo"):
            rates[name].append(one_pass(loaders[name]))
    ratios = [ours / theirs for ours, theirs in zip(rates["zoo"], rates["torch"], strict=True)]
    ratio = statistics.median(ratios)
    return {"workers": workers, "ratio": ratio, "ratios": ratios, "wanted": WANTED, "missed": ratio < WANTED,
            **{f"{name}_pictures_per_s": statistics.median(r) for name, r in rates.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=lambda text: [int(n) for n in text.split(",")], default=[0, 2])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "loader.json")
    args = parser.parse_args()
    try:
        import tests.yardsticks.torchvision_shim  # noqa: F401  torchvision without its compiled part
    except ImportError:
        pass
    import PIL
    import torch  # pyright: ignore[reportMissingImports]

    with tempfile.TemporaryDirectory() as folder:
        make_pictures(Path(folder), args.pictures)
        rows = [measure(folder, workers, args.rounds) for workers in args.workers]
    for r in rows:
        ours, theirs = r["zoo_pictures_per_s"], r["torch_pictures_per_s"]
        print(f"{r['workers']} workers: zoo {ours:6.0f} pictures/s   torch {theirs:6.0f}   "
              f"ratio {r['ratio']:.2f}, wanted {WANTED}: {'MISSED' if r['missed'] else 'ok'}")
    versions = {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__,
                "pillow": PIL.__version__}
    machine = {**versions, "machine": platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({"rows": rows, "pictures": args.pictures, **machine}, indent=1) + "\n")
    return 0 if not any(r["missed"] for r in rows) else 1


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
    sys.exit(main())
