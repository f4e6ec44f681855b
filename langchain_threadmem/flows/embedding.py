"""Embedding: every message gets a vector, in order, in batches, in the background or when it is needed.

An append writes messages and nothing else. Once meanings were asked for, what is appended is embedded off the
reply's path, by one thread for each memory (`embed_soon`). Whoever needs vectors earlier embeds what is
missing, up to `FEW` messages: a turn is found by its meaning at once, and so is a conversation that was just
imported. Is it more, what has no vector yet is found by its words, and `flush` waits for all. If embedding
fails, the messages are safe and the mark stays where it was, so the next call goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from langchain_threadmem.core.bodies import text_of
from langchain_threadmem.core.nodes import ConversationNode
from langchain_threadmem.core.units import source_of
from langchain_threadmem.flows.rows import is_recallable, nodes_of
from langchain_threadmem.flows.runtime import Runtime
from langchain_threadmem.flows.steps import Embed, Flow, Search, Sql, run
from langchain_threadmem.flows.units import read_units
from langchain_threadmem.storage.queries import embeddings, marks, memory, nodes, trees
from langchain_threadmem.storage.queries.embeddings import Vectors
from langchain_threadmem.storage.queries.marks import Mark
from langchain_threadmem.storage.queries.nodes import EVERYTHING
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.vectors import ExactIndex

VECTORS_AT_ONCE = 256
AHEAD_AT_ONCE = 32
"""Messages of a batch in the background: some 0.3 s of the local model, which closing waits for."""
FEW = 2_000
"""How many messages a recall embeds itself, some 5 to 20 s of the local model; more are done beside it."""
Progress = Callable[[int, int], None]


class _Batch(NamedTuple):
    keys: list[int]
    texts: list[str]
    last: int
    whole: bool
    epoch: int


def catch_up_vectors(runtime: Runtime, tree: int, wait: bool | None = True) -> Flow[ExactIndex | None]:
    """Embed what was said since the last time; all vectors of the conversation, or `None` without a model.

    Args:
        runtime: What to work with.
        tree: The conversation.
        wait: Whether to embed at all, or be content with what is embedded. `None`: a few messages here and
            now, many in the background.
    """
    model = runtime.model
    if not model:
        return None
    name = marks.embeddings_of(model)
    if wait:
        yield from embed_missing(runtime, tree)
    elif wait is None:
        count = yield from Sql(lambda c: trees.head(c, tree).next_seq - 1 - marks.get(c, tree, name).seq)
        yield from embed_as_wanted(runtime, {tree: count} if count > 0 else {}, wait)

    def news(conn: Conn) -> tuple[int, Vectors]:
        epoch = trees.head(conn, tree).epoch
        known = runtime.exact.get((tree, epoch, model))
        return epoch, embedded(conn, tree, model, known.last if known else 0)

    epoch, vectors = yield from Sql(news)
    held: ExactIndex = runtime.exact.setdefault((tree, epoch, model), ExactIndex)
    held.extend(vectors)
    return held


def embed_as_wanted(runtime: Runtime, missing: Mapping[int, int], wait: bool | None) -> Flow[None]:
    """Embed what trees lack: now, if that is wanted or little, else in the background.

    Args:
        runtime: What to work with.
        missing: How many messages are not embedded yet, by tree.
        wait: As for `catch_up_vectors`.

    Raises:
        EmbeddingError: The model failed, now or in the background.
    """
    now = wait or sum(missing.values()) <= FEW
    for tree in missing:
        if now:
            yield from embed_missing(runtime, tree)
        elif error := runtime.ahead.failure(tree):
            raise error
        else:
            embed_soon(runtime, tree)


def embed_soon(runtime: Runtime, tree: int) -> None:
    """Have what was said embedded in the background, if it was ever searched by meaning.

    Before that no model is loaded or paid for, and a memory that only threads itself needs no stored vectors.
    What goes wrong is logged, and raised by the next call that embeds or finds much left to embed.
    """
    if runtime.searched and runtime.model:
        runtime.ahead.want(tree, lambda: run(_embed_some(runtime, tree), runtime))


def _embed_some(runtime: Runtime, tree: int) -> Flow[bool]:
    batch = yield from Sql(lambda conn: _missing(conn, runtime, tree, AHEAD_AT_ONCE))
    if batch is not None:
        yield from _embed(runtime, tree, batch)
    return batch is not None and not batch.whole


def embed_missing(runtime: Runtime, tree: int) -> Flow[int]:
    """Embed what was said since the last time, batch by batch, each kept at once; how many messages."""
    if runtime.ahead.busy(tree):
        yield from Search(lambda: runtime.ahead.drop(tree))
    runtime.ahead.failure(tree)  # To try again says more than why it failed.
    count = 0
    while batch := (yield from Sql(lambda conn: _missing(conn, runtime, tree, VECTORS_AT_ONCE))):
        yield from _embed(runtime, tree, batch)
        count += len(batch.keys)
        if batch.whole:
            break
    return count


def _missing(conn: Conn, runtime: Runtime, tree: int, most: int) -> _Batch | None:
    """The next messages to embed, if any."""
    model = runtime.model
    mark = marks.get(conn, tree, marks.embeddings_of(model))
    rows = nodes.since(conn, tree, mark.seq, most)
    if not rows:
        return None
    known = embeddings.known_since(conn, tree, model, mark.seq) | memory.absent(conn, tree, mark.seq)
    todo = [
        (row.key, _embedded_text(conn, runtime, tree, row.key, node))
        for row, node in zip(rows, nodes_of(rows), strict=True)
        if row.key not in known and is_recallable(node)
    ]
    return _Batch(
        [key for key, _ in todo],
        [text for _, text in todo],
        rows[-1].seq,
        len(rows) < most,
        trees.head(conn, tree).epoch,
    )


def flush(runtime: Runtime, only: int | None = None, told: Progress | None = None) -> Flow[int]:
    """Embed what is not embedded yet: of one conversation and its summaries, or of all of the owner.

    Each batch is kept at once, so an interrupted flush goes on where it was, and after a change of the
    embedding model this embeds everything anew.

    Args:
        runtime: What to work with.
        only: The conversation.
        told: Called after each conversation with how many of how many are done.

    Returns:
        How many messages and summaries were embedded.
    """
    model, owner = runtime.model, runtime.owner
    if not model:
        return 0

    def behind(conn: Conn) -> list[int]:
        if only is None:
            return marks.behind(conn, owner, marks.embeddings_of(model))
        _, summaries = trees.extent(conn, only)
        return [only] if summaries is None else [only, summaries]

    waiting = yield from Sql(behind)
    count = 0
    for done, tree in enumerate(waiting, 1):
        count += yield from embed_missing(runtime, tree)
        if told is not None:
            told(done, len(waiting))
    return count


def _embedded_text(conn: Conn, runtime: Runtime, tree: int, key: int, node: ConversationNode) -> str:
    """What is embedded for a message: its text, or a line each for it and the messages before it."""
    if runtime.history == 1:
        return text_of(node.message)
    unit = read_units(conn, runtime.owner, [key])[0]
    if unit.rank:
        return f"{unit.source}: ({unit.content})"
    rows = nodes.thread(conn, key, runtime.history)
    gone = memory.absent(conn, tree, rows[0].seq - 1)
    said = nodes_of([row for row in rows if row.key not in gone])
    return "\n".join(
        f"{source_of(one.message)}: {text_of(one.message)}" for one in said if is_recallable(one)
    )


def embedded(conn: Conn, tree: int, model: str, since: int, most: int = EVERYTHING) -> Vectors:
    """The vectors of a tree up to where they are complete: a moved node has one before those it overtook."""
    end = marks.get(conn, tree, marks.embeddings_of(model)).seq
    news = embeddings.since(conn, tree, model, since, most)
    upto = int(np.searchsorted(news.seqs, end, side="right"))
    return Vectors(news.keys[:upto], news.seqs[:upto], news.matrix[:upto])


def _embed(runtime: Runtime, tree: int, batch: _Batch) -> Flow[None]:
    vectors = yield from Embed(batch.texts)
    model = runtime.model
    name = marks.embeddings_of(model)

    def store(conn: Conn) -> None:
        trees.lock(conn, tree)
        if tree in runtime.gone or trees.head(conn, tree).epoch != batch.epoch:
            return  # It was emptied while the model worked: what was embedded is gone.
        mark = marks.get(conn, tree, name)
        if mark.seq >= batch.last:
            return  # Somebody else was faster.
        embeddings.put(conn, model, batch.keys, vectors)
        marks.put(conn, tree, name, Mark(max(mark.seq, batch.last), mark.documents + len(batch.keys)))

    yield from Sql(store, write=True)
