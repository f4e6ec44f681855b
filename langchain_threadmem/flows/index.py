"""Catching up: bringing the derived indexes to where the messages are.

An append writes messages and nothing else. Whoever needs an index first brings it up to date: words in one
transaction, vectors in batches of embedding outside and storing inside a transaction. If embedding fails, the
messages are safe and the mark stays where it was, so the next call goes on from there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from langchain_threadmem.core.bodies import text_of
from langchain_threadmem.core.nodes import ConversationNode
from langchain_threadmem.core.postings import Postings
from langchain_threadmem.core.turns import TurnIndex
from langchain_threadmem.core.words import words
from langchain_threadmem.flows.rows import is_recallable, nodes_of
from langchain_threadmem.flows.runtime import Runtime
from langchain_threadmem.flows.steps import Embed, Flow, Search, Sql
from langchain_threadmem.storage.queries import embeddings, lexicon, marks, nodes, trees
from langchain_threadmem.storage.queries.embeddings import Vectors
from langchain_threadmem.storage.queries.lexicon import Entry
from langchain_threadmem.storage.queries.marks import Mark
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.vectors import ExactIndex, VectorIndex

WORDS_AT_ONCE = 5000
VECTORS_AT_ONCE = 256


def turns(runtime: Runtime, tree: int) -> Flow[TurnIndex]:
    """The turn ends of a conversation, kept in memory and brought up to date."""
    held = runtime.turns.setdefault(tree, TurnIndex)
    last, version = held.last, held.version

    def news(conn: Conn) -> tuple[int, list[nodes.NodeRow]]:
        now = trees.head(conn, tree).version
        return now, nodes.since(conn, tree, last if now == version else 0)

    now, rows = yield from Sql(news)
    if now != version:
        held = TurnIndex(now)
        runtime.turns.put(tree, held)
    held.add(nodes_of(rows))
    return held


def words_of(node: ConversationNode) -> list[str]:
    """What the lexicon holds of a node; the same whenever it is asked, so that entries can be taken out."""
    return words(text_of(node.message)) if is_recallable(node) else []


def entries_of(rows: list[nodes.NodeRow]) -> list[Entry]:
    """The lexicon's entries for stored nodes; nodes without words have none."""
    found = nodes_of(rows)
    return [Entry(row.key, held) for row, node in zip(rows, found, strict=True) if (held := words_of(node))]


def postings(runtime: Runtime, tree: int) -> Flow[Postings]:
    """The words of an encrypted conversation, kept in memory and brought up to date."""
    epoch = yield from Sql(lambda conn: trees.head(conn, tree).epoch)
    held = runtime.postings.setdefault((tree, epoch), Postings)
    last = held.last
    rows = yield from Sql(lambda conn: nodes.since(conn, tree, last))
    held.add((row.seq, row.key, words_of(node)) for row, node in zip(rows, nodes_of(rows), strict=True))
    return held


def catch_up_words(runtime: Runtime, tree: int) -> Flow[None]:
    """Enter into the lexicon what was said since it was last asked."""

    def enter(conn: Conn) -> bool:
        trees.lock(conn, tree)
        mark = marks.get(conn, tree, marks.LEXICON)
        rows = nodes.since(conn, tree, mark.seq, WORDS_AT_ONCE)
        if rows:
            entries = entries_of(rows)
            lexicon.add(conn, tree, runtime.owner, entries)
            total = sum(len(entry.words) for entry in entries)
            to = Mark(rows[-1].seq, mark.documents + len(entries), mark.words + total)
            marks.put(conn, tree, marks.LEXICON, to)
        return len(rows) == WORDS_AT_ONCE

    if (yield from Sql(lambda conn: _behind(conn, tree, marks.LEXICON))):
        while (yield from Sql(enter, write=True)):
            pass


class _Batch(NamedTuple):
    keys: list[int]
    texts: list[str]
    last: int
    whole: bool
    epoch: int


def catch_up_vectors(runtime: Runtime, tree: int) -> Flow[ExactIndex | None]:
    """Embed what was said since the last time; all vectors of the conversation, or `None` without a model."""
    model = runtime.embedder.model
    if not model:
        return None
    name = marks.embeddings_of(model)

    def missing(conn: Conn) -> _Batch | None:
        mark = marks.get(conn, tree, name)
        rows = nodes.since(conn, tree, mark.seq, VECTORS_AT_ONCE)
        if not rows:
            return None
        known = embeddings.known_since(conn, tree, model, mark.seq)
        todo = [
            (row.key, text_of(node.message))
            for row, node in zip(rows, nodes_of(rows), strict=True)
            if row.key not in known and is_recallable(node)
        ]
        return _Batch(
            [key for key, _ in todo],
            [text for _, text in todo],
            rows[-1].seq,
            len(rows) < VECTORS_AT_ONCE,
            trees.head(conn, tree).epoch,
        )

    while batch := (yield from Sql(missing)):
        yield from _embed(runtime, tree, model, batch)
        if batch.whole:
            break
    epoch = yield from Sql(lambda conn: trees.head(conn, tree).epoch)
    held: ExactIndex = runtime.exact.setdefault((tree, epoch, model), ExactIndex)
    last = held.last
    held.extend((yield from Sql(lambda conn: _embedded(conn, tree, model, last))))
    return held


def _embedded(conn: Conn, tree: int, model: str, since: int) -> Vectors:
    """The vectors of a tree up to where they are complete: a moved node has one before those it overtook."""
    end = marks.get(conn, tree, marks.embeddings_of(model)).seq
    news = embeddings.since(conn, tree, model, since)
    upto = int(np.searchsorted(news.seqs, end, side="right"))
    return Vectors(news.keys[:upto], news.seqs[:upto], news.matrix[:upto])


def _embed(runtime: Runtime, tree: int, model: str, batch: _Batch) -> Flow[None]:
    vectors = yield from Embed(batch.texts)
    name = marks.embeddings_of(model)

    def store(conn: Conn) -> None:
        trees.lock(conn, tree)
        if trees.head(conn, tree).epoch != batch.epoch:
            return  # It was emptied while the model worked: what was embedded is gone.
        mark = marks.get(conn, tree, name)
        embeddings.put(conn, model, batch.keys, vectors)
        marks.put(conn, tree, name, Mark(max(mark.seq, batch.last), mark.documents + len(batch.keys)))

    yield from Sql(store, write=True)


def catch_up_owner(runtime: Runtime) -> Flow[VectorIndex | None]:
    """Bring words, vectors and the owner-wide index up to date for every conversation of the owner."""
    owner, model = runtime.owner, runtime.embedder.model
    for tree in (yield from Sql(lambda conn: marks.behind(conn, owner, marks.LEXICON))):
        yield from catch_up_words(runtime, tree)
    if not model:
        return None
    for tree in (yield from Sql(lambda conn: marks.behind(conn, owner, marks.embeddings_of(model)))):
        yield from catch_up_vectors(runtime, tree)
    index = yield from Search(runtime.index)
    if index is None:
        return None
    name = index.name
    held = yield from Search(index.count)
    if not held or not runtime.compared:
        runtime.compared = True
        if held != (yield from Sql(lambda conn: marks.total(conn, owner, name))).documents:
            # It was deleted, put back from a copy, or missed a removal: fill it again from SQL.
            yield from _empty(index, owner)
    for tree in (yield from Sql(lambda conn: marks.behind(conn, owner, name))):
        yield from _catch_up_index(index, tree, model)
    return index


def _empty(index: VectorIndex, owner: str) -> Flow[None]:
    keys = yield from Search(index.keys)
    yield from Search(lambda: index.remove(keys))
    yield from Sql(lambda conn: marks.clear(conn, owner, index.name), write=True)


def _catch_up_index(index: VectorIndex, tree: int, model: str) -> Flow[None]:
    def read(conn: Conn) -> tuple[Mark, int, int, Vectors]:
        mark = marks.get(conn, tree, index.name)
        embedded = marks.get(conn, tree, marks.embeddings_of(model)).seq
        return mark, embedded, trees.head(conn, tree).epoch, _embedded(conn, tree, model, mark.seq)

    mark, embedded, epoch, news = yield from Sql(read)
    keys = news.keys.tolist()
    yield from Search(lambda: index.add(keys, news.matrix))

    def record(conn: Conn) -> bool:
        trees.lock(conn, tree)
        if trees.head(conn, tree).epoch != epoch:
            return False
        marks.put(conn, tree, index.name, Mark(embedded, mark.documents + len(keys)))
        return True

    if not (yield from Sql(record, write=True)):
        yield from Search(lambda: index.remove(keys))  # The tree was emptied in the meantime.


def _behind(conn: Conn, tree: int, name: str) -> bool:
    return marks.get(conn, tree, name).seq < trees.head(conn, tree).next_seq - 1


def reindex(runtime: Runtime) -> Flow[int]:
    """Fill the owner-wide index again from the vectors in SQL; how many it holds then."""
    index = yield from Search(runtime.index)
    if index is None:
        return 0
    yield from _empty(index, runtime.owner)
    yield from catch_up_owner(runtime)
    return (yield from Search(index.count))
