"""SQL: the end of each tree, and the key of the next message below a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, bindparam, exists, literal_column, select

from langchain_threadmem.errors import NodeNotFoundError
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import LAST_POSITION, POSITION_BITS, node, segment, tree
from langchain_threadmem.storage.statements import Conn, Statement
from langchain_threadmem.tree import trees


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
        node_keys.is_at(node, bindparam("tree"), bindparam("seq", type_=BigInteger()))
    ),
    "tree",
    "seq",
)
_NEW_SEGMENT = Statement(
    segment.insert().values(tree=bindparam("tree"), parent=bindparam("parent")).returning(segment.c.id),
    "tree",
    "parent",
)


@dataclass(slots=True)
class End:
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
    in_force: tuple[str, Any] | None = None


def read(conn: Conn, tree_id: int) -> End:
    """Where a tree grows, which is then locked for this transaction."""
    # Locked by a statement of its own: a row that PostgreSQL waited for comes with stale joined columns.
    trees.lock(conn, tree_id)
    start = conn.one(_START, tree_id)
    assert start is not None, f"tree {tree_id} is gone"
    tip, system, sealed, newest, seq = start
    if sealed != (conn.seal is not None):
        trees.claim(conn, tree_id, sealed)
    if tip is None:
        return End(newest, seq, False, seq or 0, system, pinned=False)
    key, tip_seq, taken = conn.all(_TIP, tip)[0]
    return End(key, tip_seq, taken, seq or 0, system, pinned=True)


def settle(conn: Conn, tree_id: int, end: End) -> None:
    """Write what has changed of an end and does not follow from the newest node."""
    if end.stale:
        trees.settle(conn, tree_id, end.tip, end.system)
        end.stale = end.pinned = False


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


def next_key(conn: Conn, tree_id: int, key: int | None, taken: bool) -> int:
    """The key below a node: the next position of its segment, or the first of a new one.

    Args:
        conn: A write transaction.
        tree_id: The tree.
        key: Of the node; `None` for a new root.
        taken: Whether the key after it is in use.
    """
    if key is not None and not taken and key & LAST_POSITION != LAST_POSITION:
        return key + 1
    return new_segment(conn, tree_id, key)


def new_segment(conn: Conn, tree_id: int, key: int | None) -> int:
    """The first key of a new segment, which forks from a node or begins a tree."""
    row = conn.one(_NEW_SEGMENT, tree_id, key)
    assert row is not None
    return int(row[0]) << POSITION_BITS
