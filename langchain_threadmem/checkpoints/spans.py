"""SQL: the messages of spans, read as few ranges of keys."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, func, select

from langchain_threadmem.checkpoints.values import Span
from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.errors import PersistenceError
from langchain_threadmem.storage.schema import POSITION_BITS, State, node, segment, tree
from langchain_threadmem.storage.statements import Asked, Conn, Statement
from langchain_threadmem.tree import nodes

Ranges = Sequence[tuple[int, int]]
"""First and last key of each range."""
MOST_CACHED = 10_000
"""The maximum number of rows of a cached segment."""


NodePart = tuple[int, str, str, int, str]
"""Key, message id, body, state and role of a node."""


class CachedSegment(NamedTuple):
    """Rows of a segment.

    Attributes:
        version: Epoch and version of the tree when the rows were read; a change makes the rows invalid.
        rows: The nodes in the order of their keys.
    """

    version: tuple[int, int]
    rows: list[NodePart]


_VERSION = Statement(
    select(tree.c.epoch, tree.c.version)
    .join(segment, segment.c.tree == tree.c.id)
    .where(segment.c.id == bindparam("segment")),
    "segment",
)
_COUNT = Statement(
    select(func.count()).where(node.c.key.between(bindparam("first"), bindparam("last"))), "first", "last"
)
_RANGE = Statement(
    select(node.c.key, node.c.message, node.c.body, node.c.state, node.c.role)
    .where(node.c.key.between(bindparam("first"), bindparam("last")))
    .order_by(node.c.key),
    "first",
    "last",
)


class Reader:
    """Reads the messages of spans.

    Args:
        cache: Cached segments by number; of a cached segment only the new rows are read.
    """

    def __init__(self, cache: LruCache[int, CachedSegment] | None = None) -> None:
        self._cache = cache
        self._ranges: dict[Span, list[tuple[int, int]]] = {}
        self._rows: dict[int, list[NodePart]] = {}
        self._above: dict[int, list[tuple[int, int]]] = {}

    def load(self, conn: Conn, spans: Sequence[Span]) -> None:
        """Read the messages of spans."""
        existing = [span for span in spans if self._exists(conn, span)]
        ranges_of = {
            number: list(_merged(ranges)) for number, ranges in self._by_segment(conn, existing).items()
        }
        cached = {number: self._cached(number, ranges) for number, ranges in ranges_of.items()}
        asked: list[Asked] = []
        for number, ranges in ranges_of.items():
            # The version is read before the rows, so that a change in between makes the cached rows invalid.
            asked.append((_VERSION, (number,)))
            asked += [(_RANGE, range_) for range_ in _missing(cached[number], ranges)]
        answers = iter(conn.each(*asked))
        for number, ranges in ranges_of.items():
            before = cached[number]
            version = next(answers)
            rows = _opened(conn, [row for _ in _missing(before, ranges) for row in next(answers)])
            if before is not None:
                if [before.version] != version:
                    rows = _opened(conn, [row for range_ in ranges for row in conn.all(_RANGE, *range_)])
                else:
                    rows = before.rows + rows if rows else before.rows
            self._rows[number] = rows
            if self._cache is not None and len(ranges) == 1 and version and rows and len(rows) <= MOST_CACHED:
                self._cache.put(number, CachedSegment((version[0][0], version[0][1]), rows))

    def _cached(self, number: int, ranges: Ranges) -> CachedSegment | None:
        """The cached rows of a segment if new rows can follow them."""
        if self._cache is None or len(ranges) > 1 or (cached := self._cache.get(number)) is None:
            return None
        return cached if cached.rows[0][0] <= ranges[0][0] <= cached.rows[-1][0] + 1 else None

    def _exists(self, conn: Conn, span: Span) -> bool:
        try:
            self._by_segment(conn, [span])
        except PersistenceError:
            return False
        return True

    def keys(self, conn: Conn, spans: Iterable[Span]) -> set[int]:
        """The keys of the messages of spans."""
        keys: set[int] = set()
        for ranges in self._by_segment(conn, spans).values():
            for first, last in _merged(ranges):
                keys.update(range(first, last + 1))
        return keys

    def contains(self, conn: Conn, spans: Iterable[Span], keys: Collection[int]) -> bool:
        """Whether spans contain at least one of `keys`."""
        return any(
            first <= key <= last
            for ranges in self._by_segment(conn, spans).values()
            for first, last in ranges
            for key in keys
        )

    def gaps(self, conn: Conn, spans: Iterable[Span]) -> list[tuple[int, int]]:
        """The ranges of keys in spans with a missing message."""
        return [
            (first, last)
            for ranges in self._by_segment(conn, spans).values()
            for first, last in _merged(ranges)
            if conn.all(_COUNT, first, last)[0][0] < last - first + 1
        ]

    def _by_segment(self, conn: Conn, spans: Iterable[Span]) -> dict[int, list[tuple[int, int]]]:
        ranges_of: dict[int, list[tuple[int, int]]] = {}
        for span in spans:
            if span not in self._ranges:
                self._ranges[span] = self._expand(conn, span)
            for first, last in self._ranges[span]:
                ranges_of.setdefault(first >> POSITION_BITS, []).append((first, last))
        return ranges_of

    def rows(self, span: Span) -> list[tuple[str, str, str]]:
        """Ids, bodies and roles of the messages of a span, without purged messages.

        Raises:
            PersistenceError: A message of the span is missing.
        """
        if span not in self._ranges:
            raise _no_thread(span)
        messages: list[tuple[str, str, str]] = []
        for first, last in self._ranges[span]:
            rows = self._rows[first >> POSITION_BITS]
            at = bisect_left(rows, (first,))
            part = rows[at : at + last - first + 1]
            if len(part) != last - first + 1 or part[-1][0] != last:
                raise PersistenceError(
                    f"a checkpoint refers to the messages {first} to {last}, but some of them are missing; "
                    "run verify()"
                )
            messages += [(row[1], row[2], row[4]) for row in part if row[3] != State.PURGED]
        return messages

    def _expand(self, conn: Conn, span: Span) -> list[tuple[int, int]]:
        number = span.last >> POSITION_BITS
        if span.first >> POSITION_BITS == number:
            return [(span.first, span.last)]
        if number not in self._above:
            self._above[number] = nodes.written_spans(conn, number << POSITION_BITS)[:-1]
        path = [*self._above[number], (number << POSITION_BITS, span.last)]
        for at, (first, last) in enumerate(path):
            if first <= span.first <= last:
                return [(span.first, last), *path[at + 1 :]]
        raise _no_thread(span)


def _no_thread(span: Span) -> PersistenceError:
    return PersistenceError(f"no thread leads from message {span.first} to {span.last}; run verify()")


def _missing(cached: CachedSegment | None, ranges: Ranges) -> Ranges:
    """The ranges of a segment that are not cached."""
    if cached is None:
        return ranges
    newest, last = cached.rows[-1][0], ranges[0][1]
    return [(newest + 1, last)] if last > newest else []


def _opened(conn: Conn, rows: list[Any]) -> list[NodePart]:
    if (seal := conn.seal) is None:
        return rows
    return [
        (key, message, body if state == State.PURGED else seal.open_body(message, role, body), state, role)
        for key, message, body, state, role in rows
    ]


def _merged(ranges: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Sorted ranges of one segment, with overlapping and adjacent ranges merged."""
    begin, end = None, -1
    for first, last in sorted(ranges):
        if begin is None or first > end + 1:
            if begin is not None:
                yield begin, end
            begin = first
        end = max(end, last)
    if begin is not None:
        yield begin, end
