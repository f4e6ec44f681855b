"""What the database itself can say about its health."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from langchain_threadmem.core.nodes import State
from langchain_threadmem.storage.queries import nodes
from langchain_threadmem.storage.queries.nodes import STORED
from langchain_threadmem.storage.schema import digest, node, segment, tree, unit
from langchain_threadmem.storage.statements import Conn, Statement

_CHECK = Statement.of(sqlite="PRAGMA quick_check", postgresql="SELECT 'ok'")
_ORPHANS = Statement(
    select(node.c.message)
    .select_from(
        tree.join(node, node.c.tree == tree.c.id)
        .join(unit, unit.c.key == node.c.key)
        .outerjoin(digest, digest.c.key == unit.c.parent)
    )
    .where(tree.c.owner == bindparam("owner"), unit.c.parent.is_not(None), digest.c.key.is_(None)),
    "owner",
)
_EMPTY = Statement(
    select(digest.c.id)
    .select_from(tree.join(digest, digest.c.tree == tree.c.id).outerjoin(node, node.c.key == digest.c.key))
    .where(tree.c.owner == bindparam("owner"), node.c.key.is_(None)),
    "owner",
)
_SEGMENTS = Statement(
    select(segment.c.id, segment.c.parent).where(segment.c.tree == bindparam("tree")), "tree"
)
_PURGED = Statement(
    select(node.c.key).where(node.c.tree == bindparam("tree"), node.c.state == int(State.PURGED)), "tree"
)
_NAMES = Statement(
    select(*node.c["seq", "message", "named"]).where(
        node.c.tree == bindparam("tree"), node.c.seq.between(bindparam("first"), bindparam("last")), STORED
    ),
    *("tree", "first", "last"),
)


def problems(conn: Conn) -> list[str]:
    """Faults of the file; PostgreSQL checks its own."""
    return [f"the database file: {row[0]}" for row in conn.all(_CHECK) if row[0] != "ok"]


def dangling(conn: Conn, owner: str) -> list[str]:
    """Links of an owner's summaries that lead nowhere."""
    return [
        *(f"unit {row[0]!r} lies below a summary that there is not" for row in conn.all(_ORPHANS, owner)),
        *(f"summary {row[0]!r} has no text" for row in conn.all(_EMPTY, owner)),
    ]


def purged(conn: Conn, tree_id: int) -> set[int]:
    """Keys of the nodes of a tree that hold nothing any more."""
    return {row[0] for row in conn.all(_PURGED, tree_id)}


def unfound(conn: Conn, tree_id: int, first: int, last: int) -> list[int]:
    """Those of some nodes, by their numbers, that are not where their message's id is looked up."""
    rows = conn.all(_NAMES, tree_id, first, last)
    return [seq for seq, message, named in rows if named != nodes.named(message, seq)]


def segments(conn: Conn, tree_id: int) -> dict[int, int | None]:
    """The segments of a tree and the key of the node each forks from."""
    return {row[0]: row[1] for row in conn.all(_SEGMENTS, tree_id)}
