"""Fine-tunes a pretrained character model into a text classifier: one line loads it, the loop is yours to change.

    python scripts/finetune_text.py                                        # which book is a verse from? 10 s
    python scripts/finetune_text.py --data FOLDER --model charlm-en-forward     # FOLDER/CLASS.txt, one text a line

Every fifth text of a class is held out. The first line of the output says what untrained features are worth.
"""

import argparse
from itertools import pairwise
from pathlib import Path

import zoo
from zoo import hub, nn
from zoo.data.text import kjv, read_text
from zoo.optim.lr_scheduler import OneCycleLR

BEGINNINGS = ("In the beginning God", "The proverbs of Solomon the son of David", "The words of the Preacher")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with a file CLASS.txt for each class, one text a line")
    parser.add_argument("--model", default="charlm_kjv", help="a character model as hub.load takes it (charlm_kjv)")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=2e-3, help="learning rate at its peak (0.002)")
    parser.add_argument("--length", type=int, default=80, help="characters of a text that are read (80)")
    parser.add_argument("--limit", type=int, default=200, help="texts of each class (200)")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def texts_of(args: argparse.Namespace) -> dict[str, list[str]]:
    """The texts of each class."""
    if args.data:
        found = {path.stem: read_text(path) for path in sorted(args.data.glob("*.txt"))}
    else:
        starts = [kjv().index(begin) for begin in BEGINNINGS] + [len(kjv())]
        books = (kjv()[a:b] for a, b in pairwise(starts))
        found = dict(zip(("Genesis", "Proverbs", "Ecclesiastes"), books, strict=True))
    return {name: [line[: args.length] for line in text.splitlines() if line][: args.limit]
            for name, text in found.items()}


class TextClassifier(nn.Module):
    """The mean of a character model's outputs, and a linear layer."""
    def __init__(self, model: nn.Module, num_classes: int):
        super().__init__()
        self.model, self.fc = model, nn.Linear(model.charlstm.hidden_size, num_classes)

    def forward(self, texts: list[str]) -> zoo.Tensor:
        rows = [zoo.tensor(self.model.encode(text).copy()) for text in texts]
        lengths = zoo.tensor([len(row) for row in rows])
        tokens = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        outputs, _ = self.model.features(tokens, None, lengths)        # zero beyond the lengths
        return self.fc(outputs.sum(1) / lengths.unsqueeze(1))


def accuracy(model: nn.Module, rows: list[tuple[str, int]]) -> float:
    """Share of the texts that the model gets right, in eval mode."""
    model.eval()
    with zoo.no_grad():
        logits = zoo.cat([model([text for text, _ in rows[k: k + 64]]) for k in range(0, len(rows), 64)])
    return (logits.argmax(1) == zoo.tensor([label for _, label in rows])).float().mean().item()


def main() -> None:
    args = options()
    zoo.manual_seed(args.seed)
    classes = texts_of(args)
    rows = [(k % 5 == 0, (text, label)) for label, texts in enumerate(classes.values()) for k, text in enumerate(texts)]
    train, held_out = ([row for out, row in rows if out == part] for part in (False, True))
    model = TextClassifier(hub.load(args.model), len(classes))
    optimizer = zoo.optim.AdamW(model.parameters(), args.lr)
    steps = len(train) // args.batch_size
    schedule = OneCycleLR(optimizer, args.lr, args.epochs * steps, cycle_momentum=False)
    print(f"{len(train)} texts of {', '.join(classes)}; {len(held_out)} held out")
    print(f"before: accuracy {accuracy(model, held_out):.1%} on the held-out texts", flush=True)

    for epoch in range(1, args.epochs + 1):
        model.train()
        order, total = zoo.randperm(len(train)).tolist(), 0.0
        for k in range(steps):
            texts, labels = zip(*(train[i] for i in order[k * args.batch_size: (k + 1) * args.batch_size]), strict=True)
            loss = nn.functional.cross_entropy(model(list(texts)), zoo.tensor(labels))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch:2d}  loss {total / steps:.4f}", flush=True)
    print(f"after: accuracy {accuracy(model, held_out):.1%} on the held-out texts")


if __name__ == "__main__":
    main()
