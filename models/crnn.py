"""CRNN: reads a word in a picture, by VGG's convolutions, LSTMs in both directions and CTC (layout of docTR)."""

import string
from typing import Any

import numpy as np

from zoo.autograd.mode import no_grad
from zoo.autograd.tensor import Tensor
from zoo.checkpoint import read_state_dict
from zoo.models.registry import register
from zoo.models.vgg import VGG16, make_layers
from zoo.nn import functional as F  # noqa: N812
from zoo.nn.linear import Linear
from zoo.nn.module import Module
from zoo.nn.pooling import MaxPool2d
from zoo.nn.rnn import LSTM
from zoo.nn.utils.ctc import greedy_decode

LATIN = string.digits + string.ascii_letters + string.punctuation
CURRENCY = "£€¥¢฿"
FRENCH = LATIN + "°" + CURRENCY + "àâéèêëîïôùûüçÀÂÉÈÊËÎÏÔÙÛÜÇ"
LEGACY_FRENCH = LATIN + "°" + "àâéèêëîïôùûçÀÂÉÈËÎÏÔÙÛÇ" + CURRENCY
# By the outputs of the last layer: one for each character, and the blank.
KNOWN = {len(vocabulary) + 1: vocabulary for vocabulary in (FRENCH, LEGACY_FRENCH)}


class CRNN(Module):
    """Reads a word in a picture: convolutions, one step for each column of the last map, two LSTM layers, CTC.

    Shape: (N, 3, 32, W) -> logits (N, W / 4, V + 1); the last class is the blank. Pictures are (x - mean) / std with
    mean (0.694, 0.695, 0.693) and std (0.299, 0.296, 0.301).

    Args:
        vocabulary: the V characters, in the order of the classes.
        hidden_size: of each direction of the LSTM.

    Example:
        >>> import zoo
        >>> from zoo.models.crnn import CRNN
        >>> with zoo.nn.init.skip_init():
        ...     model = CRNN("abc")
        >>> model(zoo.zeros(1, 3, 32, 128)).shape
        (1, 32, 4)

    Source: B. Shi et al., arXiv 1507.05717; doctr/models/recognition/crnn/pytorch.py (layout of the files).
    """

    def __init__(self, vocabulary: str = FRENCH, hidden_size: int = 128):
        super().__init__()
        self.vocabulary = vocabulary
        self.feat_extractor = make_layers(VGG16, batch_norm=True)
        pools = [name for name, layer in self.feat_extractor._modules.items() if isinstance(layer, MaxPool2d)]
        for name in pools[-3:]:             # they halve the height only: letters are narrow
            self.feat_extractor._modules[name] = MaxPool2d((2, 1))
        self.decoder = LSTM(512, hidden_size, num_layers=2, batch_first=True, bidirectional=True)
        self.linear = Linear(2 * hidden_size, len(vocabulary) + 1)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.feat_extractor(x)
        return self.linear(self.decoder(maps.flatten(1, 2).transpose(1, 2))[0])

    @no_grad()
    def read(self, x: Tensor) -> list[tuple[str, float]]:
        """The words in pictures (N, 3, 32, W), each with the lowest probability of its best path's steps.

        Raises:
            ValueError: a model in training mode.
        """
        if self.training:
            raise ValueError("read: the model is in training mode; model.eval() ends that")
        log_probs = F.log_softmax(self(x), 2).transpose(0, 1)
        words = greedy_decode(log_probs, blank=len(self.vocabulary))
        least = log_probs.amax(2).amin(0).exp().tolist()
        return [("".join(self.vocabulary[k] for k in word.labels), p) for word, p in zip(words, least, strict=True)]


def read_crnn(file: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The options of CRNN that a file tells, and its arrays: docTR's two vocabularies are known by their size."""
    arrays = read_state_dict(file)
    rows = arrays["linear.weight"].shape[0] if "linear.weight" in arrays else 0
    return ({"vocabulary": KNOWN[rows]} if rows in KNOWN else {}), arrays


@register
def crnn_vgg16_bn(**options: Any) -> CRNN:
    """docTR's crnn_vgg16_bn."""
    return CRNN(**options)
