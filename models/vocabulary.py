"""The characters of a language model, and their numbers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

# The first numbers of every vocabulary, as Stanza has them; only UNKNOWN is ever met in a text.
SPECIAL = ("<PAD>", "<UNK>", "<EMPTY>", "<ROOT>")
UNKNOWN = 1


class Vocabulary:
    """Characters by number, in Stanza's order: four special units first.

    Args:
        units: the unit of each number; unique, the first four are SPECIAL.
        lower: texts are put into lower case before they are numbered.

    Raises:
        ValueError: other special units, or a unit twice. TypeError: a unit that is no str.

    Example:
        >>> from zoo.models.vocabulary import Vocabulary
        >>> vocabulary = Vocabulary.of("abba")
        >>> len(vocabulary), vocabulary.encode("bat").tolist(), vocabulary.decode([5, 4])
        (6, [5, 4, 1], 'ba')

    Source: CharVocab in stanza/models/common/vocab.py (layout of the files only).
    """

    def __init__(self, units: Sequence[str], lower: bool = False):
        self.units, self.lower = tuple(units), bool(lower)
        if not all(isinstance(unit, str) for unit in self.units):
            raise TypeError("Vocabulary: wants units that are str")
        if self.units[: len(SPECIAL)] != SPECIAL:
            raise ValueError(f"Vocabulary: wants {', '.join(SPECIAL)} first, got {list(self.units[:4])}")
        self.numbers = {unit: number for number, unit in enumerate(self.units)}
        if len(self.numbers) != len(self.units):
            raise ValueError("Vocabulary: wants every unit once")

    @classmethod
    def of(cls, text: Iterable[str]) -> "Vocabulary":
        """The vocabulary of all characters of a text, in their order in Unicode."""
        return cls((*SPECIAL, *sorted(set(text))))

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> "Vocabulary":
        """From the dict `vocab` of a Stanza file.

        Raises:
            ValueError, TypeError: another dict, or numbers that do not fit the units.
        """
        units, numbers = state.get("_id2unit"), state.get("_unit2id")
        if not isinstance(units, list) or not isinstance(numbers, Mapping):
            raise ValueError("Vocabulary: wants a dict with _id2unit and _unit2id, as Stanza writes it")
        made = cls(units, bool(state.get("lower", False)))
        if made.numbers != dict(numbers):
            raise ValueError("Vocabulary: _id2unit and _unit2id contradict each other")
        return made

    def state_dict(self) -> dict[str, Any]:
        """The dict that Stanza's files hold."""
        return {"lang": "", "idx": 0, "cutoff": 0, "lower": self.lower, "_unit2id": dict(self.numbers),
                "_id2unit": list(self.units)}

    def encode(self, text: str) -> np.ndarray:
        """The numbers (len(text),) int64 of the characters; UNKNOWN for those that have none.

        Raises:
            TypeError: text is no str.
        """
        if not isinstance(text, str):
            raise TypeError(f"encode: wants a text as str, got {type(text).__name__}")
        characters = text.lower() if self.lower else text
        return np.fromiter((self.numbers.get(c, UNKNOWN) for c in characters), np.int64)

    def decode(self, numbers: Iterable[int]) -> str:
        """The characters of numbers; special units are left out."""
        return "".join(self.units[number] for number in numbers if number >= len(SPECIAL))

    def __len__(self) -> int:
        return len(self.units)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and (self.units, self.lower) == (other.units, other.lower)

    def __hash__(self) -> int:
        return hash((self.units, self.lower))

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} units{', lower case' if self.lower else ''})"
