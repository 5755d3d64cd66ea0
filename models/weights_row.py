"""What is said about one file of pretrained weights: source, hash, licence, accuracy, preprocessing. Data, no code."""

import re
from dataclasses import dataclass

from zoo.data.transforms.presets import IMAGENET_MEAN, IMAGENET_STD


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """The picture a model expects: shorter side to `resize`, centre `crop`, values in [0, 1], (x - mean) / std.

    Args:
        resize: pixels of the shorter side after resizing (antialiased). crop: pixels of the centre square.
        interpolation: "nearest", "bilinear" or "bicubic".
        mean, std: one number per channel, for values in [0, 1]. channels: 1 (grey) or 3 (RGB).

    Example:
        >>> Preprocessing.timm(288, 1.0, "bicubic").resize
        288
    """

    resize: int = 256
    crop: int = 224
    interpolation: str = "bilinear"
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD
    channels: int = 3

    @classmethod
    def timm(cls, resolution: int, crop_pct: float, interpolation: str) -> "Preprocessing":
        """timm's rule for the resized side: floor(resolution / crop_pct)."""
        return cls(int(resolution / crop_pct), resolution, interpolation)


@dataclass(frozen=True, slots=True)
class Metric:
    """Accuracy in percent, and the side of the pictures and the crop_pct at which it was measured (None: unknown)."""

    top1: float
    top5: float | None
    resolution: int
    crop_pct: float | None = None
    dataset: str = "ImageNet-1k"


@dataclass(frozen=True, slots=True)
class Weights:
    """One file of pretrained weights.

    Args:
        model: a name of the model registry, "resnet50". tag: which of its weights, "a1_in1k".
        source: "hf://owner/repo/file@revision", "https://host/file" or "package://package/file".
        licence: SPDX name in lower case. parameters: how many the model has.
        sha256: of the file, 64 hex digits, where somebody has seen it. sha256_prefix: its first digits otherwise.
        md5: of the file, 32 hex digits, where its source publishes one.
        size: bytes, where exactly known. size_text: the size as its source prints it.
        metrics: accuracies that the source publishes. preprocessing: what pictures go through (None: no pictures).
        bits_per_character: of a language model, on the text that the note names.
        key_map: the function of zoo.models.key_maps that turns the file's keys into the model's.
        dtype: of the stored numbers. num_classes: rows of the classifier. labels: the name of the classes' list.
        note: what else a user should know.

    Raises:
        ValueError: a hash that is none, or a source of another kind.

    Example:
        >>> row = Weights("resnet18", "mine", "package://zoo.models/mine.safetensors", "apache-2.0", 11_689_512)
        >>> row.name, row.revision_seen
        ('resnet18.mine', True)
    """

    model: str
    tag: str
    source: str
    licence: str
    parameters: int
    sha256: str | None = None
    sha256_prefix: str | None = None
    md5: str | None = None
    size: int | None = None
    size_text: str = ""
    metrics: tuple[Metric, ...] = ()
    preprocessing: Preprocessing | None = None
    key_map: str = "same"
    dtype: str = "float32"
    num_classes: int = 1000
    labels: str | None = "imagenet"
    note: str = ""
    bits_per_character: float | None = None

    def __post_init__(self):
        if not re.match(r"hf://[^/]+/[^/]+/[^@]+@[^@]+$|https://[^/]+/.+$|package://[\w.]+/.+$", self.source):
            raise ValueError(f"Weights: {self.name}: wants hf://, https:// or package:// as source, got {self.source}")
        if self.sha256 is not None and not re.fullmatch("[0-9a-f]{64}", self.sha256):
            raise ValueError(f"Weights: {self.name}: wants a sha256 of 64 hex digits, got {self.sha256!r}")
        if self.sha256_prefix is not None and not re.fullmatch("[0-9a-f]{8,63}", self.sha256_prefix):
            raise ValueError(f"Weights: {self.name}: wants a prefix of 8 to 63 hex digits, got {self.sha256_prefix!r}")
        if self.md5 is not None and not re.fullmatch("[0-9a-f]{32}", self.md5):
            raise ValueError(f"Weights: {self.name}: wants an md5 of 32 hex digits, got {self.md5!r}")

    @property
    def name(self) -> str:
        """model.tag."""
        return f"{self.model}.{self.tag}"

    @property
    def revision(self) -> str | None:
        """The revision of a Hub repository; None for other sources."""
        return self.source.rpartition("@")[2] if self.source.startswith("hf://") else None

    @property
    def revision_seen(self) -> bool:
        """Whether the source names one version for good: a full commit, or no Hub repository at all."""
        return self.revision is None or bool(re.fullmatch("[0-9a-f]{40}", self.revision))
