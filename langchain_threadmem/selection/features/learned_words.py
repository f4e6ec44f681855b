"""Learned word vectors, which measure how well a message follows an answer.

A number follows "for how many?", a yes follows "is that right?". `WordVectors` contains two short vectors for
each of several thousand common words: a vector for the end of an answer and a vector for the beginning of a
message. The dot product of the sums of these vectors measures how well a message follows an answer. Words
outside of the vocabulary, such as words of another language, are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common.arrays import Floats

MESSAGE_START = 300
"""The number of characters at the beginning of a message that are read."""
ANSWER_END = 160
"""The number of characters at the end of an answer that are read."""
NUMBER = "<number>"
RAREST = 7.0
"""The rarity of a term outside of `WordVectors.common`, for a frequency of about one dialog in a thousand."""

_TOKEN = re.compile(r"\d+|[^\W\d_]+(?:'[^\W\d_]+)*|\?")


def message_words(text: str) -> set[str]:
    """The words of a message for `WordVectors`; every number is the same word.

    Example:
        >>> sorted(message_words("At 7, for two?"))
        ['<number>', '?', 'at', 'for', 'two']
    """
    return _words(text[:MESSAGE_START])


def answer_words(text: str) -> set[str]:
    """The words of an answer for `WordVectors`."""
    return _words(text[-ANSWER_END:])


def _words(text: str) -> set[str]:
    tokens = _TOKEN.findall(text.lower().replace("\u2019", "'"))
    return {NUMBER if word.isdigit() else word for word in tokens}


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Learned vectors and numbers of the words of a vocabulary.

    Attributes:
        vocabulary: The words, in the order of the rows.
        answer: (words, rank) the vector of a word at the end of an answer.
        message: (words, rank) the vector of a word at the beginning of a message.
        opener: (words,) the weight of a word for the first message of a thread.
        closing: (2, words) the weight of a word, in the answer and in the human message, for the last turn of
            a thread.
        common: Common terms (`cues.terms`), in the order of `rarity`.
        rarity: The negative logarithm of the share of dialogs that contain each term.
    """

    vocabulary: tuple[str, ...]
    answer: Floats
    message: Floats
    opener: Floats
    closing: Floats
    common: tuple[str, ...] = ()
    rarity: Floats = field(default_factory=lambda: np.zeros(0, np.float32))

    @cached_property
    def rank(self) -> int:
        """The number of dimensions of a vector."""
        return int(self.answer.shape[1])

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.vocabulary)}

    @cached_property
    def _rarities(self) -> Mapping[str, float]:
        return dict(zip(self.common, self.rarity.tolist(), strict=True))

    def rarities(self, terms: Iterable[str]) -> NDArray[np.float64]:
        """The rarity of each term."""
        return np.array([self._rarities.get(term, RAREST) for term in terms], np.float64)

    def shares(self, words: Iterable[str]) -> tuple[list[int], float]:
        """The rows of the words of the vocabulary, and the weight of each row."""
        all_rows = self.rows
        rows = sorted([all_rows[word] for word in words if word in all_rows])
        return rows, (len(rows) + 1) ** -0.5

    def of_message(self, text: str) -> Floats:
        """The vector of a message, then its weight as an opening and its weight as the end of a thread."""
        return self._sum(self._of_messages, message_words(text))

    def of_answer(self, text: str) -> Floats:
        """The vector of an answer, then its weight as the end of a thread."""
        return self._sum(self._of_answers, answer_words(text))

    @cached_property
    def _of_messages(self) -> Floats:
        return np.column_stack([self.message, self.opener, self.closing[1]])

    @cached_property
    def _of_answers(self) -> Floats:
        return np.column_stack([self.answer, self.closing[0]])

    def _sum(self, table: Floats, words: Iterable[str]) -> Floats:
        rows, share = self.shares(words)
        vector: Floats = table[rows].sum(0) * np.float32(share)
        return vector


NO_WORDS = WordVectors(
    (), *(np.zeros((0, 1), np.float32),) * 2, np.zeros(0, np.float32), np.zeros((2, 0), np.float32)
)
"""An empty vocabulary, for languages without learned words; every term has the rarity of an unknown term."""
