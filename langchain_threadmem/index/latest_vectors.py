"""The vectors of the latest messages of a conversation, which a selector compares with each new message.

They are in memory. A selector embeds the messages that have no vector yet together with the new message, and
the transaction that stores the new message stores their vectors (`NewVectors.store`): they are not written
and read again in transactions of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from langchain_threadmem.common import forking
from langchain_threadmem.common.arrays import Floats
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime, TreeCache
from langchain_threadmem.index import vectors as stored
from langchain_threadmem.index import watermarks
from langchain_threadmem.index.embed import embed, embed_tree
from langchain_threadmem.index.vectors import NONE, Vectors
from langchain_threadmem.index.watermarks import Watermark
from langchain_threadmem.storage.statements import BoundStatement, Conn
from langchain_threadmem.tree import nodes

READ_AT_ONCE = 1024
"""The number of vectors that a call reads: of the newest messages first, of older messages in later calls."""
MOST = 4352
"""The number of messages from which no vectors of older messages are read."""
ROUGH_DIMENSIONS = 96
"""The number of dimensions of the rough vectors: among 4,096 messages the nearest 96 by them contain 99 of
100 of the nearest six."""
_ROOM = 1024


@dataclass(frozen=True)
class NewVectors:
    """Vectors of messages that the database does not contain yet.

    Attributes:
        tree: The conversation.
        epoch: Its epoch.
        model: The embedding model.
        watermark: The name of the watermark of its vectors.
        rows: The vectors, by number of the node.
    """

    tree: int
    epoch: int
    model: str
    watermark: str
    rows: Mapping[int, Floats]

    def places_query(self) -> BoundStatement:
        """The query for the places of the vectors, in a transaction that has locked the tree."""
        return stored.places_query(self.tree, self.watermark, self.rows)

    def store(self, conn: Conn, places: Sequence[tuple[Any, ...]]) -> None:
        """Store the vectors, unless the conversation was emptied meanwhile.

        A message may have been forgotten or purged meanwhile; its vector is not stored.

        Args:
            conn: A write transaction that has locked the tree.
            places: The rows of `places_query`.
        """
        found = stored.places_of(places)
        if found is None or found.epoch != self.epoch:
            return
        vectors = np.array([self.rows[seq] for seq in found.keys])
        stored.put(conn, self.model, found.keys.values(), vectors)
        first, last = min(self.rows), max(self.rows)
        if found.last + 1 == first and last - first + 1 == len(self.rows):
            mark = Watermark(last, found.documents + len(found.keys))
            watermarks.put(conn, self.watermark, {self.tree: mark})


class LatestVectors:
    """The vectors of the latest messages of a conversation, by number of the node.

    Attributes:
        model: The name under which the vectors are stored.
        epoch: The epoch of the conversation.
        name: The name of the watermark of the vectors.
        has_all: Whether no older vectors are stored.
        new: The vectors that are not stored yet, by number of the node.
        mark: The watermark of the stored vectors.
    """

    def __init__(self, model: str, epoch: int) -> None:
        self.model, self.epoch, self.name = model, epoch, watermarks.embeddings_of(model)
        self.has_all = False
        self.new: dict[int, Floats] = {}
        self.mark = 0
        self.lock = forking.lock()
        self._numbers: set[int] = set()
        self._buffer = NONE
        self._rough = NONE.matrix
        self._count = 0

    @property
    def vectors(self) -> Vectors:
        """All vectors; the key of a message that was embedded in this process is 0."""
        keys, seqs, matrix = self._buffer
        return Vectors(keys[: self._count], seqs[: self._count], matrix[: self._count])

    @property
    def rough(self) -> Floats:
        """The first dimensions of all vectors, by which the nearest are found with few exceptions."""
        return self._rough[: self._count]

    @property
    def last(self) -> int:
        """The highest number of a node; 0 without vectors."""
        return int(self._buffer.seqs[self._count - 1]) if self._count else 0

    def missing(self, numbers: Iterable[int]) -> list[int]:
        """The numbers without a vector, ascending."""
        return sorted(set(numbers) - self._numbers)

    def add(self, news: Vectors) -> None:
        """Add vectors; those of known numbers are ignored."""
        with self.lock:
            fresh = np.array([seq not in self._numbers for seq in news.seqs.tolist()], bool)
            news = news.among(fresh)
            if not len(news.seqs):
                return
            if news.seqs[0] > self.last and self._count + len(news.seqs) <= len(self._buffer.seqs):
                self._put(slice(self._count, self._count + len(news.seqs)), news)
                self._count += len(news.seqs)
            else:
                self._merge(news)
            self._numbers.update(news.seqs.tolist())

    def _merge(self, news: Vectors) -> None:
        """Add vectors of older nodes, or more than the buffer can hold."""
        known = self.vectors if self._count else Vectors(NONE.keys, NONE.seqs, news.matrix[:0])
        order = np.argsort(np.concatenate([known.seqs, news.seqs]), kind="stable")
        count, dimensions = len(order), news.matrix.shape[1]
        room = count + max(count // 2, _ROOM)
        keys, seqs = np.zeros((2, room), np.int64)
        joined = Vectors(
            np.concatenate([known.keys, news.keys])[order],
            np.concatenate([known.seqs, news.seqs])[order],
            np.concatenate([known.matrix, news.matrix])[order],
        )
        self._buffer, self._count = Vectors(keys, seqs, np.empty((room, dimensions), np.float32)), count
        self._rough = np.empty((room, min(dimensions, ROUGH_DIMENSIONS)), np.float32)
        self._put(slice(0, count), joined)

    def _put(self, rows: slice, news: Vectors) -> None:
        keys, seqs, matrix = self._buffer
        keys[rows], seqs[rows], matrix[rows] = news
        self._rough[rows] = news.matrix[:, :ROUGH_DIMENSIONS]


class LatestVectorsOfTrees(TreeCache[LatestVectors]):
    """The vectors of the latest messages of conversations, by tree and model."""


@dataclass
class _ReadVectors:
    """Vectors that were read, and the watermark."""

    vectors: Vectors
    mark: int = 0


def latest_vectors(
    runtime: Runtime,
    model: str,
    tree: int,
    epoch: int,
    numbers: Collection[int],
    texts: Callable[[Collection[int]], Mapping[int, str]],
    message: str,
) -> Flow[tuple[LatestVectors, Floats]]:
    """The vectors of the latest messages, and of a new message.

    Args:
        runtime: The owner's memory, with an embedding model.
        model: The name under which the vectors are stored.
        tree: The conversation.
        epoch: Its epoch.
        numbers: The numbers of the nodes of the messages that are compared.
        texts: Returns the texts to embed of some of these messages, without blank texts.
        message: The text of the new message.

    Returns:
        The vectors, which include those of all these messages that are not blank.

    Cost: the embedding of the texts without a vector, usually the last answer and the message. In a new
    process the vectors of the newest 1,024 messages are read, and of as many older messages in each later
    call.
    """
    cache, key = runtime.get(LatestVectorsOfTrees).values, (tree, model)
    latest = cache.get(key)
    if latest is None or latest.epoch != epoch:
        cache.put(key, latest := LatestVectors(model, epoch))
        yield from _begin(runtime, tree, latest, min(numbers, default=1))
    elif not latest.has_all:
        yield from _read_older(tree, latest)
    new = texts(latest.missing(numbers))
    missing = list(new)
    if missing and (runtime.embeds_ahead or not _follow(missing, latest.mark)):
        # Other calls may have stored vectors, or there are other messages to embed.
        if not _follow(missing, latest.mark):
            yield from embed_tree(runtime, tree, wait=True)
        yield from _read_news(tree, latest)
        missing = latest.missing(missing)
    rows = yield from embed(runtime, [*[new[number] for number in missing], message])
    if missing:
        seqs = np.array(missing, np.int64)
        latest.add(Vectors(np.zeros_like(seqs), seqs, rows[:-1]))
        latest.new.update(zip(missing, rows[:-1], strict=True))
        latest.mark = max(latest.mark, missing[-1])
    return latest, rows[-1]


def new_vectors(runtime: Runtime, tree: int, latest: LatestVectors) -> NewVectors | None:
    """The vectors to store with the next message, if any."""
    if not latest.new or runtime.read_only:
        return None
    return NewVectors(tree, latest.epoch, latest.model, latest.name, dict(latest.new))


def stored_now(runtime: Runtime, new: NewVectors | None) -> None:
    """Note that vectors were stored, after the commit."""
    latest = None if new is None else runtime.get(LatestVectorsOfTrees).values.get((new.tree, new.model))
    if new is not None and latest is not None and latest.epoch == new.epoch:
        for number in new.rows:
            latest.new.pop(number, None)


def _follow(numbers: Sequence[int], mark: int) -> bool:
    """Whether nodes are the next after a watermark, without others between them."""
    return numbers[0] == mark + 1 and numbers[-1] - numbers[0] + 1 == len(numbers)


def _begin(runtime: Runtime, tree: int, latest: LatestVectors, oldest: int) -> Flow[None]:
    """Read the newest vectors, after older messages than those to compare have been embedded."""
    name = watermarks.embeddings_of(latest.model)
    mark = (yield from Sql(lambda conn: watermarks.get(conn, tree, name))).watermark.seq
    if mark + 1 < oldest:
        yield from embed_tree(runtime, tree, wait=True)
    yield from _read_older(tree, latest)


def _read_older(tree: int, latest: LatestVectors) -> Flow[None]:
    vectors, model = latest.vectors, latest.model
    before = int(vectors.seqs[0]) if len(vectors.seqs) else nodes.EVERYTHING

    def read(conn: Conn) -> _ReadVectors:
        mark = watermarks.get(conn, tree, watermarks.embeddings_of(model)).watermark.seq
        return _ReadVectors(stored.before(conn, tree, model, before, READ_AT_ONCE), mark)

    block = yield from Sql(read)
    latest.add(block.vectors)
    latest.mark = max(latest.mark, block.mark)
    latest.has_all = len(block.vectors.seqs) < READ_AT_ONCE or len(latest.vectors.seqs) >= MOST


def _read_news(tree: int, latest: LatestVectors) -> Flow[None]:
    model = latest.model

    def read(conn: Conn) -> _ReadVectors:
        mark = watermarks.get(conn, tree, watermarks.embeddings_of(model)).watermark.seq
        return _ReadVectors(stored.since(conn, tree, model, latest.last), mark)

    block = yield from Sql(read)
    latest.add(block.vectors)
    latest.mark = max(latest.mark, block.mark)
