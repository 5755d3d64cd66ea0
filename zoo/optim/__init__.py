"""Optimisers: torch.optim."""

from zoo.optim import lr_scheduler as lr_scheduler
from zoo.optim.adam import Adam as Adam
from zoo.optim.adam import AdamW as AdamW
from zoo.optim.optimizer import Optimizer as Optimizer
from zoo.optim.sgd import SGD as SGD
