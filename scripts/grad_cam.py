"""Where a model sees a class: a picture beside itself under a heat map (Grad-CAM, https://arxiv.org/abs/1610.02391).

    python scripts/grad_cam.py --out cam.png                                  # a digit of the test set
    python scripts/grad_cam.py cat.jpg --model resnet50 --class-name tabby    # weights from the Hub
    python scripts/grad_cam.py cat.jpg --model resnet50 --layer layer3        # finer, and less sure of the class
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

import zoo
from zoo import hub
from zoo.data import digits
from zoo.data.transforms import ToPILImage
from zoo.utils.grad_cam import grad_cam

SIDE = 224                                             # pixels of each picture in the output


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", nargs="?", help="a picture file (default: a digit of the test set)")
    parser.add_argument("--model", default="resnet20_digits", help="a name as hub.load takes it (resnet20_digits)")
    parser.add_argument("--layer", help="path of the module to look at (default: the model's last feature map)")
    parser.add_argument("--class-name", help="the class to look for (default: the most probable one)")
    parser.add_argument("--digit", type=int, default=7, help="number of the test digit (7)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    parser.add_argument("--out", type=Path, default=Path("grad_cam.png"))
    return parser.parse_args()


def heat(values: np.ndarray) -> np.ndarray:
    """Numbers from 0 to 1 (H, W) as colours (H, W, 3) from 0 to 1: blue, green, red (the "jet" colour map)."""
    return np.clip(1.5 - np.abs(4 * values[..., None] - np.array([3.0, 2.0, 1.0])), 0, 1)


def shown(pixels: np.ndarray) -> np.ndarray:
    """Numbers (C, H, W) of any range as colours (SIDE, SIDE, 3) from 0 to 1."""
    low, high = pixels.min(), pixels.max()
    colours = np.broadcast_to((pixels - low) / (high - low + 1e-12), (3, *pixels.shape[1:])).transpose(1, 2, 0)
    return enlarged(colours)


def enlarged(colours: np.ndarray) -> np.ndarray:
    """Colours (H, W, 3) from 0 to 1 as (SIDE, SIDE, 3)."""
    image = Image.fromarray(np.round(255 * colours).astype(np.uint8))
    return np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR)) / 255


def main() -> None:
    args = options()
    model = hub.load(args.model, device=args.device)
    picture = args.picture or ToPILImage()(digits(train=False)[args.digit][0])
    images = model.preprocess([picture]).to(args.device)
    layer = args.layer or model.feature_info[-1].module

    with zoo.no_grad():
        probabilities = model(images).softmax(1)[0]
    chosen = probabilities.argmax().item() if args.class_name is None else model.labels.index(args.class_name)
    cam = grad_cam(model, layer, images, zoo.tensor([chosen], device=args.device))[0]
    print(f"{model.labels[chosen]}: probability {probabilities[chosen].item():.1%}, seen in {layer}")

    values = cam.cpu().numpy()
    row, column = np.unravel_index(values.argmax(), values.shape)
    print(f"the heat map is highest at row {row}, column {column} of {values.shape[0]} x {values.shape[1]}")
    plain = shown(images[0].cpu().numpy())
    overlay = 0.5 * plain + 0.5 * enlarged(heat(values))
    both = np.concatenate([plain, overlay], axis=1)
    Image.fromarray(np.round(255 * both).astype(np.uint8)).save(args.out)
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
