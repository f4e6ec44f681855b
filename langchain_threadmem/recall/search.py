"""Search in one conversation and over many: candidates, scores, hits."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.runtime import Runtime, TreeCache
from langchain_threadmem.index import queries as documents_sql
from langchain_threadmem.index import vectors as embeddings
from langchain_threadmem.index import watermarks
from langchain_threadmem.index.catch_up import catch_up_owner, catch_up_words, is_behind, kept_of
from langchain_threadmem.index.documents import Record
from langchain_threadmem.index.embed import embed, embed_wanted, vectors_of
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.queries import Owned
from langchain_threadmem.index.vectors import NONE
from langchain_threadmem.recall.candidates import Suggested, by_words, nearest, nearest_of
from langchain_threadmem.recall.options import RecallOptions
from langchain_threadmem.recall.postings import Figures, Floats, Postings
from langchain_threadmem.recall.question import Question, question_of
from langchain_threadmem.recall.results import Why
from langchain_threadmem.recall.scoring import LITTLE, Parts, alone, assistance, parts_of, scores
from langchain_threadmem.recall.summary_index import SummaryIndex
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.tree import grafts, nodes, trees

READ_WHOLE = 20_000
"""Conversations of up to this many messages are scored whole; 80 bytes and a list of terms each."""
FEWEST_CANDIDATES = 48
"""How many candidates each of words and meaning brings at least; more when more results are asked for."""
FEWEST_BY_WORDS = 128
"""As many where words alone bring them, of all that an owner said: long answers hold many words, and with 48
BEAM's R@10 is 69, with so many 75, as where everything is scored.
"""
MANY = 50
"""From how many messages on one may be a hit for what stands beside it; among fewer, most stand beside it."""
NARROW = 8
"""How many times as many candidates are looked at when a condition may exclude most of them."""


class Hit(NamedTuple):
    """A message that was found, or a summary."""

    key: int
    score: float
    why: Why
    rank: int = 0


class Found(NamedTuple):
    """What was found, and what it takes to score something else for the same question.

    Attributes:
        hits: The best first.
        question: What was asked.
        figures: Figures over everything that was searched.
        vector: Of the question; of no dimensions without a model.
        now: When it was asked, in seconds since 1970.
        share: How much what was searched is like a chat with an assistant, 0 to 1.
    """

    hits: list[Hit]
    question: Question
    figures: Figures
    vector: NDArray[np.float32]
    now: float
    share: float


class Asked(NamedTuple):
    """A question, and what of it is known before anything is read.

    Attributes:
        query: Its text.
        vector: Of the question; of no dimensions without a model.
        near: Where all of an owner is searched: the nearest by the index, with their cosines; `None` where
            words alone decide.
    """

    query: str
    vector: NDArray[np.float32]
    near: Mapping[int, float] | None = None


def asked(runtime: Runtime, tree: int | None, query: str, wanted: RecallOptions) -> Flow[Asked]:
    """Bring what is derived up to date, for one tree and its summaries or for all of an owner's, and ask the
    model and the index; what follows only reads.
    """
    if tree is None:
        index = yield from catch_up_owner(runtime, wanted.wait)
        vector = (yield from embed(runtime, [query], query=True))[0]
        if not vector.size:
            return Asked(query, vector)
        near: Mapping[int, float] = {}  # Of summaries alone, which are few, all are scored.
        if 0 in wanted.ranks:
            near = yield from nearest(runtime, index, vector, _most(runtime, tree, wanted))
        return Asked(query, vector, near)
    vector = (yield from embed(runtime, [query], query=True))[0]
    for one in (yield from Sql(lambda conn: searched(conn, tree, wanted))):
        if not runtime.encrypted:
            yield from catch_up_words(runtime, one)
        if vector.size:
            yield from embed_wanted(runtime, one, wanted.wait)
    return Asked(query, vector)


def searched(conn: Conn, tree: int, wanted: RecallOptions) -> list[int]:
    """A tree, and that of its summaries if these are wanted."""
    _, summaries = trees.extent(conn, tree)
    return [tree] if summaries is None or not wanted.ranks - {0} else [tree, summaries]


def is_behind_now(conn: Conn, runtime: Runtime, tree: int | None, wanted: RecallOptions) -> bool:
    """Whether something was said that the words which are searched do not hold yet."""
    if tree is None:
        return bool(watermarks.missing(conn, runtime.owner, runtime.get(Indexes).lexicon))
    if runtime.encrypted:
        return False
    return any(is_behind(conn, one, runtime.get(Indexes).lexicon) for one in searched(conn, tree, wanted))


def by_ledger(runtime: Runtime, tree: int, question: Asked, wanted: RecallOptions) -> Flow[Found]:
    """Score every message of a conversation."""
    query, vector, _ = question
    held, head = yield from postings_of(runtime, tree)
    exact = (yield from vectors_of(runtime, tree)) if vector.size else None
    spans = (yield from Sql(lambda conn: _active(conn, tree))) if wanted.scope == "thread" else None
    now = time.time()

    def score(held: Postings) -> Found | None:
        with held.lock:
            if held.last >= head.next_seq or held.version > head.version:
                return None  # Another thread has brought it further up than what is read here.
            rows = held.rows
            newest = float(rows["time"].max()) if len(rows) else 0.0
            understood = question_of(query, runtime.get(Indexes).language, held.names, newest, now)
            cosine = None
            _, seqs, matrix = NONE if exact is None else exact.vectors
            if len(seqs):
                cosine = np.full(len(rows), np.nan)
                at = np.searchsorted(rows["seq"], seqs)
                known = at < len(rows)
                cosine[at[known]] = (matrix @ vector)[known]
            figures = held.figures(understood.terms)
            parts = parts_of(held, understood, figures, cosine)
            allowed = wanted.allowed(held)
            if spans is not None:
                allowed &= _inside(rows["key"], spans)
            total = wanted.aged(scores(held, understood, parts), held, now)
            hits = _best(held, understood, figures, parts, total, allowed, wanted.most(held))
            return Found(hits, understood, figures, vector, now, _share(held))

    found = yield from Call(lambda: score(held))
    if found is None:
        own, _ = yield from postings_of(runtime, tree, shared=False)
        found = yield from Call(lambda: score(own))
        assert found is not None, "nobody else brings it further up"
    return found


def _active(conn: Conn, tree: int) -> list[tuple[int, int]]:
    """The ranges of keys of the active thread."""
    tip = trees.head(conn, tree).tip
    return [] if tip is None else nodes.spans(conn, tip)


def _inside(keys: NDArray[np.int64], spans: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    inside = np.zeros(len(keys), np.bool_)
    for first, last in spans:
        inside |= (keys >= first) & (keys <= last)
    return inside


def _best(
    held: Postings,
    question: Question,
    figures: Figures,
    parts: Parts,
    total: Floats,
    allowed: NDArray[np.bool_],
    most: int,
) -> list[Hit]:
    """The best of the messages that are allowed, the newest first among equals, with their reasons."""
    if parts.cosine is None:
        # By words alone something must speak for a hit: a word of its own or beside it, a person, a date.
        near = parts.own if figures.documents < MANY else parts.beside
        allowed = allowed & ((near + parts.person + parts.date) > 0)
    chosen = np.flatnonzero(allowed)
    if len(chosen) > 4 * most:
        part = np.argpartition(-total[chosen], most)
        chosen = chosen[total[chosen] >= total[chosen[part[most]]]]
    chosen = chosen[np.lexsort((-held.rows["seq"][chosen], -total[chosen]))][:most]
    shared: list[list[str]] = [[] for _ in chosen]
    place = np.full(len(total), -1)
    place[chosen] = np.arange(len(chosen))
    for term in sorted(question.terms, key=lambda term: figures.frequency[term]):
        holding = place[held.holding(term)]
        for n in holding[holding >= 0].tolist():
            shared[n].append(question.terms[term])
    columns = (
        held.rows["key"],
        total,
        parts.own,
        parts.window,
        parts.person,
        parts.date,
        held.rows["speaker"],
    )
    found = zip(*(column[chosen].tolist() for column in columns), strict=True)
    cosines = [None] * len(chosen) if parts.cosine is None else parts.cosine[chosen].tolist()
    cosines = [one if known else None for one, known in zip(cosines, parts.known[chosen], strict=True)]
    names = held.speakers
    return [
        Hit(
            key,
            score,
            Why(tuple(terms), own, cosine, max(window - own, 0.0), names[who] if person else "", date),
        )
        for (key, score, own, window, person, date, who), terms, cosine in zip(
            found, shared, cosines, strict=True
        )
    ]


def _most(runtime: Runtime, tree: int | None, wanted: RecallOptions) -> int:
    """How many candidates words and meaning bring each."""
    fewest = FEWEST_CANDIDATES if tree is not None or runtime.get(Indexes).model else FEWEST_BY_WORDS
    return max(fewest, 2 * wanted.looked_at) * (NARROW if wanted.narrow else 1)


def by_candidates(runtime: Runtime, tree: int | None, question: Asked, wanted: RecallOptions) -> Flow[Found]:
    """Score what words and meaning suggest: in one tree, or in all of an owner's."""
    query, vector, near = question
    most, now = _most(runtime, tree, wanted), time.time()
    suggested = yield from Sql(lambda conn: by_words(conn, runtime, tree, query, most, now))
    only = None
    if tree is None and 0 not in wanted.ranks:
        only = yield from Sql(lambda conn: summary_queries.of_owner(conn, runtime.owner, wanted.ranks))
    elif tree is not None and vector.size:
        exact = yield from vectors_of(runtime, tree)
        near = nearest_of(exact.vectors if exact else NONE, vector, most)
    return (yield from scored(runtime, tree, suggested, vector, near, wanted, now, only))


def scored(
    runtime: Runtime,
    tree: int | None,
    suggested: Suggested,
    vector: NDArray[np.float32],
    near: Mapping[int, float] | None,
    wanted: RecallOptions,
    now: float,
    only: Sequence[int] | None = None,
    *,
    singles: bool = False,
) -> Flow[Found]:
    """The best of what words and meaning suggested.

    Args:
        runtime: Whose memory.
        tree: The tree that is searched; `None` for all of the owner's, their summaries included.
        suggested: What words suggested.
        vector: Of the question.
        near: What meaning suggested, with cosines; `None` for words alone.
        wanted: The conditions.
        now: In seconds since 1970.
        only: The only keys to score, suggested or not.
        singles: Whether summaries of a single message count beside the message.
    """
    owner, model = runtime.owner, runtime.get(Indexes).model
    cosines = None if near is None else dict(near)

    def read(conn: Conn) -> tuple[Postings, SummaryIndex | None, list[tuple[int, int]] | None]:
        keys = [int(key) for key in suggested.keys] if only is None else list(only)
        if cosines is not None:
            missing = [key for key in keys if key not in cosines]
            for key, other in embeddings.by_keys(conn, model, missing).items():
                cosines[key] = float(other @ vector)
            if only is None:
                keys += list(cosines.keys() - set(keys))
        found = documents_sql.of_owner(conn, owner, keys)
        candidates = _ledger_of(suggested.question, found, tree)
        if (assistance(candidates) > LITTLE).any():
            # Turns are scored whole: the question of an answer, the answer of a question.
            mates = {key + step for key in keys for step in (-1, 1)} - set(keys)
            found += documents_sql.of_owner(conn, owner, sorted(mates))
            candidates = _ledger_of(suggested.question, found, tree)
        summaries = [one.record for one in found if one.condensed]
        extents = summary_queries.extents_of(conn, [one.key for one in summaries]) if summaries else []
        spans = _active(conn, tree) if tree is not None and wanted.scope == "thread" else None
        return candidates, SummaryIndex(summaries, extents) if extents else None, spans

    candidates, condensed, spans = yield from Sql(read)

    def score() -> Found:
        windows = dict(zip(suggested.keys.tolist(), suggested.windows.tolist(), strict=True))
        window = np.array([windows.get(key, 0.0) for key in candidates.rows["key"].tolist()])
        cosine = _cosine_of(candidates, cosines)
        question, figures = suggested.question, suggested.figures
        parts = parts_of(candidates, question, figures, cosine, window)
        allowed = wanted.allowed(candidates)
        if only is not None:
            allowed &= np.isin(candidates.rows["key"], only)
        if spans is not None:
            allowed &= _inside(candidates.rows["key"], spans)
        total = wanted.aged(scores(candidates, question, parts), candidates, now)
        most = wanted.most(candidates)
        hits = _best(candidates, question, figures, parts, total, allowed, most)
        found = Found(hits, question, figures, vector, now, _share(candidates))
        if condensed is None:
            return found
        allowed = wanted.condensed(condensed, singles=singles)
        cosine = _cosine_of(condensed.ledger, cosines)
        return found._replace(hits=with_digests(found, condensed, cosine, allowed, wanted))

    return (yield from Call(score))


def _share(held: Postings) -> float:
    return float(assistance(held).mean()) if len(held.rows) else 0.0


def _cosine_of(held: Postings, cosines: Mapping[int, float] | None) -> Floats | None:
    if cosines is None:
        return None
    return np.array([cosines.get(key, np.nan) for key in held.rows["key"].tolist()])


def with_digests(
    found: Found, held: SummaryIndex, cosine: Floats | None, allowed: NDArray[np.bool_], wanted: RecallOptions
) -> list[Hit]:
    """What was found together with summaries, the best first, no more than are wanted.

    Args:
        found: What was found so far.
        held: The summaries.
        cosine: Similarity of each; NaN where it is not known.
        allowed: Which of them may be hits.
        wanted: How many hits, and how age counts.
    """
    parts = held.parts(found.question, found.figures, cosine)
    total = wanted.aged(alone(parts, found.share), held.ledger, found.now)
    most = wanted.most(held.ledger)
    hits = _best(held.ledger, found.question, found.figures, parts, total, allowed, most)
    rank_of = dict(zip(held.ledger.rows["key"].tolist(), held.rank.tolist(), strict=True))
    hits = [*found.hits, *(hit._replace(rank=rank_of[hit.key]) for hit in hits)]
    hits.sort(key=lambda hit: -hit.score)
    return hits if wanted.condition is not None else hits[: wanted.looked_at]


def _ledger_of(question: Question, read: Sequence[Owned], tree: int | None) -> Postings:
    """A ledger of the messages among candidates; numbers are given anew, for they may be of several trees."""
    held = Postings(question.terms)
    ordered = sorted(
        (of, seq, parent, key, role, live, gist)
        for (key, seq, parent, role, live, gist), of, condensed in read
        if (tree is None and not condensed) or of == tree
    )
    number: dict[tuple[int, int | None], int] = {one[:2]: n for n, one in enumerate(ordered, 1)}
    held.add(
        [
            Record(key, n, number.get((of, parent)), role, live, gist)
            for n, (of, _, parent, key, role, live, gist) in enumerate(ordered, 1)
        ]
    )
    return held


class KnownPostings(TreeCache[Postings]):
    """The ledgers of conversations, by tree and epoch."""

    capacity = 16


def postings_of(runtime: Runtime, tree: int, *, shared: bool = True) -> Flow[tuple[Postings, trees.Head]]:
    """The ledger of a conversation, and the state that it was brought up to.

    What is encrypted is in no index on disk: its ledger is made from the messages themselves.

    Args:
        runtime: What to work with.
        tree: The conversation.
        shared: Whether to take the one that is kept in memory: another thread may bring it further up.
    """
    cache = runtime.get(KnownPostings).values

    def news(
        conn: Conn,
    ) -> tuple[trees.Head, list[Record], list[int], list[tuple[int, int]]]:
        head = trees.head(conn, tree)
        known = cache.get((tree, head.epoch)) if shared else None
        records = records_of(conn, runtime, tree, known.last if known else 0)
        changed = known is None or known.version != head.version
        if not changed:
            return head, records, [], []
        return head, records, documents_sql.dead(conn, tree), grafts.hung(conn, tree)

    head, records, dead, hung = yield from Sql(news)
    held = cache.setdefault((tree, head.epoch), Postings) if shared else Postings()
    with held.lock:
        held.add(records)
        if held.version < head.version:
            held.mark_live(dead, head.version)
            held.hang(hung)
    return held, head


def records_of(conn: Conn, runtime: Runtime, tree: int, last: int) -> list[Record]:
    """What a ledger is to take in of a tree, after the node numbered `last`."""
    if not runtime.encrypted:
        return documents_sql.since(conn, tree, last)
    rows = nodes.since(conn, tree, last)
    return [
        Record(row.key, row.seq, row.parent, row.role, row.state == State.LIVE, one.gist)
        for row, one in zip(rows, kept_of(runtime, rows), strict=True)
    ]
