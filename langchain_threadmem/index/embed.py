"""Flows that embed messages, in batches, during a call or in the background.

An append writes messages only. After the first search of vectors, one background thread for each memory
embeds new messages (`embed_soon`). A verb that needs vectors embeds up to `FEW` missing messages itself; with
more missing messages, recall finds those without a vector by their words. `embed_all` embeds all messages.
After a failure of the model the watermark is unchanged, so the next call embeds the same messages.

A batch takes two transactions and one call of the model. It contains messages of several conversations, so
the cost grows with the number of messages, not of conversations. No transaction is open during the call.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common.cache import forget_texts
from langchain_threadmem.common.inputs import Progress
from langchain_threadmem.engine.bare_texts import BareTexts, BareTextsOfTrees
from langchain_threadmem.engine.flow import Call, Flow, Sql, run
from langchain_threadmem.engine.runtime import Component, Runtime, TreeCache
from langchain_threadmem.index import vectors as embeddings
from langchain_threadmem.index import watermarks
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.units import memory
from langchain_threadmem.index.units.queries import read_units
from langchain_threadmem.index.vector_index import ExactIndex
from langchain_threadmem.index.vectors import Vectors
from langchain_threadmem.index.watermarks import Watermark
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.roles import source_of
from langchain_threadmem.messages.tool_pairs import text_of_calls, with_calls
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes, trees
from langchain_threadmem.tree.node import ConversationNode, is_recallable, nodes_of
from langchain_threadmem.tree.nodes import EVERYTHING

VECTORS_AT_ONCE = 256
"""The number of messages in a batch of a call."""
AHEAD_AT_ONCE = 32
"""The number of messages in a background batch; `close` waits for a batch, 0.3 s with the local model."""
FEW = 2_000
"""The maximum number of messages that a recall embeds, in 5 to 20 s with the local model; more messages are
embedded in the background."""
LONGEST_TURN = 32
"""The number of messages before an answer among which its tool calls are found."""
_BEFORE_ANSWER = ("human", "system")
"""The types of messages after which an answer has no tool calls."""


class EmbeddingQueue(Component):
    """The trees with messages to embed in the background."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.compared = False
        """Whether the dimensions of the stored vectors were compared with those of the model."""
        self.job = "embedding", runtime.owner
        """The background job that embeds the trees."""
        self._begin()

    def _begin(self) -> None:
        self.waiting: dict[int, None] = {}
        """The waiting trees, in order."""
        self.current: frozenset[int] = frozenset()
        """The trees of the current batch."""

    def prepare_for_child(self) -> bool:
        """Clear the queue: the parent process embeds the waiting trees."""
        self._begin()
        return True


class ConversationVectors(TreeCache[ExactIndex]):
    """The vectors of single conversations, by tree, epoch and model."""


def embed(
    runtime: Runtime, texts: Sequence[str], *, query: bool = False, remember: bool = True
) -> Flow[NDArray[np.float32]]:
    """Texts as unit vectors: an array (number of texts, dimensions), or (n, 0) without an embedding model.

    Args:
        runtime: The owner's memory.
        texts: The texts.
        query: Whether the texts are questions.
        remember: Whether the embedder caches the vectors.

    Raises:
        EmbeddingError: The model failed, or stored vectors have other dimensions.
    """
    embedder = runtime.embedder
    vectors = yield from embedder.embed(texts, query=query, remember=remember)
    queue = runtime.get(EmbeddingQueue)
    if vectors.size and not queue.compared:
        # The stored vectors with this name may be of another model.
        owner, model = runtime.owner, embedder.model
        embedder.expect(
            (yield from Sql(lambda conn: embeddings.dimensions(conn, owner, model))), vectors.shape[1]
        )
        queue.compared = True
    return vectors


class _TreePart(NamedTuple):
    """The part of a batch in a tree: its last number, its number of vectors, and the epoch of the tree."""

    last: int
    vectors: int
    epoch: int


class _Batch(NamedTuple):
    keys: list[int]
    texts: list[str]
    parts: dict[int, _TreePart]
    whole: bool


def in_pieces(counts: Mapping[int, int], most: int) -> Iterator[list[int]]:
    """Groups of trees with at most `most` messages together; a larger tree forms a group of its own.

    Example:
        >>> list(in_pieces({1: 2, 2: 2, 3: 9, 4: 1}, 4))
        [[1, 2], [3], [4]]
    """
    piece: list[int] = []
    room = most
    for tree, count in counts.items():
        if piece and count > room:
            yield piece
            piece, room = [], most
        piece.append(tree)
        room -= count
    if piece:
        yield piece


def catch_up_vectors(runtime: Runtime, tree: int) -> Flow[ExactIndex | None]:
    """Embed new messages, and return all vectors of the conversation, or `None` without a model."""
    yield from embed_tree(runtime, tree, wait=True)
    return (yield from vectors_of(runtime, tree))


def model_of(runtime: Runtime) -> Flow[str]:
    """The name under which vectors are stored; the model is looked up outside of the event loop."""
    if not runtime.embedder.is_resolved:
        yield from Call(lambda: runtime.get(Indexes).model)
    return runtime.get(Indexes).model


def embed_tree(runtime: Runtime, tree: int, wait: bool | None) -> Flow[None]:
    """Embed the new messages of a conversation; without a model do nothing.

    Args:
        runtime: The owner's memory.
        tree: The conversation.
        wait: Whether to embed new messages in this call; with `None` up to `FEW` messages are embedded in
            this call, and more messages in the background.
    """
    model = yield from model_of(runtime)
    if not model or wait is False or (runtime.read_only and not wait):
        return
    missing = {tree: 1}
    if wait is None:
        name = watermarks.embeddings_of(model)
        missing = yield from Sql(lambda conn: watermarks.missing_in(conn, name, [tree]))
    yield from embed_trees(runtime, missing, wait)


def vectors_of(runtime: Runtime, tree: int) -> Flow[ExactIndex | None]:
    """The vectors of a conversation, cached and updated; `None` without a model."""
    model = runtime.get(Indexes).model
    if not model:
        return None

    cache = runtime.get(ConversationVectors).values

    def news(conn: Conn) -> tuple[int, Vectors]:
        # Before its first message, and after an erasure, a conversation has no tree; its epoch is then 0.
        state = watermarks.get(conn, tree, watermarks.embeddings_of(model))
        cached = cache.get((tree, state.epoch, model))
        last = cached.last if cached else 0
        return state.epoch, embedded(conn, tree, model, last, state.watermark.seq)

    epoch, vectors = yield from Sql(news)
    index = cache.setdefault((tree, epoch, model), ExactIndex)
    index.extend(vectors)
    return index


def embed_trees(runtime: Runtime, missing: Mapping[int, int], wait: bool | None) -> Flow[None]:
    """Embed the new messages of trees in this call if `wait` or if they are few, else in the background.

    Args:
        runtime: The owner's memory.
        missing: The number of messages without a vector, by tree; not used for a single tree if `wait`.
        wait: As in `embed_tree`.

    Raises:
        EmbeddingError: The model failed, now or in the background.
    """
    if runtime.read_only and not wait:
        return
    if wait or sum(missing.values()) <= FEW:
        yield from embed_missing(runtime, missing)
    elif error := runtime.ahead.failure(runtime.get(EmbeddingQueue).job):
        raise error
    else:
        embed_soon(runtime, missing)


def embed_soon(runtime: Runtime, trees: Iterable[int]) -> None:
    """Embed new messages in the background, if vectors were searched before.

    So a memory that is never searched loads and pays for no model. An error is logged, and the next call that
    leaves messages to the background raises it.
    """
    if runtime.embeds_ahead and runtime.get(Indexes).model:
        queue = runtime.get(EmbeddingQueue)
        for tree in trees:
            queue.waiting[tree] = None
        runtime.ahead.start(queue.job, lambda: run(_embed_some(runtime), runtime))


def _embed_some(runtime: Runtime) -> Flow[bool]:
    """Embed a batch of waiting messages; return whether there may be more."""
    queue, name = runtime.get(EmbeddingQueue), watermarks.embeddings_of(runtime.get(Indexes).model)
    waiting = queue.waiting
    chosen = list(islice(list(waiting), AHEAD_AT_ONCE))
    queue.current = frozenset(chosen)
    for tree in chosen:
        waiting.pop(tree, None)  # Before the read: a later append adds the tree again.
    try:
        counts = yield from Sql(lambda conn: watermarks.missing_in(conn, name, chosen))
        piece = next(in_pieces(counts, AHEAD_AT_ONCE), [])
        batch = yield from Sql(lambda conn: _missing(conn, runtime, piece, AHEAD_AT_ONCE))
        if batch is not None:
            yield from _embed(runtime, batch)
        done = set(piece) if batch is None or batch.whole else set()
        chosen = [tree for tree in counts if tree not in done]
    finally:
        queue.current = frozenset()
        for tree in chosen:
            waiting[tree] = None
    return bool(waiting)


def embed_missing(
    runtime: Runtime, missing: Mapping[int, int], on_progress: Progress | None = None
) -> Flow[int]:
    """Embed the new messages of trees, and store each batch.

    Args:
        runtime: The owner's memory.
        missing: The approximate number of messages without a vector, by tree; not used for a single tree.
        on_progress: Called after each tree with the numbers of finished and of all trees.

    Returns:
        The number of embedded messages.
    """
    queue = runtime.get(EmbeddingQueue)
    for tree in missing:
        queue.waiting.pop(tree, None)
    if not queue.current.isdisjoint(missing):
        yield from Call(lambda: runtime.ahead.wait(queue.job))
    runtime.ahead.failure(queue.job)  # Drops an earlier error, because this call tries again.
    count = finished = 0
    for piece in in_pieces(missing, VECTORS_AT_ONCE):
        while batch := (yield from Sql(lambda conn: _missing(conn, runtime, piece, VECTORS_AT_ONCE))):  # noqa: B023 - driven before the next turn
            yield from _embed(runtime, batch)
            count += len(batch.keys)
            if batch.whole:
                break
        if on_progress is not None:
            for _ in piece:
                finished += 1
                on_progress(finished, len(missing))
    return count


def _missing(conn: Conn, runtime: Runtime, chosen: Sequence[int], most: int) -> _Batch | None:
    """The next messages to embed, if any: up to `most` of a single tree, or all of several trees.

    A batch without texts raises the watermarks of trees whose new messages were purged or forgotten.
    """
    model = runtime.get(Indexes).model
    name = watermarks.embeddings_of(model)
    at = watermarks.of_trees(conn, name, chosen)
    # The last embedded message is read again, since an answer may follow it.
    marks = {tree: reached.watermark.seq for tree, reached in at.items()}
    again = any(marks.values())
    read = nodes.after_marks(conn, name, {tree: seq - 1 for tree, seq in marks.items()}, most + again)
    rows = [(tree, row) for tree, row in read if row.seq > marks[tree]]
    last = {tree: row.seq for tree, row in rows}
    without = {tree: reached.watermark for tree, reached in at.items() if tree not in last}
    last |= {tree: mark.seq for tree, mark in watermarks.past_purged(conn, name, without).items()}
    if not last:
        return None
    keys = [row.key for _, row in rows]
    done = {key for key, model_of in embeddings.models_of(conn, keys) if model_of == model}
    present = memory.present_among(conn, keys)
    new = [
        (tree, row, node)
        for (tree, row), node in zip(rows, nodes_of([row for _, row in rows]), strict=True)
        if row.key in present and row.key not in done and is_recallable(node)
    ]
    role_of = {(tree, row.seq): row.role for tree, row in read}
    calls = _calls_of(
        conn,
        [
            row.key
            for tree, row, _ in new
            if row.role == "ai" and role_of.get((tree, row.parent or 0)) not in _BEFORE_ANSWER
        ],
    )
    bare = _bare_texts(runtime, new)
    todo = [
        (
            tree,
            row.key,
            _embedded_text(conn, runtime, tree, row.key, node, calls.get(row.key, ""), bare[tree]),
        )
        for tree, row, node in new
    ]
    counts = Counter(tree for tree, _, _ in todo)
    return _Batch(
        [key for _, key, _ in todo],
        [text for _, _, text in todo],
        {tree: _TreePart(seq, counts[tree], at[tree].epoch) for tree, seq in last.items()},
        len(at) > 1 or len(rows) < most,
    )


def embed_all(runtime: Runtime, only: int | None = None, on_progress: Progress | None = None) -> Flow[int]:
    """Embed all new messages of a conversation and its summaries, or of all conversations of the owner.

    Each batch is stored in its own transaction, so the next call continues an interrupted call. After a
    change of the embedding model all messages are embedded again.

    Args:
        runtime: The owner's memory.
        only: The conversation; `None` for all.
        on_progress: Called after each conversation with the numbers of finished and of all conversations.

    Returns:
        The number of embedded messages and summaries.
    """
    model, owner = (yield from model_of(runtime)), runtime.owner
    if not model:
        return 0

    def behind(conn: Conn) -> dict[int, int]:
        if only is None:
            return watermarks.missing(conn, owner, watermarks.embeddings_of(model))
        _, summaries = trees.extent(conn, only)
        chosen = [only] if summaries is None else [only, summaries]
        return watermarks.missing_in(conn, watermarks.embeddings_of(model), chosen)

    return (yield from embed_missing(runtime, (yield from Sql(behind)), on_progress))


def _calls_of(conn: Conn, answers: Sequence[int]) -> dict[int, str]:
    """The text of the tool calls before answers, by the key of the answer."""
    calls = {}
    for key, rows in nodes.threads(conn, answers, LONGEST_TURN).items() if answers else ():
        text = ""
        for node in nodes_of(rows[:-1]):
            text = "" if node.message.type == "human" else text_of_calls(node.message, text)
        calls[key] = text
    return calls


def _bare_texts(
    runtime: Runtime, new: Iterable[tuple[int, nodes.NodeRow, ConversationNode]]
) -> dict[int, BareTexts]:
    """The bare texts of the trees of new messages; in an unknown tree those of the new messages alone."""
    known, asked = runtime.get(BareTextsOfTrees).values, defaultdict[int, list[str]](list)
    bare = {tree: known.get((tree,)) or BareTexts() for tree in {tree for tree, _, _ in new}}
    for tree, _, node in new:
        if node.message.type == "human" and not bare[tree].is_known:
            asked[tree].append(text_of(node.message))
    for tree, texts in asked.items():
        bare[tree].learn(texts)
    return bare


def _embedded_text(
    conn: Conn, runtime: Runtime, tree: int, key: int, node: ConversationNode, calls: str, bare: BareTexts
) -> str:
    """The text to embed for a message: its text, or one line for each message of its history."""
    history = runtime.get(Indexes).settings.history
    if history == 1:
        is_human = node.message.type == "human"
        return bare.of_message(node.message) if is_human else with_calls(text_of(node.message), calls)
    unit = read_units(conn, runtime.owner, [key])[0]
    if unit.rank:
        return f"{unit.source}: ({unit.content})"
    rows = nodes.thread(conn, key, history)
    absent = memory.absent(conn, tree, rows[0].seq - 1)
    recent = nodes_of([row for row in rows if row.key not in absent])
    return "\n".join(
        f"{source_of(member.message)}: {text_of(member.message)}"
        for member in recent
        if is_recallable(member)
    )


def embedded(conn: Conn, tree: int, model: str, since: int, end: int, most: int = EVERYTHING) -> Vectors:
    """The vectors of a tree up to a watermark; a moved node above the watermark may have a vector."""
    news = embeddings.since(conn, tree, model, since, most)
    upto = int(np.searchsorted(news.seqs, end, side="right"))
    return Vectors(news.keys[:upto], news.seqs[:upto], news.matrix[:upto])


def _embed(runtime: Runtime, batch: _Batch) -> Flow[None]:
    # A message may be erased during the call of the model, so its text must not be cached.
    vectors = yield from embed(runtime, batch.texts, remember=False)
    model = runtime.get(Indexes).model
    name = watermarks.embeddings_of(model)

    of_tree = [tree for tree, part in batch.parts.items() for _ in range(part.vectors)]

    def store(conn: Conn) -> bool:
        trees.lock_all(conn, batch.parts)
        at = watermarks.of_trees(conn, name, batch.parts)
        # A tree with another epoch was emptied during the call of the model. In a tree with a higher
        # watermark another process has stored the vectors.
        reached = {
            tree: Watermark(part.last, at[tree].watermark.documents + part.vectors)
            for tree, part in batch.parts.items()
            if tree in at and at[tree].epoch == part.epoch and at[tree].watermark.seq < part.last
        }
        # Single messages may have been forgotten or purged meanwhile.
        present = memory.present_among(conn, batch.keys)
        rows = [n for n, tree in enumerate(of_tree) if tree in reached and batch.keys[n] in present]
        embeddings.put(conn, model, [batch.keys[n] for n in rows], vectors[rows])
        watermarks.put(conn, name, reached)
        return len(present) < len(batch.keys)

    if (yield from Sql(store, write=True)):
        forget_texts()  # A message that was removed while it was read is in the caches again.
