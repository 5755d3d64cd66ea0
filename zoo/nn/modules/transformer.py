"""torch.nn.modules.transformer's names; the layers live in zoo.nn.transformer."""
from zoo.nn.transformer import Transformer as Transformer
from zoo.nn.transformer import TransformerDecoder as TransformerDecoder
from zoo.nn.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from zoo.nn.transformer import TransformerEncoder as TransformerEncoder
from zoo.nn.transformer import TransformerEncoderLayer as TransformerEncoderLayer
