"""torch.nn.modules.conv's names; the layers live in zoo.nn.conv."""
from zoo.nn import LazyConv1d as LazyConv1d
from zoo.nn import LazyConv2d as LazyConv2d
from zoo.nn import LazyConv3d as LazyConv3d
from zoo.nn import LazyConvTranspose1d as LazyConvTranspose1d
from zoo.nn import LazyConvTranspose2d as LazyConvTranspose2d
from zoo.nn import LazyConvTranspose3d as LazyConvTranspose3d
from zoo.nn import conv
from zoo.nn.conv import Conv1d as Conv1d
from zoo.nn.conv import Conv2d as Conv2d
from zoo.nn.conv import Conv3d as Conv3d
from zoo.nn.conv import ConvTranspose1d as ConvTranspose1d
from zoo.nn.conv import ConvTranspose2d as ConvTranspose2d
from zoo.nn.conv import ConvTranspose3d as ConvTranspose3d

_ConvNd, _ConvTransposeNd = conv.Convolution, conv.TransposedConvolution
