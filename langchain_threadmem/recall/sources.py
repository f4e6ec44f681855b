"""The messages and summaries of a conversation, or of an owner, as a source of hits.

All messages of a conversation with less than `READ_WHOLE` messages are scored, by cached postings. In a
longer conversation, and in all conversations of an owner, the lexicon and the vectors suggest candidates, and
only these are scored. Summaries are scored as well in both cases.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.index import queries as document_queries
from langchain_threadmem.index import vectors, watermarks
from langchain_threadmem.index.catch_up_words import WordQueue, catch_up_words
from langchain_threadmem.index.documents import DocumentRow
from langchain_threadmem.index.embed import embed, embed_tree, vectors_of
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.owner_index import catch_up_owner
from langchain_threadmem.index.queries import OwnedRecord
from langchain_threadmem.index.unindexed import new_messages
from langchain_threadmem.index.units.unit import SUMMARY_SOURCE
from langchain_threadmem.index.vectors import NONE
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.recall import candidates
from langchain_threadmem.recall.candidates import Suggestions, by_words, nearest, nearest_of
from langchain_threadmem.recall.instructions.standing import keys_in, keys_of_owner
from langchain_threadmem.recall.options import RecallOptions
from langchain_threadmem.recall.postings import Doubles, Figures, Postings, postings_of
from langchain_threadmem.recall.question import Question, question_of
from langchain_threadmem.recall.recollections import ReadHit, found_of, said_in
from langchain_threadmem.recall.results import Why
from langchain_threadmem.recall.scoring import (
    LITTLE,
    ScoreParts,
    SummaryIndex,
    alone,
    assistance,
    discounted,
    parts_of,
    scores,
    summary_index_of,
)
from langchain_threadmem.recall.search import CandidateHits, Hit
from langchain_threadmem.recall.unfold import leaves
from langchain_threadmem.recall.versions import LOOKED_AHEAD
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.tree import nodes, trees

FEWEST_CANDIDATES = 48
"""The minimum number of candidates by words, and by meaning."""
FEWEST_BY_WORDS = 128
"""The minimum number of candidates by words in all conversations of an owner without embeddings. Long answers
contain many words: R@10 of BEAM is 69 with 48 candidates, and 75 with 128 candidates or with all messages.
"""
MANY = 50
"""The number of messages from which the words of its neighbours can make a message a hit; in a shorter
conversation most messages are neighbours."""
NARROW = 8
"""The factor on the number of candidates if a condition may exclude most of them."""


class PreparedQuery(NamedTuple):
    """A query with its vector and its nearest nodes.

    Attributes:
        text: The query.
        vector: The unit vector of the query; without dimensions if there is no embedding model.
        near: The cosines of the nearest nodes, by key, for a search by candidates; `None` for words alone.
    """

    text: str
    vector: NDArray[np.float32]
    near: Mapping[int, float] | None = None


class Scored(NamedTuple):
    """Hits, and the values that are needed to score other texts for the same query.

    Attributes:
        hits: The hits, the best first.
        question: The parsed query.
        figures: Statistics of all searched messages.
        vector: The unit vector of the query; without dimensions if there is no embedding model.
        now: The time of the query, in seconds since 1970.
        share: The mean of `scoring.assistance`, 0 to 1.
        weak_below: The cosine below which a text found by meaning alone is a weak hit, if it is known.
        standing: The standing instructions.
    """

    hits: list[Hit[int]]
    question: Question
    figures: Figures
    vector: NDArray[np.float32]
    now: float
    share: float
    weak_below: float | None
    standing: Sequence[Hit[int]] = ()


def prepare(runtime: Runtime, tree: int | None, query: str, options: RecallOptions) -> Flow[PreparedQuery]:
    """Embed a query; for all conversations of an owner, update the indexes and search the vector index too.

    The search that follows only reads the database.
    """
    index = (
        None
        if tree is not None
        else (yield from catch_up_owner(runtime, options.wait, whole=bool(options.wait)))
    )
    vector = (yield from embed(runtime, [query], query=True))[0]
    if tree is not None or not vector.size:
        return PreparedQuery(query, vector)
    near: Mapping[int, float] = {}  # A search for summaries alone scores all of them.
    if 0 in options.ranks:
        most = _most(runtime, tree, options, options.looked_at + LOOKED_AHEAD)
        near = yield from nearest(runtime, index, vector, most)
    return PreparedQuery(query, vector, near)


def catch_up(runtime: Runtime, tree: int, options: RecallOptions) -> Flow[None]:
    """Update the indexes of a conversation and of its summaries."""
    for each in (yield from Sql(lambda conn: _searched(conn, tree, options))):
        yield from catch_up_words(runtime, each, whole=bool(options.wait))
        yield from embed_tree(runtime, each, options.wait)


def is_outdated(
    conn: Conn, runtime: Runtime, tree: int | None, options: RecallOptions, *, embeds: bool
) -> bool:
    """Whether the lexicon lacks messages that are not left to the background.

    Or whether the vectors of a conversation are missing, if the search `embeds` them.
    """
    indexes, whole = runtime.get(Indexes), bool(options.wait)
    if tree is None:
        missing = watermarks.missing(conn, runtime.owner, indexes.lexicon) if runtime.indexes_words else {}
        return bool(missing) and runtime.get(WordQueue).is_due(missing, whole=whole)
    searched = _searched(conn, tree, options)
    missing = watermarks.missing_in(conn, indexes.lexicon, searched) if runtime.indexes_words else {}
    for each, count in missing.items():
        if runtime.get(WordQueue).is_due({each: count}, whole=whole):
            return True
    if not embeds or options.wait is False or (options.wait is None and runtime.read_only):
        return False
    return bool(watermarks.missing_in(conn, watermarks.embeddings_of(indexes.model), searched))


def _searched(conn: Conn, tree: int, options: RecallOptions) -> list[int]:
    """The tree, and the tree of its summaries if the options allow summaries."""
    _, summaries = trees.extent(conn, tree)
    return [tree] if summaries is None or not options.ranks - {0} else [tree, summaries]


@dataclass(frozen=True)
class MemorySource:
    """The messages and summaries of a conversation, or of all conversations of an owner.

    Args:
        tree: The conversation; `None` for all conversations of the owner.
    """

    runtime: Runtime
    tree: int | None
    query: PreparedQuery
    options: RecallOptions

    def candidates(self, most: int, growth: int) -> Flow[CandidateHits[int]]:
        """The best messages and summaries that the options allow.

        Fewer than requested are all. With `filters` all are returned at once.
        """
        runtime, tree, query, options = self.runtime, self.tree, self.query, self.options
        most *= growth
        filtered = options.condition is not None
        if tree is None:
            found = yield from _by_indexes(runtime, None, query, options, most)
            return CandidateHits(found.hits, filtered or len(found.hits) < most, found.standing)
        size, summaries = yield from Sql(lambda conn: trees.extent(conn, tree))
        score = _by_postings if size < candidates.READ_WHOLE or not runtime.indexes_words else _by_indexes
        if runtime.get(Indexes).lacks_words and runtime.indexes_words:
            is_behind = yield from Sql(lambda conn: bool(new_messages(conn, runtime, tree)))
            score = _by_indexes if is_behind else score
        scored = yield from score(runtime, tree, query, options, most)
        by_summary: list[Hit[int]] = []
        if summaries is not None and options.ranks - {0}:
            by_summary = yield from _summaries(runtime, tree, summaries, scored, options, most)
        complete = filtered or max(len(scored.hits), len(by_summary)) < most
        return CandidateHits([*scored.hits, *by_summary], complete, scored.standing)

    def read(self, hits: Sequence[Hit[int]]) -> Flow[Mapping[int, ReadHit]]:
        return (yield from found_of(self.runtime, hits))

    said = staticmethod(said_in)

    def fields(self, value: ReadHit) -> dict[str, object]:
        """The values of `recall.options.FIELDS`."""
        hit, message = value.recollection, value.recollection.node.message
        return {
            "content": text_of(message),
            "role": SUMMARY_SOURCE if hit.rank else message.type,
            "speaker": message.name,
            "time": hit.time,
            "rank": hit.rank,
            "metadata": message.additional_kwargs,
        }


def _by_postings(
    runtime: Runtime, tree: int, query: PreparedQuery, options: RecallOptions, most: int
) -> Flow[Scored]:
    """Score every message of a conversation."""
    shared, head = yield from postings_of(runtime, tree)
    exact = (yield from vectors_of(runtime, tree)) if query.vector.size else None
    spans = (yield from Sql(lambda conn: _active(conn, tree))) if options.scope == "thread" else None
    always = (yield from keys_in(runtime, shared)) if 0 in options.ranks else ()
    now, indexes = time.time(), runtime.get(Indexes)

    def score(postings: Postings) -> Scored | None:
        with postings.lock:
            if postings.last >= head.next_seq or postings.version > head.version:
                return None  # Another thread has added messages that are newer than `head`.
            rows = postings.rows
            newest = float(rows["time"].max()) if len(rows) else 0.0
            question = question_of(query.text, indexes.language, postings.names, newest, now)
            cosine = None
            _, seqs, matrix = NONE if exact is None else exact.vectors
            if len(seqs) and len(rows):
                cosine = np.full(len(rows), np.nan)
                at = np.searchsorted(rows["seq"], seqs).clip(max=len(rows) - 1)
                # A message with a vector may be new, or another process has forgotten it.
                known = rows["seq"][at] == seqs
                cosine[at[known]] = (matrix @ query.vector)[known]
            figures = postings.figures(question.terms)
            below = indexes.weak_below
            texts = _messages(postings, question, figures, cosine, None, options, spans, now, below)
            return texts.result(options.most(postings, most), query.vector, now, always)

    scored = yield from Call(lambda: score(shared))
    if scored is None:
        unshared, _ = yield from postings_of(runtime, tree, shared=False)
        scored = yield from Call(lambda: score(unshared))
        assert scored is not None, "postings that are not shared are never newer than head"
    return scored


def _active(conn: Conn, tree: int) -> list[tuple[int, int]]:
    """The ranges of keys of the active thread."""
    tip = trees.head(conn, tree).tip
    return [] if tip is None else nodes.spans(conn, tip)


def _inside(keys: NDArray[np.int64], spans: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    inside = np.zeros(len(keys), np.bool_)
    for first, last in spans:
        inside |= (keys >= first) & (keys <= last)
    return inside


def _most(runtime: Runtime, tree: int | None, options: RecallOptions, most: int) -> int:
    """The number of candidates by words, and by meaning, for a number of hits."""
    fewest = FEWEST_CANDIDATES if tree is not None or runtime.get(Indexes).model else FEWEST_BY_WORDS
    return max(fewest, 2 * most) * (NARROW if options.narrow else 1)


def _by_indexes(
    runtime: Runtime, tree: int | None, query: PreparedQuery, options: RecallOptions, most: int
) -> Flow[Scored]:
    """Score the candidates by words and by meaning, in one tree or in all trees of the owner."""
    count, now = _most(runtime, tree, options, most), time.time()
    suggested = yield from Sql(lambda conn: by_words(conn, runtime, tree, query.text, count, now))
    only = None
    always = (yield from keys_of_owner(runtime, tree)) if 0 in options.ranks else ()
    if tree is None and 0 not in options.ranks:
        only = yield from Sql(lambda conn: summary_queries.of_owner(conn, runtime.owner, options.ranks))
    elif tree is not None and query.vector.size:
        exact = yield from vectors_of(runtime, tree)
        query = query._replace(near=nearest_of(exact.vectors if exact else NONE, query.vector, count))
    return (yield from scored(runtime, tree, query, suggested, options, now, most, only, always=always))


def scored(
    runtime: Runtime,
    tree: int | None,
    query: PreparedQuery,
    suggested: Suggestions,
    options: RecallOptions,
    now: float,
    most: int,
    only: Sequence[int] | None = None,
    *,
    singles: bool = False,
    always: Sequence[int] = (),
) -> Flow[Scored]:
    """The best of the candidates by words and by meaning.

    Args:
        tree: The searched tree; `None` for all trees of the owner, including summaries.
        query: The query, with the candidates by meaning.
        suggested: The candidates by words.
        now: The time of the query, in seconds since 1970.
        most: The maximum number of messages, and of summaries.
        only: The keys to score instead of the candidates.
        singles: Whether summaries of a single message may be hits in addition to the message.
        always: The keys of standing instructions, which are scored too.
    """
    owner, model, weak_below = runtime.owner, runtime.get(Indexes).model, runtime.get(Indexes).weak_below
    cosines = None if query.near is None else dict(query.near)

    def read_records(conn: Conn, keys: Sequence[int]) -> list[OwnedRecord]:
        records = document_queries.of_owner(conn, owner, keys)
        missing = set(keys) - {owned.record.key for owned in records}
        return [*records, *suggested.new.records(conn, owner, missing)]

    def read(conn: Conn) -> tuple[Postings, SummaryIndex | None, list[tuple[int, int]] | None]:
        keys = [int(key) for key in suggested.keys] if only is None else list(only)
        keys += [key for key in always if key not in set(keys)]
        if cosines is not None:
            missing = [key for key in keys if key not in cosines]
            for key, vector in vectors.by_keys(conn, model, missing).items():
                cosines[key] = float(vector @ query.vector)
            if only is None:
                keys += list(cosines.keys() - set(keys))
        records = read_records(conn, keys)
        messages = _postings_of(suggested.question, records, tree)
        if (assistance(messages) > LITTLE).any():
            # A turn is scored as a whole, so the question of an answer and the answer of a question are read.
            neighbours = {key + step for key in keys for step in (-1, 1)} - set(keys)
            records += read_records(conn, sorted(neighbours))
            messages = _postings_of(suggested.question, records, tree)
        summaries = [owned.record for owned in records if owned.is_summary]
        extents = summary_queries.extents_of(conn, [record.key for record in summaries]) if summaries else []
        spans = _active(conn, tree) if tree is not None and options.scope == "thread" else None
        return messages, SummaryIndex(summaries, extents) if extents else None, spans

    messages, summaries, spans = yield from Sql(read)

    def score() -> Scored:
        windows = dict(zip(suggested.keys.tolist(), suggested.windows.tolist(), strict=True))
        window = np.array([windows.get(key, 0.0) for key in messages.rows["key"].tolist()])
        cosine, question, figures = _cosine_of(messages, cosines), suggested.question, suggested.figures
        texts = _messages(messages, question, figures, cosine, window, options, spans, now, weak_below)
        if only is not None:
            texts = texts._replace(allowed=texts.allowed & np.isin(messages.rows["key"], only))
        best = texts.result(options.most(messages, most), query.vector, now, always)
        if summaries is None:
            return best
        allowed = options.allowed_summaries(summaries, singles=singles)
        cosine = _cosine_of(summaries.postings, cosines)
        return best._replace(
            hits=[*best.hits, *_best_summaries(best, summaries, cosine, allowed, options, most)]
        )

    return (yield from Call(score))


def _cosine_of(postings: Postings, cosines: Mapping[int, float] | None) -> Doubles | None:
    if cosines is None:
        return None
    return np.array([cosines.get(key, np.nan) for key in postings.rows["key"].tolist()])


def _postings_of(question: Question, records: Sequence[OwnedRecord], tree: int | None) -> Postings:
    """The postings of messages of several trees, with new numbers."""
    postings = Postings(question.terms)
    chosen = [
        (owned.tree, owned.record.seq, owned.record)
        for owned in records
        if (tree is None and not owned.is_summary) or owned.tree == tree
    ]
    ordered = sorted(chosen, key=itemgetter(0, 1))
    number: dict[tuple[int, int | None], int] = {(of, seq): n for n, (of, seq, _) in enumerate(ordered, 1)}
    postings.add(
        [
            DocumentRow(record.key, number[of, seq], number.get((of, record.parent)), *record[3:])
            for of, seq, record in ordered
        ]
    )
    return postings


def _summaries(
    runtime: Runtime, tree: int, of_summaries: int, messages: Scored, options: RecallOptions, most: int
) -> Flow[list[Hit[int]]]:
    """The best summaries of a conversation, on the scale of its messages.

    Args:
        of_summaries: The tree of its summaries.
        messages: The hits among the messages.
    """
    index = yield from summary_index_of(runtime, of_summaries)
    exact = (yield from vectors_of(runtime, of_summaries)) if messages.vector.size else None
    allowed = options.allowed_summaries(index)
    if options.scope == "thread":
        allowed &= yield from Sql(lambda conn: _of_thread(conn, tree, of_summaries, index))

    def score() -> list[Hit[int]]:
        cosine = None
        if exact is not None:
            vector_of = exact.of(index.postings.rows["key"].tolist())
            cosine = _cosine_of(
                index.postings, {key: vector_of[key].dot(messages.vector) for key in vector_of}
            )
        return _best_summaries(messages, index, cosine, allowed, options, most)

    return (yield from Call(score))


def _best_summaries(
    messages: Scored,
    index: SummaryIndex,
    cosine: Doubles | None,
    allowed: NDArray[np.bool_],
    options: RecallOptions,
    most: int,
) -> list[Hit[int]]:
    """The best of the allowed summaries, on the scale of the messages."""
    postings, question, figures = index.postings, messages.question, messages.figures
    parts = index.parts(question, figures, cosine)
    total = discounted(alone(parts, messages.share), postings, messages.now, options.half_life)
    texts = _ScoredTexts(postings, question, figures, parts, total, allowed, messages.weak_below)
    hits = texts.best(options.most(postings, most))
    rank_of = dict(zip(postings.rows["key"].tolist(), index.rank.tolist(), strict=True))
    return [hit._replace(rank=rank_of[hit.key]) for hit in hits]


def _of_thread(conn: Conn, tree: int, of_summaries: int, index: SummaryIndex) -> NDArray[np.bool_]:
    """Whether the messages of each summary are all in the active thread."""
    spans = _active(conn, tree)
    firsts = summary_queries.firsts(conn, tree, of_summaries)
    begun = [key for key, first in firsts.items() if _inside(np.array([first]), spans).all()]
    inside = [key for key in begun if _inside(np.array(leaves(conn, [key])), spans).all()]
    return np.isin(index.postings.rows["key"], inside)


class _ScoredTexts(NamedTuple):
    """Messages or summaries with their scores, and whether each may be a hit."""

    postings: Postings
    question: Question
    figures: Figures
    parts: ScoreParts
    total: Doubles
    allowed: NDArray[np.bool_]
    weak_below: float | None

    def result(self, most: int, vector: NDArray[np.float32], now: float, always: Sequence[int]) -> Scored:
        """The best messages and the standing instructions, and the values to score other texts."""
        share = float(assistance(self.postings).mean()) if len(self.postings.rows) else 0.0
        standing: list[Hit[int]] = []
        if always:
            chosen = np.flatnonzero(self.allowed & np.isin(self.postings.rows["key"], always))
            standing = _marked(self._hits(chosen), always)
        hits = _marked(self.best(most), always)
        return Scored(hits, self.question, self.figures, vector, now, share, self.weak_below, standing)

    def best(self, most: int) -> list[Hit[int]]:
        """The best of the allowed texts with their reasons; of equal scores the newest first."""
        parts, total, allowed = self.parts, self.total, self.allowed
        if parts.cosine is None:
            # Without embeddings a hit needs a shared word in itself or beside it, a named speaker or a date.
            near = parts.own if self.figures.documents < MANY else parts.beside
            allowed = allowed & ((near + parts.person + parts.date) > 0)
        chosen = np.flatnonzero(allowed)
        if len(chosen) > 4 * most:
            part = np.argpartition(-total[chosen], most)
            chosen = chosen[total[chosen] >= total[chosen[part[most]]]]
        order = np.lexsort((-self.postings.rows["seq"][chosen], -total[chosen]))
        return self._hits(chosen[order][:most])

    def _hits(self, chosen: NDArray[np.intp]) -> list[Hit[int]]:
        """The hits of rows, with their reasons."""
        postings, question, parts, rows = self.postings, self.question, self.parts, self.postings.rows
        shared: list[list[str]] = [[] for _ in chosen]
        place = np.full(len(self.total), -1)
        place[chosen] = np.arange(len(chosen))
        for term in sorted(question.terms, key=lambda term: self.figures.frequency[term]):
            places = place[postings.posting(term).rows]
            for n in places[places >= 0].tolist():
                shared[n].append(question.terms[term])
        columns = (
            *(rows["key"], self.total, parts.own, parts.window, parts.person, parts.date),
            *(rows["speaker"], rows["time"]),
        )
        cosines = [
            float(parts.cosine[row]) if parts.cosine is not None and parts.has_vector[row] else None
            for row in chosen
        ]
        names = postings.speakers
        hits = []
        for (key, score, own, window, person, date, speaker, said), terms, cosine in zip(
            zip(*(column[chosen].tolist() for column in columns), strict=True), shared, cosines, strict=True
        ):
            beside = max(window - own, 0.0)
            has_sense = terms or beside or person or date
            weak = not has_sense and (cosine is None or cosine < (self.weak_below or -1))
            why = Why(tuple(terms), own, cosine, beside, names[speaker] if person else "", date, weak=weak)
            hits.append(Hit(key, score, why, 0, names[speaker], said))
        return hits


def _messages(
    postings: Postings,
    question: Question,
    figures: Figures,
    cosine: Doubles | None,
    window: Doubles | None,
    options: RecallOptions,
    spans: Sequence[tuple[int, int]] | None,
    now: float,
    weak_below: float | None,
) -> _ScoredTexts:
    """Messages with their scores; `spans` are the keys of the active thread, if only they may be hits."""
    parts = parts_of(postings, question, figures, cosine, window)
    allowed = options.allowed(postings)
    if spans is not None:
        allowed &= _inside(postings.rows["key"], spans)
    total = discounted(scores(postings, question, parts), postings, now, options.half_life)
    return _ScoredTexts(postings, question, figures, parts, total, allowed, weak_below)


def _marked(hits: list[Hit[int]], keys: Sequence[int]) -> list[Hit[int]]:
    """Hits, with standing instructions named as such."""
    if not keys:
        return hits
    return [
        hit._replace(why=replace(hit.why, standing=True, weak=False)) if hit.key in keys else hit
        for hit in hits
    ]
