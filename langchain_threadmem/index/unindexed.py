"""The words of messages that are not in the lexicon yet.

A memory that writes adds new messages to the lexicon before each search, or in the background if they are
many (`index.catch_up_words`); until then a search reads the newest of them. A read-only memory reads all. The
documents stay in memory, with a list of messages for each word: about 0.1 ms and 2 KB for a message of some
30 words. Later searches read newer messages only.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from langchain_threadmem.common import forking
from langchain_threadmem.common.arrays import Keys
from langchain_threadmem.engine.runtime import Component, Runtime
from langchain_threadmem.index import queries as document_queries
from langchain_threadmem.index import watermarks
from langchain_threadmem.index.catch_up_words import (
    LONGEST_SNAPSHOT,
    WORDS_AT_ONCE,
    WordQueue,
    new_documents,
)
from langchain_threadmem.index.documents import Document, length_of
from langchain_threadmem.index.embed import in_pieces
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.lexicon import name_word
from langchain_threadmem.index.queries import OwnedRecord
from langchain_threadmem.index.watermarks import TreeBehind, Watermark
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes

NEWEST = 2_000
"""The maximum number of the newest messages that a search reads while words are added in the background."""
NEWEST_EACH = 200
"""The minimum number of these in each conversation, so at most ten conversations are read."""


@dataclass(slots=True)
class _NewInTree:
    """The new messages of a tree.

    Attributes:
        epoch: The epoch of the tree.
        after: The number above which messages were read.
        last: The number of the newest message.
        documents: The documents, by key.
        holding: The keys of the messages that contain a word.
        length: The number of words of all documents.
    """

    epoch: int
    after: int
    last: int
    documents: dict[int, Document] = field(default_factory=dict)
    holding: dict[str, list[int]] = field(default_factory=dict)
    length: int = 0

    def add(self, key: int, document: Document) -> None:
        self.documents[key] = document
        for word in document_queries.entry_of(key, document.terms, document.speaker).words.split():
            self.holding.setdefault(word, []).append(key)
        self.length += length_of(document.traits)


class Unindexed(Component):
    """The new messages that the lexicon lacks; in a memory that writes, the newest of them."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._trees: dict[int, _NewInTree] = {}
        self._lock = forking.rlock()
        self._uncached_until = 0.0

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        with self._lock:
            for tree in removed:
                self._trees.pop(tree, None)
            # A search that began before the removal still reads the removed messages.
            self._uncached_until = time.monotonic() + LONGEST_SNAPSHOT

    def close(self) -> None:
        self._trees.clear()

    def read(self, conn: Conn, tree: int | None = None) -> NewMessages:
        """The messages of an owner, or of a tree, that the lexicon lacks.

        In a memory that writes these are messages that the background has not added yet: the newest of a
        tree, or of the trees with the newest messages.
        """
        runtime, indexes = self.runtime, self.runtime.get(Indexes)
        if not runtime.read_only and not runtime.get(WordQueue).is_behind:
            self.close()
            # Another search may have begun to leave messages to the background.
            indexes.lacks_words = False
            indexes.lacks_words = runtime.get(WordQueue).is_behind
            return NewMessages()
        with self._lock:
            behind, most = self._behind(conn, tree)
            found = {one.tree: self._trees.get(one.tree) for one in behind}
            new: dict[int, _NewInTree] = {}
            for one in behind:
                known, after = found[one.tree], max(one.after, one.last - most)
                # Another process may have indexed or emptied a tree.
                is_known = (
                    known is not None and known.epoch == one.epoch and one.after <= known.after <= after
                )
                new[one.tree] = (
                    known if known is not None and is_known else _NewInTree(one.epoch, after, after)
                )
            unread = {
                one.tree: one.last - new[one.tree].last for one in behind if new[one.tree].last < one.last
            }
            for piece in in_pieces(unread, WORDS_AT_ONCE if runtime.read_only else 1):
                self._add(conn, {one: new[one] for one in piece}, unread)
            if time.monotonic() >= self._uncached_until:
                self._trees = new if tree is None else self._trees | new
            return NewMessages(new, self._lock)

    def _behind(self, conn: Conn, tree: int | None) -> tuple[list[TreeBehind], int]:
        """The trees whose messages the lexicon lacks, and the number of the newest that are read of each."""
        runtime, name = self.runtime, self.runtime.get(Indexes).lexicon
        if runtime.read_only:
            return watermarks.behind(conn, runtime.owner, name, tree, nodes.EVERYTHING), nodes.EVERYTHING
        behind = watermarks.behind(conn, runtime.owner, name, tree, NEWEST // NEWEST_EACH)
        return behind, max(NEWEST // max(len(behind), 1), NEWEST_EACH)

    def _add(self, conn: Conn, new: Mapping[int, _NewInTree], unread: Mapping[int, int]) -> None:
        """Read the new messages of trees."""
        after = {tree: Watermark(one.last) for tree, one in new.items()}
        for tree, one in new.items():
            one.last += unread[tree]  # Numbers of purged messages are not read again.
        for tree, key, document in new_documents(conn, self.runtime, after, nodes.EVERYTHING)[1]:
            if key not in new[tree].documents:
                new[tree].add(key, document)


def new_messages(conn: Conn, runtime: Runtime, tree: int | None = None) -> NewMessages:
    """The messages of an owner, or of a tree, that the lexicon lacks; see `Unindexed.read`."""
    return runtime.get(Unindexed).read(conn, tree) if runtime.get(Indexes).lacks_words else NewMessages()


class NewMessages:
    """The messages that the lexicon lacks, at the time of a search.

    Args:
        trees: The new messages of each tree.
        lock: The lock of the messages, to which another search may add newer ones.
    """

    def __init__(
        self, trees: Mapping[int, _NewInTree] | None = None, lock: AbstractContextManager[Any] | None = None
    ) -> None:
        self._trees = trees or {}
        self._lock = lock or nullcontext()

    def __bool__(self) -> bool:
        return bool(self._trees)

    @property
    def documents(self) -> int:
        """The number of messages."""
        return sum(len(new.documents) for new in self._trees.values())

    @property
    def length(self) -> int:
        """The number of their words."""
        return sum(new.length for new in self._trees.values())

    def trees_holding(self, word: str) -> set[int]:
        """The trees with a new message that contains a word."""
        return {tree for tree, new in self._trees.items() if word in new.holding}

    def names_among(self, words: Iterable[str]) -> set[str]:
        """The words that are names of speakers of new messages."""
        return {word for word in words if self.trees_holding(name_word(word))}

    def holding(self, words: Sequence[str], lists: Sequence[Keys]) -> list[Keys]:
        """For each word, its list of the lexicon and the keys of new messages, the newest first."""
        if not self._trees:
            return list(lists)
        with self._lock:
            new = [
                np.array(
                    [key for tree in self.trees_holding(word) for key in self._trees[tree].holding[word]],
                    np.int64,
                )
                for word in words
            ]
        return [np.unique(np.concatenate(pair))[::-1] for pair in zip(lists, new, strict=True)]

    def records(self, conn: Conn, owner: str, keys: Iterable[int]) -> list[OwnedRecord]:
        """The records of new messages among keys, with their present state."""
        wanted = set(keys)
        with self._lock:
            found = {
                key: new.documents[key]
                for new in self._trees.values()
                for key in wanted & new.documents.keys()
            }
        return document_queries.with_documents(conn, owner, found)
