"""Flows that add the words of new messages to the lexicon, during a call or in the background.

An append writes messages only. A verb that needs an index first updates it: the lexicon in one transaction,
vectors in batches (`index.embed`), the owner-wide index from the vectors in SQL (`index.owner_index`). A
batch contains messages of several conversations, so the cost grows with the number of messages, not of
conversations.

A verb adds up to `FEW` messages itself. More messages, as after an import, are added in the background, in
transactions of `WORDS_AT_ONCE` messages; until they are added, a search finds the messages in the lexicon and
the newest of the others (`index.unindexed`).
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

from langchain_threadmem.common.inputs import Progress
from langchain_threadmem.engine.flow import Flow, Sql, run
from langchain_threadmem.engine.runtime import Component, Runtime
from langchain_threadmem.errors import StorageBusyError
from langchain_threadmem.index import lexicon, watermarks
from langchain_threadmem.index import queries as document_queries
from langchain_threadmem.index.documents import Document, document_of, length_of
from langchain_threadmem.index.embed import in_pieces
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.units import memory
from langchain_threadmem.index.watermarks import Watermark
from langchain_threadmem.messages.codec import decode_stored
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes, trees
from langchain_threadmem.tree.node import recallable_text

log = logging.getLogger(__package__)

FEW = 10_000
"""The maximum number of messages that a search adds to the lexicon first, in 0.4 s for messages of 20 words.

A chat has fewer new messages between two searches, so it always finds all of them.
"""
WORDS_AT_ONCE = 500
"""The number of messages that are added to the lexicon in one transaction, for which an append may wait.

With 5,000 messages, whose values the garbage collector goes through again and again, each message takes a
fifth longer.
"""
DECODED_AT_ONCE = 50
"""The number of messages that are built together."""
LONGEST_SNAPSHOT = 60.0
"""The time in seconds for which a search may read an earlier state of the lexicon."""


class WordQueue(Component):
    """The trees whose messages are added to the lexicon in the background."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.job = "adding words", runtime.owner
        """The background job that adds the messages."""
        self.waiting: dict[int, None] = {}
        """The waiting trees, in order."""
        self._behind_until = 0.0

    def _expect_lack(self) -> None:
        self._behind_until = time.monotonic() + LONGEST_SNAPSHOT
        self.runtime.get(Indexes).lacks_words = True

    @property
    def is_behind(self) -> bool:
        """Whether a search may lack messages that the background has not added yet."""
        return time.monotonic() < self._behind_until

    def is_due(self, missing: Mapping[int, int], *, whole: bool) -> bool:
        """Whether a search first adds messages, or first leaves them to the background.

        Args:
            missing: The number of messages that the lexicon lacks, by tree.
            whole: Whether the search waits until the lexicon contains all messages.
        """
        if whole or sum(missing.values()) <= FEW:
            return bool(missing)
        self._expect_lack()
        return not (self.runtime.ahead.busy(self.job) and missing.keys() <= self.waiting.keys())

    def start(self, missing: Mapping[int, int]) -> None:
        """Add messages in the background; returns at once."""
        runtime = self.runtime
        self._expect_lack()
        if not runtime.ahead.busy(self.job):
            log.warning(
                "%d messages are added to the index of words in the background, and a search may not find "
                "them until then, but finds the newest; flush() adds all, stats().unindexed counts the rest",
                sum(missing.values()),
            )
        self.waiting |= dict.fromkeys(missing)
        runtime.ahead.start(self.job, lambda: run(_add_some(runtime), runtime), gently=True)


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


def catch_up_words(
    runtime: Runtime, tree: int | None, *, whole: bool = False, on_progress: Progress | None = None
) -> Flow[None]:
    """Add the new messages of a conversation, or of all of the owner, to the lexicon; see `add_missing`.

    A read-only memory, and an encrypted one, adds nothing.
    """
    owner, name = runtime.owner, runtime.get(Indexes).lexicon

    def read(conn: Conn) -> dict[int, int]:
        if tree is None:
            return watermarks.missing(conn, owner, name)
        return watermarks.missing_in(conn, name, [tree])

    if runtime.indexes_words:
        yield from add_missing(runtime, (yield from Sql(read)), whole, on_progress)


def add_missing(
    runtime: Runtime, missing: Mapping[int, int], whole: bool = False, on_progress: Progress | None = None
) -> Flow[None]:
    """Add messages to the lexicon in this call if `whole` or if they are few, else in the background.

    Args:
        runtime: The owner's memory.
        missing: The number of messages that the lexicon lacks, by tree.
        whole: Whether to add all messages in this call.
        on_progress: Called after each transaction of this call with the approximate numbers of added
            messages and of all.

    Raises:
        PersistenceError: A message could not be read, now or in the background.
    """
    queue, total, done = runtime.get(WordQueue), sum(missing.values()), 0
    if not whole and total > FEW:
        error = runtime.ahead.failure(queue.job)
        if error is not None and not isinstance(error, StorageBusyError):
            raise error
        queue.start(missing)
        return
    for piece in in_pieces(missing, WORDS_AT_ONCE):
        finished, has_more = done + sum(missing[tree] for tree in piece), True
        while has_more:
            has_more = yield from Sql(
                lambda conn: _add_words(conn, runtime, piece),  # noqa: B023 - driven before the next turn
                write=True,
            )
            done = min(done + WORDS_AT_ONCE, finished) if has_more else finished
            if on_progress is not None:
                on_progress(done, total)


def _add_some(runtime: Runtime) -> Flow[bool]:
    """Add a batch of messages of waiting trees; return whether there may be more."""
    waiting, name = runtime.get(WordQueue).waiting, runtime.get(Indexes).lexicon
    chosen = list(islice(list(waiting), WORDS_AT_ONCE))
    missing = yield from Sql(lambda conn: watermarks.missing_in(conn, name, chosen))
    piece = next(in_pieces(missing, WORDS_AT_ONCE), [])
    if piece and not (yield from Sql(lambda conn: _add_words(conn, runtime, piece), write=True)):
        missing = {tree: count for tree, count in missing.items() if tree not in piece}
    for tree in chosen:
        if tree not in missing:
            waiting.pop(tree, None)
    return bool(waiting)


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
        if entry.words:
            entries[tree].append(entry)
        words[tree] += length_of(document.traits)
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
