"""The sources of a query: long-term memory, short-term memory, external collections."""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from langchain_threadmem.common.arrays import Vector
from langchain_threadmem.common.filters.conditions import Condition
from langchain_threadmem.common.type_variables import K
from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.runtime import Component, Runtime
from langchain_threadmem.index import lexicon, vectors
from langchain_threadmem.index.documents import document_of_unit
from langchain_threadmem.index.embed import embed
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.owner_index import catch_up_owner
from langchain_threadmem.index.units import memory
from langchain_threadmem.index.units.queries import read_units
from langchain_threadmem.index.units.unit import MemoryUnit
from langchain_threadmem.index.vector_index import ExactIndex, VectorIndex, check_dimensions
from langchain_threadmem.long_term.external import ExternalCollection, ExternalUnit
from langchain_threadmem.long_term.short_term import ShortTermMemory, scores_by_words
from langchain_threadmem.recall.candidates import by_words, nearest
from langchain_threadmem.recall.options import RecallOptions
from langchain_threadmem.recall.question import question_of
from langchain_threadmem.recall.results import Why
from langchain_threadmem.recall.search import CandidateHits, CosineRange, Hit, SearchSource
from langchain_threadmem.recall.sources import PreparedQuery, scored
from langchain_threadmem.recall.versions import Utterance
from langchain_threadmem.storage.statements import Conn

FEWEST_CANDIDATES = 64
"""The minimum number of candidates by words, and by vectors, in long-term memory."""
FEW = 2000
"""The maximum number of units that may meet a filter and are all scored."""
CANDIDATES_PER_HIT = 8
"""The number of texts of an external collection that are read for each hit of a query with a filter."""
NO_VECTOR = np.empty(0, np.float32)


class Sources(Component):
    """The short-term memory and the external collections of one owner."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.short_term: ShortTermMemory[Hashable, MemoryUnit] | None = None
        self.external: list[ExternalCollection] = []

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        if self.short_term is not None:
            for keys in removed.values():
                for key in keys:
                    self.short_term.drop(key)

    def close(self) -> None:
        if self.short_term is not None:
            self.short_term.clear()

    def prepare_for_child(self) -> bool:
        """Keep the short-term memory and the collections in a child process."""
        return True


class SourceQuery(NamedTuple):
    """A query to a source.

    Attributes:
        text: The text of the query; `None` if a vector was passed.
        vector: The unit vector of the query; `None` for words alone.
        condition: The condition on units.
        within: The lowest and the highest cosine of a hit.
    """

    text: str | None
    vector: Vector | None
    condition: Condition | None
    within: CosineRange


def said_by(hit: Hit[Any] | None, unit: MemoryUnit) -> Utterance:
    """The utterance of a unit, as a hit or by itself."""
    summary = (unit.rank, unit.group_id, unit.id) if unit.rank else None
    time = unit.end_time.timestamp()
    if hit is None:
        return Utterance(unit.content, unit.source, "", time, summary=summary)
    order = hit.key if isinstance(hit.key, int) else 0
    return Utterance(unit.content, unit.source, hit.speaker, hit.time or time, order, hit.why.terms, summary)


class UnitSource(SearchSource[K, MemoryUnit]):
    """A source of units, whose fields are those of a condition."""

    def said(self, hit: Hit[K], value: MemoryUnit) -> Utterance:
        return said_by(hit, value)

    def fields(self, value: MemoryUnit) -> MemoryUnit:
        return value


@dataclass(frozen=True)
class LongTermSource(UnitSource[int]):
    """All messages and summaries of an owner.

    A query with a text is scored as in recall, a query with a vector by cosines. If few units may meet the
    condition, all of them are scored; otherwise words and vectors suggest candidates. `long_term_source`
    creates the source.

    Args:
        only: The keys of the units that may meet the condition; `None` if there are many.
        index: The index over all vectors; `None` to search SQL.
    """

    runtime: Runtime
    query: SourceQuery
    only: Sequence[int] | None
    index: VectorIndex | ExactIndex | None

    def candidates(self, most: int, growth: int) -> Flow[CandidateHits[int]]:
        count = growth * max(FEWEST_CANDIDATES, 4 * most)
        if self.query.text is None:
            return (yield from self._by_vector(count))
        return (yield from self._by_text(self.query.text, count))

    def _by_text(self, text: str, count: int) -> Flow[CandidateHits[int]]:
        runtime, only, filtered = self.runtime, self.only, self.query.condition is not None
        vector = NO_VECTOR if self.query.vector is None else self.query.vector
        # Without a filter, the newest units of each word suffice.
        each = max(lexicon.MOST_PER_WORD, count) if filtered else lexicon.MOST_PER_WORD
        now = time.time()
        suggested = yield from Sql(lambda conn: by_words(conn, runtime, None, text, count, now, each))
        near: dict[int, float] | None = {} if vector.size else None
        if vector.size and only is None:
            near = yield from nearest(runtime, self.index, vector, count)
        most = len(only or ()) + 2 * count
        options, query = RecallOptions(most, "owner"), PreparedQuery(text, vector, near)
        result = yield from scored(
            runtime, None, query, suggested, options, now, most, only, singles=filtered
        )
        fewer = len(suggested.keys) < count and not (filtered and suggested.cut)
        return CandidateHits(result.hits, only is not None or (fewer and self._is_past(near, count)))

    def _by_vector(self, count: int) -> Flow[CandidateHits[int]]:
        runtime, only, vector = self.runtime, self.only, self.query.vector
        assert vector is not None
        if only is not None:
            model = runtime.get(Indexes).model
            vector_of = yield from Sql(lambda conn: vectors.by_keys(conn, model, only))
            for stored in vector_of.values():
                check_dimensions(vector, len(stored))
            near = {key: float(stored @ vector) for key, stored in vector_of.items()}
        else:
            near = yield from nearest(runtime, self.index, vector, count)
        hits = [Hit(key, cosine, Why(similarity=cosine)) for key, cosine in near.items()]
        return CandidateHits(hits, only is not None or self._is_past(near, count))

    def _is_past(self, near: Mapping[int, float] | None, count: int) -> bool:
        """Whether no further unit can be a hit, by the cosines of the nearest units."""
        low = self.query.within[0]
        return not near or len(near) < count or (low is not None and min(near.values()) < low)

    def read(self, hits: Sequence[Hit[int]]) -> Flow[Mapping[int, MemoryUnit]]:
        keys, condition = [hit.key for hit in hits], self.query.condition
        return (yield from Sql(lambda conn: _present(conn, self.runtime.owner, keys, condition)))


def long_term_source(runtime: Runtime, query: SourceQuery) -> Flow[LongTermSource]:
    """Update the indexes of an owner, and return the source that searches them."""
    index = yield from catch_up_owner(runtime, wait=not runtime.read_only)
    only, condition = None, query.condition
    if condition is not None:
        only = yield from Sql(lambda conn: memory.matching(conn, runtime.owner, condition, FEW))
    return LongTermSource(runtime, query, only, index)


def _present(
    conn: Conn, owner: str, keys: Sequence[int], condition: Condition | None = None
) -> dict[int, MemoryUnit]:
    """The units that are not forgotten and may meet a condition, by key."""
    present = memory.present(conn, owner, keys, condition)
    ordered = [key for key in keys if key in present]
    return dict(zip(ordered, read_units(conn, owner, ordered), strict=True))


@dataclass(frozen=True)
class ShortTermSource(UnitSource[Hashable]):
    """The units in short-term memory, searched by vectors, or by words without vectors.

    Hits are read from storage again.
    """

    runtime: Runtime
    short: ShortTermMemory[Hashable, MemoryUnit]
    query: SourceQuery

    def candidates(self, most: int, growth: int) -> Flow[CandidateHits[Hashable]]:
        """The best units; a second request replaces units that were changed, removed, or equal."""
        text, vector, condition, within = self.query
        most *= growth
        if vector is None:
            language = self.runtime.get(Indexes).language
            document_of = partial(document_of_unit, language=language)
            words = question_of(text or "", language)
            hits = self.short.match(words, most, document_of, condition)
        else:
            yield from self._fill()
            hits = self.short.search(vector, most, within, condition)
        return CandidateHits(hits, complete=len(hits) < most)

    def read(self, hits: Sequence[Hit[Hashable]]) -> Flow[Mapping[Hashable, MemoryUnit]]:
        short, owner = self.short, self.runtime.owner
        keys = [hit.key for hit in hits if isinstance(hit.key, int)]
        units = yield from Sql(lambda conn: _present(conn, owner, keys))
        for key in keys:
            if key in units:
                short.add(key, units[key])
            else:
                short.drop(key)
        return {hit.key: unit for hit in hits if (unit := short.unit(hit.key)) is not None}

    def _fill(self) -> Flow[None]:
        """Add stored or new vectors to units without a vector."""
        short, model = self.short, self.runtime.get(Indexes).model
        keys = [key for key in short.bare() if isinstance(key, int)]
        if keys and model:
            vector_of = yield from Sql(lambda conn: vectors.by_keys(conn, model, keys))
            short.fill({key: vector_of[key] for key in vector_of})
        missing = [(key, unit) for key in short.bare() if (unit := short.unit(key)) is not None]
        if missing and model:
            embedded = yield from embed(self.runtime, [unit.content for _, unit in missing])
            short.fill({key: vector for (key, _), vector in zip(missing, embedded, strict=True)})


class ExternalSource(UnitSource[Hashable]):
    """The texts of an external collection, searched by vectors, or by words without vectors."""

    def __init__(self, runtime: Runtime, collection: ExternalCollection, query: SourceQuery) -> None:
        self.collection = collection
        self._runtime = runtime
        self._query = query
        self._units: dict[Hashable, ExternalUnit] = {}

    def candidates(self, most: int, growth: int) -> Flow[CandidateHits[Hashable]]:
        text, vector, condition, (low, high) = self._query
        if vector is None:
            return CandidateHits((yield from self._by_words(text or "", most)), complete=True)
        unfiltered = condition is None and high is None
        count = growth * most * (1 if unfiltered else CANDIDATES_PER_HIT)
        near = yield from Call(lambda: self.collection.search(vector, count))
        past = bool(near) and low is not None and near[-1].similarity < low
        hits = [self._hit(unit, unit.similarity, Why(similarity=unit.similarity)) for unit in near]
        return CandidateHits(hits, complete=past or len(near) < count)

    def _by_words(self, text: str, most: int) -> Flow[list[Hit[Hashable]]]:
        """Texts that Chroma finds by substrings, scored as texts without neighbours."""
        language = self._runtime.get(Indexes).language
        words = question_of(text, language)
        # Most stems are prefixes of their words, so a text that contains the word contains the stem.
        letters = [term if word.startswith(term) else word for term, word in words.terms.items()]
        limit = most * CANDIDATES_PER_HIT * CANDIDATES_PER_HIT
        units = yield from Call(lambda: self.collection.holding(letters, limit))
        documents = [document_of_unit(unit, language) for unit in units]
        own, scores = scores_by_words(documents, words)
        return [
            self._hit(ExternalUnit(unit, NO_VECTOR, 0.0), score, Why(lexical=own_score))
            for unit, own_score, score in zip(units, own.tolist(), scores.tolist(), strict=True)
            if own_score > 0
        ]

    def _hit(self, text: ExternalUnit, score: float, why: Why) -> Hit[Hashable]:
        key = self.collection.name, text.unit.id
        self._units[key] = text
        return Hit(key, score, why)

    def read(self, hits: Sequence[Hit[Hashable]]) -> Flow[Mapping[Hashable, MemoryUnit]]:
        yield from ()
        return {hit.key: self._units[hit.key].unit for hit in hits}

    def vector(self, hit: Hit[Hashable]) -> Vector:
        """The unit vector of a hit; empty for a hit by words."""
        return self._units[hit.key].vector
