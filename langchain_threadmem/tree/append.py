"""SQL: the writer of nodes: messages as a chain below a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, ClassVar, Final, NamedTuple

from langchain_core.messages import BaseMessage
from sqlalchemy import bindparam, desc, select

from langchain_threadmem.errors import MessageIdConflictError
from langchain_threadmem.messages.codec import give_id, is_unreadable
from langchain_threadmem.messages.ids import number_in, numbered
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import LAST_POSITION, State, node
from langchain_threadmem.storage.statements import Conn, Statement
from langchain_threadmem.tree import ends, nodes
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.ends import Anchor, End
from langchain_threadmem.tree.node import ConversationNode, Placement, stored_node


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
        body: JSON text, see `messages.codec`.
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


_PLACED = node.c["key", "seq", "parent", "created", "state", "superseded_by"]
_KNOWN = Statement(
    nodes.of_message(select(node.c.body, *_PLACED)).order_by("state", desc("seq")), *nodes.OF_MESSAGE
)
_STORED = Statement(
    select(node.c.body, *_PLACED, node.c.message).where(node.c.key == bindparam("key")),
    "key",
)


class _Appender:
    """Places the drafts of one transaction, and writes their rows together.

    Rows wait until the end, or until something has to be looked up that they could be part of.
    """

    __slots__ = ("_conn", "_ends", "_held", "_known", "_rows", "_weighed")

    def __init__(self, conn: Conn) -> None:
        self._conn = conn
        self._ends: dict[int, End] = {}
        self._held: dict[int, End] = {} if conn.ends is None else conn.ends
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
            key = ends.next_key(self._conn, tree_id, key, taken)
            seq += 1
            if given:
                place, named = Placed(key, seq, above, created), nodes.named(message, seq)
                self._known[tree_id, message] = (body, place)
            else:
                message = numbered(message, seq)
                place, named = Placed(key, seq, above, created, State.LIVE, None, message), 0
            opens = node_keys.opens(key, seq, above)
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

    def finish(self) -> None:
        """Write what waits, and say where the trees end now if their rows do not."""
        self._flush()
        if self._weighed:
            stored_placements.put(self._conn, self._weighed)
        for tree_id, end in self._ends.items():
            ends.settle(self._conn, tree_id, end)

    def _flush(self) -> None:
        if self._rows:
            nodes.insert(self._conn, self._rows)
            self._rows = []

    def _end(self, tree_id: int) -> End:
        end = self._held.get(tree_id)
        if end is None:
            end = self._held[tree_id] = ends.read(self._conn, tree_id)
        self._ends[tree_id] = end
        return end

    def _anchor(self, tree_id: int, parent: int | None) -> Anchor:
        self._flush()
        return ends.anchor_of(self._conn, tree_id, parent)

    def _stored(self, tree_id: int, message: str) -> tuple[str, Placed] | None:
        if (known := self._known.get((tree_id, message))) is not None:
            return known
        return stored(self._conn, tree_id, message)

    def _in_force(self, end: End) -> tuple[str, Placed] | None:
        if end.in_force is None and end.system is not None:
            row = self._conn.one(_STORED, end.system)
            end.in_force = (_open(self._conn, row[-1], row[0]), Placed(*row[1:])) if row else None
        return end.in_force


def _together(conn: Conn, writes: Sequence[Append]) -> list[Any]:
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
    appends: ClassVar = True
    together: ClassVar = staticmethod(_together)

    def __call__(self, conn: Conn) -> list[Placed]:
        places: list[Placed] = _together(conn, (self,))[0]
        return places

    def on(self, appender: _Appender) -> list[Placed]:
        """Place them."""
        return appender.place(self.tree, self.drafts, self.parent, self.fresh)


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
    if body != draft.body and not is_unreadable(draft.body):
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
    return body if conn.seal is None else conn.seal.open_body(message, "", body)


Said = tuple[BaseMessage, str, str]
"""A message that is nobody else's, its role, and its body."""


def _write_chains(conn: Conn, chains: Sequence[Chain]) -> list[list[ConversationNode]]:
    """Write several chains in their order, at the cost of one; what each became."""
    held: dict[int, End] = {} if conn.ends is None else conn.ends
    rows: list[tuple[object, ...]] = []
    results: list[list[ConversationNode]] = []
    for chain in chains:
        tree, stem, created = chain.tree, chain.stem, chain.created
        end = held.get(tree)
        if end is None:
            end = held[tree] = ends.read(conn, tree)
        key, seq, above = end.tip, end.seq, end.tip_seq
        at = datetime.fromtimestamp(created, UTC)
        written = []
        for message, role, body in chain.said:
            # `ends.next_key` and `strides.opens`, written out: each call here is a hundredth of an append.
            if key is None or end.taken or key & LAST_POSITION == LAST_POSITION:
                key, opens, end.taken = ends.new_segment(conn, tree, key), 1, False
            else:
                key, opens = key + 1, 0 if above == seq else 1
            seq += 1
            id = numbered(stem, seq)
            rows.append((key, tree, seq, above, id, role, body, created, opens))
            give_id(message, id)
            written.append(stored_node(seq, message, above, None, at, State.LIVE, None))
            above = seq
        end.tip, end.tip_seq, end.seq, end.stale = key, above, seq, end.stale or end.pinned
        results.append(written)
    nodes.insert_new(conn, rows)
    for chain in chains:
        if held[chain.tree].stale:
            ends.settle(conn, chain.tree, held[chain.tree])
    return results


@dataclass(slots=True)
class Chain:
    """New messages to be written below the active tip: a write as data, so that many become one statement.

    Attributes:
        tree: The tree.
        said: The messages, in order, which get their ids here. None is a system message or has an id before.
        stem: The beginning of their ids.
        created: When they were said, in seconds since 1970, UTC.
    """

    tree: int
    said: Sequence[Said]
    stem: str
    created: float
    appends: ClassVar = True
    together: ClassVar = staticmethod(_write_chains)

    def __call__(self, conn: Conn) -> list[ConversationNode]:
        return _write_chains(conn, (self,))[0]
