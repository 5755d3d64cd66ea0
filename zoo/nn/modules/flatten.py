"""torch.nn.modules.flatten's names."""
from zoo.nn import Flatten as Flatten
from zoo.nn import Unflatten as Unflatten
