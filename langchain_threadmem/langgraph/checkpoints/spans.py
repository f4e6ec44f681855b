"""SQL: the ranges of keys of spans, and their messages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import bindparam, func, select

from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.common.ranges import Range, joined
from langchain_threadmem.engine.runtime import Resources, SharedComponent
from langchain_threadmem.errors import PersistenceError
from langchain_threadmem.langgraph.checkpoints.values import Span
from langchain_threadmem.storage.schema import POSITION_BITS, State, node, segment, tree
from langchain_threadmem.storage.statements import BoundStatement, Conn, Statement
from langchain_threadmem.tree import nodes
from langchain_threadmem.tree.nodes import MessageRow
from langchain_threadmem.tree.trees import TreeVersion

CACHED_SEGMENTS = 32
MOST_CACHED = 10_000
"""The maximum number of rows of a cached segment."""


class CachedSegment(NamedTuple):
    """Rows of a segment.

    Attributes:
        tree: The tree of the segment.
        version: Epoch and version of the tree when the rows were read; a change makes the rows invalid.
        rows: Consecutive nodes in the order of their keys.
    """

    tree: int
    version: TreeVersion
    rows: list[MessageRow]


class SegmentCache(SharedComponent):
    """A cache of the most recently read and written segments."""

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        self.segments = LruCache[int, CachedSegment](CACHED_SEGMENTS)

    def add(self, tree: int, version: TreeVersion, rows: Iterable[MessageRow]) -> None:
        """Cache messages that were written, at the end of cached segments and at the beginning of new ones.

        Args:
            tree: The tree of the messages.
            version: Epoch and version of the tree.
            rows: The messages, in the order of their keys.
        """
        for number, added in groupby(rows, _segment_of):
            cached, new = self.segments.get(number), list(added)
            before = [] if cached is None or cached.version != version else cached.rows
            next_key = _key(before[-1]) + 1 if before else number << POSITION_BITS
            keys = list(map(_key, new))
            if keys == list(range(next_key, next_key + len(new))) and len(before) + len(new) <= MOST_CACHED:
                self.segments.put(number, CachedSegment(tree, version, [*before, *new]))

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        self.close()

    def close(self) -> None:
        self.segments = LruCache(CACHED_SEGMENTS)


_VERSION = Statement(
    select(tree.c.id, tree.c.epoch, tree.c.version)
    .join(segment, segment.c.tree == tree.c.id)
    .where(segment.c.id == bindparam("segment")),
    "segment",
)
_COUNT = Statement(
    select(func.count()).where(node.c.key.between(bindparam("first"), bindparam("last"))), "first", "last"
)
_key = itemgetter(3)


class SpanReader:
    """Finds the ranges of spans and reads their messages."""

    def __init__(self) -> None:
        self._ranges: dict[Span, list[Range]] = {}
        self._rows: dict[int, list[MessageRow]] = {}
        self._ancestors: dict[int, list[Range]] = {}

    def load(
        self,
        conn: Conn,
        spans: Sequence[Span],
        cache: LruCache[int, CachedSegment],
        read: tuple[int, TreeVersion] | None = None,
    ) -> None:
        """Read the messages of spans; of a cached segment only the new rows are read.

        Args:
            conn: A transaction.
            spans: The spans.
            cache: The cached segments.
            read: A tree and its version, which the transaction has read.
        """
        for span in spans:
            with suppress(PersistenceError):  # `rows` will raise the error
                self._path(conn, span)
        ranges = self.ranges(conn, [span for span in spans if span in self._ranges])
        segments = {number: list(part) for number, part in groupby(ranges, _segment)}
        cached = {number: _usable(cache.get(number), part) for number, part in segments.items()}
        queries: list[BoundStatement] = []
        known = dict([] if read is None else [read])
        for number, (usable, missing) in cached.items():
            # The version is read before the rows, so that a change in between makes the cached rows invalid.
            if usable is None or usable.tree not in known:
                queries.append((_VERSION, (number,)))
            queries += nodes.messages_queries(missing)
        answers = iter(conn.each(*queries) if queries else ())
        for number, (usable, missing) in cached.items():
            if usable is None or usable.tree not in known:
                found = [(row[0], (row[1], row[2])) for row in next(answers)]
            else:
                found = [(usable.tree, known[usable.tree])]
            rows = nodes.opened_messages(conn, islice(answers, 1 if missing else 0))
            if usable is not None and [(usable.tree, usable.version)] != found:
                rows = nodes.opened_messages(conn, conn.each(*nodes.messages_queries(segments[number])))
            elif usable is not None:
                rows = usable.rows + rows if rows else usable.rows
            self._rows[number] = rows
            if len(segments[number]) == 1 and found and rows and len(rows) <= MOST_CACHED:
                cache.put(number, CachedSegment(*found[0], rows))

    def rows(self, span: Span) -> list[tuple[str, str, str]]:
        """Ids, bodies and roles of the loaded messages of a span, without purged messages.

        Raises:
            PersistenceError: A message of the span is missing.
        """
        if span not in self._ranges:
            raise _no_thread(span)
        messages: list[tuple[str, str, str]] = []
        for first, last in self._ranges[span]:
            rows = self._rows[first >> POSITION_BITS]
            index = bisect_left(rows, first, key=_key)
            part = rows[index : index + last - first + 1]
            if len(part) != last - first + 1 or _key(part[-1]) != last:
                raise PersistenceError(
                    f"a checkpoint refers to the messages {first} to {last}, but some of them are missing; "
                    "run verify()"
                )
            messages += [row[:3] for row in part if row[4] != State.PURGED]
        return messages

    def keys(self, conn: Conn, spans: Iterable[Span]) -> set[int]:
        """The keys of the messages of spans."""
        return {key for first, last in self.ranges(conn, spans) for key in range(first, last + 1)}

    def contains(self, conn: Conn, spans: Iterable[Span], keys: Collection[int]) -> bool:
        """Whether spans contain at least one of `keys`."""
        ranges = self.ranges(conn, spans)
        return any(nodes.contain(ranges, key) for key in keys)

    def gaps(self, conn: Conn, spans: Iterable[Span]) -> list[Range]:
        """The ranges of keys in spans with a missing message."""
        return [
            (first, last)
            for first, last in self.ranges(conn, spans)
            if conn.all(_COUNT, first, last)[0][0] < last - first + 1
        ]

    def ranges(self, conn: Conn, spans: Iterable[Span]) -> list[Range]:
        """The ranges of keys of spans, sorted, with overlapping and adjacent ranges of a segment merged.

        Raises:
            PersistenceError: No thread leads from the first to the last message of a span.
        """
        ranges = sorted(range_ for span in spans for range_ in self._path(conn, span))
        return [range_ for _, part in groupby(ranges, _segment) for range_ in joined(part)]

    def _path(self, conn: Conn, span: Span) -> list[Range]:
        """The ranges of a span, from its first to its last message."""
        if span not in self._ranges:
            self._ranges[span] = self._expand(conn, span)
        return self._ranges[span]

    def _expand(self, conn: Conn, span: Span) -> list[Range]:
        number = span.last >> POSITION_BITS
        if span.first >> POSITION_BITS == number:
            return [(span.first, span.last)]
        if number not in self._ancestors:
            self._ancestors[number] = nodes.written_spans(conn, number << POSITION_BITS)[:-1]
        path = [*self._ancestors[number], (number << POSITION_BITS, span.last)]
        for index, (first, last) in enumerate(path):
            if first <= span.first <= last:
                return [(span.first, last), *path[index + 1 :]]
        raise _no_thread(span)


def _segment_of(row: MessageRow) -> int:
    return row[3] >> POSITION_BITS


def _segment(range_: Range) -> int:
    return range_[0] >> POSITION_BITS


def _usable(cached: CachedSegment | None, ranges: list[Range]) -> tuple[CachedSegment | None, list[Range]]:
    """The cached rows of a segment if new rows can follow them, and the ranges that are not cached."""
    if cached is None or len(ranges) > 1:
        return None, ranges
    first, last = ranges[0]
    oldest, newest = _key(cached.rows[0]), _key(cached.rows[-1])
    if not oldest <= first <= newest + 1:
        return None, ranges
    return cached, [(newest + 1, last)] if last > newest else []


def _no_thread(span: Span) -> PersistenceError:
    return PersistenceError(f"no thread leads from message {span.first} to {span.last}; run verify()")
