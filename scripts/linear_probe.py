"""A linear probe: a pretrained model's features stay as they are, and one linear layer learns classes from them.

    python scripts/linear_probe.py                                     # 200 digits in chalk on a grey board, 2 s
    python scripts/linear_probe.py --data FOLDER --model resnet18      # FOLDER/train/CLASS/*.jpg, FOLDER/val/CLASS/...

Each picture goes through the model once; the layer then learns from the features alone, which takes no time. The same
layer on the features of an untrained model of the same kind says what the pretraining is worth.
"""

import argparse
import tempfile
from pathlib import Path

from digit_pictures import write_digits

import zoo
from zoo import hub, nn
from zoo.data import DataLoader, TensorDataset
from zoo.data.datasets import ImageFolder


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with train/CLASS/picture and val/CLASS/picture")
    parser.add_argument("--model", default="resnet20_digits", help="a name as hub.load takes it (resnet20_digits)")
    parser.add_argument("--per-class", type=int, default=20, help="training digits of each class without --data (20)")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate of Adam (0.01)")
    parser.add_argument("--workers", type=int, default=0, help="processes that load pictures (0)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    return parser.parse_args()


@zoo.no_grad()
def features(model: nn.Module, pictures: ImageFolder, args: argparse.Namespace) -> TensorDataset:
    """(features of each picture, its class), on the device."""
    batches = DataLoader(pictures, 64, num_workers=args.workers)
    rows = [(model(images.to(args.device)), labels.to(args.device)) for images, labels in batches]
    return TensorDataset(*(zoo.cat(column) for column in zip(*rows, strict=True)))


def probe(train: TensorDataset, held_out: TensorDataset, classes: int, args: argparse.Namespace) -> float:
    """The accuracy on held-out features of a linear layer that learned from the others."""
    x, y = train.tensors
    mean, std = x.mean(0), x.std(0) + 1e-6         # of the training features alone
    layer = nn.Linear(x.shape[1], classes, device=args.device)
    optimizer = zoo.optim.Adam(layer.parameters(), args.lr, weight_decay=1e-3)
    for _ in range(args.epochs):
        for inputs, labels in DataLoader(train, 64, shuffle=True):
            loss = nn.functional.cross_entropy(layer((inputs - mean) / std), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    inputs, labels = held_out.tensors
    with zoo.no_grad():
        return (layer((inputs - mean) / std).argmax(1) == labels).float().mean().item()


def compare(args: argparse.Namespace) -> None:
    zoo.manual_seed(args.seed)
    pretrained = hub.load(args.model, device=args.device)
    train, held_out = (ImageFolder(args.data / part, pretrained.preprocess) for part in ("train", "val"))
    untrained = hub.load(args.model, weights=None, device=args.device)
    for name, model in (("untrained", untrained), ("pretrained", pretrained)):
        model.reset_classifier(0)                  # the model now ends with its features
        both = (features(model, part, args) for part in (train, held_out))
        result = probe(*both, len(train.classes), args)
        print(f"{name:10}  {model.num_features} features, {len(train)} pictures of {len(train.classes)} classes: "
              f"accuracy {result:.1%} on {len(held_out)} held-out pictures", flush=True)


def main() -> None:
    args = options()
    with tempfile.TemporaryDirectory() as folder:
        if args.data is None:
            args.data = Path(folder)
            write_digits(args.data, per_class=args.per_class, ink="chalk")
        compare(args)


if __name__ == "__main__":
    main()
