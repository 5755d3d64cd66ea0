"""torch.nn.modules.rnn's names; the layers live in zoo.nn.rnn."""
from zoo.nn.rnn import GRU as GRU
from zoo.nn.rnn import LSTM as LSTM
from zoo.nn.rnn import RNN as RNN
from zoo.nn.rnn import GRUCell as GRUCell
from zoo.nn.rnn import LSTMCell as LSTMCell
from zoo.nn.rnn import RNNBase as RNNBase
from zoo.nn.rnn import RNNCell as RNNCell
from zoo.nn.rnn import RNNCellBase as RNNCellBase
