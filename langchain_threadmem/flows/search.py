"""Search in long-term memory: the units that fit a vector, words or both, and pass a filter.

Where a filter leaves few units, these are compared one by one. Else vectors and words bring candidates, the
most promising first; what is not in memory any more, or not wanted, is left out, and more are asked for until
there are enough. With both a vector and words, the scores are added as z-scores (`core.ranking`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.core.asking import question_of
from langchain_threadmem.core.filters import Condition
from langchain_threadmem.core.ranking import Corpus, bm25, fuse
from langchain_threadmem.core.short_term import Range
from langchain_threadmem.core.units import MemoryUnit
from langchain_threadmem.flows.index import catch_up_owner
from langchain_threadmem.flows.runtime import Runtime
from langchain_threadmem.flows.steps import Flow, Search, Sql
from langchain_threadmem.flows.units import read_units
from langchain_threadmem.storage.queries import embeddings, lexicon, marks, memory
from langchain_threadmem.storage.queries.embeddings import Vectors
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.vectors import Found

FEWEST_CANDIDATES = 64
GROWTH = 8
"""By how much more is asked for where a filter left too little."""
FEW = 2000
"""How many units a filter may leave so that all of them are compared."""


class Hit(NamedTuple):
    """A unit of long-term memory that fits.

    Attributes:
        key: Its node's key.
        unit: The unit.
        score: Comparable within one search only.
    """

    key: int
    unit: MemoryUnit
    score: float


def search(
    runtime: Runtime,
    vector: NDArray[np.float32] | None,
    text: str | None,
    most: int,
    within: Range,
    wanted: Condition | None,
    known: Collection[int] = (),
) -> Flow[list[Hit]]:
    """The units that fit best, the best first.

    Args:
        runtime: Whose memory.
        vector: A unit vector to compare meanings with; `None` for words alone.
        text: Words to compare; `None` for meaning alone.
        most: How many at most.
        within: The lowest and highest cosine that counts; of no effect without a vector.
        wanted: Which units count at all.
        known: Keys of units that are not to be found again.
    """
    index = yield from catch_up_owner(runtime)
    owner, model = runtime.owner, runtime.model
    asked = [] if text is None else list(question_of(text, runtime.language).terms)
    limit = lexicon.MOST_PER_WORD
    held = yield from Sql(lambda conn: _holding(conn, runtime, asked, limit))
    look = _Look(runtime, vector, asked, held.corpus, within, wanted, set(known))
    few = None
    if wanted is not None:
        few = yield from Sql(lambda conn: memory.matching(conn, owner, wanted, FEW))
    if few is not None:
        promise = held.promise()
        return look.ranked((yield from Sql(lambda conn: look.hits(conn, few, {}, promise, most))))[:most]
    vectors = None
    if vector is not None and index is None:
        vectors = yield from Sql(lambda conn: embeddings.of_owner(conn, owner, model))
    count = max(FEWEST_CANDIDATES, 4 * most)
    hits: list[Hit] = []
    while True:
        near: dict[int, float] = {}
        if vector is not None:
            ask = partial(_exact, vectors, vector, count) if vectors else partial(index.search, vector, count)  # type: ignore[union-attr]
            found = yield from Search(ask)
            near = dict(zip(found.keys.tolist(), found.similarity.tolist(), strict=True))
        promise = held.promise()
        promising = sorted(promise, key=lambda key: -promise[key])[:count]
        keys = [*near, *(key for key in promising if key not in near)]
        hits += yield from Sql(partial(look.hits, keys=keys, near=near, promise=promise, most=len(keys)))
        look.known.update(keys)
        low = within[0]
        past = len(near) < count or (low is not None and min(near.values()) < low)
        # Without a filter, what is no candidate among so many would not come first either.
        more = wanted is not None and held.is_cut(limit)
        if len(hits) >= most or (past and len(promising) < count and not more):
            return look.ranked(hits)[:most]
        count *= GROWTH
        if more:
            limit = max(limit * GROWTH, count)
            held = yield from Sql(lambda conn: _holding(conn, runtime, asked, limit))  # noqa: B023 - likewise


class _Holding(NamedTuple):
    """What the lexicon knows of a query: figures, and the newest units that hold each term."""

    corpus: Corpus
    lists: Mapping[str, Sequence[int]]

    def promise(self) -> dict[int, float]:
        """How rare the terms are that units hold, without a look at any of them."""
        found: dict[int, float] = {}
        for term, keys in self.lists.items():
            for key in keys:
                found[key] = found.get(key, 0.0) + self.corpus.rarity(term)
        return found

    def is_cut(self, limit: int) -> bool:
        """Whether more units than were asked for may hold a term."""
        return any(len(keys) >= limit for keys in self.lists.values())


def _holding(conn: Conn, runtime: Runtime, asked: Sequence[str], limit: int) -> _Holding:
    scope = lexicon.Scope(runtime.owner)
    total = marks.total(conn, runtime.owner, runtime.lexicon)
    held = lexicon.holding(conn, asked, scope, limit)
    lists = {term: keys.tolist() for term, keys in zip(asked, held, strict=True)}
    frequency = {term: len(keys) for term, keys in lists.items()}
    return _Holding(Corpus(total.documents, total.words, frequency), lists)


def _exact(held: Vectors, vector: NDArray[np.float32], count: int) -> Found:
    if not len(held.keys):
        return Found(held.keys, np.empty(0, np.float32))
    similarity = held.matrix @ vector
    order = np.argsort(-similarity, kind="stable")[:count]
    return Found(held.keys[order], similarity[order])


class _Look(NamedTuple):
    """One search, and what its hits must be like."""

    runtime: Runtime
    vector: NDArray[np.float32] | None
    asked: Sequence[str]
    corpus: Corpus
    within: Range
    wanted: Condition | None
    known: set[int]
    """What was found or looked at already."""

    def hits(
        self,
        conn: Conn,
        keys: Sequence[int],
        near: Mapping[int, float],
        promise: Mapping[int, float],
        most: int,
    ) -> list[Hit]:
        """Candidates that count, with their cosines; the most promising, once there are enough."""
        owner, similarity = self.runtime.owner, dict(near)
        if self.vector is not None:
            missing = [key for key in keys if key not in near]
            vectors = embeddings.by_keys(conn, self.runtime.model, missing)
            similarity.update((key, float(other @ self.vector)) for key, other in vectors.items())
        counted = [key for key in keys if self._counts(key, similarity)]
        there = memory.present(conn, owner, counted, self.wanted)
        ranked = sorted(
            there,
            key=lambda key: (-similarity.get(key, -1.0), -promise.get(key, 0.0)),
        )
        hits: list[Hit] = []
        at_once = max(FEWEST_CANDIDATES, 4 * most)
        for start in range(0, len(ranked), at_once):
            part = ranked[start : start + at_once]
            hits += [
                Hit(key, unit, similarity.get(key, 0.0))
                for key, unit in zip(part, read_units(conn, owner, part), strict=True)
                if self.wanted is None or self.wanted.holds(unit)
            ]
            if len(hits) >= most:
                break
        return hits

    def _counts(self, key: int, similarity: Mapping[int, float]) -> bool:
        if key in self.known:
            return False
        if self.vector is None:
            return True
        low, high = self.within
        cosine = similarity.get(key)
        if cosine is None:
            return low is None and high is None
        return (low is None or cosine >= low) and (high is None or cosine <= high)

    def ranked(self, hits: Sequence[Hit]) -> list[Hit]:
        """Hits by meaning, by words, or by both; by words alone, one has to be shared."""
        scores = np.array([hit.score for hit in hits], np.float32)
        if self.asked:
            texts = [self.runtime.language.terms(hit.unit.content) for hit in hits]
            lexical = [found.score for found in bm25(self.asked, texts, self.corpus)]
            scores = fuse(lexical, None if self.vector is None else scores).astype(np.float32)
        order = np.argsort(-scores, kind="stable")
        return [
            hits[n]._replace(score=float(scores[n]))
            for n in order
            if self.vector is not None or scores[n] > 0
        ]
