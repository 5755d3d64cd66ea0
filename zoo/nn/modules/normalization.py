"""torch.nn.modules.normalization's names; the layers live in zoo.nn.norm."""
from zoo.nn.norm import GroupNorm as GroupNorm
from zoo.nn.norm import LayerNorm as LayerNorm
from zoo.nn.norm import LocalResponseNorm as LocalResponseNorm
from zoo.nn.norm import RMSNorm as RMSNorm
