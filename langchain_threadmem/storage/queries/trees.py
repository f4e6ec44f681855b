"""Trees: which conversation is which, and where its active thread ends."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import BigInteger, bindparam, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert

from langchain_threadmem.storage.schema import node, tree
from langchain_threadmem.storage.statements import Conn, Statement


class Head(NamedTuple):
    """The changing part of a tree.

    Attributes:
        next_seq: The number that the next node gets.
        tip: Key of the node in which the active thread ends; the newest node, unless another was made it.
        system: Key of the newest live system message.
        version: Rises whenever a stored node changes its state.
        epoch: Rises whenever the tree is emptied.
    """

    next_seq: int
    tip: int | None
    system: int | None
    version: int
    epoch: int


_NAMED = (
    (tree.c.owner == bindparam("owner")),
    (tree.c.conversation == bindparam("conversation")),
    (tree.c.scope == bindparam("scope")),
)
_FIND = Statement(select(tree.c.id).where(*_NAMED), "owner", "conversation", "scope")
_CREATE = Statement(
    insert(tree)
    .values(
        owner=bindparam("owner"),
        conversation=bindparam("conversation"),
        scope=bindparam("scope"),
        version=0,
        epoch=0,
        created=bindparam("created"),
    )
    .on_conflict_do_nothing()
    .returning(tree.c.id),
    "owner",
    "conversation",
    "scope",
    "created",
)
newest = node.alias("newest")
"""The node of a tree that was written last; join it with `is_newest`."""
_later = node.alias("later")
_newest_key = (
    select(_later.c.key)
    .where(_later.c.tree == tree.c.id)
    .order_by(_later.c.seq.desc())
    .limit(literal_column("1"))
    .offset(literal_column("0"))  # written out, or SQLite is sent a parameter for it
    .correlate(tree)
    .scalar_subquery()
)
is_newest = newest.c.key == _newest_key

_HEAD = Statement(
    select(
        func.coalesce(newest.c.seq, literal_column("0")) + literal_column("1"),
        func.coalesce(tree.c.tip, newest.c.key),
        *tree.c["system", "version", "epoch"],
    )
    .select_from(tree)
    .outerjoin(newest, is_newest)
    .where(tree.c.id == bindparam("tree")),
    "tree",
)
_SETTLE = Statement(
    update(tree)
    .where(tree.c.id == bindparam("tree"))
    .values(tip=func.nullif(bindparam("tip", type_=BigInteger()), _newest_key), system=bindparam("system")),
    "tip",
    "system",
    "tree",
)
_CHANGED = Statement(
    update(tree).where(tree.c.id == bindparam("tree")).values(version=tree.c.version + 1), "tree"
)
_LOCK = Statement(select(tree.c.id).where(tree.c.id == bindparam("tree")).with_for_update(), "tree")
_LIST = Statement(
    select(tree.c.conversation, tree.c.id)
    .where(tree.c.owner == bindparam("owner"), tree.c.scope == "", _newest_key.is_not(None))
    .order_by(tree.c.id),
    "owner",
)


def find(conn: Conn, owner: str, conversation: str, scope: str = "") -> int | None:
    """The id of a conversation's tree, if it has one."""
    row = conn.one(_FIND, owner, conversation, scope)
    return row[0] if row else None


def find_or_create(conn: Conn, owner: str, conversation: str, now: float, scope: str = "") -> int:
    """The id of a conversation's tree, made if there is none. Needs a write transaction."""
    found = find(conn, owner, conversation, scope)
    if found is not None:
        return found
    row = conn.one(_CREATE, owner, conversation, scope, now)
    # No row: another transaction made it since we looked, and it is committed now.
    made = row[0] if row else find(conn, owner, conversation, scope)
    assert made is not None
    return int(made)


def lock(conn: Conn, tree_id: int) -> None:
    """Keep other writers off a tree until this transaction ends; SQLite has locked already."""
    if conn.dialect == "postgresql":
        conn.run(_LOCK, tree_id)


def head(conn: Conn, tree_id: int) -> Head:
    """The changing part of a tree."""
    row = conn.one(_HEAD, tree_id)
    assert row is not None, f"tree {tree_id} is gone"
    return Head(*row)


def settle(conn: Conn, tree_id: int, tip: int | None, system: int | None) -> None:
    """Say where the active thread ends now, and which is the newest system message, by their keys."""
    conn.run(_SETTLE, tip, system, tree_id)


def move_tip(conn: Conn, tree_id: int, key: int | None) -> None:
    """Make another node the end of the active thread."""
    settle(conn, tree_id, key, head(conn, tree_id).system)


def changed(conn: Conn, tree_id: int) -> None:
    """Tell caches that something stored in a tree is no longer what it was."""
    conn.run(_CHANGED, tree_id)


def conversations(conn: Conn, owner: str) -> list[tuple[str, int]]:
    """Names and trees of an owner's conversations that hold anything, the oldest first."""
    return [(row[0], row[1]) for row in conn.all(_LIST, owner)]
