"""Recurrent models: a word-piece language model, a classifier of sequences, a translator with attention."""

from typing import Any, NamedTuple

from zoo.autograd.creation import arange, as_tensor, full
from zoo.autograd.mode import no_grad
from zoo.autograd.tensor import Tensor
from zoo.checkpoint import read_state_dict
from zoo.models import key_maps
from zoo.models.base import check_count
from zoo.models.charlm import CharLM as CharLM
from zoo.models.crnn import CRNN as CRNN
from zoo.models.language_model import LanguageModel, SequenceModel
from zoo.models.registry import register
from zoo.nn import functional as F  # noqa: N812
from zoo.nn.activation import LeakyReLU
from zoo.nn.dropout import Dropout
from zoo.nn.linear import Embedding, Linear
from zoo.nn.norm import LayerNorm
from zoo.nn.rnn import GRU, LSTM
from zoo.ops.errors import ArgumentError
from zoo.ops.face.join import cat, stack

KINDS = {"lstm": LSTM, "gru": GRU}
POOLINGS = ("max", "mean", "last")


def check_choice(owner: str, name: str, value: Any, choices: Any) -> None:
    """Raises unless value is one of choices."""
    if value not in choices:
        raise ValueError(f"{owner}: wants {name} one of {', '.join(choices)}, got {value!r}")


class RNNLM(LanguageModel):
    """SpeechBrain's language model over word pieces: embedding, LSTM, linear layer with layer norm, output layer.

    Its tokens are the numbers of a SentencePiece tokenizer, which is not part of it: `generate`, `score` and `embed`
    take and give lists of ints.

    Shape: (B, T) int64, states -> logits (B, T, num_embeddings), (h, c) each (num_layers, B, hidden_size).

    Args:
        num_embeddings: tokens. embedding_dim, hidden_size, num_layers: of the embedding and of the LSTM.
        dnn_neurons: width of the linear layer between.
        dropout: probability, of embeddings, between LSTM layers and before the output layer.
        bos: the token before every text.

    Example:
        >>> from zoo.models.rnn import RNNLM
        >>> model = RNNLM(50, 8, 16, dnn_neurons=12).eval()
        >>> tokens = model.generate([7, 8], 3, seed=0)
        >>> tokens[:2], len(tokens)
        ([7, 8], 5)

    Source: speechbrain/lobes/models/RNNLM.py; sizes: recipes/LibriSpeech/LM/hparams/RNNLM.yaml.
    """

    architecture = "rnnlm-librispeech"

    def __init__(
        self, num_embeddings: int = 1000, embedding_dim: int = 128, hidden_size: int = 2048, num_layers: int = 2,
        dnn_neurons: int = 512, dropout: float = 0.0, bos: int = 0,
    ):
        super().__init__()
        self.start = bos
        self.embedding = Embedding(num_embeddings, embedding_dim)
        self.rnn = LSTM(embedding_dim, hidden_size, num_layers, batch_first=True,
                        dropout=dropout if num_layers > 1 else 0.0)
        self.linear = Linear(hidden_size, dnn_neurons)
        self.norm = LayerNorm(dnn_neurons)
        self.activation = LeakyReLU()
        self.dropout = Dropout(dropout)
        self.out = Linear(dnn_neurons, num_embeddings)

    def options(self) -> dict[str, Any]:
        return {"num_embeddings": self.embedding.num_embeddings, "embedding_dim": self.embedding.embedding_dim,
                "hidden_size": self.rnn.hidden_size, "num_layers": self.rnn.num_layers,
                "dnn_neurons": self.linear.out_features, "dropout": self.dropout.p, "bos": self.start}

    def features(self, tokens: Tensor, states: Any = None, lengths: Any = None) -> tuple[Tensor, Any]:
        return self.rnn(self.dropout(self.embedding(tokens)), states, lengths)

    def scores(self, outputs: Tensor) -> Tensor:
        return self.out(self.dropout(self.activation(self.norm(self.linear(outputs)))))


def read_rnnlm(file: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The sizes of an RNNLM that a file's arrays have, and the arrays."""
    arrays = read_state_dict(file)
    own = key_maps.speechbrain_rnnlm(arrays)
    if not {"embedding.weight", "linear.weight"} <= own.keys():
        return {}, arrays                   # of another model: loading says what is missing
    (num_embeddings, embedding_dim), (dnn_neurons, hidden_size) = (
        own[f"{name}.weight"].shape for name in ("embedding", "linear"))
    layers = sum(key.startswith("rnn.weight_hh_l") for key in own)
    return {"num_embeddings": num_embeddings, "embedding_dim": embedding_dim, "hidden_size": hidden_size,
            "num_layers": layers, "dnn_neurons": dnn_neurons}, arrays


def padding_mask(lengths: Any, steps: int, device: Any) -> Tensor:
    """(B, T) bool: True beyond each sequence's length."""
    return arange(steps, device=device) >= as_tensor(lengths).to(device).reshape(-1, 1)


class SequenceClassifier(SequenceModel):
    """Classifies sequences of tokens: embedding, recurrent layers in both directions, pooling over time, linear layer.

    Shape: tokens (B, T) int64, lengths (B,) or None for T everywhere -> logits (B, num_classes).

    Args:
        num_embeddings: tokens. num_classes: outputs.
        embedding_dim, hidden_size, num_layers: of the embedding and of each direction.
        kind: "lstm" or "gru". bidirectional: walk the sequence from both ends.
        pooling: over the steps within a sequence's length: "max", "mean", or "last": the last state of each direction.
        dropout: probability, of the embeddings, between layers and before the linear layer.

    Raises:
        ValueError: an unknown kind or pooling, or a size below 1.

    Example:
        >>> import zoo
        >>> from zoo.models.rnn import SequenceClassifier
        >>> model = SequenceClassifier(100, 2, kind="gru")
        >>> model(zoo.ones(3, 7, dtype=zoo.int64), lengths=[7, 2, 5]).shape
        (3, 2)
    """

    architecture = "sequence_classifier"

    def __init__(
        self, num_embeddings: int, num_classes: int, embedding_dim: int = 100, hidden_size: int = 128,
        num_layers: int = 1, kind: str = "lstm", bidirectional: bool = True, pooling: str = "max",
        dropout: float = 0.0,
    ):
        super().__init__()
        check_choice("SequenceClassifier", "kind", kind, KINDS)
        check_choice("SequenceClassifier", "pooling", pooling, POOLINGS)
        check_count("SequenceClassifier", "num_classes", num_classes, 1)
        self.pooling, self.directions = pooling, 1 + bool(bidirectional)
        self.embedding = Embedding(num_embeddings, embedding_dim)
        self.rnn = KINDS[kind](embedding_dim, hidden_size, num_layers, batch_first=True,
                               dropout=dropout if num_layers > 1 else 0.0, bidirectional=bidirectional)
        self.dropout = Dropout(dropout)
        self.fc = Linear(self.directions * hidden_size, num_classes)

    def options(self) -> dict[str, Any]:
        return {"num_embeddings": self.embedding.num_embeddings, "num_classes": self.fc.out_features,
                "embedding_dim": self.embedding.embedding_dim, "hidden_size": self.rnn.hidden_size,
                "num_layers": self.rnn.num_layers, "kind": self.rnn.mode.lower(),
                "bidirectional": self.rnn.bidirectional, "pooling": self.pooling, "dropout": self.dropout.p}

    def forward(self, tokens: Tensor, lengths: Any = None) -> Tensor:
        outputs, states = self.rnn(self.dropout(self.embedding(tokens)), lengths=lengths)
        return self.fc(self.dropout(self.pooled(outputs, states, lengths)))

    def pooled(self, outputs: Tensor, states: Any, lengths: Any) -> Tensor:
        """(B, T, D * H) -> (B, D * H)."""
        if self.pooling == "last":
            h = states if isinstance(states, Tensor) else states[0]
            return cat([h[k] for k in range(-self.directions, 0)], 1)
        if lengths is None:
            return outputs.amax(1) if self.pooling == "max" else outputs.mean(1)
        outside = padding_mask(lengths, outputs.shape[1], outputs.device).unsqueeze(2)
        if self.pooling == "max":
            return outputs.masked_fill(outside, float("-inf")).amax(1)
        count = as_tensor(lengths).to(outputs.device, outputs.dtype).reshape(-1, 1)
        return outputs.masked_fill(outside, 0).sum(1) / count


class Translation(NamedTuple):
    """Tokens of one target, without bos and eos, and the logarithm of their probability."""

    tokens: list[int]
    score: float


class Seq2Seq(SequenceModel):
    """From one sequence of tokens to another: LSTM encoder in both directions, LSTM decoder with global attention.

    The decoder's output h attends to the encoder's outputs s: `a = softmax(h^T W s)`, `c = sum a s`, logits from
    `tanh(W_c [c; h])`.

    Shape: source (B, S), target (B, T) int64: with bos, without the last token -> logits (B, T, target_size).

    Args:
        source_size, target_size: tokens of each side. embedding_dim, hidden_size: of both; hidden_size is even.
        dropout: probability, of embeddings and outputs.
        bos, eos: the target's first and last token.

    Raises:
        ValueError: an odd hidden_size.

    Example:
        >>> import zoo
        >>> from zoo.models.rnn import Seq2Seq
        >>> model = Seq2Seq(20, 30, 8, 16).eval()
        >>> source = zoo.ones(2, 5, dtype=zoo.int64)
        >>> model(source, zoo.zeros(2, 4, dtype=zoo.int64), lengths=[5, 3]).shape
        (2, 4, 30)
        >>> len(model.translate(source, max_length=6))
        2

    Source: M.-T. Luong et al., "Effective approaches to attention-based neural machine translation", EMNLP 2015,
    global attention, "general" score, without input feeding.
    """

    architecture = "seq2seq"

    def __init__(
        self, source_size: int, target_size: int, embedding_dim: int = 256, hidden_size: int = 512,
        dropout: float = 0.0, bos: int = 0, eos: int = 1,
    ):
        super().__init__()
        if hidden_size % 2:
            raise ValueError(f"Seq2Seq: wants an even hidden_size, got {hidden_size}")
        self.bos, self.eos = bos, eos
        self.source_embedding = Embedding(source_size, embedding_dim)
        self.target_embedding = Embedding(target_size, embedding_dim)
        self.encoder = LSTM(embedding_dim, hidden_size // 2, batch_first=True, bidirectional=True)
        self.decoder = LSTM(embedding_dim, hidden_size, batch_first=True)
        self.attention = Linear(hidden_size, hidden_size, bias=False)
        self.combine = Linear(2 * hidden_size, hidden_size, bias=False)
        self.out = Linear(hidden_size, target_size)
        self.dropout = Dropout(dropout)

    def options(self) -> dict[str, Any]:
        source, target = self.source_embedding, self.target_embedding
        return {"source_size": source.num_embeddings, "target_size": target.num_embeddings,
                "embedding_dim": source.embedding_dim, "hidden_size": self.decoder.hidden_size,
                "dropout": self.dropout.p, "bos": self.bos, "eos": self.eos}

    def encode(self, source: Tensor, lengths: Any = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The encoder's outputs (B, S, H), and its last states as the decoder's first ones, (1, B, H)."""
        outputs, states = self.encoder(self.dropout(self.source_embedding(source)), lengths=lengths)
        h, c = (cat([state[0], state[1]], 1).unsqueeze(0) for state in states)
        return outputs, (h, c)

    def decode(self, target: Tensor, states: Any, memory: Tensor, outside: Tensor | None) -> tuple[Tensor, Any]:
        """Logits (B, T, target_size) after each token of target (B, T), and the decoder's states.

        outside: (B, S) bool, True where memory is padding; None: nowhere.
        """
        outputs, states = self.decoder(self.dropout(self.target_embedding(target)), states)
        weights = self.attention(outputs) @ memory.transpose(1, 2)
        if outside is not None:
            weights = weights.masked_fill(outside.unsqueeze(1), float("-inf"))
        context = weights.softmax(2) @ memory
        return self.out(self.dropout(self.combine(cat([context, outputs], 2)).tanh())), states

    def forward(self, source: Tensor, target: Tensor, lengths: Any = None) -> Tensor:
        memory, states = self.encode(source, lengths)
        outside = None if lengths is None else padding_mask(lengths, source.shape[1], source.device)
        return self.decode(target, states, memory, outside)[0]

    @no_grad()
    def translate(self, source: Tensor, lengths: Any = None, max_length: int = 100) -> list[Translation]:
        """The most probable token of each step, up to eos or max_length.

        Args:
            source: (B, S) int64. lengths: (B,) or None.
            max_length: tokens at most, at least 1.

        Raises:
            ArgumentError (ValueError, RuntimeError): max_length below 1.
        """
        if max_length < 1:
            raise ArgumentError(f"translate: wants max_length of at least 1, got {max_length}")
        memory, states = self.encode(source, lengths)
        outside = None if lengths is None else padding_mask(lengths, source.shape[1], source.device)
        tokens, steps = full((len(source), 1), self.bos, dtype=source.dtype, device=source.device), []
        for _ in range(max_length):
            logits, states = self.decode(tokens, states, memory, outside)
            best, tokens = F.log_softmax(logits[:, -1], 1).max(1, keepdim=True)
            steps.append((tokens[:, 0], best[:, 0]))
            if all(self.eos in row for row in stack([t for t, _ in steps], 1).tolist()):
                break
        tokens, scores = (stack(list(columns), 1).tolist() for columns in zip(*steps, strict=True))
        return [self.cut(*row) for row in zip(tokens, scores, strict=True)]

    def cut(self, tokens: list[int], scores: list[float]) -> Translation:
        """What stands before eos; its score counts eos too."""
        end = tokens.index(self.eos) if self.eos in tokens else len(tokens)
        return Translation(tokens[:end], sum(scores[: end + 1]))


def rnnlm_librispeech(**options: Any) -> RNNLM:
    """SpeechBrain's LibriSpeech language model over 1,000 word pieces: 53,104,104 parameters."""
    return RNNLM(**options)


rnnlm_librispeech.__name__ = "rnnlm-librispeech"
rnnlm_librispeech = register(rnnlm_librispeech)


@register
def sequence_classifier(**options: Any) -> SequenceClassifier:
    """A classifier of sequences; its options are SequenceClassifier's."""
    return SequenceClassifier(**options)


@register
def seq2seq(**options: Any) -> Seq2Seq:
    """A translator with attention; its options are Seq2Seq's."""
    return Seq2Seq(**options)
