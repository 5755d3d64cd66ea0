"""torch.nn.modules.sparse's names; the layers live in zoo.nn.linear."""
from zoo.nn import Embedding as Embedding
from zoo.nn import EmbeddingBag as EmbeddingBag
