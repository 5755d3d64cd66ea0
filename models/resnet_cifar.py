"""The small ResNets for CIFAR-sized images: three stages of basic blocks (He et al., 2015, section 4.2).

Names and state_dict keys follow torchvision's ResNet (conv1, bn1, layer1.0.conv1 ..., fc). The shortcuts that change
the shape are 1x1 convolutions (the paper's option B).
"""

from zoo.nn import functional as F  # noqa: N812
from zoo.nn import init
from zoo.nn.containers import Sequential
from zoo.nn.conv import Conv2d
from zoo.nn.linear import Linear
from zoo.nn.module import Module
from zoo.nn.norm import BatchNorm2d


def conv3x3(in_planes: int, out_planes: int, stride: int = 1) -> Conv2d:
    """A 3x3 convolution that keeps the size (at stride 1), without bias: batch norm follows."""
    return Conv2d(in_planes, out_planes, 3, stride, padding=1, bias=False)


class BasicBlock(Module):
    """relu(x + bn(conv(relu(bn(conv(x))))))."""

    def __init__(self, inplanes: int, planes: int, stride: int = 1):
        super().__init__()
        self.conv1, self.bn1 = conv3x3(inplanes, planes, stride), BatchNorm2d(planes)
        self.conv2, self.bn2 = conv3x3(planes, planes), BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or inplanes != planes:
            self.downsample = Sequential(Conv2d(inplanes, planes, 1, stride, bias=False), BatchNorm2d(planes))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + (x if self.downsample is None else self.downsample(x)))


class CifarResNet(Module):
    """ResNet of 6 n + 2 layers for images of about 32x32.

    Shape: (N, in_channels, H, W) -> (N, num_classes); the three stages work at H, H / 2 and H / 4.

    Args:
        blocks: n, the blocks of each stage. num_classes, in_channels: of the data.
        width: channels of the first stage; the others have twice and four times as many.

    Example:
        >>> import zoo
        >>> from zoo.models.resnet_cifar import resnet8
        >>> resnet8(num_classes=10, in_channels=1)(zoo.zeros(2, 1, 8, 8)).shape
        (2, 10)
    """

    def __init__(self, blocks: int, num_classes: int = 10, in_channels: int = 3, width: int = 16):
        super().__init__()
        self.conv1, self.bn1 = conv3x3(in_channels, width), BatchNorm2d(width)
        self.layer1 = stage(width, width, blocks, 1)
        self.layer2 = stage(width, 2 * width, blocks, 2)
        self.layer3 = stage(2 * width, 4 * width, blocks, 2)
        self.fc = Linear(4 * width, num_classes)
        for module in self.modules():
            if isinstance(module, Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


def stage(inplanes: int, planes: int, blocks: int, stride: int) -> Sequential:
    """Blocks of which the first changes channels and size."""
    return Sequential(BasicBlock(inplanes, planes, stride), *(BasicBlock(planes, planes) for _ in range(blocks - 1)))


def resnet8(**options) -> CifarResNet:
    """n = 1; 77,850 parameters for 10 classes of 3-channel images."""
    return CifarResNet(1, **options)


def resnet14(**options) -> CifarResNet:
    """n = 2."""
    return CifarResNet(2, **options)


def resnet20(**options) -> CifarResNet:
    """n = 3; the paper's smallest."""
    return CifarResNet(3, **options)


def resnet56(**options) -> CifarResNet:
    """n = 9."""
    return CifarResNet(9, **options)


MODELS = {f.__name__: f for f in (resnet8, resnet14, resnet20, resnet56)}
