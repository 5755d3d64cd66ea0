"""Fine-tunes a pretrained model on a folder of pictures: one line loads the model, the loop is yours to change.

    python scripts/finetune_image.py                                   # 200 digits in black ink, 3 s
    python scripts/finetune_image.py --data FOLDER --model resnet18    # FOLDER/train/CLASS/*.jpg, FOLDER/val/CLASS/...

Without --data it writes digits in black ink on white paper, 20 of each class. The default model has seen only white
digits on black: the first line of the output says how little it knows of these, the last one what it has learned.
"""

import argparse
import tempfile
from pathlib import Path

from digit_pictures import write_digits

import zoo
from zoo import hub, nn
from zoo.data import DataLoader
from zoo.data.datasets import ImageFolder
from zoo.optim.lr_scheduler import OneCycleLR


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with train/CLASS/picture and val/CLASS/picture")
    parser.add_argument("--model", default="resnet20_digits", help="a name as hub.load takes it (resnet20_digits)")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.02, help="learning rate at its peak (0.02)")
    parser.add_argument("--workers", type=int, default=0, help="processes that load pictures (0)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    parser.add_argument("--out", default="", help="folder for the fine-tuned model, to be given to hub.load")
    return parser.parse_args()


def accuracy(model: nn.Module, batches: DataLoader, device: str) -> float:
    """Share of the pictures that the model gets right, in eval mode."""
    model.eval()
    right = total = 0
    with zoo.no_grad():
        for images, labels in batches:
            right += (model(images.to(device)).argmax(1) == labels.to(device)).sum().item()
            total += len(labels)
    return right / total


def finetune(args: argparse.Namespace) -> None:
    zoo.manual_seed(args.seed)
    train_set, val_set = (ImageFolder(args.data / part) for part in ("train", "val"))
    model = hub.load(args.model, num_classes=len(train_set.classes), device=args.device)
    train_set.transform = val_set.transform = model.preprocess
    batches = DataLoader(train_set, args.batch_size, shuffle=True, num_workers=args.workers)
    val_batches = DataLoader(val_set, 64, num_workers=args.workers)
    optimizer = zoo.optim.SGD(model.parameters(), args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = OneCycleLR(optimizer, args.lr, args.epochs * len(batches), pct_start=0.2, cycle_momentum=False)
    print(f"{len(train_set)} pictures of {len(train_set.classes)} classes, {len(val_set)} held out")
    print(f"before: accuracy {accuracy(model, val_batches, args.device):.1%} on the held-out pictures", flush=True)

    for epoch in range(1, args.epochs + 1):
        model.train()
        total = 0.0
        for images, labels in batches:
            loss = nn.functional.cross_entropy(model(images.to(args.device)), labels.to(args.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(labels)
        print(f"epoch {epoch:2d}  loss {total / len(train_set):.4f}", flush=True)

    print(f"after: accuracy {accuracy(model, val_batches, args.device):.1%} on the held-out pictures")
    if args.out:
        hub.save_pretrained(model, args.out, labels=train_set.classes)
        print(f"saved: hub.load({args.out!r})")


def main() -> None:
    args = options()
    with tempfile.TemporaryDirectory() as folder:
        if args.data is None:
            args.data = Path(folder)
            write_digits(args.data, per_class=20)
        finetune(args)


if __name__ == "__main__":
    main()
