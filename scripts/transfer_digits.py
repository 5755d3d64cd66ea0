"""Is a model that knows the digits 0 to 4 a better start for learning 5 to 9 than none? An experiment.

    python scripts/transfer_digits.py         # 2 minutes; writes scripts/bench/results/transfer_digits.json

For each of 5 seeds a resnet8 learns the training digits 0 to 4. Then it is fine-tuned on 10 training digits of each
class from 5 to 9, and a fresh resnet8 is trained on the same 50 pictures in the same order for as many steps. Each way
has the learning rate that was best for it on the other training digits of 5 to 9, with seeds of their own. The test
digits of 5 to 9 are looked at once, at the end; no picture of them, and none of 5 to 9, is in the pretraining.
"""

import argparse
import copy
import json
from pathlib import Path

import numpy as np

import zoo
from zoo import models, nn
from zoo.data import DataLoader, TensorDataset, digits
from zoo.optim.lr_scheduler import OneCycleLR

WAYS = ("fine-tuned", "from scratch")
CHOICE_SEED = 100                                          # the first of the seeds that choose the learning rates


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="runs of each way (5)")
    parser.add_argument("--choice-seeds", type=int, default=3, help="runs that choose the learning rates (3)")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.003, 0.01, 0.03, 0.1, 0.3],
                        help="learning rates to choose from")
    parser.add_argument("--per-class", type=int, default=10, help="pictures of each class from 5 to 9 (10)")
    parser.add_argument("--epochs", type=int, default=30, help="passes over these pictures (30)")
    parser.add_argument("--pretraining-epochs", type=int, default=15, help="passes over the digits 0 to 4 (15)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "bench" / "results" / "transfer_digits.json")
    return parser.parse_args()


def part(train: bool, first: int, device: str) -> TensorDataset:
    """The training or test digits of the five classes from `first`, which become 0 to 4."""
    images, labels = digits(train).tensors
    chosen = (labels >= first) & (labels < first + 5)
    return TensorDataset(images[chosen].to(device), (labels[chosen] - first).to(device))


def split(data: TensorDataset, per_class: int, seed: int) -> tuple[TensorDataset, TensorDataset]:
    """(`per_class` random pictures of each class, all the others)."""
    labels, rng = data.tensors[1].cpu().numpy(), np.random.default_rng(seed)
    taken = np.concatenate([rng.permutation(np.flatnonzero(labels == c))[:per_class] for c in range(5)])
    rest = np.setdiff1d(np.arange(len(labels)), taken)
    few, others = (TensorDataset(*(t[rows] for t in data.tensors)) for rows in (taken, rest))
    return few, others


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
    images, labels = data.tensors
    return (model(images).argmax(1) == labels).float().mean().item()


def starts(base: TensorDataset, seed: int, args: argparse.Namespace) -> dict[str, nn.Module]:
    """The model that each way begins with."""
    zoo.manual_seed(seed)
    fresh, pretrained = (models.resnet8(num_classes=5, in_chans=1).to(args.device) for _ in range(2))
    train(pretrained, base, 0.1, args.pretraining_epochs, 64, seed)
    pretrained.reset_classifier(5)
    return dict(zip(WAYS, (pretrained, fresh), strict=True))


def main() -> int:
    args = options()
    base, pool, test = (part(*which, args.device) for which in ((True, 0), (True, 5), (False, 5)))

    tried = {way: {lr: [] for lr in args.rates} for way in WAYS}
    for seed in range(CHOICE_SEED, CHOICE_SEED + args.choice_seeds):
        few, others = split(pool, args.per_class, seed)
        for way, start in starts(base, seed, args).items():
            for lr in args.rates:
                model = train(copy.deepcopy(start), few, lr, args.epochs, 10, seed)
                tried[way][lr].append(accuracy(model, others))
    rates = {way: max(args.rates, key=lambda lr: np.mean(tried[way][lr])) for way in WAYS}
    for way in WAYS:
        row = ", ".join(f"{lr:g}: {np.mean(tried[way][lr]):.1%}" for lr in args.rates)
        print(f"{way:12}  other training digits by learning rate: {row}; takes {rates[way]:g}", flush=True)

    found = {way: [] for way in WAYS}
    for seed in range(args.seeds):
        few, _ = split(pool, args.per_class, seed)
        for way, start in starts(base, seed, args).items():
            found[way].append(accuracy(train(start, few, rates[way], args.epochs, 10, seed), test))
    print(f"{len(test)} test digits of 5 to 9, {args.per_class} per class to learn from, {args.epochs} epochs:")
    for way in WAYS:
        each = "  ".join(f"{a:.1%}" for a in found[way])
        print(f"{way:12}  {np.mean(found[way]):6.1%} +- {np.std(found[way]):.1%}   seeds 0 to {args.seeds - 1}: {each}")

    rows = {way: {"accuracies": found[way], "mean": float(np.mean(found[way])), "std": float(np.std(found[way])),
                  "lr": rates[way], "choice": tried[way]} for way in WAYS}
    settings = {key: value for key, value in vars(args).items() if key != "out"}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({"settings": settings, "test_digits": len(test), **rows}, indent=1) + "\n")
    return 0 if rows[WAYS[0]]["mean"] > rows[WAYS[1]]["mean"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
