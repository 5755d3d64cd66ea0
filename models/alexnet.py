"""AlexNet in the shape that torchvision gives it (Krizhevsky, 2014, "One weird trick", one column)."""

from typing import Any

from zoo.models.base import PlainConvNet, check_count
from zoo.models.registry import register
from zoo.nn.activation import ReLU
from zoo.nn.containers import Sequential
from zoo.nn.conv import Conv2d
from zoo.nn.dropout import Dropout
from zoo.nn.linear import Linear
from zoo.nn.pooling import AdaptiveAvgPool2d, MaxPool2d


class AlexNet(PlainConvNet):
    """Five convolutions, three max pools, three linear layers; modules and initialisation as torchvision's.

    Shape: (N, in_chans, H, W) -> (N, num_classes); H and W at least 63.

    Args:
        num_classes: outputs of the last layer. dropout: probability, before the first two linear layers.
        in_chans: channels of the picture.

    Example:
        >>> import zoo
        >>> from zoo.models.alexnet import AlexNet
        >>> with zoo.nn.init.skip_init():       # 57 million weights: drawing them takes seconds
        ...     model = AlexNet(num_classes=10)
        >>> model(zoo.zeros(1, 3, 63, 63)).shape
        (1, 10)
    """

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5, in_chans: int = 3):
        super().__init__()
        check_count("AlexNet", "in_chans", in_chans, 1)
        self.num_classes, self.num_features = num_classes, 4096
        self.features = Sequential(
            Conv2d(in_chans, 64, kernel_size=11, stride=4, padding=2),
            ReLU(),
            MaxPool2d(kernel_size=3, stride=2),
            Conv2d(64, 192, kernel_size=5, padding=2),
            ReLU(),
            MaxPool2d(kernel_size=3, stride=2),
            Conv2d(192, 384, kernel_size=3, padding=1),
            ReLU(),
            Conv2d(384, 256, kernel_size=3, padding=1),
            ReLU(),
            Conv2d(256, 256, kernel_size=3, padding=1),
            ReLU(),
            MaxPool2d(kernel_size=3, stride=2),
        )
        self.avgpool = AdaptiveAvgPool2d((6, 6))
        self.classifier = Sequential(
            Dropout(dropout),
            Linear(256 * 6 * 6, 4096),
            ReLU(),
            Dropout(dropout),
            Linear(4096, 4096),
            ReLU(),
            Linear(4096, num_classes),
        )


@register
def alexnet(**options: Any) -> AlexNet:
    """AlexNet: 61,100,840 parameters."""
    return AlexNet(**options)
