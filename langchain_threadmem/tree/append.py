"""SQL: the writer of nodes, and messages appended as a chain below a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, ClassVar, Final, NamedTuple

from langchain_core.messages import BaseMessage
from sqlalchemy import BigInteger, bindparam, exists, literal_column, select

from langchain_threadmem.errors import MessageIdConflictError, NodeNotFoundError
from langchain_threadmem.messages.codec import give_id, is_unreadable
from langchain_threadmem.messages.ids import is_numbered, numbered
from langchain_threadmem.storage import encryption_keys, node_keys
from langchain_threadmem.storage.checksums import COLUMN, of_node
from langchain_threadmem.storage.schema import LAST_POSITION, POSITION_BITS, State, node, segment
from langchain_threadmem.storage.statements import Conn, Statement, insert_of
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
    "tree",
    "parent",
)
_next = node.alias("next")
_taken = exists().where(_next.c.key == node.c.key + literal_column("1"))
_BY_SEQ = Statement(
    select(node.c.key, _taken).where(
        node_keys.is_at(node, bindparam("tree"), bindparam("seq", type_=BigInteger()))
    ),
    "tree",
    "seq",
)
_AT_KEY = Statement(select(node.c.seq, _taken).where(node.c.key == bindparam("key")), "key")
_EXISTS = Statement(select(node.c.key).where(node.c.key == bindparam("key")), "key")


def insert(conn: Conn, rows: Sequence[Sequence[Any]]) -> None:
    """Write rows of the node table with bodies as they are stored."""
    if conn.dialect == "sqlite":
        conn.many(_INSERT_WITH_CHECKSUM, [(*row, of_node(row)) for row in rows])
    else:
        conn.many(_INSERT, rows)


def new_segment(conn: Conn, tree_id: int, parent: int | None) -> int:
    """Number of a new segment, which forks from the node with the key `parent` or begins a tree."""
    row = conn.one(_NEW_SEGMENT, tree_id, parent)
    assert row is not None
    return int(row[0])


class NodeWriter:
    """Writes new nodes of one tree: computes the key of each, and inserts their rows together.

    Args:
        conn: A write transaction, which has locked the tree.
        tree_id: The tree.
        head: The head of the tree.
        rows: Rows that wait for `flush`; writers of several trees may share the list.
    """

    def __init__(
        self, conn: Conn, tree_id: int, head: trees.Head, rows: list[tuple[Any, ...]] | None = None
    ) -> None:
        self.conn = conn
        self.tree = tree_id
        self.newest = head.next_seq - 1
        self._used = head.used
        self._time: float | None = None  # of the newest node, if it is new
        self.rows = [] if rows is None else rows
        self.taken: dict[int, bool] = {}
        """Of some stored nodes, by key: whether the key after it is in use."""

    def add(
        self,
        parent: int | None,
        under: int | None,
        message: str,
        role: str,
        body: str,
        created: float,
        state: int = 0,
        superseded_by: int | None = None,
        *,
        seq: int | None = None,
        apart: bool = False,
    ) -> int:
        """Add a node; its row is written by `flush`.

        Args:
            parent: Key of its parent; `None` for a root.
            under: Number of its parent; `None` for a root.
            message: Id of its message.
            role: LangChain's type: human, ai, system, tool ...
            body: JSON text, see `messages.codec`; not encrypted.
            created: Seconds since 1970, UTC.
            state: See `State`.
            superseded_by: Number of the node that replaced it.
            seq: Its number; the next one by default.
            apart: Whether it begins a segment of its own wherever it goes.

        Returns:
            Its key.
        """
        if seq is None:
            seq = self.newest + 1
        # Numbers rise along a segment.
        if parent is None or under is None or apart or seq < under or self.is_taken(parent):
            key, opens = new_segment(self.conn, self.tree, parent) << POSITION_BITS, 1
        else:
            key, opens = parent + 1, 0 if under == seq - 1 else 1
            self.taken[parent] = True
        self.taken[key] = False
        named = 0 if is_numbered(message, seq) else 1
        self.rows.append(
            (key, self.tree, seq, under, message, role, body, created, state, superseded_by, named, opens)
        )
        if seq > self.newest:
            self.newest, self._time = seq, created
        return key

    def flush(self) -> None:
        """Insert the rows that wait, and store the time of the last use."""
        if self.rows:
            if (seal := self.conn.seal) is not None:
                encryption_keys.claim(self.conn)
                self.rows[:] = [(*row[:6], seal.text(row[4], row[6]), *row[7:]) for row in self.rows]
            insert(self.conn, self.rows)
            self.rows.clear()
        if self._used is not None and self._time is not None:
            used = trees.used_after(self._used, self._time)
            if used != self._used:
                trees.use(self.conn, self.tree, used)
            self._used, self._time = used, None

    def key_of(self, seq: int) -> int:
        """The key of the node with a number.

        Raises:
            NodeNotFoundError: There is no such node.
        """
        self.flush()
        row = self.conn.one(_BY_SEQ, self.tree, seq)
        if row is None:
            raise NodeNotFoundError(f"there is no node {seq!r} in this conversation to continue")
        key, self.taken[row[0]] = row
        return int(key)

    def is_taken(self, key: int) -> bool:
        """Whether the key after a node's cannot be given to a new node."""
        if key & LAST_POSITION == LAST_POSITION:
            return True
        if key not in self.taken:
            self.taken[key] = bool(self.conn.all(_EXISTS, key + 1))
        return self.taken[key]


class _Tip(Enum):
    TIP = 0


TIP: Final = _Tip.TIP
"""As a parent: wherever the active thread ends when the write happens."""

Parent = int | None | _Tip


class Draft(NamedTuple):
    """A message to be appended.

    Attributes:
        message: The message, which nobody else holds: the writer sets its id.
        role: LangChain's type: human, ai, system, tool ...
        body: JSON text, see `messages.codec`.
        created: Seconds since 1970, UTC.
        id: Its id; of a message without one the beginning of an id, which its number completes.
        given: Whether the id came with the message.
        placement: Why it goes where it goes, if that was weighed.
    """

    message: BaseMessage
    role: str
    body: str
    created: float
    id: str
    given: bool
    placement: Placement | None = None


class Written(NamedTuple):
    """The nodes of drafts, written now or stored before, in the order of the drafts, and their keys."""

    keys: list[int]
    nodes: list[ConversationNode]


class _Appender(NodeWriter):
    """Appends drafts to a tree, which is locked."""

    def __init__(self, conn: Conn, tree_id: int, rows: list[tuple[Any, ...]]) -> None:
        head = trees.head(conn, tree_id)
        if head.sealed != (conn.seal is not None):
            trees.claim(conn, tree_id, head.sealed)
        super().__init__(conn, tree_id, head, rows)
        self._tip = head.tip
        self._tip_seq: int | None = None
        if head.tip is not None:
            self._tip_seq, self.taken[head.tip] = (
                conn.all(_AT_KEY, head.tip)[0] if head.pinned else (self.newest, False)
            )
        self._system = head.system
        self._pinned = head.pinned
        self._is_stale = False  # the row of the tree
        self._new: set[str] = set()  # message ids that rows which wait may have
        self._placements: list[tuple[int, str, Placement]] = []

    def append(self, drafts: Sequence[Draft], parent: Parent, fresh: bool) -> Written:
        if parent is TIP:
            above, under = self._tip, self._tip_seq
        else:
            above, under = None if parent is None else self.key_of(parent), parent
        keys, found = [], []
        for message, role, body, created, id_, given, placement in drafts:
            if role == "system" and (row := self._in_force()) is not None and row.body == body:
                keys.append(row.key)
                found.append(_stored(row, message))
                continue
            if given and not fresh and (row := self._known(id_)) is not None:
                if row.body != body and not is_unreadable(body):
                    raise conflict(row)
                keys.append(row.key)
                found.append(_stored(row, message))
                above, under = row.key, row.seq
                continue
            if not given:
                id_ = numbered(id_, self.newest + 1)
                give_id(message, id_)
            key = self.add(above, under, id_, role, body, created)
            said = datetime.fromtimestamp(created, UTC)
            keys.append(key)
            found.append(ConversationNode(self.newest, message, under, None, said, placement=placement))
            if placement is not None:
                self._placements.append((key, id_, placement))
            if role == "system":
                self._system, self._is_stale = key, True
            above, under = self._tip, self._tip_seq = key, self.newest
            self._is_stale |= self._pinned
        return Written(keys, found)

    def settle(self) -> None:
        """Write what belongs to the new nodes, and where the tree ends if its newest node does not say so."""
        if self._placements:
            stored_placements.put(self.conn, self._placements)
        if self._is_stale:
            trees.settle(self.conn, self.tree, self._tip, self._system)

    def _in_force(self) -> NodeRow | None:
        """The newest system message."""
        self.flush()
        return None if self._system is None else nodes.by_key(self.conn, self._system)

    def _known(self, message: str) -> NodeRow | None:
        """The place of a message that is stored already: the live one, else the newest."""
        if message in self._new:
            self.flush()
        self._new.add(message)
        return nodes.by_message(self.conn, self.tree, message)


def _stored(row: NodeRow, message: BaseMessage) -> ConversationNode:
    if message.id != row.message:
        give_id(message, row.message)
    said = datetime.fromtimestamp(row.created, UTC)
    return ConversationNode(row.seq, message, row.parent, None, said, State(row.state), row.superseded_by)


def _write(conn: Conn, writes: Sequence[Append]) -> list[Written]:
    """Run several appends in their order, with one statement for all new rows."""
    # Locked by a statement of its own: a row that PostgreSQL waited for comes with stale joined columns.
    trees.lock_all(conn, {write.tree for write in writes})
    rows: list[tuple[Any, ...]] = []
    appenders: dict[int, _Appender] = {}
    written = []
    for write in writes:
        appender = appenders.get(write.tree)
        if appender is None:
            appender = appenders[write.tree] = _Appender(conn, write.tree, rows)
        written.append(appender.append(write.drafts, write.parent, write.fresh))
    for appender in appenders.values():
        appender.flush()
        appender.settle()
    return written


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
    together: ClassVar = staticmethod(_write)

    def __call__(self, conn: Conn) -> Written:
        return _write(conn, (self,))[0]


def append(
    conn: Conn, tree_id: int, drafts: Sequence[Draft], parent: Parent = TIP, *, fresh: bool = False
) -> Written:
    """Write messages as a chain below a node, and make the last one the tip.

    A message whose id is stored already, with the same content, stays where it is, and what follows it in
    `drafts` goes below it: the same append twice is once. A system message equal to the newest one is
    ignored.

    Args:
        conn: A write transaction.
        tree_id: The tree.
        drafts: Messages in order.
        parent: Number of the node to go below; `None` for a new root; `TIP` for the active tip.
        fresh: Whether to write all of them, even under an id that has a place already.

    Returns:
        The nodes of the drafts.

    Raises:
        MessageIdConflictError: An id is stored with other content.
        NodeNotFoundError: `parent` is no node of this tree.
    """
    return Append(tree_id, drafts, parent, fresh)(conn)


def conflict(row: NodeRow) -> MessageIdConflictError:
    """The error that a message's id is taken by another message."""
    return MessageIdConflictError(
        f"message id {row.message!r} is taken by node {row.seq}, which is another message; "
        "nothing was written: use edit() to replace that one, or give this one another id"
    )
