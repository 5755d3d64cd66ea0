"""torch.nn.modules.module's names."""
from zoo.nn.module import Module as Module
