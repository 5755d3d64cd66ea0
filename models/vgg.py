"""VGG with 11, 13, 16 and 19 layers, with and without batch norm (Simonyan and Zisserman, 2014, table 1)."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from zoo.models.base import PlainConvNet, check_count
from zoo.models.registry import register
from zoo.nn import init
from zoo.nn.activation import ReLU
from zoo.nn.containers import Sequential
from zoo.nn.conv import Conv2d
from zoo.nn.dropout import Dropout
from zoo.nn.linear import Linear
from zoo.nn.module import Module
from zoo.nn.norm import BatchNorm2d
from zoo.nn.pooling import AdaptiveAvgPool2d, MaxPool2d

# Columns of the paper's table: channels of the 3x3 convolutions of each of the five blocks; a max pool ends each block.
VGG11 = ((64,), (128,), (256,) * 2, (512,) * 2, (512,) * 2)
VGG13 = ((64,) * 2, (128,) * 2, (256,) * 2, (512,) * 2, (512,) * 2)
VGG16 = ((64,) * 2, (128,) * 2, (256,) * 3, (512,) * 3, (512,) * 3)
VGG19 = ((64,) * 2, (128,) * 2, (256,) * 4, (512,) * 4, (512,) * 4)


class VGG(PlainConvNet):
    """3x3 convolutions with max pools between, then three linear layers; modules and initialisation as torchvision's.

    Shape: (N, in_chans, H, W) -> (N, num_classes); H and W at least 32.

    Args:
        features: from the picture to 512 channels; see make_layers.
        num_classes: outputs of the last layer.
        init_weights: convolutions from N(0, 2 / fan_out), linear layers from N(0, 0.01^2), biases 0; without, every
            layer keeps its own initialisation.
        dropout: probability, after the first two linear layers.

    Example:
        >>> import zoo
        >>> from zoo.models.vgg import VGG, VGG11, make_layers
        >>> with zoo.nn.init.skip_init():       # 129 million weights: drawing them takes seconds
        ...     model = VGG(make_layers(VGG11), num_classes=10)
        >>> model(zoo.zeros(1, 3, 32, 32)).shape
        (1, 10)
    """

    def __init__(self, features: Module, num_classes: int = 1000, init_weights: bool = True, dropout: float = 0.5):
        super().__init__()
        self.num_classes, self.num_features = num_classes, 4096
        self.features = features
        self.avgpool = AdaptiveAvgPool2d((7, 7))
        with init.skip_init() if init_weights else nullcontext():  # 120 million weights: drawn once, below
            self.classifier = Sequential(
                Linear(512 * 7 * 7, 4096),
                ReLU(),
                Dropout(dropout),
                Linear(4096, 4096),
                ReLU(),
                Dropout(dropout),
                Linear(4096, num_classes),
            )
        if init_weights:
            for layer in self.modules():
                self.init_layer(layer)

    def init_layer(self, layer: Module) -> None:
        """Draws a layer's weights as torchvision does."""
        if isinstance(layer, Conv2d):
            init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(layer, Linear):
            init.normal_(layer.weight, 0, 0.01)
        if isinstance(layer, (Conv2d, Linear)) and layer.bias is not None:
            init.zeros_(layer.bias)


def make_layers(blocks: Sequence[Sequence[int]], batch_norm: bool = False, in_chans: int = 3) -> Sequential:
    """The convolutions of a VGG: for each block its 3x3 convolutions with (batch norm and) relu, then a max pool.

    Args:
        blocks: the output channels of the convolutions of every block. in_chans: channels of the picture.
    """
    check_count("VGG", "in_chans", in_chans, 1)
    layers, channels = [], in_chans
    for block in blocks:
        for width in block:
            conv = Conv2d(channels, width, kernel_size=3, padding=1)
            layers += [conv, BatchNorm2d(width), ReLU()] if batch_norm else [conv, ReLU()]
            channels = width
        layers.append(MaxPool2d(kernel_size=2, stride=2))
    return Sequential(*layers)


def make_vgg(blocks: Sequence[Sequence[int]], batch_norm: bool, in_chans: int = 3, **options: Any) -> VGG:
    """A VGG of these blocks."""
    return VGG(make_layers(blocks, batch_norm, in_chans), **options)


@register
def vgg11(**options: Any) -> VGG:
    """VGG-11 (configuration A): 132,863,336 parameters."""
    return make_vgg(VGG11, False, **options)


@register
def vgg11_bn(**options: Any) -> VGG:
    """VGG-11 with batch norm: 132,868,840 parameters."""
    return make_vgg(VGG11, True, **options)


@register
def vgg13(**options: Any) -> VGG:
    """VGG-13 (configuration B): 133,047,848 parameters."""
    return make_vgg(VGG13, False, **options)


@register
def vgg13_bn(**options: Any) -> VGG:
    """VGG-13 with batch norm: 133,053,736 parameters."""
    return make_vgg(VGG13, True, **options)


@register
def vgg16(**options: Any) -> VGG:
    """VGG-16 (configuration D): 138,357,544 parameters."""
    return make_vgg(VGG16, False, **options)


@register
def vgg16_bn(**options: Any) -> VGG:
    """VGG-16 with batch norm: 138,365,992 parameters."""
    return make_vgg(VGG16, True, **options)


@register
def vgg19(**options: Any) -> VGG:
    """VGG-19 (configuration E): 143,667,240 parameters."""
    return make_vgg(VGG19, False, **options)


@register
def vgg19_bn(**options: Any) -> VGG:
    """VGG-19 with batch norm: 143,678,248 parameters."""
    return make_vgg(VGG19, True, **options)
