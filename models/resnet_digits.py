"""The digits model whose weights ship in the package (zoo.models.weights_zoo)."""

from typing import Any

from zoo.models.registry import register
from zoo.models.resnet_cifar import resnet20
from zoo.nn.module import Module


@register
def resnet20_digits(**options: Any) -> Module:
    """resnet20 for the handwritten digits of zoo.data: 10 classes, grey pictures of 8x8; 272,186 parameters."""
    return resnet20(**{"num_classes": 10, "in_chans": 1} | options)
