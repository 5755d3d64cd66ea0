"""Is a model that knows the digits 0 to 4 a better start for learning 5 to 9 than none? An experiment.

    python scripts/transfer_digits.py         # 2 minutes; writes scripts/bench/results/transfer_digits.json

For each of 5 seeds a resnet8 learns, of the training digits 0 to 4 turned by 0, 90, 180 and 270 degrees, which digit it
is and which way up (Lee, Hwang and Shin 2020). Then it is fine-tuned on 10 training digits of each class from 5 to 9,
and a fresh resnet8 is trained on the same 50 pictures for as many steps. For each budget each way has the learning rate
that was best for it on the other training digits of 5 to 9 with other seeds. The test digits of 5 to 9 come last.
"""

import argparse
import copy
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import zoo
from zoo import models, nn
from zoo.data import DataLoader, TensorDataset, digits
from zoo.optim.lr_scheduler import OneCycleLR

OUT = Path(__file__).parent / "bench" / "results" / "transfer_digits.json"
WAYS = ("fine-tuned", "from scratch")
CHOICE_SEED = 100                                          # the first of the seeds that choose the learning rates


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="runs of each way, and as many to choose the rates (5)")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.01, 0.03, 0.1, 0.3], help="to choose from")
    parser.add_argument("--per-class", type=int, default=10, help="pictures of each class from 5 to 9 (10)")
    parser.add_argument("--epochs", type=int, nargs="+", default=[3, 10, 30], help="budgets (3 10 30)")
    parser.add_argument("--pretraining-epochs", type=int, default=4, help="passes over the digits 0 to 4 (4)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    parser.add_argument("--out", type=Path, default=OUT)
    return parser.parse_args()


def part(train: bool, first: int, device: str) -> TensorDataset:
    """The training or test digits of the five classes from `first`, which become 0 to 4."""
    images, labels = digits(train).tensors
    rows = (labels >= first) & (labels < first + 5)
    return TensorDataset(images[rows].to(device), (labels[rows] - first).to(device))


def turned(data: TensorDataset) -> TensorDataset:
    """Each picture in four orientations; the class is digit + 5 * quarter turns."""
    images, labels = data.tensors
    parts = [(zoo.rot90(images, k, (2, 3)), labels + 5 * k) for k in range(4)]
    return TensorDataset(*(zoo.cat(column) for column in zip(*parts, strict=True)))


def split(data: TensorDataset, per_class: int, seed: int) -> list[TensorDataset]:
    """[`per_class` random pictures of each class, all the others]."""
    labels, rng = data.tensors[1].cpu().numpy(), np.random.default_rng(seed)
    taken = np.concatenate([rng.permutation(np.flatnonzero(labels == c))[:per_class] for c in range(5)])
    rest = np.setdiff1d(np.arange(len(labels)), taken)
    return [TensorDataset(*(t[rows] for t in data.tensors)) for rows in (taken, rest)]


def train(model: nn.Module, data: TensorDataset, lr: float, epochs: int, batch_size: int, seed: int) -> nn.Module:
    """Trains in place; the seed decides the order."""
    batches = DataLoader(data, batch_size, shuffle=True, generator=zoo.Generator().manual_seed(seed))
    optimizer = zoo.optim.SGD(model.parameters(), lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = OneCycleLR(optimizer, lr, epochs * len(batches), pct_start=0.2, cycle_momentum=False)
    model.train()
    for _ in range(epochs):
        for images, labels in batches:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


@zoo.no_grad()
def accuracy(model: nn.Module, data: TensorDataset) -> float:
    return (model(data.tensors[0]).argmax(1) == data.tensors[1]).float().mean().item()


def measure(trials: Iterable[tuple[str, int, float]], base: TensorDataset, pool: TensorDataset,
            test: TensorDataset | None, seeds: Iterable[int], args: argparse.Namespace) -> dict[tuple, list[float]]:
    """The accuracies of each trial, by seed: on test, or without one on the training digits it did not learn from."""
    found = {trial: [] for trial in trials}
    for seed in seeds:
        zoo.manual_seed(seed)
        few, others = split(pool, args.per_class, seed)
        pretrained, fresh = (models.resnet8(num_classes=n, in_chans=1).to(args.device) for n in (20, 5))
        train(pretrained, turned(base), 0.1, args.pretraining_epochs, 64, seed).reset_classifier(5)
        for (way, epochs, lr), row in found.items():
            model = train(copy.deepcopy(pretrained if way == WAYS[0] else fresh), few, lr, epochs, 10, seed)
            row.append(accuracy(model, others if test is None else test))
    return found


def main() -> None:
    args = options()
    zoo.set_num_threads(1)                                 # another number changes last bits, and with them the figures
    base, pool, test = (part(*which, args.device) for which in ((True, 0), (True, 5), (False, 5)))
    every = [(way, epochs, lr) for epochs in args.epochs for way in WAYS for lr in args.rates]
    choice = measure(every, base, pool, None, range(CHOICE_SEED, CHOICE_SEED + args.seeds), args)
    best = {trial[:2]: trial for trial in sorted(every, key=lambda trial: np.mean(choice[trial]))}
    wanted = [best[way, epochs] for epochs in args.epochs for way in WAYS]
    rows = [{"way": way, "epochs": epochs, "lr": lr, "accuracies": each, "mean": np.mean(each), "std": np.std(each)}
            for (way, epochs, lr), each in measure(wanted, base, pool, test, range(args.seeds), args).items()]
    print(f"accuracy on {len(test)} test digits of 5 to 9, from {args.per_class} of each class, by seed")
    for row in rows:
        print(f"{row['epochs']:3} epochs  {row['way']:12}  lr {row['lr']:<5}  {row['mean']:.1%} +- {row['std']:.1%} ",
              *(f"{a:.1%}" for a in row["accuracies"]))
    settings = {key: value for key, value in vars(args).items() if key != "out"}
    found = {"settings": settings, "results": rows, "choice": [[*trial, each] for trial, each in choice.items()]}
    args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
