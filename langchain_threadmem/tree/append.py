"""SQL: the writer of nodes, and the append of messages as a chain below a node."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, ClassVar, Final, NamedTuple

from langchain_core.messages import BaseMessage
from sqlalchemy import BigInteger, bindparam, exists, select
from uuid_utils import uuid7

from langchain_threadmem.common.inputs import seconds_of
from langchain_threadmem.common.visited import Visited
from langchain_threadmem.errors import InputError, MessageIdConflictError, NodeNotFoundError
from langchain_threadmem.messages.codec import encode_each, give_ids, is_same_answer, is_unreadable
from langchain_threadmem.messages.ids import LONGEST_ID, name_of, own_id
from langchain_threadmem.messages.roles import ANSWERING
from langchain_threadmem.messages.typed_json import WriteOpaque
from langchain_threadmem.storage import encryption_keys, node_keys
from langchain_threadmem.storage.checksums import COLUMN, checked_node
from langchain_threadmem.storage.schema import LAST_POSITION, POSITION_BITS, State, node, segment
from langchain_threadmem.storage.statements import ONE, Conn, Statement, insert_of
from langchain_threadmem.tree import nodes, trees
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.node import ConversationNode, Placement
from langchain_threadmem.tree.nodes import NodeRow

_INSERT = insert_of(node)
_INSERT_WITH_CHECKSUM = Statement.of(  # SQLite: no trigger computes the checksum of a new node.
    sqlite=f"INSERT INTO {node.name} ({', '.join(node.c.keys())}, {COLUMN}) VALUES ({'?, ' * len(node.c)}?)",
    postgresql="",
)
_NEW_SEGMENT = Statement(
    segment.insert().values(tree=bindparam("tree"), parent=bindparam("parent")).returning(segment.c.id),
    *("tree", "parent"),
)
_next = node.alias("next")
TAKEN = exists().where(_next.c.key == node.c.key + ONE)
"""Whether the key after the key of a node is in use."""
AT_NUMBER = Statement(
    select(node.c.key, TAKEN, *node.c["state", "parent", "superseded_by"]).where(
        node_keys.is_at(node, bindparam("tree"), bindparam("seq", type_=BigInteger()))
    ),
    *("tree", "seq"),
)
"""The row of a node by its number, for `NodeWriter.read`."""
_AT_KEY = Statement(select(node.c.seq, TAKEN).where(node.c.key == bindparam("key")), "key")
_EXISTS = Statement(select(node.c.key).where(node.c.key == bindparam("key")), "key")


def insert(conn: Conn, rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows of the node table, whose bodies are encrypted if the memory is."""
    if conn.dialect == "sqlite":
        conn.many(_INSERT_WITH_CHECKSUM, map(checked_node, rows))
    else:
        conn.later(_INSERT, rows)


def new_segment(conn: Conn, tree_id: int, parent: int | None) -> int:
    """Create a segment that forks from the node with the key `parent`, or begins a thread; returns its id."""
    row = conn.one(_NEW_SEGMENT, tree_id, parent)
    assert row is not None
    return int(row[0])


class NodeWriter:
    """Writes new nodes of one tree: computes their keys, and inserts their rows in one statement.

    Args:
        conn: A write transaction, which has locked the tree.
        tree_id: The tree.
        head: The head of the tree.
        rows: The pending rows, which `flush` inserts; writers of several trees may share the list.
    """

    def __init__(
        self, conn: Conn, tree_id: int, head: trees.Head, rows: list[tuple[Any, ...]] | None = None
    ) -> None:
        if tree_id == trees.NO_TREE:
            raise trees.erased()
        self.conn = conn
        self.tree = tree_id
        self.head = head
        self.newest = head.next_seq - 1
        self._used = head.used
        self._time: float | None = None  # of the newest node, if this writer added it
        self.rows = [] if rows is None else rows
        self.taken: dict[int, bool] = {} if head.tip is None or head.pinned else {head.tip: False}
        """Whether the key after a node is in use, by key of the node; a cache of `is_taken`."""
        self.read: dict[int, tuple[Any, ...]] = {}
        """Rows of `AT_NUMBER` that the transaction has read since its last write, by number of the node."""

    def add(
        self,
        parent_key: int | None,
        parent: int | None,
        message: str,
        role: str,
        body: str,
        created: float,
        state: int = 0,
        superseded_by: int | None = None,
        *,
        seq: int | None = None,
        separate: bool = False,
    ) -> int:
        """Add a node; `flush` inserts its row.

        Args:
            parent_key: Key of the parent; `None` for a root.
            parent: Number of the parent; `None` for a root.
            message: Id of the message.
            role: LangChain's message type: human, ai, system, tool and others.
            body: The message as JSON text, see `messages.codec`; not encrypted.
            created: Time of the message, in seconds since 1970.
            state: The state of the node, see `State`.
            superseded_by: Number of the node that replaced the node.
            seq: Number of the node; by default the next number of the tree.
            separate: Whether the node begins a new segment even if it could extend the segment of its parent.

        Returns:
            The key of the node.
        """
        if seq is None:
            seq = self.newest + 1
        # Numbers rise along a segment. The last position has no next key.
        is_free = parent_key is not None and self.taken.get(parent_key) is False
        if (
            parent_key is None
            or parent is None
            or separate
            or seq < parent
            or (parent_key & LAST_POSITION == LAST_POSITION if is_free else self.is_taken(parent_key))
        ):
            key = new_segment(self.conn, self.tree, parent_key) << POSITION_BITS
        else:
            key = parent_key + 1
            self.taken[parent_key] = True
        self.taken[key] = False
        self.rows.append((key, self.tree, seq, parent, message, role, body, created, state, superseded_by))
        if seq > self.newest:
            self.newest, self._time = seq, created
        return key

    def flush(self) -> None:
        """Insert the pending rows, and store the time of the last use."""
        if self.rows:
            seal = self.conn.seal
            if seal is not None or self.conn.plain is not None:
                encryption_keys.claim(self.conn)
            if seal is not None:
                self.rows[:] = [(*row[:6], seal.text(row[4], row[6]), *row[7:]) for row in self.rows]
            insert(self.conn, tuple(self.rows))
            self.rows.clear()
        if self._used is not None and self._time is not None:
            used = trees.used_after(self._used, self._time)
            if used != self._used:
                trees.use(self.conn, self.tree, used)
            self._used, self._time = used, None

    def under(self, seq: int | None) -> tuple[int | None, int | None]:
        """The key and number of the parent of new nodes; both are `None` for a root.

        A parent that was purged or removed after its selection is replaced by its new version, or by its
        nearest remaining ancestor.

        Raises:
            NodeNotFoundError: The tree has no such node.
        """
        if seq is not None and seq not in self.read:
            self.flush()
        visited = Visited()
        while seq is not None:
            row = self.read.pop(seq, None) or self.conn.one(AT_NUMBER, self.tree, seq)
            if row is None:
                raise NodeNotFoundError(
                    f"there is no node {seq!r} in this conversation; pass the id of one of its nodes, or "
                    "None for a new thread"
                )
            key, taken, state, parent, newer = row
            if state not in nodes.HIDDEN:
                self.taken[key] = taken
                return key, seq
            visited.add(seq)
            seq = newer if newer is not None else parent
        return None, None

    def is_taken(self, key: int) -> bool:
        """Whether the key after the key of a node is in use or in another segment."""
        if key & LAST_POSITION == LAST_POSITION:
            return True
        if key not in self.taken:
            self.taken[key] = bool(self.conn.all(_EXISTS, key + 1))
        return self.taken[key]


class _Tip(Enum):
    TIP = 0


TIP: Final = _Tip.TIP
"""The parent of messages that continue the active thread: its last node at the time of the write."""

Parent = int | None | _Tip


class Draft(NamedTuple):
    """A message to append.

    Attributes:
        message: The message, to which no other code may refer.
        role: LangChain's message type: human, ai, system, tool and others.
        body: The message as JSON text, see `messages.codec`.
        created: Time of the message, in seconds since 1970.
        id: The id of the message.
        given: Whether the message had the id before; otherwise the id is new, and the writer sets it.
        placement: The reason for the place of the message, if a selector chose it.
    """

    message: BaseMessage
    role: str
    body: str
    created: float
    id: str
    given: bool
    placement: Placement | None = None


def drafts_of(
    messages: Sequence[BaseMessage],
    times: Sequence[datetime | None] | None = None,
    other: WriteOpaque | None = None,
) -> list[Draft]:
    """Drafts of messages: encoded, with an id and a time.

    Args:
        messages: The messages.
        times: The time of each message; `None` for the present time.
        other: Writes values that are not JSON; without it they are refused.

    Raises:
        InputError: A time is not a datetime, a message id is not valid, or a message cannot be encoded.
    """
    now, drafts = time.time(), []
    # A UUID of version 7, so that the index on ids grows at its end; that of `langchain_core` takes 3 µs.
    for n, (message, body) in enumerate(zip(messages, encode_each(messages, other), strict=True)):
        id_ = name_of("a message id", message.id, most=LONGEST_ID) if message.id else None
        created = now if times is None else _seconds(times[n], now)
        drafts.append(Draft(message, message.type, body, created, id_ or str(uuid7()), id_ is not None))
    return drafts


def _seconds(created: datetime | None, now: float) -> float:
    if created is None:
        return now
    if not isinstance(created, datetime):
        raise InputError(
            f"{created!r} is not a time; pass a datetime, such as datetime.fromisoformat('2020-01-31')"
        )
    return seconds_of(created)


class Written(NamedTuple):
    """The keys and nodes of drafts in their order: new nodes, and nodes that were stored already."""

    keys: list[int]
    nodes: list[ConversationNode]


class _Appender(NodeWriter):
    """Appends drafts to a locked tree."""

    end: tuple[int | None, int | None] | None = None
    """The key and number of the tip, once they are known."""
    system: int | None = None
    """The key of the newest system message, if this appender added it."""
    placements: tuple[tuple[int, str, Placement], ...] = ()
    """The placements of the new nodes, to be stored with them."""
    _ids: set[str] | None = None  # the message ids that pending rows may have

    def append(self, write: Append) -> Written:
        head, parent, drafts = self.head, write.parent, write.drafts
        if write.chosen_in is not None and not trees.keeps_numbers((self.tree, head.epoch), write.chosen_in):
            parent, drafts = write.otherwise, [draft._replace(placement=None) for draft in drafts]
        elif write.version not in (None, head.version):
            drafts = [draft._replace(placement=draft.placement and write.unquoted()) for draft in drafts]
        if parent is not TIP:
            parent_key, parent_seq = self.under(parent)
        elif self.end is not None:
            parent_key, parent_seq = self.end
        elif head.tip is None:
            parent_key = parent_seq = None
        else:
            parent_key, parent_seq = head.tip, self.newest
            if head.pinned:
                parent_seq, self.taken[head.tip] = self.conn.all(_AT_KEY, head.tip)[0]
        keys, result, renamed, new = [], [], [], False
        for message, role, body, created, id_, given, placement in drafts:
            if role == "system" and (row := self._newest_system()) is not None and row.body == body:
                keys.append(row.key)
                result.append(_stored(row, message))
                continue
            if given and not write.fresh and (row := self._node_of(id_)) is not None:
                if not (is_unreadable(body) or is_same_answer(row.body, body)):
                    raise conflict(row)
                own = self._own_id(row, role, parent_key, new)
                known = row if own is None else self._node_of(own)
                if known is not None:
                    keys.append(known.key)
                    result.append(_stored(known, message))
                    parent_key, parent_seq, new = known.key, known.seq, False
                    continue
                id_, given = str(own), False
            if not given:
                renamed.append((message, id_))
            key = self.add(parent_key, parent_seq, id_, role, body, created)
            keys.append(key)
            stamp = datetime.fromtimestamp(created, UTC)
            result.append(
                ConversationNode(self.newest, message, parent_seq, None, stamp, placement=placement)
            )
            if placement is not None:
                self.placements += ((key, id_, placement),)
            if role == "system":
                self.system = key
            parent_key, parent_seq = self.end = key, self.newest
            new = True
        give_ids(renamed)
        return Written(keys, result)

    def _own_id(self, row: NodeRow, role: str, parent: int | None, new: bool) -> str | None:
        """The id of an answer whose id and content are stored; `None` if it is the stored answer.

        An answer is the stored one if it answers the same question, or follows an answer: then the append is
        repeated. It is new below another question that has no answer there.

        Args:
            row: The stored node.
            role: Role of the answer.
            parent: Key of the node above the answer.
            new: Whether this append has written that node.
        """
        if role not in ANSWERING or parent is None:
            return None
        self.flush()
        above = nodes.by_key(self.conn, parent)
        question = human_above(self.conn, self.tree, above)
        if above is None or question is None or is_below(self.conn, self.tree, row, question):
            return None
        own = own_id(row.message, question.message)
        is_open = new or above.role != "ai"
        return own if is_open or nodes.by_message(self.conn, self.tree, own) is not None else None

    def _newest_system(self) -> NodeRow | None:
        self.flush()
        key = self.system or self.head.system
        return None if key is None else nodes.by_key(self.conn, key)

    def _node_of(self, message: str) -> NodeRow | None:
        """The live node of a message, else its newest node."""
        ids = self._ids = self._ids or set()
        if message in ids:
            self.flush()
        ids.add(message)
        return nodes.by_message(self.conn, self.tree, message)


def human_above(conn: Conn, tree: int, row: NodeRow | None) -> NodeRow | None:
    """The human message that a node belongs to: the node itself, or the nearest above it."""
    visited = Visited()
    while row is not None and row.role != "human":
        visited.add(row.key)
        row = None if row.parent is None else nodes.by_seq(conn, tree, row.parent)
    return row


def is_below(conn: Conn, tree: int, row: NodeRow, question: NodeRow) -> bool:
    """Whether a node belongs to a human message, or to human messages that follow each other from it."""
    own = human_above(conn, tree, row)
    visited = Visited()
    while own is not None and own.role == "human" and own.message != question.message:
        visited.add(own.key)
        own = None if own.parent is None else nodes.by_seq(conn, tree, own.parent)
    return own is not None and own.message == question.message


def _stored(row: NodeRow, message: BaseMessage) -> ConversationNode:
    if message.id != row.message:
        give_ids([(message, row.message)])
    stamp = datetime.fromtimestamp(row.created, UTC)
    return ConversationNode(row.seq, message, row.parent, None, stamp, State(row.state), row.superseded_by)


def _write(conn: Conn, writes: Sequence[Append]) -> list[Written]:
    """Run several appends in their order; all new rows are inserted in one statement."""
    # On PostgreSQL, a statement that waits for a lock returns stale joined columns: the heads are read later.
    if conn.dialect == "postgresql":
        trees.lock_all(conn, {write.tree for write in writes})
    rows: list[tuple[Any, ...]] = []
    appenders: dict[int, _Appender] = {}
    written = []
    for write in writes:
        appender = appenders.get(write.tree)
        if appender is None:
            head = trees.head(conn, write.tree)
            if head.sealed != (conn.seal is not None):
                trees.claim(conn, write.tree, head.sealed)
            appender = appenders[write.tree] = _Appender(conn, write.tree, head, rows)
        written.append(appender.append(write))
    for tree, appender in appenders.items():
        appender.flush()
        if appender.placements:
            stored_placements.put(conn, appender.placements)
        if appender.end is not None and (appender.head.pinned or appender.system is not None):
            trees.set_head(conn, tree, appender.end[0], appender.system or appender.head.system)
    return written


@dataclass(slots=True)
class Append:
    """The transaction of `append` as a value, so that a group commit can run several in one statement.

    The attributes are the arguments of `append`.
    """

    tree: int
    drafts: Sequence[Draft]
    parent: Parent = TIP
    fresh: bool = False
    chosen_in: trees.TreeEpoch | None = None
    otherwise: Parent = None
    version: int | None = None
    """The version of the tree whose messages the placements may quote."""
    unquoted: Callable[[], Placement | None] = lambda: None
    """Returns the placement for another version, in which such a message may be removed."""
    together: ClassVar = staticmethod(_write)

    def __call__(self, conn: Conn) -> Written:
        return _write(conn, (self,))[0]


def append(
    conn: Conn,
    tree_id: int,
    drafts: Sequence[Draft],
    parent: Parent = TIP,
    *,
    fresh: bool = False,
    chosen_in: trees.TreeEpoch | None = None,
    otherwise: Parent = None,
) -> Written:
    """Write messages as a chain below a node, and make the last new node the tip.

    The write is idempotent: a message that is stored already with the same id and content keeps its place,
    and the next message is written below it. The same answer to another question, as from a cache, is a new
    message with an id of its own. A system message equal to the newest one is not written again.

    Args:
        conn: A write transaction.
        tree_id: The tree.
        drafts: The messages, in order.
        parent: Number of the parent of the first message; `None` for a new root; `TIP` for the tip.
        fresh: Whether to write a new node for each message, even if its id is stored already.
        chosen_in: The epoch in which `parent` was chosen.
        otherwise: The parent if the tree was emptied since that epoch; the messages have no placements then.

    Returns:
        The nodes of the messages.

    Raises:
        MessageIdConflictError: An id is stored with other content.
        NodeNotFoundError: The tree has no node with the number `parent`.
    """
    return Append(tree_id, drafts, parent, fresh, chosen_in, otherwise)(conn)


def conflict(row: NodeRow) -> MessageIdConflictError:
    """The error for a message whose id belongs to another message."""
    return MessageIdConflictError(
        f"message id {row.message!r} is taken by node {row.seq}, which is another message; nothing was "
        "written: replace that message with edit(), or give the new message another id"
    )
