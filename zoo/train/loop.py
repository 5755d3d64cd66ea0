"""The training loop, to be read from top to bottom."""

import dataclasses
import itertools
import json
import sys
import time
from pathlib import Path

from tqdm import tqdm

import zoo
from zoo.data import DataLoader, TensorDataset, digits
from zoo.models.resnet_cifar import MODELS
from zoo.nn import functional as F  # noqa: N812
from zoo.ops.threads import set_num_threads
from zoo.optim import SGD, Adam, AdamW, Optimizer
from zoo.optim.lr_scheduler import OneCycleLR
from zoo.serialization import save
from zoo.train.config import Config


def train(config: Config) -> float:
    """Trains as config says, and returns the accuracy on the test images; see `python -m zoo.train --help`."""
    start = time.perf_counter()
    zoo.manual_seed(config.seed)
    set_num_threads(config.threads)
    train_set, test_set = (on_device(digits(train=part), config) for part in (True, False))
    model = MODELS[config.model](num_classes=10, in_chans=1, width=config.width).to(config.device)
    optimizer = make_optimizer(model, config)
    batches = DataLoader(train_set, config.batch_size, shuffle=True)
    schedule = OneCycleLR(optimizer, config.lr, config.epochs * len(batches), pct_start=0.2, cycle_momentum=False)

    folder = new_folder(config)
    write(folder / "config.json", json.dumps(dataclasses.asdict(config), indent=1) + "\n")
    say(" ".join(f"{k}={v}" for k, v in dataclasses.asdict(config).items()))
    say(
        f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(train_set):,} images to train with, "
        f"{len(test_set):,} to test with"
    )

    for epoch in range(1, config.epochs + 1):
        model.train()
        begin, seen, correct, total, speed = time.perf_counter(), 0, 0, 0.0, 0.0
        with progress(batches, f"epoch {epoch}/{config.epochs}") as bar:
            for images, labels in bar:
                logits = model(shifted(images, config.shift))
                loss = F.cross_entropy(logits, labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()

                seen += len(labels)
                total += loss.item() * len(labels)
                correct += hits(logits, labels)
                speed = seen / (time.perf_counter() - begin)
                bar.set_postfix_str(
                    f"loss {total / seen:.4f}, accuracy {correct / seen:.2%}, {speed:,.0f} images/s", refresh=False
                )
        row = {"epoch": epoch, "loss": total / seen, "accuracy": correct / seen, "images_per_second": round(speed, 1)}
        write(folder / "metrics.jsonl", json.dumps(row) + "\n")
        say(f"epoch {epoch:3d}  loss {row['loss']:.4f}  accuracy {row['accuracy']:7.2%}  {speed:8,.0f} images/s")

    correct = count_hits(model, test_set)
    save(model.state_dict(), folder / "last.safetensors")
    row = {"test_accuracy": correct / len(test_set), "seconds": round(time.perf_counter() - start, 2)}
    write(folder / "metrics.jsonl", json.dumps(row) + "\n")
    result = f"test accuracy {row['test_accuracy']:.2%} ({correct} of {len(test_set)})"
    say(f"{result} after {row['seconds']:.1f} s; {folder}")
    return row["test_accuracy"]


def make_optimizer(model: zoo.nn.Module, config: Config) -> Optimizer:
    """The optimizer of the config, on all parameters."""
    options = {"lr": config.lr, "weight_decay": config.weight_decay}
    if config.optimizer == "sgd":
        return SGD(model.parameters(), momentum=0.9, nesterov=True, **options)
    return (Adam if config.optimizer == "adam" else AdamW)(model.parameters(), **options)


def on_device(data: TensorDataset, config: Config) -> TensorDataset:
    """The images and labels (the first `limit` of them) on the config's device."""
    return TensorDataset(*(t[: config.limit or None].to(config.device) for t in data.tensors))


def shifted(images: zoo.Tensor, most: int) -> zoo.Tensor:
    """Each image (N, 1, H, W) moved by up to `most` pixels up or down and left or right; zeros come in."""
    if not most:
        return images
    n, _, height, width = images.shape
    down, right = zoo.randint(0, 2 * most + 1, (2, n, 1, 1), device=images.device)
    rows = zoo.arange(height, device=images.device).view(1, height, 1) + down
    columns = zoo.arange(width, device=images.device).view(1, 1, width) + right
    sample = zoo.arange(n, device=images.device).view(n, 1, 1)
    return F.pad(images, (most,) * 4)[:, 0][sample, rows, columns].unsqueeze(1)


def hits(logits: zoo.Tensor, labels: zoo.Tensor) -> int:
    """How many of the greatest logits are at the label."""
    return int((logits.detach().argmax(1) == labels).sum().item())


def count_hits(model: zoo.nn.Module, data: TensorDataset) -> int:
    """How many images of the dataset the model gets right, in eval mode."""
    model.eval()
    with zoo.no_grad():
        return sum(hits(model(images), labels) for images, labels in DataLoader(data, 360))


def progress(batches: DataLoader, title: str) -> tqdm:
    """A bar on the standard error; where that is a file or a pipe, a line every 5 seconds."""
    pause = 0.1 if sys.stderr.isatty() else 5
    return tqdm(batches, title, leave=False, unit="batch", dynamic_ncols=True, mininterval=pause)


def new_folder(config: Config) -> Path:
    """A new folder for this run: <out>/<time>-<model>-<seed>, with a number behind it if that is taken."""
    base = Path(config.out)
    base.mkdir(parents=True, exist_ok=True)
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{config.model}-{config.seed}"
    for number in itertools.count(2):
        try:
            (base / name).mkdir()
            break
        except FileExistsError:
            name = f"{name.rsplit('+', 1)[0]}+{number}"
    return base / name


def write(path: Path, text: str) -> None:
    """Adds text to a file."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


def say(text: str) -> None:
    """A line on the standard output, at once, not through the progress bar."""
    print(text, flush=True)
