"""Postings: one conversation as an inverted index in memory.

Each message has a row of numbers, and each term a list of the rows that contain it. `recall.scoring` scores a
question against all rows at once, in about 0.3 ms for 2,000 messages.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common import forking
from langchain_threadmem.common.type_variables import T
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime, TreeCache
from langchain_threadmem.index import queries as document_queries
from langchain_threadmem.index.catch_up_words import documents_of
from langchain_threadmem.index.documents import CODE, LEAD, DocumentRow, lines_of, unpack
from langchain_threadmem.index.language import split
from langchain_threadmem.index.units import memory
from langchain_threadmem.recall.instructions.directives import marks
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import grafts, nodes, trees

REACH = 8
"""The number of messages before and after a message that form its neighbourhood."""
SESSION = 6 * 3600.0
"""The pause in seconds between two sessions. Messages of different sessions are not neighbours."""

Doubles = NDArray[np.float64]

_ROW = np.dtype(
    [
        ("key", np.int64),
        ("seq", np.int64),
        ("parent", np.int32),  # row of the message above, or -1
        ("turn", np.int32),  # row of the message that opened the turn
        ("speaker", np.int32),
        ("length", np.float32),  # weighted number of terms
        ("lead", np.float32),
        ("time", np.float64),
        ("asks", np.float32),
        ("times", np.float32),
        ("numbers", np.float32),
        ("selfs", np.float32),
        ("human", np.bool_),
        ("recallable", np.bool_),  # whether recall may return it
        ("live", np.bool_),
    ]
)


class Posting(NamedTuple):
    """The rows that contain a term, with its counts in the message and in the first words of the message."""

    rows: NDArray[np.int32]
    counts: NDArray[np.float32]
    leads: NDArray[np.float32]


NO_POSTING = Posting(np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.float32))


class Figures(NamedTuple):
    """The statistics of the searched messages that BM25 uses.

    Attributes:
        documents: The number of messages.
        human: The average length of human messages, in terms.
        answer: The average length of answers, in terms.
        frequency: For each term of the question, the number of messages that contain it.
    """

    documents: int
    human: float
    answer: float
    frequency: Mapping[str, int]


class Postings:
    """Rows and posting lists of a conversation, added in the order of the node numbers.

    Args:
        only: The terms to index; by default all.
    """

    def __init__(self, only: Collection[str] | None = None) -> None:
        self._only = only
        self._buffer = np.zeros(64, _ROW)
        self._count = 0
        self._row_of: dict[int, int] = {}
        self._lists: dict[str, tuple[array[int], array[float], array[float]]] = {}
        self._speakers: dict[str, int] = {"": 0}
        self._cached: tuple[int, dict[str, Any]] = (0, {})
        self._marking: list[str] = []
        self.standing: tuple[int, int, Sequence[int]] = (0, -1, ())
        """The keys of standing instructions, after the number of messages and the version that were read."""
        self.names: set[str] = set()
        """The words of the speakers' names, in lower case."""
        self.version = -1
        """Version of the tree at which `live` was read."""
        self.lock = forking.rlock()

    @property
    def last(self) -> int:
        """Number of the newest message; 0 if there is none."""
        return int(self._buffer["seq"][self._count - 1]) if self._count else 0

    @property
    def rows(self) -> NDArray[Any]:
        """The rows as a structured array, valid until messages are added."""
        return self._buffer[: self._count]

    def add(self, records: Iterable[DocumentRow]) -> None:
        """Add the messages newer than `last`."""
        last, first = self.last, self._count
        rows: list[tuple[Any, ...]] = []
        late: list[tuple[int, int]] = []
        row_of, speakers = self._row_of, self._speakers
        for key, seq, above, role, live, (terms, packed, name, time) in records:
            if seq <= last:
                continue
            last, row = seq, first + len(rows)
            parent = -1 if above is None else row_of.get(above, -1)
            if parent < 0 and above is not None:
                late.append((seq, above))
            human = role == "human"
            turn = row
            if not human and parent >= 0:
                turn = rows[parent - first][3] if parent >= first else int(self._buffer["turn"][parent])
            speaker = speakers.get(name)
            if speaker is None:
                speaker = speakers[name] = len(speakers)
                self.names.update(split(name))
            asks, times, numbers, selfs, lead, length = unpack(packed)
            rows.append(
                (key, seq, parent, turn, speaker, length, lead, time, asks, times, numbers, selfs, human,
                 bool(terms), live)
            )  # fmt: skip
            row_of[seq] = row
            # A substring search excludes most terms before the text, which may be long, is split and counted.
            among = None if self._only is None else [*filter(terms.__contains__, self._only)]
            if among is None or among:
                self._post(row, terms, among)
        self._grow(rows)
        self.set_parents(late)

    def set_parents(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Set the parents of messages, by pairs of numbers; the parent of a grafted message may be newer."""
        for seq, above in pairs:
            row = self._row_of.get(seq)
            if row is not None:
                self._buffer["parent"][row] = self._row_of.get(above, -1)
                self._cached = (0, {})

    def _grow(self, rows: Sequence[tuple[Any, ...]]) -> None:
        if not rows:
            return
        total = self._count + len(rows)
        if total > len(self._buffer):
            grown = np.zeros(max(total, 2 * len(self._buffer)), _ROW)
            grown[: self._count] = self.rows
            self._buffer = grown
        self._buffer[self._count : total] = np.array(rows, _ROW)
        self._count = total

    def _post(self, row: int, terms: str, among: Sequence[str] | None) -> None:
        spoken, code = lines_of(terms)
        counts: dict[str, float]
        if among is None:
            counts = dict(Counter(spoken))
            for term in code:
                counts[term] = counts.get(term, 0.0) + CODE
        else:
            counts = {term: spoken.count(term) + CODE * code.count(term) for term in among}
        lead = (spoken or code)[:LEAD]
        in_lead = lead.count if among is not None else Counter(lead).__getitem__
        for term, count in counts.items():
            if not count:
                continue
            lists = self._lists.get(term)
            if lists is None:
                lists = self._lists[term] = (array("i"), array("f"), array("f"))
                if marks(term):
                    self._marking.append(term)
            lists[0].append(row)
            lists[1].append(count)
            lists[2].append(in_lead(term))

    def mark_live(self, seqs: Iterable[int], version: int) -> None:
        """Record which messages are live.

        Args:
            seqs: Numbers of the messages that are not live.
            version: The version of the tree at which the numbers were read.
        """
        self._buffer["live"][: self._count] = True
        for seq in seqs:
            row = self._row_of.get(seq)
            if row is not None:
                self._buffer["live"][row] = False
        self.version = version

    def posting(self, term: str) -> Posting:
        """The rows that contain a term, with counts."""
        lists = self._lists.get(term)
        if lists is None:
            return NO_POSTING
        return Posting(*map(np.array, lists))

    def directing(self) -> NDArray[np.bool_]:
        """Whether each message is of a person, and has words of standing instructions."""
        found = np.zeros(self._count, np.bool_)
        for term in self._marking:
            found[np.array(self._lists[term][0])] = True
        rows = self.rows
        directing: NDArray[np.bool_] = found & rows["human"] & rows["live"] & rows["recallable"]
        return directing

    def figures(self, terms: Iterable[str]) -> Figures:
        """The statistics of this conversation."""
        documents, human, answer = self.once("figures", self._figures)
        frequency = {term: len(self._lists[term][0]) if term in self._lists else 0 for term in terms}
        return Figures(documents, human, answer, frequency)

    def _figures(self) -> tuple[int, float, float]:
        recallable, human, length = (self.rows[name] for name in ("recallable", "human", "length"))
        return int(recallable.sum()), _mean(length[recallable & human]), _mean(length[recallable & ~human])

    @property
    def speakers(self) -> list[str]:
        """The names of the speakers, by their number in the rows."""
        return list(self._speakers)

    def spoken_by(self, words: Iterable[str]) -> NDArray[np.bool_]:
        """Whether the name of each message's speaker contains one of the words."""
        name_words = frozenset(words)
        chosen = [n for name, n in self._speakers.items() if name_words & set(split(name))]
        return np.isin(self.rows["speaker"], chosen)

    def line(self) -> NDArray[np.intp]:
        """A position for each row; neighbours in a thread and session have adjacent positions.

        Keys rise by one along a segment of a thread. Other messages are more than `REACH` positions apart.
        """
        return self.once("line", self._places)

    def _places(self) -> NDArray[np.intp]:
        keys, times = self.rows["key"], self.rows["time"]
        order = np.argsort(keys, kind="stable")
        steps = np.diff(keys[order], prepend=keys[order[:1]])
        silent = np.abs(np.diff(times[order], prepend=times[order[:1]])) > SESSION
        places = np.empty(self._count, np.intp)
        places[order] = np.cumsum(np.where(silent, REACH + 1, np.minimum(steps, REACH + 1)))
        return places

    def once(self, name: str, make: Callable[[], T]) -> T:
        """A value that is independent of the question, cached until messages are added."""
        if self._cached[0] != self._count:
            self._cached = (self._count, {})
        cached = self._cached[1]
        if name not in cached:
            cached[name] = make()
        value: T = cached[name]
        return value

    def around(self, values: Doubles, reach: int) -> Doubles:
        """The sum of values over each message's neighbourhood, weighted by a triangle of height 1."""
        places = self.line()
        if not len(places):
            return values
        line = np.zeros(int(places.max()) + 1)
        line[places] = values
        slope = 1 - np.abs(np.arange(-reach, reach + 1)) / (reach + 1)
        if len(line) < len(slope):
            line = np.concatenate([line, np.zeros(len(slope) - len(line))])
        around: Doubles = np.convolve(line, slope, "same")[places]
        return around


def _mean(values: NDArray[np.float32]) -> float:
    return float(values.mean()) if len(values) else 1.0


class PostingsCache(TreeCache[Postings]):
    """The postings of conversations, by tree and epoch."""

    capacity = 16


def postings_of(runtime: Runtime, tree: int, *, shared: bool = True) -> Flow[tuple[Postings, trees.Head]]:
    """The postings of a conversation, and the head of the tree at the time of the read.

    Encrypted messages are in no index on disk, so their postings are computed from the decrypted messages.

    Args:
        shared: Whether to use the cached postings, which other threads update at the same time.
    """
    cache = runtime.get(PostingsCache).values

    def read(conn: Conn) -> tuple[trees.Head, list[DocumentRow], list[int], list[tuple[int, int]]]:
        head = trees.head(conn, tree)
        cached = cache.get((tree, head.epoch)) if shared else None
        records = records_of(conn, runtime, tree, cached.last if cached else 0)
        if cached is not None and cached.version == head.version:
            return head, records, [], []
        return head, records, document_queries.dead(conn, tree), grafts.parents(conn, tree)

    head, records, dead, moved = yield from Sql(read)
    postings = cache.setdefault((tree, head.epoch), Postings) if shared else Postings()
    with postings.lock:
        postings.add(records)
        if postings.version < head.version:
            postings.mark_live(dead, head.version)
            postings.set_parents(moved)
    return postings, head


def records_of(conn: Conn, runtime: Runtime, tree: int, last: int) -> list[DocumentRow]:
    """The documents of a tree's nodes numbered above `last`, without forgotten nodes."""
    if runtime.indexes_words:
        return document_queries.since(conn, tree, last)
    absent = memory.absent(conn, tree, last)
    rows = [row for row in nodes.since(conn, tree, last) if row.key not in absent]
    return [
        DocumentRow(row.key, row.seq, row.parent, row.role, row.state == State.LIVE, document)
        for row, (_, document) in zip(rows, documents_of(runtime, rows), strict=True)
    ]
