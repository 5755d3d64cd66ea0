"""ResNet (He et al., 2015), ResNeXt (Xie et al., 2016) and Wide ResNet (Zagoruyko and Komodakis, 2016) for ImageNet.

The stride of a bottleneck lies in its 3x3 convolution ("v1.5"), as in torchvision.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from zoo.autograd.tensor import Tensor
from zoo.models.base import FeatureInfo, ImageModel, Stage, check_count, he_conv2d
from zoo.models.registry import register
from zoo.nn import init
from zoo.nn.activation import ReLU
from zoo.nn.containers import Sequential
from zoo.nn.conv import Conv2d
from zoo.nn.fusion import conv_norm_act
from zoo.nn.linear import Linear
from zoo.nn.module import Module
from zoo.nn.norm import BatchNorm2d
from zoo.nn.pooling import AdaptiveAvgPool2d, MaxPool2d

Norm = Callable[[int], Module]


def conv3x3(in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> Conv2d:
    """A 3x3 convolution that keeps the size at stride 1."""
    return he_conv2d(in_planes, out_planes, 3, stride=stride, padding=dilation, groups=groups, dilation=dilation)


def conv1x1(in_planes: int, out_planes: int, stride: int = 1) -> Conv2d:
    """A 1x1 convolution."""
    return he_conv2d(in_planes, out_planes, 1, stride=stride)


class BasicBlock(Module):
    """relu(x + bn(conv3x3(relu(bn(conv3x3(x)))))), x through `downsample` where the shape changes.

    Shape: (N, inplanes, H, W) -> (N, planes, ceil(H / stride), ceil(W / stride)).

    Args:
        inplanes, planes: channels. stride: of the first convolution.
        downsample: brings x to the output's shape; None where it has it.
        groups, base_width, dilation: only 1, 64 and 1; they are there because Bottleneck has them.
        norm_layer: makes a normalisation for a number of channels; None: BatchNorm2d.

    Raises:
        ValueError: groups, base_width or dilation are others.
    """

    expansion = 1
    conv_norms = ("conv1", "bn1"), ("conv2", "bn2")

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Norm | None = None,
    ):
        super().__init__()
        if (groups, base_width, dilation) != (1, 64, 1):
            got = f"groups={groups}, base_width={base_width}, dilation={dilation}"
            raise ValueError(f"BasicBlock: wants groups=1, base_width=64, dilation=1, got {got}")
        norm_layer = norm_layer or BatchNorm2d
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = ReLU()
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = conv_norm_act(x, self.conv1, self.bn1, self.relu)
        return conv_norm_act(x, self.conv2, self.bn2, self.relu, shortcut)


class Bottleneck(Module):
    """relu(x + conv1x1(conv3x3(conv1x1(x)))) with batch norm and relu between, x through `downsample` where needed.

    Shape: (N, inplanes, H, W) -> (N, 4 planes, ceil(H / stride), ceil(W / stride)). The 3x3 convolution has
    groups * floor(planes * base_width / 64) channels.

    Args:
        inplanes, planes: channels. stride, groups, dilation: of the 3x3 convolution.
        downsample: brings x to the output's shape; None where it has it.
        base_width: channels of a group at 64 planes.
        norm_layer: makes a normalisation for a number of channels; None: BatchNorm2d.
    """

    expansion = 4
    conv_norms = ("conv1", "bn1"), ("conv2", "bn2"), ("conv3", "bn3")

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Norm | None = None,
    ):
        super().__init__()
        norm_layer = norm_layer or BatchNorm2d
        width = int(planes * (base_width / 64)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm_layer(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = ReLU()
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = conv_norm_act(x, self.conv1, self.bn1, self.relu)
        x = conv_norm_act(x, self.conv2, self.bn2, self.relu)
        return conv_norm_act(x, self.conv3, self.bn3, self.relu, shortcut)


Block = type[BasicBlock] | type[Bottleneck]


class ResidualNet(ImageModel):
    """What the ResNets for ImageNet and for CIFAR share: a first convolution, stages of blocks, one linear layer."""

    first_conv, classifier_name = "conv1", "fc"
    conv_norms = (("conv1", "bn1"),)

    def add_stages(
        self,
        block: Block,
        plan: Sequence[tuple[int, int, int, bool]],
        reduction: int,
        groups: int = 1,
        base_width: int = 64,
        norm_layer: Norm = BatchNorm2d,
    ) -> None:
        """Adds layer1, layer2 ... and says in feature_info what they give.

        Args:
            plan: for every stage its planes, its blocks, the stride of its first block, and whether the stage dilates
                its convolutions instead of taking that stride.
            reduction: how much smaller than the picture the first stage's input is.
        """
        channels, dilation = self.conv1.out_channels, 1
        info = [Stage("relu", channels, self.conv1.stride[0])]
        for number, (planes, blocks, stride, dilate) in enumerate(plan, 1):
            shared = {"groups": groups, "base_width": base_width, "norm_layer": norm_layer}
            before = dilation
            if dilate:
                dilation, stride = dilation * stride, 1
            out = planes * block.expansion
            downsample = None
            if stride != 1 or channels != out:
                downsample = Sequential(conv1x1(channels, out, stride), norm_layer(out))
            first = block(channels, planes, stride, downsample, dilation=before, **shared)
            rest = (block(out, planes, dilation=dilation, **shared) for _ in range(blocks - 1))
            self.add_module(f"layer{number}", Sequential(first, *rest))
            channels, reduction = out, reduction * stride
            info.append(Stage(f"layer{number}", channels, reduction))
        self.feature_info, self.num_features = FeatureInfo(info), channels

    def pool(self, x: Tensor) -> Tensor:
        """What lies between the first convolution and the first stage: nothing."""
        return x

    def stages(self, x: Tensor) -> Iterator[Tensor]:
        x = conv_norm_act(x, self.conv1, self.bn1, self.relu)
        yield x
        x = self.pool(x)
        for stage in self.feature_info[1:]:
            x = getattr(self, stage.module)(x)
            yield x


class ResNet(ResidualNet):
    """A 7x7 convolution and a max pool, four stages of residual blocks, one linear layer; torchvision's ResNet.

    Shape: (N, in_chans, H, W) -> (N, num_classes). The stages work at H/4, H/8, H/16 and H/32.

    Args:
        block: BasicBlock or Bottleneck. layers: blocks of each of the four stages.
        num_classes: outputs of the last layer.
        zero_init_residual: the last batch norm of every block starts at 0, so that the block starts as the identity.
        groups, width_per_group: of the blocks' 3x3 convolutions (ResNeXt, Wide ResNet).
        replace_stride_with_dilation: for the stages 2, 3 and 4, whether to dilate instead of halving the size.
        norm_layer: makes a normalisation for a number of channels; None: BatchNorm2d.
        in_chans: channels of the picture.

    Raises:
        ValueError: replace_stride_with_dilation has not three items, or in_chans is below 1.

    Example:
        >>> import zoo
        >>> from zoo.models.resnet import BasicBlock, ResNet
        >>> model = ResNet(BasicBlock, [1, 1, 1, 1], num_classes=10, in_chans=1)
        >>> model(zoo.zeros(2, 1, 33, 33)).shape, model.forward_features(zoo.zeros(2, 1, 64, 64)).shape
        ((2, 10), (2, 512, 2, 2))
    """

    def __init__(
        self,
        block: Block,
        layers: Sequence[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: Sequence[bool] | None = None,
        norm_layer: Norm | None = None,
        in_chans: int = 3,
    ):
        super().__init__()
        check_count("ResNet", "in_chans", in_chans, 1)
        dilate = (False,) * 3 if replace_stride_with_dilation is None else tuple(replace_stride_with_dilation)
        if len(dilate) != 3:
            raise ValueError(f"ResNet: wants replace_stride_with_dilation of three items, got {dilate}")
        norm_layer = norm_layer or BatchNorm2d
        self.num_classes = num_classes
        self.conv1 = he_conv2d(in_chans, 64, 7, stride=2, padding=3)
        self.bn1 = norm_layer(64)
        self.relu = ReLU()
        self.maxpool = MaxPool2d(kernel_size=3, stride=2, padding=1)
        plan = list(zip((64, 128, 256, 512), layers, (1, 2, 2, 2), (False, *dilate), strict=True))
        self.add_stages(block, plan, 4, groups, width_per_group, norm_layer)
        self.avgpool = AdaptiveAvgPool2d((1, 1))
        self.fc = Linear(self.num_features, num_classes)
        if zero_init_residual:
            zero_last_norms(self)

    def pool(self, x: Tensor) -> Tensor:
        return self.maxpool(x)


def zero_last_norms(model: Module) -> None:
    """Sets the weights of the last batch norm of every block to 0."""
    for module in model.modules():
        last = {BasicBlock: "bn2", Bottleneck: "bn3"}.get(type(module))
        if last is not None:
            init.zeros_(getattr(module, last).weight)


@register
def resnet18(**options: Any) -> ResNet:
    """ResNet-18: 11,689,512 parameters."""
    return ResNet(BasicBlock, (2, 2, 2, 2), **options)


@register
def resnet34(**options: Any) -> ResNet:
    """ResNet-34: 21,797,672 parameters."""
    return ResNet(BasicBlock, (3, 4, 6, 3), **options)


@register
def resnet50(**options: Any) -> ResNet:
    """ResNet-50: 25,557,032 parameters."""
    return ResNet(Bottleneck, (3, 4, 6, 3), **options)


@register
def resnet101(**options: Any) -> ResNet:
    """ResNet-101: 44,549,160 parameters."""
    return ResNet(Bottleneck, (3, 4, 23, 3), **options)


@register
def resnet152(**options: Any) -> ResNet:
    """ResNet-152: 60,192,808 parameters."""
    return ResNet(Bottleneck, (3, 8, 36, 3), **options)


@register
def resnext50_32x4d(**options: Any) -> ResNet:
    """ResNeXt-50, 32 groups of width 4: 25,028,904 parameters."""
    return ResNet(Bottleneck, (3, 4, 6, 3), groups=32, width_per_group=4, **options)


@register
def resnext101_32x8d(**options: Any) -> ResNet:
    """ResNeXt-101, 32 groups of width 8: 88,791,336 parameters."""
    return ResNet(Bottleneck, (3, 4, 23, 3), groups=32, width_per_group=8, **options)


@register
def resnext101_64x4d(**options: Any) -> ResNet:
    """ResNeXt-101, 64 groups of width 4: 83,455,272 parameters."""
    return ResNet(Bottleneck, (3, 4, 23, 3), groups=64, width_per_group=4, **options)


@register
def wide_resnet50_2(**options: Any) -> ResNet:
    """Wide ResNet-50-2, twice the width in the 3x3 convolutions: 68,883,240 parameters."""
    return ResNet(Bottleneck, (3, 4, 6, 3), width_per_group=128, **options)


@register
def wide_resnet101_2(**options: Any) -> ResNet:
    """Wide ResNet-101-2, twice the width in the 3x3 convolutions: 126,886,696 parameters."""
    return ResNet(Bottleneck, (3, 4, 23, 3), width_per_group=128, **options)
