"""The words of messages that a read-only memory cannot add to the lexicon.

A memory that writes adds new messages to the lexicon before each search. A read-only memory reads them at the
first search and keeps their documents in memory, with a list of messages for each word: about 0.1 ms and 2 KB
for a message of some 30 words. Later searches read newer messages only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from langchain_threadmem.common import forking
from langchain_threadmem.common.arrays import Keys
from langchain_threadmem.engine.runtime import Component, Runtime
from langchain_threadmem.index import queries as document_queries
from langchain_threadmem.index import watermarks
from langchain_threadmem.index.catch_up_words import WORDS_AT_ONCE, new_documents
from langchain_threadmem.index.documents import Document, unpack
from langchain_threadmem.index.embed import in_pieces
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.lexicon import name_word
from langchain_threadmem.index.queries import OwnedRecord
from langchain_threadmem.index.watermarks import Watermark
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes


@dataclass(slots=True)
class _NewInTree:
    """The new messages of a tree.

    Attributes:
        after: The watermark of the lexicon above which messages are new.
        last: The number of the newest message.
        documents: The documents, by key.
        holding: The keys of the messages that contain a word.
        length: The number of words of all documents.
    """

    after: int
    last: int
    documents: dict[int, Document] = field(default_factory=dict)
    holding: dict[str, list[int]] = field(default_factory=dict)
    length: int = 0

    def add(self, key: int, document: Document) -> None:
        self.documents[key] = document
        for word in document_queries.entry_of(key, document.terms, document.speaker).words.split():
            self.holding.setdefault(word, []).append(key)
        self.length += unpack(document.traits).length


class Unindexed(Component):
    """The new messages of all conversations of an owner; without any in a memory that writes."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._trees: dict[int, _NewInTree] = {}
        self._lock = forking.rlock()

    def close(self) -> None:
        self._trees.clear()

    def read(self, conn: Conn) -> NewMessages:
        """The messages that the lexicon lacks."""
        runtime = self.runtime
        if not runtime.read_only:
            return NewMessages()
        name = runtime.get(Indexes).lexicon
        with self._lock:
            behind = watermarks.missing(conn, runtime.owner, name)
            marks: dict[int, Watermark] = {}
            for piece in in_pieces(behind, WORDS_AT_ONCE):
                marks |= {tree: at.watermark for tree, at in watermarks.of_trees(conn, name, piece).items()}
            # Another process may have indexed or emptied a tree.
            self._trees = {
                tree: new
                for tree, new in self._trees.items()
                if tree in marks and new.after == marks[tree].seq
            }
            unread = {
                tree: count
                for tree, count in behind.items()
                if tree not in self._trees or self._trees[tree].last < marks[tree].seq + count
            }
            for piece in in_pieces(unread, WORDS_AT_ONCE):
                self._add(conn, {tree: marks[tree] for tree in piece}, unread)
            return NewMessages(dict(self._trees), self._lock)

    def _add(self, conn: Conn, marks: Mapping[int, Watermark], behind: Mapping[int, int]) -> None:
        """Read the new messages of trees."""
        after = {
            tree: mark._replace(seq=self._trees[tree].last) if tree in self._trees else mark
            for tree, mark in marks.items()
        }
        for tree, mark in marks.items():
            # Numbers of purged messages are not read again.
            self._trees.setdefault(tree, _NewInTree(mark.seq, mark.seq)).last = mark.seq + behind[tree]
        for tree, key, document in new_documents(conn, self.runtime, after, nodes.EVERYTHING)[1]:
            if key not in self._trees[tree].documents:
                self._trees[tree].add(key, document)


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
