"""A small DCGAN (Radford et al. 2015) that learns to write digits, and saves a grid of what it writes.

    python scripts/gan_digits.py --out gan.png

The last line has what a classifier of real digits makes of them: how sure it is, and how many of the ten digits appear.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

import zoo
from zoo import hub, nn
from zoo.data import DataLoader, digits

NOISE, WIDTH = 32, 32                       # numbers that a picture is made from; channels of the widest layers


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate of both networks' Adam (0.001)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    parser.add_argument("--out", type=Path, default=Path("gan_digits.png"))
    return parser.parse_args()


def make_generator() -> nn.Sequential:
    """Noise (N, NOISE, 1, 1) -> pictures (N, 1, 8, 8) from 0 to 1."""
    return nn.Sequential(
        nn.ConvTranspose2d(NOISE, 2 * WIDTH, 2, bias=False), nn.BatchNorm2d(2 * WIDTH), nn.ReLU(),
        nn.ConvTranspose2d(2 * WIDTH, WIDTH, 4, stride=2, padding=1, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU(),
        nn.ConvTranspose2d(WIDTH, 1, 4, stride=2, padding=1), nn.Sigmoid(),
    )


def make_discriminator() -> nn.Sequential:
    """Pictures (N, 1, 8, 8) -> logits (N,), positive for pictures that look real."""
    return nn.Sequential(
        nn.Conv2d(1, WIDTH, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
        nn.Conv2d(WIDTH, 2 * WIDTH, 4, stride=2, padding=1, bias=False), nn.BatchNorm2d(2 * WIDTH), nn.LeakyReLU(0.2),
        nn.Conv2d(2 * WIDTH, 1, 2), nn.Flatten(0),
    )


def initialize(layer: nn.Module) -> None:
    """The paper's first weights: from N(0, 0.02), the scales of batch norm from N(1, 0.02)."""
    if isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(layer.weight, 0.0, 0.02)
    elif isinstance(layer, nn.BatchNorm2d):
        nn.init.normal_(layer.weight, 1.0, 0.02)


def grid(pictures: zoo.Tensor, columns: int, scale: int = 4) -> Image.Image:
    """Pictures (N, 1, H, W) from 0 to 1 side by side with a black line between, enlarged."""
    pictures = nn.functional.pad(pictures, (1, 1, 1, 1))
    _, _, height, width = pictures.shape
    rows = np.round(255 * pictures.cpu().numpy()).astype(np.uint8).reshape(-1, columns, height, width)
    image = Image.fromarray(rows.transpose(0, 2, 1, 3).reshape(-1, columns * width))
    return image.resize((scale * image.width, scale * image.height), Image.Resampling.NEAREST)


def train(generator: nn.Module, discriminator: nn.Module, args: argparse.Namespace) -> None:
    loss = nn.BCEWithLogitsLoss()
    optimizers = [zoo.optim.Adam(m.parameters(), args.lr, betas=(0.5, 0.999)) for m in (generator, discriminator)]
    batches = DataLoader(digits(train=True), args.batch_size, shuffle=True, drop_last=True)
    for epoch in range(1, args.epochs + 1):
        totals = [0.0, 0.0]
        for real, _ in batches:
            real = real.to(args.device)
            fake = generator(zoo.randn(len(real), NOISE, 1, 1, device=args.device))

            judged_real, judged_fake = discriminator(real), discriminator(fake.detach())
            loss_d = loss(judged_real, zoo.full_like(judged_real, 0.9)) + loss(judged_fake, zoo.zeros_like(judged_fake))
            optimizers[1].zero_grad()
            loss_d.backward()
            optimizers[1].step()

            judged = discriminator(fake)
            loss_g = loss(judged, zoo.ones_like(judged))
            optimizers[0].zero_grad()
            loss_g.backward()
            optimizers[0].step()

            totals[0] += loss_g.item() / len(batches)
            totals[1] += loss_d.item() / len(batches)
        print(f"epoch {epoch:2d}  loss of the generator {totals[0]:.3f}, discriminator {totals[1]:.3f}", flush=True)


@zoo.no_grad()
def judge(pictures: zoo.Tensor, args: argparse.Namespace) -> str:
    """What the classifier of real digits says of the pictures."""
    probabilities, classes = hub.load("resnet20_digits", device=args.device)(pictures).softmax(1).max(1)
    counts = np.bincount(classes.cpu().numpy(), minlength=10)
    return (f"classifier: mean probability {probabilities.mean().item():.1%}, {(counts > 0).sum()} of 10 digits "
            f"appear, the rarest in {counts.min() / len(pictures):.1%} of the pictures")


def main() -> None:
    args = options()
    zoo.manual_seed(args.seed)
    generator, discriminator = make_generator().apply(initialize), make_discriminator().apply(initialize)
    train(generator.to(args.device), discriminator.to(args.device), args)
    generator.eval()
    with zoo.no_grad():
        pictures = generator(zoo.randn(1000, NOISE, 1, 1, device=args.device))
    grid(pictures[:100], columns=10).save(args.out)
    print(f"wrote {args.out}")
    print(judge(pictures, args))


if __name__ == "__main__":
    main()
