"""torch.nn.modules.loss's names; the losses live in zoo.nn.loss."""
from zoo.nn import loss
from zoo.nn.loss import BCELoss as BCELoss
from zoo.nn.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from zoo.nn.loss import CosineEmbeddingLoss as CosineEmbeddingLoss
from zoo.nn.loss import CrossEntropyLoss as CrossEntropyLoss
from zoo.nn.loss import CTCLoss as CTCLoss
from zoo.nn.loss import GaussianNLLLoss as GaussianNLLLoss
from zoo.nn.loss import HingeEmbeddingLoss as HingeEmbeddingLoss
from zoo.nn.loss import HuberLoss as HuberLoss
from zoo.nn.loss import KLDivLoss as KLDivLoss
from zoo.nn.loss import L1Loss as L1Loss
from zoo.nn.loss import MarginRankingLoss as MarginRankingLoss
from zoo.nn.loss import MSELoss as MSELoss
from zoo.nn.loss import MultiLabelMarginLoss as MultiLabelMarginLoss
from zoo.nn.loss import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from zoo.nn.loss import MultiMarginLoss as MultiMarginLoss
from zoo.nn.loss import NLLLoss as NLLLoss
from zoo.nn.loss import PoissonNLLLoss as PoissonNLLLoss
from zoo.nn.loss import SmoothL1Loss as SmoothL1Loss
from zoo.nn.loss import SoftMarginLoss as SoftMarginLoss
from zoo.nn.loss import TripletMarginLoss as TripletMarginLoss
from zoo.nn.loss import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss

_Loss, _WeightedLoss = loss.Loss, loss.WeightedLoss
