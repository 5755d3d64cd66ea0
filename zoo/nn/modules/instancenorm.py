"""torch.nn.modules.instancenorm's names; the layers live in zoo.nn.norm."""
from zoo.nn import LazyInstanceNorm1d as LazyInstanceNorm1d
from zoo.nn import LazyInstanceNorm2d as LazyInstanceNorm2d
from zoo.nn import LazyInstanceNorm3d as LazyInstanceNorm3d
from zoo.nn import norm
from zoo.nn.norm import InstanceNorm1d as InstanceNorm1d
from zoo.nn.norm import InstanceNorm2d as InstanceNorm2d
from zoo.nn.norm import InstanceNorm3d as InstanceNorm3d

_InstanceNorm = norm.InstanceNorm
