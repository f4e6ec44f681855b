"""SQL: turns that runs of graphs began, and the turns that each run did not see.

A run begins at a checkpoint. What other runs have said since that checkpoint is a branch that this run never
saw: its turns stay in the conversation, and this run and those after it do not continue them. So for each
turn that a run has begun it is kept which others it did not see, as ranges of turns in the order in which
they were begun.

A node belongs to the turn with whose human message it began, else to the newest that was begun before it, as
what was appended by other means. So what is appended between two runs is seen by the later one, and by
whoever asks that question once more.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, delete, func, select

from langchain_threadmem.storage.schema import lineage
from langchain_threadmem.storage.statements import Conn, Statement, insert_of

Span = tuple[int, int]
"""The first and the last number of a range."""
ENDLESS = 1 << 62


class Begun(NamedTuple):
    """A turn that a run has begun.

    Attributes:
        turn: Its number: 1, 2, 3 ... in the order in which a conversation's turns were begun.
        node: Number of the node with which it began.
        thread: The LangGraph thread of the run.
    """

    turn: int
    node: int
    thread: str


def joined(spans: Iterable[Span]) -> list[Span]:
    """Ranges in order, those that touch made one.

    Example:
        >>> joined([(5, 6), (1, 2), (3, 4), (9, 9)])
        [(1, 6), (9, 9)]
    """
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def within(spans: Sequence[Span], number: int) -> bool:
    """Whether a number is in one of some ranges, which are in order and apart from each other.

    Example:
        >>> within([(1, 2), (5, 6)], 5), within([(1, 2), (5, 6)], 3)
        (True, False)
    """
    index = bisect_right(spans, (number, ENDLESS)) - 1
    return index >= 0 and spans[index][1] >= number


def belonging(begun: Sequence[Begun], turns: Sequence[Span], thread: str) -> list[Span]:
    """The numbers of the nodes that belong to some turns.

    Args:
        begun: Turns in the order of their nodes.
        turns: Ranges of turns.
        thread: Whose turns in them count: threads that share a conversation have checkpoints of their own.

    Example:
        >>> begun = [Begun(1, 1, ""), Begun(2, 5, ""), Begun(3, 7, "other"), Begun(4, 9, "")]
        >>> belonging(begun, [(2, 3)], "")
        [(5, 6)]
    """
    ends = [*(one.node - 1 for one in begun[1:]), ENDLESS]
    return joined(
        (one.node, end)
        for one, end in zip(begun, ends, strict=False)
        if one.thread == thread and within(turns, one.turn)
    )


_of_tree = lineage.c.tree == bindparam("tree")
_of_thread = (_of_tree, lineage.c.thread == bindparam("thread"))
_OWN = Statement(
    select(*lineage.c["turn", "hidden"])
    .where(*_of_thread, lineage.c.seq <= bindparam("seq"))
    .order_by(lineage.c.seq.desc())
    .limit(1),
    "tree",
    "thread",
    "seq",
)
_NEWEST = Statement(
    select(lineage.c.turn).where(*_of_thread).order_by(lineage.c.turn.desc()).limit(1), "tree", "thread"
)
_first = select(func.min(lineage.c.seq)).where(_of_tree, lineage.c.turn >= bindparam("turn"))
_SINCE = Statement(
    select(*lineage.c["turn", "seq", "thread"])
    .where(_of_tree, lineage.c.seq >= _first.scalar_subquery())
    .order_by(lineage.c.seq),
    "tree",
    "turn",
)
_AT = Statement(
    select(lineage.c.turn).where(*_of_thread, lineage.c.seq == bindparam("seq")), "tree", "thread", "seq"
)
_LAST = Statement(select(lineage.c.turn).where(_of_tree).order_by(lineage.c.turn.desc()).limit(1), "tree")
_PUT = insert_of(lineage, replace=True)
_CLEAR = Statement(delete(lineage).where(_of_tree), "tree")
_COPY = Statement(
    lineage.insert().from_select(
        ["tree", "seq", "turn", "thread", "hidden"],
        select(bindparam("new"), *lineage.c["seq", "turn", "thread", "hidden"]).where(
            lineage.c.tree == bindparam("old")
        ),
    ),
    "new",
    "old",
)


def unseen(conn: Conn, tree_id: int, thread: str, since: int) -> Sequence[Span]:
    """The numbers of the nodes that a run does not see which goes on from a turn of its thread.

    Args:
        conn: A transaction.
        tree_id: The tree of the conversation.
        thread: The LangGraph thread; empty for the one that is named as the conversation.
        since: Number of the node with which the turn that the run goes on from began; 0 if it goes on from
            the beginning.
    """
    turns = _unseen_turns(conn, tree_id, thread, since)
    if not turns:
        return ()
    return belonging([Begun(*row) for row in conn.all(_SINCE, tree_id, turns[0][0])], turns, thread)


def _unseen_turns(conn: Conn, tree_id: int, thread: str, since: int) -> list[Span]:
    own, hidden = conn.one(_OWN, tree_id, thread, since) or (0, "[]")
    newest = conn.one(_NEWEST, tree_id, thread) or (0,)
    turns = [(first, last) for first, last in json.loads(hidden)]
    return turns if newest[0] <= own else joined([*turns, (own + 1, newest[0])])


def is_begun(conn: Conn, tree_id: int, thread: str, seq: int) -> bool:
    """Whether a run of a thread has begun a turn with a node."""
    return conn.one(_AT, tree_id, thread, seq) is not None


def begin(conn: Conn, tree_id: int, thread: str, seq: int, since: int | None) -> None:
    """Keep that a run has begun a turn with a node, and what that run does not see.

    Args:
        conn: A write transaction.
        tree_id: The tree of the conversation.
        thread: As for `unseen`.
        seq: The number of the first version of the turn's human message.
        since: As for `unseen`; `None` if the run sees everything.
    """
    turns = [] if since is None else _unseen_turns(conn, tree_id, thread, since)
    (last,) = conn.one(_LAST, tree_id) or (0,)
    conn.run(_PUT, tree_id, seq, last + 1, thread, json.dumps(turns, separators=(",", ":")))


def clear(conn: Conn, tree_id: int) -> None:
    """Forget it for a tree that is emptied."""
    conn.run(_CLEAR, tree_id)


def copy(conn: Conn, source: int, target: int) -> None:
    """Keep it for a copy of a tree, whose nodes have the same numbers."""
    conn.run(_COPY, target, source)
