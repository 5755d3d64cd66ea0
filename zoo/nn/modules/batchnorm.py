"""torch.nn.modules.batchnorm's names; the layers live in zoo.nn.norm."""
from zoo.nn import LazyBatchNorm1d as LazyBatchNorm1d
from zoo.nn import LazyBatchNorm2d as LazyBatchNorm2d
from zoo.nn import LazyBatchNorm3d as LazyBatchNorm3d
from zoo.nn import SyncBatchNorm as SyncBatchNorm
from zoo.nn import norm
from zoo.nn.norm import BatchNorm1d as BatchNorm1d
from zoo.nn.norm import BatchNorm2d as BatchNorm2d
from zoo.nn.norm import BatchNorm3d as BatchNorm3d

_BatchNorm, _NormBase = norm.BatchNorm, norm.RunningNorm
