"""torch.nn.modules.dropout's names; the layers live in zoo.nn.dropout."""
from zoo.nn import dropout
from zoo.nn.dropout import AlphaDropout as AlphaDropout
from zoo.nn.dropout import Dropout as Dropout
from zoo.nn.dropout import Dropout1d as Dropout1d
from zoo.nn.dropout import Dropout2d as Dropout2d
from zoo.nn.dropout import Dropout3d as Dropout3d
from zoo.nn.dropout import FeatureAlphaDropout as FeatureAlphaDropout

_DropoutNd = dropout.Dropout1d
