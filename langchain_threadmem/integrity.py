"""SQL: checks of the database file, of its rows and of the links between them."""

from __future__ import annotations

from sqlalchemy import bindparam, func, literal_column, select

from langchain_threadmem.messages.ids import is_numbered
from langchain_threadmem.removal.tables import PARTS, Id, scope
from langchain_threadmem.storage import checksums, node_keys
from langchain_threadmem.storage.schema import State, digest, node, segment, tree, unit
from langchain_threadmem.storage.statements import Conn, Statement
from langchain_threadmem.tree.nodes import STORED

_CHECK = Statement.of(sqlite="PRAGMA integrity_check", postgresql="SELECT 'ok'")
_ORPHANS = Statement(
    select(node.c.message)
    .select_from(
        tree.join(segment, segment.c.tree == tree.c.id)
        .join(unit, node_keys.inside(unit.c.key))
        .join(node, node.c.key == unit.c.key)
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
_PURGED = Statement(node_keys.keys_of(bindparam("tree")).where(node.c.state == int(State.PURGED)), "tree")
_before = node.alias("before")
_UNREACHED = Statement(
    select(node.c.seq)
    .select_from(
        segment.join(node, node_keys.inside(node.c.key)).outerjoin(_before, _before.c.key == node.c.key - 1)
    )
    .where(
        segment.c.tree == bindparam("tree"),
        node.c.opens == literal_column("0"),
        func.coalesce(_before.c.seq, literal_column("-1")) != node.c.seq - 1,
    ),
    "tree",
)
_NAMES = Statement(
    node_keys.after(
        select(*node.c["seq", "message", "named"]).where(node.c.seq <= bindparam("last"), STORED),
        bindparam("tree"),
        bindparam("before"),
    ),
    *("tree", "before", "last"),
)


def problems(conn: Conn) -> list[str]:
    """Faults of an SQLite file; PostgreSQL checks its own files."""
    return [f"the database file: {row[0]}" for row in conn.all(_CHECK) if row[0] != "ok"]


def damaged(conn: Conn, owner: str, only: int | None = None) -> list[str]:
    """Rows that differ from what was written, of one tree or of the whole database, one sentence each."""
    found: list[str] = []
    for part in PARTS:
        if only is None:
            keys = checksums.wrong(conn, part.table)
        elif part.under is Id.TREE:
            keys = checksums.wrong(conn, part.table, scope(part), only)
        else:
            continue
        if part.table.primary_key.columns.keys()[0] == "owner":  # The names of other owners are not shown.
            keys = [key if key[0] == owner else ("another owner's",) for key in keys]
        found += [f"the row {key!r} of {part.table.name!r} is not what was written" for key in keys]
    return found


def dangling(conn: Conn, owner: str) -> list[str]:
    """Links of an owner's summaries that lead nowhere."""
    return [
        *(f"unit {row[0]!r} lies below a summary that there is not" for row in conn.all(_ORPHANS, owner)),
        *(f"summary {row[0]!r} has no text" for row in conn.all(_EMPTY, owner)),
    ]


def purged(conn: Conn, tree_id: int) -> set[int]:
    """Keys of the purged nodes of a tree."""
    return {row[0] for row in conn.all(_PURGED, tree_id)}


def unfound(conn: Conn, tree_id: int, first: int, last: int) -> list[int]:
    """Numbers of the nodes that are not found by the ids of their messages."""
    rows = conn.all(_NAMES, tree_id, first - 1, last)
    return [seq for seq, message, named in rows if bool(named) == is_numbered(message, seq)]


def unreached(conn: Conn, tree_id: int) -> list[int]:
    """Numbers of the nodes of a tree that the index of node numbers does not reach."""
    return [row[0] for row in conn.all(_UNREACHED, tree_id)]
