"""What the image classifiers share: stages, classifier, the number of input channels, feature pyramids."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from zoo.autograd.mode import no_grad
from zoo.autograd.tensor import Tensor
from zoo.nn import init
from zoo.nn.conv import Conv2d
from zoo.nn.linear import Identity, Linear
from zoo.nn.module import Module
from zoo.nn.pooling import MaxPool2d
from zoo.ops.errors import ShapeError


class Stage(NamedTuple):
    """One stage of a model: the module whose output it is, its channels, and how much smaller than the input it is."""

    module: str
    num_chs: int
    reduction: int


class FeatureInfo(tuple):
    """The stages of a model, finest first, with timm's names for their columns."""

    def channels(self) -> list[int]:
        """The channels of every stage."""
        return [stage.num_chs for stage in self]

    def reduction(self) -> list[int]:
        """How much smaller than the input every stage is, along each side."""
        return [stage.reduction for stage in self]

    def module_name(self) -> list[str]:
        """The module whose output every stage is."""
        return [stage.module for stage in self]


def check_count(owner: str, name: str, value: Any, least: int) -> None:
    """Raises unless value is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{owner}: wants {name} of at least {least}, got {value!r}")


class ImageModel(Module):
    """Base class of the image classifiers: stages of feature maps, average pooling, a head with the classifier.

    A family's class says the paths of its first convolution and of its last layer, writes `stages`, and has the
    modules `avgpool` and, as first part of the classifier's path, the head.

    Shape: (N, in_chans, H, W) -> (N, num_classes).
    """

    first_conv: str
    classifier_name: str
    feature_info: FeatureInfo

    @property
    def head_name(self) -> str:
        """The child module that follows the average pooling: "fc", or "classifier" of "classifier.6"."""
        return self.classifier_name.partition(".")[0]

    def stages(self, x: Tensor) -> Iterator[Tensor]:
        """The outputs of the stages in `feature_info`, each computed when it is asked for."""
        raise NotImplementedError(f"{type(self).__name__}: write stages")

    def forward_features(self, x: Tensor) -> Tensor:
        """The last feature map, (N, C, H', W')."""
        for y in self.stages(x):
            x = y
        return x

    def forward_head(self, x: Tensor) -> Tensor:
        """From the last feature map to (N, num_classes)."""
        return getattr(self, self.head_name)(self.avgpool(x).flatten(1))

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(x))

    def get_classifier(self) -> Module:
        """The last layer: a Linear, or an Identity after reset_classifier(0)."""
        return self.get_submodule(self.classifier_name)

    def reset_classifier(self, num_classes: int) -> None:
        """Replaces the last layer by a fresh one, on the same device and of the same dtype.

        Args:
            num_classes: outputs of the new layer; 0 for an Identity, so that the model gives features.

        Raises:
            ValueError: num_classes is no whole number of at least 0.
        """
        check_count("reset_classifier", "num_classes", num_classes, 0)
        layer, like = Identity(), next(self.parameters())
        if num_classes:
            layer = Linear(self.num_features, num_classes, device=like.device, dtype=like.dtype)
            self.init_layer(layer)
        layer.train(self.training)
        path, _, name = self.classifier_name.rpartition(".")
        setattr(self.get_submodule(path), name, layer)
        self.num_classes = num_classes

    def init_layer(self, layer: Module) -> None:
        """Draws a layer's weights as the family does; without a rule of its own, they stay as the layer drew them."""


class PlainConvNet(ImageModel):
    """What AlexNet and VGG share: convolutions in a row (`features`), average pooling, linear layers (`classifier`).

    Its stages are what the max pools get, and the end.
    """

    first_conv, classifier_name = "features.0", "classifier.6"

    @property
    def feature_info(self) -> FeatureInfo:
        """The stages, read from `features`."""
        rows, channels, reduction, before = [], 0, 1, ""
        for name, layer in self.features._modules.items():
            if isinstance(layer, MaxPool2d):
                rows.append(Stage(before, channels, reduction))
                reduction *= layer.stride
            elif isinstance(layer, Conv2d):
                channels, reduction = layer.out_channels, reduction * layer.stride[0]
            before = f"features.{name}"
        return FeatureInfo([*rows, Stage(before, channels, reduction)])

    def stages(self, x: Tensor) -> Iterator[Tensor]:
        ends = set(self.feature_info.module_name())
        for name, layer in self.features._modules.items():
            x = layer(x)
            if f"features.{name}" in ends:
                yield x

    def forward_features(self, x: Tensor) -> Tensor:
        return self.features(x)


class FeaturePyramid(Module):
    """The backbone of an image model; calling it gives the list of its stages' outputs, finest first.

    Shape: (N, in_chans, H, W) -> [(N, num_chs, about H / reduction, about W / reduction), ...].

    The model becomes `backbone`; its head is taken off. Stages deeper than the last one asked for are not run.

    Args:
        model: an ImageModel (ResNet, VGG ...).
        out_indices: positions in `model.feature_info`, negative ones from the end; None: all.

    Raises:
        TypeError: the model has no stages. ValueError: no such stage.

    Example:
        >>> import zoo
        >>> from zoo import models
        >>> pyramid = models.resnet20(features_only=True, out_indices=(1, -1))
        >>> [y.shape for y in pyramid(zoo.ones(1, 3, 32, 32))]
        [(1, 16, 32, 32), (1, 64, 8, 8)]
        >>> pyramid.feature_info.channels(), pyramid.feature_info.reduction(), pyramid.feature_info.module_name()
        ([16, 64], [1, 4], ['layer1', 'layer3'])
    """

    def __init__(self, model: Module, out_indices: Iterable[int] | None = None):
        super().__init__()
        if not isinstance(model, ImageModel):
            raise TypeError(f"features_only: wants an image model with named stages, got {type(model).__name__}")
        rows = model.feature_info
        count = len(rows)
        asked = tuple(range(count) if out_indices is None else out_indices)
        if not asked or any(not -count <= i < count for i in asked):
            raise ValueError(f"features_only: wants out_indices from {-count} to {count - 1}, got {out_indices!r}")
        self.out_indices = sorted({i % count for i in asked})
        self.feature_info = FeatureInfo(rows[i] for i in self.out_indices)
        setattr(model, model.head_name, Identity())
        self.backbone = model

    def forward(self, x: Tensor) -> list[Tensor]:
        found = []
        for index, y in enumerate(self.backbone.stages(x)):
            if index in self.out_indices:
                found.append(y)
            if index == self.out_indices[-1]:
                break
        return found


@no_grad()
def adapt_in_chans(weight: Tensor, in_chans: int) -> Tensor:
    """The weights of a first convolution on RGB for another number of input channels, as timm adapts them.

    1: the sum over RGB, so that a grey picture gives what it gave as three equal channels. n: R, G, B, R ... scaled by
    3 / n, so that n equal channels give what three gave.

    Args:
        weight: (out_channels, 3, KH, KW), floating.
        in_chans: at least 1.

    Returns:
        (out_channels, in_chans, KH, KW); the weight itself where in_chans is 3.

    Raises:
        ShapeError (ValueError): the weight is not one on 3 channels. ValueError: in_chans below 1.

    Example:
        >>> import zoo
        >>> from zoo.models.base import adapt_in_chans
        >>> rgb = zoo.tensor([1.0, 2.0, 3.0]).reshape(1, 3, 1, 1)
        >>> adapt_in_chans(rgb, 1).flatten(), adapt_in_chans(rgb, 4).flatten()
        (tensor([6.]), tensor([0.7500, 1.5000, 2.2500, 0.7500]))
    """
    check_count("adapt_in_chans", "in_chans", in_chans, 1)
    if weight.ndim != 4 or weight.shape[1] != 3:
        raise ShapeError(f"adapt_in_chans: wants a weight (out_channels, 3, KH, KW), got {tuple(weight.shape)}")
    if in_chans == 3:
        return weight
    if in_chans == 1:
        return weight.sum(1, keepdim=True)
    return weight[:, [channel % 3 for channel in range(in_chans)]] * (3 / in_chans)


def he_conv2d(in_channels: int, out_channels: int, kernel_size: int, **options: Any) -> Conv2d:
    """A Conv2d without bias, as batch norm follows; weights from N(0, 2 / fan_out) (He et al., 2015, equation 14)."""
    with init.skip_init():
        conv = Conv2d(in_channels, out_channels, kernel_size, bias=False, **options)
    init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return conv
