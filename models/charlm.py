"""Character language models in the layout of Stanza's: embedding, LSTM with a learned initial state, linear layer."""

import string
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from zoo.autograd.creation import zeros
from zoo.autograd.tensor import Tensor
from zoo.checkpoint import FileError, read
from zoo.models.base import check_count
from zoo.models.language_model import LanguageModel
from zoo.models.registry import register
from zoo.models.vocabulary import SPECIAL, Vocabulary
from zoo.nn.dropout import Dropout
from zoo.nn.linear import Embedding, Linear
from zoo.nn.module import Module
from zoo.nn.parameter import Parameter
from zoo.nn.rnn import LSTM
from zoo.ops.device import fetch

START = "\n"        # Stanza's models were trained on texts that begin with it
PRINTABLE = Vocabulary.of(START + string.printable[:95])


class CharLM(LanguageModel):
    """Reads a text character by character and says which one comes next; a backward model reads from the end.

    Shape: (B, T) int64, states -> logits (B, T, V), (h, c) each (layers, B, hidden_size). Without states a text
    begins with the learned ones.

    Args:
        vocabulary: of V units; must have the line feed, which stands before every text.
        embedding_dim, hidden_size, num_layers: of the embedding and of the LSTM.
        dropout: probability, of the embeddings, between layers and of the outputs.
        is_forward: False for a model of reversed texts.

    Raises:
        ValueError: a vocabulary without line feed, or a size below 1.

    Example:
        >>> import zoo
        >>> from zoo.models.charlm import CharLM
        >>> model = CharLM(hidden_size=32)
        >>> logits, states = model(zoo.zeros(2, 5, dtype=zoo.int64))
        >>> logits.shape, states[0].shape
        ((2, 5, 100), (1, 2, 32))

    Source: A. Akbik et al., "Contextual string embeddings for sequence labeling", COLING 2018; P. Qi et al.,
    "Stanza: a Python natural language processing toolkit", ACL 2020.
    """

    architecture = "charlm"

    def __init__(
        self, vocabulary: Vocabulary = PRINTABLE, embedding_dim: int = 100, hidden_size: int = 1024,
        num_layers: int = 1, dropout: float = 0.05, is_forward: bool = True,
    ):
        super().__init__()
        if START not in vocabulary.numbers:
            raise ValueError("CharLM: wants a vocabulary with the line feed, which begins every text")
        for name, value in (("embedding_dim", embedding_dim), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            check_count("CharLM", name, value, 1)
        self.vocabulary, self.is_forward = vocabulary, is_forward
        self.start, self.never = vocabulary.numbers[START], tuple(range(len(SPECIAL)))
        self.char_emb = Embedding(len(vocabulary), embedding_dim)
        self.charlstm = LSTM(
            embedding_dim, hidden_size, num_layers, batch_first=True, dropout=dropout if num_layers > 1 else 0.0
        )
        self.charlstm_h_init = Parameter(zeros(num_layers, 1, hidden_size))
        self.charlstm_c_init = Parameter(zeros(num_layers, 1, hidden_size))
        self.decoder = Linear(hidden_size, len(vocabulary))
        self.dropout = Dropout(dropout)

    def options(self) -> dict[str, Any]:
        return {}

    def contents(self) -> dict[str, Any]:
        return stanza_dict(self)

    def features(self, tokens: Tensor, states: Any = None, lengths: Any = None) -> tuple[Tensor, Any]:
        if states is None:
            layers, _, size = self.charlstm_h_init.shape
            shape = layers, tokens.shape[0], size
            states = self.charlstm_h_init.expand(shape), self.charlstm_c_init.expand(shape)
        return self.charlstm(self.dropout(self.char_emb(tokens)), states, lengths)

    def scores(self, outputs: Tensor) -> Tensor:
        return self.decoder(self.dropout(outputs))

    def encode(self, text: str) -> np.ndarray:
        numbers = self.vocabulary.encode(text)
        return numbers if self.is_forward else numbers[::-1]

    def decode(self, tokens: Any) -> str:
        return self.vocabulary.decode(tokens)

    def joined(self, prompt: str, written: list[str]) -> str:
        return prompt + "".join(written) if self.is_forward else "".join(reversed(written)) + prompt


# -- files: Stanza's dict, as torch or safetensors store it

def read_charlm(file: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The options of CharLM that a file tells, and its arrays.

    Args:
        file: a path or open file with the dict {vocab, args, state_dict, is_forward_lm}, or a dict that has it under
            "model", as Stanza's training writes it; in any format of zoo.checkpoint.

    Raises:
        FileError (ValueError, RuntimeError): something else.
    """
    obj = read(file)
    if isinstance(obj, Mapping) and "state_dict" not in obj and isinstance(obj.get("model"), Mapping):
        obj = obj["model"]
    if not isinstance(obj, Mapping) or not {"vocab", "state_dict"} <= obj.keys():
        raise FileError("is no character model: wants a dict with vocab and state_dict, as Stanza writes it")
    arrays, args = obj["state_dict"], obj.get("args", {})
    if not all(isinstance(part, Mapping) for part in (obj["vocab"], arrays, args)):
        raise FileError("is no character model: vocab, args and state_dict are not dicts")
    try:
        vocabulary = Vocabulary.from_state_dict(obj["vocab"])
        (_, embedding_dim), (_, hidden_size) = (arrays[f"{name}.weight"].shape for name in ("char_emb", "decoder"))
        num_layers = arrays["charlstm_h_init"].shape[0]
    except (KeyError, AttributeError, ValueError, TypeError) as error:
        raise FileError(f"is no character model: {error!r}") from None
    options = {"vocabulary": vocabulary, "embedding_dim": embedding_dim, "hidden_size": hidden_size,
               "num_layers": num_layers, "dropout": float(args.get("char_dropout", 0.0)),
               "is_forward": bool(obj.get("is_forward_lm", True))}
    return options, dict(arrays)


def stanza_dict(model: CharLM, dtype: Any = None) -> dict[str, Any]:
    """What Stanza stores for a model, so that zoo.save writes a file that hub.load and, as .pt, Stanza can read.

    Args:
        dtype: of the weights; None: as they are.
    """
    lstm, state = model.charlstm, {}
    for key, value in model.state_dict().items():
        array = fetch(value.array)
        state[key.replace("charlstm.", "charlstm.lstm.")] = array if dtype is None else array.astype(dtype)
    args = {"char_emb_dim": lstm.input_size, "char_hidden_dim": lstm.hidden_size, "char_num_layers": lstm.num_layers,
            "char_dropout": model.dropout.p, "char_rec_dropout": 0.0}
    return {"vocab": model.vocabulary.state_dict(), "args": args, "state_dict": state, "pad": False,
            "is_forward_lm": model.is_forward}


# -- models by name

def builder(name: str, text: str, **defaults: Any) -> Callable[..., Module]:
    """Registers a builder of CharLM with other defaults; its weights bring vocabulary and sizes with them."""

    def build(**options: Any) -> CharLM:
        return CharLM(**(defaults | options))

    build.__name__ = build.__qualname__ = name
    build.__doc__ = text
    return register(build)


charlm = builder("charlm", "A character model of Stanza's size, or of what its file says.")
charlm_kjv = builder("charlm_kjv", "A small character model of English of 1611: 1 layer of 256.", hidden_size=256,
                     embedding_dim=64)
charlm_en_forward = builder("charlm-en-forward", "Stanza's English character model.")
charlm_en_backward = builder("charlm-en-backward", "Stanza's English model, from the end.", is_forward=False)
