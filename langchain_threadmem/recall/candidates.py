"""Candidates by words, from the lexicon, and by meaning, from the vectors; no message is read.

A posting list contains the keys of the messages that contain a term. Keys of a segment that differ by at
most `REACH` are neighbours. The lists are merged into a line of keys, in which longer gaps are shortened.
The value of a key is the weight of the terms in its message and in the neighbours, in the proportion of
`recall.scoring`. The message itself may contain no term, such as the answer to a question between people.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common.arrays import Keys
from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.index import lexicon, vectors, watermarks
from langchain_threadmem.index.catch_up_words import catch_up_words
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.language import split
from langchain_threadmem.index.unindexed import NewMessages, new_messages
from langchain_threadmem.index.vector_index import ExactIndex, VectorIndex, nearest_among
from langchain_threadmem.index.vectors import Vectors
from langchain_threadmem.recall.postings import REACH, Doubles, Figures
from langchain_threadmem.recall.question import Question, question_of
from langchain_threadmem.recall.scoring import rarity
from langchain_threadmem.recall.weights import PEOPLE
from langchain_threadmem.storage.schema import POSITION_BITS
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes

READ_WHOLE = 20_000
"""The number of messages from which only candidates are scored. A cached message takes 80 bytes plus its
terms."""
FINE = 1 << 18
"""The sum of the integer weights of all terms of a question."""
OWN = (REACH + 1) * PEOPLE["own"][1] / PEOPLE["window"][1]
"""The additional weight of a term in the message itself; a term `REACH` messages away has the weight 1."""


class Suggestions(NamedTuple):
    """Candidates by words, from the lexicon alone.

    Attributes:
        question: The parsed query.
        figures: Statistics of all searched messages.
        keys: Keys of the candidates, in no order.
        windows: Lexical scores of their neighbourhoods.
        cut: Whether a posting list was cut to the newest messages.
        new: The messages that the lexicon lacks.
    """

    question: Question
    figures: Figures
    keys: NDArray[np.int64]
    windows: Doubles
    cut: bool
    new: NewMessages


def by_words(
    conn: Conn,
    runtime: Runtime,
    tree: int | None,
    query: str,
    most: int,
    now: float,
    each: int = lexicon.MOST_PER_WORD,
) -> Suggestions:
    """The messages that contain the most and rarest words of a query, and their neighbours.

    Args:
        tree: The conversation to search; `None` for all conversations of the owner.
        now: The current time, in seconds since 1970.
        each: The maximum length of a posting list; longer lists are cut to the newest messages.
    """
    scope = lexicon.LexiconScope(runtime.owner, tree)
    name = runtime.get(Indexes).lexicon
    new = new_messages(conn, runtime, tree)
    if tree is None:
        indexed = watermarks.total(conn, runtime.owner, name)
    else:
        indexed = watermarks.get(conn, tree, name).watermark
    words = dict.fromkeys(split(query))
    names = lexicon.names_among(conn, words, scope) | new.names_among(words)
    question = question_of(query, runtime.get(Indexes).language, names, now, now)
    terms = list(question.terms)
    lists = new.holding(terms, lexicon.holding(conn, terms, scope, each))
    documents = indexed.documents + new.documents
    frequency = {
        term: _frequency(conn, keys, documents, each) for term, keys in zip(terms, lists, strict=True)
    }
    average = (indexed.words + new.length) / max(documents, 1)
    figures = Figures(documents, average, average, frequency)
    weights = [rarity(documents, frequency[term]) for term in terms]
    keys, windows = likely_keys(lists, weights, most)
    cut = any(len(keys) >= each for keys in lists)
    return Suggestions(question, figures, keys, windows, cut, new)


def likely_keys(lists: Sequence[Keys], weights: Sequence[float], most: int) -> tuple[Keys, Doubles]:
    """The keys with the highest values, in no order, with the lexical scores of their neighbourhoods.

    Messages of different segments are not neighbours.

    Args:
        lists: For each term, the keys of the messages that contain it.
        weights: The weight of each term.

    Example:
        >>> keys, scores = likely_keys([np.array([40, 41]), np.array([70])], [1.0, 1.0], 2)
        >>> sorted(keys.tolist()), scores.round(2).tolist()
        ([40, 41], [0.94, 0.94])
    """
    keys = np.concatenate(lists) if lists else np.empty(0, np.int64)
    total = sum(weights)
    if not len(keys) or not total:
        return np.empty(0, np.int64), np.empty(0)
    order = np.argsort(keys)
    keys = keys[order]
    weight_of = np.repeat([round(FINE * weight / total) for weight in weights], [*map(len, lists)])[order]
    first = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    with_term, own_weight = keys[first], np.add.reduceat(weight_of, first)
    places = (
        np.cumsum(np.minimum(np.diff(with_term, prepend=with_term[0] - 1), 2 * REACH + 1)) + 2 * REACH + 1
    )
    line = np.zeros(int(places[-1]) + 2 * (REACH + 1), np.int32)
    line[places] = own_weight
    windows = _windows(line)
    places -= REACH + 2
    value = windows.copy()
    value[places] += (OWN * own_weight).astype(np.int32)
    # Most places contain no term: places below the best `most` places with a term need not be ranked.
    least = np.partition(value[places], -most)[-most] if len(places) > most else 1
    best = np.flatnonzero(value >= least)
    if len(best) > most:
        best = best[np.argpartition(value[best], -most)[-most:]]
    # A place represents the key at the same distance from the nearest key with a term.
    before = np.clip(np.searchsorted(places, best, "right") - 1, 0, None)
    after = np.clip(before + 1, None, len(places) - 1)
    nearer = np.where(np.abs(places[after] - best) < np.abs(places[before] - best), after, before)
    candidates = with_term[nearer] + (best - places[nearer])
    inside = candidates >> POSITION_BITS == with_term[nearer] >> POSITION_BITS
    return candidates[inside], windows[best[inside]] / (FINE * (REACH + 1))


def _windows(line: NDArray[np.int32]) -> NDArray[np.int32]:
    """Sums of values around each place from `REACH + 2` on, weighted by a triangle of height `REACH + 1`.
    A triangle is the convolution of two boxes, and a box is the difference of two running sums, which are
    exact for integers. This is several times faster than `np.convolve`.
    """
    for _ in range(2):
        running = np.cumsum(line, dtype=np.int32)
        line = running[REACH + 1 :] - running[: -REACH - 1]
    return line


def likely(runtime: Runtime, tree: int, text: str, most: int, before: int) -> Flow[list[int]]:
    """The numbers of the nodes of a tree, below `before`, that share words with a text; the best first."""
    yield from catch_up_words(runtime, tree)

    def read(conn: Conn) -> list[int]:
        # Many candidates are newer than `before`, and some keys are neighbours without a message.
        suggested = by_words(conn, runtime, tree, text, 4 * most, time.time())
        score_of = dict(zip(suggested.keys.tolist(), suggested.windows.tolist(), strict=True))
        rows = [row for row in nodes.by_keys(conn, score_of) if row.seq < before]
        return [row.seq for row in sorted(rows, key=lambda row: -score_of[row.key])[:most]]

    return (yield from Sql(read))


def _frequency(conn: Conn, keys: NDArray[np.int64], documents: int, each: int) -> int:
    """The number of messages that contain a word, estimated if the list was cut to the newest `each`."""
    if len(keys) < each:
        return len(keys)
    newest, oldest = int(keys[0]), int(keys[-1])
    one_segment = newest >> POSITION_BITS == oldest >> POSITION_BITS
    reach = newest - oldest + 1 if one_segment else nodes.reach(conn, newest, oldest)
    return max(len(keys), min(documents, len(keys) * documents // max(reach, len(keys))))


def nearest_of(among: Vectors, vector: NDArray[np.float32], most: int) -> dict[int, float]:
    """Cosines of the nearest vectors, by key."""
    found = nearest_among(among, vector, most)
    return dict(zip(found.keys.tolist(), found.similarity.tolist(), strict=True))


def nearest(
    runtime: Runtime, index: VectorIndex | ExactIndex | None, vector: NDArray[np.float32], most: int
) -> Flow[dict[int, float]]:
    """Cosines of the nearest messages and summaries of an owner, by key."""
    if index is not None:
        hits = yield from Call(lambda: index.search(vector, most))
        return dict(zip(hits.keys.tolist(), hits.similarity.tolist(), strict=True))
    model = runtime.get(Indexes).model
    among = yield from Sql(lambda conn: vectors.of_owner(conn, runtime.owner, model))
    return nearest_of(among, vector, most)
