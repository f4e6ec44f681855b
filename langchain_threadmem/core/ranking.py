"""Ranking: scores in, order out.

Lexical scores are BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond",
2009) over candidates that an index found; meaning is the cosine of unit vectors. The two are on scales of
their own, so each is turned into a z-score among the candidates of one query, and the z-scores are added: on
chats that beats fusing ranks, which forgets by how much the first was better than the second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

K1 = 1.2
B = 0.4  # Chat messages differ in length by who speaks, not by how much they cover: normalise gently.
MEANING_WEIGHT = 1.0


class Corpus(NamedTuple):
    """What BM25 must know of all messages, not only of the candidates.

    Attributes:
        documents: How many messages are searched.
        words: How many words they hold together.
        frequency: For each query word, how many of them hold it.
    """

    documents: int
    words: int
    frequency: Mapping[str, int]

    def rarity(self, word: str) -> float:
        """Inverse document frequency, never negative.

        Example:
            >>> corpus = Corpus(100, 2000, {"csv": 1, "file": 50})
            >>> corpus.rarity("csv") > corpus.rarity("file") > 0
            True
        """
        frequency = self.frequency.get(word, 0)
        return math.log(1 + (max(self.documents, frequency) - frequency + 0.5) / (frequency + 0.5))


class Lexical(NamedTuple):
    """A message's lexical score, and the query words it holds, the rarest first."""

    score: float
    shared: tuple[str, ...]


def bm25(query: Sequence[str], documents: Sequence[Sequence[str]], corpus: Corpus) -> list[Lexical]:
    """Score documents against a query.

    Args:
        query: Distinct words.
        documents: The words of each document.
        corpus: Figures over everything that is searched.

    Returns:
        One score for each document; 0.0 where no word is shared.

    Example:
        >>> corpus = Corpus(2, 6, {"csv": 1})
        >>> bm25(["csv"], [["read", "csv", "files"], ["hello"]], corpus)[0].shared
        ('csv',)
    """
    rarity = {word: corpus.rarity(word) for word in sorted(query, key=corpus.rarity, reverse=True)}
    average = max(corpus.words / max(corpus.documents, 1), 1.0)
    scores = []
    for document in documents:
        held = set(document)
        shared = tuple(word for word in rarity if word in held)
        length = K1 * (1 - B + B * len(document) / average)
        score = 0.0
        for word in shared:
            count = document.count(word)
            score += rarity[word] * count * (K1 + 1) / (count + length)
        scores.append(Lexical(score, shared))
    return scores


def z_scores(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distances from the mean in standard deviations; all zero if the values do not differ.

    Example:
        >>> z_scores(np.array([1.0, 3.0])).tolist()
        [-1.0, 1.0]
    """
    spread = values.std() if len(values) else 0.0
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)


def fuse(
    lexical: Sequence[float], similarity: NDArray[np.float32] | None, weight: float = MEANING_WEIGHT
) -> NDArray[np.float64]:
    """One score for each candidate from its words and its meaning.

    Args:
        lexical: BM25 scores, 0.0 for no shared word.
        similarity: Cosines, or `None` if nothing is embedded: then the lexical scores stand as they are.
        weight: How much meaning counts beside words.

    Example:
        >>> fuse([2.0, 0.0], None).tolist()
        [2.0, 0.0]
    """
    words = np.asarray(lexical, dtype=np.float64)
    if similarity is None:
        return words
    return z_scores(words) + weight * z_scores(similarity.astype(np.float64))
