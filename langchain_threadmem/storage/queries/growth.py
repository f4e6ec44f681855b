"""Growing a tree: messages on their way in, and where they come to lie.

Every function here runs in a write transaction and is safe to run again. Appending to the tip, which is
what nearly every call does, costs one SELECT and one INSERT for all its messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, ClassVar, Final, NamedTuple

from langchain_core.messages import BaseMessage
from sqlalchemy import BigInteger, bindparam, desc, exists, literal_column, select

from langchain_threadmem.core.bodies import with_id
from langchain_threadmem.core.nodes import ConversationNode, Placement, State, stored_node
from langchain_threadmem.core.numbered import number_in, numbered
from langchain_threadmem.errors import MessageIdConflictError, NodeNotFoundError
from langchain_threadmem.storage.queries import choices, nodes, strides, trees
from langchain_threadmem.storage.schema import (
    LAST_POSITION,
    POSITION_BITS,
    node,
    segment,
    tree,
)
from langchain_threadmem.storage.statements import Conn, Statement


class _Tip(Enum):
    TIP = 0


TIP: Final = _Tip.TIP
"""As a parent: wherever the active thread ends when the write happens."""

Parent = int | None | _Tip


class Draft(NamedTuple):
    """A message on its way into the tree.

    Attributes:
        message: Its id; of one that is made for it the stem, which its number completes.
        role: LangChain's type: human, ai, system, tool ...
        body: JSON text, see `core.bodies`.
        created: Seconds since 1970, UTC.
        given: Whether the id came with the message.
        placement: Why it goes where it goes, if that was weighed.
    """

    message: str
    role: str
    body: str
    created: float
    given: bool
    placement: Placement | None = None


class Placed(NamedTuple):
    """Where a draft lives now, or has lived all along; `message` is set if its id is not the draft's."""

    key: int
    seq: int
    parent: int | None
    created: float
    state: int = State.LIVE
    superseded_by: int | None = None
    message: str | None = None


class Anchor(NamedTuple):
    """The node that the next message goes under, and whether its next key is in use."""

    key: int | None
    seq: int | None
    taken: bool


_next = node.alias("following")
_taken = exists().where(_next.c.key == node.c.key + literal_column("1"))
_START = Statement(
    select(tree.c.tip, tree.c.system, tree.c.sealed, trees.newest.c.key, trees.newest.c.seq)
    .select_from(tree)
    .outerjoin(trees.newest, trees.is_newest)
    .where(tree.c.id == bindparam("tree")),
    "tree",
)
_TIP = Statement(select(node.c.key, node.c.seq, _taken).where(node.c.key == bindparam("key")), "key")
_ANCHOR = Statement(
    select(node.c.key, node.c.seq, _taken).where(
        strides.is_at(node, bindparam("tree"), bindparam("seq", type_=BigInteger()))
    ),
    "tree",
    "seq",
)
_PLACED = node.c["key", "seq", "parent", "created", "state", "superseded_by"]
_KNOWN = Statement(
    nodes.of_message(select(node.c.body, *_PLACED)).order_by("state", desc("seq")), *nodes.OF_MESSAGE
)
_STORED = Statement(
    select(node.c.body, *_PLACED, node.c.message).where(node.c.key == bindparam("key")),
    "key",
)
_NEW_SEGMENT = Statement(
    segment.insert().values(tree=bindparam("tree"), parent=bindparam("parent")).returning(segment.c.id),
    "tree",
    "parent",
)


@dataclass(slots=True)
class _End:
    """Where a tree grows: read once, then carried along from append to append, on SQLite also from one
    transaction to the next (`Conn.ends`).

    Attributes:
        tip: Key of the node that the active thread ends in; `None` for an empty tree.
        tip_seq: Its number.
        taken: Whether the key after the tip's is in use.
        seq: Number of the newest node.
        system: Key of the newest live system message.
        pinned: Whether the tree's row names a tip, which is then not simply the newest node.
        stale: Whether the tree's row has to be written.
        in_force: Body and place of the newest system message, once it was looked at.
    """

    tip: int | None
    tip_seq: int | None
    taken: bool
    seq: int
    system: int | None
    pinned: bool
    stale: bool = False
    in_force: tuple[str, Placed] | None = None


class _Appender:
    """Places the drafts of one transaction, and writes their rows together.

    Rows wait until the end, or until something has to be looked up that they could be part of.
    """

    __slots__ = ("_conn", "_ends", "_held", "_known", "_rows", "_weighed")

    def __init__(self, conn: Conn) -> None:
        self._conn = conn
        self._ends: dict[int, _End] = {}
        self._held: dict[int, _End] = {} if conn.ends is None else conn.ends
        self._rows: list[tuple[object, ...]] = []
        self._known: dict[tuple[int, str], tuple[str, Placed]] = {}
        self._weighed: list[tuple[int, str, Placement]] = []

    def place(self, tree_id: int, drafts: Sequence[Draft], parent: Parent, fresh: bool) -> list[Placed]:
        end = self._ends.get(tree_id) or self._end(tree_id)
        if parent is TIP:
            key, above, taken = end.tip, end.tip_seq, end.taken
        else:
            key, above, taken = self._anchor(tree_id, parent)
        places: list[Placed] = []
        seq = end.seq
        for draft in drafts:
            message, role, body, created, given, placement = draft
            if role == "system" and (same := self._in_force(end)) is not None and same[0] == body:
                places.append(same[1])
                continue
            if given and not fresh and (known := self._stored(tree_id, message)) is not None:
                place = _same(draft, *known)
                places.append(place)
                key, above, taken = self._anchor(tree_id, place.seq)
                continue
            if key is None or taken or key & LAST_POSITION == LAST_POSITION:
                key = _new_segment(self._conn, tree_id, key)
            else:
                key += 1
            seq += 1
            if given:
                place, named = Placed(key, seq, above, created), nodes.named(message, seq)
                self._known[tree_id, message] = (body, place)
            else:
                message = numbered(message, seq)
                place, named = Placed(key, seq, above, created, State.LIVE, None, message), 0
            opens = strides.opens(key, seq, above)
            self._rows.append((key, tree_id, seq, above, message, role, body, created, 0, None, named, opens))
            places.append(place)
            if placement is not None:
                self._weighed.append((key, message, placement))
            above, taken = seq, False
            if role == "system":
                end.system, end.stale, end.in_force = key, True, (body, place._replace(message=message))
            end.tip, end.tip_seq, end.taken, end.seq = key, seq, False, seq
            end.stale |= end.pinned
        return places

    def extend(self, chain: Chain) -> list[ConversationNode]:
        """Put new messages below the tip: `place` without its cases, and what becomes of them with it."""
        tree_id, stem, created, rows = chain.tree, chain.stem, chain.created, self._rows
        end = self._ends.get(tree_id) or self._end(tree_id)
        key, seq, above, taken = end.tip, end.seq, end.tip_seq, end.taken
        said = datetime.fromtimestamp(created, UTC)
        nodes = []
        for message, role, body in chain.said:
            if key is None or taken or key & LAST_POSITION == LAST_POSITION:
                key, taken = _new_segment(self._conn, tree_id, key), False
            else:
                key += 1
            seq += 1
            id = numbered(stem, seq)
            opens = strides.opens(key, seq, above)
            rows.append((key, tree_id, seq, above, id, role, body, created, 0, None, 0, opens))
            nodes.append(stored_node(seq, with_id(message, id), above, None, said, State.LIVE, None))
            above = seq
        end.tip, end.tip_seq, end.taken, end.seq = key, above, False, seq
        end.stale |= end.pinned
        return nodes

    def finish(self) -> None:
        """Write what waits, and say where the trees end now if their rows do not."""
        self._flush()
        if self._weighed:
            choices.put(self._conn, self._weighed)
        for tree_id, end in self._ends.items():
            if end.stale:
                trees.settle(self._conn, tree_id, end.tip, end.system)
                end.stale = end.pinned = False

    def _flush(self) -> None:
        if self._rows:
            nodes.insert(self._conn, self._rows)
            self._rows = []

    def _end(self, tree_id: int) -> _End:
        end = self._held.get(tree_id)
        if end is None:
            end = self._held[tree_id] = self._read_end(tree_id)
        self._ends[tree_id] = end
        return end

    def _read_end(self, tree_id: int) -> _End:
        conn = self._conn
        # Locked by a statement of its own: a row that PostgreSQL waited for comes with stale joined columns.
        trees.lock(conn, tree_id)
        start = conn.one(_START, tree_id)
        assert start is not None, f"tree {tree_id} is gone"
        tip, system, sealed, newest, seq = start
        if sealed != (conn.seal is not None):
            trees.claim(conn, tree_id, sealed)
        if tip is None:
            return _End(newest, seq, False, seq or 0, system, pinned=False)
        key, tip_seq, taken = conn.all(_TIP, tip)[0]
        return _End(key, tip_seq, taken, seq or 0, system, pinned=True)

    def _anchor(self, tree_id: int, parent: int | None) -> Anchor:
        self._flush()
        return anchor_of(self._conn, tree_id, parent)

    def _stored(self, tree_id: int, message: str) -> tuple[str, Placed] | None:
        if (known := self._known.get((tree_id, message))) is not None:
            return known
        return stored(self._conn, tree_id, message)

    def _in_force(self, end: _End) -> tuple[str, Placed] | None:
        if end.in_force is None and end.system is not None:
            row = self._conn.one(_STORED, end.system)
            end.in_force = (_open(self._conn, row[-1], row[0]), Placed(*row[1:])) if row else None
        return end.in_force


def _together(conn: Conn, writes: Sequence[Append | Chain]) -> list[Any]:
    """Several appends in their order, at the cost of one; the result of each."""
    appender = _Appender(conn)
    results = [write.on(appender) for write in writes]
    appender.finish()
    return results


@dataclass(slots=True)
class Append:
    """Messages to be written as a chain below a node: a write as data, so that many become one statement.

    Attributes:
        tree: The tree.
        drafts: Messages in order.
        parent: Number of the node to go below; `None` for a new root; `TIP` for the active tip.
        fresh: Whether to write all of them, even under an id that had a place before.
    """

    tree: int
    drafts: Sequence[Draft]
    parent: Parent = TIP
    fresh: bool = False
    together: ClassVar = staticmethod(_together)

    def __call__(self, conn: Conn) -> list[Placed]:
        places: list[Placed] = _together(conn, (self,))[0]
        return places

    def on(self, appender: _Appender) -> list[Placed]:
        """Place them."""
        return appender.place(self.tree, self.drafts, self.parent, self.fresh)


@dataclass(slots=True)
class Chain:
    """New messages to be written below the active tip, as nearly all are: `Append` without its cases.

    Attributes:
        tree: The tree.
        said: Each message with its role and its body, in order. None is a system message or has an id.
        stem: The beginning of their ids.
        created: When they were said, in seconds since 1970, UTC.
    """

    tree: int
    said: Sequence[tuple[BaseMessage, str, str]]
    stem: str
    created: float
    together: ClassVar = staticmethod(_together)

    def __call__(self, conn: Conn) -> list[ConversationNode]:
        nodes: list[ConversationNode] = _together(conn, (self,))[0]
        return nodes

    def on(self, appender: _Appender) -> list[ConversationNode]:
        """Place them; returns what they became."""
        return appender.extend(self)


def append(conn: Conn, tree_id: int, drafts: Sequence[Draft], parent: Parent = TIP) -> list[Placed]:
    """Write messages as a chain below a node, and make the last one the tip.

    A message whose id is stored already, with the same content, stays where it is, and what follows it in
    `drafts` goes below it: the same append twice is once. A system message equal to the newest one is
    ignored.

    Args:
        conn: A write transaction.
        tree_id: The tree.
        drafts: Messages in order.
        parent: Number of the node to go below; `None` for a new root; `TIP` for the active tip.

    Returns:
        The place of each draft, in order.

    Raises:
        MessageIdConflictError: An id is stored with other content.
        NodeNotFoundError: `parent` is no node of this tree.
    """
    return Append(tree_id, drafts, parent)(conn)


def _same(draft: Draft, body: str, place: Placed) -> Placed:
    if body != draft.body:
        raise conflict(draft.message, place)
    return place


def conflict(message: str, place: Placed) -> MessageIdConflictError:
    """The error that a message's id is taken by another message."""
    return MessageIdConflictError(
        f"message id {message!r} is taken by node {place.seq}, which is another message; "
        "nothing was written: use edit() to replace that one, or give this one another id"
    )


def stored(conn: Conn, tree_id: int, message: str) -> tuple[str, Placed] | None:
    """Body and place of a message that is stored already: the live place, else the newest."""
    row = conn.one(_KNOWN, tree_id, message, number_in(message))
    return None if row is None else (_open(conn, message, row[0]), Placed(*row[1:]))


def _open(conn: Conn, message: str, body: str) -> str:
    return body if conn.seal is None else conn.seal.open_text(message, body)


def anchor_of(conn: Conn, tree_id: int, parent: int | None) -> Anchor:
    """Where a message goes whose parent has this number.

    Raises:
        NodeNotFoundError: There is no such node.
    """
    if parent is None:
        return Anchor(None, None, taken=False)
    row = conn.one(_ANCHOR, tree_id, parent)
    if row is None:
        raise NodeNotFoundError(f"there is no node {parent!r} in this conversation to continue")
    return Anchor(*row)


def next_key(conn: Conn, tree_id: int, anchor: Anchor) -> int:
    """The key below a node: the next position of its segment, or the first of a new one."""
    key = anchor.key
    if key is not None and not anchor.taken and key & LAST_POSITION != LAST_POSITION:
        return key + 1
    return _new_segment(conn, tree_id, key)


def _new_segment(conn: Conn, tree_id: int, key: int | None) -> int:
    row = conn.one(_NEW_SEGMENT, tree_id, key)
    assert row is not None
    return int(row[0]) << POSITION_BITS
