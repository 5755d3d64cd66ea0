"""The small ResNets for CIFAR-sized pictures: three stages of basic blocks (He et al., 2015, section 4.2).

Names and state_dict keys follow torchvision's ResNet (conv1, bn1, layer1.0.conv1 ..., fc). The shortcuts that change
the shape are 1x1 convolutions (the paper's option B).
"""

from typing import Any

from zoo.models.base import check_count
from zoo.models.registry import register
from zoo.models.resnet import BasicBlock, ResidualNet, conv3x3
from zoo.nn.activation import ReLU
from zoo.nn.linear import Linear
from zoo.nn.norm import BatchNorm2d
from zoo.nn.pooling import AdaptiveAvgPool2d


class CifarResNet(ResidualNet):
    """ResNet of 6 n + 2 layers for pictures of about 32x32.

    Shape: (N, in_chans, H, W) -> (N, num_classes); the three stages work at H, H / 2 and H / 4.

    Args:
        blocks: n, the blocks of each stage. num_classes, in_chans: of the data.
        width: channels of the first stage; the others have twice and four times as many.

    Raises:
        ValueError: in_chans below 1.

    Example:
        >>> import zoo
        >>> from zoo.models.resnet_cifar import resnet8
        >>> resnet8(num_classes=10, in_chans=1)(zoo.zeros(2, 1, 8, 8)).shape
        (2, 10)
    """

    def __init__(self, blocks: int, num_classes: int = 10, in_chans: int = 3, width: int = 16):
        super().__init__()
        check_count("CifarResNet", "in_chans", in_chans, 1)
        self.num_classes = num_classes
        self.conv1 = conv3x3(in_chans, width)
        self.bn1 = BatchNorm2d(width)
        self.relu = ReLU()
        self.add_stages(BasicBlock, [(width * 2**i, blocks, min(i, 1) + 1, False) for i in range(3)], 1)
        self.avgpool = AdaptiveAvgPool2d((1, 1))
        self.fc = Linear(self.num_features, num_classes)


@register
def resnet8(**options: Any) -> CifarResNet:
    """n = 1; 78,042 parameters for 10 classes of 3-channel pictures."""
    return CifarResNet(1, **options)


@register
def resnet14(**options: Any) -> CifarResNet:
    """n = 2; 175,258 parameters."""
    return CifarResNet(2, **options)


@register
def resnet20(**options: Any) -> CifarResNet:
    """n = 3, the paper's smallest; 272,474 parameters."""
    return CifarResNet(3, **options)


@register
def resnet32(**options: Any) -> CifarResNet:
    """n = 5; 466,906 parameters."""
    return CifarResNet(5, **options)


@register
def resnet44(**options: Any) -> CifarResNet:
    """n = 7; 661,338 parameters."""
    return CifarResNet(7, **options)


@register
def resnet56(**options: Any) -> CifarResNet:
    """n = 9; 855,770 parameters."""
    return CifarResNet(9, **options)


@register
def resnet110(**options: Any) -> CifarResNet:
    """n = 18; 1,730,714 parameters."""
    return CifarResNet(18, **options)


MODELS = {f.__name__: f for f in (resnet8, resnet14, resnet20, resnet32, resnet44, resnet56, resnet110)}
