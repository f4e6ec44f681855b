"""The threads of a conversation in the order of their last use, updated with the new nodes.

To find the threads, all nodes of a conversation are read once. A cached list stays valid while no stored node
changes its state or its place (`tree.version`), and new nodes extend it: a call then reads the new nodes and,
for a node that forks from the middle of a thread, the nodes above it.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from langchain_threadmem.common.visited import Visited
from langchain_threadmem.engine.runtime import TreeCache
from langchain_threadmem.errors import InvalidGraphStateError
from langchain_threadmem.long_term.lists import queries
from langchain_threadmem.long_term.lists.queries import OutlineTuple
from langchain_threadmem.messages.roles import SPOKEN
from langchain_threadmem.selection.titles import ASKED
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree.trees import Head

LastSaid = tuple[float, int, int]
"""The message of a path that was said last: its time, the number of its first place, its key."""
_NOTHING: LastSaid = (-math.inf, 0, 0)


class ThreadPath(NamedTuple):
    """The path from a root to a node.

    Attributes:
        opening: The keys of its first two nodes.
        asked: The keys of its first `ASKED` human messages since the root, or since it left an older path.
        forks: Whether it left an older path at a node after which no human message has come yet.
        messages: The number of live messages of people and models.
        said: The message that was said last.
    """

    opening: tuple[int, ...] = ()
    asked: tuple[int, ...] = ()
    forks: bool = False
    messages: int = 0
    said: LastSaid = _NOTHING

    def extended(self, row: OutlineTuple, first_place: int, *, forks: bool = False) -> ThreadPath:
        """The path to a child of the node.

        Args:
            first_place: The number of its first place.
            forks: Whether an older path continues the node too.
        """
        key, _, _, role, state, created, _ = row
        opening, asked, messages, said = self.opening, self.asked, self.messages, self.said
        forks = forks or self.forks
        if len(opening) < 2:
            opening = (*opening, key)
        if role == "human":
            asked, forks = (key,) if forks else (*asked, key)[:ASKED], False
        if state == State.LIVE and role in SPOKEN:
            messages, said = messages + 1, max(said, (created, first_place, key))
        return ThreadPath(opening, asked, forks, messages, said)

    def branch(self, row: OutlineTuple) -> Branch:
        """The thread that ends with the node."""
        return Branch(self, row[0], (self.said[0] if self.messages else row[5], row[1]))


class Branch(NamedTuple):
    """A thread.

    Attributes:
        path: The path from its root to its last node.
        end: The key of the last node.
        place: The position in the list: the time of the message that was said last, and the number of the
            last node.
    """

    path: ThreadPath
    end: int
    place: tuple[float, int]

    @property
    def opening(self) -> tuple[int, ...]:
        """The keys of the first two nodes."""
        return self.path.opening

    @property
    def asked(self) -> tuple[int, ...]:
        """The keys of the first human messages; of a branch those after the fork."""
        return self.path.asked

    @property
    def messages(self) -> int:
        """The number of live messages of people and models."""
        return self.path.messages

    @property
    def root(self) -> int:
        """The key of the first node."""
        return self.path.opening[0]

    @property
    def last(self) -> int:
        """The key of the message that was said last; of the last node, if nothing was said."""
        return self.path.said[2] if self.path.messages else self.end


_by_place = attrgetter("place")


class Branches(NamedTuple):
    """The threads of a conversation at one state of its tree.

    Attributes:
        epoch: The epoch of the tree.
        version: The version of the tree.
        next_seq: The number of the next node.
        ordered: The threads, most recently used last.
        by_end: The same threads by the numbers of their last nodes.
        first_places: The numbers of the first places of moved nodes, by number.
    """

    epoch: int
    version: int
    next_seq: int
    ordered: list[Branch]
    by_end: dict[int, Branch]
    first_places: Mapping[int, int]

    def before(self, place: tuple[float, int], most: int) -> tuple[list[Branch], bool]:
        """The threads after a position of the list, most recently used first, and whether more follow."""
        end = bisect_left(self.ordered, place, key=_by_place)
        return self.ordered[max(end - most, 0) : end][::-1], end > most


class ThreadLists(TreeCache[Branches]):
    """The threads of each conversation, by tree."""


def current(conn: Conn, tree: int, head: Head, cached: Branches | None) -> Branches:
    """The threads of a conversation.

    Args:
        head: The head of the tree in this transaction.
        cached: The threads of an earlier state.
    """
    state = head.epoch, head.version, head.next_seq
    if cached is not None and cached[:2] == state[:2]:
        if cached.next_seq == head.next_seq:
            return cached
        extended = _extended(conn, tree, cached, queries.outline_since(conn, tree, cached.next_seq - 1))
        if extended is not None:
            return Branches(*state, *extended, cached.first_places)
    outline = queries.outline(conn, tree)
    first_places = _first_places(outline)
    try:
        ordered, by_end = _all(outline, first_places)
    except KeyError as error:
        raise InvalidGraphStateError(
            f"a message continues node {error.args[0]!r}, which is not stored, so the database is damaged; "
            "call verify(), which names the damage, and restore a copy, or erase() the conversation"
        ) from error
    return Branches(*state, ordered, by_end, first_places)


def _extended(
    conn: Conn, tree: int, cached: Branches, rows: Sequence[OutlineTuple]
) -> tuple[list[Branch], dict[int, Branch]] | None:
    """The threads with new nodes; `None` if all nodes are to be read."""
    ordered, by_end = cached.ordered.copy(), cached.by_end.copy()
    for row in rows:
        _, seq, parent, role, state, _, superseded_by = row
        if state == State.ASIDE or (state == State.LIVE and role == "system"):
            continue
        if state != State.LIVE or superseded_by is not None:
            return None
        if parent is None:
            path = ThreadPath().extended(row, seq)
        elif (continued := by_end.get(parent)) is not None:
            path = continued.path.extended(row, seq)
            del ordered[bisect_left(ordered, continued.place, key=_by_place)]
            del by_end[parent]
        else:
            forked = _forked(conn, tree, cached, by_end, row) if role == "human" else None
            if forked is None:
                return None
            path = forked
        by_end[seq] = branch = path.branch(row)
        insort(ordered, branch, key=_by_place)
    return ordered, by_end


def _forked(
    conn: Conn, tree: int, cached: Branches, by_end: Mapping[int, Branch], row: OutlineTuple
) -> ThreadPath | None:
    """The path to a human message that leaves a thread; `None` if no thread may go on above it."""
    path, above = ThreadPath(), queries.path_to(conn, tree, row[2] or 0)
    if above[-1][4] != State.LIVE:
        return None
    for ancestor in above:
        if ancestor[1] in by_end:  # Superseded nodes follow the end of a thread.
            return None
        path = path.extended(ancestor, cached.first_places.get(ancestor[1], ancestor[1]))
    return path.extended(row, row[1], forks=True)


def _all(
    outline: Mapping[int, OutlineTuple], first_places: Mapping[int, int]
) -> tuple[list[Branch], dict[int, Branch]]:
    """The threads of all nodes; shared parts of their paths are visited once."""
    ends = _ends(outline)
    oldest = _oldest_below(outline, ends, first_places)
    path_of: dict[int | None, ThreadPath] = {None: ThreadPath()}
    by_end: dict[int, Branch] = {}
    for end in ends:
        unvisited: list[int] = []
        seq: int | None = end
        visited = Visited()
        while seq is not None and seq not in path_of:
            visited.add(seq)
            unvisited.append(seq)
            seq = outline[seq][2]
        for number in reversed(unvisited):
            row, place = outline[number], first_places.get(number, number)
            forks = row[2] is not None and oldest[row[2]] != place
            path_of[number] = path_of[row[2]].extended(row, place, forks=forks)
        by_end[end] = path_of[end].branch(outline[end])
    return sorted(by_end.values(), key=_by_place), by_end


def _oldest_below(
    outline: Mapping[int, OutlineTuple], ends: Iterable[int], first_places: Mapping[int, int]
) -> dict[int, int]:
    """For each node that threads continue, the first place of the oldest node below it on any thread."""
    oldest: dict[int, int] = {}
    visited: set[int] = set()
    for end in ends:
        seq, parent = end, outline[end][2]
        while seq not in visited and parent is not None:
            visited.add(seq)
            place = first_places.get(seq, seq)
            oldest[parent] = min(place, oldest.get(parent, place))
            seq, parent = parent, outline[parent][2]
    return oldest


def _ends(outline: Mapping[int, OutlineTuple]) -> list[int]:
    """The numbers of the last nodes of the threads; a system message ends none and continues none."""
    continued: set[int] = set()
    for _, _, parent, role, state, _, _ in outline.values():
        # A live node continues superseded nodes and system messages above it too.
        while state == State.LIVE and role != "system" and parent is not None and parent not in continued:
            continued.add(parent)
            parent = outline[parent][2]
    return [
        seq
        for _, seq, _, role, state, _, _ in outline.values()
        if state == State.LIVE and role != "system" and seq not in continued
    ]


def _first_places(outline: Mapping[int, OutlineTuple]) -> dict[int, int]:
    """The numbers of the first places of moved nodes, by number; a moved node keeps its time."""
    first: dict[int, int] = {}
    for seq, created, by in sorted((row[1], row[5], row[6]) for row in outline.values() if row[6]):
        if by in outline and outline[by][5] == created:
            first[by] = first.get(seq, seq)
    return first
