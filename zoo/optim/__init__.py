"""Optimizers: torch.optim, and Lion, LAMB and SAM."""

from zoo.optim import lr_scheduler as lr_scheduler
from zoo.optim import swa_utils as swa_utils
from zoo.optim.adadelta import Adadelta as Adadelta
from zoo.optim.adafactor import Adafactor as Adafactor
from zoo.optim.adagrad import Adagrad as Adagrad
from zoo.optim.adam import Adam as Adam
from zoo.optim.adam import AdamW as AdamW
from zoo.optim.adamax import Adamax as Adamax
from zoo.optim.asgd import ASGD as ASGD
from zoo.optim.lamb import LAMB as LAMB
from zoo.optim.lbfgs import LBFGS as LBFGS
from zoo.optim.lion import Lion as Lion
from zoo.optim.muon import Muon as Muon
from zoo.optim.nadam import NAdam as NAdam
from zoo.optim.optimizer import Optimizer as Optimizer
from zoo.optim.radam import RAdam as RAdam
from zoo.optim.rmsprop import RMSprop as RMSprop
from zoo.optim.rprop import Rprop as Rprop
from zoo.optim.sam import SAM as SAM
from zoo.optim.sgd import SGD as SGD
