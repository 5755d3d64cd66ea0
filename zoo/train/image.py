"""Classifying pictures: the data, the model and the loss of a run."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import zoo
from zoo.autograd.random import Generator
from zoo.checkpoint import FileError
from zoo.data import DataLoader, TensorDataset, digits
from zoo.data.transforms import ClassificationPresetTrain, CutMix, ImageClassification, MixUp
from zoo.hub import HubError, load
from zoo.models.weights_row import Preprocessing
from zoo.models.weights_zoo import DIGITS as DIGITS_ROW
from zoo.nn import functional as F  # noqa: N812
from zoo.train.config import DIGITS, Config, resolved
from zoo.train.pictures import Pictures, collate, find_parts, hold_out, spread
from zoo.utils.command_line import UsageError

EVAL_BATCH = 360


class Batch(NamedTuple):
    """Pictures (N, C, H, W) on the device (None: all were broken), classes (N,), numbers (N,), broken files."""

    images: Any
    labels: Any
    numbers: Any
    broken: list[str]


class ImageTask:
    """Classes of pictures, from the embedded digits or from a folder.

    Args:
        config: of the run; `self.config` is the same with all defaults resolved.

    Raises:
        UsageError: data or options that do not fit together.
    """

    def __init__(self, config: Config):
        self.config = config = resolved(config)
        self.parts = {} if config.data == DIGITS else find_parts(config.data)
        self.classes = self.parts["train"].classes if self.parts else [str(k) for k in range(10)]
        self.model = self.make_model()
        self.preprocessing = self.make_preprocessing()
        self.config = replace(config, size=self.preprocessing.crop)
        self.loaders: dict[str, DataLoader] = {}
        self.datasets = self.folder_sets() if self.parts else self.digits_sets()
        self.weight = self.class_weight() if config.class_weights == "balanced" else None
        mixes = {MixUp: config.mixup, CutMix: config.cutmix}
        self.mixes = [kind(alpha=alpha, num_classes=len(self.classes)) for kind, alpha in mixes.items() if alpha]

    def make_model(self) -> Any:
        """The model with its pretrained or fresh weights and a classifier for the classes.

        Raises:
            UsageError: no such weights, or not of this model. HubError, FileError: they are not to be had or read.
        """
        config = self.config
        options = {} if config.width is None else {"width": config.width}
        weights = None if config.weights == "none" else config.weights
        channels = 3 if self.parts else 1
        try:
            return load(config.model, weights, num_classes=len(self.classes), in_chans=channels, device=config.device,
                        **options)
        except (HubError, FileError):
            raise
        except (TypeError, ValueError) as error:
            raise UsageError(f"--model {config.model} --weights {config.weights}: {error}") from None

    def make_preprocessing(self) -> Preprocessing:
        """What pictures go through: as the weights expect it, at the size asked for."""
        known = DIGITS_ROW.preprocessing if not self.parts else getattr(self.model.preprocess, "preprocessing", None)
        found = known or Preprocessing()
        size = self.config.size
        return found if size in (None, found.crop) else replace(found, crop=size, resize=round(size / 0.875))

    def folder_sets(self) -> dict[str, Any]:
        """The parts of a folder as datasets; without a val/ it is cut from the training pictures."""
        config, p = self.config, self.preprocessing
        numbers = {part: np.arange(len(folder)) for part, folder in self.parts.items()}
        folders = {"val": self.parts["train"], **self.parts}
        if "val" not in numbers:
            numbers["train"], numbers["val"] = hold_out(len(numbers["train"]), config.val_fraction, config.seed)
        plain = ImageClassification(crop_size=p.crop, resize_size=p.resize, mean=p.mean, std=p.std,
                                    interpolation=p.interpolation)
        policy = None if config.augment == "crop" else config.augment
        train = plain if config.augment == "none" else ClassificationPresetTrain(
            crop_size=p.crop, mean=p.mean, std=p.std, interpolation=p.interpolation, auto_augment_policy=policy,
            random_erase_prob=config.erase)
        return {
            part: Pictures(folders[part], spread(chosen, config.limit), train if part == "train" else plain)
            for part, chosen in numbers.items() if len(chosen)
        }

    def digits_sets(self) -> dict[str, TensorDataset]:
        """The embedded digits with the numbers of the samples; on the device, unless workers hand them out."""
        config = self.config
        place = "cpu" if config.workers else config.device
        train, test = (digits(train=part).tensors for part in (True, False))
        learned, held = hold_out(len(train[0]), config.val_fraction, config.seed)
        parts = {"train": train, "test": test}
        if len(held):
            parts |= {"train": [t[learned] for t in train], "val": [t[held] for t in train]}
        cut = {part: [t[: config.limit or None].to(place) for t in tensors] for part, tensors in parts.items()}
        return {part: TensorDataset(*tensors, zoo.arange(len(tensors[0]), device=place))
                for part, tensors in cut.items()}

    def labels(self, part: str) -> np.ndarray:
        """The classes of a part's samples."""
        dataset = self.datasets[part]
        return dataset.tensors[1].cpu().numpy() if isinstance(dataset, TensorDataset) else dataset.labels()

    def class_weight(self) -> Any:
        """n / (classes * n_c) for each class c."""
        counts = np.bincount(self.labels("train"), minlength=len(self.classes))
        if not counts.all():
            raise UsageError("--class-weights balanced: wants training pictures of every class, "
                             f"there are none of {self.classes[int(counts.argmin())]}")
        return zoo.tensor((counts.sum() / (len(counts) * counts)).astype(np.float32), device=self.config.device)

    def batches(self, part: str) -> DataLoader:
        """The loader of a part, always the same one: its workers live on."""
        if part not in self.loaders:
            self.loaders[part] = self.make_loader(part)
        return self.loaders[part]

    def make_loader(self, part: str) -> DataLoader:
        """A loader. Only that of the training part draws from the global generator."""
        config, train = self.config, part == "train"
        options: dict[str, Any] = {"shuffle": True} if train else {"generator": Generator().manual_seed(config.seed)}
        if self.parts:
            options |= {"collate_fn": collate, "pin_memory": True}
        if config.workers and (self.parts or train):  # digits that are tested lie ready
            options |= {"num_workers": config.workers, "persistent_workers": True}
        return DataLoader(self.datasets[part], config.batch_size if train or self.parts else EVAL_BATCH, **options)

    def batch(self, loaded: list[Any]) -> Batch:
        """What a loader gives, on the device."""
        images, labels, numbers, *broken = loaded
        device = self.config.device
        if images is None:
            return Batch(None, labels, numbers, broken[0])
        images, labels = (x.to(device, non_blocking=True) for x in (images, labels))
        return Batch(images, labels, numbers, broken[0] if broken else [])

    def training_pair(self, batch: Batch) -> tuple[Any, Any]:
        """The pictures and targets to train with: digits shifted, pictures mixed."""
        images, targets = batch.images, batch.labels
        if not self.parts:
            images = shifted(images, self.config.shift)
        if self.mixes:
            turn = zoo.randint(0, len(self.mixes), (1,)).item() if len(self.mixes) > 1 else 0
            images, targets = self.mixes[int(turn)](images, targets)
        return images, targets

    def loss(self, logits: Any, targets: Any) -> Any:
        """What is made small."""
        return F.cross_entropy(logits, targets, weight=self.weight, label_smoothing=self.config.label_smoothing)

    def evaluated(self, model: Any, images: Any) -> Any:
        """The model's logits; with --tta the mean over each picture and its mirror image."""
        logits = model(images)
        return (logits + model(images.flip(-1))) / 2 if self.config.tta else logits

    def picture(self, part: str, number: int) -> tuple[Any, Any]:
        """A sample as the model's input (C, H, W), and as a PIL image of the same frame."""
        from PIL import Image

        dataset = self.datasets[part]
        x = dataset[number][0].cpu()
        p = self.preprocessing
        mean, std = (np.array(v, np.float32).reshape(-1, 1, 1) for v in (p.mean, p.std))
        pixels = np.clip(x.numpy() * std + mean, 0, 1) * 255
        shown = np.broadcast_to(np.rint(pixels).astype(np.uint8).transpose(1, 2, 0), (*x.shape[1:], 3))
        return x, Image.fromarray(np.ascontiguousarray(shown))


def shifted(images: Any, most: int) -> Any:
    """Each image (N, 1, H, W) moved by up to `most` pixels up or down and left or right; zeros come in."""
    if not most:
        return images
    n, _, height, width = images.shape
    down, right = zoo.randint(0, 2 * most + 1, (2, n, 1, 1), device=images.device)
    rows = zoo.arange(height, device=images.device).view(1, height, 1) + down
    columns = zoo.arange(width, device=images.device).view(1, 1, width) + right
    sample = zoo.arange(n, device=images.device).view(n, 1, 1)
    return F.pad(images, (most,) * 4)[:, 0][sample, rows, columns].unsqueeze(1)

