"""TextRank: selection of the sentences of a text that share the most words with other sentences."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from langchain_threadmem.index.language import ENGLISH, words
from langchain_threadmem.messages.text import cut

if TYPE_CHECKING:
    import networkx as nx

_END = re.compile(r"(?<=[.!?。！？…])\s+|\n+")
_SPEAKER = re.compile(r"^[\w-]{1,30}: ")
DAMPING = 0.85
STEPS = 100
MOST_SENTENCES = 400
"""The maximum number of compared sentences, evenly spaced over a longer text."""
LONGEST = 300
"""The maximum length of a sentence in characters; longer sentences are cut."""


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, each once, in order.

    Example:
        >>> sentences("It rained. We stayed in! It rained.")
        ['It rained.', 'We stayed in!']
    """
    parts = (" ".join(part.split()) for part in _END.split(text))
    return list(dict.fromkeys(cut(part, LONGEST) for part in parts if part))


def sentence_graph(candidates: Sequence[str]) -> nx.Graph[int]:
    """The graph of sentences, by position, with an edge between sentences that share words.

    The weight of an edge is the number of shared words divided by the sum of the logarithms of the lengths,
    so that long sentences are not close to all others.

    Example:
        >>> graph = sentence_graph(["Bread needs time.", "Good bread needs warmth.", "Hello!"])
        >>> sorted(graph.edges), graph.number_of_nodes()
        ([(0, 1)], 3)
    """
    import networkx as nx

    terms = [informative(sentence) for sentence in candidates]
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(candidates)))
    for first, second in combinations(range(len(candidates)), 2):
        if shared := len(terms[first] & terms[second]):
            lengths = math.log(1 + len(terms[first])) + math.log(1 + len(terms[second]))
            graph.add_edge(first, second, weight=shared / lengths)
    return graph


def informative(sentence: str) -> set[str]:
    """The words of a sentence without English stop words and without the speaker.

    Example:
        >>> sorted(informative("user: Is the bread flat?"))
        ['bread', 'flat']
    """
    found = words(_SPEAKER.sub("", sentence))
    return {word for word in found if word not in ENGLISH.stop_words and len(word) > 1}


def rank(graph: nx.Graph[int]) -> list[float]:
    """The PageRank of each node, in the order of the nodes."""
    import networkx as nx

    if not graph:
        return []
    # networkx.pagerank() requires SciPy; google_matrix() does not, and products of small matrices are fast.
    matrix = np.asarray(nx.google_matrix(graph, alpha=DAMPING))
    ranks = np.full(len(graph), 1 / len(graph))
    for _ in range(STEPS):
        ranks, before = ranks @ matrix, ranks
        if np.abs(ranks - before).sum() < 1e-9:
            break
    values: list[float] = ranks.tolist()
    return values


def extract(text: str, most: int) -> tuple[str, list[str]]:
    """A title and the highest-ranked sentences of a text, in order.

    Returns:
        The title, of up to four words by falling rank, and the sentences. Both are empty for an empty text.

    Example:
        >>> extract("Bread needs time. Hello! Bread with time and water needs warmth. Water is cold.", 1)
        ('Bread, needs, time, water', ['Bread with time and water needs warmth.'])
    """
    candidates = _sample(sentences(text))
    if not candidates:
        return "", []
    ranks = rank(sentence_graph(candidates))
    # Ranks are rounded so that ties are independent of the order of floating-point sums.
    best = sorted(range(len(candidates)), key=lambda n: (-round(ranks[n], 9), n))[:most]
    return _title(candidates, ranks), [candidates[n] for n in sorted(best)]


def _title(candidates: Sequence[str], ranks: Sequence[float]) -> str:
    weight: Counter[str] = Counter()
    for sentence, score in zip(candidates, ranks, strict=True):
        for word in sorted(informative(sentence), key=sentence.lower().find):
            weight[word] += round(score, 9)  # type: ignore[assignment]
    chosen = [word for word, _ in weight.most_common(4)] or words(candidates[0])[:4] or [candidates[0][:40]]
    title = ", ".join(chosen)
    return title[0].upper() + title[1:]


def _sample(candidates: list[str]) -> list[str]:
    """At most `MOST_SENTENCES` sentences, evenly spaced."""
    if len(candidates) <= MOST_SENTENCES:
        return candidates
    step = (len(candidates) - 1) / (MOST_SENTENCES - 1)
    return [candidates[round(n * step)] for n in range(MOST_SENTENCES)]
