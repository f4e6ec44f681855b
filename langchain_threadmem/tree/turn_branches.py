"""SQL: the turns that LangGraph runs began, and the turns that each run does not see.

A run begins at a checkpoint. Turns that other runs began after that checkpoint are on a branch that the run
does not see: the turns stay in the conversation, but the run and its successors do not continue them. Each
turn is therefore stored with the turns that its run does not see, as ranges of turn numbers. A new version of
an earlier question, or a new answer to it, can be the first message of a turn, too.

A node belongs to the newest turn that began with it or before it. Thus the later of two runs sees a message
that was appended between them, and so does a run that repeats the question of the later run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, exists, func, select

from langchain_threadmem.common.ranges import ENDLESS, Range, joined, within
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import lineage, node
from langchain_threadmem.storage.statements import ONE, ZERO, BoundStatement, Conn, Statement, insert_of


class Begun(NamedTuple):
    """A turn that a run began.

    Attributes:
        turn: Number of the turn: 1, 2, 3 ... in the order in which the turns of the conversation began.
        node: Number of the first node of the turn.
        thread: The LangGraph thread of the run.
    """

    turn: int
    node: int
    thread: str


def nodes_of_turns(begun: Sequence[Begun], turns: Sequence[Range], thread: str) -> list[Range]:
    """The numbers of the nodes that belong to turns of a thread, as ranges.

    Args:
        begun: Turns in the order of their nodes.
        turns: Ranges of turns.
        thread: The LangGraph thread of the turns; several threads may share a conversation.

    Example:
        >>> begun = [Begun(1, 1, ""), Begun(2, 5, ""), Begun(3, 7, "other"), Begun(4, 9, "")]
        >>> nodes_of_turns(begun, [(2, 3)], "")
        [(5, 6)]
    """
    ends = [*(turn.node - 1 for turn in begun[1:]), ENDLESS]
    return joined(
        (turn.node, end)
        for turn, end in zip(begun, ends, strict=False)
        if turn.thread == thread and within(turns, turn.turn)
    )


_of_tree = lineage.c.tree == bindparam("tree")
_of_thread = (_of_tree, lineage.c.thread == bindparam("thread"))
_own = (
    select(lineage.c.seq)
    .where(*_of_thread, lineage.c.seq <= bindparam("since"))
    .order_by(lineage.c.seq.desc())
    .limit(ONE)
    .offset(ZERO)
)
_HISTORY = Statement(
    select(
        *(
            select(column).where(_of_tree, lineage.c.seq == _own.scalar_subquery()).scalar_subquery()
            for column in lineage.c["turn", "hidden"]
        ),
        select(func.max(lineage.c.turn)).where(*_of_thread).scalar_subquery(),
        select(func.max(lineage.c.turn)).where(_of_tree).scalar_subquery(),
        select(lineage.c.turn).where(_of_tree, lineage.c.seq == bindparam("at")).exists(),
    ),
    *("tree", "thread", "since", "at"),
)
_LATER = Statement(
    select(*lineage.c["turn", "seq"]).where(*_of_thread, lineage.c.turn > bindparam("turn")),
    *("tree", "thread", "turn"),
)
_first = select(func.min(lineage.c.seq)).where(_of_tree, lineage.c.turn >= bindparam("turn"))
_SINCE = Statement(
    select(*lineage.c["turn", "seq", "thread"])
    .where(_of_tree, lineage.c.seq >= _first.scalar_subquery())
    .order_by(lineage.c.seq),
    *("tree", "turn"),
)
_earlier = node.alias("earlier")
_BEFORE = Statement(
    select(
        *lineage.c["turn", "seq"],
        node.c.message,
        exists().where(
            _earlier.c.tree == node.c.tree,
            _earlier.c.message == node.c.message,
            _earlier.c.seq + ZERO < node.c.seq,  # With `seq <`, SQLite would read all earlier nodes.
        ),
    )
    .where(
        *_of_thread, lineage.c.turn < bindparam("turn"), node_keys.is_at(node, lineage.c.tree, lineage.c.seq)
    )
    .order_by(lineage.c.turn.desc())
    .limit(bindparam("most")),
    *("tree", "thread", "turn", "most"),
)
_AT = Statement(select(lineage.c.hidden).where(_of_tree, lineage.c.seq == bindparam("seq")), "tree", "seq")
_OF_TURN = Statement(
    select(*lineage.c["hidden", "thread"]).where(_of_tree, lineage.c.seq == bindparam("seq")), "tree", "seq"
)
_PUT = insert_of(lineage)
_COPY = Statement(
    lineage.insert().from_select(
        ["tree", "seq", "turn", "thread", "hidden"],
        select(bindparam("new"), *lineage.c["seq", "turn", "thread", "hidden"]).where(
            lineage.c.tree == bindparam("old")
        ),
    ),
    *("new", "old"),
)


def unseen(
    conn: Conn, tree_id: int, thread: str, since: int, history: EarlierTurns | None = None
) -> Sequence[Range]:
    """The numbers of the nodes that a run does not see, as ranges.

    Args:
        conn: A transaction.
        tree_id: The tree of the conversation.
        thread: The LangGraph thread; empty for the thread with the name of the conversation.
        since: Number of the first node of the turn that the run continues; 0 if it continues no turn.
        history: The earlier turns, if the transaction has read them; `None` to read them here.
    """
    if history is None:
        history = earlier_turns(conn.each(history_query(tree_id, thread, since))[0])
    return _nodes_of(conn, tree_id, thread, _unseen_turns(conn, tree_id, thread, history))


def unseen_by(conn: Conn, tree_id: int, thread: str, seq: int) -> Sequence[Range]:
    """The numbers of the nodes that the run of a turn did not see, given the first node of the turn."""
    (hidden,) = conn.one(_AT, tree_id, seq) or ("[]",)
    return _nodes_of(conn, tree_id, thread, [(first, last) for first, last in json.loads(hidden)])


def unseen_at(conn: Conn, tree_id: int, seq: int) -> Sequence[Range]:
    """The numbers of the nodes that a turn's run did not see, given the first node of the turn.

    Empty for a turn that no run began.
    """
    hidden, thread = conn.one(_OF_TURN, tree_id, seq) or ("[]", "")
    return _nodes_of(conn, tree_id, thread, [(first, last) for first, last in json.loads(hidden)])


def _nodes_of(conn: Conn, tree_id: int, thread: str, turns: Sequence[Range]) -> Sequence[Range]:
    if not turns:
        return ()
    return nodes_of_turns([Begun(*row) for row in conn.all(_SINCE, tree_id, turns[0][0])], turns, thread)


class EarlierTurns(NamedTuple):
    """The turns before a turn that begins.

    Attributes:
        own: The turn that the run continues; 0 for none.
        hidden: The turns that its run did not see.
        newest: The newest turn of the thread; 0 for none.
        last: The newest turn of the tree; 0 for none.
        is_begun: Whether a run began a turn with the node.
    """

    own: int
    hidden: list[Range]
    newest: int
    last: int
    is_begun: bool


def history_query(tree_id: int, thread: str, since: int | None, at: int = 0) -> BoundStatement:
    """The query for the turns before a turn that begins; for the arguments see `begin`."""
    return _HISTORY, (tree_id, thread, 0 if since is None else since, at)


def earlier_turns(rows: Sequence[tuple[Any, ...]]) -> EarlierTurns:
    """The turns from the rows of `history_query`, or of a query `beside` it."""
    own, hidden, newest, last, is_begun, *_ = rows[0]
    ranges = [(first, last) for first, last in json.loads(hidden or "[]")]
    return EarlierTurns(own or 0, ranges, newest or 0, last or 0, bool(is_begun))


def _unseen_turns(
    conn: Conn,
    tree_id: int,
    thread: str,
    history: EarlierTurns,
    is_unseen: Callable[[int], bool] | None = None,
) -> list[Range]:
    own, turns, newest = history.own, history.hidden, history.newest
    if newest <= own:
        return turns
    if is_unseen is None:
        return joined([*turns, (own + 1, newest)])
    later = conn.all(_LATER, tree_id, thread, own)
    return joined([*turns, *((turn, turn) for turn, seq in later if is_unseen(seq))])


def newest_query(tree_id: int, thread: str) -> BoundStatement:
    """The query for the rows with which `newest_first` begins."""
    return _BEFORE, (tree_id, thread, ENDLESS, 2)


def newest_first(
    conn: Conn, tree_id: int, thread: str, newest: Sequence[tuple[Any, ...]] | None = None
) -> Iterator[tuple[int, str, bool]]:
    """The first node of each turn of a thread, the newest turn first.

    `newest` are the rows of `newest_query`, if the transaction has read them.

    Yields:
        Its number, its message id, and whether it is a later version of a message.
    """
    rows = conn.each(newest_query(tree_id, thread))[0] if newest is None else newest
    most = 2
    while rows:
        for _, seq, message, is_version in rows:
            yield seq, message, bool(is_version)
        most *= 4
        rows = conn.all(_BEFORE, tree_id, thread, rows[-1][0], most)


def is_begun(conn: Conn, tree_id: int, seq: int) -> bool:
    """Whether a run began a turn with a node."""
    return conn.one(_AT, tree_id, seq) is not None


def begin(
    conn: Conn,
    tree_id: int,
    thread: str,
    seq: int,
    since: int | None,
    is_unseen: Callable[[int], bool] | None = None,
    history: EarlierTurns | None = None,
) -> None:
    """Store a turn that a run began, with the turns that the run does not see, unless the turn is stored.

    Args:
        conn: A write transaction.
        tree_id: The tree of the conversation.
        thread: As for `unseen`.
        seq: Number of the first version of the turn's first message.
        since: As for `unseen`; `None` if the run sees all turns.
        is_unseen: Whether the successors of the run do not see a turn that began after `since`, by the number
            of its first node; by default they see none of these turns.
        history: The earlier turns, if the transaction has read them; `None` to read them here.
    """
    if history is None:
        history = earlier_turns(conn.each(history_query(tree_id, thread, since, seq))[0])
    if history.is_begun:
        return
    turns = [] if since is None else _unseen_turns(conn, tree_id, thread, history, is_unseen)
    row = tree_id, seq, history.last + 1, thread, json.dumps(turns, separators=(",", ":"))
    conn.later(_PUT, [row])


def copy(conn: Conn, source: int, target: int) -> None:
    """Copy the turns of a tree to a copy of the tree, which has the same node numbers."""
    conn.run(_COPY, target, source)
