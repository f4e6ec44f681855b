"""SQL: reading the spans of many lists as few ranges of keys."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, func, select

from langchain_threadmem.checkpoints.values import Run
from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.errors import PersistenceError
from langchain_threadmem.storage.schema import POSITION_BITS, State, node, segment, tree
from langchain_threadmem.storage.statements import Asked, Conn, Statement
from langchain_threadmem.tree import nodes

Ranges = Sequence[tuple[int, int]]
"""First and last key of each."""
MOST_HOT = 10_000
"""Longer runs than this are not kept at hand."""


NodePart = tuple[int, str, str, int, str]
"""Key, message id, body, state and role of a node."""


class Hot(NamedTuple):
    """Rows of a segment that were read before.

    Attributes:
        version: Epoch and version of its tree at that time: as long as they are the same, so are the rows.
        rows: One node after the other.
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
    """Stored messages by runs, once they are loaded.

    Args:
        hot: Segments that were read before, by their numbers: of these, only what is new is read.
    """

    def __init__(self, hot: LruCache[int, Hot] | None = None) -> None:
        self._hot = hot
        self._ranges: dict[Run, list[tuple[int, int]]] = {}
        self._rows: dict[int, list[NodePart]] = {}
        self._above: dict[int, list[tuple[int, int]]] = {}

    def load(self, conn: Conn, runs: Sequence[Run]) -> None:
        """Read what the runs lead through."""
        there = [run for run in runs if self._leads(conn, run)]
        wanted = {number: list(_merged(ranges)) for number, ranges in self._by_segment(conn, there).items()}
        held = {number: self._held(number, ranges) for number, ranges in wanted.items()}
        asked: list[Asked] = []
        for number, ranges in wanted.items():
            # Before the rows: what changes in between is then read again the next time.
            asked.append((_VERSION, (number,)))
            asked += [(_RANGE, range_) for range_ in _missing(held[number], ranges)]
        answers = iter(conn.each(*asked))
        for number, ranges in wanted.items():
            before = held[number]
            version = next(answers)
            rows = _opened(conn, [row for _ in _missing(before, ranges) for row in next(answers)])
            if before is not None:
                if [before.version] != version:
                    rows = _opened(conn, [row for range_ in ranges for row in conn.all(_RANGE, *range_)])
                else:
                    rows = before.rows + rows if rows else before.rows
            self._rows[number] = rows
            if self._hot is not None and len(ranges) == 1 and version and rows and len(rows) <= MOST_HOT:
                self._hot.put(number, Hot((version[0][0], version[0][1]), rows))

    def _held(self, number: int, ranges: Ranges) -> Hot | None:
        """What was read before of a segment, if it can be continued."""
        if self._hot is None or len(ranges) > 1 or (held := self._hot.get(number)) is None:
            return None
        return held if held.rows[0][0] <= ranges[0][0] <= held.rows[-1][0] + 1 else None

    def _leads(self, conn: Conn, run: Run) -> bool:
        """Whether there is such a run: one that there is not keeps nobody from reading the others."""
        try:
            self._by_segment(conn, [run])
        except PersistenceError:
            return False
        return True

    def keys(self, conn: Conn, runs: Iterable[Run]) -> set[int]:
        """The keys that runs lead through."""
        found: set[int] = set()
        for ranges in self._by_segment(conn, runs).values():
            for first, last in _merged(ranges):
                found.update(range(first, last + 1))
        return found

    def holds(self, conn: Conn, runs: Iterable[Run], keys: Collection[int]) -> bool:
        """Whether runs lead through one of some keys."""
        return any(
            first <= key <= last
            for ranges in self._by_segment(conn, runs).values()
            for first, last in ranges
            for key in keys
        )

    def gaps(self, conn: Conn, runs: Iterable[Run]) -> list[tuple[int, int]]:
        """The ranges of keys that runs lead through and that have no longer a message for each key."""
        return [
            (first, last)
            for ranges in self._by_segment(conn, runs).values()
            for first, last in _merged(ranges)
            if conn.all(_COUNT, first, last)[0][0] < last - first + 1
        ]

    def _by_segment(self, conn: Conn, runs: Iterable[Run]) -> dict[int, list[tuple[int, int]]]:
        wanted: dict[int, list[tuple[int, int]]] = {}
        for run in runs:
            if run not in self._ranges:
                self._ranges[run] = self._expand(conn, run)
            for first, last in self._ranges[run]:
                wanted.setdefault(first >> POSITION_BITS, []).append((first, last))
        return wanted

    def rows(self, run: Run) -> list[tuple[str, str, str]]:
        """Message ids, bodies and roles of a run; what was purged of it is left out.

        Raises:
            PersistenceError: A message of it is no longer stored.
        """
        if run not in self._ranges:
            raise _no_thread(run)
        found: list[tuple[str, str, str]] = []
        for first, last in self._ranges[run]:
            rows = self._rows[first >> POSITION_BITS]
            at = bisect_left(rows, (first,))
            part = rows[at : at + last - first + 1]
            if len(part) != last - first + 1 or part[-1][0] != last:
                raise PersistenceError(
                    f"a checkpoint refers to the messages {first} to {last}, some of which are gone; "
                    "run verify()"
                )
            found += [(row[1], row[2], row[4]) for row in part if row[3] != State.PURGED]
        return found

    def _expand(self, conn: Conn, run: Run) -> list[tuple[int, int]]:
        number = run.last >> POSITION_BITS
        if run.first >> POSITION_BITS == number:
            return [(run.first, run.last)]
        if number not in self._above:
            self._above[number] = nodes.written_spans(conn, number << POSITION_BITS)[:-1]
        path = [*self._above[number], (number << POSITION_BITS, run.last)]
        for at, (first, last) in enumerate(path):
            if first <= run.first <= last:
                return [(run.first, last), *path[at + 1 :]]
        raise _no_thread(run)


def _no_thread(run: Run) -> PersistenceError:
    return PersistenceError(f"no thread leads from message {run.first} to {run.last}; run verify()")


def _missing(held: Hot | None, ranges: Ranges) -> Ranges:
    """The ranges of a segment that are not held."""
    if held is None:
        return ranges
    newest, last = held.rows[-1][0], ranges[0][1]
    return [(newest + 1, last)] if last > newest else []


def _opened(conn: Conn, rows: list[Any]) -> list[NodePart]:
    if (seal := conn.seal) is None:
        return rows
    return [
        (key, message, body if state == State.PURGED else seal.open_body(message, role, body), state, role)
        for key, message, body, state, role in rows
    ]


def _merged(ranges: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges of one segment as few that do not overlap, in their order."""
    begin, end = None, -1
    for first, last in sorted(ranges):
        if begin is None or first > end + 1:
            if begin is not None:
                yield begin, end
            begin = first
        end = max(end, last)
    if begin is not None:
        yield begin, end
