"""torch.nn.modules: the classes of zoo.nn by the paths that programs ask isinstance with (batchnorm._BatchNorm)."""
import zoo.nn as _nn
from zoo.nn.modules import activation as activation
from zoo.nn.modules import batchnorm as batchnorm
from zoo.nn.modules import container as container
from zoo.nn.modules import conv as conv
from zoo.nn.modules import dropout as dropout
from zoo.nn.modules import flatten as flatten
from zoo.nn.modules import instancenorm as instancenorm
from zoo.nn.modules import linear as linear
from zoo.nn.modules import loss as loss
from zoo.nn.modules import module as module
from zoo.nn.modules import normalization as normalization
from zoo.nn.modules import pooling as pooling
from zoo.nn.modules import rnn as rnn
from zoo.nn.modules import sparse as sparse
from zoo.nn.modules import transformer as transformer
from zoo.nn.modules import utils as utils

globals().update({_name: _class for _name, _class in vars(_nn).items()
                  if isinstance(_class, type) and issubclass(_class, _nn.Module)})
