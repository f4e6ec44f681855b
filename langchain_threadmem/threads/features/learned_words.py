"""Learned word vectors: which words follow which.

"For how many?" is followed by a number, "is that right?" by a yes. `Wording` has two short vectors for each
of some thousand common words: as one of the last words of an answer, and as one of the first of a message.
The product of their sums tells how well a message follows an answer. Words that are not in the vocabulary
count for nothing, so a language that it does not hold is neither helped nor misled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]

MESSAGE_START = 300
"""Characters at the beginning of a message that are read."""
ANSWER_END = 160
"""Characters at the end of an answer that are read."""
NUMBER = "<number>"
RAREST = 7.0
"""Rarity of a term that is not common: about one dialog in a thousand holds it."""

_TOKEN = re.compile(r"\d+|[^\W\d_]+(?:'[^\W\d_]+)*|\?")


def message_words(text: str) -> set[str]:
    """The words of a message that are looked at; every number is the same word.

    Example:
        >>> sorted(message_words("At 7, for two?"))
        ['<number>', '?', 'at', 'for', 'two']
    """
    return _words(text[:MESSAGE_START])


def answer_words(text: str) -> set[str]:
    """The words of an answer that are looked at."""
    return _words(text[-ANSWER_END:])


def _words(text: str) -> set[str]:
    found = _TOKEN.findall(text.lower().replace("\u2019", "'"))
    return {NUMBER if word.isdigit() else word for word in found}


@dataclass(frozen=True, eq=False)
class Wording:
    """Numbers for the words of a vocabulary.

    Attributes:
        vocabulary: The words, in the order of the rows.
        answer: Of shape (words, rank): a word at the end of an answer.
        message: Of shape (words, rank): a word at the beginning of a message.
        opener: Of shape (words,): how much it makes a message look like the first of a thread.
        closing: Of shape (2, words), in answer and human message: how much like the last turn of a thread.
        common: Terms (`telling.terms`) that are not rare, in the order of `rarity`.
        rarity: Of each of them: the negative logarithm of the share of dialogs that hold it.
    """

    vocabulary: tuple[str, ...]
    answer: Floats
    message: Floats
    opener: Floats
    closing: Floats
    common: tuple[str, ...] = ()
    rarity: Floats = field(default_factory=lambda: np.zeros(0, np.float32))

    @property
    def rank(self) -> int:
        """How many numbers there are for a word, in each of its places."""
        return int(self.answer.shape[1])

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.vocabulary)}

    @cached_property
    def _rarities(self) -> Mapping[str, float]:
        return dict(zip(self.common, self.rarity.tolist(), strict=True))

    def rarities(self, terms: Iterable[str]) -> NDArray[np.float64]:
        """How rare each of some terms is; what is not common is rarest."""
        return np.array([self._rarities.get(term, RAREST) for term in terms], np.float64)

    def shares(self, words: Iterable[str]) -> tuple[list[int], float]:
        """The rows of those words that are in the vocabulary, and what each weighs."""
        held = self.rows
        rows = sorted([held[word] for word in words if word in held])
        return rows, (len(rows) + 1) ** -0.5

    def of_message(self, text: str) -> Floats:
        """A message: its vector, then how much it opens, then how much it closes."""
        return self._sum(self._of_messages, message_words(text))

    def of_answer(self, text: str) -> Floats:
        """An answer: its vector, then how much it closes."""
        return self._sum(self._of_answers, answer_words(text))

    @cached_property
    def _of_messages(self) -> Floats:
        return np.column_stack([self.message, self.opener, self.closing[1]])

    @cached_property
    def _of_answers(self) -> Floats:
        return np.column_stack([self.answer, self.closing[0]])

    def _sum(self, table: Floats, words: Iterable[str]) -> Floats:
        rows, share = self.shares(words)
        found: Floats = table[rows].sum(0) * np.float32(share)
        return found
