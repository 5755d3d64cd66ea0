"""What recurrent language models share: writing, scoring and embedding of sequences of tokens."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from zoo.autograd.creation import from_numpy
from zoo.autograd.mode import no_grad
from zoo.autograd.random import Generator, rand
from zoo.autograd.tensor import Tensor
from zoo.models.sampling import check, pick
from zoo.nn import functional as F  # noqa: N812
from zoo.nn.module import Module
from zoo.ops.device import fetch

STEPS = 2048        # of one pass: bounds the memory that a long text takes


class SequenceModel(Module):
    """Base class of the models of sequences: what hub.save_pretrained has to know of one."""

    architecture: str                       # the name in the model registry; hub.load says under which it was asked for

    def options(self) -> dict[str, Any]:
        """The builder's arguments for a model of this kind and size, as JSON; {} if the weights' file says them."""
        raise NotImplementedError(f"{type(self).__name__}: write options")

    def contents(self) -> dict[str, Any]:
        """What the weights' file holds."""
        return {key: fetch(value.array) for key, value in self.state_dict().items()}


class LanguageModel(SequenceModel):
    """Base class: a model that says for each token which ones may follow.

    A subclass writes `features` and `scores`, and where its tokens are characters `encode` and `decode`.

    Shape: (B, T) int64, states -> logits (B, T, V), states. states is None for the start of a text.
    """

    start: int                              # the token before the first one
    never: tuple[int, ...] = ()             # tokens that are not generated

    def features(self, tokens: Tensor, states: Any = None, lengths: Any = None) -> tuple[Tensor, Any]:
        """Outputs (B, T, H) of the recurrent layers for tokens (B, T), and the last states."""
        raise NotImplementedError(f"{type(self).__name__}: write features")

    def scores(self, outputs: Tensor) -> Tensor:
        """From outputs (B, T, H) to logits (B, T, V)."""
        raise NotImplementedError(f"{type(self).__name__}: write scores")

    def forward(self, tokens: Tensor, states: Any = None) -> tuple[Tensor, Any]:
        outputs, states = self.features(tokens, states)
        return self.scores(outputs), states

    def encode(self, text: Any) -> np.ndarray:
        """The tokens (n,) int64 of a text, in the order in which the model reads them."""
        return np.asarray(text, np.int64).reshape(-1)

    def decode(self, tokens: Sequence[int]) -> Any:
        """The text of tokens in the order in which the model writes them."""
        return list(tokens)

    def joined(self, prompt: Any, written: list[Any]) -> Any:
        """The prompt and the decoded tokens written after it."""
        return [*prompt, *(token for piece in written for token in piece)]

    # -- what users call

    def generate(
        self, prompt: Any = "", length: int = 200, *, temperature: float = 1.0, top_k: int | None = None,
        top_p: float | None = None, seed: int | None = None,
    ) -> Any:
        """Continues a text.

        Args:
            prompt: how it begins (for a backward model, how it ends).
            length: tokens to write.
            temperature: above 1 more surprising, below 1 more probable, 0 always the most probable token.
            top_k: choose only from the k most probable tokens. top_p: only from the fewest that together have at
                least this probability, in (0, 1].
            seed: the same seed gives the same text on every device; None: zoo's global generator.

        Returns:
            The prompt with its continuation.

        Raises:
            ValueError: an option out of range, or a model in training mode.

        Example:
            >>> from zoo import hub
            >>> text = hub.load("charlm_kjv").generate("And God said", 40, temperature=0)
            >>> text[:12], len(text)
            ('And God said', 52)
        """
        return self.joined(prompt, list(self.stream(prompt, length, temperature, top_k, top_p, seed)))

    def stream(
        self, prompt: Any = "", length: int = 200, temperature: float = 1.0, top_k: int | None = None,
        top_p: float | None = None, seed: int | None = None,
    ) -> Iterator[Any]:
        """`generate`, one token at a time: what was just written, without the prompt.

        Example:
            >>> from zoo import hub
            >>> "".join(hub.load("charlm_kjv").stream("In the beginning", 3, temperature=0, seed=1)).isprintable()
            True
        """
        self.check_ready("generate")
        check(temperature, top_k, top_p)
        if isinstance(length, bool) or not isinstance(length, int) or length < 0:
            raise ValueError(f"generate: wants a length of at least 0, got {length!r}")
        generator = None if seed is None else Generator().manual_seed(seed)
        return self.written(self.encode(prompt), rand(length, generator=generator).tolist(), temperature, top_k, top_p)

    def score(self, text: Any) -> float:
        """Bits that a text takes per token (per character), coded by the model: the mean of -log2 p(token | before).

        Args:
            text: at least one token.

        Returns:
            Bits per token; 2 to its power is the perplexity.

        Raises:
            ValueError: an empty text, or a model in training mode.

        Example:
            >>> from zoo import hub
            >>> model = hub.load("charlm_kjv")
            >>> model.score("And God said unto Noah") < 2 < model.score("qzx vkj wqq")
            True
        """
        self.check_ready("score")
        tokens = self.encode(text)
        if not tokens.size:
            raise ValueError("score: wants at least one token, got an empty text")
        inputs, states, total = np.concatenate([[self.start], tokens[:-1]]), None, 0.0
        for begin in range(0, tokens.size, STEPS):
            logits, states = self.step(inputs[begin : begin + STEPS], states)
            targets = self.tensor(tokens[begin : begin + STEPS])
            with no_grad():
                total += F.cross_entropy(logits.double(), targets, reduction="sum").item()
        return total / math.log(2) / tokens.size

    @no_grad()
    def embed(self, texts: Any) -> Tensor:
        """The last state of the last recurrent layer after each text: features for whatever is done with texts.

        Args:
            texts: a list of N texts of any lengths, or one text.

        Returns:
            (N, H) floating, or (H,) for one text. A text's features do not depend on the others.

        Raises:
            ValueError: no text, or a model in training mode.

        Example:
            >>> from zoo import hub
            >>> hub.load("charlm_kjv").embed(["And God said", "Let there be light"]).shape
            (2, 256)
        """
        self.check_ready("embed")
        several = isinstance(texts, (list, tuple)) and not (texts and isinstance(texts[0], int))
        rows = [np.concatenate([[self.start], self.encode(text)]) for text in (texts if several else [texts])]
        if not rows:
            raise ValueError("embed: wants at least one text, got none")
        lengths = [len(row) for row in rows]
        padded = np.full((len(rows), max(lengths)), self.start, np.int64)
        for row, tokens in zip(padded, rows, strict=True):
            row[: len(tokens)] = tokens
        h, _ = self.features(self.tensor(padded), None, lengths)[1]
        return h[-1] if several else h[-1, 0]

    # -- how it is done

    def check_ready(self, what: str) -> None:
        """Raises while dropout is active."""
        if self.training:
            raise ValueError(f"{what}: the model is in training mode; model.eval() ends that")

    def tensor(self, tokens: np.ndarray) -> Tensor:
        """Tokens on the model's device."""
        return from_numpy(np.ascontiguousarray(tokens)).to(next(self.parameters()).device)

    @no_grad()
    def step(self, tokens: np.ndarray, states: Any) -> tuple[Tensor, Any]:
        """Logits (T, V) after each of T tokens of one text, and the states after the last one."""
        logits, states = self(self.tensor(tokens[None]), states)
        return logits[0], states

    def written(self, prompt: np.ndarray, numbers: list[float], *options: Any) -> Iterator[Any]:
        """Decoded tokens, one for each uniform number; options are `pick`'s."""
        tokens, states = np.concatenate([[self.start], prompt]), None
        for u in numbers:
            logits, states = self.step(tokens, states)
            token = pick(fetch(logits[-1].array), u, *options, never=self.never)
            yield self.decode([token])
            tokens = np.array([token])
