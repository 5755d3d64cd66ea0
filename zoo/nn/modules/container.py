"""torch.nn.modules.container's names; the modules live in zoo.nn.containers."""
from zoo.nn.containers import ModuleDict as ModuleDict
from zoo.nn.containers import ModuleList as ModuleList
from zoo.nn.containers import ParameterDict as ParameterDict
from zoo.nn.containers import ParameterList as ParameterList
from zoo.nn.containers import Sequential as Sequential
