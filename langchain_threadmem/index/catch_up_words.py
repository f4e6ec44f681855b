"""Flows that add the words of new messages to the lexicon.

An append writes messages only. A verb that needs an index first updates it: the lexicon in one transaction,
vectors in batches (`index.embed`), the owner-wide index from the vectors in SQL (`index.owner_index`). A
batch contains messages of several conversations, so the cost grows with the number of messages, not of
conversations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.index import lexicon, watermarks
from langchain_threadmem.index import queries as document_queries
from langchain_threadmem.index.documents import Document, document_of, unpack
from langchain_threadmem.index.embed import in_pieces
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.units import memory
from langchain_threadmem.index.watermarks import Watermark
from langchain_threadmem.messages.codec import decode_stored
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes, trees
from langchain_threadmem.tree.node import recallable_text

WORDS_AT_ONCE = 5000
"""The number of messages that are added to the lexicon in one transaction."""

DECODED_AT_ONCE = 50
"""The number of messages that are built together."""


def documents_of(runtime: Runtime, rows: list[nodes.NodeRow]) -> list[tuple[int, Document]]:
    """Keys and documents of nodes. Documents of nodes that recall may not return have no terms."""
    language, documents = runtime.get(Indexes).language, list[tuple[int, Document]]()
    # The messages of a part are freed before the next part, or the garbage collector would go through all.
    for start in range(0, len(rows), DECODED_AT_ONCE):
        part = rows[start : start + DECODED_AT_ONCE]
        messages = decode_stored([(row.message, row.body, row.role) for row in part])
        documents += [
            (row.key, document_of(message, recallable_text(message), row.created, language))
            for row, message in zip(part, messages, strict=True)
        ]
    return documents


def catch_up_words(runtime: Runtime, tree: int) -> Flow[None]:
    """Add the new messages of a conversation to the lexicon."""
    name = runtime.get(Indexes).lexicon
    if (yield from Sql(lambda conn: watermarks.missing_in(conn, name, [tree]))):
        while (yield from Sql(lambda conn: _add_words(conn, runtime, [tree]), write=True)):
            pass


def _add_words(conn: Conn, runtime: Runtime, chosen: Sequence[int]) -> bool:
    """Add the next messages of trees to the lexicon; return whether a single tree may have more of them."""
    name, owner = runtime.get(Indexes).lexicon, runtime.owner
    trees.lock_all(conn, chosen)
    for tree, other_name in watermarks.other_lexicons(conn, chosen, name):
        # The tree has words of another language in the lexicon.
        document_queries.forget_words(conn, tree, owner)
        watermarks.drop(conn, tree, other_name)
    at = {tree: state.watermark for tree, state in watermarks.of_trees(conn, name, chosen).items()}
    rows, documents = new_documents(conn, runtime, at, WORDS_AT_ONCE)
    last = {tree: row.seq for tree, row in rows}
    without = {tree: watermark for tree, watermark in at.items() if tree not in last}
    watermarks.put(conn, name, watermarks.past_purged(conn, name, without))
    if not rows:
        return False
    document_queries.put(conn, [(key, document) for _, key, document in documents])
    entries: dict[int, list[lexicon.NodeWords]] = {tree: [] for tree, _ in rows}
    words: Counter[int] = Counter()
    for tree, key, document in documents:
        entry = document_queries.entry_of(key, document.terms, document.speaker)
        entries[tree] += [entry] if entry.words else []
        words[tree] += unpack(document.traits).length
    lexicon.add(conn, owner, entries)
    reached = {
        tree: Watermark(seq, at[tree].documents + len(entries[tree]), at[tree].words + words[tree])
        for tree, seq in last.items()
    }
    watermarks.put(conn, name, reached)
    return len(at) == 1 and len(rows) == WORDS_AT_ONCE


def new_documents(
    conn: Conn, runtime: Runtime, at: Mapping[int, Watermark], most: int
) -> tuple[list[tuple[int, nodes.NodeRow]], list[tuple[int, int, Document]]]:
    """The messages of trees above the watermarks of the lexicon, each with its tree.

    Returns:
        The messages, and tree, key and document of each message that was not forgotten.
    """
    name, after = runtime.get(Indexes).lexicon, {tree: watermark.seq for tree, watermark in at.items()}
    rows = nodes.after_marks(conn, name, after, most)
    present = memory.present_among(conn, [row.key for _, row in rows]) if rows else set()
    new = [(tree, row) for tree, row in rows if row.key in present]
    documents = documents_of(runtime, [row for _, row in new])
    return rows, [(tree, *document) for (tree, _), document in zip(new, documents, strict=True)]


def catch_up_owner_words(runtime: Runtime) -> Flow[None]:
    """Add the new messages of all conversations of the owner to the lexicon, except in a read-only memory."""
    if runtime.read_only:
        return
    owner, name = runtime.owner, runtime.get(Indexes).lexicon
    unread = yield from Sql(lambda conn: watermarks.missing(conn, owner, name))
    for piece in in_pieces(unread, WORDS_AT_ONCE):
        while (yield from Sql(lambda conn: _add_words(conn, runtime, piece), write=True)):  # noqa: B023 - driven before the next turn
            pass
