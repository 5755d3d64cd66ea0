"""torch.nn.modules.linear's names; the layers live in zoo.nn.linear."""
from zoo.nn import Bilinear as Bilinear
from zoo.nn import Identity as Identity
from zoo.nn import LazyLinear as LazyLinear
from zoo.nn import Linear as Linear
