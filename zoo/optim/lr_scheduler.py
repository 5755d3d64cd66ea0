"""Learning rates that change from step to step: torch.optim.lr_scheduler."""

from zoo.optim.combined import ChainedScheduler as ChainedScheduler
from zoo.optim.combined import ReduceLROnPlateau as ReduceLROnPlateau
from zoo.optim.combined import SequentialLR as SequentialLR
from zoo.optim.combined import warm_up as warm_up
from zoo.optim.cycles import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from zoo.optim.cycles import CyclicLR as CyclicLR
from zoo.optim.cycles import OneCycleLR as OneCycleLR
from zoo.optim.scheduler import ConstantLR as ConstantLR
from zoo.optim.scheduler import CosineAnnealingLR as CosineAnnealingLR
from zoo.optim.scheduler import ExponentialLR as ExponentialLR
from zoo.optim.scheduler import LambdaLR as LambdaLR
from zoo.optim.scheduler import LinearLR as LinearLR
from zoo.optim.scheduler import LRScheduler as LRScheduler
from zoo.optim.scheduler import MultiplicativeLR as MultiplicativeLR
from zoo.optim.scheduler import MultiStepLR as MultiStepLR
from zoo.optim.scheduler import PolynomialLR as PolynomialLR
from zoo.optim.scheduler import StepLR as StepLR

_LRScheduler = LRScheduler                      # what it was called before torch 2.0
